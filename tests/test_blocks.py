"""Blocks of parts: against PyTorch's encoder layer (both norms), and dropout."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import NORMS
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.layers import FeedForward, LayerNorm
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.positions import RotaryPositions

BATCH, TOKENS, HEADS, D_HEAD, D_FF = 2, 5, 3, 4, 17
D_MODEL = HEADS * D_HEAD
EXACT = {"rtol": 0, "atol": 1e-12}


def make_block(norm="pre", *, activation="relu", dropout=0.0, **options):
    attention = MultiHeadAttention(D_MODEL, HEADS, dropout=dropout, **options)
    feed_forward = FeedForward(D_MODEL, D_FF, activation)
    return NORMS[norm](attention, feed_forward, LayerNorm(D_MODEL), LayerNorm(D_MODEL), dropout)


def random_x():
    return torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64, requires_grad=True)


def pytorchs_layer(block):
    """nn.TransformerEncoderLayer with the weights of ``block``, and which is which."""
    theirs = nn.TransformerEncoderLayer(
        D_MODEL,
        HEADS,
        D_FF,
        dropout=0.0,
        activation="relu" if block.feed_forward.activation == "relu" else "gelu",
        norm_first=isinstance(block, NORMS["pre"]),
        batch_first=True,
    ).double()
    pairs = [
        (theirs.norm1, block.norm_1),
        (theirs.norm2, block.norm_2),
        (theirs.linear1, block.feed_forward.expand),
        (theirs.linear2, block.feed_forward.contract),
        (theirs.self_attn.out_proj, block.attention.output),
    ]
    projections = [block.attention.query, block.attention.key, block.attention.value]
    with torch.no_grad():
        for their, our in pairs:
            their.weight.copy_(our.weight)
            their.bias.copy_(our.bias)
        theirs.self_attn.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
    return theirs, pairs


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("causal", [True, False])
def test_forward_and_gradients_equal_pytorch(norm, activation, causal):
    block = make_block(norm, activation=activation).double()
    for parameter in block.parameters():  # norms with other weights than 1, too
        nn.init.normal_(parameter, std=0.5)
    theirs, pairs = pytorchs_layer(block)
    x, mask = random_x(), padding_mask([TOKENS, 3], TOKENS)
    mine = block(x, mask, causal=causal)
    future = ~causal_mask(TOKENS) if causal else None  # theirs: True = hidden
    reference = theirs(x, src_mask=future, src_key_padding_mask=~mask[:, 0])
    assert_close(mine, reference, **EXACT)
    g = torch.randn_like(mine)
    (of_mine,) = torch.autograd.grad(mine, x, g, retain_graph=True)
    (of_theirs,) = torch.autograd.grad(reference, x, g, retain_graph=True)
    assert_close(of_mine, of_theirs, **EXACT)
    mine.backward(g)
    reference.backward(g)
    for their, our in pairs:
        assert_close(our.weight.grad, their.weight.grad, **EXACT)
        assert_close(our.bias.grad, their.bias.grad, **EXACT)


def test_normalized_queries_and_keys():
    """Their length is √d_head, whatever the input's, before and after positions turn them."""
    attend, x = (
        make_block(positions=RotaryPositions(D_HEAD), qk_norm=True).double().attention,
        random_x(),
    )
    q, k, v = attend.project(x)
    for vectors in (q, k):
        lengths = vectors.norm(dim=-1)
        assert_close(lengths, torch.full_like(lengths, D_HEAD**0.5), rtol=1e-3, atol=0)
    q_long, k_long, v_long = attend.project(1000 * x.detach())
    assert (q_long.norm(dim=-1) - D_HEAD**0.5).abs().max() < 1e-3
    assert (q_long * k_long).sum(dim=-1).abs().max() / D_HEAD**0.5 <= D_HEAD**0.5
    assert v_long.norm() > 100 * v.norm()  # values keep theirs
    maps = attention_maps(attend, 1000 * x.detach(), causal=True)["attention"]
    scores = q_long @ k_long.transpose(-2, -1) / D_HEAD**0.5
    expected = scores.masked_fill(~causal_mask(TOKENS), -torch.inf).softmax(dim=-1)
    assert_close(maps, expected, **EXACT)  # what the book shows is what the model used
    assert "qk_norm=True" in repr(attend)


def test_dropout_of_each_result_before_it_is_added():
    """With almost everything dropped, what is left of the block is the stream itself."""
    block, x = make_block(dropout=0.999999).double(), random_x()
    assert block(x).equal(x)
    block.eval()
    assert not block(x).equal(x)


@pytest.mark.usefixtures("as_a_reader")
def test_what_does_not_make_a_block():
    with pytest.raises(ValueError, match="d_model = 12 is not divisible by n_heads = 5"):
        MultiHeadAttention(D_MODEL, 5)
    with pytest.raises(TypeError, match="qk_norm is 'yes', of type str; it must be True or False"):
        make_block(qk_norm="yes")
    with pytest.raises(TypeError, match="bias is 'no', of type str; it must be True or False"):
        make_block(bias="no")
    with pytest.raises(ValueError, match="dropout is 1"):
        make_block(dropout=1.0)
    with pytest.raises(ValueError, match="does not suit heads of width 4"):
        make_block(positions=RotaryPositions(6))
    with pytest.raises(ValueError, match=r"x has shape \(2, 5, 7\)"):
        make_block("post")(torch.ones(2, 5, 7))
