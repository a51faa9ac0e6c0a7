"""Exercises 3 and 4 of chapter 13: a step with a cache, and how large the cache is."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.attention import attention
from transformer_lib.cache import KeyValueCache
from transformer_lib.exercises.generating_text import check_cache_bytes, check_cached_step

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


@pytest.mark.parametrize("answer", [by_library, by_cache, by_loop])
def test_cached_step_right(answer):
    assert check_cached_step(answer).passed


def longer(k, v, keys, values):
    return torch.cat((keys, k), 1), torch.cat((values, v), 1)


def plain(q, keys, values, **options):
    return F.scaled_dot_product_attention(q, keys, values, **options)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda q, k, v, old, values: (plain(q, old, values), *longer(k, v, old, values)),
            "The new token does not see itself",
        ),
        (
            lambda q, k, v, old, values: (plain(q, k, v), *longer(k, v, old, values)),
            "The new token sees itself only",
        ),
        (
            lambda q, k, v, *old: (
                (plain(q, *longer(k, v, *old), is_causal=True), *longer(k, v, *old))
            ),
            "The query sees the first key only",
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
    ],
)
def test_cached_step_wrong(answer, diagnosis):
    verdict = check_cached_step(lambda q, k, v, keys, values: answer(q, k, v, keys, values))
    assert verdict.passed is False
    assert verdict.diagnosis.startswith(diagnosis), verdict.diagnosis


# --- 4: how large the cache is ------------------------------------------------------------------


def by_counting(batch, tokens, n_layers, d_model, number):
    cache = KeyValueCache(1, 1, tokens, d_model)
    keys, values = cache.extend(*(torch.zeros(1, 1, tokens, d_model) for _ in range(2)))
    return (keys.numel() + values.numel()) * batch * n_layers * number


@pytest.mark.parametrize("answer", [by_counting, lambda b, t, n, d, k: 2 * b * t * n * d * k])
def test_cache_bytes_right(answer):
    assert check_cache_bytes(answer).passed


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda b, t, n, d, k: b * t * n * d * k, "Keys and values"),
        (lambda b, t, n, d, k: b * t * n * d * k * 3, "Queries are not stored"),
        (lambda b, t, n, d, k: b * t * d * k * 2, "Each layer has"),
        (lambda b, t, n, d, k: t * n * d * k * 2, "Each text of the batch"),
        (lambda b, t, n, d, k: b * t * n * d * 2, "That is how many numbers"),
        (lambda b, t, n, d, k: b * t * t * n * d * k * 2, "Weights are never stored"),
        (lambda b, t, n, d, k: 2 * d * d * n * k, "Those are the matrices"),
    ],
)
def test_cache_bytes_wrong(answer, diagnosis):
    verdict = check_cache_bytes(lambda b, t, n, d, k: answer(b, t, n, d, k))
    assert verdict.passed is False
    assert verdict.diagnosis.startswith(diagnosis), verdict.diagnosis
