"""The training loop: a batch, its gradient, a step; and all that it needs to resume elsewhere."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib import checks, storage
from transformer_lib.data.batches import Batches, Lessons
from transformer_lib.training.device import (
    choose_precision,
    chosen_kernels,
    in_precision,
    require_precision,
)
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.feeding import Feed, Share
from transformer_lib.training.losses import (
    Loss,
    cross_entropy,
    require_alone,
    require_loss,
    scored,
    total,
)
from transformer_lib.training.optimizers import (
    bad_gradients,
    gradient_norm,
    gradients_checked,
    not_finite,
    set_rates,
)
from transformer_lib.training.schedules import inverse_square_root
from transformer_lib.training.state import random_state, require_same_gpus, restore_random_state

# What optimizers keep for each number of a parameter.
PER_NUMBER = {"momentum", "mean", "square", "momentum_buffer", "exp_avg", "exp_avg_sq"}
AS_RETURNED = "Give what trainer.state_dict() returned, or an earlier checkpoint."


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        step: its number, from 1.
        loss: mean over the batch's targets, before the step.
        rate: the learning rate of the optimizer's first group.
        gradient_norm: before clipping.
        tokens: targets of the batch.
        seconds: that the step took.
        asked: whether :attr:`Trainer.asked` said so in a process, when the step was computed.
    """

    step: int
    loss: float
    rate: float
    gradient_norm: float
    tokens: int
    seconds: float
    asked: bool = False

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


class Trainer:
    """Trains ``model``: an iterable of steps that can be stopped, saved and resumed anywhere.

    Args:
        model: called with all tensors of a batch but the last, gives logits. (A model may have a
            quicker way to those that count, as ``EncoderDecoder.counted_logits``.)
        optimizer: of :mod:`transformer_lib.training.optimizers`, or any of PyTorch's but LBFGS,
            whose steps need a closure, and SparseAdam. It holds parameters of this model only.
        batches: ``next(batches)`` is the whole batch of a step, for all processes together: a tuple
            of tensors with the rows first, of which the last is the targets. (Of data of your own,
            ``Batches`` of a :class:`~transformer_lib.data.batches.Source` gives them.) They have a
            ``state_dict``, so that a run can be resumed; a ``DataLoader`` has none.
        n_steps: how many steps the run has.
        loss: ``loss(logits, targets)`` is one number for each target, such as
            ``nn.MSELoss(reduction="none")`` gives. What is made small is the mean over the targets
            in the whole batch, but for integers that are ``IGNORED``. The logits come in float32.
            (``nn.CrossEntropyLoss`` gets ``[targets, classes]``, and no axis of tokens.)
        schedule: ``schedule(step, n_steps)`` is the factor of the rate with which the optimizer was
            made. None: the rate is left alone, so that one of PyTorch's schedulers can set it
            between the steps, or you.
        accumulation: in how many parts a process computes its rows, to need less memory at a time.
            The gradient is that of the whole batch, up to rounding, if the model computes each row
            on its own: a BatchNorm would take its mean over each part.
        clip: the largest norm of the gradient; longer ones are shortened to it. None: no limit.
        precision: ``"float32"``, ``"tf32"``, ``"bfloat16"`` or ``"float16"`` (with a scaled loss);
            None: what suits the device. See :mod:`transformer_lib.training.device`.
        processes: of :func:`transformer_lib.training.distributed.processes`.
        compiled: whether ``torch.compile`` makes kernels for this model first (a while, once).
        deterministic: whether CUDA uses only kernels that give the same bits each time. (On a CPU
            the same number of threads is enough.)

    Stop it between two steps. One that is interrupted halfway (Ctrl-C) has drawn its batch, and the
    next step draws another. (``Run`` ends a step first where a program gets a signal.)

    Each step puts the model into training mode, if it is not. Parts that were in evaluation mode
    (``model.norm.eval()``) at the last step, or when this was made, and the model was not, stay
    there, also after an evaluation in between.

    Attributes:
        asked: says whether this process was asked to stop. The answer travels with the loss, so
            that all processes learn of it without another exchange.

    Raises:
        ValueError: sizes, clip or a precision out of range; an optimizer of another model, without
            a parameter of this one that needs a gradient, or with others that get one; a batch with
            fewer rows than parts, or without targets; batches that end; a loss that is not one for
            each target, has parameters of its own, or, where a batch is cut in parts, looks at
            other rows; a schedule's factor that is negative or not finite.
        TypeError: batches that cannot be saved, or are not tuples of tensors; a model that returns
            something else than a tensor; gradients that are sparse; an option of another type.
        FloatingPointError: a loss, a gradient or its norm is NaN or infinite. The message names the
            step and the cause; neither parameters nor optimizer have changed. (In float16 gradients
            that are too large only make the scaler lower its scale and leave the step out.)

    >>> from transformer_lib.data.packing import Windows
    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> from transformer_lib.training.optimizers import adamw
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> batches = Batches(Windows(torch.arange(50) % 7, length=8), batch_size=4)
    >>> trainer = Trainer(model, adamw(model, lr=0.01), batches, n_steps=3)
    >>> [step.step for step in trainer]
    [1, 2, 3]
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: Batches | Lessons,
        *,
        n_steps: int,
        loss: Loss = cross_entropy,
        schedule: Callable[[int, int], float] | None = None,
        accumulation: int = 1,
        clip: float | None = None,
        precision: str | None = None,
        processes: Processes = ALONE,
        compiled: bool = False,
        deterministic: bool = False,
    ):
        checks.require_count(n_steps, "n_steps")
        checks.require_count(accumulation, "accumulation")
        require_trained(model, optimizer)
        require_batches(batches)
        require_loss(loss)
        require_schedule(schedule)
        require_clip(clip)
        checks.require_flag(compiled, "compiled")
        checks.require_flag(deterministic, "deterministic")
        self.model, self.optimizer, self.batches = model, optimizer, batches
        self.n_steps, self.loss, self.schedule, self.clip = n_steps, loss, schedule, clip
        self.processes, self.deterministic = processes, deterministic
        self.device = next(model.parameters()).device
        self.precision = precision or choose_precision(self.device)
        require_precision(self.precision, self.device)
        self.feed = Feed(batches, self.device, processes=processes, accumulation=accumulation)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "float16")
        self.joined = processes.join(model)
        self.forward = torch.compile(self.joined) if compiled else self.joined
        self.asked: Callable[[], bool] = lambda: False
        self.step = 0
        self.train = TrainingMode(model, optimizer)

    def __iter__(self) -> Iterator[Step]:
        require_trained(self.model, self.optimizer)  # a part may have been replaced since
        while self.step < self.n_steps:
            yield self.take_step()

    def take_step(self) -> Step:
        """Draw a batch and change the parameters once."""
        start, number, tf32 = time.perf_counter(), self.step + 1, self.precision == "tf32"
        with chosen_kernels(self.device, tf32=tf32, deterministic=self.deterministic):
            self.train()
            self.optimizer.zero_grad()
            if self.schedule:
                set_rates(self.optimizer, self.schedule(number, self.n_steps))
            share = next(self.feed)
            total = self.backward(share)
            if number < self.n_steps:
                self.feed.start()  # while a GPU still computes
            loss, asked, norm = self.update(number, total)
        self.step = number
        rate, seconds = self.optimizer.param_groups[0]["lr"], time.perf_counter() - start
        return Step(number, loss, rate, norm, share.n_targets, seconds, asked > 0)

    def backward(self, share: Share) -> Tensor:
        """The gradient of the mean loss over all targets of the batch. That loss, and how many
        processes were asked to stop.
        """
        found = torch.zeros(2, dtype=torch.float32, device=self.device)
        for i, (*inputs, targets) in enumerate(share.parts, start=1):
            with self.processes.joining(self.joined, last=i == len(share.parts)):
                with in_precision(self.device, self.precision):
                    logits, wanted = scored(self.forward, self.loss, inputs, targets)
                    require_gradient(logits)
                    require_separate(self, share, logits, wanted)
                    loss = total(self.loss, logits.float(), wanted) / share.n_targets
                # joining takes the mean over the processes, and the sum is wanted
                self.scaler.scale(loss * self.processes.size).backward()
            found[0] += loss.detach()
        found[1] = self.asked()
        return self.processes.sum(found)

    def update(self, number: int, total: Tensor) -> list[float]:
        """Let the optimizer step, unless something is not finite. ``total`` and the norm."""
        self.scaler.unscale_(self.optimizer)
        length = gradient_norm(self.optimizer)
        # Here the program waits for a GPU. (In float16 once more: the scaler looks for infinities.)
        loss, asked, norm = torch.stack([*total, length.to(self.device)]).tolist()
        self.stop_unless_finite(number, loss, norm)
        require_own(self.model, self.optimizer, self.train.calls)
        if self.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), self.clip, length)
        with gradients_checked(self.optimizer):
            self.scaler.step(self.optimizer)
        self.scaler.update()
        return [loss, asked, norm]

    def stop_unless_finite(self, number: int, loss: float, norm: float) -> None:
        """Nothing has changed so far, so the run can be mended and go on."""
        bad_loss = not math.isfinite(loss)
        bad_norm = not math.isfinite(norm)
        if bad_norm and self.scaler.get_scale() > 1 and not_finite(self.optimizer):
            bad_norm = False  # the scaler will leave this step out
        if bad_loss or bad_norm:
            self.scaler.update(self.scaler.get_scale())  # ready for the next step
        if bad_loss:
            raise FloatingPointError(
                f"step {number}: the loss is {loss}. No parameter was changed. Lower the learning "
                f"rate or lengthen the warm-up; at the first step, look for NaN in the weights."
            )
        if bad_norm:
            raise FloatingPointError(f"step {number}: {bad_gradients(self.optimizer)}")

    def state_dict(self) -> dict[str, Any]:
        """All that must be saved to go on as if nothing had happened. All processes must call it.

        On a CPU the run then ends in the same bits, with as many threads; on CUDA, if it is
        ``deterministic``. The tensors are the trainer's own, which the next step changes: save or
        copy them before it.
        """
        parts = {name: part.state_dict() for name, part in self.parts().items()}
        return {"step": self.step, **parts, "random": self.processes.gather(random_state())}

    def load_state_dict(self, state: dict[str, Any], *, other_devices: bool = False) -> None:
        """Go on from (a copy of) ``state``: the next step is the one that would have come there.

        Raises:
            ValueError: it was saved with another number of processes or GPUs, unless
                ``other_devices``: then the run goes on with other random numbers (dropout). Or it
                belongs to other batches, or to another optimizer; or was saved without the scaled
                loss that is used here.
            RuntimeError: it belongs to another model.
            TypeError: it is not the state of a trainer.

        Nothing has changed then.
        """
        require_state(self, state, other_devices)
        states, here = state["random"], self.processes
        # An optimizer keeps the very tensors that it is given, so it gets its own.
        state = state | {"optimizer": copy.deepcopy(state["optimizer"])}
        for name, part in reversed(self.parts().items()):  # the batches, which may refuse, first
            part.load_state_dict(state[name])
        if here.rank < len(states):
            restore_random_state(states[here.rank], other_devices=other_devices)
        self.step = state["step"]

    def parts(self) -> dict[str, Any]:
        """All that has a state of its own."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scaler": self.scaler,
            "batches": self.feed,
        }


class TrainingMode:
    """Puts a model into training mode, but for the parts that were not in it when the model was.

    Raises:
        ValueError: the optimizer lacks what was frozen when this was made and no longer is, or, in
            every hundredth call, a part that was put in since.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.frozen = [p for p in model.parameters() if not p.requires_grad]
        self.resting = [part for part in model.modules() if model.training and not part.training]
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls % 100 == 0 or any(p.requires_grad for p in self.frozen):
            require_trained(self.model, self.optimizer)
        if self.model.training:
            self.resting = [part for part in self.model.modules() if not part.training]
            return
        self.model.train()
        for part in self.resting:
            part.training = False


def require_own(model: nn.Module, optimizer: torch.optim.Optimizer, calls: int) -> None:
    """In the first step and every hundredth after it: no gradient is for other parameters of the
    optimizer than the model's. (Those of a part that was replaced get none.)
    """
    if calls % 100 != 1:
        return
    own = set(map(id, model.parameters()))
    held = [p for group in optimizer.param_groups for p in group["params"]]
    if others := [tuple(p.shape) for p in held if p.grad is not None and id(p) not in own]:
        raise ValueError(
            f"the optimizer holds parameters that are not this {type(model).__name__}'s, of the "
            f"shapes {', '.join(map(str, others[:3]))}, which the run would neither clip nor save. "
            f"No parameter was changed. Make them part of the model (model.extra = ...), and the "
            f"optimizer from it."
        )


def require_trained(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The optimizer has the parameters of this model that need a gradient."""
    checks.require_model(model)
    checks.require_object(optimizer, "optimizer")
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(
            f"optimizer is {optimizer!r:.60}, of type {type(optimizer).__name__}; make one from "
            f"the model: adamw(model, lr=0.001), or one of PyTorch's."
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise TypeError(
            "SparseAdam is for gradients that are sparse, whose norm the loop cannot take. Choose "
            "another optimizer, such as adamw(model, ...), and leave sparse=True out."
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise TypeError(
            "LBFGS asks for the loss several times in a step, and the loop computes it once. "
            "Choose another optimizer, such as adamw(model, ...)."
        )
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if held.isdisjoint(map(id, model.parameters())):
        raise ValueError(
            f"the optimizer holds no parameter of this {type(model).__name__}, so no step would "
            f"change it. Make the optimizer from the model that is trained, adamw(model, ...)."
        )
    named = model.named_parameters()
    if left := [name for name, p in named if p.requires_grad and id(p) not in held]:
        more = " and others" if len(left) > 3 else ""
        raise ValueError(
            f"the optimizer does not hold {', '.join(left[:3])}{more} of this "
            f"{type(model).__name__}, which would never be trained. If a part was replaced since, "
            f"or was frozen before, make the optimizer anew, or give it the rest by "
            f"add_param_group (as named_parameters(), if its others have names); what is to stay "
            f"as it is gets requires_grad_(False)."
        )


def require_batches(batches: Any) -> None:
    """Batches without end, which can be saved."""
    for name in ("__next__", "state_dict", "load_state_dict"):
        if not hasattr(batches, name):
            raise TypeError(
                f"batches is of type {type(batches).__name__}, which has no {name}, so a run could "
                f"not be resumed. Give Batches(source, batch_size): a source has a length, and "
                f"rows(indices), which returns tensors, the targets last."
            )


def require_schedule(schedule: Callable[[int, int], float] | None) -> None:
    """A function of the step and the number of steps, or None."""
    if schedule is not None and not callable(schedule):
        raise TypeError(
            f"schedule is of type {type(schedule).__name__}; it must be a function: "
            f"schedule(step, n_steps) is the factor of the rate. To use one of PyTorch's "
            f"schedulers, leave schedule out, and call scheduler.step() after each step."
        )
    if schedule is inverse_square_root:
        raise TypeError(
            "inverse_square_root is a rate for a d_model, and would take n_steps for it. Give "
            "schedule=lambda step, n_steps: inverse_square_root(step, d_model=512)."
        )


def require_clip(clip: float | None) -> None:
    """The largest norm of a gradient; None: no limit."""
    if clip is not None:
        checks.require_number(clip, "clip")
    if clip is not None and not 0 < clip < math.inf:
        raise ValueError(
            f"clip is {clip}; it is the largest norm that a gradient may have, so it must be a "
            f"finite number above 0. Leave it out (None) for no limit."
        )


def require_state(trainer: Trainer, state: Mapping[str, Any], other_devices: bool) -> None:
    """The state of a trainer like this one, all of which can be loaded."""
    if not isinstance(state, Mapping):
        raise TypeError(
            f"the state is of type {type(state).__name__}; give what trainer.state_dict() "
            f"returned, which a checkpoint has as checkpoint.state."
        )
    parts = trainer.parts()
    wanted = ("step", *parts, "random")
    if lacking := [name for name in wanted if name not in state]:
        raise TypeError(
            f"the state lacks {', '.join(lacking)}, so it is not one of a Trainer. Give what "
            f"trainer.state_dict() returned; weights alone are for model.load_state_dict."
        )
    checks.require_count(state["step"], "the state's step", least=0)
    scaler = trainer.scaler.state_dict()
    if scaler and state["scaler"] == {}:
        raise ValueError(
            f"the state is of a run whose loss was not scaled, and here precision is "
            f"{trainer.precision!r}, which needs that. Choose the precision that the run had."
        )
    wanted = {"optimizer": ("state", "param_groups"), "model": (), "scaler": tuple(scaler)}
    for name, inner in wanted.items():
        require_keys(state[name], inner, name)
    for one in state["random"]:
        require_keys(one, ("python", "numpy", "torch", "cuda"), "random")
    states, rank = state["random"], trainer.processes.rank
    require_processes(len(states), trainer.processes.size, other_devices)
    if rank < len(states):
        require_random_state(states[rank], other_devices)
    own, given = (
        {name: x.shape if isinstance(x, Tensor) else None for name, x in each.items()}
        for each in (trainer.model.state_dict(), state["model"])
    )
    for name in [*own, *given]:
        if own.get(name, "nothing") != given.get(name, "nothing"):
            found, here = (
                tuple(each[name] or ()) if name in each else "nothing" for each in (given, own)
            )
            raise RuntimeError(
                f"the state is of another model: its {name} has the shape {found}, and here it is "
                f"{here}. Make the model as it was."
            )
    groups = [groups_of(each) for each in (state["optimizer"], trainer.optimizer.state_dict())]
    if groups[0] != groups[1]:
        raise ValueError(
            f"the state is of another optimizer: its groups have {'; '.join(groups[0])}, and here "
            f"they have {'; '.join(groups[1])}. Make the optimizer as it was."
        )
    require_optimizer_state(state["optimizer"], trainer.optimizer)


def require_random_state(state: Mapping[str, Any], other_devices: bool) -> None:
    """As many GPUs as here, and what the generators take: they are put back at once."""
    require_same_gpus(state, other_devices)
    before = random_state()
    try:
        restore_random_state(state, other_devices=other_devices)
    except storage.NONSENSE as error:
        raise TypeError(
            f"the state's random is damaged: {storage.in_a_line(error)}. {AS_RETURNED}"
        ) from error
    finally:
        restore_random_state(before)


def require_optimizer_state(state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Finite options; of each parameter what is kept of the others in its group with as many axes.
    (Of one that has had no gradient yet nothing is.)
    """
    for group, own in zip(state["param_groups"], optimizer.param_groups, strict=True):
        for name, value in group.items():
            numbers = value if isinstance(value, (tuple, list)) else (value,)
            if not all(math.isfinite(x) for x in numbers if isinstance(x, (float, Tensor))):
                raise ValueError(f"the state's optimizer has {name} = {value}. {AS_RETURNED}")
        like: dict[int, Mapping[str, Any]] = {}
        for number, p in zip(group["params"], own["params"], strict=True):
            kept = state["state"].get(number) or {}
            odd = kept.keys() ^ like.setdefault(p.ndim, kept).keys() if kept else set()
            odd |= {x for x in PER_NUMBER & kept.keys() if kept[x].shape != p.shape}
            if odd:
                raise ValueError(
                    f"the state's optimizer is damaged: of parameter {number}, {tuple(p.shape)}, "
                    f"it lacks {', '.join(sorted(odd))}, or has it in another shape. {AS_RETURNED}"
                )


def groups_of(optimizer: Mapping[str, Any]) -> list[str]:
    """What the groups in an optimizer's state have: parameters, and options that are numbers. (Of
    flags, every version of PyTorch has others; its schedulers add a max_lr, a base_momentum.)
    """
    found = []
    for group in optimizer["param_groups"]:
        numbers = {
            name for name, value in group.items()
            if isinstance(value, (int, float, tuple, list, Tensor)) and not isinstance(value, bool)
            if not name.startswith("param") and not name.endswith(("_lr", "_momentum"))
        }  # fmt: skip
        if group.get("method") == "muon" and any("rows" in s for s in optimizer["state"].values()):
            numbers.add("row_beta")  # NorMuon's, which older checkpoints do not say
        options = ", ".join([*filter(None, [group.get("method")]), *sorted(numbers)])
        found.append(f"{len(group['params'])} parameters ({options})")
    return found


def require_gradient(logits: Tensor) -> None:
    """There is a way back from the logits to the parameters."""
    if not logits.requires_grad:
        raise ValueError(
            "the logits need no gradient, so no parameter would learn from them. Train outside of "
            "torch.no_grad() and torch.inference_mode(), and let the model detach nothing."
        )


def require_separate(trainer: Trainer, share: Share, logits: Tensor, targets: Tensor) -> None:
    """In the first step: if the batch is cut in parts, the loss lets it be."""
    if trainer.step == 0 and len(share.parts) * trainer.processes.size > 1:
        require_alone(trainer.loss, logits.float(), targets)


def require_keys(state: Any, keys: tuple[str, ...], name: str) -> None:
    """A part of a trainer's state has these entries."""
    lacking = [key for key in keys if key not in state] if isinstance(state, Mapping) else keys
    if lacking or not isinstance(state, Mapping):
        raise TypeError(
            f"the state's {name} is damaged: it lacks {', '.join(lacking) or 'its entries'}. "
            f"{AS_RETURNED}"
        )


def require_processes(saved: int, here: int, other_devices: bool) -> None:
    """As many processes as the state was saved with, unless others will do."""
    if saved != here and not other_devices:
        raise ValueError(
            f"the run was saved by {saved} processes, and here {here} would go on: dropout would "
            f"draw other numbers. Start as many (torchrun --nproc-per-node={saved}), or pass "
            f"other_devices=True (--other-devices)."
        )
