"""Chapter 07's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
from diagnoses import exercises, judge_by

from transformer_lib.exercises import positional_encodings
from transformer_lib.exercises.positional_encodings import (
    check_right_angles,
    check_shift_matrix,
    check_sinusoidal,
    check_turning_hands,
)
from transformer_lib.positions import rotary_angles

RIGHT, WRONG = {}, {}

# --- spot

RIGHT[check_right_angles] = ["abd", {"a", "b", "d"}, lambda: ["D", "b", "A"]]
WRONG[check_right_angles] = [
    ("abcd", "c does not belong: `//` comes last"),
    ("abde", "e does not belong: the `arange` holds 2i"),
    ("abdf", "f does not belong: the last hand gets"),
    ("bd", "a is missing: it is the formula"),
    ("ad", "b is missing: e^("),
    ("ab", "d is missing: each hand is slower"),
    ("g", "'g' is not among the choices"),
]


@pytest.mark.parametrize("d", [10, 26])
def test_the_right_lines_are_right_and_the_others_are_not(d):
    n, i = 11, torch.arange(d // 2)
    p = torch.arange(n)[:, None]
    lines = {
        "a": p / 10_000 ** (2 * i / d),
        "b": p * torch.exp(-math.log(10_000) * 2 * i / d),
        "c": p * torch.exp(2 * i * (-math.log(10_000) / d // 1)),
        "d": p * (10_000 ** (-2 / d)) ** i,
        "e": p / 10_000 ** (torch.arange(0, d, 2) / (d // 2)),
        "f": p / 10_000 ** torch.linspace(0, 1, d // 2),
    }
    right = {n for n, angles in lines.items() if torch.allclose(angles, rotary_angles(11, d))}
    assert right == check_right_angles.right


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


def as_given(n, d, first=1, exponent=lambda j, d: j / d):
    j = torch.arange(d)
    p = torch.arange(first, n + first)[:, None]
    angles = p / 10_000 ** exponent(j, d)
    half = d // 2
    return torch.cat((angles[:, :half].sin(), angles[:, half:].cos()), dim=1)


def in_pairs(j, d):
    return (j - j % 2) / d


def from_one_in_halves(n, d):
    rows = fill(n, d, right_angle, first=1)
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], -1)


def the_first_angles_twice(n, d):
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(d // 2) / d)
    return torch.cat([angles.sin(), angles.cos()], -1)


WRONG[check_sinusoidal] = [
    (as_given, "All three mistakes are still there"),
    (lambda n, d: as_given(n, d, first=0), "The positions are mended."),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j / d), first=1),
        "Sines and cosines alternate now.",
    ),
    (from_one_in_halves, "The angles are mended."),
    (lambda n, d: as_given(n, d, 0, in_pairs), "you still cut the angles into halves"),
    (lambda n, d: as_given(n, d, 1, in_pairs), "in pairs now. Still, positions"),
    (the_first_angles_twice, "Sine and cosine share an angle now"),
    (lambda n, d: fill(n, d, right_angle, first=1), "with `first=0` in place of `first=1`"),
    (concatenated, "here, at `cat`, your values depart"),
    (lambda n, d: fill(n, d, right_angle, math.cos, math.sin), "Sine and cosine have changed"),
    (lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j / d)), "The cosine has an angle of"),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (2 * j / d)),
        "The exponent is doubled,",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (2 * (j - j % 2) / d)),
        "`2 *` is too much",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** ((j // 2) / d)),
        "the hands have the speeds that belong to base 100; it should be 100",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j - 1 / d if j % 2 else j / d)),
        "The cosine's exponent is",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p * 10_000 ** ((j - j % 2) / d)),
        "in place of `p * 10_000",
    ),
    (
        lambda n, d: torch.stack(  # the same in float32
            [
                f(torch.arange(n)[:, None] * 10_000 ** (torch.arange(0, d, 2) / d))
                for f in (torch.sin, torch.cos)
            ],
            dim=-1,
        ).flatten(1),
        "torch.arange(n)[:, None] / 10_000",
    ),
    (floor_division, "`// 2` is too much"),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** ((j + j % 2) / d)),
        "with `j - j % 2` in place of `j + j % 2`",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 500 ** ((j - j % 2) / d)),
        "the hands have the speeds that belong to base 500;",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** ((j - j % 2) / (d - 2))),
        "`- 2` is too much",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p / (1 + j // 2)),
        "hand 1 turns by 0.5 in a step, and it should turn by 0.1585.",
    ),
    (
        lambda n, d: fill(n, d, right_angle, math.sin, math.sin),
        "without `math.sin` it is right",
    ),
    (
        lambda n, d: fill(n, d, right_angle, lambda a: a, lambda a: a),
        "your table reaches 10: are these the angles",
    ),
    (
        lambda n, d: fill(n, d, right_angle, math.sin, lambda a: -math.cos(a)),
        "without `lambda a: -math.cos(a)` it is right",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: p // 10_000 ** ((j - j % 2) / d)),
        "with `p / 10_000 ** ((j - j % 2) / d)` in place of `p // 10_000 ** ((j",
    ),
    (
        lambda n, d: fill(n, d, lambda p, j, d: 1 / (p + 1) / 10_000 ** ((j - j % 2) / d)),
        "here, at `setitem`, your values depart",
    ),
]


# --- the shift


def shift_by_loop(k, d, sign=1, frequency=lambda i, d: 10_000 ** (-2 * i / d)):
    matrix = torch.zeros(d, d)
    for i in range(d // 2):
        angle = k * frequency(i, d)
        matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = math.cos(angle)
        matrix[2 * i, 2 * i + 1] = -sign * math.sin(angle)
        matrix[2 * i + 1, 2 * i] = sign * math.sin(angle)
    return matrix


def by_exponential(k, d):
    """A rotation is the exponential of its generator."""
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i in range(d // 2):
        generator[2 * i, 2 * i + 1] = -(10_000 ** (-2 * i / d))
        generator[2 * i + 1, 2 * i] = 10_000 ** (-2 * i / d)
    return torch.matrix_exp(k * generator).float()


def halves_layout(k, d):
    angles = k * 10_000 ** (-torch.arange(0, d, 2) / d)
    cosine, sine = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([cosine, -sine], 1), torch.cat([sine, cosine], 1)], 0)


def no_minus(k, d):
    return shift_by_loop(k, d).where(torch.ones(d, d).tril().bool(), -shift_by_loop(k, d))


def position_zero_only(k, d):
    zero, later = annotated(1, d)[0], annotated(1, d)[0] @ shift_by_loop(k, d)
    return zero[:, None] * later[None, :] / (d / 2)


RIGHT[check_shift_matrix] = [
    shift_by_loop,
    by_exponential,
    lambda k, d: by_exponential(k, d).double(),
]


QUARTER = torch.tensor([[0.0, -1], [1, 0]])  # of a turn


WRONG[check_shift_matrix] = [
    (lambda k, d: shift_by_loop(k, d, sign=-1), "with `sign=1` in place of `sign=-1`"),
    (halves_layout, "The blocks are laid out for"),
    (
        lambda k, d: shift_by_loop(k, d, frequency=lambda i, d: 1.0),
        "without `frequency=lambda i, d: 1.0` it is right",
    ),
    (lambda k, d: shift_by_loop(1, d), "The offset is not used: this"),
    (no_minus, "`.where(torch.ones(d, d).tril().bool(), -shift_by_l …` is one step too"),
    (position_zero_only, "Your matrix is right for"),
    (
        lambda k, d: shift_by_loop(k, d, frequency=lambda i, d: 10_000 ** (-i / d)),
        "without `frequency=lambda i, d: 10_000 ** (-i / d)` it is right",
    ),
    (
        lambda k, d: shift_by_loop(k, d, frequency=lambda i, d: 10_000 ** (2 * i / d)),
        "without `frequency=lambda i, d: 10_000 ** (2 * i / d)` it is right",
    ),
    (
        lambda k, d: by_exponential(-k, d) @ torch.block_diag(*[QUARTER] * (d // 2)),
        "Sine and cosine have changed places: at offset 0",
    ),
    (lambda k, d: shift_by_loop(k, d) * torch.eye(d), "`* torch.eye(d)` is too much"),
    (lambda k, d: shift_by_loop(-k if k < 0 else k, d), "`k` belongs here in any case"),
    (
        lambda k, d: by_exponential(1, d) ** k,
        "block 0 is not a rotation. Each row must hold a sine and a co",
    ),
    (lambda k, d: k * shift_by_loop(1, d), "those of row 0 sum to 9."),
    (
        lambda k, d: shift_by_loop(k, d, frequency=lambda i, d: 10_000 ** (-2 * (i + 1) / d)),
        "without `frequency=lambda i, d: 10_000 ** (-2 * (i + 1) / d)` it is ri",
    ),
    (
        lambda k, d: shift_by_loop(k, d) + torch.eye(d).roll(2, 0),
        "`+ torch.eye(d).roll(2, 0)` is too much",
    ),
    (
        lambda k, d: shift_by_loop(k, 2 * d),
        "`2 *` is too much",
    ),
    (
        lambda k, d: [shift_by_loop(k * 10_000 ** (-2 * i / d), 2) for i in range(d // 2)],
        "These are the blocks.",
    ),
    (
        lambda k, d: shift_by_loop(k, d) * torch.tensor([1.0, -1.0]).repeat(d // 2),
        "`* torch.tensor([1.0, -1.0]).repeat(d // 2)` is too much",
    ),
    (
        lambda k, d: shift_by_loop(k, d) * torch.tensor([-1.0, 1.0]).repeat(d // 2)[:, None],
        "`* torch.tensor([-1.0, 1.0]).repeat(d // 2)[:, None]`",
    ),
]


# --- what is said of an answer whose result is rounded


def raises(n, d):
    return 1 / (n - n)


for check in (check_sinusoidal, check_shift_matrix):
    WRONG[check] += [
        (torch.zeros(3, 4), "You gave a tensor of shape (3, 4); give the function itself"),
        (lambda n: n, "Your function must take 2 arguments: ("),
        (raises, "your answer raises ZeroDivisionError (line"),
    ]


WRONG[check_sinusoidal] += [
    (lambda n, d: in_double(n, d).half(), "your result is `torch.float16`, not `torch.float32`"),
]


# --- how many hands turn?


def by_loop(n, d, base):
    count = 0
    for i in range(d // 2):
        if n / base ** (2 * i / d) >= 2 * math.pi:
            count += 1
    return count


def waves(n, d, base, full=2 * math.pi, power=2):
    return sum(full * base ** (power * i / d) <= n for i in range(d // 2))


RIGHT[check_turning_hands] = [
    by_loop,
    lambda n, d, base: int((rotary_angles(1, d, base=base, start=n)[0] >= 2 * math.pi).sum()),
]
WRONG[check_turning_hands] = [
    (lambda n, d, base: d // 2 - by_loop(n, d, base), "`d // 2 -` is too much"),
    (lambda n, d, base: waves(n, d, base, full=1), "One turn is an angle of 2π"),
    (
        lambda n, d, base: by_loop(n, 2 * d, base**2),
        "every hand: you count 8 hands, more than the 4 that there ar",
    ),
    (
        lambda n, d, base: sum(n / 2 / math.pi / base ** (2 * i / d) for i in range(d // 2)),
        "these are all of the turns",
    ),
    (
        lambda n, d, base: sum(n // (2 * math.pi * base ** (2 * i / d)) for i in range(d // 2)),
        "these are all of the turns",
    ),
    (
        lambda n, d, base: 1 + int(math.log(n / 2 / math.pi) / math.log(base ** (2 / d))),
        "every hand: you count 12 hands, more than the 4 that there a",
    ),
    (lambda n, d, base: n / (2 * math.pi), "number of hands is whole; 81.49 is not."),
    (lambda n, d, base: n, "ou count 512 hands, more than the 256 that there are."),
    (
        lambda n, d, base: max(i for i in range(d // 2) if 2 * math.pi * base ** (2 * i / d) <= n),
        "Hand 0 counts, too",
    ),
    (lambda n, d, base: by_loop(n, d, 10_000), "10000 is written down where `base` belongs"),
]


@pytest.mark.parametrize("exercise", exercises(positional_encodings))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
