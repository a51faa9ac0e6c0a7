"""Changing a model while it computes: parts taken out, and parts put in from another text."""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lib import checks
from transformer_lib.gpt import GPT
from transformer_lib.interpret.parts import logits_with, part_names, parts_of, require_gpt


def logits_without(
    model: GPT, ids: Int[Tensor, "batch tokens"], parts: Iterable[str]
) -> Float[Tensor, "batch tokens vocabulary"]:
    """Ablation: the logits when these parts write zeros.

    The parts behind them compute on with what is left; for what a part adds without that, see
    :func:`~transformer_lib.interpret.lens.direct_logits`. Zero is not always a part's way of saying
    nothing: a model may count on what it writes on average.

    Raises as :func:`~transformer_lib.interpret.parts.logits_with` does; ValueError for a part that
    the model does not have.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model = GPT(GPTConfig(**sizes))
    >>> logits_without(model, torch.tensor([[3, 1]]), ["blocks.0.attention.1"]).shape
    torch.Size([1, 2, 7])
    """
    out = {parts} if isinstance(parts, str) else set(parts)
    require_known(model, out, part_names(model))

    def change(name: str, written: Tensor) -> Tensor:
        return torch.zeros_like(written) if name in out else written

    return logits_with(model, ids, change)


def patched_logits(
    model: GPT,
    ids: Int[Tensor, "batch tokens"],
    source: Int[Tensor, "batch tokens"],
    part: str,
    position: int | None = None,
) -> Float[Tensor, "batch tokens vocabulary"]:
    """Activation patching: the logits for ``ids`` when one part writes what it does for ``source``.

    Args:
        model: a GPT whose blocks are pre-norm.
        ids: the text that is read.
        source: another text of the same length.
        part: whose writing is replaced; ``blocks.0`` replaces the whole stream behind that block.
        position: only at this token, counted from 0; None: at all of them.

    Raises as :func:`~transformer_lib.interpret.parts.logits_with` does; ValueError for texts of
    unequal shapes, a part that the model does not have, or a position outside of the text.

    Source: Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation
    Analysis".

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model, ids, source = GPT(GPTConfig(**sizes)), torch.tensor([[3, 1]]), torch.tensor([[3, 2]])
    >>> patched = patched_logits(model, ids, source, "embedding")
    >>> torch.equal(patched, model(source))  # all that differs was replaced
    True
    """
    require_gpt(model)
    require_patchable(ids, source, position)
    streams = [f"blocks.{at}" for at in range(len(model.blocks))]
    require_known(model, {part}, [*part_names(model), *streams])
    other = parts_of(model, source)[part]

    def change(name: str, written: Tensor) -> Tensor:
        if name != part:
            return written
        if position is None:
            return other
        changed = written.clone()
        changed[:, position] = other[:, position]
        return changed

    return logits_with(model, ids, change)


def require_known(model: GPT, parts: set[str], known: list[str]) -> None:
    """All these parts are parts of the model."""
    if unknown := sorted(parts - set(known)):
        raise ValueError(f"this GPT has no part {unknown[0]!r}; its parts are {', '.join(known)}.")


def require_patchable(ids, source, position: int | None) -> None:
    """Two texts of one shape, and a position in them."""
    if ids.shape != source.shape:
        raise ValueError(
            f"ids have the shape {tuple(ids.shape)} and source {tuple(source.shape)}: what a part "
            f"writes for one token takes the place of what it writes for another, so the texts "
            f"must be equally long."
        )
    if position is not None:
        checks.require_whole(position, "position")
    if position is not None and not 0 <= position < ids.shape[1]:
        raise ValueError(
            f"position is {position}, but the text has the tokens 0 to {ids.shape[1] - 1}."
        )
