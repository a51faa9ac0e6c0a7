"""Tensors that say they are on a GPU, and compute on the CPU; a process group that serves no other.

The group is gloo's, registered for "cuda" alone, as NCCL is: so a tensor on the CPU is refused by
the same lookup, with the same error. Only what ``Processes`` uses is there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")


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
