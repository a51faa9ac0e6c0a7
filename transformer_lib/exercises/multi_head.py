"""Checks for chapter 05, Many heads: splitting, merging, counting, designing, switching off."""

import torch
from torch import Tensor

from .multi_head_design import check_giver_and_receiver, check_without_head, gift_sentence
from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = [
    "check_count",
    "check_giver_and_receiver",
    "check_multi_head",
    "check_split_fused",
    "check_without_head",
    "gift_sentence",
]


def _split(x: Tensor, n_heads: int) -> Tensor:
    """[batch, tokens, width] -> [batch, heads, tokens, d_head]."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _merge(z: Tensor) -> Tensor:
    return z.transpose(1, 2).flatten(2)


def _split_untransposed(x: Tensor, n_heads: int) -> Tensor:
    batch, tokens, width = x.shape
    return x.reshape(batch, n_heads, tokens, width // n_heads)


# --- Exercise 1: split the result of one fused projection ---------------------------------------


def _split_fused(qkv, n_heads):
    return tuple(_split(part, n_heads) for part in qkv.chunk(3, dim=-1))


def _fused_heads_first(qkv, n_heads):
    return tuple(_split(qkv, n_heads).chunk(3, dim=-1))


def _fused_interleaved(qkv, n_heads):
    return tuple(
        part.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2) for part in qkv.chunk(3, dim=-1)
    )


def _fused_batch_mixed(qkv, n_heads):
    batch, tokens, _ = qkv.shape
    return tuple(
        part.reshape(tokens, batch, n_heads, -1).permute(1, 2, 0, 3)
        for part in qkv.chunk(3, dim=-1)
    )


SPLIT_FUSED = Exercise(
    right=_split_fused,
    wrong={
        "You reshape without a transpose: a head gets pieces of different tokens. The axes must be "
        "(batch, tokens, heads, d_head) first, then swap tokens and heads.": lambda qkv, n_heads: (
            tuple(_split_untransposed(part, n_heads) for part in qkv.chunk(3, dim=-1))
        ),
        "Each head takes every n_heads-th component: reshape to (…, n_heads, d_head), not to "
        "(…, d_head, n_heads).": _fused_interleaved,
        "You cut into heads first and into q, k, v inside each head. Here all queries come first, "
        "then all keys, then all values.": _fused_heads_first,
        "The batch is mixed: your first axis of the reshape is not the batch, so a sentence gets "
        "tokens of another one.": _fused_batch_mixed,
        "Queries and keys are exchanged.": lambda qkv, n_heads: tuple(
            _split_fused(qkv, n_heads)[i] for i in (1, 0, 2)
        ),
    },
    cases=[
        Case("2 heads of width 7", randn(3, 5, 3 * 14, seed=0), 2),
        Case("5 heads of width 3", randn(2, 7, 3 * 15, seed=1), 5),
    ],
    axes=["batch heads tokens d_head"] * 3,
    praise="Right: three pieces, and in each a head is an axis of its own, beside the batch.",
)


def check_split_fused(answer) -> Verdict:
    """`answer(qkv, n_heads)`: [batch, tokens, 3 d_model] -> 3 × [batch, heads, tokens, d_head]."""
    return SPLIT_FUSED.check(answer)


# --- Exercise 2: multi-head attention without a loop --------------------------------------------


def _multi_head(
    x, W_Q, W_K, W_V, W_O, n_heads, *, split=_split, merge=_merge, scale=None, softmax_axis=-1
):
    q, k, v = (split(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return merge(scores.softmax(softmax_axis) @ v) @ W_O


def _variant(**changes):
    def wrong(x, W_Q, W_K, W_V, W_O, n_heads):
        return _multi_head(x, W_Q, W_K, W_V, W_O, n_heads, **changes)

    return wrong


def _right_multi_head(x, W_Q, W_K, W_V, W_O, n_heads):
    return _multi_head(x, W_Q, W_K, W_V, W_O, n_heads)


def _scaled_by_d_model(x, W_Q, W_K, W_V, W_O, n_heads):
    return _multi_head(x, W_Q, W_K, W_V, W_O, n_heads, scale=W_Q.shape[1] ** -0.5)


def _without_output(x, W_Q, W_K, W_V, W_O, n_heads):
    return _multi_head(x, W_Q, W_K, W_V, torch.eye(len(W_O), dtype=x.dtype), n_heads)


def _merge_untransposed(z):
    batch, n_heads, tokens, d_head = z.shape
    return z.reshape(batch, tokens, n_heads * d_head)


def _weights(width: int, seed: int) -> list[Tensor]:
    return list(randn(4, width, width, seed=seed))


MULTI_HEAD = Exercise(
    right=_right_multi_head,
    wrong={
        "The scores are divided by √d_model; each head's dot product has d_head terms, so divide "
        "by √d_head.": _scaled_by_d_model,
        "The heads are merged without a transpose: a token gets pieces of other tokens. Swap heads "
        "and tokens first.": _variant(merge=_merge_untransposed),
        "The heads are split without a transpose: a head gets pieces of several tokens.": _variant(
            split=_split_untransposed
        ),
        "Split and merge both lack the transpose.": _variant(
            split=_split_untransposed, merge=_merge_untransposed
        ),
        "W_O is missing: the heads stand side by side and are never mixed.": _without_output,
        "W_O is transposed.": lambda x, W_Q, W_K, W_V, W_O, n_heads: _multi_head(
            x, W_Q, W_K, W_V, W_O.T, n_heads
        ),
        "The softmax runs over the heads, not the keys.": _variant(softmax_axis=1),
        "The softmax runs over the queries, not the keys.": _variant(softmax_axis=-2),
        "The scores are not scaled: divide by √d_head.": _variant(scale=1.0),
        "You compute one head: the whole width goes into one softmax.": (
            lambda x, W_Q, W_K, W_V, W_O, n_heads: _multi_head(x, W_Q, W_K, W_V, W_O, 1)
        ),
    },
    cases=[
        Case("2 heads of width 3", randn(3, 5, 6, seed=2), *_weights(6, seed=3), 2),
        Case("5 heads of width 2", randn(2, 7, 10, seed=4), *_weights(10, seed=5), 5),
    ],
    axes="batch tokens d_model",
    praise="Right: one product for all heads, one softmax for each.",
)


def check_multi_head(answer) -> Verdict:
    """`answer(x, W_Q, W_K, W_V, W_O, n_heads)`: [batch, tokens, d_model] -> the same shape."""
    return MULTI_HEAD.check(answer)


# --- Exercise 3: count the parameters -----------------------------------------------------------


def _count(d_model, n_heads, d_head, bias):
    width = n_heads * d_head
    return 4 * d_model * width + (3 * width + d_model if bias else 0)


COUNT = Exercise(
    right=_count,
    wrong={
        "W_O is not counted: it takes the heads' results, n_heads · d_head wide, back to "
        "d_model.": lambda d_model, n_heads, d_head, bias: (
            3 * (d_model + bool(bias)) * n_heads * d_head
        ),
        "The biases are not counted.": lambda d_model, n_heads, d_head, bias: (
            4 * d_model * n_heads * d_head
        ),
        "You count every head as d_model wide. A head is d_head wide, so that narrow heads cost "
        "4·d_model² together, however many they are.": lambda d_model, n_heads, d_head, bias: (
            _count(d_model, n_heads, d_model, bias)
        ),
        "You count all heads as narrow: where n_heads · d_head is not d_model, the matrices are "
        "not square.": lambda d_model, n_heads, d_head, bias: _count(d_model, 1, d_model, bias),
        "You count one head: multiply its columns by n_heads.": (
            lambda d_model, n_heads, d_head, bias: _count(d_model, 1, d_head, bias)
        ),
        "The bias of W_O is as wide as the output, d_model, not n_heads · d_head.": (
            lambda d_model, n_heads, d_head, bias: 4 * (d_model + bool(bias)) * n_heads * d_head
        ),
        "The biases are counted although `bias` is False.": (
            lambda d_model, n_heads, d_head, bias: _count(d_model, n_heads, d_head, True)
        ),
    },
    cases=[
        Case("narrow heads without biases", 12, 3, 4, False),
        Case("narrow heads with biases", 12, 3, 4, True),
        Case("wide heads with biases", 12, 3, 12, True),
        Case("heads of width 5", 14, 3, 5, False),
    ],
    praise="Right: four matrices of d_model × (n_heads · d_head), whatever their order.",
)


def check_count(answer) -> Verdict:
    """`answer(d_model, n_heads, d_head, bias)`: the number of parameters of the four layers."""
    return COUNT.check(answer)
