"""The training loop: its gradient is that of the whole batch; what goes wrong changes nothing."""

import copy
import math
import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from models import ELEVEN, small_gpt, stories
from programs import ended
from torch import nn

from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import IGNORED, Packed, Windows
from transformer_lib.training.loop import Trainer
from transformer_lib.training.losses import count, cross_entropy, total
from transformer_lib.training.optimizers import Muon, NorMuon, adamw
from transformer_lib.training.schedules import inverse_square_root, linear


def trainer_of(model, *, batch_size=7, optimizer=None, **options):
    options = {"n_steps": 5, "precision": "float32"} | options
    optimizer = adamw(model, lr=0.01) if optimizer is None else optimizer
    return Trainer(model, optimizer, Batches(stories(), batch_size), **options)


def test_a_step_is_that_of_plain_pytorch():
    model = small_gpt()
    plain = copy.deepcopy(model)
    step = next(iter(trainer_of(model, clip=0.5)))
    optimizer = adamw(plain, lr=0.01)
    inputs, targets = next(Batches(stories(), 7))
    loss = F.cross_entropy(plain(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
    optimizer.step()
    assert (step.step, step.rate) == (1, 0.01)
    assert step.loss == pytest.approx(loss.item(), abs=1e-6)
    assert step.gradient_norm == pytest.approx(float(norm), rel=1e-5)
    assert step.tokens_per_second > 0
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("accumulation", [2, 3, 7])
def test_parts_of_a_batch_give_the_gradient_of_the_whole(accumulation):
    model = small_gpt().double()
    parts = copy.deepcopy(model)
    whole = [step.loss for step in trainer_of(model)]
    assert [s.loss for s in trainer_of(parts, accumulation=accumulation)] == pytest.approx(
        whole, abs=1e-6
    )
    assert whole[0] != pytest.approx(whole[1], abs=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_an_autocast_around_it_changes_nothing(precision, accumulation):
    """Neither the backward pass and Muon's products, nor that it keeps weights in 16 bits."""
    found, start = [], small_gpt()
    for enabled in (None, True, False):
        model = copy.deepcopy(start)
        options = {"precision": precision, "accumulation": accumulation}
        trainer = trainer_of(model, optimizer=Muon(model, lr=0.1), **options)
        around = torch.autocast("cpu", torch.bfloat16, enabled=enabled is True)
        with nullcontext() if enabled is None else around:
            steps = [(step.loss, step.gradient_norm) for step in trainer]
            assert torch.is_autocast_enabled("cpu") == (enabled is True)
        found.append((steps, [p.tolist() for p in model.parameters()]))
    assert found[0] == found[1] == found[2]


def test_the_schedule_sets_the_rate_of_each_step():
    rates = [step.rate for step in trainer_of(small_gpt(), schedule=linear)]
    assert rates == pytest.approx([0.01, 0.008, 0.006, 0.004, 0.002])


def test_without_a_schedule_the_rate_is_left_alone():
    model = small_gpt()
    trainer = trainer_of(model, n_steps=3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(trainer.optimizer, 0.5)
    rates = []
    for step in trainer:
        rates.append(step.rate)
        scheduler.step()
    assert rates == [0.01, 0.005, 0.0025]


@pytest.mark.parametrize(
    ("factor", "error"),
    [(math.inf, ValueError), (math.nan, ValueError), (-1, ValueError), (None, TypeError)],
)
def test_a_factor_that_makes_no_sense_stops_before_the_step(factor, error, as_a_reader):
    trainer = trainer_of(small_gpt(), schedule=lambda step, n: 1.0 if step == 1 else factor)
    next(iter(trainer))
    before = everything(trainer)
    with pytest.raises(error, match=f"the schedule's factor of the rate is {factor}"):
        next(iter(trainer))
    unchanged(trainer, before)


def test_pytorchs_cross_entropy_is_the_librarys():
    loss = nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1)
    logits = torch.randn(3, 5, ELEVEN)
    targets = torch.randint(ELEVEN, (3, 5)).index_fill(1, torch.tensor([1]), IGNORED)
    wanted = cross_entropy(logits, targets, label_smoothing=0.1).sum()
    torch.testing.assert_close(total(loss, logits, targets), wanted)
    loss = partial(F.cross_entropy, reduction="none", label_smoothing=0.1)
    torch.testing.assert_close(total(loss, logits, targets), wanted)
    with pytest.raises(ValueError, match=r"the 5 classes may be on the last axis or, .* axis 1"):
        total(loss, logits[..., :5], targets)


def test_a_byte_of_156_is_a_target():
    logits, targets = torch.randn(3, 256), torch.tensor([156, 3, 7])
    assert count(targets.byte()) == 3
    found = total(cross_entropy, logits, targets.byte())
    assert found == total(cross_entropy, logits, targets)


def test_a_float_of_minus_100_is_a_target():
    targets = torch.full((2, 3), -100.0)
    loss = nn.MSELoss(reduction="none")
    assert (count(targets), total(loss, torch.zeros(2, 3), targets)) == (6, 60_000)


@pytest.mark.parametrize("part", ["blocks.0.feed_forward.expand", "embedding"])
def test_a_part_that_the_optimizer_does_not_hold_is_named(part):
    model = small_gpt()
    optimizer = adamw(model, lr=0.01)
    owner = model.get_submodule(part)
    owner.weight = nn.Parameter(owner.weight.detach().clone())
    with pytest.raises(ValueError, match=rf"does not hold {part}\.weight of this GPT"):
        trainer_of(model, optimizer=optimizer)
    owner.weight.requires_grad_(False)
    trainer = trainer_of(model, optimizer=optimizer)
    owner.weight = nn.Parameter(owner.weight.detach().clone())
    with pytest.raises(ValueError, match=rf"does not hold {part}\.weight of this GPT"):
        next(iter(trainer))


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda s: s.clear(), TypeError, "the state lacks step, model, optimizer, scaler"),
        (lambda s: s["model"].popitem(), RuntimeError, "has the shape nothing, and here"),
        (
            lambda s: s["model"].update({"embedding.weight": torch.zeros(2, 3)}),
            RuntimeError,
            r"its embedding.weight has the shape \(2, 3\)",
        ),
        (lambda s: s["optimizer"]["param_groups"].pop(), ValueError, "of another optimizer"),
        (lambda s: s["batches"].update(seed=7), ValueError, "batches with seed = 7"),
        (lambda s: s["random"][0].update(numpy=3), TypeError, "the state's random is damaged"),
        (lambda s: s["random"][0].update(torch=torch.zeros(3).byte()), TypeError, "is damaged"),
        (
            lambda s: s["model"].update({"embedding.weight": np.zeros((11, 12))}),
            RuntimeError,
            "of another model",
        ),
        (lambda s: s["optimizer"]["param_groups"][1].update(lr=math.nan), ValueError, "lr = nan"),
        (lambda s: s["optimizer"]["state"][0].pop("exp_avg"), ValueError, "lacks exp_avg, or"),
        (
            lambda s: s["optimizer"]["state"][0].update(exp_avg=torch.zeros(3)),
            ValueError,
            r"of parameter 0, \(11, 12\), it lacks exp_avg, or has it in another shape",
        ),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(spoil, error, message):
    whole = trainer_of(small_gpt())
    whole.take_step()
    state = copy.deepcopy(whole.state_dict())
    spoil(state)
    trainer = trainer_of(small_gpt())
    next(iter(trainer))
    before, drawn, random = everything(trainer), trainer.batches.drawn, torch.get_rng_state()
    with pytest.raises(error, match=message):
        trainer.load_state_dict(state)
    unchanged(trainer, before)
    assert trainer.batches.drawn == drawn
    assert torch.get_rng_state().equal(random)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def adam(model):
    return torch.optim.Adam(model.parameters())


@pytest.mark.parametrize(
    ("saved", "here"),
    [
        *((adam, sgd), (sgd, adam), (Muon, NorMuon), (NorMuon, Muon)),
        (adam, lambda model: torch.optim.RMSprop(model.parameters())),
    ],
)
def test_the_state_of_another_optimizer_changes_nothing(saved, here):
    trainer, other = (trainer_of(model, optimizer=make(model)) for make, model in
                      ((saved, small_gpt()), (here, small_gpt())))  # fmt: skip
    list(trainer)
    before = everything(other)
    with pytest.raises(ValueError, match=r"of another optimizer: its groups have .* and here"):
        other.load_state_dict(trainer.state_dict())
    unchanged(other, before)
    assert other.batches.drawn == 0


@pytest.mark.parametrize("spoil", [dict.clear, lambda scaler: scaler.pop("scale")])
def test_a_scaled_loss_needs_its_scale(spoil):
    trainer = trainer_of(small_gpt(), precision="float16")
    state = trainer.state_dict()
    spoil(state["scaler"])
    state["batches"]["drawn"] = 1
    with pytest.raises((ValueError, TypeError), match=r"was not scaled|scaler is damaged"):
        trainer.load_state_dict(state)
    assert trainer.batches.drawn == 0


def test_the_state_of_an_older_normuon_is_loaded():
    model = small_gpt()
    trainer = trainer_of(model, optimizer=NorMuon(model))
    next(iter(trainer))
    state = copy.deepcopy(trainer.state_dict())
    del state["optimizer"]["param_groups"][0]["row_beta"]
    trainer.load_state_dict(state)


def test_it_learns():
    windows = Windows(torch.arange(200) % ELEVEN, length=8)
    model = small_gpt()
    trainer = Trainer(
        model, Muon(model, 0.02, adamw_lr=0.01), Batches(windows, 8), n_steps=40, clip=1.0
    )
    losses = [step.loss for step in trainer]
    assert losses[0] == pytest.approx(math.log(ELEVEN), abs=0.2)
    assert losses[-1] < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_sixteen_bits_train_to_about_the_same_losses(precision):
    torch.manual_seed(1)
    model = small_gpt()
    low = copy.deepcopy(model)
    exact = [step.loss for step in trainer_of(model, n_steps=20)]
    trainer = trainer_of(low, n_steps=20, precision=precision)
    rounded = [step.loss for step in trainer]
    assert rounded == pytest.approx(exact, abs=0.03)
    assert rounded != exact
    assert trainer.scaler.is_enabled() == (precision == "float16")
    assert all(p.dtype == torch.float32 for p in low.parameters())


def everything(trainer):
    """Parameters and what the optimizer remembers."""
    state = {k: dict(v) for k, v in trainer.optimizer.state_dict()["state"].items()}
    return copy.deepcopy((dict(trainer.model.named_parameters()), state))


def unchanged(trainer, before):
    parameters, state = everything(trainer)
    torch.testing.assert_close(parameters, before[0], rtol=0, atol=0)
    torch.testing.assert_close(state, before[1], rtol=0, atol=0)


def test_the_loss_of_a_step_has_all_its_digits_where_few_are_the_default():
    losses = []
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(1)
        trainer = trainer_of(small_gpt())
        torch.set_default_dtype(dtype)
        try:
            losses.append(trainer.take_step().loss)
        finally:
            torch.set_default_dtype(torch.float32)
    assert losses[0] == losses[1]


@pytest.mark.parametrize("make", [adamw, Muon])
def test_a_loss_that_is_no_number_stops_before_the_step(make):
    model = small_gpt()
    trainer = trainer_of(model, optimizer=make(model, lr=0.01))
    steps = iter(trainer)
    next(steps)
    with torch.no_grad():
        model.blocks[1].norm_2.weight[3] = float("nan")
        before = everything(trainer)
    with pytest.raises(FloatingPointError, match="step 2: the loss is nan"):
        next(steps)
    assert trainer.step == 1
    parameters, _ = everything(trainer)
    assert parameters.keys() == before[0].keys()
    for name, value in parameters.items():
        assert torch.equal(value.nan_to_num(7.0), before[0][name].nan_to_num(7.0))
    torch.testing.assert_close(everything(trainer)[1], before[1], rtol=0, atol=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("make", [adamw, Muon])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_gradient_that_is_no_number_stops_before_the_step(value, make, clip):
    model = small_gpt()
    trainer = trainer_of(model, optimizer=make(model, lr=0.01), clip=clip)
    steps = iter(trainer)
    next(steps)
    model.blocks[0].norm_1.bias.register_hook(lambda gradient: torch.full_like(gradient, value))
    before = everything(trainer)
    with pytest.raises(FloatingPointError, match=r"step 2: .* blocks\.0\.norm_1\.bias holds NaN"):
        next(steps)
    unchanged(trainer, before)


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_gradient_whose_square_overflows_stops_before_the_step(clip, precision):
    """Clipping would make all gradients 0; Adam's mean of squares would be infinite for good."""
    model = small_gpt()
    trainer = trainer_of(model, clip=clip, precision=precision)
    steps = iter(trainer)
    next(steps)
    hook = model.blocks[0].norm_1.bias.register_hook(lambda g: torch.full_like(g, 1e30))
    before = everything(trainer)
    with pytest.raises(FloatingPointError, match=r"step 2: .* blocks\.0\.norm_1\.bias has numbers"):
        next(steps)
    unchanged(trainer, before)
    hook.remove()  # mended, it goes on
    assert trainer.take_step().step == trainer.step == 2


def test_a_trainer_does_not_share_the_state_that_it_is_given():
    first = trainer_of(small_gpt())
    first.take_step()
    state = first.state_dict()
    second = trainer_of(small_gpt())
    second.load_state_dict(state)
    before = everything(first)
    for _ in second:
        pass
    unchanged(first, before)


def test_in_float16_the_scaler_lowers_its_scale_and_at_last_stops():
    model = small_gpt()
    trainer = trainer_of(model, precision="float16", n_steps=40)
    model.blocks[0].norm_1.bias.register_hook(lambda gradient: gradient * float("inf"))
    before = everything(trainer)
    scales = []
    steps = iter(trainer)
    for _ in range(16):
        assert next(steps).gradient_norm == math.inf
        scales.append(trainer.scaler.get_scale())
    with pytest.raises(FloatingPointError, match=r"step 17: the gradient of blocks\.0"):
        next(steps)
    assert scales == [2.0**power for power in range(15, -1, -1)]
    unchanged(trainer, before)


def by_frequency(logits, targets):
    """Rare targets count more, as in the batch at hand."""
    times = (targets.flatten() == targets.flatten()[:, None]).sum(0).view_as(targets)
    return cross_entropy(logits, targets) / times


def test_a_loss_that_looks_at_other_rows_has_no_parts(as_a_reader):
    assert next(iter(trainer_of(small_gpt(), loss=by_frequency))).loss > 0
    with pytest.raises(ValueError, match=r"among the batch's rows and .* accumulation at 1"):
        next(iter(trainer_of(small_gpt(), loss=by_frequency, accumulation=2)))


def test_a_batch_must_have_rows_and_targets(as_a_reader):
    with pytest.raises(ValueError, match="2 rows, for processes × accumulation = 1 × 3 parts"):
        next(iter(trainer_of(small_gpt(), batch_size=2, accumulation=3)))
    inputs = torch.ones(2, 5, dtype=torch.int64)
    nothing = Packed(inputs, torch.full_like(inputs, IGNORED), torch.empty(0, 3).long())
    model = small_gpt()
    trainer = Trainer(model, adamw(model, lr=0.01), Batches(nothing, 2), n_steps=1)
    with pytest.raises(ValueError, match="a batch of 2 rows has no target"):
        next(iter(trainer))


class Ending(Batches):
    """Of two batches at most, and those as ``made`` makes them."""

    made = staticmethod(lambda batch: batch)

    def __next__(self):
        if self.drawn == 2:
            raise StopIteration
        return self.made(super().__next__())


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (tuple, ValueError, "the batches have come to an end before the last step"),
        (lambda batch: {"inputs": batch[0]}, TypeError, "a batch is of type dict; .* tuple"),
        (lambda batch: batch[0], TypeError, "a batch is of type Tensor"),
        (lambda batch: batch[:1], TypeError, "a batch holds one tensor or none"),
        (lambda batch: (*batch, batch[1]), TypeError, "of a batch but the last, its targets"),
        (
            lambda batch: (batch[0].numpy(), batch[1]),
            TypeError,
            "tuple of ndarray, Tensor; it must",
        ),
    ],
)
def test_batches_that_are_none(made, error, message, as_a_reader):
    model, batches = small_gpt(), Ending(stories(), 7)
    batches.made = made
    with pytest.raises(error, match=message):
        list(Trainer(model, adamw(model, lr=0.01), batches, n_steps=3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": torch.optim.SGD}, r"optimizer is the class SGD; give an object of it"),
        ({"optimizer": "adamw"}, r"optimizer is 'adamw', of type str; make one"),
        ({"loss": nn.MSELoss}, r"loss is the class MSELoss; give an object"),
        ({"loss": None}, "loss is None; it must be a function"),
        ({"loss": "mse"}, "loss is 'mse'; it must be a function"),
        ({"schedule": object()}, r"schedule is of type object; .* call scheduler\.step\(\)"),
        ({"clip": True}, "clip is True"),
        ({"clip": "1"}, "clip is '1'"),
        ({"deterministic": "no"}, "deterministic is 'no'"),
        ({"compiled": 1}, "compiled is 1"),
    ],
)
def test_the_types_of_options_are_checked(options, message, as_a_reader):
    with pytest.raises(TypeError, match=message):
        trainer_of(small_gpt(), **options)


def test_without_gradients_nothing_is_trained():
    for context in (torch.no_grad(), torch.inference_mode()):
        with pytest.raises(ValueError, match=r"Train outside of torch\.no_grad\(\)"), context:
            next(iter(trainer_of(small_gpt())))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 0}, "n_steps"),
        ({"accumulation": 0}, "accumulation"),
        ({"precision": "float8"}, "precision is 'float8'.*float32"),
    ],
)
def test_options_are_checked(options, message, as_a_reader):
    with pytest.raises(ValueError, match=message):
        trainer_of(small_gpt(), **options)


COMPILED = """
import torch
import torch.nn.functional as F
compile = torch.compile
torch.compile = lambda model: compile(model, backend="eager", fullgraph=True)
from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import Windows
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import adamw

def run(compiled):
    torch.manual_seed(0)
    model = GPT(GPTConfig.fast(vocabulary=7, context=8, n_layers=2, n_heads=2, d_model=12))
    batches = Batches(Windows(torch.arange(99) % 7, length=8), batch_size=5)
    trainer = Trainer(model, adamw(model, lr=0.01), batches, n_steps=3, compiled=compiled)
    return [step.loss for step in trainer], list(trainer.state_dict()["model"])

(losses, names), (plain, plain_names) = run(True), run(False)
assert names == plain_names
torch.testing.assert_close(torch.tensor(losses), torch.tensor(plain), rtol=1e-5, atol=1e-5)
print(len(losses))
"""


@pytest.mark.slow
def test_a_compiled_model_is_one_graph_trains_alike_and_keeps_its_names():
    """In a process of its own: Dynamo cannot trace the type checks that the tests switch on."""
    done = ended(sys.executable, "-c", COMPILED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3\n"


def test_a_part_that_is_replaced_while_it_is_trained_is_named():
    trainer = trainer_of(model := small_gpt(), n_steps=200)
    trainer = iter(trainer)
    next(trainer)
    owner = model.blocks[0].feed_forward.expand
    owner.weight = nn.Parameter(owner.weight.detach().clone())
    with pytest.raises(ValueError, match=r"does not hold blocks\.0\.feed_forward\.expand"):
        list(trainer)


def test_what_was_frozen_and_is_no_longer_is_named():
    model = small_gpt()
    model.embedding.requires_grad_(False)
    trainer = trainer_of(model)
    trainer.take_step()
    model.embedding.requires_grad_(True)
    with pytest.raises(ValueError, match=r"does not hold embedding.weight.*add_param_group"):
        trainer.take_step()
    trainer.optimizer.add_param_group({"params": [*model.embedding.named_parameters()]})
    before = model.embedding.weight.detach().clone()
    trainer.take_step()
    assert not before.equal(model.embedding.weight)


def test_a_part_in_evaluation_mode_stays_there():
    model = small_gpt()
    trainer, part = trainer_of(model), model.blocks[0].feed_forward
    part.eval()
    trainer.take_step()
    model.eval()
    trainer.take_step()
    assert [m for m in model.modules() if not m.training] == [*part.modules()]
    assert model.training
    trainer = trainer_of(model)  # the part rests already
    model.eval()
    trainer.take_step()
    assert [m for m in model.modules() if not m.training] == [*part.modules()]


def test_what_is_not_the_model_s_is_not_trained():
    """It would be neither clipped nor saved; a part that has been replaced does no harm."""
    model, other = small_gpt(), nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([*model.parameters(), other], lr=1.0)

    def scaled(logits, targets):
        return other * cross_entropy(logits, targets)

    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=r"not this GPT's, of the shapes \(\), .*neither clip nor"):
        trainer_of(model, optimizer=optimizer, loss=scaled).take_step()
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    trainer_of(model, optimizer=optimizer).take_step()


def test_gradients_that_are_sparse_are_refused():
    model = nn.Sequential(nn.Embedding(ELEVEN, ELEVEN, sparse=True))
    for make in (torch.optim.SGD, partial(torch.optim.Adagrad, lr=0.1)):
        with pytest.raises(TypeError, match=r"parameter 0 is sparse, .* without sparse=True"):
            trainer_of(model, optimizer=make(model.parameters())).take_step()
    with pytest.raises(TypeError, match="SparseAdam is for gradients that are sparse"):
        trainer_of(model, optimizer=torch.optim.SparseAdam(model.parameters()))


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ({"step": "x"}, "the state's step is 'x'"),
        ({"step": -1}, "the state's step is -1"),
        ({"optimizer": {}}, "the state's optimizer is damaged: it lacks state, param_groups"),
        ({"random": [{}]}, "the state's random is damaged: it lacks python"),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(spoiled, message):
    trainer = trainer_of(small_gpt())
    before = everything(trainer)
    with pytest.raises((TypeError, ValueError), match=message):
        trainer.load_state_dict(trainer.state_dict() | spoiled)
    unchanged(trainer, before)


def test_a_state_is_read_by_torch_load(tmp_path):
    trainer = trainer_of(small_gpt())
    trainer.take_step()
    torch.save(trainer.state_dict(), tmp_path / "state.pt")
    first = np.random.rand(), torch.rand(())  # noqa: NPY002
    trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert (np.random.rand(), torch.rand(())) == first  # noqa: NPY002


def test_a_rate_is_not_taken_for_a_schedule():
    with pytest.raises(TypeError, match="would take n_steps for it"):
        trainer_of(small_gpt(), schedule=inverse_square_root)
