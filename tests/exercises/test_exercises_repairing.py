"""Repairs: nothing mended, a part mended, something else spoiled."""

import pytest
import torch
from diagnoses import judge

from transformer_lib.exercises.engine import runner
from transformer_lib.exercises.engine.runner import Case, Repair, randn


def broken(x):
    return torch.softmax(x @ x.mT, dim=1) @ x


MEND = Repair(
    asks="`answer(x)`: self-attention for one sentence or a batch, mended.",
    broken=broken,
    unchanged="Print the sums of its rows, for a batch too.",
    right=lambda x: torch.softmax(x @ x.mT, dim=-1) @ x,
    wrong={"The softmax is gone.": lambda x: x @ x.mT @ x},
    cases=[
        Case("one sentence", randn(5, 7, seed=1)),
        Case("two sentences", randn(2, 3, 5, seed=2)),
        Case("heads", randn(2, 3, 5, 7, seed=3)),
    ],
)
AS_GIVEN = "This still does what the broken function does. Print the sums of its rows"


def two_axes(x):
    return torch.softmax(x @ x.mT, dim=min(x.ndim - 1, 2)) @ x


def test_the_sentences_are_all_reached():
    right = [lambda x: torch.softmax(x @ x.mT, dim=x.ndim - 1) @ x]
    judge(MEND, right, [(broken, AS_GIVEN), (lambda x: x @ (x.mT @ x), "The softmax is gone.")])


def test_part_of_the_break_and_what_worked(monkeypatch):
    assert MEND.shows() == ["two sentences", "heads"]
    spoiled = MEND(lambda x: torch.softmax(x @ x.mT, dim=-2)).diagnosis
    assert spoiled.startswith("On one sentence the function that you were given was right, and")

    def three(x):
        return torch.softmax(x @ x.mT, dim=1 if x.ndim == 4 else -1) @ x

    still = "You have mended two sentences, but on heads your answer still does what"
    monkeypatch.setattr(runner, "mended", lambda *_, **__: [])
    monkeypatch.setattr(runner, "departure", lambda *_: None)
    assert MEND(three).diagnosis.startswith(still)
    assert MEND(two_axes).diagnosis.startswith("Right on two sentences, but on heads: ")


def test_a_function_that_raises_can_be_broken():
    mend = Repair(
        broken=lambda x: x.view(2, -1),
        right=lambda x: x.reshape(-1),
        cases=[Case("3 numbers", randn(3, seed=1))],
    )
    assert mend(lambda x: x.view(2, -1)).diagnosis.startswith("This still does what the broken")
    assert mend(lambda x: x).passed


def test_a_repair_needs_something_broken():
    with pytest.raises(TypeError, match="`broken` function"):
        Repair(right=lambda x: x, cases=[Case("3", 3)])
