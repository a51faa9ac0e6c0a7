"""Exercises 4 to 6 of chapter 11: right answers pass, each wrong one gets its own diagnosis."""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from test_exercises_gpt import wrong

from transformer_lib.exercises.gpt import check_bigram_loss, check_initial_loss, check_leaks
from transformer_lib.exercises.language_models import INITIAL_LOSS, LEAKS
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


@pytest.mark.parametrize("sizes", [case.inputs for case in INITIAL_LOSS.cases])
def test_the_formula_holds_for_the_cases_of_the_check(sizes):
    vocabulary, d_model, std = sizes
    source = torch.Generator().manual_seed(0)
    logits = std * math.sqrt(d_model) * torch.randn(300, vocabulary, generator=source)
    loss = logits.logsumexp(-1).mean().item()  # the target's own logit is 0 on average
    assert loss == pytest.approx(by_formula(*sizes), abs=0.005)


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
        (
            lambda t, h, n: by_index_put(t.flatten()[None], h.flatten()[None], n),
            "You flatten both sets",
        ),
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


def by_drawing_anew(model, ids, vocabulary):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        drawn = torch.randint(vocabulary, (len(ids), ids.shape[1] - t))
        if not torch.equal(model(torch.cat([ids[:, :t], drawn], 1))[:, :t], before[:, :t]):
            return True
    return False


def at_each_position(model, ids, vocabulary):
    """All that comes after position t is changed, and t alone compared."""
    pairs = ((ids[:, : t + 1], ids[:, t + 1 :]) for t in range(ids.shape[1] - 1))
    others = [torch.cat([past, (future + 1) % vocabulary], 1) for past, future in pairs]
    rows = [(model(other) - model(ids))[:, t] for t, other in enumerate(others)]
    return torch.stack(rows).any()


@pytest.mark.parametrize(
    "answer", [by_cutting, by_changing_each_token, by_drawing_anew, at_each_position]
)
def test_leaks_right(answer):
    assert check_leaks(answer).passed


def test_drawing_the_future_anew_finds_every_leak_whatever_the_seed():
    for seed in range(100):
        torch.manual_seed(seed)
        found = [by_drawing_anew(*case.inputs) for case in LEAKS.cases]
        assert found == [False] + [True] * (len(found) - 1)


def test_leaks_by_cutting_may_ask_for_equality_to_the_last_bit():
    def exact(model, ids, vocabulary):
        whole = model(ids)
        ends = range(1, ids.shape[1])
        return any(not torch.equal(model(ids[:, :t]), whole[:, :t]) for t in ends)

    assert check_leaks(exact).passed


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


def each_cut(first=1, last=0, width=9, back=9, change=lambda ids: ids + 1, atol=0, verdict=any):
    """At each cut, `width` tokens from there on are changed, and `back` before it compared."""

    def leaks(model, ids, vocabulary):
        found = []
        for t in range(first, ids.shape[1] + last):
            other, past = ids.clone(), slice(max(0, t - back), t)
            other[:, t : t + width] = change(other[:, t : t + width]) % vocabulary
            pair = model(other)[:, past], model(ids)[:, past]
            found.append(not torch.allclose(*pair, rtol=0, atol=atol))
        return verdict(found)

    return leaks


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (compared_everywhere, "You find a leak in a model that has none"),
        (lambda m, ids, v: not torch.equal(m(ids), m(ids)), "You never find a leak."),
        (lambda m, ids, v: not by_cutting(m, ids, v), "The other way round"),
        (last_token, "You change the last token only (or"),
        (in_halves, "You cut at one place only"),
        (first_position, "You compare the first position only"),
        (lambda m, ids, v: not torch.equal(m(torch.randint(v, ids.shape)), m(ids)), "You find a"),
        (each_cut(first=2), "Your cuts begin too late"),
        (each_cut(last=-1), "Your cuts end too early"),
        (each_cut(width=1, back=1), "You look at neighbors only"),
        (each_cut(change=torch.zeros_like), "You overwrite the future with token 0."),
        (each_cut(atol=1e-3), "A leak may be faint"),
        (each_cut(atol=0.3), "A leak may be faint"),
        (each_cut(verdict=all), "You ask that it leaks at every cut"),
        (each_cut(verdict=lambda found: found[-1]), "You change the last token only (or only"),
        (each_cut(verdict=lambda found: found[0]), "You compare the first position only (or"),
    ],
)
def test_leaks_wrong(answer, diagnosis):
    wrong(check_leaks, lambda model, ids, vocabulary: answer(model, ids, vocabulary), diagnosis)


def test_the_right_answer_finds_the_library_s_model_causal():
    model = GPT(GPTConfig(vocabulary=7, context=5, n_layers=2, n_heads=2, d_model=12)).eval()
    ids = torch.randint(7, (2, 5))
    assert not by_changing_each_token(model, ids, 7)
    assert not by_cutting(model, ids, 7)
