"""Checks for chapter 02, queries, keys and values."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import plain
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn
from transformer_lib.exercises.self_attention import in_float32

# --- the soft dictionary --------------------------------------------------------------------------


def _soft_lookup(q: Tensor, keys: Tensor, values: Tensor, temperature: float) -> Tensor:
    return torch.softmax(keys @ q / temperature, dim=0) @ values


check_soft_lookup = Exercise(
    asks="""`answer(q, keys, values, temperature)`: the answer of a soft dictionary.

    q [d_k], keys [n, d_k], values [n, d_v] and a positive temperature give [d_v].
    """,
    right=_soft_lookup,
    wrong={
        "This is the value of the best key alone, a hard dictionary; in a soft one, every "
        "value takes part.": (lambda q, keys, values, temperature: values[(keys @ q).argmax()]),
        "The temperature is not used.": lambda q, keys, values, temperature: (
            torch.softmax(keys @ q, dim=0) @ values
        ),
        "The temperature divides the weights, after the softmax; it belongs to the scores.": (
            lambda q, keys, values, temperature: (
                torch.softmax(keys @ q, dim=0) / temperature @ values
            )
        ),
        "These are the weights; the average of the values is still missing.": (
            lambda q, keys, values, temperature: torch.softmax(keys @ q / temperature, dim=0)
        ),
        "The values are summed, not averaged: the weights do not reach them.": (
            lambda q, keys, values, temperature: values.sum(0)
        ),
    },
    cases=[
        Case(
            "5 keys at temperature 2",
            randn(3, seed=1),
            randn(5, 3, seed=2),
            randn(5, 3, seed=3),
            2.0,
        ),
        Case(
            "7 keys at temperature 0.5",
            randn(2, seed=4),
            randn(7, 2, seed=5),
            randn(7, 11, seed=6),
            0.5,
        ),
        Case(
            "5 keys at temperature 0.01",  # the exponential of a score is too large for float32
            torch.ones(2),
            0.5 + 0.005 * randn(5, 2, seed=7),
            randn(5, 3, seed=8),
            0.01,
        ),
    ],
    axes="d_v",
    praise="Right: compared by the keys, answered by the values, and harder as it gets colder.",
)


# --- different numbers, different sizes -----------------------------------------------------------


def _cross_attention(x: Tensor, memory: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    return torch.softmax((x @ W_Q) @ (memory @ W_K).T, dim=-1) @ (memory @ W_V)


def _transposed_weights(x, memory, W_Q, W_K, W_V):
    return _cross_attention(x, memory, W_Q.T, W_K.T, W_V.T)


check_cross_attention = Exercise(
    asks="""`answer(x, memory, W_Q, W_K, W_V)`: queries from x, keys and values from memory.

    x [s_q, d], memory [s_k, d], W_Q and W_K [d, d_k], W_V [d, d_v] give [s_q, d_v]; the scores are
    not scaled.
    """,
    right=_cross_attention,
    wrong={
        "The weight matrices are transposed: with words as rows it is x @ W, not x @ W.T.": (
            _transposed_weights
        ),
        "The values are not projected: W_V is missing.": lambda x, memory, W_Q, W_K, W_V: (
            torch.softmax((x @ W_Q) @ (memory @ W_K).T, dim=-1) @ memory
        ),
    },
    cases=[
        Case(
            "squares only (5 queries, 5 keys, all widths 5)",
            *(0.6 * randn(5, 5, seed=seed) for seed in range(10, 15)),
        ),
        Case(
            "3 queries, 7 keys, d 11, d_k 2, d_v 13",
            0.4 * randn(3, 11, seed=20),
            0.4 * randn(7, 11, seed=21),
            0.6 * randn(11, 2, seed=22),
            0.6 * randn(11, 2, seed=23),
            0.6 * randn(11, 13, seed=24),
        ),
    ],
    axes="queries d_v",
    praise="Right: one row for each query, as wide as a value.",
)


# --- a directed relation --------------------------------------------------------------------------

_KINDS = ["adjective", "noun", "verb"]
_ASKS_FOR = {0: 1, 1: 2}  # the adjective asks for the noun, the noun for the verb


def _scores(matrices: tuple[Tensor, Tensor]) -> Tensor:
    """A = W_Q W_Kᵀ: row a, column b is how hard kind a looks for kind b."""
    W_Q, W_K = (matrix.detach().double() for matrix in matrices)
    return W_Q @ W_K.T


def _tie(A: Tensor) -> float:
    return 1e-6 * float(A.abs().max())


def _lead(row: Tensor, wanted: int) -> tuple[int, float]:
    """Who comes next to the one that is wanted, or before it, and by how much."""
    rest = row.clone()
    rest[wanted] = -torch.inf
    return int(rest.argmax()), float(row[wanted] - rest.max())


def _finds(A: Tensor, asking: int, wanted: int, tie: float) -> bool:
    ahead = _lead(A[asking], wanted)[1] > tie
    return ahead and bool(A[wanted, asking] < A[asking, wanted] - tie)


def _equal(matrices: tuple[Tensor, Tensor]) -> bool:
    return torch.allclose(*(matrix.detach().double() for matrix in matrices))


def _symmetric(matrices: tuple[Tensor, Tensor]) -> bool:
    A = _scores(matrices)
    return torch.allclose(A, A.T, atol=1e-9)


def _reversed(matrices: tuple[Tensor, Tensor]) -> bool:
    A = _scores(matrices)
    return all(_finds(A.T, asking, wanted, _tie(A)) for asking, wanted in _ASKS_FOR.items())


def _first(applies: Callable) -> Callable:
    """Asks `applies(A, asking, wanted, tie)` of the adjective, then of the noun."""

    def predicate(matrices: tuple[Tensor, Tensor]) -> tuple | None:
        A = _scores(matrices)
        found = (applies(A, asking, wanted, _tie(A)) for asking, wanted in _ASKS_FOR.items())
        return next((blanks for blanks in found if blanks), None)

    return predicate


def _looks_for_nothing(A: Tensor, asking: int, wanted: int, tie: float) -> tuple | None:
    return (_KINDS[asking],) if A[asking].max() - A[asking].min() <= tie else None


def _rival(A: Tensor, asking: int, wanted: int) -> tuple[str, float]:
    rival, lead = _lead(A[asking], wanted)
    return ("itself" if rival == asking else f"the {_KINDS[rival]}"), lead


def _as_high(A: Tensor, asking: int, wanted: int, tie: float) -> tuple | None:
    rival, lead = _rival(A, asking, wanted)
    return (_KINDS[asking], rival, _KINDS[wanted]) if abs(lead) <= tie else None


def _looks_elsewhere(A: Tensor, asking: int, wanted: int, tie: float) -> tuple | None:
    rival, lead = _rival(A, asking, wanted)
    return (_KINDS[asking], rival, _KINDS[wanted]) if lead < -tie else None


def _looks_back(A: Tensor, asking: int, wanted: int, tie: float) -> tuple | None:
    back = A[wanted, asking] >= A[asking, wanted] - tie
    return (_KINDS[wanted], _KINDS[asking]) if back else None


def _two_matrices(answer: Any) -> Any:
    answer = plain(answer() if callable(answer) else answer)
    stacked = isinstance(answer, Tensor) and answer.shape == (2, 3, 2)
    if stacked or isinstance(answer, list | tuple):
        return tuple(map(in_float32, answer))
    return answer


check_directed_relation = Exercise(
    design=True,
    asks="""A pair (W_Q, W_K), each [3, 2], for words that are an adjective, a noun or a verb.

    The adjective's largest score is with the noun, the noun's with the verb, and neither is looked
    for as hard by what it has found. Lists of rows will do.
    """,
    right=lambda: (
        torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]]),
        torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]),
    ),
    cases=[Case("your matrices")],
    call=_two_matrices,
    unique=False,
    also={
        "W_Q and W_K are equal, so the scores are symmetric: nothing is directed.": _equal,
        "W_Q W_Kᵀ is symmetric: whoever is looked for looks back just as hard.": _symmetric,
        "The direction is reversed, A is transposed: rows ask and columns answer.": _reversed,
        "The {} has the same score with everything: it looks for nothing.": _first(
            _looks_for_nothing
        ),
        "The {} scores {} as high as the {}, which must be ahead.": _first(_as_high),
        "The {} looks for {}, not for the {}.": _first(_looks_elsewhere),
        "The {} looks back at the {} at least as hard as it is looked for.": _first(_looks_back),
    },
    axes=("features d_k", "features d_k"),
    praise="Right: the question and the answer are two different features now.",
)


# --- the rank of the scores -----------------------------------------------------------------------

check_score_rank = Exercise(
    asks="`answer(s, d, d_k)`: the rank of (X W_Q)(X W_K)ᵀ of random X [s, d], W [d, d_k]: an int.",
    right=lambda s, d, d_k: min(s, d, d_k),
    wrong={
        "This is d, the width of the words; the projections may be narrower.": lambda s, d, d_k: d,
        "This is s: full rank is typical of the weights after the softmax, not of the scores.": (
            lambda s, d, d_k: s
        ),
        "This is d_k alone; a matrix of s rows has at most rank s, and X at most rank d.": (
            lambda s, d, d_k: d_k
        ),
        "You forget X: W_Q can make many columns, but their rank is at most d.": (
            lambda s, d, d_k: min(s, d_k)
        ),
        "You forget the number of words: a matrix of s rows has at most rank s.": (
            lambda s, d, d_k: min(d, d_k)
        ),
        "You forget the narrow projections: they have only d_k columns.": (
            lambda s, d, d_k: min(s, d)
        ),
    },
    cases=[
        Case("20 words, d 11, d_k 3", 20, 11, 3),
        Case("5 words, d 11, d_k 7", 5, 11, 7),
        Case("17 words, d 2, d_k 13", 17, 2, 13),
        Case("5 words, d 11, d_k 2", 5, 11, 2),
        Case("5 words, d 2, d_k 7", 5, 2, 7),
    ],
    praise="Right: a product has at most the rank of its thinnest factor.",
)


# --- repair a softmax -----------------------------------------------------------------------------


def _with_powers(shift: Callable, total: Callable) -> Callable:
    """A softmax from what is taken off the scores and what the powers are divided by."""

    def softmax(scores: Tensor) -> Tensor:
        powers = torch.exp(shift(scores))
        return powers / total(powers)

    return softmax


def _rows(powers: Tensor) -> Tensor:
    return powers.sum(-1, keepdim=True)


def _broken_softmax(scores: Tensor) -> Tensor:
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1)


_ROWS_APART = torch.tensor([[1.0], [-1.0], [0.0]]) * 1000.0
_TIES = torch.tensor([[0.0, 0.0, 1000.0, 2.0, 0.0, 1.0, 0.0]])

check_stable_softmax = Repair(
    without=("softmax",),
    asks="""`answer(scores)`: the softmax of each row, mended. scores [queries, keys].

    It must also serve for large scores, and for rows that are far apart.
    """,
    broken=_broken_softmax,
    unchanged="Print the sums of the rows, for scores of shape (5, 5) and of shape (3, 7).",
    right=lambda scores: torch.softmax(scores, dim=-1),
    wrong={
        "The rows are right now, but for scores around 1,000 the powers are infinite: take "
        "something off each row first.": _with_powers(lambda s: s, _rows),
        "You take the largest score of the whole matrix off; in a row far below it, all powers "
        "become 0. Each row has a maximum of its own.": _with_powers(lambda s: s - s.max(), _rows),
        "You take the maximum of each column off, and so a different number off each score of a "
        "row. That changes the weights.": _with_powers(
            lambda s: s - s.amax(0, keepdim=True), _rows
        ),
        "You take the mean of each row off; a score far above the mean is still too large for "
        "exp.": _with_powers(lambda s: s - s.mean(-1, keepdim=True), _rows),
        "You cut large scores off. Two scores above the limit get equal weights, however far "
        "apart they are.": _with_powers(lambda s: s.clamp(max=80.0), _rows),
        "Where it was nan, it is 0 now, and those rows have no weights at all. The cause is still "
        "there.": lambda scores: _with_powers(lambda s: s, _rows)(scores).nan_to_num(),
    },
    cases=[
        Case("one row of small scores", randn(1, 5, seed=30)),
        Case("5 queries and 5 keys, small scores", randn(5, 5, seed=31)),
        Case("3 queries and 7 keys, small scores", randn(3, 7, seed=32)),
        Case("scores around 1,000", 1000 + randn(2, 11, seed=33)),
        Case("one score far above the others of its row", _TIES),
        Case("rows that are a thousand apart", _ROWS_APART + randn(3, 7, seed=34)),
    ],
    axes="queries keys",
    praise="Right: each row gives up its own maximum, and is divided by its own total.",
)


# --- one matrix in two roles ----------------------------------------------------------------------

check_shared_matrix = Choice(
    asks="Which of four layers can use one matrix for queries and keys? A letter.",
    right="c",
    wrong={
        "a": "Word 1 scores word 2 with 1, and word 2 scores word 1 with −1. With one matrix, both "
        "are the same dot product.",
        "b": "Symmetric, and nothing negative on the diagonal: both are needed, but not enough. "
        "Words 1 and 2 score 1 with themselves, so their keys have length 1. The dot product of "
        "two such vectors cannot be 3.",
        "d": "It is symmetric, which is needed but not enough. Word 2 scores itself with −1, and a "
        "vector's dot product with itself is a sum of squares.",
    },
    praise="Right: symmetric, nothing negative on the diagonal, and no score larger than the "
    "lengths allow.",
)
