"""Attention weights of any model as a heatmap that answers: who attends to whom, and how much?"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Pair, Token
from transformer_lib.widgets.inputs import first_largest, require_few, to_mask, to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

# Measured in Chromium on two busy cores: 128 x 128 cells open in 1.2 s and follow an arrow key
# within 0.1 s; 256 x 256 take 5.7 s and 0.5 s.
MOST_TOKENS = 128
# Rounding in bfloat16 lets a row of a softmax exceed one by about a hundredth.
_LARGEST_ROW = 1.02


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
    """A heatmap of attention weights, one layer and head at a time.

    Rows are queries and columns are keys. `weights` is [layers, heads, queries, keys],
    [heads, queries, keys] or [queries, keys], a torch tensor or what numpy can read. `queries` and
    `keys` are the tokens as text; `keys` may be left out where they are the same. A boolean `mask`
    (True = may attend, broadcast to the weights) hatches what was hidden. A boolean `truth`
    [queries, keys] frames the cells where a right answer is known, such as those of a true
    alignment. At most 128 queries and 128 keys.

    What the reader selects comes back as `widget.selection`, a named tuple (layer, head, query,
    key), which can be observed and set.

    Raises ValueError if weights are not finite, are negative, or sum to more than one in a row, or
    if the number of tokens does not fit or is too large; TypeError if weights are complex, tokens
    are not text or the mask or the truth is not boolean.

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
    _truth = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    _shape = traitlets.List(traitlets.Int()).tag(sync=True)
    selection = _SelectionTrait(*(traitlets.Int() for _ in range(4))).tag(sync=True)
    _keys_of_text: ClassVar = {
        "layer": Number(0, "layers", "from 0"),
        "head": Number(0, "heads", "from 0"),
        "query": Token("queries", "which row"),
        "key": Token("keys", "which column"),
        "cell": Pair("queries", "keys", "which cell"),
    }
    _facts: ClassVar = {
        "layer": "from 0",
        "head": "from 0",
        "query": "its position",
        "key": "its position",
        "selected weight": "",
        "largest weight": "of all layers and heads",
        "weight {queries} {keys}": "in the head that is shown",
    }

    def __init__(
        self,
        weights: object,
        queries: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        title: str = "Attention weights",
        mask: object | None = None,
        truth: object | None = None,
        **settings: Any,
    ) -> None:
        array = to_numpy(weights, "weights")
        if isinstance(weights, list | tuple) and array.ndim == 5 and array.shape[1] == 1:
            array = array[:, 0]  # of each layer a batch of one sentence
        array = _four_axes(array)
        rows, columns = array.shape[2:]
        part = f"weights[..., :{MOST_TOKENS}, :{MOST_TOKENS}]"
        require_few(rows, MOST_TOKENS, "queries", part)
        require_few(columns, MOST_TOKENS, "keys", part)
        queries = to_tokens(queries, rows, "queries", "rows of the weights")
        keys = to_tokens(
            queries if keys is None else keys, columns, "keys", "columns of the weights"
        )
        allowed = None if mask is None else to_mask(mask, array.shape)
        true = None if truth is None else to_mask(truth, (rows, columns), "truth")
        super().__init__(
            _weights=float_bytes(array),
            _mask=b"" if allowed is None else allowed.astype(np.uint8).tobytes(),
            _truth=b"" if true is None else true.astype(np.uint8).tobytes(),
            _text=json_bytes({"title": title, "queries": queries, "keys": keys}),
            _shape=list(array.shape),
            **{"selection": _telling_cell(array, allowed, queries, keys)} | settings,
        )

    def _sizes(self) -> dict[str, object]:
        return dict(zip(("layers", "heads", "queries", "keys"), self._shape, strict=True))

    @traitlets.validate("selection")
    def _check_selection(self, proposal: dict) -> Selection:
        selection = proposal["value"]
        for name, index, size in zip(Selection._fields, selection, self._shape, strict=True):
            if not 0 <= index < size:
                raise ValueError(f"selection: {name} is {index}, but must be in 0 .. {size - 1}")
        return selection


def _four_axes(array: np.ndarray) -> np.ndarray:
    """[layers, heads, queries, keys], refused unless its rows can come from a softmax."""
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            f"weights have {array.ndim} axes (shape {array.shape}), but must be [layers, heads, "
            "queries, keys], [heads, queries, keys] or [queries, keys]; choose one of the batch"
        )
    if 0 in array.shape:
        raise ValueError(f"weights are empty (shape {array.shape}): there is nothing to show")
    if (lowest := array.min()) < 0:
        raise ValueError(
            f"weights hold {lowest:.4g}, but attention weights are not negative; these may be "
            "scores: take their softmax over the keys first"
        )
    if (largest := array.sum(-1).max()) > _LARGEST_ROW:
        raise ValueError(
            f"a row of the weights sums to {largest:.4g}, but to 1 at most after a softmax over "
            "the keys; these may be scores, a softmax over another axis, or weights after dropout "
            "(call model.eval() first)"
        )
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _telling_cell(
    weights: np.ndarray, allowed: np.ndarray | None, queries: list[str], keys: list[str]
) -> Selection:
    """The first head's largest weight on another token: it says more than a token's own."""
    open_ = np.ones(weights.shape[2:], dtype=bool) if allowed is None else allowed[0, 0]
    other = np.array([[query != key for key in keys] for query in queries]) & open_
    shown = np.where(other if other.any() else open_, weights[0, 0], -1.0)
    return Selection(0, 0, *first_largest(shown))
