"""What a reader sets in a figure: each setting once, with its start, its bounds and its meaning.

    class MaskPainter(Widget):
        layers = Setting(2, Number(1, 6, "through how many layers the tracer goes"))
        source = Setting(0, Token("words", "the word that the tracer follows"), link="follow")
        _keys_of_text = {"open": Pair("words", "words", "a cell that may be attended to")}
        _facts = {"empty rows": "that may attend to nothing", "row sum {words}": "of a word"}

From a `Setting` follow the trait, how it is checked, the keyword of the constructor, its key in
links, what JavaScript knows of it (`endsOf` in core/state.js), a fact for goals (if it is a
number, or on and off), and its line in the docstring. `_keys_of_text` has what links set besides,
which the view turns into traits; `_facts` what goals read besides.

A link in a chapter's Markdown sets them: `[two layers](#set:painter;layers=2;follow=roses)`.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any
from urllib.parse import unquote

import traitlets

RESET = "reset"
LINK = "#set:"
NAME = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_NUMBER = re.compile(r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)

Texts = Mapping[str, Any]  # what a widget has in `_text`: lists of texts by name, and others
Sizes = Mapping[str, Any]


def labels(tokens: Sequence[str]) -> list[str]:
    """A name for each token: its text; `#2`, `#3` after it where the same text comes again.

    A name that is the text of a token is left to it, so that no two names are the same.

    >>> labels(["the", "cat", "saw", "the", "dog"])
    ['the', 'cat', 'saw', 'the#2', 'dog']
    >>> labels(["a", "a", "a#2"])
    ['a', 'a#3', 'a#2']
    """
    texts = set(tokens)
    seen: dict[str, int] = {}
    names = []
    for token in tokens:
        count = seen.get(token, 0) + 1
        while count > 1 and f"{token}#{count}" in texts:
            count += 1
        seen[token] = count
        names.append(token if count == 1 else f"{token}#{count}")
    return names


class SettingError(traitlets.TraitError, ValueError):
    """A refused setting; as a TraitError, so that traitlets puts the old value back."""


class Key:
    """What may be set: `read` of a link's text, `fitting` of a trait's value; None: refused.

    `takes` says what there is to choose from. Without `texts`, a figure's own, only what is the
    same for every figure of its kind counts.
    """

    kind = about = ""
    none = ""  # a word that stands for no value at all, such as `all` for top-k
    none_is: Any = None  # what the trait then is; if this is not None, the view sets it
    numeric = True

    @property
    def is_fact(self) -> bool:
        """Whether goals read it without the view: it is a number, or on and off."""
        return self.numeric and self.none_is is None

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> Any:
        raise NotImplementedError

    def fitting(self, value: Any, texts: Texts, sizes: Sizes) -> Any:
        return None

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        if (self.none and text == self.none) or self.read(text, texts, sizes) is not None:
            return None
        return f"it takes {self.takes(texts, sizes)}"

    def described(self, trait: str, sizes: Sizes) -> dict[str, Any]:
        """For JavaScript; a key whose value the view turns into the trait's names no trait."""
        return {"kind": self.kind, "trait": "" if self.none_is is not None else trait}


@dataclass(frozen=True)
class Number(Key):
    """A number from `low` to `high`; None: no bound. `multiple` is what divides a whole number.

    A text as `high` names one of the sizes (`_sizes`), for what is counted from 0: the highest is
    one less than this size.
    """

    low: float | None = None
    high: float | str | None = None
    about: str = ""
    whole: bool = True
    none: str = ""
    none_is: Any = None
    multiple: int = 1
    kind = "number"

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> float | None:
        value = to_number(text)
        whole = value is not None and self.whole and value.is_integer()
        return self._inside(int(value) if whole else value, sizes)

    def fitting(self, value: Any, texts: Texts | None, sizes: Sizes) -> float | None:
        apart = self.none_is is not None and value == self.none_is
        return value if apart else self._inside(value, sizes)

    def _inside(self, value: Any, sizes: Sizes) -> float | None:
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return None
        value, high = (int if self.whole else float)(value), self._high(sizes)
        outside = (self.low is not None and value < self.low) or (high is not None and value > high)
        odd = not math.isfinite(value) or (self.whole and value % self.multiple)
        return None if outside or odd else value

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        kind = f"multiple of {self.multiple}" if self.multiple > 1 else "whole number"
        low, high = self.low, self._high(sizes)
        ends = [f"at least {low:g}"] if low is not None else []
        ends += [f"at most {high:.10g}"] if high is not None else []
        span = (
            f" from {low:g} to {high:.10g}" if len(ends) > 1 else f" of {ends[0]}" if ends else ""
        )
        also = f", or {self.none} ({self.none_is})" if self.none else ""
        return f"a {kind if self.whole else 'number'}{span}{also}"

    def described(self, trait: str, sizes: Sizes) -> dict[str, Any]:
        multiple = self.multiple if self.whole else 0
        more = {"low": self.low, "high": self._high(sizes), "multiple": multiple, "none": self.none}
        return super().described(trait, sizes) | more

    def _high(self, sizes: Sizes) -> float | None:
        if not isinstance(self.high, str):
            return self.high
        return sizes[self.high] - 1 if self.high in sizes else None


@dataclass(frozen=True)
class Flag(Key):
    """`on` or `off`."""

    about: str = ""
    kind = "flag"

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> bool | None:
        return {"on": True, "off": False}.get(text)

    def fitting(self, value: Any, texts: Texts, sizes: Sizes) -> bool | None:
        return value if isinstance(value, bool) else None

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        return "on or off"


@dataclass(frozen=True)
class Option(Key):
    """One of a few words, by what each stands for; a list of words that stand for themselves."""

    values: Mapping[str, Any] | Sequence[str]
    about: str = ""
    kind = "option"

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            object.__setattr__(self, "values", {word: word for word in self.values})

    @property
    def numeric(self) -> bool:
        return all(isinstance(value, Real) for value in self.values.values())

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> Any:
        return self.values.get(text)

    def fitting(self, value: Any, texts: Texts, sizes: Sizes) -> Any:
        return next((one for one in self.values.values() if one == value), None)

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        return _among(list(self.values))

    def described(self, trait: str, sizes: Sizes) -> dict[str, Any]:
        return super().described(trait, sizes) | {"values": dict(self.values)}


@dataclass(frozen=True)
class Token(Key):
    """One of a figure's own texts, by its text (see `labels`) or its position, counted from 0.

    `of` is the list's name in the widget's `_text`; those before position `first` are refused.
    Which they are is not known before there is a widget.
    """

    of: str
    about: str = ""
    first: int = 0
    kind = "token"

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> int | None:
        if texts is None or not text:
            return 0 if text else None
        names = labels(texts[self.of])
        if text in names:
            return self.fitting(names.index(text), texts, sizes)
        return self.fitting(int(text), texts, sizes) if re.fullmatch("[0-9]+", text) else None

    def fitting(self, value: Any, texts: Texts, sizes: Sizes) -> int | None:
        if isinstance(value, bool) or not isinstance(value, Integral):
            return None
        return int(value) if self.first <= value < len(texts[self.of]) else None

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        if texts is None:
            return f"one of the {self.of}"
        last = len(texts[self.of]) - 1
        return f"{_among(labels(texts[self.of])[self.first :])}; or {self.first} to {last}"

    def described(self, trait: str, sizes: Sizes) -> dict[str, Any]:
        return super().described(trait, sizes) | {"of": self.of, "first": self.first}


@dataclass(frozen=True)
class Pair(Key):
    """A cell: a row's text and a column's, with a comma between them, each as `Token` takes it."""

    rows: str
    columns: str
    about: str = ""
    kind = "pair"
    numeric = False

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> list[int] | None:
        for at in (at for at, sign in enumerate(text) if sign == ","):
            parts = self._sides(text[:at], text[at + 1 :], texts, sizes)
            if None not in parts:
                return parts
        return None

    def fitting(self, value: Any, texts: Texts, sizes: Sizes) -> list[int] | None:
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
            return None
        parts = self._sides(*value, texts, sizes)
        return None if None in parts else parts

    def _sides(self, row: Any, column: Any, *known: Any) -> list[int | None]:
        sides = (Token(self.rows), row), (Token(self.columns), column)
        return [
            side.read(one, *known) if isinstance(one, str) else side.fitting(one, *known)
            for side, one in sides
        ]

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        known = "" if texts is None else f", {_among(labels(texts[self.rows]))}"
        return f"a row and a column with a comma between them{known}"

    def described(self, trait: str, sizes: Sizes) -> dict[str, Any]:
        return super().described(trait, sizes) | {"rows": self.rows, "columns": self.columns}


@dataclass(frozen=True)
class Numbers(Key):
    """`count` numbers with commas between them, such as a point of the plane."""

    count: int
    about: str = ""
    whole: bool = False
    low: float | None = None
    kind = "numbers"
    numeric = False

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> list[float] | None:
        parts = [Number(self.low, whole=self.whole).read(x, None, sizes) for x in text.split(",")]
        return self.fitting(parts, texts, sizes)

    def fitting(self, value: Any, texts: Texts | None, sizes: Sizes) -> list[float] | None:
        if not isinstance(value, Sequence) or len(value) != self.count:
            return None
        parts = [Number(self.low, whole=self.whole).fitting(one, texts, sizes) for one in value]
        return None if None in parts else parts

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        kind = "whole numbers" if self.whole else "numbers"
        least = "" if self.low is None else f" of at least {self.low:g}"
        return f"{self.count} {kind}{least} with commas between them"

    def described(self, trait: str, sizes: Sizes) -> dict[str, Any]:
        more = {"count": self.count, "whole": self.whole, "low": self.low}
        return super().described(trait, sizes) | more


@dataclass(frozen=True)
class Action(Key):
    """A key without a value, such as a button's."""

    about: str = ""
    kind = "action"

    def read(self, text: str, texts: Texts | None, sizes: Sizes) -> bool | None:
        return None if text else True

    def takes(self, texts: Texts | None, sizes: Sizes) -> str:
        return "no value"


class Setting(traitlets.TraitType):
    """What the reader sets, as a trait: its value at first, and what it may be.

    `link` is its key in links: by default its own name; "": links do not set it. One whose key has
    `none` may be None, unless `none_is` says otherwise. `beyond`: the view, not a link, may also
    set one more than the largest.
    """

    def __init__(
        self, start: Any, key: Key, link: str | None = None, *, beyond: bool = False
    ) -> None:
        super().__init__(start, allow_none=bool(key.none) and key.none_is is None)
        self.key, self.link, self.beyond = key, link, beyond
        self.tag(sync=True)

    def key_in_links(self, name: str) -> str:
        return name if self.link is None else self.link

    def _cross_validate(self, obj: Any, value: Any) -> Any:
        # Not in `validate`: what the bounds hang on is there at the end of the construction.
        word = isinstance(value, str)  # as links have it
        if word and self.key.none and value == self.key.none:
            value = self.key.none_is
        if value is not None or not self.allow_none:
            texts, sizes = obj._texts(), obj._sizes()
            plain = value.tolist() if hasattr(value, "tolist") else value
            fitting = self.key.fitting(plain, texts, sizes)
            if fitting is None and word and not isinstance(self.key, Number):
                fitting = self.key.read(value, texts, sizes)
            if fitting is None and self.beyond and isinstance(value, int):
                fitting = value if self.key.fitting(value - 1, texts, sizes) is not None else None
            if fitting is None:
                takes, about = self.key.takes(texts, sizes), self.key.about
                also = f" ({about})" if about else ""
                raise SettingError(f"{self.name} is {value!r:.60}, but must be {takes}{also}")
            value = fitting
        return super()._cross_validate(obj, value)


def read_link(target: str) -> tuple[str, list[tuple[str, str]]]:
    """The figure's name, and the keys with their values, of a link that sets a figure.

    Raises ValueError if it is not of the form `#set:name;key=value;key=value`.

    >>> read_link("#set:painter;reset;layers=2;follow=two%20words")
    ('painter', [('reset', ''), ('layers', '2'), ('follow', 'two words')])
    """
    name, *settings = target.removeprefix(LINK).split(";")
    if not target.startswith(LINK) or not NAME.fullmatch(name):
        raise ValueError(f"{target}: write #set:name;key=value;key=value")
    if not settings or not all(setting.split("=")[0] for setting in settings):
        raise ValueError(f"{target}: it sets nothing; write #set:{name};key=value, or ;{RESET}")
    pairs = [setting.partition("=") for setting in settings]
    return name, [(unquote(key), unquote(value)) for key, _, value in pairs]


def refusal(
    keys: Mapping[str, Key],
    key: str,
    value: str = "",
    *,
    texts: Texts | None = None,
    sizes: Sizes | None = None,
) -> str | None:
    """Why a figure with these keys refuses a setting; None if it takes it.

    Without `texts` (the figure's own), only what is the same for every figure of this kind counts.

    >>> refusal({"layers": Number(1, 6)}, "layers", "7")
    'layers=7: it takes a whole number from 1 to 6'
    """
    if key == RESET:
        return f"{RESET} takes no value" if value else None
    if key not in keys:
        return f"there is no key {key!r}; there are {', '.join([*keys, RESET])}"
    cause = keys[key].refusal(value, texts, sizes or {})
    return None if cause is None else f"{key}={value}: {cause}"


def fact_problem(templates: Iterable[str], fact: str, texts: Texts) -> str | None:
    """Why there is no such fact; None if there is.

    A template holds `{tokens}` for each of a figure's texts of this name, `{1..6}` for a number.

    >>> fact_problem(["length {tokens}"], "length gave", {"tokens": ["mary", "gave"]})
    >>> fact_problem(["length {tokens}"], "length give", {"tokens": ["mary", "gave"]})
    "there is no fact 'length give'; there are: length {tokens} (did you mean 'length gave'?)"
    """
    if any(_pattern(template, texts).fullmatch(fact) for template in templates):
        return None
    few = [name for template in templates for name in _some(template, texts)]
    close = difflib.get_close_matches(fact, few, 1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"there is no fact {fact!r}; there are: {', '.join(templates) or 'none'}{hint}"


def _values(place: str, texts: Texts) -> list[str]:
    low, dots, high = place.partition("..")
    if dots:
        return [str(number) for number in range(int(low), int(high) + 1)]
    return labels(texts[place])


def _pattern(template: str, texts: Texts) -> re.Pattern[str]:
    parts = re.split(r"\{([^}]*)\}", template)
    for at, part in enumerate(parts):
        choices = [part] if at % 2 == 0 else _values(part, texts)
        parts[at] = f"(?:{'|'.join(map(re.escape, choices))})"
    return re.compile("".join(parts), re.DOTALL)


def _some(template: str, texts: Texts, most: int = 2000) -> list[str]:
    """The facts of a template, the first few where there are very many."""
    names = [""]
    for at, part in enumerate(re.split(r"\{([^}]*)\}", template)):
        choices = [part] if at % 2 == 0 else _values(part, texts)
        names = [name + choice for name in names for choice in choices][:most]
    return names


def to_number(text: str) -> float | None:
    """The number that a text writes, with a true minus sign or a hyphen; None if it writes none.

    >>> to_number("−1.5"), to_number("one")
    (-1.5, None)
    """
    return float(text.replace("−", "-")) if _NUMBER.fullmatch(text) else None


def _among(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(name[:40] for name in names[:most])
    return f"one of: {shown}{', …' if len(names) > most else ''}"
