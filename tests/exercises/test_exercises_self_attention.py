"""Chapter 01's checks: differently written right answers pass, wrong ones get their diagnosis.

The wrong answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
from torch.nn import functional as F

from transformer_lib.exercises import self_attention
from transformer_lib.exercises.self_attention import (
    check_batched_attention,
    check_equivariance,
    check_one_output,
    check_prefers_roses,
)

ALL = [check_one_output, check_batched_attention, check_equivariance, check_prefers_roses]


@pytest.mark.parametrize("check", ALL)
def test_nothing_is_attempted_yet(check):
    def stub(*inputs):
        """What to do."""
        ...

    assert repr(check(stub)) == repr(check(None)) == "○ not attempted yet"


def test_every_named_mistake_is_reached_here():
    """Each sentence of the tables stands in one of the lists below."""
    reached = {words for wrong in (ONE_OUTPUT, BATCHED, EQUIVARIANCE) for words, _ in wrong}
    tables = [
        self_attention.ONE_OUTPUT.wrong,
        self_attention.BATCHED_ATTENTION.wrong,
        self_attention.EQUIVARIANCE.wrong,
    ]
    sentences = [sentence for table in tables for sentence in table]
    for sentence in sentences:
        assert sum(words in sentence for words in reached) == 1, sentence


def diagnosed(verdict, words):
    assert verdict.passed is False, verdict
    assert words in verdict.diagnosis


# --- one output -----------------------------------------------------------------------------------


def _by_loops(x, i):
    exps = [torch.exp(sum(x[i, c] * row[c] for c in range(x.shape[1]))) for row in x]
    y = torch.zeros(x.shape[1])
    for e, row in zip(exps, x, strict=True):
        y = y + e / sum(exps) * row
    return y


@pytest.mark.parametrize(
    "answer",
    [
        _by_loops,
        lambda x, i: (torch.softmax(x @ x.T, -1) @ x)[i],
        lambda x, i: torch.einsum("j,jk->k", F.softmax(torch.mv(x, x[i]), 0), x),
        lambda x, i: F.scaled_dot_product_attention(x[None, i, None], x[None], x[None], scale=1.0)[
            0, 0
        ],
    ],
)
def test_one_output_right(answer):
    assert check_one_output(answer).passed


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


def _wrong_axis(x, i):
    return torch.softmax(x @ x.T, dim=0)[i] @ x


def _no_exp(x, i):
    scores = x @ x[i]
    return scores / scores.sum() @ x


def _scaled(x, i):
    return F.scaled_dot_product_attention(x[None], x[None], x[None])[0, i]


ONE_OUTPUT = [
    ("x_i itself instead of every x_j", _sums_x_i),
    ("the softmax is missing", _no_softmax),
    ("never divided by their sum", _not_normalized),
    ("not put through exp first", _no_exp),
    ("w_ji, the column of i", _column),
    ("w_ji, the column of i", _wrong_axis),
    ("the same weight", lambda x, i: x.sum(0) / len(x)),
    ("divided by the square root", _scaled),
    ("weighted average of the inputs is still to be taken", lambda x, i: (x @ x[i]).softmax(0)),
    ("only the one at position i", lambda x, i: (x @ x.T).softmax(1) @ x),
    ("positions count from 0", lambda x, i: (x @ x[i - 1]).softmax(0) @ x),
]


@pytest.mark.parametrize(("words", "answer"), ONE_OUTPUT)
def test_one_output_wrong(words, answer):
    diagnosed(check_one_output(answer), words)


# --- all outputs of a batch -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.bmm(torch.softmax(torch.bmm(x, x.transpose(1, 2)), dim=2), x),
        lambda x: torch.stack([torch.softmax(one @ one.T, 1) @ one for one in x]),
        lambda x: F.scaled_dot_product_attention(x, x, x, scale=1.0),
        lambda x: torch.einsum("bij,bjk->bik", torch.einsum("bik,bjk->bij", x, x).softmax(-1), x),
    ],
)
def test_batched_attention_right(answer):
    assert check_batched_attention(answer).passed


def _one_softmax(x):
    scores = x @ x.mT
    return torch.softmax(scores.reshape(len(x), -1), 1).reshape(scores.shape) @ x


BATCHED = [
    ("over the queries (dim 1)", lambda x: torch.bmm(torch.softmax(x @ x.mT, dim=1), x)),
    ("over the queries (dim 1)", lambda x: torch.softmax(x @ x.mT, dim=-1).mT @ x),
    ("over the batch (dim 0)", lambda x: torch.bmm(torch.softmax(x @ x.mT, dim=0), x)),
    ("`bmm(x, x)` runs only when", lambda x: torch.bmm(torch.softmax(torch.bmm(x, x), 2), x)),
    ("`bmm(x, x)` runs only when", lambda x: torch.einsum("bij,bjk->bik", x, x).softmax(-1) @ x),
    ("the softmax is missing", lambda x: torch.bmm(torch.bmm(x, x.transpose(1, 2)), x)),
    ("divided by the square root", lambda x: F.scaled_dot_product_attention(x, x, x)),
    ("the second product", lambda x: torch.softmax(torch.bmm(x, x.transpose(1, 2)), dim=2)),
    ("One softmax over the whole matrix", _one_softmax),
]


@pytest.mark.parametrize(("words", "answer"), BATCHED)
def test_batched_attention_wrong(words, answer):
    diagnosed(check_batched_attention(answer), words)


# --- a test of equivariance -----------------------------------------------------------------------


def _with_matrices(f, x, order):
    p = torch.eye(len(order))[order]
    return bool(torch.isclose(f(p @ x), p @ f(x), atol=1e-5).all())


def _back_again(f, x, order):
    return torch.allclose(f(x[order])[torch.argsort(order)], f(x), atol=1e-5)


def _row_by_row(f, x, order):
    after, before = f(x[order]), f(x)
    return all((after[i] - before[j]).abs().max() < 1e-4 for i, j in enumerate(order.tolist()))


@pytest.mark.parametrize("answer", [_with_matrices, _back_again, _row_by_row])
def test_equivariance_right(answer):
    assert check_equivariance(answer).passed


def _close(a, b):
    return torch.allclose(a, b, atol=1e-5)


def _transposed_matrix(f, x, order):
    p = torch.eye(len(order))[order]
    return _close(f(p @ x), p.T @ f(x))


EQUIVARIANCE = [
    ("answers True every time", lambda f, x, order: True),
    ("answers False every time", lambda f, x, order: x is f),
    ("This tests invariance", lambda f, x, order: _close(f(x[order]), f(x))),
    ("You reorder the outputs only", lambda f, x, order: _close(f(x), f(x)[order])),
    ("inverse order", lambda f, x, order: _close(f(x[order])[order], f(x))),
    ("inverse order", _transposed_matrix),
    ("an order of your own", lambda f, x, order: _close(f(x.flip(0)), f(x).flip(0))),
    ("an order of your own", lambda f, x, order: _back_again(f, x, torch.randperm(len(x)))),
    ("an order of your own", lambda f, x, order: _row_by_row(f, x, (order + 1) % len(x))),
    ("inverse order", lambda f, x, order: _close(f(x[order]), f(x)[torch.argsort(order)])),
    ("You reorder the columns", lambda f, x, order: _close(f(x[:, order]), f(x)[:, order])),
    ("bitwise equality", lambda f, x, order: bool((f(x[order]) == f(x)[order]).all())),
]


@pytest.mark.parametrize(("words", "answer"), EQUIVARIANCE)
def test_equivariance_wrong(words, answer):
    diagnosed(check_equivariance(answer), words)


def test_equivariance_must_answer_with_one_bool():
    verdict = check_equivariance(lambda f, x, order: f(x[order]) == f(x)[order])
    diagnosed(verdict, "a tensor of shape (5, 7); a bool is asked for")


# --- vectors --------------------------------------------------------------------------------------

# The vectors that the chapter starts with, and their rows.
START = [[1.6, 0.2], [0.8, 1.0], [0.2, 1.4], [0.2, 0.2], [1.4, 0.4]]
MARY, GAVE, ROSES, TO, SUSAN = range(5)


def _with(**rows):
    x = torch.tensor(START)
    for name, row in rows.items():
        x[globals()[name.upper()]] = torch.tensor(row)
    return x


@pytest.mark.parametrize(
    "answer",
    [
        _with(mary=[1.6, 0.0], gave=[0.4, 1.2], roses=[0.0, 4.0], susan=[1.5, 0.0]),
        lambda: torch.tensor([[-1, 1.5], [1, 0], [5, 0], [-2.5, 0], [-1, -1.5]]),
        lambda: torch.nn.Parameter(_with(gave=[0.0, 1.4], roses=[-0.2, 3.5])),
        torch.tensor([[2, 0], [0, 2], [0, 4], [0, 0], [2, 0]]),
        torch.tensor([[2, 0], [0, 2], [0, 4], [0, 0], [2, 0]], dtype=torch.float64),
        [[2, 0], [0.0, 2], (0, 4), torch.zeros(2), [2, 0]],
    ],
)
def test_prefers_roses_right(answer):
    assert check_prefers_roses(answer).passed


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("*gave* still prefers itself", _with(gave=[1.5, 1.0])),
        ("Only a norm has grown: *roses* is so long that *mary*", _with(roses=[0.9, 6.3])),
        ("Only a norm has grown: *roses* is longer", _with(mary=[1.0, 0.0], roses=[-4.0, 1.0])),
        ("It is *roses* that prefers *gave*", _with(gave=[0.4, 2.8])),
        ("*gave* prefers *mary*", _with(mary=[2.6, 0.2])),
        ("*susan* now prefers *to*", _with(
            gave=[0.0, 1.0], roses=[0.0, 3.0], to=[0.0, -3.0], susan=[0.2, -1.0]
        )),
        ("two words alike", torch.zeros(5, 2)),
        ("*mary* gives *roses* as much as a person",
         torch.tensor([[2, 0], [0.5, 1], [2, 3], [0, 0], [2, 0]])),
        ("*susan* gives *to* as much as a person",
         [[0, -2], [0, 2], [0, 4], [2, 0], [2, 0]]),
        ("with weight 0.473; 0.9",
         [[1.6, 0.0], [0.4, 1.0], [0.0, 2.0], [0.2, 0.2], [1.5, 0.0]]),
        ("with weight 0.899; 0.9", [[2, 0], [0.0, 1], [0, 3.9387], [0, 0], [2, 0]]),
        ("the order (components, words); right is (5, 2)", torch.tensor(START).T),
        ("the shape (4, 2); right is (5, 2)", START[:4]),
        ("a list; a torch tensor is asked for", [[0.0], *START[1:]]),
        ("the shape (2, 5, 2); right is", (torch.tensor(START), torch.tensor(START))),
    ],
)  # fmt: skip
def test_prefers_roses_wrong(words, answer):
    diagnosed(check_prefers_roses(answer), words)


def test_a_longer_roses_alone_is_not_enough():
    """*susan* turns to it before *gave* has reached 0.9."""
    for hundredths in range(106, 400):
        longer = _with(roses=[0.002 * hundredths, 0.014 * hundredths])
        words = "with weight 0." if hundredths < 277 else "so long that *susan* prefers it"
        diagnosed(check_prefers_roses(longer), words)


def test_the_start_is_no_solution():
    assert not check_prefers_roses(torch.tensor(START))
