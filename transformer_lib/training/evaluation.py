"""How good a model is, exactly: the mean loss over every target of a text, the share of answers."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.data.packing import IGNORED, Blocks
from transformer_lib.sampling import evaluating
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.precision import in_precision


def mean_loss(
    model: nn.Module,
    blocks: Blocks,
    *,
    batch_size: int = 64,
    precision: str = "float32",
    processes: Processes = ALONE,
) -> float:
    """The mean loss over all targets of ``blocks``, in nats, dropout off.

    Every target counts once, whatever the batches: not a mean of means, and no sample. Several
    processes share the work and get the same result.

    Raises:
        ValueError: no targets; a precision or batch size that is none.

    >>> from transformer_lib.data.packing import cover
    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> config = GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12)
    >>> loss = mean_loss(GPT(config), cover(torch.arange(50) % 7, length=8))
    >>> 1.5 < loss < 2.5  # about ln 7
    True
    """
    device = next(model.parameters()).device
    total = torch.zeros(2, dtype=torch.float64, device=device)
    for logits, targets in _predictions(model, blocks, batch_size, precision, processes):
        flat = logits.float().flatten(0, 1), targets.flatten()
        total[0] += F.cross_entropy(*flat, ignore_index=IGNORED, reduction="sum").double()
        total[1] += (targets != IGNORED).sum()
    loss, count = processes.sum(total).tolist()
    if count == 0:
        raise ValueError(f"{blocks!r} has no targets, so there is no mean loss.")
    return loss / count


def answer_accuracy(
    model: nn.Module,
    blocks: Blocks,
    marked: Bool[Tensor, "blocks tokens"],
    *,
    batch_size: int = 64,
    precision: str = "float32",
    processes: Processes = ALONE,
) -> float:
    """The share of the ``marked`` targets (``blocks.mark``) to which the model gives most.

    Raises:
        ValueError: nothing is marked.
    """
    device = next(model.parameters()).device
    total = torch.zeros(2, dtype=torch.float64, device=device)
    asked = Blocks(blocks.inputs, blocks.targets.masked_fill(~marked, IGNORED), blocks.spans)
    for logits, targets in _predictions(model, asked, batch_size, precision, processes):
        here = targets != IGNORED
        total[0] += (logits.argmax(dim=-1) == targets)[here].sum()
        total[1] += here.sum()
    right, count = processes.sum(total).tolist()
    if count == 0:
        raise ValueError(f"no target of {blocks!r} is marked, so there are no answers to count.")
    return right / count


@torch.no_grad()
def _predictions(
    model: nn.Module, blocks: Blocks, batch_size: int, precision: str, processes: Processes
) -> Iterator[tuple[Float[Tensor, "batch tokens vocabulary"], Int[Tensor, "batch tokens"]]]:
    """Logits and targets of this process's share of the rows."""
    checks.require_count(batch_size, "batch_size")
    device = next(model.parameters()).device
    mine = torch.arange(len(blocks))[processes.rank :: processes.size]
    with evaluating(model), in_precision(device, precision):
        for indices in mine.split(batch_size):
            if len(indices):
                inputs, targets = blocks.rows(indices)
                yield model(inputs.to(device)), targets.to(device)
