"""One token at the lowest cost: what the steppers of a model's parts are built from.

One token of one sequence is a vector, and each weight is used for it once: no step can be faster
than the memory delivers the weights. A ``forward`` is made for many tokens, and spends as long on
what surrounds the products: calling modules, looking at arguments, many small tensors. So a part
may have a ``stepper`` beside its ``forward``: it prepares once all that does not change from token
to token, and returns the function for one token.

Shapes, within a step: ``x [batch, d_model]``, or ``[d_model]`` for one sequence, since a matrix
times a vector is faster than times a matrix of one row.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as every_module

TokenStep = Callable[..., Tensor]


def stepper_of(part: Any) -> Callable[..., TokenStep | None] | None:
    """``part.stepper``, if it speaks for all that ``part`` computes; else None.

    It does if the class that defines ``stepper`` has the last word on everything else, too: no
    subclass overrides a method, none is replaced in the instance, and no hook is attached.

    >>> stepper_of(nn.Linear(2, 2)) is None
    True
    """
    return speaker(part, "stepper")


def speaker(part: Any, method: str) -> Callable[..., Any] | None:
    """``part``'s quicker ``method``, if it speaks for all that ``part`` computes; else None. When
    it does, :func:`stepper_of` says.
    """
    mro = type(part).__mro__
    owner = next((kind for kind in mro if method in vars(kind)), None)
    if owner is None or has_hooks(part):
        return None
    places = [*map(vars, mro[: mro.index(owner)]), getattr(part, "__dict__", {})]
    return None if any(map(_methods(owner).intersection, places)) else getattr(part, method)


# Methods that a subclass may have of its own without computing anything else. (A dataclass does.)
_HARMLESS = {"__init__", "__post_init__", "__repr__", "extra_repr", "__eq__", "__hash__"}
_HARMLESS |= {"__setattr__", "__delattr__", "__replace__", "__getstate__", "__setstate__"}


@lru_cache(maxsize=256)
def _methods(kind: type) -> frozenset[str]:
    """The names of all that an instance of ``kind`` can be asked to do, but for the harmless."""
    return frozenset(name for name in dir(kind) if callable(getattr(kind, name, None))) - _HARMLESS


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(part: Any) -> bool:
    """Whether calling ``part`` does more than its ``forward``, then or in a backward pass: its own
    hooks, or everybody's.
    """
    everybodys = (getattr(every_module, f"_global{name}") for name in _HOOKS)
    return any(everybodys) or any(getattr(part, name, None) for name in _HOOKS)


def is_plain(layer: nn.Module) -> bool:
    """Whether calling ``layer`` is only a product: ``nn.Linear``, not changed by LoRA,
    pruning, hooks or a ``forward`` of its own.
    """
    return type(layer) is nn.Linear and "forward" not in vars(layer) and not has_hooks(layer)


def is_idle(dropout: nn.Module) -> bool:
    """Whether ``dropout`` does nothing in evaluation, as dropout should."""
    plain = type(dropout) in (nn.Dropout, nn.Identity) and "forward" not in vars(dropout)
    return plain and not has_hooks(dropout)


def step_of(part: nn.Module, cache: Any = None, **options) -> TokenStep:
    """x -> x, for one token: the part's own step, or else the part, called as it is.

    With a cache, the part is called as a block is: ``part(x, causal=True, cache=cache)``, and with
    ``options``, which are an attention's mask.
    """
    stepper = stepper_of(part)
    step = None if stepper is None else stepper() if cache is None else stepper(cache)
    if step is not None:
        return step
    options |= {} if cache is None else {"causal": True, "cache": cache}

    def call(x: Tensor) -> Tensor:
        return part(x.reshape(-1, 1, x.shape[-1]), **options).reshape(*x.shape[:-1], -1)

    return call


def model_step(
    embed: TokenStep,
    blocks: list[TokenStep],
    norm: nn.Module,
    head: nn.Module | None,
    embedding: nn.Module,
) -> TokenStep:
    """ids ``[batch]`` -> logits ``[batch, vocabulary]``; without a head, scores are those of the
    ``embedding``: products with its table, or what its own ``logits`` says.
    """
    normalize = step_of(norm)
    score = linear_step(head) if head is not None else tied_step(embedding)

    @torch.inference_mode()
    def step(ids: Tensor) -> Tensor:
        x = embed(ids)
        x = x[0] if len(ids) == 1 else x
        for block in blocks:
            x = block(x)
        return score(normalize(x)).view(len(ids), -1)

    return step


def tied_step(embedding: nn.Module) -> TokenStep:
    """x -> its product with each row of the table, or what the embedding's own ``logits`` says."""
    if stepper_of(embedding) is None:
        return lambda x: embedding.logits(x.reshape(-1, 1, x.shape[-1]))
    table = embedding.weight
    return lambda x: product(x, table)


def linear_step(*layers: nn.Module) -> TokenStep:
    """x -> what the layers make of it, side by side: by one product, if all of them are plain."""
    biases = [getattr(layer, "bias", None) for layer in layers]
    if not all(is_plain(layer) for layer in layers) or len({b is None for b in biases}) > 1:
        steps = [step_of(layer) for layer in layers]
        return lambda x: torch.cat([step(x) for step in steps], dim=-1)
    weight = layers[0].weight if len(layers) == 1 else torch.cat([one.weight for one in layers])
    bias = biases[0]
    if bias is not None and len(layers) > 1:
        bias = torch.cat(biases)
    return lambda x: product(x, weight, bias)


def rounding(dtype: torch.dtype) -> float:
    """How coarsely products of ``dtype`` are rounded, as a share: those of float32 as in TF32, if
    the program lets GPUs do so.

    >>> rounding(torch.float64) == torch.finfo(torch.float64).eps
    True
    """
    exact = dtype != torch.float32 or matmul_precision() == "highest"
    return torch.finfo(dtype).eps if exact else 2**-10


def matmul_precision() -> str | None:
    """The program's choice for products of float32; None if it chose by backend, not by a name."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As ``nn.Linear``, by the kernel that is fastest for so few rows.

    A vector's reads each weight once and does nothing else. For a middle number of rows weight · xᵀ
    takes less time than x · weightᵀ: the 24 products of a step, 384 wide and 16 rows high, 4.1 ms
    in place of 6.8; 8 rows 4.1 and 4.6, 64 rows 12.0 and 11.7 (torch 2.13, 2 cores that others
    used, too). The result is its transpose, columns side by side in memory.
    """
    if x.ndim == 1:
        return torch.mv(weight, x) if bias is None else torch.addmv(bias, weight, x)
    if x.device.type != "cpu" or not 8 <= len(x) <= 48:
        return F.linear(x, weight, bias)
    if bias is None:
        return torch.mm(weight, x.t()).t()
    return torch.addmm(bias.unsqueeze(1), weight, x.t()).t()
