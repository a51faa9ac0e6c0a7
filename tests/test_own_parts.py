"""A reader's own part within a library's block: checked as it is alone, called as it is."""

import copy
import warnings
from collections import Counter

import pytest
import torch
from models import PAIRS, SIZES, WIRINGS, make, make_pair, random_ids
from torch import nn
from torch.testing import assert_close

from transformer_lib import attention as attention_module
from transformer_lib import checks, layers, positions
from transformer_lib.attention import MultiHeadAttention, attention, merge_heads, split_heads
from transformer_lib.beam import beam_search, translate
from transformer_lib.blocks import PreNorm
from transformer_lib.cache import KeyValueCache
from transformer_lib.fast.decoding import treats_tokens_alike
from transformer_lib.gpt import GPTConfig
from transformer_lib.interpret.lens import logit_lens
from transformer_lib.interpret.parts import part_names
from transformer_lib.sampling import generate
from transformer_lib.wiring import ATTENTIONS


class Own(nn.Module):
    """An attention of a reader's own, made of one matrix; ``change`` is a mistake in it."""

    def __init__(self, change=lambda q, k, v: (q, k, v, {})):
        super().__init__()
        self.all, self.change = nn.Linear(12, 36).double(), change

    def forward(self, x, mask=None, *, causal=False, cache=None):
        q, k, v = self.all(x).unsqueeze(1).chunk(3, dim=-1)
        if cache is not None:
            k, v = cache.extend(k, v)
        q, k, v, options = self.change(q, k, v)
        return attention(q, k, v, **{"causal": causal} | options).squeeze(1)


class OwnWithCache(Own):
    def new_cache(self, batch, capacity):
        return KeyValueCache(batch, 1, capacity, 12, dtype=torch.float64)


class OwnAsKeywords(OwnWithCache):
    """Its mask has no default: a block always gives one."""

    def forward(self, x, mask, causal, cache):
        return super().forward(x, mask, causal=causal, cache=cache)


class OwnCache:
    """All that a model asks of a cache, and what its attention asks."""

    def __init__(self, inner):
        self.inner, self.batch, self.capacity = inner, inner.batch, inner.capacity
        self.rewind, self.reset, self.extend = inner.rewind, inner.reset, inner.extend

    @property
    def length(self):
        return self.inner.length

    def select(self, rows):
        self.inner.select(rows)
        self.batch = len(rows)


class OwnWithOwnCache(OwnWithCache):
    def new_cache(self, batch, capacity):
        return OwnCache(super().new_cache(batch, capacity))


def with_attention(part, wiring="gpt2"):
    model = make(WIRINGS[wiring]).eval()
    model.blocks[1].attention = part
    return model


MISTAKES = {
    "one value for five keys": (lambda q, k, v: (q, k, v[:, :, :1], {}), ValueError, "13 keys"),
    "keys of other heads": (
        lambda q, k, v: (q.repeat(1, 2, 1, 1), k, v, {}), ValueError, "all axes before"),
    "a scale of nan": (
        lambda q, k, v: (q, k, v, {"scale": float("nan")}), ValueError, "scale is nan"),
    "a learned scale": (
        lambda q, k, v: (q, k, v, {"scale": torch.tensor(0.5)}), TypeError, "Multiply the queries"),
    "a mask of numbers": (
        lambda q, k, v: (q, k, v, {"mask": torch.ones(13, 13)}), TypeError, "mask has dtype"),
}  # fmt: skip


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("change", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_it_is_found_as_it_is_alone(change, error, message):
    part = Own(change)
    with pytest.raises(error, match=message):
        part(torch.randn(2, 13, 12, dtype=torch.float64), causal=True)
    with pytest.raises(error, match=message):
        with_attention(part)(random_ids())


PART_CHECKS = [
    (attention_module, "require_multi_head_input"),
    (attention_module, "require_splittable"),
    (attention_module, "require_heads_axis"),
    (checks, "require_attention"),
    (layers, "require_rows"),
    (layers, "require_width"),
    (layers, "require_smear_input"),
    (layers, "require_smear_last"),
    (positions, "require_encodable"),
    (positions, "require_turnable"),
]


class Halved(positions.RotaryPositions):
    """Positions of a reader's own, that lose an axis."""

    def rotate(self, x, start):
        return x[:, :, :1]


@pytest.mark.usefixtures("as_a_reader")
def test_a_mistake_in_positions_or_a_hook_is_found_too():
    model = make(WIRINGS["fast"]).eval()
    model.blocks[0].attention.positions = Halved(4)
    with pytest.raises(ValueError, match=r"1 keys .* and 13 values"):
        model(random_ids())
    model = make(WIRINGS["fast"]).eval()
    model.blocks[0].attention.value.register_forward_hook(lambda _, inputs, output: output[:, :1])
    with pytest.raises(ValueError, match=r"13 keys .* and 1 values"):
        model(random_ids())


class Returning(nn.Module):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, x, mask=None, *, causal=False, cache=None):
        return self.result(x)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", ["attention", "feed_forward"])
@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (
            lambda x: x.mean(1, keepdim=True),
            ValueError,
            r"the shape \(2, 1, 12\); as a part",
        ),
        (lambda x: x.mean((0, 1)), ValueError, r"returned the shape \(12,\)"),
        (lambda x: x[..., :1], ValueError, r"the shape \(2, 13, 1\)"),
        (lambda x: (x, None), TypeError, "Returning returned tuple; .* one tensor"),
        (lambda x: None, TypeError, "Returning returned NoneType"),
    ],
)
@pytest.mark.parametrize("training", [False, True])
def test_what_would_be_broadcast_into_the_stream_is_refused(name, result, error, message, training):
    model = make(WIRINGS["gpt2"]).train(training)
    setattr(model.blocks[1], name, Returning(result))
    with pytest.raises(error, match=message):
        model(random_ids())


class Lost(layers.LayerNorm):
    """A norm that loses the axis of the tokens."""

    def forward(self, x):
        return super().forward(x).mean(1, keepdim=True)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", ["norm_1", "norm_2"])
@pytest.mark.parametrize("wiring", ["gpt1", "gpt2"])
def test_a_norm_that_would_be_broadcast_is_refused(wiring, name):
    model = make(WIRINGS[wiring])
    setattr(model.blocks[1], name, Lost(12).double())
    with pytest.raises(ValueError, match=r"\(2, 1, 12\).* the norm .* the shape"):
        model(random_ids())


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", ["norm_1", "norm_2", "norm_3"])
@pytest.mark.parametrize("pair", ["paper", "fast"])
def test_so_is_one_of_a_decoder(pair, name):
    model = make_pair(PAIRS[pair])
    setattr(model.decoder[1], name, Lost(12).double())
    with pytest.raises(ValueError, match=r"\(1, 1, 12\).* the norm .* the shape"):
        model(torch.tensor([[3, 4, 5]]), torch.tensor([[1, 3]]))


class Returned(positions.AlibiPositions):
    def rotate(self, x, start):
        return {1: None, 3: x.double()}[self.n_heads]


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("n_heads", "found"), [(1, "NoneType"), (3, "torch.float64")])
def test_what_positions_must_return(n_heads, found):
    with pytest.raises(TypeError, match=f"rotate of Returned.* returned .*{found}.* own dtype"):
        MultiHeadAttention(12, n_heads, positions=Returned(n_heads))


class Quantized(nn.Module):
    """A product whose matrix is kept in 8 bits, or two numbers a byte."""

    def __init__(self, layer, packed):
        super().__init__()
        self.layer = [layer]
        width = layer.in_features // (2 if packed else 1)
        kept = torch.zeros(layer.out_features, width, dtype=torch.uint8 if packed else torch.int8)
        self.register_buffer("weight", kept)

    def forward(self, x):
        return self.layer[0](x)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("packed", [False, True])
def test_quantized_products_of_ones_own(packed):
    model, ids = make(WIRINGS["fast"], torch.float32).eval(), random_ids(tokens=4)
    expected = generate(model, ids, 8, temperature=0)
    for block in model.blocks:
        for name in ("query", "key", "value", "output"):
            layer = getattr(block.attention, name)
            setattr(block.attention, name, Quantized(layer, packed))
    assert generate(model, ids, 8, temperature=0).equal(expected)
    assert generate(model, ids, 8, temperature=0, cache=False).equal(expected)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("part", [nn.Identity(), nn.Linear(12, 12).double()])
def test_a_part_that_cannot_be_called_as_an_attention_is(part):
    with pytest.raises(TypeError, match=r"cannot be called as a block calls it: .* \(x, mask="):
        with_attention(part)(random_ids())


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("own", [OwnWithCache, OwnAsKeywords, OwnWithOwnCache])
@torch.no_grad()
def test_an_attention_that_makes_its_cache_is_enough(own):
    model, ids = with_attention(own()), random_ids(tokens=6)
    expected = generate(model, ids, 7, temperature=0, cache=False)
    assert generate(model, ids, 7, temperature=0).equal(expected)
    assert beam_search(model, ids, 7, width=1)[0][:, 0].equal(expected)
    assert part_names(model)[-2:] == ["blocks.1.attention", "blocks.1.feed_forward"]
    assert_close(logit_lens(model, ids)[-1], model(ids))


def test_positions_that_it_does_not_take_are_refused(monkeypatch):
    monkeypatch.setitem(ATTENTIONS, "own", lambda wiring: OwnWithCache())
    assert GPTConfig(**SIZES, attention="own").make_attention().all.out_features == 36
    with pytest.raises(ValueError, match=r"'rotary'.* the OwnWithCache .* has no `positions`"):
        GPTConfig.fast(**SIZES, attention="own")


@pytest.mark.usefixtures("as_a_reader")
def test_one_that_makes_none_or_does_not_extend_it_is_told_so():
    ids = random_ids(tokens=6)
    model = with_attention(Own())
    with pytest.raises(TypeError, match=r"Own makes no cache, .* cache=False"):
        generate(model, ids, 2)
    assert generate(model, ids, 2, cache=False).shape == (2, 8)

    class Forgetful(MultiHeadAttention):
        def forward(self, x, mask=None, *, causal=False, cache=None):
            return super().forward(x, None, mask, causal=causal)

    for model in (with_attention(Forgetful(12, 3).double()), make(WIRINGS["gpt2"])):
        model.blocks[0].attention = Forgetful(12, 3).double()
        with pytest.raises(ValueError, match="the cache of block 0 holds 0 tokens, and 6 have"):
            generate(model, ids, 2)


@pytest.mark.usefixtures("as_a_reader")
def test_a_cache_of_another_model_is_refused():
    model, ids = make(WIRINGS["llama"]).eval(), random_ids()
    others = {
        r"k has shape \(2, 1, 13, 4\); this cache takes \[2, 3, tokens, 4\]": make(WIRINGS["gpt2"]),
        "cache is torch.float32 on cpu and k is torch.float64": make(
            WIRINGS["llama"], torch.float32
        ),
    }
    with torch.no_grad():
        for message, other in others.items():
            with pytest.raises((ValueError, TypeError), match=message):
                model(ids, other.new_cache(2))
        with pytest.raises(TypeError, match=r"cache is of type list; .* model.new_cache\(2\)"):
            model(ids, [])


@pytest.fixture
def looks(monkeypatch):
    """Counts how often each check of a part looks at its arguments."""
    counted = Counter()
    for module, name in PART_CHECKS:
        inner = getattr(module, name).__wrapped__

        def counting(*args, name=name, inner=inner, **kwargs):
            counted[name] += 1
            inner(*args, **kwargs)

        monkeypatch.setattr(module, name, checks.at_the_door(counting))
    return counted


@pytest.mark.parametrize("wiring", WIRINGS)
@torch.no_grad()
def test_only_within_a_model_of_the_librarys_parts_are_arguments_checked_once(wiring, looks):
    model, ids = make(WIRINGS[wiring]).eval(), random_ids()
    if checks.holds_others(model):
        pytest.skip("an attention of one's own file: every part checks")
    looks.clear()  # to make a model is to try its positions
    store = model.new_cache(2)
    model(ids[:, :5], store)
    model(ids[:, 5:], store)
    assert not looks
    model.blocks[0](model.embedding(ids), causal=True)
    assert looks["require_attention"] == 1
    looks.clear()
    model.blocks[1].feed_forward = Returning(lambda x: x)  # and now with a reader's part
    model(ids)
    assert looks["require_attention"] == len(model.blocks)


def records(seen):
    return lambda module, inputs, output: seen.append(output.shape)


@pytest.mark.parametrize(
    "name", [name for name, _ in make(WIRINGS["fast, qk_norm"]).named_modules()]
)
def test_a_hook_on_any_module_is_heard_at_every_token(name):
    model, ids, seen = make(WIRINGS["fast, qk_norm"]).eval(), random_ids(tokens=3), []
    expected = generate(model, ids, 6, temperature=0)
    model.get_submodule(name).register_forward_hook(records(seen))
    assert generate(model, ids, 6, temperature=0).equal(expected)
    called = not isinstance(model.get_submodule(name), (nn.ModuleList, nn.ParameterList))
    assert len(seen) >= 6 * called


def test_a_hook_on_all_modules_is_heard_at_every_token():
    model, ids, seen = make(WIRINGS["gpt2"]).eval(), random_ids(tokens=3), []
    handle = nn.modules.module.register_module_forward_hook(records(seen))
    try:
        generate(model, ids, 6)
        assert len(seen) >= 6 * 20
    finally:
        handle.remove()


class OwnEmbedding(layers.Embedding):
    def forward(self, ids, cache=None):
        return 2 * super().forward(ids, cache)


def renamed(model):
    model.embedding.__class__ = OwnEmbedding


def replaced(model):
    plain = model.embedding.forward
    model.embedding.forward = lambda ids, cache=None: 2 * plain(ids, cache)


class OwnDropout(nn.Dropout):
    def forward(self, x):
        return -x


@pytest.mark.parametrize(
    "change", [renamed, replaced, lambda m: setattr(m.embedding, "dropout", OwnDropout())]
)
@pytest.mark.parametrize("wiring", ["gpt2", "fast"])
def test_an_embedding_of_ones_own(change, wiring):
    model, ids = make(WIRINGS[wiring]).eval(), random_ids(tokens=3)
    before = copy.deepcopy(model)
    change(model)
    assert (model(ids) - before(ids)).abs().max() > 1e-3
    expected = generate(model, ids, 7, temperature=0, cache=False)
    assert generate(model, ids, 7, temperature=0).equal(expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_quantized_model_writes():
    model, ids = make(WIRINGS["fast"], torch.float32).eval(), random_ids(tokens=3)
    model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    assert generate(model, ids, 7, cache=False).shape == (2, 10)
    store, text = model.new_cache(2), ids  # its numbers depend on how many tokens come at a time
    with torch.no_grad():
        new = ids
        for _ in range(7):
            new = model(new, store)[:, -1:].argmax(dim=-1)
            text = torch.cat((text, new), dim=1)
    assert generate(model, ids, 7, temperature=0).equal(text)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_over_texts():
    model, ids = make(WIRINGS["gpt2"]).eval(), random_ids()
    each = torch.vmap(lambda one: model(one.unsqueeze(0)).squeeze(0))(ids)
    assert_close(each, model(ids), rtol=0, atol=1e-12)


class OwnCross(nn.Module):
    """A cross-attention that reads the memory itself."""

    def __init__(self):
        super().__init__()
        self.inner = MultiHeadAttention(12, 3).double()

    def forward(self, x, source, readable):
        return self.inner(x, source, readable)


class OwnForward(MultiHeadAttention):
    """One that makes its keys and values in its own forward."""

    def forward(self, x, memory, mask):
        layers = (self.query, x), (self.key, memory), (self.value, memory)
        q, k, v = (split_heads(layer(y), self.n_heads) for layer, y in layers)
        return self.output(merge_heads(attention(q, k, v, mask.unsqueeze(1))))


def test_a_translator_with_a_cross_attention_of_ones_own():
    model = make_pair(PAIRS["pre-norm, one table"])
    own = OwnCross()
    own.inner.load_state_dict(model.decoder[1].cross_attention.state_dict())
    source = torch.tensor([[3, 4, 5], [6, 7, 0]])
    expected = translate(model, source, width=3)
    model.decoder[0].cross_attention.__class__ = OwnForward
    model.decoder[1].cross_attention = own
    assert translate(model, source, width=3) == expected
    own.inner.forward = lambda x, source, readable: x + None
    with pytest.raises(TypeError, match="unsupported operand"):  # its own error, and no other
        translate(model, source)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.usefixtures("as_a_reader")
def test_compiled_a_part_is_one_graph():
    part = layers.FeedForward(4)
    compiled, x = torch.compile(part, backend="eager", fullgraph=True), torch.randn(3, 4)
    assert compiled(x).equal(part(x))
    block = make(WIRINGS["gpt2"]).blocks[0]
    compiled, x = (
        torch.compile(block, backend="eager", fullgraph=True),
        torch.randn(2, 5, 12).double(),
    )
    assert_close(compiled(x, causal=True), block(x, causal=True))


def test_gradients_of_each_text_alone():
    model = make(WIRINGS["gpt2"])
    parameters, ids = dict(model.named_parameters()), random_ids(tokens=5)

    def loss(parameters, one):
        return torch.func.functional_call(model, parameters, (one.unsqueeze(0),)).square().sum()

    each = torch.vmap(torch.func.grad(loss), (None, 0))(parameters, ids)
    model(ids[1:]).square().sum().backward()
    assert_close(each["final_norm.weight"][1], model.final_norm.weight.grad)
    with pytest.raises(ValueError, match="vocabulary has ids"):
        torch.func.grad(loss)(parameters, ids[0] + 1000)


class Wrapper(nn.Module):
    """As adapters wrap a layer."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return 2 * self.inner(x)


@pytest.mark.parametrize("make_layer", [layers.FeedForward, layers.SwiGLU])
def test_a_wrapped_layer_within_a_feed_forward_layer(make_layer):
    think = make_layer(4)
    think.expand = Wrapper(think.expand)
    x = torch.randn(2, 3, 4)
    assert think(x).shape == x.shape
    assert_close(think.stepper()(x[0, 0]), think(x)[0, 0])


@pytest.mark.parametrize("prompt", [1, 4])
def test_an_attention_that_never_reads_its_cache_is_told_so(prompt):
    class Forgetful(OwnWithCache):
        def forward(self, x, mask=None, *, causal=False, cache=None):
            if cache is not None:
                cache.extend(*self.all(x).unsqueeze(1).chunk(3, dim=-1)[1:])
            return super().forward(x, causal=causal)

    model, ids = with_attention(Forgetful()), random_ids(tokens=prompt)
    with pytest.warns(UserWarning, match="another text than without: look at Forgetful"):
        generate(model, ids, 3, temperature=0)
    with pytest.warns(UserWarning, match="another text than without: look at Forgetful"):
        beam_search(model, ids, 3, width=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generate(model, ids, 3, cache=False)
        generate(with_attention(OwnWithCache()), ids, 3)


class TopLeft(MultiHeadAttention):
    """A window of 7 whose places are counted from the first query, not from the first key."""

    def mask_and_bias(self, q, k, mask):
        query, key = torch.arange(q.shape[-2]).unsqueeze(1), torch.arange(k.shape[-2])
        return key > query - 7, None


VECTOR = torch.linspace(0, 9, 12)


class ForgottenStep(PreNorm):
    """Adds something from the ninth token on, and in its step does not."""

    def forward(self, x, mask=None, *, causal=False, cache=None):
        start = 0 if cache is None else cache.length
        late = torch.arange(start, start + x.shape[1]) >= 8
        return super().forward(x, mask, causal=causal, cache=cache) + VECTOR * late.unsqueeze(1)

    def stepper(self, cache):
        return super().stepper(cache)


@pytest.mark.parametrize("wrong", [TopLeft, ForgottenStep])
def test_a_cache_that_is_right_only_at_first_is_found(wrong):
    model, ids = make(WIRINGS["gpt2"]).eval(), random_ids(tokens=5)
    part = model.blocks[1].attention if wrong is TopLeft else model.blocks[1]
    part.__class__ = wrong
    for write in (lambda n: generate(model, ids, n), lambda n: beam_search(model, ids, n, width=2)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write(2)
        with pytest.warns(UserWarning, match=f"than without: look at {wrong.__name__}"):
            write(8)


def test_no_part_of_the_library_s_models_is_suspected_of_mixing_tokens():
    for config in WIRINGS.values():
        parts = {type(part) for part in make(config).modules()}
        assert [part for part in parts if not treats_tokens_alike(part)] == []


def test_a_part_of_pytorch_s_that_mixes_tokens_is_found_too():
    model, ids = make(WIRINGS["gpt2"]).eval(), random_ids(tokens=5)
    width = model.config.d_model
    average = nn.Sequential(nn.ZeroPad2d((0, 0, 2, 0)), nn.AvgPool2d((3, 1), 1))
    model.blocks[0].feed_forward = nn.Sequential(average, nn.Linear(width, width)).double()
    with pytest.warns(UserWarning, match="than without: look at AvgPool2d, ZeroPad2d"):
        generate(model, ids, 4)
