"""BlockLab, the Python side: what it accepts and what comes back."""

import json

import pytest
import torch

from transformer_lib.classifier import Classifier
from transformer_lib.widgets import BlockLab, Goal

CHOICES = {"who": ["mary", "susan"], "they": ["swapped", "talked", "waited"]}
TEXTS = [f"{who} {they} ?" for who in CHOICES["who"] for they in CHOICES["they"]]


def make_lab(model=None, **changes):
    torch.manual_seed(0)
    model = model or Classifier(7, 3, 6, 2, 2, d_ff=5)
    options = {
        "choices": CHOICES,
        "texts": TEXTS,
        "ids": torch.arange(18).reshape(6, 3) % 7,
        "answers": [0, 1, 1, 0, 1, 0],
        "classes": ["mary", "susan"],
        "groups": ["a", "b", "b"] * 2,
    }
    return BlockLab(model, **options | changes)


def test_what_the_reader_does_comes_back_and_can_be_observed():
    lab = make_lab()
    seen = []
    lab.observe(lambda change: seen.append((change.name, change.new)), ["story", "attention"])
    lab.set_state({"story": 4, "attention": False})
    assert sorted(seen) == [("attention", False), ("story", 4)]
    assert repr(lab) == "BlockLab(stories=6)"


def test_all_numbers_of_the_model_travel():
    torch.manual_seed(0)
    model = Classifier(7, 3, 6, 2, 2, d_ff=5)
    lab = make_lab(model)
    sent = torch.frombuffer(bytearray(lab._arrays), dtype=torch.float32)
    assert len(sent) == sum(p.numel() for p in model.parameters())
    assert sorted(sent.tolist()) == sorted(
        torch.cat([p.flatten() for p in model.parameters()]).tolist()
    )
    shapes = json.loads(lab._text)["shapes"]
    assert ["expand", 5, 6] in shapes
    assert ["expand_bias", 5, 0] in shapes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": torch.zeros(5, 3)}, "make 6 stories, but there are 5 rows"),
        ({"ids": torch.full((6, 3), 7)}, "from 7 to 7 do not fit a model of 7 tokens"),
        ({"ids": torch.zeros(6, 4)}, "at most 3 places"),
        ({"ids": torch.zeros(6)}, r"ids have shape \(6,\)"),
        ({"ids": torch.full((6, 3), 0.7)}, r"ids holds 0\.69.*; give whole numbers"),
        ({"answers": [0, 1]}, "2 answers for 6 stories"),
        ({"answers": [2] * 6}, "needs the index of its class"),
        ({"texts": TEXTS[:5]}, "5 texts for 6 stories"),
        ({"groups": ["a"]}, "1 groups for 6 stories"),
        ({"classes": ["mary"]}, "1 classes for 2 scores"),
        ({"goals": [Goal("Nothing.", when=["wrong = 1"])]}, "no fact 'wrong'"),
        ({"model": Classifier(7, 3, 40, 2, 2)}, "40 wide; this figure shows at most 32"),
    ],
)
def test_bad_input_gets_a_clear_error(changes, message):
    with pytest.raises(ValueError, match=message):
        make_lab(**changes)


def test_another_model_is_refused():
    with pytest.raises(TypeError, match="Linear is not a classifier with one block"):
        make_lab(torch.nn.Linear(2, 2))
    with pytest.raises(TypeError, match="is not a classifier with one block"):
        make_lab(Classifier(7, 3, 6, 2, 2, n_layers=2))
    model = Classifier(7, 3, 6, 2, 2)
    model.blocks[0].feed_forward.activation = "relu"
    with pytest.raises(ValueError, match="'relu'; this figure computes gelu_tanh"):
        make_lab(model)


def test_links_set_parts_and_stories():
    lab = make_lab()
    assert lab.accepts("feed_forward", "off")
    assert lab.accepts("story", "5")
    assert not lab.accepts("story", "6")
    assert not lab.accepts("feed_forward", "half")
