"""A model's next token at the lowest cost: the numbers of ``model(ids, cache)``, sooner."""

import warnings
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.cache import ModelCache, autocasts
from transformer_lib.fast.steps import rounding, stepper_of

# PyTorch's parts that look at no token but the one that they are given.
ALIKE = {
    nn.Linear, nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.Identity, nn.Dropout, nn.ReLU, nn.GELU,
    nn.SiLU, nn.Tanh, nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList,
    nn.ParameterDict,
}  # fmt: skip
Decoder = Callable[[Int[Tensor, " batch"]], Float[Tensor, "batch vocabulary"]]


def decoder(
    model: nn.Module,
    cache: ModelCache,
    last: tuple[Int[Tensor, " batch"], Float[Tensor, "batch vocabulary"]] | None = None,
) -> Decoder:
    """A function from the last token of each sequence to the logits of the one after it.

    It computes ``model(ids.unsqueeze(1), cache)[:, -1]`` and extends the cache: by the model's own
    ``stepper(cache)``, if it has one and computes in 32 or 64 bits, else by calling the model. One
    step that looks back at an earlier token is computed both ways, and where they differ by more
    than rounding, a warning says so, and the model is called from there on. ``last`` spares a call
    of the model for that: the token that the cache ends with in each sequence, and the logits that
    the model gave for it. Without it, or where that token is the only one, it is the first step
    that looks back.

    For evaluation, without gradients. Arguments are not checked at each step: the functions of
    ``sampling`` have checked them once. The weights must not change while the function is in use.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12)).eval()
    >>> with torch.no_grad():
    ...     decoder(model, model.new_cache(batch=1))(torch.tensor([3])).shape
    torch.Size([1, 7])
    """

    def call(ids: Tensor) -> Tensor:
        return model(ids.unsqueeze(1), cache)[:, -1]

    stepper = stepper_of(model) if computes_plainly(model) else None
    step = None if stepper is None else stepper(cache)
    proven = False
    # A lone first token attends to nothing but itself, which would prove nothing.
    if step is not None and last is not None and cache.length > 1:
        ids, expected = last
        cache.rewind(1)
        logits = step(ids)
        proven = agree(logits, expected)
        if not proven:
            step = None
            cache.rewind(1)
            warn_of_step(model, logits, call(ids), expected)  # over what the step has stored

    def advance(ids: Tensor) -> Tensor:
        nonlocal step, proven
        if step is None:
            return call(ids)
        if proven:
            return step(ids)
        proven = cache.length > 0  # else it is such a token
        logits = step(ids)
        cache.rewind(1)
        expected = call(ids)
        if not agree(logits, expected):
            step = None
            warn_of_step(model, logits, expected, expected)
        return expected

    return advance


def computes_plainly(model: nn.Module) -> bool:
    """Whether all weights are numbers of one kind, in 32 or 64 bits, on a CPU or a GPU of CUDA."""
    kinds = {(weight.device.type, weight.dtype) for weight in model.parameters()}
    if len(kinds) != 1:
        return False
    device, dtype = kinds.pop()
    exact = dtype in (torch.float32, torch.float64)
    return exact and device in ("cpu", "cuda") and not autocasts(device)


def warn_of_step(model: nn.Module, logits: Tensor, called: Tensor, expected: Tensor) -> None:
    """The stepper was wrong, if the model itself gives what is expected of it."""
    if agree(called, expected):
        advice = (
            "If a part of your own has a stepper, let it compute what its forward does, or delete "
            "it."
        )
        if not logits.isfinite().all():
            advice = "The step's are not finite: look for NaN in the weights."
        warnings.warn(
            f"the quick step of this {type(model).__name__} and its forward give different logits, "
            f"so forward is called for each token, which takes longer. {advice}",
            stacklevel=2,
        )


def warn_unless_cached(model: nn.Module, text: Tensor, logits: Tensor, *, again: bool) -> None:
    """The ``logits`` after ``text`` [batch, tokens], which the model computed with its cache, are
    those without; looked at (by one pass over the text) only where the model has parts of others,
    or such of PyTorch's as may mix tokens. Looked at again, when the text is long, one text (or one
    of each source) stands for all.
    """
    others = [part for part in model.modules() if not treats_tokens_alike(type(part))]
    every = len(text) // getattr(model, "sources", 1) if again else 1
    if others and not agree(logits[::every], model(text[::every])[:, -1]):
        warnings.warn(
            f"with its cache, the model writes another text than without: look at "
            f"{', '.join(sorted({type(part).__name__ for part in others}))}. An attention must "
            f"read what it has put into its cache, and a part must give each token the same vector "
            f"when it comes alone, as must its stepper; or generate with cache=False.",
            stacklevel=2,
        )


def treats_tokens_alike(kind: type[nn.Module]) -> bool:
    """Whether a class is of this library, or one of PyTorch's that gives each token its own."""
    return kind in ALIKE or kind.__module__.partition(".")[0] == "transformer_lib"


def lengths_to_look_at(first: int, last: int) -> set[int]:
    """At which lengths of a text :func:`warn_unless_cached` looks: what is wrong only beyond a
    window is right at first. Each is twice the one before, so all cost less than two of the last.

    >>> sorted(lengths_to_look_at(4, 20))
    [4, 8, 16, 20]
    """
    checks.require_count(first, "first")
    lengths = {last} if first <= last else set()
    while first < last:
        lengths.add(first)
        first *= 2
    return lengths


def agree(logits: Tensor, expected: Tensor) -> bool:
    """Whether two computations of the same logits differ by no more than rounding can explain.

    >>> agree(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.001]))
    False
    """
    tolerance = rounding(expected.dtype) ** 0.5 * expected.abs().max().clamp(min=1.0)
    return bool(((logits - expected).abs() <= tolerance).all())
