"""Judge an exercise by answers that are written independently of its table of wrong answers.

The tests of a chapter hold two tables: the right answers of each exercise, and the wrong ones, each
with words of the diagnosis that it must get. `judge` runs them all, and fails as well if a sentence
of the exercise is reached by none of them.
"""

import re
from contextlib import contextmanager

import pytest

from transformer_lib.exercises.engine import runner
from transformer_lib.exercises.engine.calling import code_of
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.mending import line_of
from transformer_lib.exercises.engine.runner import Exercise


def exercises(module):
    """Every exercise that a chapter's module defines for readers, to parametrize a test with."""
    kinds = Exercise | Choice
    found = {name: value for name, value in vars(module).items() if isinstance(value, kinds)}
    return [
        pytest.param(exercise, id=name)
        for name, exercise in found.items()
        if name.startswith("check_")
    ]


def judge(exercise, right, wrong):
    """Right answers pass, wrong ones get their diagnosis, stubs none; no sentence is unreached."""
    failures = [f"right, but {exercise(answer)}" for answer in right if not exercise(answer).passed]
    sentences, reached = exercise.sentences, set()
    for number, (answer, words) in enumerate(wrong):
        named = any(words in sentence for sentence in sentences)
        with searching(not named):
            verdict = exercise(answer)
        if verdict.passed is not False or words not in without_lines(verdict.diagnosis, answer):
            failures.append(f"wrong answer {number}: no {words!r} in {verdict}")
        if verdict.diagnosis != words and sum(words in sentence for sentence in sentences) > 1:
            failures.append(f"wrong answer {number}: {words!r} is in more than one sentence")
        reached |= {sentence for sentence in sentences if _said(sentence, verdict.diagnosis)}
    failures += [
        f"reached by no answer: {sentence}" for sentence in sentences if sentence not in reached
    ]
    assert right, "there is no right answer"
    assert not failures, "\n".join(failures)
    not_attempted(exercise)


def judge_by(exercise, right, wrong):
    """`judge` by the answers that the tables of a chapter's tests hold for an exercise."""
    for name, table in (("RIGHT", right), ("WRONG", wrong)):
        assert exercise in table, f"{exercise} has no answers in {name}: write some into that table"
    judge(exercise, right[exercise], wrong[exercise])


def without_lines(diagnosis, answer):
    """What is said, without the lines of the answer that it quotes: a table has its words there."""
    code = code_of(answer)
    for number in re.findall(r"[Ll]ine (\d+), `", diagnosis) if code else ():
        diagnosis = diagnosis.replace(f"`{line_of(code, int(number))}`", "")
    return diagnosis


@contextmanager
def searching(lines):
    """Look for the line of a mistake, however busy the machine is; or, to save time, do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "MOST_SECONDS", 600.0)
        patch.setattr(runner, "MOST_FOR_ONE", 600.0)
        for limit in () if lines else ("MOST_CHANGES", "MOST_WITH_A_SENTENCE"):
            patch.setattr(runner, limit, 0)
        yield


def not_attempted(exercise):
    """An answer that is still empty, or not there at all, is not a mistake."""

    def stub(*arguments):
        """To be written."""
        ...

    for answer in (stub, None, ...):
        assert repr(exercise(answer)) == "○ not attempted yet"


def _said(sentence, diagnosis):
    """Is this the sentence, its blanks filled, perhaps after the name of a case or an option?"""
    pattern = ".+".join(re.escape(part) for part in re.split(r"\{[^}]*\}", sentence))
    before = r"(On|Right on|You have mended|This still) .+[:.] |.+ (is missing|does not belong): "
    return re.fullmatch(f"({before})?{pattern}( Line .+)?", diagnosis, re.IGNORECASE | re.DOTALL)
