"""Checks for chapter 03, why √d_k."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

# --- the variance of a score ----------------------------------------------------------------------

check_score_variance = Exercise(
    asks="""`answer(d_k)`: the variance of q·k, measured on random q and k of width d_k: a number.

    All components are independent, with mean 0 and variance 1. An error of ten percent is allowed.
    """,
    right=lambda d_k: float(d_k),
    wrong={
        "This is the standard deviation; the variance is its square.": lambda d_k: d_k**0.5,
        "This is 2 d_k. If you use q = k, then q·q is a sum of squares; q + k has this variance "
        "as well.": (lambda d_k: 2.0 * d_k),
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
    praise="Right: d_k products of variance 1 each, so the variance is d_k.",
)


# --- scaled weights -------------------------------------------------------------------------------


def _weights(q: Tensor, k: Tensor, factor: float) -> Tensor:
    return torch.softmax(q @ k.mT * factor, dim=-1)


check_scaled_weights = Repair(
    asks="""`answer(q, k)`: the attention weights of several sentences, scaled as in the paper.

    q and k [sentences, words, d_k] give [sentences, queries, keys].
    """,
    broken=lambda q, k: _weights(q, k, q.shape[-2] ** -0.5),
    unchanged="Which axis of the scores is as long as a query?",
    right=lambda q, k: _weights(q, k, q.shape[-1] ** -0.5),
    cases=[
        Case("8 words of width 8", randn(2, 8, 8, seed=28), randn(2, 8, 8, seed=29)),
        Case("3 sentences, 5 words, d_k 7", randn(3, 5, 7, seed=30), randn(3, 5, 7, seed=31)),
        Case("2 sentences, 11 words, d_k 13", randn(2, 11, 13, seed=32), randn(2, 11, 13, seed=33)),
        Case("1 sentence", randn(1, 3, 5, seed=41), randn(1, 3, 5, seed=42), edge=True),
    ],
    axes="sentences queries keys",
    praise="Right: divided by the square root of the width of a query.",
)


# --- the Jacobian of the softmax ------------------------------------------------------------------


def _jacobian(s: Tensor, scale: float) -> Tensor:
    p = torch.softmax(scale * s, dim=0)
    return scale * (torch.diag(p) - torch.outer(p, p))


check_softmax_jacobian = Exercise(
    asks="`answer(s, scale)`: the Jacobian of softmax(scale · s) with respect to s. [n] -> [n, n].",
    right=_jacobian,
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


check_temperature_for_entropy = Exercise(
    asks="`answer(s, entropy)`: the temperature at which softmax(s / τ) has this entropy, in nats.",
    right=_temperature,
    wrong={
        "This is the entropy at temperature 1; return the temperature.": lambda s, entropy: float(
            torch.distributions.Categorical(logits=s).entropy()
        ),
    },
    cases=[
        Case("5 scores, entropy 0.5", 2 * randn(5, seed=36), 0.5),
        Case("11 scores, entropy 2", 2 * randn(11, seed=37), 2.0),
        Case("10 scores of spread 6, entropy 2", 6 * randn(10, seed=38), 2.0),
        Case("3 scores in the hundreds, entropy 0.5", torch.tensor([300.0, 200.0, 1.0]), 0.5),
    ],
    tolerance=(5e-3, 1e-4),
    praise="Right: entropy grows with temperature, so a search by halving finds it.",
)


# --- PyTorch's start: predict, then run -----------------------------------------------------------

check_pytorch_width = Exercise(
    asks="""`answer(d_k)`: the width at which components of variance 1/3 spread scores as d_k does.

    At d_k they have variance 1. The answer is a number.
    """,
    right=lambda d_k: 9.0 * d_k,
    wrong={
        "That is the spread itself; you are asked for a width.": lambda d_k: d_k**0.5,
        "At the same width the spread is smaller: each product has variance 1/9, not 1.": (
            lambda d_k: d_k
        ),
        "You count the third once. A product has two factors, and each brings one.": lambda d_k: (
            3 * d_k
        ),
        "The products have variance 1/9, not 1/3; and it is their variances that add up.": (
            lambda d_k: 3**0.5 * d_k
        ),
        "You square once too often: a product of two components has variance 1/9, not 1/81.": (
            lambda d_k: 81 * d_k
        ),
    },
    cases=[Case("d_k = 64", 64), Case("d_k = 7", 7), Case("d_k = 1000", 1000)],
    tolerance=(0.1, 0.5),
    praise="Right: 9 d_k products of variance 1/9. With PyTorch's start the same thing happens, at "
    "nine times the width.",
)


# --- spot it: how often are these scores divided? -------------------------------------------------


def _times_scaled(score: Callable, d_k: int) -> int:
    source = torch.Generator().manual_seed(0)
    q, k = (torch.randn(100, d_k, generator=source) for _ in range(2))
    factor = (score(q, k) / (q @ k.T)).median().item()
    return round(-math.log(factor) / math.log(d_k**0.5))


def _raw(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT


def _scaled(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("...qd,...kd->...qk", q, k) / k.shape[-1] ** 0.5


def _queries_scaled(q: Tensor, k: Tensor) -> Tensor:
    return (q * q.shape[-1] ** -0.5) @ k.mT


def _scaled_twice(q: Tensor, k: Tensor) -> Tensor:
    return _scaled(q / q.shape[-1] ** 0.5, k)


check_times_scaled = Exercise(
    asks="""`answer(score, d_k)`: how many times score(q, k) divides by √d_k: 0, 1 or 2.

    score takes queries [m, d_k] and keys [n, d_k] and gives scores [m, n].
    """,
    right=_times_scaled,
    wrong={
        "You count the wrong way around: a spread of √d_k means that nobody has divided.": (
            lambda score, d_k: 2 - _times_scaled(score, d_k)
        ),
        "You always say 0: ask the function that you are given.": lambda score, d_k: 0,
        "You always say 1: ask the function that you are given.": lambda score, d_k: 1,
        "You always say 2: ask the function that you are given.": lambda score, d_k: 2,
        "You see whether it was divided, but not whether once or twice.": lambda score, d_k: min(
            1, _times_scaled(score, d_k)
        ),
        "You see whether it was divided twice, but not whether at all.": lambda score, d_k: max(
            1, _times_scaled(score, d_k)
        ),
        "This is the spread of the scores. What does it say about the number of divisions?": (
            lambda score, d_k: float(d_k) ** (0.5 * (1 - _times_scaled(score, d_k)))
        ),
    },
    cases=[
        Case("scores at width 64, as they are", _raw, 64),
        Case("scores at width 16, divided once", _scaled, 16),
        Case("queries divided, at width 101", _queries_scaled, 101),
        Case("scores at width 256, divided twice", _scaled_twice, 256),
        Case("scores at width 1009, as they are", _raw, 1009),
        Case("scores at width 29, divided twice", _scaled_twice, 29),
        Case("scores at width 7, as they are", _raw, 7, edge=True),
        Case("scores at width 7, divided twice", _scaled_twice, 7, edge=True),
        Case("scores at width 3, as they are", _raw, 3, edge=True),
        Case("scores at width 3, divided twice", _scaled_twice, 3, edge=True),
    ],
    also={
        "Your {:.3g} is not a whole number: round it.": lambda result, score, d_k: (
            (result,) if result % 1 else None
        ),
    },
    tolerance=(0.15, 0.05),
    praise="Right: one number, the spread right before the softmax, tells them apart.",
)


# --- the same training without the division -------------------------------------------------------


def _same_training(W_Q: Tensor, rate: float, start: float, step: float, other: float = 0) -> tuple:
    """Powers of d_k: of W_Q's start, of its rate, and of W_K's rate."""
    d_k = W_Q.shape[1]
    return W_Q * d_k**start, rate * d_k**step, rate * d_k**other


check_same_training = Exercise(
    asks="""`answer(W_Q, rate)`: (start of W_Q, its rate, W_K's rate) to train alike, unscaled.

    W_Q [d, d_k] is where the scaled attention starts, `rate` the learning rate of both matrices.
    """,
    right=lambda W_Q, rate: _same_training(W_Q, rate, -0.5, -1),
    wrong={
        "Nothing is changed yet: at the first step the scores would be √d_k times too large.": (
            lambda W_Q, rate: _same_training(W_Q, rate, 0, 0)
        ),
    },
    cases=[
        Case("5 features, d_k 7", randn(5, 7, seed=38), 0.5),
        Case("3 features, d_k 16", randn(3, 16, seed=39), 0.1),
        Case("11 features, d_k 2", randn(11, 2, seed=40), 3.0),
    ],
    axes=("feature component", "", ""),
    praise="Right: W_Q starts smaller and has a smaller rate, and W_K keeps its own.",
)


# --- which report says something? -----------------------------------------------------------------

check_fair_report = Choice(
    asks="Whose conclusion about the division by √d_k is supported by what they did? A letter.",
    right="c",
    wrong={
        "a": "One learning rate, and it is one that suits the division. What about the others?",
        "b": "Equal starts and all rates, but *cannot*? The runs were stopped after 100 steps.",
        "d": "Two things differ, the division and the start. Which of them made the difference?",
    },
    praise="Right: equal starts, equal data, several runs, each side at every rate, and two "
    "lengths. That it finds little makes it no worse.",
)
