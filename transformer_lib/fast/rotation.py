"""Rotary positions as products of complex numbers: what ``RotaryPositions`` runs on.

A pair of components (a, b) is the number a + bi, and to turn it by θ is to multiply it by e^(iθ).
One product instead of four, and no slices: four times faster than ``apply_rotary``, forward and
backward, for 12 sequences of 64 tokens with 4 heads of 32 (805 and 170 µs on one core, torch 2.13).

``torch.compile`` has no complex numbers, so there ``apply_rotary`` is taken, and its cosines and
sines are a tensor that the compiled kernels read (:func:`cosine_sine`).
"""

from collections.abc import Callable
from functools import lru_cache

import torch
from jaxtyping import Complex, Float
from torch import Tensor


def unit_numbers(
    angles: Callable[..., Tensor], *arguments, dtype: torch.dtype
) -> Complex[Tensor, "tokens pairs"]:
    """e^(iθ) for each θ of ``angles(*arguments)``; kept, since every layer asks for the same.

    Within ``FakeTensorMode``, whose tensors are good for nothing outside, they are made anew.

    >>> unit_numbers(torch.zeros, 1, 2, dtype=torch.complex64)
    tensor([[1.+0.j, 1.+0.j]])
    """
    fake = type(torch.empty(0)) is not Tensor
    numbers = kept_numbers.__wrapped__ if fake else kept_numbers
    return numbers(angles, *arguments, dtype=dtype)


@lru_cache(maxsize=4)
def kept_numbers(angles, *arguments, dtype) -> Tensor:
    """As :func:`unit_numbers`, computed once for the same arguments."""
    with torch.inference_mode(False):  # what is kept must be good for training, too
        theta = angles(*arguments)
        return torch.polar(torch.ones_like(theta), theta).to(dtype)


def turn_pairs(
    x: Float[Tensor, "*batch tokens d_head"], numbers: Complex[Tensor, "tokens pairs"]
) -> Float[Tensor, "*batch tokens d_head"]:
    """Each pair of components (2i, 2i+1) of token p, as a number, times ``numbers[p, i]``.

    >>> turn_pairs(torch.tensor([[1.0, 0.0]]), torch.tensor([[1j]]))
    tensor([[0., 1.]])
    """
    real = numbers.real
    pairs = x.to(real.dtype).unflatten(-1, (-1, 2))
    try:
        pairs = torch.view_as_complex(pairs)
    except RuntimeError:  # the pairs lie where no complex number may begin: copy them
        pairs = torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))
    return torch.view_as_real(pairs * numbers).flatten(-2).to(x.dtype)


def cosine_sine(angles: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of ``angles``, rounded to ``dtype``.

    While compiling, as an operation that Inductor does not look into. It would otherwise compute
    both anew within the kernel that turns queries or keys, for every pair of every head, and as
    exactly as the angles are given: in double precision, for which many GPUs have hardly any units.
    """
    # Not `is_exporting`, which PyTorch 2.11 takes for true whenever it compiles.
    if torch.compiler.is_dynamo_compiling() and not angles.requires_grad:
        return tuple(table_of(angles, dtype).unbind())
    return angles.cos().to(dtype), angles.sin().to(dtype)


@torch.library.custom_op("transformer_lib::cosine_sine", mutates_args=())
def table_of(angles: Tensor, dtype: torch.dtype) -> Tensor:
    """Cosine and sine of ``angles``, stacked."""
    return torch.stack((angles.cos(), angles.sin())).to(dtype)


@table_of.register_fake
def _(angles: Tensor, dtype: torch.dtype) -> Tensor:
    return angles.new_empty((2, *angles.shape), dtype=dtype)


def has_complex_numbers(device: torch.device) -> bool:
    """Whether complex numbers are the faster way: not while compiling, and not on Apple's GPUs."""
    return device.type != "mps" and not torch.compiler.is_compiling()
