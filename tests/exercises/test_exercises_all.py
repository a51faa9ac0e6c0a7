"""Rules for the exercises of all chapters: each is tested, explained, and its examples run."""

import doctest
import importlib
import pkgutil
import pydoc
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
from diagnoses import exercises, judge, judge_by

from transformer_lib import exercises as package
from transformer_lib.exercises.engine.runner import Case, Exercise

NAMES = [name for _, name, is_folder in pkgutil.iter_modules(package.__path__) if not is_folder]
CHAPTERS = [importlib.import_module(f"{package.__name__}.{name}") for name in NAMES]
ALL = [exercise for chapter in CHAPTERS for exercise in exercises(chapter)]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_every_exercise_is_judged_by_the_tests_of_its_chapter(chapter):
    name = chapter.__name__.rpartition(".")[2]
    file = Path(__file__).with_name(f"test_exercises_{name}.py")
    assert file.exists(), f"write {file.name}: right and wrong answers to each exercise of {name}"
    spec = spec_from_file_location(name, file)
    tests = module_from_spec(spec)
    spec.loader.exec_module(tests)
    (judged,) = (mark for mark in tests.test_answers.pytestmark if mark.name == "parametrize")
    names, values = judged.args
    assert names == "exercise"
    assert {id(value.values[0]) for value in values} == {
        id(exercise.values[0]) for exercise in exercises(chapter)
    }
    assert exercises(chapter)


@pytest.mark.parametrize("exercise", ALL)
def test_help_says_what_is_asked(exercise):
    first = exercise.__doc__.splitlines()[0]
    assert first.endswith(".")
    assert first in pydoc.render_doc(exercise, renderer=pydoc.plaintext)
    assert first in repr(exercise)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_the_examples_of_an_exercise_run(chapter):
    names = vars(chapter) | {"torch": torch}
    for case in exercises(chapter):
        docstring = case.values[0].__doc__
        examples = doctest.DocTestParser().get_doctest(docstring, names, case.id, None, 0)
        report = []
        runner = doctest.DocTestRunner()
        runner.run(examples, out=report.append)
        assert runner.failures == 0, "".join(report)


def test_there_are_examples():
    assert sum(">>>" in case.values[0].__doc__ for case in ALL) >= 4


# --- judging ------------------------------------------------------------------------------------


def _exercise(**options):
    return Exercise(right=lambda x: 2 * x, cases=[Case("one", 1.0), Case("three", 3.0)], **options)


RIGHT = [lambda x: x + x]
HALVED = {"You divide.": lambda x: x / 2, "You divide by 4.": lambda x: x / 4}
ABOVE = {"{} is above {:.1f}.": lambda y, x: (y, 10.0) if y > 10 else None}
WRONG = [(lambda x: x * 0.5, "You divide."), (lambda x: x * 0.25, "You divide by 4")]


def test_judging_accepts_what_is_reached():
    judge(_exercise(wrong=HALVED), RIGHT, WRONG)
    judge(
        _exercise(also=ABOVE), RIGHT, [(lambda x: 2 * x if x < 2 else 11.5, "11.5 is above 10.0")]
    )


def test_a_check_without_answers_is_told():
    check = _exercise()
    with pytest.raises(AssertionError, match="has no answers in WRONG: write some"):
        judge_by(check, {check: RIGHT}, {})


@pytest.mark.parametrize(
    ("options", "right", "wrong", "words"),
    [
        ({"wrong": HALVED}, RIGHT, WRONG[:1], "reached by no answer: You divide by 4."),
        ({"also": ABOVE}, RIGHT, [], "reached by no answer: {} is above"),
        ({}, [], [], "there is no right answer"),
        ({}, [lambda x: x], [], "right, but ✗ Line "),
        ({}, RIGHT, [(RIGHT[0], "")], "wrong answer 0: no '' in ✓"),
        ({}, RIGHT, [(lambda x: x, "right is 3")], "wrong answer 0: no 'right is 3' in ✗ Line "),
        (
            {"wrong": HALVED},
            RIGHT,
            [WRONG[1], (lambda x: x / 2, "You div")],
            "wrong answer 1: 'You div' is in more than one sentence",
        ),
    ],
)
def test_judging_finds_what_is_missing(options, right, wrong, words):
    with pytest.raises(AssertionError) as found:
        judge(_exercise(**options), right, wrong)
    assert words in str(found.value)
