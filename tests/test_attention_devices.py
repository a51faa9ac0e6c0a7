"""The rules about masks and empty rows on every kernel and device that is here.

On the CPU, and with `pytest -m gpu` on a GPU; with the kernel that PyTorch chooses and with its
reference ("math") kernel, which treats an empty row differently.
"""

import contextlib

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention, attention, attention_weights
from transformer_lib.cache import KeyValueCache
from transformer_lib.positions import AlibiPositions, RotaryPositions

GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU"),
]
DEVICE = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
KERNEL = pytest.mark.parametrize("kernel", ["chosen", "math"])
DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])


def using(kernel):
    return sdpa_kernel(SDPBackend.MATH) if kernel == "math" else contextlib.nullcontext()


def make(device, dtype):
    """16 components and 8 keys: sizes that a GPU's fast kernels take."""
    sizes = ((2, 3, 5, 16), (2, 3, 8, 16), (2, 3, 8, 16))
    tensors = [torch.randn(size).to(device, dtype).requires_grad_() for size in sizes]
    mask = torch.rand(2, 1, 5, 8) < 0.5
    mask[..., 0], mask[..., 2, :] = True, False
    return *tensors, mask.to(device)


@DEVICE
@KERNEL
@DTYPE
@pytest.mark.parametrize("with_bias", [False, True])
def test_empty_rows(device, kernel, dtype, with_bias):
    q, k, v, mask = make(device, dtype)
    bias = torch.randn(3, 5, 8).to(device, dtype) if with_bias else None
    with using(kernel):
        output = attention(q, k, v, mask, bias=bias)
        output.float().square().sum().backward()
    assert (output[:, :, 2] == 0).all()
    assert (q.grad[:, :, 2] == 0).all()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
        assert (x.grad != 0).any()


@DEVICE
@KERNEL
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_kernel_and_the_taught_path_agree(device, kernel, causal, masked):
    q, k, v, mask = make(device, torch.float32)
    mask = mask if masked else None
    with using(kernel):
        output = attention(q, k, v, mask, causal=causal)
    expected = attention_weights(q, k, mask, causal=causal) @ v
    assert_close(output, expected)


@DEVICE
@pytest.mark.parametrize("positions", [None, RotaryPositions(16), AlibiPositions(3)])
@torch.no_grad()
def test_step_by_step_equals_the_full_pass(device, positions):
    attend = MultiHeadAttention(48, 3, positions=positions).to(device)
    x = torch.randn(2, 7, 48, device=device)
    cache = KeyValueCache(2, 3, 7, 16, device=device)
    steps = [attend(token, causal=True, cache=cache) for token in x.split(1, dim=1)]
    assert_close(torch.cat(steps, dim=1), attend(x, causal=True))
