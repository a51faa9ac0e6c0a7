"""Wirings: the choices of which a stack of blocks is made, whatever the family of the model."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from transformer_lib import checks
from transformer_lib.attention import MultiHeadAttention, require_heads
from transformer_lib.blocks import CROSS_NORMS, NORMS
from transformer_lib.latent import LatentAttention
from transformer_lib.layers import ACTIVATIONS, FeedForward, LayerNorm, RMSNorm, SwiGLU
from transformer_lib.positions import (
    AddedPositions,
    AlibiPositions,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    require_even,
)
from transformer_lib.window import WindowAttention

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
# The same for attention: a kind is one line, and ``attention_options`` are its own.
ATTENTIONS = {
    "multi_head": lambda wiring, **own: MultiHeadAttention(**wiring.of_heads(), **own),
    "window": lambda wiring, **own: WindowAttention(**wiring.of_heads(), **own),
    "latent": lambda wiring, **own: LatentAttention(**wiring.of_latent() | own),
}
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
        attention: ``"multi_head"``, ``"window"`` or ``"latent"``.
        attention_options: what only this kind of attention takes: ``{"window": 256, "sinks": 4}``
            (see :class:`~transformer_lib.window.WindowAttention`), ``{"d_latent": 64}``
            (:class:`~transformer_lib.latent.LatentAttention`).

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
    attention: str = "multi_head"
    attention_options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self):
        require_wiring(self)
        object.__setattr__(self, "attention_options", dict(self.attention_options))

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

    def make_attention(self) -> nn.Module:
        """The part of a block in which tokens exchange what they know."""
        part = ATTENTIONS[self.attention](self, **self.attention_options)
        require_placed(part, self)
        return part

    def make_cross_attention(self) -> MultiHeadAttention:
        """The part in which tokens read the memory, to which they have no distance."""
        return MultiHeadAttention(**self.of_heads() | {"positions": None})

    def of_heads(self) -> dict:
        """What a :class:`~transformer_lib.attention.MultiHeadAttention` is made of."""
        sizes = {"d_model": self.d_model, "n_heads": self.n_heads, "n_kv_heads": self.n_kv_heads}
        options = {"bias": self.bias, "dropout": self.dropout, "qk_norm": self.qk_norm}
        positions = WITHIN[self.positions](self) if self.positions in WITHIN else None
        return sizes | options | {"positions": positions}

    def of_latent(self) -> dict:
        """What a :class:`~transformer_lib.latent.LatentAttention` is made of; half of each head's
        width is turned beside it, as in DeepSeek-V2, where positions are rotary.
        """
        require_latent(self)
        sizes = {"d_model": self.d_model, "n_heads": self.n_heads}
        turned = max(2, self.d_head // 4 * 2) if self.positions == "rotary" else 0
        return sizes | {"d_rotary": turned, "bias": self.bias, "dropout": self.dropout}

    def make_feed_forward(self) -> FeedForward | SwiGLU:
        """The part of a block in which each token thinks for itself."""
        if self.activation in GATED:
            return GATED[self.activation](self.d_model, self.d_ff, bias=self.bias)
        return FeedForward(self.d_model, self.d_ff, self.activation, bias=self.bias)

    def make_norm(self) -> RMSNorm | LayerNorm:
        """A norm of the stream. (An RMSNorm has no bias.)"""
        return RMSNorm(self.d_model) if self.rms_norm else LayerNorm(self.d_model, bias=self.bias)

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
    choices |= {"positions": POSITIONS, "projections": PROJECTIONS, "attention": ATTENTIONS}
    for name, known in choices.items():
        checks.require_choice(getattr(wiring, name), name, known)
    if wiring.positions == "rotary":
        require_even(wiring.d_head, "d_model / n_heads", "rotary positions turn pairs")
    if wiring.positions == "sinusoidal":
        require_even(wiring.d_model, "d_model", "sinusoidal positions are pairs")
    checks.require_dropout(wiring.dropout)
    if wiring.attention_options or wiring.attention != Wiring.attention:
        require_attention_options(wiring)


def require_attention_options(wiring: Wiring) -> None:
    """The options are those of this kind of attention: one is made, without memory for it."""
    try:
        with torch.device("meta"):
            wiring.make_attention()
    except TypeError as error:
        missing = str(error).partition("argument: '")[2].rstrip("'")
        near = difflib.get_close_matches(missing, wiring.attention_options, 1)
        meant = f"Write {missing!r} in place of {near[0]!r}. " if near else ""
        raise TypeError(
            f"attention={wiring.attention!r} with attention_options="
            f"{dict(wiring.attention_options)}: {str(error).rstrip('.')}. {meant}Its "
            f"documentation lists its options."
        ) from error


def require_placed(part: nn.Module, wiring: Wiring) -> None:
    """Positions that act within attention are held by the part that was made."""
    if wiring.positions in WITHIN and getattr(part, "positions", None) is None:
        raise ValueError(
            f"positions are {wiring.positions!r}, which act within attention, but the "
            f"{type(part).__name__} of attention={wiring.attention!r} has no `positions`: it would "
            f"not know where a token stands. Let it take wiring.of_heads()['positions'] and keep "
            f"them as `self.positions`, or choose {' or '.join(map(repr, ADDED))}."
        )


def require_latent(wiring: Wiring) -> None:
    """Nothing is chosen that a latent attention does not have."""
    for name in ("qk_norm", "n_kv_heads"):
        if getattr(wiring, name) != getattr(Wiring, name):
            raise ValueError(
                f"{name} is {getattr(wiring, name)!r}, which attention='latent' does not have: its "
                f"heads share one latent vector. Leave it out."
            )
    if wiring.positions in WITHIN and wiring.positions != "rotary":
        raise ValueError(
            f"positions are {wiring.positions!r}; attention='latent' takes 'rotary', or positions "
            f"that are added to the embeddings: {', '.join(ADDED)}."
        )
