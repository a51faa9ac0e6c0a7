"""Checks for chapter 13, exercises 3 and 4: a step of attention with a cache, the cache's size."""

import torch
from torch import Tensor

from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = ["check_cache_bytes", "check_cached_step"]

# --- Exercise 3: one step of attention with a cache ---------------------------------------------


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


def _over_queries(q, k, v, keys, values):
    keys, values = _extended(k, v, keys, values)
    return torch.softmax(q @ keys.mT * q.shape[-1] ** -0.5, -2) @ values, keys, values


CACHED_STEP = Exercise(
    right=_cached_step,
    wrong={
        "The new token does not see itself: extend the cache first, then attend.": (
            lambda q, k, v, keys, values: (
                _attend(q, keys, values),
                *_extended(k, v, keys, values),
            )
        ),
        "The new token sees itself only: its query must meet all the keys in the cache.": (
            lambda q, k, v, keys, values: (v, *_extended(k, v, keys, values))
        ),
        "The query sees the first key only. A causal mask that is aligned to the top left takes "
        "it for the first token; the last one needs no mask at all.": _first_only,
        "The cache that you return has not grown: the next token will miss this one.": (
            lambda q, k, v, keys, values: (
                _attend(q, *_extended(k, v, keys, values)),
                keys,
                values,
            )
        ),
        "The new key and value go to the end. Attention does not mind the order; positions and "
        "whoever reads the cache do.": _at_the_front,
        "The scores are not scaled by 1/√d_head.": lambda q, k, v, keys, values: (
            _attend(q, *_extended(k, v, keys, values), scale=1.0),
            *_extended(k, v, keys, values),
        ),
        "The softmax runs over the queries. There is one, so every weight is 1: dim=-1.": (
            _over_queries
        ),
    },
    cases=[
        Case(
            f"a cache of {n} tokens",
            *(2 * randn(3, 1, d, seed=seed + i) for i in range(3)),
            *(randn(3, n, d, seed=seed + 3 + i) for i in range(2)),
        )
        for n, d, seed in ((5, 7, 0), (2, 5, 10))
    ],
    axes=("heads query d_head", "heads tokens d_head", "heads tokens d_head"),
    praise="Right: one query, all the keys so far, and a cache that is longer by one.",
)


def check_cached_step(answer) -> Verdict:
    """`answer(q, k, v, keys, values)`: (output, keys, values) of one new token.

    q, k, v [heads, 1, d_head]; keys, values [heads, tokens, d_head] -> output [heads, 1, d_head],
    and the extended keys and values.
    """
    return CACHED_STEP.check(answer)


# --- Exercise 4: how large the cache is ---------------------------------------------------------


def _cache_bytes(batch, tokens, n_layers, d_model, number):
    return 2 * batch * tokens * n_layers * d_model * number


CACHE_BYTES = Exercise(
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
        "Weights are never stored, so nothing grows with the square of the tokens.": (
            lambda batch, tokens, n_layers, d_model, number: (
                2 * batch * tokens**2 * n_layers * d_model * number
            )
        ),
        "Those are the matrices that make keys and values, not the keys and values.": (
            lambda batch, tokens, n_layers, d_model, number: 2 * n_layers * d_model**2 * number
        ),
    },
    cases=[
        Case("GPT-2 small, fp32", 1, 1024, 12, 768, 4),
        Case("a small model, a batch of 5", 5, 61, 3, 97, 2),
    ],
    praise="Right: and it grows with every token, unlike the weights.",
)


def check_cache_bytes(answer) -> Verdict:
    """`answer(batch, tokens, n_layers, d_model, number)`: the bytes of a model's cache."""
    return CACHE_BYTES.check(answer)
