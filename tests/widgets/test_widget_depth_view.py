"""DepthView, the Python side: what it accepts, and the means that it shows."""

import json
import math

import pytest

from transformer_lib.training.run_log import load_run
from transformer_lib.widgets import DepthView

NAMES, STARTS = ["pre-norm", "no norm", "no feed-forward"], ["GPT-2", "Xavier"]


def make_curve(**changes):
    rows = [
        (at, start, depth, seed, layer, (1 + at) * 10.0**seed, float(layer))
        for at in range(3)
        for start in range(2)
        for depth in (6, 12)
        for seed in range(3)
        for layer in range(1, depth + 1)
    ]
    columns = ("arrangement", "start", "depth", "seed", "layer", "gradient", "stream")
    return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)) | changes


def test_seeds_are_averaged_as_logarithms():
    view = DepthView(make_curve(), NAMES, STARTS, depth=12)
    lines = json.loads(view._text)["lines"]
    assert {(one["key"], one["start"], one["depth"]) for one in lines} == {
        (key, start, depth) for key in ("pre", "no_norm") for start in (0, 1) for depth in (6, 12)
    }
    for line in lines:
        assert line["gradient"] == [10.0 if line["key"] == "pre" else 20.0] * line["depth"]
        assert line["stream"] == list(range(1, line["depth"] + 1))
    assert repr(view) == "DepthView(depths=2, starts=2)"


def test_what_the_reader_does_comes_back():
    view = DepthView(make_curve(), NAMES, STARTS, depth=12)
    assert (view.pre, view.no_residual) == (True, False)
    view.set_state({"no_residual": True, "depth": 6, "quantity": "stream"})
    assert (view.no_residual, view.depth, view.quantity) == (True, 6, "stream")


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"stream": []}, {}, "equally long"),
        ({"gradient": [0.0] * 324}, {}, "finite numbers above 0 only"),
        ({"gradient": [math.inf] * 324}, {}, "finite numbers above 0 only"),
        ({}, {"shown": ["pre-norm"]}, "shown holds"),
        ({"arrangement": [3] * 324}, {}, "arrangement 3 and start 0, .* are 3 arrangements and 2"),
        ({"start": [2] * 324}, {}, "arrangement 0 and start 2, as indices"),
        ({}, {"arrangements": ["pre"] * 3}, "of which none is known; this figure shows pre-norm"),
        ({}, {"depth": 24}, r"depth is 24; there are \[6, 12\]"),
    ],
)
def test_bad_input_gets_a_clear_error(changes, options, message):
    options = {"arrangements": NAMES, "starts": STARTS, "depth": 12} | options
    with pytest.raises(ValueError, match=message):
        DepthView(make_curve(**changes), **options)


def test_the_deepest_models_are_shown_first():
    assert DepthView(make_curve(), NAMES, STARTS).depth == 12


def test_a_missing_column_is_named():
    curve = make_curve()
    del curve["stream"]
    with pytest.raises(ValueError, match="no column 'stream'"):
        DepthView(curve, NAMES, STARTS)


def test_the_committed_log_has_what_the_figure_needs():
    """But for the stack whose numbers are beyond what a float holds, at 24 blocks at least."""
    log = load_run("depth")
    rows = list(zip(*log.curve.values(), strict=True))
    beyond = {row[:3] for row in rows if not all(map(math.isfinite, row))}
    names, starts = log.config["arrangements"], log.config["starts"]
    assert {(names[a], starts[b]) for a, b, _ in beyond} == {("no norm", "all large")}
    kept = [row for row in rows if row[:3] not in beyond]
    curve = dict(zip(log.curve, map(list, zip(*kept, strict=True)), strict=True))
    view = DepthView(curve, names, starts)
    assert len(json.loads(view._text)["lines"]) == 4 * 3 * 3 - len(beyond)
