"""Byte pairs: the merges of another library, its ids, and any text back."""

import json
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib import bpe
from transformer_lib.bpe import BytePairTokenizer, merge, split_words, train_bpe
from transformer_lib.data.texts import python_docs

ANY = st.text(st.characters(codec="utf-8"))
KANNADA = "ಮೇರಿ ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು. ಅವಳು ಸುಸಾನ್‌ಗೆ ಹೂವನ್ನು ಕೊಟ್ಟಳು; ನಾನು ಹಾಲನ್ನು ಕುಡಿದೆನು."
MIXED = train_bpe([KANNADA, "mary gave roses to susan, and roses to mary\n\n  too"], 330, ["</s>"])


def library_merges(texts, vocabulary):
    """The merges of `tokenizers`, trained as GPT-2's were, on the same words."""
    tokenizers = pytest.importorskip("tokenizers")
    theirs = BytePairTokenizer([]).as_fast()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    theirs.train_from_iterator(
        texts,
        tokenizers.trainers.BpeTrainer(
            vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False
        ),
    )
    byte_of = {letter: byte for byte, letter in bpe._LETTERS.items()}
    pairs = json.loads(theirs.to_str())["model"]["merges"]
    return tuple(
        tuple(bytes(byte_of[letter] for letter in part) for part in pair) for pair in pairs
    )


@pytest.mark.parametrize("text", [python_docs()[:150_000], KANNADA], ids=["docs", "kannada"])
def test_the_merges_are_those_of_the_library(text):
    vocabulary = 1256 if len(text) > 1000 else 320
    assert train_bpe(text, vocabulary).merges == library_merges([text], vocabulary)


@given(st.lists(st.text("ab Aé~\n", min_size=1, max_size=40), min_size=1, max_size=4))
def test_ties_and_overlaps_are_those_of_the_library(texts):
    """A few letters: many pairs are equally frequent, and many overlap with themselves."""
    theirs = library_merges(texts, 300)
    assert train_bpe(texts, 256 + len(theirs)).merges == theirs
    with pytest.raises(ValueError, match=rf"Choose at most {256 + len(theirs)}, or give more text"):
        train_bpe(texts, 257 + len(theirs))


@given(ANY)
def test_any_text_comes_back(text):
    ids = MIXED.encode(text)
    assert MIXED.decode(ids) == text
    assert 0 not in ids
    assert "".join(split_words(text)) == text


@given(ANY)
def test_the_library_gives_the_same_ids_and_text(text):
    pytest.importorskip("tokenizers")
    fast = MIXED.as_fast()
    ids = MIXED.encode(text)
    assert fast.encode(text).ids == ids
    assert fast.decode(ids) == text


@given(st.lists(st.integers(1, MIXED.size - 1)))
def test_any_ids_give_a_text(ids):
    """Where bytes are not valid UTF-8, there is U+FFFD, as many times as the library writes it."""
    pytest.importorskip("tokenizers")
    assert MIXED.decode(ids) == MIXED.as_fast().decode(ids)


def test_ids_are_specials_then_bytes_then_merges():
    tokenizer = BytePairTokenizer([(b"a", b"r"), (b"ar", b"y"), (b"m", b"ary")], ["<pad>", "</s>"])
    assert tokenizer.encode("mary gary") == [260, 34, 105, 259]
    assert (tokenizer.size, len(tokenizer.vocabulary)) == (261, 261)
    assert tokenizer.vocabulary[:3] == ("<pad>", "</s>", "\x00")
    assert tokenizer.vocabulary[257:] == ("\\xff", "ar", "ary", "mary")
    assert tokenizer.decode(torch.tensor([260, 34, 105, 259, 1])) == "mary gary</s>"
    assert repr(tokenizer) == "BytePairTokenizer(size=261)"


def test_a_special_is_never_the_result_of_text():
    assert MIXED.decode([0]) == "</s>"
    assert MIXED.decode(MIXED.encode("</s>")) == "</s>"
    assert 0 not in MIXED.encode("</s>")


def test_the_first_merge_comes_first():
    """Not the longest token, nor the leftmost: the merge that was learned first."""
    tokenizer = BytePairTokenizer([(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")])
    assert tokenizer.tokens("abc ab") == ["a", "bc", " ", "ab"]


def test_pairs_that_overlap_are_merged_from_the_left():
    assert merge([1, 1, 1, 1, 1], (1, 1), 2) == [2, 2, 1]
    assert merge([], (1, 1), 2) == []


def test_words_stay_whole():
    assert split_words("ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿ") == ["ಸುಸಾನ್‌ಗೆ", " ಗುಲಾಬಿ"]  # U+200C, vowel signs
    assert split_words("She said: “don’t”") == ["She", " said", ":", " “", "don", "’", "t", "”"]
    assert split_words("if x:\n    y = 1  ") == [
        "if", " x", ":", "\n   ", " y", " =", " 1", "  "
    ]  # fmt: skip


def test_tokens_are_shown_as_text_where_they_are_text():
    tokenizer = BytePairTokenizer([(b"\xe0", b"\xb2"), (b"\xe0\xb2", b"\xae")])
    assert tokenizer.tokens("ಮa") == ["ಮ", "a"]
    assert tokenizer.tokens("ಗ") == [r"\xe0\xb2", r"\x97"]


def test_incomplete_characters_are_decoded_as_replacements():
    tokenizer = BytePairTokenizer([])
    assert tokenizer.decode(b"\xe0\xb2a") == "\ufffda"


def test_the_hash_tells_merges_and_specials_apart():
    ab, bc = (b"a", b"b"), (b"b", b"c")
    made = [
        BytePairTokenizer([]), BytePairTokenizer([ab]), BytePairTokenizer([ab, bc]),
        BytePairTokenizer([bc, ab]), BytePairTokenizer([ab], ["</s>"]),
    ]  # fmt: skip
    assert len({tokenizer.hash for tokenizer in made}) == len(made)
    # sha256 of ["BytePairTokenizer", ["</s>"], [["61", "62"]]]: saved today, good tomorrow
    assert made[4].hash.startswith("a5921dc946a3524c")


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(bpe, "MOST_KNOWN", 3)
    tokenizer = BytePairTokenizer([(b"a", b"b")])
    text = "ab c de ab fg hab ab"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer._known) <= 3


class Emptied(dict):
    """Another thread makes room right after this one has looked."""

    def __contains__(self, word):
        found = super().__contains__(word)
        self.clear()
        return found


def test_what_is_remembered_may_be_gone_a_moment_later():
    tokenizer = BytePairTokenizer([(b"a", b"b")])
    tokenizer._known = Emptied(ab=[256])
    assert tokenizer.encode("ab") == [256]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: merge([1, 1], (1,), 3), TypeError, r"pair is \(1,\); .* a tuple of two ids"),
        (lambda: train_bpe("ab", 255), ValueError, "vocabulary is 255; the 256 bytes and 0 spec"),
        (lambda: train_bpe("ab", 257, ["<pad>", "</s>"]), ValueError, "2 specials alone are 258"),
        (lambda: train_bpe("ab", 256.0), TypeError, "vocabulary is 256.0, of type float; give the"),
        (lambda: train_bpe("ab", 300), ValueError, "after 257 tokens every word .* at most 257"),
        (lambda: train_bpe("", 257), ValueError, "the texts are empty"),
        (lambda: train_bpe(["ab", 3], 257), TypeError, "3 is of type int; give a text"),
        (lambda: train_bpe(Path("a.txt"), 257), TypeError, "is of type .*Path; give a text"),
        (lambda: train_bpe(b"ab", 257), TypeError, "b'ab' is of type bytes; give a text"),
        (lambda: train_bpe("a\ud800", 257), ValueError, r"half a surrogate pair, U\+D800, at pos"),
        (lambda: BytePairTokenizer([]).encode(3), TypeError, "3 is of type int; give a text"),
        (lambda: BytePairTokenizer([]).encode("\udfff"), ValueError, r"U\+DFFF, at position 0"),
        (lambda: BytePairTokenizer([]).decode([256]), ValueError, "id 256 at position 0 is out of"),
        (lambda: BytePairTokenizer([]).decode(["a"]), TypeError, "one sequence of ints"),
        (
            lambda: BytePairTokenizer([("a", "b")]),
            TypeError,
            r"merge 0 is \('a', 'b'\); it must be",
        ),
        (lambda: BytePairTokenizer([(b"a",)]), TypeError, "it must be a tuple of two bytes"),
        (lambda: BytePairTokenizer([1]), TypeError, "merge 0 is 1; it must be a tuple"),
        (lambda: BytePairTokenizer([(b"ab", b"c")]), ValueError, "b'ab' is neither a byte nor the"),
        (
            lambda: BytePairTokenizer([(b"a", b"b"), (b"a", b"b")]),
            ValueError,
            r"merge 1 is \(b'a', b'b'\), but b'ab' is a token already",
        ),
        (lambda: BytePairTokenizer([], ["x"]), ValueError, "special 0 is 'x', which is empty"),
        (lambda: BytePairTokenizer([], ["</s>", ""]), ValueError, "special 1 is ''"),
        (lambda: BytePairTokenizer([], ["</s>", "</s>"]), ValueError, "special 1 is '</s>'"),
        (lambda: BytePairTokenizer([], [None]), TypeError, "None is of type NoneType; give a text"),
        (lambda: BytePairTokenizer([], "</s>"), TypeError, "specials are one text, '</s>'; give a"),
        (lambda: train_bpe("ab", 257, "</s>"), TypeError, "specials are one text"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_without_the_library_the_bridge_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match="needs the package tokenizers, which is not installed"):
        MIXED.as_fast()
