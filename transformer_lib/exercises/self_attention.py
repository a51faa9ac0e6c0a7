"""Checks for chapter 01, self-attention without parameters."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import plain
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

# --- one output -----------------------------------------------------------------------------------


def _one_output(x: Tensor, i: int) -> Tensor:
    return torch.softmax(x @ x[i], dim=0) @ x


check_one_output = Exercise(
    asks="""`answer(x, i)`: one output, y_i = sum over j of w_ij x_j.

    x [tokens, dim] and a position i give y_i [dim]; the weights are the softmax of the dot
    products of x_i with every x_j.

    >>> check_one_output(lambda x, i: (x @ x[i]).softmax(0) @ x)
    ✓ Right: y_i is an average of all inputs, weighted by the row of i.
    """,
    right=_one_output,
    without=("loop",),
    wrong={
        "The scores are used as they are: the softmax is missing.": lambda x, i: (x @ x[i]) @ x,
        "The weights are never divided by their sum, so they do not add up to 1.": lambda x, i: (
            (x @ x[i]).exp() @ x
        ),
        "All inputs get the same weight: the dot products are not used.": lambda x, i: x.mean(0),
        "These are the weights; the weighted average of the inputs is still missing.": (
            lambda x, i: torch.softmax(x @ x[i], dim=0)
        ),
        "These are all the outputs; return only the one at position i.": lambda x, i: (
            torch.softmax(x @ x.T, dim=-1) @ x
        ),
    },
    cases=[
        Case("5 words in 5 dimensions", 0.7 * randn(5, 5, seed=1), 2),
        Case("3 words in 7 dimensions", 0.7 * randn(3, 7, seed=14), 1),
        Case("11 words in 2 dimensions", 0.7 * randn(11, 2, seed=7), 10),
    ],
    axes="dim",
    praise="Right: y_i is an average of all inputs, weighted by the row of i.",
)


# --- all outputs of a batch -----------------------------------------------------------------------


def _self_attention(x: Tensor) -> Tensor:
    return torch.softmax(x @ x.mT, dim=-1) @ x


check_batched_attention = Exercise(
    asks="""`answer(x)`: all outputs of a batch. x [batch, tokens, dim] -> [batch, tokens, dim].

    >>> check_batched_attention(None)
    ○ not attempted yet
    """,
    without=("bmm", "@", "matmul", "loop"),
    right=_self_attention,
    wrong={
        "One softmax over the whole matrix of scores: each row must sum to 1 by itself.": (
            lambda x: (x @ x.mT).flatten(1).softmax(-1).view(x.shape[0], x.shape[1], -1) @ x
        ),
    },
    cases=[
        Case("as many words as dimensions", 0.7 * randn(3, 5, 5, seed=3)),
        Case("3 sentences of 5 words in 7 dimensions", 0.7 * randn(3, 5, 7, seed=4)),
        Case("2 sentences of 11 words in 3 dimensions", 0.7 * randn(2, 11, 3, seed=5)),
    ],
    axes="batch tokens dim",
    praise="Right: two matrix products and a softmax over the keys between them.",
)


# --- a test of equivariance -----------------------------------------------------------------------
# The reader's answer is a test, so it is tried on functions that must pass and must not. Each of
# them separates one wrong test from the right one (or two wrong tests from one another).


def _follows(f: Callable, x: Tensor, order: Tensor) -> bool:
    return torch.allclose(f(x[order]), f(x)[order], atol=1e-5)


def _rounded(x: Tensor) -> Tensor:
    """Equivariant up to rounding: each position is off by its own last bits."""
    return _self_attention(x) * (1 + 2e-7 * torch.arange(1, len(x) + 1))[:, None]


def _by_place(x: Tensor) -> Tensor:
    """Every position gets a number of its own, save that 1 and 3 get the same."""
    places = torch.arange(len(x), dtype=x.dtype)
    places[3] = places[1]
    return x + places[:, None]


def _off_at(place: int, much: float) -> Callable:
    """Self-attention, but the largest word gets more where it is at this place.

    So a single row of f(x[order]) differs from that of f(x)[order].
    """

    def f(x: Tensor) -> Tensor:
        y = _self_attention(x).clone()
        if x.sum(1).argmax() == place:
            y[place, -1] += much
        return y

    return f


def _largest_at(place: int, x: Tensor) -> Tensor:
    """The rows of x, with the largest moved to this place."""
    largest = int(x.sum(1).argmax())
    order = [n for n in range(len(x)) if n != largest]
    return x[[*order[:place], largest, *order[place:]]]


def _first_row_everywhere(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


def _far_from_zero(*shape: int, seed: int) -> Tensor:
    """Numbers around 1: `torch.allclose`, as it comes, asks for more where a number is near 0."""
    return 1 + 0.4 * randn(*shape, seed=seed).clamp(-1.5, 1.5)


_X, _SEVEN, _THREE = (_far_from_zero(n, d, seed=n) for n, d in ((5, 7), (7, 11), (3, 5)))
_CYCLE = torch.tensor([2, 0, 4, 1, 3])  # not its own inverse
_SWAP = torch.tensor([0, 3, 2, 1, 4])  # its own inverse
_CYCLE_7, _CYCLE_3 = torch.tensor([3, 0, 5, 6, 2, 4, 1]), torch.tensor([1, 2, 0])
_ALWAYS = "Your test answers {} every time, whatever the function does."


def _signs(x: Tensor) -> Tensor:
    """Turns the sign of every other row: lengths and sizes do not show it."""
    return x * (1 - 2 * (torch.arange(len(x)) % 2))[:, None]


def _added(*columns: float) -> Callable:
    """Adds a number of its own to each position, times these, in the first and last columns."""

    def f(x: Tensor) -> Tensor:
        y, places = x.clone(), torch.arange(len(x), dtype=x.dtype)
        y[:, 0] += columns[0] * places
        y[:, -1] += columns[1] * places
        return y

    return f


_OFF = []  # the functions that are off in a single row


def _off_case(words: str, place: int, much: float, x: Tensor, order: Tensor) -> Case:
    """An edge case: which wrong order it finds is chance, so it names none."""
    _OFF.append(_off_at(place, much))
    return Case(f"a function of {len(x)} words that is {words}", _OFF[-1], x, order, edge=True)


check_equivariance = Exercise(
    asks="""`answer(f, x, order)`: does f follow this reordering of its input's rows? -> bool.

    f maps [tokens, dim] to [tokens, dim]; x [tokens, dim]; order [tokens] holds each position once,
    so that x[order] is x with its rows reordered. Rounding must not make an f fail, a difference of
    0.02 in any row must: `torch.allclose` as it comes will do, and so will a tolerance up to 0.01.

    >>> check_equivariance(None)
    ○ not attempted yet
    """,
    right=_follows,
    wrong={
        _ALWAYS.format("True"): lambda f, x, order: True,
        _ALWAYS.format("False"): lambda f, x, order: False,
        "This tests invariance, that the output stays the same. For equivariance the outputs "
        "are reordered too: compare with f(x)[order].": lambda f, x, order: torch.allclose(
            f(x[order]), f(x), atol=1e-5
        ),
        "You reorder the outputs only; f must also be called on the reordered input, x[order].": (
            lambda f, x, order: torch.allclose(f(x)[order], f(x), atol=1e-5)
        ),
        "One side uses the inverse order: that works for a swap of two words, not in general.": (
            lambda f, x, order: torch.allclose(f(x[order])[order], f(x), atol=1e-5)
        ),
        "You try an order of your own: use the argument `order`.": (
            lambda f, x, order: _follows(f, x, order.sort(descending=True).values)
        ),
        "You reorder the columns, the dimensions; the words are the rows.": (
            lambda f, x, order: torch.allclose(f(x[:, order]), f(x)[:, order], atol=1e-5)
        ),
        "You ask for bitwise equality, but sums in another order round differently: allow for "
        "that.": (lambda f, x, order: torch.equal(f(x[order]), f(x)[order])),
        "You compare the mean of all numbers, or their sum: a single row can be off, and the order "
        "of the rows does not show.": (
            lambda f, x, order: torch.allclose(f(x[order]).mean(), f(x)[order].mean(), atol=1e-5)
        ),
    },
    cases=[
        Case("self-attention and a cycle of words", _self_attention, _X, _CYCLE),
        Case("self-attention and a swap of two words", _self_attention, _X, _SWAP),
        Case("a function that sorts each column", lambda x: x.sort(dim=0).values, _X, _CYCLE),
        Case("a function that repeats the first row", _first_row_everywhere, _X, _CYCLE),
        Case("a function that repeats the mean", lambda x: x.mean(0).expand_as(x), _X, _CYCLE),
        Case("a function that copies its input", lambda x: x.clone(), _X, _CYCLE),
        Case("numbers added by position, two of them equal and swapped", _by_place, _X, _SWAP),
        Case("numbers added by position and a cycle of words", _by_place, _X, _CYCLE),
        Case("self-attention with rounding errors", _rounded, _X, _CYCLE),
        Case("self-attention of 7 words", _self_attention, _SEVEN, _CYCLE_7),
        # The largest word is at order[place] before the reordering, and at `place` after it.
        _off_case("off in the last", 2, 0.5, _largest_at(0, _THREE), _CYCLE_3),
        _off_case("off in the first", 0, 0.5, _largest_at(3, _SEVEN), _CYCLE_7),
        _off_case("off by 0.02 in the third", 2, 0.02, _largest_at(5, _SEVEN), _CYCLE_7),
        _off_case("off in the last but one", 5, 0.5, _largest_at(4, _SEVEN), _CYCLE_7),
        Case("a function that turns every other sign", _signs, _X, _CYCLE, edge=True),
        Case("what cancels in each row", _added(1.0, -1.0), _X, _CYCLE, edge=True),
        Case("a number by position in the first column", _added(1.0, 0.0), _X, _CYCLE, edge=True),
        Case("a number by position in the last column", _added(0.0, 1.0), _X, _CYCLE, edge=True),
    ],
    also={
        "You let it pass: compare every row, and with a tolerance below 0.02.": (
            lambda says, f, x, order: bool(says) and f in _OFF
        ),
    },
    praise="Right: reorder the words, and the outputs follow in the same order.",
)


# --- vectors --------------------------------------------------------------------------------------

_WORDS = ["mary", "gave", "roses", "to", "susan"]
_MARY, _GAVE, _ROSES, _TO, _SUSAN = range(5)
_CLEARLY, _ENOUGH = 1e-6, 0.9  # a smaller lead is a tie; the least that *gave* must give


def in_float32(answer: Any) -> Any:
    """Numbers of any dtype, in a tensor, an array or a list of rows, as a tensor; else as it is."""
    answer = plain(answer)
    if isinstance(answer, Tensor):
        return answer if answer.is_complex() else answer.float()
    if not isinstance(answer, list | tuple):
        return answer
    try:
        return torch.stack([torch.as_tensor(row, device="cpu").float() for row in answer])
    except (TypeError, ValueError, RuntimeError):
        return answer


def _weights(x: Tensor) -> Tensor:
    x = x.detach().double()
    return torch.softmax(x @ x.T, dim=-1)


def _choice(x: Tensor) -> int:
    """The word that *gave* prefers."""
    return int(_weights(x)[_GAVE].argmax())


def _prefers_itself(x: Tensor) -> bool:
    return _choice(x) == _GAVE


def _undecided(x: Tensor) -> bool:
    first, second = _weights(x)[_GAVE].topk(2).values.tolist()
    return first - second < _CLEARLY


def _prefers_another(x: Tensor) -> tuple | None:
    word = _choice(x)
    return None if word == _ROSES else (_WORDS[word], float(_weights(x)[_GAVE, word]))


def _asked_the_wrong_way_round(x: Tensor) -> bool:
    row = _weights(x)[_ROSES]
    return _prefers_itself(x) and bool(row[_GAVE] > row[_ROSES] + _CLEARLY)


def _longer_but_elsewhere(x: Tensor) -> bool:
    return _prefers_itself(x) and bool(x[_ROSES].norm() > x[_GAVE].norm())


def _rivals(x: Tensor) -> list[tuple[int, int, float]]:
    """For *mary* and *susan*: the best word that is not a person, and how far a person leads it."""
    found = []
    for name in (_MARY, _SUSAN):
        row = _weights(x)[name]
        rival = max((_GAVE, _ROSES, _TO), key=lambda word: row[word])
        found.append((name, rival, float(row[[_MARY, _SUSAN]].max() - row[rival])))
    return found


def _people_undecided(x: Tensor) -> tuple | None:
    ties = [(name, rival) for name, rival, lead in _rivals(x) if abs(lead) < _CLEARLY]
    return tuple(_WORDS[word] for word in ties[0]) if ties else None


def _people_lost_to_roses(x: Tensor) -> tuple | None:
    lost = [name for name, rival, lead in _rivals(x) if lead < 0 and rival == _ROSES]
    return (_WORDS[lost[0]],) if lost else None


def _people_lost(x: Tensor) -> tuple | None:
    lost = [(name, rival) for name, rival, lead in _rivals(x) if lead < 0]
    return tuple(_WORDS[word] for word in lost[0]) if lost else None


def _too_little(x: Tensor) -> tuple | None:
    share = float(_weights(x)[_GAVE, _ROSES])
    # Rounded down, so that it never reads 0.900.
    return (share - 5e-4,) if share < _ENOUGH else None


check_prefers_roses = Exercise(
    design=True,
    asks="""`answer()`, or the tensor itself: vectors [5, 2] such that *gave* prefers *roses*.

    The rows are *mary gave roses to susan*; a list of rows will do. *gave* gives *roses* at least
    0.9 of its attention; *mary* and *susan* still prefer a person, either of the two.

    >>> check_prefers_roses(torch.eye(5))
    ✗ Your result has the shape (5, 5); it should be (5, 2) = (words, components).
    """,
    right=lambda: torch.tensor([[1.6, 0.0], [0.4, 1.2], [0.0, 4.0], [0.2, 0.2], [1.5, 0.0]]),
    cases=[Case("your vectors")],
    call=lambda answer: in_float32(answer() if callable(answer) else answer),
    unique=False,
    also={
        "*gave* gives two words the same largest weight: *roses* must be ahead.": _undecided,
        "It is *roses* that prefers *gave*: the row asks and the column answers, so the weight "
        "to raise is in row *gave*, column *roses*.": _asked_the_wrong_way_round,
        "Only a norm has grown: *roses* is longer than *gave* but points elsewhere, so *gave* "
        "still prefers itself; turn *roses* toward it.": _longer_but_elsewhere,
        "*gave* still prefers itself: its dot product with *roses* cannot exceed its own square "
        "unless *roses* is the longer of the two.": _prefers_itself,
        "*gave* prefers *{}*, with weight {:.2f}, not *roses*.": _prefers_another,
        "*{}* gives *{}* as much as a person: a person must be ahead.": _people_undecided,
        "Only a norm has grown: *roses* is so long that *{}* prefers it too, so turn it away from "
        "the people as well.": _people_lost_to_roses,
        "*gave* prefers *roses*, but *{}* now prefers *{}*.": _people_lost,
        "*gave* prefers *roses*, but with weight {:.3f}; it must be at least 0.9.": _too_little,
    },
    axes="words components",
    praise="Right: *gave* prefers something longer than itself, and the people do not follow.",
)


# --- find the wrong axis --------------------------------------------------------------------------


def four_printouts() -> dict[str, Tensor]:
    """Attention weights [query, key] of the same three words, computed by four people: {letter: w}.

    >>> [tuple(weights.shape) for weights in four_printouts().values()]
    [(3, 3), (3, 3), (3, 3), (3, 3)]
    """
    x = torch.tensor([[1.2, 0.3], [0.6, 1.1], [-0.5, 0.9]])
    scores = x @ x.T
    return {
        "A": scores / scores.sum(dim=-1, keepdim=True),
        "B": scores.softmax(dim=0),
        "C": scores.flatten().softmax(dim=0).view(3, 3),
        "D": scores.softmax(dim=-1),
    }


check_wrong_axis = Choice(
    asks="""Which of the `four_printouts()` ran the softmax along the wrong axis? A letter.

    >>> check_wrong_axis("E")
    ✗ 'e' is not among the choices: a, b, c, d.
    """,
    right="B",
    wrong={
        "A": "The rows of A add up to 1, so its axis is right. Its mistake is another one: a "
        "weight is never negative. Somebody divided the scores by their sum, without the "
        "exponential.",
        "C": "The rows of C do not add up to 1, and its columns do not either. All nine numbers "
        "do: one softmax ran over the whole matrix.",
        "D": "The rows of D add up to 1, and no number is negative: D is right.",
    },
    praise="Right: the columns of B add up to 1, and its rows do not. The queries compete for each "
    "key.",
)


# --- two silent mistakes --------------------------------------------------------------------------


def _broken(x: Tensor) -> Tensor:
    weights = torch.softmax(x @ x.T, dim=0)
    return weights.sum(dim=1, keepdim=True) * x


check_mended = Repair(
    asks="""`answer(x)`: self-attention of one sentence, mended. x [tokens, dim] -> [tokens, dim].

    >>> check_mended(lambda x: torch.softmax(x @ x.T, dim=-1) @ x)
    ✓ Right: the softmax runs over the keys, and the sum mixes what all positions hold.
    """,
    broken=_broken,
    unchanged="Look at what should add up to 1, and at which vectors are added up.",
    right=_self_attention,
    wrong={
        "The softmax is gone: scores are not weights yet.": lambda x: x @ x.T @ x,
        "These are the weights; the weighted averages are missing.": (
            lambda x: torch.softmax(x @ x.T, dim=-1)
        ),
    },
    cases=[
        Case("5 words in 2 dimensions", 0.7 * randn(5, 2, seed=7)),
        Case("as many words as dimensions", 0.7 * randn(3, 3, seed=8)),
        Case("7 words in 11 dimensions", 0.5 * randn(7, 11, seed=9)),
    ],
    axes="tokens dim",
    praise="Right: the softmax runs over the keys, and the sum mixes what all positions hold.",
)
