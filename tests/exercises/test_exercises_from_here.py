"""Chapter 15's checks: right answers pass, and each wrong one gets its diagnosis."""

import math
from functools import partial

import pytest
import torch
from diagnoses import exercises, judge_by
from torch import nn

from transformer_lib.exercises import from_here
from transformer_lib.exercises.from_here import check_count, check_preference, check_three
from transformer_lib.gpt import GPT, GPTConfig

RIGHT, WRONG = {}, {}


def by_columns(weight):
    """Row i of each result is column i of its third of the file's matrix."""
    d = len(weight)
    return [torch.stack([weight[:, part * d + i] for i in range(d)]) for part in range(3)]


RIGHT[check_three] = [by_columns, lambda weight: torch.split(weight.T, len(weight))]
WRONG[check_three] = [
    (lambda w: w.chunk(3, dim=1), "You cut first and do not transpose"),
    (lambda w: [by_columns(w)[i] for i in (1, 0, 2)], "Keys come first"),
    (lambda w: by_columns(w)[::-1], "The order is reversed"),
    (lambda w: [w.T[i::3] for i in range(3)], "every third row"),
    (lambda w: w.T.chunk(3, dim=1), "You cut along the inputs"),
]


def by_model(vocabulary, context, n_layers, d_model):
    sizes = {"n_layers": n_layers, "n_heads": 1, "d_model": d_model}
    with torch.device("meta"):
        return GPT(GPTConfig(vocabulary=vocabulary, context=context, **sizes)).n_parameters


def by_hand(V, C, L, d, output=0, positions=1, biases=9, norms=4, last=2, ff=True):
    matrices = 12 if ff else 4
    block = matrices * d * d + (biases if ff else 4) * d + norms * d
    return (1 + output) * V * d + positions * C * d + L * block + last * d


RIGHT[check_count] = [by_model, by_hand]
WRONG[check_count] = [
    (lambda V, C, L, d: by_hand(V, C, L, d, output=1), "it counts once"),
    (partial(by_hand, positions=0), "`context * d_model` too little"),
    (partial(by_hand, biases=0), "`9 * n_layers * d_model` too little"),
    (partial(by_hand, norms=0), "`4 * n_layers * d_model` too little"),
    (partial(by_hand, norms=2, last=1), "has `d_model + 2 * n_layers * d_"),
    (lambda V, C, L, d: by_hand(V, C, 1, d), "One block only"),
    (
        partial(by_hand, ff=False),
        "`5 * n_layers * d_model + 8 * n_layers * d_model ** 2` too little",
    ),
]


def preferring(c, r, c0, r0, beta, turn=1, before=1, total=False, sign=-1, log=True):
    margin = turn * beta * ((c - before * c0) - (r - before * r0))
    values = [1 / (1 + math.exp(-m)) for m in margin.tolist()]
    values = [math.log(v) for v in values] if log else values
    return sign * sum(values) / (1 if total else len(values))


RIGHT[check_preference] = [
    preferring,
    lambda c, r, c0, r0, beta: nn.functional.softplus(-beta * (c - c0 - r + r0)).mean(),
]
WRONG[check_preference] = [
    (lambda *x: preferring(*x, turn=-1), "prefer what was rejected"),
    (lambda *x: preferring(*x, before=0), "what they were worth before"),
    (lambda *x: preferring(*x, total=True), "The sum over the pairs"),
    (lambda *x: preferring(*x[:4], 1), "Without β"),
    (lambda *x: preferring(*x, sign=1, log=False), "The sigmoid of the margin itself"),
    (lambda *x: preferring(*x, sign=1), "The sign is missing"),
    (lambda c, r, c0, r0, beta: -beta * (c - c0 - r + r0).mean(), "The mean margin"),
]


@pytest.mark.parametrize("exercise", exercises(from_here))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
