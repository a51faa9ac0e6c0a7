"""Self-attention between vectors in the plane, which the reader moves."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
import traitlets
from jaxtyping import Float
from torch import Tensor

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Number, Numbers, Setting, Token
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

_MOST_TOKENS = 16
_LARGEST = 1e6  # coordinates: the arrows are moved by hundredths


class VectorPlayground(Widget):
    """Vectors in the plane and, beside them, the attention weights softmax(X Xᵀ) that they give.

    `vectors` is [tokens, 2], with one token of text for each. The reader drags an arrow, moves it
    with the arrow keys or sets its length; the weights follow, and so does the output of the
    selected token, the average of all vectors with the weights of its row. There are no
    parameters and there is no scaling: this is the self-attention of chapter 01.

    `widget.vectors` is where the arrows are now, and can be set; `widget.selected` is the selected
    token's index. Both can be observed (the first as "coordinates").

    With `grid=False` the plane is alone, without the weights, small enough for two of them side
    by side, and the output stays that of `selected`, whichever arrow is moved. `reach` is the
    largest coordinate that the plane shows (by default about 1.3 times the largest at first), so
    that two planes can have one scale.

    Raises ValueError if the vectors are not [tokens, 2], not finite, beyond a million, or more than
    16, or if one of them is outside of `reach`.

    >>> widget = VectorPlayground(["mary", "gave"], [[1.0, 0.5], [-0.5, 1.0]])
    >>> widget
    VectorPlayground(tokens=2)
    >>> widget.vectors
    tensor([[ 1.0000,  0.5000],
            [-0.5000,  1.0000]])
    """

    _esm = bundle("vector_playground")
    _css = stylesheet("vector_playground")
    _text = traitlets.Bytes().tag(sync=True)
    _start = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    coordinates = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    selected = Setting(0, Token("tokens", "the index of the selected one"))
    _grid = traitlets.Bool(True).tag(sync=True)
    _reach = traitlets.Float(0.0).tag(sync=True)  # 0: chosen by the figure
    _keys_of_text: ClassVar = {
        "at": Numbers(2, "x,y of the selected arrow, which stays within the plane"),
        "length": Number(0, None, "of the selected arrow", whole=False),
        "angle": Number(-180, 180, "of the selected arrow, degrees; 0 points right", whole=False),
    }
    _facts: ClassVar = {
        "score {tokens} {tokens}": "",
        "weight {tokens} {tokens}": "",
        "length {tokens}": "",
        "angle {tokens}": "degrees",
        "between {tokens} {tokens}": "the angle between two arrows, 0 to 180",
        "output x {tokens}": "",
        "output y {tokens}": "",
        "longest growth": "the largest ratio of a length to what it was at first",
    }

    def __init__(
        self,
        tokens: Sequence[str],
        vectors: object,
        *,
        grid: bool = True,
        reach: float | None = None,
        **settings: Any,
    ) -> None:
        coordinates = _coordinates(vectors)
        tokens = to_tokens(tokens, len(coordinates), "tokens", "vectors")
        if reach is not None:
            largest = max((abs(c) for vector in coordinates for c in vector), default=0.0)
            number = isinstance(reach, Real)
            if not number or not largest <= reach <= _LARGEST or not reach > 0:
                raise ValueError(
                    f"reach is {reach!r}, but must be a number above 0 that holds the largest "
                    f"coordinate, {largest:g}, and at most {_LARGEST:g}"
                )
        super().__init__(
            _text=json_bytes({"tokens": tokens}),
            _start=coordinates,
            _grid=grid,
            _reach=reach or 0.0,
            **{"coordinates": coordinates} | settings,
        )

    @property
    def vectors(self) -> Float[Tensor, "tokens 2"]:
        """Where the arrows are now."""
        return torch.tensor(self.coordinates)

    @vectors.setter
    def vectors(self, vectors: object) -> None:
        self.coordinates = _coordinates(vectors)

    def _sizes(self) -> dict[str, object]:
        return {"tokens": len(self._start)}

    @traitlets.validate("coordinates")
    def _check_coordinates(self, proposal: dict) -> list[list[float]]:
        coordinates = _coordinates(proposal["value"])
        if len(coordinates) != len(self._start):
            raise ValueError(f"{len(coordinates)} vectors for {len(self._start)} tokens")
        return coordinates


def _coordinates(vectors: object) -> list[list[float]]:
    array = to_numpy(vectors, "vectors", largest=_LARGEST)
    if array.ndim != 2 or array.shape[1] != 2 or not 1 <= len(array) <= _MOST_TOKENS:
        raise ValueError(
            f"vectors have shape {array.shape}, but must be [tokens, 2] with 1 to {_MOST_TOKENS} "
            "tokens: two numbers place one arrow in the plane"
        )
    return array.tolist()
