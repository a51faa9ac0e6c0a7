"""Argument checks of training: optimizers, schedules, batches, losses.

The same rules as in ``transformer_lib.checks``.
"""

import math
from collections.abc import Collection, Mapping

import torch
from torch import nn

from transformer_lib import checks


def require_shares(named: Mapping[str, float | tuple[float, ...]]) -> None:
    """Shares of what was before: at least 0, below 1."""
    for name, value in named.items():
        for i, share in enumerate(value if isinstance(value, tuple) else (value,)):
            if not 0 <= share < 1:
                name = f"{name}[{i}]" if isinstance(value, tuple) else name
                raise ValueError(f"{name} is {share}; it is a share: choose 0 <= {name} < 1.")


def require_positive(named: Mapping[str, float]) -> None:
    """Finite numbers above 0."""
    for name, value in named.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}; it must be a finite number above 0.")


def require_betas(betas: tuple[float, float]) -> None:
    """Two of them, for the mean of the gradients and for that of their squares."""
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"betas is {betas!r}; give two numbers, such as (0.9, 0.95).")


def require_trained(model: nn.Module, optimizer: torch.optim.Optimizer, clip: float | None) -> None:
    """The optimizer has parameters of this model; ``clip`` is a norm, or None."""
    here = {id(p) for p in model.parameters()}
    if not any(id(p) in here for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(
            f"the optimizer holds no parameter of this {type(model).__name__}, so no step would "
            f"change it. Make the optimizer from the model that is trained, adamw(model, ...)."
        )
    require_clip(clip)


def require_clip(clip: float | None) -> None:
    """The largest norm of a gradient; None: no limit."""
    if clip is not None and not 0 < clip < math.inf:
        raise ValueError(
            f"clip is {clip}; it is the largest norm that a gradient may have, so it must be a "
            f"finite number above 0. Leave it out (None) for no limit."
        )


def require_any_hidden(hidden: Collection) -> None:
    """There are matrices for Muon."""
    if not hidden:
        raise ValueError(
            "the model has no nn.Linear between its layers, so there is nothing for Muon; use "
            "adamw(model, ...)."
        )


def require_schedule(step: int, n_steps: int, warmup: int, end: float) -> None:
    """A step of a schedule, and what it is made of."""
    checks.require_count(n_steps, "n_steps")
    checks.require_count(step, "step")
    if step > n_steps:
        raise ValueError(
            f"step is {step}, of a schedule for {n_steps} steps. Make n_steps at least {step} (the "
            f"rates of the earlier steps then differ, too), or stop."
        )
    if not isinstance(warmup, int) or isinstance(warmup, bool):
        raise TypeError(f"warmup is {warmup!r}; it is a number of steps and must be an int.")
    if not 0 <= warmup < n_steps:
        raise ValueError(
            f"warmup is {warmup}, of {n_steps} steps; choose 0 <= warmup < n_steps, so that the "
            f"full rate is used at all."
        )
    if not 0 <= end <= 1:
        raise ValueError(f"end is {end}; it is a share of the full rate: choose 0 <= end <= 1.")


def require_decay(decay: float, level: int, n_steps: int, warmup: int) -> None:
    """A trapezoid's decay is a share and begins, after step ``level``, behind the warm-up."""
    if not 0 <= decay <= 1:
        raise ValueError(f"decay is {decay}; it is a share of all steps: choose 0 <= decay <= 1.")
    if level < warmup:
        raise ValueError(
            f"warmup = {warmup} and decay = {decay} of {n_steps} steps overlap; make the warm-up "
            f"at most {level} steps, or the decay shorter."
        )


def require_loss(step: int, loss: float) -> None:
    """A loss from which a step may be taken."""
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"step {step}: the loss is {loss}. No parameter was changed. Lower the learning rate "
            f"or lengthen the warm-up; at the first step, look for NaN in the weights."
        )


def require_parts(rows: int, n_targets: int, n_processes: int, accumulation: int) -> None:
    """A batch can be cut into a part for each process and accumulation."""
    if rows < n_processes * accumulation:
        raise ValueError(
            f"a batch has {rows} rows, for processes × accumulation = {n_processes} × "
            f"{accumulation} parts, and each needs one. Make the batches larger, or accumulation "
            f"smaller."
        )
    if n_targets == 0:
        raise ValueError(
            f"a batch of {rows} rows has no target, so it has no mean loss. Look for rows that "
            f"hold nothing but padding."
        )


def require_processes(saved: int, here: int, other_devices: bool) -> None:
    """As many processes as the state was saved with, unless others will do."""
    if saved != here and not other_devices:
        raise ValueError(
            f"the run was saved by {saved} processes, and here {here} would go on: dropout would "
            f"draw other numbers. Start as many (torchrun --nproc-per-node={saved}), or pass "
            f"other_devices=True."
        )
