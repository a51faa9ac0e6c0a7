"""Exercises 1 to 3 of chapter 12: right answers pass, each wrong one gets its own diagnosis."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from diagnoses import not_attempted, wrong

from transformer_lib.exercises.training_gpt import (
    check_accumulate,
    check_clip,
    check_decays,
    check_orthogonalize,
    check_schedule,
    check_utilization,
)
from transformer_lib.training.schedules import trapezoid

CHECKS = [
    check_schedule,
    check_accumulate,
    check_clip,
    check_orthogonalize,
    check_decays,
    check_utilization,
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_stub_is_not_attempted_yet(check):
    not_attempted(check)


# --- 1: the schedule ----------------------------------------------------------------------------


def by_the_library(step, n_steps, n_up, n_down):
    return trapezoid(step, n_steps, warmup=n_up, decay=n_down / n_steps)


def by_minimum(step, n_steps, n_up, n_down):
    return min(step / n_up, 1, (n_steps - step + 1) / (n_down + 1))


def of_numpy(step, n_steps, n_up, n_down):
    return np.float32(by_minimum(step, n_steps, n_up, n_down))


def of_tensors(*given):
    return torch.tensor([by_minimum(*given), 1.0]).min()


@pytest.mark.parametrize("answer", [by_the_library, by_minimum, of_numpy, of_tensors])
def test_schedule_right(answer):
    assert check_schedule(answer).passed


def lowered(**ends):
    """Straight lines with other ends: rise through (start, 0) and fall to 0 at `end`."""

    def schedule(step, n_steps, n_up, n_down):
        up = (step - ends.get("start", 0)) / ends.get("n_up", lambda n: n)(n_up)
        down = (n_steps + ends.get("end", 1) - step) / (n_down + ends.get("wide", 1))
        return min(up, 1.0, down)

    return schedule


def with_a_flat_beginning(step, n_steps, n_up, n_down):
    return 1 if step < n_up else by_minimum(step, n_steps, n_up, n_down)


def late(step, n_steps, n_up, n_down):
    return (step - 1) / n_up if step < n_up else by_minimum(step, n_steps, n_up, n_down)


def late_to_the_end(step, n_steps, n_up, n_down):
    return (step - 1) / n_up if step <= n_up else by_minimum(step, n_steps, n_up, n_down)


def triangle(step, n_steps, n_up, n_down):
    return min(step / n_up, (n_steps + 1 - step) / (n_steps + 1 - n_up))


def rising(step, n_steps, n_up, n_down, more=1):
    after = step - (n_steps - n_down)
    return after / (n_down + more) if after > 0 else min(step / n_up, 1.0)


def waving(step, n_steps, n_up, n_down):
    after = max(0, step - (n_steps - n_down)) / (n_down + 1)
    return min(step / n_up, (1 + math.cos(math.pi * after)) / 2)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (with_a_flat_beginning, "There is no warm-up"),
        (late, "The warm-up is one step late: the first step has the rate 0 and changes"),
        (late_to_the_end, "The warm-up is one step late: the first step has the rate 0, and 1"),
        (lowered(start=1), "The warm-up is one step late: the first step has the rate 0, and 1"),
        (lowered(n_up=lambda n: n + 1), "The warm-up reaches 1 one step late"),
        (lambda step, n_steps, n_up, n_down: min(1.0, step / n_up), "There is no decay"),
        (lowered(end=0, wide=0), "The last step has the rate 0"),
        (lowered(wide=0), "The first step of the decay still has the factor 1"),
        (triangle, "It falls from the end of the warm-up on"),
        (rising, "In the last n_down steps your factor rises."),
        (partial(rising, more=0), "In the last n_down steps your factor rises, up to 1"),
        (
            lambda step, n_steps, n_up, n_down: 0.7,
            "On 11 steps, 3 up and 5 down: in item 'step 1': you have 0.7, right is 0.3333.",
        ),
        (waving, "That is the cosine"),
    ],
)
def test_schedule_wrong(answer, diagnosis):
    wrong(check_schedule, answer, diagnosis)


# --- 2: accumulation ----------------------------------------------------------------------------


def by_weights(gradients, counts):
    return (counts / counts.sum()) @ gradients


def by_loop(gradients, counts):
    total = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        total = total + gradient * (count / counts.sum())
    return total


@pytest.mark.parametrize("answer", [by_weights, by_loop])
def test_accumulate_right(answer):
    assert check_accumulate(answer).passed


def test_accumulate_right_is_the_gradient_of_the_whole_batch():
    weight, data = torch.randn(5, requires_grad=True), torch.randn(9, 5)
    parts = data.split([2, 7])
    gradients = [torch.autograd.grad((part @ weight).pow(2).mean(), weight)[0] for part in parts]
    whole = torch.autograd.grad((data @ weight).pow(2).mean(), weight)[0]
    torch.testing.assert_close(by_weights(torch.stack(gradients), torch.tensor([2.0, 7.0])), whole)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda g, n: sum(g) / len(g), "The mean of means"),
        (lambda g, n: sum(g), "The sum of the parts' gradients"),
        (lambda g, n: n @ g, "Weighted, but never divided"),
        (lambda g, n: n @ g / len(n), "You divide by the number of parts"),
        (lambda g, n: sum(g) / sum(n), "The parts' sums, not their means"),
        (lambda g, n: (1 / n) @ g / (1 / n).sum(), "The weights are the wrong way round"),
        (lambda g, n: g[len(n) - 1] * 1, "Only the last part's gradient"),
    ],
)
def test_accumulate_wrong(answer, diagnosis):
    wrong(check_accumulate, lambda gradients, counts: answer(gradients, counts), diagnosis)


# --- 3: clipping --------------------------------------------------------------------------------


def by_pytorch(gradients, limit):
    holders = [torch.nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for holder, gradient in zip(holders, gradients, strict=True):
        holder.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(holders, limit)
    return [holder.grad for holder in holders]


def by_hand(gradients, limit):
    total = 0.0
    for gradient in gradients:
        for number in gradient.flatten().tolist():
            total += number**2
    scale = limit / max(total**0.5, limit)
    return [gradient * scale if scale < 1 else gradient * 1 for gradient in gradients]


@pytest.mark.parametrize("answer", [by_pytorch, by_hand])
def test_clip_right(answer):
    assert check_clip(answer).passed


def scaled(gradients, limit, length):
    return [g / max(1.0, float(length) / limit) for g in gradients]


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda gs, limit: [scaled([g], limit, g.norm())[0] for g in gs], "Each tensor by its own"),
        (lambda gs, limit: [g.clip(-limit, limit) for g in gs], "Each number is cut off"),
        (
            lambda gs, limit: [g * limit / torch.stack([x.norm() for x in gs]).norm() for g in gs],
            "Gradients that are shorter than the limit",
        ),
        (
            lambda gs, limit: scaled(gs, limit, sum((g * g).sum() for g in gs)),
            "A root is missing",
        ),
        (
            lambda gs, limit: scaled(gs, limit, sum(g.norm(1) for g in gs)),
            "That is the sum of absolute values",
        ),
        (
            lambda gs, limit: scaled(gs, limit, max(g.abs().max() for g in gs)),
            "That is the largest number",
        ),
        (
            lambda gs, limit: scaled(
                gs,
                limit,
                (sum((g * g).sum() for g in gs) / sum(g.numel() for g in gs)) ** 0.5,
            ),
            "The root of the mean of squares",
        ),
        (
            lambda gs, limit: scaled(gs, limit, sum(g.norm() for g in gs)),
            "The norms of the tensors are added",
        ),
        (lambda gs, limit: [g + 0 for g in gs], "Nothing is clipped"),
        (
            lambda gs, limit: scaled(gs, limit, max(g.norm() for g in gs)),
            "On a matrix and a vector: in item 0: at [0, 0] you have 0.1198, right is 0.1158.",
        ),
        (
            lambda gs, limit: torch.cat([g.flatten() for g in gs]),
            "On a matrix and a vector: your result is a tensor of shape (22,); a list of 2",
        ),
    ],
)
def test_clip_wrong(answer, diagnosis):
    wrong(check_clip, lambda gradients, limit: answer(gradients, limit), diagnosis)


@pytest.mark.parametrize(
    ("factor", "diagnosis"),
    [  # one tensor of zeros: a division of tensors gives NaN, of numbers an exception
        (lambda n, limit: min(1.0, limit / n.item()), "your answer raises ZeroDivisionError"),
        (lambda n, limit: torch.minimum(n, torch.tensor(limit)) / n, "item 0 of your result holds"),
    ],
)
def test_clip_of_zeros(factor, diagnosis):
    def answer(gradients, limit):
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        return [g * factor(norm, limit) for g in gradients]

    place = "Right on three tensors, but on gradients that are all 0: "
    wrong(check_clip, answer, place + diagnosis)


@pytest.mark.parametrize("number", [float, torch.Tensor.clone])
def test_a_mistake_in_clipping_is_named_whatever_it_does_to_zeros(number):
    def answer(gradients, limit):
        norm = number(torch.cat([g.flatten() for g in gradients]).norm())
        return [g * (limit / norm) for g in gradients]

    wrong(check_clip, answer, "Gradients that are shorter than the limit are made longer")


def test_clip_must_not_write_into_the_gradients():
    def in_place(gradients, limit):
        factor = min(1.0, limit / float(torch.cat([g.flatten() for g in gradients]).norm()))
        return [g.mul_(factor) for g in gradients]

    wrong(check_clip, in_place, "On a matrix and a vector: you write into the argument `gradients`")


def test_a_partial_is_an_answer_too():
    assert check_schedule(partial(by_minimum)).passed
