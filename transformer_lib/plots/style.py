"""The visual language of the book: colors by role, the house style, arguments as arrays.

The source of the book's colors: after a change here, `make palette` writes them into the style
sheets of the page and of the widgets and into the formulas, and says what else is to be done.
"""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, is_color_like, to_rgb
from matplotlib.typing import ColorType

__all__ = [
    "CARD",
    "COLORS",
    "CYCLE",
    "DARK_TEXT_COLORS",
    "FULL",
    "HATCH",
    "INK",
    "LINE",
    "NEGATIVE",
    "SCORES",
    "SOFT",
    "TEXT_COLORS",
    "WEIGHTS",
    "array",
    "as_on_dark",
    "canvas",
    "contrast",
    "house",
    "plain",
    "role_color",
    "token_labels",
]

# Okabe and Ito's palette, safe for color-blind readers.
COLORS = {
    "query": "#0072B2",
    "key": "#D55E00",
    "value": "#009E73",
    "output": "#CC79A7",
    "masked": "#8A8F98",
}
# The same roles as text on the card, dark enough for a contrast of 4.5 : 1.
TEXT_COLORS = {
    "query": "#00639B",
    "key": "#B04C00",
    "value": "#00744F",
    "output": "#A1457A",
    "masked": "#5F6670",
}
DARK_TEXT_COLORS = {  # ... and on a dark page, for style sheets alone
    "query": "#5AB4EA",
    "key": "#FF9B57",
    "value": "#2FC79B",
    "output": "#E2A0C6",
    "masked": "#A3ABB5",
}
CARD = "#FFFFFF"
INK, SOFT, LINE, HATCH = "#1F2430", "#5B6270", "#DFE3E8", "#B9BEC6"
FULL, NEGATIVE = "#3D3B8E", "#A65A00"  # a weight of 1, or the largest score; the lowest score
# Colors without a role, for curves that are not a query, key, value or output. Each curve also has
# a dash pattern of its own, so that color is never the only difference.
CYCLE = [FULL, NEGATIVE, "#8B1E3F", "#2A7F9E", SOFT]

WEIGHTS = LinearSegmentedColormap.from_list("weights", [CARD, FULL])
SCORES = LinearSegmentedColormap.from_list("scores", [NEGATIVE, CARD, FULL])

_DARK_PAGE = np.array([0x14, 0x18, 0x1E]) / 255  # no color of the palette, but the ground under it
# The matrix of CSS for hue-rotate(180deg): each gray stays, and all else is on its other side.
_HUE_HALF_AROUND = 2 * np.array([0.213, 0.715, 0.072]) - np.eye(3)

_RC = {
    "figure.dpi": 100,
    "figure.facecolor": CARD,
    "savefig.facecolor": CARD,
    "savefig.transparent": False,
    "axes.facecolor": CARD,
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
    # A notebook's backend turns this on with the first figure, even one that fails; keep it on.
    interactive = mpl.is_interactive()
    try:
        with mpl.rc_context(_RC):
            try:
                yield
            finally:
                interactive = mpl.is_interactive()
    finally:
        mpl.interactive(interactive)


@contextmanager
def canvas(ax: Axes | None, size: tuple[float, float]) -> Iterator[Axes]:
    """`ax`, or a new figure of `size` inches with one, in the house style."""
    with house():
        if ax is not None:
            yield ax
            return
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        try:
            yield ax
        except BaseException:  # half of a figure would be shown
            plt.close(figure)
            raise


def array(values: Any, what: str, *ndims: int, infinite: str = "") -> np.ndarray:
    """A float array, with as many axes as one of `ndims`, of an array, tensor or list of numbers.

    ValueError for another number of axes, for nothing to draw, and for NaN or infinity, unless
    `infinite` is the sign of the one that is meant ("-").
    """
    if isinstance(values, list | tuple):  # perhaps of losses, with their gradients
        values = [one.detach().cpu() if isinstance(one, torch.Tensor) else one for one in values]
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = values if values.is_complex() else values.to(torch.float64).numpy()
    try:
        if np.ma.is_masked(values):
            raise TypeError("some are masked, and would be drawn; leave them out")
        found = np.asarray(values)
        if np.iscomplexobj(found):
            raise TypeError(f"{found.dtype} is not drawn; choose .real, .imag or abs()")
        found = found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers in rows of equal length: {error}") from error
    _require_axes(found, what, ndims)
    allowed = np.isfinite(found) | (np.isneginf(found) if infinite == "-" else False)
    _require_all(allowed, found, what)
    return found


def token_labels(labels: Sequence[str] | None, n: int, what: str) -> list[str]:
    """`n` labels as plain text, the positions if None are given. ValueError for another number."""
    if labels is None:
        return [str(position) for position in range(n)]
    labels = labels if isinstance(labels, str | Set) else list(labels)
    _require_labels(labels, n, what)
    return [plain(label) for label in labels]


def plain(text: object) -> str:
    """Text that matplotlib shows as it is: an unescaped dollar sign would start a formula."""
    return str(text.item() if isinstance(text, torch.Tensor) else text).replace("$", r"\$")


def role_color(name: str | None, fallback: str) -> str:
    """The color of a role, or a color by its own name."""
    if name is not None and name not in COLORS and not is_color_like(name):
        raise ValueError(
            f"{name!r} is not a role and not a color; roles are {', '.join(COLORS)}, and colors "
            f"those of matplotlib, such as 'gray' or '#0072B2'."
        )
    return fallback if name is None else COLORS.get(name, name)


def contrast(one: ColorType, other: ColorType) -> float:
    """How much two colors differ in light, from 1 to 21, as WCAG 2.2 defines it; text needs 4.5."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def as_on_dark(color: ColorType) -> tuple[float, ...]:
    """A picture's color on a dark page, as the style sheet turns it (book/assets/afm.css).

    `invert(1) hue-rotate(180deg)`, laid over the page by `screen`.
    """
    turned = np.clip(_HUE_HALF_AROUND @ (1 - np.array(to_rgb(color))), 0, 1)
    return tuple((1 - (1 - turned) * (1 - _DARK_PAGE)).tolist())


def _luminance(color: ColorType) -> float:
    levels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot(levels, [0.2126, 0.7152, 0.0722]))


def _require_axes(found: np.ndarray, what: str, ndims: tuple[int, ...]) -> None:
    if found.ndim not in ndims:
        number = " or ".join(map(str, ndims)) + (" axis" if ndims == (1,) else " axes")
        hint = " Pick one first: [layer, head] or [head]." if found.ndim > max(ndims) > 1 else ""
        raise ValueError(f"{what} must have {number}, got shape {found.shape}.{hint}")
    if found.size == 0:
        raise ValueError(f"{what} has shape {found.shape}: there is nothing to draw.")


def _require_all(allowed: np.ndarray, found: np.ndarray, what: str) -> None:
    if not allowed.all():
        index = tuple(np.argwhere(~allowed)[0].tolist())
        raise ValueError(f"{what} has {found[index]} at {list(index)}, which cannot be drawn.")


def _require_labels(labels: Sequence[str], n: int, what: str) -> None:
    if isinstance(labels, str):
        raise ValueError(f"{what} must be a list of {n} labels, got one string: split it first.")
    if isinstance(labels, Set):
        raise TypeError(f"{what} are a set, which has no order of its own: give a list.")
    if len(labels) != n:
        raise ValueError(f"{what} has {len(labels)} labels for {n} positions: {list(labels)}.")
