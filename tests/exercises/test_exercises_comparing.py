"""Comparing results: tolerances by dtype, and no result too odd for a sentence."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from transformer_lib.exercises.engine.comparing import close, first_difference, form_mistake
from transformer_lib.exercises.engine.runner import Case, Exercise


@pytest.mark.parametrize(
    ("dtype", "rounding", "mistake"),
    [
        (torch.float64, 1e-12, 1e-4),
        (torch.float32, 1e-6, 1e-3),
        (torch.bfloat16, 1e-2, 2e-1),
        (torch.float16, 1e-3, 1e-1),
    ],
)
def test_rounding_is_forgiven_and_a_mistake_is_not(dtype, rounding, mistake):
    right = torch.linspace(-1, 1, 7, dtype=torch.float64)
    assert close((right * (1 + rounding)).to(dtype), right.to(dtype))
    assert not close((right + mistake).to(dtype), right.to(dtype))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: x * x.shape[1], "tuple index out of range. The tuple is shorter than that"),
        (lambda x: x.sum(1), "The tensor has fewer axes than that"),
        (lambda x: x * len(x.sum()), "A single number has no axis and no length"),
        (lambda x: x if x > 0 else -x, "An `if` needs one answer, and you have one for each"),
    ],
)
def test_an_error_about_an_axis_is_explained(answer, words):
    check = Exercise(right=lambda x: 3 * x, cases=[Case("3 numbers", torch.arange(3.0))])
    assert words in repr(check(answer))


@pytest.mark.parametrize("third", [Fraction(1, 3), Decimal(1) / 3])
def test_a_fraction_is_a_number(third):
    check = Exercise(right=lambda x: x / 3, cases=[Case("one", 1.0)])
    assert check(lambda x: third).passed
    assert not check(lambda x: 2 * third).passed


@pytest.mark.parametrize(
    ("got", "right", "same"),
    [
        (torch.tensor([1, 2]), torch.tensor([1, 2]), True),
        (torch.tensor([1, 3]), torch.tensor([1, 2]), False),
        (torch.tensor([True]), torch.tensor([False]), False),
        (torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan]), True),
        (torch.tensor([-torch.inf]), torch.tensor([-torch.inf]), True),
        (torch.tensor([torch.inf]), torch.tensor([-torch.inf]), False),
        (torch.zeros(1, 3), torch.zeros(3), False),  # nothing is broadcast
        (3, 3, True),
        (3.0, 3, True),
        (torch.tensor(3), 3, True),
        (np.int64(3), 3, True),
        ([np.float32(0.5), torch.tensor(3.0)], (0.5, 3.0), True),
        ({"a": np.bool_(True)}, {"a": True}, True),
        (10**400, 3, False),
        (-(10**400), 3.5, False),
        (True, 1, False),
        (1, True, False),
        (0.33333, 1 / 3, True),
        (0.333, 1 / 3, False),
        (torch.Size([2, 3]), (2, 3), True),
        ([2, 3], (2, 3), True),
        ((2, 3, 1), (2, 3), False),
        ({"a": 1.0}, {"a": 1}, True),
        ("Mary", "mary", False),
    ],
)
def test_close(got, right, same):
    assert close(got, right) is same


def test_a_tolerance_for_estimates():
    assert close(4.9, 5.0, (0.05, 0))
    assert not close(4.7, 5.0, (0.05, 0))


@pytest.mark.parametrize(
    ("got", "right", "words", "hidden"),
    [
        (3, 5, "you have 3; it should be 5", "3 is too small"),
        (8.0, 5, "you have 8; it should be 5", "8 is too large"),
        (103_872, 104_192, "you have 103,872; it should be 104,192", "103,872 is too small"),
        (103_872.0, 104_192, "you have 103,872; it should be 104,192", "103,872 is too small"),
        (10**20, 104_192, "you have 1e+20; it should be 1.042e+05", "1e+20 is too large"),
        (12_345.6, 12_399.9, "you have 1.235e+04; it should be 1.24e+04", "1.235e+04 is too small"),
        (0.12341, 0.12349, "you have 0.1234; it should be 0.1235", "0.1234 is too small"),
        (0.123451, 0.123452, "you have 0.123451; it should be 0.123452", "0.123451 is too small"),
        ("a", "b", "you have 'a'; it should be 'b'", "you have 'a', not right"),
        ((1, 2), (1, 4), "in item 1: you have 2; it should be 4", "in item 1: 2 is too small"),
        (
            torch.tensor([[0.0, 2.0]]),
            torch.zeros(1, 2),
            "at [0, 1] you have 2; it should be 0",
            "at [0, 1] you have 2, not right",
        ),
    ],
)
def test_first_difference(got, right, words, hidden):
    exact = (0, 0) if isinstance(right, float) else None
    assert first_difference(got, right, exact) == words
    assert first_difference(got, right, exact, reveal=False) == hidden


@pytest.mark.parametrize(
    ("got", "right", "words"),
    [
        ([1, 2], (1, 2, 3), "Your result is a list of 2; a tuple of 3 is expected."),
        ((1, 2), [1, 2, 3], "Your result is a tuple of 2; a list of 3 is expected."),
        (iter([1]), [1], "Your result is a list_iterator; a list of 1 is expected."),
        ([1, torch.ones(1)], [1, 2], "Item 1 of your result is a tensor of shape (1,); an int is"),
        ({"a": np.float32(1)}, {"a": True}, "Item 'a' of your result is a number; a bool is"),
        (10**400, 3, "Your result is inf: "),
        (
            torch.ones(2) / 2,
            torch.ones(2).long(),
            "Your result is `torch.float32`, not `torch.int64`: "
            "whole numbers are expected, as `//` gives them or `.long()` makes them.",
        ),
        ([-(10**400)], [0.5], "Item 0 of your result is -inf: "),
    ],
)
def test_the_form_of_a_result(got, right, words):
    assert form_mistake(got, right).startswith(words)


@pytest.mark.parametrize(
    ("got", "right"),
    [
        ([torch.tensor(1.0), np.float32(2)], [1.0, 2.0]),
        ({"a": np.bool_(True), "b": torch.tensor(False)}, {"a": True, "b": False}),
        ((3, 0.5), (torch.tensor(3), torch.tensor(0.5))),
    ],
)
def test_one_number_has_the_right_form_whatever_holds_it(got, right):
    assert form_mistake(got, right) is None


def test_a_right_value_that_no_check_can_compare_is_the_authors_mistake():
    with pytest.raises(TypeError, match="cannot compare with the type object"):
        close(1, object())


ODD = [
    0, 1.5, True, 10**400, -(10**5000), [10**400] * 2, "x", b"x", float("nan"), object(), object,
    [], (), {}, [[1, [2]]], np.ones(3),
    np.float32(2), np.array("x"), torch.tensor(3), torch.tensor(1 + 2j), torch.empty(0),
    torch.zeros(2, dtype=torch.bool), torch.eye(3).to_sparse(), torch.eye(3, device="meta"),
    torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    {1: 2, "a": None}, len, nn.ReLU(),
    torch.zeros(2, 3, dtype=torch.float8_e4m3fn), torch.tensor(float("nan")),
]  # fmt: skip
RIGHTS = [
    torch.zeros(2, 3),
    torch.tensor(False),
    7,
    0.5,
    False,
    "word",
    (torch.zeros(2), 3),
    {"a": 1},
]


@pytest.mark.slow
@pytest.mark.parametrize("right", RIGHTS, ids=repr)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_no_result_is_too_odd(right, odd):
    function = Exercise(right=lambda: right, cases=[Case("nothing")])
    for verdict in (function(lambda: odd), Exercise(right=right)(odd)):
        assert verdict.passed is False, verdict
        assert verdict.diagnosis
