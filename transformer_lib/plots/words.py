"""A map of words: vectors of many components, projected to a plane, as points with their names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .diagrams import _label_spots
from .style import CYCLE, INK, LINE, SOFT, array, canvas, token_labels

__all__ = ["word_map"]

_MARKS = ["o", "s", "^", "D"]


def word_map(
    points: Any,
    words: Sequence[str],
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Points [n, 2], each with its word beside it.

    `groups` are kinds of words by name, at most four: each has a mark and a color of its own, and a
    place in the legend. Other words are small circles.

    >>> word_map([[0, 1], [1, 1], [2, 0]], ["mary", "susan", "to"], groups={"people": ["mary"]})
    """
    places = array(points, "points", 2)
    names = token_labels(words, len(places), "words")
    groups = dict(groups or {})
    _require_map(places, groups, words)
    with canvas(ax, (6.4, 5.6)) as axes:
        low, high = places.min(0), places.max(0)
        room = 0.12 * np.maximum(high - low, 1e-9)
        axes.set(
            xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1])
        )
        axes.set_title(title)
        axes.axhline(0, color=LINE, linewidth=1.2, zorder=0)
        axes.axvline(0, color=LINE, linewidth=1.2, zorder=0)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        kinds = {word: i for i, members in enumerate(groups.values()) for word in members}
        for i, group in enumerate(groups):
            chosen = [n for n, word in enumerate(words) if kinds.get(word) == i]
            mark = {"marker": _MARKS[i], "color": CYCLE[i], "s": 42, "label": group}
            axes.scatter(*places[chosen].T, **mark)
        others = [n for n, word in enumerate(words) if word not in kinds]
        axes.scatter(*places[others].T, marker="o", facecolor="none", edgecolor=SOFT, s=26)
        if groups:
            axes.legend(frameon=False, loc="best")
        axes.figure.draw_without_rendering()
        points_per_pixel = 72 / axes.figure.dpi
        middle = axes.transData.transform((0, 0))
        ends = (axes.transData.transform(places) - middle) * points_per_pixel
        for place, end, name, spot in zip(
            places, ends, names, _label_spots(ends, names, arrows=False), strict=True
        ):
            # A thin line tells whose name it is where there was no room right beside the point.
            line = {"arrowstyle": "-", "color": SOFT, "lw": 0.7, "shrinkA": 0, "shrinkB": 4}
            axes.annotate(
                name, place, spot - end, textcoords="offset points", ha="center", va="center",
                color=INK, arrowprops=line,
            )  # fmt: skip


def _require_map(places: np.ndarray, groups: dict, words: Sequence[str]) -> None:
    if places.shape[1] != 2 or not len(places):
        raise ValueError(f"points have shape {places.shape}; they must have shape (n, 2), n >= 1")
    if not np.isfinite(places).all():
        raise ValueError("points hold numbers that are NaN or infinite; a plane has no such place")
    if len(groups) > len(_MARKS):
        raise ValueError(f"{len(groups)} groups; at most {len(_MARKS)} have a mark of their own")
    unknown = sorted({word for members in groups.values() for word in members} - set(words))
    if unknown:
        raise ValueError(f"groups name {unknown[0]!r}, which is not among the words")
