"""Chapter 04's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by

from transformer_lib.exercises import masking
from transformer_lib.exercises.masking import (
    check_causal_mask,
    check_combined_mask,
    check_empty_rows,
    check_is_causal,
    check_padded_attention,
    check_reach,
    check_sliding_window,
    check_which_leaks,
)
from transformer_lib.masks import causal_mask, combine_masks, sliding_window_mask

RIGHT, WRONG = {}, {}


# --- causal


def causal_by_loop(queries, keys):
    rows = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
    return torch.tensor(rows)


def causal_by_pieces(queries, keys):  # the past in one piece: for at least as many keys
    now = torch.ones(queries, queries).tril()
    return torch.cat([torch.ones(queries, keys - queries), now], dim=1).bool()


RIGHT[check_causal_mask] = [causal_by_loop, causal_by_pieces, causal_mask]


WRONG[check_causal_mask] = [
    (
        lambda q, k: torch.ones(q, k).triu(k - q + 1).bool(),
        "it is inverted: `~torch.ones(q, k).triu(k - q + 1).bool()` in place of ",
    ),
    (
        lambda q, k: torch.arange(k) < torch.arange(k - q, k)[:, None],
        "with `torch.arange(k) <= torch.arange(k - q, k)[:, None]` in place of ",
    ),
    (lambda q, k: torch.ones(q, k).tril(k - q + 1).bool(), "`+ 1` is too much"),
    (
        lambda q, k: torch.arange(k)[:, None] <= torch.arange(k - q, k),
        "a transpose is missing: `(torch.arange(k)[:, None] <= torch.arange(k -",
    ),
    (lambda q, k: torch.arange(k) <= torch.arange(q)[:, None], "The mask is aligned to the"),
    (lambda q, k: torch.full((q, k), -math.inf).triu(k - q + 1), "This mask, of 0 and -inf, is"),
    (
        lambda q, k: torch.ones(q, k).tril(k - q),
        "On 5 queries and 5 keys: your result is `torch.float32`, not `torch.bool`: a comparison",
    ),
]


# --- causal and padding


def combined_by_loop(causal, padding):
    return torch.stack([causal & real for real in padding])


RIGHT[check_combined_mask] = [
    combined_by_loop,
    lambda causal, padding: combine_masks(causal, padding[:, None]),
]


def write_into_causal(causal, padding):
    rows = []
    for real in padding:
        causal[:, ~real] = False
        rows.append(causal.clone())
    return torch.stack(rows)


WRONG[check_combined_mask] = [
    (lambda causal, padding: causal != padding[:, None], "that is what `^` and `!=` do"),
    (
        lambda causal, padding: (causal + padding[:, None]).bool(),
        "with `causal * padding[:, None]` in place of `causal + padding[:, None",
    ),
    (lambda causal, padding: causal * padding, "The axis for the queries"),
    (
        lambda causal, padding: torch.ones_like(causal).tril() & padding[:, None],
        "`torch.ones_like` is one step too many",
    ),
    (
        lambda causal, padding: torch.stack([causal & real[:, None] for real in padding]),
        "`[:, None]` is too much",
    ),
    (
        lambda causal, padding: ~causal | ~padding[:, None],
        "it is inverted: `~(~causal | ~padding[:, None])` in place of `~causal ",
    ),
    (lambda causal, padding: torch.stack([causal] * len(padding)), "The future is hidden, but"),
    (
        write_into_causal,
        "you write into the argument `causal` on line ",
    ),
]


# --- rows with nothing to attend to


def rows_by_where(scores, mask):
    empty = ~mask.any(-1, keepdim=True)
    hidden = torch.where(mask | empty, scores, -math.inf)
    return torch.where(empty, 0.0, F.softmax(hidden, dim=-1))


def rows_by_exp(scores, mask):
    top = scores.masked_fill(~mask, -1e30).amax(-1, keepdim=True)
    powers = torch.where(mask, scores - top, -math.inf).exp()
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)


def rows_patched(scores, mask):  # masked_fill's backward pass overwrites the NaN
    return scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


def fenced(scores, mask, fence=-3e38):
    return scores.masked_fill(~mask, fence).softmax(-1) * mask


RIGHT[check_empty_rows] = [rows_by_where, rows_by_exp, rows_patched, fenced]


def additive(mask, value=-math.inf):
    return torch.zeros(mask.shape).masked_fill(~mask, value)


def write_into_scores(scores, mask):
    scores[~mask] = -math.inf
    return torch.nan_to_num(scores.softmax(-1))


def clamped_exp(scores, mask):
    powers = torch.exp(scores) * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-12)


def unguarded_exp(scores, mask):
    powers = scores.exp() * mask
    total = powers.sum(-1, keepdim=True)
    return powers / (total + (total == 0))


def from_top_allowed(scores, mask, empty):
    top = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    powers = (scores - torch.where(mask.any(-1, keepdim=True), top, empty)).exp() * mask
    return powers / (powers.sum(-1, keepdim=True) + ~mask.any(-1, keepdim=True))


HIDDEN_TOO_LATE = "You hide after the exponential. Where the allowed scores"
HIDDEN_TOO_LATE_AND_EMPTY = "You hide after the exponential. That gives NaN in an empty row"


def all_or_nothing(scores, mask):
    weights = (scores + additive(mask)).softmax(-1)
    return torch.zeros_like(weights) if weights.isnan().any() else weights


WRONG[check_empty_rows] = [
    (lambda scores, mask: (scores + additive(mask)).softmax(-1), "The empty row is NaN: all"),
    (
        lambda scores, mask: torch.where(mask, scores, torch.finfo().min).softmax(-1),
        "`* mask` is missing: `lambda scores, mask: torch.where(",
    ),
    (
        lambda scores, mask: torch.where(mask, scores.softmax(-1), 0.0),
        "here, at `softmax`, your values depart",
    ),
    (
        lambda scores, mask: F.normalize(scores.softmax(-1) * mask, p=1, dim=-1, eps=0),
        HIDDEN_TOO_LATE_AND_EMPTY,
    ),
    (
        lambda scores, mask: (
            (kept := scores.softmax(-1) * mask)
            / (kept.sum(-1, keepdim=True) + ~mask.any(-1, keepdim=True))
        ),
        HIDDEN_TOO_LATE,
    ),
    (lambda scores, mask: from_top_allowed(scores, mask, 0.0), HIDDEN_TOO_LATE),
    (lambda scores, mask: from_top_allowed(scores, mask, -math.inf), HIDDEN_TOO_LATE_AND_EMPTY),
    (lambda scores, mask: fenced(scores, mask, -1e4), "without `-1e4` it is right"),
    (
        lambda scores, mask: rows_by_where(torch.where(mask, scores, -1e4), mask | True),
        "`| True` is too much",
    ),
    (unguarded_exp, "`exp` of a large score is infinite: subtract"),
    (clamped_exp, "of one far below 0 it is too small for your sum"),
    (lambda scores, mask: torch.where(mask, scores, 0.0).softmax(-1), "Hidden scores are set to"),
    (
        lambda scores, mask: rows_by_where(scores, mask).masked_fill(
            (~mask).any(-1, keepdim=True), 0.0
        ),
        "`.masked_fill( (~mask).any(-1, keepdim=True), 0.0 )` is one step too m",
    ),
    (all_or_nothing, "here, at `softmax`, your values depart"),
    (
        lambda scores, mask: torch.nan_to_num((scores + additive(mask)).softmax(-1)),
        "but on scores that carry a gradient: the weights are right, but their gradient is NaN",
    ),
    (
        lambda scores, mask: rows_by_where(scores.detach(), mask),
        "but on scores that carry a gradient: no gradient flows from the weights back",
    ),
    (
        write_into_scores,
        "you write into the argument `scores` on line ",
    ),
]


# --- sliding window


def window_by_loop(tokens, window):
    mask = torch.zeros(tokens, tokens, dtype=torch.bool)
    for i in range(tokens):
        mask[i, max(0, i - window + 1) : i + 1] = True
    return mask


RIGHT[check_sliding_window] = [window_by_loop, sliding_window_mask]


def band(tokens, low, high):
    return torch.ones(tokens, tokens).tril(high).triu(low).bool()


WRONG[check_sliding_window] = [
    (lambda n, w: band(n, -w, 0), "it is one too small: `((-w) + 1)` in place of `-w`"),
    (lambda n, w: band(n, 2 - w, 0), "with `1` in place of `2`"),
    (lambda n, w: band(n, 1 - w, w - 1), "The window reaches into the"),
    (
        lambda n, w: band(n, 0, w - 1),
        "a transpose is missing: `(band(n, 0, w - 1)).mT` in place of `band(n, ",
    ),
    (
        lambda n, w: torch.block_diag(*[torch.ones(w, w)] * n)[:n, :n].tril().bool(),
        "These are fixed blocks: the",
    ),
    (
        lambda n, w: torch.block_diag(*[torch.ones(w, w)] * n)[:n, :n].bool(),
        "These are fixed blocks, and",
    ),
    (lambda n, w: band(n, -n, -w), "The past beyond the window"),
    (lambda n, w: band(n, -n, 0), "This is the causal mask:"),
    (
        lambda n, w: ~band(n, 1 - w, 0),
        "`~band(n, 1 - w, 0)` is inverted: `band(n, 1 - w, 0)` is right",
    ),
]


# --- what reaches where


def reach_by_powers(mask, source, layers):
    return torch.linalg.matrix_power(mask.double(), layers)[:, source] > 0


def reach_by_walking(mask, source, layers):
    held = {source}
    for _ in range(layers):
        held = {i for i in range(len(mask)) if any(mask[i, j] for j in held)}
    return torch.tensor([i in held for i in range(len(mask))])


RIGHT[check_reach] = [reach_by_powers, reach_by_walking]


WRONG[check_reach] = [
    (lambda mask, s, n: mask[:, s], "You follow one layer only,"),
    (lambda mask, s, n: reach_by_powers(mask, s, n + 1), "`+ 1` is too much"),
    (
        lambda mask, s, n: torch.linalg.matrix_power(mask.double(), n)[s] > 0,
        "with `[:, s]` in place of `[s]`",
    ),
]


# --- a test of causality


def tries_every_cut(f, x):
    before = f(x)
    for cut in range(1, len(x)):
        changed = torch.cat([x[:cut], torch.randn_like(x[cut:]).abs() * -x[cut:].sign()])
        if not torch.equal(f(changed)[:cut], before[:cut]):
            return False
    return True


def tries_every_word(f, x):
    for j in range(1, len(x)):
        changed = x.clone()
        changed[j] *= -3
        if (f(changed)[:j] != f(x)[:j]).any().item():
            return False
    return True


RIGHT[check_is_causal] = [tries_every_cut, tries_every_word]


def tries_noise(f, x):
    cuts = [torch.cat([x[:cut], torch.randn_like(x[cut:])]) for cut in range(1, len(x))]
    return all(torch.equal(f(y)[:cut], f(x)[:cut]) for cut, y in enumerate(cuts, start=1))


def after_other_draws(draws):
    """Noise, however it falls."""

    def answer(f, x):
        torch.randn(draws)
        return tries_noise(f, x)

    return answer


RIGHT[check_is_causal] += [after_other_draws(draws) for draws in range(8)]


def differs(f, x, futures, cut, same):
    changed = [torch.cat([x[:cut], future(x[cut:])]) for future in futures]
    return any(not same(f(y)[:cut], f(x)[:cut]) for y in changed)


def negative(future):
    return future.neg()


def with_cuts(cuts, *futures, same=torch.equal):
    """A test that tries some cuts only, or some changes only, or compares in its own way."""
    return lambda f, x: not any(differs(f, x, futures, cut, same) for cut in range(1, len(x))[cuts])


def nearly(a, b):
    return torch.allclose(a, b, atol=1e-4)


def by_gradient(f, x):
    for i in range(len(x) - 1):
        leaf = x.clone().requires_grad_()
        f(leaf)[i].sum().backward()
        if leaf.grad[i + 1 :].abs().sum() > 0:
            return False
    return True


EVERY, FIRST, LAST = slice(None), slice(1), slice(-1, None)
ALWAYS_FALSE = "Your test answers False every time"
LAST_ONLY = "You change only the last word, so a leak among the words before it goes unseen."
FIRST_ONLY = "You look only at the first output, so a leak to a later word goes unseen."
ROUNDING = (
    "You allow for rounding, and a faint leak slips through: nothing that a past output is made of "
    "has changed, so ask for bitwise equality."
)
NOISE_TOO = " And try random numbers too, not only the negative."
STEPS = "A leak in steps goes unseen."


WRONG[check_is_causal] = [
    (with_cuts(EVERY, lambda future: future * float("nan")), ALWAYS_FALSE),
    (with_cuts(EVERY, lambda future: future / 0), ALWAYS_FALSE),
    (lambda f, x: torch.equal(f(x)[:-1], f(x.clone())[:-1]), "Your test answers True every"),
    (with_cuts(LAST, negative, torch.randn_like), LAST_ONLY),
    (with_cuts(FIRST, negative, torch.randn_like), FIRST_ONLY),
    (with_cuts(EVERY, negative, torch.randn_like, same=nearly), ROUNDING),
    (with_cuts(LAST, negative), LAST_ONLY + NOISE_TOO),
    (with_cuts(FIRST, negative), FIRST_ONLY + NOISE_TOO),
    (with_cuts(EVERY, negative, same=nearly), ROUNDING + NOISE_TOO),
    (with_cuts(EVERY, negative), "You change the future only to"),
    (by_gradient, STEPS),
    (with_cuts(EVERY, lambda future: 2 * future), "You only make the future longer or shorter"),
    (with_cuts(EVERY, lambda future: 0.3 * future), "You only make the future longer or shorter"),
    (with_cuts(EVERY, lambda future: future.add(1)), "You add a number to the future"),
    (with_cuts(EVERY, lambda future: -2 * future), "You multiply the future by a number and"),
    (with_cuts(EVERY, lambda future: future[:0]), "You cut the text off and change no"),
    (with_cuts(EVERY, lambda future: future * -7.0), "You multiply the future by a number and"),
    (
        lambda f, x: torch.tensor([True, False]),
        "On causal attention: your result is a tensor of shape (2,); a bool is expected.",
    ),
]


def writes_into_x(f, x):
    before = f(x)
    right = tries_every_cut(f, x)
    x[-1] = -before[-1]
    return right


def all_but_the_last(f, x):
    for start in range(1, len(x) - 1):
        if differs(f, x, [negative, torch.randn_like], start, torch.equal):
            return False
    return True


WRONG[check_is_causal] += [
    (writes_into_x, "you write into the argument `x`"),
    (all_but_the_last, "`- 1` is too much"),
]


def test_who_leaves_out_the_last_start_is_not_told_of_the_first_output():
    assert FIRST_ONLY not in check_is_causal(all_but_the_last).diagnosis


# --- which mask lets the future through

RIGHT[check_which_leaks] = [{"a", "c"}, "a, c", ["C", "A"]]
WRONG[check_which_leaks] = [
    ("a", "c is missing: *to* looks at"),
    ("c", "a is missing: *gave* looks at"),
    ("abc", "b does not belong: *to* learns of *susan*, but"),
    ("acd", "d does not belong: *to* learns of *susan* in the first"),
    (["a", "c", "e"], "e does not belong: This window"),
    ("f", "'f' is not among the choices"),
]


# --- attention over padded sentences


def padded_by_loop(q, k, v, real):
    rows = []
    for one_q, one_k, one_v, is_real in zip(q, k, v, real, strict=True):
        scores = one_q @ one_k[is_real].T / math.sqrt(k.shape[-1])
        rows.append(scores.softmax(-1) @ one_v[is_real])
    return torch.stack(rows)


def padded_by_sdpa(q, k, v, real):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None])


RIGHT[check_padded_attention] = [
    padded_by_loop,
    padded_by_sdpa,
    lambda q, k, v, real: padded_by(q, k, v, additive(real)[:, None]),
]


def padded_by(q, k, v, added, keep=1.0, again=False):
    weights = (torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1]) + added).softmax(-1)
    weights = weights * keep
    return (weights / weights.sum(-1, keepdim=True) if again else weights) @ v


WRONG[check_padded_attention] = [
    (
        lambda q, k, v, real: padded_by(q, k, v, 0.0, keep=real[:, :, None]),
        "This still does what the broken function does. Give one sentence its filler, then change",
    ),
    (
        lambda q, k, v, real: padded_by(q, k, v, additive(real)[..., None]).nan_to_num(),
        "its own rows stay zero, and the rows of the real words change",
    ),
    (
        lambda q, k, v, real: padded_by(q, k, v, 0.0, keep=real[:, None]),
        "here, at `softmax`, your values depart",
    ),
    (
        lambda q, k, v, real: padded_by(q, k, v, additive(real)[..., None]),
        "a transpose is missing: `(additive(real)[..., None]).mT` in place of `",
    ),
    (
        lambda q, k, v, real: torch.where(
            real[..., None], padded_by(q, k, v, 0.0), v.mean(1, keepdim=True)
        ),
        "here, at `softmax`, your values depart",
    ),
    (
        lambda q, k, v, real: padded_by(q, k, v, 0.0, keep=real[:, None], again=True),
        "The axis is right, and rows sum to 1 again.",
    ),
    (
        lambda q, k, v, real: ((q @ k.mT / k.shape[-1] ** 0.5) * real[:, None]).softmax(-1) @ v,
        "Hidden scores are 0, and",
    ),
    (
        lambda q, k, v, real: padded_by(q, k, v, additive(~real)[:, None]),
        "`~real` is inverted: `real` is right",
    ),
    (
        lambda q, k, v, real: padded_by(q, k, v, additive(real[:, None] & real[..., None])),
        "`& real[..., None]` is too much",
    ),
    (
        lambda q, k, v, real: torch.where(
            real[..., None], padded_by_sdpa(q, k, v, real), v.mean(1, keepdim=True)
        ),
        "You hide the filler as a key, as you should, and as a query too, with a large",
    ),
    *(
        (
            answer,
            "On 2 sentences, one of them shorter: the rows of filler are zero: you blank them.",
        )
        for answer in (
            lambda q, k, v, real: padded_by_sdpa(q, k, v, real) * real[..., None],
            lambda q, k, v, real: padded_by_sdpa(q, k, v, real).masked_fill(~real[..., None], 0),
            lambda q, k, v, real: padded_by(
                q, k, v, additive(real[:, None] & real[..., None])
            ).nan_to_num(),
            lambda q, k, v, real: padded_by(q, k, v, 0.0, real[:, None] & real[..., None]),
        )
    ),
]


@pytest.mark.parametrize("exercise", exercises(masking))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
