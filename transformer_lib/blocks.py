"""Blocks: attention, then feed-forward, each added to the residual stream.

A block is made of its parts: an attention, a feed-forward layer and two norms, each any module that
takes and returns ``[batch, tokens, d_model]``. (The attention is called with ``mask``, ``causal``
and ``cache``, as :class:`~transformer_lib.attention.MultiHeadAttention` is.)
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import KeysAndValues
from transformer_lib.cache import KeyValueCache
from transformer_lib.fast.steps import Step, is_idle, step_of, stepper_of


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
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The stream after this block; mask, causal and cache are those of the attention."""
        options = {"mask": mask, "causal": causal, "cache": cache}

        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.attention(x, **options))

        def think(x: Tensor) -> Tensor:
            return self.dropout(self.feed_forward(x))

        return self.wire(x, attend, think, self.norm_1, self.norm_2)

    def stepper(self, cache: KeyValueCache) -> Step | None:
        """x -> x for one token: see :mod:`fast.steps`."""
        if not is_idle(self.dropout):
            return None
        attend, think = step_of(self.attention, cache), step_of(self.feed_forward)
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
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """The stream after this block. ``mask``, ``causal`` and ``cache`` are those of the
        attention among the tokens; ``memory_mask`` says which of the memory may be read.
        """
        options = {"mask": mask, "causal": causal, "cache": cache}

        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.attention(x, **options))

        def read(x: Tensor) -> Tensor:
            return self.dropout(self.cross_attention(x, memory, memory_mask))

        def think(x: Tensor) -> Tensor:
            return self.dropout(self.feed_forward(x))

        return self.wire(x, attend, read, think, self.norm_1, self.norm_2, self.norm_3)

    def stepper(
        self,
        cache: KeyValueCache,
        memory: KeysAndValues,
        readable: Bool[Tensor, "batch 1 keys"],
    ) -> Step | None:
        """x -> x for one token: see :mod:`fast.steps`."""
        read = None
        if is_idle(self.dropout) and stepper_of(self.cross_attention) is not None:
            read = self.cross_attention.reading_stepper(memory, readable)
        if read is None:
            return None
        attend, think = step_of(self.attention, cache), step_of(self.feed_forward)
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
