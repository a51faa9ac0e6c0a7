"""`Repair`: an exercise that gives a broken function; the answer is the mended one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_lib.exercises.engine.calling import Outcome
from transformer_lib.exercises.engine.comparing import close
from transformer_lib.exercises.engine.runner import FAILED, Exercise, compute


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Repair(Exercise):
    """An `Exercise` about a function that the reader is given with a mistake in it.

    broken     the function as the reader gets it
    unchanged  the sentence for an answer that still does what the broken one does on every case;
               a clue, not the cure

    Give cases where the break shows, and at least one where it does not, if there are such: an
    answer that spoils what worked is told so, and so is one that mends a part of the break only.
    `wrong` holds the typical cures that do not cure, as in any exercise.

    >>> from transformer_lib.exercises.engine.runner import Case
    >>> mend = Repair(
    ...     asks="`answer(x)`: the mean of a list, mended.",
    ...     broken=lambda x: sum(x) / 2,
    ...     unchanged="Try it on a list of three.",
    ...     right=lambda x: sum(x) / len(x),
    ...     cases=[Case("two numbers", [1.0, 2.0]), Case("three numbers", [1.0, 2.0, 6.0])],
    ... )
    >>> mend(lambda x: sum(x) / 2)
    ✗ This still does what the broken function does. Try it on a list of three.
    >>> mend(lambda x: sum(x) / 3)
    ✗ On two numbers the function that you were given was right, and yours is not: you have 1, right is 1.5.
    >>> mend(lambda x: sum(x) / len(x))
    ✓ Right.
    """  # noqa: E501

    broken: Callable = None
    unchanged: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.broken) or not self.cases:
            raise TypeError("a Repair needs the `broken` function and cases to try an answer on")

    @property
    def sentences(self) -> list[str]:
        """Every sentence that a wrong answer may get; tests reach them all."""
        return [*([self.unchanged] if self.unchanged else []), *super().sentences]

    def shows(self) -> list[str]:
        """The names of the cases where the break shows."""
        return [
            case.name for case, sound in zip(self.cases, self._sound(), strict=True) if not sound
        ]

    def _sound(self) -> list[bool]:
        rights = [compute(self.right, case) for case in self.cases]
        theirs = [self._of_broken(case) for case in self.cases]
        pairs = zip(theirs, rights, strict=True)
        return [t is not FAILED and close(t, right, self.tolerance) for t, right in pairs]

    def _of_broken(self, case: Any) -> Any:
        return compute(lambda *inputs: self._call(self.broken, *inputs), case, may_fail=True)

    def _named(self, outcomes: Sequence[Outcome], rights: Sequence[Any]) -> str | None:
        agrees, _ = self._agrees(lambda *inputs: self._call(self.broken, *inputs), outcomes, rights)
        if agrees and self.shows():
            return f"This still does what the broken function does. {self.unchanged}".strip()
        return super()._named(outcomes, rights)

    def _place(self, number: int, outcomes: Sequence[Outcome], passed: str) -> str:
        """Before the first mistake: was the function that was given right there?"""
        case = self.cases[number]
        theirs, sound = self._of_broken(case), self._sound()
        if sound[number]:
            return f"On {case.name} the function that you were given was right, and yours is not"
        outcome = outcomes[number]
        same = outcome.error is not None if theirs is FAILED else outcome.error is None
        if same and (theirs is FAILED or close(outcome.result, theirs, self.tolerance)):
            where = f"You have mended {passed}, but on" if passed else "On"
            return f"{where} {case.name} it still does what the broken function does"
        return super()._place(number, outcomes, passed)
