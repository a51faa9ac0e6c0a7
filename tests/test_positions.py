"""Positions: the formulas by a loop, their properties, and Hugging Face's Llama."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_lib.positions import (
    AlibiPositions,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    rotary_angles,
    shift_matrix,
    sinusoidal_encoding,
)

D = 22  # eleven pairs
DOUBLE = {"dtype": torch.float64}


@pytest.mark.parametrize(("base", "start"), [(10_000.0, 0), (100.0, 5)])
def test_sinusoids_by_a_loop(base, start):
    encoding = sinusoidal_encoding(7, D, base=base, start=start, **DOUBLE)
    for row in range(7):
        for i in range(D // 2):
            angle = (start + row) / base ** (2 * i / D)
            assert math.isclose(encoding[row, 2 * i], math.sin(angle), abs_tol=1e-14)
            assert math.isclose(encoding[row, 2 * i + 1], math.cos(angle), abs_tol=1e-14)


def test_far_positions_are_exact_in_single_precision():
    """Rounded once, at the end: the error is that of the last bit."""
    exact = sinusoidal_encoding(3, D, start=1_000_000, **DOUBLE)
    rounded = sinusoidal_encoding(3, D, start=1_000_000)
    assert rounded.dtype == torch.float32
    assert_close(rounded.double(), exact, rtol=0, atol=2**-25)


def test_wavelengths_of_the_paper():
    """From 2π to 10000^((d - 2)/d) · 2π, neighbors in the ratio 10000^(2/d)."""
    angles = rotary_angles(2, 512, **DOUBLE)[1]
    wavelengths = 2 * math.pi / angles
    assert math.isclose(wavelengths[0], 2 * math.pi)
    assert round(float(wavelengths[-1])) == 60_611
    assert_close(
        wavelengths[1:] / wavelengths[:-1], torch.full((255,), 10_000 ** (1 / 256), **DOUBLE)
    )


@pytest.mark.parametrize("offset", [0, 1, 13, -3])
def test_shifting_is_a_rotation_that_does_not_depend_on_the_position(offset):
    rotation = shift_matrix(offset, D, **DOUBLE)
    encoding = sinusoidal_encoding(101, D, **DOUBLE)
    for position in (3, 50, 87):
        shifted = encoding[position] @ rotation
        assert_close(shifted, encoding[position + offset], rtol=0, atol=1e-12)
    assert_close(rotation @ rotation.T, torch.eye(D, **DOUBLE), rtol=0, atol=1e-14)
    twice = shift_matrix(2 * offset, D, **DOUBLE)
    assert_close(rotation @ rotation, twice, rtol=0, atol=1e-12)


def test_the_dot_product_of_two_encodings_depends_on_the_distance_only():
    encoding = sinusoidal_encoding(53, D, **DOUBLE)
    products = encoding @ encoding.T
    for distance in range(-52, 53):
        diagonal = products.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-12)
    assert_close(products.diagonal(), torch.full((53,), D / 2, **DOUBLE))
    assert (products[0].diff() > 0).any()  # … but not monotonically


@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_rotary_by_complex_numbers(base):
    x = torch.randn(2, 3, 7, D, **DOUBLE)
    angles = rotary_angles(7, D, base=base, start=5, **DOUBLE)
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(
        torch.ones_like(angles), angles
    )
    expected = torch.view_as_real(turned).flatten(-2)
    assert_close(apply_rotary(x, angles), expected, rtol=0, atol=1e-13)
    assert_close(RotaryPositions(D, base).rotate(x, start=5), expected, rtol=0, atol=1e-13)


def test_rotary_equals_hugging_face_llama():
    """Llama pairs component i with i + d/2; ours pairs 2i with 2i + 1: permute the components."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    batch, heads, tokens, d_head = 2, 3, 7, D
    config = LlamaConfig(
        hidden_size=heads * d_head, num_attention_heads=heads, max_position_embeddings=31
    )
    q, k = torch.randn(2, batch, heads, tokens, d_head)
    to_halves = torch.cat([torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)])
    position_ids = torch.arange(5, 5 + tokens).expand(batch, tokens)
    cosine, sine = LlamaRotaryEmbedding(config)(q, position_ids)
    theirs = apply_rotary_pos_emb(q[..., to_halves], k[..., to_halves], cosine, sine)
    positions = RotaryPositions(d_head, base=config.rope_parameters["rope_theta"])
    for mine, reference in zip((q, k), theirs, strict=True):
        turned = positions.rotate(mine, start=5)[..., to_halves]
        assert_close(turned, reference, rtol=0, atol=2e-6)


def test_rotary_keeps_lengths_and_the_dtype():
    x = torch.randn(3, 7, D)
    assert_close(RotaryPositions(D).rotate(x, 11).norm(dim=-1), x.norm(dim=-1))
    assert RotaryPositions(D).rotate(x.bfloat16(), 11).dtype == torch.bfloat16
    assert RotaryPositions(D).bias(5, 7, "cpu", torch.float32) is None


def test_rotary_far_away_in_half_precision():
    """The angles are exact however far the position and however short the numbers."""
    x = torch.randn(1, D).bfloat16()
    expected = RotaryPositions(D).rotate(x.double(), start=100_000)
    turned = RotaryPositions(D).rotate(x, start=100_000)
    assert_close(turned.double(), expected, rtol=0, atol=4 * 2**-8 * float(x.abs().max()))


# Worked out by hand from the paper and, for other than powers of two, from its authors' recursion.
@pytest.mark.parametrize(
    ("n_heads", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),
        (5, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1]),
        (8, [2**-n for n in range(1, 9)]),
        (12, [2**-n for n in range(1, 9)] + [2 ** -(n + 0.5) for n in range(4)]),
        (16, [2 ** (-n / 2) for n in range(1, 17)]),
    ],
)
def test_alibi_slopes_for_any_number_of_heads(n_heads, slopes):
    assert_close(alibi_slopes(n_heads), torch.tensor(slopes))


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7), (1, 7)])
def test_alibi_by_a_loop(queries, keys):
    bias = alibi_bias(3, queries, keys, **DOUBLE)
    assert bias.shape == (3, queries, keys)
    for head, slope in enumerate([2**-4, 2**-8, 2**-2]):
        for i in range(queries):
            for j in range(keys):
                distance = abs(i + keys - queries - j)
                assert bias[head, i, j] == -slope * distance
    assert AlibiPositions(3).bias(queries, keys, "cpu", torch.float64).equal(bias)
    x = torch.randn(2, 3, 5, 7)
    assert AlibiPositions(3).rotate(x, 5) is x


def test_alibi_is_exact_in_double_precision_and_rounded_once_below_it():
    exact = alibi_bias(12, 1, 1001, **DOUBLE)  # slopes that are not whole powers of 2, too
    slopes = [2.0**-n for n in range(1, 9)] + [2 ** -(n + 0.5) for n in range(4)]
    assert_close(exact[:, 0, 0], -1000 * torch.tensor(slopes, **DOUBLE), rtol=1e-15, atol=0)
    rounded = alibi_bias(12, 1, 1001, dtype=torch.bfloat16)
    assert_close(rounded.double(), exact, rtol=1.01 * 2**-8, atol=0)


def test_modules_add_their_encoding_from_start_on():
    x = torch.randn(2, 5, D, **DOUBLE)
    before = x.clone()
    added = SinusoidalPositions(D, base=100.0)(x, start=3) - x
    expected = sinusoidal_encoding(5, D, base=100.0, start=3, **DOUBLE)
    assert_close(added, expected.expand(2, 5, D), rtol=0, atol=1e-14)
    learned = LearnedPositions(11, D).double()
    assert learned(x, start=6).equal(x + learned.table.weight[6:11])
    assert x.equal(before)


def test_learned_positions_learn_the_rows_that_were_used():
    learned = LearnedPositions(7, 4)
    learned(torch.zeros(1, 3, 4), start=2).sum().backward()
    used = (learned.table.weight.grad != 0).any(dim=1)
    assert used.tolist() == [False, False, True, True, True, False, False]


def test_devices():
    assert sinusoidal_encoding(3, 4, device="meta").device.type == "meta"
    assert shift_matrix(3, 4, device="meta").device.type == "meta"
    assert alibi_bias(2, 3, 5, device="meta").device.type == "meta"
    assert RotaryPositions(4).rotate(torch.ones(3, 4, device="meta"), 1).device.type == "meta"


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sinusoidal_encoding(3, 5), ValueError, "d_model is 5, an odd number; each freq"),
        (lambda: sinusoidal_encoding(0, 4), ValueError, "n_positions is 0"),
        (lambda: sinusoidal_encoding(3, 4, start=-1), ValueError, "start is -1; positions count"),
        (lambda: sinusoidal_encoding(2, 4, start=2**60), ValueError, r"0 <= start <= 2\*\*52"),
        (lambda: sinusoidal_encoding(3, 4, base=1.0), ValueError, "base is 1.0; .* above 1"),
        (lambda: sinusoidal_encoding(3, 4, base=math.nan), ValueError, "base is nan"),
        (lambda: sinusoidal_encoding(3, 4, dtype=torch.int8), TypeError, "dtype is torch.int8"),
        (lambda: shift_matrix(1, 3), ValueError, "d_model is 3, an odd number"),
        (lambda: rotary_angles(3, 7), ValueError, "d_head is 7, an odd number"),
        (lambda: RotaryPositions(7), ValueError, "Choose an even d_head"),
        (lambda: AlibiPositions(0), ValueError, "n_heads is 0"),
        (lambda: alibi_bias(2, 0, 3), ValueError, "queries is 0"),
        (
            lambda: apply_rotary(torch.ones(3, 4), torch.ones(2, 2)),
            ValueError,
            r"x has shape \(3, 4\) and angles has shape \(2, 2\); .* rotary_angles\(tokens, d_head",
        ),
        (lambda: apply_rotary(torch.ones(3, 4).long(), torch.ones(3, 2)), TypeError, "int64"),
        (lambda: SinusoidalPositions(5), ValueError, "d_model is 5, an odd number"),
        (lambda: SinusoidalPositions(4)(torch.ones(2, 3, 6)), ValueError, r"d_model = 4"),
        (lambda: SinusoidalPositions(4)(torch.ones(2, 0, 4)), ValueError, "at least one token"),
        (lambda: SinusoidalPositions(4)(torch.ones(2, 3, 4).int()), TypeError, "int32"),
        (
            lambda: LearnedPositions(5, 4)(torch.ones(3, 4), start=3),
            ValueError,
            "positions 3 to 5 are asked for, but only positions 0 to 4 were learned. Shorten",
        ),
        (lambda: LearnedPositions(5, 4)(torch.ones(3, 4), start=-3), ValueError, "start is -3"),
        (lambda: RotaryPositions(4).rotate(torch.ones(3, 4), -3), ValueError, "start is -3"),
        (
            lambda: RotaryPositions(4).rotate(torch.ones(3, 4), torch.tensor(0)),
            TypeError,
            r"start is tensor\(0\), of type Tensor; it must be an int",
        ),
    ],
)
def test_errors_teach(call, error, message):
    with pytest.raises(error, match=message):
        call()
