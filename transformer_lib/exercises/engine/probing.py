"""Mistakes with arguments: one is ignored, a result changes by itself, a size is written down.

`Probe` calls the answer again, with one argument changed.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.engine.calling import Outcome, call_safely
from transformer_lib.exercises.engine.comparing import close


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
