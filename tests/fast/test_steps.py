"""Every part's step for one token equals its forward: found by looking, so none is forgotten."""

import inspect
import pkgutil

import pytest
import torch
from models import (
    CONTEXT,
    PAIRS,
    VOCABULARY_OF_TARGET,
    WIRINGS,
    make,
    make_pair,
    padded,
    random_ids,
)
from torch import nn
from torch.testing import assert_close

import transformer_lib
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import CrossBlock
from transformer_lib.cache import KeyValueCache, ModelCache
from transformer_lib.encoder_decoder import Conditioned, EncoderDecoder
from transformer_lib.fast.decoding import decoder
from transformer_lib.fast.steps import is_idle, linear_step, step_of, stepper_of
from transformer_lib.layers import RMSNorm

BATCH = 3


def classes_with_steppers():
    """Every class of the library that defines a stepper."""
    found = set()
    for info in pkgutil.walk_packages(transformer_lib.__path__, "transformer_lib."):
        if info.ispkg or info.name.split(".")[1] in ("exercises", "widgets", "plots", "training"):
            continue
        module = __import__(info.name, fromlist=["*"])
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__.startswith("transformer_lib") and "stepper" in vars(kind):
                found.add(kind)
    return found


def parts_of_all_wirings():
    """Each part with a stepper of each wiring: name -> (model, part)."""
    found = {}
    for wiring, config in WIRINGS.items():
        model = make(config).eval()
        parts = dict(model.named_modules())
        parts |= {
            f"{name}.positions": part.positions
            for name, part in model.named_modules()
            if stepper_of(getattr(part, "positions", None)) is not None
        }
        for name, part in parts.items():
            if stepper_of(part) is not None:
                found[f"{wiring}: {name or 'model'}"] = (model, part)
    return found


PARTS = parts_of_all_wirings()


def test_every_stepper_of_the_library_is_among_the_parts():
    owners = {
        next(kind for kind in type(part).__mro__ if "stepper" in vars(kind))
        for _, part in PARTS.values()
    }
    assert classes_with_steppers() == owners | READING


# Those that also read a memory; they are compared with their forward further below.
READING = {CrossBlock, EncoderDecoder, Conditioned}


def tokens_through(part, x, model):
    """(the part's forward of all tokens, its steps token by token) for x [batch, tokens, ...]."""
    parameters = list(inspect.signature(part.stepper).parameters)
    if parameters == ["capacity", "like"]:
        step, like = part.stepper(CONTEXT, x), x
        if hasattr(part, "rotate"):
            rows = x.clone().unbind(1)
            for place, row in enumerate(rows):
                step(row, place)
            return part.rotate(like, 0), torch.stack(rows, dim=1)
        rows = [step(row, place) for place, row in enumerate(x.unbind(1))]
        return part(like, 0), torch.stack(rows, dim=1)
    if not parameters and hasattr(part, "reach"):
        step = part.stepper()
        rows = [step(x[:, t], x[:, max(0, t - part.reach) : t].unbind(1)) for t in range(CONTEXT)]
        return part(x), torch.stack(rows, dim=1)
    if not parameters:
        step = part.stepper()
        return part(x), torch.stack([step(row) for row in x.unbind(1)], dim=1)
    is_layer = any(part is block or part is block.attention for block in model.blocks)
    whole = model.new_cache(len(x))
    cache = whole.layers[0] if is_layer else whole
    step = part.stepper(cache)
    rows = []
    for row in x.unbind(1):
        length = whole.length
        rows.append(step(row if len(x) > 1 or row.ndim == 1 else row[0]).view(len(x), -1))
        if whole.length == length:  # an embedding's step leaves the cache's length to the layers
            for layer in whole.layers:
                layer._length += 1
    return part(x, causal=True) if is_layer else part(x), torch.stack(rows, dim=1)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("batch", [1, BATCH])
@torch.no_grad()
def test_a_step_is_the_forward_of_one_token(name, batch):
    model, part = PARTS[name]
    x = random_ids(batch)
    if not isinstance(part, nn.Embedding) and part is not model:
        width = getattr(part, "d_head", None) if hasattr(part, "rotate") else model.config.d_model
        width = len(part.weight) if isinstance(part, RMSNorm) else width
        x = torch.randn(batch, CONTEXT, width, dtype=torch.float64)
    expected, stepped = tokens_through(part, x, model)
    assert_close(stepped, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("sources", [[[3, 4, 5, 6]], [[3, 4, 5, 6], [7], [3, 7, 4]]])
@pytest.mark.parametrize("rows", [1, 2, 9])
@torch.no_grad()
def test_a_step_that_reads_a_memory_is_the_forward_of_one_token(name, sources, rows):
    model = make_pair(PAIRS[name])
    given, batch = model.given(padded(sources)), rows * len(sources)
    ids = torch.randint(VOCABULARY_OF_TARGET, (batch, 5))
    step = given.stepper(given.new_cache(batch, capacity=5))
    steps = torch.stack([step(column) for column in ids.unbind(1)], dim=1)
    assert_close(steps, given(ids), rtol=0, atol=1e-12)
    block, (read, readable), cache = model.decoder[0], given._read[1], given.new_cache(batch)
    x = torch.randn(batch, 5, model.config.d_model, dtype=torch.float64)
    step = block.stepper(cache.layers[0], read[0], readable)
    steps = torch.stack([step(token) for token in x.unbind(1)], dim=1)
    read, readable = given._read_by(rows)
    expected = block(x, read[0], memory_mask=readable, causal=True)
    assert_close(steps, expected, rtol=0, atol=1e-12)


class OwnAttention(MultiHeadAttention):
    """A reader's own, that reads twice as much."""

    def forward(self, x, *args, **options):
        return 2 * super().forward(x, *args, **options)


class OwnDropout(nn.Dropout):
    def forward(self, x):
        return -x


def with_part_of_block(name, part):
    def change(model):
        setattr(model.decoder[1], name, part)

    return change


@pytest.mark.parametrize(
    "change",
    [
        with_part_of_block("cross_attention", OwnAttention(12, 3).double()),
        with_part_of_block("dropout", OwnDropout()),
        lambda model: model.decoder[1].register_forward_hook(lambda block, _, x: 3 * x),
        lambda model: model.register_forward_hook(lambda block, _, x: x),
        lambda model: setattr(model.source_embedding, "dropout", OwnDropout()),
    ],
)
@torch.no_grad()
def test_a_translator_whose_parts_are_changed_is_called(change):
    model = make_pair(PAIRS["pre-norm, one table"])
    change(model)
    given, ids = model.given(torch.tensor([[3, 4, 5]])), torch.tensor([[1, 7, 8, 3]])
    cache = given.new_cache(1)
    assert given.stepper(cache) is None
    advance = decoder(given, cache)
    steps = torch.stack([advance(column) for column in ids.unbind(1)], dim=1)
    assert_close(steps, given(ids), rtol=0, atol=1e-12)


@torch.no_grad()
def test_what_has_no_step_is_called_as_it_is():
    class Own(nn.Module):
        def forward(self, x, causal=None, cache=None):
            assert x.shape[1] == 1
            return x * (2 if cache is None else 3)

    x = torch.randn(BATCH, 4)
    assert step_of(Own())(x).equal(2 * x)
    assert step_of(Own())(x[0]).equal(2 * x[0])
    assert step_of(Own(), KeyValueCache(1, 1, 1, 1))(x).equal(3 * x)


@torch.no_grad()
def test_layers_that_were_changed_are_called():
    plain, hooked = nn.Linear(4, 3), nn.Linear(4, 3)
    hooked.register_forward_hook(lambda module, inputs, output: -output)
    x = torch.randn(BATCH, 4)
    assert_close(linear_step(plain, hooked)(x), torch.cat([plain(x), hooked(x)], dim=-1))
    assert_close(linear_step(plain, plain)(x), torch.cat([plain(x), plain(x)], dim=-1))
    mixed = nn.Linear(4, 3, bias=False)
    assert_close(linear_step(plain, mixed)(x), torch.cat([plain(x), mixed(x)], dim=-1))
    assert is_idle(nn.Dropout(0.5))
    assert is_idle(nn.Identity())
    assert not is_idle(nn.Dropout2d(0.5))


def test_a_cache_rewinds():
    cache = ModelCache(KeyValueCache(1, n_heads=1, capacity=5, d_head=2) for _ in range(2))
    for t in range(3):
        assert cache.before(torch.full((1, 1, 2), float(t)), reach=2).shape[1] == min(t, 2)
        for layer in cache.layers:
            layer.append(torch.full((2, 1, 1, 2), float(t)))
    cache.rewind(2)
    assert cache.length == 1
    assert cache.before(torch.ones(1, 1, 2), reach=2).tolist() == [[[0.0, 0.0]]]
    with pytest.raises(ValueError, match=r"2 tokens cannot be rewound: the cache holds 1"):
        cache.rewind(2)
