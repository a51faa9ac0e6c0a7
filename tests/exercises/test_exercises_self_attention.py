"""Chapter 01's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import numpy as np
import pytest
import torch
from diagnoses import exercises, judge_by
from torch.nn import functional as F

from transformer_lib.exercises import self_attention
from transformer_lib.exercises.self_attention import (
    check_batched_attention,
    check_equivariance,
    check_mended,
    check_one_output,
    check_prefers_roses,
    check_wrong_axis,
    four_printouts,
)

RIGHT, WRONG = {}, {}


# --- one output -----------------------------------------------------------------------------------


def _by_loops(x, i):
    exps = [torch.exp(sum(x[i, c] * row[c] for c in range(x.shape[1]))) for row in x]
    y = torch.zeros(x.shape[1])
    for e, row in zip(exps, x, strict=True):
        y = y + e / sum(exps) * row
    return y


RIGHT[check_one_output] = [
    lambda x, i: (torch.softmax(x @ x.T, -1) @ x)[i],
    lambda x, i: torch.einsum("j,jk->k", F.softmax(torch.mv(x, x[i]), 0), x),
    lambda x, i: F.scaled_dot_product_attention(x[None, i, None], x[None], x[None], scale=1.0)[
        0, 0
    ],
]


def _sums_x_i(x, i):
    w = torch.softmax(x @ x[i], 0)
    return sum(w[j] * x[i] for j in range(len(x)))


def _no_softmax(x, i):
    return sum((x[i] @ x[j]) * x[j] for j in range(len(x)))


def _not_normalized(x, i):
    return sum(torch.exp(x[i] @ x[j]) * x[j] for j in range(len(x)))


def _column(x, i):
    w = torch.softmax(x @ x.T, dim=1)
    return sum(w[j, i] * x[j] for j in range(len(x)))


def _no_exp(x, i):
    scores = x @ x[i]
    return scores / scores.sum() @ x


def _scaled(x, i):
    return F.scaled_dot_product_attention(x[None], x[None], x[None])[0, i]


WRONG[check_one_output] = [
    (_by_loops, "The result is right. But the exercise asks for it without a loop"),
    (_sums_x_i, "`i` stands where `j` belongs"),
    (_no_softmax, "the softmax is missing"),
    (_not_normalized, "never divided by their sum"),
    (_no_exp, "`scores` is divided by its sum without an exponential: a softmax does "),
    (_column, "with `i, j` in place of `j, i` your answer is right"),
    (lambda x, i: x.sum(0) / len(x), "the same weight"),
    (_scaled, "it divides the scores by the root of the width, but must leave them raw"),
    (lambda x, i: (x @ x[i]).softmax(0), "weighted average of the inputs is still missing"),
    (lambda x, i: (x @ x.T).softmax(1) @ x, "only the one at position i"),
]


# --- all outputs of a batch -----------------------------------------------------------------------


RIGHT[check_batched_attention] = [
    lambda x: F.scaled_dot_product_attention(x, x, x, scale=1.0),
    lambda x: torch.einsum("bij,bjk->bik", torch.einsum("bik,bjk->bij", x, x).softmax(-1), x),
]


def _one_softmax(x):
    scores = x @ x.mT
    return torch.softmax(scores.reshape(len(x), -1), 1).reshape(scores.shape) @ x


WRONG[check_batched_attention] = [
    (
        lambda x: torch.bmm(torch.softmax(torch.bmm(x, x.transpose(1, 2)), dim=2), x),
        "asks for it without `bmm`",
    ),
    (
        lambda x: torch.stack([torch.softmax(one @ one.T, 1) @ one for one in x]),
        "asks for it without `@`",
    ),
    (
        lambda x: torch.bmm(torch.softmax(x @ x.mT, dim=1), x),
        "`dim=1` is not the right axis: with `dim=-1` in place of `dim=1`",
    ),
    (
        lambda x: torch.bmm(torch.softmax(torch.bmm(x, x), 2), x),
        "a transpose is missing: `lambda x: torch.",
    ),
    (
        lambda x: torch.einsum("bij,bjk->bik", x, x).softmax(-1) @ x,
        "a transpose is missing: `lambda x: torch.",
    ),
    (
        lambda x: torch.bmm(torch.bmm(x, x.transpose(1, 2)), x),
        "a softmax is missing: `(torch.bmm(x, x.transpose(1, 2))).softmax(-1)` ",
    ),
    (
        lambda x: F.scaled_dot_product_attention(x, x, x),
        "it divides the scores by the root of the width, but must leave them raw",
    ),
    (
        lambda x: torch.softmax(torch.bmm(x, x.transpose(1, 2)), dim=2),
        "all that you compute is right so far",
    ),
    (_one_softmax, "One softmax over the whole matrix"),
]


# --- a test of equivariance -----------------------------------------------------------------------


def _with_matrices(f, x, order):
    p = torch.eye(len(order))[order]
    return bool(torch.isclose(f(p @ x), p @ f(x), atol=1e-5).all())


def _back_again(f, x, order):
    return torch.allclose(f(x[order])[torch.argsort(order)], f(x), atol=1e-5)


def _row_by_row(f, x, order):
    after, before = f(x[order]), f(x)
    return all((after[i] - before[j]).abs().max() < 1e-4 for i, j in enumerate(order.tolist()))


def _as_it_comes(f, x, order):
    return torch.allclose(f(x[order]), f(x)[order])


def _generous(f, x, order):
    return bool(((f(x[order]) - f(x)[order]).abs() < 0.01).all())


def _as_arrays(f, x, order):
    indices = order.tolist()
    return np.allclose(f(x[indices]).numpy(), f(x).numpy()[np.array(indices)])


RIGHT[check_equivariance] = [_with_matrices, _back_again, _row_by_row]
RIGHT[check_equivariance] += [_as_it_comes, _generous, _as_arrays]


def _close(a, b):
    return torch.allclose(a, b, atol=1e-5)


def _transposed_matrix(f, x, order):
    p = torch.eye(len(order))[order]
    return _close(f(p @ x), p.T @ f(x))


WRONG[check_equivariance] = [
    (lambda f, x, order: True, "answers True every time"),
    (lambda f, x, order: x is f, "answers False every time"),
    (lambda f, x, order: _close(f(x[order]), f(x)), "This tests invariance"),
    (lambda f, x, order: _close(f(x), f(x)[order]), "You reorder the outputs only"),
    (_transposed_matrix, "inverse order"),
    (lambda f, x, order: _back_again(f, x, torch.randperm(len(x))), "an order of your own"),
    (lambda f, x, order: _row_by_row(f, x, (order + 1) % len(x)), "an order of your own"),
    (lambda f, x, order: _close(f(x[order]), f(x)[torch.argsort(order)]), "inverse order"),
    (lambda f, x, order: _close(f(x[:, order]), f(x)[:, order]), "You reorder the columns"),
    (
        lambda f, x, order: _close(f(x[:, order % x.shape[1]]), f(x)[:, order % x.shape[1]]),
        "You reorder the columns",
    ),
    (lambda f, x, order: bool((f(x[order]) == f(x)[order]).all()), "bitwise equality"),
    (
        lambda f, x, order: _close(f(x[order])[-1], f(x)[order[-1]]),
        "let it pass: compare",
    ),
    (
        lambda f, x, order: torch.allclose(f(x[order]), f(x)[order], atol=0.1),
        "let it pass: compare",
    ),
    (
        lambda f, x, order: _close(f(x[order]).mean(), f(x)[order].mean()),
        "You compare the mean",
    ),
    (
        lambda f, x, order: f(x[order]) == f(x)[order],
        "a tensor of shape (5, 7); a bool is expected",
    ),
]


# --- vectors --------------------------------------------------------------------------------------

# The vectors that the chapter starts with, and their rows.
START = [[1.6, 0.2], [0.8, 1.0], [0.2, 1.4], [0.2, 0.2], [1.4, 0.4]]
MARY, GAVE, ROSES, TO, SUSAN = range(5)


def _with(**rows):
    x = torch.tensor(START)
    for name, row in rows.items():
        x[globals()[name.upper()]] = torch.tensor(row)
    return x


RIGHT[check_prefers_roses] = [
    _with(mary=[1.6, 0.0], gave=[0.4, 1.2], roses=[0.0, 4.0], susan=[1.5, 0.0]),
    lambda: torch.tensor([[-1, 1.5], [1, 0], [5, 0], [-2.5, 0], [-1, -1.5]]),
    lambda: torch.nn.Parameter(_with(gave=[0.0, 1.4], roses=[-0.2, 3.5])),
    torch.tensor([[2, 0], [0, 2], [0, 4], [0, 0], [2, 0]]),
    torch.tensor([[2, 0], [0, 2], [0, 4], [0, 0], [2, 0]], dtype=torch.float64),
    [[2, 0], [0.0, 2], (0, 4), torch.zeros(2), [2, 0]],
]


WRONG[check_prefers_roses] = [
    (_with(gave=[1.5, 1.0]), "*gave* still prefers itself: its"),
    (_with(roses=[0.9, 6.3]), "Only a norm has grown: *roses* is so long that *mary*"),
    (_with(mary=[1.0, 0.0], roses=[-4.0, 1.0]), "Only a norm has grown: *roses* is longer"),
    (_with(gave=[0.4, 2.8]), "It is *roses* that prefers *gave*"),
    (_with(mary=[2.6, 0.2]), "*gave* prefers *mary*"),
    (
        _with(gave=[0.0, 1.0], roses=[0.0, 3.0], to=[0.0, -3.0], susan=[0.2, -1.0]),
        "*susan* now prefers *to*",
    ),
    (torch.zeros(5, 2), "two words the same"),
    (
        torch.tensor([[2, 0], [0.5, 1], [2, 3], [0, 0], [2, 0]]),
        "*mary* gives *roses* as much as a person",
    ),
    ([[0, -2], [0, 2], [0, 4], [2, 0], [2, 0]], "*susan* gives *to* as much as a person"),
    ([[1.6, 0.0], [0.4, 1.0], [0.0, 2.0], [0.2, 0.2], [1.5, 0.0]], "with weight 0.473; it must"),
    ([[2, 0], [0.0, 1], [0, 3.9387], [0, 0], [2, 0]], "with weight 0.899; it must"),
    (torch.tensor(START).T, "the order (components, words); it should be (5, 2)"),
    (START[:4], "the shape (4, 2); it should be (5, 2)"),
    ([[0.0], *START[1:]], "a list; a torch tensor is expected"),
    ((torch.tensor(START), torch.tensor(START)), "the shape (2, 5, 2); it should be"),
]


@pytest.mark.slow
def test_a_longer_roses_alone_is_not_enough():
    """*susan* turns to it before *gave* has reached 0.9."""
    for hundredths in (*range(106, 400, 13), 276, 277):
        longer = _with(roses=[0.002 * hundredths, 0.014 * hundredths])
        words = "with weight 0." if hundredths < 277 else "so long that *susan* prefers it"
        assert words in check_prefers_roses(longer).diagnosis


def test_the_start_is_no_solution():
    assert not check_prefers_roses(torch.tensor(START))


# --- find the wrong axis --------------------------------------------------------------------------


RIGHT[check_wrong_axis] = ["B", "b", "(b)"]

WRONG[check_wrong_axis] = [
    ("A", "a weight is never negative"),
    ("c", "one softmax ran over the whole matrix"),
    ("D", "D is right"),
    ("AB", "not among the choices"),
]


def test_the_printouts_are_what_the_sentences_say():
    sums = {letter: (w.sum(1), w.sum(0), w.min()) for letter, w in four_printouts().items()}
    ones = torch.ones(3)
    by_row = {letter for letter, (rows, _, _) in sums.items() if torch.allclose(rows, ones)}
    by_column = {
        letter for letter, (_, columns, _) in sums.items() if torch.allclose(columns, ones)
    }
    assert (by_row, by_column) == ({"A", "D"}, {"B"})
    assert {letter for letter, (_, _, least) in sums.items() if least < 0} == {"A"}
    assert four_printouts()["C"].sum() == pytest.approx(1)


# --- two silent mistakes --------------------------------------------------------------------------


def _mended_by_loops(x):
    weights = torch.softmax(x @ x.T, dim=1)
    y = torch.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            y[i] += weights[i, j] * x[j]
    return y


def _by_the_loops_of_the_chapter(dim, vector, weight=lambda w, i, j: w[i, j]):
    def answer(x):
        weights = torch.softmax(x @ x.T, dim=dim)
        y = torch.zeros_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                y[i] += weight(weights, i, j) * x[{"i": i, "j": j}[vector]]
        return y

    return answer


RIGHT[check_mended] = [
    _mended_by_loops,
    lambda x: torch.softmax(x @ x.T, dim=0).T @ x,  # the scores are symmetric
    lambda x: F.scaled_dot_product_attention(x, x, x, scale=1.0),
]

WRONG[check_mended] = [
    (_by_the_loops_of_the_chapter(0, "i"), "still does what the broken function does"),
    (_by_the_loops_of_the_chapter(-1, "i"), "`i` stands where `j` belongs"),
    (_by_the_loops_of_the_chapter(0, "j"), "with `weights, j, i` in place of `weights, i, j`"),
    (lambda x: x @ (x.T @ x), "The softmax is gone"),
    (lambda x: torch.softmax(x @ x.T, dim=1), "the weighted averages are missing"),
    (
        lambda x: F.scaled_dot_product_attention(x, x, x),
        "it divides the scores by the root of the width, but must leave them raw",
    ),
]


@pytest.mark.parametrize("exercise", exercises(self_attention))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
