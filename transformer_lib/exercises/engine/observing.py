"""How a wrong result is related to the right one: general observations, as a table of rules.

Each rule is a question about a pair of results and the sentence that follows from a yes. It must
hold on **every** wrong case. The same rules look at a value on the way (`relation`), so that a line
of an answer can be told what it does.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.exercises.engine.comparing import close

_ENOUGH = 1e-4  # how far two numbers may differ, relative to the largest, and count as the same


@dataclass(frozen=True)
class Trial:
    """A case: what came out and what is right, and the inputs by name."""

    got: Tensor
    right: Tensor
    inputs: Mapping[str, Any]


def same(got: Tensor, right: Tensor) -> bool:
    """Are all numbers the same, up to rounding in single precision?"""
    if got.shape != right.shape or got.is_complex() or right.is_complex():
        return False
    if got.dtype == torch.bool or right.dtype == torch.bool:
        return got.dtype == right.dtype and torch.equal(got, right)
    got, right = got.double(), right.double()
    largest = float(right.nan_to_num(0, 0, 0).abs().max()) if right.numel() else 0.0
    return torch.allclose(got, right, rtol=_ENOUGH, atol=1e-6 + 1e-5 * largest, equal_nan=True)


def _numbers(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], bool]:
    """A rule: the result is this function of the right one."""

    def holds(got: Tensor, right: Tensor) -> bool:
        if got.dtype == torch.bool or not bool(right.double().isfinite().all()):
            return False
        right, got = right.double(), got.double()
        expected = change(right)
        telling = bool((expected != right).any()) and bool(got.any())
        return telling and bool(expected.isfinite().all()) and same(got, expected)

    return holds


def _booleans(holds: Callable[[Tensor, Tensor], bool]) -> Callable[[Tensor, Tensor], bool]:
    def both(got: Tensor, right: Tensor) -> bool:
        return got.dtype == right.dtype == torch.bool and got.numel() > 1 and holds(got, right)

    return both


def _weights(right: Tensor, axis: int) -> bool:
    """Do these numbers sum to 1 (or are they all 0) along an axis?"""
    if not right.is_floating_point() or right.shape[axis] < 2 or bool((right < 0).any()):
        return False
    sums = right.double().sum(axis)
    one = (sums - 1).abs() < 1e-3
    return bool(one.any()) and bool((one | (right == 0).all(axis)).all())


def _wrong_axis(got: Tensor, right: Tensor) -> bool:
    for axis in range(right.ndim):
        if _weights(right, axis) and not _weights(got, axis):
            return any(_weights(got, other) for other in range(got.ndim) if other != axis)
    return False


def _hidden(got: Tensor, right: Tensor) -> bool:
    """Weights: has something weight that must have none?"""
    axes = [a for a in range(right.ndim) if _weights(right, a)]
    zero = right == 0
    return bool(axes) and bool(zero.any()) and bool((got[zero].abs() > 1e-9).any())


def _mirrored(got: Tensor, right: Tensor) -> bool:
    return right.ndim >= 2 and right.shape[-1] == right.shape[-2] and same(got, right.mT)


def _same_numbers(got: Tensor, right: Tensor) -> bool:
    if got.dtype == torch.bool or got.numel() < 4:
        return False
    return same(got.flatten().double().sort().values, right.flatten().double().sort().values)


def _only(got: Tensor, right: Tensor, value: bool) -> bool:
    """Is a mask wrong in one way only: too much (True), or too little?"""
    wrong = got != right
    return bool(wrong.any()) and bool((got[wrong] == value).all())


def _future(got: Tensor, right: Tensor) -> bool:
    if not _only(got, right, True) or got.ndim < 2:
        return False
    rows, columns = got.shape[-2:]
    later = torch.arange(columns) > torch.arange(rows)[:, None] + columns - rows
    return not bool(((got & ~right) & ~later).any())


# {sentence: (got, right) -> does it hold?}; the first that holds on all wrong cases is said.
RULES: dict[str, Callable[[Tensor, Tensor], bool]] = {
    "all of it is True": _booleans(lambda g, r: bool(g.all())),
    "all of it is False": _booleans(lambda g, r: not g.any()),
    "it is inverted: True and False are swapped": _booleans(lambda g, r: torch.equal(g, ~r)),
    "it is transposed: rows and columns are swapped": _mirrored,
    "it is True in the future too, above the diagonal that ends in the last corner": _booleans(
        _future
    ),
    "it is True where False is right, and nowhere the other way round": _booleans(
        lambda g, r: _only(g, r, True)
    ),
    "it is False where True is right, and nowhere the other way round": _booleans(
        lambda g, r: _only(g, r, False)
    ),
    "it has the opposite sign": _numbers(lambda r: -r),
    "it is the square of the right one": _numbers(lambda r: r**2),
    "it is the square root of the right one": _numbers(lambda r: r.sqrt()),
    "it is 1 divided by the right one": _numbers(lambda r: 1 / r),
    "it is 1 minus the right one": _numbers(lambda r: 1 - r),
    "it is the logarithm of the right one": _numbers(lambda r: r.log()),
    "it is the exponential of the right one": _numbers(lambda r: r.exp()),
    "it lacks the signs of the right one": _numbers(lambda r: r.abs()),
    "the negative numbers in it are cut off": _numbers(lambda r: r.clamp_min(0)),
    "it is the right one, rounded to whole numbers": _numbers(lambda r: r.round()),
    "it is the right one, cut to whole numbers": _numbers(lambda r: r.trunc()),
    "the softmax in it runs over the wrong axis: the rows that must sum to 1 do not": _wrong_axis,
    "what is hidden has weight in it": _hidden,
    "it has the right numbers in reverse order": lambda g, r: any(
        same(g, r.flip(axis)) for axis in range(r.ndim) if r.shape[axis] > 1
    ),
    "it has the right numbers one place too late": lambda g, r: any(
        same(g, r.roll(1, axis)) for axis in range(r.ndim) if r.shape[axis] > 2
    ),
    "it has the right numbers one place too early": lambda g, r: any(
        same(g, r.roll(-1, axis)) for axis in range(r.ndim) if r.shape[axis] > 2
    ),
    "it has the right numbers in other places": _same_numbers,
}


def relation(got: Tensor, right: Tensor) -> str:
    """What a value has to do with a right one, in words about "it"; "" if nothing is seen."""
    if got.shape != right.shape or got.numel() < 2 or same(got, right):
        return ""
    for words, holds in RULES.items():
        if holds(got, right):
            return words
    c = ratio(got, right)
    return f"it is {_times(c)}" if c else ""


def of_results(trials: Sequence[Trial]) -> str:
    """A sentence about results of the right form, wrong on all these cases; "" if nothing holds."""
    if not trials:
        return ""
    several = trials[0].right.numel() > 1
    for words, holds in RULES.items():
        if (several or len(trials) > 1) and all(holds(t.got, t.right) for t in trials):
            return _about_result(words)
    ratios = [ratio(t.got, t.right) for t in trials]
    if None not in ratios and (several or len(trials) > 1):
        if name := named(ratios, trials):
            return f"Your result is {name} times the right one."
        if name := named([1 / c for c in ratios], trials):
            return f"Your result is the right one divided by {name}."
        if max(ratios) - min(ratios) <= 1e-3 * abs(ratios[0]):
            return f"Your result is {_times(ratios[0])}."
    return _not_one(trials) or _offset(trials)


def _about_result(words: str) -> str:
    said = re.sub(r"\bit\b", "your result", words, count=1)
    return f"{said[0].upper()}{said[1:]}."


def ratio(got: Tensor, right: Tensor) -> float | None:
    """c, if this is c times the right one, in every number."""
    odd = {got.dtype, right.dtype} & {torch.bool, torch.complex64, torch.complex128}
    if odd or got.shape != right.shape:
        return None
    got, right = got.double(), right.double()
    size = float((right**2).sum())
    if not size or not math.isfinite(size):
        return None
    c = float((got * right).sum()) / size
    telling = math.isfinite(c) and abs(c) > 1e-9 and abs(c - 1) > 1e-3
    return c if telling and same(got, c * right) else None


_TIMES = {
    2.0: "twice the right one",
    0.5: "half of the right one",
    1 / math.log(2): "in bits (log2), where the natural logarithm is asked for",
    math.log(2): "the right one times ln 2: a natural logarithm in place of log2, or the reverse",
    100.0: "a hundred times the right one: a percentage?",
    0.01: "a hundredth of the right one",
}


def _times(c: float) -> str:
    known = (words for value, words in _TIMES.items() if math.isclose(c, value, rel_tol=1e-3))
    return next(known, f"{c:.4g} times the right one")


def undivided(trials: Sequence[Trial]) -> str:
    """Weights that are right as soon as they are divided by their sum."""
    for axis in range(trials[0].right.ndim if trials else 0):
        if all(
            t.right.ndim > axis
            and _weights(t.right, axis)
            and same(t.got / t.got.sum(axis, keepdim=True), t.right)
            for t in trials
        ):
            return "Your weights are still to be divided by their sum: they must sum to 1."
    return ""


def _not_one(trials: Sequence[Trial]) -> str:
    """Weights that do not sum to 1 where they must."""
    right, got = trials[0].right, trials[0].got
    for axis in range(right.ndim - 1, -1, -1):
        if all(t.right.ndim > axis and _weights(t.right, axis) for t in trials):
            sums = got.double().sum(axis)[right.double().sum(axis) > 0.5]
            worst = float(sums[(sums - 1).abs().argmax()])
            if abs(worst - 1) > 1e-3:
                return f"Your weights must sum to 1 along axis {axis}; one row sums to {worst:.4g}."
    return ""


def _offset(trials: Sequence[Trial]) -> str:
    offsets = []
    for t in trials:
        if t.right.dtype == torch.bool or t.got.dtype == torch.bool:
            return ""
        off = float((t.got.double() - t.right.double()).mean())
        if not math.isfinite(off) or not same(t.got, t.right.double() + off):
            return ""
        offsets.append(off)
    way, size = ("large" if offsets[0] > 0 else "small"), abs(offsets[0])
    if len(trials) > 1 and max(offsets) - min(offsets) <= 1e-3 * size:
        return f"Your result is too {way} by {size:.4g}."
    if name := named([abs(off) for off in offsets], trials):
        return f"Your result is too {way} by {name}."
    return ""


def of_an_input(trials: Sequence[Trial]) -> str:
    """An input, or a parameter of one, that is left out of a sum, or in it once too often."""
    tables = [_tensors(trial.inputs) for trial in trials]
    for words, sign in (("lacks {}, which must be added", -1), ("holds {} once too often", 1)):
        for name in tables[0] if tables and trials[0].right.numel() > 1 else ():
            pairs = zip(trials, tables, strict=True)
            if all(name in table and _off_by(t, sign * table[name]) for t, table in pairs):
                return f"Your result {words.format(f'`{name}`')}."
    return ""


def _off_by(trial: Trial, x: Tensor) -> bool:
    fits = x.ndim <= trial.right.ndim and trial.right.shape[trial.right.ndim - x.ndim :] == x.shape
    return fits and bool(x.any()) and same(trial.got, trial.right.double() + x.double())


def _tensors(inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    """The numbers that the inputs hold: "x", "layer.bias"."""
    found = {name: value for name, value in inputs.items() if isinstance(value, Tensor)}
    for name, value in inputs.items():
        parts = value.named_parameters() if isinstance(value, nn.Module) else ()
        found |= {f"{name}.{part}": x.detach() for part, x in parts}
    return {name: x for name, x in found.items() if x.is_floating_point()}


# --- names of numbers ---------------------------------------------------------------------------

_POWERS: list[tuple[str, Callable]] = [
    ("{0}", lambda n: n),
    ("{0} ** 0.5", lambda n: n**0.5),
    ("{0} ** 2", lambda n: n**2),
    ("({0} - 1)", lambda n: n - 1),
    ("({0} + 1)", lambda n: n + 1),
]


def named(values: Sequence[float], trials: Sequence[Trial]) -> str:
    """An expression in the inputs with these values, one for each of several cases; "" if none."""
    if len(trials) < 2 or max(values) - min(values) <= 1e-4 * abs(values[0]):
        return ""  # of one case, or of equal numbers, some expression fits by chance
    tables = [sizes(trial.inputs) for trial in trials]
    for form, power in _POWERS:
        for name in tables[0]:
            if not all(table.get(name, 0) > 0 for table in tables):
                continue
            pairs = zip(tables, values, strict=True)
            if all(math.isclose(power(table[name]), v, rel_tol=1e-3) for table, v in pairs):
                return f"`{form.format(name)}`"
    return ""


def sizes(inputs: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that the inputs offer: "x.shape[-1]" -> 7, "n_heads" -> 2."""
    found: dict[str, float] = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor) and value.ndim:
            for axis in range(value.ndim):
                last = axis == value.ndim - 1
                found[f"{name}.shape[{-1 if last else axis}]"] = value.shape[axis]
        elif isinstance(value, list | tuple):
            found[f"len({name})"] = len(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    return found


# --- sums of terms ------------------------------------------------------------------------------

_FACTORS = 4  # of one term, or as many as there are names
_MOST_TERMS = 6


def of_count(off: Callable[..., float], names: Sequence[str], sizes: Sequence[int]) -> str:
    """A sentence about a count that is `off` by a few terms in its arguments; or "".

    >>> of_count(lambda d, n: 2 * d * n - d * d, ["d", "n"], [12, 7])
    'Your result has `2 * d * n` too much, and `d ** 2` too little.'
    """
    terms = {
        powers: c for powers, c in _terms(off, len(names), max(_FACTORS, len(names))).items() if c
    }
    there = 0.0
    for powers, c in terms.items():
        for size, power in zip(sizes, powers, strict=True):
            c *= size**power
        there += c
    few = len(terms) <= _MOST_TERMS and all(2 * c % 1 == 0 for c in terms.values())
    if not terms or not few or not math.isclose(there, off(*sizes), rel_tol=1e-9):
        return ""
    sides = []
    for words, sign in (("too much", 1), ("too little", -1)):
        theirs = [_term(sign * c, powers, names) for powers, c in terms.items() if sign * c > 0]
        sides += [f"`{' + '.join(theirs)}` {words}"] if theirs else []
    return f"Your result has {', and '.join(sides)}."


def _term(c: float, powers: Sequence[int], names: Sequence[str]) -> str:
    pairs = zip(names, powers, strict=True)
    factors = [f"{name} ** {power}" if power > 1 else name for name, power in pairs if power]
    return " * ".join(factors if c == 1 and factors else [f"{c:g}", *factors])


def _terms(off: Callable[..., float], count: int, most: int) -> dict[tuple[int, ...], float]:
    """{powers: how many} of a polynomial in so many numbers, by its differences at 1, 2, 3 ..."""
    if count == 0:
        return {(): off()}
    found: dict[tuple[int, ...], float] = {}
    over = [1.0]  # x - 1 over k, by powers of x
    for k in range(most + 1):
        for powers, c in _terms(partial(off, 1), count - 1, most - k).items():
            for power, share in enumerate(over):
                key = (power, *powers)
                found[key] = round(found.get(key, 0) + c * share, 6)
        pairs = zip([0.0, *over], [*over, 0.0], strict=True)
        over = [(lower - (k + 1) * own) / (k + 1) for lower, own in pairs]
        off = _difference(off)
    return found


def _difference(off: Callable[..., float]) -> Callable[..., float]:
    return lambda first, *rest: off(first + 1, *rest) - off(first, *rest)


# --- shapes -------------------------------------------------------------------------------------


def of_shape(got: Tensor, right: Tensor) -> str:
    """A sentence about a result of a wrong shape, where its numbers tell the step; or ""."""
    if got.device != right.device or got.is_complex() or not got.numel():
        return ""
    if got.ndim == right.ndim <= 4:
        for order in permutations(range(right.ndim)):
            if same(got, right.permute(order)):
                return f"Right, but for the order of its axes: yours are {order} of the right ones."
    if got.numel() == right.numel() and same(got.flatten(), right.flatten()):
        return (
            f"The numbers are right, but in the shape {tuple(got.shape)}; it should be "
            f"{tuple(right.shape)}."
        )
    for axis in range(got.ndim if got.ndim == right.ndim + 1 else 0):
        for name in ("sum", "mean") if got.is_floating_point() else ():
            if same(getattr(got, name)(axis), right):
                return f"The {name} over axis {axis} of your result is still missing."
        if any(same(part, right) for part in got.unbind(axis)):
            return f"The right result is one of several along axis {axis} of yours."
    for axis in range(right.ndim):
        keep = got.ndim == right.ndim
        for name in (
            ("sum", "mean") if right.is_floating_point() and right.ndim - got.ndim < 2 else ()
        ):
            if same(got, getattr(right, name)(axis, keepdim=keep)):
                return f"Right, but for one {name} too many, over axis {axis}."
        if got.ndim == right.ndim - 1:
            for n, part in enumerate(right.unbind(axis)):
                if same(got, part):
                    return f"This is number {n} along axis {axis} only; return all."
    return ""


_OF_ERRORS = {
    "Expected target size [": "`cross_entropy` looks for the classes along axis 1: flatten all "
    "axes before the last one, or transpose.",
    "size mismatch, got input (": "In A @ v the vector needs a number for each column of A: is A "
    "transposed, or would v @ A fit?",
    "Expected input batch_size (": "There must be a target for each row of logits: are both cut in "
    "the same way?",
    "tuple index out of range": "The tuple is shorter than that: a shape has one size for each "
    "axis, and a vector has one axis.",
    "Dimension out of range": "The tensor has fewer axes than that: print its shape.",
    "len() of a 0-d tensor": "A single number has no axis and no length: look at `.ndim` first.",
    "Boolean value of Tensor with more than one": "An `if` needs one answer, and you have one for "
    "each number: make them one with `.any()` or `.all()`, or ask `torch.equal`.",
}


def of_error(message: str) -> str:
    """What an error about shapes means for matrices of words, to follow the error's own text.

    >>> of_error("mat1 and mat2 shapes cannot be multiplied (5x7 and 5x7)")
    ' In A @ B the columns of A must be as many as the rows of B: is a `.mT` missing?'
    >>> of_error("division by zero")
    ''
    """
    for words, hint in _OF_ERRORS.items():
        if words in message:
            return f" {hint}"
    if found := re.search(r"\((\d+)x(\d+) and (\d+)x(\d+)\)", message):
        a, b, _, d = map(int, found.groups())
        rule = " In A @ B the columns of A must be as many as the rows of B"
        if b == d:
            return f"{rule}: is a `.mT` missing?"
        return f"{rule}: " + ("are the factors swapped?" if a == d else "print both shapes.")
    if "batch1 and batch2" in message or "batch2 tensor to be" in message:
        return (
            " The last axis of the first factor must be as long as the second to last of the "
            "second."
        )
    if found := re.search(r"must match except in dimension (\d+)", message):
        return f" You join along axis {found[1]}; all other axes must agree: is it the right one?"
    if "must match the size of tensor b" in message or "not broadcastable" in message:
        return " Shapes are matched from the right; an axis of size 1 fits any: print both shapes."
    if found := re.search(
        r"index (\d+) is out of bounds for dimension \d with size (\d+)", message
    ):
        asked, size = map(int, found.groups())
        return (
            f" Index {asked} is too large for a tensor with indices 0 to {size - 1}: is this the "
            "tensor that the index belongs to?"
        )
    if found := re.search(r"shape '.*' is invalid for input of size (\d+)", message):
        return f" A reshape keeps every number: the sizes must multiply to {found[1]}."
    if message.endswith("list index out of range"):
        return (
            " The last index of a list is its length less 1: does a loop go one too far, or does "
            "the list get shorter within it?"
        )
    return ""


# --- several steps ------------------------------------------------------------------------------

MOST = 2  # so many steps may differ: with more, some combination fits by chance
ONE_NUMBER = (5e-6, 1e-9)  # so near must it be: one number fits by chance more easily than many


def otherwise(steps: Sequence[Mapping[str, Any]], build: Callable) -> Callable:
    """A function for `also`: the words for the fewest wrong choices that give a result, or None.

    Each of `steps` is {words that fit after "if": choice}, with "" for the right choice, and
    `build(*choices, *inputs)` is the result that they lead to. It may raise.

    >>> say = otherwise(
    ...     [
    ...         {"": sum, "only the largest counts": max},
    ...         {"": 1.0, "it is doubled": 2.0},
    ...     ],
    ...     lambda add, times, numbers: times * add(numbers),
    ... )
    >>> say(6.0, [1.0, 2.0]), say(4.0, [1.0, 2.0])
    (('it is doubled',), ('only the largest counts, and it is doubled',))
    >>> say(3.0, [1.0, 2.0]), say(5.0, [1.0, 2.0])
    (None, None)
    """
    ranked = sorted(product(*steps), key=_wrong)

    def applies(result: Any, *inputs: Any) -> tuple[str] | None:
        one = getattr(result, "ndim", 0) == 0
        for words in ranked:
            if _wrong(words) > MOST:
                return None
            choices = [step[word] for step, word in zip(steps, words, strict=True)]
            try:
                theirs = build(*choices, *inputs)
            except (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError):
                continue
            if close(result, theirs, ONE_NUMBER if one and _wrong(words) else None):
                return (", and ".join(filter(None, words)),) if _wrong(words) else None
        return None

    return applies


def _wrong(words: Sequence[str]) -> int:
    return sum(map(bool, words))
