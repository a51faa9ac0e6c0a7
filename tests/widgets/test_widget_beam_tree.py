"""BeamTree, the Python side: what it records, what it refuses, what comes back.

That the search over the record equals the library's, for every width: tests/js/beam_tree.test.js.
"""

import json

import numpy as np
import pytest
import torch
from models import FEW, make_few

from transformer_lib.sampling import next_logits
from transformer_lib.widgets import BeamTree

WORDS = [".", "mary", "gave", "roses", "it"]


def table(texts):
    """Logits that depend on the last two tokens."""
    return [[np.sin(3 * token + 5 * sum(ids[-2:])) * 4 for token in range(5)] for ids in texts]


def tree(score=table, prompt=(1,), vocabulary=WORDS, **options):
    return BeamTree(score, prompt, vocabulary, **({"end": 0, "n_tokens": 6} | options))


def test_the_record_holds_what_the_model_says_of_each_beginning():
    model, prompt = make_few(), [3, 1, 4]
    widget = tree(lambda texts: next_logits(model, texts), prompt, end=2)
    text, logs = json.loads(widget._text), np.frombuffer(widget._logs, "<f8")
    logs = logs.reshape(len(text["rows"]), -1)
    assert logs.shape[1] == FEW  # so few that all are recorded
    beginnings = {0: prompt}
    for row, (tokens, following) in enumerate(zip(text["rows"], text["next"], strict=True)):
        for token, then in zip(tokens, following, strict=True):
            if then >= 0:
                beginnings[then] = [*beginnings[row], WORDS.index(text["words"][token])]
    assert len(beginnings) == len(text["rows"])
    for row, ids in beginnings.items():
        right = next_logits(model, [ids])[0].log_softmax(-1)
        found = [WORDS.index(text["words"][token]) for token in text["rows"][row]]
        torch.testing.assert_close(torch.tensor(logs[row]), right[found], rtol=0, atol=1e-12)


def test_of_many_tokens_a_few_travel_and_the_end_always():
    source = np.random.default_rng(0)
    logits = source.normal(size=1000) * 3
    logits[7] = -30.0  # the end, which nobody expects
    widget = tree(lambda texts: [logits] * len(texts), [0], list(map(str, range(1000))), end=7)
    text = json.loads(widget._text)
    assert {len(row) for row in text["rows"]} == {9}
    assert text["words"][text["end"]] == "7"
    assert all(row[-1] == text["end"] for row in text["rows"])
    assert repr(widget) == "BeamTree(vocabulary=1000, steps=6)"


def test_what_the_reader_does_comes_back_and_can_be_observed():
    widget, seen = tree(width=2), []
    widget.observe(lambda change: seen.append(change["new"]), "width")
    widget.set_state({"width": 4, "length_penalty": 0.5, "step": 3})
    assert (widget.width, widget.length_penalty, widget.step, seen) == (4, 0.5, 3, [4])
    widget.step = None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 6}, "width is 6"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"end": 5}, "end is 5, but there are 5 tokens"),
        ({"prompt": [1, 9]}, "prompt holds 9, but there are 5 tokens"),
        ({"prompt": []}, "the prompt has 0 tokens"),
        ({"n_tokens": 25}, "n_tokens is 25; give .* 1 to 24"),
        ({"n_tokens": 0}, "n_tokens"),
        ({"score": lambda texts: [[0.0] * 4]}, r"shape \(1, 4\) for 1 texts; \(1, 5\) is right"),
        ({"score": lambda texts: [[0.0] * 4 + [float("nan")]]}, "logits.* NaN"),
        ({"score": lambda texts: [[0.0] * 4 + [-float("inf")]]}, "infinite"),
    ],
)
def test_it_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        tree(**options)


@pytest.mark.usefixtures("as_a_reader")
def test_it_refuses_what_is_of_another_kind():
    with pytest.raises(TypeError, match=r"prompt 'a b' cannot be a tensor .* list of integers"):
        tree(prompt="a b")
    with pytest.raises(TypeError, match="must be a function from texts to logits"):
        tree(score=torch.zeros(1, 5))
