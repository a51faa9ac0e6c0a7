"""Chapter 07's checks on scores: right answers pass, each mistake gets its own sentence."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises import positions_in_scores as checks
from transformer_lib.positions import shift_matrix

# --- rotary attention


def turn(x, direction=1.0, first=0):
    """By complex numbers."""
    angles = torch.arange(first, first + len(x))[:, None] / 10_000 ** (
        torch.arange(0, x.shape[1], 2) / x.shape[1]
    )
    hands = torch.view_as_complex(x.reshape(len(x), -1, 2).contiguous())
    return torch.view_as_real(hands * torch.exp(1j * direction * angles)).flatten(1)


def attend(q, k, v):
    return torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=1) @ v


def by_loop(q, k, v):
    rows = []
    for p in range(len(q)):
        scores = []
        for s in range(len(k)):
            score = 0.0
            for i in range(q.shape[1] // 2):
                a = (p - s) / 10_000 ** (2 * i / q.shape[1])
                (q0, q1), (k0, k1) = q[p, 2 * i : 2 * i + 2], k[s, 2 * i : 2 * i + 2]
                score += math.cos(a) * (q0 * k0 + q1 * k1) + math.sin(a) * (q0 * k1 - q1 * k0)
            scores.append(score / math.sqrt(q.shape[1]))
        rows.append(torch.softmax(torch.stack(scores), dim=0) @ v)
    return torch.stack(rows)


def rotate_half(x):
    half = x.shape[1] // 2
    angles = torch.arange(len(x))[:, None] / 10_000 ** (torch.arange(half) / half)
    cosine, sine = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    return x * cosine + torch.cat([-x[:, half:], x[:, :half]], 1) * sine


def shifted(x):
    """By the matrix that moves the encoding on, which has its minus below the diagonal."""
    return torch.stack([shift_matrix(p, x.shape[1]) @ row for p, row in enumerate(x)])


CLOCKWISE = (
    "You turn both clockwise. The scores know the distance then, too, but the task asks for "
    "counterclockwise: the minus stands above the diagonal."
)


def encoding(x):
    return torch.view_as_real(
        1j
        * torch.view_as_complex(
            turn(torch.tensor([1.0, 0.0]).repeat(len(x), x.shape[1] // 2), -1).reshape(
                len(x), -1, 2
            )
        )
    ).flatten(1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda q, k, v: F.scaled_dot_product_attention(turn(q)[None], turn(k)[None], v[None])[0],
        lambda q, k, v: attend(turn(q, first=100), turn(k, first=100), v),  # distance is all
        by_loop,
    ],
)
def test_rotary_accepts(answer):
    assert checks.check_rotary_attention(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda q, k, v: attend(turn(q), turn(k), turn(v)),
            "The values are turned as well. Only queries and keys are: a value says what, not "
            "where.",
        ),
        (
            lambda q, k, v: attend(turn(q), k, v),
            "Only the queries are turned; the angle between query and key then depends on the "
            "query's own position.",
        ),
        (
            lambda q, k, v: attend(q, turn(k), v),
            "Only the keys are turned; the queries must turn, too.",
        ),
        (
            lambda q, k, v: attend(q + encoding(q), k + encoding(k), v),
            "You add an encoding to queries and keys; rotary positions turn them.",
        ),
        (
            lambda q, k, v: attend(turn(q, 2.0), turn(k, 2.0), v),
            "You turn by twice the angle: it is p / base^(2i/d), once.",
        ),
        (
            lambda q, k, v: attend(turn(q), turn(k, -1.0), v),
            "Queries and keys turn in opposite directions, so the score depends on the sum of the "
            "positions, not on their difference.",
        ),
        (
            lambda q, k, v: attend(turn(q, -1.0), turn(k, -1.0), v),
            CLOCKWISE,
        ),
        (
            lambda q, k, v: attend(shifted(q), shifted(k), v),
            CLOCKWISE,
        ),
        (
            lambda q, k, v: attend(rotate_half(q), rotate_half(k), v),
            "You pair component i with i + d/2, as Hugging Face's Llama checkpoints do; here the "
            "pairs are (2i, 2i+1).",
        ),
        (attend, "Nothing is turned: this is attention without positions."),
        (
            lambda q, k, v: torch.softmax(turn(q) @ turn(k).T, dim=1) @ v,
            "The division of the scores by √d is missing.",
        ),
    ],
)
def test_rotary_diagnoses(answer, diagnosis):
    verdict = checks.check_rotary_attention(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- ALiBi


def slopes(n, first=1):
    return torch.tensor([2 ** (-8 * h / n) for h in range(first, n + first)])


def alibi(scores, m=None, sign=-1, causal=True):
    heads, t, _ = scores.shape
    m = slopes(heads) if m is None else m
    out = torch.empty_like(scores)
    for h in range(heads):
        for i in range(t):
            row = [scores[h, i, j] + sign * m[h] * abs(i - j) for j in range(t)]
            row = [-math.inf if causal and j > i else s for j, s in enumerate(row)]
            out[h, i] = torch.softmax(torch.tensor(row), dim=0)
    return out


def by_columns(scores):
    """A row's constant drops out of its softmax: m·j alone does, under the causal mask."""
    heads, t, _ = scores.shape
    biased = scores + slopes(heads)[:, None, None] * torch.arange(t)
    return torch.softmax(biased.masked_fill(~torch.ones(t, t).tril().bool(), -math.inf), -1)


def after(scores, again=False):
    heads, t, _ = scores.shape
    far = (torch.arange(t)[:, None] - torch.arange(t)).clamp(min=0)
    weights = alibi(scores, torch.zeros(heads)) - slopes(heads)[:, None, None] * far
    return weights / weights.sum(-1, keepdim=True) if again else weights


def from_start(scores):
    heads, t, _ = scores.shape
    biased = scores - slopes(heads)[:, None, None] * torch.arange(t)
    return torch.softmax(biased.masked_fill(~torch.ones(t, t).tril().bool(), -math.inf), -1)


@pytest.mark.parametrize("answer", [alibi, by_columns])
def test_alibi_accepts(answer):
    assert checks.check_alibi_weights(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda s: alibi(s, sign=1),
            "The weights grow with the distance: the nearest key must lose least.",
        ),
        (
            lambda s: alibi(s, slopes(len(s))[:1].repeat(len(s))),
            "All heads have the same slope: head h has 2^(−8h/n), h from 1.",
        ),
        (
            lambda s: alibi(s, slopes(len(s), first=0)),
            "Your slopes start at 2^0: the first head has h = 1.",
        ),
        (
            lambda s: alibi(s, slopes(len(s)).flip(0)),
            "The slopes stand in reverse: the first head is the steepest.",
        ),
        (after, "The penalty is subtracted after the softmax: it belongs on the scores, before."),
        (
            lambda s: after(s, again=True),
            "The penalty is subtracted after the softmax and the rows are divided by their new "
            "sum: it belongs on the scores, before.",
        ),
        (
            lambda s: alibi(s, causal=False),
            "The future is not hidden: a query may see itself and what stands before it.",
        ),
        (
            from_start,  # −m·j is the same as +m·(i − j), up to a constant in each row
            "The weights grow with the distance: the nearest key must lose least.",
        ),
        (
            lambda s: alibi(s, torch.zeros(len(s))),
            "There is no penalty in your weights: this is plain causal attention.",
        ),
    ],
)
def test_alibi_diagnoses(answer, diagnosis):
    verdict = checks.check_alibi_weights(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


def test_writing_into_the_scores_is_named():
    def in_place(scores):
        heads, t, _ = scores.shape
        scores += slopes(heads)[:, None, None] * torch.arange(t)
        scores.masked_fill_(~torch.ones(t, t).tril().bool(), -math.inf)
        return torch.softmax(scores, -1)

    assert "you write into the argument `scores`" in checks.check_alibi_weights(in_place).diagnosis


def test_stubs_are_not_attempted():
    assert checks.check_rotary_attention(lambda q, k, v: ...).passed is None
    assert checks.check_alibi_weights(lambda scores: None).passed is None
