"""Checks for chapter 07: the hands' speeds, the sinusoids, their shift, how many hands turn."""

import math
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise
from transformer_lib.positions import shift_matrix, sinusoidal_encoding

# --- which of these give the angles?

check_right_angles = Choice(
    asks="Which of the six lines give the angles of the paper's hands? All letters that belong.",
    right={"a", "b", "d"},
    wrong={
        "a": "it is the formula as it stands.",
        "b": "e^(−ln(10000) · 2i/d) is 10000^(−2i/d).",
        "c": "`//` comes last and rounds −ln(10000) / d down to −1, so all but a few hands stand "
        "still.",
        "d": "each hand is slower than the one before by the same factor, 10000^(2/d).",
        "e": "the `arange` holds 2i already, and d // 2 doubles the exponent once more.",
        "f": "the last hand gets the exponent 1; by the formula it is (d − 2)/d. (The "
        "authors' own code does as you do, and no model minds.)",
    },
    praise="Right: three ways to write one ladder of speeds.",
)


# --- the sinusoidal encoding


def _in_default_dtype(result: Any) -> Any:
    """A float64 result, rounded: there is no input whose dtype to keep."""
    double = isinstance(result, Tensor) and result.dtype == torch.float64
    return result.to(torch.get_default_dtype()) if double else result


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


def _halves_from_one(n_positions, d_model):
    rows = _encode(n_positions, 2 * _pair(d_model) / d_model, first=1)
    return torch.cat((rows[:, 0::2], rows[:, 1::2]), dim=1)


def _split(n_positions, exponents, *, first=0) -> Tensor:
    """As in the code to be repaired: sines of the first half of the angles, cosines of the rest."""
    positions = torch.arange(first, first + n_positions, dtype=torch.float64).unsqueeze(1)
    sines, cosines = (positions / 10_000.0 ** exponents.double()).chunk(2, dim=1)
    return torch.cat((sines.sin(), cosines.cos()), dim=1).float()


def _own(d_model) -> Tensor:
    return torch.arange(d_model) / d_model


def _slow_pairs(n_positions, d_model):
    rows = _encode(n_positions, _pair(d_model) / d_model)
    return torch.cat((rows[:, 0::2], rows[:, 1::2]), dim=1)


def _hands(result, n_positions, d_model) -> Tensor | None:
    """How far each hand turns in a step, if the result is sines and cosines of such hands."""
    sines, cosines = result[:, 0::2].double(), result[:, 1::2].double()
    speeds = torch.atan2(sines[1], cosines[1]).remainder(2 * math.pi)
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] * speeds
    turned = torch.allclose(sines, angles.sin(), atol=1e-3)
    return speeds if turned and torch.allclose(cosines, angles.cos(), atol=1e-3) else None


def _another_base(result, n_positions, d_model) -> tuple[str] | None:
    speeds = _hands(result, n_positions, d_model)
    if speeds is None or d_model < 4 or not 0 < speeds[1] < 1:
        return None
    base = float(speeds[1]) ** (-d_model / 2)
    ladder = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    other = abs(base / 10_000 - 1) > 0.01 and torch.allclose(speeds, ladder, atol=1e-4)
    return (f"{base:,.0f}",) if other else None


def _other_speeds(result, n_positions, d_model) -> tuple | None:
    if (speeds := _hands(result, n_positions, d_model)) is None:
        return None
    right = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    wrong = ((speeds / right - 1).abs() > 0.01).nonzero().flatten().tolist()
    return (wrong[0], *(f"{x[wrong[0]]:.4g}" for x in (speeds, right))) if wrong else None


def _beyond_one(result, n_positions, d_model) -> tuple[str] | None:
    most = float(result.abs().max())
    return (f"{most:.4g}",) if most > 1.001 else None


check_sinusoidal = Exercise(
    asks="`answer(n_positions, d_model)`: the sinusoidal encoding [positions, d_model].",
    right=lambda n_positions, d_model: sinusoidal_encoding(n_positions, d_model),
    wrong={
        "All three mistakes are still there. What is the first row, which columns share an angle, "
        "and where does the sine of a pair stand?": lambda n_positions, d_model: _split(
            n_positions, _own(d_model), first=1
        ),
        "The positions are mended. Still, all sines stand in the first half, and no two columns "
        "share an angle.": lambda n_positions, d_model: _split(n_positions, _own(d_model)),
        "Sines and cosines alternate now. Still, positions count from 1, and the cosine has an "
        "angle of its own.": lambda n_positions, d_model: _encode(
            n_positions, _own(d_model), first=1
        ),
        "The angles are mended. Still, positions count from 1, and all sines stand in the first "
        "half.": _halves_from_one,
        "The exponents come in pairs now, but you still cut the angles into halves: the sines get "
        "the fast hands and the cosines the slow ones.": lambda n_positions, d_model: _split(
            n_positions, 2 * _pair(d_model) / d_model
        ),
        "The exponents come in pairs now. Still, positions count from 1, and the sines get the "
        "fast hands and the cosines the slow ones.": lambda n_positions, d_model: _split(
            n_positions, 2 * _pair(d_model) / d_model, first=1
        ),
        "Sine and cosine share an angle now, but the exponent of pair i is i/d, half of what it "
        "must be, and all sines stand in the first half.": _slow_pairs,
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
        "The cosine's exponent is j − 1/d for component j: parentheses are missing, it is (j "
        "− 1)/d.": _odd_component_minus_fraction,
    },
    cases=[
        Case("11 positions and 10 components", 11, 10),
        Case("7 positions and 4 components", 7, 4),
        Case("5 positions and 6 components", 5, 6),
    ],
    axes="positions d_model",
    also={
        "The hands have the speeds that belong to base {}; it should be 10000. Do you use "
        "another base, or is each exponent off by the same factor?": _another_base,
        "Each sine is beside the cosine of its hand, but the hands have wrong speeds: hand {} "
        "turns by {} in a step, and it should turn by {}.": _other_speeds,
        "Sines and cosines lie between −1 and 1, and your table reaches {}: are these the angles, "
        "or is it scaled?": _beyond_one,
    },
    adapt=_in_default_dtype,
    praise="Right: each pair is a clock hand, from the fastest to the slowest.",
)


# --- the matrix of a shift


def _blocks(offset, d_model, *, frequencies=None, minus=-1.0) -> Tensor:
    """2 × 2 blocks [[cos, minus · sin], [sin, cos]] down the diagonal."""
    if frequencies is None:
        frequencies = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = offset * frequencies
    rows = torch.stack((angles.cos(), minus * angles.sin(), angles.sin(), angles.cos()), dim=-1)
    return torch.block_diag(*rows.unflatten(-1, (2, 2))).float()


def _sines_on_the_diagonal(offset, d_model):
    angles = offset * 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    sine, cosine = angles.sin(), angles.cos()
    rows = torch.stack((sine, -cosine, cosine, sine), dim=-1)
    return torch.block_diag(*rows.unflatten(-1, (2, 2))).float()


def _half_blocks(offset, d_model):
    order = torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))
    return shift_matrix(offset, d_model)[order][:, order]


def _no_rotation(result, offset, d_model) -> tuple | None:
    squares = result.double().square().unflatten(1, (-1, 2)).sum(-1)
    within = squares[torch.arange(d_model), torch.arange(d_model) // 2]
    wrong = ((within - 1).abs() > 1e-3).nonzero().flatten().tolist()
    return (wrong[0] // 2, wrong[0], f"{within[wrong[0]]:.4g}") if wrong else None


def _only_the_blocks(offset, d_model):
    halves = torch.arange(0, d_model, 2)
    matrix = shift_matrix(offset, d_model)
    return torch.stack([matrix[i : i + 2, i : i + 2] for i in halves])


def _from_zero_only(offset, d_model):
    zero, target = sinusoidal_encoding(1, d_model)[0], _blocks(offset, d_model)
    return torch.outer(zero, zero @ target) / (d_model / 2)


check_shift_matrix = Exercise(
    asks="`answer(offset, d_model)`: R with PE(p + offset) = PE(p) R, [d_model, d_model].",
    right=lambda offset, d_model: shift_matrix(offset, d_model),
    wrong={
        "The blocks are laid out for all sines first, then all cosines; here each sine is "
        "next to its cosine.": _half_blocks,
        "Sine and cosine have changed places: at offset 0 each block must be the identity.": (
            _sines_on_the_diagonal
        ),
        "The offset is not used: this matrix moves on by one position.": lambda offset, d_model: (
            shift_matrix(1, d_model)
        ),
        "These are the blocks. They belong on the diagonal of one matrix: "
        "`torch.block_diag(*blocks)`.": _only_the_blocks,
        "Your matrix is right for position 0 only: R(k) must take every PE(p) to PE(p + k), so "
        "it may depend on k, but not on a position.": _from_zero_only,
    },
    cases=[
        Case("offset 3 and 10 components", 3, 10),
        Case("offset −2 and 6 components", -2, 6),
        Case("offset 7 and 4 components", 7, 4),
    ],
    axes="d_model d_model",
    also={
        "Block {} is not a rotation. Each row must hold a sine and a cosine of the same angle, "
        "whose squares sum to 1; those of row {} sum to {}.": _no_rotation,
    },
    adapt=_in_default_dtype,
    praise="Right: one rotation moves every position by the same distance.",
)


# --- how many hands turn?


def _turning(n_positions, d_model, base, *, full=2 * math.pi) -> int:
    """Hands whose wavelength, full · base^(2i / d), is at most n_positions."""
    waves = [full * base ** (2 * i / d_model) for i in range(d_model // 2)]
    return sum(wave <= n_positions for wave in waves)


def _all_turns(result, n_positions, d_model, base) -> bool:
    turns = [n_positions / (2 * math.pi * base ** (2 * i / d_model)) for i in range(d_model // 2)]
    totals = [sum(turns), sum(map(int, turns)), int(sum(turns)), round(sum(turns))]
    hands = _turning(n_positions, d_model, base)
    return result != hands and any(math.isclose(result, total) for total in totals)


check_turning_hands = Exercise(
    asks="`answer(n_positions, d_model, base)`: how many hands turn at least once. A whole number.",
    right=_turning,
    wrong={
        "Hand 0 counts, too: where hand i is the last one that turns, i + 1 hands do.": (
            lambda n, d, base: _turning(n, d, base) - 1
        ),
        "One turn is an angle of 2π: a wavelength is 2π · base^(2i/d).": lambda n, d, base: (
            _turning(n, d, base, full=1)
        ),
    },
    cases=[
        Case("512 positions, 512 components, base 10000", 512, 512, 10_000.0),
        Case("64 positions, 32 components, base 10000", 64, 32, 10_000.0),
        Case("100 positions, 26 components, base 500", 100, 26, 500.0),
        Case("5000 positions, 8 components, base 10: every hand", 5000, 8, 10.0),
        Case("3 positions: no hand", 3, 6, 50.0, edge=True),
    ],
    also={
        "These are all of the turns, added up. Count the hands that have made at least one.": (
            _all_turns
        ),
        "A number of hands is whole; {} is not.": lambda result, n, d, base: (
            (f"{result:.4g}",) if result % 1 else None
        ),
        "You count {} hands, more than the {} that there are.": lambda result, n, d, base: (
            (result, d // 2) if result > d // 2 else None
        ),
    },
    praise="Right: a hand has turned when its wavelength fits into the text.",
)
