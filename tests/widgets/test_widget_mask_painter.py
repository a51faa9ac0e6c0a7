"""MaskPainter, the Python side: what it takes and refuses, what the drawing gives back."""

import json

import pytest
import torch

from transformer_lib.attention import attention
from transformer_lib.masks import causal_mask, sliding_window_mask
from transformer_lib.widgets import MaskPainter

WORDS = ["mary", "gave", "roses", "to", "susan"]


@pytest.fixture
def painter():
    return MaskPainter(WORDS, torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 2))


def test_the_first_mask_is_causal_and_the_repr_is_stable(painter):
    assert torch.equal(painter.mask, causal_mask(5))
    assert repr(painter) == "MaskPainter(words=5, allowed=15)"


def test_a_mask_goes_in_and_comes_back(painter):
    painter.mask = sliding_window_mask(5, 2)
    assert torch.equal(painter.mask, sliding_window_mask(5, 2))
    assert painter.mask.dtype == torch.bool
    assert repr(painter) == "MaskPainter(words=5, allowed=9)"


def test_what_the_reader_draws_is_a_mask_for_the_library(painter):
    seen = []
    painter.observe(lambda change: seen.append(painter.mask), "cells")
    drawn = torch.rand(5, 5) > 0.5
    painter.set_state({"cells": drawn.flatten().int().tolist()})  # what the front end sends
    assert torch.equal(seen[-1], drawn)
    x = torch.randn(5, 3)
    attention(x, x, x, painter.mask)  # of the right type and shape, or this raises


def test_the_returned_mask_is_a_copy(painter):
    painter.mask.fill_(True)
    assert torch.equal(painter.mask, causal_mask(5))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cells", [1, 0], "cells are 2 numbers; they must be 25, each 0 or 1"),
        ("cells", [2] * 25, "each 0 or 1"),
    ],
)
def test_values_out_of_range_are_refused(painter, name, value, message):
    before = getattr(painter, name)
    with pytest.raises(ValueError, match=message):
        setattr(painter, name, value)
    assert getattr(painter, name) == before


def test_wrong_masks_are_refused(painter, as_a_reader):
    with pytest.raises(ValueError, match=r"mask has shape \(1, 5, 5\), but it must be \(5, 5\)"):
        painter.mask = causal_mask(5)[None]
    with pytest.raises(TypeError, match="a mask is a boolean tensor, True = may attend"):
        painter.mask = causal_mask(5).float()


@pytest.mark.parametrize(
    ("words", "shape", "error", "message"),
    [
        (WORDS[:4], (5, 3), ValueError, r"4 words, q \(5, 3\) and k \(5, 3\) do not fit"),
        (WORDS, (2, 5, 3), ValueError, r"of one sentence: \[words, d_k\]"),
        ("mary", (4, 3), TypeError, "give a list of texts"),
        ([1, 2, 3], (3, 3), TypeError, "give a list of texts"),
    ],
)
def test_wrong_words_and_shapes_are_refused(words, shape, error, message, as_a_reader):
    x = torch.randn(shape)
    with pytest.raises(error, match=message):
        MaskPainter(words, x, x, x)


def test_more_words_than_can_be_painted_are_refused():
    x = torch.randn(65, 3)
    with pytest.raises(ValueError, match="65 words, but this figure shows at most 64"):
        MaskPainter([f"w{i}" for i in range(65)], x, x, x)


def test_numbers_that_float32_cannot_hold_are_refused():
    x = torch.randn(5, 3, dtype=torch.float64)
    large = x.clone()
    large[1, 2] = 1e300
    with pytest.raises(ValueError, match=r"k holds 1e\+300 at index \(1, 2\)"):
        MaskPainter(WORDS, x, large, x)


def test_nan_is_refused(as_a_reader):
    x = torch.randn(5, 3)
    bad = x.clone()
    bad[1, 2] = torch.nan
    with pytest.raises(ValueError, match=r"v holds 1 numbers that are NaN or infinite"):
        MaskPainter(WORDS, x, x, bad)


def test_parameters_and_half_precision_are_taken():
    x = torch.nn.Parameter(torch.randn(5, 3))
    assert repr(MaskPainter(WORDS, x, x, x)) == "MaskPainter(words=5, allowed=15)"
    half = x.detach().bfloat16()
    assert repr(MaskPainter(WORDS, half, half, half)) == "MaskPainter(words=5, allowed=15)"


def test_a_smaller_copy_shows_some_of_its_parts():
    x = torch.eye(3)
    assert MaskPainter(["i", "am", "fine"], x, x, x, show="layers")._show == "layers"
    with pytest.raises(ValueError, match="'all', 'weights', 'layers'"):
        MaskPainter(["i", "am", "fine"], x, x, x, show="rows")


def test_components_have_names_and_a_place_its_own_hint():
    x = torch.eye(3)
    named = MaskPainter(
        WORDS[:3], x, x, x, components=["who", "deed", "gift"], hint="Close a cell."
    )
    text = json.loads(named._text)
    assert text["components"] == ["who", "deed", "gift"]
    assert text["hint"] == "Close a cell."
    with pytest.raises(ValueError, match="2 components for 3 components; there must be one"):
        MaskPainter(WORDS[:3], x, x, x, components=["who", "deed"])
