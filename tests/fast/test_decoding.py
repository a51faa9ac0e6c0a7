"""The decoder gives the model's logits, whatever a reader makes of the model's parts."""

import copy
import dataclasses

import pytest
import torch
from models import (
    CONTEXT,
    D_MODEL,
    HEADS,
    LAYERS,
    SIZES,
    VOCABULARY,
    WIRINGS,
    make,
    random_ids,
)
from torch import nn
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beam import beam_search
from transformer_lib.blocks import PreNorm
from transformer_lib.cache import KeyValueCache, ModelCache
from transformer_lib.fast.decoding import agree, computes_plainly, decoder, warn_of_step
from transformer_lib.fast.steps import product, stepper_of
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.layers import FeedForward
from transformer_lib.masks import combine_masks, sliding_window_mask
from transformer_lib.positions import RotaryPositions
from transformer_lib.sampling import generate


class OwnBlock(PreNorm):
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
    old = model.blocks[1]
    model.blocks[1] = OwnBlock(old.attention, old.feed_forward, old.norm_1, old.norm_2).eval()
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
def test_parts_of_a_readers_own_are_called_as_they_are(change):
    plain = make(dataclasses.replace(WIRINGS["gpt2"], positions="rotary"))
    model = change(copy.deepcopy(plain))
    ids = random_ids()
    expected = model(ids)
    dtype = expected.dtype
    close = {torch.float64: 1e-12, torch.float32: 1e-3, torch.bfloat16: 0.3}[dtype]
    cache = model.new_cache(2)
    model(ids[:, :-2], cache)
    advance = decoder(model, cache)
    for place in (-2, -1):  # the first step is computed both ways
        assert_close(advance(ids[:, place]), expected[:, place], rtol=0, atol=close)
    if dtype == torch.float64:  # the change is one that would be missed
        assert (plain(ids) - expected).abs().max() > 1e-3
        cache.rewind(1)  # and the model's own step computes it, too, with what it calls
        assert_close(model.stepper(cache)(ids[:, -1]), expected[:, -1], rtol=0, atol=close)


@pytest.mark.parametrize("name", WIRINGS)
@torch.no_grad()
def test_a_cache_may_be_larger_than_the_context(name):
    model, ids = make(WIRINGS[name]), random_ids()
    cache = model.new_cache(2, capacity=100)
    advance = decoder(model, cache)
    logits = [advance(ids[:, t]) for t in range(CONTEXT)]
    assert_close(torch.stack(logits, dim=1), model(ids), rtol=0, atol=1e-12)


@torch.no_grad()
def test_mixed_dtypes_and_autocast_are_left_to_the_model():
    model = make(WIRINGS["fast"], torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert not computes_plainly(model)
    assert computes_plainly(model)
    model.head.double()
    assert not computes_plainly(model)
    assert not computes_plainly(make(WIRINGS["fast"], torch.bfloat16))
    assert not computes_plainly(nn.Identity())


class Gated(FeedForward):
    """A feed-forward layer with a gate, as somebody adds it who forgets the step."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.gate = nn.Linear(self.expand.in_features, self.expand.out_features)


def gated(self, x):
    return self.contract(nn.functional.silu(self.gate(x)) * self.expand(x))


def windowed(self, q, k, mask, of_the_library=MultiHeadAttention.mask_and_bias):
    mask, bias = of_the_library(self, q, k, mask)
    return combine_masks(mask, sliding_window_mask(q.shape[-2], 3, k.shape[-2])), bias


def scaled(self, x, memory=None, cache=None, of_the_library=MultiHeadAttention.project):
    q, k, v = of_the_library(self, x, memory, cache)
    return 1.5 * q, k, v


TRAPS = {
    "a gate in the feed-forward layer": (FeedForward, "forward", gated),
    "a sliding window": (MultiHeadAttention, "mask_and_bias", windowed),
    "scaled queries": (MultiHeadAttention, "project", scaled),
}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
@pytest.mark.parametrize("prompt", [1, 2, 7])
@pytest.mark.parametrize("how", ["subclass", "within the library"])
def test_a_change_of_forward_alone_never_changes_the_text(trap, prompt, how, monkeypatch):
    """Three changes that an earlier decoder overlooked: the step is the library's old one."""
    kind, name, change = trap
    model = make(WIRINGS["gpt2"])
    if name == "forward":
        for block in model.blocks:
            block.feed_forward.__class__ = Gated
            block.feed_forward.gate = nn.Linear(12, 48, dtype=torch.float64)
    if how == "subclass":
        for block in model.blocks:
            part = block.feed_forward if name == "forward" else block.attention
            part.__class__ = type("Own", (type(part),), {name: change})
    else:
        monkeypatch.setattr(kind, name, change)
    ids, n_tokens = random_ids(tokens=prompt), CONTEXT - prompt
    expected = generate(model, ids, n_tokens, temperature=0, cache=False)
    assert generate(model, ids, n_tokens, temperature=0).equal(expected)
    assert beam_search(model, ids, n_tokens, width=1)[0][:, 0].equal(expected)
    with torch.no_grad():
        cache, whole = model.new_cache(2), model(expected)
        advance = decoder(model, cache)
        logits = [advance(expected[:, t]) for t in range(CONTEXT)]
    assert_close(torch.stack(logits, dim=1), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("prompt", "n_tokens", "calls"), [(1, 5, [1, 1]), (2, 5, [2]), (7, 5, [7]), (7, 1, [7])]
)
def test_the_proof_takes_a_call_of_the_model_only_where_the_prompt_is_one_token(
    prompt, n_tokens, calls, monkeypatch
):
    model, forward, tokens = make(WIRINGS["gpt2"]), GPT.forward, []

    def counted(self, ids, cache=None):
        tokens.append(ids.shape[1])
        return forward(self, ids, cache)

    monkeypatch.setattr(GPT, "forward", counted)
    generate(model, random_ids(tokens=prompt), n_tokens)
    assert tokens == calls


def test_a_stepper_speaks_for_its_class_alone():
    part = FeedForward(12)
    assert stepper_of(part) is not None
    assert stepper_of(type("Renamed", (FeedForward,), {})(12)) is not None
    assert stepper_of(type("Own", (FeedForward,), {"forward": gated})(12)) is None
    rewired = type(
        "Rewired", (PreNorm,), {"wire": lambda self, x, *parts: x}
    )  # a block steps by it
    assert stepper_of(rewired(*(nn.Identity() for _ in range(4)))) is not None
    own = type("Own", (FeedForward,), {"forward": gated, "stepper": lambda self: torch.tanh})(12)
    assert stepper_of(own)() is torch.tanh
    part.forward = lambda x: x
    assert stepper_of(part) is None
    assert stepper_of(nn.Linear(2, 2)) is None


def test_logits_agree_up_to_rounding():
    logits = torch.tensor([1.0, -20.0, 3.0])
    assert agree(logits + 1e-5, logits)
    assert not agree(logits + 0.05, logits)
    assert not agree(logits * torch.nan, logits)
    assert not agree(logits.double() + 1e-6, logits.double())


def test_where_products_may_be_rounded_coarsely_logits_differ_by_more():
    logits, before = torch.tensor([1.0, -20.0, 3.0]), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert agree(logits + 0.05, logits)
        assert not agree(logits + 1, logits)
        assert not agree(logits.double() + 1e-6, logits.double())
    finally:
        torch.set_float32_matmul_precision(before)


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


def test_a_table_whose_rows_are_shortened_when_they_are_looked_up():
    model, ids = make(WIRINGS["gpt2"]), random_ids(tokens=2)
    model.embedding.max_norm = 0.01
    texts = [generate(copy.deepcopy(model), ids, 4, temperature=0, cache=c) for c in (True, False)]
    assert texts[0].equal(texts[1])


@pytest.mark.parametrize("prompt", [1, 3])
def test_a_step_that_is_not_its_forward_is_told_so(prompt, monkeypatch):
    monkeypatch.setattr(MultiHeadAttention, "project", scaled)
    with pytest.warns(UserWarning, match="quick step of this GPT and its forward give different"):
        generate(make(WIRINGS["gpt2"]), random_ids(tokens=prompt), 3, temperature=0)


def test_nan_in_a_weight_is_told_where_only_the_step_shows_it():
    """Some of PyTorch's kernels hide it from a short text."""
    model, logits = make(WIRINGS["gpt2"]), torch.zeros(1, 7)
    with pytest.warns(UserWarning, match="The step's are not finite: look for NaN in the weights"):
        warn_of_step(model, logits + torch.nan, logits, logits)


def test_an_embedding_s_own_scores_are_asked_for_at_each_step():
    """What cuts off only the largest would not be seen in the one step that is compared."""
    model = make(GPTConfig(**SIZES, tied=True)).eval()
    scored, asked = model.embedding.logits, []
    model.embedding.logits = lambda x: asked.append(x) or scored(x)
    step = decoder(model, model.new_cache(1))
    with torch.no_grad():
        for token in random_ids(1)[0]:
            asked.clear()
            step(token.view(1))
            assert asked


def forgetful(model):
    """Caches that keep all that they are given, and give only the newest three."""
    cache = model.new_cache(1)
    for layer in cache.layers:

        def extend(*given, kept=layer.extend):
            found = kept(*given)
            if isinstance(found, tuple):
                return tuple(x[:, :, -3:] for x in found)
            return found[:, :, -3:]

        layer.extend = extend
    return cache


@pytest.mark.parametrize("wiring", ["gpt2", "latent"])
def test_a_cache_that_has_extend_of_its_own_is_asked_at_each_step(wiring):
    model = make(WIRINGS[wiring]).eval()
    step, cache = decoder(model, forgetful(model)), forgetful(model)
    with torch.no_grad():
        for token in random_ids(1)[0]:
            assert_close(step(token.view(1)), model(token.view(1, 1), cache)[:, -1])


def test_a_window_s_step_leaves_a_cache_without_a_window_to_forward():
    model, ids = make(WIRINGS["window"], torch.float32).eval(), random_ids(1)
    sizes = {"batch": 1, "n_heads": 1, "capacity": CONTEXT, "d_head": D_MODEL // HEADS}
    caches = [ModelCache([KeyValueCache(**sizes) for _ in range(LAYERS)]) for _ in range(2)]
    step = decoder(model, caches[0])
    with torch.no_grad():
        for token in ids[0]:
            expected = model(token.view(1, 1), caches[1])[:, -1]
            assert_close(step(token.view(1)), expected)
