"""Rotary positions by complex numbers: the same as by sine and cosine, however x lies in memory."""

import re

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.fast.rotation import kept_numbers
from transformer_lib.positions import RotaryPositions, apply_rotary, rotary_angles

BATCH, HEADS, TOKENS, D_HEAD = 2, 3, 5, 14
ROTARY = RotaryPositions(D_HEAD)


def by_sine_and_cosine(x, start=0):
    return apply_rotary(x, rotary_angles(TOKENS, D_HEAD, start=start, dtype=torch.float64))


@pytest.mark.parametrize("start", [0, 11])
@pytest.mark.parametrize(
    ("_layout", "make"),
    [
        ("contiguous", lambda: torch.randn(BATCH, HEADS, TOKENS, D_HEAD)),
        ("heads split", lambda: torch.randn(BATCH, TOKENS, HEADS, D_HEAD).transpose(1, 2)),
        ("odd offset", lambda: torch.randn(TOKENS, D_HEAD + 1)[:, 1:]),
        ("odd offset in one axis", lambda: torch.randn(TOKENS * D_HEAD + 1)[1:].view(TOKENS, -1)),
        ("odd stride", lambda: torch.randn(TOKENS, D_HEAD + 1)[:, :-1]),
        ("components first", lambda: torch.randn(D_HEAD, TOKENS).T),
        ("every other component", lambda: torch.randn(TOKENS, 2 * D_HEAD)[:, ::2]),
        ("expanded", lambda: torch.randn(1, D_HEAD).expand(TOKENS, -1)),
    ],
)
def test_equal_with_gradients_for_every_layout(_layout, make, start):
    x = make().requires_grad_()
    mine, expected = ROTARY.rotate(x, start), by_sine_and_cosine(x.double(), start)
    assert mine.dtype == x.dtype
    assert_close(mine.double(), expected, rtol=0, atol=1e-6)
    g = torch.randn_like(mine)
    (of_mine,) = torch.autograd.grad(mine, x, g)
    (reference,) = torch.autograd.grad(expected, x, g.double())
    assert_close(of_mine, reference, rtol=0, atol=1e-6)


def test_double_precision():
    x = torch.randn(BATCH, HEADS, TOKENS, D_HEAD, dtype=torch.float64)
    assert_close(ROTARY.rotate(x, 7), by_sine_and_cosine(x, 7), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits_are_rounded_once(dtype):
    x = torch.randn(BATCH, HEADS, TOKENS, D_HEAD).to(dtype)
    expected = by_sine_and_cosine(x.double(), 7)
    assert_close(ROTARY.rotate(x, 7).double(), expected, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_what_is_kept_in_inference_mode_is_good_for_training():
    kept_numbers.cache_clear()
    x = torch.randn(TOKENS, D_HEAD)
    with torch.inference_mode():
        ROTARY.rotate(x, 3)
    ROTARY.rotate(x.requires_grad_(), 3).sum().backward()
    assert kept_numbers.cache_info().hits == 1
    assert x.grad.isfinite().all()


def test_while_compiling_sine_and_cosine_are_taken(monkeypatch):
    x = torch.randn(BATCH, HEADS, TOKENS, D_HEAD)
    kept_numbers.cache_clear()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert_close(ROTARY.rotate(x, 3), by_sine_and_cosine(x.double(), 3).float())
    assert kept_numbers.cache_info().misses == 0


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_reader")
def test_a_compiled_rotation_reads_its_cosines_from_a_table():
    """Inductor would compute them in double precision, for every pair of every head.

    (Its own code is not made: that takes a C++ compiler, and a path without a blank.)
    """
    graphs = []

    def keep(graph, _inputs):
        graphs.append(graph.code)
        return make_boxed_func(graph.forward)

    turn = torch.compile(
        lambda q, k: (ROTARY.rotate(2 * q, 0), ROTARY.rotate(k, 0)),
        fullgraph=True,
        backend=aot_autograd(fw_compiler=keep, partition_fn=min_cut_rematerialization_partition),
    )
    q = torch.randn(BATCH, HEADS, TOKENS, D_HEAD, requires_grad=True)
    turned, _ = turn(q, q)
    assert_close(turned, ROTARY.rotate(2 * q, 0))
    (of_mine,) = torch.autograd.grad(turned.square().sum(), q)
    assert_close(of_mine, 8 * q.detach())  # lengths stay
    code = "\n".join(graphs)
    assert len(graphs) == 2  # forward and backward
    assert re.findall(r"aten\.(cos|sin|polar)\b", code) == []
    assert code.count("ops.transformer_lib.cosine_sine.default(") == 1  # for both


@pytest.mark.usefixtures("as_a_reader")
def test_uneven_lengths_share_a_compiled_graph():
    counters.clear()
    turn = torch.compile(lambda x: ROTARY.rotate(x, 0), fullgraph=True, backend="aot_eager")
    for tokens in (5, 7, 11, 13, 6):
        x = torch.randn(BATCH, HEADS, tokens, D_HEAD)
        assert_close(turn(x), ROTARY.rotate(x, 0))
    assert counters["stats"]["unique_graphs"] == 2  # for one length, and for any


@pytest.mark.usefixtures("as_a_reader")
def test_heads_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"x has shape \(5, 12\)"):
        ROTARY.rotate(torch.zeros(5, 12), 0)


@pytest.mark.parametrize("real_first", [True, False])
def test_fake_tensors_are_not_kept(real_first):
    kept_numbers.cache_clear()
    x = torch.randn(TOKENS, D_HEAD)
    if real_first:
        ROTARY.rotate(x, 3)
    with FakeTensorMode():
        assert ROTARY.rotate(torch.randn(TOKENS, D_HEAD), 3).shape == (TOKENS, D_HEAD)
        MultiHeadAttention(2 * D_HEAD, 2, positions=ROTARY)
    assert type(ROTARY.rotate(x, 3)) is torch.Tensor
    MultiHeadAttention(2 * D_HEAD, 2, positions=ROTARY)
    assert_close(ROTARY.rotate(x.double(), 3), by_sine_and_cosine(x.double(), 3))
