"""Small tables of numbers, side by side, whose cells show by their color what belongs together."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from .diagrams import _symbol
from .style import CARD, CYCLE, INK, LINE, SOFT, canvas, plain

__all__ = ["cells"]

_HEIGHT, _GAP, _NAME = 0.32, 0.25, 0.32  # inches: a cell, between tables, a line of labels
_LETTER = 0.085


def cells(*items: tuple | str | list, ax: Axes | None = None, title: str = "") -> None:
    """Tables of numbers or short texts; cells of one part (say, of one head) share a color.

    A table is (name, values [rows, columns]) or (name, values, options), with the options `rows`
    and `columns`, labels, and `parts`: a whole number for each column, or for each cell; cells
    without one (-1) stay white. An operator between tables is a string. For several lines of
    tables, give a list for each. A zero is pale.

    >>> cells(("x", [[0, 1, 2, 3]], {"rows": ["mary"], "parts": [0, 0, 1, 1]}), "→",
    ...       ("head 0", [[0, 1]], {"parts": [0, 0]}), ("head 1", [[2, 3]], {"parts": [1, 1]}))

    Raises ValueError for a table that is not rectangular, and for labels or parts that do not fit.
    """
    lines = list(items) if all(isinstance(item, list) for item in items) else [list(items)]
    if odd := [one for row in lines for one in row if not isinstance(one, str | tuple | list)]:
        raise TypeError(f"cells takes tables, (name, values), and texts; got {odd[0]!r:.60}.")
    drawn = [[item if isinstance(item, str) else _Table(*item) for item in row] for row in lines]
    if not drawn or not all(any(isinstance(item, _Table) for item in row) for row in drawn):
        raise ValueError("cells needs at least one table: (name, values), in each line.")
    widths = [sum(_width(item) for item in row) for row in drawn]
    heights = [max(t.height for t in row if isinstance(t, _Table)) for row in drawn]
    size = max(widths), sum(heights) - 0.15
    with canvas(ax, (size[0], size[1] + 0.35 * bool(title))) as axes:
        axes.set(xlim=(0, size[0]), ylim=(-size[1], 0), title=title, aspect="equal")
        axes.axis("off")
        top = 0.0
        for row, wide, height in zip(drawn, widths, heights, strict=True):
            x = (size[0] - wide) / 2
            head = max(t.head for t in row if isinstance(t, _Table))
            middle = top - head - (height - head - _GAP) / 2
            for item in row:
                if isinstance(item, str):
                    at = x + _width(item) / 2
                    axes.text(at, middle, item, ha="center", va="center", fontsize=15)
                else:
                    item.draw(axes, x, middle)
                x += _width(item)
            top -= height


class _Table:
    """One table: its texts, its labels and the part of each cell; sizes in inches."""

    def __init__(self, name: str, values: Any, options: dict | None = None) -> None:
        options = options or {}
        if unknown := set(options) - {"rows", "columns", "parts"}:
            raise ValueError(f"a table has rows, columns and parts, but no {', '.join(unknown)}.")
        listed = values.tolist() if hasattr(values, "tolist") else values
        if all(isinstance(row, Iterable) for row in listed):  # numbers may be tensors of their own
            listed = [[v.tolist() if hasattr(v, "tolist") else v for v in row] for row in listed]
        flat = [v for row in listed if isinstance(row, list) for v in row]
        if not flat or any(isinstance(v, list | tuple) for v in flat):
            raise ValueError(f"{name!r} must be a table, [rows, columns], got {listed!r:.60}.")
        if not listed or not listed[0] or len({len(row) for row in listed}) != 1:
            raise ValueError(f"{name!r} must have rows of equal length, got {listed!r}.")
        self.name = name
        self.texts = [[_text(value) for value in row] for row in listed]
        self.rows = _labels(options.get("rows"), len(listed), f"rows of {name!r}")
        self.columns = _labels(options.get("columns"), len(listed[0]), f"columns of {name!r}")
        self.parts = _parts(options.get("parts", -1), (len(listed), len(listed[0])), name)
        inside = [len(text) for row in self.texts for text in row] + list(map(len, self.columns))
        self.cell = max(0.36, _LETTER * max(inside) + 0.14)
        self.left = max((_LETTER * len(label) + 0.1 for label in self.rows), default=0.0)
        self.head = _NAME * (1 + bool(self.columns))
        self.height = self.head + _HEIGHT * len(listed) + _GAP
        self.body = self.cell * len(listed[0])
        self.wide = self.left + max(self.body, _LETTER * len(name)) + _GAP

    def draw(self, axes: Axes, x: float, middle: float) -> None:
        left, top = x + _GAP / 2 + self.left, middle + _HEIGHT * len(self.texts) / 2
        above = top + 0.09
        for label, column in zip(self.columns, range(len(self.columns)), strict=True):
            at = left + self.cell * (column + 0.5)
            axes.text(at, above, label, ha="center", va="bottom", color=SOFT, fontsize=11)
        above += _NAME * bool(self.columns)
        axes.text(
            left + self.body / 2,
            above,
            _symbol(self.name, bold="_" in self.name),
            ha="center",
            va="bottom",
            weight="bold",
        )
        for i, row in enumerate(self.texts):
            y = top - _HEIGHT * (i + 1)
            if self.rows:
                axes.text(
                    left - 0.08, y + _HEIGHT / 2, self.rows[i], ha="right", va="center", color=SOFT
                )
            for j, text in enumerate(row):
                at = left + self.cell * j
                face = _tint(int(self.parts[i, j]))
                box = Rectangle(
                    (at, y), self.cell, _HEIGHT, facecolor=face, edgecolor=LINE, linewidth=1
                )
                axes.add_patch(box)
                color = SOFT if text == "0" else INK
                middle_of = at + self.cell / 2, y + _HEIGHT / 2
                axes.text(*middle_of, text, ha="center", va="center", color=color)


def _width(item: _Table | str) -> float:
    return 0.2 + 0.12 * len(item) if isinstance(item, str) else item.wide


def _text(value: Any) -> str:
    if not isinstance(value, Real):
        return plain(str(value))
    if abs(value) < 1e-6:  # zero, but for rounding
        return "0"
    text = f"{value:z.2f}" if value % 1 else f"{value:.0f}"
    short = text.rstrip("0").rstrip(".") if "." in text else text
    return text if short == "0" else short.replace("-", "−")  # a number that only rounds to 0: 0.00


def _labels(labels: Sequence[str] | None, count: int, what: str) -> list[str]:
    found = [plain(str(label)) for label in ([] if labels is None else labels)]
    if found and len(found) != count:
        raise ValueError(f"{len(found)} labels for {count} {what}.")
    return found


def _parts(parts: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    found = np.asarray(parts)
    if found.dtype.kind not in "iu":
        raise TypeError(f"the parts of {name!r} must be whole numbers, but are {found.dtype}.")
    if found.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"the parts of {name!r} must be one for each of its {shape[1]} columns, or for each "
            f"of its cells, {shape}, but have the shape {found.shape}."
        )
    return np.broadcast_to(found, shape)


def _tint(part: int) -> tuple[float, ...] | str:
    """A light shade on which dark text can be read; white for no part."""
    shade = to_rgb(CYCLE[part % len(CYCLE)])
    return CARD if part < 0 else tuple(1 - 0.16 * (1 - level) for level in shade)
