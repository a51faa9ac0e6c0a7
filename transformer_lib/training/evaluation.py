"""Exact measures: a model's mean loss over every target of a text, its share of right answers."""

import itertools
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.data.batches import Source, require_source
from transformer_lib.layers import evaluating
from transformer_lib.training.device import in_precision
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.losses import Loss, counted, cross_entropy, require_logits, total


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
        TypeError: a ``DataLoader``, say, in place of a source; a model that returns something else
            than a tensor.

    >>> from transformer_lib.data.packing import cover
    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> config = GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12)
    >>> loss = mean_loss(GPT(config), cover(torch.arange(50) % 7, length=8))
    >>> 1.5 < loss < 2.5  # about ln 7
    True
    """

    return _means([_of_loss(loss)], model, source, batch_size, precision, processes)[0]


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
        TypeError: ``marked`` is not boolean.
    """
    measured = [_of_answers(source, marked)]
    return _means(measured, model, source, batch_size, precision, processes)[0]


def loss_and_accuracy(
    model: nn.Module,
    source: Source,
    marked: Bool[Tensor, "rows tokens"],
    *,
    batch_size: int = 64,
    precision: str = "float32",
    processes: Processes = ALONE,
) -> list[float]:
    """:func:`mean_loss` and :func:`answer_accuracy`, for which the model reads each row once."""
    measured = [_of_loss(cross_entropy), _of_answers(source, marked)]
    return _means(measured, model, source, batch_size, precision, processes)


# Of a batch's logits, targets and numbers of rows: a sum, and how many targets it is of.
Measured = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def _of_loss(loss: Loss) -> tuple[Measured, str]:
    """A sum of losses; and the error where no target counts."""

    def measured(logits: Tensor, targets: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        return total(loss, logits, targets), counted(targets).sum()

    return measured, "{!r} has no targets, so there is no mean loss."


def _of_answers(source: Source, marked: Bool[Tensor, "rows tokens"]) -> tuple[Measured, str]:
    """How many marked targets are given most; and the error where none is marked."""
    require_source(source)
    checks.require_tensor(marked, "marked")
    if marked.dtype != torch.bool:
        raise TypeError(
            f"marked has dtype {marked.dtype}; it is boolean, True where a target counts: "
            f"marked.bool()."
        )
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

    return measured, "no target of {!r} is marked, so there are no answers to count."


@torch.no_grad()
def _means(
    wanted: Sequence[tuple[Measured, str]],
    model: nn.Module,
    source: Source,
    batch_size: int,
    precision: str,
    processes: Processes,
) -> list[float]:
    """Of each that is measured the sum over all rows, in double precision, by the number."""
    checks.require_count(batch_size, "batch_size")
    checks.require_model(model)
    require_source(source)
    tensors = itertools.chain(model.parameters(), model.buffers())
    device = next((tensor.device for tensor in tensors), torch.device("cpu"))
    mine = torch.arange(len(source))[processes.rank :: processes.size]
    found = [torch.zeros(2 * len(wanted), device=device)]
    with evaluating(model):
        for indices in mine.split(batch_size) if len(mine) else ():
            *inputs, targets = (x.to(device) for x in source.rows(indices))
            with in_precision(device, precision):
                logits = model(*inputs)
            require_logits(logits)
            logits = logits.float()
            found.append(torch.stack([x for of, _ in wanted for x in of(logits, targets, indices)]))
    # Added up on the CPU: Apple's GPU has no double precision.
    sums = processes.sum(torch.stack(found).cpu().double().sum(dim=0)).view(-1, 2).tolist()
    for (_, lacking), (_, count) in zip(wanted, sums, strict=True):
        if count == 0:
            raise ValueError(lacking.format(source))
    return [added / count for added, count in sums]
