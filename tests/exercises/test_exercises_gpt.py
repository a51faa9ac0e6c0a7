"""Chapter 11's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by

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
    (
        lambda x, ids, real: masked_mean(each_loss(x, ids), real),
        "your result is what comes out if nothing is shifted.",
    ),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, 1:], ids[:, 1:]), real[:, 1:]),
        "your result is what comes out if the first position of all i",
    ),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum() / real.sum(),
        "your result is what comes out if the sum is divided by all r",
    ),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, 1:], ids[:, :-1]), real[:, :-1]),
        "your result is what comes out if the shift goes the other wa",
    ),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, :-2], ids[:, 2:]), real[:, 2:]),
        "your result is what comes out if the targets are shifted by two.",
    ),
    (
        lambda x, ids, real: each_loss(x[:, :-1], ids[:, 1:]).mean(),
        "your result is what comes out if the padding counts.",
    ),
    (
        lambda x, ids, real: masked_mean(each_loss(x[:, :-1], ids[:, 1:]), real[:, :-1]),
        "your result is what comes out if `real` is taken at the posi",
    ),
    (
        lambda x, ids, real: (
            sum(
                by_cross_entropy(x[i : i + 1], ids[i : i + 1], real[i : i + 1])
                for i in range(len(ids))
            )
            / len(ids)
        ),
        "your result is what comes out if each text has a mean of its",
    ),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).mean(),
        "your result is what comes out if what does not count stays i",
    ),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum(),
        "your result is what comes out if the sum is taken, not the m",
    ),
    (
        lambda *given: by_cross_entropy(*given) * math.log2(math.e),
        "`* math.log2(math.e)` is too much",
    ),
    (
        lambda x, *given: by_cross_entropy(x.softmax(2), *given),
        "`.softmax(2)` is one step too many",
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
        "your result is what comes out if the softmax is missing.",
    ),
    (
        lambda x, ids, real: masked_mean((x[:, :-1].argmax(2) == ids[:, 1:]).float(), real[:, 1:]),
        "here, at `argmax`, your values depart",
    ),
]


def targets_chances(x, ids):
    return x[:, :-1].softmax(2).gather(2, ids[:, 1:, None])[..., 0]


def lengths(real):
    return real.sum(1, keepdim=True)


WRONG[check_next_token_loss] += [
    (
        lambda x, ids, real: -masked_mean(targets_chances(x, ids), real[:, 1:]).log(),
        "here, at `softmax`, your values depart",
    ),
    (
        lambda x, ids, real: masked_mean(targets_chances(x, ids), real[:, 1:]),
        "here, at `softmax`, your values depart",
    ),
    (
        lambda x, ids, real: (-masked_mean(each_loss(x[:, :-1], ids[:, 1:]), real[:, 1:])).exp(),
        "here, at `mul`, your values depart",
    ),
    (lambda x, ids, real: by_cross_entropy(x[:1], ids[:1], real[:1]), "Only the first text counts"),
    (
        lambda x, ids, real: (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum() / 14,
        "On 3 sequences, two of them padded: you divide the sum of all losses by 14: there are 12",
    ),
    (
        lambda x, ids, real: each_loss(
            (x * real.roll(-1, 1)[..., None])[:, :-1], ids[:, 1:]
        ).mean(),
        "The padding's logits are set to 0",
    ),
    (
        lambda x, ids, real: masked_mean(
            F.cross_entropy(x[:, :-1], ids[:, 1:], reduction="none"), real[:, 1:]
        ),
        "`cross_entropy` looks for the classes along axis 1",
    ),
    (
        lambda x, ids, real: F.cross_entropy(x[real][:-1], ids[real][1:]),
        "The real tokens of all texts stand in one row",
    ),
    (
        lambda x, ids, real: F.cross_entropy(x.flatten(0, 1), ids.flatten()),
        "your result is what comes out if nothing is shifted, and the padding counts.",
    ),
    (
        lambda x, ids, real: (
            F.binary_cross_entropy_with_logits(
                x[:, :-1][real[:, 1:]], F.one_hot(ids[:, 1:][real[:, 1:]], x.shape[2]).float()
            )
            * x.shape[2]
        ),
        "if each entry of the vocabulary is a question of its own, yes or no (a binary loss).",
    ),
    (
        lambda x, ids, real: F.cross_entropy(x[:, :-1].flatten(0, 1), ids.flatten()),
        "There must be a target for each row of logits",
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
    (
        with_tables(places=lambda ids: ids),
        "your result is what comes out if a token's id picks its row ",
    ),
    (
        lambda i, E, P, b, n: n(b[-1](E[i] + P[: i.shape[1]])) @ E.T,
        "your result is what comes out if only the last block counts.",
    ),
    (with_tables(places=lambda ids: range(1, ids.shape[1] + 1)), "Row 0 of P belongs"),
    (
        with_tables(places=lambda ids: 0),
        "your result is what comes out if every token gets row 0 of P",
    ),
    (
        with_tables(step=lambda block, x, norm: x + block(x)),
        "your result is what comes out if the first x is added to the",
    ),
    (
        lambda i, E, P, b, n: with_tables(step=lambda b, x, _: n(b(x)))(i, E, P, b, lambda x: x),
        "not after each of them.",
    ),
    (with_tables(step=lambda b, x, norm: norm(b(x))), "not after each of them."),
    (
        lambda i, E, P, b, n: six_lines(i, E, P, b, lambda x: x),
        "your result is what comes out if the final norm is left out.",
    ),
    (normed_first, "The norm comes before the first block."),
    (lambda *given: six_lines(*given).softmax(-1), "`.softmax(-1)` is one step too many"),
    (lambda i, E, P, b, n: six_lines(i, E, P * 0, b, n), "`* 0` is too much"),
    (
        lambda i, E, P, b, n: six_lines(i, E, P, [b[0]], n),
        "your result is what comes out if only the first block counts",
    ),
    (
        lambda i, E, P, b, n: with_tables(step=lambda f, x, _: f(x + P[: i.shape[1]]))(
            i, E, 0 * P, b, n
        ),
        "The rows of P are added again",
    ),
    (
        with_tables(places=lambda ids: range(len(ids))),
        "your result is what comes out if every token gets row 0 of P",
    ),
    (
        with_tables(places=lambda ids: [*range(ids.shape[1])][::-1]),
        "it must come in reverse order: `(P[places(ids)]).flip(0)`",
    ),
    (
        lambda i, E, P, b, n: n(torch.stack([f(E[i] + P[: i.shape[1]]) for f in b]).sum(0)) @ E.T,
        "your result is what comes out if each block reads the first ",
    ),
    (
        lambda i, E, P, b, n: six_lines(i, E, 0 * P, [*b, lambda x: x + P[: i.shape[1]]], n),
        "The rows of P are added after the blocks",
    ),
    (
        lambda *given: six_lines(*given).softmax(-1).log(),
        "your result is what comes out if there is a log_softmax at t",
    ),
    (
        with_tables(places=lambda ids: ids.shape[1]),
        "your result is what comes out if every token gets the same row of P, number ids.shape[1].",
    ),
    (
        lambda i, E, P, b, n: (n(torch.nn.Sequential(*b)(E[i])) @ E.T).softmax(-1),
        "your result is what comes out if P is left out, and there is a softmax at the end.",
    ),
    (
        lambda i, E, P, b, n: n(E[i] + torch.nn.Sequential(*b)(E[i])) @ E.T,
        "if P is left out, and the first x is added to the blocks' result.",
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
    (lambda v, c, n, d: by_parts(v, c, n, d) + v * d, "`+ v * d` is too much"),
    (
        lambda v, c, n, d: by_parts(v, 0, n, d),
        "with `lambda v, c, n, d: by_parts(v + c, 0, n, d)` in",
    ),
    (
        lambda v, c, n, d: by_parts(v, c, n, d) - 4 * n * d - 2 * d,
        "your result has `2 * d_model + 4 * n_layers * d_model` too little.",
    ),
    (
        lambda v, c, n, d: (v + c) * d + 12 * n * d * d,
        "has `2 * d_model + 13 * n_layers * d_model` too little.",
    ),
    (lambda v, c, n, d: by_parts(v, c, 1, d), "You count one block"),
    (lambda v, c, n, d: 10**400, "On a small GPT: your result is inf"),
    (
        lambda v, c, n, d: n * by_parts(v, c, 1, d),
        "+ context * n_layers * d_model + vocabulary * n_layers * d_model` too",
    ),
    (
        lambda v, c, n, d: 1.0 * by_parts(v, c, n, d),
        "On a small GPT: a count is a whole number, and yours is a float",
    ),
    (
        lambda v, c, n, d: by_parts(torch.tensor(v), c, n, d) / 1,
        "On a small GPT: a count is a whole number, and yours is a float",
    ),
]


WRONG[check_count] += [
    (
        lambda v, c, n, d: v + c + by_parts(0, 0, n, d),
        "`* d` is missing",
    ),
    (
        lambda v, c, n, d: by_parts(v, c, n, d) - (n - 1) * (8 * d * d + 5 * d) - 2 * d,
        "`5 * n_layers * d_model + 8 * n_layers * d_model ** 2` too little.",
    ),
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
    (lambda lengths: math.log(len(lengths)), "ln n is the cost of one whole text"),
    (lambda lengths: math.log(len(lengths)) / sum(lengths), "one divided by `len(lengths)`."),
    (
        lambda lengths: torch.tensor([math.log(len(lengths)) / n for n in lengths]).mean(),
        "A mean of means",
    ),
    (lambda lengths: math.log(len(lengths)) / max(lengths), "the mean belongs here"),
    (lambda lengths: math.log(len(lengths)) / len(lengths), "You divide by the number of texts"),
    (lambda lengths: math.log(sum(lengths)) * len(lengths) / sum(lengths), "You take ln of"),
    (
        lambda lengths: math.log2(len(lengths)) * len(lengths) / sum(lengths),
        "with `log` in place of `log2`",
    ),
    (lambda lengths: math.log(len(lengths)) / min(lengths), "the mean belongs here"),
    (
        lambda lengths: -cost_of_finding_out(lengths),
        "the sign before `cost_of_finding_out(lengths)` is one too many",
    ),
    (lambda lengths: len(lengths) / sum(lengths), "You divide the number of texts by the number"),
    (
        lambda lengths: math.log(len(lengths)) * sum(lengths) / len(lengths),
        "you have 98.51; it should be 0.04389.",
    ),
    (
        lambda lengths: sum(math.log(n) for n in lengths) / sum(lengths),
        "You take the logarithm of each length.",
    ),
    (
        lambda lengths: len(lengths) * math.log(len(lengths)),
        "you have 16.64; it should be 0.04389.",
    ),
    (
        lambda lengths: math.log(2000) * len(lengths) / sum(lengths),
        "2000 is written down where `len(lengths)` belongs",
    ),
    (
        lambda lengths: math.log1p(len(lengths)) * len(lengths) / sum(lengths),
        "it is one too large: `lambda lengths: math.log1p(len(lengths) - 1)",
    ),
    (
        lambda lengths: (
            torch.distributions.Categorical(torch.tensor(lengths).double()).entropy()
            * len(lengths)
            / sum(lengths)
        ),
        "booleans are asked for: `(torch.tensor(lengths).double()).bool()` in p",
    ),
    (
        lambda lengths: math.log(len(lengths)) / lengths[0],
        "you have 0.04836; it should be 0.04389.",
    ),
    (
        lambda lengths: math.log(len(lengths)) / (1.5 + max(lengths)),
        "you have 0.0368; it should be 0.04389.",
    ),
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
    (
        lambda v, d, s: math.log(v) + d * s * s,
        "it is twice as large as it should be: `((d * s * s) / 2)` in place of `d * s * s`",
    ),
    (
        lambda v, d, s: math.log(v) + math.sqrt(d) * s / 2,
        "a square is missing: `(math.sqrt(d) * s) ** 2` in place of `math.sqrt(",
    ),
    (lambda v, d, s: math.log(v) + s * s / 2, "`* d` is missing after `s * s / 2`"),
    (lambda v, d, s: math.log(v) + math.sqrt(d) * s * s / 2, "`math.sqrt` is one step too many"),
    (lambda v, d, s: math.log(v) + s * s / d, "That is ln V, for equal logits"),
    (lambda v, d, s: d * s * s / 2, "That is half the variance of a logit"),
    (lambda v, d, s: v + d * s * s / 2, "The logarithm of the vocabulary is missing"),
    (lambda v, d, s: by_formula(v, d, 0.02), "never uses its argument `s`"),
    (lambda v, d, s: math.log(v) * d * s * s / 2, "You multiply ln V by what must be added"),
    (lambda v, d, s: v * math.exp(d * s * s / 2), "That is V times the mean of e to the power"),
    (lambda v, d, s: math.log(v + d * s * s / 2), "That is ln V, for equal logits"),
    (
        lambda v, d, s: math.log(v) + math.sqrt(d) * s,
        "On GPT-2 small: you add 1 · d_model^0.5 · std^1 to ln V.",
    ),
    (
        lambda v, d, s: math.log(v) - 2 * d * s,
        "On GPT-2 small: you add -2 · d_model^1 · std^1 to ln V.",
    ),
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
    counts = torch.bincount((train[:, :-1] * size + train[:, 1:]).flatten(), minlength=size**2)
    return 1.0 + counts.view(size, size)


def measured(table, held_out):
    return -table[held_out[:, :-1], held_out[:, 1:]].log().mean()


def unigram(train, held_out, size):
    counts = torch.ones(size)
    for story in train.tolist():
        for token in story[1:]:
            counts[token] += 1
    return -(counts / counts.sum())[held_out[:, 1:]].log().mean()


def divided(counts):
    return counts / counts.sum(1, keepdim=True)


def every_pair(stories):
    return [pair for story in stories.tolist() for pair in pairwise(story)]


def pairs_of(stories):
    return sorted(set(every_pair(stories)))


def by_all_occurrences(train, held_out, size):
    often = Counter(train.flatten().tolist())
    table = table_of(train, size)
    for token in range(size):
        table[token] /= often[token] + size
    return measured(table, held_out)


WRONG[check_bigram_loss] = [
    (plus_equals, "your result is what comes out if each pair counts once, howe"),
    (lambda t, h, n: by_index_put(t, h, n, start=0.0), "without `start=0.0` it is right"),
    (
        lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(0), h),
        "your result is what comes out if each column is divided by i",
    ),
    (
        lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(), h),
        "it must be taken over each row: `dim=-1, keepdim=True`",
    ),
    (lambda t, h, n: by_index_put(h, h, n), "`h` stands where `t` belongs"),
    (
        lambda t, h, n: measured(table_of(t, n) / (table_of(t, n).sum(1, keepdim=True) - n + 1), h),
        "the sum of a row grows by `size`",
    ),
    (lambda t, h, n: by_index_put(torch.cat((h, t)), h, n), "You count in both sets"),
    (
        lambda t, h, n: (
            -(table_of(t, n) / table_of(t, n).sum(1, keepdim=True))[h[:, :-1], h[:, 1:]]
            .mean()
            .log()
        ),
        "your result is what comes out if the probabilities are avera",
    ),
    (
        lambda t, h, n: by_index_put(t.flatten()[None], h, n),
        "your result is what comes out if the last token of a story a",
    ),
    (
        lambda t, h, n: by_index_put(t.flatten()[None], h.flatten()[None], n),
        "You flatten both sets",
    ),
    (unigram, "That is the unigram"),
    (
        lambda t, h, n: by_index_put(t, h, 1 + max(map(max, (t.tolist() + h.tolist())))),
        "here, at `index_put`, your values depart",
    ),
    (by_all_occurrences, "You divide by how often a token occurs."),
    (
        lambda t, h, n: measured(divided(table_of(t, n) - 1).nan_to_num() + 1, h),
        "1 is added to the probabilities",
    ),
    (
        lambda t, h, n: measured(table_of(t, n) / table_of(t, n).sum(1), h),
        "if the sums of the rows divide the columns (`keepdim=True` is missing).",
    ),
    (
        lambda t, h, n: measured(divided(table_of(t[:, :2], n)), h) / math.log(2),
        "if only the first pair of each story is counted, and the result is in bits.",
    ),
    (
        lambda t, h, n: measured(table_of(t, n).softmax(1), h),
        "a logarithm is missing: `(table_of(t, n)).log()` in place of `table_of",
    ),
    (
        lambda t, h, n: measured(
            divided(table_of(t, n) - 1).nan_to_num(),
            torch.tensor([pair for pair in every_pair(h) if pair in pairs_of(t)]),
        ),
        "Pairs that training has never seen are left out.",
    ),
    (lambda t, h, n: math.log(n), "your result is what comes out if each pair is counted in both"),
]


# --- 5: the leak --------------------------------------------------------------------------------


def by_cutting(model, ids, vocabulary):
    """A text that ends at t has the logits of the longer text up to there."""
    whole = model(ids)
    ends = range(1, ids.shape[1])
    return any(not torch.equal(model(ids[:, :t]), whole[:, :t]) for t in ends)


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


RIGHT[check_leaks] += [by_cutting, each_cut()]


def changes_pile_up(model, ids, vocabulary):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        ids[:, t:] = torch.randint_like(ids[:, t:], vocabulary)
        if not torch.equal(model(ids)[:, :t], before[:, :t]):
            return True
    return False


def by_tolerance(model, ids, vocabulary):
    before = model(ids)
    for t in range(1, ids.shape[1]):
        other = torch.cat([ids[:, :t], torch.randint_like(ids[:, t:], vocabulary)], dim=1)
        if not torch.allclose(model(other)[:, :t], before[:, :t]):
            return True
    return False


WRONG[check_leaks] = [
    (compared_everywhere, "You find a leak in a model that has none"),
    (changes_pile_up, "you write into the argument `ids` on line "),
    (lambda m, ids, v: not torch.equal(m(ids), m(ids)), "You never find a leak."),
    (
        lambda m, ids, v: not by_cutting(m, ids, v),
        "`not by_cutting(m, ids, v)` is inverted: `by_cutting(m, ids, v)` is ri",
    ),
    (last_token, "You change only the last token (or"),
    (in_halves, "You cut at one place only"),
    (first_position, "You compare only the first position"),
    (lambda m, ids, v: not torch.equal(m(torch.randint(v, ids.shape)), m(ids)), "You find a"),
    (each_cut(first=2), "Your cuts begin too late"),
    (each_cut(last=-1), "`+ last` is too much"),
    (by_tolerance, "on a model of whole logits that leaks faintly: you say False"),
    (each_cut(width=1, back=1), "`max` is one step too many"),
    (each_cut(change=torch.zeros_like), "You overwrite the future with token 0."),
    (each_cut(verdict=all), "You ask for a leak at every cut"),
    (each_cut(verdict=lambda found: found[-1]), "You change only the last token (or"),
    (each_cut(verdict=lambda found: found[0]), "You compare only the first position (or"),
    (
        lambda m, ids, v: each_cut(change=lambda x: ids.unique()[torch.randint(3, x.shape)])(
            m, ids, v
        ),
        "without `change=lambda x: ids.unique()[torch.randint(3, x.shape)]` it ",
    ),
    (
        lambda m, ids, v: each_cut(change=lambda x: torch.randint_like(x, int(ids.max()) + 1))(
            m, ids, v
        ),
        "without `change=lambda x: torch.randint_like(x, int(ids.max()) + 1)` i",
    ),
    (
        lambda m, ids, v: not torch.equal(m(torch.cat([ids, ids[:, :1]], 1))[:, :-1], m(ids)),
        "the model reads 7 tokens: change some of them, add none",
    ),
    (
        lambda m, ids, v: not torch.equal(m(ids + 1)[:, 0], m(ids)[:, 0]),
        "your function never uses its argument `v`.",
    ),
]


def test_the_right_answer_finds_the_library_s_model_causal():
    model = GPT(GPTConfig(vocabulary=7, context=5, n_layers=2, n_heads=2, d_model=12)).eval()
    ids = torch.randint(7, (2, 5))
    assert not by_changing_each_token(model, ids, 7)
    assert not by_drawing_anew(model, ids, 7)


@pytest.mark.parametrize("exercise", exercises(gpt))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
