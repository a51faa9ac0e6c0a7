"""The device that a run computes on: the best one available, its number formats, its kernels."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from transformer_lib import checks

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")


def best_device() -> torch.device:
    """NVIDIA's or AMD's GPU (``cuda``), else Apple's (``mps``), else Intel's (``xpu``), else the
    CPU.
    """
    known = {"cuda": torch.cuda, "mps": torch.backends.mps, "xpu": torch.xpu}
    found = (name for name, backend in known.items() if backend.is_available())
    return torch.device(next(found, "cpu"))


def choose_precision(device: torch.device | str) -> str:
    """The fastest precision that this device has units for.

    A T4 says that it supports bfloat16, but emulates it; this asks for the real thing. On a CPU
    bfloat16 pays with :func:`has_amx` or :func:`has_avx512_bf16`. On other devices, which nobody
    has tried here, it is float32.

    >>> choose_precision("meta")
    'float32'
    """
    device = torch.device(device)
    if device.type == "cuda":
        with torch.cuda.device(device):  # or PyTorch asks the current one
            real = torch.cuda.is_bf16_supported(including_emulation=False)
        return "bfloat16" if real else "float16"
    fast = device.type == "cpu" and (has_amx() or has_avx512_bf16())
    return "bfloat16" if fast else "float32"


def has_amx() -> bool:
    """Whether this CPU has Intel's AMX, units that multiply tiles of bfloat16."""
    return torch.cpu._is_amx_tile_supported()  # the public get_capabilities is younger than 2.10


def has_avx512_bf16() -> bool:
    """Whether this CPU has AVX512_BF16, instructions that multiply vectors of bfloat16.

    Measured on an AMD EPYC (Zen 4, no AMX) with one thread, in turns: a training step of the preset
    ``cpu`` takes 0.48 times as long as in float32.
    """
    return torch.cpu._is_avx512_bf16_supported()


def in_precision(device: torch.device, precision: str) -> AbstractContextManager:
    """PyTorch's autocast in 16 bits; with ``"float32"`` and ``"tf32"`` (:func:`chosen_kernels`) it
    does nothing.

    Autocast decides operation by operation. Products of matrices are computed in ``precision``,
    whatever arrives. A list of operations, another one for each kind of device, is computed in
    float32: softmax, norms and losses are on CUDA's list, and not on the CPU's. Every other
    operation computes in the type that arrives; so between two products numbers have 16 bits, too.
    Parameters stay as they are.

    Raises:
        ValueError: ``precision`` is not one of ``PRECISIONS``.

    >>> with in_precision(torch.device("cpu"), "bfloat16"):
    ...     product = torch.ones(2, 2) @ torch.ones(2, 2)
    ...     product.dtype, product.softmax(-1).dtype, torch.ones(2).softmax(-1).dtype
    (torch.bfloat16, torch.bfloat16, torch.float32)
    """
    checks.require_choice(precision, "precision", PRECISIONS)
    if precision in ("float32", "tf32"):
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


@contextmanager
def chosen_kernels(
    device: torch.device, *, tf32: bool = False, deterministic: bool = False
) -> Iterator[None]:
    """A context in which CUDA's products of float32 and its choice of kernels are as given here,
    whatever the program's settings were. On other devices it does nothing.

    Args:
        tf32: NVIDIA's GPUs since Ampere may use their tensor cores for float32: they round each
            factor to 10 bits behind the point (as many as float16 has, and the range of float32)
            and add the products up in float32. False: all 23 bits count.
        deterministic: only kernels that give the same bits for the same numbers; an operation that
            has none raises. False: some add up in the order in which threads happen to finish, as
            the backward pass of fused attention does.
    """
    if device.type != "cuda":
        yield
        return
    backends = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    precisions = [backend.fp32_precision for backend in backends]
    was_on = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    if deterministic:  # cuBLAS needs a workspace of a fixed size, and reads this at its first use
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    # Not by fp32_precision alone: get_float32_matmul_precision, which torch.compile calls, would
    # then raise.
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("high" if precisions[0] == "tf32" else "highest")
        for backend, precision in zip(backends, precisions, strict=True):
            backend.fp32_precision = precision
        torch.use_deterministic_algorithms(was_on, warn_only=only_warned)


def require_precision(precision: str, device: torch.device) -> None:
    """``precision`` is one that a run on ``device`` gains something from."""
    checks.require_choice(precision, "precision", PRECISIONS)
    if precision == "tf32" and device.type != "cuda":
        raise ValueError(
            f"precision is 'tf32', a format of NVIDIA's GPUs, and the model is on {device}. Choose "
            f"'float32'."
        )
    if precision == "bfloat16" and device.type == "cuda" and choose_precision(device) == "float16":
        raise ValueError(
            f"precision is 'bfloat16', which {torch.cuda.get_device_name(device)} has no units "
            f"for: PyTorch would emulate it, slowly. Choose 'float16'."
        )
    low = precision in ("bfloat16", "float16")
    if low and not torch.amp.is_autocast_available(device.type):
        raise ValueError(
            f"precision is {precision!r}, and PyTorch has no autocast for {device}. Choose "
            f"'float32'."
        )
