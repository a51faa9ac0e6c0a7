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
`Repair` is an `Exercise` that also knows the `broken` function that the reader
was given. A prediction is an `Exercise` without cases, whose right value is computed and not
shown; a design (vectors, matrices) is one with `unique=False` and its conditions in `also`.

A table of sentences does not generalize, however long it grows: write one only for a cause that
numbers cannot tell. All else the engine says by itself, at the reader's own line: `mending` looks
for the one change that makes the answer right, and `recording` for the line at which its values
leave those of the right computation.

The tests reach every sentence of `wrong` and `also` by answers that are written independently of
these tables: see `tests/support/diagnoses.py`.
"""

import contextlib
import copy
import inspect
import io
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations, product
from types import CodeType
from typing import Any

import torch
from torch import nn

from transformer_lib.exercises.engine.calling import (
    Outcome,
    TimeOver,
    call_safely,
    can_be_stopped,
    code_of,
    does_nothing,
    message_of,
    still_open,
    time_limit,
    written_into,
)
from transformer_lib.exercises.engine.comparing import (
    close,
    describe,
    first_difference,
    fitted,
    form_mistake,
    ordinary,
    plain,
)
from transformer_lib.exercises.engine.guarding import (
    Guard,
    guarded,
    own_torch,
    random_kept,
    settings_kept,
    torch_random_kept,
)
from transformer_lib.exercises.engine.isolating import effects_refused
from transformer_lib.exercises.engine.mending import (
    Mended,
    copied,
    line_of,
    mended,
    unused,
    uses,
    where_written,
)
from transformer_lib.exercises.engine.observing import (
    Trial,
    of_an_input,
    of_count,
    of_error,
    of_results,
    of_shape,
    undivided,
)
from transformer_lib.exercises.engine.recording import GOES_ON, NAN, departure, written_at
from transformer_lib.exercises.engine.verdict import NOT_ATTEMPTED, Verdict

MOST_CHANGES = 1200  # tried to mend a wrong answer,
MOST_WITH_A_SENTENCE = 300  # or so many, where its cause is named already,
MOST_SECONDS = 6.0  # or for so long,
MOST_FOR_ONE = 0.5  # and for one of them,
MOST_COMPUTING = 0.1  # which may compute for so long and 20 times the answer's own time: changes of
# a loop may well be endless, and a reader waits for each
TRIES = 8  # of an answer, each with other random numbers
PRINTED = "You print and return None: write `return` in front of your result, not `print`."
# A wrong answer may be too odd for a look at it: the verdict comes all the same. Tests let these
# pass.
TOO_ODD: tuple = (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError)
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
        for x in inputs:
            for part in x if isinstance(x, list | tuple) else [x]:
                if isinstance(part, nn.Module):
                    part.eval()  # so that an answer which says so, too, changes nothing


CELL = "ipykernel_"  # in the name that Jupyter gives to the code of each cell
# After Run All the solution's function has the name that the reader means to define.
ANOTHER_CELL = (
    "(The function comes from another cell. If that is the solution's, check whether the name of "
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
             `lambda answer, n: answer()[n]`, or to return gradients as well
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
    design   True: the answer is made of the reader's own numbers, so that no line of it is wrong by
             itself: nothing is looked for but the sentences of the exercise
    without  what the text rules out: "loop", "@", or the name of a function such as "softmax"; an
             answer that is right and uses it is told so, and its line
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
    design: bool = False
    without: Sequence[str] = ()
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
        later = self.after.sentences if self.after else []
        return [*self.wrong, *self.any_form, *self.also, *self.about, *later]

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
                if outcome.error is None and _is_none(outcome.result):
                    if guard.printed:
                        return Verdict(False, PRINTED)
                    if not does_nothing(code):
                        return Verdict(False, "Your function returns None: is a `return` missing?")
                return NOT_ATTEMPTED
            outcomes.append(outcome)
        with own_torch():
            mistake = self._wrong(answer, code, outcomes)
        return Verdict(False, mistake) if mistake else Verdict(True, self.praise)

    def _wrong(self, answer: Any, code: CodeType | None, outcomes: list) -> str | None:
        """What is wrong with an answer that has been called on each case; None if nothing is."""
        rights = [compute(self.right, case) for case in self._cases()]
        if mistake := self._one_of_several(outcomes, rights):
            return mistake
        pairs = zip(outcomes, rights, strict=True)
        outcomes = [replace(o, result=fitted(o.result, right)) for o, right in pairs]
        try:
            mistake = self._mistake(answer, code, outcomes, rights)
        except TOO_ODD:
            mistake = self._at_least(outcomes, rights)
        if mistake := mistake or self._unmeasured(outcomes, rights):
            return mistake
        if found := uses(answer, self.without):
            return (
                f"The result is right. But the exercise asks for it without {found[0]}, which is "
                f"on line {found[1]}."
            )
        return None

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

    # --- what is wrong, and where ---------------------------------------------------------------

    def _mistake(self, answer: Any, code: Any, outcomes: list, rights: list) -> str | None:
        """The sentence about a wrong answer: its own, if it has one, and the line to look at."""
        failures = ((n, self._failure(outcomes[n], rights[n])) for n in range(len(rights)))
        number, failure = next(((n, f) for n, f in failures if f is not None), (0, None))
        if failure is None:
            return None
        outcome = outcomes[number]
        if outcome.error and (order := self._other_order(answer, rights)):
            return order
        if outcome.written and not outcome.error:
            return self._placed(number, outcomes, self._writes(answer, code, number, outcome))
        # Who writes into an argument may have spoiled it for the rest of the answer.
        spoiled = any(o.written for o in outcomes)
        if own := None if spoiled else self._named(outcomes, rights):
            return self._with_line(own, answer, outcomes, rights)
        form = outcome.error is None and self._form(outcome.result, rights[number])
        if own := failure or form:
            own = self._placed(number, outcomes, own)
        if own := own or self._about(answer, self.about):  # this looks at inputs of its own
            return self._with_line(own, answer, outcomes, rights)
        departed, sound = self._departed(answer, code, outcomes, rights)
        if departed.endswith(f"{NAN}."):
            return departed
        if found := _looked(self._mended, answer, outcomes, rights, MOST_CHANGES, sound):
            return _or(found)
        trials = self._trials(outcomes, rights) if self.cases else []
        missing = _looked(undivided, trials) or _looked(of_an_input, trials)  # it has no line
        if missing := missing or self._by_chance(answer, number, rights[number]):
            return self._placed(number, outcomes, missing)
        return departed or self._placed(
            number, outcomes, self._seen(answer, number, outcomes, rights)
        )

    def _at_least(self, outcomes: list, rights: list) -> str:
        """What there is to say of the first wrong result, however odd; raises if none is wrong."""
        wrong = [n for n, right in enumerate(rights) if not self._same(outcomes[n], right)]
        outcome, right = outcomes[wrong[0]], rights[wrong[0]]
        if outcome.error:
            return self._exception(outcome)
        form = form_mistake(outcome.result, right, self.axes)
        return form or self._first_difference(outcome.result, right)

    def _first_difference(self, got: Any, right: Any) -> str:
        place = first_difference(got, right, self.tolerance, reveal=bool(self.cases))
        return f"{place[0].upper()}{place[1:]}."

    def _by_chance(self, answer: Any, number: int, right: Any) -> str | int:
        """A sentence about an answer that other random numbers make right."""
        if not self.cases or not self.unique or self.measured:
            return ""
        if (answer := copied(answer)) is None:
            return ""
        inputs, limits = self._cases()[number].inputs, {"seconds": 1}
        with effects_refused():
            tries = [
                call_safely(self._call, answer, inputs, seed=n, **limits) for n in range(TRIES)
            ]
        lucky = sum(self._same(replace(o, result=fitted(o.result, right)), right) for o in tries)
        return lucky and (
            f"With other random numbers your result is right in {lucky} of {TRIES} tries: draw "
            "enough that chance decides nothing, or draw none."
        )

    def _other_order(self, answer: Any, rights: Sequence[Any]) -> str:
        """A sentence about an answer that is right if its arguments come in another order."""
        names = self._names() if self.cases and not self.call else []
        if len(names) not in (2, 3) or (answer := copied(answer)) is None:
            return ""
        for order in permutations(range(len(names))):
            given = [tuple(case.inputs[n] for n in order) for case in self.cases]
            with effects_refused(), contextlib.redirect_stdout(io.StringIO()):
                outcomes = [call_safely(self._call, answer, x, seconds=1) for x in given]
            pairs = zip(outcomes, rights, strict=True)
            if all(self._same(replace(o, result=fitted(o.result, r)), r) for o, r in pairs):
                theirs = ", ".join(names[n] for n in order)
                return (
                    f"Your function takes its arguments in the order ({theirs}); they come as "
                    f"({', '.join(names)})."
                )
        return ""

    def _failure(self, outcome: Outcome, right: Any) -> str | None:
        """None if this is right; the exercise's own sentence, or "" if it has none."""
        if outcome.error is not None:
            raised = self._exception(outcome)
            hint = of_error(message_of(outcome.error)).strip()
            return f"{raised.rstrip('.')}. {hint}" if hint else raised
        if outcome.written:
            return ""
        form = form_mistake(outcome.result, right, self.axes)
        judged = call_safely(lambda _: _said(self.any_form, outcome), seconds=self.seconds)
        if judged.error is not None and not form:  # of an odd result, its form says enough
            raise judged.error
        if judged.result or form:
            return judged.result or ""
        if self.also:  # a gradient can run code of the answer
            judged = call_safely(lambda _: _said(self.also, outcome), seconds=self.seconds)
            if judged.error is not None:  # at what is odd in a wrong result, or in the answer
                wrong = self.unique and not close(outcome.result, right, self.tolerance)
                return "" if wrong else self._exception(judged)
            if judged.result:
                return judged.result
        return "" if self.unique and not close(outcome.result, right, self.tolerance) else None

    def _placed(self, number: int, outcomes: Sequence[Outcome], mistake: str) -> str:
        if len(self.cases) < 2:
            return mistake
        where = self._place(number, outcomes, self.cases[number - 1].name if number else "")
        word = mistake.split()[0]
        if word.istitle() and (len(word) > 1 or word == "A"):  # not Q, not NaN
            mistake = mistake[0].lower() + mistake[1:]
        return f"{where}: {mistake}"

    def _place(self, number: int, outcomes: Sequence[Outcome], passed: str) -> str:
        """The words before the first mistake, which is on the case of this number."""
        name = self._cases()[number].name
        return f"Right on {passed}, but on {name}" if passed else f"On {name}"

    def _with_line(self, own: str, answer: Any, outcomes: list, rights: list) -> str:
        if "(line " in own:  # an exception has said it
            return own
        found = _looked(self._mended, answer, outcomes, rights, MOST_WITH_A_SENTENCE)
        return f"{own if own[-1] in '.?!' else f'{own}.'} {_or(found)}" if found else own

    def _mended(
        self, answer: Any, outcomes: list, rights: list, most: int, sound: set | None = None
    ) -> list[Mended]:
        """The one change after which this wrong answer is right on all cases, if there is one.

        None is looked for where a change that loops for ever could not be stopped.
        """
        if not (self.cases and self.unique and most and can_be_stopped()):
            return []
        if self.measured or self.design:
            return []
        wrong = [n for n in range(len(rights)) if not self._same(outcomes[n], rights[n])]
        order = wrong + [n for n in range(len(rights)) if n not in wrong]
        tried = iter(range(most))
        computing = None
        if sound is None:
            _, sound = self._departed(answer, code_of(answer), outcomes, rights)
        deadline = time.monotonic() + MOST_SECONDS
        beyond = self._beyond()
        serve = partial(self._serves, writes=any(o.written for o in outcomes))

        def right(changed: Any) -> bool:
            nonlocal computing
            began, most = time.process_time(), computing or MOST_FOR_ONE
            serves = all(serve(changed, self.cases[n], rights[n], most) for n in order)
            if computing:
                serves = serves and all(serve(changed, *more, most, seed=1) for more in beyond)
                serves = serves and (self.after is None or self.after._all_serve(changed, most))
            if computing is None:  # the first one asked about is the answer as it is
                computing = MOST_COMPUTING + 20 * (time.process_time() - began)
            return serves

        def over() -> bool:
            return next(tried, None) is None or time.monotonic() > deadline

        said = all(map(_is_said, rights))  # easily right by chance
        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, warnings.catch_warnings(), settings_kept(), random_kept(0):
            warnings.simplefilter("ignore")
            return mended(answer, right, over, few=said, sound=sound)

    def _all_serve(self, changed: Any, computing: float) -> bool:
        """Does the check that comes after another one find nothing wrong with this answer?"""
        pairs = [(case, compute(self.right, case)) for case in self.cases]
        return all(self._serves(changed, *pair, computing, writes=True) for pair in pairs)

    def _beyond(self) -> list[tuple[Case, Any]]:
        """Cases beyond those of the check, and what is right there: a change must serve these, too.

        Other random numbers for random ones, and for those that an answer draws (seed 1); where all
        inputs are numbers, larger sizes.
        """
        found = []
        for case, seed in product([case for case in self.cases if not case.edge], (7, 8, 9)):
            sizes = all(isinstance(x, int | float) for x in case.inputs)
            other = Case(case.name, *(_other(x, sizes, seed) for x in case.inputs))
            pairs = zip(case.inputs, other.inputs, strict=True)
            if seed == 7 or any(a is not b for a, b in pairs):
                right = compute(self.right, other, may_fail=True, seed=1)
                if right is not FAILED:
                    found.append((other, right))
        return found

    def _serves(
        self, changed: Any, case: Case, right: Any, computing: float, *, writes: bool, seed: int = 0
    ) -> bool:
        """Is this answer right on one case? In few steps: it is asked hundreds of times.

        It may write into its arguments only if the answer as it was `writes` there, too.
        """
        inputs = _fresh(case.inputs)
        torch.default_generator.manual_seed(seed)
        try:
            with time_limit(MOST_FOR_ONE), time_limit(computing, computing=True):
                result = fitted(plain(self._call(changed, *inputs)), right)
                if not self._same(Outcome(result), right):
                    return False
                if not writes and written_into(case.inputs, inputs):
                    return False
                return not any(
                    _said(table, Outcome(result, inputs=inputs))
                    for table in (self.any_form, self.also)
                )
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a changed answer raises
            return False

    def _same(self, outcome: Outcome, right: Any) -> bool:
        if outcome.error is not None or form_mistake(outcome.result, right):
            return False
        return not self.unique or close(outcome.result, right, self.tolerance)

    def _departed(self, answer: Any, code: Any, outcomes: list, rights: list) -> tuple[str, set]:
        """The line at which the answer's values leave those of the right computation, in words.

        And the lines whose values are right.
        """
        wrong = [
            n
            for n in self._told()
            if outcomes[n].error is None and not self._same(outcomes[n], rights[n])
        ]
        given = self.cases[0].inputs if self.cases else ()
        asked = self.unique and not (self.measured or self.design or any(map(callable, given)))
        if code is None or not wrong or not asked:
            return "", set()
        inputs = copy.deepcopy(self.cases[max(wrong, key=lambda n: _numel(rights[n]))].inputs)

        def of(computation: Callable, *first: Any) -> Callable:
            def run() -> Any:
                with torch_random_kept(0):
                    return computation(*first, *inputs)

            return run

        seen = call_safely(
            lambda _: departure(of(self._call, answer), of(self.right), inputs, code),
            seconds=self.seconds,
            convert=lambda found: found,
        ).result
        seen, sound = seen or (None, set())
        if seen is None:
            return "", sound
        text = line_of(code, seen.line)
        place = f"Line {seen.line}{text and f', `{text}`'}"
        if seen.seen == GOES_ON:
            return f"{place}: {GOES_ON}.", sound
        *others, last = [f"`{name}`" for name in seen.right] or [""]
        right = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        before = f"Your {right} right. " if last else ""
        what = f": {seen.seen}" if seen.seen else ""
        instead = f"; the right computation does `{seen.instead}` there" if seen.instead else ""
        said = (
            f"{before}{place}: here, at `{seen.name.strip('_')}`, your values depart from those "
            f"of the right computation{what}{instead}."
        )
        return said, sound

    def _writes(self, answer: Any, code: Any, number: int, outcome: Outcome) -> str:
        name = self._names()[outcome.written[0]]
        inputs = copy.deepcopy(self.cases[number].inputs)
        line = call_safely(
            lambda _: written_at(lambda: self._call(answer, *inputs), inputs, code),
            seconds=self.seconds,
        ).result
        where = f" on line {line}, `{line_of(code, line)}`" if line else ""
        return (
            f"You write into the argument `{name}`{where}. It belongs to the caller: make a copy."
        )

    def _form(self, got: Any, right: Any) -> str | None:
        """A sentence about a result of the wrong kind, shape or dtype; None if these are right."""
        form = form_mistake(got, right, self.axes)
        tensors = isinstance(got, torch.Tensor) and isinstance(right, torch.Tensor)
        if form and tensors and ordinary(got) and got.shape != right.shape and "order" not in form:
            return of_shape(got, right) or form
        return form

    def _seen(self, answer: Any, number: int, outcomes: list, rights: list) -> str:
        """What the result itself shows: an argument without use, a factor, a place."""
        if self.cases and not self.call and (idle := unused(answer)):
            return f"Your function never uses its argument `{idle[0]}`."
        if self.cases and (words := _looked(of_results, self._trials(outcomes, rights))):
            return words
        pairs = zip(outcomes, rights, strict=True)
        failed = [o.result for o, r in pairs if not self._same(o, r)]
        if all(isinstance(x, float) for x in failed) and (line := where_written(answer, failed)):
            text = line_of(code_of(answer), line)
            return (
                f"Your result, {failed[0]:g}, is written on line {line}, `{text}`: is it a bound "
                "of your search?"
            )
        if words := self._off_by_terms(answer, number, outcomes, rights):
            return words
        return self._first_difference(outcomes[number].result, rights[number])

    def _off_by_terms(self, answer: Any, number: int, outcomes: list, rights: list) -> str:
        """What a count has too much and too little, in terms of the sizes it is given."""
        given = self.cases[number].inputs if self.cases else ()
        at = [n for n, x in enumerate(given) if type(x) is int]
        numbers = [*given, outcomes[number].result, rights[number]]
        if not at or not all(isinstance(x, int | float) for x in numbers):
            return ""
        if (answer := copied(answer)) is None:  # on other sizes it could write another file
            return ""

        def off(*sizes: int) -> float:
            of = dict(zip(at, sizes, strict=True))
            inputs = [of.get(n, x) for n, x in enumerate(given)]
            return float(self._call(answer, *inputs)) - self.right(*inputs)

        def look(_: Any) -> str:
            with contextlib.redirect_stdout(io.StringIO()), effects_refused():
                return of_count(off, [self._names()[n] for n in at], [given[n] for n in at])

        return call_safely(look, seconds=MOST_SECONDS).result or ""

    def _told(self) -> list[int]:
        """The numbers of the cases that name a mistake."""
        return [n for n, case in enumerate(self.cases) if not case.edge]

    def _trials(self, outcomes: list, rights: list) -> list[Trial]:
        found = []
        for n in self._told():
            got, right = outcomes[n].result, rights[n]
            if self._same(outcomes[n], right) or outcomes[n].error is not None:
                continue
            pair = [
                torch.tensor(x, dtype=torch.bool if isinstance(x, bool) else torch.float64)
                if isinstance(x, bool | int | float)
                else x
                for x in (got, right)
            ]
            if not all(isinstance(x, torch.Tensor) for x in pair) or pair[0].shape != pair[1].shape:
                return []
            found.append(Trial(*pair, dict(zip(self._names(), self.cases[n].inputs, strict=True))))
        return found

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


def _looked(look: Callable, *arguments: Any) -> Any:
    try:
        return look(*arguments)
    except TOO_ODD:
        return None


def _or(found: Sequence[Mended]) -> str:
    """One change, or two of which either would do: nobody knows which the reader meant."""
    return " Or else l".join([str(found[0]), *(str(other)[1:] for other in found[1:])])


def _is_said(value: Any) -> bool:
    """Is this True or False, or some of these by name?"""
    values = value.values() if isinstance(value, Mapping) else [value]
    return all(isinstance(x, bool) for x in values)


def _numel(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(map(_numel, value))
    return value.numel() if isinstance(value, torch.Tensor) else 1


def _fresh(inputs: tuple) -> tuple:
    """Copies of the inputs: `deepcopy`, but soon, for the tensors that most of them are."""
    return tuple(
        x if isinstance(x, int | float | str) else x.clone() if _leaf(x) else copy.deepcopy(x)
        for x in inputs
    )


def _other(x: Any, sizes: bool, seed: int) -> Any:
    """Another input of the same kind: other random numbers, two to four times the size."""
    if type(x) is int and sizes:
        return (seed - 5) * x
    if not _leaf(x) or not x.is_floating_point() or x.numel() < 2 or not bool(x.isfinite().all()):
        return x
    both = bool((x > 0).any()) and bool((x < 0).any())
    return randn(*x.shape, seed=seed, dtype=x.dtype) * x.std() if both else x


def _leaf(x: Any) -> bool:
    return type(x) is torch.Tensor and not x.requires_grad


def compute(computation: Any, case: Case, *, may_fail: bool = False, seed: int = 0) -> Any:
    """The result of a right or wrong computation, with the random numbers that an answer gets."""
    if not callable(computation):
        return computation
    with torch_random_kept(seed):
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


def _is_none(value: Any) -> bool:
    """Is this None, or None for each thing that was asked?"""
    values = value.values() if isinstance(value, Mapping) else [value]
    return all(item is None for item in values)


def _blank(value: Any) -> bool:
    """Is this a place that nobody has filled in: None, `...`, or a tuple that holds such?"""
    if value is None or value is Ellipsis or value is NotImplemented:
        return True
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple) or not value:
        return False
    return any(item is Ellipsis for item in value) or all(item is None for item in value)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Repair(Exercise):
    """An `Exercise` about a function that the reader is given with a mistake in it.

    broken     the function as the reader gets it
    unchanged  the sentence for an answer that still does what the broken one does on every case;
               a clue, not the cure

    Give cases where the break shows, and at least one where it does not, if there are such: an
    answer that spoils what worked is told so, and so is one that mends a part of the break only.
    `wrong` holds the typical cures that do not cure, as in any exercise.

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
    ✗ Line 1, `lambda x: sum(x) / 3`: 3 is written down where `len(x)` belongs.
    >>> mend(lambda x: sum(x) / len(x))
    ✓ Right.
    """

    broken: Callable = None
    unchanged: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.broken) or not self.cases:
            raise TypeError("a Repair needs the `broken` function and cases to try an answer on")
        object.__setattr__(self, "_known", [])

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
        """For each case: is the broken function right there?"""
        for case in self.cases if not self._known else ():
            theirs, right = self._of_broken(case), compute(self.right, case)
            self._known.append(theirs is not FAILED and close(theirs, right, self.tolerance))
        return self._known

    def _of_broken(self, case: Any) -> Any:
        return compute(lambda *inputs: self._call(self.broken, *inputs), case, may_fail=True)

    def _named(self, outcomes: Sequence[Outcome], rights: Sequence[Any]) -> str | None:
        agrees, _ = self._agrees(lambda *inputs: self._call(self.broken, *inputs), outcomes, rights)
        return self._as_given if agrees and self.shows() else super()._named(outcomes, rights)

    @property
    def _as_given(self) -> str:
        return f"This still does what the broken function does. {self.unchanged}".strip()

    def _with_line(self, own: str, answer: Any, outcomes: list, rights: list) -> str:
        """An answer that mends nothing gets a clue, and not the cure."""
        return own if own == self._as_given else super()._with_line(own, answer, outcomes, rights)

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
            return f"{where} {case.name} your answer still does what the broken function does"
        return super()._place(number, outcomes, passed)
