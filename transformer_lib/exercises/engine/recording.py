"""Record what an answer computes, line by line, and find where it leaves the right computation.

A `TorchFunctionMode` sees every operation on tensors, whoever calls it and by which name; the line
is that of the reader's own frame. The right computation is recorded in the same way, and each value
of the answer is looked for among its values: as it is, transposed, reshaped, or as a part of one.
The answer leaves the right way at the first operation whose inputs are known, whose result is not,
and from which nothing known is made any more. So a detour (a maximum taken off before a softmax) is
not held against it.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_lib.exercises.engine.observing import ratio, relation, same

_RESHAPES = {"reshape", "view", "flatten", "unflatten", "view_as"}
_PREPARING = {"to", "float", "zeros_like", "scatter", "clone", "flatten", "unflatten"}
_ARITHMETIC = {"add", "sub", "mul", "div", "pow", "where", "masked_fill", "clamp"}
GOES_ON = "all that you compute is right so far; the right computation goes on"
NAN = "a NaN arises: 0 · inf, 0/0, inf/inf or inf − inf"
MOST_STEPS = 5_000
MOST_NUMBERS = 20_000  # of one tensor


@dataclass
class Step:
    """One operation: its line in the answer, what goes in, what comes out (as it was then)."""

    line: int
    name: str
    inputs: list[int]  # identities of tensors
    output: int
    value: Tensor
    names: dict[str, int]  # the answer's variables at this time


class Recorder(TorchFunctionMode):
    """Records operations as `steps`; with a `code`, those called by it or in its file, by line."""

    def __init__(self, code: CodeType | None = None) -> None:
        super().__init__()
        self.code, self.steps, self._kept = code, [], []
        self._own = set(_inside(code)) if code else set()

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None):
        result = func(*args, **(kwargs or {}))
        if len(self.steps) < MOST_STEPS:
            name = getattr(func, "__name__", "")
            if name == "__get__":  # an attribute: `x.mT`
                name = getattr(func.__self__, "__name__", name)
            self._note(name, result, [*args, *(kwargs or {}).values()])
        return result

    def _note(self, name: str, result: Any, args: list) -> None:
        given = list(_tensors(args))
        made = list(_tensors([result]))
        if name == "__setitem__" or (name.endswith("_") and not name.endswith("__")):
            made = given[:1]
        made = [x for x in made if x.layout == torch.strided and x.numel() <= MOST_NUMBERS]
        if not made or name == "__set__":
            return
        line, names = self._line()
        with torch._C.DisableTorchFunction():
            for x in made:
                inputs = [id(i) for i in given]
                value = x.detach().clone()
                self.steps.append(Step(line, name, inputs, id(x), value, names))
        self._kept += [*given, *made]  # as long as they live, no other tensor has their identity

    def sources(self, step: Step) -> list[Tensor]:
        """The values that went into a step, as they are now."""
        return [x.detach() for x in self._kept if id(x) in step.inputs]

    def _line(self) -> tuple[int, dict[str, int]]:
        frame = sys._getframe(3) if self.code else None
        while frame and frame.f_code not in self._own:
            frame = frame.f_back
        if frame is None:
            return 0, {}
        names = {k: id(v) for k, v in frame.f_locals.items() if isinstance(v, Tensor)}
        return frame.f_lineno, names


def _inside(code: CodeType):
    """A code and those within it: comprehensions, inner functions, the methods of a class."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inside(constant)


def _tensors(values: Sequence[Any]):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


@dataclass(frozen=True)
class Departure:
    """Where an answer leaves the right way: the line, which of its variables are still right."""

    line: int
    name: str
    right: list[str]
    seen: str  # what its value has to do with a right one
    instead: str  # the operation that the right computation does there


def departure(
    answer: Callable, right: Callable, inputs: tuple, code: CodeType
) -> tuple[Departure | None, set[int]]:
    """The first line of `answer()` that makes what `right()` does not; None if none can be told.

    And the lines that are sound: what they make is made by `right()`, too, in the very same form.
    """
    theirs, ours = Recorder(), Recorder(code)
    with theirs:
        wanted = right()
    asked = _real(_tensors(list(inputs)))
    computed = _real([*(step.value for step in theirs.steps), *_tensors([wanted])])
    known = computed + asked
    with ours:
        result = answer()
    steps = ours.steps
    if not any(map(_no_number, known)) and (step := _first_nan(steps)):
        return Departure(step.line, step.name, [], NAN, ""), set()
    results = {id(x) for x in _tensors([_wrong(result, wanted)])}
    leads = (
        _leading(steps, results) if results & {s.output for s in steps} else set(range(len(steps)))
    )
    sound = _sound(steps, [step.value for step in theirs.steps])
    if not leads or not (results or wanted is None):
        return None, sound
    made: dict[int, int] = {}
    before: list[list[int]] = []  # the steps that each step's inputs come from
    for n, step in enumerate(steps):
        before.append([made[i] for i in step.inputs if i in made])
        made[step.output] = n
    found = [
        _found(s.value, computed if _idle(s, asked) else known, s.name in _RESHAPES) for s in steps
    ]
    multiple = [f or _multiple(step.value, known) for f, step in zip(found, steps, strict=True)]
    constant: list[bool] = []  # made of no input: counted places, zeros
    even: list[bool] = []  # one number, everywhere
    given = {id(x) for x in _tensors(list(inputs))}
    for n, step in enumerate(steps):
        free = not any(i in given or i not in made for i in step.inputs)
        flat = step.value.flatten()
        even.append(flat.numel() > 0 and bool((flat == flat[0]).all()))
        like = even[n] and step.name.endswith("_like")
        constant.append(like or (free and all(constant[b] for b in before[n])))

    def leaves(fine: list[bool]) -> int | None:
        returns = [False] * len(steps)  # something known is made of it later
        for n in reversed(range(len(steps))):
            for b in before[n]:
                returns[b] = returns[b] or returns[n] or (fine[n] and steps[n].value.numel() > 1)
        for n in sorted(leads):
            gone = not (fine[n] or returns[n] or constant[n]) and steps[n].line
            if gone and all(fine[b] or constant[b] for b in before[n]):
                return n
        return None

    # A factor (a sign, a scale) may be taken out and put in elsewhere. If it never is, it is wrong.
    last = max(leads)
    gone = leaves(found if multiple[last] else multiple)
    if gone is None:  # all of it is known: the last is right in its numbers, and not in its form
        gone = max((n for n in leads if steps[n].line), default=None)
        if gone == last and _is_on_the_way(steps[last].value, theirs.steps, [wanted, *inputs]):
            return Departure(steps[last].line, steps[last].name, [], GOES_ON, ""), sound
    if gone is None:
        return None, sound
    # What is made of no input, and is not made by the right computation, may be the wrong one.
    while own := [b for b in before[gone] if constant[b] and not (even[b] or multiple[b])]:
        if len(own) > 1 or not steps[own[0]].line:
            return None, sound
        gone = own[0]
    # What only gathers went wrong where its pieces were picked.
    picked = [steps[b] for b in before[gone] if steps[gone].name in ("stack", "cat")]
    if {s.name for s in picked} == {"__getitem__"} and steps[gone].line != picked[0].line:
        gone = before[gone][0]
    step = steps[gone]
    values = [s.value for s in theirs.steps if s.name == step.name]
    seen = next((words for x in reversed(values) if (words := relation(step.value, x))), "")
    still = [
        name
        for name, which in step.names.items()
        if which not in given and which in made and found[made[which]] and not constant[made[which]]
    ]
    instead = _instead(step, steps, before[gone], theirs)
    return Departure(step.line, step.name, still, seen, instead), sound


def _is_on_the_way(value: Tensor, theirs: Sequence[Step], ends: Sequence[Any]) -> bool:
    """Does the right computation make this, too, between what is given and what is wanted?"""
    at_an_end = any(same(value, x.detach()) for x in _tensors(ends))
    return not at_an_end and any(same(value, step.value) for step in theirs)


def _no_number(value: Tensor) -> bool:
    return bool((value != value).any())


def _first_nan(steps: Sequence[Step]) -> Step | None:
    """The first step that makes a NaN of numbers, if none takes it away again."""
    first, spoiled = None, set()
    for step in steps:
        before, now = bool(spoiled & set(step.inputs)), _no_number(step.value)
        if before and not now and step.value.is_floating_point():
            return None
        first = first or (step if now and not before and step.line else None)
        spoiled = spoiled | {step.output} if now else spoiled - {step.output}
    return first


def _wrong(result: Any, wanted: Any) -> Any:
    """The items of a tuple that are not as they are wanted; a result that is no tuple."""
    if not isinstance(result, list | tuple) or not isinstance(wanted, list | tuple):
        return result
    pairs = zip(result, wanted, strict=False)
    return [x for x, y in pairs if not (isinstance(x, Tensor) and same(x, torch.as_tensor(y)))]


def _sound(steps: Sequence[Step], known: Sequence[Tensor]) -> set[int]:
    """The lines before the last whose value is a known one, or a row of one, or has it as a row."""
    last = {s.line: s.value for s in steps}
    known = [x for x in known if x.numel() > 1 and _telling(x)]
    return {
        line
        for line, x in last.items()
        if line != steps[-1].line and _telling(x) and any(_rows(x, y) for y in known)
    }


def _telling(value: Tensor) -> bool:
    """Not a mask, and not a row of places: these are easily alike."""
    return value.is_floating_point() or (value.dtype != torch.bool and value.ndim > 1)


def _rows(value: Tensor, known: Tensor) -> bool:
    if value.ndim == known.ndim:
        return same(value, known)
    many, one = (value, known) if value.ndim > known.ndim else (known, value)
    return (
        one.numel() > 1
        and many.ndim == one.ndim + 1
        and any(same(row, one) for row in many.unbind(0))
    )


def written_at(answer: Callable, inputs: tuple, code: CodeType | None) -> int:
    """The line of the answer that first writes into one of the inputs; 0 if it is not seen."""
    if code is None:
        return 0
    given = {id(x) for x in _tensors(list(inputs))}
    with Recorder(code) as ours:
        answer()
    steps = (s for s in ours.steps if s.output in given and s.name.endswith("_"))
    return next((s.line for s in steps), 0)


def _instead(step: Step, steps: Sequence[Step], before: list[int], theirs: Recorder) -> str:
    """What the right computation does with what the answer had there; "" if it is the same."""
    values = [steps[b].value for b in before]
    for other in theirs.steps:
        if other.name == step.name or other.name in _PREPARING:
            continue
        for n in theirs.sources(other):
            if any(v.numel() > 1 and same(v, n) for v in values):
                return "" if other.name.startswith("__") else other.name
    return ""


def _leading(steps: Sequence[Step], results: set[int]) -> set[int]:
    """The steps that a result is made of."""
    wanted, leading = set(results), set()
    for n in reversed(range(len(steps))):
        if steps[n].output in wanted:
            leading.add(n)
            wanted |= set(steps[n].inputs)
    return leading


def _real(values: Iterable[Tensor]) -> list[Tensor]:
    return [x.detach() for x in values if x.numel() and not x.is_complex()]


def _idle(step: Step, asked: Sequence[Tensor]) -> bool:
    """A computation that left what was given as it was: on other numbers, it does something."""
    return step.name in _ARITHMETIC and any(
        step.value.shape == x.shape and same(step.value, x) for x in asked
    )


def _multiple(value: Tensor, known: Sequence[Tensor]) -> bool:
    """Is this some number times one of the known values?"""
    shaped = [x for x in known if x.shape == value.shape and value.numel() > 1]
    return any(ratio(value, x) is not None for x in shaped)


def _found(value: Tensor, known: Sequence[Tensor], reshaped: bool) -> bool:
    """Is this one of the known values, perhaps transposed, or a part of one?

    In another shape it counts, too, but not right after a reshape: that may have torn it apart.
    """
    if value.numel() <= 1:
        value = value.double()
        return any(bool(((x.double() - value).abs() <= 1e-5 * value.abs()).any()) for x in known)
    for x in known:
        if x.numel() == value.numel():
            if x.shape == value.shape and same(value, x):
                return True
            orders = permutations(range(x.ndim)) if x.ndim <= 4 else ()
            flat = value.flatten()
            whole = not reshaped and same(flat, x.flatten())
            if whole or any(same(value, x.permute(order)) for order in orders):
                return True
        elif x.numel() > value.numel() and 1 < x.ndim <= 4 and value.ndim < x.ndim:
            for axis in range(x.ndim):
                flat = value.flatten()
                if x.numel() // x.shape[axis] == flat.numel() and any(
                    same(flat, part.flatten()) for part in x.unbind(axis)
                ):
                    return True
    return False
