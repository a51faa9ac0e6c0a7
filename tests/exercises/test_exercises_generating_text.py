"""Exercises 1, 2 and 5 of chapter 13: right answers pass, each wrong one gets its diagnosis."""

import pytest
import torch
from diagnoses import not_attempted

from transformer_lib.exercises.generating_text import (
    check_beam_step,
    check_cache_bytes,
    check_cached_step,
    check_nucleus,
    check_temperature,
)
from transformer_lib.sampling import filter_logits, keep_top_p

CHECKS = [
    check_temperature,
    check_nucleus,
    check_cached_step,
    check_cache_bytes,
    check_beam_step,
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_stub_is_not_attempted_yet(check):
    not_attempted(check)


# --- 1: temperature -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda p, t: torch.softmax(p.log() / t, dim=-1),
        lambda p, t: filter_logits(p.log(), temperature=t).softmax(-1),
        lambda p, t: torch.tensor([x ** (1 / t) for x in p]) / sum(x ** (1 / t) for x in p),
    ],
)
def test_temperature_right(answer):
    assert check_temperature(answer).passed


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda p, t: (p / t) / (p / t).sum(), "Nothing has changed"),
        (lambda p, t: torch.softmax(p.log(), 0) / t, "You divide the probabilities"),
        (lambda p, t: torch.softmax(p.log() * t, 0), "Upside down"),
        (lambda p, t: torch.exp(p.log() / t), "The normalization is missing"),
        (lambda p, t: (p / t).softmax(0), "You take the softmax of probabilities"),
    ],
)
def test_temperature_wrong(answer, diagnosis):
    verdict = check_temperature(lambda p, t: answer(p, t))
    assert verdict.passed is False
    assert verdict.diagnosis.startswith(diagnosis), verdict.diagnosis


# --- 2: top-p -----------------------------------------------------------------------------------


def nucleus_by_loop(probabilities, p):
    left, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort(descending=True):
        if total >= p:
            break
        left[i] = probabilities[i]
        total += float(probabilities[i])
    return left / left.sum()


@pytest.mark.parametrize(
    "answer", [nucleus_by_loop, lambda x, p: keep_top_p(x.log(), p).softmax(-1)]
)
def test_nucleus_right(answer):
    assert check_nucleus(answer).passed


def by_removal(probabilities, p, *, start=0, shift=False, equal=False):
    """As it is written in many repositories: sort, mark what is to go, put it back in place."""
    ordered, order = torch.sort(probabilities, descending=True)
    total = ordered.cumsum(0)
    remove = total >= p if equal else total > p
    if shift:
        remove = torch.cat((torch.zeros(1, dtype=torch.bool), remove[:-1]))
    remove[:start] = False
    left = probabilities.clone()
    left[order[remove]] = 0.0
    return left / left.sum()


def test_nucleus_by_removal_is_right_when_shifted():
    assert check_nucleus(lambda x, p: by_removal(x, p, shift=True, equal=True)).passed


def sorted_result(probabilities, p):
    return nucleus_by_loop(probabilities, p).sort(descending=True).values


def ascending(probabilities, p):
    left, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort():
        if total < p:
            left[i] = probabilities[i]
            total += float(probabilities[i])
    return left / left.sum()


def normalized(values):
    return values / values.sum()


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda x, p: by_removal(x, p, start=1), "The token with which the sum reaches p is cut. "),
        (lambda x, p: by_removal(x, p), "The token with which the sum reaches p is cut, and"),
        (
            lambda x, p: by_removal(x, p, equal=True, start=1),
            "The token with which the sum reaches p is cut, even where the sum is p exactly. It",
        ),
        (
            lambda x, p: by_removal(x, p, equal=True),
            "The token with which the sum reaches p is cut, even where the sum is p exactly, and",
        ),
        (lambda x, p: by_removal(x, p, shift=True), "One too many"),
        (lambda x, p: x.where(nucleus_by_loop(x, p) > 0, 0.0), "What is left does not sum to 1"),
        (sorted_result, "The result is in the order of the probabilities"),
        (ascending, "You begin with the least probable"),
        (lambda x, p: normalized(x.where(x >= 1 - p, 0.0)), "You compare each probability with 1"),
        (lambda x, p: normalized(x * (x / x.max() >= p)), "You compare each probability with p"),
    ],
)
def test_nucleus_wrong(answer, diagnosis):
    verdict = check_nucleus(lambda x, p: answer(x, p))
    assert verdict.passed is False
    assert verdict.diagnosis.startswith(diagnosis), verdict.diagnosis


# --- 5: a step of beam search -------------------------------------------------------------------


def beam_by_sorting(scores, log_probabilities, width):
    found = []
    for parent, row in enumerate(log_probabilities.tolist()):
        for token, value in enumerate(row):
            found.append((scores[parent].item() + value, parent, token))
    best = sorted(found, reverse=True)[:width]
    values, parents, tokens = zip(*best, strict=True)
    return torch.tensor(values), torch.tensor(parents), torch.tensor(tokens)


def beam_by_topk(scores, log_probabilities, width):
    candidates = scores.unsqueeze(1) + log_probabilities
    values, places = candidates.reshape(-1).topk(width)
    return values, *torch.unravel_index(places, candidates.shape)


@pytest.mark.parametrize("answer", [beam_by_sorting, beam_by_topk])
def test_beam_step_right(answer):
    assert check_beam_step(answer).passed


def own_best(scores, log_probabilities, width):
    tokens = log_probabilities.argmax(1)
    rows = torch.arange(len(tokens))
    return scores + log_probabilities[rows, tokens], rows, tokens


def of(candidates, width, columns=None):
    values, places = candidates.flatten().topk(width)
    columns = columns or candidates.shape[1]
    return values, torch.div(places, columns, rounding_mode="floor"), places.remainder(columns)


FLAT = "Flattened, a row has as many entries as there are tokens: divide by the vocabulary, not"


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (own_best, "Each beam keeps its own best"),
        (lambda s, x, w: of(x, w), "You forget what the beams have cost"),
        (lambda s, x, w: of(s.view(-1, 1) * x, w), "You multiply logarithms"),
        (lambda s, x, w: of(s.view(-1, 1) + x.exp(), w), "You add probabilities to logarithms"),
        (
            lambda s, x, w: of(s.view(-1, 1) + x, w, len(x)),
            f"{FLAT} by the number of beams.",
        ),
        (lambda s, x, w: of(s.view(-1, 1) + x, w, w), f"{FLAT} by `width`."),
        (lambda s, x, w: beam_by_topk(s, x, len(s)), "You keep as many as there were beams"),
        (
            lambda s, x, w: tuple(beam_by_topk(s, x, w)[i] for i in (0, 2, 1)),
            "Parents and tokens are exchanged",
        ),
    ],
)
def test_beam_step_wrong(answer, diagnosis):
    verdict = check_beam_step(lambda scores, x, width: answer(scores, x, width))
    assert verdict.passed is False
    assert verdict.diagnosis.startswith(diagnosis), verdict.diagnosis
