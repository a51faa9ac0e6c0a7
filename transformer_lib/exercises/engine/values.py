"""Results as plain values, which can be compared and stored without running any code of an answer.

A result is a tensor, a number, a bool, a string, or a tuple, list or dict of these. Whatever an
answer returns is turned into one, by `plain`, under the answer's own time limit.
"""

from collections.abc import Mapping
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
