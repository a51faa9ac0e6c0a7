"""For which other arguments a wrong result would be right: transposed, one less, swapped."""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.engine.calling import Outcome
from transformer_lib.exercises.engine.comparing import close

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
    order = wrong_first(outcomes, rights, tolerance)
    if not order:
        return None

    def agrees(change: Callable, n: int) -> bool:
        try:
            theirs = right(**change(copy.deepcopy(dict(inputs[n]))))
        except Exception:  # the right computation was not made for such arguments
            return outcomes[n].error is not None
        return outcomes[n].error is None and close(outcomes[n].result, theirs, tolerance)

    return first_that_fits(changes(inputs[order[0]]), agrees, order, deadline)


def wrong_first(
    outcomes: Sequence[Outcome], rights: Sequence[Any], tolerance: tuple[float, float] | None
) -> list[int]:
    """The cases by number, one with a wrong result first; none if no result is wrong."""
    pairs = enumerate(zip(outcomes, rights, strict=True))
    wrong = (n for n, (o, r) in pairs if o.error is None and not close(o.result, r, tolerance))
    if (first := next(wrong, None)) is None:
        return []
    return [first, *(n for n in range(len(outcomes)) if n != first)]


def first_that_fits(
    guesses: Iterable[tuple[str, Any]],
    agrees: Callable[[Any, int], bool],
    order: Sequence[int],
    deadline: float,
) -> str | None:
    """The sentence of the first guess that agrees with the answer on every case.

    `guesses` are words, and what `agrees(guess, n)` is given; None if there is none in time.
    """
    for words, guess in guesses:
        if time.monotonic() > deadline:
            return None
        if all(agrees(guess, n) for n in order):
            return f"Your result would be right if {words}" + ("" if words.endswith("?") else ".")
    return None
