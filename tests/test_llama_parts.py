"""Grouped-query attention, SwiGLU and a whole block against Hugging Face's Llama."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaDecoderLayer,
    LlamaMLP,
)

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import PreNorm
from transformer_lib.cache import KeyValueCache
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.layers import RMSNorm, SwiGLU
from transformer_lib.positions import RotaryPositions, rotary_angles

BATCH, TOKENS, HEADS, D_HEAD, D_FF = 2, 7, 6, 4, 17
D_MODEL = HEADS * D_HEAD
EXACT = {"rtol": 0, "atol": 1e-12}


def llama(n_kv_heads):
    return LlamaConfig(
        hidden_size=D_MODEL,
        intermediate_size=D_FF,
        num_attention_heads=HEADS,
        num_key_value_heads=n_kv_heads,
        rms_norm_eps=1e-5,
        attn_implementation="sdpa",
    )


def turned():
    """Cosines and sines as Llama's attention takes them. (Its own are computed in 32 bits.)"""
    angles = rotary_angles(TOKENS, D_HEAD, dtype=torch.float64).repeat(1, 2).unsqueeze(0)
    return angles.cos(), angles.sin()


def by_halves(weight):
    """Rows of our pairs (2i, 2i+1) where Llama has its pairs (i, i + d_head/2)."""
    rows = weight.unflatten(0, (-1, D_HEAD // 2, 2))
    return rows.transpose(1, 2).flatten(0, 2)


def our_attention(n_kv_heads):
    return MultiHeadAttention(
        D_MODEL, HEADS, n_kv_heads=n_kv_heads, bias=False, positions=RotaryPositions(D_HEAD)
    ).double()


@torch.no_grad()
def copy_attention(theirs, ours):
    """Their weights become ours, and (name, our parameter, their parameter, how ours is seen)."""
    for their, our in [("q_proj", "query"), ("k_proj", "key")]:
        getattr(theirs, their).weight.copy_(by_halves(getattr(ours, our).weight))
    theirs.v_proj.weight.copy_(ours.value.weight)
    theirs.o_proj.weight.copy_(ours.output.weight)
    return [
        (ours.query.weight, theirs.q_proj.weight, by_halves),
        (ours.key.weight, theirs.k_proj.weight, by_halves),
        (ours.value.weight, theirs.v_proj.weight, lambda weight: weight),
        (ours.output.weight, theirs.o_proj.weight, lambda weight: weight),
    ]


@torch.no_grad()
def copy_mlp(theirs, ours):
    pairs = [
        (ours.gate.weight, theirs.gate_proj.weight),
        (ours.expand.weight, theirs.up_proj.weight),
        (ours.contract.weight, theirs.down_proj.weight),
    ]
    for our, their in pairs:
        their.copy_(our)
    return [(our, their, lambda weight: weight) for our, their in pairs]


def random_x():
    return torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64, requires_grad=True)


def compare(x, ours, theirs, pairs, close=EXACT):
    """Results, gradients of the input and of every parameter."""
    assert_close(ours, theirs, **close)
    g = torch.randn_like(ours)
    (of_ours,) = torch.autograd.grad(ours, x, g, retain_graph=True)
    (of_theirs,) = torch.autograd.grad(theirs, x, g, retain_graph=True)
    assert_close(of_ours, of_theirs, **close)
    ours.backward(g)
    theirs.backward(g)
    for our, their, seen in pairs:
        assert_close(seen(our.grad), their.grad, **close)


def causal_scores():
    return torch.full((1, 1, TOKENS, TOKENS), -torch.inf, dtype=torch.float64).triu(1)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_query_attention_is_llamas(n_kv_heads):
    ours = our_attention(n_kv_heads)
    theirs = LlamaAttention(llama(n_kv_heads), layer_idx=0).double()
    pairs, x = copy_attention(theirs, ours), random_x()
    result, _ = theirs(x, position_embeddings=turned(), attention_mask=causal_scores())
    compare(x, ours(x, causal=True), result, pairs)


def test_swiglu_is_llamas():
    ours, theirs = SwiGLU(D_MODEL, D_FF).double(), LlamaMLP(llama(2)).double()
    pairs, x = copy_mlp(theirs, ours), random_x()
    compare(x, ours(x), theirs(x), pairs)


def test_a_block_of_these_parts_is_llamas():
    """Up to 32 bits: Llama's norm computes in no more."""
    theirs = LlamaDecoderLayer(llama(2), layer_idx=0).double()
    norms = [RMSNorm(D_MODEL).double() for _ in range(2)]
    for norm in norms:
        nn.init.normal_(norm.weight)
    ours = PreNorm(our_attention(2), SwiGLU(D_MODEL, D_FF).double(), *norms)
    pairs = copy_attention(theirs.self_attn, ours.attention)
    pairs += copy_mlp(theirs.mlp, ours.feed_forward)
    with torch.no_grad():
        theirs.input_layernorm.weight.copy_(norms[0].weight)
        theirs.post_attention_layernorm.weight.copy_(norms[1].weight)
    x = random_x()
    result = theirs(x, position_embeddings=turned(), attention_mask=causal_scores())
    compare(x, ours(x, causal=True), result, pairs, {"rtol": 1e-5, "atol": 1e-5})


@torch.no_grad()
def test_grouped_keys_make_a_small_cache():
    attend, x = our_attention(2), random_x()
    cache = KeyValueCache(BATCH, 2, TOKENS, D_HEAD, dtype=torch.float64)
    parts = [attend(part, causal=True, cache=cache) for part in x.split([4, 1, 2], dim=1)]
    assert_close(torch.cat(parts, dim=1), attend(x, causal=True), **EXACT)
    maps = attention_maps(attend, x, causal=True)["attention"]
    assert maps.shape == (BATCH, HEADS, TOKENS, TOKENS)
    config = GPTConfig(
        vocabulary=11, context=9, n_layers=1, n_heads=6, n_kv_heads=2, d_model=D_MODEL
    )
    assert repr(GPT(config).new_cache(1).layers[0]).startswith("KeyValueCache(batch=1, n_heads=2,")


@pytest.mark.usefixtures("as_a_reader")
def test_heads_that_cannot_be_shared():
    with pytest.raises(ValueError, match="n_heads = 6 is not divisible by n_kv_heads = 4"):
        MultiHeadAttention(D_MODEL, 6, n_kv_heads=4)
    with pytest.raises(ValueError, match="n_kv_heads is 0; it must be at least 1"):
        GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12, n_kv_heads=0)
    with pytest.raises(ValueError, match="d_ff is 0; it must be at least 1"):
        SwiGLU(8, 0)
