"""The world of a gift story: who has what, which sentences are possible now, and their effect.

Only this module knows the sentences; :mod:`transformer_lib.data.gifts.grammar` draws them and
computes their probabilities.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from typing import Any

RULES = ("give", "give_it", "ask", "swap")
STORY = "<story>"
# All words that are not names, including those of rules to which a grammar gives no chance: a model
# trained without swaps has rows for their words, and can go on to a grammar with swaps.
FRAME = (
    STORY, ".", "?", "has", "at", "first", "gave", "to", "it", "who", "and", "swapped", "all",
    "gifts",
)  # fmt: skip
# Words that a sentence may have or not, each with a chance of its own. They vary its length.
OPTIONAL = ("the", "kindly", "today", "so", "now")
# The number of possible sentences grows with people² and with people × gifts, and the names may
# come from a stranger's file.
MOST_NAMES = 50  # of people, and of gifts
MOST_LETTERS = 50  # of a name

Sentence = tuple[str, ...]
Choose = Callable[..., Any]


class Maybe(str):
    """A word that may be left out of its sentence; one of ``OPTIONAL``."""

    def __repr__(self) -> str:
        return f"[{self}]"


THE, KINDLY, TODAY, SO, NOW = map(Maybe, OPTIONAL)


@dataclass
class World:
    """The state of things at one point of a story.

    Attributes:
        owners: who has which gift: ``{"roses": "mary"}``.
        latest: the gift that was named last: *it*.
    """

    owners: dict[str, str] = field(default_factory=dict)
    latest: str | None = None

    def sentences(self, rule: str, people: Sequence[str], gifts: Sequence[str]) -> list[Sentence]:
        """All sentences that ``rule`` allows now. They are equally probable.

        A word that may be left out is a :class:`Maybe`.

        Raises:
            ValueError: there is no such rule.

        >>> World({"roses": "mary"}, "roses").sentences("give_it", ["mary", "susan"], ["roses"])
        [('mary', [kindly], 'gave', 'it', 'to', 'susan', [today], '.')]
        """
        owned = self.owners.items()
        match rule:
            case "at_first":
                new = [gift for gift in gifts if gift not in self.owners]
                return [
                    (x, "has", THE, gift, "at", "first", ".") for gift, x in product(new, people)
                ]
            case "give":
                return [
                    (x, KINDLY, "gave", THE, gift, "to", y, TODAY, ".")
                    for gift, x in owned
                    for y in people
                    if y != x
                ]
            case "give_it":
                x = self.owners[self.latest]
                return [(x, KINDLY, "gave", "it", "to", y, TODAY, ".") for y in people if y != x]
            case "ask":
                return [(SO, "who", "has", THE, gift, NOW, "?", x, ".") for gift, x in owned]
            case "swap":
                pairs = permutations(people, 2)
                return [
                    (x, "and", y, KINDLY, "swapped", "all", "gifts", TODAY, ".") for x, y in pairs
                ]
        raise ValueError(f"rule is {rule!r}; there are at_first, give, give_it, ask and swap.")

    def follow(self, sentence: Sentence) -> None:
        """Change the world as ``sentence`` says it has changed, its optional words aside."""
        match tuple(word for word in sentence if word not in OPTIONAL):
            case ("who", "has", gift, *_):
                self.latest = gift
            case (x, "has", gift, *_):
                self.owners[gift], self.latest = x, gift
            case (_, "gave", "it", "to", y, _):
                self.owners[self.latest] = y
            case (_, "gave", gift, "to", y, _):
                self.owners[gift], self.latest = y, gift
            case (x, "and", y, *_):
                other = {x: y, y: x}
                self.owners = {gift: other.get(z, z) for gift, z in self.owners.items()}


@cache
def pattern(rule: str) -> Sentence:
    """A sentence of ``rule``, with X, Y and O in place of names.

    >>> pattern("ask")
    ([so], 'who', 'has', [the], 'O', [now], '?', 'X', '.')
    """
    return World({"O": "X"}, "O").sentences(rule, ("X", "Y"), ("O", "P"))[0]


def chooser(numbers: random.Random) -> Choose:
    """``choose(options)`` draws one uniformly, ``choose(options, chances)`` with these chances.

    >>> choose = chooser(random.Random(0))
    >>> choose(["mary", "susan"]), choose(["mary", "susan"], [0.0, 1.0])
    ('susan', 'susan')
    """

    def choose(options: Sequence, chances: Sequence[float] | None = None) -> Any:
        number = numbers.random()  # of all its methods the one that is the same in every version
        if chances is None:
            return options[int(number * len(options))]
        for option, chance in zip(options, chances, strict=True):
            if number < chance:
                return option
            number -= chance
        return options[-1]  # the chances sum to 1, up to rounding

    return choose


def require_names(people: Sequence[str], gifts: Sequence[str]) -> None:
    """Two lists of single words, all different, not too many and not too long."""
    for names, kind in ((people, "people"), (gifts, "gifts")):
        if isinstance(names, str):  # it would be taken for a list of its letters
            raise TypeError(f"{kind} is the text {names!r}; give a list of names.")
        if not isinstance(names, Sequence):
            raise TypeError(f"{kind} is of type {type(names).__name__}; give a list of names.")
        if len(names) > MOST_NAMES:
            raise ValueError(f"there are {len(names)} {kind}; give at most {MOST_NAMES}.")
        for name in names:
            _require_name(name)
    for name, times in Counter((*people, *gifts)).items():
        of_grammar = name in FRAME or name in OPTIONAL
        if of_grammar or times > 1:
            problem = "a word of the grammar itself" if of_grammar else "used twice"
            raise ValueError(
                f"the name {name!r} is {problem}, so texts would be ambiguous; change it."
            )


def _require_name(name) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is of type {type(name).__name__}; a name must be a text.")
    if len(name) > MOST_LETTERS:
        raise ValueError(
            f"a name has {len(name)} characters ({name[:20]!r}...); give at most {MOST_LETTERS}."
        )
    if name.split() != [name] or re.search(r"[\x00-\x1f\x7f-\x9f]", name):
        raise ValueError(
            f"{name!r} is not a name: give one word, without spaces or control characters."
        )
