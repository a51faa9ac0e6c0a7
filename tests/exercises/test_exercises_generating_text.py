"""Chapter 13's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge
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
    check_find_head,
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
    (lambda p, t: torch.softmax(p.log(), 0) / t, "You divide the probabilities"),
    (lambda p, t: torch.softmax(p.log() * t, 0), "Upside down"),
    (lambda p, t: torch.exp(p.log() / t), "The normalization is missing"),
    (lambda p, t: (p / t).softmax(0), "You take the softmax of probabilities"),
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


RIGHT[check_nucleus] += [lambda x, p: by_removal(x, p, shift=True, equal=True)]


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
    (lambda x, p: by_removal(x, p, start=1), "The token with which the sum reaches p is cut. "),
    (lambda x, p: by_removal(x, p), "The token with which the sum reaches p is cut, and"),
    (
        lambda x, p: by_removal(x, p, equal=True, start=1),
        "The token with which the sum reaches p is cut, even where the sum is p exactly. It",
    ),
    (
        lambda x, p: by_removal(x, p, equal=True),
        "The token with which the sum reaches p is cut, even where the sum is p exactly, and",
    ),
    (lambda x, p: by_removal(x, p, shift=True), "One too many"),
    (
        lambda x, p: normalized(x * (x.sort(descending=True)[0].cumsum(0) <= p)),
        "Try it on probabilities that are not in order",
    ),
    (
        lambda x, p: normalized(x * (sorted_result(x, p) > 0)),
        "The right number of tokens, and not the right ones",
    ),
    (lambda x, p: x.where(nucleus_by_loop(x, p) > 0, 0.0), "What is left does not sum to 1"),
    (sorted_result, "The result is in the order of the probabilities"),
    (ascending, "You begin with the least probable"),
    (lambda x, p: normalized(x.where(x >= 1 - p, 0.0)), "You compare each probability with 1"),
    (lambda x, p: normalized(x * (x / x.max() >= p)), "You compare each probability with p"),
    (lambda x, p: normalized(x * (x.cumsum(0) - x < p)), "in the order of the vocabulary"),
    (
        lambda x, p: normalized(x * (sorted_result(x, p) > 0)[x.sort(descending=True).indices]),
        "`keep[order]` sorts once more",
    ),
    (
        lambda x, p: x.where(nucleus_by_loop(x, p) > 0, -torch.inf).softmax(0),
        "You take the softmax of probabilities. They",
    ),
    (
        lambda x, p: x.where(nucleus_by_loop(x, p) > 0, 0.0).softmax(0),
        "You take the softmax of probabilities, so that what is cut",
    ),
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


FLAT = "Flattened, a row has as many entries as there are tokens: divide by the vocabulary, not"


WRONG[check_beam_step] = [
    (own_best, "Each beam keeps its own best"),
    (lambda s, x, w: of(x, w), "You forget what the beams have cost"),
    (lambda s, x, w: of(s.view(-1, 1) * x, w), "You multiply logarithms"),
    (lambda s, x, w: of(s.view(-1, 1) + x.exp(), w), "You add probabilities to logarithms"),
    (lambda s, x, w: of(s.view(-1, 1) + x, w, len(x)), f"{FLAT} by the number of beams."),
    (lambda s, x, w: of(s.view(-1, 1) + x, w, w), f"{FLAT} by `width`."),
    (lambda s, x, w: beam_by_topk(s, x, len(s)), "You keep as many as there were beams"),
    (
        lambda s, x, w: tuple(beam_by_topk(s, x, w)[i] for i in (0, 2, 1)),
        "Parents and tokens are swapped",
    ),
    (lambda s, x, w: of((s + x.T), w, x.shape[1]), "Your table has a row for each token"),
    (
        lambda s, x, w: (
            (s.max() + x[s.argmax()]).topk(w).values,
            torch.full((w,), int(s.argmax())),
            x[s.argmax()].topk(w).indices,
        ),
        "Only the best beam is continued",
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
        "The new token sees only itself",
    ),
    (
        lambda q, k, v, *old: (
            (plain(q, *longer(k, v, *old), is_causal=True), *longer(k, v, *old))
        ),
        "The query sees only the first key",
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
        "The new key and value go to the end",
    ),
    (
        lambda q, k, v, *old: (plain(q, *longer(k, v, *old), scale=1.0), *longer(k, v, *old)),
        "The scores are not scaled",
    ),
    (
        lambda q, k, v, *old: (
            longer(k, v, *old)[1].sum(1, keepdim=True),
            *longer(k, v, *old),
        ),
        "The softmax runs over the queries",
    ),
    (
        lambda q, k, v, *old: (
            plain(q, *longer(k, v, *old), scale=(old[0].shape[1] + 1) ** -0.5),
            *longer(k, v, *old),
        ),
        "The scores are divided by the root of the number of tokens",
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
    (lambda b, t, n, d, k: b * t * n * d * k, "Keys and values"),
    (lambda b, t, n, d, k: b * t * n * d * k * 3, "Queries are not stored"),
    (lambda b, t, n, d, k: b * t * d * k * 2, "Each layer has"),
    (lambda b, t, n, d, k: t * n * d * k * 2, "Each text of the batch"),
    (lambda b, t, n, d, k: b * t * n * d * 2, "That is how many numbers"),
    (lambda b, t, n, d, k: b * t * t * n * d * k * 2, "The attention weights are not kept"),
    (lambda b, t, n, d, k: 2 * d * d * n * k, "Those are the matrices"),
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
    (lambda x, p: normalized(x.where(x >= p, 0.0)), "You compare with p itself"),
    (nucleus_by_loop, "That is top-p"),
    (lambda x, p: normalized(x.where(x / x.max() < p, 0.0)), "The other way round"),
    (lambda x, p: x.where(x / x.max() >= p, 0.0), "What is left does not sum to 1"),
    (lambda x, p: normalized(x.where(x >= x.max() - p, 0.0)), "not the largest minus p"),
    (lambda x, p: normalized(x.where(x >= x.mean() * p, 0.0)), "not of their mean"),
    (lambda x, p: normalized(torch.maximum(x, x.max() * p)), "What is below the bound is raised"),
    (lambda x, p: x.masked_fill(x < p * x.max(), -torch.inf).softmax(0), "You take the softmax"),
]


# --- the head that looks at a sentence ----------------------------------------------------------


def head_by_loops(maps, asks, start, stop):
    best, where = -1.0, None
    for layer, heads in enumerate(maps.tolist()):
        for head, rows in enumerate(heads):
            if sum(rows[asks][start:stop]) > best:
                best, where = sum(rows[asks][start:stop]), (layer, head)
    return where


def by_tensors(maps, asks, start, stop):
    on_it = maps[..., asks, start:stop].sum(dim=2)
    return on_it.max(dim=1).values.argmax(), on_it.max(dim=0).values.argmax()


def where(scores):
    return tuple((scores == scores.max()).nonzero()[0].tolist())


RIGHT[check_find_head] = [head_by_loops, by_tensors, lambda *x: list(head_by_loops(*x))]
WRONG[check_find_head] = [
    (lambda m, a, i, j: m[:, :, a, i:j].sum(2).argmax(), "That is one number"),
    (lambda m, a, i, j: by_tensors(m, a, i, j)[::-1], "Layer and head are swapped"),
    (
        lambda m, a, i, j: divmod(m[:, :, a, i:j].sum(2).argmax().item(), m.shape[0]),
        "You divide the place by the number of layers",
    ),
    (lambda m, a, i, j: where(m[:, :, i:j, a].sum(2)), "You look at the column"),
    (lambda m, a, i, j: where(m[:, :, a, i:j].max(2).values), "the largest single weight"),
    (lambda m, a, i, j: where(m[:, :, :, i:j].sum((2, 3))), "the weights of all queries"),
    (lambda m, a, i, j: where(m[:, :, a, i : j + 1].sum(2)), "the first key behind"),
]


@pytest.mark.parametrize("exercise", exercises(generating_text))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
