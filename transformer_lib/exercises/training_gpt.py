"""Checks for chapter 12, training: a schedule, a loop, clipping, decay, and reading curves."""

import math

import torch
from torch import nn

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- the trapezoid --------------------------------------------------------------------------------


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


check_schedule = Exercise(
    asks="`answer(step, n_steps, n_up, n_down)`: the factor of the rate at this step, from 1.",
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
        "The first step of the decay still has the factor 1: divide by n_down + 1, so that "
        "the step before the decay is the last at full rate.": _variant(
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
        "You take the highest of the three lines. At each step the lowest counts: min, not max.": (
            lambda *sizes: _all_steps(
                lambda step, n_steps, n_up, n_down: max(
                    step / n_up, 1.0, (n_steps + 1 - step) / (n_down + 1)
                ),
                *sizes,
            )
        ),
        "It falls from step n_down on: n_down is how many steps the fall takes, and it ends with "
        "the run.": lambda *sizes: _all_steps(
            lambda step, n_steps, n_up, n_down: (
                step / n_up
                if step < n_up
                else 1.0
                if step < n_down
                else (n_steps + 1 - step) / (n_down + 1)
            ),
            *sizes,
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


# --- a loop with mistakes -------------------------------------------------------------------------

check_loop = Choice(
    asks="Which lines of the loop are wrong? Their numbers.",
    right={8, 9, 11, 13},
    wrong={
        2: "Steps count from 1, so that the schedule never gives a rate of 0 to a step that is "
        "taken.",
        5: "The logits of all places and their targets in one row each: that is the mean loss.",
        6: "The gradient is computed once, of one batch.",
        7: "The step is taken here. Look at what must have happened before it, and has not.",
        10: "Forgetting the gradient after the step is as good as before the backward pass.",
        8: "the gradient is clipped when the step has been taken, and so in vain.",
        9: "the rate is set after the step: the first one is taken at the full rate, before any "
        "warm-up, and every other one at the rate of the step before it.",
        11: "`eval()` turns dropout off, and nothing turns it on again: from step 100 on, the "
        "model trains without.",
        13: "the sum is a tensor that remembers how it was computed, so that the record of every "
        "step so far stays in memory: `loss.item()` keeps the number alone.",
    },
    options=range(1, 14),
    otherwise="Line {} does what it should.",
    praise="Right: two lines come too late, one is never taken back, and one never lets go.",
)


# --- clipping -------------------------------------------------------------------------------------


def _by(factor):
    """All gradients times one factor of their numbers and the limit."""

    def clip(gradients, limit):
        numbers = torch.cat([gradient.flatten() for gradient in gradients])
        return [gradient * factor(numbers, limit) for gradient in gradients]

    return clip


def _each(gradients, limit):
    return [gradient * min(1.0, limit / float(gradient.norm())) for gradient in gradients]


check_clip = Exercise(
    asks="`answer(gradients, limit)`: a list of the gradients, together at most `limit` long.",
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
        "The other way around: what is shorter than the limit is made as long as it, and what is "
        "longer stays.": _by(lambda numbers, limit: max(1.0, limit / float(numbers.norm()))),
        "You divide by the norm, whatever the limit is: together they are at most `limit` long, "
        "and not always 1.": _by(lambda numbers, limit: 1 / float(numbers.norm())),
        "You drop a gradient that is too long. Its direction is still good: shorten it.": _by(
            lambda numbers, limit: float(float(numbers.norm()) <= limit)
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


# --- how long one gradient is remembered ----------------------------------------------------------


def _short_steps(beta_2: float, size: float = 1000.0) -> int:
    """How many steps after one gradient of this size are shorter than half of the rate.

    All other gradients are 1; the run before it was long. Of m little is left by then.
    """
    v, m = 1.0, 1.0
    for t in range(100_000):
        g = size if t == 0 else 1.0
        m, v = 0.9 * m + 0.1 * g, beta_2 * v + (1 - beta_2) * g**2
        if t > 100 and m / math.sqrt(v) >= 0.5:
            return t - 1
    raise ValueError(f"beta_2 = {beta_2} does not come back")


check_recovery = Exercise(
    asks="The number of the last step after the long gradient that is shorter than half a rate.",
    right=float(_short_steps(0.999)),
    wrong={
        "That is the chapter's number, for β₂ = 0.95. Now v forgets fifty times as slowly.": float(
            _short_steps(0.95)
        ),
        "That is fifty times the chapter's number. The memory is fifty times longer, but the one "
        "gradient also enters v with a share fifty times smaller.": 50.0 * _short_steps(0.95),
        "1 / (1 − β₂) steps make v fade by a factor of e. How often must it do so?": 1000.0,
        "v is the mean of *squares*: a gradient that is a thousand times too long enters it a "
        "million times too large.": 0.0,
        "The gradient enters v with the share 1 − β₂, not whole.": math.log(1e6 / 3) / 0.001,
        "The gradient enters v with the share 1 − β₂, not whole, and v must come down to 4.": (
            math.log(1e6) / 0.001
        ),
        "You wait until the strange square has faded to 1. Then v is 2, and a step 0.7 of the "
        "rate. It is half a rate where v is 4.": math.log(1e3) / 0.001,
    },
    call=lambda answer: answer() if callable(answer) else answer,
    tolerance=(0.03, 0.0),
    praise="Right: thousands of steps for one odd batch, where β₂ = 0.95 wastes some two hundred.",
)


# --- what decays ----------------------------------------------------------------------------------


def _named(**modules: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict(modules)


def _by_rule(rule):
    return lambda model: {name: rule(name, p) for name, p in model.named_parameters()}


check_decays = Exercise(
    asks="`answer(name, parameter)`: whether a parameter decays: True or False.",
    right=_by_rule(lambda name, p: p.ndim >= 2),
    wrong={
        "Everything decays: a gain or a bias that is pulled to 0 loses its purpose.": _by_rule(
            lambda name, p: True
        ),
        "Nothing decays: matrices do.": _by_rule(lambda name, p: False),
        "The wrong way around: vectors decay, matrices do not.": _by_rule(
            lambda name, p: p.ndim < 2
        ),
        "The gains of the norms decay: they are called `weight` too. Ask for the number of "
        "axes, not for the name.": _by_rule(lambda name, p: "bias" not in name),
        "You go by the word `norm`; in the second model the norms have other names. Ask for "
        "the number of axes.": _by_rule(lambda name, p: "bias" not in name and "norm" not in name),
        "The embedding is left out. It is a matrix, and decays in GPT's recipe.": _by_rule(
            lambda name, p: p.ndim >= 2 and "embedding" not in name
        ),
        "You go by size: a long vector is still a vector. Ask for the number of axes.": _by_rule(
            lambda name, p: p.numel() > 20
        ),
    },
    cases=[
        Case(
            "a small model",
            _named(
                embedding=nn.Embedding(11, 5),
                norm=nn.LayerNorm(5),
                expand=nn.Linear(5, 23),
                contract=nn.Linear(23, 5),
                final_norm=nn.LayerNorm(5),
            ),
        ),
        Case(
            "a model with other names",
            _named(
                wte=nn.Embedding(7, 29), scale=nn.LayerNorm(29), small=nn.Linear(3, 5, bias=False)
            ),
        ),
        Case(
            "a model with parameters that belong to no layer",
            nn.ParameterDict(
                {
                    "temperature": nn.Parameter(torch.tensor(0.5)),
                    "lookup": nn.Parameter(torch.zeros(5, 7)),
                    "gain": nn.Parameter(torch.ones(31)),
                }
            ),
            edge=True,
        ),
    ],
    call=lambda answer, model: {name: answer(name, p) for name, p in model.named_parameters()},
    praise="Right: matrices decay, vectors do not, whatever their names.",
)


# --- what is a mistake, and what is training? -----------------------------------------------------

check_bugs = Choice(
    asks="Which of the six runs have a mistake in their code? Letters.",
    right={"a", "c", "f"},
    wrong={
        "a": "nobody beats the grammar on stories that are new to both, but by chance, and this is "
        "ten times what chance does: the model sees its targets.",
        "b": "It has learned its stories by heart, as a large model does with few of them: too few "
        "data, and no mistake in the code.",
        "c": "a model that knows nothing costs ln V, about 3.1. This one is sure of itself and "
        "wrong before it has seen a word: it starts with numbers that are too large.",
        "d": "A plateau, and then a fall: that is what a model looks like while two parts that "
        "need each other are not yet there.",
        "e": "The rate falls to 0 there, and with it the noise that has held the loss up.",
        "f": "3.1355 is ln 23 to the last digit: the model gives all words the same probability, "
        "in every step. So no step ever changes it.",
    },
    praise="Right: below the floor, far above ln V, and the very same number: no rate mends these.",
)
