"""Checks for chapter 07: the sinusoids, their shift, and pairs turned into halves.

The other two, rotary attention and ALiBi, stand in :mod:`positions_in_scores`.
"""

import functools
import inspect
import math
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.runner import Case, Exercise
from transformer_lib.exercises.verdict import Verdict
from transformer_lib.positions import shift_matrix, sinusoidal_encoding

__all__ = ["check_halves_order", "check_shift_matrix", "check_sinusoidal"]


def _in_default_dtype(answer: Any) -> Any:
    """The same function, float64 results rounded: there is no input whose dtype to keep."""
    if not inspect.isroutine(answer):
        return answer

    @functools.wraps(answer)
    def rounded(*inputs):
        result = answer(*inputs)
        double = isinstance(result, Tensor) and result.dtype == torch.float64
        return result.to(torch.get_default_dtype()) if double else result

    return rounded


def _encode(n_positions, exponents, *, first=0, flip=False) -> Tensor:
    """Sines and cosines of p / 10000^exponent; `exponents` holds one for each component."""
    positions = torch.arange(first, first + n_positions, dtype=torch.float64).unsqueeze(1)
    angles = positions * 10_000.0 ** -torch.as_tensor(exponents, dtype=torch.float64)
    components = torch.arange(angles.shape[1])
    sines = components % 2 == int(flip)
    return torch.where(sines, angles.sin(), angles.cos()).float()


def _pair(d_model) -> Tensor:
    return (torch.arange(d_model) // 2).double()


def _odd_component_minus_fraction(n_positions, d_model):
    component = torch.arange(d_model, dtype=torch.float64)
    exponents = torch.where(component % 2 == 1, component - 1 / d_model, component / d_model)
    return _encode(n_positions, exponents)


def _halves(n_positions, d_model):
    rows = sinusoidal_encoding(n_positions, d_model)
    return torch.cat((rows[:, 0::2], rows[:, 1::2]), dim=1)


def _multiplied(result, n_positions, d_model) -> str | None:
    growing = _encode(n_positions, -2 * _pair(d_model) / d_model)
    # Angles in the ten thousands: in float32 their sines are right to two decimals only.
    if d_model > 2 and (result - growing).abs().max() < 0.02:
        return "You multiply by 10000^(2i/d); the position is divided by it."
    return None


def _floored(n_positions, d_model):
    factor = -math.log(10_000.0) / d_model // 2
    return _encode(n_positions, -factor * 2 * _pair(d_model) / math.log(10_000.0))


SINUSOIDAL = Exercise(
    right=lambda n_positions, d_model: sinusoidal_encoding(n_positions, d_model),
    wrong={
        "Your positions count from 1; the first position is 0.": lambda n_positions, d_model: (
            _encode(n_positions, 2 * _pair(d_model) / d_model, first=1)
        ),
        "All sines stand in the first half and all cosines in the second; each sine belongs "
        "beside the cosine of its angle, in 2i and 2i+1.": _halves,
        "Sine and cosine have changed places: 2i holds the sine.": lambda n_positions, d_model: (
            _encode(n_positions, 2 * _pair(d_model) / d_model, flip=True)
        ),
        "The cosine has an angle of its own: your exponent counts components. Components 2i and "
        "2i+1 share the exponent 2i/d.": lambda n_positions, d_model: _encode(
            n_positions, torch.arange(d_model) / d_model
        ),
        "The exponent is doubled, and the cosine has an angle of its own: the 2i of the formula "
        "is the component already.": lambda n_positions, d_model: _encode(
            n_positions, 2 * torch.arange(d_model) / d_model
        ),
        "The exponent is doubled: the 2i of the formula is the component already, not the "
        "pair.": lambda n_positions, d_model: _encode(n_positions, 4 * _pair(d_model) / d_model),
        "The exponent is i/d, half of what it must be: 2i/d for pair i.": (
            lambda n_positions, d_model: _encode(n_positions, _pair(d_model) / d_model)
        ),
        "The cosine's exponent is j − 1/d for component j: brackets are missing, it is "
        "(j − 1)/d.": _odd_component_minus_fraction,
        "`-log(10000) / d // 2` is evaluated from left to right and rounded down to -1: write "
        "`-log(10000) / d`, times 2i.": _floored,
    },
    cases=[
        Case("11 positions and 10 components", 11, 10),
        Case("7 positions and 4 components", 7, 4),
        Case("3 positions and 2 components", 3, 2),
    ],
    axes="positions d_model",
    also=[_multiplied],
    praise="Right: each pair is a clock hand, from the fastest to the slowest.",
)


def check_sinusoidal(answer) -> Verdict:
    """`answer(n_positions, d_model)`: the sinusoidal encoding [positions, d_model], base 10000."""
    return SINUSOIDAL.check(_in_default_dtype(answer))


def _blocks(offset, d_model, *, frequencies=None, minus=-1.0) -> Tensor:
    """2 × 2 blocks [[cos, sin], [minus · sin, cos]] down the diagonal."""
    if frequencies is None:
        frequencies = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = offset * frequencies
    rows = torch.stack((angles.cos(), angles.sin(), minus * angles.sin(), angles.cos()), dim=-1)
    return torch.block_diag(*rows.unflatten(-1, (2, 2))).float()


def _half_blocks(offset, d_model):
    order = torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))
    return shift_matrix(offset, d_model)[order][:, order]


def _from_zero_only(offset, d_model):
    zero, target = sinusoidal_encoding(1, d_model)[0], _blocks(offset, d_model)
    return torch.outer(target @ zero, zero) / (d_model / 2)


SHIFT_MATRIX = Exercise(
    right=lambda offset, d_model: shift_matrix(offset, d_model),
    wrong={
        "This is the transpose, R(−k): it takes PE(p) back to PE(p − k). In the order (sine, "
        "cosine) the minus stands below the diagonal.": lambda offset, d_model: shift_matrix(
            -offset, d_model
        ),
        "The blocks are laid out for all sines first, then all cosines; here each sine stands "
        "beside its cosine.": _half_blocks,
        "Every block turns by the same angle: pair i needs its own frequency, "
        "10000^(−2i/d).": lambda offset, d_model: _blocks(
            offset, d_model, frequencies=torch.ones(d_model // 2, dtype=torch.float64)
        ),
        "The offset is not used: this matrix moves on by one position.": lambda offset, d_model: (
            shift_matrix(1, d_model)
        ),
        "A minus is missing: one of the two sines in each block is negative.": (
            lambda offset, d_model: _blocks(offset, d_model, minus=1.0)
        ),
        "Your matrix is right for position 0 only: R(k) must take every PE(p) to PE(p + k), so "
        "it may depend on k, but not on a position.": _from_zero_only,
    },
    cases=[
        Case("offset 3 and 10 components", 3, 10),
        Case("offset −2 and 6 components", -2, 6),
        Case("offset 7 and 4 components", 7, 4),
    ],
    axes="d_model d_model",
    praise="Right: one rotation moves every position by the same distance.",
)


def check_shift_matrix(answer) -> Verdict:
    """`answer(offset, d_model)`: R with PE(p + offset) = R PE(p), [d_model, d_model]."""
    return SHIFT_MATRIX.check(_in_default_dtype(answer))


def _order(d_head) -> Tensor:
    return torch.cat((torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)))


HALVES_ORDER = Exercise(
    right=lambda d_head: _order(d_head),
    wrong={
        "This is the way back, from halves to pairs: the inverse of the order asked for.": (
            lambda d_head: _order(d_head).argsort()
        ),
        "Nothing moves: component 2i+1 has to go to i + d/2.": lambda d_head: torch.arange(d_head),
        "The second components of the pairs come first; they belong in the second half.": (
            lambda d_head: _order(d_head).roll(d_head // 2)
        ),
        "You swap the halves; it is the pairs that have to be taken apart.": lambda d_head: (
            torch.arange(d_head).roll(d_head // 2)
        ),
    },
    cases=[Case("10 components", 10), Case("6 components", 6), Case("2 components", 2)],
    axes="d_head",
    praise="Right: first all first components, then all second ones.",
)


def check_halves_order(answer) -> Verdict:
    """`answer(d_head)`: the order in which pairs (2i, 2i+1) become halves (i, i + d/2)."""
    return HALVES_ORDER.check(answer)
