"""Exercises 1 to 3 of chapter 05: right answers pass, each wrong one gets its own diagnosis."""

import pytest
import torch
from diagnoses import not_attempted
from torch import nn

from transformer_lib.attention import merge_heads
from transformer_lib.exercises.multi_head import (
    check_count,
    check_giver_and_receiver,
    check_multi_head,
    check_split_fused,
    check_without_head,
)

CHECKS = [
    check_split_fused,
    check_multi_head,
    check_count,
    check_giver_and_receiver,
    check_without_head,
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_stub_is_not_attempted_yet(check):
    not_attempted(check)


# --- 1: split -----------------------------------------------------------------------------------


def split_by_view(qkv, n_heads):
    b, t, width = qkv.shape
    parts = qkv.view(b, t, 3, n_heads, width // (3 * n_heads)).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def split_by_loop(qkv, n_heads):
    d = qkv.shape[-1] // 3
    h = d // n_heads
    starts = [[part * d + n * h for n in range(n_heads)] for part in range(3)]
    return [torch.stack([qkv[:, :, a : a + h] for a in row], dim=1) for row in starts]


@pytest.mark.parametrize("answer", [split_by_view, split_by_loop])
def test_split_right(answer):
    assert check_split_fused(answer).passed


def no_transpose(qkv, n):
    b, t, w = qkv.shape
    return tuple(p.reshape(b, n, t, w // 3 // n) for p in qkv.split(w // 3, dim=2))


def interleaved(qkv, n):
    parts = qkv.split(qkv.shape[2] // 3, dim=2)
    return tuple(torch.stack([p[..., i::n] for i in range(n)], dim=1) for p in parts)


def heads_then_qkv(qkv, n):
    b, t, w = qkv.shape
    return qkv.view(b, t, n, 3, w // 3 // n).permute(3, 0, 2, 1, 4).unbind(0)


def batch_mixed(qkv, n):
    b, t, w = qkv.shape
    return tuple(p.reshape(t, b, n, -1).permute(1, 2, 0, 3) for p in qkv.split(w // 3, dim=2))


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            no_transpose,
            "You reshape without a transpose: a head gets pieces of different tokens. The axes "
            "must be (batch, tokens, heads, d_head) first, then swap tokens and heads.",
        ),
        (
            interleaved,
            "Each head takes every n_heads-th component: reshape to (…, n_heads, d_head), not to "
            "(…, d_head, n_heads).",
        ),
        (
            heads_then_qkv,
            "You cut into heads first and into q, k, v inside each head. Here all queries come "
            "first, then all keys, then all values.",
        ),
        (
            batch_mixed,
            "The batch is mixed: your first axis of the reshape is not the batch, so a sentence "
            "gets tokens of another one.",
        ),
        (
            lambda qkv, n_heads: [split_by_view(qkv, n_heads)[i] for i in (1, 0, 2)],
            "Queries and keys are exchanged.",
        ),
        (
            lambda qkv, n_heads: [x.transpose(1, 2) for x in split_by_view(qkv, n_heads)],
            "On 2 heads of width 7: item 0 of your result has its axes in the order (batch, "
            "tokens, heads, d_head); right is (3, 2, 5, 7) = (batch, heads, tokens, d_head).",
        ),
    ],
)
def test_split_wrong(answer, diagnosis):
    verdict = check_split_fused(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- 2: multi-head attention --------------------------------------------------------------------


def by_loop(x, W_Q, W_K, W_V, W_O, n_heads):
    triples = zip(*((x @ W).chunk(n_heads, -1) for W in (W_Q, W_K, W_V)), strict=True)
    parts = [nn.functional.scaled_dot_product_attention(*triple) for triple in triples]
    return torch.cat(parts, dim=-1) @ W_O


def in_numpy_style(x, W_Q, W_K, W_V, W_O, n_heads, *, scale=None, softmax=-1, merged=None):
    q, k, v = (torch.stack((x @ W).chunk(n_heads, -1), dim=1) for W in (W_Q, W_K, W_V))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / (scale or q.shape[-1] ** 0.5)
    z = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(softmax), v)
    return (merged or merge_heads)(z) @ W_O


@pytest.mark.parametrize("answer", [by_loop, in_numpy_style])
def test_multi_head_right(answer):
    assert check_multi_head(lambda *arguments: answer(*arguments)).passed


def raw_split(x, W_Q, W_K, W_V, W_O, n_heads):
    b, t, d = x.shape
    q, k, v = ((x @ W).view(b, n_heads, t, d // n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(nn.functional.scaled_dot_product_attention(q, k, v)) @ W_O


def raw_both(x, W_Q, W_K, W_V, W_O, n_heads):
    b, t, d = x.shape
    q, k, v = ((x @ W).view(b, n_heads, t, d // n_heads) for W in (W_Q, W_K, W_V))
    return nn.functional.scaled_dot_product_attention(q, k, v).reshape(b, t, d) @ W_O


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda x, *rest: in_numpy_style(x, *rest, scale=x.shape[-1] ** 0.5),
            "The scores are divided by √d_model; each head's dot product has d_head terms, so "
            "divide by √d_head.",
        ),
        (
            lambda x, *rest: in_numpy_style(x, *rest, merged=lambda z: z.reshape(x.shape)),
            "The heads are merged without a transpose: a token gets pieces of other tokens. Swap "
            "heads and tokens first.",
        ),
        (
            raw_split,
            "The heads are split without a transpose: a head gets pieces of several tokens.",
        ),
        (raw_both, "Split and merge both lack the transpose."),
        (
            lambda x, Q, K, V, _, h: by_loop(x, Q, K, V, torch.eye(x.shape[-1]), h),
            "W_O is missing: the heads stand side by side and are never mixed.",
        ),
        (lambda x, Q, K, V, out, h: by_loop(x, Q, K, V, out.mT, h), "W_O is transposed."),
        (
            lambda *a: in_numpy_style(*a, softmax=1),
            "The softmax runs over the heads, not the keys.",
        ),
        (
            lambda *a: in_numpy_style(*a, softmax=2),
            "The softmax runs over the queries, not the keys.",
        ),
        (
            lambda *a: in_numpy_style(*a, scale=1.0),
            "The scores are not scaled: divide by √d_head.",
        ),
        (
            lambda x, Q, K, V, out, h: by_loop(x, Q, K, V, out, 1),
            "You compute one head: the whole width goes into one softmax.",
        ),
    ],
)
def test_multi_head_wrong(answer, diagnosis):
    verdict = check_multi_head(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- 3: count -----------------------------------------------------------------------------------


def count_by_building(d, h, w, bias):
    layers = [nn.Linear(d, h * w, bias) for _ in range(3)] + [nn.Linear(h * w, d, bias)]
    return sum(p.numel() for layer in layers for p in layer.parameters())


@pytest.mark.parametrize(
    "answer",
    [count_by_building, lambda d, h, w, b: h * w * (4 * d + 3 * int(b)) + int(b) * d],
)
def test_count_right(answer):
    assert check_count(answer).passed


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda d, h, w, b: 3 * h * w * d + (3 * h * w if b else 0),
            "W_O is not counted: it takes the heads' results, n_heads · d_head wide, back to "
            "d_model.",
        ),
        (lambda d, h, w, b: 4 * h * w * d, "The biases are not counted."),
        (
            lambda d, h, w, b: 4 * h * d * d + (3 * h * d + d) * b,
            "You count every head as d_model wide. A head is d_head wide, so that narrow heads "
            "cost 4·d_model² together, however many they are.",
        ),
        (
            lambda d, h, w, b: 4 * d * d + 4 * d * b,
            "You count all heads as narrow: where n_heads · d_head is not d_model, the matrices "
            "are not square.",
        ),
        (
            lambda d, h, w, b: 4 * d * w + (3 * w + d) * b,
            "You count one head: multiply its columns by n_heads.",
        ),
        (
            lambda d, h, w, b: 4 * (d + b) * h * w,
            "The bias of W_O is as wide as the output, d_model, not n_heads · d_head.",
        ),
        (
            lambda d, h, w, b: 4 * d * h * w + 3 * h * w + d,
            "The biases are counted although `bias` is False.",
        ),
    ],
)
def test_count_wrong(answer, diagnosis):
    verdict = check_count(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)
