"""A question whose answer shows only once the reader has committed to a guess."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, SupportsFloat, SupportsIndex

import traitlets
from IPython.display import display

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.inputs import to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

MOST_OPTIONS = 8
MOST_LABELS = 16  # of rows, and of columns: each cell must be large enough for a finger

# What Markdown would read as more than a text's own *italic*, **bold** and `code`.
MORE_THAN_MARKUP = re.compile(r"(`[^`]*`)|([<>\[\]_$#|~])")

Cell = tuple[str | SupportsIndex, str | SupportsIndex]


class Predict(Widget):
    """A question to guess at before the result is shown.

    The reader chooses, then presses *That is my guess*. The guess locks; whether it is right, one
    sentence about it, and `then` are shown. On the page, and in JupyterLab as `make lab` starts it,
    the cells tagged `reveal` that follow are hidden until then. In all texts `*italic*`, `**bold**`
    and `` `code` `` are allowed.

    Args:
        question: what is asked.
        options: two to eight answers to choose from, each with the sentence that is shown when it
            is chosen; for a wrong one, it names the thought behind it.
        right: the option that is right.
        then: a sentence or two for everybody, after the guess.

    `Predict.number` asks for a number, `Predict.cell` for a cell of a grid. `widget.guess` is None
    before the guess (and when the reader has looked without guessing).

    Raises ValueError if `right` is not an option, if there are too few or too many of them, or if a
    text is empty; TypeError if a text is none, or the options are not a mapping.

    >>> question = Predict(
    ...     "Whom does *gave* score highest?",
    ...     {"mary": "She stands next to it, but ...", "gave": "It is its own nearest neighbor."},
    ...     right="gave",
    ... )
    >>> question
    Predict(options=2)
    >>> question.guess
    """

    _esm = bundle("predict")
    _css = stylesheet("predict")
    _text = traitlets.Bytes().tag(sync=True)
    # [] before the guess; then [option], [number] or [row, column], counted from 0.
    _guess = traitlets.List(traitlets.Float()).tag(sync=True)
    _shown = traitlets.Bool(False).tag(sync=True)  # the reader has looked without guessing

    def __init__(
        self, question: str, options: Mapping[str, str], *, right: str, then: str = ""
    ) -> None:
        if not isinstance(options, Mapping):
            raise TypeError(
                f"options is {type(options).__name__}, but must map each option to the sentence "
                'that is shown when it is chosen: {"mary": "She ...", "gave": "It ..."}'
            )
        if not 2 <= len(options) <= MOST_OPTIONS:
            raise ValueError(
                f"{len(options)} options, but a guess is among 2 to {MOST_OPTIONS}; for more, ask "
                "for a number (Predict.number) or a cell (Predict.cell)"
            )
        for option, sentence in options.items():
            _require_text(option, f"the option {option!r}")
            _require_text(sentence, f"the sentence of the option {option!r}")
        if right not in options:
            raise ValueError(
                f"right is {right!r}, which is not an option; the options are {list(options)}"
            )
        sentences = [{"text": option, "sentence": said} for option, said in options.items()]
        self._start("options", question, then, options=sentences, right=list(options).index(right))

    @classmethod
    def number(
        cls,
        question: str,
        *,
        right: SupportsFloat,
        within: SupportsFloat = 0.0,
        unit: str = "",
        wrong: Sequence[tuple[float, float, str]] = (),
        otherwise: str,
        then: str = "",
    ) -> "Predict":
        """Ask for a number; what differs from `right` by at most `within` is right.

        Args:
            question: what is asked.
            right: the number, for instance computed in the cell before.
            within: how far off a guess may be.
            unit: what is counted, shown after the field, such as "%".
            wrong: (lowest, highest, sentence), for wrong guesses with one thought behind them; an
                end may be infinite.
            otherwise: the sentence for all other wrong guesses.
            then: a sentence or two for everybody.

        Raises ValueError if a number is not finite, `within` is negative, a range is empty, holds
        the right number or overlaps another one, or a text is empty.

        >>> Predict.number("What is 6 times 7?", right=42, otherwise="Count again.")
        Predict(kind=number)
        """
        right, within = _number(right, "right"), _number(within, "within")
        if within < 0:
            raise ValueError(f"within is {within}; it is a distance, 0 or more")
        ranges = [_range(entry, right, f"wrong[{i}]") for i, entry in enumerate(wrong)]
        ordered = sorted(ranges, key=lambda entry: entry[:2])
        for one, other in pairwise(ordered):
            if other[0] < one[1]:
                raise ValueError(
                    f"two ranges of wrong overlap: {one[0]} to {one[1]}, and {other[0]} to "
                    f"{other[1]}; a guess in both would have two sentences"
                )
        _require_text(otherwise, "otherwise")
        widget = cls.__new__(cls)
        widget._start(
            "number",
            question,
            then,
            right=right,
            within=within,
            unit=_require_text(unit, "unit", empty=True),
            # JSON has no infinity: an open end is null.
            ranges=[[*(x if math.isfinite(x) else None for x in r[:2]), r[2]] for r in ranges],
            otherwise=otherwise,
        )
        return widget

    @classmethod
    def cell(
        cls,
        question: str,
        *,
        rows: Sequence[str],
        columns: Sequence[str],
        right: Cell,
        wrong: Mapping[Cell, str] | None = None,
        otherwise: str,
        then: str = "",
        titles: Sequence[str] = ("queries", "keys"),
    ) -> "Predict":
        """Ask for a cell of a grid, (row, column), each by its label or by its place from 0.

        Args:
            question: what is asked.
            rows, columns: the labels, at most 16 each.
            right: the cell that is right.
            wrong: sentences for single wrong cells.
            otherwise: the sentence for all other wrong cells.
            then: a sentence or two for everybody.
            titles: what the rows and the columns are; two empty texts for nothing.

        Raises ValueError if a cell is not in the grid, a label that names one is there twice, the
        right cell is among the wrong ones, there are too many labels, or a text is empty.

        >>> words = ["mary", "gave"]
        >>> Predict.cell(
        ...     "Which cell is the largest?", rows=words, columns=words, right=("gave", "mary"),
        ...     otherwise="Look at the two arrows.",
        ... )
        Predict(rows=2, columns=2)
        """
        rows = _labels(rows, "rows")
        columns = _labels(columns, "columns")
        place = _place(right, rows, columns, "right")
        sentences: dict[tuple[int, int], str] = {}
        for cell, sentence in (wrong or {}).items():
            at = _place(cell, rows, columns, "wrong")
            if at == place:
                raise ValueError(f"wrong holds {cell!r}, but this is the right cell")
            if at in sentences:
                raise ValueError(f"wrong holds the cell {cell!r} twice")
            sentences[at] = _require_text(sentence, f"the sentence of the cell {cell!r}")
        _require_text(otherwise, "otherwise")
        widget = cls.__new__(cls)
        widget._start(
            "cell",
            question,
            then,
            rows=rows,
            columns=columns,
            titles=to_tokens(titles, 2, "titles", "axes"),
            right=place,
            wrong=[[*at, sentence] for at, sentence in sentences.items()],
            otherwise=otherwise,
        )
        return widget

    def _start(self, kind: str, question: str, then: str, **parts: object) -> None:
        text = {
            "kind": kind,
            "question": _require_text(question, "question"),
            "then": _require_text(then, "then", empty=True),
            **parts,
        }
        self._parts = text
        super().__init__(_text=json_bytes(text))

    @traitlets.validate("_guess")
    def _check_guess(self, proposal: dict) -> list[float]:
        guess, text = list(proposal["value"]), self._parts
        sizes = {
            "options": [len(text.get("options", ()))],
            "number": [None],
            "cell": [len(text.get("rows", ())), len(text.get("columns", ()))],
        }[text["kind"]]
        fits = not guess or (
            len(guess) == len(sizes)
            and all(
                math.isfinite(at) and (size is None or (at == int(at) and 0 <= at < size))
                for at, size in zip(guess, sizes, strict=True)
            )
        )
        if not fits:
            raise ValueError(f"{guess} is not a guess at this question")
        return guess

    @property
    def guess(self) -> str | float | tuple[str, str] | None:
        """What the reader has guessed: an option, a number or (row, column); None before."""
        if not self._guess:
            return None
        text = self._parts
        if text["kind"] == "number":
            return self._guess[0]
        places = [int(at) for at in self._guess]
        if text["kind"] == "options":
            return text["options"][places[0]]["text"]
        return text["rows"][places[0]], text["columns"][places[1]]

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict, dict] | None:
        """Beside the view, the question as Markdown: for a notebook that is looked at, not run."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is not None:
            bundle[0]["text/markdown"] = self._as_markdown()
        return bundle

    if hasattr(Widget, "_ipython_display_"):  # ipywidgets 7, which asks for no bundle: Colab's

        def _ipython_display_(self, **options: Any) -> None:
            if (bundle := self._repr_mimebundle_(**options)) is not None:
                display(bundle[0], metadata=bundle[1], raw=True)

    def _as_markdown(self) -> str:
        """The question and what there is to choose from, without the answer.

        >>> asked = Predict("Is 2 < *x*?", {"yes": "It is 3.", "no": "It is 3."}, right="yes")
        >>> print(asked._as_markdown())
        **Question.** Is 2 \\< *x*?
        <BLANKLINE>
        - yes
        - no
        """
        text = self._parts
        asked = f"**Question.** {_markdown(text['question'])}"
        if text["kind"] == "number":
            unit = f" {_markdown(text['unit'])}" if text["unit"] else ""
            return f"{asked}\n\n- a number: ……{unit}"
        if text["kind"] == "options":
            listed = [f"- {_markdown(option['text'])}" for option in text["options"]]
            return "\n".join([asked, "", *listed])
        corner = " / ".join(_markdown(title) for title in text["titles"] if title)
        lines = [[corner, *map(_markdown, text["columns"])], ["---"] * (len(text["columns"]) + 1)]
        lines += [[_markdown(row), *("☐" for _ in text["columns"])] for row in text["rows"]]
        return "\n".join([asked, "", *(f"| {' | '.join(line)} |" for line in lines)])

    def _sizes(self) -> dict[str, object]:
        text = self._parts
        if text["kind"] == "options":
            return {"options": len(text["options"])}
        if text["kind"] == "number":
            return {"kind": "number"}
        return {"rows": len(text["rows"]), "columns": len(text["columns"])}


def _markdown(text: str) -> str:
    """A text with markup as one line of Markdown.

    >>> print(_markdown("the *sign* <story>, in `W_Q`"))
    the *sign* \\<story\\>, in `W_Q`
    """
    line = " ".join(text.split())
    return MORE_THAN_MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", line)


def _require_text(text: object, name: str, *, empty: bool = False) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} is {type(text).__name__}, but must be text")
    if not empty and not text.strip():
        raise ValueError(f"{name} is empty: write a sentence")
    return text


def _number(value: object, name: str) -> float:
    """A finite number; a tensor of one element is one."""
    if isinstance(value, str | bytes) or not (
        isinstance(value, Real) or hasattr(value, "__float__")
    ):
        raise TypeError(f"{name} is {type(value).__name__}, but must be a number")
    if not math.isfinite(number := float(value)):
        raise ValueError(f"{name} is {number}, but nobody can guess that: give a finite number")
    return number


def _range(entry: object, right: float, name: str) -> tuple[float, float, str]:
    if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) != 3:
        raise TypeError(f"{name} is {entry!r}, but must be (lowest, highest, sentence)")
    low, high, sentence = entry
    for end in (low, high):
        if not isinstance(end, Real) or math.isnan(end):
            raise TypeError(f"{name} goes from {low!r} to {high!r}, but its ends must be numbers")
    if not low <= high:
        raise ValueError(f"{name} goes from {low} to {high}: the lower end comes first")
    if low <= right <= high:
        raise ValueError(
            f"{name} goes from {low} to {high}, but {right} in it is right: split the range"
        )
    return float(low), float(high), _require_text(sentence, f"the sentence of {name}")


def _labels(labels: Sequence[str], name: str) -> list[str]:
    count = len(labels) if not isinstance(labels, str) else 0
    labels = to_tokens(labels, count, name, "labels")
    if not 1 <= len(labels) <= MOST_LABELS:
        raise ValueError(
            f"{len(labels)} {name}, but a cell is guessed among 1 to {MOST_LABELS} of them: "
            "ask about a part"
        )
    return labels


def _place(cell: object, rows: list[str], columns: list[str], name: str) -> tuple[int, int]:
    """(row, column) from 0, of a cell given by labels or places."""
    if not isinstance(cell, Sequence) or isinstance(cell, str) or len(cell) != 2:
        raise TypeError(f'{name} is {cell!r}, but a cell is (row, column), such as ("susan", 0)')
    return tuple(
        _index(at, labels, f"{name} {tuple(cell)!r}: the {axis}")
        for at, labels, axis in zip(cell, (rows, columns), ("row", "column"), strict=True)
    )


def _index(at: object, labels: list[str], name: str) -> int:
    if isinstance(at, str):
        if labels.count(at) > 1:
            raise ValueError(f"{name} {at!r} is there {labels.count(at)} times: give its place")
        if at not in labels:
            raise ValueError(f"{name} {at!r} is not one of {labels}")
        return labels.index(at)
    if not hasattr(at, "__index__") or isinstance(at, bool):
        raise TypeError(f"{name} is {type(at).__name__}, but must be a label or a place from 0")
    if not 0 <= at.__index__() < len(labels):
        raise ValueError(f"{name} is {at}, but must be in 0 .. {len(labels) - 1}")
    return at.__index__()
