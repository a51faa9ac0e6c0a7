"""Compare a result with the right one, and say in the reader's terms how it differs.

Both are plain values (`values`), so none of the answer's code runs any more. Nothing here raises on
a strange result: `close` returns False and `form_mistake` says what is strange.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from transformer_lib.exercises.engine.values import describe, fitted, ordinary, plain

# (rtol, atol). Sums of a few terms in another order differ by 1e-6 in float32; a chain of exp,
# division and sums by ten times that. The wrong computations of a check differ by 1e-2 and more.
_TOLERANCE = {
    torch.float64: (1e-6, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.bfloat16: (2e-2, 1e-2),
    torch.float16: (1e-2, 1e-3),
    float: (1e-4, 1e-6),
}
_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_DTYPE_HINT = {
    torch.bool: "a comparison such as `<=` gives booleans",
    torch.float32: "keep the dtype of the inputs",
    torch.float64: "keep the dtype of the inputs",
    torch.int64: "whole numbers are expected, as `//` gives them or `.long()` makes them",
}


def in_one_dtype(answer: Any) -> Any:
    """The tensors that an answer gives, in float32: any real one is right where none is given."""
    result = plain(answer() if callable(answer) else answer)
    several = isinstance(result, list | tuple)
    found = [fitted(x, torch.zeros(1, 1)) for x in result] if several else [result]
    real = [isinstance(x, torch.Tensor) and not x.is_complex() for x in found]
    found = [x.float() if good else x for x, good in zip(found, real, strict=True)]
    return found if several else found[0]


def close(got: Any, right: Any, tolerance: tuple[float, float] | None = None) -> bool:
    """Is `got` the same as `right`, in shape and, up to rounding, in value?

    The dtype is not compared. NaN equals NaN, so that a wrong computation may give NaN.
    """
    right, got = _number(right), _number(got)
    if isinstance(right, torch.Tensor):
        if not isinstance(got, torch.Tensor) or not _readable(got, right):
            return False
        return got.shape == right.shape and bool(_same(got, right, tolerance).all())
    if isinstance(right, bool | str):
        return type(got) is type(right) and got == right
    if isinstance(right, int | float):
        if isinstance(got, bool) or not isinstance(got, int | float):
            return False
        both_nan = math.isnan(got) and math.isnan(right)
        rtol, atol = tolerance or (_TOLERANCE[float] if isinstance(right, float) else (0, 0))
        return both_nan or math.isclose(got, right, rel_tol=rtol, abs_tol=atol)
    if isinstance(right, Mapping):
        same = isinstance(got, Mapping) and got.keys() == right.keys()
        return same and all(close(got[key], right[key], tolerance) for key in right)
    if isinstance(right, Sequence):
        same = isinstance(got, list | tuple) and len(got) == len(right)
        return same and all(close(g, r, tolerance) for g, r in zip(got, right, strict=True))
    raise TypeError(f"a check cannot compare with the type {type(right).__name__}: {right!r}")


def form_mistake(got: Any, right: Any, axes: str | Sequence[str] = "") -> str | None:
    """A sentence about a wrong type, device, shape or dtype, or about NaN; None if all is well."""
    return _form(got, right, axes, "result")


def first_difference(
    got: Any, right: Any, tolerance: tuple[float, float] | None = None, *, reveal: bool = True
) -> str:
    """Where `got`, of the right form, first differs from `right`: index, value, right value."""
    right, got = _number(right), _number(got)
    if isinstance(right, torch.Tensor):
        index = tuple((~_same(got, right, tolerance)).nonzero()[0].tolist())
        ours, theirs = _write(got[index].item(), right[index].item())
        place = f"at {list(index)}"
        return f"{place} you have {ours}" + (
            f"; it should be {theirs}" if reveal else ", not right"
        )
    if isinstance(right, int | float) and not isinstance(right, bool):
        ours, theirs = _write(got, right)
        if reveal:
            return f"you have {ours}; it should be {theirs}"
        return f"{ours} is too {'large' if got > right else 'small'}"
    if isinstance(right, Mapping | list | tuple):
        keys = right.keys() if isinstance(right, Mapping) else range(len(right))
        key = next(key for key in keys if not close(got[key], right[key], tolerance))
        inner = first_difference(got[key], right[key], tolerance, reveal=reveal)
        return f"in item {key!r}: {inner}"
    if isinstance(right, bool):
        return f"you say {got}" + (f", where {right} is right" if reveal else ", which is not so")
    return f"you have {got!r}" + (f"; it should be {right!r}" if reveal else ", not right")


def _form(got: Any, right: Any, axes: str | Sequence[str], what: str) -> str | None:
    got, right = _number(got), _number(right)
    if isinstance(right, torch.Tensor):
        return _tensor_form(got, right, axes if isinstance(axes, str) else "", what)
    if isinstance(right, Mapping):
        if not isinstance(got, Mapping):
            return f"Your {what} is {describe(got)}; a dict is expected."
        if got.keys() != right.keys():
            return f"Your {what} has the keys {list(got)}; the right ones are {list(right)}."
        pairs = [(got[key], right[key], f"item {key!r} of your {what}") for key in right]
    elif isinstance(right, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(right):
            has = f"{describe(got)}" + (f" of {len(got)}" if isinstance(got, list | tuple) else "")
            return f"Your {what} is {has}; {describe(right)} of {len(right)} is expected."
        both = enumerate(zip(got, right, strict=True))
        pairs = [(g, r, f"item {n} of your {what}") for n, (g, r) in both]
    else:
        return _scalar_form(got, right, what)
    each = [axes] * len(pairs) if isinstance(axes, str) else axes
    found = (_form(g, r, a, w) for (g, r, w), a in zip(pairs, each, strict=True))
    return next((s.replace("Your item", "Item") for s in found if s), None)


def _scalar_form(got: Any, right: Any, what: str) -> str | None:
    numbers = isinstance(right, int | float) and not isinstance(right, bool)
    if numbers and isinstance(got, int | float) and not isinstance(got, bool):
        if math.isfinite(got) or not math.isfinite(right):
            return None
        return (
            f"Your {what} is {got}: a division by zero, a number too large to represent, or "
            "infinity minus infinity."
        )
    if type(got) is type(right):
        return None
    return f"Your {what} is {describe(got)}; {describe(right)} is expected."


def _tensor_form(got: Any, right: torch.Tensor, axes: str, what: str) -> str | None:
    if not isinstance(got, torch.Tensor):
        if isinstance(got, int | float) and not isinstance(got, bool) and right.ndim:
            return (
                f"Your {what} is {describe(got)}; a torch tensor is expected, of shape "
                f"{tuple(right.shape)}: does a sum, a mean or an `argmax` lack its `dim`?"
            )
        return f"Your {what} is {describe(got)}; a torch tensor is expected."
    if got.device != right.device:
        return (
            f"Your {what} is on the device `{got.device}`, the inputs are on `{right.device}`: "
            "create tensors with `device=x.device`."
        )
    if not ordinary(got):
        return f"Your {what} is a sparse, nested or packed tensor; an ordinary one is expected."
    if got.shape != right.shape:
        shapes = _shapes(tuple(got.shape), tuple(right.shape), axes.split())
        places = right.is_floating_point() and got.dtype in _INTEGERS
        hint = (
            " It holds whole numbers: are they places, where values are asked for?"
            if places
            else ""
        )
        return f"Your {what} has {shapes}.{hint}"
    if not _dtype_serves(got.dtype, right.dtype):
        hint = _DTYPE_HINT.get(right.dtype)
        return f"Your {what} is `{got.dtype}`, not `{right.dtype}`" + (
            f": {hint}." if hint else "."
        )
    strange = ~torch.isfinite(got) & torch.isfinite(right)
    if strange.any():
        index = strange.nonzero()[0].tolist()
        value = got.detach()[tuple(index)].item()
        why = (
            ": is it 0/0, 0 · inf, or a softmax of scores that are all -inf?"
            if math.isnan(value)
            else "."
        )
        return (
            f"Your {what} holds {value} (first at {index}), where a finite number is expected{why}"
        )
    return None


def _dtype_serves(got: torch.dtype, right: torch.dtype) -> bool:
    """Is this dtype as good as the right one? Double precision is, and so are all integers."""
    integers = not (got.is_floating_point or right.is_floating_point) and torch.bool not in (
        got,
        right,
    )
    return (
        got == right
        or (got, right) == (torch.float64, torch.float32)
        or (integers and not (got.is_complex or right.is_complex))
    )


def _shapes(got: tuple[int, ...], right: tuple[int, ...], names: list[str]) -> str:
    named = f"{right} = ({', '.join(names)})" if names else f"{right}"
    if names and len(set(right)) == len(right) and sorted(got) == sorted(right):
        order = ", ".join(names[right.index(size)] for size in got)
        return f"its axes in the order ({order}); it should be {named}"
    return f"the shape {got}; it should be {named}"


def _number(value: Any) -> Any:
    """Tensors of one number and NumPy's numbers become Python's; all else stays as it is.

    An int that no float can hold becomes infinite, as it would be as a float.
    """
    if isinstance(value, torch.Tensor):
        one = ordinary(value) and value.ndim == 0 and value.device.type != "meta"
        return value.item() if one else value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return value


def _readable(got: torch.Tensor, right: torch.Tensor) -> bool:
    """Can the two be compared number by number?"""
    here = got.device == right.device and got.device.type != "meta"
    return here and ordinary(got) and not got.is_complex()


def _same(got: torch.Tensor, right: torch.Tensor, tolerance: tuple | None) -> torch.Tensor:
    exact = not right.is_floating_point()
    rtol, atol = tolerance or ((0, 0) if exact else _TOLERANCE[right.dtype])
    pair = got.detach().double(), right.detach().double()
    return torch.isclose(*pair, rtol=rtol, atol=atol, equal_nan=True)


def _write(got: float, right: float) -> tuple[str, str]:
    """Both numbers with 4 significant digits, or with as many as it takes to tell them apart.

    Where a whole number is right, whole numbers are written out.
    """
    if isinstance(right, int) and got == got // 1 and max(abs(got), abs(right)) < 1e16:
        return f"{int(got):,}", f"{right:,}"
    for digits in range(4, 17):
        pair = f"{got:.{digits}g}", f"{right:.{digits}g}"
        if pair[0] != pair[1]:
            break
    return pair
