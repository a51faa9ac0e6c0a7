"""Chapter 13's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by
from torch.testing import assert_close

from transformer_lib.attention import attention
from transformer_lib.cache import KeyValueCache
from transformer_lib.exercises import generating_text
from transformer_lib.exercises.generating_text import (
    HEATED,
    check_beam_step,
    check_by_temperature,
    check_cache_bytes,
    check_cached_step,
    check_min_p,
    check_nucleus,
    check_temperature,
)
from transformer_lib.sampling import filter_logits, keep_min_p, keep_top_p

RIGHT, WRONG = {}, {}

# --- what temperature alone can do --------------------------------------------------------------

RIGHT[check_by_temperature] = ["ad", {"d", "a"}, "A, D"]
WRONG[check_by_temperature] = [
    ("abd", "something has become 0"),
    ("acd", "has overtaken the first"),
    ("ade", "the ratios are not"),
    ("d", "the squares, divided"),
    ("a", "the square roots, divided"),
]


def test_the_rows_are_what_the_sentences_say():
    p = torch.tensor([0.4, 0.3, 0.2, 0.1])
    a, b, c, d, e = torch.tensor(HEATED)
    assert_close(a, (2 * p.log()).softmax(0), rtol=0, atol=5e-4)
    assert_close(d, (p.log() / 2).softmax(0), rtol=0, atol=5e-4)
    assert_close(b, keep_top_p(p.log(), 0.9).softmax(0), rtol=0, atol=5e-4)
    assert c.argmax() != p.argmax()
    powers = e.log().diff() / p.log().diff()
    assert_close(powers[:2], torch.tensor([2.4, 1.3]), rtol=0, atol=0.05)


# --- temperature --------------------------------------------------------------------------------


RIGHT[check_temperature] = [
    lambda p, t: torch.softmax(p.log() / t, dim=-1),
    lambda p, t: filter_logits(p.log(), temperature=t).softmax(-1),
    lambda p, t: torch.tensor([x ** (1 / t) for x in p]) / sum(x ** (1 / t) for x in p),
]


WRONG[check_temperature] = [
    (lambda p, t: (p / t) / (p / t).sum(), "Nothing has changed"),
    (lambda p, t: torch.softmax(p.log(), 0) / t, "the right computation does `pow` there"),
    (lambda p, t: torch.softmax(p.log() * t, 0), "with `p.log() / t` in place of `p.log() * t`"),
    (lambda p, t: torch.exp(p.log() / t), "The normalization is missing"),
    (
        lambda p, t: (p / t).softmax(0),
        "a logarithm is missing: `lambda p, t: (p.log() / t).softmax(0)`",
    ),
    (lambda p, t: ((p + 1e-9).log() / t).softmax(0), "`+ 1e-9` is too much"),
    (lambda p, t: p / t + (1 - 1 / t) / len(p), "here, at `add`, your"),
]


# --- 2: top-p -----------------------------------------------------------------------------------


def nucleus_by_loop(probabilities, p):
    left, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort(descending=True):
        if total >= p:
            break
        left[i] = probabilities[i]
        total += float(probabilities[i])
    return left / left.sum()


RIGHT[check_nucleus] = [nucleus_by_loop, lambda x, p: keep_top_p(x.log(), p).softmax(-1)]


def without_the_last(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    keep = ordered.cumsum(0) < p
    left = torch.zeros_like(probabilities)
    left[order] = ordered * keep
    return left / left.sum()


def test_a_change_that_the_check_behind_refuses_is_not_told():
    """With `probabilities` in place of `ordered` it would be right but for equal tokens."""
    said = check_nucleus(without_the_last).diagnosis
    assert "are 3. Line" in said
    assert "`p + ordered`" in said


def by_removal(probabilities, p, *, start=0, shift=False, equal=False):
    """As it is written in many repositories: sort, mark what is to go, put it back in place."""
    ordered, order = torch.sort(probabilities, descending=True)
    total = ordered.cumsum(0)
    remove = total >= p if equal else total > p
    if shift:
        remove = torch.cat((torch.zeros(1, dtype=torch.bool), remove[:-1]))
    remove[:start] = False
    left = probabilities.clone()
    left[order[remove]] = 0.0
    return left / left.sum()


RIGHT[check_nucleus] += [
    lambda x, p: by_removal(x, p, shift=True, equal=True),
    lambda x, p: by_removal(x.double(), p, shift=True, equal=True),
    lambda x, p: nucleus_by_loop(x.flip(0), p).flip(0),  # of equal tokens, others are kept
]


def by_size(probabilities, p, *, more):
    """Judge each token by its size: of equal ones, all are kept or none."""
    ordered = probabilities.sort(descending=True).values
    last = int((ordered.cumsum(0) < p).sum())
    keep = probabilities >= ordered[last] if more else probabilities > ordered[last + 1]
    return normalized(probabilities * keep)


def by_index(probabilities, p):
    values, total = probabilities.tolist(), 0.0
    left = torch.zeros_like(probabilities)
    for value in sorted(values, reverse=True):
        if total < p:
            left[values.index(value)] = value  # of equal ones, the first each time
            total += value
    return normalized(left)


def sorted_result(probabilities, p):
    return nucleus_by_loop(probabilities, p).sort(descending=True).values


def ascending(probabilities, p):
    left, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort():
        if total < p:
            left[i] = probabilities[i]
            total += float(probabilities[i])
    return left / left.sum()


def normalized(values):
    return values / values.sum()


WRONG[check_nucleus] = [
    (
        lambda x, p: by_removal(x, p, start=1),
        "of your tokens, 2 are kept, and together they have 0.7. The ",
    ),
    (lambda x, p: by_removal(x, p), "of your tokens, 2 are kept, and together they have 0.7. The "),
    (
        lambda x, p: by_removal(x, p, equal=True, start=1),
        "of your tokens, 2 are kept, and together they have 0.7. The ",
    ),
    (
        lambda x, p: by_removal(x, p, equal=True),
        "of your tokens, 2 are kept, and together they have 0.7. The ",
    ),
    (
        lambda x, p: by_removal(x, p, shift=True),
        "of your tokens, 3 are kept, and together they have 0.875. Th",
    ),
    (
        lambda x, p: normalized(x * (x.sort(descending=True)[0].cumsum(0) <= p)),
        "Try it on probabilities that are not in order",
    ),
    (
        lambda x, p: normalized(x * (sorted_result(x, p) > 0)),
        "here, at `mul`, your values depart",
    ),
    (lambda x, p: x.where(nucleus_by_loop(x, p) > 0, 0.0), "still to be divided by their sum"),
    (sorted_result, "The result is in the order of the probabilities"),
    (ascending, "of your tokens, 5 are kept, and together they have 1. The fe"),
    (
        lambda x, p: normalized(x.where(x >= 1 - p, 0.0)),
        "of your tokens, 2 are kept, and together they have 0.7. The ",
    ),
    (
        lambda x, p: normalized(x * (x / x.max() >= p)),
        "of your tokens, 1 are kept, and together they have 0.4. The ",
    ),
    (lambda x, p: normalized(x.where(x >= p, 0.0)), "You compare each probability with p itself"),
    (lambda x, p: normalized(x * (x.cumsum(0) - x < p)), "in the order of the vocabulary"),
    (
        lambda x, p: normalized(x * (sorted_result(x, p) > 0)[x.sort(descending=True).indices]),
        "here, at `getitem`, your values depart",
    ),
    (
        lambda x, p: x.where(nucleus_by_loop(x, p) > 0, -torch.inf).softmax(0),
        "a logarithm is missing: `lambda x, p: x.",
    ),
    (
        lambda x, p: x.where(nucleus_by_loop(x, p) > 0, 0.0).softmax(0),
        "a logarithm is missing: `(x.where(nucleus_by_loop(x, p) > 0, 0.0)).log",
    ),
    (lambda x, p: by_size(x, p, more=True), "you keep more than it takes to reach p"),
    (lambda x, p: by_size(x, p, more=False), "you keep too few"),
    (by_index, "you keep too few"),
    (
        lambda x, p: nucleus_by_loop(x, p)[nucleus_by_loop(x, p) > 0],
        "with `nucleus_by_loop(x, p) >= 0` in place of `nucleus_by_loop(x, p) >",
    ),
    (
        lambda x, p: normalized(x * (x.argsort().argsort() >= len(x) - int(p * len(x)))),
        "4 are kept, and together they have 0.95. The fewest that reach p, 0.8, are 3",
    ),
    (lambda x, p: nucleus_by_loop(x.where(x > 1e-3, 0.0), p), "on small chances"),
    (
        lambda x, p: normalized(x * (x < x.max())),
        "of your tokens, 4 are kept, and together they have 0.6. The ",
    ),
    (lambda x, p: normalized(nucleus_by_loop(x, p) ** 2), "`** 2` is too much"),
    (lambda x, p: nucleus_by_loop(x, p).nonzero()[:, 0], "are they places, where values"),
]


# --- 5: a step of beam search -------------------------------------------------------------------


def beam_by_sorting(scores, log_probabilities, width):
    found = []
    for parent, row in enumerate(log_probabilities.tolist()):
        for token, value in enumerate(row):
            found.append((scores[parent].item() + value, parent, token))
    best = sorted(found, reverse=True)[:width]
    values, parents, tokens = zip(*best, strict=True)
    return torch.tensor(values), torch.tensor(parents), torch.tensor(tokens)


def beam_by_topk(scores, log_probabilities, width):
    candidates = scores.unsqueeze(1) + log_probabilities
    values, places = candidates.reshape(-1).topk(width)
    return values, *torch.unravel_index(places, candidates.shape)


RIGHT[check_beam_step] = [beam_by_sorting, beam_by_topk]


def own_best(scores, log_probabilities, width):
    tokens = log_probabilities.argmax(1)
    rows = torch.arange(len(tokens))
    return scores + log_probabilities[rows, tokens], rows, tokens


def of(candidates, width, columns=None):
    values, places = candidates.flatten().topk(width)
    columns = columns or candidates.shape[1]
    return values, torch.div(places, columns, rounding_mode="floor"), places.remainder(columns)


def smallest(scores, log_probabilities, width):
    candidates = scores[:, None] + log_probabilities
    values, places = candidates.flatten().sort()
    return values[:width], *torch.unravel_index(places[:width], candidates.shape)


WRONG[check_beam_step] = [
    (own_best, "Each beam keeps its own best"),
    (lambda s, x, w: of(x, w), "You forget what the beams have cost"),
    (
        lambda s, x, w: of(s.view(-1, 1) * x, w),
        "with `s.view(-1, 1) + x` in place of `s.view(-1, 1) * x`",
    ),
    (lambda s, x, w: of(s.view(-1, 1) + x.exp(), w), "`.exp()` is one step too many"),
    (lambda s, x, w: beam_by_topk(s, x, len(s)), "You keep as many as there were beams"),
    (
        lambda s, x, w: of((s + x.T), w, x.shape[1]),
        "a transpose is missing: `(s + x.T).mT` in place of `s + x.T`",
    ),
    (
        lambda s, x, w: (
            (s.max() + x[s.argmax()]).topk(w).values,
            torch.full((w,), int(s.argmax())),
            x[s.argmax()].topk(w).indices,
        ),
        "beam 0 continued by token 5 has the score -1.842, and you le",
    ),
    (lambda s, x, w: (x[beam_by_topk(s, x, w)[1:]], *beam_by_topk(s, x, w)[1:]), "tokens alone"),
    (
        lambda s, x, w: (*beam_by_topk(s, x, w)[:2], (s[:, None] + x).flatten().topk(w).indices),
        "beam 1 continued by token 4 has the score -1.235, and you le",
    ),
    (smallest, "beam 1 continued by token 4 has the score -1.235, and you le"),
    (
        lambda s, x, w: [
            y[own_best(s, x, w)[0].argsort(descending=True)] for y in own_best(s, x, w)
        ],
        "gives only its own best token here",
    ),
    (
        lambda s, x, w: (
            beam_by_topk(s, x, w)[0],
            beam_by_topk(s, x, w)[1] / 1,
            beam_by_topk(s, x, w)[2],
        ),
        "whole numbers are expected",
    ),
]


# --- 3: one step of attention with a cache ------------------------------------------------------


def by_library(q, k, v, keys, values):
    keys, values = torch.cat((keys, k), 1), torch.cat((values, v), 1)
    return attention(q, keys, values, causal=True), keys, values


def by_cache(q, k, v, keys, values):
    heads, tokens, d_head = keys.shape
    cache = KeyValueCache(1, heads, tokens + 1, d_head)
    cache.extend(keys.unsqueeze(0), values.unsqueeze(0))
    keys, values = (x[0].clone() for x in cache.extend(k.unsqueeze(0), v.unsqueeze(0)))
    return F.scaled_dot_product_attention(q, keys, values), keys, values


def by_loop(q, k, v, keys, values):
    keys, values = torch.cat((keys, k), 1), torch.cat((values, v), 1)
    rows = []
    for head in range(len(q)):
        scores = [q[head, 0] @ key / len(key) ** 0.5 for key in keys[head]]
        weights = torch.stack(scores).softmax(0)
        rows.append(sum(w * value for w, value in zip(weights, values[head], strict=True)))
    return torch.stack(rows).unsqueeze(1), keys, values


RIGHT[check_cached_step] = [by_library, by_cache, by_loop]


def longer(k, v, keys, values):
    return torch.cat((keys, k), 1), torch.cat((values, v), 1)


def plain(q, keys, values, **options):
    return F.scaled_dot_product_attention(q, keys, values, **options)


WRONG[check_cached_step] = [
    (
        lambda q, k, v, old, values: (plain(q, old, values), *longer(k, v, old, values)),
        "The new token does not see itself",
    ),
    (
        lambda q, k, v, old, values: (plain(q, k, v), *longer(k, v, old, values)),
        "here, at `scaled_dot_product_attention`, your values depart",
    ),
    (
        lambda q, k, v, *old: (
            (plain(q, *longer(k, v, *old), is_causal=True), *longer(k, v, *old))
        ),
        "without `is_causal=True` it is right",
    ),
    (
        lambda q, k, v, *old: (plain(q, *longer(k, v, *old)), *old),
        "The cache that you return has not grown",
    ),
    (
        lambda q, k, v, keys, values: (
            plain(q, *longer(keys, values, k, v)),
            *longer(keys, values, k, v),
        ),
        "with `k, v, keys, values` in place of `keys, values, k, v`",
    ),
    (
        lambda q, k, v, *old: (
            longer(k, v, *old)[1].sum(1, keepdim=True),
            *longer(k, v, *old),
        ),
        "here, at `sum`, your values depart",
    ),
    (
        lambda q, k, v, *old: plain(q, *longer(k, v, *old)),
        "your result is a tensor of shape (11, 1, 7); a tuple of 3 is expected",
    ),
]


# --- 4: how large the cache is ------------------------------------------------------------------


def by_counting(batch, tokens, n_layers, d_model, number):
    cache = KeyValueCache(1, 1, tokens, d_model)
    keys, values = cache.extend(*(torch.zeros(1, 1, tokens, d_model) for _ in range(2)))
    return (keys.numel() + values.numel()) * batch * n_layers * number


RIGHT[check_cache_bytes] = [by_counting, lambda b, t, n, d, k: 2 * b * t * n * d * k]


WRONG[check_cache_bytes] = [
    (lambda b, t, n, d, k: b * t * n * d * k, "two vectors, and not one"),
    (lambda b, t, n, d, k: b * t * n * d * k * 3, "with `2` in place of `3`"),
    (lambda b, t, n, d, k: b * t * d * k * 2, "`* n` is missing after `b * t * d * k * 2`"),
    (lambda b, t, n, d, k: 2 * d * d * n * k, "never uses its argument `b`"),
    (lambda b, t, n, d, k: b * t * n * d * k // 4, "do not divide by 8"),
    (lambda b, t, n, d, k: 16 * b * t * n * d * k, "our result is 8 times the right one."),
    (lambda b, t, n, d, k: b * t**2 * n * k * 2, "never uses its argument `d`"),
    (
        lambda b, t, n, d, k: (b + 1) * t * n * d * k,
        "has `tokens * n_layers * d_model * number` too much, and `batch * tokens * n_layers * ",
    ),
    (lambda b, t, n, d, k: 2 * b * t * (n + 1) * d * k, "`+ 1` is too much"),
    (lambda b, t, n, d, k: 2 * b * t * n * 768 * k, "768 is written down where `d` belongs"),
    (lambda b, t, n, d, k: 2 * b * t * n * d * 4, "4 is written down where `k` belongs"),
    (lambda b, t, n, d, k: 4 * b * t * n * d * k, "with `2` in place of `4`"),
]


# --- min-p --------------------------------------------------------------------------------------

RIGHT[check_min_p] = [
    lambda x, p: keep_min_p(x.log(), p).softmax(-1),
    lambda x, p: (
        torch.tensor(
            [float(y) if y / max(x) >= p else 0.0 for y in x],
        )
        / sum(y for y in x if y / max(x) >= p)
    ),
]
WRONG[check_min_p] = [
    (lambda x, p: normalized(x.where(x >= p, 0.0)), "You compare with m itself"),
    (nucleus_by_loop, "That is top-p"),
    (
        lambda x, p: normalized(x.where(x / x.max() < p, 0.0)),
        "with `x / x.max() >= p` in place of `x / x.max() < p`",
    ),
    (lambda x, p: x.where(x / x.max() >= p, 0.0), "still to be divided by their sum"),
    (lambda x, p: normalized(x.where(x >= x.max() - p, 0.0)), "here, at `sub`, your"),
    (lambda x, p: normalized(x.where(x >= x.mean() * p, 0.0)), "not of their mean"),
    (lambda x, p: normalized(torch.maximum(x, x.max() * p)), "What is below the bound is raised"),
    (
        lambda x, p: x.masked_fill(x < p * x.max(), -torch.inf).softmax(0),
        "a logarithm is missing: `lambda x, p: x.",
    ),
    (
        lambda x, p: x.masked_fill(x < p * x.max(), 0.0).softmax(0),
        "a logarithm is missing: `(x.masked_fill(x < p * x.max(), 0.0)).log()` ",
    ),
    (lambda x, p: normalized(x.where(x / x.max() >= 1 - p, 0.0)), "`1 -` is too much"),
    (lambda x, p: normalized(x.where(x >= p * x.argmax(), 0.0)), "`argmax` is the place"),
    (
        lambda x, p: normalized(x[x >= p * x.max()]),
        "your result has the shape (2,); it should be (4,) = (vocabulary)",
    ),
    (
        lambda x, p: keep_min_p(x.log(), p).softmax(-1).sort(descending=True).values,
        "needs no sorting",
    ),
    (lambda x, p: normalized((x - p * x.max()).relu() + (x == x.max())), "not their ratios"),
    (
        lambda x, p: x.log().masked_fill(x.log() < p * x.log().max(), -torch.inf).softmax(0),
        "m times the largest logarithm",
    ),
    (
        lambda x, p: normalized(x * (x >= 2 * p * x.max()) + (x == x.max())),
        "it is False where True is right, and nowhere the other way round",
    ),
]


@pytest.mark.parametrize("exercise", exercises(generating_text))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
