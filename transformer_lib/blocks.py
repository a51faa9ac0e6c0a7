"""Blocks: attention, then feed-forward, each added to the residual stream.

A block is made of its parts: an attention, a feed-forward layer and two norms, each any module that
takes and returns ``[batch, tokens, d_model]``. (The attention is called with ``mask``, ``causal``
and ``cache``, as :class:`~transformer_lib.attention.MultiHeadAttention` is, and makes its cache by
``new_cache(batch, capacity)``. Models start what writes into the stream smaller, by its name:
``output`` of an attention, ``contract`` of a feed-forward layer.)
"""

import inspect
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import KeysAndValues
from transformer_lib.cache import LayerCache, require_new_cache
from transformer_lib.fast.steps import TokenStep, is_idle, speaker, step_of


class Block(nn.Module):
    """One layer of a Transformer: tokens exchange what they know, then each thinks for itself.

    The base of :class:`PreNorm` and :class:`PostNorm`. A subclass says in ``wire(x, attend, think,
    norm_1, norm_2)`` how the parts are put together: four functions of vectors.

    Args:
        attention, feed_forward, norm_1, norm_2: the parts.
        dropout: of each part's result before it is added, while training.
    """

    def __init__(
        self,
        attention: nn.Module,
        feed_forward: nn.Module,
        norm_1: nn.Module,
        norm_2: nn.Module,
        dropout: float = 0.0,
    ):
        super().__init__()
        require_objects(attention, feed_forward, norm_1, norm_2)
        checks.require_dropout(dropout)
        self.norm_1, self.attention = norm_1, attention
        self.norm_2, self.feed_forward = norm_2, feed_forward
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The stream after this block; mask, causal and cache are those of the attention."""
        options = {"mask": mask, "causal": causal, "cache": cache}

        @require_shape_kept(self.attention, x, **options)
        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.attention(x, **options))

        @require_shape_kept(self.feed_forward, x)
        def think(x: Tensor) -> Tensor:
            return self.dropout(self.feed_forward(x))

        return self.wire(x, attend, think, self.norm_1, self.norm_2)

    def new_cache(self, batch: int, capacity: int) -> LayerCache:
        """What its attention keeps of ``batch`` texts of up to ``capacity`` tokens."""
        require_new_cache(self.attention)
        return self.attention.new_cache(batch, capacity)

    def stepper(self, cache: LayerCache) -> TokenStep | None:
        """x -> x for one token: see :mod:`fast.steps`."""
        if not is_idle(self.dropout):
            return None
        attend, think = step_of(self.attention, cache, mask=None), step_of(self.feed_forward)
        norm_1, norm_2 = step_of(self.norm_1), step_of(self.norm_2)
        return lambda x: self.wire(x, attend, think, norm_1, norm_2)


class PreNorm(Block):
    """A block whose parts each read a normalized copy of the stream, as in GPT-2.

    Source: Radford et al. 2019, section 2.3; analyzed by Xiong et al. 2020.

    >>> from transformer_lib.attention import MultiHeadAttention
    >>> from transformer_lib.layers import FeedForward, LayerNorm
    >>> block = PreNorm(MultiHeadAttention(8, 2), FeedForward(8), LayerNorm(8), LayerNorm(8))
    >>> block(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def wire(self, x, attend, think, norm_1, norm_2):
        """Nothing but additions on the stream itself."""
        x = x + attend(norm_1(x))
        return x + think(norm_2(x))


class PostNorm(Block):
    """A block that normalizes the stream itself after each addition, as in the paper and in GPT-1.

    Source: Vaswani et al. 2017, section 3.1.

    >>> from transformer_lib.attention import MultiHeadAttention
    >>> from transformer_lib.layers import FeedForward, LayerNorm
    >>> block = PostNorm(MultiHeadAttention(8, 2), FeedForward(8), LayerNorm(8), LayerNorm(8))
    >>> block(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def wire(self, x, attend, think, norm_1, norm_2):
        """A norm after each addition."""
        x = norm_1(x + attend(x))
        return norm_2(x + think(x))


class CrossBlock(nn.Module):
    """One layer of the paper's decoder: tokens exchange what they know, read a memory, think.

    The base of :class:`CrossPreNorm` and :class:`CrossPostNorm`. A subclass says in ``wire(x,
    attend, read, think, norm_1, norm_2, norm_3)`` how the parts are put together.

    Args:
        attention: of the tokens to one another.
        cross_attention: of the tokens (its queries) to the memory (its keys and values).
        feed_forward, norm_1, norm_2, norm_3: the other parts.
        dropout: of each part's result before it is added, while training.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        attention: nn.Module,
        cross_attention: nn.Module,
        feed_forward: nn.Module,
        norm_1: nn.Module,
        norm_2: nn.Module,
        norm_3: nn.Module,
        dropout: float = 0.0,
    ):
        super().__init__()
        require_objects(attention, cross_attention, feed_forward, norm_1, norm_2, norm_3)
        checks.require_dropout(dropout)
        self.norm_1, self.attention = norm_1, attention
        self.norm_2, self.cross_attention = norm_2, cross_attention
        self.norm_3, self.feed_forward = norm_3, feed_forward
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        memory: Float[Tensor, "batch keys d_model"] | KeysAndValues,
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The stream after this block. ``mask``, ``causal`` and ``cache`` are those of the
        attention among the tokens; ``memory_mask`` says which of the memory may be read.
        """
        require_memory(memory)
        options = {"mask": mask, "causal": causal, "cache": cache}

        @require_shape_kept(self.attention, x, **options)
        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.attention(x, **options))

        @require_shape_kept(self.cross_attention, x, memory, memory_mask)
        def read(x: Tensor) -> Tensor:
            return self.dropout(self.cross_attention(x, memory, memory_mask))

        @require_shape_kept(self.feed_forward, x)
        def think(x: Tensor) -> Tensor:
            return self.dropout(self.feed_forward(x))

        return self.wire(x, attend, read, think, self.norm_1, self.norm_2, self.norm_3)

    new_cache = Block.new_cache

    def to_read(
        self, memory: Float[Tensor, "batch keys d_model"]
    ) -> KeysAndValues | Float[Tensor, "batch keys d_model"]:
        """What its cross-attention reads of a memory at every step: its keys and values, if it can
        make them beforehand, or the memory itself.
        """
        read = speaker(self.cross_attention, "keys_and_values")
        return memory if read is None else read(memory)

    def stepper(
        self,
        cache: LayerCache,
        memory: KeysAndValues | Float[Tensor, "batch keys d_model"],
        readable: Bool[Tensor, "batch 1 keys"],
    ) -> TokenStep | None:
        """x -> x for one token: see :mod:`fast.steps`."""
        stepper = speaker(self.cross_attention, "reading_stepper")
        read = stepper(memory, readable) if stepper is not None and is_idle(self.dropout) else None
        if read is None:
            return None
        attend, think = step_of(self.attention, cache, mask=None), step_of(self.feed_forward)
        norms = [step_of(norm) for norm in (self.norm_1, self.norm_2, self.norm_3)]
        return lambda x: self.wire(x, attend, read, think, *norms)


class CrossPreNorm(CrossBlock):
    """A :class:`CrossBlock` whose parts each read a normalized copy of the stream.

    >>> from transformer_lib.wiring import Wiring
    >>> wiring = Wiring(context=9, n_layers=1, n_heads=2, d_model=8)
    >>> wiring.make_cross_block()(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def wire(self, x, attend, read, think, norm_1, norm_2, norm_3):
        """Nothing but additions on the stream itself."""
        x = x + attend(norm_1(x))
        x = x + read(norm_2(x))
        return x + think(norm_3(x))


class CrossPostNorm(CrossBlock):
    """A :class:`CrossBlock` that normalizes the stream after each addition, as in the paper.

    >>> from transformer_lib.wiring import Wiring
    >>> wiring = Wiring(context=9, n_layers=1, n_heads=2, d_model=8, norm="post")
    >>> wiring.make_cross_block()(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def wire(self, x, attend, read, think, norm_1, norm_2, norm_3):
        """A norm after each addition."""
        x = norm_1(x + attend(x))
        x = norm_2(x + read(x))
        return norm_3(x + think(x))


NORMS = {"pre": PreNorm, "post": PostNorm}
CROSS_NORMS = {"pre": CrossPreNorm, "post": CrossPostNorm}


def require_objects(*parts: nn.Module) -> None:
    """The parts of a block are made already, and modules: else their weights would not be its."""
    for part in parts:
        checks.require_kind(part, "a part of the block", nn.Module)


def require_memory(memory) -> None:
    """There is something to read. (An attention without a memory attends to its own tokens.)"""
    if memory is None:
        raise TypeError(
            "memory is None; a block of the decoder reads one: [batch, keys, d_model], such as "
            "model.encode(source)."
        )


def require_shape_kept(part: nn.Module, stream: Tensor, *read, **options) -> Callable:
    """Decorates what calls ``part``, with ``read`` and ``options`` behind its vectors: it must
    return their shape, and the norm before it must not have lost an axis of the ``stream``, nor
    have made it 1.

    Else PyTorch would broadcast what a reader's own part returns into the stream without a word.
    """

    def decorate(call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        if torch.compiler.is_compiling():
            return call

        def checked(x: Tensor) -> Tensor:
            if getattr(x, "shape", None) != stream.shape:
                require_no_lost_axis(part, x, stream)
            try:
                result = call(x)
            except TypeError:
                require_part(part, x, *read, **options)
                raise
            require_shape(part, result, x)
            return result

        return checked

    return decorate


def require_no_lost_axis(part: nn.Module, x: Tensor, stream: Tensor) -> None:
    """``x``, made of the ``stream`` for ``part``, would not be broadcast where it is added."""
    checks.require_tensor(x, f"what {type(part).__name__} is given")
    pairs = zip(x.shape, stream.shape, strict=False)
    if x.ndim < stream.ndim or any(size == 1 != wanted for size, wanted in pairs):
        raise ValueError(
            f"{type(part).__name__} is given the shape {tuple(x.shape)}, and the stream of this "
            f"block has {tuple(stream.shape)}: the norm before it must keep the shape."
        )


def require_stream(x: Tensor, ids: Tensor) -> None:
    """Behind all blocks, ``x`` still has a vector for each of ``ids``."""
    if x.shape[:-1] != ids.shape:
        raise ValueError(
            f"the blocks returned the shape {tuple(x.shape)} for ids of shape {tuple(ids.shape)}; "
            f"each block, and the norm that it may end in, must return the shape that it is given."
        )


def require_part(part: nn.Module, x: Tensor, *read, **options) -> None:
    """After an error: ``part`` can be called as a block calls it, and returns a tensor."""
    try:
        inspect.signature(part.forward).bind(x, *read, **options)
    except TypeError as error:
        names = ", ".join(["x", *["memory", "mask"][: len(read)], *(f"{o}=..." for o in options)])
        raise TypeError(
            f"{type(part).__name__} cannot be called as a block calls it: {error}. Write its "
            f"forward for ({names}), or wrap it in a module that takes these."
        ) from error
    with torch.no_grad():
        options |= {"cache": None} if "cache" in options else {}
        require_shape(part, part(x, *read, **options), x)


def require_shape(part: nn.Module, result, x: Tensor) -> None:
    """``result``, of a part of a block, is a tensor of the shape of ``x``."""
    if not isinstance(result, Tensor):
        raise TypeError(
            f"{type(part).__name__} returned {type(result).__name__}; as a part of a block it must "
            f"return one tensor of the shape that it is given, {tuple(x.shape)}."
        )
    if result.shape != x.shape:
        raise ValueError(
            f"{type(part).__name__} returned the shape {tuple(result.shape)}; as a part of a block "
            f"it must return the shape that it is given, {tuple(x.shape)}."
        )
