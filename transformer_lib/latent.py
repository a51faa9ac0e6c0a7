"""Latent attention: keys and values are made of one short vector for each token, and only that
vector is cached.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import (
    attention,
    attention_weights,
    for_heads,
    merge_heads,
    require_heads,
    require_multi_head_input,
    split_heads,
)
from transformer_lib.cache import LayerCache, require_cache_entry, results_of
from transformer_lib.fast.steps import (
    TokenStep,
    is_plain,
    linear_step,
    speaker,
    step_of,
    stepper_of,
)
from transformer_lib.layers import RMSNorm
from transformer_lib.positions import RotaryPositions, require_even


class LatentCache(LayerCache):
    """Room for one vector of each token, which all heads share.

    >>> cache = LatentCache(1, batch=1, n_heads=1, capacity=5, d_head=3)
    >>> cache.extend(torch.ones(1, 1, 2, 3)).shape
    torch.Size([1, 1, 2, 3])
    """

    def extend(
        self, x: Float[Tensor, "batch 1 tokens width"]
    ) -> Float[Tensor, "batch 1 length width"]:
        """Append ``x``; return all so far."""
        (stored,) = self._memory
        require_cache_entry(self, stored, x=x)
        end = self._length + x.shape[2]
        stored[:, :, self._length : end] = x
        self._length = end
        return stored[:, :, :end]

    def append(self, x: Float[Tensor, "batch width"]) -> Float[Tensor, "batch length width"]:
        """:meth:`extend` by one token, without checks: for steps."""
        stored = self._memory[0, :, 0]
        stored[:, self._length] = x
        self._length += 1
        return stored[:, : self._length]


class LatentAttention(nn.Module):
    """Many heads whose keys and values are read from one latent vector of each token.

    ``down`` makes the latent, ``d_latent`` wide, and ``up`` makes each head's keys and values of
    it. Rotary positions cannot turn a key that is never stored, so each key has a second part,
    ``d_rotary`` wide, that is turned, stored with the latent, and the same for all heads.

    A step never makes the keys: what ``up`` would do to them is done to the query, and what it does
    to the values, to their average.

    Args:
        d_model: width of the input and of the output.
        n_heads: number of heads.
        d_latent: width of the latent vector.
        d_rotary: width of the part of queries and keys that is turned; 0: no positions.
        d_head: width of a head's values, and of the part of its keys that is not turned;
            ``d_model / n_heads`` if None.
        bias: whether the four products add a bias.
        dropout: of the attention weights, while training.

    Raises:
        ValueError: sizes below 1, heads that do not fit, an odd ``d_rotary``.

    Source: DeepSeek-AI 2024 (DeepSeek-V2), section 2.1; the norm of the latent: section 3.1.2. The
    queries are made in one product, as in DeepSeek-V2-Lite.

    >>> attend = LatentAttention(d_model=8, n_heads=2, d_latent=3, d_rotary=2)
    >>> attend(torch.zeros(1, 5, 8), causal=True).shape
    torch.Size([1, 5, 8])
    >>> attend.new_cache(batch=1, capacity=5)
    LatentCache(batch=1, n_heads=1, length=0, capacity=5, d_head=5)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_latent: int,
        d_rotary: int = 0,
        d_head: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        require_heads(d_model, n_heads, d_head)
        checks.require_count(d_latent, "d_latent")
        checks.require_count(d_rotary, "d_rotary", 0)
        if d_rotary > 0:
            require_even(d_rotary, "d_rotary", "rotary positions turn pairs")
        checks.require_dropout(dropout)
        checks.require_flag(bias, "bias")
        self.n_heads, self.d_head = n_heads, d_head or d_model // n_heads
        self.d_latent, self.d_rotary, self.dropout = d_latent, d_rotary, dropout
        self.positions = RotaryPositions(d_rotary) if d_rotary else None
        self.query = nn.Linear(d_model, n_heads * (self.d_head + d_rotary), bias=bias)
        self.down = nn.Linear(d_model, d_latent + d_rotary, bias=bias)
        self.norm = RMSNorm(d_latent)
        self.up = nn.Linear(d_latent, n_heads * 2 * self.d_head, bias=bias)
        self.output = nn.Linear(n_heads * self.d_head, d_model, bias=bias)

    def project(
        self, x: Float[Tensor, "batch queries d_model"], cache: LayerCache | None = None
    ) -> tuple[
        Float[Tensor, "batch heads queries d_key"],
        Float[Tensor, "batch heads keys d_key"],
        Float[Tensor, "batch heads keys d_head"],
    ]:
        """Queries, keys and values of ``x``; with a cache, which is extended, of all so far."""
        start = 0 if cache is None else cache.length
        q = self.turned(split_heads(self.query(x), self.n_heads), start)
        latent, turning = self.down(x).split((self.d_latent, self.d_rotary), dim=-1)
        normed = self.norm(latent).to(turning.dtype)  # a GPU's autocast takes the norm in 32 bits
        stored = torch.cat((normed, turning), dim=-1).unsqueeze(1)
        stored = self.turned(stored, start)
        stored = stored if cache is None else cache.extend(stored)
        latent, turning = stored.split((self.d_latent, self.d_rotary), dim=-1)
        k, v = split_heads(self.up(latent.squeeze(1)), self.n_heads).chunk(2, dim=-1)
        return q, torch.cat((k, turning.expand(-1, self.n_heads, -1, -1)), dim=-1), v

    def turned(self, x: Tensor, start: int) -> Float[Tensor, "batch heads tokens width"]:
        """``x``, the last ``d_rotary`` components of each vector turned by its position."""
        if self.positions is None:
            return x
        still, turning = x.split((x.shape[-1] - self.d_rotary, self.d_rotary), dim=-1)
        return torch.cat((still, self.positions.rotate(turning, start)), dim=-1)

    def weights(
        self, q, k, mask=None, *, causal=False
    ) -> Float[Tensor, "batch heads queries keys"]:
        """How much each query of :meth:`project` attends to each key, as :meth:`forward` weighs."""
        return attention_weights(q, k, for_heads(mask), causal=causal)

    def forward(
        self,
        x: Float[Tensor, "batch queries d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch queries d_model"]:
        """Each token's vector in view of the others."""
        require_multi_head_input(self, x, None, mask, causal, cache)
        q, k, v = self.project(x, cache=cache)
        dropout = self.dropout if self.training else 0.0
        z = attention(q, k, v, for_heads(mask), causal=causal, dropout=dropout)
        return self.output(merge_heads(z))

    def new_cache(self, batch: int, capacity: int) -> LatentCache:
        """An empty cache for ``batch`` texts of up to ``capacity`` tokens."""
        width = self.d_latent + self.d_rotary
        return LatentCache(1, batch, 1, capacity, width, **results_of(self.down))

    def stepper(self, cache: LatentCache) -> TokenStep | None:
        """x -> x for one token, causal, which extends the cache: see :mod:`fast.steps`."""
        rotary = None if self.positions is None else stepper_of(self.positions)
        if (self.positions is not None and rotary is None) or not is_plain(self.up):
            return None
        if speaker(cache, "append") is None:
            return None
        project, output = linear_step(self.query, self.down), linear_step(self.output)
        norm, weight = step_of(self.norm), self.up.weight
        turn = None if rotary is None else rotary(cache.capacity, weight)
        n_heads, d_head, d_latent, d_rotary = (
            self.n_heads,
            self.d_head,
            self.d_latent,
            self.d_rotary,
        )
        sizes = (n_heads * (d_head + d_rotary), d_latent, d_rotary)
        to_keys, to_values = weight.view(n_heads, 2, d_head, d_latent).unbind(1)
        of_values = to_values.mT.contiguous()
        # A bias adds the same to all scores of a query, so only that of the values counts.
        bias = None if self.up.bias is None else self.up.bias.view(n_heads, 2, d_head)[:, 1]
        scale = (d_head + d_rotary) ** -0.5

        def step(x: Tensor) -> Tensor:
            place, rows = cache.length, x.reshape(-1, x.shape[-1])
            query, latent, turning = project(x).view(len(rows), -1).split(sizes, dim=-1)
            query = query.reshape(len(rows), n_heads, -1)
            still, turned = query.split((d_head, d_rotary), dim=-1)
            # These are changed in place, in memory of this step's own, side by side.
            turned, turning = (
                y.clone(memory_format=torch.contiguous_format) for y in (turned, turning)
            )
            if turn is not None:
                turn(turned, place)
                turn(turning, place)
            stored = cache.append(torch.cat((norm(latent).to(turning.dtype), turning), dim=-1))
            query = torch.cat(((still.unsqueeze(2) @ to_keys).squeeze(2), turned), dim=-1)
            weights = (query @ stored.mT * scale).softmax(dim=-1)
            result = ((weights @ stored[..., :d_latent]).unsqueeze(2) @ of_values).squeeze(2)
            result = result if bias is None else result + bias
            return output(result.reshape(*x.shape[:-1], -1))

        return step

    def extra_repr(self) -> str:
        return (
            f"n_heads={self.n_heads}, d_head={self.d_head}, d_latent={self.d_latent}, "
            f"d_rotary={self.d_rotary}, dropout={self.dropout}"
        )
