"""Checks for chapter 13, generating text, and for its deeper page."""

import math
import operator

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.repairing import Repair
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- what temperature alone can do ----------------------------------------------------------------

# Of (0.4, 0.3, 0.2, 0.1); in this order a, b, c, d, e.
HEATED = (
    (0.533, 0.300, 0.133, 0.033),
    (0.444, 0.333, 0.222, 0.000),
    (0.300, 0.400, 0.200, 0.100),
    (0.325, 0.282, 0.230, 0.163),
    (0.500, 0.250, 0.150, 0.100),
)
check_by_temperature = Choice(
    asks="Which rows can temperature make of 0.4, 0.3, 0.2, 0.1? All letters.",
    right={"a", "d"},
    wrong={
        "a": "its entries are the squares, divided by their sum: the temperature is 1/2.",
        "b": "something has become 0, and no power of 0.1 is 0. A cut can do that, top-k or top-p.",
        "c": "the second token has overtaken the first, and temperature never changes the order.",
        "d": "its entries are the square roots, divided by their sum: the temperature is 2.",
        "e": "the order is right, the ratios are not. From 4 : 3 to 2 : 1 is a power of 2.4, from "
        "3 : 2 to 5 : 3 one of 1.3, and temperature takes the same power of all.",
    },
    praise="Right: one power of all ratios, so that no order changes and nothing becomes 0.",
)


# --- temperature, without logits ------------------------------------------------------------------

EXACT = (1e-4, 1e-7)  # small probabilities count, too


def _temperature(probabilities, temperature):
    powers = probabilities ** (1 / temperature)
    return powers / powers.sum()


def _power(result, probabilities):
    """The power that has made the ratios of the result, if one power has made them all."""
    told = (probabilities > 0) & (result > 1e-9)
    x, y = probabilities[told].double().log(), result[told].double().log()
    x, y = x - x.mean(), y - y.mean()
    if len(x) < 3 or not bool((x**2).sum() > 0):
        return None
    power = float((x * y).sum() / (x**2).sum())
    return power if bool(((y - power * x).abs() < 1e-3 * y.abs().max()).all()) else None


def _sums_to_one(result):
    return abs(float(result.sum()) - 1) < 1e-3


def _other_base(result, probabilities, temperature):
    power = _power(result, probabilities)
    if power is None or not _sums_to_one(result):
        return None
    bases = (b for b in (2, 10) if abs(power * temperature * math.log(b) - 1) < 1e-3)
    return next(((base,) for base in bases), None)


def _other_power(result, probabilities, temperature):
    power = _power(result, probabilities)
    if power is None or not _sums_to_one(result) or abs(power * temperature - 1) < 1e-2:
        return None
    return power, temperature, 1 / temperature


def _added(result, probabilities, temperature):
    """A number that was added to all probabilities, if such a number explains the result."""
    powers = result.double() ** temperature  # in the ratios of the sums
    ratio = float(powers[probabilities.argmin()] / powers[probabilities.argmax()])
    if not 0 < ratio < 1:
        return None
    added = (ratio * float(probabilities.max()) - float(probabilities.min())) / (1 - ratio)
    tried = (_temperature(p, temperature) for p in (probabilities, probabilities + added))
    needless, explained = (torch.allclose(x, result.float(), rtol=2e-5) for x in tried)
    return (added,) if explained and added > 0 and not needless else None


def _a_ratio(result, probabilities, temperature):
    """Two tokens whose ratio is not the power 1/T of what it was."""
    first = int(probabilities.argmax())
    for other in range(len(probabilities)):
        was, now = (float(x[first] / x[other]) for x in (probabilities.double(), result.double()))
        must = was ** (1 / temperature)
        if probabilities[other] > 0 and not abs(now / must - 1) < 1e-3:
            return float(result[first]), float(result[other]), now, was, temperature, must
    return None


check_temperature = Exercise(
    asks="`answer(probabilities, temperature)`: what temperature makes of them, both [vocabulary].",
    right=_temperature,
    wrong={
        "Nothing has changed: dividing all probabilities by one number and normalizing again gives "
        "them back. Temperature divides the logits, their logarithms.": (
            lambda probabilities, temperature: probabilities
        ),
        "`1 // T` is rounded down to a whole number: write `1 / T`.": (
            lambda probabilities, temperature: _where(
                probabilities ** (1 // temperature), torch.ones(())
            )
        ),
        "You divide the probabilities by the temperature: they no longer sum to 1, and their "
        "ratios stay the same.": (lambda probabilities, temperature: probabilities / temperature),
        "Upside down: your exponent is the temperature, so a high one sharpens. It is 1/T, since "
        "the logits are divided.": (
            lambda probabilities, temperature: _temperature(probabilities, 1 / temperature)
        ),
        "The normalization is missing: the powers do not sum to 1.": (
            lambda probabilities, temperature: probabilities ** (1 / temperature)
        ),
        "You take the softmax of probabilities. It wants logits, such as the logarithms of "
        "the probabilities.": lambda probabilities, temperature: torch.softmax(
            probabilities / temperature, -1
        ),
    },
    also={
        "A token whose probability is 0 gets a chance here, and no power of 0 is more than 0. Is a "
        "small number added before the logarithm, or does one stand in for a 0?": (
            lambda result, probabilities, temperature: bool(
                ((probabilities == 0) & (result.abs() > 1e-7)).any()
            )
        ),
        "Your logarithm has the base {}: `softmax` takes powers of e, so take the natural one.": (
            _other_base
        ),
        "You raise the probabilities to the power {:.4g}. With T = {:g} it is 1/T, {:.4g}.": (
            _other_power
        ),
        "You add {:.1g} to each probability, which lifts the small ones most. Leave it out: the "
        "logarithm of 0 is -inf, and `softmax` makes a 0 of it.": _added,
    },
    also_last={
        "Two tokens have {:.3g} and {:.3g} in your result, in the ratio {:.3g}. At first it was "
        "{:.3g}, and with T = {:g} its power 1/T is right, {:.3g}.": _a_ratio,
    },
    cases=[
        Case("5 tokens, cooled", torch.tensor([0.1, 0.4, 0.2, 0.25, 0.05]), 0.5),
        Case("7 tokens, heated", (2 * randn(7, seed=0)).softmax(-1), 2.5),
        Case("small chances", torch.tensor([0.0997, 0.0003, 0.9]), 3.0),
        Case("a token that is impossible", torch.tensor([0.7, 0.0, 0.3]), 10.0),
    ],
    axes="vocabulary",
    tolerance=EXACT,
    praise="Right: a power of each probability, and then they must sum to 1 again.",
)


# --- top-p, to be mended --------------------------------------------------------------------------


def _kept(probabilities: Tensor, keep_sorted: Tensor, order: Tensor) -> Tensor:
    """The distribution of those whose place in ``order`` is True."""
    keep = torch.zeros_like(keep_sorted).scatter(-1, order, keep_sorted)
    left = probabilities * keep
    return left / left.sum()


def _nucleus(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    return _kept(probabilities, ordered.cumsum(-1) - ordered < p, order)


def _cut_at(keeps, at_least=0):
    """Keep a token while `keeps(sum, p)`, where the sum has it already, and the first ones."""

    def nucleus(probabilities, p):
        ordered, order = probabilities.sort(descending=True)
        first = torch.arange(len(ordered)) < at_least
        return _kept(probabilities, keeps(ordered.cumsum(-1), p) | first, order)

    return nucleus


def _one_too_many(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    return _kept(probabilities, ordered.cumsum(-1) - ordered <= p, order)


def _least_probable(probabilities, p):
    ordered, order = probabilities.sort()
    return _kept(probabilities, ordered.cumsum(-1) - ordered < p, order)


def _still_sorted(probabilities, p):
    ordered = probabilities.sort(descending=True).values
    left = ordered * (ordered.cumsum(-1) - ordered < p)
    return left / left.sum()


def _kept_in_order(probabilities, p):
    """Whether each is kept, from the most probable on."""
    ordered = probabilities.sort(descending=True).values
    return ordered.cumsum(-1) - ordered < p


def _nucleus_of(probabilities, p, cut):
    """Those that are kept as they were, and `cut` for the others."""
    return probabilities.where(_nucleus(probabilities, p) > 0, cut)


def _where(probabilities: Tensor, keep: Tensor) -> Tensor:
    left = probabilities * keep
    return left / left.sum()


def _broken_nucleus(probabilities, p):
    keep = probabilities.sort(descending=True).values.cumsum(-1) <= p
    return _where(probabilities, keep)


def _kept_mass(result, probabilities):
    return float(probabilities[result > 0].sum())


def _chosen_out_of_order(result, probabilities, p):
    """A token that is kept, though a more probable one is cut."""
    kept = result.abs() > 1e-6
    if not kept.any() or kept.all():
        return None
    least, most = float(probabilities[kept].min()), float(probabilities[~kept].max())
    return (least, most) if least < most - 1e-6 else None


def _too_few_or_many(result, probabilities, p):
    kept, enough = result.abs() > 1e-6, int((_nucleus(probabilities, p) > 0).sum())
    number = int(kept.sum())
    return (number, float(probabilities[kept].sum()), p, enough) if number != enough else None


def _other_ratios(right):
    """Are the right tokens kept, and not in the ratios that they had?"""

    def changed(result, probabilities, p):
        wanted = right(probabilities, p)
        kept = wanted > 0
        ratios = result[kept] / wanted[kept]
        uneven = bool(((ratios / ratios.mean() - 1).abs() > 1e-2).any())
        return uneven and torch.equal(result.abs() > 1e-6, kept)

    return changed


OTHER_RATIOS = (
    "You keep the right tokens, but not their ratios: divide all that is left by one number, "
    "its sum."
)
_EQUAL = Exercise(
    right=_nucleus,
    unique=False,
    also={
        "Of tokens that are equally probable you keep too few: what is left does not reach p. "
        "Judge each by its place in the sorted order, not by its size.": (
            lambda result, probabilities, p: _kept_mass(result, probabilities) < p - 1e-6
        ),
        "Of tokens that are equally probable you keep more than it takes to reach p. Judge each by "
        "its place in the sorted order, not by its size.": lambda result, probabilities, p: (
            _kept_mass(result, probabilities) - float(probabilities[result > 0].min()) > p - 1e-6
        ),
    },
    cases=[
        Case("four tokens of one probability", torch.tensor([0.15, 0.15, 0.4, 0.15, 0.15]), 0.65)
    ],
    axes="vocabulary",
)
check_nucleus = Repair(
    after=_EQUAL,
    asks="`answer(probabilities, p)`: what top-p leaves of them, as a distribution; [vocabulary].",
    broken=_broken_nucleus,
    unchanged="Try it on probabilities that are not in order, and count what is left.",
    right=_nucleus,
    wrong={
        "The token with which the sum reaches p is cut. It belongs to the nucleus: cut those "
        "before which the sum is already p.": _cut_at(operator.le, at_least=1),
        "The token with which the sum reaches p is cut, and where the first alone has more than p "
        "nothing is left at all.": _cut_at(operator.le),
        "The token with which the sum reaches p is cut, even where the sum is p exactly. It "
        "belongs to the nucleus: cut those before which the sum is already p.": (
            _cut_at(operator.lt, at_least=1)
        ),
        "The token with which the sum reaches p is cut, even where the sum is p exactly, and where "
        "the first alone has more than p nothing is left at all.": _cut_at(operator.lt),
        "One too many: where the sum is exactly p already, the next token is not needed.": (
            _one_too_many
        ),
        "The right number of tokens, and not the right ones: `keep` is in the order of the sorted "
        "probabilities. Token i must be judged by its own place.": lambda probabilities, p: _where(
            probabilities, (_still_sorted(probabilities, p) > 0)
        ),
        "What is left does not sum to 1: normalize again.": lambda probabilities, p: (
            probabilities * (_nucleus(probabilities, p) > 0)
        ),
        "The result is in the order of the probabilities. Token i must be at place i again: "
        "scatter what you have sorted.": _still_sorted,
        "You begin with the least probable tokens: sort in descending order.": _least_probable,
        "You go through the tokens in the order of the vocabulary: sort them first.": (
            lambda probabilities, p: _where(
                probabilities, probabilities.cumsum(-1) - probabilities < p
            )
        ),
        "`keep[order]` sorts once more, and so keeps the wrong ones. To put things back, index on "
        "the left: out[order] = ...": lambda probabilities, p: _where(
            probabilities, _kept_in_order(probabilities, p)[probabilities.argsort(descending=True)]
        ),
        "You take the softmax of probabilities. They need no exponential: divide what is left by "
        "its sum.": lambda probabilities, p: _nucleus_of(probabilities, p, cut=-torch.inf).softmax(
            -1
        ),
        "You take the softmax of probabilities, so that what is cut, a 0, gets e⁰. Divide what is "
        "left by its sum.": lambda probabilities, p: _nucleus_of(probabilities, p, cut=0.0).softmax(
            -1
        ),
        "You compare each probability with 1 - p. Top-p is about the sum of the most probable.": (
            lambda probabilities, p: _where(probabilities, probabilities >= 1 - p)
        ),
        "You compare each probability with p itself. Top-p adds up the most probable ones until "
        "they reach p.": lambda probabilities, p: _where(probabilities, probabilities >= p),
        "You compare each probability with p times the largest. That is another method, min-p.": (
            lambda probabilities, p: _where(probabilities, probabilities >= p * probabilities.max())
        ),
    },
    also={
        "You keep a token of probability {:.3g} and cut one of {:.3g}: the most probable stay.": (
            _chosen_out_of_order
        ),
        "Of your tokens, {} are kept, and together they have {:.4g}. The fewest that reach p, "
        "{:g}, are {}.": _too_few_or_many,
        OTHER_RATIOS: _other_ratios(_nucleus),
    },
    cases=[
        Case("5 tokens", torch.tensor([0.05, 0.3, 0.1, 0.4, 0.15]), 0.8),
        Case("a sum that is exactly p", torch.tensor([0.125, 0.5, 0.125, 0.25]), 0.75),
        Case("one token that has it all", torch.tensor([0.1, 0.85, 0.05]), 0.6),
        Case("7 tokens", torch.tensor([0.11, 0.19, 0.07, 0.23, 0.03, 0.31, 0.06]), 0.35),
        Case("small chances", torch.tensor([0.0995, 0.6, 0.0001, 0.3, 0.0004]), 0.9998),
    ],
    axes="vocabulary",
    tolerance=EXACT,
    praise="Right: the fewest tokens that reach p, the one that crosses it among them.",
)


# --- one step of attention with a cache -----------------------------------------------------------


def _attend(q: Tensor, keys: Tensor, values: Tensor, scale: float | None = None) -> Tensor:
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return torch.softmax(scale * q @ keys.mT, -1) @ values


def _extended(k, v, keys, values):
    return torch.cat((keys, k), -2), torch.cat((values, v), -2)


def _cached_step(q, k, v, keys, values):
    keys, values = _extended(k, v, keys, values)
    return _attend(q, keys, values), keys, values


def _first_only(q, k, v, keys, values):
    keys, values = _extended(k, v, keys, values)
    return values[:, :1], keys, values


def _at_the_front(q, k, v, keys, values):
    keys, values = torch.cat((k, keys), -2), torch.cat((v, values), -2)
    return _attend(q, keys, values), keys, values


def _softmax_over(axis):
    def step(q, k, v, keys, values):
        keys, values = _extended(k, v, keys, values)
        return torch.softmax(q @ keys.mT * q.shape[-1] ** -0.5, axis) @ values, keys, values

    return step


def _scaled(scale):
    """The scores times `scale(heads, tokens, d_head)`."""

    def step(q, k, v, keys, values):
        keys, values = _extended(k, v, keys, values)
        return _attend(q, keys, values, scale(*keys.shape)), keys, values

    return step


check_cached_step = Exercise(
    asks="""`answer(q, k, v, keys, values)`: (output, keys, values) of one new token.

    q, k, v [heads, 1, d_head]; keys, values [heads, tokens, d_head] -> output [heads, 1, d_head],
    and the extended keys and values.
    """,
    right=_cached_step,
    wrong={
        "The new token does not see itself: extend the cache first, then attend.": (
            lambda q, k, v, keys, values: (
                _attend(q, keys, values),
                *_extended(k, v, keys, values),
            )
        ),
        "The new token sees only itself: its query must meet all the keys in the cache.": (
            lambda q, k, v, keys, values: (v, *_extended(k, v, keys, values))
        ),
        "The query sees only the first key. A causal mask that is aligned to the top left "
        "takes it for the first token; the last one needs no mask at all.": _first_only,
        "The cache that you return has not grown: the next token will miss this one.": (
            lambda q, k, v, keys, values: (
                _attend(q, *_extended(k, v, keys, values)),
                keys,
                values,
            )
        ),
        "The new key and value go to the end. Attention does not mind the order; positions and "
        "whoever reads the cache do.": _at_the_front,
        "The scores are not scaled by 1/√d_head.": _scaled(lambda *_: 1.0),
        "The scores are divided by d_head: divide them by its root.": (
            _scaled(lambda heads, tokens, d_head: 1 / d_head)
        ),
        "The scores are divided by the root of the number of tokens. Take d_head, the length "
        "of a query, in its place.": _scaled(lambda heads, tokens, d_head: tokens**-0.5),
        "The scores are divided by the root of the number of heads. Take d_head, the length "
        "of a query, in its place.": _scaled(lambda heads, tokens, d_head: heads**-0.5),
        "The softmax runs over the queries. There is one, so every weight is 1: dim=-1.": (
            _softmax_over(-2)
        ),
        "The softmax runs over the heads. Within a head the weights sum to 1: dim=-1.": (
            _softmax_over(-3)
        ),
        "You extend the values by `k`, the new key: the new value is `v`.": (
            lambda q, k, v, keys, values: _cached_step(q, k, k, keys, values)
        ),
        "You extend the keys by `v`, the new value: the new key is `k`.": (
            lambda q, k, v, keys, values: _cached_step(q, v, v, keys, values)
        ),
    },
    cases=[
        Case(
            f"a cache of {n} tokens",
            *(2 * randn(11, 1, d, seed=seed + i) for i in range(3)),
            *(randn(11, n, d, seed=seed + 3 + i) for i in range(2)),
        )
        for n, d, seed in ((5, 7, 0), (2, 5, 10))
    ],
    axes=("heads query d_head", "heads tokens d_head", "heads tokens d_head"),
    praise="Right: one query, all the keys so far, and a cache that is longer by one.",
)


# --- how large the cache is -----------------------------------------------------------------------


def _cache_bytes(batch, tokens, n_layers, d_model, number):
    return 2 * batch * tokens * n_layers * d_model * number


_UNITS = {
    f"{unit}{b}": factor * part
    for unit, factor in (
        ("K", 1e3), ("Ki", 2**10), ("M", 1e6), ("Mi", 2**20), ("G", 1e9), ("Gi", 2**30)
    )
    for b, part in (("B", 1), ("bit", 1 / 8))
} | {"bits": 1 / 8}  # fmt: skip


def _in_other_units(result, *sizes):
    """The unit in which this result is right, if there is one."""
    right = _cache_bytes(*sizes)
    near = (unit for unit, size in _UNITS.items() if abs(result * size / right - 1) < 0.01)
    return next(((unit,) for unit in near if result != right), None)


def _doubles(name):
    """Do the bytes not double with this argument?"""

    def no(answer):
        once = {"batch": 3, "tokens": 7, "n_layers": 5, "d_model": 64, "number": 4}
        twice = once | {name: 2 * once[name]}
        return bool(answer(*twice.values()) != 2 * answer(*once.values()))

    return no


check_cache_bytes = Exercise(
    asks="`answer(batch, tokens, n_layers, d_model, number)`: the bytes of a model's cache.",
    right=_cache_bytes,
    wrong={
        "Keys and values: you count one of the two.": (
            lambda batch, tokens, n_layers, d_model, number: (
                batch * tokens * n_layers * d_model * number
            )
        ),
        "Queries are not stored: only the newest token's is ever used.": (
            lambda batch, tokens, n_layers, d_model, number: (
                3 * batch * tokens * n_layers * d_model * number
            )
        ),
        "Each layer has keys and values of its own: times n_layers.": (
            lambda batch, tokens, n_layers, d_model, number: 2 * batch * tokens * d_model * number
        ),
        "Each text of the batch has a cache of its own: times batch.": (
            lambda batch, tokens, n_layers, d_model, number: (
                2 * tokens * n_layers * d_model * number
            )
        ),
        "That is how many numbers there are; each takes `number` bytes.": (
            lambda batch, tokens, n_layers, d_model, number: 2 * batch * tokens * n_layers * d_model
        ),
        "The attention weights are not kept, so nothing grows with the square of the tokens.": (
            lambda batch, tokens, n_layers, d_model, number: (
                2 * batch * tokens**2 * n_layers * d_model * number
            )
        ),
        "Those are the matrices that make keys and values, not the keys and values.": (
            lambda batch, tokens, n_layers, d_model, number: 2 * n_layers * d_model**2 * number
        ),
        "`number` is in bytes already: do not divide by 8.": (
            lambda batch, tokens, n_layers, d_model, number: (
                2 * batch * tokens * n_layers * d_model * number // 8
            )
        ),
    },
    also={"That is the size in {}; it is asked in bytes.": _in_other_units},
    about={
        f"With twice the `{name}` the cache is twice as large, and your result is not.": (
            _doubles(name)
        )
        for name in ("tokens", "batch", "n_layers", "d_model", "number")
    }
    | {
        "Of one token, one layer of width 1 keeps a key and a value, 2 numbers. You count {:g}.": (
            lambda answer: (float(answer(1, 1, 1, 1, 1)),)
        ),
    },
    cases=[
        Case("GPT-2 small, fp32", 1, 1024, 12, 768, 4),
        Case("a small model, a batch of 5", 5, 61, 3, 97, 2),
    ],
    praise="Right: and it grows with every token, unlike the weights.",
)


# --- one step of beam search ----------------------------------------------------------------------


def _best(candidates: Tensor, width: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    scores, best = candidates.flatten().topk(width)
    return scores, best // columns, best % columns


def _beam_step(scores, log_probabilities, width):
    candidates = scores[:, None] + log_probabilities
    return _best(candidates, width, log_probabilities.shape[1])


def _own_best(scores, log_probabilities, width):
    best, tokens = log_probabilities.max(1)
    return scores + best, torch.arange(len(scores)), tokens


def _wrong_columns(scores, log_probabilities, width):
    candidates = scores[:, None] + log_probabilities
    return _best(candidates, width, log_probabilities.shape[0])


def _of_the_best(scores, log_probabilities, width):
    parent = int(scores.argmax())
    new, tokens = (scores[parent] + log_probabilities[parent]).topk(width)
    return new, torch.full_like(tokens, parent), tokens


def _exchanged(scores, log_probabilities, width):
    new, parents, tokens = _beam_step(scores, log_probabilities, width)
    return new, tokens, parents


def _negated(scores, parents, tokens):
    return -scores, parents, tokens


def _counted_on(items, more):
    return tuple(item + n for item, n in zip(items, more, strict=True))


def _no_such(item, *, axis):
    """A number among the parents, or the tokens, that there is not."""

    def found(result, scores, log_probabilities, width):
        numbers, most = result[item].long(), log_probabilities.shape[axis] - 1
        odd = numbers[(numbers < 0) | (numbers > most)]
        return (int(odd[0]), most) if len(odd) else None

    return found


def _not_together(result, scores, log_probabilities, width):
    """The first score that is not the one of its parent and token."""
    found, parents, tokens = result[0].double(), result[1].long(), result[2].long()
    real = (scores[:, None] + log_probabilities)[parents, tokens].double()
    if not (odd := ((found - real).abs() > 1e-3).nonzero()).numel():
        return None
    n = int(odd[0])
    return n, float(found[n]), int(parents[n]), int(tokens[n]), float(real[n])


def _twice(result, *_):
    pairs = list(zip(result[1].tolist(), result[2].tolist(), strict=True))
    again = next((pair for n, pair in enumerate(pairs) if pair in pairs[:n]), None)
    return again and (int(again[0]), int(again[1]))


def _one_of_each(result, scores, log_probabilities, width):
    right = _beam_step(scores, log_probabilities, width)[1]
    own_best = bool((log_probabilities.argmax(1)[result[1].long()] == result[2]).all())
    return own_best and len(set(result[1].tolist())) == width > len(set(right.tolist()))


def _better_left_out(result, scores, log_probabilities, width):
    best, parents, tokens = _beam_step(scores, log_probabilities, width)
    ours = set(zip(result[1].tolist(), result[2].tolist(), strict=True))
    wanted = zip(parents.tolist(), tokens.tolist(), best.tolist(), strict=True)
    return next(((b, t, s) for b, t, s in wanted if (b, t) not in ours), None)


check_beam_step = Exercise(
    asks="""`answer(scores, log_probabilities, width)`: (scores, parents, tokens) of the best beams.

    scores [beams], log_probabilities [beams, vocabulary] -> each [width], the best first.
    """,
    right=_beam_step,
    wrong={
        "Each beam keeps its own best token, so no beam ever dies: that is greedy decoding, "
        "several times. All continuations of all beams compete.": _own_best,
        "You forget what the beams have cost so far: add their scores.": (
            lambda scores, log_probabilities, width: _best(
                log_probabilities, width, log_probabilities.shape[1]
            )
        ),
        "You multiply logarithms. Probabilities are multiplied, their logarithms added.": (
            lambda scores, log_probabilities, width: _best(
                scores[:, None] * log_probabilities, width, log_probabilities.shape[1]
            )
        ),
        "You add probabilities to logarithms: leave out the exp.": (
            lambda scores, log_probabilities, width: _best(
                scores[:, None] + log_probabilities.exp(), width, log_probabilities.shape[1]
            )
        ),
        "Flattened, a row has as many entries as there are tokens: divide by the vocabulary, not "
        "by the number of beams.": _wrong_columns,
        "Flattened, a row has as many entries as there are tokens: divide by the vocabulary, not "
        "by `width`.": lambda scores, log_probabilities, width: _best(
            scores[:, None] + log_probabilities, width, width
        ),
        "You keep as many as there were beams: `width` says how many.": (
            lambda scores, log_probabilities, width: _beam_step(
                scores, log_probabilities, len(scores)
            )
        ),
        "Your table has a row for each token and a column for each beam: divide by the number of "
        "columns, or let each beam be a row.": lambda scores, log_probabilities, width: _best(
            (scores[:, None] + log_probabilities).T, width, log_probabilities.shape[1]
        ),
        "Only the best beam is continued: all continuations of all beams compete.": _of_the_best,
        "Parents and tokens are swapped: // gives the row, the beam; % the column, the token.": (
            _exchanged
        ),
        "Those are the log-probabilities of the tokens alone: a continuation's score is that of "
        "its beam plus that of its token.": lambda scores, log_probabilities, width: (
            log_probabilities[_beam_step(scores, log_probabilities, width)[1:]],
            *_beam_step(scores, log_probabilities, width)[1:],
        ),
        "You count beams from 1: the first beam is number 0.": (
            lambda scores, log_probabilities, width: _counted_on(
                _beam_step(scores, log_probabilities, width), (0, 1, 0)
            )
        ),
        "You count tokens from 1: the first token is number 0.": (
            lambda scores, log_probabilities, width: _counted_on(
                _beam_step(scores, log_probabilities, width), (0, 0, 1)
            )
        ),
        "You keep the smallest scores: the largest are the best, since a logarithm grows with its "
        "probability.": lambda scores, log_probabilities, width: _negated(
            *_beam_step(-scores, -log_probabilities, width)
        ),
        "Those are probabilities: scores stay logarithms, without an exp.": (
            lambda scores, log_probabilities, width: (
                _beam_step(scores, log_probabilities, width)[0].exp(),
                *_beam_step(scores, log_probabilities, width)[1:],
            )
        ),
    },
    also={
        "There is no beam {}: they are numbered from 0 to {}.": _no_such(1, axis=0),
        "There is no token {}: they are numbered from 0 to {}.": _no_such(2, axis=1),
        "Number {} of your scores is {:.3f}, but beam {} continued by token {} has {:.3f}: score, "
        "parent and token must be of the same candidate.": _not_together,
        "You keep beam {} continued by token {} twice: each candidate counts once.": _twice,
        "The worst come first: the best are asked for, in descending order.": (
            lambda result, *_: bool((result[0].diff() > 1e-6).any())
        ),
        "Each beam gives only its own best token here. All continuations compete, and a good beam "
        "may have several among the best.": (_one_of_each),
        "Beam {} continued by token {} has the score {:.3f}, and you leave it out for a worse one: "
        "all continuations of all beams compete.": _better_left_out,
    },
    cases=[
        Case(
            name,
            -randn(beams, seed=seed).abs(),
            (1.5 * randn(beams, size, seed=seed + 1)).log_softmax(-1),
            width,
        )
        for name, beams, size, width, seed in (
            ("3 beams and 7 tokens", 3, 7, 3, 20),
            ("2 beams and 5 tokens", 2, 5, 2, 30),
            ("5 beams and 11 tokens", 5, 11, 5, 40),
            ("1 beam that becomes 4", 1, 7, 4, 50),
            ("4 beams that become 2", 4, 5, 2, 60),
        )
    ],
    axes=("width", "width", "width"),
    praise="Right: all continuations of all beams compete, and the best survive.",
)


# --- min-p ----------------------------------------------------------------------------------------


def _min_p(probabilities, p):
    return _where(probabilities, probabilities >= p * probabilities.max())


def _misjudged(result, probabilities, p, *, kept):
    """The share of a token that is kept, or cut, and should not be."""
    wrongly = ((result.abs() > 1e-6) == kept) & ((_min_p(probabilities, p) > 0) != kept)
    shares = (probabilities / probabilities.max())[wrongly]
    return (float(shares[0]), p) if len(shares) else None


check_min_p = Exercise(
    asks="`answer(probabilities, p)`: what min-p leaves of them, as a distribution; [vocabulary].",
    right=_min_p,
    wrong={
        "You compare with p itself. The bound is a share of the largest probability, so that it "
        "falls where the model is unsure.": lambda probabilities, p: _where(
            probabilities, probabilities >= p
        ),
        "That is top-p: it counts what comes before a token. Min-p looks at one token and the "
        "largest.": _nucleus,
        "The other way round: you keep what is less probable than the bound.": (
            lambda probabilities, p: _where(probabilities, probabilities < p * probabilities.max())
        ),
        "What is left does not sum to 1: normalize again.": (
            lambda probabilities, p: probabilities * (probabilities >= p * probabilities.max())
        ),
        "The bound is p times the largest, not the largest minus p.": (
            lambda probabilities, p: _where(probabilities, probabilities >= probabilities.max() - p)
        ),
        "The bound is a share of the largest probability, not of their mean.": (
            lambda probabilities, p: _where(
                probabilities, probabilities >= p * probabilities.mean()
            )
        ),
        "What is below the bound is raised to it. It should become 0.": lambda probabilities, p: (
            _where(probabilities.clamp(min=p * probabilities.max()), torch.ones(()))
        ),
        "You take the softmax of probabilities: divide what is left by its sum.": (
            lambda probabilities, p: probabilities.where(
                probabilities >= p * probabilities.max(), -torch.inf
            ).softmax(-1)
        ),
        "You cut a token that has exactly the share p. With p = 1 that is the most probable one, "
        "and nothing is left: keep what has at least this share, `>=`.": lambda probabilities, p: (
            _where(probabilities, probabilities > p * probabilities.max())
        ),
        "The result is in the order of the probabilities. Leave each token at its place: min-p "
        "needs no sorting.": lambda probabilities, p: (
            _min_p(probabilities, p).sort(descending=True).values
        ),
        "`argmax` is the place of the largest probability; its size, `max`, sets the bound.": (
            lambda probabilities, p: _where(
                probabilities, probabilities >= p * probabilities.argmax()
            )
        ),
        "You compare logarithms with p times the largest logarithm. To multiply a probability by "
        "p is to add log p to its logarithm.": lambda probabilities, p: _where(
            probabilities, probabilities.log() >= p * probabilities.log().max()
        ),
        "The bound is p times the largest probability, not 1 - p times.": lambda probabilities, p: (
            _where(probabilities, probabilities >= (1 - p) * probabilities.max())
        ),
        "You take the softmax of probabilities, so that what is cut, a 0, gets e⁰. Divide what is "
        "left by its sum.": lambda probabilities, p: (
            probabilities * (probabilities >= p * probabilities.max())
        ).softmax(-1),
    },
    also={
        "You cut a token that has {:.3g} times the largest probability. It may stay: p = {:g}.": (
            lambda result, probabilities, p: _misjudged(result, probabilities, p, kept=False)
        ),
        "You keep a token that has only {:.3g} times the largest probability: p = {:g}.": (
            lambda result, probabilities, p: _misjudged(result, probabilities, p, kept=True)
        ),
        OTHER_RATIOS: _other_ratios(_min_p),
    },
    cases=[
        Case("a model that is sure", torch.tensor([0.04, 0.85, 0.08, 0.03]), 0.05),
        Case("one that is not", torch.tensor([0.21, 0.04, 0.3, 0.16, 0.19, 0.1]), 0.5),
        Case("7 tokens", (2 * randn(7, seed=70)).softmax(-1), 0.2),
        Case("the largest p, 1", torch.tensor([0.25, 0.4, 0.3, 0.05]), 1.0),
        Case("small chances", torch.tensor([0.0987, 0.0011, 0.9, 0.0002]), 0.001),
    ],
    axes="vocabulary",
    tolerance=EXACT,
    praise="Right: a bound that moves with the model's own certainty.",
)


# --- the head that looks at a sentence ------------------------------------------------------------


def _maps(layers: int, heads: int, tokens: int, seed: int) -> Tensor:
    scores = 2 * randn(layers, heads, tokens, tokens, seed=80 + seed)
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def _place(scores: Tensor) -> tuple[int, int]:
    return divmod(int(scores.flatten().argmax()), scores.shape[1])


def _find_head(maps, asks, start, stop):
    return _place(maps[:, :, asks, start:stop].sum(-1))


def _flat_index(maps, asks, start, stop):
    return int(maps[:, :, asks, start:stop].sum(-1).argmax())


def _rows_and_heads(maps, asks, start, stop):
    return divmod(_flat_index(maps, asks, start, stop), len(maps))


def _layer_first(maps, asks, start, stop):
    on_it = maps[:, :, asks, start:stop].sum(-1)
    layer = int(on_it.sum(1).argmax())
    return layer, int(on_it[layer].argmax())


def _head_first(maps, asks, start, stop):
    on_it = maps[:, :, asks, start:stop].sum(-1)
    head = int(on_it.sum(0).argmax())
    return int(on_it[:, head].argmax()), head


def _each_by_its_sum(maps, asks, start, stop):
    on_it = maps[:, :, asks, start:stop].sum(-1)
    return int(on_it.sum(1).argmax()), int(on_it.sum(0).argmax())


def _of_the_first(answer, look):
    """What `look` says of the first case on which the answer is wrong."""
    for case in check_find_head.cases:
        result = tuple(int(n) for n in answer(*case.inputs))
        if result != _find_head(*case.inputs):
            return look(result, *case.inputs)
    return None


def _not_there(result, maps, *_):
    layer, head = (int(n) for n in result)
    layers, heads = maps.shape[:2]
    there = 0 <= layer < layers and 0 <= head < heads
    return None if there else (layer, head, layers, heads)


def _has_less(result, maps, asks, start, stop):
    on_it = maps[:, :, asks, start:stop].sum(-1)
    layer, head = (int(n) for n in result)
    return asks, head, layer, float(on_it[layer, head]), float(on_it.max())


def _constant_divisor(answer):
    """Is a place in the flat scores divided by a number that no shape gives?"""
    layers, heads = 3, 37
    found = []
    for place in range(layers * heads):
        maps = torch.zeros(layers, heads, 5, 5)
        maps[..., 0] = 1.0
        maps[place // heads, place % heads, 4] = torch.tensor([0.0, 0.5, 0.5, 0.0, 0.0])
        found.append(tuple(int(n) for n in answer(maps, 4, 1, 3)))
    others = set(range(2, heads)) - {layers, 5}
    return any(found == [divmod(n, other) for n in range(layers * heads)] for other in others)


check_find_head = Exercise(
    asks="""`answer(maps, asks, start, stop)`: (layer, head), two ints.

    maps [layers, heads, queries, keys]; the head whose query `asks` puts the most weight on the
    keys from `start` to before `stop`.
    """,
    right=_find_head,
    adapt=lambda result: (
        tuple(torch.as_tensor(part).reshape(()).long() for part in result)
        if isinstance(result, tuple | list) and len(result) == 2
        else result
    ),
    wrong={
        "That is one number: the place in the flattened scores. Divide it by the number of heads, "
        "// for the layer and % for the head.": _flat_index,
        "Layer and head are swapped.": lambda maps, asks, start, stop: (
            _find_head(maps, asks, start, stop)[::-1]
        ),
        "You divide the place by the number of layers. A row of the scores has as many entries as "
        "there are heads.": _rows_and_heads,
        "You look at the column of the question: who looks at *it*. Its own row says where it "
        "looks: maps[:, :, asks, start:stop].": lambda maps, asks, start, stop: _place(
            maps[:, :, start:stop, asks].sum(-1)
        ),
        "You take the largest single weight. A head may spread what it has over the sentence: add "
        "its weights up.": lambda maps, asks, start, stop: _place(
            maps[:, :, asks, start:stop].amax(-1)
        ),
        "You add up the weights of all queries. The question is where *this* one looks.": (
            lambda maps, asks, start, stop: _place(maps[:, :, :, start:stop].sum((-1, -2)))
        ),
        "`stop` is the first key behind the sentence and does not belong to it.": (
            lambda maps, asks, start, stop: _find_head(maps, asks, start, stop + 1)
        ),
        "The last key of the sentence is missing: a slice ends before `stop` by itself.": (
            lambda maps, asks, start, stop: _find_head(maps, asks, start, stop - 1)
        ),
        "You take the last query of the text: `asks` says which.": (
            lambda maps, asks, start, stop: _find_head(maps, -1, start, stop)
        ),
        "The first key of the sentence is missing: it begins at `start`.": (
            lambda maps, asks, start, stop: _find_head(maps, asks, start + 1, stop)
        ),
        "You take the query before: `asks` counts from 0, as all indices here.": (
            lambda maps, asks, start, stop: _find_head(maps, asks - 1, start, stop)
        ),
        "You count from 1. Layers and heads, like all indices here, count from 0.": (
            lambda maps, asks, start, stop: tuple(
                n + 1 for n in _find_head(maps, asks, start, stop)
            )
        ),
        "You choose the layer first, by all its heads together. The best head may stand in a layer "
        "whose others look elsewhere: compare all heads at once.": _layer_first,
        "You choose the head first, by its number in all layers together. Head 2 of one layer has "
        "nothing to do with head 2 of another: compare all heads at once.": _head_first,
        "You choose layer and head each by a sum of its own. They belong together: compare all "
        "heads of all layers at once.": _each_by_its_sum,
        "You add up the whole row from `start` on: the sentence ends before `stop`.": (
            lambda maps, asks, start, stop: _find_head(maps, asks, start, maps.shape[-1])
        ),
        "You look at the first key of the sentence only: add up the weights on all its keys.": (
            lambda maps, asks, start, stop: _find_head(maps, asks, start, start + 1)
        ),
        "You look for the least weight: the most is asked for.": (
            lambda maps, asks, start, stop: _place(-maps[:, :, asks, start:stop].sum(-1))
        ),
    },
    about={
        "You divide the place in the flattened scores by a number that stays the same for every "
        "shape. The number of heads is `maps.shape[1]`.": _constant_divisor,
        "You answer with layer {} and head {}, but there are {} layers of {} heads, counted from "
        "0.": lambda answer: _of_the_first(answer, _not_there),
        "Of query {}, head {} of layer {} has {:.3f} on the sentence, and another head has {:.3f}: "
        "print this number of all heads.": lambda answer: _of_the_first(answer, _has_less),
    },
    cases=[
        Case(f"{layers} layers of {heads} heads", _maps(layers, heads, tokens, seed), *span)
        for layers, heads, tokens, seed, span in (
            (3, 5, 11, 9, (10, 2, 6)), (2, 7, 13, 62, (9, 4, 8)), (5, 2, 11, 177, (7, 1, 5)),
            (3, 5, 11, 148, (10, 2, 6)), (7, 11, 13, 15, (8, 1, 6)), (11, 7, 17, 68, (13, 5, 9)),
        )
    ],
    praise="Right: one number for each head, and the largest has a layer and a head.",
)  # fmt: skip
