"""Checks for chapter 13, generating text, and for its deeper page."""

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

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
    asks="Which rows can temperature make from 0.4, 0.3, 0.2, 0.1? All letters.",
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


check_temperature = Exercise(
    asks="`answer(probabilities, temperature)`: what temperature makes from them, both "
    "[vocabulary].",
    right=_temperature,
    wrong={
        "Nothing has changed: dividing all probabilities by one number and normalizing again gives "
        "them back. Temperature divides the logits, their logarithms.": (
            lambda probabilities, temperature: probabilities
        ),
        "The normalization is missing: the powers do not sum to 1.": (
            lambda probabilities, temperature: probabilities ** (1 / temperature)
        ),
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


def _still_sorted(probabilities, p):
    ordered = probabilities.sort(descending=True).values
    left = ordered * (ordered.cumsum(-1) - ordered < p)
    return left / left.sum()


def _where(probabilities: Tensor, keep: Tensor) -> Tensor:
    left = probabilities * keep
    return left / left.sum()


def _broken_nucleus(probabilities, p):
    keep = probabilities.sort(descending=True).values.cumsum(-1) <= p
    return _where(probabilities, keep)


def _kept_mass(result, probabilities):
    return float(probabilities[result > 0].sum())


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
        "The result is in the order of the probabilities. Token i must be at place i again: "
        "scatter what you have sorted.": _still_sorted,
        "You go through the tokens in the order of the vocabulary: sort them first.": (
            lambda probabilities, p: _where(
                probabilities, probabilities.cumsum(-1) - probabilities < p
            )
        ),
        "You compare each probability with p itself. Top-p adds up the most probable ones until "
        "they reach p.": lambda probabilities, p: _where(probabilities, probabilities >= p),
    },
    also={
        "Of your tokens, {} are kept, and together they have {:.4g}. The fewest that reach p, "
        "{:g}, are {}.": _too_few_or_many,
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
        "The cache that you return has not grown: the next token will miss this one.": (
            lambda q, k, v, keys, values: (
                _attend(q, *_extended(k, v, keys, values)),
                keys,
                values,
            )
        ),
    },
    cases=[
        Case(
            f"a cache of {n} tokens" if heads > 1 else "a single head",
            *(2 * randn(heads, 1, d, seed=seed + i) for i in range(3)),
            *(randn(heads, n, d, seed=seed + 3 + i) for i in range(2)),
            edge=heads == 1,
        )
        for heads, n, d, seed in ((11, 5, 7, 0), (11, 2, 5, 10), (1, 3, 5, 70))
    ],
    axes=("heads query d_head", "heads tokens d_head", "heads tokens d_head"),
    praise="Right: one query, all the keys so far, and a cache that is longer by one.",
)


# --- how large the cache is -----------------------------------------------------------------------


def _cache_bytes(batch, tokens, n_layers, d_model, number):
    return 2 * batch * tokens * n_layers * d_model * number


check_cache_bytes = Exercise(
    asks="`answer(batch, tokens, n_layers, d_model, number)`: the bytes of a model's cache.",
    right=_cache_bytes,
    wrong={
        "A key and a value are kept for each token: two vectors, and not one.": (
            lambda batch, tokens, n_layers, d_model, number: (
                batch * tokens * n_layers * d_model * number
            )
        ),
        "`number` is in bytes already: do not divide by 8.": (
            lambda batch, tokens, n_layers, d_model, number: (
                2 * batch * tokens * n_layers * d_model * number // 8
            )
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
        "You keep as many as there were beams: `width` says how many.": (
            lambda scores, log_probabilities, width: _beam_step(
                scores, log_probabilities, len(scores)
            )
        ),
        "Those are the log-probabilities of the tokens alone: a continuation's score is that of "
        "its beam plus that of its token.": lambda scores, log_probabilities, width: (
            log_probabilities[_beam_step(scores, log_probabilities, width)[1:]],
            *_beam_step(scores, log_probabilities, width)[1:],
        ),
    },
    also={
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
            edge=width == 1 or width > size,
        )
        for name, beams, size, width, seed in (
            ("3 beams and 7 tokens", 3, 7, 3, 20),
            ("2 beams and 5 tokens", 2, 5, 2, 30),
            ("5 beams and 11 tokens", 5, 11, 5, 40),
            ("1 beam that becomes 4", 1, 7, 4, 50),
            ("4 beams that become 2", 4, 5, 2, 60),
            ("a single beam", 1, 7, 1, 80),
            ("more beams than tokens", 3, 2, 4, 90),
        )
    ],
    axes=("width", "width", "width"),
    praise="Right: all continuations of all beams compete, and the best survive.",
)


# --- min-p ----------------------------------------------------------------------------------------


def _min_p(probabilities, p):
    return _where(probabilities, probabilities >= p * probabilities.max())


check_min_p = Exercise(
    asks="`answer(probabilities, m)`: what min-p leaves of them, as a distribution; [vocabulary].",
    right=_min_p,
    wrong={
        "You compare with m itself. The bound is a share of the largest probability, so that it "
        "falls where the model is unsure.": lambda probabilities, p: _where(
            probabilities, probabilities >= p
        ),
        "That is top-p: it counts what comes before a token. Min-p looks at one token and the "
        "largest.": _nucleus,
        "The bound is a share of the largest probability, not of their mean.": (
            lambda probabilities, p: _where(
                probabilities, probabilities >= p * probabilities.mean()
            )
        ),
        "What is below the bound is raised to it. It should become 0.": lambda probabilities, p: (
            _where(probabilities.clamp(min=p * probabilities.max()), torch.ones(()))
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
        "You compare logarithms with m times the largest logarithm. To multiply a probability by "
        "m is to add log m to its logarithm.": lambda probabilities, p: _where(
            probabilities, probabilities.log() >= p * probabilities.log().max()
        ),
    },
    also={
        OTHER_RATIOS: _other_ratios(_min_p),
    },
    cases=[
        Case("a model that is sure", torch.tensor([0.04, 0.85, 0.08, 0.03]), 0.05),
        Case("one that is not", torch.tensor([0.21, 0.04, 0.3, 0.16, 0.19, 0.1]), 0.5),
        Case("7 tokens", (2 * randn(7, seed=70)).softmax(-1), 0.2),
        Case("the largest m, 1", torch.tensor([0.25, 0.4, 0.3, 0.05]), 1.0),
        Case("small chances", torch.tensor([0.0987, 0.0011, 0.9, 0.0002]), 0.001),
    ],
    axes="vocabulary",
    tolerance=EXACT,
    praise="Right: a bound that moves with the model's own certainty.",
)
