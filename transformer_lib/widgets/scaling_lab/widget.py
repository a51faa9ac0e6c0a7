"""The effect of the width d_k on scores, softmax and gradient, with and without 1/√d_k."""

from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant
from transformer_lib.widgets.driving import Number, Setting
from transformer_lib.widgets.joining import bundle, stylesheet

LEVELS = ("weights", "slope", "row")  # each shows what the one before shows, and more


class ScalingLab(Widget):
    """A random query and random keys, all components of mean 0 and variance 1, at any width d_k.

    Shown side by side, raw and divided by √d_k: the scores, their softmax, and its largest weight
    p. With `show="slope"` also the slope p(1 - p) there, which is how fast that weight grows with
    its own score, and below it what two scores alone do to a softmax as they part: the typical
    difference of two scores (its standard deviation, √(2 d_k) raw and √2 scaled) is marked, with
    its weight and slope. With `show="row"` also the row's entropy in nats and the Frobenius norm of
    its whole Jacobian diag(p) - p pᵀ. `show="weights"` leaves all of that out. The numbers are
    drawn in JavaScript from `seed`; a larger d_k adds components to the same vectors.

    Raises ValueError for a setting out of range, a number of keys outside 2 .. 16, or another word
    for `show`.

    >>> ScalingLab(n_keys=10)
    ScalingLab(keys=10)
    """

    _esm = bundle("scaling_lab")
    _css = stylesheet("scaling_lab")
    _limits = constant({"levels": LEVELS})
    n_keys = Setting(10, Number(2, 16, "a figure that is shown keeps its own"), link="")
    d_k = Setting(64, Number(1, 4096, "the width"))  # a power of two: the slider goes by powers
    seed = Setting(3, Number(0, 2**31 - 1, "of all components"))
    show = traitlets.Enum(LEVELS, "slope", read_only=True).tag(sync=True)
    _facts: ClassVar = {
        "largest raw weight": "",
        "largest scaled weight": "",
        "raw slope": "of the largest weight",
        "scaled slope": "of the largest weight",
        "raw entropy": "",
        "scaled entropy": "",
    }

    def __init__(
        self,
        n_keys: int = 10,
        *,
        show: str = "slope",
        **settings: Any,
    ) -> None:
        if show not in LEVELS:
            raise ValueError(f"show is {show!r}; choose one of {', '.join(LEVELS)}")
        super().__init__(
            n_keys=n_keys,
            **settings,
        )
        self.set_trait("show", show)

    def _sizes(self) -> dict[str, object]:
        return {"keys": self.n_keys}
