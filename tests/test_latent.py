"""Latent attention against Hugging Face's DeepSeek-V2: the same numbers, and a cache of latents."""

import pytest
import torch
from torch.testing import assert_close
from transformers import DeepseekV2Config
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention

from transformer_lib.gpt import GPTConfig
from transformer_lib.latent import LatentAttention
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.positions import rotary_angles

BATCH, TOKENS, HEADS, D_MODEL, D_LATENT, D_ROTARY, D_HEAD = 2, 7, 3, 12, 5, 4, 6
EXACT = {"rtol": 0, "atol": 1e-12}
CLOSE = {"rtol": 0, "atol": 1e-6}  # theirs turns in 32 bits


@torch.no_grad()
def ours_and_theirs(bias=False):
    ours = LatentAttention(
        D_MODEL, HEADS, d_latent=D_LATENT, d_rotary=D_ROTARY, d_head=D_HEAD, bias=bias
    ).double()
    theirs = DeepseekV2Attention(
        DeepseekV2Config(
            hidden_size=D_MODEL, num_attention_heads=HEADS, num_key_value_heads=HEADS,
            q_lora_rank=None, kv_lora_rank=D_LATENT, qk_rope_head_dim=D_ROTARY,
            qk_nope_head_dim=D_HEAD, v_head_dim=D_HEAD, attn_implementation="eager",
        ),
        layer_idx=0,
    ).double()  # fmt: skip
    theirs.kv_a_layernorm.variance_epsilon = ours.norm.eps
    torch.nn.init.normal_(ours.norm.weight)
    names = {"q_proj": "query", "kv_a_proj_with_mqa": "down", "kv_a_layernorm": "norm"}
    for their, our in (names | {"kv_b_proj": "up", "o_proj": "output"}).items():
        getattr(theirs, their).weight.copy_(getattr(ours, our).weight)
    return ours, theirs.eval()


def called(theirs, x, mask):
    angles = rotary_angles(x.shape[1], D_ROTARY, dtype=torch.float64)
    turns = torch.polar(torch.ones_like(angles), angles)[None]
    hidden = torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -torch.inf)
    return theirs(x, attention_mask=hidden, position_embeddings=turns)[0]


def test_it_is_deepseeks():
    ours, theirs = ours_and_theirs()
    x = torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64, requires_grad=True)
    found = ours(x, causal=True)
    expected = called(theirs, x, causal_mask(TOKENS)[None, None])
    assert_close(found, expected, **CLOSE)
    (mine,), (plain,) = (torch.autograd.grad(y.square().sum(), x) for y in (found, expected))
    assert_close(mine, plain, **CLOSE)
    mask = padding_mask([3, 7], TOKENS)
    assert_close(ours(x, mask), called(theirs, x, mask.unsqueeze(1)), **CLOSE)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("d_rotary", [0, D_ROTARY])
@torch.no_grad()
def test_the_cache_holds_one_vector_a_token_and_the_step_never_makes_a_key(bias, d_rotary):
    ours = LatentAttention(D_MODEL, HEADS, d_latent=D_LATENT, d_rotary=d_rotary, d_head=D_HEAD,
                           bias=bias).double()  # fmt: skip
    x = torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64)
    cache, full = ours.new_cache(BATCH, TOKENS), ours(x, causal=True)
    assert cache._memory.numel() == BATCH * TOKENS * (D_LATENT + d_rotary)
    parts = [ours(part, causal=True, cache=cache) for part in x.split([3, 1, 3], dim=1)]
    assert_close(torch.cat(parts, dim=1), full, **EXACT)
    cache.reset()
    seen = []
    ours.up.register_forward_hook(lambda *called: seen.append(called))
    step = ours.stepper(cache)
    assert step is None  # a hook must be heard
    ours.up._forward_hooks.clear()
    step = ours.stepper(cache)
    ours.up.forward = None  # whoever calls it fails
    assert_close(torch.stack([step(row) for row in x.unbind(1)], dim=1), full, **EXACT)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"attention_options": {}}, TypeError, "missing 1 required .* 'd_latent'"),
        ({"attention_options": {"d_latnt": 4}}, TypeError, "argument 'd_latnt'"),
        ({"attention_options": {"d_latent": 4, "rank": 2}}, TypeError, "argument 'rank'"),
        ({"attention_options": {"d_latent": 0}}, ValueError, "d_latent is 0"),
        ({"attention_options": {"d_latent": 4, "d_rotary": 3}}, ValueError, "d_rotary is 3"),
        ({"qk_norm": True}, ValueError, "qk_norm is True, which attention='latent' does not have"),
        ({"n_kv_heads": 1}, ValueError, "n_kv_heads is 1, which attention='latent'"),
        ({"positions": "alibi"}, ValueError, "takes 'rotary', or positions that are added"),
        ({"attention": "lattent"}, ValueError, "choose one of 'multi_head', 'window', 'latent'"),
    ],
)  # fmt: skip
def test_what_makes_no_latent_attention(changes, error, message):
    sizes = {"vocabulary": 7, "context": 8, "n_layers": 1, "n_heads": 2, "d_model": 16}
    options = {"positions": "rotary", "attention": "latent", "attention_options": {"d_latent": 4}}
    with pytest.raises(error, match=message):
        GPTConfig(**sizes | options | changes)
