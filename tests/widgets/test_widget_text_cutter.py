"""TextCutter, the Python side: what it accepts, and where GPT-2's merges are not found."""

import numpy as np
import pytest

from transformer_lib.bpe import BytePairTokenizer, train_bpe
from transformer_lib.widgets import Goal, TextCutter
from transformer_lib.widgets.text_cutter import vocabulary

ROSES = {"roses": "rose roses", "ಕನ್ನಡ": "ಸುಸಾನ್‌ಗೆ"}
OWN = train_bpe("rose roses rosemary", 262)


def test_the_first_sample_is_shown_and_another_text_can_be():
    cutter = TextCutter(ROSES, OWN)
    assert (cutter.text, repr(cutter)) == ("rose roses", "TextCutter(characters=10)")
    cutter.text = "mary"
    assert cutter.text == "mary"
    assert cutter.accepts("sample", "ಕನ್ನಡ")
    assert not cutter.accepts("merges", "3")


def test_the_tokenizer_travels_as_pairs_of_ids():
    pairs = np.frombuffer(TextCutter(ROSES, OWN)._merges, "<u2").reshape(-1, 2).tolist()
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in pairs:
        tokens.append(tokens[left] + tokens[right])
    assert tokens[256:] == [left + right for left, right in OWN.merges]


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Another place for the package's file; what has been read before is forgotten."""
    vocabulary.gpt2_merges.cache_clear()
    monkeypatch.setattr(vocabulary, "FILE", tmp_path / "r50k_base.tiktoken")
    yield tmp_path / "r50k_base.tiktoken"
    vocabulary.gpt2_merges.cache_clear()


def test_without_the_package_there_is_no_vocabulary(elsewhere):
    assert TextCutter(ROSES, OWN)._vocabulary == b""


def test_another_vocabulary_is_refused(elsewhere):
    elsewhere.write_bytes(b"IQ== 0\nIg== 1\n")
    with pytest.raises(ValueError, match=r"has 2 tokens, and GPT-2 has 50,256"):
        TextCutter(ROSES, OWN)


def test_goals_read_its_facts():
    goal = Goal("Write.", when=["tokens <= 3", "characters >= 30", "own > tokens", "bytes > 9"])
    assert TextCutter(ROSES, OWN, goals=[goal]).reached == [False]


@pytest.mark.parametrize(
    ("samples", "tokenizer", "options", "error", "message"),
    [
        ({}, OWN, {}, ValueError, "samples is empty"),
        ({"a": "x" * 1001}, OWN, {}, ValueError, "the text has 1001 characters"),
        (ROSES, "gpt2", {}, TypeError, "tokenizer is of type str, but must be a byte-pair"),
        (ROSES, BytePairTokenizer([], ["</s>"]), {}, ValueError, "has 1 special tokens, which no"),
        (ROSES, OWN, {"label": 3}, TypeError, "label is 3, but must be a str"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_bad_input_gets_a_clear_error(samples, tokenizer, options, error, message):
    with pytest.raises(error, match=message):
        TextCutter(samples, tokenizer, **options)


def test_more_merges_than_ids_can_name_are_refused(monkeypatch):
    monkeypatch.setattr("transformer_lib.widgets.text_cutter.widget.MOST_MERGES", 5)
    with pytest.raises(ValueError, match="has 6 merges; at most 5 are shown"):
        TextCutter(ROSES, OWN)
