"""Properties that hold for every input: hypothesis draws sizes, masks and the numbers' seed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from transformer_lib.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    fused_attention,
)
from transformer_lib.positions import AlibiPositions, RotaryPositions

SIZES = st.sampled_from([1, 2, 3, 5, 7, 11])
SEEDS = st.integers(0, 2**31)


@st.composite
def problems(draw, dtype=torch.float64, square=False):
    """q, k, v, mask (any, with empty rows), bias or None, and whether it is causal."""
    batch, queries, d_k, d_v = (draw(SIZES) for _ in range(4))
    keys = queries if square else draw(SIZES)
    generator = torch.Generator().manual_seed(draw(SEEDS))
    spread = draw(st.sampled_from([0.1, 1.0, 5.0]))

    def random(*shape):
        return (spread * torch.randn(*shape, generator=generator)).to(dtype)

    q, k, v = random(batch, queries, d_k), random(batch, keys, d_k), random(batch, keys, d_v)
    leading = draw(st.sampled_from([(), (1,), (batch,)]))
    share = draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    mask = torch.rand(*leading, queries, keys, generator=generator) < share
    mask = draw(st.sampled_from([None, mask]))
    bias = draw(st.sampled_from([None, random(queries, keys)]))
    return q, k, v, mask, bias, draw(st.booleans())


def explicit(q, k, v, mask, causal, bias):
    return attention_weights(q, k, mask, causal=causal, bias=bias) @ v


def fused(q, k, v, mask, causal, bias):
    return fused_attention(q, k, v, mask, causal, None, bias, 0.0)


@given(problems())
def test_rows_are_positive_and_sum_to_one_or_are_empty(problem):
    q, k, _, mask, bias, causal = problem
    weights = attention_weights(q, k, mask, causal=causal, bias=bias)
    allowed = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask
    allowed = allowed.expand_as(weights)
    if causal:
        allowed = allowed.tril(diagonal=k.shape[-2] - q.shape[-2])
    assert (weights >= 0).all()
    assert (weights[~allowed] == 0).all()
    assert_close(weights.sum(dim=-1), allowed.any(dim=-1).double(), rtol=0, atol=1e-14)


@given(problems(), st.sampled_from([explicit, fused]))
def test_empty_rows_are_zero_with_finite_gradients(problem, path):
    q, k, v, mask, bias, causal = problem
    inputs = [x.requires_grad_() for x in (q, k, v)]
    output = path(q, k, v, mask, causal, bias)
    empty = torch.zeros(output.shape[:-1], dtype=torch.bool)
    if mask is not None or causal:
        weights = attention_weights(q, k, mask, causal=causal, bias=bias)
        empty = (weights == 0).all(dim=-1)
    assert (output[empty] == 0).all()
    output.square().sum().backward()
    assert (q.grad[empty] == 0).all()
    assert all(x.grad.isfinite().all() for x in inputs)


@given(problems(), SEEDS)
def test_permuting_keys_and_values_together_changes_nothing(problem, seed):
    """Invariance: one query's output does not depend on the order of what it looks at."""
    q, k, v, mask, bias, _ = problem
    order = torch.randperm(k.shape[1], generator=torch.Generator().manual_seed(seed))
    permuted_mask = None if mask is None else mask[..., order]
    permuted_bias = None if bias is None else bias[..., order]
    output = attention(q, k[:, order], v[:, order], permuted_mask, bias=permuted_bias)
    expected = attention(q, k, v, mask, bias=bias)
    assert_close(output, expected, rtol=1e-12, atol=1e-12)


@given(SIZES, SIZES, SEEDS)
def test_permuting_the_tokens_permutes_the_output(batch, tokens, seed):
    """Equivariance of self-attention without positions."""
    generator = torch.Generator().manual_seed(seed)
    attend = MultiHeadAttention(15, 3).double().requires_grad_(False)
    x = torch.randn(batch, tokens, 15, dtype=torch.float64, generator=generator)
    order = torch.randperm(tokens, generator=generator)
    assert_close(attend(x[:, order]), attend(x)[:, order], rtol=0, atol=1e-13)


@given(problems(dtype=torch.float32, square=True), SEEDS, st.sampled_from([explicit, fused]))
def test_the_future_does_not_change_the_past_by_a_single_bit(problem, seed, path):
    q, k, v, mask, bias, _ = problem
    before = path(q, k, v, mask, True, bias)
    generator = torch.Generator().manual_seed(seed)
    cut = int(torch.randint(q.shape[1], (1,), generator=generator))
    for x in (q, k, v):
        x[:, cut:] = 100 * torch.randn(x[:, cut:].shape, generator=generator)
    assert path(q, k, v, mask, True, bias)[:, :cut].equal(before[:, :cut])


@pytest.mark.parametrize("positions", [None, RotaryPositions(4), AlibiPositions(3)])
@given(tokens=SIZES, seed=SEEDS)
def test_the_module_is_causal_by_the_bit(positions, tokens, seed):
    generator = torch.Generator().manual_seed(seed)
    attend = MultiHeadAttention(12, 3, positions=positions).requires_grad_(False)
    x = torch.randn(2, tokens, 12, generator=generator)
    changed = x.clone()
    cut = int(torch.randint(tokens, (1,), generator=generator))
    changed[:, cut:] = 100 * torch.randn(2, tokens - cut, 12, generator=generator)
    before, after = attend(x, causal=True), attend(changed, causal=True)
    assert after[:, :cut].equal(before[:, :cut])
    assert not after[:, cut:].equal(before[:, cut:])


def bound(q, k, v, bias, unit, accumulation):
    """How far rounding can move the output, to first order in the unit roundoff.

    A score, a sum of d_k products, then scaled and biased, is off by at most
    u (accumulation + 3) S, with S the scaled sum of |q||k|, plus |bias|. The softmax turns an error
    of its scores into twice that relative error, plus (keys + 2) u of its own sum, exponential and
    division; the weighted sum of the values adds (accumulation + 1) u. Everything is relative to
    the largest value, since the weights sum to 1.
    """
    size = (q.abs() @ k.abs().mT).max() * q.shape[-1] ** -0.5
    size = size + (0 if bias is None else bias.abs().max())
    relative = 2 * (accumulation(q.shape[-1]) + 3) * size
    relative = relative + accumulation(k.shape[1]) + 2 + accumulation(k.shape[1]) + 1
    return unit * relative * v.abs().max()


@pytest.mark.parametrize("path", [explicit, fused])
@pytest.mark.parametrize(
    ("dtype", "unit", "accumulation"),
    [
        (torch.float32, 2**-24, lambda terms: terms),
        # bfloat16 keeps 8 significant bits; the products are summed in single precision.
        (torch.bfloat16, 2**-8, lambda terms: 0),
    ],
)
@given(problem=problems(dtype=torch.bfloat16))
def test_each_path_is_within_rounding_of_the_exact_result(path, dtype, unit, accumulation, problem):
    q, k, v, mask, bias, causal = problem
    exact = [x if x is None else x.double() for x in (q, k, v, bias)]
    expected = explicit(*exact[:3], mask, causal, exact[3])
    q, k, v, bias = (x if x is None else x.to(dtype) for x in (q, k, v, bias))
    error = (path(q, k, v, mask, causal, bias).double() - expected).abs().max()
    q, k, v, bias = exact
    assert error <= bound(q, k, v, bias, unit, accumulation)


@given(problems())
def test_the_kernel_and_the_taught_path_agree(problem):
    q, k, v, mask, bias, causal = problem
    expected = explicit(q, k, v, mask, causal, bias)
    assert_close(fused(q, k, v, mask, causal, bias), expected, rtol=1e-13, atol=1e-13)
