"""Exact measures: a model's mean loss over every target of a text, its share of right answers."""

from collections.abc import Callable

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.data.batches import Source, require_source
from transformer_lib.layers import evaluating
from transformer_lib.training.device import in_precision
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.losses import Loss, counted, cross_entropy, total


def mean_loss(
    model: nn.Module,
    source: Source,
    *,
    loss: Loss = cross_entropy,
    batch_size: int = 64,
    precision: str = "float32",
    processes: Processes = ALONE,
) -> float:
    """The mean loss over all targets of ``source`` that count, dropout off.

    Every target counts once, whatever the batches: not a mean of means, and not a sample. Several
    processes share the work and get the same result.

    Args:
        model, loss, precision: as in :class:`~transformer_lib.training.loop.Trainer`.
        source: rows, such as :class:`~transformer_lib.data.packing.Packed`.

    Raises:
        ValueError: there are no targets; a precision or batch size out of range.
        TypeError: a ``DataLoader``, say, in place of a source.

    >>> from transformer_lib.data.packing import cover
    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> config = GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12)
    >>> loss = mean_loss(GPT(config), cover(torch.arange(50) % 7, length=8))
    >>> 1.5 < loss < 2.5  # about ln 7
    True
    """

    def measured(logits: Tensor, targets: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        return total(loss, logits, targets), counted(targets).sum()

    added, count = _totals(measured, model, source, batch_size, precision, processes)
    if count == 0:
        raise ValueError(f"{source!r} has no targets, so there is no mean loss.")
    return added / count


def answer_accuracy(
    model: nn.Module,
    source: Source,
    marked: Bool[Tensor, "rows tokens"],
    *,
    batch_size: int = 64,
    precision: str = "float32",
    processes: Processes = ALONE,
) -> float:
    """The share of the ``marked`` targets (``blocks.mark``) to which the model gives most.

    Raises:
        ValueError: nothing is marked, or ``marked`` is not of the targets' shape.
    """
    require_source(source)
    checks.require_tensor(marked, "marked")
    if len(marked) != len(source):
        raise ValueError(f"marked has {len(marked)} rows, and the source {len(source)}.")

    def measured(logits: Tensor, targets: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        asked = marked[indices].to(targets.device)
        if asked.shape != targets.shape:
            raise ValueError(
                f"marked is {tuple(asked.shape)} for targets {tuple(targets.shape)}; mark each "
                f"target: blocks.mark(...)."
            )
        asked &= counted(targets)
        return ((logits.argmax(dim=-1) == targets) & asked).sum(), asked.sum()

    right, count = _totals(measured, model, source, batch_size, precision, processes)
    if count == 0:
        raise ValueError(f"no target of {source!r} is marked, so there are no answers to count.")
    return right / count


@torch.no_grad()
def _totals(
    measured: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    model: nn.Module,
    source: Source,
    batch_size: int,
    precision: str,
    processes: Processes,
) -> list[float]:
    """The two sums of what is measured on each batch, over all rows, in double precision."""
    checks.require_count(batch_size, "batch_size")
    checks.require_model(model)
    require_source(source)
    device = next(model.parameters()).device
    mine = torch.arange(len(source))[processes.rank :: processes.size]
    found = [torch.zeros(2, device=device)]
    with evaluating(model):
        for indices in mine.split(batch_size) if len(mine) else ():
            *inputs, targets = (x.to(device) for x in source.rows(indices))
            with in_precision(device, precision):
                logits = model(*inputs)
            sums = measured(logits.float(), targets, indices)
            found.append(torch.stack(sums))
    # Added up on the CPU: Apple's GPU has no double precision.
    return processes.sum(torch.stack(found).cpu().double().sum(dim=0)).tolist()
