"""SoftDictionary, the Python side: what it accepts, what it answers, what comes back."""

import pytest
import torch

from transformer_lib.attention import attention
from transformer_lib.widgets import SoftDictionary

NAMES = ["pruning roses", "wedding", "cup final"]
KEYS = torch.tensor([[1.8, -0.1], [0.2, 1.9], [-1.2, -1.0]])
VALUES = torch.tensor([12.0, 95.0, 110.0])


def test_the_answer_is_the_library_s():
    widget = SoftDictionary(NAMES, KEYS, VALUES, query=(0.7, -0.3), temperature=0.5)
    query = torch.tensor([[0.7, -0.3]])
    right = attention(query, KEYS, VALUES[:, None], scale=1 / 0.5)
    assert widget.answer == pytest.approx(right.item(), rel=1e-6)
    assert widget.weights.sum().item() == pytest.approx(1)


def test_what_the_reader_does_comes_back_and_can_be_observed():
    widget = SoftDictionary(NAMES, KEYS, VALUES)
    seen = []
    widget.observe(lambda change: seen.append((change.name, widget.answer)))
    widget.set_state({"query": [-1.2, -1.0], "temperature": 0.03})
    assert widget.query == (-1.2, -1.0)
    assert dict(seen)["temperature"] == pytest.approx(110, abs=1e-6)


def test_repr_is_stable():
    assert repr(SoftDictionary(NAMES, KEYS, VALUES)) == "SoftDictionary(keys=3)"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((NAMES, torch.zeros(3, 4), VALUES), {}, ValueError, r"keys have shape \(3, 4\)"),
        ((NAMES, KEYS, VALUES[:2]), {}, ValueError, r"values have shape \(2,\) for 3 keys"),
        ((NAMES[:2], KEYS, VALUES), {}, ValueError, "2 names for 3 keys"),
        ((NAMES, KEYS * float("nan"), VALUES), {}, ValueError, "keys holds 6 numbers that are NaN"),
        (
            (NAMES, KEYS, VALUES),
            {"temperature": 0.0},
            ValueError,
            "temperature is 0.0, but must be a number from 0.03 to 10",
        ),
        ((NAMES, KEYS, VALUES), {"temperature": 11.0}, ValueError, "from 0.03 to 10"),
        (
            (NAMES, KEYS.double() + 1e300, VALUES),
            {},
            ValueError,
            r"keys holds 1e\+300 at .*at most 1e\+06",
        ),
        ((NAMES, KEYS, [1e39] * 3), {}, ValueError, r"values holds 1e\+39 at index \(0,\)"),
        ((NAMES, KEYS, VALUES), {"query": (float("nan"), 1)}, ValueError, "query holds 1 numbers"),
        ((NAMES, KEYS, VALUES), {"query": (float("inf"), 0)}, ValueError, "query holds 1 numbers"),
        ((NAMES, KEYS, VALUES), {"query": (1e8, 0)}, ValueError, r"query holds 1e\+08 at index"),
        ((NAMES, KEYS, VALUES), {"query": (1, 2, 3)}, ValueError, r"query has shape \(3,\)"),
        (([], torch.zeros(0, 2), []), {}, ValueError, "n of at least 1"),
    ],
)
def test_bad_input_gets_a_clear_error(arguments, options, error, message):
    with pytest.raises(error, match=message):
        SoftDictionary(*arguments, **options)


def test_a_query_that_is_set_later_is_checked_too():
    widget = SoftDictionary(NAMES, KEYS, VALUES)
    before = widget.query
    with pytest.raises(ValueError, match=r"query is \(nan, 0.0\), but must be 2 numbers"):
        widget.query = (float("nan"), 0.0)
    assert widget.query == before
