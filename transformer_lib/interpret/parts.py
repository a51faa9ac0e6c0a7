"""A GPT as a sum: what each of its parts writes into the residual stream, to read or to change.

The names, in the order in which they are computed:

    embedding                   what the stream begins with
    blocks.0.attention.1        what head 1 of the first block writes
    blocks.0.attention.bias     what its output's bias writes, if it has one
    blocks.0.attention          what an attention without heads writes, in place of these
    blocks.0.feed_forward       what the feed-forward layer writes
    blocks.0                    the stream itself behind the first block

All but the last kind add up to the stream behind the last block: with pre-norm, nothing else ever
happens to it. Every tool of this folder is one of the two functions below with a few lines around.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.fast.steps import rounding
from transformer_lib.gpt import GPT

# (name, what the part writes [batch, tokens, d_model]) -> what is written in its place
Change = Callable[[str, Tensor], Tensor]


def part_names(model: GPT) -> list[str]:
    """The parts that write into the stream of ``model``; together they are the stream at its end.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> part_names(GPT(GPTConfig(**sizes, bias=False)))[1:]
    ['blocks.0.attention.0', 'blocks.0.attention.1', 'blocks.0.feed_forward']
    """
    require_gpt(model)
    names = ["embedding"]
    for at, block in enumerate(model.blocks):
        name = f"blocks.{at}.attention"
        if writes_by_heads(block.attention):
            names += [f"{name}.{head}" for head in range(block.attention.n_heads)]
            names += [f"{name}.bias"] * (block.attention.output.bias is not None)
        else:
            names += [name]
        names += [f"blocks.{at}.feed_forward"]
    return names


def writes_by_heads(attention: nn.Module) -> bool:
    """Whether what ``attention`` writes is a sum over heads: ``output``, a product and no more,
    reads the results of its ``n_heads`` side by side. One of a reader's own that does not is one
    part.
    """
    output, n_heads = getattr(attention, "output", None), getattr(attention, "n_heads", 0)
    weight, product = getattr(output, "weight", None), getattr(type(output), "forward", None)
    return (
        product is nn.Linear.forward
        and n_heads > 0
        and isinstance(weight, Tensor)
        and weight.shape[1] % n_heads == 0
    )


@torch.no_grad()
def logits_with(
    model: GPT, ids: Int[Tensor, "batch tokens"], change: Change
) -> Float[Tensor, "batch tokens vocabulary"]:
    """The model's logits when ``change(name, written)`` decides what each part writes.

    ``change`` is asked once for every part and for the stream behind every block, in their order;
    it returns ``written`` itself to leave a part alone, changed in place or not. The model is as
    before afterwards; while this runs, no other thread may use it.

    Raises:
        ValueError: the model's blocks are not pre-norm, or something else writes into the stream,
            such as a hook (then the parts do not add up); two blocks share a part; a part is in
            training mode with dropout; ids that the model refuses.
        TypeError: ``change`` returned no tensor, or one of another dtype; what is not a GPT.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model, ids = GPT(GPTConfig(**sizes)), torch.tensor([[3, 1]])
    >>> torch.equal(logits_with(model, ids, lambda name, written: written), model(ids))
    True
    """
    model = getattr(model, "_orig_mod", model)  # compiled code would be made anew for the hooks
    require_additive(model)
    with _changing(model, change):
        return model(ids)


def parts_of(
    model: GPT, ids: Int[Tensor, "batch tokens"]
) -> dict[str, Float[Tensor, "batch tokens d_model"]]:
    """What each part writes for ``ids``, and the stream behind each block, by name.

    Raises as :func:`logits_with` does.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model = GPT(GPTConfig(**sizes))
    >>> parts = parts_of(model, torch.tensor([[3, 1]]))
    >>> stream = sum(parts[name] for name in part_names(model))
    >>> torch.allclose(stream, parts["blocks.0"], atol=1e-6)
    True
    """
    return parts_and_logits(model, ids)[0]


def parts_and_logits(model: GPT, ids: Int[Tensor, "batch tokens"]) -> tuple[dict, Tensor]:
    """:func:`parts_of`, and the model's logits."""
    parts = {}

    def keep(name: str, written: Tensor) -> Tensor:
        parts[name] = written
        return written

    logits = logits_with(model, ids, keep)
    return parts, logits


@contextmanager
def _changing(model: GPT, change: Change) -> Iterator[None]:
    """Hooks on the parts; of an attention, what its heads change is added to what it writes."""
    merged = {}  # the heads' results side by side, as they enter an attention's output
    terms = []  # what has been written into the stream since it was last looked at

    def ask(name: str, written: Tensor) -> Tensor:
        given = written.clone()  # it may be a view of the model's numbers
        result = change(name, given)
        require_part(result, name, written)
        return written if result is given and torch.equal(given, written) else result

    def hook(name: str) -> Callable:
        def hook_(module, args, output):
            terms.append(ask(name, output))
            return terms[-1]

        return hook_

    def of_stream(name: str) -> Callable:
        def hook_(block, args, output):
            require_sum(terms, output, "the parts of this GPT", "its stream")
            terms[:] = [ask(name, output)]
            return terms[0]

        return hook_

    def of_heads(name: str) -> Callable:
        def hook_(attention, args, kwargs, output):
            weight, bias = attention.output.weight, attention.output.bias
            size = weight.shape[1] // attention.n_heads
            written = {
                f"{name}.{head}": merged[name][..., at : at + size] @ weight[:, at : at + size].mT
                for head in range(attention.n_heads)
                for at in [head * size]
            }
            if bias is not None:
                written[f"{name}.bias"] = bias.expand_as(output)
            require_sum(written.values(), output, f"the heads of {name}", "what it writes")
            asked = [(ask(part, was), was) for part, was in written.items()]
            terms.append(sum((one - was for one, was in asked if one is not was), output))
            return terms[-1]

        return hook_

    def keeper(name: str) -> Callable:
        return lambda module, args: merged.__setitem__(name, args[0])

    hooks = [model.embedding.register_forward_hook(hook("embedding"))]
    for at, block in enumerate(model.blocks):
        name = f"blocks.{at}.attention"
        if writes_by_heads(block.attention):
            hooks += [
                block.attention.output.register_forward_pre_hook(keeper(name)),
                block.attention.register_forward_hook(of_heads(name), with_kwargs=True),
            ]
        else:
            hooks += [block.attention.register_forward_hook(hook(name))]
        hooks += [
            block.feed_forward.register_forward_hook(hook(f"blocks.{at}.feed_forward")),
            block.register_forward_hook(of_stream(f"blocks.{at}")),
        ]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def require_gpt(model) -> None:
    """``model`` has the parts of a GPT."""
    if missing := [name for name in ("blocks", "config") if not hasattr(model, name)]:
        kind, hint = type(model).__name__, "its .model" if hasattr(model, "model") else "a GPT"
        raise TypeError(f"model is of type {kind}, which has no {missing[0]}: give {hint}.")


def require_additive(model: GPT) -> None:
    """The parts of ``model`` add up to its stream, and are the same each time."""
    require_gpt(model)
    modules = [part for block in model.blocks for part in (block.attention, block.feed_forward)]
    if len(set(modules)) < len(modules):
        raise ValueError(
            "two blocks of this GPT share an attention or a feed-forward layer, so what it writes "
            "has two names. Give each block its own: model.blocks[1] = copy.deepcopy(...)."
        )
    if model.config.norm != "pre":
        raise ValueError(
            f"the blocks of this GPT are wired {model.config.norm!r}: a norm follows each sum, so "
            f"what the parts write does not add up to the stream. Take a model of norm='pre'."
        )
    if rate := max(map(dropped, model.modules())):
        raise ValueError(
            f"the model is in training mode with a dropout of {rate}, so its parts differ each "
            f"time they are computed. Call model.eval() first."
        )


def dropped(module: nn.Module) -> float:
    """The share of its numbers that ``module`` drops as it is now."""
    is_dropout = isinstance(module, nn.modules.dropout._DropoutNd)
    rate = module.p if is_dropout else getattr(module, "dropout", 0.0)
    return rate if module.training and isinstance(rate, int | float) else 0.0


def require_part(result, name: str, written: Tensor) -> None:
    """``result`` can take the place of ``written``."""
    if not isinstance(result, Tensor):
        raise TypeError(
            f"change returned {type(result).__name__} for {name}; return what is written in its "
            f"place, a tensor of shape {tuple(written.shape)}, or `written` itself."
        )
    if result.shape != written.shape:
        raise ValueError(
            f"change returned the shape {tuple(result.shape)} for {name}, which writes "
            f"{tuple(written.shape)}; keep the shape."
        )
    checks.require_same("written", written, "result", result)


def require_sum(terms: Iterable[Tensor], whole: Tensor, parts: str, sum_: str) -> None:
    """``terms`` add up to ``whole``, but for rounding."""
    terms = list(terms)
    error, scale = (sum(terms) - whole).norm(), max(term.norm() for term in terms)
    coarsest = max(rounding(each.dtype) for each in (*terms, whole))
    if error > scale * coarsest**0.5:
        raise ValueError(
            f"{parts} differ from {sum_} by {error:.3g} (their norms are up to {scale:.3g}): "
            f"something else writes there, such as a hook of your own, or a forward or a bias that "
            f"GPT does not have. Take it away first (a hook: hook.remove())."
        )
