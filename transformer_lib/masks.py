"""Masks: who may attend to whom. Boolean, rows are queries, columns are keys, True = may attend.

The convention is that of ``torch.nn.functional.scaled_dot_product_attention``. (PyTorch's
``nn.MultiheadAttention`` uses the opposite one: there, True = hidden.)
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer_lib import checks


def _positions(queries: int, keys: int | None, device) -> tuple[Tensor, Tensor]:
    """Positions of queries (a column) and keys (a row): the last query is at the last key."""
    keys = queries if keys is None else keys
    checks.require_count(queries, "queries")
    checks.require_count(keys, "keys")
    key_positions = torch.arange(keys, device=device)
    query_positions = torch.arange(keys - queries, keys, device=device)
    return query_positions.unsqueeze(1), key_positions


def causal_mask(
    queries: int, keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "queries keys"]:
    """Each query sees its own position and the past, never the future.

    The mask is aligned to the bottom right: the last query is at the last key and sees them
    all, so that one new token sees its whole cache. (``is_causal=True`` of PyTorch's
    ``scaled_dot_product_attention`` aligns to the top left.) With more queries than keys, the
    first ``queries - keys`` rows have nothing to see.

    Source: Vaswani et al. 2017, section 3.2.3.

    Raises:
        ValueError: ``queries`` or ``keys`` is smaller than 1.
        TypeError: ``queries`` or ``keys`` is not an int.

    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    >>> causal_mask(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    query, key = _positions(queries, keys, device)
    return key <= query


def sliding_window_mask(
    queries: int,
    window: int,
    keys: int | None = None,
    *,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "queries keys"]:
    """Causal, and each query sees at most ``window`` keys: its own position and those before it.

    Aligned to the bottom right, as :func:`causal_mask`.

    Source: Beltagy et al. 2020 (Longformer), section 3.1, in its causal form.

    Raises:
        ValueError: a size is smaller than 1.
        TypeError: a size is not an int.

    >>> sliding_window_mask(4, window=2).int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    checks.require_count(window, "window")
    query, key = _positions(queries, keys, device)
    return (key <= query) & (key > query - window)


def padding_mask(
    lengths: Int[Tensor, " batch"] | Sequence[int], keys: int
) -> Bool[Tensor, "batch 1 keys"]:
    """Hide the padding: sequence ``b`` has ``lengths[b]`` real tokens, then padding up to ``keys``.

    The axis of size 1 is that of the queries: padding is hidden as a *key*, for every query alike.
    For weights of shape ``[batch, heads, queries, keys]`` outside :class:`MultiHeadAttention
    <transformer_lib.attention.MultiHeadAttention>`, add the heads' axis by ``.unsqueeze(1)``.

    Raises:
        ValueError: a length is negative or larger than ``keys`` (looked at on the CPU only: on a
            GPU that would make the program wait), or ``lengths`` has not exactly one axis.
        TypeError: ``lengths`` are not integers.

    >>> padding_mask([3, 1], keys=4).int()
    tensor([[[1, 1, 1, 0]],
    <BLANKLINE>
            [[1, 0, 0, 0]]], dtype=torch.int32)
    """
    checks.require_count(keys, "keys")
    lengths = _lengths(lengths, keys)
    return (torch.arange(keys, device=lengths.device) < lengths.unsqueeze(1)).unsqueeze(1)


def combine_masks(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """The logical *and* of all masks that are not None: what each of them allows (None if all are).

    Axes are broadcast from the right, so ``[batch, 1, keys]`` and ``[queries, keys]`` make
    ``[batch, queries, keys]``.

    Raises:
        ValueError: the shapes do not broadcast, or the masks are on different devices.
        TypeError: a mask is not a boolean tensor.

    >>> combine_masks(causal_mask(3), None, padding_mask([2], keys=3)).int()
    tensor([[[1, 0, 0],
             [1, 1, 0],
             [1, 1, 0]]], dtype=torch.int32)
    """
    masks = [mask for mask in masks if mask is not None]
    checks.require_masks(masks)
    combined = masks[0] if masks else None
    for mask in masks[1:]:
        combined = combined & mask
    return combined


def _lengths(lengths, keys: int) -> Tensor:
    """``lengths`` as a tensor of integers with one axis, each at most ``keys``."""
    lengths = checks.require_listed(lengths, "lengths")
    if lengths.shape == (0,) and lengths.is_floating_point():  # an empty list
        raise ValueError("lengths are empty; give one length for each sequence: [batch].")
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"lengths have dtype {lengths.dtype}; they must be integers (counts).")
    lengths = lengths.long()  # in 8 bits, the number of keys might not fit
    if lengths.ndim != 1:
        raise ValueError(
            f"lengths have shape {tuple(lengths.shape)}; give one length for each sequence: "
            f"[batch]."
        )
    if lengths.device.type == "cpu" and ((lengths < 0) | (lengths > keys)).any():
        raise ValueError(
            f"lengths are {lengths.tolist()}; each must lie between 0 and keys = {keys}."
        )
    return lengths
