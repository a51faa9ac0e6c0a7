"""`Choice`: an exercise that is answered by a letter, a line number, a word, or several of them."""

import inspect
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from transformer_lib.exercises.engine.calling import call_safely, message_of
from transformer_lib.exercises.engine.comparing import describe, plain
from transformer_lib.exercises.engine.guarding import guarded
from transformer_lib.exercises.engine.verdict import NOT_ATTEMPTED, Verdict


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Choice:
    """One right option among several, or a set of right ones; each wrong choice gets a sentence.

    asks       what is asked, beginning with a sentence that ends in a full stop
    right      the right option, such as "c" or 4 (a line); a set, if several belong together
    wrong      {option: sentence}: why this option is wrong. If several are right, the sentence of a
               right one is given where it is left out
    also       other right sets, where the same mistake can be put down to this line or to those. An
               option that only they hold has its sentence in `wrong`, for answers that hold both
    otherwise  for an option without a sentence, such as any other line; it may hold one {}
    options    all options, where some have no sentence; without them, any other is one
    praise     the sentence for the right answer

    An answer is an option in any form that a reader writes: `"c"`, `"C"`, `"(c)"`, 4, "4"; several
    are a list, a tuple, a set, "a, c" or, of letters, "ac". A function is called without arguments.

    >>> spot = Choice(
    ...     asks="Which printout belongs to the softmax over the wrong axis? A letter.",
    ...     right="b",
    ...     wrong={"a": "These rows sum to 1, and the columns do not: this is the right axis."},
    ... )
    >>> spot("a")
    ✗ These rows sum to 1, and the columns do not: this is the right axis.
    >>> spot("B"), spot(...), spot("x")
    (✓ Right., ○ not attempted yet, ✗ 'x' is not among the choices: a, b.)
    >>> leaks = Choice(right={1, 3}, wrong={1: "It sees word 5.", 2: "It sees the past only."})
    >>> leaks([1, 2]), leaks("1"), leaks((3, 1))
    (✗ 2 does not belong: It sees the past only., ✗ 3 is missing., ✓ Right.)
    """

    asks: str = ""
    right: Any
    wrong: Mapping[Any, str] = field(default_factory=dict)
    also: Iterable[Set] = ()
    otherwise: str = ""
    options: Iterable[Any] = ()
    praise: str = "Right."
    seconds: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", inspect.cleandoc(self.asks))
        if not self._right:
            raise ValueError("`right` is empty: name at least one option")
        wrong = {_option(option) for option in self.wrong}
        if not isinstance(self.right, Set) and wrong & self._right:
            raise ValueError(f"the right option, {self.right!r}, is also in `wrong`")
        if mute := {_option(option) for one in self.also for option in one} - self._right - wrong:
            raise ValueError(f"`also` holds {sorted(mute)}: each needs its sentence in `wrong`")

    def __repr__(self) -> str:
        return f"<check of {(self.__doc__ or 'a choice').splitlines()[0]}>"

    @property
    def sentences(self) -> list[str]:
        """Every sentence that a wrong answer may get; tests reach them all."""
        return [*self.wrong.values(), *([self.otherwise] if self.otherwise else [])]

    def __call__(self, answer: Any) -> Verdict:
        """The verdict on an answer. Never raises because of what the answer does."""
        with guarded():
            seen = call_safely(self._read, answer, seconds=self.seconds, convert=tuple)
        if seen.error is not None:
            raised = f"{type(seen.error).__name__}: {message_of(seen.error)}"
            return Verdict(False, f"Your answer raises {raised}")
        chosen, mistake = seen.result
        if mistake:
            return Verdict(False, mistake)
        return self._judge(chosen) if chosen else NOT_ATTEMPTED

    @property
    def _right(self) -> set[str]:
        several = isinstance(self.right, Set)
        return {_option(option) for option in (self.right if several else [self.right])}

    @property
    def _why(self) -> dict[str, str]:
        return {_option(option): sentence for option, sentence in self.wrong.items()}

    def _judge(self, chosen: list[str]) -> Verdict:
        if beside := self._all_beside(chosen):
            return Verdict(False, beside)
        options = self._right | self._why.keys()
        if unknown := [option for option in chosen if option not in options]:
            every = {_option(option) for option in self.options}
            if self.otherwise and (not every or unknown[0] in every):
                return Verdict(False, self.otherwise.format(unknown[0]))
            named = set(re.findall(r"\w+", unknown[0])) & options
            if len(named) > 1 and not isinstance(self.right, Set):
                return Verdict(False, f"You chose {len(named)}: choose one.")
            known = ", ".join(sorted(every or options, key=lambda option: (len(option), option)))
            return Verdict(False, f"{unknown[0]!r} is not among the choices: {known}.")
        if not isinstance(self.right, Set):
            if len(set(chosen)) > 1:
                return Verdict(False, f"You chose {len(set(chosen))}: choose one.")
            wrong = self._why.get(chosen[0])
            return Verdict(False, wrong) if wrong else Verdict(True, self.praise)
        right = self._meant(set(chosen))
        for option in chosen:
            if option not in right:
                return self._misjudged(option, "does not belong")
        for option in sorted(right - set(chosen)):
            return self._misjudged(option, "is missing")
        return Verdict(True, self.praise)

    def _meant(self, chosen: set[str]) -> set[str]:
        """The right set that an answer is measured by."""
        for one in self.also:
            other = {_option(option) for option in one}
            if chosen & (other - self._right) and not chosen & (self._right - other):
                return other
        return self._right

    def _all_beside(self, chosen: list[str]) -> str:
        """A sentence if each number is one off: the right ones, counted from elsewhere."""
        if len(self._right) < 2 or not all(x.isdecimal() for x in self._right | set(chosen)):
            return ""
        for off, words in ((1, "small: count from 1"), (-1, "large")):
            if {str(int(option) + off) for option in chosen} == self._right:
                return f"Each of your numbers is one too {words}."
        return ""

    def _misjudged(self, option: str, what: str) -> Verdict:
        sentence = self._why.get(option, "")
        return Verdict(False, f"{option} {what}" + (f": {sentence}" if sentence else "."))

    def _read(self, answer: Any) -> tuple[list[str], str]:
        """The options that an answer names, or what is wrong with it; neither for a stub."""
        given = plain(answer() if callable(answer) and not isinstance(answer, type) else answer)
        value = given
        if isinstance(answer, set | frozenset):
            value = [plain(option) for option in answer]
        elif hasattr(value, "tolist"):
            value = value.tolist()
        each = value if isinstance(value, list | tuple) else [value]
        several = [option for one in each for option in self._apart(one)]
        if any(option is None or option is Ellipsis for option in several):
            return [], ""
        for option in several:
            if not isinstance(option, str | int | float):
                odd = given if hasattr(given, "tolist") else option
                return [], f"Your choice is {describe(odd)}; give the option itself."
        chosen = [_option(option) for option in several]
        return [option for option in chosen if option], ""

    def _apart(self, value: Any) -> list:
        """The options in one text: "a, c"; or "ac", where all options are single letters."""
        if not isinstance(value, str) or not isinstance(self.right, Set):
            return [value]
        if _option(value) in self._right | self._why.keys():
            return [value]
        parts = re.sub(r"[,;&/+]| and ", " ", value).split()
        single = all(len(option) == 1 for option in self._right | self._why.keys())
        return list(parts[0]) if single and len(parts) == 1 else parts


def _option(value: Any) -> str:
    """One way to write an option: "C" and "(c)" are "c", 4.0 is "4"."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip(" \t\n.,;:()[]{}'\"`*").casefold()
