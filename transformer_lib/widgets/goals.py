"""Goals: what a figure asks the reader to bring about, checked in the page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from transformer_lib.widgets.driving import to_number

OPERATORS = (">=", "<=", ">", "<", "=")
OPERATOR = re.compile(rf"(?<!\S)({'|'.join(OPERATORS)})(?!\S)")


@dataclass(frozen=True)
class Goal:
    """Something to bring about in a figure, and how the figure knows that it has come about.

    Args:
        text: what to do; `*italic*`, `**bold**` and `` `code` `` are allowed.
        when: conditions that must all hold at once, each "fact operator fact" or "fact operator
            number", with one of > >= < <= =. The facts are in the figure's own documentation. Two
            numbers are equal (for =, >= and <=) if they differ by less than 0.005, since figures
            show two decimals; > and < are strict.
        hint: shown on request after five tries, or a minute of trying.

    A goal that is reached stays so; one that holds before anything was done never counts. In a
    kernel, the figure's `reached` says which goals are.

    Raises TypeError for what is not text, ValueError for a condition that cannot be read, by its
    text. Facts that a figure does not have are refused by the figure.

    >>> Goal("Make *gave* long.", when=["length gave >= 2"], hint="Drag its tip.").conditions
    (('length gave', '>=', 2.0),)
    """

    text: str
    when: Sequence[str]
    hint: str = ""
    conditions: tuple[tuple[str, str, str | float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("text", "hint"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} is {getattr(self, name)!r}, but must be a text")
        if not self.text.strip():
            raise ValueError("text is empty: say what to bring about, such as 'Make gave long.'")
        if isinstance(self.when, str) or not all(isinstance(one, str) for one in self.when):
            raise TypeError(
                f"when is {self.when!r}, but must be a list of conditions, "
                "for example ['length gave >= 2']"
            )
        if not self.when:
            raise ValueError("when is empty: without a condition, the goal could not be reached")
        object.__setattr__(self, "conditions", tuple(map(read_condition, self.when)))


def read_condition(text: str) -> tuple[str, str, str | float]:
    """A fact, an operator, and a fact or a number. Blanks within a fact are kept, for tokens.

    Raises ValueError if it is not of this form.

    >>> read_condition("weight gave roses > weight gave gave")
    ('weight gave roses', '>', 'weight gave gave')
    """
    parts = [part.strip() for part in OPERATOR.split(text)]
    if len(parts) != 3:
        raise ValueError(
            f"condition {text!r} has {len(parts) // 2} operators; write a fact, one of "
            f"{' '.join(OPERATORS)} with spaces around it, and a fact or a number"
        )
    left, operator, right = parts
    if not left or not right:
        raise ValueError(f"condition {text!r} has nothing on one side of {operator}")
    if to_number(left) is not None:
        raise ValueError(f"condition {text!r} begins with a number: write the fact first")
    number = to_number(right)
    return left, operator, right if number is None else number
