"""ArchitectureWalk: its parts, its first state, the code that it shows, and what is refused."""

import json

import pytest
from figures import EXAMPLES, make_translator, make_walk

from transformer_lib.widgets import ArchitectureWalk, Goal
from transformer_lib.widgets.weights import unpack_weights


def test_parts_are_the_models_in_the_order_in_which_they_compute():
    model, _, widget = make_walk(part="decoder.1.cross_attention", name="walk")
    assert repr(widget) == "ArchitectureWalk(sentences=2, parts=23, rows=16)"
    assert widget.parts[0] == "source_embedding"
    assert widget.parts[-1] == "output"
    for name in widget.parts[:-1]:
        model.get_submodule(name)  # raises if there is none
    decoder = [name.split(".")[2] for name in widget.parts if name.startswith("decoder.0")]
    assert decoder == ["attention", "norm_1", "cross_attention", "norm_2", "feed_forward", "norm_3"]
    assert widget.parts[widget.part] == "decoder.1.cross_attention"
    assert widget.accepts("part", "encoder.0.norm_2")
    assert not widget.accepts("part", "encoder.2.norm_2")
    assert widget.accepts("sentence", EXAMPLES[1])
    weights = unpack_weights(widget._packed)
    assert weights.keys() == model.state_dict().keys()


def test_how_much_is_written():
    widget = make_walk(name="walk")[2]
    assert widget.written == 16  # all, however long it is
    assert widget.accepts("written", "16")
    assert not widget.accepts("written", "-1")
    assert make_walk(written=2)[2].written == 2


def test_the_code_is_the_librarys_own():
    code = json.loads(make_walk()[2]._text)["code"]
    assert code["decoder"].splitlines() == [
        "x = norm_1(x + attend(x))",
        "x = norm_2(x + read(x))",
        "return norm_3(x + think(x))",
    ]
    assert code["attention"].startswith("q, k, v = self.project(x, memory, cache)")
    assert not any("require_" in lines or '"""' in lines for lines in code.values())


def test_what_makes_no_figure():
    model, tokenizer, _ = make_walk()
    with pytest.raises(ValueError, match=r"sentence is 2, but must be one of: .*; or 0 to 1"):
        make_walk(sentence=2)
    with pytest.raises(ValueError, match="written is -1, but must be a whole number of at least 0"):
        make_walk(written=-1)
    with pytest.raises(ValueError, match="part is 'middle'; choose one of source_embedding"):
        make_walk(part="middle")
    with pytest.raises(ValueError, match="there is no fact 'looks'"):
        make_walk(goals=[Goal("a", when=["looks = 1"])])
    with pytest.raises(ValueError, match="sources is empty"):
        ArchitectureWalk(model, tokenizer, [])
    with pytest.raises(ValueError, match="is 2 tokens and 1 words in the figure"):
        ArchitectureWalk(model, tokenizer, ["ಹೂವನ್ನು ಕೊಟ್ಟಳು"], ["hūvannu"])
    other, tokenizer, _ = make_translator()
    with pytest.raises(ValueError, match="norm is 'pre'; the figure draws the paper's wiring"):
        ArchitectureWalk(other, tokenizer, ["ಹೂವನ್ನು ಕೊಟ್ಟಳು"])
