"""The training loop: a batch, its gradient, a step; and all that it needs to go on elsewhere."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lib import checks
from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import IGNORED, Batch
from transformer_lib.training import training_checks
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.optimizers import set_rates
from transformer_lib.training.parameters import check_gradients
from transformer_lib.training.precision import PRECISIONS, choose_precision, in_precision
from transformer_lib.training.state import random_state, restore_random_state

PARTS = ("model", "optimizer", "scaler", "batches")  # of a trainer, with a state of their own


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        step: its number, from 1.
        loss: mean over the batch's targets, in nats, before the step.
        rate: the learning rate of the optimizer's first group.
        gradient_norm: before clipping.
        tokens: targets of the batch.
        seconds: that the step took.
    """

    step: int
    loss: float
    rate: float
    gradient_norm: float
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


class Trainer:
    """Trains ``model``: an iterator over steps that can be stopped, saved and resumed anywhere.

    Args:
        model: called with ids ``[batch, tokens]``, gives logits ``[batch, tokens, vocabulary]``.
        optimizer: of :mod:`transformer_lib.training.optimizers`.
        batches: ``next(batches)`` is the whole batch of a step, for all processes together.
        n_steps: how many steps the run has.
        schedule: ``schedule(step, n_steps)`` is the factor of the optimizer's rate.
        accumulation: in how many parts a process computes its rows, to need less memory at a time.
            The gradient is that of the whole batch, up to rounding.
        clip: the largest norm of the gradient; longer ones are shortened to it. None: no limit.
        precision: ``"float32"``, ``"bfloat16"`` or ``"float16"`` (with a scaled loss); None: what
            suits the device, see :func:`~transformer_lib.training.precision.choose_precision`.
        processes: of :func:`transformer_lib.training.distributed.processes`.
        compiled: whether ``torch.compile`` makes kernels for this model first (minutes, once).

    Raises:
        ValueError: sizes, clip or a precision out of range; an optimizer of another model; a batch
            with fewer rows than parts, or without targets.
        FloatingPointError: a loss or gradient is NaN or infinite. The message names the step and
            the cause; neither parameters nor optimizer have changed. (In float16 gradients that
            are too large only make the scaler lower its scale and leave the step out.)

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
        batches: Batches,
        *,
        n_steps: int,
        schedule: Callable[[int, int], float] | None = None,
        accumulation: int = 1,
        clip: float | None = None,
        precision: str | None = None,
        processes: Processes = ALONE,
        compiled: bool = False,
    ):
        checks.require_count(n_steps, "n_steps")
        checks.require_count(accumulation, "accumulation")
        training_checks.require_trained(model, optimizer, clip)
        self.model, self.optimizer, self.batches = model, optimizer, batches
        self.n_steps, self.schedule, self.clip = n_steps, schedule, clip
        self.accumulation, self.processes = accumulation, processes
        self.device = next(model.parameters()).device
        self.precision = precision or choose_precision(self.device)
        checks.require_choice(self.precision, "precision", PRECISIONS)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "float16")
        self.joined = processes.join(model)
        self.forward = torch.compile(self.joined) if compiled else self.joined
        self.step = 0

    def __iter__(self) -> Iterator[Step]:
        while self.step < self.n_steps:
            yield self.take_step()

    def take_step(self) -> Step:
        """Draw a batch and change the parameters once."""
        start, number = time.perf_counter(), self.step + 1
        self.model.train()
        self.optimizer.zero_grad()
        set_rates(self.optimizer, self.schedule(number, self.n_steps) if self.schedule else 1.0)
        loss, n_targets = self.backward(next(self.batches))
        training_checks.require_loss(number, loss)
        norm = self.gradient_norm(number)
        if self.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), self.clip, norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step, norm = number, float(norm)
        rate, seconds = self.optimizer.param_groups[0]["lr"], time.perf_counter() - start
        return Step(number, loss, rate, norm, n_targets, seconds)

    def backward(self, batch: Batch) -> tuple[float, int]:
        """The gradient of the mean loss over all targets of ``batch``; that loss, their number."""
        (inputs, targets), here = batch, self.processes
        n_parts, n_targets = self.accumulation * here.size, int((targets != IGNORED).sum())
        training_checks.require_parts(len(inputs), n_targets, here.size, self.accumulation)
        inputs, targets = (x.tensor_split(n_parts)[here.rank :: here.size] for x in batch)
        total = torch.zeros((), device=self.device)
        for i, (ids, following) in enumerate(zip(inputs, targets, strict=True)):
            with here.joining(self.joined, last=i == self.accumulation - 1):
                with in_precision(self.device, self.precision):
                    logits = self.forward(ids.to(self.device)).flatten(0, 1).float()
                    following = following.to(self.device).flatten()
                    loss = F.cross_entropy(logits, following, reduction="sum") / n_targets
                self.scaler.scale(loss * here.size).backward()  # joining takes the mean
            total += loss.detach()
        return float(here.sum(total)), n_targets

    def gradient_norm(self, number: int) -> torch.Tensor:
        """The gradient's norm, in true scale; infinite if the scaler will leave this step out."""
        self.scaler.unscale_(self.optimizer)
        try:
            return check_gradients(self.optimizer)
        except FloatingPointError as error:
            if self.scaler.get_scale() > 1:
                return torch.tensor(math.inf, device=self.device)
            raise FloatingPointError(f"step {number}: {error}") from error

    def state_dict(self) -> dict[str, Any]:
        """All that must be saved to go on bit for bit. (All processes have to call it.)"""
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        return {"step": self.step, **parts, "random": self.processes.gather(random_state())}

    def load_state_dict(self, state: dict[str, Any], *, other_devices: bool = False) -> None:
        """Go on from ``state``: the next step is the one that would have come there.

        Raises:
            ValueError: it was saved with another number of processes or GPUs, unless
                ``other_devices``: then the run goes on with other random numbers (dropout). Or it
                belongs to other batches. Parameters, optimizer and step are as they were.
        """
        states, here = state["random"], self.processes
        training_checks.require_processes(len(states), here.size, other_devices)
        if here.rank < len(states):
            restore_random_state(states[here.rank], other_devices=other_devices)
        for name in reversed(PARTS):  # the batches, which may refuse, first
            getattr(self, name).load_state_dict(state[name])
        self.step = state["step"]
