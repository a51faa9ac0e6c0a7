"""Wirings: the choices of which a stack of blocks is made, whatever the family of the model."""

from dataclasses import dataclass

import torch
from torch import nn

from transformer_lib import checks
from transformer_lib.attention import MultiHeadAttention, require_heads
from transformer_lib.blocks import CROSS_NORMS, NORMS
from transformer_lib.cache import ModelCache, compute_dtype
from transformer_lib.layers import ACTIVATIONS, FeedForward, LayerNorm, RMSNorm, SwiGLU
from transformer_lib.positions import (
    AddedPositions,
    AlibiPositions,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    require_even,
)

# A scheme is one line here: how it is made from a Wiring. Those of ADDED are added to the
# embeddings, those of WITHIN act within attention.
ADDED = {
    "learned": lambda wiring: LearnedPositions(wiring.context, wiring.d_model),
    "sinusoidal": lambda wiring: SinusoidalPositions(wiring.d_model),
}
WITHIN = {
    "rotary": lambda wiring: RotaryPositions(wiring.d_head),
    "alibi": lambda wiring: AlibiPositions(wiring.n_heads),
}
POSITIONS = (*ADDED, *WITHIN)
GATED = {"swiglu": SwiGLU}
PROJECTIONS = ("normal", "depth", "zero")


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What determines the blocks of a model; a family's configuration adds what surrounds them.

    Attributes:
        context: how many tokens the model reads at most.
        n_layers, n_heads, d_model: number of blocks, heads of each, width of the residual stream.
        d_ff: width of the feed-forward layers; if None, 4 · d_model, and 8/3 · d_model with a gate.
        n_kv_heads: heads of the keys and values, ``n_heads`` if None.
        norm: ``"pre"`` or ``"post"``, see :mod:`transformer_lib.blocks`.
        rms_norm: RMSNorm in place of LayerNorm.
        activation: ``"relu"``, ``"gelu"``, ``"gelu_tanh"``, ``"relu_squared"``, or ``"swiglu"``,
            with a gate.
        positions: ``"learned"``, ``"sinusoidal"``, ``"rotary"`` or ``"alibi"``.
        bias: whether the products within the blocks and LayerNorm have one.
        projections: how the matrices that write into the residual stream start: ``"normal"`` as all
            others, ``"depth"``: smaller by the root of their number in a stack, or ``"zero"``: each
            block begins as the identity.
        dropout: of embeddings, attention weights and sub-layers, while training.
        qk_norm: normalized queries and keys.

    Raises:
        ValueError, TypeError: a field that does not make a model; the message says which, why, and
            what to choose.

    >>> block = Wiring(context=8, n_layers=2, n_heads=2, d_model=12).make_block()
    >>> block(torch.zeros(1, 5, 12)).shape
    torch.Size([1, 5, 12])
    """

    context: int
    n_layers: int
    n_heads: int
    d_model: int
    d_ff: int | None = None
    norm: str = "pre"
    rms_norm: bool = False
    activation: str = "gelu_tanh"
    positions: str = "learned"
    bias: bool = True
    projections: str = "depth"
    dropout: float = 0.0
    qk_norm: bool = False
    n_kv_heads: int | None = None

    def __post_init__(self):
        require_wiring(self)

    @property
    def d_head(self) -> int:
        """Width of each head."""
        return self.d_model // self.n_heads

    def make_positions(self) -> AddedPositions | None:
        """Positions that are added to the embeddings, if these are."""
        return ADDED[self.positions](self) if self.positions in ADDED else None

    def make_block(self) -> nn.Module:
        """One layer, made of its parts."""
        parts = self.make_attention(), self.make_feed_forward()
        norms = self.make_norm(), self.make_norm()
        return NORMS[self.norm](*parts, *norms, dropout=self.dropout)

    def make_cross_block(self) -> nn.Module:
        """One layer that also reads a memory."""
        parts = self.make_attention(), self.make_cross_attention(), self.make_feed_forward()
        norms = (self.make_norm() for _ in parts)
        return CROSS_NORMS[self.norm](*parts, *norms, dropout=self.dropout)

    def make_attention(self) -> MultiHeadAttention:
        """The part of a block in which tokens exchange what they know."""
        positions = WITHIN[self.positions](self) if self.positions in WITHIN else None
        return MultiHeadAttention(
            self.d_model, self.n_heads, positions=positions, **self._of_attention()
        )

    def make_cross_attention(self) -> MultiHeadAttention:
        """The part in which tokens read the memory, to which they have no distance."""
        return MultiHeadAttention(self.d_model, self.n_heads, **self._of_attention())

    def _of_attention(self) -> dict:
        options = {"bias": self.bias, "dropout": self.dropout, "qk_norm": self.qk_norm}
        return options | {"n_kv_heads": self.n_kv_heads}

    def make_feed_forward(self) -> FeedForward | SwiGLU:
        """The part of a block in which each token thinks for itself."""
        if self.activation in GATED:
            return GATED[self.activation](self.d_model, self.d_ff, bias=self.bias)
        return FeedForward(self.d_model, self.d_ff, self.activation, bias=self.bias)

    def make_norm(self) -> RMSNorm | LayerNorm:
        """A norm of the stream. (An RMSNorm has no bias.)"""
        return RMSNorm(self.d_model) if self.rms_norm else LayerNorm(self.d_model, bias=self.bias)

    def make_cache(self, batch: int, capacity: int | None, weight: torch.Tensor) -> ModelCache:
        """An empty cache for the tokens of a stack whose parameters are like ``weight``.

        For up to ``capacity`` tokens (None: the context), in the dtype that attention computes in:
        the weights', or autocast's where that is on.
        """
        return ModelCache(
            self.n_layers,
            batch,
            self.n_kv_heads or self.n_heads,
            self.context if capacity is None else capacity,
            self.d_head,
            dtype=compute_dtype(weight),
            device=weight.device,
        )

    @torch.no_grad()
    def start_projections(self, writing: list[nn.Linear]) -> None:
        """Scale the matrices that write into one residual stream as ``projections`` says."""
        depth = len(writing) ** -0.5  # as many results add up in the stream
        factor = {"normal": 1.0, "depth": depth, "zero": 0.0}[self.projections]
        for layer in writing:
            layer.weight.mul_(factor)


def require_wiring(wiring: Wiring) -> None:
    """All fields of a wiring."""
    checks.require_fields(wiring)
    for name in ("context", "n_layers"):
        checks.require_count(getattr(wiring, name), name)
    require_heads(wiring.d_model, wiring.n_heads, None, wiring.n_kv_heads)
    if wiring.d_ff is not None:
        checks.require_count(wiring.d_ff, "d_ff")
    choices = {"norm": NORMS, "activation": (*ACTIVATIONS, *GATED)}
    choices |= {"positions": POSITIONS, "projections": PROJECTIONS}
    for name, known in choices.items():
        checks.require_choice(getattr(wiring, name), name, known)
    if wiring.positions == "rotary":
        require_even(wiring.d_head, "d_model / n_heads", "rotary positions turn pairs")
    if wiring.positions == "sinusoidal":
        require_even(wiring.d_model, "d_model", "sinusoidal positions are pairs")
    checks.require_dropout(wiring.dropout)
