"""Several processes that train one model: PyTorch's ``torchrun`` starts them, DDP joins gradients.

    torchrun --nproc-per-node=2 -m transformer_lib.training train ...

Each process draws the same batches and takes its own part of the rows; the gradients are summed, so
all take the same step, and the run is the same as with one process, up to rounding.

On CUDA they talk by NCCL, which knows tensors on GPUs only, so whatever is exchanged goes through
the GPU; otherwise by gloo, on CPUs. Where another process has ended, gloo raises at the next
exchange, as :class:`LostProcessError`. NCCL's own watchdog most often ends this process first, with
a message of its own; with neither is a checkpoint lost. (With gloo this is tested, with NCCL not.)
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import safetensors.torch
import torch
import torch.distributed as dist
from torch import nn

from transformer_lib.training.device import choose_device
from transformer_lib.training.state import pack, unpack


class LostProcessError(RuntimeError):
    """Another process of the run has ended, so that this one cannot go on."""


@dataclass(frozen=True)
class Processes:
    """The processes of a run, seen from one of them.

    Attributes:
        rank: the number of this one, from 0; 0 alone writes files and messages.
        size: how many there are.
        device: where their group exchanges tensors; None leaves them where they are.
    """

    rank: int = 0
    size: int = 1
    device: torch.device | None = field(default=None, repr=False)

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def join(self, model: nn.Module) -> nn.Module:
        """``model``, or what makes its gradients the mean over all processes.

        All processes get the parameters of the first.
        """
        if self.size == 1:
            return model
        # Views: or the gradients would be kept twice.
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)

    @contextmanager
    def joining(self, model: nn.Module, *, last: bool) -> Iterator[None]:
        """A context for one part of a batch; gradients are joined in the ``last`` one.

        Raises:
            LostProcessError: another process has ended.
        """
        if self.size == 1:
            yield
            return
        with losing_a_process(), nullcontext() if last else model.no_sync():
            yield

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of ``values`` over all processes, on the group's device.

        Raises:
            LostProcessError: one of them has ended.
        """
        if self.size == 1:
            return values
        values = values.to(self.device)
        with losing_a_process():
            dist.all_reduce(values)
        return values

    def gather(self, state: Any) -> list[Any]:
        """The ``state`` (as for checkpoints) of each process, in all of them; nothing is pickled.

        Raises:
            LostProcessError: one of them has ended.
        """
        if self.size == 1:
            return [state]
        tensors, rest = pack(state)
        header = {"state": json.dumps(rest)}
        content = safetensors.torch.save(tensors, metadata=header)
        mine = torch.frombuffer(bytearray(content), dtype=torch.uint8).to(self.device)
        length = torch.tensor([len(mine)], device=self.device)
        lengths = [torch.zeros_like(length) for _ in range(self.size)]
        with losing_a_process():
            dist.all_gather(lengths, length)
            padded = mine.new_zeros(int(max(lengths)))
            padded[: len(mine)] = mine
            everyone = [torch.empty_like(padded) for _ in range(self.size)]
            dist.all_gather(everyone, padded)
        states = []
        for length, received in zip(lengths, everyone, strict=True):
            content = received[: int(length)].cpu().numpy().tobytes()
            size = int.from_bytes(content[:8], "little")
            metadata = json.loads(content[8 : 8 + size])["__metadata__"]
            states.append(unpack(safetensors.torch.load(content), json.loads(metadata["state"])))
        return states


ALONE = Processes()
_groups: list[Any] = []  # kept until the program ends


@contextmanager
def losing_a_process() -> Iterator[None]:
    """Turn what a broken connection raises into a :class:`LostProcessError`.

    (NCCL's errors have a type of their own; gloo's are told by their text alone.)
    """
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise LostProcessError(
            f"another process of this run has ended or cannot be reached any more "
            f"({str(error).splitlines()[0][:200]}). Look for its own message above. The run can "
            f"be resumed from its newest checkpoint, with as many processes."
        ) from error


@contextmanager
def processes(
    timeout: float = 600.0, device: str | None = None
) -> Iterator[tuple[Processes, torch.device]]:
    """The processes that ``torchrun`` started, joined, and this one's device; or this one alone.

    Several processes use one GPU each on CUDA, and the CPU everywhere else.

    Args:
        timeout: seconds after which a process that does not answer counts as lost.
        device: see :func:`~transformer_lib.training.device.choose_device`.

    Raises:
        ValueError: more processes than GPUs on this machine; a device that is not here, or the same
            GPU for all; RANK without its companions.

    >>> with processes() as (here, device):
    ...     here
    Processes(rank=0, size=1)
    """
    if "RANK" not in os.environ:  # torchrun sets it
        yield ALONE, choose_device(device)
        return
    missing = [n for n in ("LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR") if n not in os.environ]
    if missing:
        raise ValueError(
            f"RANK={os.environ['RANK']} is set, as torchrun does, but not {', '.join(missing)}. "
            f"Start the program by torchrun, or unset RANK to train in one process."
        )
    chosen, local = choose_device(device), int(os.environ["LOCAL_RANK"])
    if chosen.type == "cuda":
        if chosen.index is not None and os.environ["WORLD_SIZE"] != "1":
            raise ValueError(
                f"device is {device!r}, and each process needs a GPU of its own. Pass 'cuda', or "
                f"set CUDA_VISIBLE_DEVICES to those that may be used."
            )
        if local >= torch.cuda.device_count():
            raise ValueError(
                f"this is process {local} on a machine with {torch.cuda.device_count()} GPUs, and "
                f"each process needs its own. Pass torchrun --nproc-per-node="
                f"{torch.cuda.device_count()}."
            )
        here = torch.device("cuda", local)
        torch.cuda.set_device(here)
        options: dict[str, Any] = {"backend": "nccl", "device_id": here}  # it connects at once
    else:
        here = torch.device("cpu")
        options = {"backend": "gloo"}
    dist.init_process_group(**options, timeout=timedelta(seconds=timeout))
    # A model that is freed with its error may be the last to hold the group, and would then wait,
    # holding Python's lock, for threads of the group that wait for the lock: it must not be.
    _groups.append(dist.group.WORLD)
    try:
        yield Processes(dist.get_rank(), dist.get_world_size(), here), here
    finally:
        dist.destroy_process_group()
