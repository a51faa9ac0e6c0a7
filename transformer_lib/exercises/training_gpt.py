"""Checks for chapter 12, training on a GPU."""

import math

import torch
from torch import Tensor, nn

from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- Exercise 1: the trapezoid --------------------------------------------------------------------


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


# --- Exercise 2: accumulation ---------------------------------------------------------------------


def _accumulate(gradients: Tensor, counts: Tensor) -> Tensor:
    return (gradients * counts[:, None]).sum(0) / counts.sum()


check_accumulate = Exercise(
    asks="""`answer(gradients, counts)`: the gradient of the mean loss over all targets.

    gradients [parts, parameters], of each part's mean loss; counts [parts] -> [parameters].
    """,
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
        "The weights are the wrong way around: a part with many targets counts less.": (
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


# --- Exercise 3: clipping -------------------------------------------------------------------------


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


# --- Exercise 4: Newton and Schulz ----------------------------------------------------------------

A, B, C = 3.4445, -4.7750, 2.0315


def _step(x: Tensor) -> Tensor:
    products = x @ x.T
    return A * x + (B * products + C * products @ products) @ x


def _iterated(step=_step, size=torch.linalg.matrix_norm, extra=0):
    def orthogonalize(gradient, n_iterations):
        x = gradient / size(gradient)
        for _ in range(n_iterations + extra):
            x = step(x)
        return x

    return orthogonalize


def _other_side(x):
    """As the right step on a square matrix with X^T X; on others the shapes do not fit."""
    products = x.T @ x
    return A * x + (B * products + C * products @ products) @ x


def _exact(gradient, n_iterations):
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    return u @ vh


check_orthogonalize = Exercise(
    asks="""`answer(gradient, n_iterations)`: Newton and Schulz's iteration.

    gradient [rows, columns] -> the same shape.
    """,
    right=_iterated(),
    wrong={
        "Only the length of the gradient changes: run the iteration.": _iterated(step=lambda x: x),
        "Powers of each number: `**` and `*` work on the numbers, and the singular values need "
        "matrix products, `@`.": _iterated(step=lambda x: A * x + B * x**3 + C * x**5),
        "A² is a matrix product, A @ A: you square each number.": _iterated(
            step=lambda x: A * x + (B * (x @ x.T) + C * (x @ x.T) ** 2) @ x
        ),
        "A is X times Xᵀ: you have Xᵀ X, whose shape fits only a square matrix.": _iterated(
            step=_other_side
        ),
        "The first term is missing: a · X.": _iterated(step=lambda x: _step(x) - A * x),
        "The last term is missing: c · A² · X.": _iterated(
            step=lambda x: A * x + B * (x @ x.T) @ x
        ),
        "The gradient is not divided by its norm: the iteration needs singular values of at most "
        "1.": _iterated(size=lambda gradient: 1.0),
        "You divide by the largest singular value. It would do, but costs a decomposition: "
        "use the Frobenius norm, which is at least as large.": _iterated(
            size=lambda gradient: torch.linalg.matrix_norm(gradient, 2)
        ),
        "You divide by the largest number; the norm is the root of the sum of squares.": _iterated(
            size=lambda gradient: gradient.abs().max()
        ),
        "You divide by the sum of squares: the root is missing.": _iterated(
            size=lambda gradient: gradient.square().sum()
        ),
        "One iteration too few.": _iterated(extra=-1),
        "One iteration too many.": _iterated(extra=1),
        "That is U Vᵀ exactly, by a decomposition. Use the iteration, which needs only "
        "products.": _exact,
    },
    cases=[
        Case("a 5 × 5 gradient, 3 times", 0.3 * randn(5, 5, seed=0), 3),
        Case("a 3 × 7 gradient, 5 times", 0.3 * randn(3, 7, seed=1), 5),
    ],
    axes="rows columns",
    praise="Right: products of matrices alone, and all directions are about equally long.",
)


# --- Exercise 5: what decays ----------------------------------------------------------------------


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
    ],
    call=lambda answer, model: {name: answer(name, p) for name, p in model.named_parameters()},
    praise="Right: matrices decay, vectors do not, whatever their names.",
)


# --- Exercise 6: how busy is the machine? ---------------------------------------------------------


def _utilization(products=6.0, scores=12.0, by_layers=True, by_context=True):
    def share(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
        attention = scores * (n_layers if by_layers else 1) * (context if by_context else 1)
        return tokens_per_second * (products * n_parameters + attention * d_model) / peak

    return share


check_utilization = Exercise(
    asks="""`answer(tokens_per_second, n_parameters, n_layers, context, d_model, peak)`: a share.

    peak: floating point operations a second that the machine can do at best.
    """,
    right=_utilization(),
    wrong={
        "That is the forward pass alone: the backward pass costs twice as much again.": (
            _utilization(products=2.0, scores=4.0)
        ),
        "The products with parameters cost 6 operations a parameter: 2 forward, 4 backward. "
        "You count only the forward pass.": _utilization(products=2.0),
        "Attention's own products are counted only for the forward pass: 4, which the "
        "backward pass makes 12.": _utilization(scores=4.0),
        "Attention's products are missing: scores and averages multiply vectors, not parameters.": (
            _utilization(scores=0.0)
        ),
        "You count half of attention's products, those that a causal mask leaves. The convention "
        "counts them all.": _utilization(scores=6.0),
        "A multiplication and an addition are two operations: you count one.": _utilization(
            products=3.0, scores=6.0
        ),
        "Each layer has attention: multiply by n_layers.": _utilization(by_layers=False),
        "A token is compared with all tokens of the context: multiply by it.": _utilization(
            by_context=False
        ),
        "The reciprocal: it is what is done, divided by what could be done.": (
            lambda *given: 1 / _utilization()(*given)
        ),
        "That is in percent: return a share.": lambda *given: 100 * _utilization()(*given),
    },
    cases=[
        Case("a small GPT on a laptop", 13_000.0, 1_900_000, 4, 256, 192, 3e11),
        Case("GPT-2 small on a large GPU", 400_000.0, 85_000_000, 12, 1024, 768, 9.9e14),
    ],
    praise="Right: what the training needs, by what the machine could do.",
)
