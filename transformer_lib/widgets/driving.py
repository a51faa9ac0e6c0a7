"""How prose and goals reach into a figure: keys that a link sets, facts that a goal reads.

A widget declares both in its class, once; JavaScript reads the declaration (core/state.js):

    class MaskPainter(Widget):
        _keys_of_text = {"layers": Number(1, 6, trait="layers"), "follow": Token("words", "source")}
        _facts = ("differ", "reach {words} {words} {1..6}")

A link in a chapter's Markdown sets them: `[two layers](#set:painter;layers=2;follow=roses)`.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

RESET = "reset"
LINK = "#set:"
NAME = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_NUMBER = re.compile(r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

Texts = Mapping[str, Any]  # what a widget has in `_text`: lists of texts by name, and others
Sizes = Mapping[str, Any]


def labels(tokens: Sequence[str]) -> list[str]:
    """A name for each token: its text; `#2`, `#3` after it where the same text comes again.

    >>> labels(["the", "cat", "saw", "the", "dog"])
    ['the', 'cat', 'saw', 'the#2', 'dog']
    """
    seen: dict[str, int] = {}
    names = []
    for token in tokens:
        seen[token] = seen.get(token, 0) + 1
        names.append(token if seen[token] == 1 else f"{token}#{seen[token]}")
    return names


@dataclass(frozen=True)
class Number:
    """A number from `low` to `high`; None: no bound. A text as `high` names one of the sizes.

    `none` is a word that stands for no number at all (`all` for top-k), `multiple` what divides it.
    """

    low: float | None = None
    high: float | str | None = None
    trait: str = ""
    whole: bool = True
    none: str = ""
    multiple: int = 1

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        if self.none and text == self.none:
            return None
        also = f", or {self.none}" if self.none else ""
        value = to_number(text)
        if value is None or (self.whole and value % self.multiple):
            kind = f"multiple of {self.multiple}" if self.multiple > 1 else "whole number"
            return f"it takes a {kind if self.whole else 'number'}{also}"
        high = self._high(sizes)
        if (self.low is not None and value < self.low) or (high is not None and value > high):
            return f"it takes {_range(self.low, high)}{also}"
        return None

    def described(self, sizes: Sizes) -> dict[str, Any]:
        return {
            "kind": "number",
            "trait": self.trait,
            "low": self.low,
            "high": self._high(sizes),
            "multiple": self.multiple if self.whole else 0,
            "none": self.none,
        }

    def _high(self, sizes: Sizes) -> float | None:
        if not isinstance(self.high, str):
            return self.high
        return sizes[self.high] - 1 if self.high in sizes else None


@dataclass(frozen=True)
class Flag:
    """`on` or `off`."""

    trait: str = ""

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        return None if text in ("on", "off") else "it takes on or off"

    def described(self, sizes: Sizes) -> dict[str, Any]:
        return {"kind": "flag", "trait": self.trait}


@dataclass(frozen=True)
class Option:
    """One of a few words; JavaScript gets what the word stands for."""

    values: Mapping[str, Any]
    trait: str = ""

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        return None if text in self.values else f"it takes {_among(list(self.values))}"

    def described(self, sizes: Sizes) -> dict[str, Any]:
        return {"kind": "option", "trait": self.trait, "values": dict(self.values)}


@dataclass(frozen=True)
class Token:
    """One of a figure's own texts, by its text (see `labels`) or its position, counted from 0.

    `of` is the list's name in the widget's `_text`; those before position `first` are refused.
    Which they are is not known before there is a widget.
    """

    of: str
    trait: str = ""
    first: int = 0

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        if not text:
            return f"it takes one of the {self.of}"
        if texts is None:
            return None
        names = labels(texts[self.of])
        places = [str(place) for place in range(self.first, len(names))]
        if text in names[self.first :] or (text not in names and text in places):
            return None
        return f"it takes {_among(names[self.first :])}"

    def described(self, sizes: Sizes) -> dict[str, Any]:
        return {"kind": "token", "trait": self.trait, "of": self.of, "first": self.first}


@dataclass(frozen=True)
class Pair:
    """A cell: a row's text and a column's, with a comma between them, each as `Token` takes it."""

    rows: str
    columns: str
    trait: str = ""

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        cuts = [at for at, sign in enumerate(text) if sign == ","]
        sides = Token(self.rows), Token(self.columns)
        for at in cuts:
            parts = text[:at], text[at + 1 :]
            if not any(s.refusal(p, texts, sizes) for s, p in zip(sides, parts, strict=True)):
                return None
        known = "" if texts is None else f", {_among(labels(texts[self.rows]))}"
        return f"it takes a row and a column with a comma between them{known}"

    def described(self, sizes: Sizes) -> dict[str, Any]:
        return {"kind": "pair", "trait": self.trait, "rows": self.rows, "columns": self.columns}


@dataclass(frozen=True)
class Numbers:
    """`count` numbers with commas between them, such as a point of the plane."""

    count: int
    trait: str = ""
    whole: bool = False
    low: float | None = None

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        parts = [to_number(part) for part in text.split(",")]
        fits = len(parts) == self.count and None not in parts
        if fits and self.whole:
            fits = all(part == int(part) for part in parts)
        if fits and self.low is not None:
            fits = all(part >= self.low for part in parts)
        kind = "whole numbers" if self.whole else "numbers"
        least = "" if self.low is None else f" of at least {self.low:g}"
        return None if fits else f"it takes {self.count} {kind}{least} with commas between them"

    def described(self, sizes: Sizes) -> dict[str, Any]:
        more = {"count": self.count, "whole": self.whole, "low": self.low}
        return {"kind": "numbers", "trait": self.trait, **more}


@dataclass(frozen=True)
class Action:
    """A key without a value, such as a button's."""

    trait: str = ""

    def refusal(self, text: str, texts: Texts | None, sizes: Sizes) -> str | None:
        return "it takes no value" if text else None

    def described(self, sizes: Sizes) -> dict[str, Any]:
        return {"kind": "action", "trait": ""}


Key = Number | Flag | Option | Token | Pair | Numbers | Action


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
    'layers=7: it takes a number from 1 to 6'
    """
    if key == RESET:
        return f"{RESET} takes no value" if value else None
    if key not in keys:
        return f"there is no key {key!r}; there are {', '.join([*keys, RESET])}"
    cause = keys[key].refusal(value, texts, sizes or {})
    return None if cause is None else f"{key}={value}: {cause}"


def fact_problem(templates: Sequence[str], fact: str, texts: Texts) -> str | None:
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


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"a number of at least {low:g}"
    return f"a number of at most {high:g}" if low is None else f"a number from {low:g} to {high:g}"


def _among(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(name[:40] for name in names[:most])
    return f"one of: {shown}{', …' if len(names) > most else ''}"
