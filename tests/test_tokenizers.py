"""Tokenizers: what is decoded is what was encoded, and what is not known is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.bpe import train_bpe
from transformer_lib.tokenizers import CharacterTokenizer, PairTokenizer, WordTokenizer

SENTENCE = "mary gave roses to susan ."
KANNADA = "ಮೇರಿ ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು."
BOTH = pytest.mark.parametrize("tokenizer", [CharacterTokenizer(SENTENCE), WordTokenizer(["mary"])])


@given(st.text(min_size=1))
def test_characters_any_text_comes_back(text):
    tokenizer = CharacterTokenizer(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) == len(text)
    assert set(ids) == set(range(tokenizer.size))


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])).filter(
            lambda w: w.split() == [w]
        )
    )
)
def test_words_any_text_comes_back_with_single_spaces(words):
    tokenizer = WordTokenizer(sorted({*words, "mary"}))
    text = "  ".join(words) + "\n"
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(words)


def test_characters_are_sorted_code_points():
    tokenizer = CharacterTokenizer("cabbage")
    assert tokenizer.vocabulary == ("a", "b", "c", "e", "g")
    assert tokenizer.encode("bag") == [1, 0, 4]
    assert tokenizer.size == 5
    assert (
        CharacterTokenizer(KANNADA).decode(CharacterTokenizer(KANNADA).encode(KANNADA)) == KANNADA
    )
    assert "\u200c" in CharacterTokenizer(KANNADA).vocabulary


def test_words_keep_their_order():
    tokenizer = WordTokenizer(["to", "mary", "."])
    assert tokenizer.vocabulary == ("to", "mary", ".")
    assert tokenizer.encode("mary\tto  to .") == [1, 0, 0, 2]
    assert repr(tokenizer) == "WordTokenizer(size=3)"


def test_nothing_is_nothing():
    assert CharacterTokenizer("a").encode("") == []
    assert WordTokenizer(["a"]).encode("  ") == []
    assert CharacterTokenizer("a").decode([]) == ""
    assert WordTokenizer(["a"]).decode(torch.tensor([], dtype=torch.int64)) == ""


def test_decode_takes_a_tensor():
    tokenizer = CharacterTokenizer("abc")
    assert tokenizer.decode(torch.tensor([2, 0, 1])) == "cab"
    assert tokenizer.decode(torch.tensor([2, 0, 1], dtype=torch.uint8)) == "cab"
    assert tokenizer.decode(i for i in (2, 0)) == "ca"


def test_the_vocabulary_makes_the_same_tokenizer_again():
    for tokenizer in (CharacterTokenizer(KANNADA), WordTokenizer(SENTENCE.split())):
        again = type(tokenizer)(tokenizer.vocabulary)
        assert again.vocabulary == tokenizer.vocabulary
        assert again.hash == tokenizer.hash


def test_the_hash_tells_vocabularies_and_kinds_apart():
    tokenizers = [
        CharacterTokenizer("ab"),
        CharacterTokenizer("abc"),
        WordTokenizer(["a", "b"]),
        WordTokenizer(["b", "a"]),
        WordTokenizer(["ab"]),
        CharacterTokenizer("\ud800"),  # half a surrogate pair, which is not valid UTF-8
    ]
    assert len({tokenizer.hash for tokenizer in tokenizers}) == len(tokenizers)
    # sha256 of ["CharacterTokenizer", "a", "b"]: a checkpoint of today is good tomorrow
    expected = "e027344228cf6b3b"
    assert CharacterTokenizer("ba").hash.startswith(expected)


def test_an_unknown_character_is_named():
    with pytest.raises(
        ValueError,
        match=r"character 'é' \(U\+00E9\) at position 8, in 'gave rosés', is not among the 14 .*"
        r"Replace it, or make the tokenizer from a text that contains it",
    ):
        CharacterTokenizer(SENTENCE).encode("gave rosés")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "gave violets to",
            r"word 'violets' at position 1 \(of 3 words, from 0\) .* the 6 .*spelling",
        ),
        ("gave roses.", r"word 'roses\.' at position 1 .*Put a space between it and its punct"),
        ("Mary gave", r"word 'Mary' at position 0 .*Check its spelling"),
    ],
)
def test_an_unknown_word_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        WordTokenizer(SENTENCE.split()).encode(text)


@BOTH
def test_ids_out_of_range_are_named(tokenizer):
    size = tokenizer.size
    with pytest.raises(ValueError, match=rf"id {size} at position 1 .* ids 0 to {size - 1}\."):
        tokenizer.decode([0, size])
    with pytest.raises(ValueError, match="id -1 at position 0 is out of range"):
        tokenizer.decode(torch.tensor([-1]))


@BOTH
@pytest.mark.parametrize(
    "ids", [torch.tensor([[0]]), torch.tensor(0), torch.tensor([0.0]), [0.0], [True], ["a"]]
)
@pytest.mark.usefixtures("as_a_reader")
def test_ids_are_one_sequence_of_ints(tokenizer, ids):
    with pytest.raises(TypeError, match="give one sequence of ints: a list, or a tensor"):
        tokenizer.decode(ids)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CharacterTokenizer(""), ValueError, "text is empty"),
        (lambda: CharacterTokenizer([]), ValueError, "text is empty"),
        (lambda: CharacterTokenizer(["a", "bc"]), ValueError, "'bc' is not one character"),
        (
            lambda: CharacterTokenizer("ab").encode(None),
            TypeError,
            "None is of type NoneType; give",
        ),
        (lambda: WordTokenizer(["a"]).encode(5), TypeError, "5 is of type int; give a text"),
        (lambda: CharacterTokenizer(None), TypeError, "None"),
        (lambda: train_bpe(b"abc", 300), TypeError, "b'abc' is of type bytes; give a text"),
        (lambda: CharacterTokenizer(["a", 1]), TypeError, "text contains 1, of type int"),
        (lambda: WordTokenizer(None), TypeError, "words contains None, of type NoneType"),
        (lambda: PairTokenizer("a"), ValueError, r"source's vocabulary begins with \(\); a trans"),
        (lambda: WordTokenizer([]), ValueError, "words is empty"),
        (lambda: WordTokenizer("mary gave"), TypeError, "words are one text, 'mary gave'; give a"),
        (lambda: WordTokenizer(["a", ""]), ValueError, "word 1 is ''"),
        (
            lambda: WordTokenizer(["a b"]),
            ValueError,
            "word 0 is 'a b'; words are separated by spaces",
        ),
        (
            lambda: WordTokenizer(["a", "b", "a"]),
            ValueError,
            r"\['a'\] are in words more than once",
        ),
        (
            lambda: WordTokenizer(["a", "\x1b]0;own\x07\x1b[2J"]),
            ValueError,
            r"word 1 is '\\x1b\]0;own\\x07\\x1b\[2J'; it contains a control character",
        ),
        (lambda: WordTokenizer(["a\x9b2J"]), ValueError, "it contains a control character"),
        (lambda: WordTokenizer(["a", None]), TypeError, "words contains None, of type NoneType"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_what_makes_no_vocabulary_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_many_words_are_compared_at_once():
    """Each with each, as it was, would take minutes."""
    words = [f"word{i}" for i in range(100_000)]
    assert WordTokenizer(words).size == 100_000
    with pytest.raises(ValueError, match=r"\['word3', 'word7'\] are in words more"):
        WordTokenizer([*words, "word7", "word3"])


def test_a_set_has_no_order_of_its_own(as_a_reader):
    for kind in (set, frozenset):
        with pytest.raises(TypeError, match=r"words are a set, .* give sorted\(words\)"):
            WordTokenizer(kind(["mary", "roses"]))
    with pytest.raises(TypeError, match="specials are a set"):
        train_bpe("mary", 258, {"<s>", "</s>"})
    with pytest.raises(TypeError, match="ids are a set"):
        WordTokenizer(["b", "a"]).decode({1, 0})
    assert WordTokenizer(dict.fromkeys(["b", "a"])).vocabulary == ("b", "a")


def test_one_id_is_not_a_text(as_a_reader):
    with pytest.raises(TypeError, match="ids are 3; give one sequence of ints"):
        CharacterTokenizer("abcd").decode(3)
