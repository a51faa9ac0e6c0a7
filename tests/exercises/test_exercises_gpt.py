"""Exercises 1 to 3 of chapter 11: right answers pass, each wrong one gets its own diagnosis."""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import not_attempted, wrong

from transformer_lib.exercises.gpt import (
    check_bigram_loss,
    check_block,
    check_count,
    check_initial_loss,
    check_leaks,
    check_next_token_loss,
)
from transformer_lib.gpt import GPT, GPTConfig

CHECKS = [
    check_next_token_loss,
    check_block,
    check_count,
    check_initial_loss,
    check_bigram_loss,
    check_leaks,
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_stub_is_not_attempted_yet(check):
    not_attempted(check)


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


@pytest.mark.parametrize("answer", [by_cross_entropy, by_loop])
def test_loss_right(answer):
    assert check_next_token_loss(answer).passed


def masked_mean(each, real):
    return (each * real).sum() / real.sum()


def each_loss(logits, targets):
    return F.cross_entropy(logits.mT, targets, reduction="none")


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda x, ids, real: masked_mean(each_loss(x, ids), real), "No shift:"),
        (
            lambda x, ids, real: masked_mean(each_loss(x[:, 1:], ids[:, 1:]), real[:, 1:]),
            "You cut the first position of everything.",
        ),
        (
            lambda x, ids, real: (
                (each_loss(x[:, :-1], ids[:, 1:]) * real[:, 1:]).sum() / real.sum()
            ),
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
            "The mean of each sequence's mean",
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
    ],
)
def test_loss_wrong(answer, diagnosis):
    wrong(check_next_token_loss, lambda logits, ids, real: answer(logits, ids, real), diagnosis)


# --- 2: the block -------------------------------------------------------------------------------


def in_two_lines(x, norm_1, attention, norm_2, feed_forward):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def by_names(x, norm_1, attention, norm_2, feed_forward):
    exchanged = attention(norm_1(x))
    thought = feed_forward(norm_2(x + exchanged))
    return thought + exchanged + x


@pytest.mark.parametrize("answer", [in_two_lines, by_names])
def test_block_right(answer):
    assert check_block(answer).passed


def normalized_stream(x, n1, a, n2, f):
    x = n1(x) + a(n1(x))
    return n2(x) + f(n2(x))


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda x, n1, a, n2, f: n2(n1(x + a(x)) + f(n1(x + a(x)))), "That is post-norm"),
        (lambda x, n1, a, n2, f: f(n2(a(n1(x)))), "The residuals are missing"),
        (normalized_stream, "You add to the normalized copy."),
        (
            lambda x, n1, a, n2, f: x + n1(a(x)) + n2(f(x + n1(a(x)))),
            "You normalize what a sub-layer gives",
        ),
        (lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x)), "Both sub-layers read the same x"),
        (lambda x, n1, a, n2, f: in_two_lines(x, n2, a, n1, f), "The norms are exchanged"),
        (lambda x, n1, a, n2, f: in_two_lines(x, n1, f, n2, a), "The sub-layers are exchanged"),
        (lambda x, n1, a, n2, f: f(n2(x + a(n1(x)))), "The second residual is missing."),
        (lambda x, n1, a, n2, f: a(n1(x)) + f(n2(a(n1(x)))), "The first residual is missing."),
        (lambda x, n1, a, n2, f: x + a(x) + f(x + a(x)), "The norms are missing"),
        (
            lambda x, n1, a, n2, f: in_two_lines(x, n1, a, n2, f).mean(1),
            "On 2 texts of 3 tokens: your result has the shape (2, 5)",
        ),
    ],
)
def test_block_wrong(answer, diagnosis):
    wrong(check_block, answer, diagnosis)


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


@pytest.mark.parametrize("answer", [by_parts, by_the_model])
def test_count_right(answer):
    assert check_count(answer).passed


def test_count_gives_gpt_2():
    assert by_parts(50_257, 1024, 12, 768) == 124_439_808


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda v, c, n, d: by_parts(v, c, n, d) + v * d, "The output is counted once more."),
        (lambda v, c, n, d: by_parts(v, 0, n, d), "The table of positions is missing"),
        (lambda v, c, n, d: by_parts(v, c, n, d) - 2 * d, "The final norm is missing"),
        (lambda v, c, n, d: by_parts(v, c, n, d) - 9 * n * d, "No biases"),
        (lambda v, c, n, d: by_parts(v, c, n, d) - 4 * n * d, "The norms of the block are"),
        (lambda v, c, n, d: by_parts(v, c, n, d) - 2 * n * d, "A block has two norms"),
        (lambda v, c, n, d: by_parts(v, c, n, d) - 4 * n * d - 2 * d, "All norms are missing"),
        (lambda v, c, n, d: (v + c) * d + 12 * n * d * d, "Matrices only"),
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
            "On a small GPT: you have 103,872, right is 104,192.",
        ),
        (lambda v, c, n, d: 10**400, "On a small GPT: your result is inf"),
    ],
)
def test_count_wrong(answer, diagnosis):
    wrong(
        check_count,
        lambda vocabulary, context, n_layers, d_model: answer(
            vocabulary, context, n_layers, d_model
        ),
        diagnosis,
    )
