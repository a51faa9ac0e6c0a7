"""The exact loss, whatever the batches; the share of answers."""

import math

import pytest
import torch
import torch.nn.functional as F
from models import small_gpt, stories

from transformer_lib.data.corpora import Corpus
from transformer_lib.data.packing import IGNORED, Packed
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.tasks import measures


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_the_loss_is_the_mean_over_all_targets(batch_size):
    model, blocks = small_gpt(dropout=0.5), stories()
    model.train()
    found = mean_loss(model, blocks, batch_size=batch_size)
    assert model.training
    model.eval()
    logits = model(blocks.inputs).flatten(0, 1)
    loss = F.cross_entropy(logits, blocks.targets.flatten(), ignore_index=IGNORED)
    assert found == pytest.approx(loss.item(), abs=1e-6)


def test_a_model_without_parameters_is_measured():
    class Uniform(torch.nn.Module):
        def forward(self, ids):
            return torch.zeros(*ids.shape, 13)

    assert mean_loss(Uniform(), stories()) == pytest.approx(math.log(13))


def test_float32_is_not_changed_by_an_autocast_around_it():
    model, blocks = small_gpt(), stories()
    plain = mean_loss(model, blocks, precision="float32")
    with torch.autocast("cpu", torch.bfloat16):
        assert mean_loss(model, blocks, precision="float32") == plain
        assert mean_loss(model, blocks, precision="bfloat16") != plain


def test_answers_are_counted_at_the_marked_targets():
    model, blocks = small_gpt(), stories()
    marked = blocks.mark([[1]] * len(blocks.spans))
    best = model(blocks.inputs).argmax(dim=-1)
    right = [bool(best[b, t] == blocks.targets[b, t]) for b, t in marked.nonzero().tolist()]
    assert len(right) == len(blocks.spans)
    share = answer_accuracy(model, blocks, marked, batch_size=3)
    assert share == pytest.approx(sum(right) / len(right))
    perfect = Packed(blocks.inputs, torch.where(marked, best, blocks.targets), blocks.spans)
    assert answer_accuracy(model, perfect, marked) == 1.0


def test_loss_and_answers_are_measured_in_one_pass():
    model, blocks = small_gpt(), stories()
    marked, read = blocks.mark([[1]] * len(blocks.spans)), []
    both = [mean_loss(model, blocks), answer_accuracy(model, blocks, marked)]
    model.register_forward_hook(lambda *call: read.append(len(call[1][0])))
    corpus = Corpus(
        tokenizer=CharacterTokenizer("ab"), training=blocks, validation=blocks, signature="",
        answers=marked,
    )  # fmt: skip
    found = measures(model, corpus)
    assert list(found.values()) == pytest.approx(both, abs=1e-6)
    assert sum(read) == len(blocks)


def test_nothing_to_measure_is_an_error(as_a_reader):
    model, blocks = small_gpt(), stories()
    empty = Packed(blocks.inputs, torch.full_like(blocks.targets, IGNORED), blocks.spans)
    with pytest.raises(ValueError, match="has no targets"):
        mean_loss(model, empty)
    with pytest.raises(ValueError, match=r"no target .* is marked"):
        answer_accuracy(model, blocks, torch.zeros_like(blocks.inputs, dtype=torch.bool))


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda marked: marked[:, :1], r"marked is \(\d+, 1\) for targets"),
        (lambda marked: torch.cat((marked, marked)), r"marked has \d+ rows, and the source \d+"),
    ],
)
def test_marks_of_another_shape_are_refused(cut, message):
    blocks = stories()
    marked = blocks.mark([[1]] * len(blocks.spans))
    with pytest.raises(ValueError, match=message):
        answer_accuracy(small_gpt(), blocks, cut(marked))


def test_what_is_not_a_model_or_not_a_source_is_named(as_a_reader):
    loader = torch.utils.data.DataLoader(stories())
    with pytest.raises(TypeError, match="source is of type DataLoader; it needs a length and rows"):
        mean_loss(small_gpt(), loader)
    with pytest.raises(TypeError, match=r"model is of type str; it must be an nn\.Module"):
        mean_loss("gifts-v3", stories())
