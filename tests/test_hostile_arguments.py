"""Arguments that were taken for something else or failed deep inside get their own messages."""

import numpy as np
import pytest
import torch

from transformer_lib.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    merge_heads,
    split_heads,
)
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.positions import alibi_slopes, sinusoidal_encoding
from transformer_lib.sampling import generate, require_generator

pytestmark = pytest.mark.usefixtures("as_a_reader")

X = torch.ones(2, 3, 8)
SIZES = {"vocabulary": 7, "context": 8, "n_layers": 1, "n_heads": 2, "d_model": 12}
IDS = torch.tensor([[3, 1]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: attention(X, X, X, causal="no"), TypeError, "causal is 'no', .* True or False"),
        (lambda: attention_weights(X, X, causal=1), TypeError, "causal is 1, of type int"),
        (lambda: attention(X, X, X, scale=float("nan")), ValueError, "scale is nan; .* finite"),
        (lambda: attention(X, X, X, dropout="0.1"), TypeError, "dropout is '0.1', .* a number"),
        (lambda: MultiHeadAttention(8, 2, bias="no"), TypeError, "bias is 'no', of type str"),
        (lambda: MultiHeadAttention(8, 2)(X, causal=1), TypeError, "causal is 1, of type int"),
        (lambda: merge_heads(X), ValueError, r"x has shape \(2, 3, 8\); heads are merged from"),
        (lambda: merge_heads(X[None, None]), ValueError, r"\(1, 1, 2, 3, 8\); heads are merged"),
        (lambda: split_heads(X, 0), ValueError, "n_heads is 0; it must be at least 1"),
        (lambda: split_heads(X, -2), ValueError, "n_heads is -2; it must be at least 1"),
        (lambda: padding_mask([], 3), ValueError, "lengths are empty; give one length for each"),
        (
            lambda: generate(GPT(GPTConfig(**SIZES)), IDS, 3, temperature=None),
            TypeError,
            "temperature is None, of type NoneType; it must be a number",
        ),
        (
            lambda: generate(GPT(GPTConfig(**SIZES)), IDS, 3, top_p="0.9"),
            TypeError,
            "top_p is '0.9', of type str; it must be a number",
        ),
        (
            lambda: MultiHeadAttention(10**15 + 1, 4),
            ValueError,
            "d_model = 1000000000000001 is not divisible by n_heads = 4",
        ),
    ],
)
def test_a_message_of_its_own(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert causal_mask(np.int64(3)).equal(causal_mask(3))
    assert alibi_slopes(np.int64(3)).equal(alibi_slopes(3))
    assert sinusoidal_encoding(np.int64(2), np.int64(4)).equal(sinusoidal_encoding(2, 4))
    assert MultiHeadAttention(np.int64(8), np.int64(2))(X).shape == X.shape


def test_a_generator_of_another_device():
    class OnAGPU:
        device = torch.device("cuda", 0)

    with pytest.raises(ValueError, match=r"generator is on cuda:0 .* torch.Generator\('cpu'\)"):
        require_generator(OnAGPU(), torch.device("cpu"))
    assert require_generator(torch.Generator(), torch.device("cpu")) is None
