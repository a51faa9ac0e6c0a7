"""Drawings of sentences: who sees which words, what has to be said next, and what is fetched."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from .style import CARD, COLORS, HATCH, INK, LINE, SOFT, TEXT_COLORS, canvas, plain

__all__ = ["fetches", "next_words"]

_WIDE, _HIGH, _GAP = 0.92, 0.5, 0.62  # inches: a word, a row, the arrow


def next_words(
    words: Sequence[str], *, after: str = "?", ax: Axes | None = None, title: str = ""
) -> None:
    """One sentence as the exercises that a causal mask makes of it, a row for each word.

    In row i the words up to i are seen, the last of them asks (outlined), the rest is hatched, and
    after the arrow is the answer: the next word; `after` in the last row.

    >>> next_words(["i", "am", "fine"], after="end")
    """
    _require_words(words)
    n, answers = len(words), [*words[1:], after]
    wide = max(_WIDE, 0.13 * max(map(len, [*words, after])) + 0.25)
    width, height = (n + 1) * wide + _GAP, n * _HIGH + 0.45
    with canvas(ax, (width + 0.2, height + 0.1 + 0.35 * bool(title))) as axes:
        axes.set(xlim=(-0.1, width + 0.1), ylim=(-height + 0.4, 0.5), title=title, aspect="equal")
        axes.axis("off")
        for x, text in ((n * wide / 2, "what is seen"), (width - wide / 2, "what comes next")):
            axes.text(x, 0.12, text, ha="center", va="bottom", color=INK)
        for row, answer in enumerate(answers):
            bottom = -(row + 1) * _HIGH
            for column, word in enumerate(words):
                at = (column * wide, bottom)
                if column > row:
                    axes.add_patch(
                        Rectangle(
                            at, wide, _HIGH, facecolor=CARD, edgecolor=HATCH, hatch="////", lw=0.8
                        )
                    )
                else:
                    _chip(axes, word, at, wide, "query" if column == row else "")
            middle, left = bottom + _HIGH / 2, n * wide
            arrow = {"arrowstyle": "-|>", "color": SOFT, "lw": 1.8, "mutation_scale": 14}
            axes.annotate("", (left + _GAP - 0.08, middle), (left + 0.1, middle), arrowprops=arrow)
            _chip(axes, answer, (left + _GAP, bottom), wide, "output")


def fetches(
    words: Sequence[str],
    arrows: Sequence[tuple[int, int, str]],
    *,
    ax: Axes | None = None,
    title: str = "",
) -> None:
    """One sentence, and arcs above it from a word to a later one that fetches something from it.

    `arrows` are (from, to, label), by places from 0; the label, a sign or two, stands on the arc.

    >>> fetches("mary gave roses to susan".split(), [(2, 4, "1")])
    """
    _require_words(words)
    _require_arcs(arrows, len(words))
    wide = max(0.6, 0.1 * max(map(len, words)) + 0.14)
    width, top = len(words) * wide, max((_rise(b - a, wide) for a, b, _ in arrows), default=0)
    with canvas(ax, (width + 0.2, _HIGH + top + 0.3 + 0.3 * bool(title))) as axes:
        axes.set(xlim=(-0.1, width + 0.1), ylim=(-_HIGH - 0.05, top + 0.25), title=title)
        axes.set_aspect("equal")
        axes.axis("off")
        asks = {to for _, to, _ in arrows}
        for place, word in enumerate(words):
            _chip(axes, word, (place * wide, -_HIGH), wide, "query" if place in asks else "")
        for start, end, label in arrows:
            others = sorted(a for a, b, _ in arrows if b == end)  # side by side at the tip
            shift = 0.16 * ((len(others) - 1) / 2 - others.index(start))
            left, right = (start + 0.5) * wide, (end + 0.5) * wide + shift
            rise = _rise(end - start, wide)
            axes.add_patch(
                FancyArrowPatch(
                    (left, 0), (right, 0), connectionstyle=f"arc3,rad={-2 * rise / (right - left)}",
                    arrowstyle="-|>", mutation_scale=14, lw=1.8, color=COLORS["value"],
                    shrinkA=0, shrinkB=0,
                )
            )  # fmt: skip
            axes.text(
                (left + right) / 2, rise, plain(label), ha="center", va="center", color=INK,
                bbox={"boxstyle": "circle,pad=0.2", "fc": CARD, "ec": COLORS["value"]},
            )  # fmt: skip


def _rise(places: int, wide: float) -> float:
    """How high an arc over so many places goes, in inches."""
    return 0.3 + 0.17 * places * wide


def _require_arcs(arrows: Sequence[tuple[int, int, str]], n: int) -> None:
    seen: set[tuple[int, int]] = set()
    for start, end, label in arrows:
        if (start, end) in seen:
            raise ValueError(
                f"there are two arrows from place {start} to {end}, which would lie on one another:"
                f" give one, with both labels."
            )
        seen.add((start, end))
        if not 0 <= start < end < n:
            raise ValueError(
                f"the arrow {label!r} goes from place {start} to {end}, in a sentence of {n} "
                f"words: give places from 0 to {n - 1}, the earlier one first."
            )


def _chip(axes: Axes, word: str, at: tuple[float, float], wide: float, role: str) -> None:
    edge = COLORS.get(role, LINE)
    axes.add_patch(
        FancyBboxPatch(
            (at[0] + 0.04, at[1] + 0.05),
            wide - 0.08,
            _HIGH - 0.1,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=tuple(1 - 0.14 * (1 - level) for level in to_rgb(COLORS.get(role, SOFT))),
            edgecolor=edge,
            linewidth=2 if role else 1,
        )
    )
    axes.text(
        at[0] + wide / 2, at[1] + _HIGH / 2, plain(word), ha="center", va="center",
        color=TEXT_COLORS.get(role, INK),
    )  # fmt: skip


def _require_words(words: Sequence[str]) -> None:
    texts = not isinstance(words, str) and all(isinstance(word, str) for word in words)
    if not texts or not len(words):
        raise ValueError(
            f"words are {words!r}; give a list of at least one text, e.g. text.split()"
        )
