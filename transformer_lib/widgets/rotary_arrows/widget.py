"""One pair of components of a query and a key, turned by their positions, or moved by addition."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, constant
from transformer_lib.widgets.driving import Flag, Number
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.joining import bundle, stylesheet

_REACH = 2.0  # the largest coordinate of an arrow before anything is done for its position
_FARTHEST = {"query_position": 31, "key_position": 31, "before": 100}
_FASTEST = 1.5  # radians a position


class RotaryArrows(Widget):
    """A query and a key as two arrows, each turned by its own position; and the score of the two.

    `query` and `key` are one pair of components of each, before anything is done for the position
    (the pale arrows, whose tips the reader may drag). With `add=False` each is turned
    counterclockwise by `speed` radians for every position, as rotary positions do; with `add=True`
    a clock hand of that speed, (sine, cosine), is added to it, as sinusoids are. `before` words are
    put before the text: they move both positions alike. The curve beside the plane shows the score
    for every number of them.

    What the reader sets comes back as attributes, and can be observed and set: `query_position`,
    `key_position` (0 to 31), `before` (0 to 100), `speed`, `add`, `arrows` ([query, key]).

    State (what `[text](#set:name;key=value)` sets): `query_position`, `key_position`, `before`,
    `speed`, `add` by on or off; `reset`.

    Facts (what goals read): `query_position`, `key_position`, `before`, `speed`, `add` (1 or 0),
    `offset` (key's position minus query's), `angle` (between the turned arrows, 0 to 180
    degrees), `score`, `moved` (1 if an arrow was dragged, else 0).

    Raises ValueError for arrows that are not two numbers each, or lie outside of the plane (from −2
    to 2); for a position, `before` or `speed` (up to 1.5) out of its range.

    >>> arrows = RotaryArrows([2.0, 0.5], [1.0, 1.5], query_position=5, key_position=2)
    >>> arrows
    RotaryArrows(query_position=5, key_position=2)
    """

    _esm = bundle("rotary_arrows")
    _css = stylesheet("rotary_arrows")
    _limits = constant({"reach": _REACH, "farthest": _FARTHEST, "fastest": _FASTEST})
    _start = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    arrows = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    query_position = traitlets.Int(0).tag(sync=True)
    key_position = traitlets.Int(0).tag(sync=True)
    before = traitlets.Int(0).tag(sync=True)
    speed = traitlets.Float(0.2).tag(sync=True)
    add = traitlets.Bool(False).tag(sync=True)
    _keys_of_text: ClassVar = {
        "query_position": Number(0, _FARTHEST["query_position"], "query_position"),
        "key_position": Number(0, _FARTHEST["key_position"], "key_position"),
        "before": Number(0, _FARTHEST["before"], "before"),
        "speed": Number(0, _FASTEST, "speed", whole=False),
        "add": Flag("add"),
    }
    _facts = (*_keys_of_text, "offset", "angle", "score", "moved")

    def __init__(
        self,
        query: object,
        key: object,
        *,
        query_position: int = 0,
        key_position: int = 0,
        before: int = 0,
        speed: float = 0.2,
        add: bool = False,
        name: str = "",
        goals: Sequence[Goal] = (),
    ) -> None:
        both = [_arrow(query, "query"), _arrow(key, "key")]
        super().__init__(
            _start=both,
            arrows=both,
            query_position=query_position,
            key_position=key_position,
            before=before,
            speed=speed,
            add=add,
            name=name,
            goals=goals,
        )

    def _sizes(self) -> dict[str, object]:
        return {"query_position": self.query_position, "key_position": self.key_position}

    @traitlets.validate(*_FARTHEST)
    def _check_position(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        if not 0 <= value <= _FARTHEST[name]:
            raise ValueError(f"{name} is {value}, but must be from 0 to {_FARTHEST[name]}")
        return value

    @traitlets.validate("speed")
    def _check_speed(self, proposal: dict) -> float:
        if not 0 <= proposal["value"] <= _FASTEST:
            raise ValueError(
                f"speed is {proposal['value']}, but must be from 0 to {_FASTEST} radians a position"
            )
        return proposal["value"]

    @traitlets.validate("arrows")
    def _check_arrows(self, proposal: dict) -> list[list[float]]:
        if len(proposal["value"]) != 2:
            raise ValueError(f"arrows are {proposal['value']}, but must be a query and a key")
        query, key = proposal["value"]
        return [_arrow(query, "query"), _arrow(key, "key")]


def _arrow(values: object, name: str) -> list[float]:
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=float)
    if array.shape != (2,):
        raise ValueError(f"{name} has the shape {array.shape}, but must be two numbers: one pair")
    if not (np.abs(array) <= _REACH).all():
        raise ValueError(
            f"{name} is {array.tolist()}, but both numbers must be from {-_REACH:g} to {_REACH:g}"
        )
    return array.tolist()
