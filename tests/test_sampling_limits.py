"""Sampling at its limits: extreme temperatures, NaN on the way, prompts of other kinds."""

import numpy as np
import pytest
import torch
from models import VOCABULARY, WIRINGS, make, random_ids
from torch import nn
from torch.testing import assert_close

from transformer_lib.beam import beam_search
from transformer_lib.sampling import (
    filter_logits,
    generate,
    keep_top_p,
    next_logits,
)


@pytest.mark.parametrize("temperature", [1e-30, 1e-6, 1e6, 1e30])
def test_extreme_temperatures_stay_finite_in_32_bits(temperature):
    logits = torch.tensor([1e4, -1e4, 9e3, -torch.inf, 0.0])
    left = filter_logits(logits, temperature=temperature, top_k=4, top_p=0.99)
    probabilities = left.softmax(dim=-1)
    assert probabilities.isfinite().all()
    assert probabilities[3] == 0
    if temperature < 1:
        assert probabilities.tolist() == [1, 0, 0, 0, 0]
    model = make(WIRINGS["fast"], torch.float32)
    assert generate(model, random_ids(tokens=3), 4, temperature=temperature).shape == (2, 7)


@pytest.mark.parametrize("temperature", [1e-40, 1e-31, 1e31, 1e39, float("inf"), -1e-9])
@pytest.mark.usefixtures("as_a_reader")
def test_temperatures_that_would_overflow(temperature):
    message = rf"temperature is {temperature}; .* in 32 bits .* from 1e-30 to 1e30, or 0 for greedy"
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        generate(make(WIRINGS["fast"]), random_ids(tokens=3), 4, temperature=temperature)


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_nan_on_the_way_is_found(cache, temperature):
    model = make(WIRINGS["gpt2"])
    model.embedding.positions.table.weight.data[8] = torch.nan
    options = {"temperature": temperature, "cache": cache}
    assert generate(model, random_ids(tokens=3), 6, **options).shape == (2, 9)
    with pytest.raises(ValueError, match="the model's logits holds 46 numbers that are NaN"):
        generate(model, random_ids(tokens=3), 7, **options)


def test_nan_on_the_way_is_found_by_beam_search():
    model = make(WIRINGS["gpt2"])
    model.embedding.positions.table.weight.data[8] = torch.nan
    assert beam_search(model, random_ids(tokens=3), 6, width=2)[1].isfinite().all()
    with pytest.raises(ValueError, match="the model's logits holds 92 numbers that are NaN"):
        beam_search(model, random_ids(tokens=3), 7, width=2)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("kind", [torch.tensor, np.array, tuple])
def test_prompts_may_be_tensors_and_arrays(kind):
    model, prompts = make(WIRINGS["fast"]).eval(), [[3, 1, 4], [2]]
    expected = next_logits(model, prompts)
    assert_close(next_logits(model, [kind(prompt) for prompt in prompts]), expected)
    whole = torch.tensor([[3, 1, 4], [2, 0, 1]])
    assert_close(next_logits(model, whole), model(whole)[:, -1].detach())


@pytest.mark.parametrize("buffer", [True, False])
def test_next_logits_of_a_model_without_parameters(buffer):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            table = torch.eye(VOCABULARY)
            if buffer:
                self.register_buffer("table", table)
            else:
                self.table = table

        def forward(self, ids):
            return self.table[ids]

    assert next_logits(Counts(), [[3, 1], [2]]).argmax(dim=-1).tolist() == [1, 2]


@pytest.mark.parametrize(("dtype", "p"), [(torch.float32, 1e-46), (torch.float16, 1e-8)])
def test_the_most_probable_token_stays_even_where_p_rounds_to_0(dtype, p):
    logits = torch.randn(2, 3, 7, dtype=dtype)
    kept = keep_top_p(logits, p)
    assert (kept.isfinite().sum(dim=-1) == 1).all()
    assert kept.argmax(dim=-1).equal(logits.argmax(dim=-1))
