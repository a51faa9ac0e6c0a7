"""Attention with unusual arguments and parts: scales, masks of few axes, changed projections."""

from unittest import mock

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.testing import assert_close

from transformer_lib import attention as module
from transformer_lib.attention import MultiHeadAttention, attention, attention_weights
from transformer_lib.cache import KeyValueCache

BATCH, HEADS, TOKENS, KEYS, D_K, D_MODEL = 2, 3, 5, 7, 11, 12
EXACT = {"rtol": 0, "atol": 1e-12}


def make(queries=TOKENS, keys=KEYS):
    sizes = [(BATCH, HEADS, n, D_K) for n in (queries, keys, keys)]
    return [torch.randn(size, dtype=torch.float64) for size in sizes]


@pytest.mark.parametrize("scale", [0, 0.0, -0.7, 0.3])
@pytest.mark.parametrize("queries", [TOKENS, KEYS])
@pytest.mark.parametrize("explicit", [False, True])
def test_a_scale_may_be_zero_or_negative(scale, queries, explicit):
    q, k, v = make(queries)
    mask = torch.rand(queries, KEYS) < 0.5
    with mock.patch.object(module, "explicit_is_faster", return_value=explicit):
        for options in ({"causal": True}, {"mask": mask}, {"causal": True, "mask": mask}):
            expected = attention_weights(q, k, scale=scale, **options) @ v
            assert_close(attention(q, k, v, scale=scale, **options), expected, **EXACT)


@pytest.mark.parametrize("shape", [(), (KEYS,), (1,)])
@pytest.mark.parametrize("axes", [2, 3, 4, 5])
@pytest.mark.parametrize("causal", [False, True])
def test_masks_and_biases_of_few_axes_broadcast(shape, axes, causal):
    q, k, v = (x[(0,) * max(4 - axes, 0)] for x in make())
    q, k, v = (x[None] if axes == 5 else x for x in (q, k, v))
    mask, bias = torch.rand(shape) < 0.7, torch.randn(shape, dtype=torch.float64)
    for options in ({"mask": mask}, {"bias": bias}, {"mask": mask, "bias": bias}):
        expected = attention_weights(q, k, causal=causal, **options) @ v
        assert_close(attention(q, k, v, causal=causal, **options), expected, **EXACT)


class LowRank(nn.Linear):
    """A product with a small correction (LoRA)."""

    def forward(self, x):
        return super().forward(x) + x.sum(-1, keepdim=True)


def with_low_rank(attend):
    layer = LowRank(D_MODEL, D_MODEL).double()
    layer.load_state_dict(attend.key.state_dict())
    attend.key = layer


def without_bias(attend):
    attend.key = nn.Linear(D_MODEL, D_MODEL, bias=False).double()


def with_own_forward(attend):
    attend.value.forward = lambda x: 3 * x


CHANGES = {
    "nothing": lambda attend: None,
    "hook": lambda attend: attend.value.register_forward_hook(lambda _, inputs, out: 2 * out),
    "hook before": lambda attend: attend.query.register_forward_pre_hook(
        lambda _, inputs: (inputs[0] + 1,)
    ),
    "a forward put in place": with_own_forward,
    "low rank": with_low_rank,
    "pruning": lambda attend: prune.random_unstructured(attend.key, "weight", 0.5),
    "weight norm": lambda attend: nn.utils.parametrizations.weight_norm(attend.query),
    "one without bias": without_bias,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@torch.no_grad()
def test_changed_projections_are_called_with_and_without_a_cache(change):
    attend = MultiHeadAttention(D_MODEL, HEADS).double()
    x = torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64)
    plain = attend(x)
    change(attend)
    cache = KeyValueCache(BATCH, HEADS, TOKENS, D_MODEL // HEADS, dtype=torch.float64)
    found = attend(x)
    assert_close(found, attend(x, cache=cache), **EXACT)
    same = torch.allclose(found, plain)
    assert same == (change in (CHANGES["nothing"], CHANGES["weight norm"]))


def test_a_backward_hook_of_a_projection_is_called():
    attend, seen = MultiHeadAttention(D_MODEL, HEADS), []
    attend.key.register_full_backward_hook(lambda *arguments: seen.append(arguments))
    attend(torch.randn(BATCH, TOKENS, D_MODEL, requires_grad=True)).sum().backward()
    assert len(seen) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_reader")
def test_plain_projections_compile_into_one_graph():
    attend = MultiHeadAttention(D_MODEL, HEADS)
    x = torch.randn(BATCH, TOKENS, D_MODEL)
    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    assert_close(compiled(x), attend(x))
