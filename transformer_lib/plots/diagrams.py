"""Drawings that are not plots of numbers: arrows in the plane, matrices as boxes."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyBboxPatch

from .style import (
    CYCLE,
    INK,
    LINE,
    SOFT,
    TEXT_COLORS,
    array,
    canvas,
    role_color,
    token_labels,
)

__all__ = ["projections", "shape_boxes", "vectors_2d"]


def vectors_2d(
    vectors: Any,
    labels: Sequence[str] | None = None,
    *,
    color: str | Sequence[str] | None = None,
    like: Any = None,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Arrows from the origin: vectors [n, 2], each with its label at the tip.

    `color` is a role ("query", ...) or a color, one for all or one each. Two pictures that are
    compared need one scale: `like` holds all vectors [m, 2] that must find room in both.

    >>> vectors_2d([[2.0, 1.0], [-1.0, 1.5]], ["gave", "to"], color="key")
    """
    tips = array(vectors, "vectors", 2)
    names = token_labels(labels, len(tips), "labels")
    colors = [color] * len(tips) if color is None or isinstance(color, str) else list(color)
    _require_arrows(tips, colors)
    others = tips if like is None else array(like, "like", 2)
    _require_plane(others, "like")
    with canvas(ax, (4.2, 4.2)) as axes:
        low, high = _square(np.concatenate([tips, others]))
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=title)
        axes.axhline(0, color=LINE, linewidth=1.2, zorder=0)
        axes.axvline(0, color=LINE, linewidth=1.2, zorder=0)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.locator_params(nbins=5)
        _free_corner(axes)
        axes.figure.figure.draw_without_rendering()  # of a subfigure, the whole one
        points_per_unit = axes.get_window_extent().width / axes.figure.dpi * 72 / (high - low)[0]
        spots = _label_spots(tips * points_per_unit, names)
        for tip, name, chosen, spot in zip(tips, names, colors, spots, strict=True):
            shade = role_color(chosen, CYCLE[0])
            arrow = {"arrowstyle": "-|>", "color": shade, "lw": 2, "mutation_scale": 16}
            axes.annotate("", tip, (0, 0), arrowprops={**arrow, "shrinkA": 0, "shrinkB": 0})
            axes.annotate(
                name,
                tip,
                spot - tip * points_per_unit,
                textcoords="offset points",
                ha="center",
                va="center",
                color=TEXT_COLORS.get(chosen, INK),
            )


def _free_corner(axes: Axes) -> None:
    """No two numbers in the corner where the axes meet: the one below it goes."""
    ticks, starts = [], []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        inside = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        ticks.append(inside)
        starts.append(bool(inside) and inside[0] - low < 0.08 * (high - low))
    if all(starts):
        axes.set_xticks(ticks[0][1:])


def _square(tips: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a square with the origin, all tips and room for their labels in it."""
    low, high = np.minimum(tips.min(0), 0), np.maximum(tips.max(0), 0)
    side = max((high - low).max(), 1e-9) * 1.4
    middle = (low + high) / 2
    return middle - side / 2, middle + side / 2


def _label_spots(tips: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
    """A place for each label, in points: beyond its tip, turned away from arrows and labels."""
    # Boxes that are taken, as centers and half sizes: at first along every arrow.
    centers = (tips[:, None] * np.linspace(0, 1, 40)[:, None]).reshape(-1, 2)
    halves = np.full_like(centers, 2.0)
    spots = []
    for tip, name in zip(tips, names, strict=True):
        half = np.array([3.9 * len(name) + 1, 7.0])
        along = np.arctan2(tip[1], tip[0]) if np.any(tip) else np.pi / 2
        places = []
        turns = np.radians([0, 20, -20, 40, -40, 60, -60, 90, -90, 120, -120, 150, -150])
        for gap, turn in product((6, 18), turns):  # farther away only if nothing near is free
            way = np.array([np.cos(along + turn), np.sin(along + turn)])
            # Far enough for the box of the text to clear the tip, on whichever side it is.
            spot = tip + way * (gap + min(half / np.maximum(np.abs(way), 1e-9)))
            overlaps = np.clip(half + halves - np.abs(spot - centers), 0, None)
            places.append((float(np.prod(overlaps, axis=1).sum()), spot))
        spots.append(min(places, key=lambda place: place[0])[1])
        centers, halves = np.vstack([centers, spots[-1]]), np.vstack([halves, half])
    return spots


def shape_boxes(
    *items: tuple | str | list,
    sizes: Mapping[str, float] | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Equations of shapes: matrices as boxes with sizes on their edges, and operators between them.

    A matrix is (name, (rows, columns)) or (name, (rows, columns), role); a size is a number or a
    name ("s", or "d_k", which is shown with a subscript). An operator is a string. For several
    lines, give a list for each. Equal sizes have equal lengths; `sizes` sets the length of a named
    one, in any unit.

    >>> shape_boxes(("Q", ("s", "d_k"), "query"), "×", ("Kᵀ", ("d_k", "s"), "key"), "=",
    ...             ("S", ("s", "s")), sizes={"s": 5, "d_k": 3})
    """
    rows = list(items) if all(isinstance(item, list) for item in items) else [list(items)]
    boxes = [item for row in rows for item in row if not isinstance(item, str)]
    for row in rows or [[]]:
        _require_boxes([item for item in row if not isinstance(item, str)])
    lengths = {size: _length(size) for box in boxes for size in box[1]} | dict(sizes or {})
    unit = (1.5 if len(rows) == 1 else 1.25) / max(
        lengths[size] for box in boxes for size in box[1]
    )
    lengths = {size: max(0.4, unit * length) for size, length in lengths.items()}
    widths = [sum(_width(item, lengths) for item in row) for row in rows]
    heights = [_ROOM + max(lengths[i[1][0]] for i in row if not isinstance(i, str)) for row in rows]
    size = max(widths) + 0.2, sum(heights) + 0.1
    with canvas(ax, (size[0], size[1] + 0.35 * bool(title))) as axes:
        axes.set(xlim=(0, size[0]), ylim=(-size[1], 0), title=title, aspect="equal")
        axes.axis("off")
        bottom = 0.0
        for row, wide, height in zip(rows, widths, heights, strict=True):
            bottom -= height
            middle, x = bottom + (height - _ROOM) / 2, (max(widths) - wide) / 2
            for item in row:
                if isinstance(item, str):
                    at = x + _width(item, lengths) / 2 + 0.06
                    axes.text(at, middle, item, ha="center", va="center", fontsize=15)
                else:
                    _box(axes, item, (x + _left(item), middle), lengths)
                x += _width(item, lengths)


_ROOM = 0.5  # inches for the number of columns, above its box


def _length(size: str | int) -> float:
    """A number is its own length; names that begin with d are shorter than the others."""
    return float(size) if isinstance(size, Real) else 3.0 if size.startswith("d") else 5.0


def _width(item: tuple | str, lengths: Mapping) -> float:
    if isinstance(item, str):
        return 0.16 + 0.11 * len(item)
    return _left(item) + lengths[item[1][1]] + 0.1


def _left(item: tuple) -> float:
    """Room for the number of rows, left of the box; subscripts are smaller."""
    head, _, subscript = str(item[1][0]).partition("_")
    return 0.32 + 0.1 * len(head) + 0.07 * len(subscript)


def _box(axes: Axes, item: tuple, at: tuple[float, float], lengths: Mapping) -> None:
    name, (rows, columns), role = (*item, None)[:3]
    (left, middle), width, height = at, lengths[columns], lengths[rows]
    shade = role_color(role, SOFT)
    axes.add_patch(
        FancyBboxPatch(
            (left, middle - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.05",
            facecolor=tuple(1 - 0.14 * (1 - level) for level in to_rgb(shade)),
            edgecolor=shade,
            linewidth=1.8,
        )
    )
    axes.text(
        left + width / 2,
        middle,
        _symbol(name, bold=True),
        ha="center",
        va="center",
        fontsize=13,
        weight="bold",
        color=TEXT_COLORS.get(role, INK),
        rotation=90 if len(name) * 0.13 > width and height > width else 0,
    )
    above = middle + height / 2 + 0.06
    axes.text(left + width / 2, above, _symbol(columns), ha="center", va="bottom", color=INK)
    axes.text(left - 0.07, middle, _symbol(rows), ha="right", va="center", color=INK)


def projections(
    vector: Any,
    made: Sequence[tuple],
    labels: Sequence[str] | None = None,
    *,
    name: str = "x",
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """One vector [d] on top, and below it what matrices make of it: rows of numbers.

    Each entry of `made` is (name, matrix, vector, role), with labels for its components as a fifth
    if you like: the name and the matrix as they are written, the vector that came out, its role.

    >>> projections([1.0, 0.0], [("k", "W_K", [1.0], "key", ["person"])], ["person", "who"])
    """
    numbers = array(vector, "vector", 1)
    top = token_labels(labels, len(numbers), "labels")
    rows = [(*entry, None)[:5] for entry in made]
    _require_made(rows)
    outs = [array(row[2], f"made[{i}]", 1) for i, row in enumerate(rows)]
    wide, gap = 0.72, 0.5
    width = max(sum(map(len, outs)) * wide + gap * (len(outs) - 1), len(numbers) * wide)
    with canvas(ax, (width + 0.2, 3.1 + 0.35 * bool(title))) as axes:
        axes.set(xlim=(-0.1, width + 0.1), ylim=(-2.55, 0.55), title=title, aspect="equal")
        axes.axis("off")
        left = (width - len(numbers) * wide) / 2
        _number_row(axes, numbers, top, (left, 0.0), name, None, above=True)
        x = (width - sum(map(len, outs)) * wide - gap * (len(outs) - 1)) / 2
        for (called, matrix, _, role, names), out in zip(rows, outs, strict=True):
            below = token_labels(names, len(out), f"labels of {called}")
            _number_row(axes, out, below, (x, -2.0), called, role, above=False)
            middle = x + len(out) * wide / 2
            start = width / 2 + 0.55 * (middle - width / 2), -0.62
            shade = role_color(role, SOFT)
            arrow = {"arrowstyle": "-|>", "color": shade, "lw": 2, "mutation_scale": 16}
            axes.annotate("", (middle, -1.28), start, arrowprops={**arrow, "shrinkB": 0})
            side = -1 if middle < width / 2 - 0.1 else 1
            axes.text(
                (start[0] + middle) / 2 + side * (0.14 + 0.18 * abs(middle - start[0])),
                -0.95,
                _symbol(matrix),
                ha="right" if side < 0 else "left",
                va="center",
                fontsize=13,
                color=TEXT_COLORS.get(role, INK),
            )
            x += len(out) * wide + gap


def _number_row(
    axes: Axes,
    numbers: np.ndarray,
    labels: Sequence[str],
    at: tuple[float, float],
    name: str,
    role: str | None,
    *,
    above: bool,
) -> None:
    """Numbers in boxes, their labels above or below, and the vector's name on the other side."""
    wide, high, (left, bottom) = 0.72, 0.42, at
    shade = role_color(role, SOFT)
    for i, (number, label) in enumerate(zip(numbers, labels, strict=True)):
        axes.add_patch(
            FancyBboxPatch(
                (left + i * wide + 0.03, bottom - high),
                wide - 0.06,
                high,
                boxstyle="round,pad=0,rounding_size=0.04",
                facecolor=tuple(1 - 0.2 * bool(number) * (1 - c) for c in to_rgb(shade)),
                edgecolor=shade,
                linewidth=1.4,
            )
        )
        x = left + (i + 0.5) * wide
        text = f"{number:.3g}".replace("-", "−")
        axes.text(x, bottom - high / 2, text, ha="center", va="center", color=INK)
        y, side = (bottom + 0.06, "bottom") if above else (bottom - high - 0.06, "top")
        axes.text(x, y, label, ha="center", va=side, color=INK, fontsize=11)
    shown = {"fontsize": 14, "weight": "bold", "color": TEXT_COLORS.get(role, INK)}
    if above:
        axes.text(left - 0.12, bottom - high / 2, _symbol(name), ha="right", va="center", **shown)
    else:
        middle = left + len(numbers) * wide / 2
        axes.text(middle, bottom + 0.1, _symbol(name), ha="center", va="bottom", **shown)


def _symbol(name: str | int, *, bold: bool = False) -> str:
    """`s` and `d_k` as formulas, with subscripts; numbers, words and `$...$` as they are."""
    text = str(name)
    if "$" in text or not re.search(r"_\w|^[a-z]$", text):
        return text

    def lowered(match: re.Match) -> str:
        return f"_{{{match[1]}}}" if len(match[1]) == 1 else rf"_{{\mathrm{{{match[1]}}}}}"

    text = re.sub(r"_(\w+)", lowered, text)
    return f"$\\mathbf{{{text}}}$" if bold else f"${text}$"


def _require_plane(tips: np.ndarray, what: str = "vectors") -> None:
    if tips.shape[1] != 2:
        raise ValueError(f"{what} must have shape (n, 2) to lie in the plane, got {tips.shape}.")


def _require_arrows(tips: np.ndarray, colors: list) -> None:
    _require_plane(tips)
    if len(colors) != len(tips):
        raise ValueError(f"color has {len(colors)} entries for {len(tips)} vectors.")


def _require_made(rows: list) -> None:
    if not rows:
        raise ValueError(
            "projections needs at least one vector that was made: (name, matrix, ...)."
        )
    for row in rows:
        if len(row) != 5:
            raise ValueError("each vector that was made is (name, matrix, vector, role).")
        if row[3] not in TEXT_COLORS:
            raise ValueError(
                f"{row[0]} has the role {row[3]!r}; roles are {', '.join(TEXT_COLORS)}."
            )


def _require_boxes(boxes: list) -> None:
    if not boxes:
        raise ValueError("shape_boxes needs at least one matrix: (name, (rows, columns)).")
    for box in boxes:
        is_box = isinstance(box, tuple) and len(box) in (2, 3)
        if not is_box or not isinstance(box[1], tuple | list) or len(box[1]) != 2:
            raise ValueError(
                f"a matrix is (name, (rows, columns)) or (name, (rows, columns), role), got "
                f"{box!r}."
            )
        if not all(isinstance(size, str | Real) for size in box[1]):
            raise TypeError(f"the sizes of {box[0]!r} are {box[1]!r}; give numbers or names.")
