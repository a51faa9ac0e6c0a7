"""Chapter 09's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
from diagnoses import exercises, judge_by

from transformer_lib.exercises import encoder_decoder
from transformer_lib.exercises.encoder_decoder import (
    check_may_read,
    check_mended_cross,
    check_parameters,
    check_shifted,
    check_translate,
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


def scaled_and_masked(x, memory, Q, K, V, readable, *, by=0.5, fill=-math.inf, root_of=None):
    scores = torch.einsum("td,sd->ts", x @ Q, memory @ K) / (root_of or Q.shape[1]) ** by
    return torch.where(readable, scores, fill).softmax(-1) @ memory @ V


def averaging(weights):
    def answer(x, memory, Q, K, V, readable):
        scores = torch.einsum("td,sd->ts", x @ Q, memory @ K) / math.sqrt(Q.shape[1])
        return weights(scores, readable) @ (memory @ V)

    return answer


def hiding(hidden):
    def answer(x, memory, Q, K, V, readable):
        scores = torch.einsum("td,sd->ts", x @ Q, memory @ K) / Q.shape[1] ** 0.5
        return torch.where(hidden(scores, readable), -math.inf, scores).softmax(-1) @ memory @ V

    return answer


RIGHT[check_mended_cross] = [cross, by_hand, mended(of=1, hide=1, dim=1)]
WRONG[check_mended_cross] = [
    (as_given, "All three mistakes are still there"),
    (mended(hide=1), "The mask is mended."),
    (mended(dim=1), "The divisor is mended."),
    (mended(of=1), "Your result changes with the padding. Its scores must be -in"),
    (mended(hide=1, dim=1), "The values still come from x"),
    (mended(of=1, dim=1), "Your result changes with the padding. Its scores must be -in"),
    (mended(of=1, hide=1), "The divisor is the root of the number of words"),
    (lambda x, y, *rest: cross(y, y, *rest), "`y` stands where `x` belongs"),
    (swapped, "Now the memory asks"),
    (mended(of=1, hide=1, dim=1, divide=False), "here, at `masked_fill`, your values depart"),
    (late, "Your result changes with the padding. Its scores must be -in"),
    (over_rows, "0 is not the right axis of `softmax`: -1 is"),
    (
        lambda *given: scaled_and_masked(*given, by=0) / 3**0.5,
        "the right computation does `div` there",
    ),
    (averaging(lambda s, r: s * r), "here, at `mul`, your values depart"),
    (
        averaging(lambda s, r: (0 * s).masked_fill(~r, -math.inf).softmax(1)),
        "here, at `mul`, your values depart",
    ),
    (averaging(lambda s, r: s.masked_fill(~r, math.inf).softmax(1)), "its scores are +inf, or"),
    (averaging(lambda s, r: torch.where(r, s.softmax(1), -math.inf)), "weights are -inf"),
    (
        hiding(lambda s, r: torch.arange(len(r)) >= r.sum() - 1),
        "here, at `sum`, your values depart",
    ),
    (
        hiding(lambda scores, readable: ~readable[:, None]),
        "your result holds nan (first at [3, 0]), where a finite numb",
    ),
    (
        hiding(lambda scores, readable: ~readable | (scores * 0 + 1).triu(1).bool()),
        "here, at `mul`, your values depart",
    ),
]

# --- design -------------------------------------------------------------------------------------


def allowed(source, target):
    return (source[:, None, :] > 0).repeat(1, target.shape[1], 1)


def of_the_first(source, target):
    return allowed(source, target)[:1].repeat(len(source), 1, 1)


def with_columns(source, target, *, more=0):
    lengths = (source != 0).sum(1)[:, None, None] + more
    return torch.arange(source.shape[1]).expand(*target.shape, -1) < lengths


RIGHT[check_may_read] = [
    allowed,
    with_columns,
    lambda s, t: torch.stack([torch.stack([row != 0] * t.shape[1]) for row in s]),
]
WRONG[check_may_read] = [
    (lambda s, t: allowed(s, t) & (t != 0)[:, :, None], "with `t >= 0` in place of `t != 0`"),
    (
        lambda s, t: (t != 0)[:, :, None].repeat(1, 1, s.shape[1]),
        "here, at `ne`, your values depart",
    ),
    (
        lambda s, t: allowed(s, t) & torch.ones(t.shape[1], s.shape[1], dtype=torch.bool).tril(),
        "`& torch.ones(t.shape[1], s.shape[1], dtype=torch.boo …` is too much",
    ),
    (
        lambda s, t: torch.ones(*t.shape, s.shape[1], dtype=torch.bool),
        "row 0 of sentence 1 may read where sentence 0 has words. Eac",
    ),
    (lambda s, t: (s > 0)[:, None], "one row for all of the target's tokens"),
    (lambda s, t: s > 0, "once for each sentence"),
    (lambda s, t: torch.ones(*t.shape, s.shape[1]).tril() > 0, "This is the mask against the"),
    (of_the_first, "row 0 of sentence 1 may read where sentence 0 has words"),
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
    (counting(norms=4), "the third norm of the decoder's block, or"),
    (counting(norms=0), "The norms are missing"),
    (counting(attend=False), "without any bias in attention"),
    (counting(attend=False, think=False), "without the biases of attention and feed-forward"),
    (counting(final=2), "You count a norm at the end of each stack"),
    (counting(gain=1), "Each norm has a bias as well"),
    (counting(norms=2), "one norm for each of its parts"),
    (
        lambda d, f, n, v: parameters(d, f, n, v) - 3 * n * d * (d + 1),
        "`- 3 * n * d * (d + 1)` is too much",
    ),
    (counting(parts=1), "have a feed-forward layer, too"),
    (counting(cross=-1, parts=1, norms=2), "the encoder's blocks alone"),
    (counting(cross=0, parts=1, norms=3), "the decoder's blocks alone"),
    (counting(cross=0, norms=4), "You count both stacks alike"),
    (counting(think=False), "without the biases of the feed-forward layers"),
    (counting(attend=False, think=False, gain=1), "the norms' included"),
    (counting(attend=False, think=False, norms=0), "without any bias, and without the norms"),
    (counting(think=True, norms=4), "second biases of both feed-forward layers"),
    (lambda d, f, n, v: parameters(d, f, 1, v), "never uses its argument `n`"),
    (
        lambda d, f, n, v: (
            parameters(d, f, n, v, cross=0, parts=1, norms=3)
            + parameters(d, f, 1, 0, cross=-1, parts=1, norms=2)
        ),
        "`* n` is missing after `parameters(d, f, 1, 0, cross=-1, parts=1, norm",
    ),
    (
        lambda d, f, n, v: (
            parameters(d, f, 1, v, cross=0, parts=1, norms=3)
            + parameters(d, f, n, 0, cross=-1, parts=1, norms=2)
        ),
        "The decoder has n_layers blocks, too",
    ),
]


def test_the_count_is_the_papers_model():
    assert parameters(512, 2048, 6, 37_000) == 63_082_496
    assert check_parameters.right(512, 2048, 6, 37_000) == 63_082_496


# --- translate ----------------------------------------------------------------------------------


def reading(machine, source, encode=True, mask=True):
    words = (source > 0)[:, None, :] if mask else None
    x = machine.source_embedding(source)
    for block in machine.encoder if encode else []:
        x = block(x, mask=words)
    return x


def writing(memory=reading, *, first=1, at=-1, hide=True, **looks):
    """One step more for all sentences until `most`; after its end a sentence is erased."""

    def answer(machine, source, most):
        read = memory(machine, source)
        options = {"memory_mask": (source > 0)[:, None, :] if hide else None}
        text = torch.full([len(source), 1], first)
        while text.shape[1] <= most:
            y = machine.target_embedding(text)
            for block in machine.decoder:
                y = block(y, read, **options, **{"causal": True} | looks)
            scores = machine.target_embedding.logits(y[:, at])
            text = torch.cat([text, scores.argmax(-1, keepdim=True)], 1)
        text = text[:, 1:]
        return text * ((text == 2).cumsum(1) == 0)

    return answer


def by_itself(machine, source, most):
    """Each sentence alone, without its padding, by the model's own functions."""
    lines = []
    for row in source:
        row = row[row > 0][None]
        text = [1]
        while len(text) <= most:
            word = machine(row, torch.tensor([text]))[0, -1].argmax().item()
            if word == 2:
                break
            text.append(word)
        lines.append(text[1:] + [0] * (most + 1 - len(text)))
    return torch.tensor(lines)


def keeping(change):
    """The right text, after a `change` of what is written when a sentence has ended."""

    def answer(machine, source, most):
        read, words = reading(machine, source), (source > 0)[:, None, :]
        text, ended = torch.ones(len(source), 1, dtype=torch.long), torch.zeros(len(source)) > 1
        for _ in range(most):
            y = machine.target_embedding(text)
            for block in machine.decoder:
                y = block(y, read, memory_mask=words, causal=True)
            word = machine.target_embedding.logits(y)[:, -1].argmax(-1)
            word, ended = change(word, ended)
            text = torch.cat([text, word[:, None]], 1)
        return text[:, 1:]

    return answer


def all_at_once(word, ended):
    ended = ended | (word == 2).any()
    return word * ~ended, ended


def with_the_end(word, ended):
    return word * ~ended, ended | (word == 2)


RIGHT[check_translate] = [writing(), by_itself, lambda m, s, n: by_itself(m, s, n).tolist()]
WRONG[check_translate] = [
    (
        lambda m, s, n: torch.cat([torch.ones(len(s), 1).long(), by_itself(m, s, n)], 1),
        "begins with the begin token",
    ),
    (writing(lambda m, s: reading(m, s, encode=False)), "Let the encoder's blocks read it first"),
    (writing(lambda m, s: reading(m, s, mask=False), hide=False), "Both need the mask"),
    (writing(lambda m, s: reading(m, s, mask=False)), "The encoder's words read the padding"),
    (writing(hide=False), "its blocks take `memory_mask`"),
    (writing(causal=False), "read words after them"),
    (writing(first=0), "The decoder begins with padding"),
    (writing(at=0), "from the first row at each step"),
    (keeping(all_at_once), "All sentences end when the first one does"),
    (keeping(lambda word, ended: (word, ended)), "After the end of a sentence words come again"),
    (keeping(with_the_end), "The end token is in your result"),
]


def test_the_machine_of_translate_is_sure_of_every_word():
    """No processor's rounding decides: the second best score is far below."""
    for case in check_translate.cases:
        machine, source, most = case.inputs
        text = by_itself(machine, source, most)
        inputs = torch.cat([torch.ones(len(text), 1).long(), text], 1)[:, :-1]
        best, second = machine(source, inputs).topk(2).values.unbind(-1)
        assert ((best - second)[inputs > 0] > 0.05).all()
    assert len(set((text > 0).sum(1).tolist())) > 2  # sentences of several lengths


@pytest.mark.parametrize("exercise", exercises(encoder_decoder))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
