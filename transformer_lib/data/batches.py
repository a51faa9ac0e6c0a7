"""Batches: rows of a source in random order, endlessly, and resumed wherever they were stopped."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_lib import checks
from transformer_lib.data.packing import Batch


@runtime_checkable
class Source(Protocol):
    """Numbered rows: :class:`~transformer_lib.data.packing.Packed`, or ``Windows`` of a text.

    ``rows(indices)`` is a tuple of tensors that begin with these rows: what a model is called with,
    and last its targets (``IGNORED`` where there is none).
    """

    def __len__(self) -> int: ...

    def rows(self, indices: Int[Tensor, " batch"]) -> Batch: ...


class Batches:
    """Batches without end: in each epoch every row of ``source`` once, in a new order.

    The order follows from the seed and the number of the epoch alone, so all there is to remember
    is how many batches were drawn. A batch at the end of an epoch goes on into the next. (Rows that
    a source gains later are not drawn.)

    (Several processes: each draws the same batches and takes its own part of their rows.)

    Raises:
        ValueError: a batch size below 1, an empty source; in :meth:`load_state_dict`, the state of
            batches of another kind.
        TypeError: a batch size or seed that is not an int; a source without ``rows``.

    >>> from transformer_lib.data.packing import pack
    >>> batches = Batches(pack([[7, 1], [7, 2], [7, 3]], length=2), batch_size=2)
    >>> inputs, targets = next(batches)
    >>> inputs.shape, batches.state_dict()
    (torch.Size([2, 2]), {'drawn': 1, 'seed': 0, 'batch_size': 2, 'rows': 3})
    """

    def __init__(self, source: Source, batch_size: int, *, seed: int = 0):
        checks.require_count(batch_size, "batch_size")
        if not isinstance(seed, int):
            raise TypeError(f"seed is {seed!r}; it must be an int.")
        require_source(source)
        if len(source) == 0:
            raise ValueError(f"{source!r} has no rows, so there is nothing to draw.")
        self._source = source
        self._kind = {"seed": seed, "batch_size": int(batch_size), "rows": len(source)}
        self._drawn = 0
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        first = self._drawn * self._kind["batch_size"]
        wanted, indices = self._kind["batch_size"], []
        while wanted:
            epoch, offset = divmod(first, self._kind["rows"])
            part = self._permutation(epoch)[offset : offset + wanted]
            indices.append(part)
            first, wanted = first + len(part), wanted - len(part)
        batch = self._source.rows(torch.cat(indices))
        self._drawn += 1
        return batch

    @property
    def drawn(self) -> int:
        """How many batches so far."""
        return self._drawn

    @property
    def epoch(self) -> float:
        """How often every row has been drawn so far."""
        return self._drawn * self._kind["batch_size"] / self._kind["rows"]

    def state_dict(self) -> dict[str, int]:
        """How many batches were drawn, and what from: four ints, for a checkpoint."""
        return {"drawn": self._drawn, **self._kind}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from ``state``: the next batch is the one that would have come there."""
        self.require_state(state)
        self._drawn = state["drawn"]

    def require_state(self, state: Mapping[str, int]) -> None:
        """``state`` is of batches like these."""
        _require_mapping(state)
        if state.keys() != self.state_dict().keys():
            raise ValueError(
                f"the state has the entries {', '.join(state)}; the state of batches has "
                f"{', '.join(self.state_dict())}."
            )
        for name, value in self._kind.items():
            if state[name] != value:
                raise ValueError(
                    f"the state belongs to batches with {name} = {state[name]}, and these have "
                    f"{value}: their order is different. Make them as they were, or start anew."
                )
        if type(state["drawn"]) is not int or state["drawn"] < 0:
            raise ValueError(
                f"the state says that {state['drawn']!r} batches were drawn; it must be a count."
            )

    def _permutation(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            digest = hashlib.sha256(f"{self._kind['seed']}:{epoch}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
            self._order = torch.randperm(self._kind["rows"], generator=generator)
            self._epoch = epoch
        return self._order


class Lessons:
    """Batches for so many steps, then others, and in the end the last ones without end.

    Args:
        lessons: batches, and how many of them are drawn.
        then: what follows.

    Raises:
        ValueError: the same batches twice; in :meth:`load_state_dict`, the state of other batches;
            nothing changes then.

    >>> from transformer_lib.data.packing import pack
    >>> short, long = pack([[7, 1]], length=2), pack([[7, 2, 3]], length=3)
    >>> batches = Lessons([(Batches(short, 1), 2)], then=Batches(long, 1))
    >>> [next(batches)[0].shape[1] for _ in range(4)]
    [2, 2, 3, 3]
    """

    def __init__(self, lessons: Sequence[tuple[Batches, int]], then: Batches):
        for _, steps in lessons:
            checks.require_count(steps, "the steps of a lesson")
        self._lessons, self._then = list(lessons), then
        if len(set(map(id, self._all()))) <= len(self._lessons):
            raise ValueError(
                "two of these are the same Batches, which would count its steps once for both. "
                "Make another of the same source: Batches(source, batch_size, seed=1)."
            )

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        for batches, steps in self._lessons:
            if batches.drawn < steps:
                return next(batches)
        return next(self._then)

    def state_dict(self) -> dict[str, Any]:
        """The states of all its batches, by their number."""
        return {str(at): batches.state_dict() for at, batches in enumerate(self._all())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``: the next batch is the one that would have come there."""
        batches = self._all()
        _require_mapping(state)
        if set(state) != set(self.state_dict()):
            raise ValueError(
                f"the state is of {len(state)} kinds of batches, one after the other, and these "
                f"are {len(batches)}. Make them as they were, or start anew."
            )
        for at, each in enumerate(batches):
            each.require_state(state[str(at)])
        for at, each in enumerate(batches):
            each.load_state_dict(state[str(at)])

    def _all(self) -> list[Batches]:
        return [*(batches for batches, _ in self._lessons), self._then]


def _require_mapping(state: Any) -> None:
    if not isinstance(state, Mapping):
        raise TypeError(
            f"the state is of type {type(state).__name__}; give what state_dict() returned."
        )


def require_source(source: Any) -> None:
    """Numbered rows, a :class:`Source`."""
    if not isinstance(source, Source):
        raise TypeError(
            f"source is of type {type(source).__name__}; it needs a length and rows(indices), "
            f"which returns tensors, the targets last: Packed, Windows, or a class of your own."
        )
