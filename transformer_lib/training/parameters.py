"""The parameters of a model as an optimizer sees them: which decay, which are matrices between
layers, and whether their gradients are finite.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """All parameters that need a gradient, each once, by its name.

    Raises:
        ValueError: there are none.
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise ValueError(
            f"this {type(model).__name__} has no parameter that needs a gradient, so there is "
            f"nothing to train. Check requires_grad."
        )
    return named


def hidden_matrices(model: nn.Module, outside: Iterable[str] = ("head",)) -> dict[str, Tensor]:
    """The weights of ``nn.Linear`` that need a gradient, but for those in ``outside`` and those
    that are also a table of ``nn.Embedding``.

    Raises:
        ValueError: ``outside`` names what ``model`` does not have.
    """
    outer = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    for name in outside:
        if not hasattr(model, name):
            raise ValueError(
                f"outside names {name!r}, which this {type(model).__name__} does not have. Name "
                f"the module that scores the tokens, or pass outside=() if there is none."
            )
        outer += [getattr(model, name)] if getattr(model, name) is not None else []
    others = {id(p) for module in outer for p in module.parameters()}
    linear = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    return {name: p for name, p in trainable(model).items() if id(p) in linear - others}


def decay_groups(named: dict[str, Tensor], weight_decay: float) -> list[dict]:
    """Two groups for an optimizer: matrices, which decay, and vectors, which do not.

    Raises:
        ValueError: ``weight_decay`` is negative or not finite.
    """
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay is {weight_decay}; it must be finite and at least 0.")
    matrices = [(name, p) for name, p in named.items() if p.ndim >= 2]
    vectors = [(name, p) for name, p in named.items() if p.ndim < 2]
    groups = [(matrices, weight_decay), (vectors, 0.0)]
    return [{"params": group, "weight_decay": decay} for group, decay in groups if group]


def check_gradients(optimizer: torch.optim.Optimizer) -> Tensor:
    """All gradients are finite; the norm of all of them together. It is called before each step;
    call it before clipping, too, which spreads one NaN to all. (A GPU has to wait for it, once.)

    Raises:
        FloatingPointError: names the parameters whose gradients are not.
    """
    named = [
        (name, p.grad)
        for group in optimizer.param_groups
        for name, p in zip(group["param_names"], group["params"], strict=True)
        if p.grad is not None
    ]
    norm = torch.nn.utils.get_total_norm([gradient for _, gradient in named])
    if norm.isfinite():
        return norm
    wrong = [name for name, gradient in named if not gradient.isfinite().all()]
    if wrong:  # else the sum of squares was too large, and no number itself
        more = f" and {len(wrong) - 3} others" if len(wrong) > 3 else ""
        verb = "holds" if len(wrong) == 1 else "hold"
        raise FloatingPointError(
            f"the gradient of {', '.join(wrong[:3])}{more} {verb} NaN or infinity. No parameter "
            f"was changed. Lower the learning rate, lengthen the warm-up or clip the gradients; in "
            f"float16, scale the loss (torch.amp.GradScaler)."
        )
    return norm
