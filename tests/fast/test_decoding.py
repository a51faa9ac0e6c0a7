"""The decoder: the same logits as the model it was made for, and that model where it knows less."""

import copy
import dataclasses

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from wirings import CONTEXT, VOCABULARY, WIRINGS, make, random_ids

from transformer_lib.blocks import Block
from transformer_lib.cache import KeyValueCache
from transformer_lib.fast.decoding import decoder, is_known, product
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.positions import RotaryPositions


class OwnBlock(Block):
    """A block of a reader's own."""

    def forward(self, x, mask=None, *, causal=False, cache=None):
        return x.roll(1, dims=-1) + super().forward(x, mask, causal=causal, cache=cache)


def with_hook(model, kind):
    part = model.blocks[0].feed_forward
    if kind == "before":
        part.register_forward_pre_hook(lambda module, inputs: (3 * inputs[0],))
    else:
        part.register_forward_hook(lambda module, inputs, output: 3 * output)
    return model


def with_a_forward_put_in_place(model):
    part = model.blocks[0].feed_forward
    part.forward = lambda x: 3 * x
    return model


def with_own_block(model):
    block = OwnBlock(12, 3).to(model.embedding.weight.dtype)
    block.load_state_dict(model.blocks[1].state_dict())
    model.blocks[1] = block
    return model


def with_parametrization(model):
    layer = model.blocks[0].attention.output
    nn.utils.parametrizations.weight_norm(layer)
    layer.parametrizations.weight.original0.data.mul_(2.0)
    return model


@dataclasses.dataclass(frozen=True)
class OwnPositions(RotaryPositions):
    """Rotary positions of a reader's own, that count by threes."""

    def rotate(self, x, start):
        return 3 * super().rotate(x, start)

    __hash__ = None  # nobody may need one


def with_positions(model, positions, *blocks):
    for block in blocks:
        model.blocks[block].attention.positions = positions
    return model


def with_part(model, name, part):
    setattr(model.blocks[1], name, part)
    return model


CHANGES = {
    "no positions in block 1": lambda model: with_positions(model, None, 1),
    "another base in block 1": lambda model: with_positions(model, RotaryPositions(4, 50.0), 1),
    "own positions in block 1": lambda model: with_positions(model, OwnPositions(4), 1),
    "own positions": lambda model: with_positions(model, OwnPositions(4), 0, 1),
    "no feed-forward": lambda model: with_part(model, "feed_forward", nn.Identity()),
    "a norm without weights": lambda model: with_part(
        model, "norm_1", nn.LayerNorm(12, elementwise_affine=False)
    ),
    "a norm in place of dropout": lambda model: with_part(
        model, "dropout", nn.LayerNorm(12).double()
    ),
    "a hook before": lambda model: with_hook(model, "before"),
    "a hook after": lambda model: with_hook(model, "after"),
    "a forward put in place": with_a_forward_put_in_place,
    "a block of one's own": with_own_block,
    "a parametrization": with_parametrization,
    "16 bits": lambda model: model.to(torch.bfloat16),
    "a part in 32 bits": lambda model: model.float(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@torch.no_grad()
def test_what_the_steps_do_not_know_is_called_as_it_is(change):
    plain = make(dataclasses.replace(WIRINGS["gpt2"], positions="rotary"))
    model = change(copy.deepcopy(plain))
    ids = random_ids()
    expected = model(ids)
    dtype = expected.dtype
    close = {torch.float64: 1e-12, torch.float32: 1e-3, torch.bfloat16: 0.3}[dtype]
    cache = model.new_cache(2)
    model(ids[:, :-1], cache)
    assert_close(decoder(model, cache)(ids[:, -1]), expected[:, -1], rtol=0, atol=close)
    assert is_known(plain)
    assert is_known(model) == (dtype == torch.float32)
    if dtype == torch.float64:  # the change is one that would be missed
        assert (plain(ids) - expected).abs().max() > 1e-3


@pytest.mark.parametrize("name", WIRINGS)
@torch.no_grad()
def test_a_cache_may_be_larger_than_the_context(name):
    model, ids = make(WIRINGS[name]), random_ids()
    assert is_known(model)
    cache = model.new_cache(2, capacity=100)
    advance = decoder(model, cache)
    logits = [advance(ids[:, t]) for t in range(CONTEXT)]
    assert_close(torch.stack(logits, dim=1), model(ids), rtol=0, atol=1e-12)


@torch.no_grad()
def test_mixed_dtypes_and_autocast_are_left_to_the_model():
    model = make(WIRINGS["fast"], torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert not is_known(model)
    assert is_known(model)
    model.head.double()
    assert not is_known(model)
    assert not is_known(nn.Sequential(model))
    assert not is_known(nn.Linear(2, 2))


@torch.no_grad()
def test_steps_and_whole_passes_share_a_cache():
    """Prompt, step, more text at once, step, other rows, step: as beam search mixes them."""
    model, ids = make(WIRINGS["fast, qk_norm"]), random_ids(batch=3)
    cache, rows, full = model.new_cache(3), torch.tensor([2, 0, 2, 1]), model(ids)
    advance = decoder(model, cache)
    for part, place in [(ids[:, 1:6], 6), (ids[:, 7:9], 9)]:
        if place == 6:
            advance(ids[:, 0])
        model(part, cache)
        assert_close(advance(ids[:, place]), full[:, place], rtol=0, atol=1e-12)
    cache.select(rows)
    assert_close(advance(ids[rows, 10]), full[rows, 10], rtol=0, atol=1e-12)
    cache.reset()
    assert_close(advance(ids[0, :1].expand(4)), full[[0] * 4, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", WIRINGS)
@torch.no_grad()
def test_one_sequence_and_its_copy_beside_it_give_the_same(name):
    """One alone is computed as a vector."""
    model, ids = make(WIRINGS[name]), random_ids(batch=1)
    logits = []
    for batch in (1, 2):
        advance = decoder(model, model.new_cache(batch))
        logits.append([advance(ids[0, t].expand(batch))[0] for t in range(CONTEXT)])
    assert_close(torch.stack(logits[0]), torch.stack(logits[1]), rtol=0, atol=1e-12)
    assert logits[0][0].shape == (VOCABULARY,)


@torch.no_grad()
def test_what_a_step_returns_and_stores_is_not_written_to_later():
    model, ids = make(WIRINGS["fast, qk_norm"]), random_ids(batch=1)
    cache = model.new_cache(1)
    advance, weights = decoder(model, cache), copy.deepcopy(model.state_dict())
    results = [advance(ids[:, t]) for t in range(CONTEXT)]
    copies = [result.clone() for result in results]
    advance_again = decoder(model, model.new_cache(1))
    for t in range(CONTEXT):
        advance_again(ids[:, -1 - t])
    assert all(a.equal(b) for a, b in zip(results, copies, strict=True))
    assert all(weight.equal(weights[name]) for name, weight in model.state_dict().items())


def test_append_is_extend_by_one():
    ours, theirs = (KeyValueCache(2, 3, 4, 5) for _ in range(2))
    for length in range(1, 5):
        kv = torch.randn(2, 2, 3, 5)
        keys, values = ours.append(kv)
        their_keys, their_values = theirs.extend(*kv.unsqueeze(3))
        assert keys.equal(their_keys.flatten(0, 1))
        assert values.equal(their_values.flatten(0, 1))
        assert (ours.length, keys.shape) == (length, (6, length, 5))
    with pytest.raises((IndexError, RuntimeError)):
        ours.append(kv)


def test_without_gradients_the_model_stays_trainable():
    model = GPT(GPTConfig.fast(vocabulary=7, context=5, n_layers=1, n_heads=1, d_model=4))
    with torch.no_grad():
        decoder(model, model.new_cache(1))(torch.tensor([3]))
    model(torch.tensor([[1, 2, 3]])).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("rows", [1, 3, 7, 8, 16, 48, 49])
@pytest.mark.parametrize("bias", [False, True])
def test_products_are_those_of_linear(rows, bias):
    x, weight = torch.randn(rows, 7, dtype=torch.float64), torch.randn(5, 7, dtype=torch.float64)
    offset = torch.randn(5, dtype=torch.float64) if bias else None
    expected = nn.functional.linear(x, weight, offset)
    assert_close(product(x, weight, offset), expected, rtol=0, atol=1e-13)
    assert_close(product(x[0], weight, offset), expected[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", WIRINGS)
@torch.no_grad()
def test_a_batch_gives_what_a_whole_pass_does(name):
    model, ids = make(WIRINGS[name]), random_ids(batch=13)
    cache = model.new_cache(13)
    advance = decoder(model, cache)
    logits = [advance(ids[:, t]) for t in range(ids.shape[1])]
    assert_close(torch.stack(logits, dim=1), model(ids), rtol=0, atol=1e-12)
