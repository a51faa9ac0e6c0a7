"""The step scrubber's Python side: what it takes, what it refuses, and whether its code is true."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from transformer_lib.attention import MultiHeadAttention, merge_heads, split_heads
from transformer_lib.masks import causal_mask
from transformer_lib.positions import RotaryPositions
from transformer_lib.widgets import StepScrubber
from transformer_lib.widgets.step_scrubber.widget import code_lines
from transformer_lib.window import WindowAttention

WORDS = ["mary", "gave", "roses", "to", "susan"]


def scrubber(d_model=6, n_heads=3, d_head=7, **options) -> StepScrubber:
    module = MultiHeadAttention(d_model, n_heads, d_head=d_head)
    return StepScrubber(WORDS, torch.randn(5, d_model), module, **options)


def test_its_repr_is_stable():
    assert repr(scrubber()) == "StepScrubber(tokens=5, heads=3, d_model=6, d_head=7)"


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_lines_that_it_shows_compute_what_the_library_computes(bias, causal):
    module = MultiHeadAttention(15, 5, d_head=2, bias=bias).double()
    x = torch.randn(3, 7, 15, dtype=torch.float64)
    names = {
        "x": x, "n_heads": 5, "d_head": 2, "split_heads": split_heads, "merge_heads": merge_heads,
        "where": torch.where, "inf": math.inf,
        "mask": causal_mask(7) if causal else torch.ones(7, 7, dtype=torch.bool),
    }  # fmt: skip
    for letter, layer in zip(
        "QKVO", (module.query, module.key, module.value, module.output), strict=True
    ):
        names |= {f"W_{letter}": layer.weight.T, f"b_{letter}": layer.bias}
    for line in code_lines(biased=bias):
        exec(line, names)  # the point: the lines on the page are real code
    torch.testing.assert_close(names["y"], module(x, causal=causal))


def test_text_travels_as_bytes_and_numbers_as_float32():
    widget = scrubber(features=list("abcdef"))
    text = json.loads(widget._text)
    assert text["tokens"] == WORDS
    assert text["features"] == list("abcdef")
    assert text["outputs"] == ["0", "1", "2", "3", "4", "5"]
    assert text["order"] == [4, 3, 2, 1, 0]
    assert not text["hasPlaces"]
    numbers = 2 * 5 * 6 + 3 * (6 * 21 + 21) + (21 * 6 + 6)
    assert len(widget._arrays) == 4 * numbers


def test_weights_travel_in_the_order_of_x_times_w():
    module = MultiHeadAttention(2, 1)
    x = torch.tensor([[1.0, 2], [3, 4]])
    widget = StepScrubber(["a", "b"], x, module, places=10 * x)
    sent = np.frombuffer(widget._arrays, "<f4")
    assert sent[:8].tolist() == [1, 2, 3, 4, 10, 20, 30, 40]
    weight = module.query.weight.detach().T
    np.testing.assert_array_equal(sent[8:12], weight.flatten().numpy())
    np.testing.assert_array_equal(sent[12:14], module.query.bias.detach().numpy())


def test_what_the_reader_does_can_be_read_and_set():
    widget = scrubber()
    assert (widget.step, widget.head, widget.selection) == (6, 0, (1, 0))
    widget.selection = (4, 2)
    assert widget.selection.row == 4
    assert widget._cell == [4, 2]
    widget.step, widget.head, widget.causal = 9, 2, True
    with pytest.raises(ValueError, match=r"head is 3, but must be a whole number from 0 to 2"):
        widget.head = 3
    with pytest.raises(ValueError, match=r"step is 10, but must be one of: q, k, v, scores"):
        widget.step = 10


@pytest.mark.parametrize("cell", [(5, 0), (-1, 0), (0, 21), (0, -1), (0, 1.5), (0,), 3, "ab"])
@pytest.mark.usefixtures("as_a_reader")
def test_a_selection_is_a_cell_that_there_is(cell):
    widget = scrubber()
    for select in (lambda: scrubber(selection=cell), lambda: setattr(widget, "selection", cell)):
        with pytest.raises(ValueError, match=r"selection is .* there are 5 rows, .* 21 columns"):
            select()
    assert widget.selection == (1, 0)
    widget.selection = np.array([4, 20])
    assert widget.selection == (4, 20)
    assert StepScrubber(["a"], torch.ones(1, 6), MultiHeadAttention(6, 3)).selection == (0, 0)


@pytest.mark.usefixtures("as_a_reader")
def test_it_refuses_what_it_cannot_show():
    x, module = torch.randn(5, 6), MultiHeadAttention(6, 3)
    cases = [
        (ValueError, "x has shape", (WORDS, x[None], module), {}),
        (ValueError, "4 tokens for 5 rows of x", (WORDS[:4], x, module), {}),
        (
            ValueError,
            "x is 7 wide, but this attention reads",
            (WORDS, torch.randn(5, 7), module),
            {},
        ),
        (ValueError, "places have shape", (WORDS, x, module), {"places": torch.zeros(5, 5)}),
        (
            ValueError,
            "must hold each of 0 .. 4 once",
            (WORDS, x, module),
            {"order": [0, 0, 1, 2, 3]},
        ),
        (TypeError, "order 'ba' cannot be a tensor", (WORDS, x, module), {"order": "ba"}),
        (ValueError, "NaN or infinite", (WORDS, x / 0, module), {}),
        (ValueError, "2 features for 6 components", (WORDS, x, module), {"features": ["a", "b"]}),
        (TypeError, "Linear has no query, key, value", (WORDS, x, nn.Linear(6, 6)), {}),
        (
            TypeError,
            "has RotaryPositions of its own",
            (WORDS, x, MultiHeadAttention(6, 3, positions=RotaryPositions(2))),
            {},
        ),
        (
            TypeError,
            "1 heads of keys and values for 3 of queries",
            (WORDS, x, MultiHeadAttention(6, 3, n_kv_heads=1)),
            {},
        ),
        *(
            (TypeError, "does more than the ten steps show", (WORDS, x, other), {})
            for other in (
                MultiHeadAttention(6, 3, qk_norm=True),
                WindowAttention(6, 3, window=1, sinks=0),
                type("Own", (MultiHeadAttention,), {"project": None})(6, 3),
            )
        ),
    ]
    for error, message, arguments, options in cases:
        with pytest.raises(error, match=message):
            StepScrubber(*arguments, **options)
