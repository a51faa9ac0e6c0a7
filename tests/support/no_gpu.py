"""What a GPU would do, tried without one, in three ways that each answer another question.

- `fake_cuda`: does it fit? PyTorch's ``FakeTensorMode`` knows what each operation would return on a
  GPU: shape, type (autocast's, too), and an error where a tensor is elsewhere; but no numbers.
- `cuda_group`: do processes meet there? Tensors that say they are on a GPU and compute on the CPU;
  the group of processes is gloo's, registered for "cuda" alone, as NCCL is: so a tensor on the CPU
  is refused by the same lookup, with the same error. Only what ``Processes`` uses is there.
- `STARTUP`: does a chapter leave its device to the machine? IPython's kernel runs this when it
  starts, as a file in profile_default/startup/ of the folder that IPYTHONDIR names. Who asks for
  the best device then gets one that refuses to meet the CPU's tensors, as a GPU does. (It is
  `meta`, which PyTorch has everywhere.) It runs among the reader's names, leaves none behind,
  and touches the file that NO_GPU_STARTED names.

On a machine with a GPU, `pytest -m gpu` asks the real one.
"""

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
CUDA_TYPE, CPU_TYPE = 1, 0  # c10::DeviceType
GUARDS = "_ZN3c104impl26device_guard_impl_registryE"  # c10::impl::device_guard_impl_registry
aten = torch.ops.aten


def enable() -> str | None:
    """Make tensors on fake GPUs possible in this process; None, or why they are not.

    Before each operation PyTorch asks a "guard" to select the tensor's device, also where a fake
    mode then computes nothing. A build for CPUs has none for CUDA, and no way to ask for one:
    ``torch._C._ensureCUDADeviceGuardSet`` only replaces one that is there, and registering one
    takes a C++ compiler. So the CPU's guard, which does nothing, goes into the place of CUDA's in
    PyTorch's table, for as long as this process lives; a build for CUDA is left as it is. Where
    the table is not found the tests are skipped, and say so.
    """
    try:
        try_it()
    except RuntimeError as missing:  # no guard: this build is for CPUs only
        libraries = list((Path(torch.__file__).parent / "lib").glob("*c10.*"))
        try:
            table = ctypes.c_void_p * (CUDA_TYPE + 1)
            guards = table.in_dll(ctypes.CDLL(str(libraries[0])), GUARDS)
        except (OSError, ValueError, IndexError) as error:
            return f"{missing}; and its table of device guards was not found: {error}"
        guards[CUDA_TYPE] = guards[CPU_TYPE]
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


class OnGpu(torch.Tensor):
    """A tensor that counts as one on the GPU."""


class PretendCuda(TorchFunctionMode):
    """What is made on a GPU or moved there becomes :class:`OnGpu`; nothing mixes with the CPU's."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        here = any(isinstance(x, OnGpu) for x in leaves)
        if function == torch.Tensor.device.__get__:
            return CUDA if here else CPU
        if function is torch.Tensor.cpu:
            return args[0].as_subclass(torch.Tensor)
        if here and function is torch.Tensor.numpy:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if here and any(type(x) is torch.Tensor and x.ndim > 0 for x in leaves):
            raise RuntimeError("Expected all tensors to be on the same device, cuda:0 and cpu!")
        to_gpu = CUDA in leaves
        args, kwargs = tree_map(lambda x: CPU if x == CUDA else x, (args, kwargs))
        result = function(*args, **kwargs)
        return result.as_subclass(OnGpu) if to_gpu else result


def _backend(tensor: torch.Tensor):
    return dist.group.WORLD._get_backend(tensor.device)  # the one that serves it, or an error


def _real(tensor: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunction():
        return tensor.as_subclass(torch.Tensor)


def _all_reduce(tensor: torch.Tensor) -> None:
    _backend(tensor).allreduce([_real(tensor)]).wait()


def _all_gather(outputs: list[torch.Tensor], tensor: torch.Tensor) -> None:
    assert {x.device for x in outputs} == {tensor.device}
    _backend(tensor).allgather([[_real(x) for x in outputs]], [_real(tensor)]).wait()


@contextmanager
def cuda_group() -> Iterator[torch.device]:
    """The processes that torchrun started, in a group that serves this device only."""
    dist.init_process_group("cuda:gloo")
    try:
        with (
            PretendCuda(),
            patch("torch.distributed.all_reduce", _all_reduce),
            patch("torch.distributed.all_gather", _all_gather),
        ):
            yield CUDA
    finally:
        dist.destroy_process_group()


STARTUP = """\
def _pretend():
    import os
    from pathlib import Path

    import torch

    from transformer_lib.training import device

    device.best_device = lambda: torch.device("meta")
    Path(os.environ["NO_GPU_STARTED"]).touch()


_pretend()
del _pretend
"""
