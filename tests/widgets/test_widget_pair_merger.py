"""PairMerger, the Python side: what it accepts, and what comes back."""

import pytest

from transformer_lib.widgets import Goal, PairMerger

ROSES = {"roses": "rose roses", "ಕನ್ನಡ": "ಸುಸಾನ್‌ಗೆ"}


def test_the_first_sample_is_shown():
    merger = PairMerger(ROSES, merges=3)
    assert (merger.text, merger.merges) == ("rose roses", 3)
    assert repr(merger) == "PairMerger(characters=10)"


def test_what_the_reader_writes_comes_back():
    merger = PairMerger(ROSES)
    merger.set_state({"_letters": [ord(letter) for letter in "ಸುಸಾನ್‌ಗೆ 👩"], "merges": 2})
    assert (merger.text, merger.merges) == ("ಸುಸಾನ್‌ಗೆ 👩", 2)
    merger.set_state({"_letters": []})
    assert merger.text == ""


def test_another_text_begins_without_merges():
    merger = PairMerger(ROSES, merges=3)
    merger.text = "mary"
    assert (merger.text, merger.merges) == ("mary", 0)


def test_samples_are_named_by_links():
    merger = PairMerger(ROSES)
    assert merger.accepts("sample", "ಕನ್ನಡ")
    assert merger.accepts("merges", "18")
    assert (
        merger.refusal("sample", "poems") == "sample=poems: it takes one of: roses, ಕನ್ನಡ; or 0 to 1"
    )
    assert merger.refusal("merges", "-1") == "merges=-1: it takes a whole number from 0 to 999"


def test_goals_read_its_facts():
    goal = Goal("Merge.", when=["tokens <= 4", "bytes >= 64", "next = 0"])
    assert PairMerger(ROSES, goals=[goal]).reached == [False]
    with pytest.raises(ValueError, match="there is no fact 'token'"):
        PairMerger(ROSES, goals=[Goal("Merge.", when=["token = 1"])])


def test_no_text_from_outside_is_in_a_string_trait():
    hostile = "</SCRIPT><img src=x onerror=alert(1)>"
    merger = PairMerger({hostile: hostile})
    strings = [value for value in merger.get_state().values() if isinstance(value, str)]
    assert not any("</SCRIPT><img" in value for value in strings)


@pytest.mark.parametrize(
    ("samples", "options", "error", "message"),
    [
        ("roses", {}, TypeError, "samples is of type str, but must be a dict"),
        ({}, {}, ValueError, "samples is empty"),
        ({"a": ""}, {}, ValueError, "the text has 0 characters; choose one of 1 to 1000"),
        ({"a": "x" * 1001}, {}, ValueError, "the text has 1001 characters"),
        ({"a": "x\ud800"}, {}, ValueError, "half a surrogate pair"),
        ({"a": 3}, {}, TypeError, "the text is 3, but must be a str"),
        (
            {"a": "x"},
            {"merges": -1},
            ValueError,
            "merges is -1, but must be a whole number from 0 to 999",
        ),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_bad_input_gets_a_clear_error(samples, options, error, message):
    with pytest.raises(error, match=message):
        PairMerger(samples, **options)


def test_what_is_set_later_is_checked_too():
    merger = PairMerger(ROSES)
    with pytest.raises(ValueError, match="half a surrogate pair"):
        merger._letters = [0xD800]
    with pytest.raises(ValueError, match="the text has 0 characters"):
        merger.text = ""
