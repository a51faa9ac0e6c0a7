"""In which number format a device computes best."""

from contextlib import AbstractContextManager, nullcontext

import torch

from transformer_lib import checks

PRECISIONS = ("float32", "bfloat16", "float16")


def best_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_precision(device: torch.device | str) -> str:
    """What a device is fastest at: bfloat16 where it has units for it, on other GPUs float16.

    A T4 says that it supports bfloat16, but emulates it; this asks for the real thing. On a CPU
    bfloat16 pays with AMX only.

    >>> choose_precision("meta")
    'float32'
    """
    device = torch.device(device)
    if device.type == "cuda":
        real = torch.cuda.is_bf16_supported(including_emulation=False)
        return "bfloat16" if real else "float16"
    return "bfloat16" if device.type == "cpu" and has_amx() else "float32"


def has_amx() -> bool:
    """Whether this CPU multiplies matrices of bfloat16 by units made for it (Intel's AMX)."""
    return torch.cpu._is_amx_tile_supported()  # the public get_capabilities is younger than 2.10


def in_precision(device: torch.device, precision: str) -> AbstractContextManager:
    """Within it, products are computed in ``precision``; sums, norms and losses in float32.

    Raises:
        ValueError: another precision than float32, bfloat16 and float16.

    >>> with in_precision(torch.device("cpu"), "bfloat16"):
    ...     (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
    torch.bfloat16
    """
    checks.require_choice(precision, "precision", PRECISIONS)
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))
