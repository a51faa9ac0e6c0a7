"""The position lab seen from Python: what it is given, refuses and gives back."""

import numpy as np
import pytest
import torch

from transformer_lib.positions import LearnedPositions
from transformer_lib.widgets.position_lab.widget import METHODS, PositionLab


def test_repr_is_stable():
    lab = PositionLab(method="rotary", n_positions=11, d_model=14)
    assert repr(lab) == "PositionLab(method=rotary, positions=11, d_model=14)"


def test_settings_travel_and_come_back():
    lab = PositionLab(d_model=14, base=50.0, position=5)
    seen = []
    lab.observe(lambda change: seen.append(change["new"]), "position")
    lab.set_state({"position": 3, "offset": -2, "projected": True})  # as the browser would
    assert (lab.position, lab.offset, lab.projected, seen) == (3, -2, True, [3])
    assert {"d_model", "base", "method", "_table"} <= set(lab.get_state())


def test_the_methods_are_the_entries_of_the_table():
    assert METHODS == ("sinusoidal", "rotary", "alibi", "learned")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_accepted(method):
    assert PositionLab(method=method).method == method


def test_the_table_is_the_given_one():
    table = LearnedPositions(max_positions=7, d_model=10).table.weight
    lab = PositionLab(table=table, method="learned")
    sent = np.frombuffer(lab._table, dtype="<f4").reshape(lab._table_shape)
    assert np.array_equal(sent, table.detach().numpy())


def test_without_a_table_there_is_an_untrained_one_and_always_the_same():
    one, other = PositionLab(), PositionLab()
    assert one._table == other._table
    sent = np.frombuffer(one._table, dtype="<f4")
    assert one._table_shape == [32, 32]
    assert 0.015 < sent.std() < 0.025


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": float("nan")}, "base is nan, but must be a number of at least 1.001"),
        ({"method": "</SCRIPT>"}, "method is '</SCRIPT>', but must be one of"),
        ({"table": np.zeros((5000, 4))}, r"at most 4096 positions.*table\[:4096, :1024\]"),
        ({"table": [[1.0, 2.0]]}, r"table has the shape \(1, 2\)"),
        ({"table": np.zeros((5, 3))}, "an even number of components"),
        ({"table": torch.full((5, 2), torch.nan)}, r"table\[0\]\[0\]|table"),
        ({"table": np.full((4, 2), 1e308)}, "table"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        PositionLab(**settings)


def test_an_unknown_control_is_named():
    with pytest.raises(ValueError, match="no control 'speed'; there are method, d_model"):
        PositionLab(controls=["position", "speed"])


def test_an_unknown_setting_is_named():
    with pytest.raises(TypeError, match="there is no setting 'd_head'; there are table,"):
        PositionLab(d_head=8)


def test_the_browser_cannot_set_what_python_refuses():
    lab = PositionLab()
    with pytest.raises(ValueError, match="must be one of"):
        lab.set_state({"method": "<img>"})
    assert lab.method == "sinusoidal"
