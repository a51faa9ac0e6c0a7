"""Checks for chapter 07: the sinusoids, their shift, rotary positions, ALiBi, pairs into halves."""

import math
from typing import Any

import torch
from torch import Tensor

from transformer_lib.attention import attention
from transformer_lib.exercises.engine.runner import Case, Exercise, randn
from transformer_lib.positions import (
    alibi_slopes,
    apply_rotary,
    rotary_angles,
    shift_matrix,
    sinusoidal_encoding,
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


def _halves(n_positions, d_model):
    rows = sinusoidal_encoding(n_positions, d_model)
    return torch.cat((rows[:, 0::2], rows[:, 1::2]), dim=1)


def _multiplied(result, n_positions, d_model) -> bool:
    growing = _encode(n_positions, -2 * _pair(d_model) / d_model)
    # Angles in the ten thousands: in float32 their sines are right to two decimals only.
    return d_model > 2 and bool((result - growing).abs().max() < 0.02)


def _floored(n_positions, d_model):
    factor = -math.log(10_000.0) / d_model // 2
    return _encode(n_positions, -factor * 2 * _pair(d_model) / math.log(10_000.0))


check_sinusoidal = Exercise(
    asks="`answer(n_positions, d_model)`: the sinusoidal encoding [positions, d_model].",
    right=lambda n_positions, d_model: sinusoidal_encoding(n_positions, d_model),
    wrong={
        "Your positions count from 1; the first position is 0.": lambda n_positions, d_model: (
            _encode(n_positions, 2 * _pair(d_model) / d_model, first=1)
        ),
        "All sines are in the first half and all cosines in the second; each sine belongs "
        "next to the cosine of its angle, in 2i and 2i+1.": _halves,
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
        "The cosine's exponent is j − 1/d for component j: parentheses are missing, it is (j "
        "− 1)/d.": _odd_component_minus_fraction,
        "`-log(10000) / d // 2` is evaluated from left to right and rounded down to -1: write "
        "`-log(10000) / d`, times 2i.": _floored,
    },
    cases=[
        Case("11 positions and 10 components", 11, 10),
        Case("7 positions and 4 components", 7, 4),
        Case("3 positions and 2 components", 3, 2),
    ],
    axes="positions d_model",
    also={"You multiply by 10000^(2i/d); the position is divided by it.": _multiplied},
    adapt=_in_default_dtype,
    praise="Right: each pair is a clock hand, from the fastest to the slowest.",
)


# --- the matrix of a shift


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


check_shift_matrix = Exercise(
    asks="`answer(offset, d_model)`: R with PE(p + offset) = R PE(p), [d_model, d_model].",
    right=lambda offset, d_model: shift_matrix(offset, d_model),
    wrong={
        "This is the transpose, R(−k): it takes PE(p) back to PE(p − k). In the order (sine, "
        "cosine) the minus is below the diagonal.": lambda offset, d_model: shift_matrix(
            -offset, d_model
        ),
        "The blocks are laid out for all sines first, then all cosines; here each sine is "
        "next to its cosine.": _half_blocks,
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
    adapt=_in_default_dtype,
    praise="Right: one rotation moves every position by the same distance.",
)


# --- attention with rotary positions


def _turn(x: Tensor, factor: float = 1.0) -> Tensor:
    return apply_rotary(x, factor * rotary_angles(*x.shape))


def _turn_halves(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    paired = torch.stack((x[..., :half], x[..., half:]), dim=-1).flatten(-2)
    turned = _turn(paired)
    return torch.cat((turned[..., 0::2], turned[..., 1::2]), dim=-1)


def _add(x: Tensor) -> Tensor:
    return x + sinusoidal_encoding(*x.shape)


check_rotary_attention = Exercise(
    asks="`answer(q, k, v)`: attention with rotary positions, no mask; all [tokens, d_head].",
    right=lambda q, k, v: attention(_turn(q), _turn(k), v),
    wrong={
        "The values are turned as well. Only queries and keys are: a value says what, not "
        "where.": lambda q, k, v: attention(_turn(q), _turn(k), _turn(v)),
        "Only the queries are turned; the angle between query and key then depends on the "
        "query's own position.": lambda q, k, v: attention(_turn(q), k, v),
        "Only the keys are turned; the queries must turn too.": lambda q, k, v: attention(
            q, _turn(k), v
        ),
        "You add an encoding to queries and keys; rotary positions turn them.": (
            lambda q, k, v: attention(_add(q), _add(k), v)
        ),
        "You turn by twice the angle: it is p / base^(2i/d), once.": lambda q, k, v: attention(
            _turn(q, 2.0), _turn(k, 2.0), v
        ),
        "Queries and keys turn in opposite directions, so the score depends on the sum of the "
        "positions, not on their difference.": lambda q, k, v: attention(_turn(q), _turn(k, -1), v),
        "You turn both clockwise. The scores still know the distance, but the exercise asks "
        "for counterclockwise: the minus is above the diagonal.": lambda q, k, v: attention(
            _turn(q, -1), _turn(k, -1), v
        ),
        "You pair component i with i + d/2, as Hugging Face's Llama checkpoints do; here the pairs "
        "are (2i, 2i+1).": lambda q, k, v: attention(_turn_halves(q), _turn_halves(k), v),
        "Nothing is turned: this is attention without positions.": lambda q, k, v: attention(
            q, k, v
        ),
        "The division of the scores by √d is missing.": lambda q, k, v: attention(
            _turn(q), _turn(k), v, scale=1.0
        ),
    },
    cases=[
        Case("5 tokens", randn(5, 6, seed=0), randn(5, 6, seed=1), randn(5, 6, seed=2)),
        Case("7 tokens", randn(7, 10, seed=3), randn(7, 10, seed=4), randn(7, 10, seed=5)),
    ],
    axes="tokens d_head",
    praise="Right: each score knows the distance, and the values stay as they are.",
)


# --- ALiBi


def _alibi(scores, slopes=None, *, sign=-1.0, causal=True) -> Tensor:
    heads, tokens, _ = scores.shape
    slopes = alibi_slopes(heads) if slopes is None else slopes
    place = torch.arange(tokens)
    distance = (place[:, None] - place).abs()
    biased = scores + sign * slopes[:, None, None] * distance
    future = place > place[:, None]
    return torch.softmax(biased.masked_fill(future, -math.inf) if causal else biased, dim=-1)


def _after_softmax(scores, *, again=False):
    weights = _alibi(scores, torch.zeros(scores.shape[0]))
    place = torch.arange(scores.shape[-1])
    distance = (place[:, None] - place).clamp(min=0)
    weights = weights - alibi_slopes(scores.shape[0])[:, None, None] * distance
    return weights / weights.sum(-1, keepdim=True) if again else weights


def _powers(heads, first=1):
    return 2.0 ** (-8.0 * torch.arange(first, heads + first) / heads)


check_alibi_weights = Exercise(
    asks="`answer(scores)`: causal weights with ALiBi; scores, scaled, [heads, queries, keys].",
    right=lambda scores: _alibi(scores),
    wrong={
        "The weights grow with the distance: the nearest key must lose least.": lambda scores: (
            _alibi(scores, sign=1.0)
        ),
        "All heads have the same slope: head n has 2^(−8(n + 1)/h), n from 0.": lambda scores: (
            _alibi(scores, alibi_slopes(scores.shape[0])[:1].expand(scores.shape[0]))
        ),
        "Your slopes start at 2^0: the exponent of the first head is −8/h.": lambda scores: _alibi(
            scores, _powers(scores.shape[0], first=0)
        ),
        "The slopes are in reverse order: the first head is the steepest.": lambda scores: _alibi(
            scores, _powers(scores.shape[0]).flip(0)
        ),
        "The penalty is subtracted after the softmax: it belongs on the scores, before.": (
            _after_softmax
        ),
        "The penalty is subtracted after the softmax and the rows are divided by their new sum: "
        "it belongs on the scores, before.": lambda scores: _after_softmax(scores, again=True),
        "The future is not hidden: a query may see itself and what comes before it.": (
            lambda scores: _alibi(scores, causal=False)
        ),
        "There is no penalty in your weights: this is plain causal attention.": lambda scores: (
            _alibi(scores, torch.zeros(scores.shape[0]))
        ),
    },
    cases=[
        Case("2 heads and 5 tokens", randn(2, 5, 5, seed=0)),
        Case("4 heads and 7 tokens", randn(4, 7, 7, seed=1)),
    ],
    axes="heads queries keys",
    praise="Right: near keys are cheap, far ones dear, and each head has its own price.",
)


# --- from pairs to halves


def _order(d_head) -> Tensor:
    return torch.cat((torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)))


check_halves_order = Exercise(
    asks="`answer(d_head)`: the order in which pairs (2i, 2i+1) become halves (i, i + d/2).",
    right=lambda d_head: _order(d_head),
    wrong={
        "This is the way back, from halves to pairs: the inverse of the order that you need.": (
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
