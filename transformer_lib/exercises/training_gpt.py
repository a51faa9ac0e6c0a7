"""Checks for chapter 12, training: a schedule, a loop, clipping, decay, and reading curves."""

import math
from itertools import pairwise

import torch
from torch import nn

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import close
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


def _floored(step, n_steps, n_up, n_down):
    return min(step // n_up, 1, (n_steps + 1 - step) // (n_down + 1))


def _not_right(factors, *sizes):
    return not close(factors, _all_steps(_schedule, *sizes))


def _always_one(factors, *sizes):
    one, *others = factors.values()
    return all(close(y, one) for y in others) and (f"{one:.3g}",)


def _too_large(factors, *sizes):
    return next(((f"{y:.3g}", step) for step, y in factors.items() if y > 1 + 1e-6), None)


def _below_zero(factors, *sizes):
    return next(((f"{y:.3g}", step) for step, y in factors.items() if y < -1e-6), None)


def _no_rise(factors, n_steps, n_up, n_down):
    return n_up > 1 and not any(list(factors.values())[: n_up - 1])


def _full(factors):
    """The first and the last step at full rate."""
    steps = [n for n, y in enumerate(factors.values(), 1) if close(float(y), 1.0)]
    return (steps[0], steps[-1]) if steps else (0, 0)


def _rise_ends(factors, n_steps, n_up, n_down):
    first, _ = _full(factors)
    return (first, n_up) if first and first != n_up else None


def _fall_begins(factors, n_steps, n_up, n_down):
    _, last = _full(factors)
    return (last, n_steps - n_down) if last and last != n_steps - n_down else None


def _falls_to(factors, n_steps, n_up, n_down):
    last = float(factors[f"step {n_steps}"])
    right = 1 / (n_down + 1)
    return None if close(last, right) else (f"{last:.3g}", f"1 / {n_down + 1}")


def _bent(some):
    def applies(factors, n_steps, n_up, n_down):
        ys = [0.0, *map(float, factors.values()), 0.0]
        part = some(ys, n_steps, n_up, n_down)
        changes = [b - a for a, b in pairwise(part)]
        return len(changes) > 1 and not close(min(changes), max(changes))

    return applies


check_schedule = Exercise(
    asks="`answer(step, n_steps, n_up, n_down)`: the factor of the rate at this step, from 1.",
    right=lambda n_steps, n_up, n_down: _all_steps(_schedule, n_steps, n_up, n_down),
    wrong={
        "There is no warm-up: below step n_up the factor must be step / n_up.": _variant(
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
        "There is no decay: in the last n_down steps the factor must fall to 0.": _variant(
            down=lambda left, n_steps, n_up, n_down: 1.0
        ),
        "The last step has the rate 0, so it changes nothing: 0 must be reached one step after the "
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
        "`//` cuts to whole numbers, so that the factor is 0 or 1: divide with `/`.": (
            lambda *sizes: _all_steps(_floored, *sizes)
        ),
        "The rate is full from the first step to the last: nothing rises or falls.": (
            lambda *sizes: _all_steps(lambda *_: 1.0, *sizes)
        ),
    },
    also={
        "Your factor is {} at every step.": _always_one,
        "Your factor is {} at {}: it must be at most 1, in the level part.": _too_large,
        "Your factor is {} at {}: it falls to 0 and not below.": _below_zero,
        "Your factor is 0 until step n_up: it must rise by 1 / n_up in each step. Does a `//` cut "
        "it?": _no_rise,
        "Your factor is 1 at step {} for the first time: it must rise until step n_up, {} here.": (
            _rise_ends
        ),
        "Your factor is 1 at step {} for the last time. The fall takes the last n_down steps: step "
        "n_steps − n_down, {} here, is the last at full rate.": _fall_begins,
        "At the last step your factor is {}. In a straight line to 0 one step later, it would "
        "be {}.": (_falls_to),
        "The rise is not a straight line: each step adds 1 / n_up.": _bent(
            lambda ys, n_steps, n_up, n_down: ys[: n_up + 1]
        ),
        "The fall is not a straight line: each step takes 1 / (n_down + 1) away.": _bent(
            lambda ys, n_steps, n_up, n_down: ys[n_steps - n_down :]
        ),
        "From step n_up to step n_steps − n_down your factor is not always 1.": _not_right,
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
    also=[{7, 11, 13}],
    wrong={
        1: "The sum starts at 0, before the first step: what is wrong with it comes later.",
        2: "Steps count from 1, so that the schedule never gives a rate of 0 to a step that is "
        "taken.",
        3: "Each step takes the next batch.",
        4: "The forward pass, in whatever mode the model is. Which line sets the mode?",
        5: "The logits of all places and their targets in one row each: that is the mean loss.",
        6: "The gradient is computed once, of one batch.",
        7: "it comes too early for lines 8 and 9. Name those two, or this one in their place.",
        10: "Forgetting the gradient after the step is as good as forgetting it before the "
        "backward pass.",
        8: "the gradient is clipped when the step has been taken, and so in vain.",
        9: "the rate is set after the step: the first one is taken at the full rate, before any "
        "warm-up, and each later one at the rate of the step before it.",
        11: "`eval()` turns dropout off, and nothing turns it on again: from step 100 on, the "
        "model trains without.",
        12: "This line only measures and prints. Another line sets the mode that the model "
        "stays in.",
        13: "the sum is a tensor that remembers how it was computed, so that the record of every "
        "step so far stays in memory: `loss.item()` keeps the number alone.",
    },
    praise="Right: clip and rate come too late for their step, dropout stays off, and the sum "
    "keeps the record of every step.",
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


def _norms(gradients):
    return [float(gradient.norm()) for gradient in gradients]


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
        "That is the sum of absolute values; the norm is the root of the sum of squares.": _by(
            lambda numbers, limit: min(1.0, limit / float(numbers.abs().sum()))
        ),
        "That is the largest number; the norm is the root of the sum of all squares.": _by(
            lambda numbers, limit: min(1.0, limit / float(numbers.abs().max()))
        ),
        "The norms of the tensors are added: square them first, and take the root at the end.": (
            lambda gradients, limit: [
                g * min(1.0, limit / float(sum(x.norm() for x in gradients))) for g in gradients
            ]
        ),
        "You divide by the norm, whatever the limit is: together they are at most `limit` long, "
        "and not always 1.": _by(lambda numbers, limit: 1 / float(numbers.norm())),
        "You drop a gradient that is too long. Its direction is still good: shorten it.": _by(
            lambda numbers, limit: float(float(numbers.norm()) <= limit)
        ),
        "Nothing is clipped: what is longer than the limit must be shortened to it.": (
            lambda gradients, limit: [g.clone() for g in gradients]
        ),
        "That is the norm of the longest tensor; the norm is the root of the sum of all squares.": (
            lambda gradients, limit: [
                g * min(1.0, limit / max(_norms(gradients))) for g in gradients
            ]
        ),
        "That is the norm of the first tensor alone: all of them count together.": (
            lambda gradients, limit: [g * min(1.0, limit / _norms(gradients)[0]) for g in gradients]
        ),
        "That is the norm of the last tensor alone: all of them count together. (Is it overwritten "
        "in a loop?)": lambda gradients, limit: [
            g * min(1.0, limit / _norms(gradients)[-1]) for g in gradients
        ],
        "That is the mean of the tensors' norms; the norm is the root of the sum of all squares.": (
            lambda gradients, limit: [
                g * min(1.0, limit * len(gradients) / sum(_norms(gradients))) for g in gradients
            ]
        ),
        "You return the norm as well: return the list alone.": lambda gradients, limit: (
            _by(lambda numbers, limit: limit / max(limit, float(numbers.norm())))(gradients, limit),
            torch.tensor(math.hypot(*_norms(gradients))),
        ),
    },
    cases=[
        Case("a matrix and a vector", [randn(3, 5, seed=2), 0.5 * randn(7, seed=3)], 1.0),
        Case("a gradient that is short", [0.1 * randn(5, 2, seed=4), 0.1 * randn(3, seed=5)], 2.0),
        Case("three tensors", [randn(2, 3, seed=6), randn(5, seed=7), 4 * randn(2, seed=8)], 0.5),
        Case("a gradient that is just short enough", [0.6 * torch.ones(3, 3)], 2.0),
        Case("a gradient that is just too long", [0.2 * torch.ones(3, 3)], 0.5),
        Case("a gradient a little longer than it may be", [torch.ones(3, 3)], 2.0),
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


def _at_that_step(steps):
    """v and the step, in rates, so many steps after the long gradient."""
    steps = float(steps)
    if not 0 < steps < 1e6 or abs(steps / _short_steps(0.999) - 1) <= 0.03:
        return None
    v = 1 + (1 - 0.999) * (1000.0**2 - 1) * 0.999**steps
    return f"{steps:,.0f}", f"{v:.3g}", f"{v**-0.5:.2g}"


def _other_fading(steps):
    """By which other factor in each step v would come down to 4 in so many."""
    factor = (3 / 1e3) ** (1 / max(float(steps), 1))
    known = (0.9, 0.95, 0.99, 0.998, 0.9995, 0.9999)  # √0.999 is 0.9995, its square 0.998
    return next(((f"{x:g}",) for x in known if abs((1 - x) / (1 - factor) - 1) < 0.03), None)


check_recovery = Exercise(
    asks="The number of the last step after the long gradient that is shorter than half a rate.",
    right=float(_short_steps(0.999)),
    wrong={
        "That is the chapter's number, for β₂ = 0.95. Now v forgets fifty times as slowly.": float(
            _short_steps(0.95)
        ),
        "That is fifty times the chapter's number. The memory is fifty times longer, but the one "
        "gradient also enters v with a share fifty times smaller.": 50.0 * _short_steps(0.95),
        "1 / (1 − β₂) steps make v fade by a factor of e. How many times must it do so?": 1000.0,
        "v is the mean of *squares*: a gradient that is a thousand times too long enters it a "
        "million times too large.": 0.0,
        "The gradient enters v unsquared here. v is the mean of *squares*: a million enters it.": (
            math.log(3) / math.log(0.999)
        ),
        "The gradient enters v with the share 1 − β₂, not whole.": math.log(1e6 / 3) / 0.001,
        "The gradient enters v with the share 1 − β₂, not whole, and v must come down to 4.": (
            math.log(1e6) / 0.001
        ),
        "You wait until the strange square has faded to 1. Then v is 2, and a step 0.7 of the "
        "rate. It is half a rate where v is 4.": math.log(1e3) / 0.001,
        "You wait until the strange square has faded to 4. The other gradients keep v at 1 in any "
        "case: for v = 4, 3 must be left of it.": math.log(1e3 / 4) / 0.001,
        "That is where the strange square is half gone. How much of it may be left, if v is to be "
        "4?": math.log(2) / 0.001,
        "That is the number for β₂ = 0.99. PyTorch's v forgets ten times as slowly, with β₂ = "
        "0.999.": float(_short_steps(0.99)),
        "That is how fast m forgets, with β₁ = 0.9. What is remembered for longer is v.": (
            math.log(3e4) / -math.log(0.9)
        ),
        "That is the logarithm to base 10: use the natural one.": math.log10(1e3 / 3) / 0.001,
        "That is the logarithm to base 2: use the natural one.": math.log2(1e3 / 3) / 0.001,
        "√v comes down to 2 where v is 4. You let v itself come down to 2, and forget that 1 of it "
        "stays.": math.log(1e3 / 2) / 0.001,
    },
    also={
        "The number of a step is not negative. Both logarithms are: divide one by the other.": (
            lambda steps: float(steps) < 0
        ),
        "You let v fade by a factor of {} in each step. It should be β₂ = 0.999, for v and not "
        "for √v.": (_other_fading),
        "{} steps later v is about {}, so that the step is {} of the rate, not one half.": (
            _at_that_step
        ),
    },
    call=lambda answer: answer() if callable(answer) else answer,
    tolerance=(0.03, 0.0),
    praise=f"Right: {_short_steps(0.999):,} steps, for one odd batch. With β₂ = 0.95 it is "
    f"{_short_steps(0.95)}.",
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
        "Vectors decay, too: a gain or a bias that is pulled to 0 loses its purpose.": _by_rule(
            lambda name, p: True
        ),
        "Nothing decays: matrices should.": _by_rule(lambda name, p: False),
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
                    "row": nn.Parameter(torch.zeros(1, 7)),
                    "column": nn.Parameter(torch.zeros(7, 1)),
                    "pos_emb": nn.Parameter(torch.zeros(11, 5)),
                    "lm_head": nn.Parameter(torch.zeros(11, 5)),
                    "unembed_output": nn.Parameter(torch.zeros(5, 11)),
                    "attention": nn.Parameter(torch.zeros(5, 5)),
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
        "a": "nobody beats the grammar on stories that are new to both, except by chance, and "
        "this is ten times what chance does: the model sees its targets.",
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
