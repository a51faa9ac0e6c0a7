"""The change that mends an answer: found at its line, told in words, and never by chance."""

import functools
import linecache

import pytest
import torch
from numpy.typing import NDArray
from torch import nn

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


def test_a_variable_of_the_function_around_an_answer_is_kept():
    axis = 0

    def answer(x):
        return torch.softmax(x @ x.mT, dim=axis + 0) @ x

    assert "right axis" not in CHECK(answer).diagnosis
    assert Source.of(answer).changed(None)(X).equal(answer(X))


def test_a_default_that_no_copy_may_have_is_no_error():
    def answer(x, places=NDArray):
        return torch.softmax(x @ x.mT, dim=0) @ x

    assert "softmax" in CHECK(answer).diagnosis


def test_a_comment_may_begin_before_an_inner_function():
    lines = [
        "if True:\n",
        "    def answer(x):\n",
        "# each row\n",
        "        return torch.softmax(x @ x.mT, dim=0) @ x\n",
    ]
    linecache.cache["<nested>"] = 0, None, lines, "<nested>"
    names = {"torch": torch}
    exec(compile("".join(lines), "<nested>", "exec"), names)
    assert CHECK(names["answer"]).diagnosis.startswith("Line 4, `return torch.softmax(x @ x.mT, ")


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


def test_a_line_whose_value_is_right_is_not_blamed():
    """x @ x.mT is symmetric: the other axis mends this, too, and the axis is right."""

    def by_columns_of(x):
        weights = torch.softmax(x @ x.mT, dim=-1)
        return torch.einsum("ij,id->jd", weights, x)

    diagnosis = CHECK(by_columns_of).diagnosis
    assert diagnosis.startswith(f"Line {line(by_columns_of, 'einsum')}, ")
    assert "Or else" not in diagnosis


SUM = Exercise(
    right=lambda a, b, c: (a - b) * c,
    cases=[Case("3 numbers", *randn(3, 3, seed=1)), Case("5 numbers", *randn(3, 5, seed=2))],
)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda a, b, c: (a - b) / c, "with `lambda a, b, c: (a - b) * c` in its place"),
        (lambda a, b, c: a - b, "`* c` is missing: `lambda a, b, c: (a - b) * c`."),
        (
            lambda a, b, c: (a - a) * c,
            "`a` stands where `b` belongs: `lambda a, b, c: (a - b) * c`.",
        ),
        (lambda a, b, c: (b - a) * c, "`-` must change places: `lambda a, b, c: (a - b) * c`."),
        (lambda a, b, c: (a - b) * c * c, "`* c` is too much: `lambda a, b, c: (a - b) * c`."),
        (lambda a, b, c: (a + b) * c, "with `a - b` in place of `a + b` your answer is right."),
    ],
)
def test_a_change_can_be_written_as_it_is_told(answer, told):
    assert told in SUM(answer).diagnosis


def test_what_is_divided_by_a_parenthesis():
    check = Exercise(
        right=lambda a, b: a + b / 2, cases=[Case("1 and 3", 1.0, 3.0), Case("5 and 7", 5.0, 7.0)]
    )
    told = check(lambda a, b: (a + b) / 2).diagnosis
    assert told.endswith("`/ 2` belongs to the last term only: `lambda a, b: a + b / 2`.")


def test_one_of_several_terms_that_belongs_outside():
    check = Exercise(
        right=lambda n, d: n * (d + 3) + 2 * d, cases=[Case("one", 2, 3), Case("two", 5, 7)]
    )
    told = check(lambda n, d: n * (d + 3 + 2 * d)).diagnosis
    assert "`2 * d` belongs outside the parentheses: `lambda n, d: n * (d + 3) + 2 * d`" in told


def test_a_condition_too_many_is_told_and_a_branch_of_several_is_not():
    def some(x):
        y = torch.zeros_like(x)
        for i in range(len(x)):
            if x[i].sum() > 0:
                y[i] = 2 * x[i]
        return y

    def branches(x):
        y = torch.zeros_like(x)
        for i in range(len(x)):
            if i < 0:
                y[i] = -x[i]
            elif x[i].sum() > 0:
                y[i] = 2 * x[i]
        return y

    check = Exercise(right=lambda x: 2 * x, cases=[Case("5 words", X)])
    told = check(some).diagnosis
    assert told.endswith("`if x[i].sum() > 0:`: without this condition your answer is right.")
    assert "condition" not in check(branches).diagnosis


def test_an_operator_is_turned_before_a_term_is_taken_away():
    """A softmax ignores what all of a row have in common, so that `p[:, None] -` seems too much."""

    def one_line(x):
        p = torch.arange(len(x))
        return (x @ x.mT + (p[:, None] - p)).softmax(-1)

    def two_lines(x):
        distance = torch.arange(len(x))[:, None] - torch.arange(len(x))
        return (x @ x.mT + distance).softmax(-1)

    def right(x):
        distance = torch.arange(len(x))[:, None] - torch.arange(len(x))
        return (x @ x.mT - distance).softmax(-1)

    check = Exercise(right=right, cases=CHECK.cases)
    assert "with `return (x @ x.mT - (p[:, None] - p)).softmax(-1)` in" in check(one_line).diagnosis
    assert "with `x @ x.mT - distance` in place" in (told := check(two_lines).diagnosis)
    assert "Or else" not in told


def test_a_number_tuned_to_the_cases_is_not_told():
    check = Exercise(right=lambda n: n * n, cases=[Case("of two", 2), Case("of none", 0)], wrong={})
    assert "in place of" not in check(lambda n: 3 * n).diagnosis  # 2 * n is right for both


def test_what_is_right_but_for_its_sum_is_told_so():
    def undivided(x):
        weights = (x @ x.mT).exp()
        return weights * 1

    check = Exercise(right=lambda x: (x @ x.mT).softmax(-1), cases=CHECK.cases)
    assert "still to be divided by their sum" in check(undivided).diagnosis


def test_a_right_item_of_a_tuple_is_not_blamed():
    check = Exercise(right=lambda x, r: (x / 2, r / 2), cases=[Case("5 words", X, 3.0)])
    assert "here, at" not in check(lambda x, r: (x / 4 + x / 4, r + x.shape[0] - 11)).diagnosis


def test_an_argument_that_is_never_used():
    assert unused(lambda q, k: q @ q.mT) == ["k"]
    assert unused(mixed) == []


class Holding:
    def mixed(self, a, b):
        return a @ b

    __call__ = mixed

    def __getattr__(self, name):
        raise RuntimeError(name)


class Module(nn.Module):
    def forward(self, a, b):
        return a @ b


def test_what_an_exercise_rules_out():
    assert uses(other_axis, ["softmax"]) == ("`softmax`", line(other_axis, "dim=0"))
    assert uses(only_the_last, ["loop"])[0] == "a loop"
    assert uses(mixed, ["@"])[0] == "`@`"
    assert uses(mixed, ["loop"]) is None
    for held in (
        functools.partial(mixed),
        functools.cache(mixed),
        Holding().mixed,
        Holding(),
        Module(),
    ):
        assert uses(held, ["@"])[0] == "`@`", held
    check = Exercise(right=mixed, cases=CHECK.cases, without=("@",))
    assert check(mixed).diagnosis.startswith("The result is right. But the exercise asks for it")


def test_a_name_of_the_readers_own_is_not_ruled_out():
    def variable(scores):
        powers = torch.exp(scores)
        softmax = powers / powers.sum(-1, keepdim=True)
        return softmax

    softmax = variable

    assert uses(variable, ["softmax"]) is uses(lambda s: softmax(s), ["softmax"]) is None
    softmax = torch.softmax
    assert uses(lambda s: softmax(s, -1), ["softmax"])[0] == "`softmax`"


def timed(function):
    def repeated(*inputs):
        for _ in range(3):
            result = function(*inputs)
        return result

    return repeated


@pytest.mark.parametrize(
    "decorated",
    [
        timed,
        lambda function: functools.wraps(function)(timed(function)),
        pytest.param(torch.compile, marks=pytest.mark.slow),
    ],
)
def test_a_loop_around_an_answer_is_not_its_own(decorated):
    assert uses(decorated(mixed), ["loop"]) is None
    assert uses(decorated(only_the_last), ["loop"]) == uses(only_the_last, ["loop"])


# --- at several places, and loops ---------------------------------------------------------------


def two_sides(x, order):
    one = x[order].sin().sort(dim=0).values
    return (one - x.sort(dim=0).values).abs().sum(0)


def both_axes(x, order):
    one = x[order].sin().cumsum(dim=1)
    return (one - x.cumsum(dim=1)).abs().sum(0)


PLACES = Exercise(
    right=lambda x, order: (x[order].sin() - x).abs().sum(0),
    cases=[
        Case("5 words", X, torch.tensor([2, 0, 4, 1, 3])),
        Case("3 words", randn(3, 2, seed=2), torch.tensor([1, 2, 0])),
    ],
)
SUMS = Exercise(
    right=lambda x, order: (x[order].sin().cumsum(0) - x.cumsum(0)).abs().sum(0),
    cases=PLACES.cases,
)


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        (PLACES, two_sides, "everywhere, `.sort(dim=0).values` is one step too many."),
        (SUMS, both_axes, "everywhere, `dim=1` is not the right axis: with `dim=0` in place of"),
    ],
)
def test_the_same_mistake_at_two_places_is_told(check, answer, words):
    assert words in check(answer).diagnosis


def halved_eight_times(x):
    low, high = 0.0, 64.0
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**2 < x else (low, middle)
    return middle


def up_to_four(x):
    low, high = 0.25, 4.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**2 < x else (low, middle)
    return middle


ROOT = Exercise(
    right=lambda x: x**0.5,
    cases=[Case("two", 2.0), Case("five", 5.0), Case("thirty", 30.0), Case("forty", 40.0)],
)


def test_a_loop_that_ends_too_early_is_told():
    words = "the loop ends too early: with `range(80)` in place of `range(8)` your answer is right"
    assert words in ROOT(halved_eight_times).diagnosis


def test_a_result_that_is_a_written_bound_is_told_with_its_line():
    said = f"your result, 4, is written on line {line(up_to_four, 'low, high')}, `low, high = 0.25"
    assert said in ROOT(up_to_four).diagnosis


@pytest.mark.parametrize(
    ("right", "answer", "words"),
    [
        (
            lambda n: sum(2**i for i in range(0, n, 2)),
            lambda n: sum(2**i for i in range(n)),
            "only every other one counts: with `range(0, n, 2)` in place of `range(n)`",
        ),
        (
            lambda n: 100 / (sum([n, n + 3, 2 * n]) / 3),
            lambda n: 100 / max([n, n + 3, 2 * n]),
            "the mean belongs here: ",
        ),
    ],
)
def test_what_is_counted_of_a_list(right, answer, words):
    check = Exercise(right=right, cases=[Case("five", 5), Case("eight", 8), Case("twelve", 12)])
    assert words in check(answer).diagnosis


def test_all_up_to_a_place_and_not_that_place():
    check = Exercise(
        right=lambda x, n: x[:n].sum(0) - x[:n].amax(),
        cases=[Case("3 of 5", X, 3), Case("2 of 5", X, 2)],
    )
    said = check(lambda x, n: x[:n].sum(0) - x[n - 1].amax()).diagnosis
    assert "with `: n` in place of `n - 1` your answer is right" in said
