"""Matrices as colored cells: weights, scores, masks, position encodings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_rgb
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from .style import (
    CARD,
    HATCH,
    LINE,
    SCORES,
    TEXT_COLORS,
    WEIGHTS,
    array,
    as_on_dark,
    canvas,
    contrast,
    token_labels,
)

__all__ = ["attention_heatmap", "mask_heatmap", "position_heatmap", "scores_heatmap"]

_CELL = 0.62  # inches; a number of four characters fits
_NUMBER_SIZE = 11  # points
_MOST_SHAPES = 1000  # hatched cells that are shapes of their own


def attention_heatmap(
    weights: Any,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    mask: Any = None,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Attention weights [queries, keys], from white (0) to full color (1).

    Cells that `mask` [queries, keys] hides (True = may attend) are hatched. ValueError
    for other shapes, for NaN and for negative weights.

    >>> attention_heatmap([[0.9, 0.1], [0.3, 0.7]], queries=["a", "b"], keys=["a", "b"])
    """
    cells = array(weights, "weights", 2)
    _require_not_negative(cells)
    hidden = np.zeros(cells.shape, bool) if mask is None else ~_boolean(mask, cells.shape)
    _matrix(cells, WEIGHTS, (0, max(1, cells.max())), hidden, queries, keys, ax, title)


def scores_heatmap(
    scores: Any,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    limit: float | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Scores before the softmax [queries, keys]: one color below 0, another above, white at 0.

    A score of minus infinity is masked and drawn hatched. `limit` is the score of full color, the
    largest one unless it is given: give it where two pictures are compared. ValueError for NaN, for
    plus infinity, and for a limit that is not positive.

    >>> scores_heatmap([[1.5, -2.0], [float("-inf"), 0.5]])
    """
    cells = array(scores, "scores", 2, infinite="-")
    hidden = np.isneginf(cells)
    if limit is None:
        limit = np.abs(cells[~hidden]).max(initial=0) or 1
    _require_limit(limit)
    _matrix(np.where(hidden, 0, cells), SCORES, (-limit, limit), hidden, queries, keys, ax, title)


def mask_heatmap(
    mask: Any,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """A boolean mask [queries, keys]: a dot where the query may attend, hatched where not.

    TypeError if the mask is not boolean.

    >>> mask_heatmap([[True, False], [True, True]])
    """
    allowed = _boolean(mask)
    cells = np.zeros(allowed.shape)
    _matrix(cells, WEIGHTS, (0, 1), ~allowed, queries, keys, ax, title, numbers=False, dots=allowed)


def position_heatmap(
    encoding: Any,
    *,
    xlabel: str = "dimension",
    ylabel: str = "position",
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Position encodings [positions, d_model] (or any table of numbers), white at 0.

    >>> position_heatmap(np.sin(np.arange(12)[:, None] / np.arange(1, 9)))
    """
    table = array(encoding, "encoding", 2)
    limit = np.abs(table).max() or 1
    with canvas(ax, (5.2, 3.6)) as axes:
        picture = axes.imshow(
            table, cmap=SCORES, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
        )
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        axes.spines[:].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.get_major_locator().set_params(integer=True)
        bar = axes.figure.colorbar(picture, ax=axes, fraction=0.06, pad=0.03)
        bar.outline.set_visible(False)
        bar.locator.set_params(nbins=4)


def _boolean(mask: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    found = mask.detach().cpu().numpy() if isinstance(mask, torch.Tensor) else np.asarray(mask)
    _require_mask(found, shape)
    return found


def _matrix(
    cells: np.ndarray,
    colors: Colormap,
    limits: tuple[float, float],
    hidden: np.ndarray,
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
    ax: Axes | None,
    title: str,
    *,
    numbers: bool = True,
    dots: np.ndarray | None = None,
) -> None:
    rows, columns = cells.shape
    row_names = token_labels(queries, rows, "queries")
    column_names = token_labels(keys, columns, "keys")
    longest = max(map(len, row_names)) * 0.11
    size = min(_CELL, 5.2 / columns, 5.2 / rows)
    figure_size = (columns * size + longest + 0.5, rows * size + 0.75 + 0.35 * bool(title))
    with canvas(ax, (max(2.4, figure_size[0]), figure_size[1])) as axes:
        picture = axes.imshow(
            cells, cmap=colors, vmin=limits[0], vmax=limits[1], extent=(0, columns, rows, 0)
        )
        axes.set(aspect="equal", xlim=(0, columns), ylim=(rows, 0), title=title)
        axes.spines[:].set(visible=True, color=LINE)
        axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        axes.xaxis.set_label_position("top")
        if ax is not None:
            axes.figure.figure.draw_without_rendering()  # of a subfigure, the whole one
            size = axes.get_window_extent().width / axes.figure.dpi / columns
        _name(axes, row_names, column_names, size)
        if size >= 0.25:  # in smaller cells the lines would drown the colors
            axes.hlines(range(rows + 1), 0, columns, color=LINE, linewidth=0.8)
            axes.vlines(range(columns + 1), 0, rows, color=LINE, linewidth=0.8)
        _hatch(axes, np.argwhere(hidden)[:, ::-1])
        if dots is not None:
            at = np.argwhere(dots) + 0.5
            axes.scatter(at[:, 1], at[:, 0], s=(18 * size) ** 2, color=colors(0.9), linewidths=0)
        if numbers and size >= 0.45:
            for row, column in np.argwhere(~hidden):
                value = cells[row, column]
                shade = picture.cmap(picture.norm(value))
                ink, ground = _readable_on(shade)
                around = [] if ground == shade else [withStroke(linewidth=4, foreground=ground)]
                axes.text(
                    column + 0.5, row + 0.5, _number(value, limits), ha="center", va="center",
                    fontsize=_NUMBER_SIZE, color=ink,
                    path_effects=around,
                )  # fmt: skip


def _hatch(axes: Axes, corners: np.ndarray) -> None:
    """Hatched cells; very many as one shape, since each shape takes a millisecond to draw."""
    look = {"facecolor": CARD, "edgecolor": HATCH, "hatch": "////", "lw": 0.8}
    if len(corners) > _MOST_SHAPES:
        cell = Path.unit_rectangle()
        spots = (corners[:, None] + cell.vertices).reshape(-1, 2)
        axes.add_artist(PathPatch(Path(spots, np.tile(cell.codes, len(corners))), **look))
        return
    for corner in corners:
        axes.add_patch(Rectangle(corner, 1, 1, **look))


def _name(axes: Axes, rows: list[str], columns: list[str], size: float) -> None:
    """Labels of the cells; only every second, third, ... if not all of them fit."""
    every = max(1, int(np.ceil(0.2 / size)))
    axes.set_yticks(np.arange(len(rows))[::every] + 0.5, rows[::every])
    tilt = max(map(len, columns)) * 0.105 > size * every
    axes.set_xticks(
        np.arange(len(columns))[::every] + 0.5, columns[::every],
        rotation=45 if tilt else 0, ha="left" if tilt else "center",
        rotation_mode="anchor" if tilt else "default",
    )  # fmt: skip
    axes.set_xlabel("keys", color=TEXT_COLORS["key"], labelpad=6)
    axes.set_ylabel("queries", color=TEXT_COLORS["query"], labelpad=6)


def _number(value: float, limits: tuple[float, float]) -> str:
    if limits[0] == 0:
        return f"{value:.2f}"
    if abs(value) >= 1e5:  # −1e9, which is told by its size alone
        return f"{value:.0e}".replace("e+0", "e").replace("-", "−")
    digits = 1 if abs(limits[1]) >= 10 else 2
    return f"{value:z.{digits}f}".replace("-", "−")  # z: what rounds to zero has no sign


def _readable_on(shade: tuple[float, ...]) -> tuple[str, tuple[float, ...]]:
    """Black or white for a number, and what is around it: 4.5 : 1, on light pages and on dark ones.

    A picture is one for both, and a dark page turns it. Most cells are read in one of the inks
    either way; around the numbers of the others, the cell is a little paler or a little deeper.
    """

    def worst(ink: str, ground: tuple[float, ...]) -> float:
        return min(contrast(ink, ground), contrast(as_on_dark(ink), as_on_dark(ground)))

    best, ground = max(("#000000", "#FFFFFF"), key=lambda ink: worst(ink, shade)), shade
    away = to_rgb("#FFFFFF" if best == "#000000" else "#000000")
    for step in range(1, 21):
        if worst(best, ground) >= 4.5:
            break
        ground = tuple(c + (a - c) * step / 20 for c, a in zip(shade, away, strict=False))
    return best, ground


def _require_not_negative(weights: np.ndarray) -> None:
    if weights.min() < 0:
        raise ValueError(
            f"one of the weights is {weights.min():.4g}, but a weight is never negative: draw "
            f"scores with scores_heatmap."
        )


def _require_limit(limit: float) -> None:
    if not 0 < limit < np.inf:
        raise ValueError(f"limit is {limit}, but must be a positive score, drawn in full color.")


def _require_mask(mask: np.ndarray, shape: tuple[int, ...] | None) -> None:
    if mask.dtype != bool:
        raise TypeError(f"a mask is boolean, True = may attend; got {mask.dtype}: use mask.bool().")
    if mask.ndim != 2 or mask.size == 0 or (shape and mask.shape != shape):
        need = (
            f"shape {shape}, like the weights" if shape else "two axes, (queries, keys), and a cell"
        )
        raise ValueError(f"mask must have {need}, got shape {mask.shape}.")
