"""The residual stream, read by the model's own output layer: as it grows, and part by part."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib.gpt import GPT
from transformer_lib.interpret.parts import part_names, parts_and_logits, require_sum
from transformer_lib.layers import LayerNorm, RMSNorm


@torch.no_grad()
def logit_lens(
    model: GPT, ids: Int[Tensor, "batch tokens"]
) -> Float[Tensor, "streams batch tokens vocabulary"]:
    """What the model would answer if it ended earlier: the logits of the stream as it is.

    The first is of the embedding, number n of the stream after block n, so the last are the
    model's own. The norm before the output was trained for the last stream only: a poor early
    answer does not mean that the stream does not hold it yet.

    Raises as :func:`~transformer_lib.interpret.parts.logits_with` does.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 3, "n_heads": 2, "d_model": 8}
    >>> logit_lens(GPT(GPTConfig(**sizes)), torch.tensor([[3, 1]])).shape
    torch.Size([4, 1, 2, 7])
    """
    parts, logits = parts_and_logits(model, ids)
    behind = [parts[f"blocks.{at}"] for at in range(len(model.blocks))]
    streams = [parts["embedding"], *behind]
    found = [model.logits(model.final_norm(stream)) for stream in streams]
    require_sum(found[-1:], logits, "the logits of the last stream", "the model's")
    return torch.stack(found)


@torch.no_grad()
def direct_logits(
    model: GPT, ids: Int[Tensor, "batch tokens"]
) -> dict[str, Float[Tensor, "batch tokens vocabulary"]]:
    """What each part adds to the logits by itself: direct logit attribution.

    The last norm divides by the size of the whole stream; with that size taken as it is, the norm
    is linear, and the parts' logits add up to the model's. (A LayerNorm's bias comes under the name
    ``final_norm.bias``.) Counted is the straight way to the output only: a head in an early block
    that all later ones rely on may add nothing.

    Raises as :func:`~transformer_lib.interpret.parts.logits_with` does; ValueError if they do not
    add up to the model's logits; TypeError if the last norm is none of the library's.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model, ids = GPT(GPTConfig(**sizes)), torch.tensor([[3, 1]])
    >>> torch.allclose(sum(direct_logits(model, ids).values()), model(ids), atol=1e-5)
    True
    """
    parts, logits = parts_and_logits(model, ids)
    stream = parts[f"blocks.{len(model.blocks) - 1}"]
    found = {
        name: model.logits(_norm_of_part(model.final_norm, parts[name], stream))
        for name in part_names(model)
    }
    bias = getattr(model.final_norm, "bias", None)
    if bias is not None:
        found["final_norm.bias"] = model.logits(bias.expand_as(stream))
    require_sum(found.values(), logits, "the logits of the parts", "the model's")
    return found


def _norm_of_part(norm: nn.Module, part: Tensor, stream: Tensor) -> Tensor:
    """The part's share of ``norm(stream)``, without the norm's bias."""
    if isinstance(norm, nn.Identity):
        return part
    if isinstance(norm, RMSNorm):
        size = (stream.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        return part / size * norm.weight
    if isinstance(norm, LayerNorm):
        size = (stream.var(-1, keepdim=True, unbiased=False) + norm.eps).sqrt()
        return (part - part.mean(-1, keepdim=True)) / size * norm.weight
    raise TypeError(
        f"the last norm is {type(norm).__name__} of {type(norm).__module__}; how it shares out a "
        f"sum among its terms is known here for this library's LayerNorm and RMSNorm, and for "
        f"nn.Identity."
    )
