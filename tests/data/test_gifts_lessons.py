"""Lessons: what is told is asked, and the places of the answers are those of the answers."""

import random

import pytest
import torch

from transformer_lib.data.corpora import stories_corpus, with_lessons
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.gifts.lessons import (
    EASIER,
    LESSONS,
    PRIMERS,
    lesson,
    primer,
    require_lessons,
)
from transformer_lib.data.packing import IGNORED

GRAMMAR = Grammar()


@pytest.mark.parametrize("name", PRIMERS)
def test_primers_ask_for_the_name_that_was_told(name):
    text, answers = primer(name, random.Random(3), GRAMMAR)
    words = text.removeprefix("<story> ")
    names = {*GRAMMAR.people, *GRAMMAR.gifts}
    told = [[w for w in each.split() if w in names] for each in words.split(" .")[:-1]]
    owners = {fact[1]: fact[0] for fact in told[:3]}
    assert [fact[2:] in ([], fact[:1]) for fact in told][:3] == [True] * 3
    assert [[gift, owners[gift]] for gift, _ in told[3:]] == told[3:]
    asked = [word for fact in told[:3] for word in fact[2:]] + [owner for _, owner in told[3:]]
    assert [text.split()[place] for place in answers] == asked


@pytest.mark.parametrize("name", EASIER)
def test_easier_stories_are_stories_with_their_answers(name):
    texts, places = lesson(name, 5, seed=2)
    for text, answers in zip(texts, places, strict=True):
        assert answers == [question.position for question in GRAMMAR.questions(text)]
    assert lesson(name, 5, seed=2) == (texts, places)
    assert lesson(name, 5, seed=3) != (texts, places)


def test_easier_stories_are_told_of_a_grammar_with_swaps():
    for name in EASIER:
        texts, _ = lesson(name, 5, grammar=Grammar(swap=0.1, ask=0.4))
        assert not any("swapped" in text for text in texts)


def test_a_corpus_with_lessons_has_a_text_for_each_row_and_only_answers_as_targets():
    corpus = stories_corpus(GRAMMAR, 20, 5, block=GRAMMAR.max_words)
    taught = with_lessons(corpus, GRAMMAR, {"facts": 3, "mostly": 2}, batch_size=4)
    assert taught.training is corpus.training
    assert taught.signature != corpus.signature
    assert [(len(source), steps) for source, steps in taught.lessons] == [(12, 3), (8, 2)]
    for (source, _), name in zip(taught.lessons, ("facts", "mostly"), strict=True):
        inputs, targets = source.rows(torch.arange(len(source)))
        counted = targets != IGNORED
        words = [[corpus.tokenizer.vocabulary[i] for i in row] for row in inputs.tolist()]
        before = [words[r][c] for r, c in counted.nonzero().tolist()]
        assert set(before) == {"?"}, name
        people = {corpus.tokenizer.encode(name)[0] for name in (*GRAMMAR.people, *GRAMMAR.gifts)}
        assert set(targets[counted].tolist()) <= people
    assert with_lessons(corpus, GRAMMAR, {}, batch_size=4) is corpus


@pytest.mark.parametrize(
    ("lessons", "grammar", "said"),
    [
        ({"ekko": 3}, None, "a lesson is 'ekko'.*echo"),
        ({"echo": 0}, None, "steps of the lesson 'echo' is 0"),
        (
            {"echo": 3},
            Grammar(people=("mary", "susan"), gifts=("roses",), n_gifts=1),
            "need 6 names, and the grammar has 3: mary, susan, roses",
        ),
        ({"words": 3, "facts": 2}, Grammar(the=0.0, so=0.0), "need the words so, the, which never"),
    ],
)
def test_lessons_that_cannot_be_given_are_refused(lessons, grammar, said):
    with pytest.raises(ValueError, match=said):
        require_lessons(lessons, grammar)


def test_there_are_no_other_lessons():
    assert (*PRIMERS, *EASIER) == LESSONS
    with pytest.raises(ValueError, match="'alphabet'"):
        lesson("alphabet", 1)
