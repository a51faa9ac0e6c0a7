"""Translator: its weights, its first state, and what is refused."""

import json

import pytest
import torch
from figures import EXAMPLES, make_translator

from transformer_lib.data.kannada.tables import tables
from transformer_lib.widgets import Goal, Translator
from transformer_lib.widgets.weights import pack_weights, unpack_weights


def test_the_figure_carries_the_model_in_eight_bits_a_number():
    model, _, widget = make_translator()
    assert repr(widget) == "Translator(layers=2, heads=2)"
    weights = unpack_weights(widget._packed)
    assert weights.keys() == model.state_dict().keys()
    for name, found in weights.items():
        right = model.state_dict()[name]
        largest = right.abs().amax(dim=-1, keepdim=True) if right.ndim == 2 else 0
        assert (torch.tensor(found) - right).abs().le(largest / 254 + 1e-6).all()
    assert len(widget._packed) < 0.4 * sum(4 * p.numel() for p in model.parameters())
    whole = make_translator(bits=32)[2]
    assert unpack_weights(whole._packed)["encoder.0.attention.query.weight"].tolist() == (
        model.encoder[0].attention.query.weight.tolist()
    )


def test_the_first_state_is_the_example():
    _, tokenizer, widget = make_translator(
        example=1, name="t", goals=[Goal("a", when=["right = 0"])]
    )
    words = tables()["words"]
    assert " ".join(words[i]["latin"] for i in widget.words) == EXAMPLES[1]
    assert widget.accepts("example", EXAMPLES[0])
    assert widget.accepts("head", "all")
    assert widget.accepts("head", "1")
    assert not widget.accepts("head", "2")
    assert not widget.accepts("layer", "2")
    assert json.loads(widget._config)["d_model"] == 16
    assert widget.translation == ""
    widget.written = tokenizer.target.encode("Mary gave")
    assert widget.translation == "Mary gave"
    for name, most in {"words": len(words) - 1, "written": tokenizer.target.size - 1}.items():
        for ids in ([most + 1], [-1]):
            with pytest.raises(ValueError, match=rf"{name} is .*; it must be ids from 0 to {most}"):
                setattr(widget, name, ids)
        widget.set_state({name: [most]})  # what the page sends
    assert widget.words == [len(words) - 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"example": 2}, "example is 2 of 2 examples"),
        ({"examples": []}, "example is 0 of 0 examples"),
        ({"examples": ["mēri xyz"]}, "'xyz' in the example 'mēri xyz' is not in the tables"),
        ({"bits": 16}, "bits is 16; choose one of 8, 32"),
        ({"words": [9999]}, r"words is \[9999\]; it must be ids from 0 to \d+"),
    ],
)
def test_what_makes_no_figure(options, message):
    with pytest.raises(ValueError, match=message):
        make_translator(**options)


def test_a_model_of_other_tokens_and_weights_that_are_none():
    model, tokenizer, _ = make_translator()
    tokenizer.source = tokenizer.target
    with pytest.raises(ValueError, match="the model has 176 and 78 tokens, and its tokenizer 78"):
        Translator(model, tokenizer, tables(), EXAMPLES)
    with pytest.raises(ValueError, match=r"in the example .* is not in the tables"):
        Translator(*make_translator()[:2], {}, EXAMPLES)
    with pytest.raises(ValueError, match="there are no weights"):
        pack_weights({})
    with pytest.raises(ValueError, match="table holds numbers that are NaN"):
        pack_weights({"table": [[float("nan")]]})
    with pytest.raises(ValueError, match="the weights begin with b'abcd'"):
        unpack_weights(b"abcdefgh")
