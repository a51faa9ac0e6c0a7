"""Corpora: a run is never trained on what it is measured by."""

import json

import pytest
import torch

from transformer_lib.bpe import BytePairTokenizer
from transformer_lib.data.corpora import (
    describe_tokenizer,
    stories_corpus,
    text_corpus,
    tokenizer_of,
)
from transformer_lib.data.gifts import PLAIN, Grammar
from transformer_lib.tokenizers import CharacterTokenizer, WordTokenizer
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.tasks import corpus_of

NAMES = {"people": ("mary", "susan"), "gifts": ("roses", "books")}
SMALL = Grammar(**NAMES, n_gifts=1, n_sentences=2, **PLAIN)


def test_a_text_is_cut_once():
    text = "".join(chr(97 + i * i % 23) for i in range(1000))
    corpus = text_corpus(text, block=16, window=32)
    trained, first = corpus.training.rows(torch.tensor([0, len(corpus.training) - 1]))
    decode = corpus.tokenizer.decode
    assert decode(trained[0]) == text[:16]
    assert decode(first[1]) == text[900 - 16 : 900]
    measured = corpus.validation.targets[corpus.validation.targets >= 0]
    assert decode(measured) == text[901:]
    assert corpus.validation.inputs.shape[1] == 32
    assert (corpus.floor, corpus.answers) == (None, None)


def test_stories_that_measure_are_not_trained_on():
    corpus = stories_corpus(SMALL, 60, 100, block=19)
    decode = corpus.tokenizer.decode
    trained = {decode(row) for row in corpus.training.inputs}
    measured = [decode(row) for row in corpus.validation.inputs]
    assert corpus.seen > 0
    assert len(measured) == 100 - corpus.seen
    assert not trained & set(measured)
    assert corpus.floor == pytest.approx(SMALL.floor(measured))
    answers = corpus.validation.targets[corpus.answers]
    asked = [q.answer for story in measured for q in SMALL.questions(story)]
    assert decode(answers).split() == asked


@pytest.mark.parametrize(
    "recipe",
    [Recipe.of(block=85, n_stories=30, n_validation=5), Recipe.of(data="python_docs", block=32)],
)
def test_what_a_recipe_names(recipe):
    corpus = corpus_of(recipe)
    assert corpus.signature == corpus_of(recipe).signature
    assert len(corpus.training) > 0
    assert corpus.validation.inputs.max() < corpus.tokenizer.size
    assert corpus_of(recipe.with_changes(grammar={"give_it": 0.1, "give": 0.4})).signature != (
        corpus.signature if recipe.data.name == "gifts" else None
    )


def test_a_reader_s_own_file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("ಮೇರಿ ಗುಲಾಬಿ " * 30, encoding="utf-8")
    corpus = corpus_of(Recipe.of(data=str(path), block=16))
    assert "ಮ" in corpus.tokenizer.vocabulary


def test_too_little_data_is_an_error(as_a_reader):
    with pytest.raises(ValueError, match=r"first 90 are to train on.*a block of at most 89"):
        text_corpus("0123456789" * 10, block=100)
    with pytest.raises(ValueError, match=r"60 tokens.* 54 are to train on.* at most 53"):
        text_corpus("0123456789 " * 10, block=54, vocabulary=261)
    with pytest.raises(ValueError, match="vocabulary is 261, and a tokenizer is given"):
        text_corpus("0123456789", 2, vocabulary=261, tokenizer=CharacterTokenizer("0123456789"))
    with pytest.raises(ValueError, match=r"up to 85 words, and a block has 84.*block=85"):
        stories_corpus(Grammar(), 10, 10, block=84)
    tiny = Grammar(people=("mary",), gifts=("roses",), n_gifts=1, n_sentences=1, give=0, give_it=0,
                   ask=1, **PLAIN)  # fmt: skip
    with pytest.raises(ValueError, match="all 3 validation stories occur among the 5"):
        stories_corpus(tiny, 5, 3, block=13)


def test_tokenizers_as_json(as_a_reader):
    pairs = BytePairTokenizer([(b"\xe0", b"\xb2"), (b"\xe0\xb2", b"\xae")], ["<pad>", "</s>"])
    for tokenizer in (CharacterTokenizer("roses"), WordTokenizer(["has", "roses"]), pairs):
        again = tokenizer_of(json.loads(json.dumps(describe_tokenizer(tokenizer))))
        assert type(again) is type(tokenizer)
        assert again.hash == tokenizer.hash
    with pytest.raises(ValueError, match=r"kind 'bytes'; there are characters, words, byte pairs"):
        tokenizer_of({"kind": "bytes"})


def test_a_text_and_its_windows_are_checked(as_a_reader):
    text = "to be or not to be " * 20
    with pytest.raises(ValueError, match="window is 0; it must be at least 1"):
        text_corpus(text, 8, 0)
    with pytest.raises(ValueError, match=r"half a surrogate pair, U\+D800"):
        text_corpus(text + "\ud800", 8)
    with pytest.raises(ValueError, match="n_validation is 0"):
        stories_corpus(Grammar(), 5, 0, 96)


def test_a_tokenizer_of_one_s_own_cannot_be_stored(as_a_reader):
    with pytest.raises(TypeError, match="is of type object, and a run can store only those of"):
        describe_tokenizer(object())
    with pytest.raises(ValueError, match="no entry 'vocabulary'"):
        tokenizer_of({"kind": "words"})


def test_a_tokenizer_that_cuts_in_its_own_way_is_not_stored_as_its_base():
    class Lower(CharacterTokenizer):
        def encode(self, text):
            return super().encode(text.lower())

    with pytest.raises(TypeError, match="of type Lower"):
        describe_tokenizer(Lower("abc"))
