"""Packing returns every value with its type; generators go on where they were."""

import json
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer_lib.training.checkpoints import load_checkpoint, save_checkpoint
from transformer_lib.training.state import (
    STORED,
    pack,
    random_state,
    require_same_gpus,
    restore_random_state,
    unpack,
)

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
KEYS = st.text(max_size=4) | st.integers(-3, 3) | st.sampled_from(["__tensor__", "__tuple__"])
STATES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


def round_trip(state):
    tensors, rest = pack(state)
    return unpack(tensors, json.loads(json.dumps(rest, allow_nan=False)))


@given(STATES)
def test_anything_of_these_types_comes_back(state):
    assert repr(round_trip(state)) == repr(state)  # repr: NaN is NaN, True is not 1


def test_tensors_come_back_bit_by_bit():
    base = torch.randn(6, 4)
    state = {
        "a": {"b": base.bfloat16(), "c": [torch.tensor(True), torch.empty(0, 3)]},
        "a.b": torch.arange(3),  # the name of the first, too
        "view": base[2:4, 1:3],
        "wide": torch.ones(1, 1).expand(3, 2),
        "turned": base.T,
        "nan": torch.tensor([torch.nan, -0.0, torch.inf]),
        0: torch.tensor(2.5, dtype=torch.float64),
        "dtype": torch.float16,
        "numbers": np.array([3, 2**32 - 1], dtype=np.uint32),
    }
    back = round_trip(state)
    assert back.keys() == state.keys()
    assert back["dtype"] is torch.float16
    assert back["numbers"].dtype == np.uint32
    assert back["numbers"].tolist() == [3, 2**32 - 1]
    for key in ("a.b", "view", "wide", "turned", "nan", 0):
        assert back[key].dtype == state[key].dtype
        torch.testing.assert_close(back[key], state[key], rtol=0, atol=0, equal_nan=True)
    assert torch.signbit(back["nan"][1])
    assert back["a"]["b"].equal(state["a"]["b"])
    assert back["a"]["c"][1].shape == (0, 3)


def test_views_that_turn_the_sign_of_what_is_in_memory_are_stored_as_they_look():
    z = torch.tensor([1 + 2j, 3 - 4j])
    state = {"plus": z.imag, "minus": z.conj().imag}
    assert state["minus"].is_neg()
    back = round_trip(state)
    assert back["plus"].tolist() == [2, -4]
    assert back["minus"].tolist() == [-2, 4]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2).to(torch.float8_e5m2),
        torch.ones(2, 2).to_sparse(),
    ],
)
def test_tensors_that_would_not_be_read_again_are_refused(tensor):
    with pytest.raises(TypeError, match=r"the state's a\.b is a tensor of .* does not hold"):
        pack({"a": {"b": tensor}})


def test_every_dtype_that_is_stored_is_read_again(tmp_path):
    state = {str(dtype): torch.ones(3).to(dtype) for dtype in STORED}
    save_checkpoint(tmp_path, 1, state, configuration={}, vocabulary="")
    loaded = load_checkpoint(tmp_path).state
    for name, tensor in state.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].equal(tensor)


def test_tied_weights_are_stored_once():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    tensors, _ = pack(model.state_dict())
    assert list(tensors) == ["0.weight"]
    assert tensors["0.weight"].untyped_storage().nbytes() == 5 * 3 * 4


def test_numbers_of_numpy_become_those_of_python():
    numbers = {"rate": np.float64(0.1), "steps": np.int64(3), "half": np.float32(0.5)}
    _, packed = pack(numbers)
    assert packed == {"rate": 0.1, "steps": 3, "half": 0.5}
    assert json.loads(json.dumps(packed)) == packed


@pytest.mark.parametrize(
    "value", [object(), 1 + 2j, b"bytes", {1, 2}, np.array(3), np.ma.array([1]), print]
)
def test_other_types_are_refused_with_their_place(value):
    with pytest.raises(TypeError, match=r"the state's data\.0\.x is of type .* Convert it"):
        pack({"data": [{"x": value}]})
    circle = []
    circle.append(circle)
    with pytest.raises(TypeError, match="the state contains itself"):
        pack(circle)


@pytest.mark.parametrize(
    "packed",
    [
        {"__tensor__": "nowhere"},
        {"__dtype__": "load"},
        {"__not_finite__": "1"},
        {"__array__": ["os.system"], "dtype": "O"},
        {"__reduce__": ["os", "system"]},
        {"__items__": "ab"},
    ],
)
def test_names_of_what_is_not_there_are_refused(packed):
    with pytest.raises(ValueError, match="which is not there"):
        unpack({}, {"a": [packed]})


def draw():
    return [
        random.random(),
        random.gauss(0, 1),  # keeps every second number for the next call
        np.random.standard_normal(),  # noqa: NPY002
        torch.randn(3).tolist(),
    ]


def test_every_generator_goes_on_where_it_was():
    draw()
    state = round_trip(random_state())
    first = draw()
    assert draw() != first
    restore_random_state(state)
    assert draw() == first


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_generators_of_one_s_own_are_states_like_any_other(bits):
    own, numbers = torch.Generator().manual_seed(3), np.random.Generator(bits(5))
    state = round_trip({"own": own.get_state(), "numbers": numbers.bit_generator.state})
    first = [torch.randn(3, generator=own).tolist(), numbers.standard_normal(3).tolist()]
    own.set_state(state["own"])
    numbers.bit_generator.state = state["numbers"]
    assert [torch.randn(3, generator=own).tolist(), numbers.standard_normal(3).tolist()] == first


def test_another_number_of_gpus_is_refused_before_anything_changes(monkeypatch):
    state = random_state()
    before = random.getstate()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(state["cuda"]) + 1)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    random.random()
    later = random.getstate()
    with pytest.raises(ValueError, match=r"Pass other_devices=True \(--other-devices\)"):
        restore_random_state(state)
    assert random.getstate() == later
    restore_random_state(state, other_devices=True)
    assert random.getstate() == before


def test_gpus_that_nothing_has_used_do_not_count(monkeypatch):
    """A run on the CPU goes on with GPUs beside it or without."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    state = random_state()
    assert state["cuda"] == []
    restore_random_state(state)
    require_same_gpus(state | {"cuda": [torch.zeros(16)]}, False)  # a checkpoint from before
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    restore_random_state(state)
    with pytest.raises(ValueError, match="with 1 GPUs, and 0 are in use here"):
        require_same_gpus(state | {"cuda": [torch.zeros(16)]}, False)


@pytest.mark.parametrize(
    ("name", "get", "put"),
    [("mps", "get_rng_state", "set_rng_state"), ("xpu", "get_rng_state_all", "set_rng_state_all")],
)
def test_apples_and_intels_generators_are_kept_too(monkeypatch, name, get, put):
    backend, numbers = getattr(torch, name), [torch.tensor([3, 5], dtype=torch.uint8)]
    kept = numbers[0] if name == "mps" else numbers
    state, restored = random_state(), []
    assert name not in state
    there = torch.backends.mps if name == "mps" else backend
    monkeypatch.setattr(there, "is_available", lambda: True)
    monkeypatch.setattr(backend, get, lambda: kept)
    monkeypatch.setattr(backend, put, restored.append)
    restore_random_state(state)  # of a checkpoint from before, or from another machine
    assert restored == []
    restore_random_state(round_trip(random_state()))
    assert torch.stack([*restored[0]]).tolist() == torch.stack([*kept]).tolist()


def test_the_state_of_a_run_that_kept_generators_of_its_own_is_still_restored():
    state = random_state() | {"own": {}}  # as checkpoints were written at first
    restore_random_state(round_trip(state))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_the_gpus_generator_goes_on_where_it_was():
    torch.cuda.init()
    state = round_trip(random_state())
    first = torch.randn(3, device="cuda")
    restore_random_state(state)
    assert torch.randn(3, device="cuda").equal(first)
