"""The kernels of ``attention``: PyTorch's fused one, two quick products, and which is faster when.

Arguments are those of ``attention``, and have been checked there.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.masks import causal_mask, combine_masks


def causal_weights(q, k, scale=None) -> Tensor:
    """``attention_weights`` within one causal sequence, where no row is empty: the scale and
    the mask come with the product of q and k, in place of five more passes over the scores.
    """
    tokens, d_k = q.shape[-2:]
    hidden = q.new_full((tokens, tokens), -torch.inf).triu(1)
    many_q, many_k = q.reshape(-1, tokens, d_k), k.reshape(-1, tokens, d_k)
    scale = d_k**-0.5 if scale is None else scale
    scores = torch.baddbmm(hidden, many_q, many_k.mT, alpha=scale)
    return scores.softmax(dim=-1).reshape(*q.shape[:-1], tokens)


def explicit_is_faster(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Where the two products beat the fused kernel: short sequences, in 16 bits, with gradients,
    on the CPU.

    There the kernel's backward pass is slow. Forward and backward of 72 causal sequences of 128
    tokens, 64 wide, in bfloat16: 28 ms fused, 10 ms explicit; of 36 of 256 tokens: 23 and 17 ms.
    They meet at about 512 tokens (torch 2.13, one core with AMX).
    """
    in_16_bits = q.dtype in (torch.bfloat16, torch.float16)
    if q.device.type != "cpu" or not in_16_bits or k.shape[-2] > 384:
        return False
    return torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))


def fused_attention(q, k, v, mask, causal, scale, bias, dropout) -> Tensor:
    """PyTorch's kernel under this book's rules: causal to the bottom right, empty rows zero."""
    mask, bias = (x if x is None else torch.atleast_2d(x) for x in (mask, bias))
    if scale is not None and scale <= 0:  # the kernel would multiply -inf, what is hidden, by it
        q, scale = q * scale, 1.0
    if q.ndim < 4:  # with fewer axes PyTorch would fall back to storing the weights
        axes = (None,) * (4 - q.ndim)
        mask, bias = (x[None] if x is not None and x.ndim == 3 else x for x in (mask, bias))
        qkv = (x[axes] for x in (q, k, v))
        return fused_attention(*qkv, mask, causal, scale, bias, dropout)[(0,) * len(axes)]
    # A vector whose numbers are not side by side would make it fall back as well.
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    queries, keys = q.shape[-2], k.shape[-2]
    causal = causal and queries > 1  # a single query, the last, sees all keys
    options = {"dropout_p": dropout, "scale": scale}
    if causal and queries == keys and mask is None and bias is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, **options)
    if causal:
        mask = combine_masks(mask, causal_mask(queries, keys, device=q.device))
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, **options)
    empty = ~mask.any(dim=-1, keepdim=True)
    allowed = mask | empty  # not every kernel survives an empty row: compute it, then drop it
    added = allowed if bias is None else bias.masked_fill(~allowed, -torch.inf)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=added, **options)
    return output.masked_fill(empty, 0.0)
