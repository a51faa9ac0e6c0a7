"""Causes of a wrong shape: an axis too many, a sum too few, a size that never changes."""

import re
from collections.abc import Sequence
from itertools import permutations

import torch
from torch import Tensor

from transformer_lib.exercises.engine.trials import axis_name, same


def of_shape(got: Tensor, right: Tensor, axes: Sequence[str]) -> str | None:
    """A sentence about a result whose shape is wrong, where its numbers tell the step; or None."""
    if not got.is_floating_point() and right.is_floating_point():
        return None
    whole = right.dtype in (torch.int32, torch.int64)
    got, right = got.detach().double(), right.detach().double()
    if got.ndim <= 4 and sorted(got.shape) == sorted(right.shape) and got.ndim == right.ndim:
        for order in permutations(range(right.ndim)):
            if same(got, right.permute(order)):
                is_now = ", ".join(axis_name(axes, axis, right.ndim) for axis in order)
                return f"Right, but for the order of the axes: yours is ({is_now})."
    if got.numel() == right.numel() and same(got.flatten(), right.flatten()):
        if got.squeeze().shape == right.squeeze().shape:
            way = "too many: `squeeze` it" if got.ndim > right.ndim else "missing: `unsqueeze` it"
            return (
                f"The numbers are right, but an axis of size 1 is {way}. Your shape is "
                f"{tuple(got.shape)}, right is {tuple(right.shape)}."
            )
        return (
            f"The numbers are right, but in the shape {tuple(got.shape)}; right is "
            f"{tuple(right.shape)}."
        )
    if got.ndim == right.ndim == 1 and got.numel() == int((right != 0).sum()):
        kept = right[right != 0]
        if same(got, kept) or same(got.sort().values, kept.sort().values):
            return (
                "The numbers are right, but what is 0 has been dropped: every place must stay, so "
                f"the shape is {tuple(right.shape)}, not {tuple(got.shape)}."
            )
    if right.ndim == 2 and right.shape[0] == right.shape[1] and same(got, right.diagonal()):
        return "This is the diagonal of the right result only; the rest is missing."
    if whole and (sentence := _a_place(got, right)):
        return sentence
    return _a_step(got, right, axes)


def _a_place(got: Tensor, right: Tensor) -> str | None:
    """Do the numbers along an axis of the result say the right place, by the largest of them?"""
    for axis in range(got.ndim):
        if got.ndim == right.ndim + 1 and same(got.argmax(axis).double(), right):
            return (
                f"Right is the place of the largest number along axis {axis} of your result: "
                f"return that place alone, by `argmax({axis})`."
            )
    return None


def _a_step(got: Tensor, right: Tensor, axes: Sequence[str]) -> str | None:
    for axis in range(got.ndim):
        if got.ndim == right.ndim + 1:
            for name in ("sum", "mean"):
                if same(getattr(got, name)(axis), right):
                    return f"The {name} over axis {axis} of your result is still missing."
            for index, words in ((0, "first"), (-1, "last")):
                if same(got.select(axis, index), right):
                    return f"Right is the {words} along axis {axis} of your result; you return all."
            if any(same(part, right) for part in got.unbind(axis)):
                return f"The right result is one of several along axis {axis} of yours."
    for axis in range(right.ndim):
        name = axis_name(axes, axis, right.ndim)
        if got.ndim in (right.ndim, right.ndim - 1):
            keep = got.ndim == right.ndim
            for step in ("sum", "mean"):
                if same(got, getattr(right, step)(axis, keepdim=keep)):
                    return f"Right, but for a {step} over the axis `{name}` too many."
        if got.ndim == right.ndim - 1:
            for index, part in enumerate(right.unbind(axis)):
                if same(got, part):
                    return f"This is number {index} along the axis `{name}` only; return all."
        if got.ndim == right.ndim and 0 < got.shape[axis] < right.shape[axis]:
            if same(got, right.narrow(axis, 0, got.shape[axis])):
                return f"Right, but you stop after {got.shape[axis]} along the axis `{name}`."
            if same(got, right.narrow(axis, right.shape[axis] - got.shape[axis], got.shape[axis])):
                return f"Right, but the beginning of the axis `{name}` is missing."
    return None


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
            " The last axis of the first factor must be as long as the last but one of the second."
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
            f" Number {asked} is asked of a tensor that has numbers 0 to {size - 1}: is this the "
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


def never_changes(shapes: Sequence[tuple], rights: Sequence[tuple]) -> str | None:
    """A sentence if a result has one shape on all cases, though the right ones differ."""
    once = shapes[0] in rights or (
        all(len(right) == len(shapes[0]) for right in rights) and 1 not in shapes[0]
    )
    if shapes[0] and len(set(shapes)) == 1 and len(set(rights)) > 1 and once:
        return (
            f"Your result has the shape {shapes[0]} whatever the input: is a size written down as "
            "a number? Take it from the shape of the input."
        )
    return None
