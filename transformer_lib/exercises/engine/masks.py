"""Causes of wrong booleans: a mask, or a list of what holds."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_lib.exercises.engine.trials import Trial


def of_booleans(trials: Sequence[Trial]) -> str | None:
    """A sentence about boolean results that are wrong in the same way on all trials, or None."""
    if not trials:
        return None
    for value in (True, False):
        if all(bool((t.got == value).all()) for t in trials):
            return f"Everything in your result is {value}."
    if all(torch.equal(t.got, 1 - t.right) for t in trials):
        return "Your result is inverted: True and False are swapped."
    square = all(t.right.ndim >= 2 and t.right.shape[-1] == t.right.shape[-2] for t in trials)
    if square and all(torch.equal(t.got, t.right.mT) for t in trials):
        return "Your result is transposed: rows and columns are swapped."
    for axis in range(1, 1 + min(t.right.ndim for t in trials)):
        which = {1: "columns", 2: "rows"}.get(axis, f"axis -{axis}")
        if all(t.right.ndim == 1 for t in trials):
            which = "positions"
        if all(torch.equal(t.got, t.right.flip(-axis)) for t in trials):
            return f"The {which} are in reverse order."
        for shift, way in ((1, "late"), (-1, "early")):
            if all(
                torch.equal(_shifted(t.right, shift, -axis, keep=True), t.got) for t in trials
            ) or all(
                torch.equal(_shifted(t.right, shift, -axis, keep=False), t.got) for t in trials
            ):
                return f"Your result is one place too {way} along its {which}."
    right_mirrors = any(square and torch.equal(t.right, t.right.mT) for t in trials)
    if square and not right_mirrors and all(torch.equal(t.got, t.got.mT) for t in trials):
        return "Your result is symmetric, and the right one is not."
    return _surplus(trials)


def _shifted(x: Tensor, shift: int, axis: int, *, keep: bool) -> Tensor:
    """Moved by one place; what moves in is what stood at the edge, or 0."""
    moved = x.roll(shift, axis)
    edge = 0 if shift > 0 else x.shape[axis] - 1
    index = torch.tensor([edge])
    return moved.index_copy(axis, index, x.index_select(axis, index) * (1.0 if keep else 0.0))


def _surplus(trials: Sequence[Trial]) -> str | None:
    """Is there only too much, or only too little? And of which part of a matrix?"""
    more = [(t.got > t.right) for t in trials]
    less = [(t.got < t.right) for t in trials]
    if all(x.any() for x in more) and not any(x.any() for x in less):
        return _where(more, "True where False is right, and nowhere the other way round")
    if all(x.any() for x in less) and not any(x.any() for x in more):
        return _where(less, "False where True is right, and nowhere the other way round")
    first = [x[0].nonzero()[0].tolist() for x in (more, less) if x[0].any()]
    if len(first) < 2:
        return None
    return (
        f"Your result is True where False is right, first at {first[0]}, and False where True is "
        f"right, first at {first[1]}."
    )


_PARTS: list[tuple[str, Callable]] = [
    ("above the diagonal that ends in the last corner: in the future, if rows are queries", "gt"),
    ("on the diagonal that ends in the last corner", "eq"),
    ("below the diagonal that ends in the last corner: in the past, if rows are queries", "lt"),
]


def _where(marked: Sequence[Tensor], words: str) -> str:
    first = marked[0].nonzero()[0].tolist()
    where = f"Your result is {words}: first at {first}"
    if any(x.ndim < 2 for x in marked):
        return f"{where}."
    for part, how in _PARTS:
        if all(_inside(x, how) for x in marked):
            return f"{where}, and always {part}."
    return f"{where}."


def _inside(marked: Tensor, how: str) -> bool:
    rows, columns = marked.shape[-2:]
    query = torch.arange(rows)[:, None] + columns - rows
    part = getattr(torch, how)(torch.arange(columns), query)
    return not bool((marked & ~part).any())
