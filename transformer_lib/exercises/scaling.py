"""Checks for chapter 03, why √d_k."""

import torch
from torch import Tensor

from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- the variance of a score ----------------------------------------------------------------------

check_score_variance = Exercise(
    asks="""`answer(d_k)`: the variance of q·k, measured on random q and k of width d_k: a number.

    All components are independent, with mean 0 and variance 1. An error of ten percent is allowed.
    """,
    right=lambda d_k: float(d_k),
    wrong={
        "This is the standard deviation; the variance is its square.": lambda d_k: d_k**0.5,
        "This is 2 d_k. If you use q = k, then q·q is a sum of squares; q + k has it as well.": (
            lambda d_k: 2.0 * d_k
        ),
        "Your data are not centered: torch.rand has mean 1/2; use torch.randn.": (
            lambda d_k: 7 / 144 * d_k
        ),
        "This is near 0, as the mean of the scores is, and the variance of means: return the "
        "variance of the sums.": (lambda d_k: 0.0),
        "This is 1: you have not added up the d_k products, or have already divided by √d_k.": (
            lambda d_k: 1.0
        ),
        "One pair says nothing about a variance: draw a few thousand.": lambda d_k: float("nan"),
    },
    cases=[Case("d_k = 64", 64), Case("d_k = 257", 257), Case("d_k = 13", 13)],
    tolerance=(0.1, 0.5),
    measured=True,
    seconds=10,
    praise="Right: d_k products of variance 1 each, so the variance is d_k.",
)


# --- scaled weights -------------------------------------------------------------------------------


def _weights(q: Tensor, k: Tensor, factor: float) -> Tensor:
    return torch.softmax(q @ k.mT * factor, dim=-1)


check_scaled_weights = Exercise(
    asks="""`answer(q, k)`: the attention weights of several heads, scaled as in the paper.

    q and k [heads, tokens, d_k] give [heads, queries, keys]; d_model is heads times d_k.
    """,
    right=lambda q, k: _weights(q, k, q.shape[-1] ** -0.5),
    wrong={
        "The scores are not scaled at all.": lambda q, k: _weights(q, k, 1.0),
        "You divide by d_k; the standard deviation of a score is the square root of d_k.": (
            lambda q, k: _weights(q, k, 1 / q.shape[-1])
        ),
        "You divide by √d_model; each head's dot product has only d_k components.": lambda q, k: (
            _weights(q, k, (q.shape[0] * q.shape[-1]) ** -0.5)
        ),
        "You multiply by √d_k, which makes the scores still larger: divide.": lambda q, k: _weights(
            q, k, q.shape[-1] ** 0.5
        ),
        "You scale after the softmax: the rows no longer sum to 1 and stay as hard as before.": (
            lambda q, k: _weights(q, k, 1.0) / q.shape[-1] ** 0.5
        ),
        "You divide by the square root of the number of tokens, the wrong axis.": lambda q, k: (
            _weights(q, k, q.shape[-2] ** -0.5)
        ),
        "These are the scaled scores; the softmax over the keys is still missing.": (
            lambda q, k: q @ k.mT / q.shape[-1] ** 0.5
        ),
        "The softmax runs over the queries, not the keys.": lambda q, k: torch.softmax(
            q @ k.mT / q.shape[-1] ** 0.5, dim=-2
        ),
    },
    cases=[
        Case("3 heads, 5 tokens, d_k 7", randn(3, 5, 7, seed=30), randn(3, 5, 7, seed=31)),
        Case("2 heads, 11 tokens, d_k 13", randn(2, 11, 13, seed=32), randn(2, 11, 13, seed=33)),
    ],
    axes="heads queries keys",
    praise="Right: divided by the square root of the width of one head's query.",
)


# --- the Jacobian of the softmax ------------------------------------------------------------------


def _jacobian(s: Tensor, scale: float) -> Tensor:
    p = torch.softmax(scale * s, dim=0)
    return scale * (torch.diag(p) - torch.outer(p, p))


def _p(s: Tensor, scale: float) -> Tensor:
    return torch.softmax(scale * s, dim=0)


check_softmax_jacobian = Exercise(
    asks="`answer(s, scale)`: the Jacobian of softmax(scale · s) with respect to s. [n] -> [n, n].",
    right=_jacobian,
    wrong={
        "Only the diagonal: raising one score also lowers the weight of all the others.": (
            lambda s, scale: scale * torch.diag(_p(s, scale) * (1 - _p(s, scale)))
        ),
        "The sign of p pᵀ is wrong: raising one score takes weight from the others.": (
            lambda s, scale: (
                scale * (torch.diag(_p(s, scale)) + torch.outer(_p(s, scale), _p(s, scale)))
            )
        ),
        "The factor `scale` of the chain rule is missing: the softmax is taken of scale · s.": (
            lambda s, scale: torch.diag(_p(s, scale)) - torch.outer(_p(s, scale), _p(s, scale))
        ),
        "The scale is ignored: p must be the softmax of scale · s.": lambda s, scale: _jacobian(
            s, 1.0
        ),
        "p is the softmax of s, but the softmax is taken of scale · s.": lambda s, scale: (
            scale * _jacobian(s, 1.0)
        ),
        "p is the softmax of s / scale, but it is taken of scale · s.": lambda s, scale: (
            scale**2 * _jacobian(s, 1 / scale)
        ),
        "diag(p) is missing: only - p pᵀ is left.": lambda s, scale: (
            -scale * torch.outer(_p(s, scale), _p(s, scale))
        ),
        "p pᵀ is missing: only diag(p) is left.": lambda s, scale: scale * torch.diag(_p(s, scale)),
        "This divides by the scale; the chain rule multiplies by it.": lambda s, scale: (
            _jacobian(s, scale) / scale**2
        ),
    },
    cases=[
        Case("5 scores, scale 0.5", randn(5, seed=34), 0.5),
        Case("7 scores, scale 3", randn(7, seed=35), 3.0),
    ],
    axes="weights scores",
    praise="Right: scale · (diag(p) - p pᵀ).",
)


# --- a temperature for an entropy -----------------------------------------------------------------


def _temperature(s: Tensor, entropy: float) -> float:
    low, high = 1e-4, 1e4
    for _ in range(200):
        middle = (low * high) ** 0.5
        log_p = torch.log_softmax(s.double() / middle, dim=0)
        if float(-(log_p.exp() * log_p).sum()) < entropy:
            low = middle
        else:
            high = middle
    return (low * high) ** 0.5


_LN_2 = 0.6931471805599453

check_temperature_for_entropy = Exercise(
    asks="`answer(s, entropy)`: the temperature at which softmax(s / τ) has this entropy, in nats.",
    right=_temperature,
    wrong={
        "This is 1/τ, a factor of the scores; the temperature divides them.": (
            lambda s, entropy: 1 / _temperature(s, entropy)
        ),
        "Your entropy is in bits (log2); the one that you are given is in nats (log).": (
            lambda s, entropy: _temperature(s, entropy * _LN_2)
        ),
        "This is the entropy at temperature 1; return the temperature.": lambda s, entropy: float(
            torch.distributions.Categorical(logits=s).entropy()
        ),
        "This is the square root of the temperature: divide the scores by τ, not by τ².": (
            lambda s, entropy: _temperature(s, entropy) ** 0.5
        ),
        "This is always 1, whatever the entropy.": lambda s, entropy: 1.0,
    },
    cases=[
        Case("5 scores, entropy 0.5", 2 * randn(5, seed=36), 0.5),
        Case("11 scores, entropy 2", 2 * randn(11, seed=37), 2.0),
    ],
    tolerance=(5e-3, 1e-4),
    seconds=10,
    praise="Right: entropy grows with temperature, so a search by halving finds it.",
)
