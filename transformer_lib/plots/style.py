"""The one visual language: colors by role, the house style, arguments turned into arrays."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

__all__ = [
    "COLORS",
    "CYCLE",
    "HATCH",
    "INK",
    "LINE",
    "SCORES",
    "SOFT",
    "TEXT_COLORS",
    "WEIGHTS",
    "array",
    "canvas",
    "house",
    "plain",
    "role_color",
    "token_labels",
]

# Okabe and Ito's palette, safe for color-blind readers. The page's style sheet and the widgets hold
# the same values; a test keeps them equal.
COLORS = {
    "query": "#0072B2",
    "key": "#D55E00",
    "value": "#009E73",
    "output": "#CC79A7",
    "masked": "#8A8F98",
}
# The same roles as text on white, dark enough for a contrast of 4.5 : 1.
TEXT_COLORS = {
    "query": "#00639B",
    "key": "#B04C00",
    "value": "#00744F",
    "output": "#A1457A",
    "masked": "#5F6670",
}
INK, SOFT, LINE, HATCH = "#1F2430", "#5B6270", "#DFE3E8", "#B9BEC6"
# Colors without a role, for curves that are not a query, key, value or output. Each curve has a
# dash pattern of its own as well, so that color is never the only difference.
CYCLE = ["#3D3B8E", "#A65A00", "#8B1E3F", "#2A7F9E", "#5B6270"]

WEIGHTS = LinearSegmentedColormap.from_list("weights", ["#FFFFFF", "#3D3B8E"])
SCORES = LinearSegmentedColormap.from_list("scores", ["#A65A00", "#FFFFFF", "#3D3B8E"])

_RC = {
    "figure.dpi": 100,
    "figure.facecolor": "#FFFFFF",
    "savefig.facecolor": "#FFFFFF",
    "savefig.transparent": False,
    "axes.facecolor": "#FFFFFF",
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "axes.labelsize": 12,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 12,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
}


@contextmanager
def house() -> Iterator[None]:
    """The book's matplotlib style, for figures that a chapter draws itself.

    >>> with house():
    ...     figure, ax = plt.subplots()
    >>> figure.get_facecolor()
    (1.0, 1.0, 1.0, 1.0)
    """
    with mpl.rc_context(_RC):
        yield
        # A notebook's backend turns this on when the first figure is made; keep it on.
        interactive = mpl.is_interactive()
    mpl.interactive(interactive)


@contextmanager
def canvas(ax: Axes | None, size: tuple[float, float]) -> Iterator[Axes]:
    """`ax`, or a new figure of `size` inches with one, in the house style."""
    with house():
        if ax is None:
            _, ax = plt.subplots(figsize=size, layout="constrained")
        yield ax


def array(values: Any, what: str, ndim: int, *, infinite: str = "") -> np.ndarray:
    """A float array of `ndim` axes from an array, tensor or list of numbers.

    ValueError for another number of axes, for nothing to draw and for NaN or infinity, unless
    `infinite` names the sign that is meant ("-").
    """
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().to(torch.float64).numpy()
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers in rows of equal length: {error}") from error
    if found.ndim != ndim:
        hint = " Pick one first: [layer, head] or [head]." if found.ndim > ndim > 1 else ""
        raise ValueError(f"{what} must have {ndim} axes, got shape {found.shape}.{hint}")
    if found.size == 0:
        raise ValueError(f"{what} has shape {found.shape}: there is nothing to draw.")
    allowed = np.isfinite(found) | (np.isneginf(found) if infinite == "-" else False)
    if not allowed.all():
        index = tuple(np.argwhere(~allowed)[0].tolist())
        raise ValueError(f"{what} holds {found[index]} at {list(index)}; it cannot be drawn.")
    return found


def token_labels(labels: Sequence[str] | None, n: int, what: str) -> list[str]:
    """`n` labels as plain text: positions if there are none. ValueError for another number."""
    if labels is None:
        return [str(position) for position in range(n)]
    if isinstance(labels, str):
        raise ValueError(f"{what} must be a list of {n} labels, got one string: split it first.")
    if len(labels) != n:
        raise ValueError(f"{what} has {len(labels)} labels for {n} positions: {list(labels)}.")
    return [plain(label) for label in labels]


def plain(text: object) -> str:
    """Text that matplotlib shows as it is: a dollar sign would start mathematics."""
    return str(text).replace("\\", "\\\\").replace("$", r"\$") if "$" in str(text) else str(text)


def role_color(name: str | None, fallback: str) -> str:
    """The color of a role, or a color by its own name."""
    return fallback if name is None else COLORS.get(name, name)
