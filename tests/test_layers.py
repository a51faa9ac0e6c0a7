"""FeedForward, RMSNorm and Smear: against PyTorch's own functions, and by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from transformer_lib.layers import ACTIVATIONS, FeedForward, RMSNorm, Smear

BATCH, TOKENS, D_MODEL, D_FF = 2, 5, 7, 11
EXACT = {"rtol": 0, "atol": 1e-14}


def random_x():
    return torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64)


@pytest.mark.parametrize(
    ("activation", "by_hand"),
    [
        ("relu", lambda x: x * (x > 0)),
        ("gelu", lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2),
        (
            "gelu_tanh",
            lambda x: x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        ),
        ("relu_squared", lambda x: x * x * (x > 0)),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward_by_hand(activation, by_hand, bias):
    layer = FeedForward(D_MODEL, D_FF, activation, bias=bias).double()
    x = random_x()
    inner, outer = layer.expand, layer.contract
    hidden = by_hand(x @ inner.weight.T + (inner.bias if bias else 0))
    expected = hidden @ outer.weight.T + (outer.bias if bias else 0)
    assert_close(layer(x), expected, **EXACT)
    parameters = sum(p.numel() for p in layer.parameters())
    assert parameters == 2 * D_MODEL * D_FF + bias * (D_MODEL + D_FF)


def test_the_activations_are_those_that_are_tested_above():
    assert set(ACTIVATIONS) == {"relu", "gelu", "gelu_tanh", "relu_squared"}


def test_gelu_tanh_is_off_by_less_than_it_says():
    x = torch.linspace(-10, 10, 100_001, dtype=torch.float64)
    difference = (ACTIVATIONS["gelu_tanh"](x) - F.gelu(x)).abs().max()
    assert 1e-4 < difference < 5e-4


def test_feed_forward_treats_each_token_alone_and_four_times_wider_by_default():
    layer = FeedForward(D_MODEL).double()
    assert layer.expand.out_features == 4 * D_MODEL
    x = random_x()
    expected = torch.stack([layer(token) for token in x.unbind(dim=1)], dim=1)
    assert_close(layer(x), expected, **EXACT)


def test_rms_norm_by_hand():
    norm = RMSNorm(D_MODEL, eps=0.1).double()
    torch.nn.init.normal_(norm.weight)
    x = random_x()
    root = torch.sqrt((x**2).sum(dim=-1, keepdim=True) / D_MODEL + 0.1)  # eps inside of the root
    assert_close(norm(x), x / root * norm.weight, **EXACT)
    assert repr(norm) == "RMSNorm(7, eps=0.1)"


def test_rms_norm_is_layer_norm_of_what_has_no_mean():
    x = random_x()
    x = x - x.mean(dim=-1, keepdim=True)
    assert_close(RMSNorm(D_MODEL).double()(x), F.layer_norm(x, (D_MODEL,)), **EXACT)


@pytest.mark.parametrize("reach", [1, 3, TOKENS + 1])
def test_smear_by_hand_and_in_parts(reach):
    smear, x = Smear(D_MODEL, reach).double(), random_x()
    assert smear(x).equal(x)  # at first, there is none
    for weight in smear.weights:
        torch.nn.init.normal_(weight)
    expected = x.clone()
    for token in range(TOKENS):
        for back in range(1, min(reach, token) + 1):
            expected[:, token] += smear.weights[back - 1] * x[:, token - back]
    assert_close(smear(x), expected, **EXACT)
    parts = [smear(x[:, :2])]
    for start, end in [(2, 3), (3, TOKENS)]:
        parts.append(smear(x[:, start:end], x[:, max(0, start - reach) : start]))
    assert_close(torch.cat(parts, dim=1), expected, **EXACT)


def test_where_the_smear_starts_and_its_gradient():
    smear, x = Smear(D_MODEL, reach=3, start=0.5).double(), random_x()
    assert [weight.tolist() for weight in smear.weights] == [[0.5] * D_MODEL] * 3
    factors = torch.randn_like(x)
    (smear(x) * factors).sum().backward()
    for back, weight in enumerate(smear.weights, start=1):
        expected = (factors[:, back:] * x[:, :-back]).sum(dim=(0, 1))
        assert_close(weight.grad, expected, **EXACT)
    assert repr(smear).startswith("Smear(\n  7, reach=3")


@pytest.mark.usefixtures("as_a_reader")
def test_a_smear_that_cannot_be():
    for reach, error in [(0, ValueError), (True, TypeError), (1.5, TypeError)]:
        with pytest.raises(error, match=f"reach is {reach}"):
            Smear(D_MODEL, reach)
    with pytest.raises(ValueError, match=r"start is inf; .* a finite number"):
        Smear(D_MODEL, start=math.inf)
    for wrong in (torch.ones(BATCH, 4, 7), torch.ones(1, 3, 7), torch.ones(BATCH, 3, 1)):
        with pytest.raises(ValueError, match=r"last has shape .* must be \[2, 0 to 3, 7\]"):
            Smear(D_MODEL, reach=3)(torch.ones(BATCH, TOKENS, D_MODEL), wrong)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("make", [FeedForward, RMSNorm, Smear])
def test_another_width_and_token_ids_are_refused(make):
    layer = make(D_MODEL)
    with pytest.raises(ValueError, match=r"x has shape \(2, 5, 8\); .* d_model = 7 wide"):
        layer(torch.ones(2, 5, 8))
    with pytest.raises(TypeError, match=r"x has dtype torch\.int64; it must be floating point"):
        layer(torch.ones(2, 5, 7).long())
    with pytest.raises(ValueError, match="d_model is 0"):
        make(0)


@pytest.mark.usefixtures("as_a_reader")
def test_an_unknown_activation_and_width():
    with pytest.raises(ValueError, match="activation is 'swish'; choose one of 'relu', 'gelu', "):
        FeedForward(D_MODEL, D_FF, "swish")
    with pytest.raises(TypeError, match=r"d_ff is 2\.5, of type float"):
        FeedForward(D_MODEL, 2.5)
    with pytest.raises(ValueError, match="d_ff is 0"):
        FeedForward(D_MODEL, 0)
