"""HeadView in Python: the forms of attention that it takes, what it refuses, what it hands over."""

import json

import numpy as np
import pytest
import torch

from transformer_lib.widgets import HeadView
from transformer_lib.widgets.bertviz import program as bertviz_program

LAYERS, HEADS, TOKENS = 2, 3, 5
WORDS = ["mary", "gave", "roses", "to", "susan"]


@pytest.fixture
def weights():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(LAYERS, HEADS, TOKENS, TOKENS, generator=generator).softmax(-1)


def data(widget):
    return json.loads(widget._data)


def test_weights_are_handed_over_rounded(weights):
    widget = HeadView(weights, WORDS)
    np.testing.assert_allclose(data(widget)["attention"], weights.double().numpy(), atol=5.1e-4)
    assert np.array(data(widget)["attention"]).shape == (LAYERS, HEADS, TOKENS, TOKENS)
    assert repr(widget) == "HeadView(layers=2, heads=3, tokens=5)"
    assert max(len(str(w)) for w in np.ravel(data(widget)["attention"])) <= len("0.123")


@pytest.mark.parametrize(
    "form",
    [
        lambda w: list(w),
        lambda w: tuple(layer[None] for layer in w),  # as a model gives it: a batch of one
        lambda w: [layer.numpy() for layer in w],
        lambda w: w.clone().requires_grad_(),
    ],
)
def test_every_usual_form_is_the_same_view(weights, form):
    assert HeadView(form(weights), WORDS)._data == HeadView(weights, WORDS)._data


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (lambda w: w[0], r"shape \(3, 5, 5\), but must be \[layers, heads"),
        (lambda w: w[..., :4], "must be"),
        (lambda w: [], "different shapes|must be"),
        (lambda w: [w[0], w[1, :2]], "different shapes"),
        (lambda w: [w], r"of 2 sentences.*choose it"),
        (lambda w: w * 8 - 1, "take their softmax"),
        (lambda w: w * torch.nan, "nan|NaN|finite"),
    ],
)
def test_other_shapes_and_values_are_refused(weights, attention, message):
    with pytest.raises(ValueError, match=message):
        HeadView(attention(weights), WORDS)


def test_tokens_are_checked(weights, as_a_reader):
    with pytest.raises(ValueError, match="4 tokens for 5"):
        HeadView(weights, WORDS[:4])
    with pytest.raises(TypeError, match="but tokens are shown as text"):
        HeadView(weights, [*WORDS[:4], 7])
    with pytest.raises(ValueError, match=r"17 tokens.*at most 16.*AttentionMap"):
        HeadView(torch.full((1, 1, 17, 17), 1 / 17), ["a"] * 17)
    assert HeadView(torch.full((1, 1, 16, 16), 1 / 16), ["a"] * 16)


def test_without_bertviz_the_error_names_it(weights, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install bertviz"):
        HeadView(weights, WORDS)


def test_the_program_is_bertvizs_own_and_asks_for_what_the_widget_gives():
    program = bertviz_program("head_view", "HeadView")
    assert "requirejs(['jquery', 'd3']" in program
    assert program.count("PYTHON_PARAMS;") == 1
    assert {"'attention'", "'root_div_id'", "'layer'"} <= {
        piece.split("]")[0] for piece in program.split("params[")[1:]
    }
    # These reach into what it draws: the names of its parts must not have changed.
    for part in ('"attentionBoxes"', '"background"', '"head-index"', '"left" : "right"'):
        assert part in program
