"""GPT step by step: the cache, the decoder and causality, for every wiring and for random ones.

(Where a step differs from its part's `forward`, `decoder` calls the model instead, and all here
holds: each part's step is compared with it in fast/test_steps.py.)
"""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import CONTEXT, VOCABULARY, WIRINGS, make, random_ids
from torch.testing import assert_close

from transformer_lib.blocks import NORMS
from transformer_lib.fast.decoding import decoder
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.layers import ACTIVATIONS
from transformer_lib.wiring import GATED, POSITIONS

EVERY_WIRING = pytest.mark.parametrize("config", WIRINGS.values(), ids=WIRINGS)


@pytest.mark.slow
@EVERY_WIRING
@pytest.mark.parametrize("steps", [[1] * 13, [13], [5, 1, 1, 6], [1, 3, 9]])
@torch.no_grad()
def test_the_cache_equals_the_full_pass(config, steps):
    model, ids = make(config), random_ids()
    cache = model.new_cache(batch=2)
    parts = [model(part, cache) for part in ids.split(steps, dim=1)]
    assert_close(torch.cat(parts, dim=1), model(ids), rtol=0, atol=1e-12)
    assert cache.length == CONTEXT
    cache.reset()
    assert model(ids[:, :4], cache).equal(model(ids[:, :4], model.new_cache(2)))


@torch.no_grad()
def test_a_selection_of_the_caches_sequences():
    model, ids = make(WIRINGS["fast, qk_norm"]), random_ids(batch=3)
    cache, rows = model.new_cache(batch=3), torch.tensor([2, 0, 2, 2])
    model(ids[:, :6], cache)
    cache.select(rows)
    assert repr(cache) == "ModelCache(layers=2, batch=4, length=6, capacity=13)"
    assert_close(model(ids[rows, 6:], cache), model(ids)[rows, 6:], rtol=0, atol=1e-12)


@st.composite
def problems(draw, dtype):
    """A model of any wiring and size, with token ids, two at least."""
    n_heads, context = draw(st.integers(1, 4)), draw(st.integers(2, 19))
    flags = ("rms_norm", "bias", "tied", "qk_norm")
    config = GPTConfig(
        vocabulary=draw(st.integers(2, 23)),
        context=context,
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_heads,
        n_kv_heads=draw(st.sampled_from([None, *(n for n in (1, 2, 4) if n_heads % n == 0)])),
        d_model=n_heads * draw(st.sampled_from([4, 6, 10])),
        d_ff=draw(st.sampled_from([None, 1, 17])),
        norm=draw(st.sampled_from(sorted(NORMS))),
        activation=draw(st.sampled_from(sorted([*ACTIVATIONS, *GATED]))),
        positions=draw(st.sampled_from(POSITIONS)),
        smear=draw(st.integers(0, 4)),
        **{flag: draw(st.booleans()) for flag in flags},
    )
    torch.manual_seed(draw(st.integers(0, 2**31)))
    shape = (draw(st.integers(1, 3)), draw(st.integers(2, context)))
    return make(config, dtype), torch.randint(config.vocabulary, shape)


@pytest.mark.slow
@given(problems(torch.float64), st.data())
@torch.no_grad()
def test_any_model_piece_by_piece_with_its_cache_equals_the_full_pass(problem, data):
    model, ids = problem
    batch, tokens = ids.shape
    ends = [*sorted(data.draw(st.sets(st.integers(1, tokens - 1)))), tokens]
    cache = model.new_cache(batch, capacity=data.draw(st.integers(tokens, model.config.context)))
    parts, start = [], 0
    for end in ends:
        parts.append(model(ids[:, start:end], cache))
        start = end
    assert_close(torch.cat(parts, dim=1), model(ids), rtol=0, atol=1e-12)


@pytest.mark.slow
@given(problems(torch.float64), st.data())
@torch.no_grad()
def test_any_model_token_by_token_with_its_decoder_equals_the_full_pass(problem, data):
    model, ids = problem
    batch, tokens = ids.shape
    prompt = data.draw(st.integers(0, tokens - 1))
    cache = model.new_cache(batch, capacity=data.draw(st.integers(tokens, model.config.context)))
    full = model(ids)
    if prompt > 0:
        model(ids[:, :prompt], cache)
    advance = decoder(model, cache)
    for place in range(prompt, tokens):
        assert_close(advance(ids[:, place]), full[:, place], rtol=0, atol=1e-12)
    assert cache.length == tokens


@pytest.mark.slow
@given(problems(torch.float32), st.data())
@torch.no_grad()
def test_in_any_model_what_comes_later_changes_nothing_before_it(problem, data):
    """Causality, bitwise: another future, the same logits up to here."""
    model, ids = problem
    batch, tokens = ids.shape
    here = data.draw(st.integers(1, tokens - 1))
    other = ids.clone()
    shift = torch.randint(1, model.config.vocabulary, (batch, tokens - here))
    other[:, here:] = (other[:, here:] + shift) % model.config.vocabulary  # every one is another
    logits, changed = model(ids), model(other)
    assert logits[:, :here].equal(changed[:, :here])
    assert not logits[:, here].equal(changed[:, here])


def test_beyond_the_trained_length_where_positions_are_computed():
    short = make(WIRINGS["fast"])
    long = GPT(dataclasses.replace(short.config, context=3 * CONTEXT)).double()
    long.load_state_dict(short.state_dict())
    ids = random_ids(tokens=3 * CONTEXT)
    assert_close(long(ids)[:, :CONTEXT], short(ids[:, :CONTEXT]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "fast, qk_norm"])
def test_autocast_to_bfloat16_with_and_without_the_cache(name):
    model, ids = GPT(WIRINGS[name]), random_ids()
    with torch.autocast("cpu", torch.bfloat16):
        model(ids).float().logsumexp(-1).sum().backward()
        with torch.no_grad():
            cache = model.new_cache(2)
            parts = [model(part, cache) for part in ids.split([6, 1, 6], dim=1)]
            full = model(ids)
    assert cache.length == CONTEXT
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert_close(torch.cat(parts, dim=1).float(), full.float(), rtol=0, atol=0.02)


@pytest.mark.usefixtures("as_a_reader")
def test_a_call_that_fails_leaves_the_cache_as_it_was():
    model, ids = make(WIRINGS["fast"]), random_ids()
    cache = model.new_cache(2, capacity=9)
    with torch.no_grad():
        model(ids[:, :6], cache)
        for wrong, message in [
            (ids[:, :5], "holds 6 of at most 9 tokens and cannot take 5 more"),
            (ids[:, :8], "14 tokens are more than the model's context"),
            (ids[:1, :1], r"made for 2 sequences .* model.new_cache\(1\)"),
            (ids[:, :1] + VOCABULARY, "this model's vocabulary has ids 0 to 22"),
        ]:
            with pytest.raises(ValueError, match=message):
                model(wrong, cache)
    with pytest.raises(ValueError, match=r"carries a gradient; .* under torch.no_grad\(\)"):
        model(ids[:, 6:9], cache)
    assert cache.length == 6
    with torch.no_grad():
        assert_close(model(ids[:, 6:9], cache), model(ids[:, :9])[:, 6:], rtol=0, atol=1e-12)
