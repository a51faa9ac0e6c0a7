"""Multi-head attention as one strip that grows: every number, what it was made of, and its line."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import traitlets

from transformer_lib import checks
from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Numbers, Option, Setting, Token
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

LAYERS = ("query", "key", "value", "output")
_STEP_NAMES = ["q", "k", "v", "scores", "scale", "mask", "softmax", "average", "concat", "project"]
STEPS = {name: step for step, name in enumerate(_STEP_NAMES)}  # as links call them
LARGEST = 64  # tokens, and components of a vector: more than this nobody can read


class Cell(NamedTuple):
    """The number that the reader has selected: row and column in the result of the step."""

    row: int
    column: int


def code_lines(*, biased: bool) -> tuple[str, ...]:
    """The ten lines of Python behind the ten steps.

    >>> code_lines(biased=False)[3]
    'scores = q @ k.mT'
    """
    plus = [f" + b_{name}" if biased else "" for name in "QKVO"]
    return (
        f"q = split_heads(x @ W_Q{plus[0]}, n_heads)",
        f"k = split_heads(x @ W_K{plus[1]}, n_heads)",
        f"v = split_heads(x @ W_V{plus[2]}, n_heads)",
        "scores = q @ k.mT",
        "scores = scores / d_head**0.5",
        "scores = where(mask, scores, -inf)",
        "weights = scores.softmax(dim=-1)",
        "z = weights @ v",
        "z = merge_heads(z)",
        f"y = z @ W_O{plus[3]}",
    )


class StepScrubber(Widget):
    """Multi-head attention as one strip: Q, K, V, QKᵀ, ÷√dₖ, mask, softmax, ·V, concat, ·W_O.

    Each step adds a matrix to those that are there, and it comes out of what it is made of. The
    number that is selected or pointed at, in any of them, shows its operands, its arithmetic and
    its line of code.

    `attention` is a module with linear layers `query`, `key`, `value` and `output` and a number
    `n_heads`, such as the library's `MultiHeadAttention` without positions of its own. `x` is
    [tokens, d_model]. `places` [tokens, d_model], if given, belong to the places and not to the
    words: they are added to whatever word is there, and can be switched off. `order` is what
    the shuffle toggle does to the words: `order[place]` is the word that is then there
    (default: the sentence backwards). `features` and `output_features` name the components.

    The selected number comes back as `widget.selection` (row, column), and can be set; at first it
    is the first one of the second word.

    Raises ValueError for shapes that do not fit, more than 64 tokens or components, or numbers
    that are not finite; TypeError for a module without these layers, with its own positions, with
    fewer heads of keys than of queries, or that does more than the steps, such as `qk_norm`.

    >>> from transformer_lib.attention import MultiHeadAttention
    >>> StepScrubber(["mary", "gave"], np.ones((2, 6)), MultiHeadAttention(6, 3))
    StepScrubber(tokens=2, heads=3, d_model=6, d_head=2)
    """

    _esm = bundle("step_scrubber")
    _css = stylesheet("step_scrubber")
    _arrays = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    _shape = traitlets.List(traitlets.Int()).tag(sync=True)
    step = Setting(6, Option(STEPS | {str(i): i for i in range(len(STEPS))}))
    head = Setting(0, Number(0, "heads"))
    _cell = Setting((1, 0), Numbers(2, "row,column of the result", whole=True, low=0), "cell")
    causal = Setting(False, Flag())
    shuffled = Setting(False, Flag())
    placed = Setting(True, Flag())
    one_head = Setting(False, Flag("the same matrices with a single softmax"))
    _keys_of_text: ClassVar = {"word": Token("tokens", "the selected row, by its token")}
    _facts: ClassVar = {
        "heads": "1 or all",
        "row": "",
        "column": "",
        "value": "the selected number",
        "difference": "the largest, between what the selected word takes home in the two orders",
    }

    def __init__(
        self,
        tokens: Sequence[str],
        x: object,
        attention: object,
        *,
        places: object | None = None,
        order: Sequence[int] | None = None,
        features: Sequence[str] | None = None,
        output_features: Sequence[str] | None = None,
        selection: tuple[int, int] | None = None,
        **settings: Any,
    ) -> None:
        words = _matrix(x, "x")
        n, d_model = words.shape
        tokens = to_tokens(tokens, n, "tokens", "rows of x")
        weights, biases, n_heads = _layers(attention, d_model)
        added = np.zeros_like(words) if places is None else _matrix(places, "places")
        if added.shape != words.shape:
            raise ValueError(
                f"places have shape {added.shape}, but must have the shape of x, {words.shape}: "
                "one vector for each place, added to the word at that place"
            )
        order = range(n)[::-1] if order is None else order
        order = [int(i) for i in checks.require_listed(order, "order")]
        if sorted(order) != list(range(n)):
            raise ValueError(f"order is {order}, but must hold each of 0 .. {n - 1} once")
        biased = any(np.any(bias) for bias in biases)
        parts = [words, added, *(p for pair in zip(weights, biases, strict=True) for p in pair)]
        text = {
            "tokens": tokens,
            "order": order,
            "code": code_lines(biased=biased),
            "features": _names(features, d_model, "features"),
            "outputs": _names(output_features, d_model, "output_features"),
            "hasPlaces": places is not None,
        }
        shape = [n, d_model, n_heads, weights[0].shape[1] // n_heads]
        selection = (min(1, n - 1), 0) if selection is None else selection
        super().__init__(
            _arrays=float_bytes(np.concatenate([part.ravel() for part in parts])),
            _text=json_bytes(text),
            _shape=shape,
            _cell=_to_cell(selection, shape),
            **settings,
        )

    @property
    def selection(self) -> Cell:
        """(row, column) of the selected number in the result of the step."""
        return Cell(*self._cell)

    @selection.setter
    def selection(self, cell: tuple[int, int]) -> None:
        self._cell = _to_cell(cell, self._shape)

    def _sizes(self) -> dict[str, object]:
        tokens, d_model, heads, d_head = self._shape
        return {"tokens": tokens, "heads": heads, "d_model": d_model, "d_head": d_head}


def _to_cell(selection: object, shape: Sequence[int]) -> list[int]:
    """[row, column], if the result of any step has such a cell; in a smaller one the view stops."""
    tokens, d_model, n_heads, d_head = shape
    plain = selection.tolist() if hasattr(selection, "tolist") else selection
    cell = Numbers(2, whole=True, low=0).fitting(plain, None, {})
    columns = max(tokens, d_model, n_heads * d_head)
    if cell is None or cell[0] >= tokens or cell[1] >= columns:
        raise ValueError(
            f"selection is {selection!r:.60}; give a row and a column, counted from 0: there are "
            f"{tokens} rows, and at most {columns} columns"
        )
    return list(cell)


def _matrix(array: object, name: str) -> np.ndarray:
    matrix = to_numpy(array, name)
    if matrix.ndim != 2 or not all(0 < size <= LARGEST for size in matrix.shape):
        raise ValueError(
            f"{name} has shape {matrix.shape}, but must be [tokens, d_model] with 1 to {LARGEST} "
            "of each; take one sentence of the batch, x[0]"
        )
    return matrix


def _layers(attention: object, d_model: int) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    """Weights as [inputs, outputs], biases (zeros where there are none) and the number of heads."""
    missing = [name for name in (*LAYERS, "n_heads") if not hasattr(attention, name)]
    if missing:
        raise TypeError(
            f"{type(attention).__name__} has no {', '.join(missing)}; give a MultiHeadAttention"
        )
    if getattr(attention, "positions", None) is not None:
        raise TypeError(
            f"this attention has {type(attention.positions).__name__} of its own, which the steps "
            "do not show; give one without, and the places in `places`"
        )
    if (shared := getattr(attention, "n_kv_heads", attention.n_heads)) != attention.n_heads:
        raise TypeError(
            f"this attention has {shared} heads of keys and values for {attention.n_heads} of "
            "queries, which the steps do not show; give one with as many of each"
        )
    if getattr(attention, "qk_norm", False) or _is_changed(attention):
        raise TypeError(
            f"this {type(attention).__name__} does more than the ten steps show (a norm of its "
            "queries and keys, a window, a method of its own); give a plain MultiHeadAttention"
        )
    layers = [getattr(attention, name) for name in LAYERS]
    weights = [
        to_numpy(layer.weight, f"{n}.weight").T for n, layer in zip(LAYERS, layers, strict=True)
    ]
    if weights[0].shape[0] != d_model:
        raise ValueError(
            f"x is {d_model} wide, but this attention reads vectors of {weights[0].shape[0]}"
        )
    biases = [
        np.zeros(weight.shape[1]) if layer.bias is None else to_numpy(layer.bias, f"{name}.bias")
        for name, layer, weight in zip(LAYERS, layers, weights, strict=True)
    ]
    return weights, biases, int(attention.n_heads)


def _names(names: Sequence[str] | None, count: int, what: str) -> list[str]:
    if names is None:
        return [str(i) for i in range(count)]
    return to_tokens(names, count, what, "components")


def _is_changed(attention: object) -> bool:
    """Is it a MultiHeadAttention with another method or a hook?"""
    kind = type(attention)
    plain = next((one for one in kind.__mro__ if one.__name__ == "MultiHeadAttention"), kind)
    methods = [name for name, value in vars(plain).items() if callable(value)]
    others = [name for name in methods if getattr(kind, name) is not getattr(plain, name)]
    hooks = [
        *getattr(attention, "_forward_hooks", ()),
        *getattr(attention, "_forward_pre_hooks", ()),
    ]
    return bool(hooks) or not {"__init__", "extra_repr"}.issuperset(others)
