"""Checks for chapter 04, masks. Masks are boolean, rows are queries, True = may attend."""

from collections.abc import Callable

import torch
from torch import Tensor

from .masking_flow import INVERTED, IS_CAUSAL, REACH, SLIDING_WINDOW
from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = [
    "check_causal_mask",
    "check_combined_mask",
    "check_empty_rows",
    "check_is_causal",
    "check_reach",
    "check_sliding_window",
]


def check_causal_mask(answer: Callable) -> Verdict:
    """`answer(queries, keys)`: a boolean mask [queries <= keys, keys]; the last sees all."""
    return CAUSAL_MASK.check(answer)


def check_combined_mask(answer: Callable) -> Verdict:
    """`answer(causal, padding)`: causal [tokens, tokens], padding [batch, tokens], both boolean.

    True = may attend, and True = a real word. The result is boolean, [batch, tokens, tokens].
    """
    return COMBINED_MASK.check(answer)


def check_empty_rows(answer: Callable) -> Verdict:
    """`answer(scores, mask)`, both [..., queries, keys]: weights; empty rows are zero, no NaN."""
    return EMPTY_ROWS.check(answer)


def check_sliding_window(answer: Callable) -> Verdict:
    """`answer(tokens, window)`: a boolean mask [tokens, tokens]; each query sees `window` keys."""
    return SLIDING_WINDOW.check(answer)


def check_reach(answer: Callable) -> Verdict:
    """`answer(mask, source, layers)`: boolean [tokens], what holds something of the source then."""
    return REACH.check(answer)


def check_is_causal(answer: Callable) -> Verdict:
    """`answer(f, x)`: is no output of f, [tokens, dim] to [tokens, dim], changed by its future?"""
    return IS_CAUSAL.check(answer)


# --- causal ---------------------------------------------------------------------------------------


def _lower(queries: int, keys: int, diagonal: int) -> Tensor:
    return torch.ones(queries, keys, dtype=torch.bool).tril(diagonal)


def _causal(queries: int, keys: int) -> Tensor:
    return _lower(queries, keys, keys - queries)


def _additive(queries: int, keys: int) -> Tensor:
    return torch.zeros(queries, keys).masked_fill(~_causal(queries, keys), -torch.inf)


CAUSAL_MASK = Exercise(
    right=_causal,
    wrong={
        INVERTED: lambda q, k: ~_causal(q, k),
        "The diagonal is hidden: a query may see its own position, so compare with `<=`.": (
            lambda q, k: _lower(q, k, k - q - 1)
        ),
        "Each query sees one key too far: the next one, which it is to predict.": lambda q, k: (
            _lower(q, k, k - q + 1)
        ),
        "This is the upper triangle: each query sees the future, and the past is hidden.": (
            lambda q, k: ~_lower(q, k, k - q - 1)
        ),
        "Rows and columns are exchanged: rows are the queries, columns are the keys.": (
            lambda q, k: _causal(q, k).T
        ),
        "The mask is aligned to the top left, so that the last query misses the newest keys: "
        "shift the diagonal by `keys - queries`.": lambda q, k: _lower(q, k, 0),
        "This mask is to be added to the scores (0 and -inf); a boolean one is asked for.": (
            _additive
        ),
    },
    cases=[
        Case("5 queries and 5 keys", 5, 5),
        Case("3 new queries and 7 keys", 3, 7),
        Case("1 new query and 5 keys", 1, 5),
    ],
    axes="queries keys",
    praise="Right: each query sees the past and itself, wherever the first query stands.",
)

# --- causal and padding ---------------------------------------------------------------------------


def _combined(causal: Tensor, padding: Tensor) -> Tensor:
    return causal & padding.unsqueeze(1)


def _padding(*lengths: int, tokens: int) -> Tensor:
    return torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1)


COMBINED_MASK = Exercise(
    right=_combined,
    wrong={
        "A key must be in the past *and* no padding; you allow what is either of the two.": (
            lambda causal, padding: causal | padding.unsqueeze(1)
        ),
        "The axis for the queries is missing: `causal & padding` fits only where there are as many "
        "sentences as words, and then gives word i the padding of sentence i.": (
            lambda causal, padding: causal & padding
        ),
        "You hide the padding as a query, so that real words still look at it: hide it as a key, "
        "with an axis of size 1 for the queries.": lambda causal, padding: (
            causal & padding.unsqueeze(2)
        ),
        "You hide the padding as a query, too: hide it as a key only.": (
            lambda causal, padding: causal & padding.unsqueeze(1) & padding.unsqueeze(2)
        ),
        "You hide the real words and show the padding: `padding` is True for real words.": (
            lambda causal, padding: causal & ~padding.unsqueeze(1)
        ),
        INVERTED: lambda causal, padding: ~_combined(causal, padding),
        "The padding is hidden, but the future is not.": lambda causal, padding: padding.unsqueeze(
            1
        ).expand(-1, padding.shape[1], -1),
        "The future is hidden, but the padding is not.": lambda causal, padding: causal.expand(
            len(padding), -1, -1
        ),
    },
    cases=[
        Case("3 sentences of 5 words", _causal(5, 5), _padding(5, 2, 3, tokens=5)),
        Case("5 sentences of 5 words", _causal(5, 5), _padding(1, 5, 3, 4, 2, tokens=5)),
        Case("7 words padded on the left", _causal(7, 7), _padding(4, tokens=7).flip(1)),
    ],
    axes="batch queries keys",
    praise="Right: both masks must agree, and the padding is hidden as a key for every query.",
)

# --- rows with nothing to attend to ---------------------------------------------------------------


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    empty = ~mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)
    return filled.softmax(dim=-1).masked_fill(empty, 0.0)


def _exponentials(scores: Tensor, mask: Tensor) -> Tensor:
    powers = scores.exp() * mask
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1.0)


def _renormalized(scores: Tensor, mask: Tensor, guarded: bool) -> Tensor:
    kept = scores.softmax(dim=-1) * mask
    total = kept.sum(dim=-1, keepdim=True)
    return kept / (torch.where(mask.any(dim=-1, keepdim=True), total, 1.0) if guarded else total)


def _filled(scores: Tensor, mask: Tensor, value: float) -> Tensor:
    return scores.masked_fill(~mask, value).softmax(dim=-1)


def _gradient(weights: Tensor, scores: Tensor, mask: Tensor) -> str | None:
    if not scores.requires_grad:
        return None
    if not weights.requires_grad:
        return "No gradient flows from the weights back to the scores: is there a `detach`?"
    goal = (weights * torch.arange(weights.shape[-1])).sum()
    if torch.autograd.grad(goal, scores)[0].isfinite().all():
        return None
    return (
        "The weights are right, but their gradient is NaN: a NaN or a division by zero that you "
        "replace afterward still stands in the backward pass, so mend the row before it."
    )


def _fence(weights: Tensor, scores: Tensor, mask: Tensor) -> str | None:
    if scores[mask].max() > -10_000:
        return None
    kept = (weights * mask).sum(dim=-1)[mask.any(dim=-1)]
    if kept.min() > 0.5:
        return None
    return (
        "A large negative number is a fence that can be climbed: these allowed scores lie below "
        "it, and the hidden keys take the row. Use -inf."
    )


_MASK = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(3), device="cpu") > 0.5
_MASK[:, :, 1], _MASK[0, 0] = True, True
_MASK[1, 2] = False
# e^-120 is 0 in float32, but e^-80 is not; e^150 is infinite.
_FAR_BELOW, _FAR_ABOVE = torch.where(_MASK, -80.0, 40.0), torch.where(_MASK, 150.0, 0.0)
_BELOW_A_FENCE = torch.where(_MASK, -15_000.0 - 5_000 * (torch.arange(7, device="cpu") % 2), 3.0)

EMPTY_ROWS = Exercise(
    right=_masked_softmax,
    wrong={
        "The empty row is NaN: all of its scores are -inf, and the softmax divides 0 by 0.": (
            lambda scores, mask: _filled(scores, mask, -torch.inf)
        ),
        "The empty row is uniform: the same large negative number everywhere is no mask at all.": (
            lambda scores, mask: _filled(scores, mask, -1e9)
        ),
        "The empty row is uniform, and where allowed scores lie below your large negative number, "
        "the hidden keys win: use -inf.": (lambda scores, mask: _filled(scores, mask, -1e4)),
        "The weights are set to zero after the softmax, so that rows no longer sum to 1.": (
            lambda scores, mask: scores.softmax(dim=-1) * mask
        ),
        "You hide after the exponential: NaN in an empty row, and also where the allowed scores "
        "lie far below the hidden ones: theirs underflow to 0, or the hidden ones overflow.": (
            lambda scores, mask: _renormalized(scores, mask, guarded=False)
        ),
        "You hide after the exponential: where the allowed scores lie far below the hidden ones, "
        "theirs underflow to 0, or the hidden ones overflow, and NaN comes of it. Hide before.": (
            lambda scores, mask: _renormalized(scores, mask, guarded=True)
        ),
        "`exp` of a large score is infinite: subtract the row's maximum first, as `softmax`.": (
            _exponentials
        ),
        "Hidden scores are set to 0, but e^0 = 1 is a weight like any other: use -inf.": (
            lambda scores, mask: (scores * mask).softmax(dim=-1)
        ),
        "You zero every row in which anything is hidden; only rows without any allowed key are "
        "empty.": lambda scores, mask: (
            _masked_softmax(scores, mask) * mask.all(dim=-1, keepdim=True)
        ),
        "One empty row, and you zero all rows of all sentences: decide row by row.": (
            lambda scores, mask: _masked_softmax(scores, mask) * mask.any(dim=-1).all()
        ),
    },
    cases=[
        Case("3 sentences, one with an empty row", randn(3, 5, 7, seed=7), _MASK),
        Case("allowed scores far below hidden ones", _FAR_BELOW, _MASK),
        Case("allowed scores of -15,000 and -20,000", _BELOW_A_FENCE, _MASK),
        Case("allowed scores of 150", _FAR_ABOVE, _MASK),
        Case("scores that carry a gradient", randn(3, 5, 7, seed=8).requires_grad_(), _MASK),
    ],
    axes="batch queries keys",
    also=[_gradient, _fence],
    praise="Right: empty rows are zero, forward and backward, and all others sum to 1.",
)
