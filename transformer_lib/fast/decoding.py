"""A GPT's next token at the least cost: the numbers of ``model(ids, cache)``, sooner.

One token of one sequence is a vector, and each weight is used for it once: no step can be faster
than the memory delivers the weights. ``GPT.forward`` is made for many tokens, and spends as long on
what surrounds the products: looking at arguments, calling modules, many small tensors. Here, all
that does not change from step to step is prepared once, for each part of the model in a function
``*_step`` that returns the step.

Shapes, within a step: ``x [batch, d_model]``, or ``[d_model]`` for one sequence, since a matrix
times a vector is faster than times a matrix of one row. ``place`` is the token's position.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn

from transformer_lib import layers, module_checks
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import Block
from transformer_lib.cache import KeyValueCache, ModelCache
from transformer_lib.gpt import GPT
from transformer_lib.positions import (
    AlibiPositions,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
)

Step = Callable[[Int[Tensor, " batch"]], Float[Tensor, "batch vocabulary"]]

# What is known here by heart, and in which role; a reader's own Block, for one, is not among it.
NOTHING = type(None)
NORMS, DROPOUTS = {nn.Identity, nn.LayerNorm, layers.RMSNorm}, {nn.Identity, nn.Dropout}
ROLES = {
    GPT: {
        "embedding": {nn.Embedding},
        "smear": {NOTHING, layers.Smear},
        "positions": {NOTHING, LearnedPositions, SinusoidalPositions},
        "dropout": DROPOUTS,
        "blocks": {nn.ModuleList},
        "final_norm": NORMS,
        "head": {NOTHING, nn.Linear},
    },
    Block: {
        "attention": {MultiHeadAttention},
        "feed_forward": {layers.FeedForward},
        **{"norm_1": NORMS, "norm_2": NORMS, "dropout": DROPOUTS},
    },
    MultiHeadAttention: {
        **{name: {nn.Linear} for name in ("query", "key", "value", "output")},
        "positions": {NOTHING, RotaryPositions, AlibiPositions},
    },
    layers.FeedForward: {"expand": {nn.Linear}, "contract": {nn.Linear}},
    LearnedPositions: {"table": {nn.Embedding}},
}
KNOWN = {*ROLES, SinusoidalPositions, layers.Smear, nn.Linear, nn.Embedding, *NORMS, *DROPOUTS}
KNOWN |= {nn.ModuleList, nn.ParameterList}


def decoder(model: nn.Module, cache: ModelCache) -> Step:
    """A function from the last token of each sequence to the logits of the one after it.

    It computes ``model(ids.unsqueeze(1), cache)[:, -1]`` and extends the cache: by the steps of
    this module for a GPT that consists of known parts, and by calling any other model. For
    evaluation, without gradients. What the functions of ``sampling`` have checked once is not
    checked at each step. The weights must not change while the function is in use.

    >>> from transformer_lib.gpt import GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12)).eval()
    >>> with torch.no_grad():
    ...     decoder(model, model.new_cache(batch=1))(torch.tensor([3])).shape
    torch.Size([1, 7])
    """
    if is_known(model):
        return gpt_step(model, cache)
    return lambda ids: model(ids.unsqueeze(1), cache)[:, -1]


def is_known(model: nn.Module) -> bool:
    """Whether the steps compute what the model would: known parts, each in its role,
    in 32 or 64 bits, no hooks, the same positions in every block.
    """
    parts = list(model.modules())
    if type(model) is not GPT or any(type(part) not in KNOWN for part in parts):
        return False
    if any(x._forward_hooks or x._forward_pre_hooks or "forward" in vars(x) for x in parts):
        return False
    if not all(plays_its_roles(part) for part in parts) or not alike(model.blocks):
        return False
    weights = {(weight.device.type, weight.dtype) for weight in model.parameters()}
    device, dtype = weights.pop()
    plain = device in ("cpu", "cuda") and dtype in (torch.float32, torch.float64)
    return plain and not weights and not module_checks.autocasts(device)


def plays_its_roles(part: nn.Module) -> bool:
    """Whether each role within ``part`` is played by what is known there; a norm has weights."""
    roles = ROLES.get(type(part), {})
    if any(type(getattr(part, name)) not in known for name, known in roles.items()):
        return False
    if isinstance(part, MultiHeadAttention):
        return module_checks.are_plain((part.query, part.key, part.value))
    return type(part) not in NORMS or isinstance(part, nn.Identity) or part.weight is not None


def alike(blocks: nn.ModuleList) -> bool:
    """Whether all are blocks, and have the same positions within attention: one table for all."""
    if len(blocks) == 0 or any(type(block) is not Block for block in blocks):
        return False
    positions = [block.attention.positions for block in blocks]
    return all(one == positions[0] for one in positions)


@torch.no_grad()
def gpt_step(model: GPT, cache: ModelCache) -> Step:
    """One step of the whole model, from token ids to logits."""
    table, capacity, rotary = model.embedding.weight, cache.capacity, None
    encoding = bias = None
    if model.positions is not None:
        rows = min(capacity, model.config.context)  # a cache may have room for more
        encoding = model.positions(table.new_zeros(rows, table.shape[1]))
    positions = model.blocks[0].attention.positions
    if isinstance(positions, RotaryPositions):
        rotary = turned_ones(positions, capacity, table)
    if isinstance(positions, AlibiPositions):
        bias = positions.bias(1, capacity, table.device, table.dtype)
    shares = [] if model.smear is None else [*model.smear.weights]  # the nearest token's first
    pairs = zip(model.blocks, cache.layers, strict=True)
    blocks = [block_step(block, layer, rotary) for block, layer in pairs]
    normalize = norm_step(model.final_norm)
    head = table if model.head is None else model.head.weight

    @torch.inference_mode()
    def step(ids: Tensor) -> Tensor:
        place = cache.length
        embedded = x = F.embedding(ids, table)
        if shares and cache.last is not None:  # there are fewer vectors near the beginning
            for share, vector in zip(shares, cache.last.unbind(1)[::-1], strict=False):
                x = x + share * vector
        if encoding is not None:
            x = x + encoding[place]
        # ALiBi counts from the last key back: with fewer keys, the end of what it is with all.
        near = None if bias is None else bias[..., capacity - 1 - place :]
        x = x[0] if len(ids) == 1 else x
        for block in blocks:
            x = block(x, place, near)
        if shares:
            cache.remember(embedded.unsqueeze(1), len(shares))
        return product(normalize(x), head).view(len(ids), -1)

    return step


def turned_ones(
    positions: RotaryPositions, n_positions: int, like: Tensor
) -> Complex[Tensor, "{n_positions} pairs"]:
    """What rotary positions make of the number 1: that by which they multiply any other."""
    ones = like.new_ones(n_positions, positions.d_head // 2).to(like.dtype.to_complex())
    turned = positions.rotate(torch.view_as_real(ones).flatten(-2), start=0)
    return torch.view_as_complex(turned.unflatten(-1, (-1, 2)))


def block_step(block: Block, cache: KeyValueCache, rotary: Tensor | None) -> Callable:
    """x, place, bias -> x: as ``Block.forward``."""
    attend = attention_step(block.attention, cache, rotary)
    think = feed_forward_step(block.feed_forward)
    norm_1, norm_2 = norm_step(block.norm_1), norm_step(block.norm_2)

    def pre_norm(x: Tensor, place: int, bias: Tensor | None) -> Tensor:
        x = x + attend(norm_1(x), place, bias)
        return x + think(norm_2(x))

    def post_norm(x: Tensor, place: int, bias: Tensor | None) -> Tensor:
        x = norm_1(x + attend(x, place, bias))
        return norm_2(x + think(x))

    return pre_norm if block.norm == "pre" else post_norm


def attention_step(
    attention: MultiHeadAttention, cache: KeyValueCache, rotary: Tensor | None
) -> Callable:
    """x, place, bias -> x: as ``MultiHeadAttention.forward``, its three projections in one."""
    three = (attention.query, attention.key, attention.value)
    weights = torch.cat([layer.weight for layer in three])
    offsets = None if three[0].bias is None else torch.cat([layer.bias for layer in three])
    output, output_bias = attention.output.weight, attention.output.bias
    shape, scale = (-1, 3, attention.n_heads, attention.d_head), attention.d_head**-0.5
    qk_norm, nothing = attention.qk_norm, weights.new_zeros(())

    def step(x: Tensor, place: int, bias: Tensor | None) -> Tensor:
        qkv = product(x, weights, offsets).view(shape)
        if qk_norm or rotary is not None:
            qkv = qkv.contiguous()
            qk = qkv[:, :2]  # both are written to where they are, in memory of this step's own
            if qk_norm:
                qk.copy_(F.rms_norm(qk, shape[-1:], eps=1e-6))
            if rotary is not None:
                torch.view_as_complex(qk.unflatten(-1, (-1, 2))).mul_(rotary[place])
        keys, values = cache.append(qkv[:, 1:].transpose(0, 1))
        q = qkv[:, 0].reshape(-1, 1, shape[-1])  # one query for each head of each sequence
        scores = torch.baddbmm(
            nothing, q, keys.mT, beta=0, alpha=scale
        )  # scaled within the product
        if bias is not None:
            scores = (scores.unflatten(0, (-1, len(bias))) + bias).flatten(0, 1)
        result = torch.bmm(scores.softmax(dim=-1), values).view(*x.shape[:-1], -1)
        return product(result, output, output_bias)

    return step


def feed_forward_step(layer: layers.FeedForward) -> Callable[[Tensor], Tensor]:
    """x -> x: as ``FeedForward.forward``."""
    activation = layers.ACTIVATIONS[layer.activation]
    expand, expand_bias = layer.expand.weight, layer.expand.bias
    contract, contract_bias = layer.contract.weight, layer.contract.bias

    def step(x: Tensor) -> Tensor:
        return product(activation(product(x, expand, expand_bias)), contract, contract_bias)

    return step


def norm_step(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """x -> x: as LayerNorm, RMSNorm or Identity."""
    if isinstance(norm, nn.Identity):
        return norm.forward
    shape, weight, eps = norm.weight.shape, norm.weight, norm.eps
    if isinstance(norm, layers.RMSNorm):
        return lambda x: F.rms_norm(x, shape, weight, eps)
    bias = norm.bias
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As ``nn.Linear``, by the kernel that is fastest for so few rows.

    A vector's reads each weight once and does nothing else. For a middle number of rows weight · xᵀ
    takes less time than x · weightᵀ: the 24 products of a step, 384 wide and 16 rows high, 4.1 ms
    in place of 6.8; 8 rows 4.1 and 4.6, 64 rows 12.0 and 11.7 (torch 2.13, 2 cores that others
    used, too). The result is its transpose, columns side by side in memory.
    """
    if x.ndim == 1:
        return torch.mv(weight, x) if bias is None else torch.addmv(bias, weight, x)
    if x.device.type != "cpu" or not 8 <= len(x) <= 48:
        return F.linear(x, weight, bias)
    if bias is None:
        return torch.mm(weight, x.t()).t()
    return torch.addmm(bias.unsqueeze(1), weight, x.t()).t()
