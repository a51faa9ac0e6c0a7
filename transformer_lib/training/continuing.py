"""What a finished run, or one in progress, is good for: its model, out of a checkpoint."""

import os
from dataclasses import dataclass
from typing import Any

import torch

from transformer_lib import checks
from transformer_lib.gpt import GPT, current_names
from transformer_lib.sampling import generate
from transformer_lib.training import checkpoints
from transformer_lib.training.corpora import Tokenizer, tokenizer_of
from transformer_lib.training.device import best_device
from transformer_lib.training.manifests import MANIFEST, CheckpointError
from transformer_lib.training.recipes import Recipe


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A model that was trained.

    Attributes:
        recipe: how.
        tokenizer: between its ids and text.
        model: in evaluation mode.
        checkpoint: where it came from.
    """

    recipe: Recipe
    tokenizer: Tokenizer
    model: GPT
    checkpoint: checkpoints.Checkpoint


def recipe_of(checkpoint: checkpoints.Checkpoint) -> Recipe:
    """The recipe that a checkpoint belongs to.

    Raises:
        CheckpointError: it is none of a run (but of another program, or another version).
    """
    try:
        return Recipe.from_json(checkpoint.configuration["recipe"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            checkpoint.path / MANIFEST,
            f"holds no recipe of a run: {error}.",
            "Use the version of transformer_lib that wrote it.",
        ) from error


def load_trained(path: str | os.PathLike, *, device: torch.device | None = None) -> Trained:
    """The model of a checkpoint, of a run's folder the newest. Its data is not needed.

    Raises:
        FileNotFoundError, CheckpointError: see ``load_checkpoint``; or the checkpoint is of another
            loop, without the tokenizer and the model of a run.
    """
    checkpoint = checkpoints.load_checkpoint(path)
    recipe, device = recipe_of(checkpoint), device or best_device()
    try:
        tokenizer = tokenizer_of(checkpoint.configuration["tokenizer"])
        config, weights = recipe.model_config(tokenizer.size), checkpoint.state["model"]
        model = GPT(config).to(device).eval()
        model.load_state_dict(current_names(weights))
    except torch.OutOfMemoryError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            checkpoint.path,
            f"holds no model of a run ({type(error).__name__}: {error}).",
            "If a loop of your own saved it, load it there by load_checkpoint.",
        ) from error
    return Trained(recipe=recipe, tokenizer=tokenizer, model=model, checkpoint=checkpoint)


def continue_text(
    model: GPT, tokenizer: Tokenizer, prompt: str, n_tokens: int, **options: Any
) -> str:
    """``prompt`` and what the model writes behind it, as long as you like.

    When the context is full, the model goes on from the second half of it, read anew.

    Args:
        options: of :func:`~transformer_lib.sampling.generate`.

    Raises:
        ValueError: an empty prompt, unknown characters or words, options out of range.
    """
    checks.require_count(n_tokens, "n_tokens")
    context, device = model.config.context, model.embedding.weight.device
    ids = tokenizer.encode(prompt)
    while n_tokens > 0:
        kept = ids if len(ids) < context else ids[-max(1, context // 2) :]
        piece = min(n_tokens, context - len(kept))
        read = torch.tensor([kept], dtype=torch.int64, device=device)
        ids += generate(model, read, piece, **options)[0, len(kept) :].tolist()
        n_tokens -= piece
    return tokenizer.decode(ids)
