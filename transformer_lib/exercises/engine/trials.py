"""Cases on which an answer is wrong, and when two results count as the same."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_ENOUGH = 1e-4  # how far two numbers may differ, relative to the largest, and count as the same


@dataclass(frozen=True)
class Trial:
    """A case: what came out and what is right, in double precision, and the inputs by name."""

    got: Tensor
    right: Tensor
    inputs: Mapping[str, Any]


def same(got: Tensor, right: Tensor) -> bool:
    """Are all numbers the same, up to rounding in single precision?"""
    if got.shape != right.shape:
        return False
    largest = float(right.abs().max()) if right.numel() else 0.0
    if not math.isfinite(largest):
        return torch.equal(got.nan_to_num(), right.nan_to_num())
    got, right = got.double(), right.double()
    return torch.allclose(got, right, rtol=_ENOUGH, atol=1e-6 + 1e-5 * largest, equal_nan=True)


def axis_name(axes: Sequence[str], axis: int, ndim: int) -> str:
    """What messages call an axis: its name, or "rows" and "columns" of a matrix."""
    if len(axes) == ndim:
        return axes[axis]
    return ("rows", "columns")[axis] if ndim == 2 else f"{axis}"
