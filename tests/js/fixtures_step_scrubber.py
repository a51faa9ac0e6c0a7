"""The library's numbers at every step, for tests/js/step_scrubber.test.js."""

import itertools

import torch
from torch import Tensor

from transformer_lib.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    merge_heads,
    split_heads,
)
from transformer_lib.masks import causal_mask


def fixtures() -> dict[str, object]:
    """Modules with inputs, and every stage of every setting, as nested lists of float64."""
    return {"cases": [_case(seed=1, bias=True), _case(seed=2, bias=False)]}


def _case(*, seed: int, bias: bool, tokens=5, d_model=6, n_heads=3, d_head=7) -> dict[str, object]:
    source = torch.Generator().manual_seed(seed)

    # float32 numbers, since that is what travels to the page; computed with in float64.
    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=source).double()

    module = MultiHeadAttention(d_model, n_heads, d_head=d_head, bias=bias).double()
    for parameter in module.parameters():
        parameter.data = draw(*parameter.shape)
    x, places = draw(tokens, d_model), draw(tokens, d_model)
    order = torch.randperm(tokens, generator=source)
    layers = [module.query, module.key, module.value, module.output]
    pairs = [(layer.weight.T, torch.zeros(len(layer.weight)) if layer.bias is None else layer.bias)
             for layer in layers]  # fmt: skip
    flat = torch.cat([part.flatten() for pair in [(x, places), *pairs] for part in pair])
    settings = itertools.product((1, n_heads), (False, True), (False, True), (None, order))
    return {
        "shape": [tokens, d_model, n_heads, d_head],
        "flat": flat.tolist(),
        "runs": [_run(module, x, places, *setting) for setting in settings],
    }


@torch.no_grad()
def _run(module, x: Tensor, places: Tensor, heads: int, causal: bool, placed: bool, order) -> dict:
    words = (x if order is None else x[order]) + placed * places
    one = _with_heads(module, heads)
    q, k, v = one.project(words[None])
    mask = causal_mask(len(words)) if causal else None
    z = attention(q, k, v, mask)
    scores = q @ k.mT
    return {
        "settings": {
            "heads": heads,
            "causal": causal,
            "placed": placed,
            "order": None if order is None else order.tolist(),
        },
        "q": q[0].tolist(),
        "k": k[0].tolist(),
        "v": v[0].tolist(),
        "raw": scores[0].tolist(),
        "scaled": (scores * q.shape[-1] ** -0.5)[0].tolist(),
        "weights": attention_weights(q, k, mask)[0].tolist(),
        "z": z[0].tolist(),
        "concat": merge_heads(z)[0].tolist(),
        "output": one(words[None], causal=causal)[0].tolist(),
    }


def _with_heads(module: MultiHeadAttention, heads: int) -> MultiHeadAttention:
    """The same matrices with another number of softmaxes."""
    width = module.n_heads * module.d_head
    biased = module.query.bias is not None
    d_model = module.query.in_features
    one = MultiHeadAttention(d_model, heads, d_head=width // heads, bias=biased).double()
    one.load_state_dict(module.state_dict())
    assert split_heads(one.query(torch.zeros(1, 2, d_model).double()), heads).shape[1] == heads
    return one
