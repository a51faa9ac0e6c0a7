"""A batch without its padding: the same logits and gradients, or else the model is called."""

from functools import partial

import pytest
import torch
from models import PAIRS, VOCABULARY_OF_SOURCE, make_pair, padded
from signatures import unchecked
from torch import nn
from torch.testing import assert_close

from transformer_lib.data.batches import Batches
from transformer_lib.data.bitext import Bitext
from transformer_lib.data.packing import IGNORED
from transformer_lib.fast import ragged
from transformer_lib.fast.ragged import RealTokens
from transformer_lib.training.loop import Trainer
from transformer_lib.training.losses import count, cross_entropy
from transformer_lib.training.optimizers import adamw

LENGTHS = [(5, 2), (1, 6), (3, 3), (2, 1)]  # of sources and targets


@pytest.fixture(autouse=True)
def _even_the_smallest(monkeypatch):
    monkeypatch.setattr(ragged, "LEAST_NUMBERS", 0)


def pairs(model):
    """Random pairs, as a bitext."""
    vocabularies = VOCABULARY_OF_SOURCE, model.config.target_vocabulary
    sides = [
        [torch.randint(3, vocabulary, (n,)).tolist() for n in lengths]
        for vocabulary, lengths in zip(vocabularies, zip(*LENGTHS, strict=True), strict=True)
    ]
    return Bitext(*sides)


def gradients(loss, model):
    model.zero_grad()
    loss.backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("gaps", [False, True])
def test_logits_and_gradients_are_those_of_the_model(name, gaps):
    model = make_pair(PAIRS[name])
    source, target, wanted = pairs(model).rows(torch.arange(len(LENGTHS)))
    if gaps:  # targets in the middle do not count, nor does all of one sentence
        wanted[1, 2:4], wanted[3] = IGNORED, IGNORED
    counted = wanted != IGNORED
    found = model.counted_logits(source, target, counted)
    expected = model(source, target)
    assert_close(found, expected[counted], rtol=0, atol=1e-12)
    of_found = gradients(cross_entropy(found, wanted[counted]).sum(), model)
    for mine, plain in zip(
        of_found, gradients(cross_entropy(expected, wanted).sum(), model), strict=True
    ):
        assert_close(mine, plain, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_the_memory_is_that_of_the_encoder(name):
    model = make_pair(PAIRS[name])
    source, *_ = pairs(model).rows(torch.arange(len(LENGTHS)))
    real = source != 0
    memory = ragged.memory(model, source)
    assert_close(memory[real], model.encode(source)[real], rtol=0, atol=1e-12)
    assert (memory[~real] == 0).all()


def test_padding_goes_and_comes_back_with_its_gradient():
    mask = torch.rand(3, 5) < 0.5
    real, x = RealTokens(mask), torch.randn(3, 5, 2, dtype=torch.float64, requires_grad=True)
    assert real.packed(x).equal(x[mask])
    assert real.padded(real.packed(x)).equal(x * mask.unsqueeze(2))
    assert real.n_padding == int((~mask).sum())
    torch.autograd.gradcheck(real.packed, (x,))
    torch.autograd.gradcheck(real.padded, (x.detach()[mask].requires_grad_(),))
    torch.autograd.gradgradcheck(real.packed, (x,))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_training_goes_the_same_way(monkeypatch, precision, accumulation):
    losses = {}
    for share in (0.1, 2.0):  # 2.0: never ragged
        monkeypatch.setattr(ragged, "LEAST_SHARE", share)
        torch.manual_seed(1)
        model = make_pair(PAIRS["fast"], torch.float32)
        trainer = Trainer(
            model, adamw(model, lr=0.01), Batches(pairs(model), 4), n_steps=6, clip=1.0,
            loss=partial(cross_entropy, label_smoothing=0.1), precision=precision,
            accumulation=accumulation,
        )  # fmt: skip
        losses[share] = [(step.loss, step.gradient_norm, step.tokens) for step in trainer]
    tolerance = 1e-4 if precision == "float32" else 3e-2
    found, plain = (torch.tensor(x, dtype=torch.float64) for x in losses.values())
    assert_close(found, plain, rtol=tolerance, atol=tolerance)


def test_with_dropout_it_draws_and_learns():
    model = make_pair(PAIRS["paper"]).train()
    for block in (*model.encoder, *model.decoder):
        block.dropout.p = 0.5
    source, target, wanted = pairs(model).rows(torch.arange(len(LENGTHS)))
    counted = wanted != IGNORED
    first, second = (model.counted_logits(source, target, counted) for _ in range(2))
    assert not torch.allclose(first, second)
    assert_close(
        model.eval().counted_logits(source, target, counted), model(source, target)[counted]
    )


class OwnFeedForward(nn.Module):
    """Not of each token on its own."""

    def forward(self, x):
        return x - x.mean(dim=-2, keepdim=True)


def hooked(model):
    model.decoder[0].feed_forward.expand.register_forward_hook(lambda layer, _, x: 2 * x)


@pytest.mark.parametrize(
    "change",
    [
        hooked,
        lambda model: model.decoder[0].attention.query.register_full_backward_hook(print),
        lambda model: setattr(model.encoder[1], "feed_forward", OwnFeedForward()),
        lambda model: setattr(model, "decoder_norm", OwnFeedForward()),
        lambda model: setattr(model, "head", nn.Sequential(nn.Linear(12, 5))),
        lambda model: setattr(model, "encode", lambda source: None),
        lambda model: setattr(model.encoder[0].attention, "forward", lambda x, mask: x),
        lambda model: setattr(model.decoder[1], "dropout", nn.Dropout1d()),
    ],
)
def test_where_a_part_is_changed_the_model_is_called(change):
    model = make_pair()
    batch = pairs(model).rows(torch.arange(len(LENGTHS)))
    assert model.counted_logits(*batch[:2], batch[2] != IGNORED) is not None
    change(model)
    assert model.counted_logits(*batch[:2], batch[2] != IGNORED) is None
    with (
        pytest.raises(ValueError, match=r"counted is torch\.int64 .* must be torch\.bool"),
        unchecked(),
    ):
        model.counted_logits(*batch[:2], (batch[2] != IGNORED).long())


def test_where_torch_func_computes_gradients_the_model_is_called():
    model, found = make_pair(), []
    source, target, wanted = pairs(model).rows(torch.arange(len(LENGTHS)))

    def ask(x):
        found.append(model.counted_logits(source, target, wanted != IGNORED))
        return x

    torch.func.grad(ask)(torch.tensor(1.0))
    assert found == [None]


def test_without_padding_or_with_little_the_model_is_called(monkeypatch):
    model = make_pair()
    source, target = padded([[3, 4, 5], [5, 6, 7]]), padded([[1, 3], [1, 4]])
    everything = torch.ones(2, 2, dtype=torch.bool)
    assert model.counted_logits(source, target, everything) is None
    monkeypatch.setattr(ragged, "LEAST_NUMBERS", 2**16)
    batch = pairs(model).rows(torch.arange(len(LENGTHS)))
    assert model.counted_logits(*batch[:2], batch[2] != IGNORED) is None


def test_a_loss_of_ones_own_gets_all_logits():
    shapes = []

    def loss(logits, targets):
        shapes.append((*logits.shape[:-1], *targets.shape))
        return cross_entropy(logits, targets)

    model = make_pair(PAIRS["paper"], torch.float32)
    batches = Batches(pairs(model), 4)
    next(iter(Trainer(model, adamw(model, lr=0.01), batches, n_steps=1, loss=loss)))
    assert shapes == [(4, 7, 4, 7)]


@pytest.mark.usefixtures("as_a_reader")
def test_what_makes_no_sense_is_refused_as_by_the_model():
    model = make_pair()
    source, target, wanted = pairs(model).rows(torch.arange(len(LENGTHS)))
    with pytest.raises(ValueError, match="ids 0 to 10"):
        model.counted_logits(source + 9, target, wanted != IGNORED)
    assert count(wanted) == sum(n + 1 for _, n in LENGTHS)
