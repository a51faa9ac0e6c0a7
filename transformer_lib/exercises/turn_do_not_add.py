"""Checks for chapter 07c: who notices a move, rotary positions, ALiBi, halves, the word before."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_lib.attention import attention, attention_weights
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import in_one_dtype
from transformer_lib.exercises.engine.runner import Case, Exercise, randn
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
        "b": "query and key are both turned further by the same angle.",
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


def _of_another_base(result, q, k, v) -> tuple | None:
    for base in (10, 100, 1_000, 100_000, 500_000, 1_000_000):
        angles = rotary_angles(*q.shape, base=float(base), dtype=q.dtype)
        theirs = attention(apply_rotary(q, angles), apply_rotary(k, angles), v)
        if torch.allclose(result.to(theirs), theirs, atol=1e-5):
            return (base,)
    return None


check_rotary_attention = Exercise(
    asks="`answer(q, k, v)`: attention with rotary positions, no mask; all [tokens, d_head].",
    right=lambda q, k, v: attention(_turn(q), _turn(k), v),
    wrong={
        "Only the keys are turned; the queries must turn too.": lambda q, k, v: attention(
            q, _turn(k), v
        ),
        "Only the queries are turned; the keys must turn too.": lambda q, k, v: attention(
            _turn(q), k, v
        ),
        "You add an encoding to queries and keys; rotary positions turn them.": (
            lambda q, k, v: attention(_add(q), _add(k), v)
        ),
        "You turn by twice the angle: it is p / base^(2i/d), once.": lambda q, k, v: attention(
            _turn(q, 2.0), _turn(k, 2.0), v
        ),
        "You turn both clockwise. The scores still know the offset, but the exercise asks "
        "for counterclockwise: the minus is above the diagonal.": lambda q, k, v: attention(
            _turn(q, -1), _turn(k, -1), v
        ),
        "You pair component i with i + d/2, as Hugging Face's Llama checkpoints do; here the pairs "
        "are (2i, 2i+1).": lambda q, k, v: attention(_turn_halves(q), _turn_halves(k), v),
        "Nothing is turned: this is attention without positions.": lambda q, k, v: attention(
            q, k, v
        ),
        "You divide queries and keys by their lengths: scores are products of whole vectors, "
        "divided by √d alone.": lambda q, k, v: attention(
            F.normalize(_turn(q), dim=-1), F.normalize(_turn(k), dim=-1), v
        ),
        "The result is turned, and queries and keys are not. It should be the other way around.": (
            lambda q, k, v: _turn(attention(q, k, v))
        ),
        "The values are turned, and the result is turned back: it still depends on the offset. "
        "Leave both as they are.": lambda q, k, v: _turn(
            attention(_turn(q), _turn(k), _turn(v)), -1.0
        ),
    },
    cases=[
        Case("5 tokens", randn(5, 6, seed=0), randn(5, 6, seed=1), randn(5, 6, seed=2)),
        Case("7 tokens", randn(7, 10, seed=3), randn(7, 10, seed=4), randn(7, 10, seed=5)),
    ],
    axes="tokens d_head",
    also={"Your angles are those of base {:,}; it should be 10,000 here.": _of_another_base},
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


def _penalty(scores) -> Tensor:
    place = torch.arange(scores.shape[-1])
    return alibi_slopes(scores.shape[0])[:, None, None] * (place[:, None] - place).clamp(min=0)


def _after_softmax_again(scores):
    weights = _alibi(scores, torch.zeros(scores.shape[0])) - _penalty(scores)
    return weights / weights.sum(-1, keepdim=True)


def _after_softmax(result, scores) -> bool:
    """Whatever became of the future: is the past that of plain weights, less the penalty?"""
    past = _alibi(scores, torch.zeros(scores.shape[0])) - _penalty(scores)
    return torch.allclose(result.tril().double(), past.tril().double(), atol=1e-4)


def _past_hidden(result, scores) -> bool:
    past, future = result.tril(-1), result.triu(1)
    return not past.any() and bool(future.any())


check_alibi_weights = Exercise(
    asks="`answer(scores)`: causal weights with ALiBi; scores, scaled, [heads, queries, keys].",
    right=lambda scores: _alibi(scores),
    without=("loop",),
    wrong={
        "The penalty is subtracted after the softmax and the rows are divided by their new sum: "
        "it belongs on the scores, before.": _after_softmax_again,
    },
    cases=[
        Case("2 heads and 5 tokens", randn(2, 5, 5, seed=0)),
        Case("4 heads and 7 tokens", randn(4, 7, 7, seed=1)),
        Case("16 heads and 3 tokens", randn(16, 3, 3, seed=2), edge=True),
    ],
    axes="heads queries keys",
    also={
        "You hide the past and leave the future: it should be the other way around.": _past_hidden,
        "The penalty is subtracted after the softmax: it belongs on the scores, before.": (
            _after_softmax
        ),
    },
    praise="Right: near keys cost little, far ones much, and each head has its own price.",
)


# --- from pairs to halves


def _order(d_head) -> Tensor:
    return torch.cat((torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)))


def _not_an_order(result, d_head) -> tuple | None:
    counts = torch.bincount(result.long().clamp(0, d_head), minlength=d_head + 1)[:d_head]
    several, missing = ((counts > 1).nonzero(), (counts == 0).nonzero())
    return (int(several[0]), int(counts[several[0]]), int(missing[0])) if len(several) else None


def _outside(result, d_head) -> tuple | None:
    outside = [i for i in result.tolist() if not 0 <= i < d_head]
    return (outside[0], d_head - 1) if outside else None


def _odd_in_first_half(result, d_head) -> tuple | None:
    odd = [i for i in result[: d_head // 2].tolist() if i % 2]
    return (odd[0],) if odd else None


def _unsorted(half):
    def found(result, d_head) -> tuple | None:
        right, part = _order(d_head), slice(half * d_head // 2, (half + 1) * d_head // 2)
        wrong = (result[part] != right[part]).nonzero().flatten().tolist()
        if not wrong:
            return None
        place = wrong[0] + part.start
        return int(result[place]), place, int(right[place])

    return found


check_halves_order = Exercise(
    asks="`answer(d_head)`: the order in which pairs (2i, 2i+1) become halves (i, i + d/2).",
    right=lambda d_head: _order(d_head),
    wrong={
        "The second half is in reverse order: i + d/2 is the partner of i, so both halves go up.": (
            lambda d_head: torch.cat(
                (_order(d_head)[: d_head // 2], _order(d_head)[d_head // 2 :].flip(0))
            )
        ),
    },
    cases=[Case("10 components", 10), Case("6 components", 6), Case("2 components", 2)],
    any_form={
        "This is a matrix. You are asked for the order alone, an index for each component.": (
            lambda result, d_head: isinstance(result, Tensor) and result.shape == (d_head, d_head)
        ),
    },
    also={
        "There is no component {}: they are numbered from 0 to {}.": _outside,
        "Component {} stands in your order {} times, and component {} not at all.": _not_an_order,
        "The first half of your order holds component {}, which is the second of its pair. Only 0, "
        "2, 4 and so on belong there.": _odd_in_first_half,
        "The first half holds the right components, but component {} is at place {}: there belongs "
        "the first of that pair, {}.": _unsorted(0),
    },
    axes="d_head",
    praise="Right: first all first components, then all second ones.",
)


# --- a head that finds the word before

TOKENS = 20


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


def _word_before_leads(result) -> bool:
    """In every row but the first, which has no choice."""
    weights = _weights(result)[1:]
    return bool((weights.argmax(dim=1) == torch.arange(TOKENS - 1)).all())


def _overflows(result) -> bool:
    return not bool(_weights(result).isfinite().all())


def _apart(result, positions: int) -> list[tuple]:
    """Pairs in which query and key are not so many positions apart: pair, angle, right angle."""
    query, key = (x.double().reshape(4, 2) for x in result)
    along = (query * key).sum(1)
    across = query[:, 1] * key[:, 0] - query[:, 0] * key[:, 1]
    angle = torch.atan2(across, along)
    right = positions * rotary_angles(1, 8, start=1)[0].double()
    off = torch.atan2((angle - right).sin(), (angle - right).cos()).abs() > 0.01
    length = (along**2 + across**2).sqrt()
    wrong = (off & (length > 1e-3 * length.max())).nonzero().flatten().tolist()
    return [(i, f"{angle[i]:.3g}", f"{right[i]:.3g}") for i in wrong]


def _other_angle(result) -> tuple | None:
    wrong = _apart(result, -1)
    return wrong[0] if wrong and not _word_before_leads(result) else None


def _too_weak(result) -> tuple | None:
    least = _shares(result, -1).min().item()
    return (f"{least:.2f}",) if least <= 0.9 else None


check_previous_word = Exercise(
    design=True,
    asks="`answer()`: one query and one key, each [8], that let every word find the word before.",
    right=_word_before,
    call=in_one_dtype,
    unique=False,
    cases=[Case("20 equal words")],
    axes=["d_head", "d_head"],
    also={
        "Query and key are so long that their scores cannot be told from infinity: a length of 20 "
        "or 30 is enough.": _overflows,
        "All words get the same weight: every score is about the same. Are query and key long "
        "enough, and do they have numbers in the same pairs?": _even,
        "Every word finds itself: query and key agree best where nothing is turned between them. "
        "Turn one of them first.": lambda result: _finds(result, 0) and not _apart(result, 0),
        "Every word would find the word *after* it, which the mask hides: turn the other way.": (
            lambda result: _finds_next(result)
        ),
        "Every word finds the word two places back: one position is the angle ω_i, once.": (
            lambda result: _finds(result, -2)
        ),
        "Some words do not find the word before them. In pair {}, the query is turned against the "
        "key by {}; one position back is {} there, another angle for each pair.": _other_angle,
        "The right word is ahead, but it gets only {} of the weight somewhere: make query or key "
        "longer.": _too_weak,
    },
    praise="Right: a fixed turn between query and key is a fixed offset, anywhere in the text.",
)


def _finds_next(result) -> bool:
    """Whether the word after would win if it were not hidden."""
    query, key = (_turn(vector.expand(TOKENS, 8)) for vector in result)
    best = (query @ key.T).argmax(dim=1)[: TOKENS - 7] - torch.arange(TOKENS - 7)
    return bool((best == 1).all())
