"""Chapter 03's checks: right answers pass, each typical mistake gets its own sentence."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises import scaling as checks

# --- the variance of a score


def by_sampling(d_k):
    q, k = torch.randn(20_000, d_k), torch.randn(20_000, d_k)
    return (q * k).sum(-1).var().item()


def by_one_matrix_of_signs(d_k):
    q = torch.randint(0, 2, (20_000, d_k)) * 2.0 - 1
    k = torch.randint(0, 2, (20_000, d_k)) * 2.0 - 1
    return ((q * k).sum(-1) ** 2).mean()


@pytest.mark.parametrize("answer", [by_sampling, by_one_matrix_of_signs])
def test_score_variance_accepts(answer):
    assert checks.check_score_variance(answer).passed is True


def with_itself(d_k):
    q = torch.randn(20_000, d_k)
    return (q * q).sum(-1).var().item()


def not_centered(d_k):
    return (torch.rand(20_000, d_k) * torch.rand(20_000, d_k)).sum(-1).var().item()


def one_pair(d_k):
    return (torch.randn(1, d_k) * torch.randn(1, d_k)).sum(-1).var(correction=1).item()


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda d_k: by_sampling(d_k) ** 0.5,
            "This is the standard deviation; the variance is its square.",
        ),
        (
            with_itself,
            "You use q = k: then q·q is a sum of squares, with mean d_k and variance 2 d_k.",
        ),
        (
            not_centered,
            "Your data are not centered: torch.rand has mean 1/2; use torch.randn.",
        ),
        (
            lambda d_k: (torch.randn(20_000, d_k) * torch.randn(20_000, d_k)).sum(-1).mean().item(),
            "This is the mean of the scores, which is near 0; their variance is asked for.",
        ),
        (
            lambda d_k: by_sampling(d_k) / d_k,
            "The scores are divided by √d_k already, so their variance is 1.",
        ),
    ],
)
def test_score_variance_diagnoses(answer, diagnosis):
    assert checks.check_score_variance(answer).diagnosis == diagnosis


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")
def test_score_variance_of_one_pair_is_refused():
    sentence = "One pair tells nothing about a variance: draw some thousands."
    assert checks.check_score_variance(one_pair).diagnosis == sentence


# --- scaled weights


def by_pytorch(q, k):
    return F.scaled_dot_product_attention(q, k, torch.eye(k.shape[1]).expand(len(k), -1, -1))


def scaled_queries(q, k):
    return F.softmax(torch.einsum("hqd,hkd->hqk", q / math.sqrt(q.shape[2]), k), dim=2)


@pytest.mark.parametrize("answer", [by_pytorch, scaled_queries])
def test_scaled_weights_accepts(answer):
    assert checks.check_scaled_weights(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda q, k: F.softmax(q @ k.mT, dim=2), "The scores are not scaled at all."),
        (
            lambda q, k: F.softmax(q @ k.mT / q.shape[2], dim=2),
            "You divide by d_k; the standard deviation of a score is the square root of d_k.",
        ),
        (
            lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[0] * q.shape[2]), dim=2),
            "You divide by √d_model; each head's dot product has only d_k components.",
        ),
        (
            lambda q, k: F.softmax(q @ k.mT * math.sqrt(q.shape[2]), dim=2),
            "You multiply by √d_k, which makes the scores still larger: divide.",
        ),
        (
            lambda q, k: F.softmax(q @ k.mT, dim=2) / math.sqrt(q.shape[2]),
            "You scale after the softmax: the rows no longer sum to 1 and stay as hard as before.",
        ),
        (
            lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[1]), dim=2),
            "You divide by the square root of the number of tokens, the wrong axis.",
        ),
        (
            lambda q, k: (q / math.sqrt(q.shape[2])) @ k.mT,
            "These are the scaled scores; the softmax over the keys is still to be taken.",
        ),
        (
            lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[2]), dim=1),
            "The softmax runs over the queries, not the keys.",
        ),
    ],
)
def test_scaled_weights_diagnoses(answer, diagnosis):
    assert checks.check_scaled_weights(answer).diagnosis == diagnosis


# --- the Jacobian of the softmax


def by_autograd(s, scale):
    return torch.autograd.functional.jacobian(lambda x: F.softmax(scale * x, dim=0), s)


def entry_by_entry(s, scale):
    p = F.softmax(s * scale, dim=0)
    n = len(s)
    rows = [[scale * p[i] * (float(i == j) - p[j]) for j in range(n)] for i in range(n)]
    return torch.tensor(rows)


@pytest.mark.parametrize("answer", [by_autograd, entry_by_entry])
def test_softmax_jacobian_accepts(answer):
    assert checks.check_softmax_jacobian(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda s, scale: by_autograd(s, scale).diag().diag(),
            "Only the diagonal: raising one score also lowers the weight of all the others.",
        ),
        (
            lambda s, scale: 2 * scale * F.softmax(s * scale, dim=0).diag() - by_autograd(s, scale),
            "The sign of p pᵀ is wrong: raising one score takes weight from the others.",
        ),
        (
            lambda s, scale: by_autograd(s, scale) / scale,
            "The factor `scale` of the chain rule is missing: the softmax is taken of scale · s.",
        ),
        (
            lambda s, scale: by_autograd(s, 1.0),
            "The scale is ignored: p must be the softmax of scale · s.",
        ),
        (
            lambda s, scale: by_autograd(s, scale) - scale * F.softmax(s * scale, dim=0).diag(),
            "diag(p) is missing: only - p pᵀ is left.",
        ),
        (
            lambda s, scale: scale * F.softmax(s * scale, dim=0).diag(),
            "p pᵀ is missing: only diag(p) is left.",
        ),
        (
            lambda s, scale: by_autograd(s, scale) / scale**2,
            "This divides by the scale; the chain rule multiplies by it.",
        ),
    ],
)
def test_softmax_jacobian_diagnoses(answer, diagnosis):
    assert checks.check_softmax_jacobian(answer).diagnosis == diagnosis


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


@pytest.mark.parametrize("answer", [by_halving, by_grid])
def test_temperature_accepts(answer):
    assert checks.check_temperature_for_entropy(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda s, entropy: 1 / by_halving(s, entropy),
            "This is 1/τ, a factor of the scores; the temperature divides them.",
        ),
        (
            lambda s, entropy: by_halving(s, entropy, torch.log2),
            "Your entropy is in bits (log2); it is given in nats (log).",
        ),
        (
            lambda s, entropy: entropy_of(s, 1.0),
            "This is the entropy at temperature 1; the temperature is asked for.",
        ),
        (
            lambda s, entropy: math.sqrt(by_halving(s, entropy)),
            "This is the square root of the temperature: divide the scores by τ, not by τ².",
        ),
        (lambda s, entropy: 1.0, "This is always 1, whatever the entropy."),
    ],
)
def test_temperature_diagnoses(answer, diagnosis):
    assert checks.check_temperature_for_entropy(answer).diagnosis == diagnosis


# --- what all of them do


@pytest.mark.parametrize(
    "check",
    [
        checks.check_score_variance,
        checks.check_scaled_weights,
        checks.check_softmax_jacobian,
        checks.check_temperature_for_entropy,
    ],
)
def test_stubs_and_exceptions_get_a_verdict(check):
    assert check(None).passed is None
    verdict = check(lambda *inputs: 1 / 0)
    assert verdict.passed is False
    assert "ZeroDivisionError" in verdict.diagnosis
