"""Causes that the numbers of a wrong result show: the order, a step left out, and `factors`.

Each function here is given `trials`, the cases on which an answer is wrong in its numbers and
right in its form, and says what holds on **all** of them, as a sentence, or None. Nothing is called
again: `probing` does that. `weights` looks at numbers that must sum to 1, `masks` at booleans.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_lib.exercises.engine.factors import factor, named_factor, offset, row_factors
from transformer_lib.exercises.engine.trials import Trial, axis_name, same


def of_numbers(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence about numbers that are wrong in the same way everywhere; None if there is none."""
    if not trials:
        return None
    looks = (factor, offset, _symmetric, row_factors, _diagonal, _zero_sums, _surplus)
    return next((sentence for look in looks if (sentence := look(trials, axes))), None)


def of_form(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """The same for what shows before anything is known of the numbers: left empty, moved, added."""
    looks = [_empty_parts, another_order, named_factor, _added, _transformed]
    if trials[0].right.numel() > 1:  # one number always is some multiple of another
        looks += [factor, offset]
    return next((sentence for look in looks if (sentence := look(trials, axes))), None)


def of_place(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence about where the result is right, if that is a part along one axis."""
    if not trials or not (ndim := trials[0].right.ndim):
        return None
    found = [_right_parts(trials[0], axis) for axis in range(ndim)]
    wrong = [(len(bad), axis) for axis, (good, bad) in enumerate(found) if good and bad]
    for _, axis in sorted(wrong):
        if all(_right_parts(trial, axis)[0] for trial in trials):
            good, bad = found[axis]
            name = axis_name(axes, axis, ndim)
            if good == [0] and len(bad) > 1:
                return f"Only the first is right along the axis `{name}`, the rest is not."
            if len(good) == 1 and len(bad) > 1:
                return f"Only number {good[0]} is right along the axis `{name}`, the rest is not."
            where = "the last" if bad == [len(good)] else _count(bad)
            return f"Right but for {where} along the axis `{name}` (counted from 0)."
    return None


def _count(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    return f"number {shown}" if len(numbers) == 1 else f"numbers {shown}"


def _right_parts(trial: Trial, axis: int) -> tuple[list[int], list[int]]:
    good, bad = [], []
    for index in range(trial.right.shape[axis]):
        pair = trial.got.select(axis, index), trial.right.select(axis, index)
        (good if same(*pair) else bad).append(index)
    return good, bad


# --- all equal, another order -----------------------------------------------------------------


def all_equal(trials: Sequence[Trial]) -> str | None:
    """A sentence if every number of a result is the same, though the right ones differ."""
    if any(trial.got.numel() < 2 or trial.right.std() == 0 for trial in trials):
        return None
    values = [float(trial.got.flatten()[0]) for trial in trials]
    if not all(same(t.got, torch.full_like(t.got, v)) for t, v in zip(trials, values, strict=True)):
        return None
    if not any(values):
        return "All numbers of your result are 0: is it ever filled in?"
    return f"All numbers of your result are equal, {values[0]:.4g} each, whatever the arguments."


def _empty_parts(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """Is a part along an axis all 0, though the right one is not?"""
    ndim = trials[0].right.ndim
    for axis in range(ndim) if trials[0].right.numel() > 1 else ():
        empty = [
            [
                n
                for n in range(t.right.shape[axis])
                if not t.got.select(axis, n).any() and t.right.select(axis, n).any()
            ]
            for t in trials
        ]
        if all(empty) and any(
            len(e) < t.right.shape[axis] for e, t in zip(empty, trials, strict=True)
        ):
            name = axis_name(axes, axis, ndim)
            return f"Your result is all 0 for {_count(empty[0])} along the axis `{name}`."
    return None


def _added(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """Is the result the right one plus, or minus, an argument?"""
    for name in trials[0].inputs:
        given = [t.inputs[name] for t in trials]
        if not all(
            isinstance(x, Tensor) and x.shape == t.right.shape
            for x, t in zip(given, trials, strict=True)
        ):
            continue
        for sign, words in ((1, "plus"), (-1, "minus")):
            pairs = zip(given, trials, strict=True)
            if all(same(t.got, t.right + sign * x.detach().double()) for x, t in pairs):
                return f"Your result is the right one {words} `{name}`."
        if all(same(t.got, x.detach().double()) for x, t in zip(given, trials, strict=True)):
            return f"Your result is `{name}` itself, unchanged."
    return None


def another_order(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence if the numbers are right and in other places."""
    ndim = trials[0].right.ndim
    if any(trial.right.ndim != ndim or trial.right.numel() < 2 for trial in trials):
        return None
    for one in range(ndim):
        for other in range(one + 1, ndim):
            if all(same(t.got, t.right.transpose(one, other)) for t in trials):
                names = [axis_name(axes, axis, ndim) for axis in (one, other)]
                return f"Your result is transposed: `{names[0]}` and `{names[1]}` are swapped."
    for axis in range(ndim):
        name = axis_name(axes, axis, ndim)
        if all(same(t.got, t.right.flip(axis)) for t in trials):
            return f"The right numbers, in reverse order along the axis `{name}`."
        for shift, words in ((1, "late"), (-1, "early")):
            if all(same(t.got, t.right.roll(shift, axis)) for t in trials):
                return f"The right numbers, one place too {words} along the axis `{name}`."
    for axis in range(ndim):
        if all(_permuted(t.got, t.right, axis) for t in trials):
            name = axis_name(axes, axis, ndim)
            return f"The right numbers, in another order along the axis `{name}`."
    if all(t.right.numel() > 3 and _same_numbers(t.got, t.right) for t in trials):
        return "The right numbers, in other places: axes are mixed up in a reshape or a transpose."
    return None


def _same_numbers(got: Tensor, right: Tensor) -> bool:
    return same(got.flatten().sort().values, right.flatten().sort().values)


def _permuted(got: Tensor, right: Tensor, axis: int) -> bool:
    """Is each slice along the axis a slice of the right result, each of them once?"""
    if right.shape[axis] < 2:
        return False
    left = list(right.unbind(axis))
    for ours in got.unbind(axis):
        found = next((n for n, theirs in enumerate(left) if same(ours, theirs)), None)
        if found is None:
            return False
        left.pop(found)
    return True


# --- a step too many or too few -----------------------------------------------------------------


_OF_RIGHT: dict[str, Callable] = {
    "Your result is the square of the right one.": lambda x: x**2,
    "Your result is the square root of the right one.": lambda x: x.sqrt(),
    "Your result is 1 divided by the right one.": lambda x: 1 / x,
    "Your result is 1 minus the right one.": lambda x: 1 - x,
    "Your result is the logarithm of the right one: one `log` too many?": lambda x: x.log(),
    "Your result is the exponential of the right one: one `exp` too many?": lambda x: x.exp(),
    "Your result is the right one without its signs: an `abs` too many?": lambda x: x.abs(),
    "The negative numbers are 0 in your result: a `relu` or `clamp` too many?": lambda x: (
        x.clamp_min(0)
    ),
    "Your result is the right one, rounded to whole numbers.": lambda x: x.round(),
    "Your result is the right one, cut to whole numbers.": lambda x: x.trunc(),
}


def _transformed(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    if len(trials) < 2 and trials[0].right.unique().numel() < 2:
        return None
    for sentence, change in _OF_RIGHT.items():
        if all(_telling(t) and t.got.any() and same(t.got, change(t.right)) for t in trials):
            return sentence
    if sentence := softmax_missing(trials, axes):
        return sentence
    for digits in range(1, 5):
        if all(_telling(t) and _rounded(t, digits) for t in trials):
            return f"Your result is the right one, rounded to {digits} decimals: keep all of them."
    for axis in range(trials[0].right.ndim - 1, -1, -1):
        name = axis_name(axes, axis, trials[0].right.ndim)
        steps = {
            f"A softmax over the axis `{name}` too many.": lambda t, a=axis: same(
                t.got, t.right.softmax(a)
            ),
            f"The division by the sum over the axis `{name}` is missing.": lambda t, a=axis: same(
                t.got / t.got.sum(a, keepdim=True), t.right
            ),
            f"You divide by the sum over the axis `{name}` once too often.": lambda t, a=axis: same(
                t.got, t.right / t.right.sum(a, keepdim=True)
            ),
            f"You add up along the axis `{name}`: each number holds those before it.": (
                lambda t, a=axis: same(t.got, t.right.cumsum(a))
            ),
        }
        for sentence, holds in steps.items():
            if all(t.right.shape[axis] > 1 and holds(t) for t in trials):
                return sentence
    return None


def softmax_missing(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence if a softmax of these numbers would be right."""
    ndim = trials[0].right.ndim
    for axis in range(ndim - 1, -1, -1):
        if all(t.right.shape[axis] > 1 and same(t.got.softmax(axis), t.right) for t in trials):
            return f"The softmax over the axis `{axis_name(axes, axis, ndim)}` is missing."
    return None


def _rounded(trial: Trial, digits: int) -> bool:
    step = 10.0**-digits
    near = (trial.got - trial.right).abs() <= 0.501 * step
    return bool((near & ((trial.got / step).round() * step - trial.got < 1e-6)).all())


def _telling(trial: Trial) -> bool:
    return bool(trial.right.isfinite().all())


def _symmetric(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    if any(t.right.ndim < 2 or t.right.shape[-1] != t.right.shape[-2] for t in trials):
        return None
    if all(same(t.right, t.right.mT) for t in trials):
        if any(same(t.got, t.got.mT) for t in trials):
            return None
        return "The right result is symmetric, and yours is not: look at two cells that mirror."
    if any(t.right.shape[-1] < 2 or same(t.right, t.right.mT) for t in trials):
        return None
    if all(same(t.got, t.got.mT) for t in trials):
        return "Your result is symmetric: what i has of j, j has of i. The right one is not."
    return None


def _diagonal(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    if any(t.right.ndim != 2 or t.right.shape[0] != t.right.shape[1] > 1 for t in trials):
        return None
    if all(same(t.got.diagonal(), t.right.diagonal()) for t in trials):
        return "The diagonal is right, and the rest is not."
    if all(same(t.got - t.got.diag().diag(), t.right - t.right.diag().diag()) for t in trials):
        return "Only the diagonal is wrong."
    return None


def _surplus(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """Is what is too much the same all along an axis, though the right numbers are not?"""
    ndim = trials[0].right.ndim
    for axis in range(ndim - 1, -1, -1):
        if all(
            t.right.shape[axis] > 1
            and _even(t.got - t.right, axis, float(t.right.abs().max()))
            and not _even(t.right, axis, float(t.right.abs().max()))
            for t in trials
        ):
            name = axis_name(axes, axis, ndim)
            return (
                f"Along the axis `{name}` all of your result is off by the same amount: something "
                "is added, or left out, that does not depend on it."
            )
    return None


def _even(x: Tensor, axis: int, size: float) -> bool:
    return bool(((x - x.mean(axis, keepdim=True)).abs() <= 1e-5 * size).all())


def _zero_sums(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """Must the numbers along an axis cancel?"""
    ndim = trials[0].right.ndim
    for axis in range(ndim):
        sums = [(t.got.sum(axis), t.right.sum(axis)) for t in trials]
        many = all(t.right.shape[axis] > 1 for t in trials)
        if many and all(same(r, 0 * r) and not same(g, 0 * r) for g, r in sums):
            worst = max((float(x) for x in sums[0][0].flatten()), key=abs)
            name = axis_name(axes, axis, ndim)
            return f"Along the axis `{name}` the numbers must sum to 0; yours sum to {worst:.4g}."
    return None
