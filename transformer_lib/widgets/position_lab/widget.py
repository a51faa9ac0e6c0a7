"""Four ways to tell positions apart: clock hands, codes, products, and the effect of a shift."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Option, Setting
from transformer_lib.widgets.inputs import to_numpy
from transformer_lib.widgets.joining import bundle, stylesheet

# The names of the entries in methods.js, where a method is added.
METHODS = tuple(
    re.findall(
        r'^  name: "(\w+)",$', Path(__file__).with_name("methods.js").read_text("utf-8"), re.M
    )
)
# The names of the entries of VIEWS there.
VIEWS = ("clocks", "code", "shift", "products", "all")
_LARGEST_TABLE = (4096, 1024)


class PositionLab(Widget):
    """Positional encodings to turn by hand: sinusoidal, rotary, ALiBi and learned.

    Every number is computed in the browser, equal to :mod:`transformer_lib.positions`. `table`
    ([positions, components], a torch tensor or anything that numpy can read) is what "learned"
    shows, for instance `LearnedPositions(...).table.weight` of a trained model; left out, it is 32
    rows of 32 random numbers of standard deviation 0.02, a table before training.

    `controls` are the settings that have a control in this figure, by their names ("view" for the
    choice of a picture); left out, all that the method and the view have. `hint` is what this
    figure asks the reader to try.

    At most 512 positions, 1024 components and 64 heads; a table of at most 4096 positions.

    Raises ValueError for an odd `d_model`, a `base` of 1 or less, other settings out of their
    range, an unknown `method`, `view` or control, or a table that is not finite or not [positions,
    an even number of components].

    >>> lab = PositionLab(d_model=16, position=5)
    >>> lab
    PositionLab(method=sinusoidal, positions=32, d_model=16)
    >>> lab.position, lab.offset
    (5, 3)
    """

    _esm = bundle("position_lab")
    _css = stylesheet("position_lab")
    _table = traitlets.Bytes().tag(sync=True)
    _table_shape = traitlets.List(traitlets.Int()).tag(sync=True)
    _place = traitlets.Bytes().tag(sync=True)
    method = Setting("sinusoidal", Option(METHODS))
    # More than these would take longer than a frame to compute.
    d_model = Setting(32, Number(2, 1024, "components", multiple=2))
    base = Setting(10_000.0, Number(1.001, None, "of the wavelengths", whole=False))
    n_positions = Setting(32, Number(4, 512))
    position = Setting(4, Number(0, None, "moved inside by the browser, if it is beyond them"))
    offset = Setting(3, Number(None, None, "k, with its sign"))
    pair = Setting(2, Number(0, None, "moved inside likewise"))
    projected = Setting(False, Flag("by a random W_Q and W_K"))
    own_angle = Setting(False, Flag("the bug: every component has an angle of its own"))
    n_heads = Setting(8, Number(1, 64))
    head = Setting(1, Number(0))
    view = Setting("all", Option(VIEWS, "one picture, with the controls that it needs, or all"))
    _facts: ClassVar = {
        "score": "of the position with that at its offset",
        "spread": "between the scores of all positions at this offset",
    }

    def __init__(
        self,
        *,
        table: object | None = None,
        controls: Sequence[str] | None = None,
        hint: str = "",
        **settings: Any,
    ) -> None:
        for control in controls or ():
            if control not in self._settings:
                raise ValueError(
                    f"there is no control {control!r}; there are {', '.join(self._settings)}"
                )
        offered = None if controls is None else list(controls)
        array = _untrained_table() if table is None else _table_array(table)
        super().__init__(
            _table=float_bytes(array),
            _table_shape=list(array.shape),
            _place=json_bytes({"controls": offered, "hint": hint}),
            **settings,
        )

    def _sizes(self) -> dict[str, object]:
        return {"method": self.method, "positions": self.n_positions, "d_model": self.d_model}


def _untrained_table() -> np.ndarray:
    return np.random.default_rng(7).normal(scale=0.02, size=(32, 32))


def _table_array(table: object) -> np.ndarray:
    array = to_numpy(table, "table")
    if array.ndim != 2 or array.shape[0] < 4 or array.shape[1] < 2 or array.shape[1] % 2:
        raise ValueError(
            f"table has the shape {array.shape}, but must be [positions, components] with at least "
            "4 positions and an even number of components"
        )
    if array.shape[0] > _LARGEST_TABLE[0] or array.shape[1] > _LARGEST_TABLE[1]:
        rows, columns = _LARGEST_TABLE
        raise ValueError(
            f"table has the shape {array.shape}, but the lab shows at most {rows} positions and "
            f"{columns} components: give a part of it, table[:{rows}, :{columns}]"
        )
    return array
