"""Four ways to tell positions apart: clock hands, codes, products, and the effect of a shift."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, constant, float_bytes, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Option
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.joining import bundle, stylesheet

# The names of the entries in methods.js, where a method is added.
METHODS = tuple(
    re.findall(
        r'^  name: "(\w+)",$', Path(__file__).with_name("methods.js").read_text("utf-8"), re.M
    )
)
# The names of the entries of VIEWS there.
VIEWS = ("clocks", "code", "shift", "products", "all")
_SMALLEST = {"d_model": 2, "n_positions": 4, "n_heads": 1, "position": 0, "pair": 0, "head": 0}
# More would take longer than a frame to compute.
_LARGEST = {"d_model": 1024, "n_positions": 512, "n_heads": 64}
_LARGEST_TABLE = (4096, 1024)


class SettingError(traitlets.TraitError, ValueError):
    """A refused setting; as a TraitError, so that traitlets puts the old value back."""


class PositionLab(Widget):
    """Positional encodings to turn by hand: sinusoidal, rotary, ALiBi and learned.

    Every number is computed in the browser, equal to :mod:`transformer_lib.positions`. `table`
    ([positions, components], a torch tensor or anything that numpy can read) is what "learned"
    shows, for instance `LearnedPositions(...).table.weight` of a trained model; left out, it is 32
    rows of 32 random numbers of standard deviation 0.02, a table before training.

    What the reader sets comes back as attributes, and can be observed and set: `method`, `d_model`,
    `base`, `n_positions`, `position`, `offset` (k, with its sign), `pair`, `projected` (random W_Q
    and W_K), `own_angle` (the bug), `n_heads`, `head`, and `view`: one picture at a time ("clocks",
    "code", "shift", "products", each with the controls that it needs) or "all". A position or pair
    that the other settings do not allow is moved inside by the browser.

    State (what `[text](#set:name;key=value)` sets): these settings by their names, `projected` and
    `own_angle` by on or off; `reset`. A position or pair beyond the others is moved inside.

    Facts (what goals read): `d_model`, `base`, `n_positions`, `position`, `offset`, `pair`, `head`,
    `n_heads`, `projected` and `own_angle` (1 or 0), `score` (of the position with that at its
    offset) and `spread` (between the scores of all positions at this offset).

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
    _limits = constant({"smallest": _SMALLEST, "largest": _LARGEST})
    method = traitlets.Unicode("sinusoidal").tag(sync=True)
    d_model = traitlets.Int(32).tag(sync=True)
    base = traitlets.Float(10_000.0).tag(sync=True)
    n_positions = traitlets.Int(32).tag(sync=True)
    position = traitlets.Int(4).tag(sync=True)
    offset = traitlets.Int(3).tag(sync=True)
    pair = traitlets.Int(2).tag(sync=True)
    projected = traitlets.Bool(False).tag(sync=True)
    own_angle = traitlets.Bool(False).tag(sync=True)
    n_heads = traitlets.Int(8).tag(sync=True)
    head = traitlets.Int(1).tag(sync=True)
    view = traitlets.Unicode("all").tag(sync=True)
    _keys_of_text: ClassVar = {
        "method": Option({method: method for method in METHODS}, "method"),
        "d_model": Number(2, _LARGEST["d_model"], "d_model", multiple=2),
        "base": Number(1.001, trait="base", whole=False),
        "n_positions": Number(4, _LARGEST["n_positions"], "n_positions"),
        "position": Number(0, trait="position"),
        "offset": Number(trait="offset"),
        "pair": Number(0, trait="pair"),
        "projected": Flag("projected"),
        "own_angle": Flag("own_angle"),
        "n_heads": Number(1, _LARGEST["n_heads"], "n_heads"),
        "head": Number(0, trait="head"),
        "view": Option({view: view for view in VIEWS}, "view"),
    }
    _facts = (
        *(key for key in _keys_of_text if key not in ("method", "view")),
        "score",
        "spread",
    )

    def __init__(
        self,
        *,
        table: object | None = None,
        controls: Sequence[str] | None = None,
        hint: str = "",
        name: str = "",
        goals: Sequence[Goal] = (),
        **settings: object,
    ) -> None:
        unknown = set(settings) - set(self._settings())
        if unknown:
            raise TypeError(
                f"unknown setting {sorted(unknown)[0]!r}; there are {', '.join(self._settings())}"
            )
        for control in controls or ():
            if control not in self._settings():
                raise ValueError(
                    f"there is no control {control!r}; there are {', '.join(self._settings())}"
                )
        offered = None if controls is None else list(controls)
        array = _untrained_table() if table is None else _table_array(table)
        super().__init__(
            _table=float_bytes(array),
            _table_shape=list(array.shape),
            _place=json_bytes({"controls": offered, "hint": hint}),
            name=name,
            goals=goals,
            **settings,
        )

    @classmethod
    def _settings(cls) -> list[str]:
        return [name for name in cls.class_own_traits(sync=True) if not name.startswith("_")]

    def _sizes(self) -> dict[str, object]:
        return {"method": self.method, "positions": self.n_positions, "d_model": self.d_model}

    @traitlets.validate("method", "view")
    def _check_name_of(self, proposal: dict) -> str:
        # Refused here, so that no other text can reach the page by this trait.
        name, known = proposal["trait"].name, {"method": METHODS, "view": VIEWS}
        if proposal["value"] not in known[name]:
            raise SettingError(f"{name} is {proposal['value']!r}, but must be one of {known[name]}")
        return proposal["value"]

    @traitlets.validate("base")
    def _check_base(self, proposal: dict) -> float:
        if not 1 < proposal["value"] < np.inf:
            raise SettingError(
                f"base is {proposal['value']}, but must be above 1, for instance 10000"
            )
        return proposal["value"]

    @traitlets.validate(*_SMALLEST)
    def _check_count(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        if value < _SMALLEST[name]:
            raise SettingError(f"{name} is {value}, but must be at least {_SMALLEST[name]}")
        if value > _LARGEST.get(name, value):
            raise SettingError(
                f"{name} is {value}, but the lab shows at most {_LARGEST[name]}: choose fewer"
            )
        if name == "d_model" and value % 2:
            raise SettingError(f"d_model is {value}, but must be even: each pair is one hand")
        return value


def _untrained_table() -> np.ndarray:
    return np.random.default_rng(7).normal(scale=0.02, size=(32, 32))


def _table_array(table: object) -> np.ndarray:
    array = np.asarray(table.detach().cpu().double() if hasattr(table, "detach") else table)
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
    if not np.isfinite(array).all():
        raise ValueError("table holds NaN or infinity: there is nothing to draw")
    return array
