"""Chapter 03's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by, searching

from transformer_lib.exercises import scaling
from transformer_lib.exercises.scaling import (
    check_fair_report,
    check_pytorch_width,
    check_same_training,
    check_scaled_weights,
    check_score_variance,
    check_softmax_jacobian,
    check_temperature_for_entropy,
    check_times_scaled,
)

RIGHT, WRONG = {}, {}

# --- the variance of a score


def by_sampling(d_k):
    q, k = torch.randn(20_000, d_k), torch.randn(20_000, d_k)
    return (q * k).sum(-1).var().item()


def by_one_matrix_of_signs(d_k):
    q = torch.randint(0, 2, (20_000, d_k)) * 2.0 - 1
    k = torch.randint(0, 2, (20_000, d_k)) * 2.0 - 1
    return ((q * k).sum(-1) ** 2).mean()


RIGHT[check_score_variance] = [by_sampling, by_one_matrix_of_signs]


def with_itself(d_k):
    q = torch.randn(20_000, d_k)
    return (q * q).sum(-1).var().item()


def not_centered(d_k):
    return (torch.rand(20_000, d_k) * torch.rand(20_000, d_k)).sum(-1).var().item()


def one_pair(d_k):
    return (torch.randn(1, d_k) * torch.randn(1, d_k)).sum(-1).var(correction=1).item()


WRONG[check_score_variance] = [
    (lambda d_k: by_sampling(d_k) ** 0.5, "This is the standard deviation;"),
    (with_itself, "This is 2 d_k. If you use q = k,"),
    (not_centered, "Your data are not centered:"),
    (
        lambda d_k: (torch.randn(20_000, d_k) * torch.randn(20_000, d_k)).sum(-1).mean().item(),
        "This is near 0, as the mean",
    ),
    (lambda d_k: by_sampling(d_k) / d_k, "This is 1: you have not added"),
]


WRONG[check_score_variance] += [(one_pair, "One pair says nothing")]


# --- scaled weights


def by_pytorch(q, k):
    return F.scaled_dot_product_attention(q, k, torch.eye(k.shape[1]).expand(len(k), -1, -1))


def scaled_queries(q, k):
    return F.softmax(torch.einsum("hqd,hkd->hqk", q / math.sqrt(q.shape[2]), k), dim=2)


RIGHT[check_scaled_weights] = [by_pytorch, scaled_queries]


WRONG[check_scaled_weights] = [
    (lambda q, k: F.softmax(q @ k.mT, dim=2), "`/ q.shape[-1] ** 0.5` is missing after `q @ k.mT`"),
    (
        lambda q, k: F.softmax(q @ k.mT / q.shape[2], dim=2),
        "a square root is missing: `(q.shape[2]) ** 0.5` in place of `q.shape[2",
    ),
    (
        lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[0] * q.shape[2]), dim=2),
        "`q.shape[0] *` is too much",
    ),
    (
        lambda q, k: F.softmax(q @ k.mT, dim=2) / math.sqrt(q.shape[2]),
        "here, at `softmax`, your values depart",
    ),
    (lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[1]), dim=2), "Which axis of the scores"),
    (
        lambda q, k: (q / math.sqrt(q.shape[2])) @ k.mT,
        "a softmax is missing: `((q / math.sqrt(q.shape[2])) @ k.mT).softmax(-1",
    ),
]


# --- the Jacobian of the softmax


def by_autograd(s, scale):
    return torch.autograd.functional.jacobian(lambda x: F.softmax(scale * x, dim=0), s)


def entry_by_entry(s, scale):
    p = F.softmax(s * scale, dim=0)
    n = len(s)
    rows = [[scale * p[i] * (float(i == j) - p[j]) for j in range(n)] for i in range(n)]
    return torch.tensor(rows)


RIGHT[check_softmax_jacobian] = [by_autograd, entry_by_entry]


WRONG[check_softmax_jacobian] = [
    (lambda s, scale: by_autograd(s, scale).diag().diag(), "here, at `diag`, your"),
    (
        lambda s, scale: 2 * scale * F.softmax(s * scale, dim=0).diag() - by_autograd(s, scale),
        "`2 * scale * F.softmax(s * scale, dim=0).diag() -` is too much",
    ),
    (
        lambda s, scale: by_autograd(s, 1.0) * scale,
        "with `lambda s, scale: by_autograd(s * scale, 1.0) * scale` in",
    ),
    (
        lambda s, scale: scale * (torch.diag(p := F.softmax(s / scale, 0)) - p[:, None] * p),
        "with `s * scale` in place of `s / scale`",
    ),
    (lambda s, scale: by_autograd(s, 1.0), "the right computation does `mul` there"),
    (
        lambda s, scale: scale * F.softmax(s * scale, dim=0).diag(),
        "here, at `mul`, your values depart",
    ),
    (
        lambda s, scale: by_autograd(s, 1.0) * scale,
        "with `lambda s, scale: by_autograd(s * scale, 1.0) * scale` in",
    ),
    (lambda s, scale: by_autograd(s, 1 / scale) * scale**2, "here, at `softmax`, your"),
]


# --- a temperature for an entropy


def entropy_of(s, temperature, log=torch.log):
    p = F.softmax(s.double() / temperature, dim=0)
    return -(p * log(p.clamp_min(1e-300))).sum().item()


def by_halving(s, entropy, log=torch.log):
    low, high = 0.001, 1000.0
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if entropy_of(s, middle, log) < entropy else (low, middle)
    return low


def by_grid(s, entropy):
    grid = torch.logspace(-2, 2, 8001, dtype=torch.float64)
    found = torch.distributions.Categorical(logits=s.double() / grid[:, None]).entropy()
    return grid[(found - entropy).abs().argmin()]


RIGHT[check_temperature_for_entropy] = [by_halving, by_grid]


def by_hand(s):
    return s.exp() / s.exp().sum()


def by_unsafe(s, entropy, softmax=lambda s: F.softmax(s, dim=0)):
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        p = softmax(s / middle)
        h = -(p * p.log()).sum().item()
        if h > entropy:
            high = middle
        elif h <= entropy:
            low = middle
        else:
            high = middle
    return low


WRONG[check_temperature_for_entropy] = [
    (lambda s, entropy: 1 / by_halving(s, entropy), "`1 /` is too much"),
    (lambda s, entropy: by_halving(s, entropy, torch.log2), "without `torch.log2` it is right"),
    (lambda s, entropy: entropy_of(s, 1.0), "This is the entropy at temperature"),
    (lambda s, entropy: 1.0, "never uses its argument `s`"),
    (lambda s, entropy: min(by_halving(s, entropy), 10.0), "`min` is one step too many"),
    (
        by_unsafe,
        "here, at `mul`, your values depart from those of the right computation: a NaN arises",
    ),
    (lambda s, entropy: by_unsafe(s, entropy, by_hand), "a NaN arises"),
]


def test_a_nan_on_the_way_is_named_at_its_line():
    diagnosis = check_temperature_for_entropy(by_unsafe).diagnosis
    assert diagnosis.startswith(f"Line {by_unsafe.__code__.co_firstlineno + 5}, `h = -(p * p.log(")
    assert diagnosis.endswith("a NaN arises: 0 · inf, 0/0, inf/inf or inf − inf.")


# --- PyTorch's start


def by_searching(d_k):
    """The first width at which measured scores spread as far: within the tolerance."""
    width = d_k
    while width / 9 < d_k:
        width += 1
    return width


RIGHT[check_pytorch_width] = [lambda d_k: 9 * d_k, by_searching]
WRONG[check_pytorch_width] = [
    (lambda d_k: math.sqrt(d_k), "That is the spread itself;"),
    (lambda d_k: d_k, "At the same width"),
    (lambda d_k: 3 * d_k, "You count the third once."),
    (lambda d_k: math.sqrt(3) * d_k, "The products have variance 1/9,"),
    (lambda d_k: d_k / 9, "with `d_k * 9` in place of `d_k / 9`"),
    (lambda d_k: 81 * d_k, "You square once too often:"),
]


# --- how often are the scores divided?


def by_spread(score, d_k):
    spread = score(torch.randn(300, d_k), torch.randn(300, d_k)).std()
    if spread > d_k**0.25:
        return 0
    return 1 if spread > d_k**-0.25 else 2


def unrounded(score, d_k):
    s = score(torch.randn(200, d_k), torch.randn(200, d_k)).std().item()
    return 1 - math.log(s) / math.log(d_k**0.5)


def by_one_product(score, d_k):
    ones = torch.ones(1, d_k)
    ratio = (score(ones, ones) / d_k).item()
    return torch.tensor(round(-2 * math.log(ratio, d_k)))


RIGHT[check_times_scaled] = [by_spread, by_one_product]
WRONG[check_times_scaled] = [
    (lambda score, d_k: 2 - by_spread(score, d_k), "You count the wrong way around:"),
    (lambda score, d_k: 0, "You always say 0:"),
    (lambda score, d_k: 1, "You always say 1:"),
    (lambda score, d_k: 2, "You always say 2:"),
    (lambda score, d_k: int(by_spread(score, d_k) > 0), "You see whether it was divided, but"),
    (lambda score, d_k: 1 + (by_spread(score, d_k) == 2), "You see whether it was divided twice,"),
    (
        lambda score, d_k: score(torch.randn(400, d_k), torch.randn(400, d_k)).std(),
        "This is the spread of",
    ),
    (lambda score, d_k: by_spread(score, d_k) + 0.04, "is not a whole number: round it."),
    (unrounded, "is not a whole number: round it."),
]


def test_a_change_that_is_right_for_some_draws_only_is_not_told():
    with searching(lines=True):
        assert check_times_scaled(unrounded).diagnosis.endswith("is not a whole number: round it.")


# --- the same training without the division


def written_out(W_Q, rate):
    root = math.sqrt(W_Q.shape[1])
    return W_Q / root, rate / root / root, rate


RIGHT[check_same_training] = [
    written_out,
    lambda W, r: [W * W.size(1) ** -0.5, torch.tensor(r / W.size(1)), r],
]


def powers(start, of_query, of_key=0.0):
    """An answer that is off by powers of d_k."""

    def answer(W_Q, rate):
        d_k = float(W_Q.shape[-1])
        return W_Q * d_k**start, rate * d_k**of_query, rate * d_k**of_key

    return answer


WRONG[check_same_training] = [
    (lambda W_Q, rate: (W_Q, rate, rate), "Nothing is changed yet:"),
    (powers(-0.5, 0), "`/ W_Q.shape[-1]` is missing after `rate * d_k**of_query`"),
    (powers(-0.5, 1), "with `rate / d_k**of_query` in place of `rate * d_k**of_query`"),
    (powers(-0.5, 0.5), "in item 1: you have"),
    (powers(-1, -1), "a square root is missing: `(d_k**start) ** 0.5` in place of `d_k**star"),
]


def test_the_right_start_and_rates_give_the_same_losses():
    """The claim behind the exercise, by training both ways."""
    source = torch.Generator().manual_seed(0)
    W_Q, W_K = (torch.randn(5, 7, generator=source, dtype=torch.float64) for _ in range(2))
    question, keys = (torch.randn(3, 5, generator=source, dtype=torch.float64) for _ in range(2))
    target = torch.eye(3, dtype=torch.float64)

    def losses(W_Q, W_K, scale, of_query, of_key):
        found = []
        for _ in range(5):
            W_Q, W_K = W_Q.detach().requires_grad_(), W_K.detach().requires_grad_()
            weights = F.softmax(scale * (question @ W_Q) @ (keys @ W_K).T, dim=1)
            loss = ((weights - target) ** 2).sum()
            to_Q, to_K = torch.autograd.grad(loss, (W_Q, W_K))
            W_Q, W_K = W_Q - of_query * to_Q, W_K - of_key * to_K
            found.append(loss.detach())
        return torch.stack(found)

    start, of_query, of_key = check_same_training.right(W_Q, 0.3)
    scaled = losses(W_Q, W_K, 7**-0.5, 0.3, 0.3)
    torch.testing.assert_close(losses(start, W_K, 1.0, of_query, of_key), scaled)
    assert scaled[4] < scaled[0]


# --- which report?

RIGHT[check_fair_report] = ["c", "C", "(c)"]
WRONG[check_fair_report] = [
    ("a", "One learning rate, and it is one"),
    ("B", "Equal starts and all rates, but *cannot*?"),
    ("d", "Two things differ,"),
]


# --- what all of them do


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")  # of one pair
@pytest.mark.parametrize("exercise", exercises(scaling))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
