"""Checks for chapter 07c: who notices a move, rotary positions, ALiBi, halves, the word before."""

import math

import torch
from torch import Tensor

from transformer_lib.attention import attention, attention_weights
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn
from transformer_lib.exercises.engine.values import fitted, plain
from transformer_lib.positions import (
    alibi_slopes,
    apply_rotary,
    rotary_angles,
    sinusoidal_encoding,
)

# --- who notices that the text has moved?

check_who_notices = Choice(
    asks="In which of the six does a word's output change when the text moves on? All letters.",
    right={"a", "d", "e"},
    wrong={
        "a": "the products of W_Q PE(p) and W_K PE(r) depend on both positions, unless the "
        "matrices are made of rotations.",
        "b": "query and key are turned on by the same angle.",
        "c": "every distance within the text is the same as before.",
        "d": "the angle between query and key is then that of the query's own position.",
        "e": "the weights stay, but what is averaged has turned.",
        "f": "there is nothing that could notice: no word knows where it is.",
    },
    praise="Right: what turns or counts by differences alone does not notice a move.",
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


def _over_rows(q, k, v):
    return (_turn(q) @ _turn(k).mT / q.shape[1] ** 0.5).softmax(dim=0) @ v


check_rotary_attention = Exercise(
    asks="`answer(q, k, v)`: attention with rotary positions, no mask; all [tokens, d_head].",
    right=lambda q, k, v: attention(_turn(q), _turn(k), v),
    wrong={
        "Both mistakes are still there. Which of the three should know where it stands? And what "
        "did chapter 3 do to scores?": lambda q, k, v: attention(
            _turn(q), _turn(k), _turn(v), scale=1.0
        ),
        "The divisor counts tokens: it is √d, the root of the head's width, q.shape[1].": (
            lambda q, k, v: attention(_turn(q), _turn(k), v, scale=len(q) ** -0.5)
        ),
        "The softmax runs over the queries: each row of weights must sum to 1, dim=1.": _over_rows,
        "There is no mask here: every token sees all others.": lambda q, k, v: attention(
            _turn(q), _turn(k), v, causal=True
        ),
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
        "You turn both clockwise. The scores still know the offset, but the exercise asks "
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
    praise="Right: each score knows the offset, and the values stay as they are.",
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
        "Your slopes are those of 8 heads, ½, ¼, …, whatever their number: the exponent of head n "
        "is −8(n + 1)/h.": lambda scores: _alibi(
            scores, 2.0 ** -torch.arange(1.0, scores.shape[0] + 1)
        ),
        "Every head has the slope ½: each has its own, 2^(−8(n + 1)/h), n from 0.": (
            lambda scores: _alibi(scores, torch.full((scores.shape[0],), 0.5))
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
    praise="Right: near keys cost little, far ones much, and each head has its own price.",
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


# --- a head that finds the word before

TOKENS = 20


def _one_query_and_key(answer):
    """The two in one dtype: any real one is right, since there is no input to match."""
    result = plain(answer() if callable(answer) else answer)
    if not isinstance(result, list | tuple):
        return result
    result = [fitted(x, torch.zeros(8)) for x in result]
    real = [isinstance(x, Tensor) and not x.is_complex() for x in result]
    return [x.float() if good else x for x, good in zip(result, real, strict=True)]


def _word_before() -> tuple[Tensor, Tensor]:
    key = torch.full((8,), 10.0)
    return _turned_by(key, 1), key


def _turned_by(vector: Tensor, positions: int) -> Tensor:
    """Turned back by so many positions, or on, if that is negative."""
    return apply_rotary(vector[None], -positions * rotary_angles(1, 8, start=1))[0]


def _weights(result) -> Tensor:
    """Causal weights if every word has this query and this key, [queries, keys]."""
    query, key = (_turn(vector.expand(TOKENS, 8)) for vector in result)
    return attention_weights(query, key, causal=True)


def _shares(result, offset: int) -> Tensor:
    """What each word that can gives to the word at this offset."""
    weights = _weights(result)
    return weights.diagonal(offset)


def _finds(result, offset: int) -> bool:
    best = _weights(result)[7:].argmax(dim=1) - torch.arange(7, TOKENS)
    return bool((best == offset).all())


def _even(result) -> bool:
    weights = _weights(result)[-1]
    return bool(weights.max() - weights.min() < 1e-3)


def _too_weak(result) -> tuple | None:
    least = _shares(result, -1).min().item()
    return (f"{least:.2f}",) if _finds(result, -1) and least <= 0.9 else None


check_previous_word = Exercise(
    asks="`answer()`: one query and one key, each [8], that let every word find the word before.",
    right=_word_before,
    call=_one_query_and_key,
    unique=False,
    cases=[Case("20 equal words")],
    axes=["d_head", "d_head"],
    also={
        "All words get the same weight: a query or a key of zero asks nothing.": _even,
        "Every word finds itself: query and key agree best where nothing is turned between them. "
        "Turn one of them first.": lambda result: _finds(result, 0) and not _finds_next(result),
        "Every word would find the word *after* it, which the mask hides: turn the other way.": (
            lambda result: _finds_next(result)
        ),
        "Every word finds the word two places back: one position is the angle ω_i, once.": (
            lambda result: _finds(result, -2)
        ),
        "The right word is ahead, but it gets only {} of the weight somewhere: make query or key "
        "longer.": _too_weak,
        "Some words do not find the word before them.": lambda result: not _finds(result, -1),
    },
    praise="Right: a fixed turn between query and key is a fixed offset, anywhere in the text.",
)


def _finds_next(result) -> bool:
    """Whether the word after would win if it were not hidden."""
    query, key = (_turn(vector.expand(TOKENS, 8)) for vector in result)
    best = (query @ key.T).argmax(dim=1)[: TOKENS - 7] - torch.arange(TOKENS - 7)
    return bool((best == 1).all())
