"""Causes that are a number: a result times a factor, or with an amount added, and its name.

The name is an expression in the inputs, such as `x.shape[-1] ** 0.5`, if one fits every case.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

from torch import Tensor

from transformer_lib.exercises.engine.trials import Trial, axis_name, same


def sizes(inputs: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that the inputs offer: "x.shape[-1]" -> 7, "n_heads" -> 2."""
    found: dict[str, float] = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor) and value.ndim:
            for axis in range(value.ndim):
                last = axis == value.ndim - 1
                found[f"{name}.shape[{-1 if last else axis}]"] = value.shape[axis]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    return found


_POWERS: list[tuple[str, Callable]] = [
    ("{}", lambda n: n),
    ("{} ** 0.5", lambda n: n**0.5),
    ("{} ** 2", lambda n: n**2),
    ("{} ** -0.5", lambda n: n**-0.5),
    ("1 / {}", lambda n: 1 / n),
    ("({} - 1)", lambda n: n - 1),
    ("({} + 1)", lambda n: n + 1),
    ("{} / ({0} - 1)", lambda n: n / (n - 1)),
    ("({} - 1) / {0}", lambda n: (n - 1) / n),
]


def named(values: Sequence[float], trials: Sequence[Trial]) -> str:
    """An expression in the inputs that has these values, one for each trial; "" if there is none.

    With equal values a plain number comes first: twice is twice, whatever the sizes.
    """
    tables = [sizes(trial.inputs) for trial in trials]
    if len(trials) > 1 and max(values) - min(values) <= 1e-4 * abs(values[0]):
        return ""
    for form, power in _POWERS:
        for name in tables[0]:
            try:
                offered = [power(table[name]) for table in tables]
            except (KeyError, ZeroDivisionError, OverflowError, TypeError):
                continue
            if any(isinstance(n, complex) for n in offered):
                continue
            pairs = zip(offered, values, strict=True)
            if all(math.isclose(n, value, rel_tol=1e-3) for n, value in pairs):
                return "`" + form.format(name).replace("{0}", name) + "`"
    return ""


def products(inputs: Mapping[str, Any], most: int = 3) -> dict[str, int]:
    """Products of whole numbers among the inputs, and small multiples: "3 * n_heads * d_head"."""
    whole = [(k, v) for k, v in inputs.items() if type(v) is int and v > 1]
    found = {}
    for count in range(1, most + 1):
        for names in combinations_with_replacement(whole, count):
            product = math.prod(value for _, value in names)
            words = " * ".join(name for name, _ in names)
            found |= {f"{k} * {words}" if k > 1 else words: k * product for k in (1, 2, 3, 4)}
    return found


def _product(values: Sequence[float], trials: Sequence[Trial]) -> str:
    """Such a product that has these values; "" if there is none, or if they tell nothing."""
    tables = [products(trial.inputs) for trial in trials]
    if len(trials) < 2 or len(set(values)) < 2:
        return ""
    for words in tables[0]:
        pairs = zip(tables, values, strict=True)
        if all(words in table and table[words] == value for table, value in pairs):
            return f"`{words}`"
    return ""


_CONSTANTS = {
    2.0: "twice the right one",
    0.5: "half of the right one",
    1 / math.log(2): "in bits (log2), where the natural logarithm is asked for",
    math.log(2): "the right one times ln 2: a natural logarithm in place of log2, or the reverse",
    100.0: "a hundred times the right one: a percentage?",
    0.01: "a hundredth of the right one",
}


def _ratio(trial: Trial) -> float | None:
    """c, if the result is c times the right one, in every number."""
    size = (trial.right**2).sum()
    if trial.right.numel() == 0 or size == 0:
        return None
    c = float((trial.got * trial.right).sum() / size)
    return c if abs(c) > 1e-6 and same(trial.got, c * trial.right) else None


def named_factor(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    ratios = [_ratio(trial) for trial in trials]
    if None in ratios:
        return None
    if all(math.isclose(c, -1, rel_tol=1e-3) for c in ratios):
        return "Your result has the wrong sign: it is minus the right one."
    if name := named(ratios, trials):
        return f"Your result is {name} times the right one."
    if name := named([1 / c for c in ratios], trials):
        return f"Your result is the right one divided by {name}."
    return None


def factor(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    ratios = [_ratio(trial) for trial in trials]
    one_number = all(trial.right.numel() == 1 for trial in trials)
    if None in ratios:
        return None
    equal = max(ratios) - min(ratios) <= 1e-3 * abs(ratios[0])
    if one_number and (len(trials) < 2 or not equal):
        return None  # one number always is some multiple of another
    if equal:
        known = (w for c, w in _CONSTANTS.items() if math.isclose(c, ratios[0], rel_tol=1e-3))
        words = next(known, f"{ratios[0]:.4g} times the right one, in every number")
        return f"Your result is {words}."
    return f"Every number is wrong by the same factor: {ratios[0]:.4g} times the right one."


def about_a_factor(trials: Sequence[Trial]) -> str | None:
    """The same for estimates, which are never exact."""
    ratios = [float(trial.got / trial.right) for trial in trials]
    for times, words in ((2, "twice"), (3, "3 times"), (1 / 2, "half"), (1 / 3, "a third of")):
        if ratios and all(abs(c / times - 1) < 0.1 for c in ratios):
            return f"Your estimate is about {words} the right one."
    return None


def row_factors(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    ndim = trials[0].right.ndim
    for axis in range(ndim - 1, -1, -1):
        if all(t.right.shape[axis] > 1 and _multiples(t, axis) for t in trials):
            name = axis_name(axes, axis, ndim)
            return (
                f"Along the axis `{name}` your numbers are multiples of the right ones, with "
                "another factor for each row: is a division by a sum or a length missing, or one "
                "too many?"
            )
    return None


def _multiples(trial: Trial, axis: int) -> bool:
    size = (trial.right**2).sum(axis, keepdim=True)
    factors = (trial.got * trial.right).sum(axis, keepdim=True) / size.clamp_min(1e-30)
    return bool((factors.abs() > 1e-6).all()) and same(trial.got, factors * trial.right)


def offset(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    offsets = []
    for trial in trials:
        offset = float((trial.got - trial.right).mean())
        if not same(trial.got, trial.right + offset):
            return None
        offsets.append(offset)
    one_number = all(trial.right.numel() == 1 for trial in trials)
    size = abs(offsets[0])
    way = "large" if offsets[0] > 0 else "small"
    if len(trials) > 1 and max(offsets) - min(offsets) <= 1e-3 * size:
        return f"Your result is too {way} by {size:.4g}" + ("." if one_number else ", everywhere.")
    if one_number and (name := _product([abs(o) for o in offsets], trials)):
        return f"Your result is too {way} by {name}."
    one_way = all(o > 0 for o in offsets) == any(o > 0 for o in offsets)
    if one_way and (name := named([abs(o) for o in offsets], trials)):
        return f"Your result is too {way} by {name}."
    return None if one_number else f"Your result is too {way} by {size:.4g}, everywhere."
