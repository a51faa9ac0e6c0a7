"""Results as plain values: is one the right one, and if not, how does it differ?

A plain value is a tensor, a number, a bool, a string, or a tuple, list or dict of these. Whatever
an answer returns is turned into one, by `plain`, under the answer's own time limit; after that,
none of its code runs any more. No comparison raises on a strange result: `close` returns False and
`form_mistake` says what is strange.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from types import GeneratorType
from typing import Any

import numpy
import torch

_DTYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_DTYPES |= {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_DTYPES |= {torch.complex64, torch.complex128}
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


@dataclass(frozen=True)
class Other:
    """A result that no check can compare, as `describe` puts it into words."""

    words: str


def plain(value: Any, around: tuple = ()) -> Any:
    """The same value without any code of its own: subclasses become lists, numbers, tensors.

    A NumPy array becomes a tensor. What is in itself is told by the identities of all `around` it.

    >>> plain(torch.Size([2, 3])), plain(range(3)), plain(numpy.arange(3))
    ((2, 3), Other(words='a range'), tensor([0, 1, 2]))
    """
    if value is None or value is Ellipsis or value is NotImplemented or isinstance(value, bool):
        return value
    if isinstance(value, torch.Tensor):
        return _plain_tensor(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    if isinstance(value, numpy.ndarray):
        return _from_array(value)
    if type(value) in (Fraction, Decimal):
        return float(value)
    for kind, convert in ((int, int.__int__), (float, float.__float__), (str, str.__str__)):
        if isinstance(value, kind):
            return convert(value)
    if id(value) in around:
        return Other(f"{describe(value)} that contains itself")
    around = (*around, id(value))
    if isinstance(value, list):  # the list itself, since `__iter__` may be the answer's own
        return [plain(item, around) for item in list.copy(value)]
    if isinstance(value, tuple):
        return tuple(plain(item, around) for item in tuple.__getitem__(value, slice(None)))
    if isinstance(value, Mapping):
        found = dict.items(value) if isinstance(value, dict) else _pairs(value)
        return {_plain_key(key): plain(item, around) for key, item in found}
    if isinstance(value, GeneratorType | map):  # as good as a tuple: q, k, v = answer(...)
        return tuple(plain(item, around) for item in islice(value, 10_000))
    return Other(describe(value))


def _from_array(value: numpy.ndarray) -> Any:
    try:  # a copy: views with negative strides have no tensor
        return torch.from_numpy(numpy.array(value))
    except TypeError:  # of texts, of objects
        return Other(describe(value))


def fitted(got: Any, right: Any) -> Any:
    """`got` as a tensor where `right` is one, as a list where that is one, if numbers allow it.

    >>> fitted([[1, 2], [3, 4]], torch.zeros(2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    >>> fitted(torch.tensor([1, 2]), (0, 0))
    (tensor(1), tensor(2))
    """
    if isinstance(right, torch.Tensor) and right.ndim and isinstance(got, list | tuple):
        several = isinstance(got, tuple) and any(
            isinstance(item, torch.Tensor) and item.ndim >= right.ndim for item in got
        )
        return got if several else _stacked(got, right)
    if isinstance(right, list | tuple):
        if isinstance(got, torch.Tensor) and ordinary(got) and got.shape[:1] == (len(right),):
            got = type(right)(got.unbind())
        if isinstance(got, list | tuple) and len(got) == len(right):
            return type(got)(fitted(g, r) for g, r in zip(got, right, strict=True))
    return got


def _stacked(got: Any, right: torch.Tensor) -> Any:
    """Nested lists of numbers, or of tensors, as one tensor; unchanged if they are neither."""
    if isinstance(got, torch.Tensor):
        return got
    if not isinstance(got, list | tuple) or not got:
        return got
    try:
        if all(isinstance(item, bool) for item in got) or all(
            type(item) in (int, float) for item in got
        ):
            floats = right.is_floating_point() and not isinstance(got[0], bool)
            return torch.tensor(got, dtype=right.dtype if floats else None, device="cpu")
        items = [torch.tensor(x) if type(x) in (int, float) else _stacked(x, right) for x in got]
    except (RuntimeError, ValueError, OverflowError):  # an int that no dtype can hold
        return got
    if not all(isinstance(item, torch.Tensor) and ordinary(item) for item in items):
        return got
    if len({(item.shape, item.device) for item in items}) > 1:
        return got
    return torch.stack(items)


def _plain_tensor(value: torch.Tensor) -> Any:
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value
    with torch._C.DisableTorchFunctionSubclass():
        if value.layout != torch.strided:  # as nested tensors are: named by its layout
            return value
        if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            return Other("an odd tensor")
        return value.as_subclass(torch.Tensor)


def _pairs(value: Mapping, most: int = 10_000) -> list[tuple]:
    return [(key, value[key]) for key in islice(iter(value), most)]


def _plain_key(key: Any) -> Any:
    known = isinstance(key, int | float | str) or key is None
    return plain(key) if known else f"({describe(key)})"


def describe(value: Any) -> str:
    """The kind of a value in words: "a tensor", "a function", "a NumPy array"."""
    if isinstance(value, Other):
        return value.words
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}" if ordinary(value) else "an odd tensor"
    kinds = [(bool, "a bool"), (int, "an int"), (float, "a number"), (str, "a string")]
    kinds += [(list, "a list"), (tuple, "a tuple"), (Mapping, "a dict"), (type, "a class")]
    for kind, words in kinds:
        if isinstance(value, kind):
            return words
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return "a NumPy array"
    return "a function" if callable(value) else f"a {type(value).__name__}"


def ordinary(value: torch.Tensor) -> bool:
    return value.layout == torch.strided and not value.is_nested and value.dtype in _DTYPES


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
