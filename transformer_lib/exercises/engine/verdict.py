"""The verdict on an answer: right, wrong and why, or not attempted yet."""

import html
import re
from dataclasses import dataclass

LONGEST = 1_500  # characters of a diagnosis; the longest sentence of an exercise has about 250

# The symbol carries the meaning; the class only lets the page's own style color it,
# so that the verdict reads the same in light, in dark and without any style at all.
_LOOK = {True: ("✓", "right"), False: ("✗", "wrong"), None: ("○", "open")}


@dataclass(frozen=True, repr=False)
class Verdict:
    """The outcome of a check, with one sentence that says why.

    `passed` is True, False, or None for an exercise nobody has tried yet; only True counts as
    true in a condition. `diagnosis` is plain text in which `backticks` mark code and *stars* a word
    of the example. An answer's own text can reach it, so it is cut, and what cannot be printed
    (control characters, half of a surrogate pair) is written as an escape.

    >>> Verdict(False, "The softmax runs over the queries, not the keys.")
    ✗ The softmax runs over the queries, not the keys.
    >>> bool(NOT_ATTEMPTED), NOT_ATTEMPTED
    (False, ○ not attempted yet)
    """

    passed: bool | None
    diagnosis: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagnosis", _printable(self.diagnosis))

    def __bool__(self) -> bool:
        return self.passed is True

    def __repr__(self) -> str:
        return f"{_LOOK[self.passed][0]} {self.diagnosis}"

    def _repr_html_(self) -> str:
        symbol, name = _LOOK[self.passed]
        # Escaped before the backticks become tags: an answer's own text can reach the diagnosis.
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(self.diagnosis))
        text = re.sub(r"(?<![\w*])\*(\w+)\*(?![\w*])", r"<em>\1</em>", text)
        return (
            f'<p class="afm-verdict afm-verdict-{name}">'
            f'<strong role="img" aria-label="{name}">{symbol}</strong> {text}</p>'
        )


def _printable(text: str) -> str:
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    escaped = (c.encode("unicode_escape").decode("ascii") for c in text)
    return "".join(c if c.isprintable() else e for c, e in zip(text, escaped, strict=True))


NOT_ATTEMPTED = Verdict(None, "not attempted yet")
