"""ScalingLab, the Python side: what it accepts and what comes back."""

import pytest

from transformer_lib.widgets import ScalingLab


def test_what_the_reader_does_comes_back_and_can_be_observed():
    widget = ScalingLab(n_keys=7, d_k=16, seed=5)
    seen = []
    widget.observe(lambda change: seen.append((change.name, change.new)), ["d_k", "seed"])
    widget.set_state({"d_k": 4096, "seed": 6})
    assert sorted(seen) == [("d_k", 4096), ("seed", 6)]
    assert repr(widget) == "ScalingLab(keys=7)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_k": 5000}, "d_k is 5000"),
        ({"n_keys": 1}, "n_keys is 1, but must be a whole number from 2 to 16"),
        ({"n_keys": 17}, "n_keys is 17"),
        ({"show": "all"}, "show is 'all'; choose one of weights, slope, row"),
    ],
)
def test_bad_input_gets_a_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        ScalingLab(**options)


def test_what_a_notebook_sets_later_is_checked_too():
    widget = ScalingLab()
    for name, value in [("d_k", 8192), ("n_keys", 10**9), ("n_keys", -1), ("n_keys", True)]:
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            setattr(widget, name, value)
    assert (widget.d_k, repr(widget)) == (64, "ScalingLab(keys=10)")
