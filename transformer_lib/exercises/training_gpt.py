"""Checks for chapter 12, Training on a GPU: the schedule, accumulation, clipping; and the rest."""

import math

import torch
from torch import Tensor

from .runner import Case, Exercise, randn
from .training_steps import check_decays, check_orthogonalize, check_utilization
from .verdict import Verdict

__all__ = [
    "check_accumulate",
    "check_clip",
    "check_decays",
    "check_orthogonalize",
    "check_schedule",
    "check_utilization",
]

# --- Exercise 1: the trapezoid ------------------------------------------------------------------


def _schedule(step: int, n_steps: int, n_up: int, n_down: int) -> float:
    if step < n_up:
        return step / n_up
    return min(1.0, (n_steps + 1 - step) / (n_down + 1))


def _all_steps(schedule, n_steps: int, n_up: int, n_down: int) -> dict:
    steps = range(1, n_steps + 1)
    return {f"step {step}": schedule(step, n_steps, n_up, n_down) for step in steps}


def _variant(up=None, down=None):
    """The right schedule with another rise or another fall, over all steps of a run."""

    def schedule(step, n_steps, n_up, n_down):
        if step < n_up:
            return up(step, n_up) if up else step / n_up
        if step <= n_steps - n_down:
            return 1.0
        left = n_steps - step
        return down(left, n_steps, n_up, n_down) if down else (left + 1) / (n_down + 1)

    return lambda *sizes: _all_steps(schedule, *sizes)


def _from_the_top(step, n_steps, n_up, n_down):
    if step < n_up:
        return step / n_up
    return (n_steps + 1 - step) / (n_steps + 1 - n_up)


SCHEDULE = Exercise(
    right=lambda n_steps, n_up, n_down: _all_steps(_schedule, n_steps, n_up, n_down),
    wrong={
        "There is no warm-up: below step n_up the factor is step / n_up.": _variant(
            up=lambda step, n_up: 1.0
        ),
        "The warm-up is one step late: the first step has the rate 0 and changes nothing. Steps "
        "count from 1.": _variant(up=lambda step, n_up: (step - 1) / n_up),
        "The warm-up is one step late: the first step has the rate 0, and 1 is reached after step "
        "n_up. Steps count from 1.": lambda *sizes: _all_steps(
            lambda step, n_steps, n_up, n_down: min(
                (step - 1) / n_up, 1.0, (n_steps + 1 - step) / (n_down + 1)
            ),
            *sizes,
        ),
        "The warm-up reaches 1 one step late: it should be 1 at step n_up.": lambda *sizes: (
            _all_steps(
                lambda step, n_steps, n_up, n_down: (
                    step / (n_up + 1)
                    if step <= n_up
                    else min(1.0, (n_steps + 1 - step) / (n_down + 1))
                ),
                *sizes,
            )
        ),
        "There is no decay: in the last n_down steps the factor falls to 0.": _variant(
            down=lambda left, n_steps, n_up, n_down: 1.0
        ),
        "The last step has the rate 0, so it changes nothing: 0 is reached one step after the "
        "last.": _variant(down=lambda left, n_steps, n_up, n_down: left / n_down),
        "The first step of the decay still has the factor 1: divide by n_down + 1, so that the "
        "step before the decay is the last full one.": _variant(
            down=lambda left, n_steps, n_up, n_down: (left + 1) / n_down
        ),
        "It falls from the end of the warm-up on: a trapezoid is level in between.": (
            lambda *sizes: _all_steps(_from_the_top, *sizes)
        ),
        "In the last n_down steps your factor rises.": _variant(
            down=lambda left, n_steps, n_up, n_down: (n_down - left) / (n_down + 1)
        ),
        "In the last n_down steps your factor rises, up to 1: count the steps that are left.": (
            _variant(down=lambda left, n_steps, n_up, n_down: (n_down - left) / n_down)
        ),
        "That is the cosine: the trapezoid falls in a straight line.": _variant(
            down=lambda left, n_steps, n_up, n_down: (
                (1 - math.cos(math.pi * (left + 1) / (n_down + 1))) / 2
            )
        ),
    },
    cases=[
        Case("11 steps, 3 up and 5 down", 11, 3, 5),
        Case("23 steps, 5 up and 7 down", 23, 5, 7),
    ],
    call=lambda answer, n_steps, n_up, n_down: _all_steps(answer, n_steps, n_up, n_down),
    praise="Right: up, level, down, and no step with a rate of 0.",
)


def check_schedule(answer) -> Verdict:
    """`answer(step, n_steps, n_up, n_down)`: the factor of the rate at this step, from 1."""
    return SCHEDULE.check(answer)


# --- Exercise 2: accumulation -------------------------------------------------------------------


def _accumulate(gradients: Tensor, counts: Tensor) -> Tensor:
    return (gradients * counts[:, None]).sum(0) / counts.sum()


ACCUMULATE = Exercise(
    right=_accumulate,
    wrong={
        "The mean of means: a target of a part with few targets weighs more than one of a part "
        "with many. Weigh each part by its targets.": lambda gradients, counts: gradients.mean(0),
        "The sum of the parts' gradients: each is a mean already, so the result is about as many "
        "times too large as there are parts.": lambda gradients, counts: gradients.sum(0),
        "Weighted, but never divided: the number of all targets is missing.": (
            lambda gradients, counts: (gradients * counts[:, None]).sum(0)
        ),
        "You divide by the number of parts where the number of all targets belongs.": (
            lambda gradients, counts: (gradients * counts[:, None]).mean(0)
        ),
        "The parts' sums, not their means, would have to be divided by all targets: a mean must "
        "be multiplied by its own count first.": lambda gradients, counts: (
            gradients.sum(0) / counts.sum()
        ),
        "The weights are the wrong way round: a part with many targets counts less.": (
            lambda gradients, counts: (gradients / counts[:, None]).sum(0) / (1 / counts).sum()
        ),
        "Only the last part's gradient: the others are forgotten, as by a zero_grad() inside the "
        "loop.": lambda gradients, counts: gradients[-1],
    },
    cases=[
        Case("3 parts of 5 parameters", randn(3, 5, seed=0), torch.tensor([7.0, 2.0, 11.0])),
        Case("2 parts of 7 parameters", randn(2, 7, seed=1), torch.tensor([1.0, 5.0])),
    ],
    axes="parameters",
    praise="Right: every target counts once, whichever part it came in.",
)


def check_accumulate(answer) -> Verdict:
    """`answer(gradients, counts)`: the gradient of the mean loss over all targets.

    gradients [parts, parameters], of each part's mean loss; counts [parts] -> [parameters].
    """
    return ACCUMULATE.check(answer)


# --- Exercise 3: clipping -----------------------------------------------------------------------


def _by(factor):
    """All gradients times one factor of their numbers and the limit."""

    def clip(gradients, limit):
        numbers = torch.cat([gradient.flatten() for gradient in gradients])
        return [gradient * factor(numbers, limit) for gradient in gradients]

    return clip


def _each(gradients, limit):
    return [gradient * min(1.0, limit / float(gradient.norm())) for gradient in gradients]


CLIP = Exercise(
    right=_by(lambda numbers, limit: limit / max(limit, float(numbers.norm()))),
    wrong={
        "Each tensor by its own norm: that bends the direction of the step. There is one norm, of "
        "all numbers together.": _each,
        "Each number is cut off: that bends the direction. All numbers are multiplied by one "
        "factor.": lambda gradients, limit: [g.clamp(-limit, limit) for g in gradients],
        "Gradients that are shorter than the limit are made longer: the factor is at most 1.": _by(
            lambda numbers, limit: limit / float(numbers.norm())
        ),
        "A root is missing: the norm is the root of the sum of squares.": _by(
            lambda numbers, limit: min(1.0, limit / float(numbers.square().sum()))
        ),
        "That is the sum of absolute values; the norm is the root of the sum of squares.": _by(
            lambda numbers, limit: min(1.0, limit / float(numbers.abs().sum()))
        ),
        "That is the largest number; the norm is the root of the sum of all squares.": _by(
            lambda numbers, limit: min(1.0, limit / float(numbers.abs().max()))
        ),
        "The root of the mean of squares: the norm sums them.": _by(
            lambda numbers, limit: min(1.0, limit / float(numbers.square().mean().sqrt()))
        ),
        "The norms of the tensors are added: square them first, and take the root at the end.": (
            lambda gradients, limit: [
                g * min(1.0, limit / float(sum(x.norm() for x in gradients))) for g in gradients
            ]
        ),
        "Nothing is clipped: what is longer than the limit must be shortened to it.": (
            lambda gradients, limit: [g.clone() for g in gradients]
        ),
    },
    cases=[
        Case("a matrix and a vector", [randn(3, 5, seed=2), 0.5 * randn(7, seed=3)], 1.0),
        Case("a gradient that is short", [0.1 * randn(5, 2, seed=4), 0.1 * randn(3, seed=5)], 2.0),
        Case("three tensors", [randn(2, 3, seed=6), randn(5, seed=7), 4 * randn(2, seed=8)], 0.5),
        Case("gradients that are all 0", [torch.zeros(3, 2), torch.zeros(5)], 1.0, edge=True),
    ],
    praise="Right: one norm, one factor, and the direction stays.",
)


def check_clip(answer) -> Verdict:
    """`answer(gradients, limit)`: a list of the gradients, together at most `limit` long."""
    return CLIP.check(answer)
