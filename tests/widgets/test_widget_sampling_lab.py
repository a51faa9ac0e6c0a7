"""SamplingLab, the Python side: what it accepts, what comes back, and that `generate` takes it."""

import json

import numpy as np
import pytest
import torch

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import filter_logits, generate, next_logits
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.widgets import SamplingLab

WORDS = ["roses", "books", "pens", "cups", "a"]
LOGITS = [[2.0, 1.0, 0.0, -1.0, 0.5], [0.0, 3.0, 0.0, 0.0, 1.0]]


def lab(**options):
    return SamplingLab(LOGITS, WORDS, ["mary gave", "john has"], **options)


def test_what_is_sent_and_how_it_reads():
    widget = lab(context=1)
    sent = np.frombuffer(widget._logits, "<f4").reshape(2, 5)
    np.testing.assert_array_equal(sent, np.array(LOGITS, "f4"))
    text = json.loads(widget._text)
    assert text["vocabulary"] == WORDS
    assert text["contexts"] == ["mary gave", "john has"]
    assert text["sliders"] == ["temperature", "top_k", "top_p", "min_p"]
    assert json.loads(lab(sliders=["top_p"])._text)["sliders"] == ["top_p"]
    assert repr(widget) == "SamplingLab(contexts=2, vocabulary=5)"
    assert widget.context == 1


def test_the_settings_are_those_of_the_library():
    widget = lab(temperature=0.7, top_k=3, top_p=0.8)
    seen = []
    widget.observe(lambda change: seen.append((change.name, change.new)), ["top_k", "temperature"])
    # What the page's side sends:
    widget.set_state({"temperature": 0.5, "top_k": None, "draws": []})
    assert sorted(seen) == [("temperature", 0.5), ("top_k", None)]
    assert widget.settings == {"temperature": 0.5, "top_k": None, "top_p": 0.8, "min_p": None}
    left = filter_logits(torch.tensor(LOGITS[0]), **widget.settings)
    assert left.isfinite().tolist() == [True, False, False, False, False]


def test_from_a_model_in_one_line_and_back():
    tokenizer = CharacterTokenizer("mary gave roses\n")
    config = GPTConfig(vocabulary=tokenizer.size, context=16, n_layers=1, n_heads=2, d_model=12)
    model, prompts = GPT(config), ["mary ", "gave\n", "r"]
    logits = next_logits(model, [tokenizer.encode(prompt) for prompt in prompts])
    widget = SamplingLab(logits, tokenizer.vocabulary, prompts, top_k=4)
    assert repr(widget) == f"SamplingLab(contexts=3, vocabulary={tokenizer.size})"
    ids = torch.tensor([tokenizer.encode("gave")])
    assert generate(model, ids, 3, **widget.settings).shape == (1, 7)


@pytest.mark.parametrize("change", [{"context": 1}, {"temperature": 2.0}, {"min_p": 0.2}])
def test_another_setting_forgets_the_draws(change):
    widget = lab()
    widget.set_state({"draws": [0, 0, 3]})
    assert widget.draws == [0, 0, 3]
    for name, value in change.items():
        setattr(widget, name, value)
    assert widget.draws == []
    # What the page sends at once, when the kernel was busy, came in this order.
    widget.set_state({**change, "draws": [0, 1]})
    assert widget.draws == [0, 1]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"logits": [1.0, 2.0]}, ValueError, r"\(2,\), but must be \[contexts, vocabulary\].*-1\]"),
        ({"logits": np.zeros((0, 5))}, ValueError, "at least one of each"),
        ({"logits": [[float("nan")] * 5] * 2}, ValueError, "NaN"),
        ({"logits": [[1e300] * 5] * 2}, ValueError, r"logits holds 1e\+300 at index \(0, 0\)"),
        ({"vocabulary": WORDS[:4]}, ValueError, "4 vocabulary tokens for 5 columns of the logits"),
        ({"vocabulary": range(5)}, TypeError, r"vocabulary tokens\[0\] is int"),
        ({"contexts": ["mary gave"]}, ValueError, "1 contexts for 2 rows of the logits"),
        ({"contexts": "mary gave"}, TypeError, "contexts is one text"),
        ({"temperature": float("nan")}, ValueError, "temperature is nan"),
        ({"top_p": 1.5}, ValueError, "top_p is 1.5"),
        ({"min_p": float("nan")}, ValueError, "min_p is nan"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"seed": "one"}, TypeError, "seed is 'one', of type str; it must be an int"),
        ({"sliders": ["heat"]}, ValueError, "sliders has 'heat'; choose among temperature, top_k"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_bad_input_gets_a_clear_error(changes, error, message):
    given = {"logits": LOGITS, "vocabulary": WORDS, "contexts": ["mary gave", "john has"]}
    with pytest.raises(error, match=message):
        SamplingLab(**(given | changes))


def test_what_a_notebook_sets_later_is_checked_too():
    widget = lab()
    with pytest.raises(ValueError, match="temperature is 4"):
        widget.temperature = 4
    with pytest.raises(ValueError, match="draws are at most 100000 ids of tokens, from 0 to 4"):
        widget.draws = [5]
    assert widget.temperature == 0.8
    assert widget.draws == []
