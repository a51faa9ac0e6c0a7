"""The turned arrows seen from Python: what they are given, refuse and give back."""

import pytest
import torch

from transformer_lib.widgets import RotaryArrows


def test_settings_travel_and_come_back():
    widget = RotaryArrows(
        torch.tensor([1.0, 0.5], dtype=torch.bfloat16),
        [0.5, -1.0],
        query_position=5,
        key_position=2,
    )
    assert repr(widget) == "RotaryArrows(query_position=5, key_position=2)"
    assert widget.arrows == [[1.0, 0.5], [0.5, -1.0]]
    widget.set_state({"before": 7, "add": True, "arrows": [[2, 0], [0, 1]]})  # as the browser would
    assert (widget.before, widget.add, widget.arrows) == (7, True, [[2.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"query": [1.0]}, r"query has the shape \(1,\), but must be two numbers"),
        ({"key": [0.0, 2.5]}, r"key is \[0.0, 2.5\], but both numbers must be from -2 to 2"),
        ({"key": [0.0, float("nan")]}, "key holds 1 numbers that are NaN"),
        (
            {"speed": 1.6},
            r"speed is 1.6, but must be a number from 0 to 1.5 \(in radians a position\)",
        ),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        RotaryArrows(**{"query": [1.0, 0.0], "key": [0.0, 1.0]} | settings)
