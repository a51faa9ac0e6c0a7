"""Checks for chapter 07: what changes the scores, rotary positions and ALiBi."""

import math

import torch
from torch import Tensor

from transformer_lib.attention import attention
from transformer_lib.exercises.runner import Case, Exercise, randn
from transformer_lib.exercises.verdict import Verdict
from transformer_lib.positions import (
    alibi_slopes,
    apply_rotary,
    rotary_angles,
    sinusoidal_encoding,
)

__all__ = ["check_alibi_weights", "check_rotary_attention"]


def _turn(x: Tensor, factor: float = 1.0) -> Tensor:
    return apply_rotary(x, factor * rotary_angles(*x.shape))


def _turn_halves(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    paired = torch.stack((x[..., :half], x[..., half:]), dim=-1).flatten(-2)
    turned = _turn(paired)
    return torch.cat((turned[..., 0::2], turned[..., 1::2]), dim=-1)


def _add(x: Tensor) -> Tensor:
    return x + sinusoidal_encoding(*x.shape)


ROTARY_ATTENTION = Exercise(
    right=lambda q, k, v: attention(_turn(q), _turn(k), v),
    wrong={
        "The values are turned as well. Only queries and keys are: a value says what, not "
        "where.": lambda q, k, v: attention(_turn(q), _turn(k), _turn(v)),
        "Only the queries are turned; the angle between query and key then depends on the "
        "query's own position.": lambda q, k, v: attention(_turn(q), k, v),
        "Only the keys are turned; the queries must turn, too.": lambda q, k, v: attention(
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
        "You turn both clockwise. The scores know the distance then, too, but the task asks for "
        "counterclockwise: the minus stands above the diagonal.": lambda q, k, v: attention(
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


def check_rotary_attention(answer) -> Verdict:
    """`answer(q, k, v)`: attention with rotary positions, no mask; all [tokens, d_head]."""
    return ROTARY_ATTENTION.check(answer)


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


ALIBI_WEIGHTS = Exercise(
    right=lambda scores: _alibi(scores),
    wrong={
        "The weights grow with the distance: the nearest key must lose least.": lambda scores: (
            _alibi(scores, sign=1.0)
        ),
        "All heads have the same slope: head h has 2^(−8h/n), h from 1.": lambda scores: _alibi(
            scores, alibi_slopes(scores.shape[0])[:1].expand(scores.shape[0])
        ),
        "Your slopes start at 2^0: the first head has h = 1.": lambda scores: _alibi(
            scores, _powers(scores.shape[0], first=0)
        ),
        "The slopes stand in reverse: the first head is the steepest.": lambda scores: _alibi(
            scores, _powers(scores.shape[0]).flip(0)
        ),
        "The penalty is subtracted after the softmax: it belongs on the scores, before.": (
            _after_softmax
        ),
        "The penalty is subtracted after the softmax and the rows are divided by their new sum: "
        "it belongs on the scores, before.": lambda scores: _after_softmax(scores, again=True),
        "The future is not hidden: a query may see itself and what stands before it.": (
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


def check_alibi_weights(answer) -> Verdict:
    """`answer(scores)`: causal weights with ALiBi; scores, scaled, [heads, queries, keys]."""
    return ALIBI_WEIGHTS.check(answer)
