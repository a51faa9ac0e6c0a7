"""A text that is not a sentence of the Kannada grammar: what is wrong with it is said."""

import random
import unicodedata

import pytest

from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.data.kannada.reading import BY_LATIN, BY_PLAIN

GRAMMAR = KannadaGrammar()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("avanu hālannu kuḍidaḷu", "the ending -aḷu of 'kuḍidaḷu' says she; the subject is 'avanu' "
         r"\(He\). Take 'kuḍidanu'"),
        ("avanu hālannu", "no verb at the end: the last word, 'hālannu', is an object. Add a verb"),
        ("kuḍidanu hālannu avanu", "'avanu', is a subject. Put 'kuḍidanu' last"),
        ("hālannu avanu kuḍidanu", "'avanu', a subject, comes after 'hālannu', an object"),
        ("avanu ninne hālannu kuḍidanu", "'ninne', a time, comes after 'avanu'"),
        ("avanu hallannu kuḍidanu", r"word 2, ಹಲ್ಲನ್ನು \(hallannu\), is not a word.* hālannu"),
        ("avanu hālu kuḍidanu", "It is milk without its case: write 'hālannu'"),
        ("avanu śāle hōdanu", "It is school without its case: write 'śālege'"),
        ("jhaṅ kuḍidanu", "No known word is near"),
        ("avanu kuḍidanu", r"'kuḍidanu' \(drink\) needs an object before it: nīrannu, hālannu or"),
        ("avanu pustakavannu kuḍidanu", r"one does not drink 'pustakavannu' \(book\).* takes nīr"),
        ("avanu manege kuḍidanu", r"takes an object, and 'manege' \(house\) is a place. Try nīr"),
        ("avanu hālannu hōdanu", "takes a place, and 'hālannu' .* is an object. Try manege"),
        ("avanu mērige hālannu kuḍidanu", "'mērige' is a receiver.*give or bring or send or show"),
        ("hālannu kuḍiyalilla", "no subject, and the negative 'kuḍiyalilla' has no ending"),
        ("ninne hālannu kuḍiyuttāne", "'kuḍiyuttāne' is not past. Take 'kuḍidanu'"),
        ("ninne avanu hālannu kuḍiyuvudilla", "Take 'kuḍiyalilla'"),
        ("avanu avanige hālannu koṭṭanu", r"'avanige' \(to him\) is the subject itself"),
        ("namage hālannu koṭṭenu", r"'namage' \(to us\) is the subject itself, 'nānu'"),
        ("avanu mēri hālannu koṭṭanu", "more than one subject: avanu and mēri"),
        ("hello", "word 1, ಹೆಲ್ಲೊ .* is not a word of this grammar"),
        ("привет", "CYRILLIC SMALL LETTER PE"),
        ("  ", "the text is empty"),
        ("ninne " * 200, "has 1,200 characters"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(ValueError, match=message):
        GRAMMAR.parse(text)


def test_letters_that_are_written_in_two_parts_are_read():
    source = GRAMMAR.parse("ninne avanu tōṭakke hōdanu").source
    assert unicodedata.normalize("NFD", source) != source
    assert GRAMMAR.parse(unicodedata.normalize("NFD", source)).source == source


def test_every_heap_of_words_is_a_sentence_or_explained():
    """No heap falls through to the assertion that nothing else can be wrong."""
    numbers, sources = random.Random(0), {s.source for s in GRAMMAR.all_sentences}
    for sentence in GRAMMAR.training(1500):
        words = sentence.source.split()
        for _ in range(numbers.randrange(1, 3)):
            place = numbers.randrange(len(words))
            words[place : place + numbers.randrange(2)] = numbers.choices(
                GRAMMAR.source_words, k=numbers.randrange(2)
            )
            if not words:
                break
        text = " ".join(words)
        if text in sources:
            assert GRAMMAR.parse(text).source == text
        elif words:
            with pytest.raises(ValueError, match=r".{30}"):
                GRAMMAR.parse(text)


def test_a_text_may_be_written_without_marks_and_with_a_full_stop():
    roses = GRAMMAR.parse("mēri sūsan\u200cge gulābigaḷannu koṭṭaḷu")
    for text in ("Meri susange gulabigalannu kottalu.", f"{roses.source}."):
        assert GRAMMAR.parse(text) == roses
    # What differs in its marks alone, *hāḷu* and *hālu*, would not be guessed: no such words here.
    assert len(BY_PLAIN) == len(BY_LATIN)


@pytest.mark.usefixtures("as_a_reader")
def test_a_text_must_be_one():
    with pytest.raises(TypeError, match=r"the text is .* of type list; give a str"):
        GRAMMAR.parse(["avanu"])
