"""Attention: the two functions that the book derives, and the module that holds the parameters.

Shapes, everywhere: ``q [..., queries, d_k]``, ``k [..., keys, d_k]``, ``v [..., keys, d_v]``,
weights ``[..., queries, keys]``. Masks are boolean, True = may attend.

NaN and infinity in the input are not looked for, since that would make a GPU wait. They spread: a
weight of zero times a NaN *value* is NaN, in every row. (One exception is PyTorch's: on a CPU its
fused kernel gives zeros for a row whose scores are all NaN, if they are fewer than 16.)
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.cache import (
    KeyValueCache,
    LayerCache,
    autocasts,
    require_layer_cache,
    require_own_cache,
    results_of,
)
from transformer_lib.fast.kernels import causal_weights, explicit_is_faster, fused_attention
from transformer_lib.fast.ragged import RealTokens, projected
from transformer_lib.fast.steps import TokenStep, linear_step, speaker, stepper_of
from transformer_lib.masks import causal_mask, combine_masks
from transformer_lib.positions import Positions


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

    No weight is negative, and every row sums to 1; the row of a query with nothing to attend to is
    zero, and its gradient is zero, too. A hidden key gets exactly zero, even if it holds NaN.

    Args:
        q: queries, ``[..., queries, d_k]``.
        k: keys, ``[..., keys, d_k]``, with the same leading axes.
        mask: boolean, broadcastable to ``[..., queries, keys]``, True = may attend.
        causal: hide the future as well; the last query sees all keys.
        scale: factor of the scores, 1/√d_k if None. (One that is learned multiplies the queries.)
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
    checks.require_attention(q, k, mask=mask, causal=causal, scale=scale, bias=bias)
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
    NaN; the kernel computes them in 32 bits.) The kernel has first derivatives only: for a Hessian
    or a forward derivative, write ``attention_weights(q, k) @ v``.

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
    checks.require_attention(
        q, k, v, mask=mask, causal=causal, scale=scale, bias=bias, dropout=dropout
    )
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
    require_splittable(x, n_heads)
    batch, tokens, width = x.shape
    x = x.reshape(batch, tokens, n_heads, width // n_heads)
    return x.transpose(1, 2)


def merge_heads(
    x: Float[Tensor, "batch n_heads tokens d_head"],
) -> Float[Tensor, "batch tokens width"]:
    """Put the heads' results side by side again: the inverse of :func:`split_heads`.

    >>> merge_heads(torch.zeros(2, 4, 3, 2)).shape
    torch.Size([2, 3, 8])
    """
    require_heads_axis(x)
    return x.transpose(1, 2).flatten(start_dim=2)


class KeysAndValues(NamedTuple):
    """What an attention reads of a memory: made once by ``keys_and_values``, used for each token.

    Shapes: ``k`` and ``v`` are ``[batch, n_kv_heads, keys, d_head]``.
    """

    k: Float[Tensor, "batch heads keys d_head"]
    v: Float[Tensor, "batch heads keys d_head"]


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own projection of the input.

    Args:
        d_model: width of the input and of the output.
        n_heads: number of heads.
        d_head: width of each head, ``d_model / n_heads`` if None.
        n_kv_heads: number of heads of the keys and values, ``n_heads`` if None. With fewer, each
            serves ``n_heads / n_kv_heads`` heads of the queries, and a cache is smaller by that
            factor (grouped-query attention; with one, multi-query attention).
        bias: whether the four projections add a bias.
        dropout: of the attention weights, while training.
        positions: where the tokens are, as far as attention itself must know: a
            :class:`~transformer_lib.positions.Positions`, such as ``RotaryPositions``.
        qk_norm: whether each head's queries and keys are scaled to a length of √d_head (a root mean
            square of 1) before positions turn them, so that no score can exceed √d_head.

    Raises:
        ValueError: ``d_model`` is not divisible by ``n_heads`` and no ``d_head`` is given;
            ``n_heads`` is not divisible by ``n_kv_heads``; sizes below 1; positions made for
            another width or number of heads.

    Source: Vaswani et al. 2017, section 3.2.2; grouped queries: Ainslie et al. 2023; normalized
    queries and keys: Henry et al. 2020 (there the cosine of the two is multiplied by a learned
    factor; here that factor is √d_head).

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
        n_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        positions: Positions | None = None,
        qk_norm: bool = False,
    ):
        super().__init__()
        require_heads(d_model, n_heads, d_head, n_kv_heads)
        checks.require_dropout(dropout)
        checks.require_flag(bias, "bias")
        checks.require_flag(qk_norm, "qk_norm")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
        self.d_head = d_head or d_model // n_heads
        require_positions(positions, self.n_heads, self.n_kv_heads, self.d_head)
        self.dropout, self.positions, self.qk_norm = dropout, positions, qk_norm
        self.query = nn.Linear(d_model, self.n_heads * self.d_head, bias=bias)
        self.key = nn.Linear(d_model, self.n_kv_heads * self.d_head, bias=bias)
        self.value = nn.Linear(d_model, self.n_kv_heads * self.d_head, bias=bias)
        self.output = nn.Linear(self.n_heads * self.d_head, d_model, bias=bias)

    def project(
        self,
        x: Float[Tensor, "batch queries d_model"],
        memory: Float[Tensor, "batch keys d_model"] | KeysAndValues | None = None,
        cache: LayerCache | None = None,
    ) -> tuple[
        Float[Tensor, "batch heads queries d_head"],
        Float[Tensor, "batch heads all_keys d_head"],
        Float[Tensor, "batch heads all_keys d_head"],
    ]:
        """Queries of ``x``; keys and values of ``memory``, or of ``x``; positions applied.

        With a cache, ``x`` are the tokens after those in the cache; the cache is extended by them.
        """
        start = 0 if cache is None else cache.length
        q = self.placed(split_heads(self.query(x), self.n_heads), start)
        if not isinstance(memory, KeysAndValues):
            memory = self.keys_and_values(x if memory is None else memory, start)
        k, v = memory if cache is None else cache.extend(*memory)
        return q, *self.for_each_head(k, v)

    def for_each_head(self, *of_keys: Tensor) -> tuple[Tensor, ...]:
        """Keys and values, repeated for the heads of the queries that share them."""
        times = self.n_heads // self.n_kv_heads
        return of_keys if times == 1 else tuple(x.repeat_interleave(times, 1) for x in of_keys)

    def keys_and_values(
        self, source: Float[Tensor, "batch keys d_model"], start: int = 0
    ) -> KeysAndValues:
        """The keys and values of ``source``, whose first token is at position ``start``.

        What is given as ``memory`` at every step of a generation need not be projected each time.

        >>> attend = MultiHeadAttention(d_model=8, n_heads=2)
        >>> read = attend.keys_and_values(torch.zeros(3, 7, 8))
        >>> attend(torch.zeros(3, 1, 8), memory=read).shape
        torch.Size([3, 1, 8])
        """
        k = self.placed(split_heads(self.key(source), self.n_kv_heads), start)
        return KeysAndValues(k, split_heads(self.value(source), self.n_kv_heads))

    def placed(self, x: Tensor, start: int) -> Float[Tensor, "batch heads tokens d_head"]:
        """Queries or keys, normalized if asked for, and turned by their positions."""
        if self.qk_norm:  # in 16 bits, some devices return it in 32
            x = F.rms_norm(x, (self.d_head,), eps=1e-6).to(x.dtype)
        return x if self.positions is None else self.positions.rotate(x, start)

    def mask_and_bias(self, q, k, mask):
        """The mask, with an axis for the heads, and the positions' bias, to apply to the scores."""
        if self.positions is None:
            return for_heads(mask), None
        return for_heads(mask), self.positions.bias(q.shape[-2], k.shape[-2], q.device, q.dtype)

    def weights(
        self, q, k, mask=None, *, causal=False
    ) -> Float[Tensor, "batch heads queries keys"]:
        """How much each query of :meth:`project` attends to each key: for maps. (:meth:`forward`
        computes the same in another way, and does not ask this.)
        """
        mask, bias = self.mask_and_bias(q, k, mask)
        return attention_weights(q, k, mask, causal=causal, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch queries d_model"],
        memory: Float[Tensor, "batch keys d_model"] | KeysAndValues | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch queries d_model"]:
        """Attend to ``memory`` (its vectors, or :meth:`keys_and_values` of it), or to ``x``."""
        require_multi_head_input(self, x, memory, mask, causal, cache)
        require_own_cache(cache, self)
        q, k, v = self.project(x, memory, cache)
        mask, bias = self.mask_and_bias(q, k, mask)
        dropout = self.dropout if self.training else 0.0
        result = attention(q, k, v, mask, causal=causal, bias=bias, dropout=dropout)
        return self.output(merge_heads(result))

    def new_cache(self, batch: int, capacity: int) -> LayerCache:
        """An empty cache for ``batch`` texts of up to ``capacity`` tokens, in the dtype that keys
        are computed in: the weights', or autocast's where that is on.

        >>> MultiHeadAttention(d_model=8, n_heads=2, n_kv_heads=1).new_cache(batch=3, capacity=5)
        KeyValueCache(batch=3, n_heads=1, length=0, capacity=5, d_head=4)
        """
        sizes = (batch, self.n_kv_heads, capacity, self.d_head)
        return KeyValueCache(*sizes, **results_of(self.key))

    def ragged(
        self,
        x: Float[Tensor, "real d_model"],
        real: RealTokens,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        memory: tuple[Float[Tensor, "real_keys d_model"], RealTokens] | None = None,
    ) -> Float[Tensor, "real d_model"]:
        """:meth:`forward` without the padding: see :mod:`fast.ragged`."""
        query, both = self.query, (self.key, self.value)
        if memory is None:
            q, k, v = projected(x, real, query, *both)
        else:
            (q,), (k, v) = projected(x, real, query), projected(*memory, *both)
        q = self.placed(split_heads(q, self.n_heads), 0)
        k, v = (split_heads(x, self.n_kv_heads) for x in (k, v))
        k, v = self.for_each_head(self.placed(k, 0), v)
        mask, bias = self.mask_and_bias(q, k, mask)
        dropout = self.dropout if self.training else 0.0
        result = attention(q, k, v, mask, causal=causal, bias=bias, dropout=dropout)
        return self.output(real.packed(merge_heads(result)))

    def stepper(self, cache: LayerCache) -> TokenStep | None:
        """x -> x for one token, causal, which extends the cache: see :mod:`fast.steps`."""
        like, groups = matrix_of(self.query), self.n_heads // self.n_kv_heads
        if like is None or speaker(cache, "append") is None:
            return None
        project, output = linear_step(self.query, self.key, self.value), linear_step(self.output)
        n_heads, rotating = self.n_heads, self.n_heads + self.n_kv_heads
        rotate = _rotation_step(self.positions, self.n_heads, cache.capacity, like)
        near = self._newest_row(cache.capacity, like)
        if near is None:  # the newest query's row depends on more than the distance
            return None
        shape, scale = (-1, rotating + self.n_kv_heads, self.d_head), self.d_head**-0.5
        pairs, grouped = (-1, 2, self.n_kv_heads, self.d_head), (-1, groups, self.d_head)
        nothing, biased, capacity = like.new_zeros(()), bool(near.any()), cache.capacity
        qk_norm = self.qk_norm

        def step(x: Tensor) -> Tensor:
            place, qkv = cache.length, project(x).view(shape)
            if qk_norm or rotate is not None:
                qkv = qkv.contiguous()
                qk = qkv[:, :rotating]  # both are changed in place, in memory of this step's own
                if qk_norm:
                    qk.copy_(F.rms_norm(qk, shape[-1:], eps=1e-6))
                if rotate is not None:
                    rotate(qk, place)
            keys, values = cache.append(qkv[:, n_heads:].reshape(pairs).transpose(0, 1))
            q = qkv[:, :n_heads].reshape(grouped)  # those that share a key
            scores = torch.baddbmm(nothing, q, keys.mT, beta=0, alpha=scale)
            if biased:
                row = near[:, capacity - 1 - place :]
                scores = (scores.view(-1, *row.shape) + row).view(scores.shape)
            result = torch.bmm(scores.softmax(dim=-1), values).view(*x.shape[:-1], -1)
            return output(result)

        return step

    def reading_stepper(
        self, memory: KeysAndValues, readable: Bool[Tensor, "batch 1 keys"]
    ) -> TokenStep | None:
        """x -> x for one token, which reads a memory: see :mod:`fast.steps`. If ``x`` has n times
        as many rows as there are memories, n rows after one another belong to each.
        """
        if self.positions is not None:
            return None
        query, output = linear_step(self.query), linear_step(self.output)
        memories, n_kv_heads, keys, d_head = memory.k.shape
        groups, scale, qk_norm = self.n_heads // n_kv_heads, d_head**-0.5, self.qk_norm
        k, v = memory.k.reshape(-1, keys, d_head).mT, memory.v.reshape(-1, keys, d_head)
        hidden = k.new_zeros(memories, 1, keys).masked_fill(~readable, -torch.inf)
        hidden = hidden.repeat_interleave(n_kv_heads, dim=0)

        def step(x: Tensor) -> Tensor:
            q = query(x).reshape(memories, -1, n_kv_heads, groups, d_head)
            if qk_norm:
                q = F.rms_norm(q, (d_head,), eps=1e-6)
            rows = q.shape[1]
            q = q.transpose(1, 2).reshape(memories * n_kv_heads, rows * groups, d_head)
            scores = torch.baddbmm(hidden, q, k, alpha=scale)
            result = torch.bmm(scores.softmax(dim=-1), v)
            result = result.view(memories, n_kv_heads, rows, groups, d_head).transpose(1, 2)
            return output(result.reshape(*x.shape[:-1], -1))

        return step

    def _newest_row(self, keys: int, like: Tensor) -> Float[Tensor, "heads {keys}"] | None:
        """The row that :meth:`mask_and_bias` adds to the scores of the newest of ``keys`` tokens.

        None if the row for fewer tokens is not the end of it, or has nothing to attend to.
        """
        zeros = like.new_zeros(()).expand(1, self.n_heads, keys, self.d_head)
        lengths, q = {1, 2, 3, max(1, keys // 2), keys}, zeros[:, :, :1]
        added = {n: self.mask_and_bias(q, zeros[:, :, :n], None) for n in lengths if n <= keys}
        nothing = like.new_zeros(self.n_heads, 1)
        if all(mask is None and bias is None for mask, bias in added.values()):
            return nothing.expand(-1, keys)
        rows = {}
        for n, (mask, bias) in added.items():
            row = nothing.expand(-1, n)[None, :, None] if bias is None else bias + nothing[:, None]
            rows[n] = (row if mask is None else row.masked_fill(~mask, -torch.inf)).reshape(-1, n)
        longest = rows[max(rows)]
        alike = all(row.equal(longest[:, -n:]) for n, row in rows.items())
        return longest[:, -keys:] if alike and longest[:, -1].isfinite().all() else None

    def extra_repr(self) -> str:
        return (
            f"n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}, d_head={self.d_head}, "
            f"dropout={self.dropout}, positions={self.positions}, qk_norm={self.qk_norm}"
        )


def for_heads(mask: Tensor | None) -> Tensor | None:
    """A mask of each text with an axis for the heads."""
    return mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask


def matrix_of(layer: nn.Module) -> Tensor | None:
    """What ``layer`` multiplies by; None for one that keeps no such matrix, as a quantized one."""
    weight = getattr(layer, "weight", None)
    return weight if isinstance(weight, Tensor) and weight.is_floating_point() else None


def _rotation_step(positions, n_heads: int, capacity: int, like: Tensor) -> TokenStep | None:
    """qk ``[batch, heads, d_head]``, place -> nothing: queries and keys are rotated in place."""
    if positions is None:
        return None
    stepper = stepper_of(positions)
    if stepper is not None:
        return stepper(capacity, like)

    def rotate(qk: Tensor, place: int) -> None:
        for part in (qk[:, :n_heads], qk[:, n_heads:]):
            part.copy_(positions.rotate(part.unsqueeze(2), place).squeeze(2))

    return rotate


@checks.at_the_door
def require_splittable(x, n_heads: int) -> None:
    """``x`` is ``[batch, tokens, width]`` and ``n_heads`` divides its width."""
    checks.require_tensor(x, "x")
    checks.require_count(n_heads, "n_heads")
    if x.ndim != 3 or x.shape[-1] % n_heads:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; to be split into {n_heads} heads it must be "
            f"[batch, tokens, width] with a width divisible by {n_heads}."
        )


@checks.at_the_door
def require_heads_axis(x) -> None:
    """``x`` is ``[batch, heads, tokens, d_head]``."""
    checks.require_tensor(x, "x")
    if x.ndim != 4:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; heads are merged from [batch, heads, tokens, d_head], "
            f"as split_heads returns them."
        )


def require_heads(
    d_model: int, n_heads: int, d_head: int | None = None, n_kv_heads: int | None = None
) -> None:
    """The heads' number and width fit the model's width."""
    checks.require_count(d_model, "d_model")
    checks.require_count(n_heads, "n_heads")
    if d_head is not None:
        checks.require_count(d_head, "d_head")
    elif d_model % n_heads:
        divisors = [n for n in range(1, min(d_model, 256) + 1) if d_model % n == 0]
        raise ValueError(
            f"d_model = {d_model} is not divisible by n_heads = {n_heads}, so the heads cannot "
            f"share it equally. Choose n_heads from {', '.join(map(str, divisors))}. (A "
            f"MultiHeadAttention takes any number with a d_head of its own.)"
        )
    if n_kv_heads is not None:
        checks.require_count(n_kv_heads, "n_kv_heads")
        if n_heads % n_kv_heads:
            raise ValueError(
                f"n_heads = {n_heads} is not divisible by n_kv_heads = {n_kv_heads}, so the heads "
                f"of the queries cannot share the keys equally. Choose a divisor of {n_heads}."
            )


def require_positions(positions, n_heads: int, n_kv_heads: int, d_head: int) -> None:
    """``positions`` (or None) suits heads of this number and width: it is tried on zeros."""
    if positions is None:
        return
    checks.require_object(positions, "positions")
    if not isinstance(positions, Positions):
        raise TypeError(
            f"positions is {positions!r}; give RotaryPositions or AlibiPositions. (Sinusoidal and "
            f"learned positions are added to the embeddings, before attention.)"
        )
    device = torch.get_default_device()
    if device.type == "meta" and not isinstance(positions, nn.Module):
        device = torch.device("cpu")  # to compute on meta, PyTorch imports its compiler
    try:
        for heads in (n_heads, n_kv_heads):
            zeros = torch.zeros(1, heads, 1, d_head, device=device)
            require_turned(positions, positions.rotate(zeros, 0), zeros)
    except ValueError as error:
        raise ValueError(
            f"{positions} does not suit heads of width {d_head}. Make the positions for that width."
        ) from error
    bias = positions.bias(1, 1, torch.device("cpu"), torch.float32)
    if bias is not None and bias.shape != (n_heads, 1, 1):
        raise ValueError(
            f"{positions} gives a bias of shape {tuple(bias.shape)} for 1 query and 1 key; "
            f"this module has n_heads = {n_heads}. Make the positions for as many heads."
        )


def require_turned(positions, turned, x: Tensor) -> None:
    """``turned``, what ``positions`` made of ``x``, can take its place."""
    found = [(y.dtype, tuple(y.shape)) if isinstance(y, Tensor) else type(y) for y in (turned, x)]
    if found[0] != found[1]:
        raise TypeError(
            f"rotate of {positions} returned {found[0]} for {found[1]}; it must return the queries "
            f"or keys that it is given, turned, in their own dtype and shape."
        )


@checks.at_the_door
def require_multi_head_input(module, x, memory, mask, causal: bool, cache) -> None:
    """All arguments of ``MultiHeadAttention.forward``, before anything is written to the cache."""
    require_read_by(module.query, x, "x")
    checks.require_flag(causal, "causal")
    if cache is not None:
        require_layer_cache(cache, "extend")
    if memory is not None:
        _require_memory(module, x, memory, causal, cache)
    if mask is None:
        return
    if mask is memory:
        raise TypeError(
            "mask is the memory itself. After x and memory comes the mask, and not the values, "
            "which are made of the memory as the keys are: leave it out."
        )
    read = isinstance(memory, KeysAndValues)
    keys = (x if memory is None else memory.k[:, 0] if read else memory).shape[1]
    if cache is not None:
        keys += cache.length
    alike = isinstance(mask, Tensor) and mask.ndim == 3  # for all heads
    heads = () if alike else (module.n_heads,)
    checks.require_mask(mask, (x.shape[0], *heads, x.shape[1], keys), x.device)


def require_read_by(layer: nn.Module, x, name: str) -> None:
    """``x`` is ``[batch, tokens, d_model]``, as ``layer`` reads it."""
    checks.require_float_tensor(x, name)
    weight = matrix_of(layer)
    if weight is None:
        return
    shape, d_model = x.shape, weight.shape[1]
    if len(shape) != 3 or shape[2] != d_model or shape[1] == 0:
        raise ValueError(
            f"{name} has shape {tuple(shape)}; it must be [batch, tokens, d_model] with d_model = "
            f"{d_model} and at least one token (an empty sequence has nothing to attend to)."
        )
    checks.require_same_device("the module", weight, name, x)
    if not autocasts(weight.device.type):
        checks.require_same_dtype("the module", weight, name, x)


def _require_memory(module, x: Tensor, memory, causal: bool, cache) -> None:
    """Cross-attention: refuse whatever makes sense within one sequence only."""
    if isinstance(memory, KeysAndValues):
        _require_keys_and_values(module, memory)
    else:
        require_read_by(module.key, memory, "memory")
    sequences = len(memory.k if isinstance(memory, KeysAndValues) else memory)
    if sequences != x.shape[0]:
        raise ValueError(
            f"x holds {x.shape[0]} sequences and memory {sequences}: sequence b of x attends "
            f"to sequence b of memory. Give the same number of both."
        )
    if module.positions is not None:
        raise ValueError(
            f"{module.positions} measures distances within one sequence; x and memory are two. "
            f"Use positions=None for attention to a memory."
        )
    if causal:
        raise ValueError(
            "causal=True hides the future of one sequence; x and memory are two. Pass a mask if "
            "parts of the memory must be hidden."
        )
    if cache is not None:
        raise ValueError(
            "cache and memory are given together: a memory does not grow, so appending it at each "
            "step would repeat it. Use the cache for self-attention only."
        )


def _require_keys_and_values(module, memory: KeysAndValues) -> None:
    heads, d_head = module.n_kv_heads, module.d_head
    for name, x in zip(("k", "v"), memory, strict=True):
        checks.require_float_tensor(x, f"memory.{name}")
        fits = x.ndim == 4 and x.shape[1] == heads and x.shape[3] == d_head and x.shape[2] > 0
        if not fits or x.shape != memory.k.shape:
            raise ValueError(
                f"memory.{name} has shape {tuple(x.shape)}; this module reads [batch, {heads}, "
                f"keys, {d_head}] (batch, heads, keys, d_head), as many keys as values. Make them "
                f"by its own keys_and_values(memory)."
            )
