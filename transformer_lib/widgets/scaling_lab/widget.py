"""The effect of the width d_k on scores, softmax and gradient, with and without 1/√d_k."""

from collections.abc import Sequence
from typing import ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant
from transformer_lib.widgets.driving import Number
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.joining import bundle, stylesheet

LEVELS = ("weights", "slope", "row")  # each shows what the one before shows, and more
WIDEST = 4096  # a power of two: the slider goes by powers
_MOST_KEYS = 16
_SEEDS = 2**31


class ScalingLab(Widget):
    """A random query and random keys, all components of mean 0 and variance 1, at any width d_k.

    Shown side by side, raw and divided by √d_k: the scores, their softmax, and its largest weight
    p. With `show="slope"` also the slope p(1 - p) there, which is how fast that weight grows with
    its own score, and below it what two scores alone do to a softmax as they part: the typical
    difference of two scores (its standard deviation, √(2 d_k) raw and √2 scaled) is marked, with
    its weight and slope. With `show="row"` also the row's entropy in nats and the Frobenius norm of
    its whole Jacobian diag(p) - p pᵀ. `show="weights"` leaves all of that out. The numbers are
    drawn in JavaScript from `seed`; a larger d_k adds components to the same vectors.

    `widget.d_k` and `widget.seed` come back from the reader and can be observed and set.

    State (what `[text](#set:name;key=value)` sets): `d_k` (1 to 4096), `seed`, `reset`.

    Facts (what goals read): `d_k`, `seed`, `largest raw weight`, `largest scaled weight`, `raw
    slope`, `scaled slope` (of the largest weight), `raw entropy`, `scaled entropy`.

    Raises ValueError for a d_k outside 1 .. 4096, a number of keys outside 2 .. 16, or another word
    for `show`.

    >>> ScalingLab(n_keys=10)
    ScalingLab(keys=10)
    """

    _esm = bundle("scaling_lab")
    _css = stylesheet("scaling_lab")
    _limits = constant({"widest": WIDEST, "seeds": _SEEDS, "levels": LEVELS})
    n_keys = traitlets.Int().tag(sync=True)
    d_k = traitlets.Int().tag(sync=True)
    seed = traitlets.Int().tag(sync=True)
    show = traitlets.Enum(LEVELS, "slope", read_only=True).tag(sync=True)
    _keys_of_text: ClassVar = {
        "d_k": Number(1, WIDEST, "d_k"),
        "seed": Number(0, _SEEDS - 1, "seed"),
    }
    _facts = (
        "d_k",
        "seed",
        "largest raw weight",
        "largest scaled weight",
        "raw slope",
        "scaled slope",
        "raw entropy",
        "scaled entropy",
    )

    def __init__(
        self,
        n_keys: int = 10,
        *,
        d_k: int = 64,
        seed: int = 3,
        show: str = "slope",
        name: str = "",
        goals: Sequence[Goal] = (),
    ) -> None:
        if not 2 <= n_keys <= _MOST_KEYS:
            raise ValueError(f"n_keys is {n_keys}; choose 2 to {_MOST_KEYS} keys")
        if show not in LEVELS:
            raise ValueError(f"show is {show!r}; choose one of {', '.join(LEVELS)}")
        super().__init__(n_keys=n_keys, d_k=d_k, seed=seed, name=name, goals=goals)
        self.set_trait("show", show)

    @traitlets.validate("d_k")
    def _check_d_k(self, proposal: dict) -> int:
        if not 1 <= proposal["value"] <= WIDEST:
            raise ValueError(f"d_k is {proposal['value']}; choose a width from 1 to {WIDEST}")
        return proposal["value"]

    @traitlets.validate("seed")
    def _check_seed(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] < _SEEDS:
            raise ValueError(f"seed is {proposal['value']}; choose one from 0 to 2**31 - 1")
        return proposal["value"]

    def _sizes(self) -> dict[str, object]:
        return {"keys": self.n_keys}
