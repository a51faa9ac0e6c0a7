"""Chapter 12's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from diagnoses import exercises, judge_by

from transformer_lib.exercises import training_gpt
from transformer_lib.exercises.training_gpt import (
    check_bugs,
    check_clip,
    check_decays,
    check_loop,
    check_recovery,
    check_schedule,
)
from transformer_lib.training.schedules import trapezoid

RIGHT, WRONG = {}, {}

# --- the schedule ----------------------------------------------------------------------------


def by_the_library(step, n_steps, n_up, n_down):
    return trapezoid(step, n_steps, warmup=n_up, decay=n_down / n_steps)


def by_minimum(step, n_steps, n_up, n_down):
    return min(step / n_up, 1, (n_steps - step + 1) / (n_down + 1))


def of_numpy(step, n_steps, n_up, n_down):
    return np.float32(by_minimum(step, n_steps, n_up, n_down))


def of_tensors(*given):
    return torch.tensor([by_minimum(*given), 1.0]).min()


RIGHT[check_schedule] = [by_the_library, by_minimum, of_numpy, of_tensors]


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


WRONG[check_schedule] = [
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
        "On 11 steps, 3 up and 5 down: your factor is 0.7 at every step.",
    ),
    (waving, "That is the cosine"),
    (
        lambda step, n_steps, n_up, n_down: max(
            step / n_up, 1, (n_steps - step + 1) / (n_down + 1)
        ),
        "You take the highest",
    ),
    (
        lambda step, n_steps, n_up, n_down: (
            min(step / n_up, 1.0 if step < n_down else (n_steps - step + 1) / (n_down + 1))
            if step < n_up
            else (1.0 if step < n_down else (n_steps - step + 1) / (n_down + 1))
        ),
        "It falls from step n_down on",
    ),
]


def changed(change, where=lambda step, n_steps, n_up, n_down: True):
    def schedule(step, *sizes):
        right = by_minimum(step, *sizes)
        return change(right) if where(step, *sizes) else right

    return schedule


def in_the_fall(step, n_steps, n_up, n_down):
    return step > n_steps - n_down


def in_the_rise(step, n_steps, n_up, n_down):
    return step < n_up


def between(step, n_steps, n_up, n_down):
    return n_up < step < n_steps - n_down


ON_11 = "On 11 steps, 3 up and 5 down: "
WRONG[check_schedule] += [
    (
        lambda step, n_steps, n_up, n_down: min(
            step // n_up, 1, (n_steps + 1 - step) // (n_down + 1)
        ),
        "`//` cuts to whole numbers",
    ),
    (lambda *given: 1, "The rate is full from the first step to the last"),
    (lambda step, n_steps, n_up, n_down: step / n_up, f"{ON_11}your factor is 1.33 at step 4: it"),
    (
        changed(lambda y: y - 1, in_the_fall),
        f"{ON_11}your factor is -0.167 at step 7: it falls to 0",
    ),
    (changed(lambda y: 0, in_the_rise), f"{ON_11}your factor is 0 until step n_up"),
    (
        lowered(n_up=lambda n: n - 1),
        f"{ON_11}your factor is 1 at step 2 for the first time: it must rise until step n_up,",
    ),
    (
        lowered(wide=-1),
        f"{ON_11}your factor is 1 at step 8 for the last time. The fall takes the last n_down "
        "steps: step n_steps − n_down, 6 here,",
    ),
    (
        changed(lambda y: y * 0.5 + 0.1, in_the_fall),
        f"{ON_11}at the last step your factor is 0.183. In a straight line to 0 one step later, it "
        "would be 1 / 6.",
    ),
    (changed(math.sqrt, in_the_rise), f"{ON_11}the rise is not a straight line"),
    (changed(lambda y: round(3 * y) / 3 if y > 0.2 else y, in_the_fall), "the fall is not a str"),
    (changed(lambda y: 0.9, between), "step n_up to step n_steps − n_down your factor is not"),
]


# --- a loop with mistakes -----------------------------------------------------------------------

RIGHT[check_loop] = [{8, 9, 11, 13}, "8, 9, 11, 13", [13, 11, 9, 8], (8.0, 9.0, 11.0, 13.0)]
RIGHT[check_loop] += [{7, 11, 13}, [13, 7, 11]]  # the step moved down mends two lines at once
WRONG[check_loop] = [
    ([2, 8, 9, 11, 13], "Steps count from 1"),
    ([5, 8, 9, 11, 13], "The logits of all places"),
    ([6, 8, 9, 11, 13], "The gradient is computed once"),
    ([7, 8, 9, 11, 13], "7 does not belong: it comes too early for lines 8 and 9."),
    ([7, 9, 11, 13], "7 does not belong: it comes too early"),
    ([7, 13], "11 is missing: `eval()` turns dropout off"),
    ([7, 11, 12, 13], "This line only measures and prints."),
    ([8, 9, 10, 11, 13], "Forgetting the gradient after the step"),
    ([9, 11, 13], "8 is missing: the gradient is clipped when the step"),
    ([8, 11, 13], "9 is missing: the rate is set after the step"),
    ([8, 9, 13], "11 is missing: `eval()` turns dropout off"),
    ([8, 9, 11], "13 is missing: the sum is a tensor"),
    ([1, 8, 9, 11, 13], "The sum starts at 0"),
    ([3, 8, 9, 11, 13], "Each step takes the next batch."),
    ([4, 8, 9, 11, 13], "The forward pass, in whatever mode"),
    ([8, 9, 12, 13], "This line only measures and prints."),
    ([7, 8, 10, 12], "Each of your numbers is one too small: count from 1."),
    ([8, 9, 11, 14], "'14' is not among the choices: 1, 2, 3"),
]

# The lines as the exercise prints them; line 1 is the first.
LOOP = """\
total = 0.0
for step in range(1, n_steps + 1):
    inputs, targets = next(batches)
    logits = model(inputs)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), 1.0)
    set_rates(optimizer, schedule(step, n_steps))
    optimizer.zero_grad()
    if step % 100 == 0: model.eval()
    if step % 100 == 0: print(step, mean_loss(model, unseen))
    total += loss
""".splitlines()


def test_the_loop_of_the_exercise_has_its_mistakes_in_these_lines():
    words = {8: "clip_grad_norm_", 9: "set_rates", 11: "eval()", 13: "+= loss"}
    for number in check_loop.right:
        assert words[int(number)] in LOOP[int(number) - 1]
    chapter = Path(__file__).resolve().parents[2] / "chapters" / "12-training-gpt.ipynb"
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    numbered = "\n".join(f"{n:2}  {line}" for n, line in enumerate(LOOP, start=1))
    assert any(numbered in text for text in texts)


# --- how long one gradient is remembered --------------------------------------------------------


def measured(beta_2):
    """By PyTorch's own Adam: the last step shorter than half a rate after the long gradient."""
    x = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    adam = torch.optim.Adam([x], lr=1.0, betas=(0.9, beta_2))
    start, last = 20_000, 0
    for t in range(1, start + 8_000):
        before = x.item()
        x.grad = torch.tensor([1000.0 if t == start else 1.0], dtype=torch.float64)
        adam.step()
        if t > start + 20 and before - x.item() < 0.5:
            last = t - start
    return last


def estimated(beta_2):
    return math.log((1 - beta_2) * 1e6 / 3) / -math.log(beta_2)


RIGHT[check_recovery] = [estimated(0.999), 5800, torch.tensor(5806)]
WRONG[check_recovery] = [
    (189, "That is the chapter's number"),
    (9450, "That is fifty times the chapter's number"),
    (1000, "1 / (1 − β₂) steps make v fade"),
    (0, "v is the mean of *squares*: a gradient"),
    (-1098, "The gradient enters v unsquared here."),
    (math.log(1e6 / 3) / 0.001, "The gradient enters v with the share 1 − β₂, not whole."),
    (math.log(1e6) / 0.001, "The gradient enters v with the share 1 − β₂, not whole, and"),
    (math.log(1e3) / 0.001, "You wait until the strange square has faded to 1"),
    (math.log(4e-3) / math.log(0.999), "You wait until the strange square has faded to 4"),
    (693, "That is where the strange square is half gone."),
    (estimated(0.99), "That is the number for β₂ = 0.99."),
    (math.log(30_000) / -math.log(0.9), "That is how fast m forgets"),
    (2523, "That is the logarithm to base 10"),
    (math.log2(1000 / 3) * 1000, "That is the logarithm to base 2"),
    (math.log(500) * 1000, "√v comes down to 2 where v is 4."),
    (estimated(0.999) / 2, "You let v fade by a factor of 0.998 in each step."),
    (math.log(1000 / 3) / 0.01, "You let v fade by a factor of 0.99 in each step."),
    (math.log(1000 / 3) / 0.0005, "You let v fade by a factor of 0.9995 in each step."),
    (-estimated(0.999), "The number of a step is not negative."),
    (10_000, "10,000 steps later v is about 1.05, so that the step is 0.98 of the rate"),
    (np.float64(5000), "5,000 steps later v is about 7.72, so that the step is 0.36 of the rate"),
]


def test_recovery_is_what_pytorch_does():
    assert check_recovery(measured(0.999)).passed


# --- what is a mistake? -------------------------------------------------------------------------

RIGHT[check_bugs] = ["acf", {"a", "c", "f"}, "A, C, F"]
WRONG[check_bugs] = [
    ("cf", "a is missing: nobody beats the grammar"),
    ("af", "c is missing: a model that knows nothing"),
    ("ac", "f is missing: 3.1355 is ln 23"),
    ("abcf", "b does not belong: It has learned its stories by heart"),
    ("acdf", "d does not belong: A plateau, and then a fall"),
    ("acef", "e does not belong: The rate falls to 0 there"),
]


# --- clipping --------------------------------------------------------------------------------


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


RIGHT[check_clip] = [by_pytorch, by_hand]


def scaled(gradients, limit, length):
    return [g / max(1.0, float(length) / limit) for g in gradients]


def whole(gradients):
    return torch.cat([g.flatten() for g in gradients]).norm()


WRONG[check_clip] = [
    (lambda gs, limit: [scaled([g], limit, g.norm())[0] for g in gs], "Each tensor by its own"),
    (lambda gs, limit: [g.clip(-limit, limit) for g in gs], "Each number is cut off"),
    (
        lambda gs, limit: scaled(gs, limit, sum((g * g).sum() for g in gs)),
        "a square root is missing: `(sum((g * g).sum() for g in gs)) ** 0.5` in",
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
        "`/ sum(g.numel() for g in gs)` is too much",
    ),
    (
        lambda gs, limit: scaled(gs, limit, sum(g.norm() for g in gs)),
        "The norms of the tensors are added",
    ),
    (lambda gs, limit: [g + 0 for g in gs], "Nothing is clipped"),
    (
        lambda gs, limit: [
            g * max(1.0, limit / float(torch.cat([x.flatten() for x in gs]).norm())) for g in gs
        ],
        "here, at `mul`, your values depart",
    ),
    (
        lambda gs, limit: [g / float(torch.cat([x.flatten() for x in gs]).norm()) for g in gs],
        "You divide by the norm, whatever the limit is",
    ),
    (
        lambda gs, limit: [
            0 * g if torch.cat([x.flatten() for x in gs]).norm() > limit else g + 0 for g in gs
        ],
        "You drop a gradient that is too long",
    ),
    (
        lambda gs, limit: scaled(gs, limit, max(g.norm() for g in gs)),
        "That is the norm of the longest tensor",
    ),
    (lambda gs, limit: scaled(gs, limit, gs[0].norm()), "That is the norm of the first tensor"),
    (lambda gs, limit: scaled(gs, limit, gs[-1].norm()), "That is the norm of the last tensor"),
    (
        lambda gs, limit: scaled(gs, limit, sum(g.norm() for g in gs) / len(gs)),
        "That is the mean of the tensors' norms",
    ),
    (
        lambda gs, limit: (
            [g / limit if scaled(gs, limit, whole(gs))[0] is not g else g for g in gs]
            if whole(gs) > limit
            else gs
        ),
        "here, at `div`, your values depart",
    ),
    (
        lambda gs, limit: [g * (whole(gs) / limit) if whole(gs) > limit else g for g in gs],
        "with `lambda gs, limit: [g / (whole(gs) / limit) if",
    ),
    (
        lambda gs, limit: scaled(gs, limit, whole(gs)) if whole(gs) ** 2 > limit else gs,
        "`scaled(gs, limit, whole(gs))` belongs here in any case",
    ),
    (lambda gs, limit: (scaled(gs, limit, whole(gs)), whole(gs)), "You return the norm as well"),
    (
        lambda gs, limit: (
            scaled(gs, limit, whole(gs)) if whole(gs) > limit else [0.9 * g for g in gs]
        ),
        "`scaled(gs, limit, whole(gs))` belongs here in any case",
    ),
    (
        lambda gs, limit: torch.cat([g.flatten() for g in gs]),
        "On a matrix and a vector: your result is a tensor of shape (22,); a list of 2",
    ),
]


def of_the_norm(factor):
    def answer(gradients, limit):
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        return [g * factor(norm, limit) for g in gradients]

    return answer


def in_place(gradients, limit):
    factor = min(1.0, limit / float(torch.cat([g.flatten() for g in gradients]).norm()))
    return [g.mul_(factor) for g in gradients]


# Of zeros, a division of tensors gives NaN, one of numbers an exception. A mistake is named either
# way, and without one that is the mistake.
ON_ZEROS = "Right on a gradient a little longer than it may be, but on gradients that are all 0: "
WRONG[check_clip] += [
    (
        of_the_norm(lambda norm, limit: 1 / norm if norm > limit else 1.0),
        "Your `norm` is right. Line",
    ),
    (of_the_norm(lambda norm, limit: limit / norm), "Gradients that are shorter than the limit"),
    (of_the_norm(lambda norm, limit: limit / float(norm)), "Gradients that are shorter than the"),
    (
        of_the_norm(lambda norm, limit: min(1.0, limit / float(norm))),
        f"{ON_ZEROS}your answer raises ZeroDivisionError",
    ),
    (
        of_the_norm(lambda norm, limit: torch.minimum(norm, torch.tensor(limit)) / norm),
        f"{ON_ZEROS}item 0 of your result holds",
    ),
    (in_place, "On a matrix and a vector: you write into the argument `gradients`"),
]


RIGHT[check_schedule] += [partial(by_minimum)]


# --- what decays -----------------------------------------------------------------------------


RIGHT[check_decays] = [
    lambda name, p: p.ndim > 1,
    lambda name, p: len(p.shape) == 2,
    lambda name, p: np.bool_(p.ndim > 1),
    lambda name, p: torch.tensor(p.ndim > 1),
]


WRONG[check_decays] = [
    (lambda name, p: True, "Vectors decay, too"),
    (lambda name, p: p.numel() > 1, "Vectors decay, too"),
    (lambda name, p: False, "Nothing decays"),
    (lambda name, p: p.ndim == 1, "with `p.ndim > 1` in place of `p.ndim == 1`"),
    (lambda name, p: name.endswith("weight"), "The gains of the norms decay"),
    (lambda name, p: not ("norm" in name or name.endswith("bias")), "You go by the word `norm`"),
    (
        lambda name, p: not any(part in name for part in ("bias", "norm", "ln")),
        "You go by the word `norm`",
    ),
    (lambda name, p: p.ndim == 2 and not name.startswith("embedding"), "The embedding is left out"),
    (lambda name, p: p.numel() >= 21, "You go by size"),
    (
        lambda name, p: p.ndim > 1 and name.endswith("weight"),
        'the condition `name.endswith("weight")` is too much',
    ),
]


@pytest.mark.parametrize("exercise", exercises(training_gpt))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
