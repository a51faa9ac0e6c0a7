"""Attention maps of any model, and the queries and keys behind them, collected by temporary hooks.

The model itself stores nothing.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import MultiHeadAttention, require_multi_head_input

Maps = dict[str, Float[Tensor, "batch heads queries keys"]]
Vectors = dict[str, tuple[Tensor, Tensor]]


def attention_maps(model: nn.Module, *args: Any, **kwargs: Any) -> Maps:
    """Run ``model(*args, **kwargs)`` once and return the weights of each attention in it.

    The keys are the names of the :class:`~transformer_lib.attention.MultiHeadAttention` modules in
    the model, in the order in which they ran (``"attention"`` if the model is one itself). A module
    that runs more than once gives ``name``, ``name#2``, ``name#3``, …

    The weights are :func:`~transformer_lib.attention.attention_weights` of the queries and keys
    that the module projects for this very input, with its mask and its bias. Dropout is not part of
    them: their rows sum to 1 in training mode, too (there, dropout still changes what the layers
    above receive: call ``model.eval()`` first for the maps of the model as it will be used).
    They carry no gradient, and the random state is put back afterwards, so that to look at a model
    does not change how it trains. (A module that counts its calls, such as BatchNorm in training
    mode, does count this one.)

    Raises:
        ValueError: there is no MultiHeadAttention in the model, or none that ran; a cache is used
            (to look again would write to it again); a map is not finite.

    >>> attend = MultiHeadAttention(d_model=8, n_heads=2)
    >>> maps = attention_maps(attend, torch.zeros(3, 5, 8), causal=True)
    >>> maps["attention"].shape
    torch.Size([3, 2, 5, 5])
    """
    maps = _recorded(model, args, kwargs, _weights)
    for name, weights in maps.items():
        checks.require_finite(weights, f"the attention map of {name}")
    return maps


def queries_and_keys(model: nn.Module, *args: Any, **kwargs: Any) -> Vectors:
    """Run ``model(*args, **kwargs)`` once and return (queries, keys) of each attention in it.

    Each is [batch, heads, tokens, d_head], as they enter the scores: turned where the model turns
    them, and with the keys of grouped heads repeated for each query's head. So
    ``q @ k.mT / d_head**0.5``, masked, goes into the softmax (where no bias, as ALiBi's, is added).

    Raises as :func:`attention_maps` does.

    >>> attend = MultiHeadAttention(d_model=8, n_heads=2)
    >>> q, k = queries_and_keys(attend, torch.zeros(3, 5, 8), causal=True)["attention"]
    >>> q.shape, k.shape
    (torch.Size([3, 2, 5, 4]), torch.Size([3, 2, 5, 4]))
    """
    return _recorded(model, args, kwargs, _vectors)


def _recorded(model: nn.Module, args: tuple, kwargs: dict, read: Callable) -> dict[str, Any]:
    """What ``read`` says of each attention, by its name."""
    model = getattr(model, "_orig_mod", model)  # its parts' names are those of the source
    modules = {name: m for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if not modules:
        raise ValueError(
            f"there is no MultiHeadAttention of transformer_lib in this {type(model).__name__}, "
            f"so there is nothing to trace."
        )
    found: dict[str, Any] = {}
    hooks = [
        module.register_forward_pre_hook(
            _recorder(name or "attention", found, read), with_kwargs=True
        )
        for name, module in modules.items()
    ]
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    try:
        with torch.random.fork_rng(devices), torch.no_grad(), _uncompiled():
            model(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    if not found:
        raise ValueError(
            f"{', '.join(modules) or 'attention'}: none of them was called, so there is nothing to "
            f"trace. Give the arguments with which the model calls its attention."
        )
    return found


def _uncompiled() -> AbstractContextManager:
    """A context in which compiled parts run as they are written: compiled code runs no hooks.

    Where nothing was compiled, the compiler, which takes a second to import, is not imported.
    """
    compiler = "torch._dynamo" in sys.modules
    return torch.compiler.set_stance("force_eager") if compiler else nullcontext()


def _recorder(name: str, found: dict, read: Callable) -> Callable:
    """A hook that sees the arguments of one module's ``forward`` and records what is read of it."""

    def record(module: MultiHeadAttention, args: tuple, kwargs: dict) -> None:
        seen = read(module, *args, **kwargs)
        calls = sum(key.partition("#")[0] == name for key in found)
        found[f"{name}#{calls + 1}" if calls else name] = seen

    return record


def _weights(module, x, memory=None, mask=None, *, causal=False, cache=None) -> Tensor:
    """The weights that ``module.forward`` will use for these arguments: the same signature."""
    q, k = _vectors(module, x, memory, mask, causal=causal, cache=cache)
    return module.weights(q, k, mask, causal=causal)


def _vectors(
    module, x, memory=None, mask=None, *, causal=False, cache=None
) -> tuple[Tensor, Tensor]:
    """The queries and keys that ``module.forward`` will use: the same signature."""
    if cache is not None:
        raise ValueError(
            "attention maps are taken without a cache: tracing would write each token to it twice. "
            "Give the model the whole sequence at once."
        )
    require_multi_head_input(module, x, memory, mask, causal, cache)
    q, k, _ = module.project(x, memory)
    return q, k
