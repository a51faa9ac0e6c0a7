"""ModelView and NeuronView in Python: what they take and refuse, and bertviz as they expect it."""

import json

import numpy as np
import pytest
import torch

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps, queries_and_keys
from transformer_lib.widgets import Goal, HeadView, ModelView, NeuronView, bertviz
from transformer_lib.widgets.bertviz import program
from transformer_lib.widgets.neuron_view.widget import ANYWHERE, OF_ITS_OWN

WORDS = ["mary", "gave", "roses", "to", "susan"]


@pytest.fixture
def seen():
    """The weights and the vectors of a model with turned, grouped keys."""
    torch.manual_seed(0)
    sizes = {"vocabulary": 7, "context": 5, "n_layers": 2, "n_heads": 4, "d_model": 24}
    model = GPT(GPTConfig.fast(**sizes, projections="normal", n_kv_heads=2))
    ids = torch.tensor([[1, 4, 2, 6, 3]])
    return attention_maps(model, ids), queries_and_keys(model, ids)


def test_queries_and_keys_make_the_weights(seen):
    maps, vectors = seen
    assert list(maps) == list(vectors)
    for name, (q, k) in vectors.items():
        scores = q @ k.mT / q.shape[-1] ** 0.5
        seen_ = torch.ones(5, 5, dtype=torch.bool).tril()
        weights = scores.masked_fill(~seen_, -torch.inf).softmax(-1)
        torch.testing.assert_close(weights, maps[name])


def test_they_are_handed_over(seen):
    maps, vectors = (list(one.values()) for one in seen)
    model, neuron = ModelView(maps, WORDS), NeuronView(maps, vectors, WORDS, head=3)
    assert repr(model) == "ModelView(layers=2, heads=4, tokens=5)"
    assert repr(neuron) == "NeuronView(layers=2, heads=4, tokens=5, d_head=6)"
    data = json.loads(neuron._data)
    assert (data["layer"], data["head"], data["query"]) == (0, 3, 4)
    for name, at in (("queries", 0), ("keys", 1)):
        sent = np.array(data[name])
        np.testing.assert_allclose(sent, torch.cat([v[at] for v in vectors]), atol=5.1e-4)
    assert json.loads(model._data)["attention"] == data["attention"]


def test_a_name_a_goal_and_the_maps_as_they_come(seen):
    maps, vectors = seen
    for figure, given in ((HeadView, [maps]), (ModelView, [maps]), (NeuronView, seen)):
        assert figure(*given, WORDS, name="heads").name == "heads"
        with pytest.raises(ValueError, match="there is no fact 'x'"):
            figure(*given, WORDS, goals=[Goal("Do it.", when=["x > 1"])])
        with pytest.raises(TypeError, match="there is no setting 'heads'"):
            figure(*given, WORDS, heads=1)
    listed = NeuronView(maps, list(vectors.values()), WORDS)
    assert NeuronView(maps, vectors, WORDS)._data == listed._data


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"layer": 2}, "layer is 2; choose one from 0 to 1"),
        ({"query": -1}, "query is -1; choose one from 0 to 4"),
        ({"vectors": slice(0, 1)}, r"queries are of 1 layers.* give 2 of \[4, 5, d_head\]"),
        ({"tokens": WORDS[:4]}, "4 tokens for 5"),
    ],
)
def test_what_is_refused(seen, change, problem):
    maps, vectors = (list(one.values()) for one in seen)
    vectors = vectors[change.pop("vectors", slice(None))]
    with pytest.raises(ValueError, match=problem):
        NeuronView(maps, vectors, **({"tokens": WORDS} | change))


@pytest.mark.usefixtures("as_a_reader")
def test_queries_and_keys_of_unequal_size_and_none_at_all_are_refused(seen):
    maps, vectors = (list(one.values()) for one in seen)
    with pytest.raises(TypeError, match=r"vectors are 'x'; give \(queries, keys\) for each layer"):
        NeuronView(maps, "x", WORDS)
    with pytest.raises(ValueError, match="queries have 6 numbers and keys 5"):
        NeuronView(maps, [(q, k[..., :5]) for q, k in vectors], WORDS)
    with pytest.raises(ValueError, match=r"17 tokens, but the model view shows at most 16"):
        ModelView(torch.full((1, 1, 17, 17), 1 / 17), ["a"] * 17)


def test_the_programs_are_bertvizs_own_and_ask_for_what_the_widgets_give():
    model, neuron = (program(f"{name}_view", "") for name in ("model", "neuron"))
    assert model.count("PYTHON_PARAMS;") == 1
    assert "attn_background" in model
    assert neuron.count("window.bertviz_params") == neuron.count("window.") == 1
    # One line looks in the whole document: it is mended, and no other is touched.
    assert neuron.count(ANYWHERE) == 1
    assert neuron.replace(ANYWHERE, OF_ITS_OWN).count("#vis") == neuron.count("#vis")
    for part in ('"leftText"', '"collapsed"', '"expanded"', '"dotproducts"', "#att_head"):
        assert part in neuron


def test_a_figure_that_asks_is_sent_the_libraries_if_they_are_there(seen, monkeypatch, tmp_path):
    monkeypatch.setattr(bertviz, "NPM", tmp_path / "modules")
    for name in bertviz.LIBRARIES:
        (tmp_path / "modules" / name).parent.mkdir(parents=True)
        (tmp_path / "modules" / name).write_text(name)
    sent = []
    figure = ModelView(list(seen[0].values()), WORDS)
    monkeypatch.setattr(type(figure), "send", lambda _, content, buffers: sent.append(buffers))
    figure._wanted += 1
    assert [one.decode() for one in sent.pop()] == list(bertviz.LIBRARIES)
    monkeypatch.setattr(bertviz, "NPM", tmp_path)
    figure._wanted += 1
    assert sent == [[]]
