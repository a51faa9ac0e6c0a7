"""Chapter 12's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math
from functools import partial

import numpy as np
import pytest
import torch
from diagnoses import exercises, judge

from transformer_lib.exercises import training_gpt
from transformer_lib.exercises.training_gpt import (
    check_accumulate,
    check_clip,
    check_decays,
    check_orthogonalize,
    check_schedule,
    check_utilization,
)
from transformer_lib.training.optimizers import orthogonalize
from transformer_lib.training.schedules import trapezoid

RIGHT, WRONG = {}, {}

# --- 1: the schedule ----------------------------------------------------------------------------


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
        "On 11 steps, 3 up and 5 down: all numbers of your result are equal, 0.7 each.",
    ),
    (waving, "That is the cosine"),
]


# --- 2: accumulation ----------------------------------------------------------------------------


def by_weights(gradients, counts):
    return (counts / counts.sum()) @ gradients


def by_loop(gradients, counts):
    total = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        total = total + gradient * (count / counts.sum())
    return total


RIGHT[check_accumulate] = [by_weights, by_loop]


def test_accumulate_right_is_the_gradient_of_the_whole_batch():
    weight, data = torch.randn(5, requires_grad=True), torch.randn(9, 5)
    parts = data.split([2, 7])
    gradients = [torch.autograd.grad((part @ weight).pow(2).mean(), weight)[0] for part in parts]
    whole = torch.autograd.grad((data @ weight).pow(2).mean(), weight)[0]
    torch.testing.assert_close(by_weights(torch.stack(gradients), torch.tensor([2.0, 7.0])), whole)


WRONG[check_accumulate] = [
    (lambda g, n: sum(g) / len(g), "The mean of means"),
    (lambda g, n: sum(g), "The sum of the parts' gradients"),
    (lambda g, n: n @ g, "Weighted, but never divided"),
    (lambda g, n: n @ g / len(n), "You divide by the number of parts"),
    (lambda g, n: sum(g) / sum(n), "The parts' sums, not their means"),
    (lambda g, n: (1 / n) @ g / (1 / n).sum(), "The weights are the wrong way around"),
    (lambda g, n: g[len(n) - 1] * 1, "Only the last part's gradient"),
]


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


RIGHT[check_clip] = [by_pytorch, by_hand]


def scaled(gradients, limit, length):
    return [g / max(1.0, float(length) / limit) for g in gradients]


WRONG[check_clip] = [
    (lambda gs, limit: [scaled([g], limit, g.norm())[0] for g in gs], "Each tensor by its own"),
    (lambda gs, limit: [g.clip(-limit, limit) for g in gs], "Each number is cut off"),
    (
        lambda gs, limit: [g * limit / torch.stack([x.norm() for x in gs]).norm() for g in gs],
        "Gradients that are shorter than the limit",
    ),
    (lambda gs, limit: scaled(gs, limit, sum((g * g).sum() for g in gs)), "A root is missing"),
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
        "in item 0: every number is wrong by the same factor: 1.035 times the right one.",
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
ON_ZEROS = "Right on three tensors, but on gradients that are all 0: "
WRONG[check_clip] += [
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


# --- 4: Newton and Schulz -----------------------------------------------------------------------


def on_singular_values(gradient, n_iterations):
    """The same on the singular values alone."""
    u, s, vh = torch.linalg.svd(gradient / gradient.norm(), full_matrices=False)
    for _ in range(n_iterations):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    return u @ torch.diag(s) @ vh


RIGHT[check_orthogonalize] = [orthogonalize, on_singular_values]


def terms(x, a=3.4445, b=-4.775, c=2.0315):
    return a * x + b * x @ x.mT @ x + c * x @ x.mT @ x @ x.mT @ x


def iterated(step, length=torch.Tensor.norm, times=lambda n: n):
    def answer(gradient, n_iterations):
        x = gradient / length(gradient)
        for _ in range(times(n_iterations)):
            x = step(x)
        return x

    return answer


def squared_elementwise(x):
    products = x @ x.mT
    return 3.4445 * x + (-4.775 * products + 2.0315 * products * products) @ x


def from_the_other_side(x):
    products = x.mT @ x
    return 3.4445 * x + (-4.775 * products + 2.0315 * products @ products) @ x


def by_decomposition(gradient, n_iterations):
    u, _, v = torch.svd(gradient)
    return u @ v.mT


WRONG[check_orthogonalize] = [
    (lambda gradient, n_iterations: gradient / gradient.norm(), "Only the length of the gradient"),
    (iterated(lambda x: 3.4445 * x - 4.775 * x**3 + 2.0315 * x**5), "Powers of each number"),
    (iterated(squared_elementwise), "A² is a matrix product"),
    (iterated(from_the_other_side), "A is X times Xᵀ"),
    (iterated(lambda x: terms(x, a=0)), "The first term is missing"),
    (iterated(lambda x: terms(x, c=0)), "The last term is missing"),
    (iterated(terms, length=lambda g: 1), "The gradient is not divided"),
    (
        iterated(terms, length=lambda g: torch.linalg.svdvals(g)[0]),
        "You divide by the largest singular value",
    ),
    (iterated(terms, length=lambda g: g.abs().max()), "You divide by the largest number"),
    (iterated(terms, length=lambda g: (g * g).sum()), "You divide by the sum of squares"),
    (iterated(terms, times=lambda n: n - 1), "One iteration too few"),
    (iterated(terms, times=lambda n: n + 1), "One iteration too many"),
    (by_decomposition, "That is U Vᵀ exactly"),
]


# --- 5: what decays -----------------------------------------------------------------------------


RIGHT[check_decays] = [
    lambda name, p: p.ndim > 1,
    lambda name, p: len(p.shape) == 2,
    lambda name, p: np.bool_(p.ndim > 1),
    lambda name, p: torch.tensor(p.ndim > 1),
]


WRONG[check_decays] = [
    (lambda name, p: True, "Everything decays"),
    (lambda name, p: False, "Nothing decays"),
    (lambda name, p: p.ndim == 1, "The wrong way around"),
    (lambda name, p: name.endswith("weight"), "The gains of the norms decay"),
    (lambda name, p: not ("norm" in name or name.endswith("bias")), "You go by the word `norm`"),
    (
        lambda name, p: not any(part in name for part in ("bias", "norm", "ln")),
        "You go by the word `norm`",
    ),
    (lambda name, p: p.ndim == 2 and not name.startswith("embedding"), "The embedding is left out"),
    (lambda name, p: p.numel() >= 21, "You go by size"),
]


# --- 6: utilization -----------------------------------------------------------------------------


def in_words(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
    forward = 2 * n_parameters + n_layers * 2 * (2 * context * d_model)
    return 3 * forward * tokens_per_second / peak


def in_one_line(rate, n, layers, t, d, peak):
    return rate / peak * 6 * (n + 2 * layers * t * d)


RIGHT[check_utilization] = [in_words, in_one_line]


WRONG[check_utilization] = [
    (lambda *given: in_words(*given) / 3, "That is the forward pass alone"),
    (
        lambda r, n, m, t, d, p: r * (2 * n + 12 * m * t * d) / p,
        "The products with parameters cost 6",
    ),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 4 * m * t * d) / p,
        "Attention's own products are counted only for the forward pass",
    ),
    (lambda r, n, m, t, d, p: 6 * r * n / p, "Attention's products are missing"),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 6 * m * t * d) / p,
        "You count half of attention's products",
    ),
    (lambda *given: in_words(*given) / 2, "A multiplication and an addition"),
    (lambda r, n, m, t, d, p: in_words(r, n, 1, t, d, p), "Each layer has attention"),
    (lambda r, n, m, t, d, p: in_words(r, n, m, 1, d, p), "A token is compared with all"),
    (lambda *given: 1 / in_words(*given), "The reciprocal"),
    (lambda *given: 100 * in_words(*given), "That is in percent"),
]


@pytest.mark.parametrize("exercise", exercises(training_gpt))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
