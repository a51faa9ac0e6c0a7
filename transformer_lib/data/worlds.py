"""The world of a ``gifts`` story: who has what, what may be said next, and what follows from it.

This is the only place that knows the sentences; :mod:`transformer_lib.data.gifts` draws them and
computes their probabilities.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

RULES = ("give", "give_it", "ask", "swap")
STORY = "<story>"
# All words that are no names. Also those of rules that a grammar gives no chance: a model trained
# without swaps has rows for their words, and can go on to a grammar with them.
FRAME = (
    STORY, ".", "?", "has", "at", "first", "gave", "to", "it", "who", "and", "swapped", "all",
    "gifts",
)  # fmt: skip

Sentence = tuple[str, ...]
Choose = Callable[..., Any]


@dataclass
class World:
    """What has happened so far in a story.

    Attributes:
        owners: who has which gift: ``{"roses": "mary"}``.
        latest: the gift that was named last: *it*.
    """

    owners: dict[str, str] = field(default_factory=dict)
    latest: str | None = None

    def sentences(self, rule: str, people: Sequence[str], gifts: Sequence[str]) -> list[Sentence]:
        """All sentences that ``rule`` allows now. They are equally probable.

        Raises:
            ValueError: there is no such rule.

        >>> World({"roses": "mary"}, "roses").sentences("give_it", ["mary", "susan"], ["roses"])
        [('mary', 'gave', 'it', 'to', 'susan', '.')]
        """
        owned = self.owners.items()
        match rule:
            case "at_first":
                new = [gift for gift in gifts if gift not in self.owners]
                return [(x, "has", gift, "at", "first", ".") for gift, x in product(new, people)]
            case "give":
                return [
                    (x, "gave", gift, "to", y, ".") for gift, x in owned for y in people if y != x
                ]
            case "give_it":
                x = self.owners[self.latest]
                return [(x, "gave", "it", "to", y, ".") for y in people if y != x]
            case "ask":
                return [("who", "has", gift, "?", x, ".") for gift, x in owned]
            case "swap":
                pairs = permutations(people, 2)
                return [(x, "and", y, "swapped", "all", "gifts", ".") for x, y in pairs]
        raise ValueError(f"rule is {rule!r}; there are at_first, give, give_it, ask and swap.")

    def follow(self, sentence: Sentence) -> None:
        """Change the world as ``sentence`` says."""
        match sentence:
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
        return options[-1]  # the chances sum to 1 but for rounding

    return choose
