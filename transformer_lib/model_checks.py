"""Argument checks of whole models and of sampling: token ids, contexts, caches, options.

The same rules as in ``checks``.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields

import torch
from torch import Tensor

from transformer_lib import checks, module_checks


def require_config(config, choices: Mapping[str, Collection[str]]) -> None:
    """All fields of a ``GPTConfig``; ``choices`` are those of the fields that name a choice."""
    for name in ("dropout", "embedding_std", "smear_start"):
        checks.require_number(getattr(config, name), name)
    for name in ("vocabulary", "context", "n_layers"):
        checks.require_count(getattr(config, name), name)
    d_head = module_checks.require_heads(config.d_model, config.n_heads, None)
    if config.d_ff is not None:
        checks.require_count(config.d_ff, "d_ff")
    for name, known in choices.items():
        checks.require_choice(getattr(config, name), name, known)
    for field in fields(config):
        if field.type is bool:
            checks.require_flag(getattr(config, field.name), field.name)
    if config.positions == "rotary":
        checks.require_even(d_head, "d_model / n_heads", "rotary positions turn pairs")
    if config.positions == "sinusoidal":
        checks.require_even(config.d_model, "d_model", "sinusoidal positions are pairs")
    require_smear(config.smear)
    module_checks.require_smear_start(config.smear_start, "smear_start")
    checks.require_dropout(config.dropout)
    if not 0 < config.embedding_std < float("inf"):
        raise ValueError(
            f"embedding_std is {config.embedding_std}; it is a spread: choose a finite number "
            f"above 0 (GPT-2: 0.02)."
        )


def require_smear(smear) -> None:
    """``smear`` is an int of at least 0."""
    if not isinstance(smear, int) or isinstance(smear, bool) or smear < 0:
        error = ValueError if type(smear) is int else TypeError
        raise error(
            f"smear is {smear!r}; it is how many tokens before each one are mixed in: choose 0 for "
            f"none, 1 for the one before, 3 for the three before."
        )


def require_ids(ids, vocabulary: int) -> None:
    """``ids`` are ``[batch, tokens]``, integers below ``vocabulary``.

    Their values are looked at on the CPU only: on a GPU that would make the program wait.
    """
    if not isinstance(ids, Tensor) or ids.dtype not in (torch.int64, torch.int32):
        tensor = isinstance(ids, Tensor)
        found = f"have dtype {ids.dtype}" if tensor else f"are of type {type(ids).__name__}"
        raise TypeError(
            f"ids {found}; token ids are a tensor of integers: torch.tensor(ids), ids.long()."
        )
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(
            f"ids have shape {tuple(ids.shape)}; they must be [batch, tokens] with at least one "
            f"sequence and one token. One sequence gets its first axis by ids.unsqueeze(0); an "
            f"empty prompt has nothing to go on from: begin with a separator of your vocabulary."
        )
    if ids.device.type == "cpu" and not torch.compiler.is_compiling():
        require_id_values(ids, vocabulary)


def require_id_values(ids: Tensor, vocabulary: int) -> None:
    """Every id is in 0 … vocabulary - 1 (at boundaries: a GPU must wait)."""
    low, high = (int(x) for x in ids.aminmax())
    if low < 0 or high >= vocabulary:
        row, column = ((ids < 0) | (ids >= vocabulary)).nonzero()[0].tolist()
        raise ValueError(
            f"ids[{row}, {column}] is {int(ids[row, column])}; this model's vocabulary has ids 0 "
            f"to {vocabulary - 1}. Encode the text with the tokenizer that the model was made for."
        )


def require_decoder(model, ids, cache) -> None:
    """All arguments of ``GPT.forward``, before anything is written to the cache."""
    config = model.config
    require_ids(ids, config.vocabulary)
    checks.require_same_device("the model", model.embedding.weight, "ids", ids)
    start = 0 if cache is None else cache.length
    require_context(start + ids.shape[1], config.context)
    if cache is not None:
        module_checks.require_room(start, ids.shape[1], cache.capacity)
        if (cache.batch, len(cache.layers)) != (ids.shape[0], config.n_layers):
            raise ValueError(
                f"the cache is made for {cache.batch} sequences and {len(cache.layers)} layers; "
                f"ids hold {ids.shape[0]} sequences and the model has {config.n_layers} layers. "
                f"Make the cache by model.new_cache({ids.shape[0]})."
            )


def require_context(tokens: int, context: int, new: int = 0) -> None:
    """``tokens`` of a prompt and ``new`` ones fit into ``context``."""
    if tokens + new <= context:
        return
    if new == 0:
        raise ValueError(
            f"{tokens} tokens are more than the model's context of {context}. Give the last "
            f"{context} tokens, or cut the text into windows."
        )
    raise ValueError(
        f"a prompt of {tokens} tokens and {new} new ones make {tokens + new}, more than this "
        f"model's context of {context}. Ask for fewer, or give the last tokens of the prompt only: "
        f"ids[:, -n:]."
    )


def require_generation(model, ids, n_tokens: int) -> None:
    """A prompt and the number of tokens to come, for this model."""
    checks.require_count(n_tokens, "n_tokens")
    require_ids(ids, model.config.vocabulary)
    require_id_values(ids, model.config.vocabulary)
    require_context(ids.shape[1], model.config.context, n_tokens)


def require_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """The options of sampling."""
    if temperature != 0 and not 1e-30 <= temperature <= 1e30:
        raise ValueError(
            f"temperature is {temperature}; it divides the logits, and in 32 bits the results must "
            f"be finite: choose a number from 1e-30 to 1e30, or 0 for greedy decoding."
        )
    if top_k is not None:
        checks.require_count(top_k, "top_k")
    if top_p is not None:
        require_top_p(top_p)


def require_drawn_from(logits: Tensor) -> None:
    """The logits of one step hold neither NaN nor infinity.

    Looked at on the CPU only: on a GPU that would make the program wait. The sum, which one such
    number spoils, takes less time than a look at each.
    """
    if logits.device.type == "cpu" and not math.isfinite(logits.sum().item()):
        checks.require_finite(logits, "the model's logits")


def require_top_p(p: float) -> None:
    """``p`` is a share of the probability, above 0 and at most 1."""
    if not 0 < p <= 1:
        raise ValueError(
            f"top_p is {p}; it is the share of the probability to keep: choose 0 < top_p <= 1 "
            f"(1 keeps all)."
        )
