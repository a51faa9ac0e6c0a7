"""Curves with bands where there are several runs, bars, and position encodings as curves."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogFormatter

from transformer_lib import checks

from .style import COLORS, CYCLE, FULL, LINE, NEGATIVE, SOFT, array, canvas, plain

__all__ = ["bars", "curves", "histograms", "position_curves"]

# One more than there are colors, so that a sixth curve differs from the first.
_DASHES = ["-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)), (0, (9, 3))]


def curves(
    x: Any,
    ys: Mapping[str, Any],
    *,
    xlabel: str = "",
    ylabel: str = "",
    log: str = "",
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Curves over the same x [points]: {label: y [points]}. `log` is "", "x", "y" or "xy".

    Of several runs, y [runs, points], the median is drawn, in a band from the minimum to the
    maximum. A label that is a role ("query", "key", "value", "output") has that role's color. A
    curve that is alone gives its label to the axis, unless that has a name of its own.

    >>> curves([1, 2, 4], {"measured": [1.0, 2.1, 3.9], "theory": [1, 2, 4]}, log="xy")
    >>> curves([0, 1, 2], {"scaled": [[3, 2, 1], [3, 1, 0], [3, 2, 2]]}, ylabel="loss")
    """
    points, lines = _series(x, ys)
    _require_log(log)
    for axis, drawn in (("x", {"x": points}), ("y", lines)):
        if axis in log:
            _require_positive(axis, drawn)
    several = any(y.ndim == 2 for y in lines.values())
    with canvas(ax, (5.0, 3.6)) as axes:
        for (label, y), (color, dash) in zip(lines.items(), _looks(lines), strict=True):
            if y.ndim == 2:
                axes.fill_between(points, y.min(0), y.max(0), color=color, alpha=0.18, linewidth=0)
                y = np.median(y, 0)
            axes.plot(points, y, label=_shown(label), color=color, linestyle=dash)
        legend = several or len(lines) > 1
        if not legend:
            ylabel = ylabel or plain(next(iter(lines)))
        _finish(axes, xlabel, ylabel, title, log, legend=legend)
        _whole_ticks(axes, points, log)


def bars(
    labels: Sequence[str],
    values: Any,
    *,
    xlabel: str = "",
    ylabel: str = "",
    ax: Axes | None = None,
    title: str = "",
    number: str = "{:.3g}",
) -> None:
    """A bar for each label with its number above: values [labels], or {series: values [labels]}.

    >>> bars(["zero", "uniform"], {"weights": [0.0, 0.2]}, ylabel="sum of a row")
    """
    series = values if isinstance(values, Mapping) else {"": values}
    _require_curves(series, "values")
    heights = {name: array(value, f"values {name}".strip(), 1) for name, value in series.items()}
    _require_numbers(heights, len(labels))
    width = 0.76 / len(heights)
    places = np.arange(len(labels))
    with canvas(ax, (max(3.2, min(6.4, 0.85 * len(labels) * len(heights) + 0.9)), 3.2)) as axes:
        for n, (name, (color, _)) in enumerate(zip(heights, _looks(heights), strict=True)):
            shift = (n - (len(heights) - 1) / 2) * width
            height = heights[name]
            drawn = axes.bar(places + shift, height, width * 0.94, label=_shown(name), color=color)
            axes.bar_label(drawn, [number.format(h) for h in height], padding=2, fontsize=11)
        axes.set_xticks(places, [plain(label) for label in labels])
        axes.tick_params(axis="x", length=0)
        axes.axhline(0, color=SOFT, linewidth=0.8)
        axes.margins(y=0.14)
        _finish(axes, xlabel, ylabel, title, "", legend=len(heights) > 1)
        axes.spines["bottom"].set_visible(False)


def histograms(
    samples: Mapping[str, Any],
    *,
    xlabel: str = "",
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """A histogram for each label, one below the other over one axis: {label: samples [n]}.

    A line from one standard deviation below the mean to one above it, with its number, says how far
    the samples spread. The heights of two labels are not comparable; the areas are.

    >>> histograms({"narrow": np.sin(np.arange(99)), "wide": 3 * np.sin(np.arange(99))})
    """
    _require_curves(samples, "samples")
    lines = {label: array(values, f"samples {label!r}", 1) for label, values in samples.items()}
    reach = 1.05 * max(np.abs(values).max() for values in lines.values()) or 1.0
    edges = np.linspace(-reach, reach, 122)
    with canvas(ax, (6.0, 0.5 + 1.05 * len(lines))) as axes:
        for row, values in enumerate(lines.values()):
            base = -1.35 * row
            counts, _ = np.histogram(values, edges)
            axes.stairs(base + counts / counts.max(), edges, baseline=base, fill=True, color=FULL)
            spread, mean = values.std(), values.mean()
            axes.plot([mean - spread, mean + spread], [base - 0.1] * 2, color=NEGATIVE, linewidth=3)
            axes.text(
                reach, base + 0.5, f"spread {spread:.3g}", ha="right", color=NEGATIVE, fontsize=11
            )
        places = [0.3 - 1.35 * row for row in range(len(lines))]
        axes.set_yticks(places, [plain(label) for label in lines])
        axes.tick_params(axis="y", length=0)
        axes.set(xlim=(-reach, reach), xlabel=xlabel, title=title)
        axes.spines["left"].set_visible(False)


def position_curves(
    encoding: Any,
    dims: Sequence[int] | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """Position encodings [positions, d_model]: some dimensions, as curves over the position.

    Without `dims`, at most four, from the fastest to the slowest.

    >>> position_curves(np.sin(np.arange(30)[:, None] / np.array([1, 3, 9])), dims=[0, 2])
    """
    table = array(encoding, "encoding", 2)
    width = table.shape[1]
    _require_list(dims)
    chosen = list(dims) if dims is not None else sorted({0, width // 4, width // 2, width - 1})
    _require_dims(chosen, width)
    lines = {f"dimension {dim % width}": table[:, dim] for dim in chosen}
    curves(np.arange(len(table)), lines, xlabel="position", ylabel="value", ax=ax, title=title)


def _whole_ticks(axes: Axes, points: np.ndarray, log: str) -> None:
    """No tick at step 2.5 if x counts something."""
    if "x" not in log and np.array_equal(points, np.round(points)):
        axes.xaxis.get_major_locator().set_params(integer=True)


def _series(x: Any, ys: Mapping[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    points = array(x, "x", 1)
    _require_curves(ys, "the curves")
    lines = {label: array(y, f"curve {label!r}", 1, 2) for label, y in ys.items()}
    _require_points(lines, len(points))
    return points, lines


def _looks(names: Iterable[str]) -> list[tuple[str, Any]]:
    """(color, dash pattern) for each."""
    free, dashes = cycle(CYCLE), cycle(_DASHES)
    return [(COLORS.get(name) or next(free), next(dashes)) for name in names]


def _finish(axes: Axes, xlabel: str, ylabel: str, title: str, log: str, *, legend: bool) -> None:
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    for name in log:
        _plain_ticks(axes.xaxis if name == "x" else axes.yaxis)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.grid(axis="y", color=LINE)
    if legend:  # below the picture, where no curve can run through it
        names = axes.get_legend_handles_labels()[1]
        rows = -(-len(names) // max(1, 52 // (max(map(len, names)) + 9)))
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            borderaxespad=4.4 if xlabel else 2.6,
            ncols=-(-len(names) // rows),
            handlelength=2.6,
        )


def _plain_ticks(axis: Axis) -> None:
    """0.3, and not 3 × 10⁻¹, where all numbers are of a size that is read at a glance."""
    low, high = axis.get_view_interval()
    if low >= 1e-3 and high <= 1e4:
        for ticks in (axis.set_major_formatter, axis.set_minor_formatter):
            ticks(_PlainNumbers(minor_thresholds=(1, 0.4)))


class _PlainNumbers(LogFormatter):
    """A logarithmic axis' own choice of numbers, written out."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return super().__call__(x, pos) and f"{x:,g}"


def _shown(label: Any) -> str:
    """A label as a legend shows it: matplotlib leaves out those that begin with a line below."""
    return f"\u200b{label}" if str(label).startswith("_") else label


def _require_positive(axis: str, drawn: Mapping[str, np.ndarray]) -> None:
    for label, numbers in drawn.items():
        if numbers.min() <= 0:
            raise ValueError(
                f"{label!r} goes down to {numbers.min():.4g}, which has no place on a logarithmic "
                f"axis: leave {axis!r} out of log, or draw only what is above 0."
            )


def _require_log(log: str) -> None:
    if log not in ("", "x", "y", "xy", "yx"):
        raise ValueError(f'log must be "", "x", "y" or "xy", got {log!r}.')


def _require_list(dims: Any) -> None:
    if dims is not None and not isinstance(dims, Iterable):
        raise TypeError(f"dims is {dims!r}; give a list of dimensions, such as [{dims!r}].")


def _require_dims(dims: Sequence[int], width: int) -> None:
    if not dims:
        raise ValueError("dims is empty: give at least one dimension, or leave it out.")
    for dim in dims:
        checks.require_whole(dim, "dims")
        if not -width <= dim < width:
            raise ValueError(
                f"dims contains {dim}, but the encoding has dimensions 0 to {width - 1}."
            )


def _require_numbers(heights: Mapping[str, np.ndarray], labels: int) -> None:
    for name, height in heights.items():
        if len(height) != labels:
            what = f"values {name}".strip()
            raise ValueError(f"{what} has {len(height)} numbers for {labels} labels.")


def _require_curves(ys: Any, what: str) -> None:
    if not isinstance(ys, Mapping) or not ys:
        raise TypeError(
            f"{what} must be a dict {{label: numbers}}, and not an empty one; got {ys!r:.60}."
        )


def _require_points(lines: Mapping[str, np.ndarray], points: int) -> None:
    for label, y in lines.items():
        if y.shape[-1] != points:
            raise ValueError(f"curve {label!r} has {y.shape[-1]} points, x has {points}.")
