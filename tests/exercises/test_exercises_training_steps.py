"""Exercises 4 to 6 of chapter 12: right answers pass, each wrong one gets its own diagnosis."""

import numpy as np
import pytest
import torch
from diagnoses import wrong

from transformer_lib.exercises.training_gpt import (
    check_decays,
    check_orthogonalize,
    check_utilization,
)
from transformer_lib.training.optimizers import orthogonalize

# --- 4: Newton and Schulz -----------------------------------------------------------------------


def on_singular_values(gradient, n_iterations):
    """The same on the singular values alone."""
    u, s, vh = torch.linalg.svd(gradient / gradient.norm(), full_matrices=False)
    for _ in range(n_iterations):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    return u @ torch.diag(s) @ vh


@pytest.mark.parametrize("answer", [orthogonalize, on_singular_values])
def test_orthogonalize_right(answer):
    assert check_orthogonalize(lambda gradient, n_iterations: answer(gradient, n_iterations)).passed


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


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda gradient, n_iterations: gradient / gradient.norm(), "Nothing happens"),
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
    ],
)
def test_orthogonalize_wrong(answer, diagnosis):
    wrong(check_orthogonalize, answer, diagnosis)


# --- 5: what decays -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        lambda p: p.ndim > 1,
        lambda p: len(p.shape) == 2,
        lambda p: np.bool_(p.ndim > 1),
        lambda p: torch.tensor(p.ndim > 1),
    ],
)
def test_decays_right(rule):
    assert check_decays(lambda name, parameter: rule(parameter)).passed


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda name, p: True, "Everything decays"),
        (lambda name, p: False, "Nothing decays"),
        (lambda name, p: p.ndim == 1, "The wrong way round"),
        (lambda name, p: name.endswith("weight"), "The gains of the norms decay"),
        (
            lambda name, p: not ("norm" in name or name.endswith("bias")),
            "You go by the word `norm`",
        ),
        (
            lambda name, p: not any(part in name for part in ("bias", "norm", "ln")),
            "You go by the word `norm`",
        ),
        (
            lambda name, p: p.ndim == 2 and not name.startswith("embedding"),
            "The embedding is left out",
        ),
        (lambda name, p: p.numel() >= 21, "You go by size"),
    ],
)
def test_decays_wrong(answer, diagnosis):
    wrong(check_decays, answer, diagnosis)


# --- 6: utilization -----------------------------------------------------------------------------


def in_words(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
    forward = 2 * n_parameters + n_layers * 2 * (2 * context * d_model)
    return 3 * forward * tokens_per_second / peak


def in_one_line(rate, n, layers, t, d, peak):
    return rate / peak * 6 * (n + 2 * layers * t * d)


@pytest.mark.parametrize("answer", [in_words, in_one_line])
def test_utilization_right(answer):
    assert check_utilization(answer).passed


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda *given: in_words(*given) / 3, "That is the forward pass alone"),
        (
            lambda r, n, m, t, d, p: r * (2 * n + 12 * m * t * d) / p,
            "The products with parameters cost 6",
        ),
        (
            lambda r, n, m, t, d, p: r * (6 * n + 4 * m * t * d) / p,
            "Attention's own products are counted for the forward pass",
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
        (lambda *given: 100 * in_words(*given), "In percent"),
    ],
)
def test_utilization_wrong(answer, diagnosis):
    wrong(check_utilization, lambda r, n, m, t, d, p: answer(r, n, m, t, d, p), diagnosis)
