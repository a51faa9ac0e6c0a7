"""The device that a run computes on: the best one available, its number formats, its kernels."""

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from transformer_lib import checks
from transformer_lib.fast.steps import matmul_precision

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
# With deterministic kernels cuBLAS needs a workspace of a fixed size, and PyTorch looks for this
# once, at the first product on a GPU, deterministic or not: so it must be there before.
os.environ.setdefault(WORKSPACE, ":4096:8")


def best_device() -> torch.device:
    """NVIDIA's or AMD's GPU (``cuda``), else Apple's (``mps``), else Intel's (``xpu``), else the
    CPU.

    It warns of a GPU that this build of PyTorch has no kernels for, and passes it over.
    """
    backends = {"cuda": torch.cuda, "mps": torch.backends.mps, "xpu": torch.xpu}
    found = [name for name, backend in backends.items() if backend.is_available()]
    if "cuda" in found and not has_kernels(torch.cuda.get_device_capability()):
        warnings.warn(
            f"{torch.cuda.get_device_name()} is left out: this PyTorch was built for "
            f"{', '.join(torch.cuda.get_arch_list())} and has no kernels for it. Choose another "
            f"GPU (on Kaggle: T4), or install a PyTorch that was built for this one.",
            stacklevel=2,
        )
        found.remove("cuda")
    return torch.device(next(iter(found), "cpu"))


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """The device of this name, :func:`best_device` without one.

    Raises:
        ValueError: it is not the name of a device, or the device is not here.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name is None:
        return best_device()
    backends = {"cpu": torch.cpu, "cuda": torch.cuda, "mps": torch.mps, "xpu": torch.xpu}
    name = str(name)
    kind, _, number = name.partition(":")
    if kind not in backends or not (number.isdecimal() or name == kind):
        raise ValueError(
            f"device is {name!r}; choose one of {', '.join(backends)}, or such as cuda:1, the "
            f"second GPU."
        )
    device, n_devices = torch.device(name), backends[kind].device_count()
    if (device.index or 0) >= n_devices:
        raise ValueError(
            f"device is {name!r}, and PyTorch finds {n_devices} of this kind here. Leave it out "
            f"for {best_device().type!r}, the best that is here."
        )
    return device


def has_kernels(capability: tuple[int, int], built_for: Iterable[str] | None = None) -> bool:
    """Whether a build of PyTorch, this one if None, runs on NVIDIA's GPUs of this capability.

    What was compiled for 8.0 (``sm_80``) runs on 8.6, too, and not on 9.0; what is compiled when
    the program starts (``compute_80``) runs on all that are younger.

    >>> has_kernels((6, 0), ["sm_75", "sm_80", "compute_120"])
    False
    """
    built_for = torch.cuda.get_arch_list() if built_for is None else built_for
    found = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[af]?", name) for name in built_for]
    if not found or None in found:  # AMD's names, or none are known
        return True
    versions = [(m[1], (int(m[2]), int(m[3]))) for m in found]
    return any(
        version <= capability and (kind == "compute" or version[0] == capability[0])
        for kind, version in versions
    )


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
    """PyTorch's autocast in 16 bits; for ``"float32"`` and ``"tf32"`` (:func:`chosen_kernels`)
    none, also within another one.

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
    if precision not in ("float32", "tf32"):
        return torch.autocast(device.type, getattr(torch, precision))
    known = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if known else nullcontext()


@contextmanager
def chosen_kernels(
    device: torch.device, *, tf32: bool = False, deterministic: bool = False
) -> Iterator[None]:
    """A context in which CUDA's products of float32 and its choice of kernels are as given here,
    whatever the program's settings were; and in which no autocast around it is on, also for a
    backward pass or an optimizer. On other devices it does only that.

    Args:
        tf32: NVIDIA's GPUs since Ampere may use their tensor cores for float32: they round each
            factor to 10 bits behind the point (as many as float16 has, and the range of float32)
            and add the products up in float32. False: all 23 bits count.
        deterministic: only kernels that give the same bits for the same numbers; an operation that
            has none raises. False: some add up in the order in which threads happen to finish, as
            the backward pass of fused attention does.
    """
    if device.type != "cuda":
        with _outside_of_autocast(device.type):
            yield
        return
    backends = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    precisions = [backend.fp32_precision for backend in backends]
    before = matmul_precision()
    was_on = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    if deterministic:
        torch.use_deterministic_algorithms(True)
    # Not by fp32_precision alone: get_float32_matmul_precision, which torch.compile calls, would
    # then raise.
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        with _outside_of_autocast(device.type):
            yield
    except RuntimeError as error:
        if WORKSPACE not in str(error):
            raise
        raise ValueError(
            f"deterministic kernels need the variable {WORKSPACE} before the first product on a "
            f"GPU. Set it before Python starts: {WORKSPACE}=:4096:8 python ...; or, in a notebook, "
            f"import transformer_lib.training.device before anything uses the GPU."
        ) from error
    finally:
        torch.set_float32_matmul_precision(before or "highest")
        for backend, precision in zip(backends, precisions, strict=True):
            backend.fp32_precision = precision
        torch.use_deterministic_algorithms(was_on, warn_only=only_warned)


@contextmanager
def _outside_of_autocast(device_type: str) -> Iterator[None]:
    """A context in which autocast is off, and has kept no weight in 16 bits: one that is within
    another keeps them until that ends, so a model would go on with weights from before a step.
    """
    on = torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)
    if on:
        torch.set_autocast_enabled(device_type, False)
    torch.clear_autocast_cache()
    try:
        yield
    finally:
        torch.clear_autocast_cache()
        if on:
            torch.set_autocast_enabled(device_type, True)


def precision_here(precision: str, device: torch.device) -> str:
    """``precision``, or where ``device`` lacks it, what suits the device.

    >>> precision_here("tf32", torch.device("meta"))
    'float32'
    """
    try:
        require_precision(precision, device)
    except ValueError:
        checks.require_choice(precision, "precision", PRECISIONS)
        return choose_precision(device)
    return precision


def require_precision(precision: str, device: torch.device) -> None:
    """``precision`` is one that a run on ``device`` gains something from."""
    checks.require_choice(precision, "precision", PRECISIONS)
    if precision == "tf32" and device.type != "cuda":
        raise ValueError(
            f"precision is 'tf32', a format of NVIDIA's GPUs, and the model is on {device}. Choose "
            f"'float32'."
        )
    real = device.type != "cuda" or choose_precision(device) == "bfloat16"  # since Ampere, both
    if precision == "tf32" and not real:
        raise ValueError(
            f"precision is 'tf32', which {torch.cuda.get_device_name(device)} has no units for: it "
            f"would be float32 under another name. Choose 'float16' or 'float32'."
        )
    if precision == "bfloat16" and not real:
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
