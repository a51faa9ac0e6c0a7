"""Errors teach: each message names the value, the cause and the fix."""

import re

import numpy as np
import pytest
import torch

from transformer_lib import checks
from transformer_lib.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    fused_attention,
    split_heads,
)
from transformer_lib.positions import AlibiPositions, RotaryPositions, SinusoidalPositions

pytestmark = pytest.mark.usefixtures("as_a_reader")

Q, K, V = torch.ones(2, 3, 5, 11), torch.ones(2, 3, 7, 11), torch.ones(2, 3, 7, 13)
X, MEMORY = torch.ones(2, 5, 33), torch.ones(2, 7, 33)
TRUE = {"dtype": torch.bool}


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Q, torch.ones(2, 3, 7, 13), V), {}, ValueError, "q is 11 wide and k is 13 wide: a dot"),
        (
            (Q, K, V[:, :, :5]),
            {},
            ValueError,
            r"7 keys .* and 5 values .* each key needs its value",
        ),
        ((Q, K[:, :1], V), {}, ValueError, "all axes before the last two must be equal. Use k.exp"),
        ((Q[0], K, V), {}, ValueError, r"q has shape \(3, 5, 11\) and k has shape \(2, 3, 7, 11\)"),
        ((Q, K[:, :, :0], V), {}, ValueError, r"k has shape \(2, 3, 0, 11\).* empty sequence"),
        ((Q[:, :, :0], K, V), {}, ValueError, "q has shape .* Attention needs at least one token"),
        ((Q[..., :0], K[..., :0], V), {}, ValueError, "there is nothing in it"),
        ((Q[0, 0, 0], K, V), {}, ValueError, r"q has shape \(11,\); it needs an axis of tokens"),
        ((Q.long(), K, V), {}, TypeError, r"q has dtype torch.int64; .* floating point: q.float"),
        ((Q, K, V.int()), {}, TypeError, "v has dtype torch.int32"),
        ((Q, K.double(), V), {}, TypeError, r"use one for both: k = k.to\(torch.float32\)"),
        ((Q, K, V.bfloat16()), {}, TypeError, "q has dtype torch.float32 and v has dtype torch.bf"),
        (
            (Q, K.to("meta"), V),
            {},
            ValueError,
            r"q is on cpu and k is on meta; .* k = k.to\('cpu'\)",
        ),
        ((Q, K, V.to("meta")), {}, ValueError, "q is on cpu and v is on meta"),
        ((Q.numpy(), K, V), {}, TypeError, r"q is of type ndarray; it must be a tensor"),
        (
            (Q, K, V),
            {"mask": torch.ones(5, 7)},
            TypeError,
            r"From 1 and 0: mask.bool\(\); from 0 a",
        ),
        ((Q, K, V), {"mask": torch.ones(5, 7).int()}, TypeError, "mask has dtype torch.int32"),
        ((Q, K, V), {"mask": np.ones((5, 7))}, TypeError, "mask is of type ndarray"),
        (
            (Q, K, V),
            {"mask": torch.ones(7, 5, **TRUE)},
            ValueError,
            r"\(7, 5\), which does not broadcast to the weights' shape \(2, 3, 5, 7\). Its last "
            r"axes must be queries \(5\) and keys \(7\)",
        ),
        (
            (Q, K, V),
            {"mask": torch.ones(2, 7, **TRUE)},
            ValueError,
            r"\(padding\), add axes for the heads and for the queries: mask(\.unsqueeze\(1\)){2}\.",
        ),
        (
            (Q, K, V),
            {"mask": torch.ones(2, 5, 7, **TRUE)},
            ValueError,
            r"no axis for the heads: mask.unsqueeze\(1\)",
        ),
        ((Q, K, V), {"mask": torch.ones(1, 2, 3, 5, 7, **TRUE)}, ValueError, "does not broadcast"),
        (
            (Q, K, V),
            {"mask": torch.ones(5, 7, device="meta", **TRUE)},
            ValueError,
            r"mask is on meta and the queries are on cpu; move it: mask.to\('cpu'\)",
        ),
        ((Q, K, V), {"bias": torch.ones(5, 5)}, ValueError, r"bias has shape \(5, 5\), which does"),
        ((Q, K, V), {"bias": torch.ones(5, 7).double()}, TypeError, "bias has dtype torch.float64"),
        ((Q, K, V), {"bias": torch.ones(5, 7, **TRUE)}, TypeError, "bias has dtype torch.bool"),
        ((Q, K, V), {"dropout": 1.0}, ValueError, "dropout is 1.0; it is a probability"),
        ((Q, K, V), {"dropout": -0.1}, ValueError, "choose 0 <= dropout < 1"),
    ],
)
def test_arguments_of_attention(arguments, options, error, message):
    with pytest.raises(error, match=message):
        attention(*arguments, **options)
    about_values = "v " in message or "values" in message or "dropout" in options
    if not about_values:  # the weights have the same checks
        with pytest.raises(error, match=message):
            attention_weights(*arguments[:2], **options)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((33, 5), {}, ValueError, r"33 is not divisible by n_heads = 5, .* 3, 11, 33\. "),
        ((0, 1), {}, ValueError, "d_model is 0; it must be at least 1"),
        ((33, 3.0), {}, TypeError, "n_heads is 3.0, of type float"),
        ((33, True), {}, TypeError, "n_heads is True"),
        ((33, 3), {"d_head": 0}, ValueError, "d_head is 0"),
        ((33, 3), {"dropout": 2}, ValueError, "dropout is 2"),
        ((33, 3), {"positions": RotaryPositions(6)}, ValueError, "d_head=6.*heads of width 11"),
        ((33, 3), {"positions": AlibiPositions(2)}, ValueError, "this module has n_heads = 3"),
        ((33, 3), {"positions": SinusoidalPositions(4)}, TypeError, "are added to the embeddings"),
    ],
)
def test_arguments_of_the_module(arguments, options, error, message):
    with pytest.raises(error, match=message):
        MultiHeadAttention(*arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X[..., :32],), {}, ValueError, r"x has shape \(2, 5, 32\); .* with d_model = 33"),
        ((X[0],), {}, ValueError, r"must be \[batch, tokens, d_model\]"),
        ((X[:, :0],), {}, ValueError, r"\(an empty sequence has nothing to attend to\)"),
        ((X, MEMORY[:, :0]), {}, ValueError, r"memory has shape \(2, 0, 33\)"),
        ((X, MEMORY[:1]), {}, ValueError, "x holds 2 sequences and memory 1"),
        ((X.long(),), {}, TypeError, r"x has dtype torch.int64; .*Token ids go through an embedd"),
        (
            (X.double(),),
            {},
            TypeError,
            "the module has dtype torch.float32 and x has dtype torch.f",
        ),
        ((X.to("meta"),), {}, ValueError, "the module is on cpu and x is on meta"),
        ((X, MEMORY.to("meta")), {}, ValueError, "the module is on cpu and memory is on meta"),
        ((X, None, torch.ones(5, 5)), {}, TypeError, "a mask is a boolean tensor"),
        ((X, None, torch.ones(7, 7, **TRUE)), {}, ValueError, r"queries \(5\) and keys \(5\)"),
        ((X, MEMORY, torch.ones(5, 5, **TRUE)), {}, ValueError, r"queries \(5\) and keys \(7\)"),
        ((X, MEMORY, torch.ones(2, 7, **TRUE)), {}, ValueError, r"mask.unsqueeze\(1\)"),
        ((X, MEMORY), {"causal": True}, ValueError, "causal=True hides the future of one sequence"),
    ],
)
def test_arguments_of_forward(arguments, options, error, message):
    with pytest.raises(error, match=message):
        MultiHeadAttention(33, 3)(*arguments, **options)


@pytest.mark.parametrize("positions", [RotaryPositions(4), AlibiPositions(3)])
def test_positions_within_one_sequence_do_not_reach_into_a_memory(positions):
    attend = MultiHeadAttention(12, 3, positions=positions)
    message = re.escape(f"{positions} measures distances within one sequence")
    with pytest.raises(ValueError, match=message):
        attend(torch.ones(2, 5, 12), torch.ones(2, 7, 12))


def test_splitting_what_cannot_be_split():
    with pytest.raises(ValueError, match=r"\(2, 5, 11\); to be split into 3 heads"):
        split_heads(torch.ones(2, 5, 11), 3)


def test_finite_numbers_pass_and_others_are_located():
    checks.require_finite(torch.ones(3, 5), "the weights")
    checks.require_finite(np.ones((3, 5)), "the weights")
    x = np.ones((3, 5))
    x[1, 2], x[2, 0] = np.nan, np.inf
    message = r"the weights holds 2 numbers that are NaN or infinite, the first at index \(1, 2\)"
    with pytest.raises(ValueError, match=message):
        checks.require_finite(x, "the weights")


def test_nan_in_the_input_is_not_an_error_but_it_shows():
    """In forward nothing looks at the numbers: NaN stays within its sequence, and is seen there."""
    x = torch.ones(2, 5, 33)
    x[1, 2, 0] = torch.nan
    output = MultiHeadAttention(33, 3)(x)
    assert output[0].isfinite().all()
    assert output[1].isnan().all()


def test_checks_look_at_no_numbers():
    """A tensor on the meta device has none: to look at them would raise."""
    q, k, v, mask = (x.to("meta") for x in (Q, K, V, torch.ones(5, 7, **TRUE)))
    assert attention_weights(q, k, mask, causal=True).shape == (2, 3, 5, 7)
    assert fused_attention(q, k, v, mask, True, None, None, 0.0).shape == (2, 3, 5, 13)
    attend = MultiHeadAttention(33, 3).to("meta")
    assert attend(X.to("meta"), MEMORY.to("meta"), mask).shape == (2, 5, 33)


@pytest.mark.parametrize("positions", [RotaryPositions(4), AlibiPositions(3)])
def test_modules_can_be_made_without_memory(positions):
    """On the meta device, as large models are before their weights are loaded."""
    with torch.device("meta"):
        attend = MultiHeadAttention(12, 3, positions=positions)
    assert attend(torch.ones(2, 5, 12, device="meta"), causal=True).device.type == "meta"
