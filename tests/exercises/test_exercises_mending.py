"""The change that mends an answer: found at its line, told in words, and never by chance."""

import doctest

import pytest
import torch

from transformer_lib.exercises.engine import mending
from transformer_lib.exercises.engine.mending import Source, mended, unused, uses
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

X = randn(5, 7, seed=1)


def mixed(x):
    weights = torch.softmax(x @ x.mT, dim=-1)
    return weights @ x


def other_axis(x):
    weights = torch.softmax(x @ x.mT, dim=0)
    return weights @ x


def only_the_last(x):
    y = torch.zeros_like(x)
    weights = torch.softmax(x @ x.mT, dim=-1)
    for i in range(len(x)):
        for j in range(len(x)):
            y[i] = weights[i, j] * x[j]
    return y


class Mixed(torch.nn.Module):
    def forward(self, x):
        scores = x @ x.mT
        return scores.softmax(-2) @ x


CHECK = Exercise(
    right=mixed,
    cases=[Case("5 words", X), Case("3 words", randn(3, 2, seed=2))],
)


def line(function, text):
    """The number of the line of a function that holds a text."""
    source = Source.of(function)
    n = next(n for n, row in enumerate(source.text.splitlines()) if text in row)
    return source.first + n


@pytest.mark.parametrize(
    ("answer", "text", "words"),
    [
        (other_axis, "dim=0", "`dim=0` is not the right axis: with `dim=-1` in place of `dim=0`"),
        (only_the_last, "y[i] =", "`=` keeps only the last: `+=` adds them all"),
        (lambda x: (x @ x.mT).softmax(0) @ x, "lambda", "0 is not the right axis of `softmax`"),
        (lambda x: (x @ x.mT) @ x, "lambda", "a softmax is missing"),
        (lambda x: -((x @ x.mT).softmax(-1) @ x), "lambda", "the sign before"),
        (lambda x: (x @ x.mT).softmax(-1) @ x + x, "lambda", "`+ x` is too much"),
        (lambda x: (x @ x.mT / x.shape[1] ** 0.5).softmax(-1) @ x, "lambda", "is too much"),
        (lambda x: torch.einsum("ij,jd->id", (x @ x.mT).softmax(0), x), "lambda", "right axis"),
    ],
)
def test_the_line_and_the_change_are_told(answer, text, words):
    diagnosis = CHECK(answer).diagnosis
    assert diagnosis.startswith(f"Line {line(answer, text)}, `")
    assert words in diagnosis


def test_a_class_is_mended_as_a_function_is():
    check = Exercise(right=mixed, cases=CHECK.cases, call=lambda cls, x: cls()(x))
    assert "-2 is not the right axis of `softmax`: -1 is" in check(Mixed).diagnosis


def test_a_variable_of_the_function_around_an_answer_is_kept():
    axis = 0

    def answer(x):
        return torch.softmax(x @ x.mT, dim=axis + 0) @ x

    assert "right axis" not in CHECK(answer).diagnosis
    assert Source.of(answer).changed(None)(X).equal(answer(X))


def test_a_function_without_source_gets_no_line():
    names = {"torch": torch}
    exec("def answer(x): return torch.softmax(x @ x.mT, dim=0) @ x", names)
    assert Source.of(names["answer"]) is None
    assert CHECK(names["answer"]).diagnosis.startswith("Line 1: here, at `matmul`, your values")


def test_no_change_is_told_if_the_answer_is_right_as_it_stands():
    assert mended(mixed, lambda _: True, lambda: False) == []


def by_columns(x):
    weights = torch.softmax(x @ x.mT, dim=0)
    return weights.mT.mT @ x


def test_two_lines_are_told_if_either_would_do():
    diagnosis = CHECK(by_columns).diagnosis
    assert diagnosis.startswith(f"Line {line(by_columns, 'dim=0')}, ")
    assert f" Or else line {line(by_columns, 'return')}, " in diagnosis


def test_an_argument_that_is_never_used():
    assert unused(lambda q, k: q @ q.mT) == ["k"]
    assert unused(mixed) == []


def test_what_an_exercise_rules_out():
    assert uses(other_axis, ["softmax"]) == ("`softmax`", line(other_axis, "dim=0"))
    assert uses(only_the_last, ["loop"])[0] == "a loop"
    assert uses(mixed, ["@"])[0] == "`@`"
    assert uses(mixed, ["loop"]) is None
    check = Exercise(right=mixed, cases=CHECK.cases, without=("@",))
    assert check(mixed).diagnosis.startswith("The result is right. But the exercise asks for it")


def test_the_example_runs():
    assert doctest.testmod(mending).failed == 0
