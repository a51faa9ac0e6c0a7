"""How an answer uses its arguments: right for others, blind to one, never the same twice.

`as_if` asks whether the result would be right if an argument were another: transposed, one less,
swapped with its neighbor. `Probe` calls the answer again, with one argument changed.
"""

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.engine.calling import Outcome, call_safely
from transformer_lib.exercises.engine.comparing import close

MOST_SECONDS = 1.5  # for all that is tried after a wrong answer

Change = tuple[str, Callable[[dict[str, Any]], Any]]  # words, and the arguments instead


def changes(inputs: Mapping[str, Any]) -> Iterator[Change]:
    """What a reader may have used in place of the arguments, and how to say so after "if".

    >>> [words for words, _ in changes({"i": 2})]
    ['`i` were `i - 1`: do positions count from 0?', '`i` were `i + 1`', '`i` were 0']
    """
    names = list(inputs)
    for one in names:
        for other in names[names.index(one) + 1 :]:
            if _alike(inputs[one], inputs[other]):
                swap = {one: other, other: one}
                yield f"`{one}` and `{other}` were swapped", _using(swap)
    square = [k for k, v in inputs.items() if isinstance(v, Tensor) and _square(v)]
    if len(square) > 1:
        words = ", ".join(f"`{name}`" for name in square[:-1]) + f" and `{square[-1]}`"
        for some, told in ((square, words), (square[:-1], words.rsplit(" and", 1)[0])):
            if len(some) > 1:
                yield f"{told} were transposed", _transposing(some)
    for name, value in inputs.items():
        for other in names:
            if other != name and _alike(inputs[other], value):
                yield f"`{name}` were `{other}`", _using({name: other})
        for words, change in _instead(name, value):
            yield words, _changing(name, change)


def _square(value: Tensor) -> bool:
    return value.ndim == 2 and value.shape[0] == value.shape[1] and value.is_floating_point()


def _transposing(names: Sequence[str]) -> Callable:
    return lambda inputs: {k: x.mT if k in names else x for k, x in inputs.items()}


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.ndim == other.ndim and one.dtype == other.dtype
    return (
        type(one) is type(other)
        and not isinstance(one, bool)
        and isinstance(one, int | float | str)
    )


def _using(names: Mapping[str, str]) -> Callable:
    return lambda inputs: {name: inputs[names.get(name, name)] for name in inputs}


def _changing(name: str, change: Callable) -> Callable:
    return lambda inputs: {**inputs, name: change(inputs[name])}


def _instead(name: str, value: Any) -> Iterator[tuple[str, Callable]]:
    if isinstance(value, bool):
        yield f"`{name}` were the opposite", lambda x: not x
        yield f"`{name}` were always True: is it used?", lambda x: True
        yield f"`{name}` were always False: is it used?", lambda x: False
    elif isinstance(value, int):
        yield f"`{name}` were `{name} - 1`: do positions count from 0?", lambda x: x - 1
        yield f"`{name}` were `{name} + 1`", lambda x: x + 1
        yield f"`{name}` were 0", lambda x: 0
        if value > 2:
            yield f"`{name}` were 1: is it used?", lambda x: 1
    elif isinstance(value, float):
        yield f"`{name}` were 1: is it used?", lambda x: 1.0
        yield f"`{name}` were `1 / {name}`", lambda x: 1 / x
        yield f"`{name}` were `{name} ** 2`: is it used twice?", lambda x: x**2
        yield f"`{name}` were `{name} ** 0.5`", lambda x: x**0.5
        yield f"`{name}` were `-{name}`", lambda x: -x
        yield f"`{name}` were divided by ln 2: from nats to bits?", lambda x: x / math.log(2)
        yield f"`{name}` were multiplied by ln 2: from bits to nats?", lambda x: x * math.log(2)
        yield f"`{name}` were `1 / {name} ** 2`", lambda x: 1 / x**2
        yield f"`{name}` were `1 / {name} ** 0.5`", lambda x: 1 / x**0.5
    elif isinstance(value, Tensor) and value.ndim and not value.requires_grad:
        yield from _tensors_instead(name, value)


def _tensors_instead(name: str, value: Tensor) -> Iterator[tuple[str, Callable]]:
    if value.ndim >= 2:
        yield f"`{name}` were transposed", lambda x: x.mT
        if _square(value):
            yield f"`{name}` were the identity: is it used?", lambda x: torch.eye(len(x)).to(x)
    if value.dtype == torch.bool:
        yield f"`{name}` were inverted", lambda x: ~x
        yield f"all of `{name}` were True: is it used?", torch.ones_like
        yield f"all of `{name}` were False", torch.zeros_like
    elif not value.is_floating_point():
        yield f"`{name}` were its inverse, `{name}.argsort()`", lambda x: x.argsort()
    else:
        size = f"{name}.shape[-1]"
        yield f"`{name}` were divided by `{size} ** 0.5`", lambda x: x / x.shape[-1] ** 0.5
        yield f"`{name}` were multiplied by `{size} ** 0.5`", lambda x: x * x.shape[-1] ** 0.5
        yield f"`{name}` were divided by `{size}`", lambda x: x / x.shape[-1]
        yield f"`{name}` were `-{name}`", lambda x: -x
        yield f"`{name}` were squared", lambda x: x**2
        yield f"`{name}` were doubled", lambda x: 2 * x
        yield f"`{name}` had lost its signs (`abs`)", lambda x: x.abs()
        yield f"all of `{name}` were 0: is it used?", torch.zeros_like
        yield f"all of `{name}` were 1", torch.ones_like
        yield f"`{name}` went through a softmax first", lambda x: x.softmax(-1)
        yield f"`{name}` were divided by its length", lambda x: x / x.norm(dim=-1, keepdim=True)
    for axis in range(value.ndim):
        words = f"along axis {axis}" if value.ndim > 1 else ""
        yield f"`{name}` were reversed {words}".strip(), lambda x, a=axis: x.flip(a)
        yield (
            f"`{name}` were moved on by one place {words}".strip(),
            lambda x, a=axis: x.roll(1, a),
        )
        yield (
            f"`{name}` were moved back by one place {words}".strip(),
            lambda x, a=axis: x.roll(-1, a),
        )
        yield (
            f"only the first of `{name}` {words} were used".replace("  ", " "),
            lambda x, a=axis: x.narrow(a, 0, 1).expand_as(x).clone(),
        )
        if value.is_floating_point():
            yield (
                f"the mean of `{name}` {words} were used".replace("  ", " "),
                lambda x, a=axis: x.mean(a, keepdim=True).expand_as(x).clone(),
            )


def as_if(
    right: Callable,
    inputs: Sequence[Mapping[str, Any]],
    outcomes: Sequence[Outcome],
    rights: Sequence[Any],
    tolerance: tuple[float, float] | None,
    deadline: float,
) -> str | None:
    """Would the answer be right on every case if an argument were another one? In which way?

    `right` is called with changed copies of the inputs. It may raise; then the answer must have
    raised, too. A change that leaves every right result as it is says nothing.
    """
    pairs = enumerate(zip(outcomes, rights, strict=True))
    wrong = (n for n, (o, r) in pairs if o.error is None and not close(o.result, r, tolerance))
    if (first := next(wrong, None)) is None:
        return None
    order = [first, *(n for n in range(len(inputs)) if n != first)]
    for words, change in changes(inputs[first]):
        if time.monotonic() > deadline:
            return None
        if all(_agrees(right, change, inputs[n], outcomes[n], tolerance) for n in order):
            return f"Your result would be right if {words}" + ("" if words.endswith("?") else ".")
    return None


def _agrees(
    right: Callable, change: Callable, inputs: Mapping[str, Any], outcome: Outcome, tolerance: Any
) -> bool:
    try:
        theirs = right(**change(copy.deepcopy(dict(inputs))))
    except Exception:  # the right computation was not made for such arguments
        return outcome.error is not None
    return outcome.error is None and close(outcome.result, theirs, tolerance)


@dataclass(frozen=True)
class Probe:
    """Calls the answer once more, on one case, with other arguments or other random numbers."""

    call: Callable  # call(answer, *inputs)
    answer: Any
    right: Callable
    inputs: Mapping[str, Any]
    result: Any
    seconds: float

    def again(self, inputs: Mapping[str, Any], seed: int = 0) -> Outcome:
        """The outcome for these inputs."""
        given = tuple(inputs.values())
        return call_safely(self.call, self.answer, given, seconds=self.seconds, seed=seed)

    def scatter(self, tolerance: tuple[float, float]) -> str | None:
        """A sentence if an estimate moves by more than it may when other numbers are drawn."""
        others = [self.again(self.inputs, seed).result for seed in (1, 2, 3)]
        found = [float(x) for x in (self.result, *others) if x is not None]
        if len(found) > 1 and not all(close(x, found[0], tolerance) for x in found):
            return (
                f"With other random numbers your estimate is anything from {min(found):.3g} to "
                f"{max(found):.3g}: draw more of them."
            )
        return None

    def random(self) -> str | None:
        """A sentence if the result depends on random numbers."""
        outcome = self.again(self.inputs, seed=1)
        if outcome.error is None and not _equal(outcome.result, self.result):
            return (
                "Your result is another one with each call: something random is in it, a dropout "
                "or a fresh layer."
            )
        return None

    def ignores(self, code: CodeType | None) -> str | None:
        """A sentence if an argument changes nothing, though it must."""
        here = _try(self.right, self.inputs)
        if isinstance(self.result, Tensor) and not self.result.numel():
            return None
        for name, value in self.inputs.items():
            tried = 0
            for other in _others(value):
                changed = {**self.inputs, name: other}
                there = _try(self.right, changed)
                if there is None or here is None or close(there, here):
                    continue
                outcome = self.again(changed)
                if outcome.error is not None or not _equal(outcome.result, self.result):
                    break
                tried += 1
            else:
                if tried:
                    return f"The argument `{name}` changes nothing in your result{_why(name, code)}"
        return None

    def mixes(self, axes: Sequence[str]) -> str | None:
        """A sentence if a part of an argument reaches what it must not, or not what it must."""
        here = _try(self.right, self.inputs)
        if not isinstance(here, Tensor) or not isinstance(self.result, Tensor) or not here.ndim:
            return None
        for name, value in self.inputs.items():
            if not isinstance(value, Tensor) or value.ndim < 2 or not value.is_floating_point():
                continue
            for axis in range(value.ndim - 1):
                if sentence := self._reaches(name, value, axis, here, axes):
                    return sentence
        return None

    def _reaches(
        self, name: str, value: Tensor, axis: int, here: Tensor, axes: Sequence[str]
    ) -> str | None:
        place = ", ".join(":" if n != axis else "-1" for n in range(axis + 1))
        moved = value.detach().clone()
        moved.select(axis, -1).mul_(-0.5).add_(0.25)
        changed = {**self.inputs, name: moved}
        there, outcome = _try(self.right, changed), self.again(changed)
        if not isinstance(there, Tensor) or outcome.error is not None:
            return None
        if not isinstance(outcome.result, Tensor) or outcome.result.shape != self.result.shape:
            return None
        if there.shape != here.shape or self.result.shape != here.shape:
            return None
        must, does = _differ(there, here), _differ(outcome.result, self.result)
        names = axes if len(axes) == here.ndim else [f"axis {n}" for n in range(here.ndim)]
        for along in range(min(here.ndim, 3)):
            rest = [n for n in range(here.ndim) if n != along]
            wanted = must.any(dim=rest) if rest else must
            found = does.any(dim=rest) if rest else does
            if bool((found & ~wanted).any()) and not bool((wanted & ~found).any()):
                at = int((found & ~wanted).nonzero()[0])
                return (
                    f"Number {at} along the axis `{names[along]}` of your result changes with "
                    f"`{name}[{place}]`, which it must not see."
                )
            if bool((wanted & ~found).any()):
                at = int((wanted & ~found).nonzero()[0])
                return (
                    f"Number {at} along the axis `{names[along]}` of your result does not change "
                    f"with `{name}[{place}]`: nothing of it arrives there."
                )
        return None


def _differ(one: Tensor, other: Tensor) -> Tensor:
    return ~torch.isclose(one.double(), other.double(), rtol=1e-5, atol=1e-7, equal_nan=True)


def _try(right: Callable, inputs: Mapping[str, Any]) -> Any:
    try:
        return right(**copy.deepcopy(dict(inputs)))
    except Exception:  # the right computation was not made for such arguments
        return None


def _equal(one: Any, other: Any) -> bool:
    try:
        return close(one, other, (1e-6, 1e-9))
    except TypeError:
        return False


def _others(value: Any) -> list:
    """Other values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 3 * value + 1, max(1, value // 2)]
    if isinstance(value, float):
        return [1.5 * value, 0.6 * value]
    if not isinstance(value, Tensor) or not value.ndim or not value.numel():
        return []
    if value.dtype == torch.bool:
        return [value.roll(1, -1), ~value]
    if value.is_floating_point():
        return [1.1 * value.detach().roll(1, -1) - 0.2, 0.3 - 0.7 * value.detach()]
    return [value.flip(0)]


def _why(name: str, code: CodeType | None) -> str:
    """Does the answer read a variable of the notebook that is called almost the same?"""
    for other in code.co_names if code else ():
        if other != name and other.casefold() == name.casefold():
            return f": you use `{other}`, a variable of the notebook."
    return ": is it used?"


def fixed_size(
    code: CodeType | None, right: Callable, right_on: Sequence[set], wrong_on: Sequence[set]
) -> str | None:
    """A sentence if a number in the code is a size of every right case and of no wrong one.

    A number that the right computation holds too means something else.
    """
    if code is None or not right_on or not wrong_on:
        return None
    common = set.intersection(*right_on) - set.union(*wrong_on)
    for number in sorted(common & _numbers(code) - _numbers_of(right), reverse=True):
        if number > 1:
            return (
                f"Your code holds the number {number}, a size of the cases on which it is right: "
                "take it from the shape of the input."
            )
    return None


def _numbers_of(function: Callable, depth: int = 2) -> set[int]:
    """The whole numbers in a function and in those of its module that it calls."""
    code = getattr(function, "__code__", None)
    if code is None:
        return set()
    found = _numbers(code)
    for name in code.co_names if depth else ():
        called = function.__globals__.get(name)
        if getattr(called, "__module__", "") == function.__module__:
            found |= _numbers_of(called, depth - 1)
    return found


def _numbers(code: CodeType) -> set[int]:
    found = {x for x in code.co_consts if type(x) is int}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _numbers(inner)
        if isinstance(inner, tuple):
            found |= {x for x in inner if type(x) is int}
    return found
