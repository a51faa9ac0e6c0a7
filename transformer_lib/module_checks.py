"""Argument checks of the modules and of the cache: which sizes and options make sense together.

The same rules as in ``checks``. All of a module's arguments are checked before anything is
written, so that a call that fails leaves a cache as it was.
"""

import torch
from torch import Tensor, nn

from transformer_lib import checks

# Asked once: within a model that torch.compile traces, PyTorch 2.10 cannot be asked.
AUTOCASTED = {
    device for device in ("cpu", "cuda", "mps", "xpu") if torch.amp.is_autocast_available(device)
}


def require_heads(d_model: int, n_heads: int, d_head: int | None) -> int:
    """The width of a head: ``d_head``, or ``d_model / n_heads`` where that is a whole number."""
    checks.require_count(d_model, "d_model")
    checks.require_count(n_heads, "n_heads")
    if d_head is not None:
        checks.require_count(d_head, "d_head")
        return d_head
    if d_model % n_heads:
        divisors = ", ".join(str(n) for n in range(1, d_model + 1) if d_model % n == 0)
        raise ValueError(
            f"d_model = {d_model} is not divisible by n_heads = {n_heads}, so the heads cannot "
            f"share it equally. Choose n_heads from {divisors}, or give d_head."
        )
    return d_model // n_heads


def require_split(x, n_heads: int) -> None:
    """``x`` is ``[batch, tokens, width]`` and ``n_heads`` divides its width."""
    if x.ndim != 3 or x.shape[-1] % n_heads:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; to be split into {n_heads} heads it must be "
            f"[batch, tokens, width] with a width divisible by {n_heads}."
        )


def require_positions(positions, n_heads: int, d_head: int) -> None:
    """``positions`` (or None) suits heads of this number and width: it is tried on zeros."""
    if positions is None:
        return
    if not (hasattr(positions, "rotate") and hasattr(positions, "bias")):
        raise TypeError(
            f"positions is {positions!r}; give RotaryPositions or AlibiPositions. (Sinusoidal and "
            f"learned positions are added to the embeddings, before attention.)"
        )
    try:
        positions.rotate(torch.zeros(1, n_heads, 1, d_head), 0)
    except ValueError as error:
        raise ValueError(
            f"{positions} does not suit heads of width {d_head}. Make the positions for that width."
        ) from error
    bias = positions.bias(1, 1, torch.device("cpu"), torch.float32)
    if bias is not None and bias.shape != (n_heads, 1, 1):
        raise ValueError(
            f"{positions} gives a bias of shape {tuple(bias.shape)} for 1 query and 1 key; "
            f"this module has n_heads = {n_heads}. Make the positions for as many heads."
        )


def require_rotary(x, angles) -> None:
    """``angles`` has one row for each token of ``x`` and one column for each pair."""
    checks.require_float_tensor(x, "x")
    checks.require_float_tensor(angles, "angles")
    if x.ndim < 2 or x.shape[-1] % 2 or angles.shape != (x.shape[-2], x.shape[-1] // 2):
        raise ValueError(
            f"x has shape {tuple(x.shape)} and angles has shape {tuple(angles.shape)}; for x "
            f"[..., tokens, d_head] the angles must be [tokens, d_head / 2]: make them by "
            f"rotary_angles(tokens, d_head)."
        )


def require_encodable(x, d_model: int, start: int, max_positions: int | None = None) -> None:
    """``x`` is ``[..., tokens, d_model]``, its positions within the table, if there is one."""
    checks.require_float_tensor(x, "x")
    checks.require_start(start)
    if x.ndim < 2 or x.shape[-1] != d_model or x.shape[-2] == 0:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; the positions need [..., tokens, d_model] with "
            f"d_model = {d_model} and at least one token."
        )
    if max_positions is not None and start + x.shape[-2] > max_positions:
        raise ValueError(
            f"positions {start} to {start + x.shape[-2] - 1} are asked for, but only positions 0 "
            f"to {max_positions - 1} were learned. Shorten the sequence, train with a larger "
            f"max_positions, or use positions that are computed (sinusoidal, rotary, ALiBi)."
        )


def require_width(x, d_model: int) -> None:
    """``x`` is ``[..., d_model]``."""
    checks.require_float_tensor(x, "x")
    if x.ndim == 0 or x.shape[-1] != d_model:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; its last axis must be d_model = {d_model} wide."
        )


def require_smear_start(start, name: str) -> None:
    """``start`` is a finite number."""
    if not float("-inf") < start < float("inf"):
        raise ValueError(
            f"{name} is {start}; it is a share of the vector before: choose a finite number (0: "
            f"none)."
        )


def require_smear_input(x, d_model: int) -> None:
    """``x`` is ``[batch, tokens, d_model]``."""
    require_width(x, d_model)
    if x.ndim != 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; the smear looks back along the tokens and needs "
            f"[batch, tokens, d_model]. One sequence gets its first axis by x.unsqueeze(0)."
        )


def require_smear_last(last, x, reach: int) -> None:
    """``last`` are at most ``reach`` vectors of the sequences of ``x``."""
    checks.require_float_tensor(last, "last")
    checks.require_same_dtype("x", x, "last", last)
    batch, _, d_model = x.shape
    if last.ndim != 3 or last.shape[::2] != (batch, d_model) or last.shape[1] > reach:
        raise ValueError(
            f"last has shape {tuple(last.shape)}; it must be [{batch}, 0 to {reach}, {d_model}]: "
            f"the last {reach} vectors before x, or fewer where the text begins."
        )


def require_cache_entry(stored: Tensor, length: int, k, v) -> None:
    """``k`` and ``v`` fit behind the ``length`` tokens that ``stored`` already holds."""
    batch, n_heads, capacity, d_head = stored.shape
    for name, x in (("k", k), ("v", v)):
        checks.require_float_tensor(x, name)
        checks.require_same("the cache", stored, name, x)
        if x.ndim != 4 or (*x.shape[:2], x.shape[3]) != (batch, n_heads, d_head):
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}; this cache takes [{batch}, {n_heads}, tokens, "
                f"{d_head}] (batch, heads, tokens, d_head). Make the cache for these sizes."
            )
        if x.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} carries a gradient; a cache is for generation, its memory is written "
                f"again and again. Call the model under torch.no_grad()."
            )
    if k.shape != v.shape:
        raise ValueError(
            f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}: each key needs its value."
        )
    require_room(length, k.shape[2], capacity)


def require_room(length: int, tokens: int, capacity: int) -> None:
    """A cache has room for ``tokens`` more."""
    if length + tokens > capacity:
        raise ValueError(
            f"the cache holds {length} of at most {capacity} tokens and cannot take {tokens} more. "
            f"Make it with capacity={length + tokens} or larger, or call reset()."
        )


def require_multi_head(module, x, memory, mask, causal: bool, cache) -> None:
    """All arguments of ``MultiHeadAttention.forward``, before anything is written to the cache."""
    weight = module.query.weight
    for name, tokens in (("x", x), ("memory", memory)):
        if name == "memory" and memory is None:
            continue
        checks.require_float_tensor(tokens, name)
        if tokens.ndim != 3 or tokens.shape[-1] != weight.shape[1] or tokens.shape[1] == 0:
            raise ValueError(
                f"{name} has shape {tuple(tokens.shape)}; it must be [batch, tokens, d_model] with "
                f"d_model = {weight.shape[1]} and at least one token (an empty sequence has "
                f"nothing to attend to)."
            )
        checks.require_same_device("the module", weight, name, tokens)
        if not autocasts(weight.device.type):
            checks.require_same_dtype("the module", weight, name, tokens)
    if memory is not None:
        require_memory(module, x, memory, causal, cache)
    keys = x.shape[1] if memory is None else memory.shape[1]
    if cache is not None:
        keys += cache.length
    per_head = mask.unsqueeze(1) if isinstance(mask, Tensor) and mask.ndim == 3 else mask
    checks.require_mask(per_head, (x.shape[0], module.n_heads, x.shape[1], keys), x.device)


def are_plain(layers) -> bool:
    """Whether to call ``layers`` is no more than their product: ``nn.Linear``, biases or none,
    no hooks, no ``forward`` of their own. (One that LoRA or pruning has changed must be called.)
    """
    for layer in layers:
        if type(layer) is not nn.Linear or (layer.bias is None) != (layers[0].bias is None):
            return False
        if layer._forward_hooks or layer._forward_pre_hooks or "forward" in layer.__dict__:
            return False
        if layer._backward_hooks or layer._backward_pre_hooks:
            return False
    return True


def autocasts(device_type: str) -> bool:
    """Whether autocast chooses the dtypes there, so that the module's own need not fit."""
    return device_type in AUTOCASTED and torch.is_autocast_enabled(device_type)


def require_memory(module, x: Tensor, memory: Tensor, causal: bool, cache) -> None:
    """Cross-attention: what makes sense within one sequence only is refused."""
    if memory.shape[0] != x.shape[0]:
        raise ValueError(
            f"x holds {x.shape[0]} sequences and memory {memory.shape[0]}: sequence b of x attends "
            f"to sequence b of memory. Give as many of both."
        )
    if module.positions is not None:
        raise ValueError(
            f"{module.positions} measures distances within one sequence; x and memory are two. "
            f"Use positions=None for attention to a memory."
        )
    if causal:
        raise ValueError(
            "causal=True hides the future of one sequence; x and memory are two. Pass a mask if "
            "parts of the memory must be hidden."
        )
    if cache is not None:
        raise ValueError(
            "cache and memory are given together: a memory does not grow, so appending it at each "
            "step would repeat it. Use the cache for self-attention only."
        )
