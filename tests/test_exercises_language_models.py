"""Exercises 4 to 6 of chapter 11: right answers pass, each wrong one gets its own diagnosis."""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from test_exercises_gpt import wrong

from transformer_lib.exercises.gpt import check_bigram_loss, check_initial_loss, check_leaks
from transformer_lib.gpt import GPT, GPTConfig

# --- 4: the loss of a fresh model ---------------------------------------------------------------


def by_formula(vocabulary, d_model, std):
    return math.log(vocabulary) + 0.5 * d_model * std**2


def by_the_mean_of_exponentials(vocabulary, d_model, std):
    return math.log(vocabulary * math.exp(d_model * std * std / 2))


@pytest.mark.parametrize("answer", [by_formula, by_the_mean_of_exponentials])
def test_initial_loss_right(answer):
    assert check_initial_loss(answer).passed


def test_initial_loss_is_a_fresh_model_s():
    sizes = {"vocabulary": 997, "context": 64, "n_layers": 1, "n_heads": 2, "d_model": 64}
    torch.manual_seed(0)
    model = GPT(GPTConfig(**sizes, tied=False))
    ids, targets = torch.randint(997, (2, 32, 64))
    with torch.no_grad():
        model.head.weight.normal_(std=0.15)
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    assert loss.item() == pytest.approx(by_formula(997, 64, 0.15), abs=0.1)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda v, d, s: math.log(v), "That holds for equal logits only"),
        (lambda v, d, s: math.log(v) + d * s * s, "A factor of one half is missing"),
        (lambda v, d, s: math.log(v) + math.sqrt(d) * s / 2, "You take the spread where"),
        (lambda v, d, s: math.log(v) + s * s / 2, "The variance of one weight"),
        (lambda v, d, s: math.log(v) + d * d * s * s / 2, "d_model is squared"),
        (lambda v, d, s: 2 * math.log(v) - by_formula(v, d, s), "The sign"),
        (lambda v, d, s: math.log(v, 2) + d * s * s / 2, "That is bits"),
    ],
)
def test_initial_loss_wrong(answer, diagnosis):
    wrong(
        check_initial_loss, lambda vocabulary, d_model, std: answer(vocabulary, d_model, std),
        diagnosis,
    )  # fmt: skip


# --- 5: the bigram ------------------------------------------------------------------------------


def by_index_put(train, held_out, size, *, start=1.0, accumulate=True):
    counts = torch.full((size, size), start)
    before, after = train[:, :-1], train[:, 1:]
    counts.index_put_((before, after), torch.tensor(1.0), accumulate=accumulate)
    table = counts / counts.sum(1, keepdim=True)
    return -table[held_out[:, :-1], held_out[:, 1:]].log().mean()


def by_counting(train, held_out, size):
    pairs = Counter((a, b) for s in train.tolist() for a, b in pairwise(s))
    starts = Counter(a for s in train.tolist() for a in s[:-1])
    logs = [
        math.log((pairs[a, b] + 1) / (starts[a] + size))
        for s in held_out.tolist()
        for a, b in pairwise(s)
    ]
    return -sum(logs) / len(logs)


@pytest.mark.parametrize("answer", [by_index_put, by_counting])
def test_bigram_right(answer):
    assert check_bigram_loss(lambda train, held_out, size: answer(train, held_out, size)).passed


def plus_equals(train, held_out, size):
    counts = torch.ones(size, size)
    counts[train[:, :-1], train[:, 1:]] += 1
    table = counts / counts.sum(1, keepdim=True)
    return -table[held_out[:, :-1], held_out[:, 1:]].log().mean()


def table_of(train, size):
    counts = torch.ones(size, size)
    for story in train.tolist():
        for a, b in pairwise(story):
            counts[a, b] += 1
    return counts


def measured(table, held_out):
    return -table[held_out[:, :-1], held_out[:, 1:]].log().mean()


def unigram(train, held_out, size):
    counts = torch.ones(size)
    for story in train.tolist():
        for token in story[1:]:
            counts[token] += 1
    return -(counts / counts.sum())[held_out[:, 1:]].log().mean()


def old_sums(train, held_out, size):
    counts = table_of(train, size)
    return measured(counts / (counts.sum(1, keepdim=True) - size), held_out)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (plus_equals, "The pairs are not all counted"),
        (lambda t, h, n: by_index_put(t, h, n, start=0.0), "No smoothing"),
        (
            lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(0), h),
            "The columns sum to 1",
        ),
        (
            lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(), h),
            "You divide by the sum of the whole table",
        ),
        (lambda t, h, n: by_index_put(h, h, n), "You count on the held-out stories"),
        (lambda t, h, n: by_index_put(t, t, n), "You measure on the training stories"),
        (lambda t, h, n: by_index_put(t.flatten()[None], h, n), "The last token of a story"),
        (old_sums, "1 is added to the counts"),
        (unigram, "That is the unigram"),
        (lambda t, h, n: by_counting(t, h, n) / math.log(2), "That is bits"),
    ],
)
def test_bigram_wrong(answer, diagnosis):
    wrong(check_bigram_loss, lambda train, held_out, size: answer(train, held_out, size), diagnosis)


# --- 6: the leak --------------------------------------------------------------------------------


def by_cutting(model, ids, vocabulary):
    """A text that ends at t has the logits of the longer text up to there."""
    whole = model(ids)
    ends = range(1, ids.shape[1])
    return any(not torch.allclose(model(ids[:, :t]), whole[:, :t], atol=1e-6) for t in ends)


def by_changing_each_token(model, ids, vocabulary):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        other = ids.clone()
        other[:, t] = (other[:, t] + 2) % vocabulary
        if (model(other)[:, :t] - before[:, :t]).abs().max() > 1e-6:
            return True
    return False


@pytest.mark.parametrize("answer", [by_cutting, by_changing_each_token])
def test_leaks_right(answer):
    assert check_leaks(answer).passed


def compared_everywhere(model, ids, vocabulary):
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % vocabulary
    return not torch.equal(model(other), model(ids))


def last_token(model, ids, vocabulary):
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 3) % vocabulary
    return not torch.allclose(model(other)[:, :-1], model(ids)[:, :-1])


def in_halves(model, ids, vocabulary):
    t = ids.shape[1] // 2
    other = torch.cat([ids[:, :t], (ids[:, t:] + 1) % vocabulary], dim=1)
    return bool((model(other)[:, :t] - model(ids)[:, :t]).abs().max() > 1e-6)


def first_position(model, ids, vocabulary):
    other = ids.clone()
    other[:, 1:] = (other[:, 1:] + 1) % vocabulary
    return not torch.allclose(model(other)[:, 0], model(ids)[:, 0])


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (compared_everywhere, "You find a leak in a model that has none"),
        (lambda m, ids, v: not torch.equal(m(ids), m(ids)), "You never find a leak."),
        (lambda m, ids, v: not by_cutting(m, ids, v), "The other way round"),
        (last_token, "You change the last token only."),
        (in_halves, "You cut at one place only"),
        (first_position, "You compare the first position only"),
    ],
)
def test_leaks_wrong(answer, diagnosis):
    wrong(check_leaks, lambda model, ids, vocabulary: answer(model, ids, vocabulary), diagnosis)


def test_the_right_answer_finds_the_library_s_model_causal():
    model = GPT(GPTConfig(vocabulary=7, context=5, n_layers=2, n_heads=2, d_model=12)).eval()
    ids = torch.randint(7, (2, 5))
    assert not by_changing_each_token(model, ids, 7)
    assert not by_cutting(model, ids, 7)
