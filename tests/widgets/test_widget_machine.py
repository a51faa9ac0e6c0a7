"""Machine: its first state, what is refused, and what its weights lose in 8 bits."""

import json
from pathlib import Path

import pytest
import torch
from figures import SHIPPED, STORIES, make_machine

from transformer_lib.data.packing import pack
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.trained import load_shipped
from transformer_lib.widgets import Goal, Machine
from transformer_lib.widgets.machine.parts import PARTS
from transformer_lib.widgets.weights import pack_weights, unpack_weights

CHAPTERS = Path(__file__).parents[2] / "chapters"


def test_the_first_state_is_the_story_and_what_it_carries():
    goals = [Goal("Ask.", when=["asked = 1", "right >= 0.5", "probability mary > whole mary"])]
    trained, widget = make_machine(story=1, view="drawing", part="block-2-head-1", goals=goals)
    assert repr(widget) == "Machine(view=drawing, layers=2, heads=2, context=40, levels=4)"
    assert widget.story == STORIES[1]
    told = json.loads(widget._text)
    assert told["parts"][widget.part] == "block-2-head-1"
    assert told["texts"][0] == trained.tokenizer.encode(STORIES[0])
    weights = unpack_weights(widget._packed)
    assert weights.keys() == trained.model.state_dict().keys()
    assert len(widget._packed) < 0.4 * sum(4 * p.numel() for p in trained.model.parameters())
    widget.text = trained.tokenizer.encode("<story> ravi")
    widget.off = ["block-1-attention"]
    assert widget.story == "<story> ravi"


def test_every_part_is_built_in_a_chapter_that_there_is():
    """On a page, the drawing links its parts to them."""
    chapters = {chapter for _, _, chapter in PARTS.values()}
    assert {name for name in chapters if not (CHAPTERS / f"{name}.ipynb").exists()} == set()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"story": 2}, "story is 2 of 2 stories"),
        ({"stories": []}, "story is 0 of 0 stories"),
        ({"stories": [""]}, "has 0 words; the model reads 1 to 40"),
        ({"stories": ["mary " * 41]}, "has 41 words; the model reads 1 to 40"),
        ({"stories": ["mary eats"]}, "'eats' in the story 'mary eats' is not a word of the model"),
        ({"part": "block-3"}, "part is 'block-3'; choose one of token, embedding"),
        ({"off": ["block-1-norm-1"]}, "'block-1-norm-1' cannot be switched off"),
        ({"exchange": ["mary", "tom"]}, "'tom' is not a word of the model"),
        ({"bits": 16}, "bits is 16; choose one of 8, 32"),
    ],
)
def test_what_makes_no_figure(options, message):
    with pytest.raises(ValueError, match=message):
        make_machine(**options)


def test_a_name_is_not_the_model_and_not_a_list_of_names(as_a_reader):
    with pytest.raises(TypeError, match=r"trained is 'gifts-v3', .* load_shipped\(name\) returns"):
        Machine("gifts-v3", ["mary has roses ."])
    with pytest.raises(TypeError, match="off is one text, 'block-1-attention'; give a list"):
        make_machine(off="block-1-attention")


def test_settings_out_of_range():
    trained, widget = make_machine()
    wrong = [("temperature", 2.5), ("top_p", 0), ("level", 5), ("text", [99])]
    wrong += [("patches", [one]) for one in ([99, 0], [0, 0], [1, 40], [1, -1], [1, 2, 3])]
    for name, value in wrong:
        with pytest.raises(ValueError, match=name):
            setattr(widget, name, value)
    widget.set_state({"patches": [[1, 0], [2, 39]]})  # what the page sends
    assert widget.patches == [[1, 0], [2, 39]]
    trained.tokenizer = WordTokenizer(trained.tokenizer.vocabulary[:-1])
    with pytest.raises(ValueError, match="tokens, and its tokenizer"):
        Machine(trained, STORIES)


def test_eight_bits_lose_next_to_nothing_of_what_the_shipped_model_knows(record_property):
    """Chapter 0 states these numbers, computed there on other stories."""
    gifts = load_shipped(SHIPPED, device=torch.device("cpu"))
    stories = gifts.grammar.stories(60, seed=11)
    blocks = pack([gifts.tokenizer.encode(story) for story in stories], gifts.grammar.max_words)
    asked = [gifts.grammar.questions(story) for story in stories]
    marked = blocks.mark([[one.position for one in each] for each in asked])
    before = mean_loss(gifts.model, blocks), answer_accuracy(gifts.model, blocks, marked)
    weights = {name: w.numpy() for name, w in gifts.model.state_dict().items()}
    rounded = unpack_weights(pack_weights(weights))
    gifts.model.load_state_dict({name: torch.tensor(w) for name, w in rounded.items()})
    after = mean_loss(gifts.model, blocks), answer_accuracy(gifts.model, blocks, marked)
    record_property("loss and right answers in 32 bits, then in 8", [*before, *after])
    assert after[0] - before[0] < 0.002
    assert after[1] > before[1] - 0.005
