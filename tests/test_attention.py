"""The two functions: hand arithmetic, a loop, PyTorch's kernel, empty rows, NaN, dropout."""

import math
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from transformer_lib import attention as module
from transformer_lib.attention import attention, attention_weights, fused_attention
from transformer_lib.masks import causal_mask

BATCH, HEADS, QUERIES, KEYS, D_K, D_V = 2, 3, 5, 7, 11, 13


def make(dtype=torch.float64, queries=QUERIES, keys=KEYS, requires_grad=False):
    q = torch.randn(BATCH, HEADS, queries, D_K)
    k = torch.randn(BATCH, HEADS, keys, D_K)
    v = torch.randn(BATCH, HEADS, keys, D_V)
    return [x.to(dtype).requires_grad_(requires_grad) for x in (q, k, v)]


def explicit_attention(*arguments, **options):
    """The taught path, whatever ``attention`` would choose."""
    with mock.patch.object(module, "explicit_is_faster", return_value=True):
        return attention(*arguments, **options)


def fused(q, k, v, mask=None, causal=False, scale=None, bias=None, dropout=0.0):
    return fused_attention(q, k, v, mask, causal, scale, bias, dropout)


PATHS = pytest.mark.parametrize("path", [explicit_attention, fused, attention])


def a_mask(*shape):
    """Half of it hidden; the last row is never empty, row 2 always is."""
    mask = torch.rand(shape) < 0.5
    mask[..., -1, :] = True
    mask[..., 2, :] = False
    return mask


def test_weights_by_hand():
    q, k = torch.tensor([[1.0]]), torch.tensor([[0.0], [1.0]])
    expected = torch.tensor([[1.0, math.e]]) / (1 + math.e)
    assert_close(attention_weights(q, k), expected, rtol=0, atol=1e-7)


@PATHS
def test_output_by_hand(path):
    q, k, v = torch.tensor([[1.0]]), torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [5.0]])
    expected = torch.tensor([[3 + 5 * math.e]]) / (1 + math.e)
    assert_close(path(q, k, v), expected, rtol=0, atol=1e-6)


@PATHS
def test_the_scale_is_one_over_the_root_of_d_k(path):
    """q·k = 4 and 0, √d_k = 2: weights e² and 1."""
    q, k = torch.ones(1, 4), torch.tensor([[1.0, 1, 1, 1], [0, 0, 0, 0]])
    v = torch.tensor([[1.0], [0.0]])
    assert_close(path(q, k, v), torch.tensor([[math.exp(2) / (math.exp(2) + 1)]]))
    assert_close(path(q, k, v, scale=0.25), torch.tensor([[math.e / (math.e + 1)]]))


@PATHS
def test_against_a_loop_over_everything(path):
    q, k, v = make()
    mask = a_mask(BATCH, HEADS, QUERIES, KEYS)
    bias = torch.randn(HEADS, QUERIES, KEYS, dtype=torch.float64)
    expected = torch.zeros(BATCH, HEADS, QUERIES, D_V, dtype=torch.float64)
    for b in range(BATCH):
        for h in range(HEADS):
            for i in range(QUERIES):
                seen = [j for j in range(KEYS) if mask[b, h, i, j] and j <= i + KEYS - QUERIES]
                scores = {
                    j: math.exp(0.3 * float(q[b, h, i] @ k[b, h, j]) + float(bias[h, i, j]))
                    for j in seen
                }
                for j in seen:
                    expected[b, h, i] += scores[j] / sum(scores.values()) * v[b, h, j]
    output = path(q, k, v, mask, causal=True, scale=0.3, bias=bias)
    assert_close(output, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mask_shape", [(QUERIES, KEYS), (BATCH, 1, QUERIES, KEYS), (1, KEYS)])
def test_weights_and_kernel_against_pytorch(mask_shape):
    q, k, v = make()
    mask = torch.rand(mask_shape) < 0.6
    mask[..., 0] = True  # no empty row here
    expected = F.scaled_dot_product_attention(q, k, v, mask)
    assert_close(attention_weights(q, k, mask) @ v, expected, rtol=0, atol=1e-14)
    assert_close(attention(q, k, v, mask), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7), (1, 7), (7, 3)])
@PATHS
def test_causal_is_aligned_to_the_bottom_right(path, queries, keys):
    q, k, v = make(queries=queries, keys=keys)
    mask = causal_mask(queries, keys)
    assert_close(path(q, k, v, causal=True), explicit_attention(q, k, v, mask), rtol=0, atol=1e-14)
    weights = attention_weights(q, k, causal=True)
    assert (weights[..., ~mask] == 0).all()
    assert (weights[..., -1, :] > 0).all()  # the last query sees every key
    too_early = max(0, queries - keys)  # rows before the first key
    assert (path(q, k, v, causal=True)[..., :too_early, :] == 0).all()


@pytest.mark.parametrize("shape", [(), (BATCH,), (BATCH, HEADS), (2, 2, 2)])
@PATHS
def test_any_number_of_leading_axes(path, shape):
    q, k, v = (torch.randn(*shape, *size) for size in ((5, 11), (7, 11), (7, 13)))
    output = path(q, k, v, causal=True)
    assert output.shape == (*shape, 5, 13)
    last = attention_weights(q[..., -1:, :], k) @ v  # nothing is hidden from the last query
    assert_close(output[..., -1:, :], last)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("with_bias", [False, True])
@PATHS
def test_an_empty_row_is_zero_with_finite_gradients(path, dtype, with_bias):
    q, k, v = make(dtype, requires_grad=True)
    bias = torch.randn(QUERIES, KEYS).to(dtype).requires_grad_() if with_bias else None
    output = path(q, k, v, a_mask(QUERIES, KEYS), bias=bias)
    assert (output[..., 2, :] == 0).all()
    output.float().square().sum().backward()
    assert (q.grad[..., 2, :] == 0).all()
    for x in (q, k, v) if bias is None else (q, k, v, bias):
        assert x.grad.isfinite().all()
        assert (x.grad != 0).any()


@PATHS
def test_all_rows_empty(path):
    q, k, v = make(requires_grad=True)
    output = path(q, k, v, torch.zeros(QUERIES, KEYS, dtype=torch.bool))
    assert (output == 0).all()
    output.sum().backward()
    assert all((x.grad == 0).all() for x in (q, k, v))


@PATHS
def test_an_empty_row_makes_no_nan_on_the_way_either(path):
    """Anomaly detection looks at every step of the backward pass, not only at its end."""
    q, k, v = make(requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        path(q, k, v, a_mask(QUERIES, KEYS)).square().sum().backward()


def test_a_kernel_that_makes_nan_of_an_empty_row_never_sees_one(monkeypatch):
    """Kernels differ in what they make of a row of -inf; this one does as a plain softmax does."""

    def plain(q, k, v, attn_mask, dropout_p, scale):
        scores = (q @ k.transpose(-2, -1)).masked_fill(~attn_mask, -torch.inf)
        return scores.softmax(dim=-1) @ v

    q, k, v = make(requires_grad=True)
    mask = a_mask(QUERIES, KEYS)
    assert plain(q, k, v, mask, 0.0, None).isnan().any()
    monkeypatch.setattr(module.F, "scaled_dot_product_attention", plain)
    output = attention(q, k, v, mask)
    assert (output[..., 2, :] == 0).all()
    output.sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_nan_in_a_hidden_key_does_not_reach_the_weights():
    q, k, _ = make()
    mask = torch.ones(QUERIES, KEYS, dtype=torch.bool)
    mask[:, 3] = False
    expected = attention_weights(q, k, mask)
    k[..., 3, :] = torch.nan
    assert attention_weights(q, k, mask).equal(expected)
    mask[2] = False  # and an empty row stays zero
    assert (attention_weights(q, k, mask)[..., 2, :] == 0).all()


def test_nan_in_a_hidden_value_does_spread():
    """0 · NaN is NaN: as documented."""
    q, k, v = make()
    mask = torch.ones(QUERIES, KEYS, dtype=torch.bool)
    mask[:, 3] = False
    v[0, 0, 3] = torch.nan
    output = attention(q, k, v, mask)
    assert output[0, 0].isnan().all()
    assert output[0, 1:].isfinite().all()  # other heads and sequences are not touched
    assert output[1].isfinite().all()


@pytest.mark.parametrize("path", [explicit_attention, fused])
def test_gradients_against_finite_differences(path):
    sizes = ((3, 5), (2, 5), (2, 1), (3, 2))
    q, k, v, bias = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes)
    mask = torch.tensor([[True, False], [False, False], [True, True]])

    def call(q, k, v, bias):
        return path(q, k, v, mask, bias=bias)

    assert torch.autograd.gradcheck(call, (q, k, v, bias))


def test_gradients_of_both_paths_agree():
    inputs = make(requires_grad=True)
    mask, g = a_mask(BATCH, 1, QUERIES, KEYS), torch.randn(BATCH, HEADS, QUERIES, D_V)
    by_fused = torch.autograd.grad(fused(*inputs, mask, causal=True), inputs, g.double())
    by_hand = torch.autograd.grad(
        explicit_attention(*inputs, mask, causal=True), inputs, g.double()
    )
    assert_close(by_fused, by_hand, rtol=0, atol=1e-13)


@PATHS
def test_dropout_drops_weights_and_keeps_the_mean(path):
    """One key for each value: the output shows which weights are left, and how they were scaled."""
    q, k = torch.zeros(64, 31, 2), torch.zeros(64, 5, 2)
    v = torch.eye(5).expand(64, 5, 5)
    output = path(q, k, v, dropout=0.3)
    kept = output != 0
    assert_close(output[kept], torch.full_like(output[kept], 0.2 / 0.7))
    rate, n = 1 - kept.double().mean(), output.numel()
    assert abs(rate - 0.3) < 5 * math.sqrt(0.3 * 0.7 / n)  # five standard deviations
    assert path(q, k, v).equal(path(q, k, v, dropout=0.0))


@PATHS
def test_the_arguments_are_not_written_into(path):
    q, k, v = make()
    mask, bias = a_mask(QUERIES, KEYS), torch.randn(QUERIES, KEYS, dtype=torch.float64)
    before = [x.clone() for x in (q, k, v, mask, bias)]
    path(q, k, v, mask, causal=True, bias=bias)
    assert all(x.equal(y) for x, y in zip((q, k, v, mask, bias), before, strict=True))


@pytest.mark.parametrize(
    ("dtype", "keys", "requires_grad", "uses_kernel"),
    [
        (torch.float32, KEYS, True, True),
        (torch.float64, KEYS, True, True),
        (torch.bfloat16, KEYS, False, True),
        (torch.bfloat16, KEYS, True, False),
        (torch.float16, KEYS, True, False),
        (torch.bfloat16, 384, True, False),
        (torch.bfloat16, 385, True, True),
    ],
)
def test_the_kernel_is_used_where_it_is_faster(
    monkeypatch, dtype, keys, requires_grad, uses_kernel
):
    calls = []
    kernel = F.scaled_dot_product_attention
    monkeypatch.setattr(
        module.F, "scaled_dot_product_attention", lambda *a, **k: calls.append(1) or kernel(*a, **k)
    )
    inputs = make(dtype, keys=keys, requires_grad=requires_grad)
    attention(*inputs)
    assert bool(calls) is uses_kernel
    calls.clear()
    with torch.no_grad():  # no backward pass to come
        attention(*inputs)
    assert calls


def test_no_sequences_at_all_give_no_outputs():
    assert attention(torch.ones(0, 5, 3), torch.ones(0, 7, 3), torch.ones(0, 7, 2)).shape == (
        0,
        5,
        2,
    )


@pytest.mark.parametrize("leading", [(), (BATCH,), (BATCH, HEADS)])
def test_causal_weights_are_the_taught_ones_with_their_gradients(leading):
    q, k = (torch.randn(*leading, KEYS, D_K).double().requires_grad_() for _ in range(2))
    toward = torch.randn(*leading, KEYS, KEYS).double()
    for scale in (None, 0.3):
        results = []
        for weights in (
            module.causal_weights(q, k, scale),
            module.attention_weights(q, k, causal=True, scale=scale),
        ):
            results.append([weights, *torch.autograd.grad((weights * toward).sum(), (q, k))])
        for ours, taught in zip(*results, strict=True):
            assert_close(ours, taught, atol=1e-12, rtol=0)
