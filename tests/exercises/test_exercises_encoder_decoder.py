"""Chapter 09's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
from diagnoses import exercises, judge

from transformer_lib.exercises import encoder_decoder
from transformer_lib.exercises.encoder_decoder import (
    check_layers,
    check_may_read,
    check_mended_cross,
    check_parameters,
    check_shifted,
)

RIGHT, WRONG = {}, {}

RIGHT[check_shifted] = ["b", "B", lambda: "(b)"]
WRONG[check_shifted] = [
    ("a", "Each row reads the word that it is to predict"),
    ("c", "This is not shifted"),
    ("d", "no row predicts the first word"),
    ("e", "shifted the other way"),
    ("f", "'f' is not among the choices"),
]

# --- mend ---------------------------------------------------------------------------------------


def cross(x, memory, Q, K, V, readable):
    allowed = readable.expand(len(x), -1)
    options = {"attn_mask": allowed[None]}
    three = (x @ Q)[None], (memory @ K)[None], (memory @ V)[None]
    return torch.nn.functional.scaled_dot_product_attention(*three, **options)[0]


def by_hand(x, memory, Q, K, V, readable):
    memory = memory[readable]
    scores = torch.einsum("td,sd->ts", x @ Q, memory @ K) / math.sqrt(Q.shape[1])
    return scores.softmax(-1) @ memory @ V


def as_given(x, memory, Q, K, V, readable, *, of=None, hide=None, dim=0, divide=True):
    q, k, v = x @ Q, memory @ K, (x if of is None else memory) @ V
    scores = q @ k.T / (k.shape[dim] ** 0.5 if divide else 1)
    scores = scores.masked_fill(readable if hide is None else ~readable, float("-inf"))
    return scores.softmax(dim=-1) @ v


def mended(**options):
    return lambda *inputs: as_given(*inputs, **options)


def swapped(x, memory, Q, K, V, readable):
    return torch.softmax((memory @ Q) @ (x @ K).T / Q.shape[1] ** 0.5, -1) @ x @ V


def late(x, memory, Q, K, V, readable):
    weights = torch.softmax((x @ Q) @ (memory @ K).T / Q.shape[1] ** 0.5, -1)
    return weights.masked_fill(~readable, 0) @ memory @ V


def over_rows(x, memory, Q, K, V, readable):
    scores = torch.where(readable, (x @ Q) @ (memory @ K).T / Q.shape[1] ** 0.5, -math.inf)
    return torch.softmax(scores, 0) @ memory @ V


RIGHT[check_mended_cross] = [cross, by_hand, mended(of=1, hide=1, dim=1)]
WRONG[check_mended_cross] = [
    (as_given, "All three mistakes are still there"),
    (mended(hide=1), "The mask is mended."),
    (mended(dim=1), "The divisor is mended."),
    (mended(of=1), "The values are mended."),
    (mended(hide=1, dim=1), "The values still come from x"),
    (mended(of=1, dim=1), "You hide what may be read"),
    (mended(of=1, hide=1), "The divisor is the root of the number of words"),
    (swapped, "Now the memory asks"),
    (mended(of=1, hide=1, dim=1, divide=False), "no longer divided by √d_k"),
    (late, "You hide the padding after the softmax"),
    (over_rows, "The softmax runs over the rows that ask"),
]

# --- design -------------------------------------------------------------------------------------


def allowed(source, target):
    return (source[:, None, :] > 0).repeat(1, target.shape[1], 1)


RIGHT[check_may_read] = [
    allowed,
    lambda s, t: torch.stack([torch.stack([row != 0] * t.shape[1]) for row in s]),
]
WRONG[check_may_read] = [
    (lambda s, t: allowed(s, t) & (t != 0)[:, :, None], "You hide the target's padding as well"),
    (lambda s, t: (t != 0)[:, :, None].repeat(1, 1, s.shape[1]), "Padding of the *target* decides"),
    (
        lambda s, t: allowed(s, t) & torch.ones(t.shape[1], s.shape[1], dtype=torch.bool).tril(),
        "Cross-attention is not causal",
    ),
    (lambda s, t: (t != 0)[:, None].repeat(1, t.shape[1], 1), "These keys are the target's"),
    (lambda s, t: (s == 0)[:, None].repeat(1, t.shape[1], 1), "the other way around"),
    (lambda s, t: torch.ones(*t.shape, s.shape[1], dtype=torch.bool), "Nothing is hidden"),
    (lambda s, t: allowed(s, t).transpose(1, 2), "The axes are swapped"),
    (lambda s, t: allowed(s, t).logical_or((t == 0)[..., None]), "You open the source's padding"),
    (lambda s, t: (s > 0)[:, None], "one row for all of the target's tokens"),
    (lambda s, t: s > 0, "once for each sentence"),
]

# --- count --------------------------------------------------------------------------------------


def parameters(
    d, f, n, v, *, cross=1, parts=2, tables=1, norms=5, gain=2, attend=True, think=True, final=0
):
    attention = 4 * d * d + 4 * d * attend
    feed_forward = d * f + f * d + (f + d) * think
    blocks = (2 + cross) * attention + parts * feed_forward + gain * d * norms
    return n * blocks + tables * v * d + final * 2 * d


def counting(**options):
    return lambda *sizes: parameters(*sizes, **options)


RIGHT[check_parameters] = [
    parameters,
    lambda d, f, n, v: d * (v + n * (12 * d + 12 + 4 * f + 2 + 10)) + 2 * n * f,
]
WRONG[check_parameters] = [
    (counting(tables=2), "Each side has a table of its own here"),
    (counting(tables=3), "You count three tables"),
    (counting(tables=0), "The table is missing"),
    (counting(cross=0), "no cross-attention"),
    (counting(norms=4), "three norms, one after each part"),
    (counting(norms=0), "The norms are missing"),
    (counting(attend=False), "without any bias in attention"),
    (counting(attend=False, think=False), "without the biases of attention and feed-forward"),
    (counting(final=2), "You count a norm at the end of each stack"),
    (counting(gain=1), "Each norm has a bias as well"),
    (counting(norms=2), "one norm for each of its parts"),
    (lambda d, f, n, v: parameters(d, f, n, v) - 3 * n * d * (d + 1), "The fourth matrix"),
    (counting(parts=1), "have a feed-forward layer, too"),
    (counting(cross=-1, parts=1, norms=2), "the encoder's blocks alone"),
    (counting(cross=0, parts=1, norms=3), "the decoder's blocks alone"),
    (counting(cross=0, norms=4), "You count both stacks alike"),
    (lambda d, f, n, v: parameters(d, f, n, v) + v, "no bias of its own"),
    (counting(think=False), "without the biases of the feed-forward layers"),
    (counting(attend=False, think=False, gain=1), "the norms' included"),
    (counting(attend=False, think=False, norms=0), "without any bias, and without the norms"),
    (lambda d, f, n, v: parameters(d, f, n, v) - 2 * n * d * (f + 1), "has two matrices"),
]


def test_the_count_is_the_papers_model():
    assert parameters(512, 2048, 6, 37_000) == 63_082_496
    assert check_parameters.right(512, 2048, 6, 37_000) == 63_082_496


# --- layers -------------------------------------------------------------------------------------


def by_trying(n, width):
    layers, reached = 0, n - 1
    while reached > 0:
        layers, reached = layers + 1, reached - (width - 1)
    return layers


RIGHT[check_layers] = [by_trying, lambda n, width: math.ceil((n - 1) / (width - 1))]
WRONG[check_layers] = [
    (lambda n, width: math.ceil(n / width), "is the paper's order of growth"),
    (lambda n, width: math.ceil(n / (width - 1)), "it is n − 1 steps back, not n."),
    (lambda n, width: (n - 1) // (width - 1), "Rounded down"),
    (lambda n, width: n - 1, "That is a recurrence"),
    (lambda n, width: 1, "That is attention."),
    (lambda n, width: math.ceil(math.log(n, width)), "(a dilated convolution)"),
    (lambda n, width: math.log(n) / math.log(width), "not yet rounded up"),
    (lambda n, width: (n - 1) / (width - 1), "round the quotient up"),
    (lambda n, width: n // width, "not width, and it is n − 1"),
    (lambda n, width: n // (width - 1), "It is n − 1 steps from"),
    (lambda n, width: math.ceil((n - width) / (width - 1)), "no step is free"),
    (lambda n, width: math.ceil((n - 1) / ((width - 1) / 2)), "half of the width on either side"),
]


@pytest.mark.parametrize("exercise", exercises(encoder_decoder))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
