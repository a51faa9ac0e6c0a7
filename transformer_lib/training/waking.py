"""Heads that sleep through the lessons, so that each thing is learned by few.

Heads that begin alike learn alike: without this, several of the last block fetch the same answer,
and none of them is needed. A head whose values and whose part of the output are zero has no
gradient, since either counts only through the other. So it stays zero, without a mask, until its
values are drawn.
"""

import torch

from transformer_lib import checks
from transformer_lib.gpt import GPT


@torch.no_grad()
def put_to_sleep(model: GPT, awake: int) -> None:
    """All heads of the last block but the first ``awake`` of them.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model = GPT(GPTConfig(**sizes))
    >>> put_to_sleep(model, awake=1)
    >>> model(torch.tensor([[3, 1]])).sum().backward()
    >>> model.blocks[0].attention.value.weight.grad[4:].any()
    tensor(False)
    """
    values, outputs = _asleep(model, awake)
    values.zero_()
    outputs.zero_()


@torch.no_grad()
def wake(model: GPT, awake: int, seed: int) -> None:
    """Draw the values of the heads that slept, as a new model's are. What they write starts at 0.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model, ids = GPT(GPTConfig(**sizes)), torch.tensor([[3, 1]])
    >>> put_to_sleep(model, awake=1)
    >>> before = model(ids)
    >>> wake(model, awake=1, seed=0)
    >>> torch.equal(model(ids), before)
    True
    """
    values, _ = _asleep(model, awake)
    drawn = torch.empty(values.shape).normal_(
        0, 0.02, generator=torch.Generator().manual_seed(seed)
    )
    values.copy_(drawn)


def _asleep(model: GPT, awake: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of the values, and the columns of the output, of the heads behind the first ones.

    Raises:
        ValueError: heads share their values.
    """
    checks.require_count(awake, "awake", least=0)
    attention = model.blocks[-1].attention
    values = getattr(attention, "value", None)
    if values is None or len(values.weight) != attention.output.weight.shape[1]:
        raise ValueError(
            "only heads with values of their own can sleep through lessons, and this model's share "
            "theirs (n_kv_heads, or latent attention). Leave lesson_heads out."
        )
    first = awake * attention.d_head
    return values.weight[first:], attention.output.weight[:, first:]
