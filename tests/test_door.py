"""Arguments are checked once, at the door: by a model, or by a part that is called on its own."""

import pytest
import torch
from wirings import WIRINGS, make, random_ids

from transformer_lib import attention, cache, checks, layers, positions

PART_CHECKS = [
    (attention, "require_multi_head_input"),
    (attention, "require_splittable"),
    (attention, "require_heads_axis"),
    (checks, "require_attention"),
    (cache, "require_cache_entry"),
    (layers, "require_width"),
    (layers, "require_smear_input"),
    (layers, "require_smear_last"),
    (positions, "require_encodable"),
    (positions, "require_turnable"),
]


@pytest.fixture
def looks(monkeypatch):
    """Counts how often each check of a part looks at its arguments."""
    counted = {}
    for module, name in PART_CHECKS:
        inner = getattr(module, name).__wrapped__

        def counting(*args, name=name, inner=inner, **kwargs):
            counted[name] = counted.get(name, 0) + 1
            inner(*args, **kwargs)

        monkeypatch.setattr(module, name, checks.at_the_door(counting))
    return counted


@pytest.mark.parametrize("wiring", WIRINGS)
@torch.no_grad()
def test_within_a_model_no_part_checks_again(wiring, looks):
    model, ids = make(WIRINGS[wiring]).eval(), random_ids()
    looks.clear()  # to make a model is to try its positions
    store = model.new_cache(2)
    model(ids[:, :5], store)
    model(ids[:, 5:], store)
    assert looks == {}
    block = model.blocks[0]
    block(model.embedding(ids), causal=True)
    assert looks["require_multi_head_input"] == 1
    assert looks["require_width"] >= 1 or wiring == "gpt1"


@torch.no_grad()
def test_after_an_error_parts_check_again(looks):
    model, ids = make(WIRINGS["gpt2"]).eval(), random_ids()
    model.blocks[1].attention.query = torch.nn.Linear(5, 5).double()  # found by PyTorch itself
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(ids)
    assert looks == {}
    x = model.embedding(ids)
    with pytest.raises(ValueError, match=r"x has shape \(2, 13, 12\); it must be .* d_model = 5"):
        model.blocks[1].attention(x)


@pytest.mark.usefixtures("as_a_reader")
def test_a_cache_of_another_model_is_refused_at_the_door():
    model, ids = make(WIRINGS["llama"]).eval(), random_ids()
    others = {
        "holds 3 heads of width 4": make(WIRINGS["gpt2"]),
        "in torch.float32 on cpu, and this model needs 1 of width 4 in torch.float64": make(
            WIRINGS["llama"], torch.float32
        ),
    }
    with torch.no_grad():
        for message, other in others.items():
            with pytest.raises(ValueError, match=message):
                model(ids, other.new_cache(2))


@pytest.mark.usefixtures("as_a_reader")
def test_compiled_a_part_is_one_graph():
    part = layers.FeedForward(4)
    compiled, x = torch.compile(part, backend="eager", fullgraph=True), torch.randn(3, 4)
    assert compiled(x).equal(part(x))
