"""Attention maps: exactly what the module used, and a model that is left as it was."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention, merge_heads
from transformer_lib.cache import KeyValueCache
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.masks import padding_mask
from transformer_lib.positions import AlibiPositions, RotaryPositions

BATCH, TOKENS, KEYS, HEADS, D_MODEL = 2, 5, 7, 3, 12
POSITIONS = pytest.mark.parametrize("positions", [None, RotaryPositions(4), AlibiPositions(HEADS)])


class TwoLayers(nn.Module):
    """Self-attention, dropout, then attention to a memory, called by keywords."""

    def __init__(self, positions=None):
        super().__init__()
        self.first = MultiHeadAttention(D_MODEL, HEADS, dropout=0.5, positions=positions)
        self.drop = nn.Dropout(0.5)
        self.second = MultiHeadAttention(D_MODEL, HEADS, dropout=0.5)

    def forward(self, x, memory, mask=None, fail=False):
        x = x + self.drop(self.first(x, causal=True))
        if fail:
            raise RuntimeError("the model broke")
        return x + self.second(x, memory=memory, mask=mask)


def inputs():
    return torch.randn(BATCH, TOKENS, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)


def hooks(model):
    return [len(module._forward_pre_hooks) for module in model.modules()]


@POSITIONS
def test_the_maps_are_what_the_model_used(positions):
    """Weights times values through the output projection give the module's own output."""
    model, (x, memory) = TwoLayers(positions).eval(), inputs()
    mask = padding_mask([3, 7], KEYS)
    maps = attention_maps(model, x, memory, mask=mask)
    assert list(maps) == ["first", "second"]
    assert maps["first"].shape == (BATCH, HEADS, TOKENS, TOKENS)
    assert maps["second"].shape == (BATCH, HEADS, TOKENS, KEYS)

    _, _, values = model.first.project(x)
    rebuilt = model.first.output(merge_heads(maps["first"] @ values))
    assert_close(rebuilt, model.first(x, causal=True))
    y = x + rebuilt
    _, _, values = model.second.project(y, memory)
    assert_close(
        y + model.second.output(merge_heads(maps["second"] @ values)), model(x, memory, mask)
    )

    assert (maps["first"].triu(diagonal=1) == 0).all()
    assert (maps["second"][0, :, :, 3:] == 0).all()
    for weights in maps.values():
        assert not weights.requires_grad
        assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_a_module_by_itself_is_called_attention():
    x, _ = inputs()
    maps = attention_maps(MultiHeadAttention(D_MODEL, HEADS), x)
    assert list(maps) == ["attention"]


class OwnNames(MultiHeadAttention):
    def forward(self, tokens, source, readable):
        return super().forward(tokens, source, readable)


def test_the_arguments_of_an_attention_may_have_other_names():
    model, (x, memory) = OwnNames(D_MODEL, HEADS), inputs()
    mask = padding_mask([3, 7], KEYS)
    maps = attention_maps(model, x, memory, mask)
    model.__class__ = MultiHeadAttention
    assert maps["attention"].equal(attention_maps(model, x, memory, mask)["attention"])


class PassesOptions(MultiHeadAttention):
    def forward(self, x, **options):
        return super().forward(x, **options)


class PassesAll(MultiHeadAttention):
    def forward(self, *args, **options):
        return super().forward(*args, **options)


@pytest.mark.parametrize("kind", [PassesOptions, PassesAll, None])
def test_an_attention_may_pass_on_what_it_gets(kind):
    model, (x, memory) = (kind or MultiHeadAttention)(D_MODEL, HEADS), inputs()
    plain = MultiHeadAttention.forward
    if kind is None:
        model.forward = lambda *args, **options: plain(model, *args, **options)
    mask = padding_mask([3, 7], KEYS)
    calls = [{"memory": memory, "mask": mask}, {"causal": True}]
    found = [attention_maps(model, x, **options)["attention"] for options in calls]
    model.__class__, model.forward = MultiHeadAttention, partial(plain, model)
    for maps, options in zip(found, calls, strict=True):
        assert maps.equal(attention_maps(model, x, **options)["attention"])


def test_an_attention_may_change_what_it_gets():
    class Louder(MultiHeadAttention):
        def forward(self, x, **options):
            return super().forward(3 * x, **options)

    model, (x, _) = Louder(D_MODEL, HEADS), inputs()
    maps = attention_maps(model, x, causal=True)
    assert "project" not in vars(model)
    model.__class__ = MultiHeadAttention
    assert maps["attention"].equal(attention_maps(model, 3 * x, causal=True)["attention"])


class OnMps(MultiHeadAttention):
    def parameters(self, recurse=True):
        yield SimpleNamespace(device=torch.device("mps"))


def test_a_mac_s_random_state_is_put_back(monkeypatch):
    put_back = []
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: "state")
    monkeypatch.setattr(torch.mps, "set_rng_state", put_back.append)
    attention_maps(OnMps(D_MODEL, HEADS), inputs()[0])
    assert put_back == ["state"]


def test_a_module_that_runs_three_times():
    shared = MultiHeadAttention(D_MODEL, HEADS)
    model, (x, _) = nn.Sequential(shared, nn.Identity(), shared, shared), inputs()
    maps = attention_maps(model, x)
    assert list(maps) == ["0", "0#2", "0#3"]
    assert not maps["0"].equal(maps["0#2"])
    assert maps["0#3"].equal(attention_maps(shared, shared(shared(x)))["attention"])


def test_looking_does_not_change_how_a_model_trains():
    model, (x, memory) = TwoLayers().train(), inputs()
    before = torch.get_rng_state()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    maps = attention_maps(model, x, memory)
    assert torch.get_rng_state().equal(before)
    assert model.training
    assert all(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert torch.is_grad_enabled()
    assert sum(hooks(model)) == 0
    assert all(value.equal(state[name]) for name, value in model.state_dict().items())
    assert {name: set(vars(module)) for name, module in model.named_modules()} == attributes
    for weights in maps.values():  # dropout is not part of the weights
        assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_a_model_that_raises_is_left_without_hooks():
    model, (x, memory) = TwoLayers(), inputs()
    with pytest.raises(RuntimeError, match="the model broke"):
        attention_maps(model, x, memory, fail=True)
    assert sum(hooks(model)) == 0
    assert torch.is_grad_enabled()


def test_other_hooks_stay_and_have_their_say():
    model, (x, _) = MultiHeadAttention(D_MODEL, HEADS), inputs()
    model.register_forward_pre_hook(lambda module, args: (2 * args[0],))
    maps = attention_maps(model, x)
    assert hooks(model)[0] == 1
    plain = MultiHeadAttention(D_MODEL, HEADS)
    plain.load_state_dict(model.state_dict())
    assert maps["attention"].equal(attention_maps(plain, 2 * x)["attention"])


def test_a_cache_is_refused_and_not_written_to():
    model, (x, _) = MultiHeadAttention(D_MODEL, HEADS), inputs()
    cache = KeyValueCache(BATCH, HEADS, KEYS, D_MODEL // HEADS)
    with pytest.raises(ValueError, match=r"without a cache: .* Give the model the whole sequence"):
        attention_maps(model, x, causal=True, cache=cache)
    assert cache.length == 0
    assert hooks(model)[0] == 0


@pytest.mark.slow
def test_a_compiled_model_is_traced_through_its_source():
    model, (x, memory) = TwoLayers().eval(), inputs()
    compiled = torch.compile(model, backend="eager")
    maps, expected = attention_maps(compiled, x, memory), attention_maps(model, x, memory)
    assert list(maps) == ["first", "second"]
    assert all(maps[name].equal(expected[name]) for name in maps)


def test_a_model_without_attention():
    with pytest.raises(ValueError, match="no MultiHeadAttention of transformer_lib in this Linear"):
        attention_maps(nn.Linear(3, 3), torch.ones(2, 3))


def test_attention_that_does_not_run():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = MultiHeadAttention(D_MODEL, HEADS)

        def forward(self, x):
            return x

    with pytest.raises(ValueError, match="attend: none of them was called"):
        attention_maps(Unused(), torch.ones(2, 3))


def test_nan_is_refused_with_the_name_of_the_layer():
    model, (x, memory) = TwoLayers().eval(), inputs()
    memory[1, 2, 3] = torch.nan
    with pytest.raises(ValueError, match=r"the attention map of second holds .* NaN"):
        attention_maps(model, x, memory)


@pytest.mark.usefixtures("as_a_reader")
def test_a_wrong_argument_gets_the_modules_own_error():
    with pytest.raises(ValueError, match=r"x has shape \(2, 0, 12\)"):
        attention_maps(MultiHeadAttention(D_MODEL, HEADS), torch.ones(2, 0, D_MODEL))


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", ["", "first", "second"])
def test_compiled_parts_are_traced_as_they_are_written(name):
    model, (x, memory) = TwoLayers().eval(), inputs()
    expected = attention_maps(model, x, memory)
    part = model.get_submodule(name)
    part.compile(backend="eager")
    output = model(x, memory)  # compiled now
    maps = attention_maps(model, x, memory)
    assert list(maps) == list(expected) == ["first", "second"]
    for key, weights in maps.items():
        assert_close(weights, expected[key])
    assert_close(model(x, memory), output)
