"""Attention maps of any model, and the queries and keys behind them, collected by temporary hooks.

The model itself stores nothing.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import KeysAndValues

Maps = dict[str, Float[Tensor, "batch heads queries keys"]]
Vectors = dict[str, tuple[Tensor, Tensor]]


def attention_maps(model: nn.Module, *args: Any, **kwargs: Any) -> Maps:
    """Run ``model(*args, **kwargs)`` once and return the weights of each attention in it.

    The keys are the names of the attentions in the model, in the order in which they ran
    (``"attention"`` if the model is one itself). A module that runs more than once gives ``name``,
    ``name#2``, ``name#3``, … An attention is a module that has the methods ``project`` (to queries,
    keys and values) and ``weights`` (of queries, keys and the mask), as
    :class:`~transformer_lib.attention.MultiHeadAttention` has.

    The weights are those of the queries and keys that ``project`` gives in ``forward``; where that
    does not call it just once, of those that it gives for the tensors that ``forward`` gets, but
    for the mask. The mask is the one that ``forward`` gets; a bias is the module's. Dropout is not
    part of them: their rows sum to 1 in training mode, too (there, dropout still changes what the
    layers above receive: call ``model.eval()`` first for the maps of the model as it will be used).
    They carry no gradient, and the random state is put back afterwards, so that to look at a model
    does not change how it trains. (A module that counts its calls, such as BatchNorm in training
    mode, does count this one.) While this runs, no other thread may use the model.

    Raises:
        TypeError: ``model`` is not a module.
        ValueError: there is no attention in the model, or none that ran; a cache is used
            (to look again would write to it again); a map is not finite.

    >>> from transformer_lib.attention import MultiHeadAttention
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

    >>> from transformer_lib.attention import MultiHeadAttention
    >>> attend = MultiHeadAttention(d_model=8, n_heads=2)
    >>> q, k = queries_and_keys(attend, torch.zeros(3, 5, 8), causal=True)["attention"]
    >>> q.shape, k.shape
    (torch.Size([3, 2, 5, 4]), torch.Size([3, 2, 5, 4]))
    """
    return _recorded(model, args, kwargs, _vectors)


def _recorded(model: nn.Module, args: tuple, kwargs: dict, read: Callable) -> dict[str, Any]:
    """What ``read`` says of each attention, by its name."""
    checks.require_model(model)
    model = getattr(model, "_orig_mod", model)  # its parts' names are those of the source
    modules = {name: m for name, m in model.named_modules() if is_attention(m)}
    if not modules:
        raise ValueError(
            f"there is no MultiHeadAttention of transformer_lib in this {type(model).__name__}, "
            f"nor any module with its methods project and weights, so there is nothing to "
            f"trace. (PyTorch's own attention returns its weights when it is called with "
            f"need_weights=True, average_attn_weights=False.)"
        )
    found: dict[str, Any] = {}
    hooks = ExitStack()
    for name, module in modules.items():
        noted = hooks.enter_context(_noting(module))
        record = _recorder(name or "attention", found, read, noted)
        before = partial(_begin, noted)
        for hook in (
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(record, with_kwargs=True),
        ):
            hooks.callback(hook.remove)
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    on_mps = any(p.device.type == "mps" for p in model.parameters())
    state = torch.mps.get_rng_state() if on_mps else None  # which fork_rng cannot ask for
    try:
        with hooks, torch.random.fork_rng(devices), torch.no_grad(), _uncompiled():
            model(*args, **kwargs)
    finally:
        if state is not None:
            torch.mps.set_rng_state(state)
    if not found:
        raise ValueError(
            f"{', '.join(modules) or 'attention'}: none of them was called, so there is nothing to "
            f"trace. Give the arguments with which the model calls its attention."
        )
    return found


def is_attention(module: nn.Module) -> bool:
    """Whether ``module`` can say what its weights are.

    >>> from transformer_lib.attention import MultiHeadAttention
    >>> is_attention(MultiHeadAttention(d_model=8, n_heads=2))
    True
    """
    return all(callable(getattr(module, name, None)) for name in ("project", "weights"))


def _uncompiled() -> AbstractContextManager:
    """A context in which compiled parts run as they are written: compiled code runs no hooks.

    Where nothing was compiled, the compiler, which takes a second to import, is not imported.
    """
    compiler = "torch._dynamo" in sys.modules
    return torch.compiler.set_stance("force_eager") if compiler else nullcontext()


@contextmanager
def _noting(module: nn.Module) -> Iterator[list[tuple]]:
    """A context in which what ``module.project`` gives is added to a list."""
    noted: list[tuple] = []
    own, project = dict(vars(module)), module.project

    def noting(*args: Any, **kwargs: Any) -> tuple:
        noted.append(project(*args, **kwargs))
        return noted[-1]

    vars(module)["project"] = noting  # also where it is a module
    try:
        yield noted
    finally:
        del vars(module)["project"]
        if "project" in own:
            vars(module)["project"] = own["project"]


def _begin(noted: list[tuple], module: nn.Module, args: tuple, kwargs: dict) -> None:
    require_no_cache(kwargs)
    noted.clear()


def _recorder(name: str, found: dict, read: Callable, noted: list[tuple]) -> Callable:
    """A hook that sees the arguments of one module's ``forward`` and records what is read of it."""

    def record(module: nn.Module, args: tuple, kwargs: dict, output: Tensor) -> None:
        seen = read(module, _given(module, args, kwargs), noted)
        noted.clear()
        calls = sum(key.partition("#")[0] == name for key in found)
        found[f"{name}#{calls + 1}" if calls else name] = seen

    return record


def _given(module: nn.Module, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of ``module.forward`` by their names.

    Where a ``forward`` passes on whatever it gets (``*args``), they are called as they are in the
    class that it inherits from.
    """
    inherited = [kind.forward for kind in type(module).__mro__ if "forward" in vars(kind)]
    for forward in (module.forward, *(partial(each, module) for each in inherited)):
        signature = inspect.signature(forward)
        kinds = {parameter.kind: name for name, parameter in signature.parameters.items()}
        if inspect.Parameter.VAR_POSITIONAL not in kinds:
            break
    given = dict(signature.bind(*args, **kwargs).arguments)
    return given | given.pop(kinds.get(inspect.Parameter.VAR_KEYWORD), {})


def _weights(module: nn.Module, given: dict[str, Any], noted: list[tuple]) -> Tensor:
    """The weights that ``module.forward`` used for these arguments."""
    q, k = _vectors(module, given, noted)
    mask = next((value for name, value in given.items() if _is_mask(name, value)), None)
    return module.weights(q, k, mask, causal=given.get("causal", False))


def _vectors(module: nn.Module, given: dict[str, Any], noted: list[tuple]) -> tuple[Tensor, Tensor]:
    """The queries and keys that ``module.forward`` used."""
    read = [
        value
        for name, value in given.items()
        if isinstance(value, Tensor | KeysAndValues) and not _is_mask(name, value)
    ]
    q, k, _ = noted[0] if len(noted) == 1 else module.project(*read)
    return q, k


def _is_mask(name: str, value: Any) -> bool:
    return name == "mask" or (isinstance(value, Tensor) and value.dtype == torch.bool)


def require_no_cache(kwargs: dict) -> None:
    """There is no cache among the arguments of an attention's ``forward``."""
    if kwargs.get("cache") is not None:
        raise ValueError(
            "attention maps are taken without a cache: tracing would write each token to it twice. "
            "Give the model the whole sequence at once."
        )
