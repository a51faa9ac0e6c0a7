"""Chapter 07's checks on encodings: right answers pass, each mistake gets its own sentence."""

import math

import pytest
import torch
from diagnoses import wrong

from transformer_lib.exercises import positional_encodings as checks

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


@pytest.mark.parametrize(
    "answer", [annotated, complex_numbers, in_double, lambda n, d: fill(n, d, right_angle)]
)
def test_sinusoidal_accepts(answer):
    assert checks.check_sinusoidal(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda n, d: fill(n, d, right_angle, first=1),
            "Your positions count from 1; the first position is 0.",
        ),
        (
            concatenated,
            "All sines stand in the first half and all cosines in the second; each sine belongs "
            "beside the cosine of its angle, in 2i and 2i+1.",
        ),
        (
            lambda n, d: fill(n, d, right_angle, math.cos, math.sin),
            "Sine and cosine have changed places: 2i holds the sine.",
        ),
        (
            lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j / d)),
            "The cosine has an angle of its own: your exponent counts components. Components 2i "
            "and 2i+1 share the exponent 2i/d.",
        ),
        (
            lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (2 * j / d)),
            "The exponent is doubled, and the cosine has an angle of its own: the 2i of the "
            "formula is the component already.",
        ),
        (
            lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (2 * (j - j % 2) / d)),
            "The exponent is doubled: the 2i of the formula is the component already, not the "
            "pair.",
        ),
        (
            lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** ((j // 2) / d)),
            "The exponent is i/d, half of what it must be: 2i/d for pair i.",
        ),
        (
            lambda n, d: fill(n, d, lambda p, j, d: p / 10_000 ** (j - 1 / d if j % 2 else j / d)),
            "The cosine's exponent is j − 1/d for component j: brackets are missing, it is "
            "(j − 1)/d.",
        ),
        (
            lambda n, d: fill(n, d, lambda p, j, d: p * 10_000 ** ((j - j % 2) / d)),
            "On 11 positions and 10 components: you multiply by 10000^(2i/d); the position is "
            "divided by it.",
        ),
        (
            lambda n, d: torch.stack(  # the same in float32
                [
                    f(torch.arange(n)[:, None] * 10_000 ** (torch.arange(0, d, 2) / d))
                    for f in (torch.sin, torch.cos)
                ],
                dim=-1,
            ).flatten(1),
            "On 11 positions and 10 components: you multiply by 10000^(2i/d); the position is "
            "divided by it.",
        ),
        (
            floor_division,
            "`-log(10000) / d // 2` is evaluated from left to right and rounded down to -1: write "
            "`-log(10000) / d`, times 2i.",
        ),
    ],
)
def test_sinusoidal_diagnoses(answer, diagnosis):
    verdict = checks.check_sinusoidal(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- the shift


def by_loop(k, d, sign=1, frequency=lambda i, d: 10_000 ** (-2 * i / d)):
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
    return by_loop(k, d).where(torch.ones(d, d).triu().bool(), -by_loop(k, d))


def position_zero_only(k, d):
    zero, later = annotated(1, d)[0], by_loop(k, d) @ annotated(1, d)[0]
    return later[:, None] * zero[None, :] / (d / 2)


@pytest.mark.parametrize(
    "answer", [by_loop, by_exponential, lambda k, d: by_exponential(k, d).double()]
)
def test_shift_accepts(answer):
    assert checks.check_shift_matrix(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda k, d: by_loop(k, d, sign=-1),
            "This is the transpose, R(−k): it takes PE(p) back to PE(p − k). In the order (sine, "
            "cosine) the minus stands below the diagonal.",
        ),
        (
            halves_layout,
            "The blocks are laid out for all sines first, then all cosines; here each sine stands "
            "beside its cosine.",
        ),
        (
            lambda k, d: by_loop(k, d, frequency=lambda i, d: 1.0),
            "Every block turns by the same angle: pair i needs its own frequency, 10000^(−2i/d).",
        ),
        (
            lambda k, d: by_loop(1, d),
            "The offset is not used: this matrix moves on by one position.",
        ),
        (no_minus, "A minus is missing: one of the two sines in each block is negative."),
        (
            position_zero_only,
            "Your matrix is right for position 0 only: R(k) must take every PE(p) to PE(p + k), "
            "so it may depend on k, but not on a position.",
        ),
    ],
)
def test_shift_diagnoses(answer, diagnosis):
    verdict = checks.check_shift_matrix(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- pairs into halves


@pytest.mark.parametrize(
    "answer",
    [
        lambda d: torch.tensor([*range(0, d, 2), *range(1, d, 2)]),
        lambda d: torch.arange(d).reshape(d // 2, 2).T.flatten(),
    ],
)
def test_halves_order_accepts(answer):
    assert checks.check_halves_order(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda d: torch.arange(d).reshape(2, d // 2).T.flatten(),
            "This is the way back, from halves to pairs: the inverse of the order asked for.",
        ),
        (lambda d: torch.arange(d), "Nothing moves: component 2i+1 has to go to i + d/2."),
        (
            lambda d: torch.tensor([*range(1, d, 2), *range(0, d, 2)]),
            "The second components of the pairs come first; they belong in the second half.",
        ),
        (
            lambda d: torch.tensor([*range(d // 2, d), *range(d // 2)]),
            "You swap the halves; it is the pairs that have to be taken apart.",
        ),
        (
            lambda d: [*range(0, d, 2), *range(1, d, 2)],
            "On 10 components: your result is a list; a torch tensor is asked for.",
        ),
    ],
)
def test_halves_order_diagnoses(answer, diagnosis):
    verdict = checks.check_halves_order(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- what is said of an answer whose result is rounded


@pytest.mark.parametrize("check", [checks.check_sinusoidal, checks.check_shift_matrix])
def test_the_form_of_an_answer_is_still_named(check):
    wrong(check, torch.zeros(3, 4), "You gave a tensor of shape (3, 4); the function itself is")
    wrong(check, lambda n: n, "Your function must take 2 arguments: (")

    def raises(n, d):
        return 1 / (n - n)

    assert ", `return 1 / (n - n)`): division by zero" in check(raises).diagnosis


def test_half_precision_is_still_refused():
    verdict = checks.check_sinusoidal(lambda n, d: in_double(n, d).half())
    assert "your result is `torch.float16`, not `torch.float32`" in verdict.diagnosis


# --- stubs


@pytest.mark.parametrize("name", checks.__all__)
def test_stubs_are_not_attempted(name):
    check = getattr(checks, name)
    takes_one = name == "check_halves_order"
    stub = (lambda d: ...) if takes_one else (lambda n, d: ...)
    assert check(stub).diagnosis == "not attempted yet"
    assert check(None).passed is None
