"""Attention: the two functions that the book derives, and the module that holds the parameters.

Shapes, everywhere: ``q [..., queries, d_k]``, ``k [..., keys, d_k]``, ``v [..., keys, d_v]``,
weights ``[..., queries, keys]``. Masks are boolean, True = may attend.

NaN and infinity in the input are not looked for, since that would make a GPU wait. They spread: a
weight of zero times a NaN *value* is NaN, in every row.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib import checks, module_checks
from transformer_lib.cache import KeyValueCache
from transformer_lib.fast.kernels import causal_weights, explicit_is_faster, fused_attention
from transformer_lib.masks import causal_mask, combine_masks


def attention_weights(
    q: Float[Tensor, "*batch queries d_k"],
    k: Float[Tensor, "*batch keys d_k"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    bias: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch queries keys"]:
    """How much each query attends to each key: softmax(q kᵀ · scale + bias) over what is allowed.

    Every row is positive and sums to 1; the row of a query with nothing to attend to is zero, and
    its gradient is zero, too. A hidden key gets exactly zero, even if it holds NaN.

    Args:
        q: queries, ``[..., queries, d_k]``.
        k: keys, ``[..., keys, d_k]``, with the same leading axes.
        mask: boolean, broadcastable to ``[..., queries, keys]``, True = may attend.
        causal: hide the future as well; the last query sees all keys.
        scale: factor of the scores, 1/√d_k if None.
        bias: added to the scaled scores, broadcastable to ``[..., queries, keys]``, finite.

    Raises:
        ValueError: widths, leading axes, devices or the mask's shape do not fit; no tokens.
        TypeError: not floating point; dtypes differ; the mask is not boolean.

    Source: Vaswani et al. 2017, section 3.2.1.

    >>> attention_weights(torch.ones(1, 4), torch.ones(2, 4))
    tensor([[0.5000, 0.5000]])
    >>> attention_weights(torch.ones(2, 4), torch.ones(2, 4), causal=True)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    checks.require_attention(q, k, mask=mask, bias=bias)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale
    if bias is not None:
        scores = scores + bias
    if causal:
        mask = combine_masks(mask, causal_mask(*scores.shape[-2:], device=scores.device))
    if mask is None:
        return scores.softmax(dim=-1)
    empty = ~mask.any(dim=-1, keepdim=True)  # rows with nothing to attend to
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


def attention(
    q: Float[Tensor, "*batch queries d_k"],
    k: Float[Tensor, "*batch keys d_k"],
    v: Float[Tensor, "*batch keys d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    bias: Float[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch queries d_v"]:
    """Each query's weighted average of the values: attention_weights(q, k) v.

    Computed by PyTorch's fused kernel, which never stores the weights, except where the kernel is
    slower than the two products. Both give the same numbers, up to rounding, for finite input with
    finite products q·k. (In float16 those beyond 65504 overflow before they are scaled, and give
    NaN; the kernel computes them in 32 bits.)

    Args:
        q, k, mask, causal, scale, bias: as for :func:`attention_weights`.
        v: values, ``[..., keys, d_v]``.
        dropout: probability with which each weight is set to zero, the others growing by
            1/(1 - dropout). It applies whenever it is not 0: pass 0 when you do not train.

    Raises:
        ValueError, TypeError: as :func:`attention_weights`; and for another number of values than
            keys, or a ``dropout`` outside of [0, 1).

    Source: Vaswani et al. 2017, section 3.2.1; the fused kernel: Dao et al. 2022.

    >>> attention(torch.ones(1, 4), torch.ones(2, 4), torch.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    checks.require_attention(q, k, v, mask=mask, bias=bias, dropout=dropout)
    if not explicit_is_faster(q, k, v):
        return fused_attention(q, k, v, mask, causal, scale, bias, dropout)
    if causal and mask is None and bias is None and q.shape[-2] == k.shape[-2]:
        weights = causal_weights(q, k, scale)
    else:
        weights = attention_weights(q, k, mask, causal=causal, scale=scale, bias=bias)
    return F.dropout(weights, dropout) @ v


def split_heads(
    x: Float[Tensor, "batch tokens width"], n_heads: int
) -> Float[Tensor, "batch {n_heads} tokens d_head"]:
    """Cut each token's vector into ``n_heads`` pieces; the heads become an axis of the batch.

    >>> split_heads(torch.zeros(2, 3, 8), n_heads=4).shape
    torch.Size([2, 4, 3, 2])
    """
    module_checks.require_split(x, n_heads)
    batch, tokens, width = x.shape
    return x.reshape(batch, tokens, n_heads, width // n_heads).transpose(1, 2)


def merge_heads(
    x: Float[Tensor, "batch n_heads tokens d_head"],
) -> Float[Tensor, "batch tokens width"]:
    """Put the heads' results side by side again: the inverse of :func:`split_heads`.

    >>> merge_heads(torch.zeros(2, 4, 3, 2)).shape
    torch.Size([2, 3, 8])
    """
    return x.transpose(1, 2).flatten(start_dim=2)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own projection of the input.

    Args:
        d_model: width of the input and of the output.
        n_heads: number of heads.
        d_head: width of each head, ``d_model / n_heads`` if None.
        bias: whether the four projections add a bias.
        dropout: of the attention weights, while training.
        positions: what makes the scores depend on distance: a ``RotaryPositions`` or
            ``AlibiPositions`` of :mod:`transformer_lib.positions`.
        qk_norm: whether each head's queries and keys are brought to a length of √d_head (their root
            mean square is 1) before positions turn them, so that no score can exceed √d_head.

    Raises:
        ValueError: ``d_model`` is not divisible by ``n_heads`` and no ``d_head`` is given; sizes
            below 1; positions made for another width or number of heads.

    Source: Vaswani et al. 2017, section 3.2.2; normalized queries and keys: Henry et al. 2020
    (there with a learned factor, which is 1 here).

    >>> attend = MultiHeadAttention(d_model=8, n_heads=2)
    >>> attend(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        positions=None,
        qk_norm: bool = False,
    ):
        super().__init__()
        d_head = module_checks.require_heads(d_model, n_heads, d_head)
        checks.require_dropout(dropout)
        checks.require_flag(qk_norm, "qk_norm")
        module_checks.require_positions(positions, n_heads, d_head)
        self.n_heads, self.d_head = n_heads, d_head
        self.dropout, self.positions, self.qk_norm = dropout, positions, qk_norm
        self.query = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.key = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.value = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.output = nn.Linear(n_heads * d_head, d_model, bias=bias)

    def project(
        self,
        x: Float[Tensor, "batch queries d_model"],
        memory: Float[Tensor, "batch keys d_model"] | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[
        Float[Tensor, "batch heads queries d_head"],
        Float[Tensor, "batch heads all_keys d_head"],
        Float[Tensor, "batch heads all_keys d_head"],
    ]:
        """Queries of ``x``; keys and values of ``memory``, or of ``x``; positions applied.

        With a cache, ``x`` are the tokens after those in the cache; the cache is extended by them.
        """
        if memory is None and cache is None:
            q, k, v = self.project_together(x)
        else:
            source = x if memory is None else memory
            q = split_heads(self.query(x), self.n_heads)
            k = split_heads(self.key(source), self.n_heads)
            v = split_heads(self.value(source), self.n_heads)
        if self.qk_norm:
            q, k = (F.rms_norm(x, (self.d_head,), eps=1e-6) for x in (q, k))
        start = 0 if cache is None else cache.length
        if self.positions is not None:
            q, k = self.positions.rotate(q, start), self.positions.rotate(k, start)
        if cache is not None:
            k, v = cache.extend(k, v)
        return q, k, v

    def project_together(self, x):
        """Queries, keys and values of one sequence by one product, which reads ``x`` once."""
        layers = (self.query, self.key, self.value)
        if not module_checks.are_plain(layers):  # hooks, LoRA, pruning: what they do must happen
            return tuple(split_heads(layer(x), self.n_heads) for layer in layers)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if self.query.bias is None else torch.cat([layer.bias for layer in layers])
        joined = F.linear(x, weight, bias).unflatten(-1, (3, self.n_heads, self.d_head))
        return joined.permute(2, 0, 3, 1, 4).unbind()

    def mask_and_bias(self, q, k, mask):
        """What lies over the scores: ``mask`` with an axis for the heads, the positions' bias."""
        mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
        if self.positions is None:
            return mask, None
        return mask, self.positions.bias(q.shape[-2], k.shape[-2], q.device, q.dtype)

    def forward(
        self,
        x: Float[Tensor, "batch queries d_model"],
        memory: Float[Tensor, "batch keys d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch queries d_model"]:
        """Attend to ``memory``, or to ``x`` itself."""
        module_checks.require_multi_head(self, x, memory, mask, causal, cache)
        q, k, v = self.project(x, memory, cache)
        mask, bias = self.mask_and_bias(q, k, mask)
        dropout = self.dropout if self.training else 0.0
        result = attention(q, k, v, mask, causal=causal, bias=bias, dropout=dropout)
        return self.output(merge_heads(result))

    def extra_repr(self) -> str:
        return (
            f"n_heads={self.n_heads}, d_head={self.d_head}, dropout={self.dropout}, "
            f"positions={self.positions}, qk_norm={self.qk_norm}"
        )
