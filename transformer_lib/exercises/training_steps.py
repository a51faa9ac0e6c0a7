"""Checks for chapter 12, exercises 4 to 6: Newton-Schulz, what decays, how busy a machine is."""

import torch
from torch import Tensor, nn

from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = ["check_decays", "check_orthogonalize", "check_utilization"]

# --- Exercise 4: Newton and Schulz --------------------------------------------------------------

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


ORTHOGONALIZE = Exercise(
    right=_iterated(),
    wrong={
        "Nothing happens to the gradient but its length: run the iteration.": _iterated(
            step=lambda x: x
        ),
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
        "You divide by the largest singular value. It would do, but costs a decomposition; the "
        "Frobenius norm bounds it, and is asked for.": _iterated(
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
        "That is U Vᵀ exactly, by the decomposition. Here the iteration is asked for, which gets "
        "by with products.": _exact,
    },
    cases=[
        Case("a 5 × 5 gradient, 3 times", 0.3 * randn(5, 5, seed=0), 3),
        Case("a 3 × 7 gradient, 5 times", 0.3 * randn(3, 7, seed=1), 5),
    ],
    axes="rows columns",
    praise="Right: products of matrices alone, and all directions are about equally long.",
)


def check_orthogonalize(answer) -> Verdict:
    """`answer(gradient, n_iterations)`: Newton and Schulz's iteration.

    gradient [rows, columns] -> the same shape.
    """
    return ORTHOGONALIZE.check(answer)


# --- Exercise 5: what decays --------------------------------------------------------------------


def _named(**modules: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict(modules)


def _by_rule(rule):
    return lambda model: {name: rule(name, p) for name, p in model.named_parameters()}


DECAYS = Exercise(
    right=_by_rule(lambda name, p: p.ndim >= 2),
    wrong={
        "Everything decays: a gain or a bias that is pulled to 0 loses its purpose.": _by_rule(
            lambda name, p: True
        ),
        "Nothing decays: matrices do.": _by_rule(lambda name, p: False),
        "The wrong way round: vectors decay, matrices do not.": _by_rule(
            lambda name, p: p.ndim < 2
        ),
        "The gains of the norms decay: they are called `weight` as well. Ask for the number of "
        "axes, not for the name.": _by_rule(lambda name, p: "bias" not in name),
        "You go by the word `norm`; in the second model the norms are called otherwise. Ask for "
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


def check_decays(answer) -> Verdict:
    """`answer(name, parameter)`: whether a parameter decays: True or False."""
    return DECAYS.check(answer)


# --- Exercise 6: how busy is the machine? -------------------------------------------------------


def _utilization(products=6.0, scores=12.0, by_layers=True, by_context=True):
    def share(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
        attention = scores * (n_layers if by_layers else 1) * (context if by_context else 1)
        return tokens_per_second * (products * n_parameters + attention * d_model) / peak

    return share


UTILIZATION = Exercise(
    right=_utilization(),
    wrong={
        "That is the forward pass alone: the backward pass costs twice as much again.": (
            _utilization(products=2.0, scores=4.0)
        ),
        "The products with parameters cost 6 a parameter: 2 forward, 4 backward. You count the "
        "forward pass alone.": _utilization(products=2.0),
        "Attention's own products are counted for the forward pass alone: 4, of which the backward "
        "pass makes 12.": _utilization(scores=4.0),
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
        "In percent; a share is asked for.": lambda *given: 100 * _utilization()(*given),
    },
    cases=[
        Case("a small GPT on a laptop", 13_000.0, 1_900_000, 4, 256, 192, 3e11),
        Case("GPT-2 small on a large GPU", 400_000.0, 85_000_000, 12, 1024, 768, 9.9e14),
    ],
    praise="Right: what the training needs, by what the machine could do.",
)


def check_utilization(answer) -> Verdict:
    """`answer(tokens_per_second, n_parameters, n_layers, context, d_model, peak)`: a share.

    peak: floating point operations a second that the machine can do at best.
    """
    return UTILIZATION.check(answer)
