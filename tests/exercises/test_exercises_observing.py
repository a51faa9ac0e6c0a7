"""How a wrong result is related to the right one; and of several steps, the fewest wrong ones."""

import pytest
import torch

from transformer_lib.exercises.engine.observing import (
    Trial,
    of_an_input,
    of_count,
    of_results,
    of_shape,
    otherwise,
)
from transformer_lib.exercises.engine.runner import randn

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


WIDE, TALL = randn(3, 7, seed=1), randn(5, 2, seed=2)
WEIGHTS = [randn(n, n, seed=n).softmax(-1) for n in (3, 5)]
MASKS = [torch.ones(n, n).tril().bool() for n in (5, 7)]


def seen(change, *rights, **inputs):
    return of_results([Trial(change(right), right, {"x": right} | inputs) for right in rights])


@pytest.mark.parametrize(
    ("change", "rights", "words"),
    [
        (lambda x: -x, (WIDE, TALL), "Your result has the opposite sign."),
        (lambda x: 2 * x, (WIDE, TALL), "Your result is twice the right one."),
        (lambda x: x / 3, (WIDE, TALL), "Your result is 0.3333 times the right one."),
        (
            lambda x: x * x.shape[1] ** 0.5,
            (WIDE, TALL),
            "`x.shape[-1] ** 0.5` times the right one.",
        ),
        (lambda x: x / x.shape[0], (WIDE, TALL), "the right one divided by `x.shape[0]`."),
        (lambda x: x + 1, (WIDE, TALL), "Your result is too large by 1."),
        (lambda x: x**2, (WIDE, TALL), "Your result is the square of the right one."),
        (lambda x: x.abs(), (WIDE, TALL), "Your result lacks the signs of the right one."),
        (lambda x: x.clamp_min(0), (WIDE, TALL), "The negative numbers in your result"),
        (lambda x: x.flip(0), (WIDE, TALL), "has the right numbers in reverse order."),
        (lambda x: x.roll(1, 0), (WIDE, TALL), "has the right numbers one place too late."),
        (lambda x: x.flatten().sort().values.view(x.shape), (WIDE, TALL), "in other places."),
        (lambda w: w / 2 + 0.2, WEIGHTS, "Your weights must sum to 1 along axis 1; one row sums"),
        (lambda w: w.log().softmax(0), WEIGHTS, "in your result runs over the wrong axis"),
        (lambda m: ~m, MASKS, "Your result is inverted: True and False are swapped."),
        (lambda m: m.mT, MASKS, "Your result is transposed: rows and columns are swapped."),
        (lambda m: m | m.roll(1, 1), MASKS, "True in the future too, above the diagonal"),
        (lambda m: m & ~torch.eye(len(m)).bool(), MASKS, "False where True is right, and nowhere"),
        (lambda x: x.sin() + x[:1], (WIDE, TALL), ""),
    ],
)
def test_a_relation_is_seen_on_all_cases(change, rights, words):
    sentence = seen(change, *rights)
    assert words.lower() in sentence.lower()
    assert bool(sentence) == bool(words)


def test_of_one_number_in_one_case_nothing_is_said():
    assert of_results([Trial(torch.tensor(6.0), torch.tensor(3.0), {"n": 2})]) == ""


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (WIDE.mT, "the order of its axes"),
        (WIDE.unsqueeze(0), "in the shape (1, 3, 7)"),
        (WIDE.sum(1), "one sum too many, over axis 1"),
        (WIDE[1], "number 1 along axis 0 only"),
        (torch.stack([WIDE, WIDE.sin()]), "one of several along axis 0"),
        (torch.stack([WIDE - 1, torch.ones_like(WIDE)]), "sum over axis 0"),
        (WIDE[:2].sin(), ""),
    ],
)
def test_a_wrong_shape_tells_the_step(got, words):
    assert words in of_shape(got, WIDE)
    assert bool(of_shape(got, WIDE)) == bool(words)


@pytest.mark.parametrize(
    ("off", "words"),
    [
        (lambda d, n: -2 * d * n, "has `2 * d * n` too little."),
        (lambda d, n: n * n - d + 3, "has `3 + n ** 2` too much, and `d` too little."),
        (lambda d, n: d**2 * n**2 / 2, "has `0.5 * d ** 2 * n ** 2` too much."),
        (lambda d, n: d * (n // 2), ""),  # no sum of terms
        (lambda d, n: max(d, n), ""),  # equal to one in small numbers, or in these
        (lambda d, n: d**5, ""),
        (lambda d, n: (d + n + 1) ** 3, ""),  # more terms than anybody reads
        (lambda d, n: 0, ""),
    ],
)
def test_a_count_is_off_by_a_few_terms(off, words):
    sentence = of_count(off, ["d", "n"], [12, 7])
    assert sentence == (f"Your result {words}" if words else "")


LAYERS = [torch.nn.Linear(n, 7) for n in (3, 5)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y, layer, mask: y - layer.bias, "lacks `layer.bias`, which must be added."),
        (lambda y, layer, mask: y + layer.bias, "holds `layer.bias` once too often."),
        (lambda y, layer, mask: y + mask, "holds `mask` once too often."),
        (lambda y, layer, mask: y - 2 * layer.bias, ""),
    ],
)
def test_an_input_is_left_out_or_there_twice(change, words):
    trials = []
    for layer in LAYERS:
        mask, y = randn(2, 7, seed=3), layer(randn(2, layer.in_features, seed=4))
        given = {"layer": layer, "mask": mask}
        trials.append(Trial(change(y, **given).detach(), y.detach(), given))
    assert of_an_input(trials) == (f"Your result {words}" if words else "")
