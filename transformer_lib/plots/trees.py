"""Drawings of a search: what was tried at each step, what was kept, and what came of it."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from .style import CARD, COLORS, FULL, INK, LINE, SOFT, TEXT_COLORS, canvas, plain

__all__ = ["tree"]

_HIGH, _GAP, _LETTER = 0.42, 0.55, 0.1  # inches: a line, between columns, a letter

Node = tuple[int, str, float, bool]


def tree(
    root: str,
    steps: Sequence[Sequence[Node]],
    *,
    number: str = "{:.2f}",
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """A search as a tree that grows to the right, a column for each step.

    A node is (parent, text, value, kept): its parent's place in the column before (0, the root, in
    the first), what is added, a number, and whether the search goes on from it. What is kept has a
    frame and a dark line; the rest is pale and has no children. Where only one way leads to the
    end, it is the one drawn thickest: the first of the last column.

    >>> tree("a world", [[(0, "the", 0.6, True), (0, "a", 0.4, True)],
    ...                  [(1, "dog", 0.36, True), (0, "dog", 0.15, False)]])

    Raises ValueError for a parent that does not exist or was not kept, and for an empty step.
    """
    columns = [[(0, root, 1.0, True)], *[list(step) for step in steps]]
    _require_tree(columns)
    # Each column is sorted by parents, so that no two lines cross.
    order, lines = [[0]], []
    for before, nodes in zip(order, columns[1:], strict=False):
        rank = {node: place for place, node in enumerate(before)}
        order.append(sorted(range(len(nodes)), key=lambda i, r=rank, n=nodes: (r[n[i][0]], i)))
    rows = max(map(len, columns))
    texts = [[plain(root)]]
    texts += [[f"{plain(text)}  {number.format(v)}" for _, text, v, _ in s] for s in columns[1:]]
    wide = [_LETTER * max(map(len, column)) + 0.2 for column in texts]
    left = [sum(wide[:c]) + c * _GAP for c in range(len(columns))]
    middle = [
        {node: -(place + (rows - len(nodes)) / 2 + 0.5) * _HIGH for place, node in enumerate(nodes)}
        for nodes in order
    ]
    best = _way_to(columns)
    size = left[-1] + wide[-1], rows * _HIGH
    with canvas(ax, (size[0] + 0.2, size[1] + 0.2 + 0.35 * bool(title))) as axes:
        axes.set(xlim=(-0.1, size[0] + 0.1), ylim=(-size[1] - 0.1, 0.1), title=title)
        axes.set_aspect("equal")
        axes.axis("off")
        for c, nodes in enumerate(columns):
            for i, (parent, _, _, kept) in enumerate(nodes):
                y, on_way = middle[c][i], best[c] == i
                if c > 0:
                    start = (left[c - 1] + wide[c - 1], middle[c - 1][parent])
                    shade = COLORS["output"] if on_way else FULL if kept else LINE
                    lines.append(((start[0], left[c]), (start[1], y), shade, 3 if on_way else 1.5))
                if kept:
                    box = FancyBboxPatch(
                        (left[c], y - 0.15), wide[c], 0.3, facecolor=CARD,
                        boxstyle="round,pad=0,rounding_size=0.06", linewidth=2 if on_way else 1,
                        edgecolor=COLORS["output"] if on_way else SOFT,
                    )  # fmt: skip
                    axes.add_patch(box)
                color = TEXT_COLORS["output"] if on_way else INK if kept else SOFT
                axes.text(left[c] + 0.1, y, texts[c][i], va="center", color=color)
        for x, y, shade, width in lines:
            axes.plot(x, y, color=shade, linewidth=width, zorder=0, solid_capstyle="round")


def _way_to(columns: Sequence[Sequence[Node]]) -> list[int]:
    """The node of each column on the way to the first of the last."""
    way = [0]
    for nodes in reversed(columns[1:]):
        way.append(nodes[way[-1]][0])
    return way[::-1]


def _require_tree(columns: Sequence[Sequence[Node]]) -> None:
    if len(columns) < 2 or not all(columns):
        raise ValueError("a tree needs at least one step, and each step at least one node.")
    for step, (before, nodes) in enumerate(pairwise(columns)):
        for parent, text, _, _ in nodes:
            if not 0 <= parent < len(before) or not before[parent][3]:
                raise ValueError(
                    f"the parent of {text!r} in step {step} is {parent}; it must be a node of the "
                    f"step before that was kept, counted from 0."
                )
