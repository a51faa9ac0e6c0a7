"""Which choices, step by step, lead to a wrong result: for an exercise's `also`.

Where an answer has several steps and each can be done wrong, a sentence for each pair of mistakes
would be too many. `otherwise` tries them all.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from transformer_lib.exercises.engine.comparing import close

MOST = 2  # so many steps may differ: with more, some combination fits by chance
ONE_NUMBER = (5e-6, 1e-9)  # so near must it be: one number fits by chance more easily than many


def otherwise(steps: Sequence[Mapping[str, Any]], build: Callable) -> Callable:
    """A function for `also`: the words for the fewest wrong choices that give a result, or None.

    Each of `steps` is {words that fit after "if": choice}, with "" for the right choice, and
    `build(*choices, *inputs)` is the result that they lead to. It may raise.

    >>> say = otherwise(
    ...     [
    ...         {"": sum, "only the largest counts": max},
    ...         {"": 1.0, "it is doubled": 2.0},
    ...     ],
    ...     lambda add, times, numbers: times * add(numbers),
    ... )
    >>> say(6.0, [1.0, 2.0]), say(4.0, [1.0, 2.0])
    (('it is doubled',), ('only the largest counts, and it is doubled',))
    >>> say(3.0, [1.0, 2.0]), say(5.0, [1.0, 2.0])
    (None, None)
    """
    ranked = sorted(product(*steps), key=_wrong)

    def applies(result: Any, *inputs: Any) -> tuple[str] | None:
        one = getattr(result, "ndim", 0) == 0
        for words in ranked:
            if _wrong(words) > MOST:
                return None
            choices = [step[word] for step, word in zip(steps, words, strict=True)]
            try:
                theirs = build(*choices, *inputs)
            except (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError):
                continue
            if close(result, theirs, ONE_NUMBER if one and _wrong(words) else None):
                return (", and ".join(filter(None, words)),) if _wrong(words) else None
        return None

    return applies


def _wrong(words: Sequence[str]) -> int:
    return sum(map(bool, words))
