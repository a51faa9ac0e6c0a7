"""The line at which an answer's values leave those of the right computation."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises.engine.recording import GOES_ON, NAN, Recorder, departure, written_at
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

Q, K = randn(3, 5, seed=1), randn(7, 5, seed=2)


def right(q, k):
    scores = q @ k.mT
    return (scores / 5**0.5).softmax(-1)


def late(q, k):
    scores = q @ k.mT
    weights = scores.softmax(-1)
    return weights / 5**0.5


def detour(q, k):
    scores = q @ k.mT / 5**0.5
    scores = scores - scores.amax(-1, keepdim=True)
    weights = scores.softmax(-1)
    return weights.sin()


def written(q, k):
    q *= 2
    return right(q, k)


def left(answer):
    first = answer.__code__.co_firstlineno
    found, _ = departure(lambda: answer(Q, K), lambda: right(Q, K), (Q, K), answer.__code__)
    return found.line - first, found


def test_the_first_line_that_leaves_the_right_way_and_what_is_still_right():
    line, found = left(late)
    assert (line, found.name, found.right, found.instead) == (2, "softmax", ["scores"], "div")


def test_a_detour_is_not_held_against_an_answer():
    line, found = left(detour)
    assert (line, found.name, found.right) == (4, "sin", ["weights"])


def test_an_answer_that_stops_a_step_early_is_right_so_far():
    def squared(q, k):
        scores = q @ k.mT
        return scores * scores

    check = Exercise(
        right=lambda q, k: torch.erf((q @ k.mT) * (q @ k.mT)), cases=[Case("one", Q, K)]
    )
    assert check(squared).diagnosis.endswith(f"`return scores * scores`: {GOES_ON}.")


def test_the_line_of_an_answer_is_told_whoever_computes():
    def answer(q, k):
        x = F.linear(q, k)
        return F.softmax(x, dim=0)

    assert left(answer)[0] == 2


def test_a_nan_is_named_where_it_arises_unless_it_is_taken_away():
    def spoiled(q, k):
        p = right(q, k).round()
        return (p * p.log()).sum(-1)

    def cured(q, k):
        p = right(q, k).round()
        return (p * p.log()).nan_to_num().sum(-1).sin()

    assert left(spoiled)[0] == 2
    assert left(spoiled)[1].seen == NAN
    assert left(cured)[1].seen != NAN


def test_an_operation_is_recorded_under_any_name(monkeypatch):
    original = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda x, dim: original(x, dim))
    with Recorder() as recorder:
        torch.softmax(Q, dim=0)
    assert [step.name for step in recorder.steps] == ["softmax"]


def test_an_attribute_is_recorded_by_its_name():
    with Recorder() as recorder:
        Q.mT, Q.T  # noqa: B018
    assert [step.name for step in recorder.steps] == ["mT", "T"]


def test_where_an_argument_is_written_into():
    first = written.__code__.co_firstlineno
    given = (Q.clone(), K)
    assert written_at(lambda: written(*given), given, written.__code__) == first + 1


@pytest.mark.parametrize("broken", [None, lambda *a, **k: 1 / 0])
def test_a_check_is_right_though_an_answer_has_replaced_a_function(monkeypatch, broken):
    check = Exercise(right=lambda q, k: torch.softmax(q @ k.mT, -1), cases=[Case("one", Q, K)])
    monkeypatch.setattr(torch, "softmax", broken)
    assert check(lambda q, k: (q @ k.mT).softmax(-1)).passed
    assert torch.softmax is broken
