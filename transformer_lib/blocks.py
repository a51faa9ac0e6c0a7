"""The block: attention, then feed-forward, each added to the residual stream."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.cache import KeyValueCache
from transformer_lib.layers import FeedForward, RMSNorm

NORMS = ("pre", "post")


def make_norm(d_model: int, *, rms: bool = False, bias: bool = True) -> nn.Module:
    """LayerNorm, or RMSNorm (which has no bias), of vectors ``d_model`` wide.

    >>> make_norm(8, rms=True)
    RMSNorm(8, eps=1e-05)
    """
    return RMSNorm(d_model) if rms else nn.LayerNorm(d_model, bias=bias)


class Block(nn.Module):
    """One layer of a Transformer: tokens exchange what they know, then each thinks for itself.

    Args:
        d_model, n_heads: as for :class:`~transformer_lib.attention.MultiHeadAttention`, and so are
            ``positions`` and ``qk_norm``.
        d_ff: width of the feed-forward layer, 4 · d_model if None.
        norm: ``"pre"``: each sub-layer reads a normalized copy of the stream (GPT-2);
            ``"post"``: the stream itself is normalized after each addition (the paper, GPT-1).
        activation: of the feed-forward layer, see :class:`~transformer_lib.layers.FeedForward`.
        rms_norm: RMSNorm in place of LayerNorm.
        bias: whether the products and LayerNorm have one.
        dropout: of the attention weights, and of each sub-layer's result before it is added.

    Raises:
        ValueError: as the parts; an unknown ``norm``.

    Source: Vaswani et al. 2017, section 3.1; pre-norm: Radford et al. 2019, section 2.3.

    >>> Block(d_model=8, n_heads=2)(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int | None = None,
        *,
        norm: str = "pre",
        activation: str = "gelu_tanh",
        rms_norm: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        positions=None,
        qk_norm: bool = False,
    ):
        super().__init__()
        checks.require_choice(norm, "norm", NORMS)
        self.norm = norm
        self.norm_1 = make_norm(d_model, rms=rms_norm, bias=bias)
        self.attention = MultiHeadAttention(
            d_model, n_heads, bias=bias, dropout=dropout, positions=positions, qk_norm=qk_norm
        )
        self.norm_2 = make_norm(d_model, rms=rms_norm, bias=bias)
        self.feed_forward = FeedForward(d_model, d_ff, activation, bias=bias)
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
        if self.norm == "pre":
            x = x + self.dropout(self.attention(self.norm_1(x), **options))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, **options)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))

    def extra_repr(self) -> str:
        return f"norm={self.norm!r}"
