"""A process's share of each batch: its rows, in parts, on its device."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_lib.data.batches import Batches, Lessons
from transformer_lib.data.packing import Batch
from transformer_lib.training import losses
from transformer_lib.training.distributed import ALONE, Processes


@dataclass(frozen=True)
class Share:
    """A process's share of a batch.

    Attributes:
        parts: its rows, on the device, in as many parts as gradients are accumulated over.
        rows: of each tensor of the whole batch, of all processes.
        n_targets: the targets that count in the whole batch.
    """

    parts: list[Batch]
    rows: list[int]
    n_targets: int


class Feed:
    """Shares of ``batches``, without end: an iterator that can be saved and resumed anywhere.

    On CUDA a copy to the GPU takes place while the program goes on: the rows lie in pinned memory,
    and :meth:`start`, called while the GPU computes, draws the next batch early. What is saved is
    where the batches were before that, so that nothing is left out by a resume.

    Args:
        accumulation: how many parts a share has.
        early: whether :meth:`start` draws; on CUDA if None.

    Raises:
        ValueError: in ``next``, a batch with fewer rows than parts, without targets, or whose
            tensors differ in their rows; batches that end.
        TypeError: in ``next``, a batch that is not a tuple of tensors.
    """

    def __init__(
        self,
        batches: Batches | Lessons,
        device: torch.device,
        *,
        processes: Processes = ALONE,
        accumulation: int = 1,
        early: bool | None = None,
    ):
        self.batches, self.device = batches, device
        self.processes, self.accumulation = processes, accumulation
        self.early = device.type == "cuda" if early is None else early
        self._next: Share | None = None
        self._before: dict[str, Any] = {}  # where the batches were before _next was drawn

    def __next__(self) -> Share:
        share = self._next or self._share(self._batch())
        self._next = None
        require_parts(share.rows, share.n_targets, self.processes.size, self.accumulation)
        return share

    def start(self) -> None:
        """Draw the next share, and begin to copy it, where that saves time."""
        if self.early and self._next is None:
            self._before = self.batches.state_dict()
            self._next = self._share(self._batch())

    def state_dict(self) -> dict[str, Any]:
        """The state of the batches: the next one is that which has not been handed out."""
        return self.batches.state_dict() if self._next is None else self._before

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``. What the batches refuse changes nothing."""
        self.batches.load_state_dict(state)
        self._next = None

    def _batch(self) -> Batch:
        try:
            batch = next(self.batches)
        except StopIteration as error:
            raise ValueError(
                "the batches have come to an end before the last step. They must go on without "
                "end, as Batches(source, batch_size) do: begin the next epoch in __next__."
            ) from error
        require_batch(batch)
        return batch

    def _share(self, batch: Batch) -> Share:
        here, n_parts = self.processes, self.accumulation * self.processes.size
        mine = [x.tensor_split(n_parts)[here.rank :: here.size] for x in batch]
        parts = [tuple(map(self._moved, part)) for part in zip(*mine, strict=True)]
        return Share(parts, list(map(len, batch)), losses.count(batch[-1]))

    def _moved(self, x: Tensor) -> Tensor:
        if self.device.type == "cuda" and x.device.type == "cpu":
            # Without contiguous CUDA would first copy it into memory that is not pinned.
            return x.contiguous().pin_memory().to(self.device, non_blocking=True)
        return x.to(self.device)


def require_batch(batch: Any) -> None:
    """A tuple of tensors, of which the last is the targets."""
    if not isinstance(batch, (tuple, list)) or not all(isinstance(x, Tensor) for x in batch):
        listed = isinstance(batch, (tuple, list))
        inner = f" of {', '.join(type(x).__name__ for x in batch)}" if listed else ""
        raise TypeError(
            f"a batch is of type {type(batch).__name__}{inner}; it must be a tuple of tensors, "
            f"what the model is called with and the targets last: (inputs, targets)."
        )
    if len(batch) < 2:
        raise TypeError("a batch holds one tensor or none; give (inputs, targets), in this order.")
    if any(x.ndim == 0 for x in batch):
        shapes = ", ".join(str(tuple(x.shape)) for x in batch)
        raise ValueError(
            f"the tensors of a batch have the shapes {shapes}; the first axis of each must be that "
            f"of the examples."
        )


def require_parts(rows: list[int], n_targets: int, n_processes: int, accumulation: int) -> None:
    """A batch's tensors have the same rows, and can be cut into parts with something to learn."""
    if len(set(rows)) > 1:
        raise ValueError(
            f"the tensors of a batch have {', '.join(map(str, rows))} rows; row i of each belongs "
            f"to example i, so all need the same number of rows."
        )
    if rows[0] < n_processes * accumulation:
        raise ValueError(
            f"a batch has {rows[0]} rows, for processes × accumulation = {n_processes} × "
            f"{accumulation} parts, and each needs one. Make the batches larger, or accumulation "
            f"smaller."
        )
    if n_targets == 0:
        raise ValueError(
            f"a batch of {rows[0]} rows has no target, so it has no mean loss. Look for rows that "
            f"hold nothing but padding."
        )
