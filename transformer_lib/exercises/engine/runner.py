"""The runner behind every `check_<name>`: run an answer safely, then name its mistake.

To write a check, state what is asked, what to try, what is right and what readers typically do
instead. The runner does the rest: an unfilled stub, an exception and its line, endless loops,
wrong type, device, shape or dtype, NaN, arguments written into, and at last the first number that
differs.

    import torch
    from transformer_lib.exercises.engine.runner import Case, Exercise, randn

    def _right(x, i):                                # x [tokens, dim], i -> [dim]
        return torch.softmax(x @ x[i], dim=0) @ x

    check_one_output = Exercise(
        asks="`answer(x, i)`: the output at position i. x [tokens, dim] -> [dim].",
        right=_right,
        wrong={                                      # the sentence : the computation that earns it
            "The weights are never normalized: a softmax is missing.":
                lambda x, i: (x @ x[i]) @ x,
            "The sum adds x_i, not x_j.":
                lambda x, i: torch.softmax(x @ x[i], dim=0).sum() * x[i],
        },
        cases=[                                      # prime sizes: no axis can stand for another
            Case("5 words in 5 dimensions", randn(5, 5, seed=0), 2),
            Case("5 words in 7 dimensions", randn(5, 7, seed=1), 3),
        ],
        axes="dim",
        praise="Right: y_i is a weighted average of all inputs.",
    )

`check_one_output(answer)` is then the verdict, and `help(check_one_output)` says what is asked.

A sentence of `wrong` is given when the answer agrees with that computation on **every** case that
is not an edge case (and fails where it fails: `x @ x` works for squares only, and is found by a
square and another case).

Two other kinds are judged alike. `Choice` (`engine.choosing`) is answered by a letter, a line
number, or several of them: which printout belongs to the wrong axis, which line holds the bug.
`Repair` (`engine.repairing`) is an `Exercise` that also knows the `broken` function that the reader
was given. A prediction is an `Exercise` without cases, whose right value is computed and not
shown; a design (vectors, matrices) is one with `unique=False` and its conditions in `also`.

The tests reach every sentence of `wrong` and `also` by answers that are written independently of
these tables: see `tests/support/diagnoses.py`.
"""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import torch

from transformer_lib.exercises.engine.calling import (
    Outcome,
    TimeOver,
    call_safely,
    code_of,
    does_nothing,
    message_of,
    still_open,
)
from transformer_lib.exercises.engine.comparing import close, first_difference, form_mistake
from transformer_lib.exercises.engine.guarding import Guard, guarded, torch_random_kept
from transformer_lib.exercises.engine.naming import Search
from transformer_lib.exercises.engine.shapes import of_error
from transformer_lib.exercises.engine.values import describe, fitted, plain
from transformer_lib.exercises.engine.verdict import NOT_ATTEMPTED, Verdict

PRINTED = "You print and return None: write `return` in front of your result, not `print`."
FAILED = object()  # "this wrong computation raises on this case"


def randn(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Seeded normal numbers on the CPU, whatever the reader's default device or dtype is."""
    source = torch.Generator(device="cpu").manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=dtype, device="cpu")


class Case:
    """One set of inputs to try an answer on, named in words that fit after "on".

    An `edge` case judges an answer, but names no mistake: there, the same mistake raises in one
    answer and gives NaN in another.
    """

    def __init__(self, name: str, *inputs: Any, edge: bool = False) -> None:
        self.name, self.inputs, self.edge = name, inputs, edge


CELL = "ipykernel_"  # in the name that Jupyter gives to the code of each cell
# After Run All the solution's function has the name that the reader means to define.
ANOTHER_CELL = (
    "(The function comes from another cell. If that is the solution's, look whether the name of "
    "yours is spelled as it is here.)"
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Exercise:
    """One exercise: what is asked, what is right, what is typically wrong, and how to tell.

    asks     what the answer must be, "`answer(q, k)`: ...": the check's own docstring
    right    the right computation, called with the inputs of a case (or, without cases, the value)
    wrong    {sentence: wrong computation or value}; the first that fits is given, so put the most
             specific first. A computation may raise where the mistake makes an answer raise
    cases    inputs to try, the simplest first. None at all: the answer is itself the result (a
             number, a tensor, a tuple), and the right value is not given away
    call     call(answer, *inputs) -> result, if the answer is not a plain function of the inputs:
             `lambda cls, x: cls(6, 2)(x)` for a module, or to return gradients as well
    adapt    adapt(result) -> result, for what is right in more than one form, such as two dtypes
    before   an exercise about the form of the same answer, which must be right first
    after    an exercise about the same answer, asked once this one is right
    axes     names of the result's axes for messages, "queries keys"; for a tuple, one string each
    also     {sentence: function of (result, *inputs)}, asked in turn about a result of the right
             form, before it is compared (inputs: the very tensors the answer got, so gradients
             work). True: the sentence is given. A tuple: it fills the sentence's {blanks}
    any_form  the same, asked before the form is looked at: the result may be anything
    unique   False: many results are right, `right` is one of them, and `also` judges the values
    about    {sentence: function of the answer}, asked in turn about an answer that is wrong in its
             numbers and that no computation of `wrong` explains; True and tuples as in `also`
    about_last  the same, asked where nothing else names a cause
    also_last  as `also`, asked about a wrong result where nothing else names a cause
    averages  values(*inputs): what the result averages, so that the weights behind it can be found
    measured  True: the number must come from random samples. One that theory gives is refused
    tolerance  (rtol, atol) where the dtype's own will not do: for estimates from random samples
    seconds  the time an answer has for one case
    praise   the sentence for a right answer
    """

    asks: str = ""
    right: Any
    wrong: Mapping[str, Any] = field(default_factory=dict)
    cases: Sequence[Case] = ()
    call: Callable | None = None
    adapt: Callable | None = None
    before: "Exercise | None" = None
    after: "Exercise | None" = None
    axes: str | Sequence[str] = ""
    also: Mapping[str, Callable] = field(default_factory=dict)
    any_form: Mapping[str, Callable] = field(default_factory=dict)
    about: Mapping[str, Callable] = field(default_factory=dict)
    about_last: Mapping[str, Callable] = field(default_factory=dict)
    also_last: Mapping[str, Callable] = field(default_factory=dict)
    averages: Callable | None = None
    measured: bool = False
    unique: bool = True
    tolerance: tuple[float, float] | None = None
    seconds: float = 10.0
    praise: str = "Right."

    def __post_init__(self) -> None:
        if self.cases and not callable(self.right):
            raise TypeError("with cases, `right` must be a function of their inputs")
        for case in self.cases:  # every argument has a name of its own, for the messages
            if len(inspect.signature(self.right).bind(*case.inputs).arguments) != len(case.inputs):
                raise TypeError("`right` must name each argument: no *args")
        object.__setattr__(self, "__doc__", inspect.cleandoc(self.asks))

    @property
    def sentences(self) -> list[str]:
        """Every sentence that a wrong answer may get; tests reach them all."""
        early = [*self.wrong, *self.any_form, *self.also, *self.about]
        later = self.after.sentences if self.after else []
        return [*early, *self.about_last, *self.also_last, *later]

    def __repr__(self) -> str:
        return f"<check of {(self.__doc__ or 'an answer').splitlines()[0]}>"

    def __call__(self, answer: Any) -> Verdict:
        """The verdict on an answer. Never raises because of what the answer does."""
        if self.before and not (form := self.before(answer)).passed:
            return form
        with guarded() as guard:
            verdict = self._judge(answer, guard)
        if verdict and guard.left_running:
            return Verdict(False, "Your answer leaves a thread running: wait for it with `join()`.")
        if verdict and self.after and not (later := self.after(answer)).passed:
            return later
        if verdict and self._of_another_cell(answer):
            return Verdict(True, f"{verdict.diagnosis} {ANOTHER_CELL}")
        return verdict

    def _of_another_cell(self, answer: Any) -> bool:
        """In a notebook: has another cell than the one that asks for the verdict defined it?"""
        asking = inspect.currentframe()
        while asking and CELL not in asking.f_code.co_filename:
            asking = asking.f_back
        if asking is None:
            return False
        seen = call_safely(code_of, answer, seconds=self.seconds, convert=lambda code: code)
        name = seen.result.co_filename if seen.result else ""
        return CELL in name and name != asking.f_code.co_filename

    def _judge(self, answer: Any, guard: Guard) -> Verdict:
        seen = call_safely(self._look_at, answer, seconds=self.seconds, convert=tuple)
        if seen.error is not None:
            return Verdict(False, self._exception(seen))
        code, blank, mistake = seen.result
        if blank:
            return NOT_ATTEMPTED
        if mistake:
            return Verdict(False, mistake)
        outcomes = []
        for case in self._cases():
            limits = {"seconds": self.seconds, "code": code}
            outcome = call_safely(self._call, answer, case.inputs, **limits)
            if isinstance(outcome.error, TimeOver):
                return Verdict(False, self._exception(outcome))
            if still_open(outcome.error) or (outcome.error is None and _blank(outcome.result)):
                if outcome.error is None and guard.printed:
                    return Verdict(False, PRINTED)
                if outcome.result is None and outcome.error is None and not does_nothing(code):
                    return Verdict(False, "Your function returns None: is a `return` missing?")
                return NOT_ATTEMPTED
            outcomes.append(outcome)
        rights = [compute(self.right, case) for case in self._cases()]
        if mistake := self._one_of_several(outcomes, rights):
            return Verdict(False, mistake)
        pairs = zip(outcomes, rights, strict=True)
        outcomes = [replace(o, result=fitted(o.result, right)) for o, right in pairs]
        search = Search(self, answer, code, outcomes, rights)
        # Who writes into an argument may have spoiled it for the rest of the answer.
        spoiled = any(outcome.written for outcome in outcomes)
        named = None if spoiled else self._named(outcomes, rights)
        mistake = named or self._first_mistake(search)
        mistake = mistake or self._unmeasured(outcomes, rights)
        return Verdict(False, mistake) if mistake else Verdict(True, self.praise)

    def _look_at(self, answer: Any) -> tuple[CodeType | None, bool, str | None]:
        """The answer's code, whether nobody has filled it in, and what is wrong with its kind.

        Even this can run code of the answer.
        """
        return code_of(answer), _blank(plain(answer)), self._wrong_kind(answer)

    def _cases(self) -> Sequence[Case]:
        return self.cases or [Case("")]

    def _call(self, answer: Any, *inputs: Any) -> Any:
        if self.call:
            result = self.call(answer, *inputs)
        else:
            result = answer(*inputs) if self.cases else answer
        return self.adapt(result) if self.adapt else result

    def _wrong_kind(self, answer: Any) -> str | None:
        if self.call:
            return None
        if not self.cases:
            value = not callable(answer) or callable(self.right)
            return None if value else "You gave a function; give its result: call it."
        if not callable(answer):
            return f"You gave {describe(answer)}; give the function itself."
        inputs, names = self.cases[0].inputs, ", ".join(self._names())
        try:
            inspect.signature(answer).bind(*inputs)
        except TypeError:
            plural = "s" if len(inputs) > 1 else ""
            return f"Your function must take {len(inputs)} argument{plural}: ({names})."
        except ValueError:  # some built-in functions have no signature to look at
            return None
        return None

    def _names(self) -> list[str]:
        """The names of the arguments, as the right computation calls them."""
        return list(inspect.signature(self.right).bind(*self.cases[0].inputs).arguments)

    def _named(self, outcomes: Sequence[Outcome], rights: Sequence[Any]) -> str | None:
        """The sentence of the first wrong computation that does what the answer does."""
        for sentence, wrong in self.wrong.items():
            agrees, telling = self._agrees(wrong, outcomes, rights)
            if agrees and telling:
                return sentence
        return None

    def _agrees(
        self, wrong: Any, outcomes: Sequence[Outcome], rights: Sequence[Any]
    ) -> tuple[bool, bool]:
        """Does the answer do what this computation does, on every case? Is that ever wrong?"""
        telling = False
        for case, outcome, right in zip(self._cases(), outcomes, rights, strict=True):
            if case.edge:
                continue
            theirs = compute(wrong, case, may_fail=True)
            if theirs is FAILED or outcome.error is not None:
                if theirs is not FAILED or outcome.error is None:
                    return False, telling
            elif not close(outcome.result, theirs, self.tolerance):
                return False, telling
            else:
                telling = telling or not close(theirs, right, self.tolerance)
        return True, telling

    def _one_of_several(self, outcomes: Sequence[Outcome], rights: Sequence[Any]) -> str | None:
        """A sentence if the right result comes back in a tuple with others, always as one item."""
        results = [outcome.result for outcome in outcomes]
        if not (self.cases and self.unique) or any(isinstance(r, list | tuple) for r in rights):
            return None
        if not all(isinstance(result, tuple) and len(result) > 1 for result in results):
            return None
        for n in range(min(map(len, results))):
            pairs = zip(results, rights, strict=True)
            if all(close(fitted(result[n], r), r, self.tolerance) for result, r in pairs):
                return (
                    f"You return {len(results[0])} results, as a tuple. The one at index {n} is "
                    "the right one: return it alone."
                )
        return None

    def _first_mistake(self, search: Search) -> str | None:
        passed = ""
        for number, case in enumerate(self._cases()):
            if mistake := self._mistake(search, number):
                if len(self.cases) < 2:
                    return mistake
                where = self._place(number, search.outcomes, passed)
                word = mistake.split()[0]
                if word.istitle() and (len(word) > 1 or word == "A"):  # not Q, not NaN
                    mistake = mistake[0].lower() + mistake[1:]
                return f"{where}: {mistake}"
            passed = case.name
        return None

    def _place(self, number: int, outcomes: Sequence[Outcome], passed: str) -> str:
        """The words before the first mistake, which is on the case of this number."""
        name = self._cases()[number].name
        return f"Right on {passed}, but on {name}" if passed else f"On {name}"

    def _mistake(self, search: Search, number: int) -> str | None:
        outcome, right = search.outcomes[number], search.rights[number]
        if outcome.error is not None:
            hint = search.cause(number) or of_error(message_of(outcome.error)).strip()
            raised = self._exception(outcome)
            return f"{raised.rstrip('.')}. {hint}" if hint else raised
        if outcome.written:
            name = self._names()[outcome.written[0]]
            return (
                f"You write into the argument `{name}`, which belongs to the caller: make a copy."
            )
        mistake = form_mistake(outcome.result, right, self.axes)
        judged = self._also(self.any_form, outcome)
        if judged.error is not None and not mistake:  # of an odd result, its form says enough
            raise judged.error
        if judged.result:
            return judged.result
        if mistake:
            cause = search.cause(number) if self.unique else search.fixed_shape(number)
            return cause or mistake
        if self.also:  # a gradient can run code of the answer
            judged = self._also(self.also, outcome)
            if judged.error is not None:
                return self._exception(judged)
            if judged.result:
                return judged.result
        if self.unique and not close(outcome.result, right, self.tolerance):
            looks = (
                lambda: self._about(search.answer, self.about),
                lambda: search.cause(number),
                lambda: self._about(search.answer, self.about_last),
                lambda: self._also(self.also_last, outcome).result,
            )
            if cause := next((found for look in looks if (found := look())), None):
                return cause
            place = first_difference(outcome.result, right, self.tolerance, reveal=bool(self.cases))
            return f"{place[0].upper()}{place[1:]}."
        return None

    def _also(self, looks: Mapping[str, Callable], outcome: Outcome) -> Outcome:
        return call_safely(lambda _: _said(looks, outcome), seconds=self.seconds)

    def _about(self, answer: Any, looks: Mapping[str, Callable]) -> str | None:
        for sentence, applies in looks.items():
            blanks = call_safely(applies, answer, seconds=self.seconds).result
            if blanks is True or isinstance(blanks, tuple):
                return _filled(sentence, blanks)
        return None

    def _unmeasured(self, outcomes: Sequence[Outcome], rights: Sequence[Any]) -> str | None:
        """A sentence if numbers that must be measured are known too exactly for that."""
        if not self.measured:
            return None
        pairs = [(float(o.result), float(r)) for o, r in zip(outcomes, rights, strict=True)]
        for numbers in (
            [got / right for got, right in pairs],
            [got - right for got, right in pairs],
        ):
            if max(numbers) - min(numbers) < 1e-6:
                return "This number is computed, not measured: draw random numbers and measure it."
        return None

    def _exception(self, outcome: Outcome) -> str:
        if isinstance(outcome.error, TimeOver):
            return f"Stopped after {self.seconds:g} s: an endless loop?"
        where = f" ({outcome.where})" if outcome.where else ""
        what = f"{type(outcome.error).__name__}{where}"
        return f"Your answer raises {what}: {message_of(outcome.error)}"


def compute(computation: Any, case: Case, *, may_fail: bool = False) -> Any:
    """The result of a right or wrong computation, with the random numbers that an answer gets."""
    if not callable(computation):
        return computation
    with torch_random_kept(0):
        try:
            return computation(*copy.deepcopy(case.inputs))
        except (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError):
            if may_fail:
                return FAILED
            raise


def _said(table: Mapping[str, Callable], outcome: Outcome) -> str | None:
    """The first sentence of a table such as `also` that applies to a result."""
    for sentence, applies in table.items():
        if blanks := applies(outcome.result, *outcome.inputs):
            return _filled(sentence, blanks)
    return None


def _filled(sentence: str, blanks: Any) -> str:
    return sentence.format(*blanks) if isinstance(blanks, tuple) else sentence


def _blank(value: Any) -> bool:
    """Is this a place that nobody has filled in: None, `...`, or a tuple that holds such?"""
    if value is None or value is Ellipsis or value is NotImplemented:
        return True
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple) or not value:
        return False
    return any(item is Ellipsis for item in value) or all(item is None for item in value)
