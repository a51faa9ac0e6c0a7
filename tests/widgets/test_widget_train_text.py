"""TrainText in Python: what is offered and what is refused."""

import json

import pytest
import traitlets

from transformer_lib.widgets.joining import FOLDER
from transformer_lib.widgets.train_text.widget import (
    LIMITS,
    MOST,
    SIZES,
    TrainText,
    require_samples,
)

RHYME = "Mary gave roses to Susan.\n" * 60


def test_its_texts_travel_as_bytes():
    widget = TrainText({"</SCRIPT>": RHYME, "other": "</script>" + RHYME}, sample=1)
    assert json.loads(widget._text) == {
        "samples": ["</SCRIPT>", "other"],
        "texts": [RHYME, "</script>" + RHYME],
    }
    widget.sample = 2  # the reader's own


@pytest.mark.parametrize(
    ("samples", "options", "error", "problem"),
    [
        ({}, {}, ValueError, "samples has 0 texts; give 1 to 8"),
        ({"rhyme": "roses"}, {}, ValueError, r"has 5 characters; give 1,000 to 200,000"),
        ({"rhyme": "x" * (MOST + 1)}, {}, ValueError, r"has 200,001 characters"),
        (
            {"rhyme": RHYME},
            {"sample": 2},
            ValueError,
            "sample is 2, but must be one of: rhyme; or 0 to 0",
        ),
        ({"rhyme": RHYME}, {"layers": 5}, traitlets.TraitError, "layers"),
        ({"rhyme": RHYME}, {"temperature": 2.0}, traitlets.TraitError, "temperature"),
        ({"rhyme": RHYME}, {"seed": 0}, traitlets.TraitError, "seed"),
    ],
)
def test_what_is_not_offered(samples, options, error, problem):
    with pytest.raises(error, match=problem):
        TrainText(samples, **options)


@pytest.mark.parametrize(
    ("samples", "problem"),
    [
        ("roses", "samples is of type str, but must be a dict"),
        ({"rhyme": 3}, r"samples\['rhyme'\] is int; give texts, by name"),
        ({1: RHYME}, r"samples\[1\] is str; give texts, by name"),
    ],
)
def test_what_is_not_texts_by_name(samples, problem):
    """Asked of the function itself: in the tests, types of arguments are checked before it."""
    with pytest.raises(TypeError, match=problem):
        require_samples(samples)


def test_the_shortest_text_leaves_something_to_be_judged():
    assert LIMITS["least"] // 10 > SIZES["tokens"]
    assert SIZES["width"] % (8 * SIZES["heads"]) == 0  # whole pieces for simd.js


def test_nothing_leaves_the_page():
    """No module of it can ask for an address, and texts enter as text."""
    for path in (FOLDER / "train_text").glob("*.js"):
        code = path.read_text(encoding="utf-8")
        for word in ("fetch(", "XMLHttpRequest", "innerHTML", "http:", "https:", "sendBeacon"):
            assert word not in code, (path.name, word)
