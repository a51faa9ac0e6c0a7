"""Chapter 11's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge

from transformer_lib.exercises import gpt
from transformer_lib.exercises.gpt import (
    check_bigram_loss,
    check_by_heart,
    check_count,
    check_initial_loss,
    check_leaks,
    check_mended_gpt,
    check_next_token_loss,
)
from transformer_lib.gpt import GPT, GPTConfig

RIGHT, WRONG = {}, {}

# --- 1: the loss --------------------------------------------------------------------------------


def by_cross_entropy(logits, ids, real):
    targets = ids.masked_fill(~real, -100)[:, 1:]
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())


def by_loop(logits, ids, real):
    total, count = 0.0, 0
    for row in range(len(ids)):
        for t in range(ids.shape[1] - 1):
            if real[row, t + 1]:
                chance = torch.softmax(logits[row, t], 0)[ids[row, t + 1]]
                total, count = total - math.log(chance), count + 1
    return total / count


RIGHT[check_next_token_loss] = [by_cross_entropy, by_loop]


def masked_mean(each, real):
    return (each * real).sum() / real.sum()


def each_loss(logits, targets):
    return F.cross_entropy(logits.mT, targets, reduction="none")


WRONG[check_next_token_loss] = [
    (lambda x, ids, real: masked_mean(each_loss(x, ids), real), "No shift:"),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, 1:], ids[:, 1:]), real[:, 1:]),
        "You cut the first position of everything.",
    ),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum() / real.sum(),
        "You divide by the number of all real tokens.",
    ),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, 1:], ids[:, :-1]), real[:, :-1]),
        "The shift goes the wrong way",
    ),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, :-2], ids[:, 2:]), real[:, 2:]),
        "Shifted twice",
    ),
    (lambda x, ids, real: each_loss(x[:, :-1], ids[:, 1:]).mean(), "The padding counts"),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, :-1], ids[:, 1:]), real[:, :-1]),
        "You take `real` at the inputs.",
    ),
    (
        lambda x, ids, real: (
            sum(
                by_cross_entropy(x[i : i + 1], ids[i : i + 1], real[i : i + 1])
                for i in range(len(ids))
            )
            / len(ids)
        ),
        "The mean of each sequence's mean: a token",
    ),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).mean(),
        "The padding is set to zero but still counted",
    ),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum(),
        "The sum over the tokens",
    ),
    (lambda *given: by_cross_entropy(*given) * math.log2(math.e), "That is bits"),
    (lambda x, *given: by_cross_entropy(x.softmax(2), *given), "The softmax is taken twice"),
    (lambda *given: -by_cross_entropy(*given), "The sign"),
    (
        lambda x, ids, real: (
            -masked_mean(
                (x.softmax(2)[:, :-1].gather(2, ids[:, 1:, None])[..., 0] + 1e-9).log(), real[:, 1:]
            )
        ),
        "A small number is added",
    ),
    (
        lambda x, ids, real: (
            (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum(1) / real.sum(1)
        ).mean(),
        "The mean of each sequence's mean, and each divided by all its tokens",
    ),
    (
        lambda x, ids, real: F.cross_entropy(
            x[:, :-1].flatten(0, 1), (ids * real)[:, 1:].flatten(), ignore_index=0
        ),
        "You leave out every target that is token 0",
    ),
    (
        lambda x, ids, real: each_loss(x[:, :-1], ids.masked_fill(~real, 0)[:, 1:]).mean(),
        "You set the padding to token 0",
    ),
    (
        lambda x, ids, real: (
            -masked_mean(x[:, :-1].gather(2, ids[:, 1:, None])[..., 0], real[:, 1:])
        ),
        "You take the target's logit",
    ),
    (
        lambda x, ids, real: (
            -masked_mean(
                x.softmax(1)[:, :-1].gather(2, ids[:, 1:, None])[..., 0].log(), real[:, 1:]
            )
        ),
        "The softmax runs over the tokens",
    ),
    (
        lambda x, ids, real: masked_mean((x[:, :-1].argmax(2) == ids[:, 1:]).float(), real[:, 1:]),
        "That is the share of targets",
    ),
]


# --- 2: the model, to be mended -----------------------------------------------------------------


def six_lines(ids, E, P, blocks, final_norm):
    x = E[ids] + P[: ids.shape[1]]
    for block in blocks:
        x = block(x)
    return final_norm(x) @ E.T


def one_hot(ids, E, P, blocks, final_norm):
    x = F.one_hot(ids, len(E)).float() @ E
    x = x + P[torch.arange(ids.shape[-1])]
    x = torch.nn.Sequential(*blocks, final_norm)(x)
    return torch.einsum("btd,vd->btv", x, E)


RIGHT[check_mended_gpt] = [six_lines, one_hot]


def with_tables(*, places=lambda ids: range(ids.shape[1]), step=lambda block, x, norm: block(x)):
    def answer(ids, E, P, blocks, final_norm):
        x = E[ids] + P[places(ids)]
        for block in blocks:
            x = step(block, x, final_norm)
        return final_norm(x) @ E.T

    return answer


def as_given(ids, E, P, blocks, final_norm):
    x = E[ids] + P[ids]
    for block in blocks:
        y = block(x)
    return final_norm(y) @ E.T


def normed_first(ids, E, P, blocks, final_norm):
    return six_lines(ids, E, P, [final_norm, *blocks], lambda x: x)


WRONG[check_mended_gpt] = [
    (as_given, "This still does what the broken function does. Say aloud"),
    (with_tables(places=lambda ids: ids), "The blocks are mended"),
    (lambda i, E, P, b, n: n(b[-1](E[i] + P[: i.shape[1]])) @ E.T, "The positions are mended."),
    (with_tables(places=lambda ids: range(1, ids.shape[1] + 1)), "Row 0 of P belongs"),
    (with_tables(places=lambda ids: 0), "You add the same row of P"),
    (with_tables(step=lambda block, x, norm: x + block(x)), "The stream is added twice"),
    (
        lambda i, E, P, b, n: with_tables(step=lambda b, x, _: n(b(x)))(i, E, P, b, lambda x: x),
        "not behind each of them.",
    ),
    (with_tables(step=lambda b, x, norm: norm(b(x))), "not behind each of them."),
    (lambda i, E, P, b, n: six_lines(i, E, P, b, lambda x: x), "The final norm is missing."),
    (normed_first, "The norm comes before the first block."),
    (lambda *given: six_lines(*given).softmax(-1), "These are probabilities."),
    (lambda i, E, P, b, n: six_lines(i, E, P * 0, b, n), "The positions are missing."),
    (lambda i, E, P, b, n: six_lines(i, E, P, [b[0]], n), "Only the first block counts"),
    (lambda i, E, P, b, n: six_lines(i, E, P, reversed(b), n), "The blocks run in reverse"),
    (
        lambda i, E, P, b, n: with_tables(step=lambda f, x, _: f(x + P[: i.shape[1]]))(
            i, E, 0 * P, b, n
        ),
        "The rows of P are added again",
    ),
]


# --- 3: count -----------------------------------------------------------------------------------


def by_parts(vocabulary, context, n_layers, d_model):
    def linear(n, m):
        return n * m + m

    norm = 2 * d_model
    attention = 4 * linear(d_model, d_model)
    feed_forward = linear(d_model, 4 * d_model) + linear(4 * d_model, d_model)
    block = norm + attention + norm + feed_forward
    return (vocabulary + context) * d_model + n_layers * block + norm


def by_the_model(vocabulary, context, n_layers, d_model):
    sizes = {"vocabulary": vocabulary, "context": context, "n_layers": n_layers}
    with torch.device("meta"):
        return GPT(GPTConfig(**sizes, n_heads=2, d_model=d_model)).n_parameters


RIGHT[check_count] = [by_parts, by_the_model]


def test_count_gives_gpt_2():
    assert by_parts(50_257, 1024, 12, 768) == 124_439_808


WRONG[check_count] = [
    (lambda v, c, n, d: by_parts(v, c, n, d) + v * d, "The output is counted once more."),
    (lambda v, c, n, d: by_parts(v, 0, n, d), "The table of positions is missing"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 2 * d, "The final norm is missing"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 9 * n * d, "No biases"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 4 * n * d, "In each block 4 · d_model are missing"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 5 * n * d, "The biases of the feed-forward layer"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - d, "The final norm has a gain and a bias"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 2 * n * d, "A block has two norms"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 4 * n * d - 2 * d, "All norms are missing"),
    (lambda v, c, n, d: (v + c) * d + 12 * n * d * d, "You count only matrices"),
    (lambda v, c, n, d: by_parts(v, c, n, d) - 4 * n * d * d, "The feed-forward layer has two"),
    (
        lambda v, c, n, d: by_parts(v, c, n, d) - n * (6 * d * d + 3 * d),
        "The feed-forward layer is 4",
    ),
    (lambda v, c, n, d: by_parts(v, c, n, d) - n * (d * d + d), "W_O is missing"),
    (lambda v, c, n, d: by_parts(v, c, 1, d), "You count one block"),
    (
        lambda v, c, n, d: by_parts(v, c, n, d) - n * (4 * d * d + d),
        "The feed-forward layer's second product",
    ),
    (lambda v, c, n, d: by_parts(v, c, n, d) - (2 * n + 1) * d, "A norm has a gain and"),
    (
        lambda v, c, n, d: by_parts(v, c, n, d) - 320,
        "On a small GPT: your result is too small by 320.",
    ),
    (lambda v, c, n, d: 10**400, "On a small GPT: your result is inf"),
]


# --- 4: learned by heart ------------------------------------------------------------------------


def cost_of_finding_out(lengths):
    surprises = [math.log(len(lengths)) for _ in lengths]
    return sum(surprises) / sum(lengths)


def by_the_mean(lengths):
    return torch.tensor(len(lengths)).log() / torch.tensor(lengths).double().mean()


RIGHT[check_by_heart] = [cost_of_finding_out, by_the_mean]


def test_a_reader_who_knows_the_texts_has_this_loss():
    """Bayes' rule, word by word: a word has the share of the texts that are still possible."""
    texts = ["abc$", "abd$", "b$", "bcccc$"]
    surprises = []
    for text in texts:
        for t in range(1, len(text) + 1):
            begun = sum(other.startswith(text[: t - 1]) for other in texts)
            surprises.append(math.log(begun / sum(o.startswith(text[:t]) for o in texts)))
    lengths = list(map(len, texts))
    assert sum(surprises) / len(surprises) == pytest.approx(cost_of_finding_out(lengths))


WRONG[check_by_heart] = [
    (lambda lengths: 0, "Not zero."),
    (lambda lengths: math.log(len(lengths)), "That is what one whole text costs"),
    (lambda lengths: math.log(len(lengths)) / sum(lengths), "Each text costs ln n to find out"),
    (
        lambda lengths: torch.tensor([math.log(len(lengths)) / n for n in lengths]).mean(),
        "A mean of means",
    ),
    (lambda lengths: math.log(len(lengths)) / max(lengths), "You divide by the longest text"),
    (lambda lengths: math.log(len(lengths)) / len(lengths), "You divide by the number of texts"),
    (lambda lengths: math.log(sum(lengths)) * len(lengths) / sum(lengths), "You take ln of"),
    (lambda lengths: math.log2(len(lengths)) * len(lengths) / sum(lengths), "That is bits"),
    (lambda lengths: math.log10(len(lengths)) * len(lengths) / sum(lengths), "to base 10"),
    (lambda lengths: math.log(len(lengths)) / min(lengths), "You divide by the shortest text"),
    (lambda lengths: -cost_of_finding_out(lengths), "The sign"),
]


# --- 11b: the loss of a fresh model -------------------------------------------------------------


def by_formula(vocabulary, d_model, std):
    return math.log(vocabulary) + 0.5 * d_model * std**2


def by_the_mean_of_exponentials(vocabulary, d_model, std):
    return math.log(vocabulary * math.exp(d_model * std * std / 2))


RIGHT[check_initial_loss] = [by_formula, by_the_mean_of_exponentials]


def test_initial_loss_is_a_fresh_model_s():
    sizes = {"vocabulary": 997, "context": 64, "n_layers": 1, "n_heads": 2, "d_model": 64}
    torch.manual_seed(0)
    model = GPT(GPTConfig(**sizes, tied=False))
    ids, targets = torch.randint(997, (2, 32, 64))
    with torch.no_grad():
        model.head.weight.normal_(std=0.15)
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    assert loss.item() == pytest.approx(by_formula(997, 64, 0.15), abs=0.1)


@pytest.mark.parametrize("sizes", [case.inputs for case in check_initial_loss.cases])
def test_the_formula_holds_for_the_cases_of_the_check(sizes):
    vocabulary, d_model, std = sizes
    source = torch.Generator().manual_seed(0)
    logits = std * math.sqrt(d_model) * torch.randn(300, vocabulary, generator=source)
    loss = logits.logsumexp(-1).mean().item()  # the target's own logit is 0 on average
    assert loss == pytest.approx(by_formula(*sizes), abs=0.005)


WRONG[check_initial_loss] = [
    (lambda v, d, s: math.log(v), "That holds for equal logits only"),
    (lambda v, d, s: math.log(v) + d * s * s, "A factor of one half is missing"),
    (lambda v, d, s: math.log(v) + math.sqrt(d) * s / 2, "You use the standard deviation where"),
    (lambda v, d, s: math.log(v) + s * s / 2, "The variance of one weight"),
    (lambda v, d, s: math.log(v) + d * d * s * s / 2, "d_model is squared"),
    (lambda v, d, s: 2 * math.log(v) - by_formula(v, d, s), "The sign"),
    (lambda v, d, s: math.log(v, 2) + d * s * s / 2, "That is bits"),
]


# --- 11b: the bigram ----------------------------------------------------------------------------


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


RIGHT[check_bigram_loss] = [by_index_put, by_counting]


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


WRONG[check_bigram_loss] = [
    (plus_equals, "The pairs are not all counted"),
    (lambda t, h, n: by_index_put(t, h, n, start=0.0), "No smoothing"),
    (lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(0), h), "The columns sum to 1"),
    (
        lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(), h),
        "You divide by the sum of the whole table",
    ),
    (lambda t, h, n: by_index_put(h, h, n), "You count on the held-out stories"),
    (lambda t, h, n: by_index_put(t, t, n), "You measure on the training stories"),
    (lambda t, h, n: by_index_put(torch.cat((h, t)), h, n), "You count on both sets"),
    (
        lambda t, h, n: (
            -(table_of(t, n) / table_of(t, n).sum(1, keepdim=True))[h[:, :-1], h[:, 1:]]
            .mean()
            .log()
        ),
        "You average probabilities",
    ),
    (lambda t, h, n: by_index_put(t.flatten()[None], h, n), "are not a pair: count within stories"),
    (
        lambda t, h, n: by_index_put(t.flatten()[None], h.flatten()[None], n),
        "You flatten both sets",
    ),
    (old_sums, "1 is added to the counts"),
    (unigram, "That is the unigram"),
    (
        lambda t, h, n: by_index_put(t, h, 1 + max(map(max, (t.tolist() + h.tolist())))),
        "The table is as large as the tokens that occur here.",
    ),
    (lambda t, h, n: by_counting(t, h, n) / math.log(2), "That is bits"),
]


# --- 5: the leak --------------------------------------------------------------------------------


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
    """All that comes after position t is drawn anew, and t alone compared."""
    pairs = ((ids[:, : t + 1], ids[:, t + 1 :]) for t in range(ids.shape[1] - 1))
    others = [torch.cat([past, torch.randint_like(rest, vocabulary)], 1) for past, rest in pairs]
    rows = [(model(other) - model(ids))[:, t] for t, other in enumerate(others)]
    return torch.stack(rows).any()


RIGHT[check_leaks] = [by_cutting, by_changing_each_token, by_drawing_anew, at_each_position]


def test_drawing_the_future_anew_finds_every_leak_whatever_the_seed():
    for seed in range(100):
        torch.manual_seed(seed)
        found = [by_drawing_anew(*case.inputs) for case in check_leaks.cases]
        assert found == [False] + [True] * (len(found) - 1)


def by_cutting_exactly(model, ids, vocabulary):
    whole = model(ids)
    ends = range(1, ids.shape[1])
    return any(not torch.equal(model(ids[:, :t]), whole[:, :t]) for t in ends)


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


RIGHT[check_leaks] += [by_cutting_exactly, each_cut()]
WRONG[check_leaks] = [
    (compared_everywhere, "You find a leak in a model that has none"),
    (lambda m, ids, v: not torch.equal(m(ids), m(ids)), "You never find a leak."),
    (lambda m, ids, v: not by_cutting(m, ids, v), "The other way around"),
    (last_token, "You change only the last token (or"),
    (in_halves, "You cut at one place only"),
    (first_position, "You compare only the first position"),
    (lambda m, ids, v: not torch.equal(m(torch.randint(v, ids.shape)), m(ids)), "You find a"),
    (each_cut(first=2), "Your cuts begin too late"),
    (each_cut(last=-1), "Your cuts end too early"),
    (each_cut(width=1, back=1), "You look only at neighbors"),
    (each_cut(change=torch.zeros_like), "You overwrite the future with token 0."),
    (each_cut(atol=1e-4), "A leak may be faint"),
    (each_cut(atol=0.3), "A leak may be faint"),
    (each_cut(verdict=all), "You ask for a leak at every cut"),
    (each_cut(verdict=lambda found: found[-1]), "You change only the last token (or"),
    (each_cut(verdict=lambda found: found[0]), "You compare only the first position (or"),
]


def test_the_right_answer_finds_the_library_s_model_causal():
    model = GPT(GPTConfig(vocabulary=7, context=5, n_layers=2, n_heads=2, d_model=12)).eval()
    ids = torch.randint(7, (2, 5))
    assert not by_changing_each_token(model, ids, 7)
    assert not by_cutting(model, ids, 7)


@pytest.mark.parametrize("exercise", exercises(gpt))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
