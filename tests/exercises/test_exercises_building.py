"""Results that are built step by step: the fewest wrong steps are named."""

import doctest

import torch

from transformer_lib.exercises.engine import building
from transformer_lib.exercises.engine.building import otherwise

MEAN = otherwise(
    [
        {"": lambda x: x, "the first is left out": lambda x: x[1:], "all twice": lambda x: x + x},
        {"": sum, "the largest counts": max},
        {"": len, "it is divided by 2": lambda x: 2, "there is no division": lambda x: 1},
    ],
    lambda some, add, count, x: add(some(x)) / count(some(x)),
)


def test_the_fewest_wrong_steps_are_named():
    assert MEAN(3.0, [1.0, 2.0, 6.0]) is None
    assert MEAN(4.5, [1.0, 2.0, 6.0]) == ("it is divided by 2",)
    assert MEAN(3.0, [2.0, 3.0, 6.0]) == ("the largest counts, and it is divided by 2",)


def test_three_wrong_steps_are_too_many_to_tell():
    assert MEAN(7.0, [9.0, 2.0, 7.0]) is None  # without the first, the largest, no division


def test_a_choice_that_raises_is_passed_over():
    assert MEAN(8.0, [8.0]) is None
    assert MEAN(4.0, [8.0]) == ("it is divided by 2",)


def test_one_number_must_be_very_near_and_a_tensor_need_not():
    doubled = otherwise([{"": 1.0, "it is doubled": 2.0}], lambda times, x: times * x)
    assert doubled(2.0001, 1.0) is None
    assert doubled(2.000001, 1.0) == ("it is doubled",)
    assert doubled(2.0001 * torch.ones(3), torch.ones(3)) == ("it is doubled",)


def test_the_example_runs():
    assert doctest.testmod(building).failed == 0
