"""Questions about stories, and the share that is answered right."""

from types import SimpleNamespace

import pytest
import torch
from figures import make_trained

from transformer_lib.data.gifts import PLAIN, Grammar
from transformer_lib.training.asking import accuracy, examine, questions


@pytest.fixture(scope="module")
def machine():
    return make_trained(context=90)


def test_questions_are_new_and_their_answers_those_of_the_rules(machine):
    asked = questions(machine, 50)
    assert len(asked) == 50
    for question in asked:
        assert machine.grammar.next_words(question.prompt) == {question.answer: 1.0}
    assert len({question.prompt for question in asked}) == 50
    assert questions(machine, 50) == asked


def test_accuracy_by_hand(machine):
    asked = questions(machine, 9)
    said = [machine.model(torch.tensor([machine.tokenizer.encode(q.prompt)]))[0, -1] for q in asked]
    right = [
        machine.tokenizer.vocabulary[x.argmax()] == q.answer
        for x, q in zip(said, asked, strict=True)
    ]
    assert accuracy(machine, asked) == sum(right) / 9
    with pytest.raises(ValueError, match="no questions"):
        accuracy(machine, [])


@pytest.mark.parametrize(
    "grammar",
    [Grammar(give=0.7, give_it=0.3, ask=0.0), Grammar(**PLAIN, give=0.7, give_it=0.3, ask=0.0)],
)
def test_a_machine_whose_stories_hold_no_question_is_told(grammar):
    with pytest.raises(ValueError, match=r"1,000 stories hold no question: .* ask = .* more"):
        questions(SimpleNamespace(model=None, tokenizer=None, grammar=grammar))


def test_a_grammar_whose_questions_come_after_other_numbers_of_words_is_asked():
    machine = SimpleNamespace(model=None, tokenizer=None, grammar=Grammar(**PLAIN))
    assert {question.position % 6 for question in questions(machine, 50)} == {5}


def test_an_empty_story_is_refused(machine):
    with pytest.raises(ValueError, match="an empty prompt has nothing to go on from"):
        examine(machine, "", "block-1-head-1", [])
