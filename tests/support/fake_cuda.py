"""A CUDA device without a GPU: its shapes, types and autocast, and no numbers.

PyTorch's ``FakeTensorMode`` knows what each operation would return on a GPU: its shape and type,
and an error where a tensor is on another device. A build of PyTorch for CPUs lacks one thing for
it, a "guard" that selects the current GPU. Here the CPU's, which does nothing, is put in its place.
"""

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA, CPU = 1, 0  # c10::DeviceType
GUARDS = "_ZN3c104impl26device_guard_impl_registryE"  # c10::impl::device_guard_impl_registry
aten = torch.ops.aten


def enable() -> str | None:
    """Make tensors on fake GPUs possible in this process; None, or why they are not."""
    try:
        try_it()
    except RuntimeError as missing:  # no guard: this build is for CPUs only
        libraries = list((Path(torch.__file__).parent / "lib").glob("*c10.*"))
        try:
            guards = (ctypes.c_void_p * (CUDA + 1)).in_dll(ctypes.CDLL(str(libraries[0])), GUARDS)
        except (OSError, ValueError, IndexError) as error:
            return f"{missing}; and its table of device guards was not found: {error}"
        guards[CUDA] = guards[CPU]
        try_it()
    return None


def try_it() -> None:
    with FakeTensorMode():
        torch.ones(1).to("cuda").add(1)


class Watched(TorchDispatchMode):
    """Makes up what a program reads from a tensor, pins memory; and counts both.

    Attributes:
        reads: how many numbers the program waited for.
        pinned: how many tensors were copied into pinned memory.
        scattered: how many of these were not contiguous: CUDA copies such a tensor into ordinary
            memory first, and the copy to the GPU is then not made while the program goes on.
        waited: for each copy from the CPU to the GPU, whether the program waited for it.
    """

    def __init__(self):
        super().__init__()
        self.reads = self.pinned = self.scattered = 0
        self.waited: list[bool] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        on_gpu = bool(args) and getattr(args[0], "device", torch.device("cpu")).type == "cuda"
        if function is aten._local_scalar_dense.default:
            self.reads += on_gpu
            if args[0].dtype.is_floating_point:
                return 0.0 if on_gpu else 1.0  # GradScaler counts infinities, AdamW its steps
            return False if args[0].dtype == torch.bool else 1
        if function is aten.equal.default:
            self.reads += on_gpu
            return True
        if function is aten._pin_memory.default:
            self.pinned += 1
            self.scattered += not args[0].is_contiguous()
            return args[0].clone()
        to = (kwargs or {}).get("device")
        if function is aten._to_copy.default and to is not None and to.type == "cuda":
            self.waited.append(not kwargs.get("non_blocking", False))
        return function(*args, **kwargs or {})


@contextmanager
def fake_cuda(*, bfloat16: bool = True) -> Iterator[Watched]:
    """Within it a model made with ``torch.device("cuda")`` is on a fake GPU.

    Args:
        bfloat16: whether that GPU has units for bfloat16; if not, it emulates them, as a T4 does.
    """
    if reason := enable():
        pytest.skip(reason)

    def supported(including_emulation=True):
        return bfloat16 or including_emulation

    with ExitStack() as stack:
        for name, value in {
            "device": lambda device: nullcontext(),
            "is_bf16_supported": supported,
            "get_device_name": lambda device=None: "a fake GPU",
            "amp.common.amp_definitely_not_available": lambda: False,
        }.items():
            stack.enter_context(patch(f"torch.cuda.{name}", value))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        yield stack.enter_context(Watched())
