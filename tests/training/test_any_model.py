"""One loop for any model: an encoder-decoder of PyTorch's parts, label smoothing, padding."""

import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import IGNORED
from transformer_lib.training.distributed import Processes
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.feeding import Feed, require_batch
from transformer_lib.training.loop import Trainer
from transformer_lib.training.losses import cross_entropy
from transformer_lib.training.optimizers import adamw

PADDING, START, WORDS = 0, 1, 13
smoothed = partial(cross_entropy, label_smoothing=0.1)


class Translator(nn.Module):
    """Two inputs: the source, and the translation so far."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 12), nn.Embedding(9, 12)
        sizes = {"nhead": 3, "dim_feedforward": 20, "dropout": 0.0, "batch_first": True}
        layer = nn.TransformerEncoderLayer(12, **sizes)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(12, **sizes), 1)
        self.head = nn.Linear(12, WORDS)

    def forward(self, source, so_far):
        hidden, length = source == PADDING, so_far.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        memory = self.encoder(self.embed(source), src_key_padding_mask=hidden)
        x = self.decoder(
            self.embed(so_far), memory, tgt_mask=future, memory_key_padding_mask=hidden
        )
        return self.head(x)

    def embed(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


class Reversals:
    """Pairs of different lengths, the translation is the source backward; ``extra`` padding."""

    def __init__(self, n=23, extra=0):
        generator = torch.Generator().manual_seed(5)
        lengths = torch.randint(2, 7, (n,), generator=generator).tolist()
        self.extra = extra
        self.sources = [torch.randint(2, WORDS, (k,), generator=generator) for k in lengths]

    def __len__(self):
        return len(self.sources)

    def rows(self, indices):
        sources = [self.sources[i] for i in indices.tolist()]
        targets = [source.flip(0) for source in sources]
        so_far = [torch.cat((torch.tensor([START]), target[:-1])) for target in targets]
        padded = partial(nn.utils.rnn.pad_sequence, batch_first=True)
        batch = padded(sources), padded(so_far), padded(targets, padding_value=IGNORED)
        values = (PADDING, PADDING, IGNORED)
        return tuple(F.pad(x, (0, self.extra), value=v) for x, v in zip(batch, values, strict=True))


def trainer_of(model, source=None, optimizer=None, **options):
    options = {"n_steps": 3, "loss": smoothed, "precision": "float32"} | options
    source = Reversals() if source is None else source
    optimizer = adamw(model, lr=0.01) if optimizer is None else optimizer
    return Trainer(model, optimizer, Batches(source, 11), **options)


def plain_loss(model, batch, **options):
    *inputs, targets = batch
    logits = model(*inputs).flatten(0, 1)
    return F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED, **options)


def test_a_step_is_that_of_plain_pytorch_with_label_smoothing():
    model = Translator()
    plain, start = copy.deepcopy(model), model.head.weight.detach().clone()
    # Not AdamW: some gradients are 0 but for rounding, which it would blow up.
    step = trainer_of(model, optimizer=torch.optim.SGD(model.parameters(), 0.5)).take_step()
    optimizer, batch = torch.optim.SGD(plain.parameters(), 0.5), next(Batches(Reversals(), 11))
    loss = plain_loss(plain, batch, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    assert step.loss == pytest.approx(loss.item(), abs=1e-6)
    assert step.tokens == (batch[-1] != IGNORED).sum()
    assert (batch[-1] == IGNORED).any()
    assert_close(dict(model.named_parameters()), dict(plain.named_parameters()))
    assert not model.head.weight.equal(start)


@pytest.mark.parametrize("accumulation", [3, 11])
def test_parts_and_padding_change_nothing(accumulation):
    model = Translator().double()
    whole = [step.loss for step in trainer_of(copy.deepcopy(model))]
    parts = trainer_of(copy.deepcopy(model), accumulation=accumulation)
    padded = trainer_of(copy.deepcopy(model), Reversals(extra=2))
    assert [step.loss for step in parts] == pytest.approx(whole, abs=1e-6)
    assert [step.loss for step in padded] == pytest.approx(whole, abs=1e-6)
    assert_close(parts.model.state_dict(), padded.model.state_dict(), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_it_learns_and_is_measured_by_the_same_loss():
    model, source = Translator(), Reversals()
    everything = source.rows(torch.arange(len(source)))
    for _ in trainer_of(model, n_steps=150, loss=cross_entropy):
        pass
    with torch.no_grad():
        exact = plain_loss(model.eval(), everything).item()
        soft = plain_loss(model, everything, label_smoothing=0.1).item()
    assert exact < 0.3
    assert mean_loss(model, source, batch_size=4) == pytest.approx(exact, abs=1e-5)
    assert mean_loss(model, source, loss=smoothed, batch_size=4) == pytest.approx(soft, abs=1e-5)


def test_answers_are_counted_in_batches_of_any_shape():
    model, source = Translator(), Reversals(extra=1)
    longest = source.rows(torch.arange(len(source)))[-1]

    class Same(Reversals):
        """All rows as long as the longest."""

        def rows(self, indices):
            everything = super().rows(torch.arange(len(self)))
            return tuple(x[indices] for x in everything)

    source, marked = Same(), torch.ones_like(longest[:, :-1], dtype=torch.bool)
    *inputs, targets = source.rows(torch.arange(len(source)))
    best = model.eval()(*inputs).argmax(dim=-1)
    right = (best == targets)[targets != IGNORED].double().mean().item()
    assert answer_accuracy(model, source, marked, batch_size=5) == pytest.approx(right)


@pytest.mark.parametrize(("size", "accumulation"), [(2, 1), (2, 3), (3, 2)])
def test_processes_share_the_rows_of_every_tensor(size, accumulation):
    batch = next(Batches(Reversals(), 11))
    parts = {}
    for rank in range(size):
        here, batches = Processes(rank, size), Batches(Reversals(), 11)
        feed = Feed(batches, torch.device("cpu"), processes=here, accumulation=accumulation)
        share = next(feed)
        assert len(share.parts) == accumulation
        assert share.n_targets == (batch[-1] != IGNORED).sum()
        parts |= {i * size + rank: part for i, part in enumerate(share.parts)}
    for i, whole in enumerate(batch):
        assert torch.cat([parts[number][i] for number in range(len(parts))]).equal(whole)


def test_one_s_own_loss_sees_logits_in_float32_and_the_same_targets():
    seen = []

    def squares(outputs, targets):
        seen.append((outputs.dtype, targets.dtype))
        return (outputs[..., 0] - targets).square()

    class Lines:
        def __len__(self):
            return 8

        def rows(self, indices):
            x = indices.float().unsqueeze(1) / 8
            return x, 3 * x - 1

    model = nn.Sequential(nn.Linear(1, 1), nn.Unflatten(1, (1, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)  # it has no names, and no check
    trainer = Trainer(model, optimizer, Batches(Lines(), 8), n_steps=200, loss=squares)
    losses = [step.loss for step in trainer]
    assert losses[-1] < 1e-4 < losses[0]
    assert set(seen) == {(torch.float32, torch.float32)}
    model[0].weight.data.fill_(torch.nan)
    trainer.n_steps = 201
    with pytest.raises(FloatingPointError, match="step 201: the loss is nan"):
        trainer.take_step()


class Stripes:
    """Pictures of 8 × 8 noisy points, with stripes across or down: which?"""

    def __len__(self):
        return 64

    def rows(self, indices):
        labels = indices % 2
        across = torch.arange(8).remainder(2).float().expand(8, 8)
        pictures = torch.where(labels.bool()[:, None, None], across, across.T)
        return (pictures + torch.randn(len(indices), 8, 8) / 4).unsqueeze(1), labels


def test_a_classifier_of_pictures():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    loss = nn.CrossEntropyLoss(reduction="none")
    steps = list(Trainer(model, adamw(model, 0.01), Batches(Stripes(), 16), n_steps=40, loss=loss))
    assert steps[-1].loss < 0.1 < steps[0].loss
    assert mean_loss(model, Stripes(), loss=loss) == pytest.approx(steps[-1].loss, abs=0.1)
    images, labels = Stripes().rows(torch.arange(64))
    assert (model(images).argmax(dim=-1) == labels).all()


@pytest.mark.usefixtures("as_a_reader")
def test_a_loss_of_the_whole_batch_is_refused_and_so_is_what_cannot_be_resumed():
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    optimizer, batches = adamw(model, 0.01), Batches(Stripes(), 16)
    before = copy.deepcopy(model.state_dict())
    for mean in (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(reduction="sum")):
        with pytest.raises(ValueError, match=r'has shape \(\) and the targets \(16,\).*"none"'):
            Trainer(model, optimizer, batches, n_steps=1, loss=mean).take_step()
        with pytest.raises(ValueError, match=r"has shape \(\) and the targets \(64,\)"):
            mean_loss(model, Stripes(), loss=mean)
    with pytest.raises(ValueError, match=r"has shape float and the targets \(64,\)"):
        mean_loss(model, Stripes(), loss=lambda logits, targets: 0.5)
    assert_close(model.state_dict(), before, rtol=0, atol=0)
    recurrent = nn.Sequential(nn.Flatten(1, 2), nn.LSTM(8, 2))
    trainer = Trainer(recurrent, adamw(recurrent, 0.01), batches, n_steps=1)
    with pytest.raises(TypeError, match="the model returns a tuple; it must return one"):
        trainer.take_step()
    with pytest.raises(TypeError, match="the model returns a tuple; it must return one"):
        mean_loss(recurrent, Stripes())
    rows = torch.utils.data.TensorDataset(*Stripes().rows(torch.arange(64)))
    for loader in (torch.utils.data.DataLoader(rows), iter(torch.utils.data.DataLoader(rows))):
        with pytest.raises(TypeError, match=r"batches is of type \w*DataLoader\w*, which has no"):
            Trainer(model, optimizer, loader, n_steps=1)


@pytest.mark.usefixtures("as_a_reader")
def test_what_a_loss_learns_belongs_into_the_model():
    model, loss = nn.Linear(8, 2), nn.Sequential()
    loss.scale = nn.Parameter(torch.ones(()))
    with pytest.raises(ValueError, match=r"the loss has parameters of its own \(scale\)"):
        Trainer(model, adamw(model, 0.01), Batches(Stripes(), 16), n_steps=1, loss=loss)
    loss.requires_grad_(False)
    Trainer(model, adamw(model, 0.01), Batches(Stripes(), 16), n_steps=1, loss=loss)


def test_label_smoothing_is_pytorchs():
    logits, targets = torch.randn(3, 5, 7), torch.randint(7, (3, 5))
    targets[1, 2:] = IGNORED
    for share in (0.0, 0.1, 0.7):
        found = cross_entropy(logits, targets, label_smoothing=share)
        expected = F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, label_smoothing=share
        )
        assert_close(found.sum() / 12, expected)


@pytest.mark.usefixtures("as_a_reader")
def test_what_does_not_fit():
    logits, targets = torch.randn(3, 5, 7), torch.randint(7, (3, 5))
    with pytest.raises(ValueError, match=r"logits have shape \(3, 5, 7\) and targets \(3, 4\)"):
        cross_entropy(logits, targets[:, :4])
    with pytest.raises(ValueError, match=r"label_smoothing is 1\.0; it is a share"):
        cross_entropy(logits, targets, label_smoothing=1.0)
    with pytest.raises(TypeError, match=r"targets are torch\.int32; .* targets\.long\(\)"):
        cross_entropy(logits, targets.int())
    with pytest.raises(IndexError, match=r"have classes 0 to 6; .* does not count is -100"):
        cross_entropy(logits, targets - 8)

    class Uneven:
        def __len__(self):
            return 5

        def rows(self, indices):
            return torch.ones(4, 3), torch.ones(5, 3)

    model = nn.Linear(3, 3)
    trainer = Trainer(model, adamw(model, 0.1), Batches(Uneven(), 5), n_steps=1)
    with pytest.raises(ValueError, match="the tensors of a batch have 4, 5 rows; row i of each"):
        trainer.take_step()
    with pytest.raises(TypeError, match=r"the state is of type NoneType; .* checkpoint\.state"):
        trainer.load_state_dict(None)
    with pytest.raises(ValueError, match=r"have the shapes \(4, 3\), \(\); the first axis"):
        require_batch((torch.ones(4, 3), torch.tensor(1)))
    with pytest.raises(TypeError, match="LBFGS asks for the loss several times in a step"):
        Trainer(model, torch.optim.LBFGS(model.parameters()), Batches(Uneven(), 5), n_steps=1)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(ignore_index=0, reduction="none"),
        partial(F.cross_entropy, ignore_index=0, reduction="none"),
    ],
)
def test_a_loss_that_ignores_other_targets_than_the_loop_is_refused(loss):
    model = nn.Linear(8, 2)
    with pytest.raises(ValueError, match=r"has ignore_index=0, .* Make them -100"):
        Trainer(model, adamw(model, 0.01), Batches(Stripes(), 16), n_steps=1, loss=loss)
