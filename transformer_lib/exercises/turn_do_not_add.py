"""Checks for chapter 07c: who notices a move, rotary positions, ALiBi, halves, the word before."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

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


def _of_another_base(result, q, k, v) -> tuple | None:
    for base in (10, 100, 1_000, 100_000, 500_000, 1_000_000):
        angles = rotary_angles(*q.shape, base=float(base), dtype=q.dtype)
        theirs = attention(apply_rotary(q, angles), apply_rotary(k, angles), v)
        if torch.allclose(result.to(theirs), theirs, atol=1e-5):
            return (base,)
    return None


def _scaled_late(q, k, v):
    return attention(_turn(q), _turn(k), v, scale=1.0) / q.shape[1] ** 0.5


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
        "You divide the scores by d: it is the root of it, √d.": lambda q, k, v: attention(
            _turn(q), _turn(k), v, scale=1 / q.shape[1]
        ),
        "You multiply the scores by √d; they are divided by it.": lambda q, k, v: attention(
            _turn(q), _turn(k), v, scale=q.shape[1] ** 0.5
        ),
        "You divide by √d after the softmax, and so the weights no longer sum to 1: divide the "
        "scores, before.": _scaled_late,
        "You divide queries and keys by their lengths: scores are products of whole vectors, "
        "divided by √d alone.": lambda q, k, v: attention(
            F.normalize(_turn(q), dim=-1), F.normalize(_turn(k), dim=-1), v
        ),
        "Your queries stand one position later than your keys: both count from the same number.": (
            lambda q, k, v: attention(
                apply_rotary(q, rotary_angles(*q.shape, start=1)), _turn(k), v
            )
        ),
        "The result is turned, and queries and keys are not. It is the other way round.": (
            lambda q, k, v: _turn(attention(q, k, v))
        ),
        "The values are turned, and the result is turned back: it still depends on the offset. "
        "Leave both as they are.": lambda q, k, v: _turn(
            attention(_turn(q), _turn(k), _turn(v)), -1.0
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
    averages=lambda q, k, v: v,
    also={"Your angles are those of base {:,}; it is 10,000 here.": _of_another_base},
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


def _future_scored(score):
    """The scores of the future are replaced by a number that is not −∞."""

    def wrong(scores):
        distance = _penalty(scores)
        future = torch.ones_like(scores).triu(1).bool()
        return torch.softmax((scores - distance).masked_fill(future, score), dim=-1)

    return wrong


def _itself_hidden(scores):
    future = torch.ones_like(scores).triu().bool()
    return torch.softmax((scores - _penalty(scores)).masked_fill(future, -math.inf), dim=-1)


def _powers(heads, first=1):
    return 2.0 ** (-8.0 * torch.arange(first, heads + first) / heads)


def _penalties(result, scores) -> Tensor | None:
    """What each key has lost against the query's own, if these are causal weights: [h, q, k]."""
    past = torch.ones_like(scores).tril().bool()
    sums = result.sum(-1)
    if not (torch.allclose(sums, torch.ones_like(sums), atol=1e-3) and (result[past] > 0).all()):
        return None
    if result[~past].abs().max() > 1e-6:
        return None
    lost = (scores - result.clamp_min(1e-30).log()).double()
    lost = lost - lost.diagonal(dim1=-2, dim2=-1)[..., None]
    return lost.masked_fill(~past, 0)


def _other_slope(result, scores) -> tuple | None:
    if (lost := _penalties(result, scores)) is None:
        return None
    slopes, right = lost[:, 1, 0], alibi_slopes(scores.shape[0]).double()
    place = torch.arange(scores.shape[-1])
    linear = slopes[:, None, None] * (place[:, None] - place).clamp(min=0)
    wrong = ((slopes - right).abs() > 1e-3).nonzero().flatten().tolist()
    if not wrong or not torch.allclose(lost, linear, atol=1e-2):
        return None
    return wrong[0], f"{slopes[wrong[0]]:.4g}", f"{right[wrong[0]]:.4g}"


def _not_straight(result, scores) -> tuple | None:
    """A key that has lost another amount than its distance asks for."""
    if (lost := _penalties(result, scores)) is None:
        return None
    place, slopes = torch.arange(scores.shape[-1]), alibi_slopes(scores.shape[0]).double()
    right = slopes[:, None, None] * (place[:, None] - place).clamp(min=0)
    wrong = ((lost - right).abs() > 1e-2).nonzero().tolist()
    if not wrong:
        return None
    head, query, key = wrong[0]
    found = (x[head, query, key] for x in (lost, right))
    return head, query, key, *(f"{x:.4g}" for x in found)


def _scores_changed(result, scores) -> tuple | None:
    """Keys at one distance that have lost different amounts."""
    if (lost := _penalties(result, scores)) is None:
        return None
    one_back = lost[0].diagonal(-1)
    for query in range(1, len(one_back)):
        if abs(one_back[query] - one_back[0]) > 1e-2:
            return f"{one_back[0]:.4g}", query + 1, f"{one_back[query]:.4g}"
    return None


def _past_hidden(result, scores) -> bool:
    past, future = result.tril(-1), result.triu(1)
    return not past.any() and bool(future.any())


def _still_scores(result, scores) -> bool:
    same_form = isinstance(result, Tensor) and result.shape == scores.shape
    return same_form and torch.allclose(result.softmax(-1).to(scores), _alibi(scores), atol=1e-4)


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
        "The penalty is subtracted after the softmax and the rows are divided by their new sum: "
        "it belongs on the scores, before.": _after_softmax_again,
        "The future gets the score 0, and e⁰ is 1: it must get −∞, so that its weight is 0.": (
            _future_scored(0.0)
        ),
        "You hide a word from itself, too, and the first row has nothing left. The diagonal is not "
        "the future.": _itself_hidden,
        "The future is set to 0 after the softmax, in which it has taken its share: hide it "
        "before.": lambda scores: _alibi(scores, causal=False).tril(),
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
    any_form={"These are still scores: the softmax is missing.": _still_scores},
    also={
        "You hide the past and leave the future: it is the other way round.": _past_hidden,
        "Head {} has the slope {}; it should be {}, where head n has 2^(−8(n + 1)/h), n from 0.": (
            _other_slope
        ),
        "Keys at one distance must lose the same. In head 0, query 1 takes {} from the key before "
        "it, and query {} takes {}: the scores themselves are changed, or left out.": (
            _scores_changed
        ),
        "In head {} query {} takes from key {} a penalty of {}, where the slope times the distance "
        "is {}.": _not_straight,
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
        "This is the way back, from halves to pairs: the inverse of the order that you need.": (
            lambda d_head: _order(d_head).argsort()
        ),
        "Nothing moves: component 2i+1 has to go to i + d/2.": lambda d_head: torch.arange(d_head),
        "The second components of the pairs come first; they belong in the second half.": (
            lambda d_head: _order(d_head).roll(d_head // 2)
        ),
        "The second half is in reverse order: i + d/2 is the partner of i, so both halves go up.": (
            lambda d_head: torch.cat(
                (_order(d_head)[: d_head // 2], _order(d_head)[d_head // 2 :].flip(0))
            )
        ),
        "You exchange the two of each pair; asked for are all first ones, and then all second "
        "ones.": lambda d_head: torch.arange(d_head).view(-1, 2).flip(1).flatten(),
        "You swap the halves; it is the pairs that have to be taken apart.": lambda d_head: (
            torch.arange(d_head).roll(d_head // 2)
        ),
    },
    cases=[Case("10 components", 10), Case("6 components", 6), Case("2 components", 2)],
    any_form={
        "This is a matrix. Asked for is the order alone, an index for each component.": (
            lambda result, d_head: isinstance(result, Tensor) and result.shape == (d_head, d_head)
        ),
    },
    also={
        "There is no component {}: they are numbered from 0 to {}.": _outside,
        "Component {} stands in your order {} times, and component {} not at all.": _not_an_order,
        "In the first half of your order is component {}, which is the second of its pair. Only 0, "
        "2, 4 and so on belong there.": _odd_in_first_half,
        "The first half holds the right components, but component {} is at place {}: there belongs "
        "the first of that pair, {}.": _unsorted(0),
        "The first half is right. In the second one, component {} is at place {}, and there "
        "belongs the partner of the component half a head before, {}.": _unsorted(1),
    },
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


def _word_before_leads(result) -> bool:
    """In every row but the first, which has no choice."""
    weights = _weights(result)[1:]
    return bool((weights.argmax(dim=1) == torch.arange(TOKENS - 1)).all())


def _overflows(result) -> bool:
    return not bool(_weights(result).isfinite().all())


def _apart(result, positions: int) -> list[tuple]:
    """Pairs in which query and key are not so many positions apart: pair, angle, right angle."""
    query, key = (torch.view_as_complex(x.double().reshape(4, 2)) for x in result)
    product = query * key.conj()
    right = positions * rotary_angles(1, 8, start=1)[0].double()
    off = (product * torch.polar(torch.ones_like(right), -right)).angle().abs() > 0.01
    counts = product.abs() > 1e-3 * product.abs().max()
    wrong = (off & counts).nonzero().flatten().tolist()
    return [(i, f"{product[i].angle():.3g}", f"{right[i]:.3g}") for i in wrong]


def _other_angle(result) -> tuple | None:
    wrong = _apart(result, -1)
    return wrong[0] if wrong and not _word_before_leads(result) else None


def _too_weak(result) -> tuple | None:
    least = _shares(result, -1).min().item()
    return (f"{least:.2f}",) if least <= 0.9 else None


check_previous_word = Exercise(
    asks="`answer()`: one query and one key, each [8], that let every word find the word before.",
    right=_word_before,
    call=_one_query_and_key,
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
