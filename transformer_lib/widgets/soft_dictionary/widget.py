"""A dictionary that answers every query a little: keys, values, and a query to move among them."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Numbers, Setting
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

# Of coordinates, which are moved by hundredths, and of values, which are written out.
_FARTHEST, _LARGEST = 1e6, 1e9


class SoftDictionary(Widget):
    """A query among keys in the plane; the answer is the average of their values.

    The weights are softmax(keys · query / temperature). The reader moves the query and sets the
    temperature; `widget.weights` and `widget.answer` follow them.

    Args:
        names: what to call the entries, n texts.
        keys: their keys, [n, 2].
        values: their values, [n], one number each.
        unit: what the values count, such as "minutes".
        axes: names of the two components.

    Raises ValueError if sizes do not fit, numbers are not finite, coordinates are beyond a million
    or values beyond a billion, or the temperature is outside its range; TypeError if
    names are not text.

    >>> videos = SoftDictionary(["roses", "feast"], [[2.0, 0.0], [0.0, 2.0]], [10.0, 30.0])
    >>> videos
    SoftDictionary(keys=2)
    >>> videos.query = (0.0, 0.0)
    >>> videos.answer
    20.0
    """

    _esm = bundle("soft_dictionary")
    _css = stylesheet("soft_dictionary")
    _keys = traitlets.Bytes().tag(sync=True)
    _values = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    query = Setting((1.0, 1.0), Numbers(2, "where it is, (x, y)"))
    temperature = Setting(1.0, Number(0.03, 10, "from hard to soft", whole=False))
    _facts: ClassVar = {
        "weight {names}": "",
        "score {names}": "",
        "largest weight": "",
        "entropy": "of the weights, in nats",
        "answer": "",
        "query x": "",
        "query y": "",
    }

    def __init__(
        self,
        names: Sequence[str],
        keys: object,
        values: object,
        *,
        query: Sequence[float] = (1.0, 1.0),
        unit: str = "",
        axes: Sequence[str] = ("", ""),
        **settings: Any,
    ) -> None:
        keys = to_numpy(keys, "keys", largest=_FARTHEST)
        values = to_numpy(values, "values", largest=_LARGEST)
        if keys.ndim != 2 or keys.shape[1] != 2 or len(keys) == 0:
            raise ValueError(
                f"keys have shape {keys.shape}, but must be [n, 2] with n of at least 1: they are "
                "drawn in a plane"
            )
        if values.shape != keys.shape[:1]:
            raise ValueError(
                f"values have shape {values.shape} for {len(keys)} keys; there must be one number "
                f"for each key: [{len(keys)}]"
            )
        names = to_tokens(names, len(keys), "names", "keys")
        text = {"names": names, "unit": unit, "axes": to_tokens(axes, 2, "axes", "components")}
        super().__init__(
            _keys=float_bytes(keys),
            _values=float_bytes(values),
            _text=json_bytes(text),
            query=_point(query),
            **settings,
        )

    @traitlets.validate("query")
    def _check_query(self, proposal: dict) -> tuple[float, float]:
        return _point(proposal["value"])

    @property
    def weights(self) -> Tensor:
        """How much each entry contributes: [n], softmax(keys · query / temperature)."""
        scores = self._numbers("_keys").reshape(-1, 2) @ torch.tensor(self.query).double()
        return torch.softmax(scores / self.temperature, dim=0)

    @property
    def answer(self) -> float:
        """The average of the values, weighted."""
        return float(self.weights @ self._numbers("_values"))

    def _numbers(self, trait: str) -> Tensor:
        return torch.frombuffer(bytearray(getattr(self, trait)), dtype=torch.float32).double()

    def _sizes(self) -> dict[str, object]:
        return {"keys": len(self._values) // 4}


def _point(query: Sequence[float]) -> tuple[float, float]:
    point = to_numpy(query, "query", largest=_FARTHEST)
    if point.shape != (2,):
        raise ValueError(f"query has shape {point.shape}; it is a point of the plane: (x, y)")
    return tuple(point.tolist())
