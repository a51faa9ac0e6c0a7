"""MultiHeadAttention: against PyTorch's module, against one attention a head, and its options."""

import copy
import math
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention, attention, merge_heads, split_heads
from transformer_lib.masks import causal_mask, combine_masks, padding_mask
from transformer_lib.positions import AlibiPositions, RotaryPositions

BATCH, QUERIES, KEYS, HEADS, D_HEAD = 2, 5, 7, 3, 11
D_MODEL = HEADS * D_HEAD
EXACT = {"rtol": 0, "atol": 1e-13}


def make_pair(bias=True):
    """Our module and PyTorch's, with the same weights, in double precision."""
    ours = MultiHeadAttention(D_MODEL, HEADS, bias=bias).double()
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, bias=bias, batch_first=True).double()
    with torch.no_grad():
        projections = (ours.query, ours.key, ours.value)
        theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
            theirs.out_proj.bias.copy_(ours.output.bias)
    return ours, theirs


def tokens(n):
    return torch.randn(BATCH, n, D_MODEL, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", ["plain", "causal", "padding", "both", "memory"])
def test_forward_and_gradients_equal_pytorch(case, bias):
    ours, theirs = make_pair(bias)
    x, memory = tokens(QUERIES), tokens(KEYS) if case == "memory" else None
    lengths = [QUERIES, 3]
    hidden = ~causal_mask(QUERIES) if case in ("causal", "both") else None  # theirs: True = hidden
    padding = padding_mask(lengths, QUERIES) if case in ("padding", "both") else None
    mine = ours(x, memory, padding, causal=hidden is not None)
    source = x if memory is None else memory
    reference, _ = theirs(
        x,
        source,
        source,
        attn_mask=hidden,
        key_padding_mask=None if padding is None else ~padding[:, 0],
        need_weights=False,
    )
    assert_close(mine, reference, **EXACT)

    inputs = [x] if memory is None else [x, memory]
    g = torch.randn_like(mine)
    of_mine = torch.autograd.grad(mine, [*inputs, *ours.parameters()], g)
    of_theirs = torch.autograd.grad(reference, [*inputs, *theirs.parameters()], g)
    assert_close(of_mine[: len(inputs)], of_theirs[: len(inputs)], **EXACT)
    mine_by_name = dict(zip(dict(ours.named_parameters()), of_mine[len(inputs) :], strict=True))
    theirs_by_name = dict(
        zip(dict(theirs.named_parameters()), of_theirs[len(inputs) :], strict=True)
    )
    for kind in ("weight", "bias") if bias else ("weight",):
        stacked = torch.cat([mine_by_name[f"{name}.{kind}"] for name in ("query", "key", "value")])
        assert_close(stacked, theirs_by_name[f"in_proj_{kind}"], **EXACT)
        assert_close(mine_by_name[f"output.{kind}"], theirs_by_name[f"out_proj.{kind}"], **EXACT)


def test_one_attention_for_each_head():
    attend = MultiHeadAttention(D_MODEL, HEADS).double()
    x = tokens(QUERIES)
    q, k, v = attend.query(x), attend.key(x), attend.value(x)
    heads = []
    for head in range(HEADS):
        part = slice(head * D_HEAD, (head + 1) * D_HEAD)
        heads.append(attention(q[..., part], k[..., part], v[..., part], causal=True))
    expected = attend.output(torch.cat(heads, dim=-1))
    assert_close(attend(x, causal=True), expected, **EXACT)


def test_split_heads_takes_columns_side_by_side_and_merge_puts_them_back():
    x = torch.arange(2 * 5 * 21).reshape(2, 5, 21).float()
    split = split_heads(x, n_heads=3)
    assert split.shape == (2, 3, 5, 7)
    for head in range(3):
        assert split[:, head].equal(x[:, :, 7 * head : 7 * (head + 1)])
    assert merge_heads(split).equal(x)


def test_counting_parameters():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    d = D_MODEL
    assert count(MultiHeadAttention(d, HEADS)) == 4 * d**2 + 4 * d
    assert (
        count(MultiHeadAttention(d, 1)) == 4 * d**2 + 4 * d
    )  # narrow heads: whatever their number
    assert count(MultiHeadAttention(d, HEADS, d_head=d, bias=False)) == 4 * HEADS * d**2  # wide
    names = [name for name, _ in MultiHeadAttention(d, HEADS, bias=False).named_parameters()]
    assert names == ["query.weight", "key.weight", "value.weight", "output.weight"]


def test_a_width_of_head_that_does_not_divide_d_model():
    attend = MultiHeadAttention(13, 3, d_head=5)
    assert attend(torch.randn(2, 7, 13)).shape == (2, 7, 13)


@pytest.mark.parametrize("axes", ["queries keys", "batch 1 keys", "batch queries keys", "all"])
def test_masks_of_two_three_and_four_axes(axes):
    attend = MultiHeadAttention(D_MODEL, HEADS).double()
    shape = {
        "queries keys": (QUERIES, KEYS),
        "batch 1 keys": (BATCH, 1, KEYS),
        "batch queries keys": (BATCH, QUERIES, KEYS),
        "all": (BATCH, HEADS, QUERIES, KEYS),
    }[axes]
    mask = torch.rand(shape) < 0.5
    x, memory = tokens(QUERIES), tokens(KEYS)
    full = mask[:, None] if mask.ndim == 3 else mask
    full = full.expand(BATCH, HEADS, QUERIES, KEYS)
    q, k, v = attend.project(x, memory)
    expected = attend.output(merge_heads(attention(q, k, v, full)))
    assert_close(attend(x, memory, mask), expected, **EXACT)


def test_padding_on_the_right_changes_nothing():
    attend = MultiHeadAttention(D_MODEL, HEADS).double()
    x = tokens(QUERIES)
    padded = torch.cat([x, torch.full((BATCH, 2, D_MODEL), 1e3, dtype=torch.float64)], dim=1)
    mask = padding_mask([QUERIES] * BATCH, QUERIES + 2)
    assert_close(attend(padded, mask=mask)[:, :QUERIES], attend(x), **EXACT)
    both = combine_masks(mask, causal_mask(QUERIES + 2))
    assert_close(attend(padded, mask=both)[:, :QUERIES], attend(x, causal=True), **EXACT)


def test_rotary_scores_depend_on_the_distance_only():
    """The same tokens later in the sequence attend to each other in the same way."""
    positions = RotaryPositions(12)
    q, k = torch.randn(2, 1, HEADS, QUERIES, 12, dtype=torch.float64)
    scores = [
        positions.rotate(q, start) @ positions.rotate(k, start).transpose(-2, -1)
        for start in (0, 17)
    ]
    assert_close(scores[0], scores[1], rtol=0, atol=1e-12)
    moved = positions.rotate(q, 0) @ positions.rotate(k, 17).transpose(-2, -1)
    assert (moved - scores[0]).abs().max() > 1e-3


def test_alibi_is_added_after_scaling():
    attend = MultiHeadAttention(D_MODEL, HEADS, positions=AlibiPositions(HEADS)).double()
    x = tokens(QUERIES)
    q, k, v = attend.project(x)
    slopes = torch.tensor([2**-4, 2**-8, 2**-2], dtype=torch.float64)  # 3 heads: by hand
    distance = torch.tensor([[abs(i - j) for j in range(QUERIES)] for i in range(QUERIES)])
    scores = q @ k.transpose(-2, -1) / math.sqrt(D_HEAD) - slopes[:, None, None] * distance
    expected = attend.output(merge_heads(scores.softmax(dim=-1) @ v))
    assert_close(attend(x), expected, **EXACT)


def test_dropout_only_while_training():
    attend = MultiHeadAttention(D_MODEL, HEADS, dropout=0.5)
    x = torch.randn(BATCH, QUERIES, D_MODEL)
    assert not attend(x).equal(attend(x))
    attend.eval()
    assert attend(x).equal(attend(x))
    plain = MultiHeadAttention(D_MODEL, HEADS)
    plain.load_state_dict(attend.state_dict())
    assert plain.train()(x).equal(attend(x))


@pytest.mark.parametrize("positions", [None, RotaryPositions(12), AlibiPositions(HEADS)])
def test_autocast_to_bfloat16(positions):
    attend = MultiHeadAttention(36, HEADS, positions=positions)
    x = torch.randn(BATCH, QUERIES, 36)
    expected = attend(x, causal=True)
    with torch.autocast("cpu", torch.bfloat16):
        output = attend(x, causal=True)
        output.float().sum().backward()
    assert output.dtype == torch.bfloat16
    assert all(p.grad.isfinite().all() for p in attend.parameters())
    # Each of a handful of roundings is off by at most 2⁻⁸ of numbers of about 1.
    assert_close(output.float(), expected, rtol=0, atol=8 * 2**-8)


@pytest.mark.parametrize("positions", [None, RotaryPositions(12), AlibiPositions(HEADS)])
def test_copies_and_pickles(positions):
    attend = MultiHeadAttention(36, HEADS, positions=positions)
    x = torch.randn(BATCH, QUERIES, 36)
    for other in (copy.deepcopy(attend), pickle.loads(pickle.dumps(attend))):
        assert other(x).equal(attend(x))
    assert f"positions={positions}" in repr(attend)


def test_the_input_and_the_mask_are_not_written_into():
    attend = MultiHeadAttention(D_MODEL, HEADS)
    x, mask = torch.randn(BATCH, QUERIES, D_MODEL), padding_mask([3, 5], QUERIES)
    before = x.clone(), mask.clone()
    attend(x, mask=mask, causal=True)
    assert x.equal(before[0])
    assert mask.equal(before[1])
