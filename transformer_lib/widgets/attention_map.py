"""Attention weights of any model as a heatmap that answers: who attends to whom, and how much?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, bundle, float_bytes, json_bytes, stylesheet


class Selection(NamedTuple):
    """The cell that the reader has selected; all four count from 0."""

    layer: int
    head: int
    query: int
    key: int


class _SelectionTrait(traitlets.Tuple):
    """Four integers that read as a `Selection`."""

    def validate(self, obj: object, value: object) -> Selection:
        return Selection(*super().validate(obj, value))


class AttentionMap(Widget):
    """A heatmap of attention weights, one layer and head at a time: rows are queries, columns are keys.

    `weights` is [layers, heads, queries, keys], [heads, queries, keys] or [queries, keys], a torch
    tensor or anything that numpy can read; `queries` and `keys` are the tokens as text (`keys` is
    `queries` if left out). `mask` (optional, True = may attend, broadcast to the weights) hatches what was hidden.

    What the reader selects comes back as `widget.selection`, a named tuple (layer, head, query,
    key), and can be observed and set.

    Raises ValueError if the weights are not finite, negative, or sum to more than one in a row, or
    if the number of tokens is not the number of rows or columns; TypeError if tokens are not text.

    >>> widget = AttentionMap([[0.9, 0.1], [0.4, 0.6]], ["mary", "gave"])
    >>> widget
    AttentionMap(layers=1, heads=1, queries=2, keys=2)
    >>> widget.selection
    Selection(layer=0, head=0, query=1, key=0)
    """

    _esm = bundle("attention_map")
    _css = stylesheet("attention_map")
    _weights = traitlets.Bytes().tag(sync=True)
    _mask = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    _shape = traitlets.List(traitlets.Int()).tag(sync=True)
    selection = _SelectionTrait(*(traitlets.Int() for _ in range(4))).tag(sync=True)

    def __init__(
        self,
        weights: object,
        queries: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        title: str = "Attention weights",
        mask: object | None = None,
    ) -> None:
        array = _weights_array(weights)
        queries = _tokens("queries", queries, array.shape[2])
        keys = _tokens("keys", queries if keys is None else keys, array.shape[3])
        super().__init__(
            _weights=float_bytes(array),
            _mask=b"" if mask is None else _mask_bytes(mask, array.shape),
            _text=json_bytes({"title": title, "queries": queries, "keys": keys}),
            _shape=list(array.shape),
            selection=_telling_cell(array, queries, keys),
        )

    def _sizes(self) -> dict[str, object]:
        return dict(zip(("layers", "heads", "queries", "keys"), self._shape, strict=True))

    @traitlets.validate("selection")
    def _check_selection(self, proposal: dict) -> Selection:
        selection = proposal["value"]
        for name, index, size in zip(Selection._fields, selection, self._shape, strict=True):
            if not 0 <= index < size:
                raise ValueError(f"selection: {name} is {index}, but it must be in 0 .. {size - 1}")
        return selection


def _numpy(array: object) -> np.ndarray:
    """float64 of a tensor (on any device, any float type, with or without gradients) or an array."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().double()
    return np.asarray(array, dtype=np.float64)


def _weights_array(weights: object) -> np.ndarray:
    array = _numpy(weights)
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            f"weights have {array.ndim} axes (shape {array.shape}), but they must be [layers, heads, "
            "queries, keys], [heads, queries, keys] or [queries, keys]; choose one sequence of the batch"
        )
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    if 0 in array.shape:
        raise ValueError(f"weights are empty: shape {array.shape}; there is nothing to show")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"weights hold {array[place]} at (layer, head, query, key) = {place}; a row of scores "
            "that is -inf throughout gives NaN in the softmax: look at the mask of that query"
        )
    if array.min() < 0:
        raise ValueError(
            f"weights hold {array.min():.4g}, but attention weights are not negative; "
            "these may be scores: take the softmax over the keys first"
        )
    if (total := array.sum(-1).max()) > 1.02:
        raise ValueError(
            f"a row of the weights sums to {total:.4g}, but to at most 1 after a softmax over the keys; "
            "these may be scores, the softmax of another axis, or weights after dropout (use model.eval())"
        )
    return array


def _mask_bytes(mask: object, shape: tuple[int, ...]) -> bytes:
    array = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"mask is {array.dtype}, but must be bool (True = may attend); use mask.bool()"
        )
    try:
        return np.broadcast_to(array, shape).astype(np.uint8).tobytes()
    except ValueError as error:
        raise ValueError(
            f"mask of shape {array.shape} does not broadcast to the weights {shape} "
            "([layers, heads, queries, keys])"
        ) from error


def _tokens(name: str, tokens: Sequence[str], count: int) -> list[str]:
    if isinstance(tokens, str):
        raise TypeError(
            f"{name} is one text, {tokens[:40]!r}; give a list of tokens, e.g. text.split()"
        )
    tokens = list(tokens)
    for position, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(
                f"{name}[{position}] is {type(token).__name__}, but tokens are shown as text; "
                "decode ids first, e.g. tokenizer.convert_ids_to_tokens(ids)"
            )
    if len(tokens) != count:
        axis = "rows (queries)" if name == "queries" else "columns (keys)"
        raise ValueError(
            f"{len(tokens)} {name} for {count} {axis} of the weights; there must be one token for each"
        )
    return tokens


def _telling_cell(array: np.ndarray, queries: list[str], keys: list[str]) -> Selection:
    """The largest weight of the first head on another token: it says more than a token's own."""
    first = array[0, 0]
    other = np.array([[query != key for key in keys] for query in queries])
    shown = np.where(other, first, -1.0) if other.any() else first
    query, key = np.unravel_index(int(shown.argmax()), first.shape)
    return Selection(0, 0, int(query), int(key))
