"""Choices: a letter, a line, several; every wrong one gets its sentence."""

import numpy as np
import pytest
import torch
from diagnoses import judge

from transformer_lib.exercises.engine.choosing import Choice

PRINTOUT = Choice(
    asks="Which printout belongs to the wrong axis? A letter.",
    right="c",
    wrong={"a": "Its rows sum to 1.", "b": "It is not a softmax at all."},
    praise="Right: its columns sum to 1.",
)
LINE = Choice(right=4, wrong={2: "The mask is right."}, otherwise="Line {} does what it should.")
LEAKS = Choice(right={"a", "d"}, wrong={"b": "It is causal.", "d": "The norm is of all words."})

EITHER = Choice(right={"b", "c", "d"}, also=[{"a", "d"}], wrong={"a": "It is both at once."})
LINES = Choice(right={3, 7}, otherwise="Line {} does what it should.")


def test_the_sentences_are_all_reached():
    wrong = [("a", "rows sum"), (lambda: "B", "not a softmax")]
    judge(PRINTOUT, ["c", " C ", "(c)", "c.", ["c"], np.str_("c"), lambda: "c"], wrong)
    right = [4, "4", 4.0, np.int64(4), torch.tensor(4), torch.tensor([4]), [4]]
    judge(LINE, right, [(2, "mask is right"), (7, "Line 7 does")])
    wrong = [("ab", "b does not belong: It is causal."), (["a"], "d is missing: The norm is of")]
    judge(EITHER, ["bcd", "ad", {"d", "a"}], [("abd", "a does not belong: It is both at once.")])
    judge(
        LEAKS,
        ["ad", "a, d", "A & d", "a/d", "a + d", {"d", "a"}, ("a", "d"), ["d", "a", "a"], ["ad"]],
        wrong,
    )


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        (PRINTOUT, "x", "'x' is not among the choices: a, b, c."),
        (PRINTOUT, ["c", "a"], "You chose 2: choose one."),
        (PRINTOUT, "c, or a", "You chose 2: choose one."),
        (PRINTOUT, {"c": 1}, "Your choice is a dict; give the option itself."),
        (PRINTOUT, str, "Your choice is a class"),
        (PRINTOUT, lambda: 1 / 0, "raises ZeroDivisionError: division by zero"),
        (LEAKS, "d", "a is missing."),
        (EITHER, "a", "d is missing."),
        (EITHER, "d", "b is missing."),
        (EITHER, "abcd", "a does not belong"),
        (LEAKS, "xy", "'x' is not among the choices: a, b, d."),
        (LINES, [2, 6], "Each of your numbers is one too small: count from 1."),
        (LINES, [4, 8], "Each of your numbers is one too large."),
        (LINES, [2, 7], "Line 2 does what it should."),
    ],
)
def test_other_answers_get_a_sentence(check, answer, words):
    verdict = check(answer)
    assert verdict.passed is False
    assert words in verdict.diagnosis


@pytest.mark.parametrize("empty", [None, ..., "", "  ", [], lambda: None, [...]])
def test_an_empty_answer_is_not_attempted(empty):
    assert repr(PRINTOUT(empty)) == "○ not attempted yet"


def test_what_is_no_option_is_called_what_it_is():
    given = torch.eye(3), [[1.0]]
    kinds = "a tensor of shape (3, 3)", "a list"
    for answer, kind in zip(given, kinds, strict=True):
        told = f"Your choice is {kind}; give the option itself."
        assert PRINTOUT(answer).diagnosis == told


def test_a_choice_of_words():
    check = Choice(right=True, wrong={False: "Nothing hides the future."})
    assert check(True).passed
    assert check("true").passed
    assert check(False).diagnosis == "Nothing hides the future."


def test_a_mistake_in_the_table_is_found():
    with pytest.raises(ValueError, match="is also in `wrong`"):
        Choice(right="a", wrong={"A": "No."})
    with pytest.raises(ValueError, match=r"`also` holds \['4'\]: each needs its sentence"):
        Choice(right={1, 2}, also=[{2, 4}], wrong={2: "It comes too late."})
    with pytest.raises(ValueError, match="empty"):
        Choice(right=set())


def test_a_check_says_what_it_asks():
    assert repr(PRINTOUT) == "<check of Which printout belongs to the wrong axis? A letter.>"
