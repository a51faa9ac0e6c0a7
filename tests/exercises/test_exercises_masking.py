"""Chapter 04's checks: right answers pass, each typical mistake gets its own sentence."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises import masking as checks
from transformer_lib.exercises.masking_flow import INVERTED
from transformer_lib.masks import causal_mask, combine_masks


def stub(*arguments):
    """Nothing yet."""
    ...


@pytest.mark.parametrize("name", checks.__all__)
def test_a_stub_is_not_attempted_yet(name):
    verdict = getattr(checks, name)(stub)
    assert (verdict.passed, verdict.diagnosis) == (None, "not attempted yet")


# --- causal


def causal_by_loop(queries, keys):
    rows = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
    return torch.tensor(rows)


def causal_by_pieces(queries, keys):  # the past in one piece: for at least as many keys
    now = torch.ones(queries, queries).tril()
    return torch.cat([torch.ones(queries, keys - queries), now], dim=1).bool()


@pytest.mark.parametrize("answer", [causal_by_loop, causal_by_pieces, causal_mask])
def test_causal_accepts(answer):
    assert checks.check_causal_mask(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda q, k: torch.ones(q, k).triu(k - q + 1).bool(), INVERTED),
        (
            lambda q, k: torch.arange(k) < torch.arange(k - q, k)[:, None],
            "The diagonal is hidden: a query may see its own position, so compare with `<=`.",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(k - q + 1).bool(),
            "Each query sees one key too far: the next one, which it is to predict.",
        ),
        (
            lambda q, k: torch.arange(k) >= torch.arange(k - q, k)[:, None],
            "This is the upper triangle: each query sees the future, and the past is hidden.",
        ),
        (
            lambda q, k: torch.arange(k)[:, None] <= torch.arange(k - q, k),
            "Rows and columns are exchanged: rows are the queries, columns are the keys.",
        ),
        (
            lambda q, k: torch.arange(k) <= torch.arange(q)[:, None],
            "The mask is aligned to the top left, so that the last query misses the newest keys: "
            "shift the diagonal by `keys - queries`.",
        ),
        (
            lambda q, k: torch.full((q, k), -math.inf).triu(k - q + 1),
            "This mask is to be added to the scores (0 and -inf); a boolean one is asked for.",
        ),
        (
            lambda q, k: torch.ones(q, k).tril(k - q),
            "On 5 queries and 5 keys: your result is `torch.float32`, not `torch.bool`: a "
            "comparison such as `<=` gives booleans.",
        ),
    ],
)
def test_causal_diagnoses(answer, diagnosis):
    verdict = checks.check_causal_mask(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- causal and padding


def combined_by_loop(causal, padding):
    return torch.stack([causal & real for real in padding])


@pytest.mark.parametrize(
    "answer",
    [combined_by_loop, lambda causal, padding: combine_masks(causal, padding[:, None])],
)
def test_combined_accepts(answer):
    assert checks.check_combined_mask(answer).passed is True


def write_into_causal(causal, padding):
    rows = []
    for real in padding:
        causal[:, ~real] = False
        rows.append(causal.clone())
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda causal, padding: (causal + padding[:, None]).bool(),
            "A key must be in the past *and* no padding; you allow what is either of the two.",
        ),
        (
            lambda causal, padding: causal * padding,
            "The axis for the queries is missing: `causal & padding` fits only where there are as "
            "many sentences as words, and then gives word i the padding of sentence i.",
        ),
        (
            lambda causal, padding: torch.stack([causal & real[:, None] for real in padding]),
            "You hide the padding as a query, so that real words still look at it: hide it as a "
            "key, with an axis of size 1 for the queries.",
        ),
        (
            lambda causal, padding: causal & (padding[:, :, None] & padding[:, None]),
            "You hide the padding as a query, too: hide it as a key only.",
        ),
        (
            lambda causal, padding: torch.stack([causal & ~real for real in padding]),
            "You hide the real words and show the padding: `padding` is True for real words.",
        ),
        (lambda causal, padding: ~causal | ~padding[:, None], INVERTED),
        (
            lambda causal, padding: padding[:, None].repeat(1, padding.shape[1], 1),
            "The padding is hidden, but the future is not.",
        ),
        (
            lambda causal, padding: torch.stack([causal] * len(padding)),
            "The future is hidden, but the padding is not.",
        ),
        (
            write_into_causal,
            "On 3 sentences of 5 words: you write into the argument `causal`, which is the "
            "caller's: make a new one.",
        ),
    ],
)
def test_combined_diagnoses(answer, diagnosis):
    verdict = checks.check_combined_mask(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


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


@pytest.mark.parametrize("answer", [rows_by_where, rows_by_exp, rows_patched, fenced])
def test_empty_rows_accepts(answer):
    assert checks.check_empty_rows(answer).passed is True


def additive(mask, value=-math.inf):
    return torch.zeros(mask.shape).masked_fill(~mask, value)


def write_into_scores(scores, mask):
    scores[~mask] = -math.inf
    return torch.nan_to_num(scores.softmax(-1))


def unguarded_exp(scores, mask):
    powers = scores.exp() * mask
    total = powers.sum(-1, keepdim=True)
    return powers / (total + (total == 0))


def from_top_allowed(scores, mask, empty):
    top = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    powers = (scores - torch.where(mask.any(-1, keepdim=True), top, empty)).exp() * mask
    return powers / (powers.sum(-1, keepdim=True) + ~mask.any(-1, keepdim=True))


FENCE = (
    "Right on allowed scores far below hidden ones, but on allowed scores of -15,000 and -20,000: "
    "a large negative number is a fence that can be climbed: these allowed scores lie below it, "
    "and the hidden keys take the row. Use -inf."
)
HIDDEN_TOO_LATE = (
    "You hide after the exponential: where the allowed scores lie far below the hidden ones, "
    "theirs underflow to 0, or the hidden ones overflow, and NaN comes of it. Hide before."
)
HIDDEN_TOO_LATE_AND_EMPTY = (
    "You hide after the exponential: NaN in an empty row, and also where the allowed scores lie "
    "far below the hidden ones: theirs underflow to 0, or the hidden ones overflow."
)


def all_or_nothing(scores, mask):
    weights = (scores + additive(mask)).softmax(-1)
    return torch.zeros_like(weights) if weights.isnan().any() else weights


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda scores, mask: (scores + additive(mask)).softmax(-1),
            "The empty row is NaN: all of its scores are -inf, and the softmax divides 0 by 0.",
        ),
        (
            lambda scores, mask: torch.where(mask, scores, torch.finfo().min).softmax(-1),
            "The empty row is uniform: the same large negative number everywhere is no mask at "
            "all.",
        ),
        (
            lambda scores, mask: torch.where(mask, scores.softmax(-1), 0.0),
            "The weights are set to zero after the softmax, so that rows no longer sum to 1.",
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
        (lambda scores, mask: fenced(scores, mask, -1e4), FENCE),
        (lambda scores, mask: fenced(scores, mask, -300.0), FENCE),
        (
            lambda scores, mask: rows_by_where(torch.where(mask, scores, -1e4), mask | True),
            "The empty row is uniform, and where allowed scores lie below your large negative "
            "number, the hidden keys win: use -inf.",
        ),
        (
            unguarded_exp,
            "`exp` of a large score is infinite: subtract the row's maximum first, as `softmax`.",
        ),
        (
            lambda scores, mask: torch.where(mask, scores, 0.0).softmax(-1),
            "Hidden scores are set to 0, but e^0 = 1 is a weight like any other: use -inf.",
        ),
        (
            lambda scores, mask: rows_by_where(scores, mask).masked_fill(
                (~mask).any(-1, keepdim=True), 0.0
            ),
            "You zero every row in which anything is hidden; only rows without any allowed key are "
            "empty.",
        ),
        (
            all_or_nothing,
            "One empty row, and you zero all rows of all sentences: decide row by row.",
        ),
        (
            lambda scores, mask: torch.nan_to_num((scores + additive(mask)).softmax(-1)),
            "Right on allowed scores of 150, but on scores that carry a gradient: the weights "
            "are right, but their gradient is NaN: a NaN or a division by zero that you replace "
            "afterward still stands in the backward pass, so mend the row before it.",
        ),
        (
            lambda scores, mask: rows_by_where(scores.detach(), mask),
            "Right on allowed scores of 150, but on scores that carry a gradient: no gradient "
            "flows from the weights back to the scores: is there a `detach`?",
        ),
        (
            write_into_scores,
            "On 3 sentences, one with an empty row: you write into the argument `scores`, which is "
            "the caller's: make a new one.",
        ),
    ],
)
def test_empty_rows_diagnoses(answer, diagnosis):
    verdict = checks.check_empty_rows(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)
