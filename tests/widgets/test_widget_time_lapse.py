"""TimeLapse in Python: what travels, what comes back, what is refused."""

import numpy as np
import pytest
from figures import CURVE, READERS, make_lapse, make_timeline

from transformer_lib.widgets import TimeLapse
from transformer_lib.widgets.weights import unpack_weights


def test_all_weights_travel_under_their_steps():
    timeline = make_timeline()
    packed = unpack_weights(make_lapse(bits=32)._packed)
    assert len(packed) == sum(map(len, timeline.weights.values()))
    for step, weights in timeline.weights.items():
        for name, weight in weights.items():
            np.testing.assert_array_equal(packed[f"{step}/{name}"], weight)


def test_settings_are_kept_within_what_there_is():
    widget = make_lapse()
    assert repr(widget) == "TimeLapse(steps=4, length=12)"
    for name, value, problem in [
        ("step", 5, r"step is 5; .* 0, 10, 20, 40"),
        ("ids", [0, 3], "each 0 to 2"),
        ("ids", [0] * 13, "at most 12 states"),
    ]:
        with pytest.raises(ValueError, match=problem):
            setattr(widget, name, value)
    widget.ids = [0, 1, 2]
    assert (widget.step, widget.position, widget.ids) == (0, -1, [0, 1, 2])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"length": 17}, "length is 17; choose 8 to 16"),
        ({"step": 7}, "step is 7"),
        ({"curve": CURVE | {"loss": [1.0]}}, "same length"),
        ({"curve": {"step": [0]}}, "step, loss"),
        ({"curve": CURVE | {"share": [0.1, float("nan"), 0.2]}}, "'share' holds a number"),
        ({"readers": {"uniform": 1.1}}, "readers lacks 'unigram'"),
        ({"timeline": make_timeline(n_heads=2)}, "2 layers of 2 heads"),
        ({"timeline": make_timeline(n_layers=1)}, "1 layers of 1 heads"),
        ({"timeline": "markov"}, "timeline is 'markov', which has no config"),
    ],
)
def test_what_is_refused(options, problem):
    wrong = TypeError if options == {"timeline": "markov"} else ValueError
    given = {"timeline": make_timeline(), "curve": CURVE, "readers": READERS, "length": 12}
    with pytest.raises(wrong, match=problem):
        TimeLapse(**given | options)
