"""NextWord, the Python side: what it accepts, what it computes, what comes back."""

import math

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.widgets import NextWord

WORDS = ["mary", "gave", "roses", "to", "susan"]
VOCABULARY = ["gave", "mary", "roses", "susan", "to", "it", "."]
TARGETS = torch.tensor([0, 2, 4, 3])


def predictors():
    logits = torch.randn(3, 4, 7, generator=torch.Generator().manual_seed(0))
    return dict(zip(["first", "second", "third"], logits.softmax(-1), strict=True))


def test_the_loss_is_the_cross_entropy():
    widget = NextWord(WORDS, VOCABULARY, predictors())
    for name, probabilities in predictors().items():
        right = F.cross_entropy(probabilities.log(), TARGETS)
        assert widget.losses[name] == pytest.approx(right.item(), rel=1e-5)
        each = F.cross_entropy(probabilities.log(), TARGETS, reduction="none")
        torch.testing.assert_close(widget.surprises[name].float(), each)


def test_what_the_reader_does_comes_back_and_can_be_observed():
    widget = NextWord(WORDS, VOCABULARY, predictors())
    assert (widget.selection, widget.predictor) == (4, "first")
    seen = []
    widget.observe(lambda change: seen.append(widget.predictor), "_chosen")
    widget.set_state({"selection": 2, "_chosen": 2})
    assert (widget.selection, widget.predictor, seen) == (2, "third", ["third"])
    widget.predictor = "second"
    assert widget.predictor == "second"


def test_it_starts_where_it_is_told():
    widget = NextWord(WORDS, VOCABULARY, predictors(), selection=1, predictor="third")
    assert (widget.selection, widget.predictor) == (1, "third")


def test_repr_is_stable():
    assert repr(NextWord(WORDS, VOCABULARY, predictors())) == "NextWord(predictors=3, words=5)"


ROWS = torch.full((4, 7), 1 / 7)
IMPOSSIBLE = torch.eye(7)[[0, 2, 3, 3]]


@pytest.mark.parametrize(
    ("words", "given", "options", "message"),
    [
        (["mary"], {"a": ROWS}, {}, "there are 1 words and 1 predictors"),
        (WORDS, {}, {}, "5 words and 0 predictors"),
        (WORDS, {"a": ROWS[:3]}, {}, r"predictors\['a'\] has shape \(3, 7\); \(4, 7\) is right"),
        (WORDS, {"a": ROWS * 2}, {}, r"predictors\['a'\]\[0\] sums to 2, .* softmax"),
        (WORDS, {"a": ROWS * float("nan")}, {}, "holds 28 numbers that are NaN"),
        (WORDS, {"a": IMPOSSIBLE}, {}, r"'a' gives words\[3\], 'to', the probability 0"),
        (["mary", "ate", "it"], {"a": ROWS[:2]}, {}, r"words\[1\] is 'ate', which is not in"),
        (
            WORDS,
            {"a": ROWS},
            {"selection": 0},
            "selection is 0, but must be one of: gave, .*; or 1 to 4",
        ),
        (WORDS, {"a": ROWS}, {"selection": 5}, "selection is 5"),
        (WORDS, {"a": ROWS}, {"predictor": "b"}, "predictor is 'b'; there are a"),
    ],
)
def test_bad_input_gets_a_clear_error(words, given, options, message):
    with pytest.raises(ValueError, match=message):
        NextWord(words, VOCABULARY, given, **options)


def test_a_tiny_probability_is_a_large_surprise_not_an_infinite_one():
    rows = torch.full((1, 7), (1 - 1e-50) / 6, dtype=torch.float64)
    rows[0, VOCABULARY.index(WORDS[1])] = 1e-50
    widget = NextWord(WORDS[:2], VOCABULARY, {"a": rows})
    assert widget.losses["a"] == pytest.approx(50 * math.log(10))


def test_a_predictor_has_a_name(as_a_reader):
    with pytest.raises(
        TypeError, match=r"predictors is of type Tensor, .* \{name: probabilities\}"
    ):
        NextWord(WORDS, VOCABULARY, ROWS)


def test_words_must_be_text(as_a_reader):
    with pytest.raises(TypeError, match="decode ids first"):
        NextWord([1, 2], VOCABULARY, {"a": ROWS[:1]})
