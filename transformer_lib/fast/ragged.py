"""A batch without its padding: the real tokens of all sequences, one below the other.

All but attention treats each token on its own, and what it makes of the padding is never read. Here
only the real tokens pass through it; within attention they are padded again, since its kernel wants
sequences of one length. What remains is the same, except that gradients are sums of fewer zeros,
and so rounded otherwise.

Shapes: ``x [real, d_model]``: ragged, as sequences of many lengths are called in one tensor.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_lib.checks import can_be_read, require_masks, require_once
from transformer_lib.fast.steps import has_hooks, is_idle, is_plain, speaker, stepper_of

# Of padding. A step of a translator 256 wide takes as long both ways where 3 % is padding, and with
# 13 % ragged is 1.14 times faster; where padding is 15,000 numbers, small ones gain nothing either.
LEAST_SHARE, LEAST_NUMBERS = 0.1, 2**16


class RealTokens:
    """Where a batch has its real tokens.

    >>> real = RealTokens(torch.tensor([[True, True, False], [True, False, False]]))
    >>> x = real.packed(torch.tensor([[[1.0], [2.0], [9.0]], [[3.0], [9.0], [9.0]]]))
    >>> x.flatten().tolist(), real.padded(x).squeeze(2).tolist()
    ([1.0, 2.0, 3.0], [[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    """

    def __init__(self, mask: Bool[Tensor, "batch tokens"]):
        require_masks([mask])
        self.shape = mask.shape
        self.places: Int[Tensor, " real"] = mask.flatten().nonzero().squeeze(1)

    @property
    def n_padding(self) -> int:
        """How many tokens are not real."""
        return self.shape.numel() - len(self.places)

    def packed(self, x: Float[Tensor, "batch tokens width"]) -> Float[Tensor, "real width"]:
        """Without the padding."""
        require_places(x, self.shape)
        return _Packed.apply(x.flatten(0, 1), self.places)

    def padded(self, x: Float[Tensor, "real width"]) -> Float[Tensor, "batch tokens width"]:
        """With zeros where the padding was."""
        return _Padded.apply(x, self.places, self.shape.numel()).unflatten(0, self.shape)


class _Packed(torch.autograd.Function):
    """Some rows of x, each once. (PyTorch's own gradient adds up, as if a row could come twice.)"""

    @staticmethod
    def forward(ctx, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.rows = len(x)
        return x.index_select(0, places)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return _Padded.apply(gradient, *ctx.saved_tensors, ctx.rows), None


class _Padded(torch.autograd.Function):
    """The rows of x in their places among zeros."""

    @staticmethod
    def forward(ctx, x: Tensor, places: Tensor, rows: int) -> Tensor:
        ctx.save_for_backward(places)
        return x.new_zeros(rows, x.shape[1]).index_copy_(0, places, x)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Packed.apply(gradient, *ctx.saved_tensors), None, None


@require_once
def counted_logits(
    model,
    source: Int[Tensor, "batch keys"],
    target: Int[Tensor, "batch tokens"],
    counted: Bool[Tensor, "batch tokens"],
) -> Float[Tensor, "counted vocabulary"] | None:
    """``model(source, target)[counted]`` of an :class:`EncoderDecoder
    <transformer_lib.encoder_decoder.EncoderDecoder>`; None where calling it is as good.
    """
    if not is_for(source):
        return None
    readable = model.readable(source)
    sources = RealTokens(readable.squeeze(1))
    # What comes after the last counted target is read by no loss.
    targets = RealTokens(counted.flip(1).cumsum(dim=1).flip(1) > 0)
    if not (is_worth_it(model, sources, targets) and can_be_ragged(model)):
        return None
    encoded = _encoded(model, source, sources)
    x = targets.packed(model.of_target(target))
    for block in model.decoder:

        def read(x: Tensor, attention: nn.Module = block.cross_attention) -> Tensor:
            return attention.ragged(x, targets, readable, memory=(encoded, sources))

        x = through(block, x, targets, read, causal=True)
    x, chosen = model.decoder_norm(x), counted.flatten()[targets.places]
    x = x if chosen.all() else x[chosen]
    return model.of_target.logits(x) if model.head is None else model.head(x)


@require_once
def memory(model, source: Int[Tensor, "batch keys"]) -> Float[Tensor, "batch keys d_model"]:
    """``model.encode(source)``, but for what is in the padding's places, which nobody may read."""
    if not is_for(source):
        return model.encode(source)
    real = RealTokens(model.readable(source).squeeze(1))
    if not (is_worth_it(model, real) and can_be_ragged(model)):
        return model.encode(source)
    return real.padded(_encoded(model, source, real))


def _encoded(model, source: Tensor, real: RealTokens) -> Float[Tensor, "real d_model"]:
    x, mask = real.packed(model.source_embedding(source)), model.readable(source)
    for block in model.encoder:
        x = through(block, x, real, mask=mask)
    return model.encoder_norm(x)


def is_for(ids: Tensor) -> bool:
    """Whether the real tokens can be counted now, and no ``torch.func`` computes the gradients,
    which takes other functions than those above.
    """
    return can_be_read(ids) and not torch._C._are_functorch_transforms_active()


def is_worth_it(model, *sides: RealTokens) -> bool:
    """Whether there is enough padding: a share of all tokens, and not only a few numbers."""
    padding = sum(real.n_padding for real in sides)
    enough = padding >= LEAST_SHARE * sum(real.shape.numel() for real in sides)
    return enough and padding * model.config.d_model >= LEAST_NUMBERS


def can_be_ragged(model) -> bool:
    """Whether all parts are the library's own and have no hook: only of them is it known that all
    but attention, which says so by a method ``ragged``, treats each token on its own.
    """
    blocks = [*model.encoder, *model.decoder]
    attentions = [block.attention for block in blocks]
    attentions += [block.cross_attention for block in model.decoder]
    parts = [part for block in blocks for part in block.children() if part is not block.dropout]
    layers = [layer for part in parts for layer in part.children()]
    others = [block.dropout for block in blocks] + [model.encoder_norm, model.decoder_norm]
    return (
        speaker(model, "counted_logits") is not None
        and all(speaker(part, "ragged") is not None for part in attentions)
        and all(stepper_of(part) is not None for part in (*blocks, *parts))
        and all(is_plain(layer) for layer in (*layers, model.head) if layer is not None)
        and all(is_idle(part) or stepper_of(part) is not None for part in others)
        and not any(map(has_hooks, model.modules()))
    )


def through(
    block: nn.Module, x: Tensor, real: RealTokens, *reading: Callable[[Tensor], Tensor], **options
) -> Float[Tensor, "real d_model"]:
    """``x`` after a block. ``options`` are those of its attention's ``ragged``; ``reading`` is what
    a block of the decoder reads of the memory.
    """

    def among(x: Tensor) -> Tensor:
        return block.attention.ragged(x, real, **options)

    def dropping(part: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda x: block.dropout(part(x))

    parts = [dropping(part) for part in (among, *reading, block.feed_forward)]
    norms = [getattr(block, f"norm_{i}") for i in range(1, len(parts) + 1)]
    return block.wire(x, *parts, *norms)


def projected(x: Tensor, real: RealTokens, *layers: nn.Linear) -> tuple[Tensor, ...]:
    """What each layer makes of ``x``, padded again: all of them by one product."""
    weight = torch.cat([layer.weight for layer in layers])
    biased = layers[0].bias is not None
    bias = torch.cat([layer.bias for layer in layers]) if biased else None
    together = real.padded(F.linear(x, weight, bias))
    return together.split([layer.out_features for layer in layers], dim=2)


def require_places(x: Tensor, shape: torch.Size) -> None:
    """``x`` has a vector for each token of the batch."""
    if x.shape[:-1] != shape:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; the mask of the real tokens has {tuple(shape)}, and x "
            f"needs a vector for each: [batch, tokens, width]."
        )
