"""Chapter 07's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge

from transformer_lib.exercises import positional_encodings
from transformer_lib.exercises.positional_encodings import (
    check_alibi_weights,
    check_halves_order,
    check_rotary_attention,
    check_shift_matrix,
    check_sinusoidal,
)
from transformer_lib.positions import shift_matrix

RIGHT, WRONG = {}, {}

# --- the sinusoidal encoding


def fill(n, d, angle, sine=math.sin, cosine=math.cos, first=0):
    """By loops: angle(p, j) for component j."""
    rows = torch.zeros(n, d)
    for p in range(n):
        for j in range(d):
            rows[p, j] = (cosine if j % 2 else sine)(angle(p + first, j, d))
    return rows


def right_angle(p, j, d):
    return p / 10_000 ** ((j - j % 2) / d)


def annotated(n, d):
    """As in the Annotated Transformer: exp of a logarithm, slices."""
    rows = torch.zeros(n, d)
    factor = torch.exp(torch.arange(0, d, 2) * -(math.log(10000.0) / d))
    rows[:, 0::2] = torch.sin(torch.arange(n).unsqueeze(1) * factor)
    rows[:, 1::2] = torch.cos(torch.arange(n).unsqueeze(1) * factor)
    return rows


def complex_numbers(n, d):
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
    hands = torch.polar(torch.ones_like(angles), math.pi / 2 - angles)  # sine right, cosine up
    return torch.view_as_real(hands).flatten(1)


def concatenated(n, d):
    rows = annotated(n, d)
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], -1)


def floor_division(n, d):
    rows = torch.zeros(n, d)
    factor = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d // 2))
    rows[:, 0::2] = torch.sin(torch.arange(n).unsqueeze(1) * factor)
    rows[:, 1::2] = torch.cos(torch.arange(n).unsqueeze(1) * factor)
    return rows


def in_double(n, d):
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, d, 2).double() / d)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


RIGHT[check_sinusoidal] = [
    annotated,
    complex_numbers,
    in_double,
    lambda n, d: fill(n, d, right_angle),
]


WRONG[check_sinusoidal] = [
    (lambda n, d: fill(n, d, right_angle, first=1), "Your positions count from"),
    (concatenated, "All sines are in the first"),
    (lambda n, d: fill(n, d, right_angle, math.cos, math.sin), "Sine and cosine have changed"),
    (lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j / d)), "The cosine has an angle of"),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (2 * j / d)),
        "The exponent is doubled,",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (2 * (j - j % 2) / d)),
        "The exponent is doubled:",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** ((j // 2) / d)),
        "The exponent is i/d, half",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j - 1 / d if j % 2 else j / d)),
        "The cosine's exponent is",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p * 10_000 ** ((j - j % 2) / d)),
        "On 11 positions and 10 components: you multiply by 10000^(2i/d)",
    ),
    (
        lambda n, d: torch.stack(  # the same in float32
            [
                f(torch.arange(n)[:, None] * 10_000 ** (torch.arange(0, d, 2) / d))
                for f in (torch.sin, torch.cos)
            ],
            dim=-1,
        ).flatten(1),
        "On 11 positions and 10 components: you multiply by 10000^(2i/d)",
    ),
    (floor_division, "`-log(10000) / d // 2` is"),
]


# --- the shift


def shift_by_loop(k, d, sign=1, frequency=lambda i, d: 10_000 ** (-2 * i / d)):
    matrix = torch.zeros(d, d)
    for i in range(d // 2):
        angle = k * frequency(i, d)
        matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = math.cos(angle)
        matrix[2 * i, 2 * i + 1] = sign * math.sin(angle)
        matrix[2 * i + 1, 2 * i] = -sign * math.sin(angle)
    return matrix


def by_exponential(k, d):
    """A rotation is the exponential of its generator."""
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i in range(d // 2):
        generator[2 * i, 2 * i + 1] = 10_000 ** (-2 * i / d)
        generator[2 * i + 1, 2 * i] = -(10_000 ** (-2 * i / d))
    return torch.matrix_exp(k * generator).float()


def halves_layout(k, d):
    angles = k * 10_000 ** (-torch.arange(0, d, 2) / d)
    cosine, sine = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([cosine, sine], 1), torch.cat([-sine, cosine], 1)], 0)


def no_minus(k, d):
    return shift_by_loop(k, d).where(torch.ones(d, d).triu().bool(), -shift_by_loop(k, d))


def position_zero_only(k, d):
    zero, later = annotated(1, d)[0], shift_by_loop(k, d) @ annotated(1, d)[0]
    return later[:, None] * zero[None, :] / (d / 2)


RIGHT[check_shift_matrix] = [
    shift_by_loop,
    by_exponential,
    lambda k, d: by_exponential(k, d).double(),
]


WRONG[check_shift_matrix] = [
    (lambda k, d: shift_by_loop(k, d, sign=-1), "This is the transpose, R(−k):"),
    (halves_layout, "The blocks are laid out for"),
    (lambda k, d: shift_by_loop(k, d, frequency=lambda i, d: 1.0), "Every block turns by the"),
    (lambda k, d: shift_by_loop(1, d), "The offset is not used: this"),
    (no_minus, "A minus is missing: one of"),
    (position_zero_only, "Your matrix is right for"),
]


# --- pairs into halves


RIGHT[check_halves_order] = [
    lambda d: torch.tensor([*range(0, d, 2), *range(1, d, 2)]),
    lambda d: torch.arange(d).reshape(d // 2, 2).T.flatten(),
    lambda d: [*range(0, d, 2), *range(1, d, 2)],
]


WRONG[check_halves_order] = [
    (lambda d: torch.arange(d).reshape(2, d // 2).T.flatten(), "This is the way back, from"),
    (lambda d: torch.arange(d), "Nothing moves: component"),
    (lambda d: torch.tensor([*range(1, d, 2), *range(0, d, 2)]), "The second components of"),
    (lambda d: torch.tensor([*range(d // 2, d), *range(d // 2)]), "You swap the halves; it is"),
]


# --- what is said of an answer whose result is rounded


def raises(n, d):
    return 1 / (n - n)


for check in (check_sinusoidal, check_shift_matrix):
    WRONG[check] += [
        (torch.zeros(3, 4), "You gave a tensor of shape (3, 4); give the function itself"),
        (lambda n: n, "Your function must take 2 arguments: ("),
        (raises, ", `return 1 / (n - n)`): division by zero"),
    ]


WRONG[check_sinusoidal] += [
    (lambda n, d: in_double(n, d).half(), "your result is `torch.float16`, not `torch.float32`"),
]


# --- stubs


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
    (lambda q, k, v: attend(turn(q), turn(k), turn(v)), "The values are turned as"),
    (lambda q, k, v: attend(turn(q), k, v), "Only the queries are turned;"),
    (lambda q, k, v: attend(q, turn(k), v), "Only the keys are turned;"),
    (lambda q, k, v: attend(q + encoding(q), k + encoding(k), v), "You add an encoding to queries"),
    (lambda q, k, v: attend(turn(q, 2.0), turn(k, 2.0), v), "You turn by twice the angle:"),
    (lambda q, k, v: attend(turn(q), turn(k, -1.0), v), "Queries and keys turn in"),
    (lambda q, k, v: attend(turn(q, -1.0), turn(k, -1.0), v), CLOCKWISE),
    (lambda q, k, v: attend(shifted(q), shifted(k), v), CLOCKWISE),
    (lambda q, k, v: attend(rotate_half(q), rotate_half(k), v), "You pair component i with"),
    (attend, "Nothing is turned: this is"),
    (lambda q, k, v: torch.softmax(turn(q) @ turn(k).T, dim=1) @ v, "The division of the scores"),
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


def from_start(scores):
    heads, t, _ = scores.shape
    biased = scores - slopes(heads)[:, None, None] * torch.arange(t)
    return torch.softmax(biased.masked_fill(~torch.ones(t, t).tril().bool(), -math.inf), -1)


RIGHT[check_alibi_weights] = [alibi, by_columns]


WRONG[check_alibi_weights] = [
    (lambda s: alibi(s, sign=1), "The weights grow with the"),
    (lambda s: alibi(s, slopes(len(s))[:1].repeat(len(s))), "All heads have the same slope:"),
    (lambda s: alibi(s, slopes(len(s), first=0)), "Your slopes start at 2^0:"),
    (lambda s: alibi(s, slopes(len(s)).flip(0)), "The slopes are in reverse order:"),
    (after, "The penalty is subtracted after the softmax:"),
    (lambda s: after(s, again=True), "The penalty is subtracted after the softmax and"),
    (lambda s: alibi(s, causal=False), "The future is not hidden:"),
    (from_start, "The weights grow with the"),
    (lambda s: alibi(s, torch.zeros(len(s))), "There is no penalty in your"),
]


def in_place(scores):
    heads, t, _ = scores.shape
    scores += slopes(heads)[:, None, None] * torch.arange(t)
    scores.masked_fill_(~torch.ones(t, t).tril().bool(), -math.inf)
    return torch.softmax(scores, -1)


WRONG[check_alibi_weights] += [(in_place, "you write into the argument `scores`")]


@pytest.mark.parametrize("exercise", exercises(positional_encodings))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
