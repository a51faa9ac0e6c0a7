"""What makes no grammar of gifts, and what is no story of one: the messages."""

import math
from collections.abc import Iterable

from transformer_lib import checks
from transformer_lib.data.worlds import FRAME, RULES, STORY


def no_story(words: list[str], position: int, allowed: list[str]) -> ValueError:
    """The error for a text whose word at ``position`` is none of those ``allowed`` there."""
    before = " ".join(words[max(0, position - 6) : position])
    wanted = "one of " + ", ".join(sorted(allowed)) if len(allowed) > 1 else repr(allowed[0])
    if position > 0 and allowed == [STORY]:
        wanted = "the end: a story of this grammar is complete here (give one story at a time)"
    return ValueError(
        f"this is no story of this grammar: word {position} (from 0) is {words[position]!r}"
        f"{f', after {before!r}' if before else ''}, where the grammar allows {wanted}."
    )


def require_grammar(grammar) -> None:
    """Sizes, names and chances fit together."""
    for name in ("n_gifts", "n_sentences"):
        checks.require_count(getattr(grammar, name), name)
    names = (*grammar.people, *grammar.gifts)
    for name in names:
        if not isinstance(name, str) or name.split() != [name]:
            raise ValueError(f"{name!r} is no name: give one word, without spaces, for each.")
        if name in FRAME or names.count(name) > 1:
            kind = "a word of the grammar itself" if name in FRAME else "given to two"
            raise ValueError(
                f"the name {name!r} is {kind}, so texts would be ambiguous; change it."
            )
    if grammar.n_gifts > len(grammar.gifts):
        raise ValueError(
            f"n_gifts is {grammar.n_gifts}, but there are {len(grammar.gifts)} gifts to choose "
            f"from. Name more gifts, or lower n_gifts."
        )
    chances = {rule: getattr(grammar, rule) for rule in RULES}
    if not (all(chance >= 0 for chance in chances.values()) and _sums_to_one(chances.values())):
        raise ValueError(
            f"the chances of the rules are {chances}; none may be below 0, all make 1."
        )
    needed = 2 if grammar.give + grammar.give_it + grammar.swap > 0 else 1
    if len(grammar.people) < needed:
        raise ValueError(
            f"there are {len(grammar.people)} people; a story with these rules needs {needed}."
        )


def _sums_to_one(chances: Iterable[float]) -> bool:
    return math.isclose(math.fsum(chances), 1, abs_tol=1e-9)
