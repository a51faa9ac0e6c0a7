"""Chapter 07c's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by

from transformer_lib.attention import attention
from transformer_lib.exercises import turn_do_not_add
from transformer_lib.exercises.turn_do_not_add import (
    check_alibi_weights,
    check_halves_order,
    check_previous_word,
    check_rotary_attention,
    check_who_notices,
)
from transformer_lib.positions import (
    alibi_bias,
    apply_rotary,
    rotary_angles,
    shift_matrix,
    sinusoidal_encoding,
)

RIGHT, WRONG = {}, {}

# --- who notices?

RIGHT[check_who_notices] = ["ade", {"a", "d", "e"}, lambda: ["E", "a", "D"]]
WRONG[check_who_notices] = [
    ("abde", "b does not belong: query and key are both turned"),
    ("acde", "c does not belong: every distance"),
    ("adef", "f does not belong: there is nothing"),
    ("de", "a is missing: the products of"),
    ("ae", "d is missing: the angle between"),
    ("ad", "e is missing: the weights stay"),
    ("g", "'g' is not among the choices"),
]


def test_who_notices_is_so():
    torch.manual_seed(0)
    x, W_Q, W_K = (m.double() for m in (torch.randn(7, 10), *torch.randn(2, 10, 10)))

    def outputs(start):
        q, k = x @ W_Q, x @ W_K
        placed = x + sinusoidal_encoding(7, 10, start=start, dtype=x.dtype)
        angles = rotary_angles(7, 10, start=start, dtype=x.dtype)
        Q, K, V = (apply_rotary(one, angles) for one in (q, k, x))
        bias = alibi_bias(1, 7 + start, 7 + start, dtype=x.dtype)[0, start:, start:]
        return {
            "a": attention(placed @ W_Q, placed @ W_K, x),
            "b": attention(Q, K, x),
            "c": (q @ k.T / 10**0.5 + bias).softmax(-1) @ x,
            "d": attention(Q, k, x),
            "e": attention(Q, K, V),
            "f": attention(q, k, x),
        }

    here, far = outputs(0), outputs(100)
    changed = {name for name in here if not torch.allclose(here[name], far[name])}
    assert changed == check_who_notices.right


# --- pairs into halves


RIGHT[check_halves_order] = [
    lambda d: torch.tensor([*range(0, d, 2), *range(1, d, 2)]),
    lambda d: torch.arange(d).reshape(d // 2, 2).T.flatten(),
    lambda d: [*range(0, d, 2), *range(1, d, 2)],
]


WRONG[check_halves_order] = [
    (
        lambda d: torch.arange(d).reshape(2, d // 2).T.flatten(),
        "with `d // 2, 2` in place of `2, d // 2`",
    ),
    (lambda d: torch.arange(d), "the first half of your order holds component 1, which is the"),
    (
        lambda d: torch.tensor([*range(1, d, 2), *range(0, d, 2)]),
        "the first half of your order holds component 1, which is the",
    ),
    (
        lambda d: torch.tensor([*range(d // 2, d), *range(d // 2)]),
        "the first half of your order holds component 5, which is the",
    ),
    (lambda d: [*range(0, d, 2), *range(d - 1, 0, -2)], "The second half is in reverse order"),
    (
        lambda d: torch.arange(d).view(-1, 2, 2).mT.flatten(),
        "A reshape keeps every number: the sizes must multiply to 10.",
    ),
    (lambda d: torch.eye(d).long(), "his is a matrix."),
    (
        lambda d: [j + 1 if j % 2 == 0 else j - 1 for j in range(d)],
        "the first half of your order holds component 1, which is the",
    ),
    (lambda d: [*range(1, d, 2), *range(2, d + 1, 2)], "there is no component 10"),
    (lambda d: [*range(0, d, 2)] * 2, "omponent 0 stands in your order 2 times, and component 1"),
    (
        lambda d: [i % d for i in (*range(2, d + 2, 2), *range(1, d, 2))],
        "component 2 is at place 0: there belongs the first of that pair, 0.",
    ),
    (
        lambda d: [*range(0, d, 4), *range(1, d, 4), *range(2, d, 4), *range(3, d, 4)],
        "component 1, which",
    ),
]


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
    """By the matrix that moves the encoding on, which has its minus above the diagonal."""
    return torch.stack([row @ shift_matrix(p, x.shape[1]) for p, row in enumerate(x)])


CLOCKWISE = "You turn both clockwise."


def encoding(x):
    return torch.view_as_real(
        1j
        * torch.view_as_complex(
            turn(torch.tensor([1.0, 0.0]).repeat(len(x), x.shape[1] // 2), -1).reshape(
                len(x), -1, 2
            )
        )
    ).flatten(1)


RIGHT[check_rotary_attention] = [
    lambda q, k, v: F.scaled_dot_product_attention(turn(q)[None], turn(k)[None], v[None])[0],
    lambda q, k, v: attend(turn(q, first=100), turn(k, first=100), v),  # distance is all
    by_loop,
]


WRONG[check_rotary_attention] = [
    (
        lambda q, k, v: torch.softmax(turn(q) @ turn(k).T, -1) @ turn(v),
        "here, at `matmul`, your values depart",
    ),
    (
        lambda q, k, v: torch.softmax(turn(q) @ turn(k).T / q.shape[0] ** 0.5, 1) @ v,
        "turn(k).T / q.shape[-1] ** 0.5, 1) @ v` in its place",
    ),
    (
        lambda q, k, v: torch.softmax(turn(q) @ turn(k).T / q.shape[1] ** 0.5, 0) @ v,
        "0 is not the right axis of `softmax`: -1 is",
    ),
    (
        lambda q, k, v: F.scaled_dot_product_attention(
            turn(q)[None], turn(k)[None], v[None], is_causal=True
        )[0],
        "here, at `scaled_dot_product_attention`",
    ),
    (lambda q, k, v: attend(turn(q), turn(k), turn(v)), "`turn` is one step too many"),
    (lambda q, k, v: attend(turn(q), k, v), "Only the queries are turned"),
    (lambda q, k, v: attend(q, turn(k), v), "Only the keys are turned;"),
    (lambda q, k, v: attend(q + encoding(q), k + encoding(k), v), "You add an encoding to queries"),
    (lambda q, k, v: attend(turn(q, 2.0), turn(k, 2.0), v), "You turn by twice the angle:"),
    (lambda q, k, v: attend(turn(q, -1.0), turn(k, -1.0), v), CLOCKWISE),
    (lambda q, k, v: attend(shifted(q), shifted(k), v), CLOCKWISE),
    (lambda q, k, v: attend(rotate_half(q), rotate_half(k), v), "You pair component i with"),
    (attend, "Nothing is turned: this is"),
    (
        lambda q, k, v: torch.softmax(turn(q) @ turn(k).T, 1) / math.sqrt(q.shape[1]) @ v,
        "here, at `matmul`, your values depart",
    ),
    (
        lambda q, k, v: attention(
            apply_rotary(q, rotary_angles(*q.shape, base=500_000.0)),
            apply_rotary(k, rotary_angles(*k.shape, base=500_000.0)),
            v,
        ),
        "our angles are those of base 500,000",
    ),
    (lambda q, k, v: turn(attend(turn(q), turn(k), turn(v)), -1.0), "the result is turned back"),
    (lambda q, k, v: turn(attend(q, k, v)), "and queries and keys are not."),
    (
        lambda q, k, v: attend(
            turn(q) / q.norm(dim=1, keepdim=True), turn(k) / k.norm(dim=1, keepdim=True), v
        ),
        "You divide queries and keys by their lengths",
    ),
]


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


def after_and_far_ahead(scores):
    heads, t, _ = scores.shape
    far = (torch.arange(t)[:, None] - torch.arange(t)).abs()
    return alibi(scores, torch.zeros(heads)) - slopes(heads)[:, None, None] * far


def later_only(scores):
    return alibi(scores.flip(-1, -2)).flip(-1, -2)


def masked(scores, first, score):
    heads, t, _ = scores.shape
    biased = scores + slopes(heads)[:, None, None] * (torch.arange(t) - torch.arange(t)[:, None])
    return torch.where(torch.ones(t, t).triu(first) == 1, score, biased).softmax(dim=2)


def from_start(scores):
    heads, t, _ = scores.shape
    biased = scores - slopes(heads)[:, None, None] * torch.arange(t)
    return torch.softmax(biased.masked_fill(~torch.ones(t, t).tril().bool(), -math.inf), -1)


RIGHT[check_alibi_weights] = [by_columns]


def adds_the_penalty(scores):
    """Without the sign of the distance, too, the result is right: a softmax ignores a shift."""
    h, s, _ = scores.shape
    p = torch.arange(s)
    scores = scores + slopes(h)[:, None, None] * (p[:, None] - p).abs()
    return scores.masked_fill(torch.ones(s, s).triu(1).bool(), -torch.inf).softmax(-1)


WRONG[check_alibi_weights] = [
    (alibi, "The result is right. But the exercise asks for it without a loop"),
    (
        adds_the_penalty,
        "with `scores = scores - slopes(h)[:, None, None] * (p[",
    ),
    (lambda s: alibi(s, sign=1), "with `sign=-1` in place of `sign=1`"),
    (
        lambda s: alibi(s, slopes(len(s))[:1].repeat(len(s))),
        "without `slopes(len(s))[:1].repeat(len(s))` it is right",
    ),
    (after, "he penalty is subtracted after the softmax:"),
    (after_and_far_ahead, "he penalty is subtracted after the softmax:"),
    (lambda s: masked(s, 1, 0.0) * 0 + later_only(s), "ou hide the past and leave the future"),
    (
        lambda s: alibi(s, torch.exp(-8 * torch.arange(1, len(s) + 1) / len(s))),
        "without `torch.exp(-8 * torch.arange(1, len(s) + 1) / len(s …` it is r",
    ),
    (lambda s: after(s, again=True), "The penalty is subtracted after the softmax and"),
    (from_start, "with `biased = scores + slopes(heads)[:, None, None] * torch.arange(t)`"),
]


# --- a head that finds the word before

PAIR = torch.tensor([0.0, 1.0]).repeat(4)  # every hand at a quarter


def turned_on(vector, positions):
    return turn(vector.expand(2, 8), positions)[1]


def design(positions, length=20.0, key=PAIR):
    return lambda: (turned_on(length * key, positions), length * key)


def turned_by_one_angle(vector, angle=-1.0):
    c, s = math.cos(angle), math.sin(angle)
    return (vector.reshape(4, 2) @ torch.tensor([[c, s], [-s, c]])).flatten()


def only_two_slow_pairs():
    key = 20 * PAIR * torch.tensor([0.0, 0, 0, 0, 1, 1, 1, 1])
    return turned_on(key, -1), key


RIGHT[check_previous_word] = [
    design(-1),
    lambda: (20 * PAIR, turned_on(20 * PAIR, 1)),  # the key is turned instead
    lambda: tuple(v.double() for v in design(-1, key=torch.linspace(0.5, 2, 8))()),
]
WRONG[check_previous_word] = [
    (lambda: (torch.zeros(8), PAIR), "All words get the same weight:"),
    (design(0), "Every word finds itself:"),
    (design(1), "Every word would find the word *after* it"),
    (design(-2), "Every word finds the word two places back:"),
    (design(-1, 3.0), "The right word is ahead, but it gets only"),
    (
        lambda: (turned_by_one_angle(20 * PAIR), 20 * PAIR),
        "In pair 1, the query is turned against the key by -1; one position back is -0.1 there",
    ),
    (
        lambda: (turned_by_one_angle(20 * PAIR, -0.4), 20 * PAIR),
        "In pair 0, the query is turned against the key by -0.4; one position back is -1 there",
    ),
    (lambda: (1e30 * PAIR, 1e30 * PAIR), "cannot be told from infinity"),
    (only_two_slow_pairs, "The right word is ahead, but it gets only"),
    (design(-5), "In pair 0, the query is turned against the key by 1.28; one position back is -1"),
    (lambda: (PAIR[:7], PAIR), "8"),
]


@pytest.mark.parametrize("exercise", exercises(turn_do_not_add))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
