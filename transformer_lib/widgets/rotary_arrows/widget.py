"""One pair of components of a query and a key, turned by their positions, or moved by addition."""

from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, constant
from transformer_lib.widgets.driving import Flag, Number, Setting
from transformer_lib.widgets.inputs import to_numpy
from transformer_lib.widgets.joining import bundle, stylesheet

_REACH = 2.0  # the largest coordinate of an arrow before anything is done for its position
_POSITIONS = 32


class RotaryArrows(Widget):
    """A query and a key as two arrows, each turned by its own position; and the score of the two.

    `query` and `key` are one pair of components of each, before anything is done for the position
    (the pale arrows, whose tips the reader may drag). With `add=False` each is turned
    counterclockwise by `speed` radians for every position, as rotary positions do; with `add=True`
    a clock hand of that speed, (sine, cosine), is added to it, as sinusoids are. `before` words are
    put before the text: they move both positions alike. The curve beside the plane shows the score
    for every number of them.

    `arrows`, [query, key], come back and can be set, too.

    Raises ValueError for arrows that are not two numbers each, or lie outside of the plane (from −2
    to 2); for a setting out of its range.

    >>> arrows = RotaryArrows([2.0, 0.5], [1.0, 1.5], query_position=5, key_position=2)
    >>> arrows
    RotaryArrows(query_position=5, key_position=2)
    """

    _esm = bundle("rotary_arrows")
    _css = stylesheet("rotary_arrows")
    _limits = constant({"reach": _REACH})
    _start = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    arrows = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    query_position = Setting(0, Number(0, _POSITIONS - 1))
    key_position = Setting(0, Number(0, _POSITIONS - 1))
    before = Setting(0, Number(0, 100, "so many words stand before both"))
    speed = Setting(0.2, Number(0, 1.5, "in radians a position", whole=False))
    add = Setting(False, Flag("a clock hand is added, nothing is turned"))
    _facts: ClassVar = {
        "offset": "key's position minus query's",
        "angle": "between the turned arrows, 0 to 180 degrees",
        "score": "",
        "moved": "1 if an arrow was dragged",
    }

    def __init__(
        self,
        query: object,
        key: object,
        **settings: Any,
    ) -> None:
        both = [_arrow(query, "query"), _arrow(key, "key")]
        super().__init__(_start=both, **{"arrows": both} | settings)

    def _sizes(self) -> dict[str, object]:
        return {"query_position": self.query_position, "key_position": self.key_position}

    @traitlets.validate("arrows")
    def _check_arrows(self, proposal: dict) -> list[list[float]]:
        if len(proposal["value"]) != 2:
            raise ValueError(f"arrows are {proposal['value']}, but must be a query and a key")
        query, key = proposal["value"]
        return [_arrow(query, "query"), _arrow(key, "key")]


def _arrow(values: object, name: str) -> list[float]:
    array = to_numpy(values, name)
    if array.shape != (2,):
        raise ValueError(f"{name} has the shape {array.shape}, but must be two numbers: one pair")
    if not (np.abs(array) <= _REACH).all():
        raise ValueError(
            f"{name} is {array.tolist()}, but both numbers must be from {-_REACH:g} to {_REACH:g}"
        )
    return array.tolist()
