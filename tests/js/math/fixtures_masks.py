"""Masks, weights and dependencies by torch, for tests/js/math/masks.test.js."""

import torch

from transformer_lib.attention import attention, attention_weights
from transformer_lib.masks import causal_mask, padding_mask, sliding_window_mask


def fixtures() -> dict[str, object]:
    """Masks and numbers in float64, as nested lists."""
    masks = _masks()
    return {
        "presets": _presets(),
        "attention": [_attention(name, mask) for name, mask in masks.items()],
        "reach": [_reach(name, mask) for name, mask in masks.items()],
    }


def _presets() -> list[list[object]]:
    all_words = torch.ones(7, 7, dtype=torch.bool)
    blocks = torch.block_diag(*[torch.ones(3, 3)] * 3)[:7, :7].bool()
    cases = [
        ("causal", {}, causal_mask(7)),
        ("padding", {"real": 4}, padding_mask([4], 7)[0].expand(7, 7)),
        ("sliding window", {"window": 3}, sliding_window_mask(7, 3)),
        ("bidirectional", {}, all_words),
        ("block", {"block": 3}, blocks),
    ]
    return [[name, sizes, mask.tolist()] for name, sizes, mask in cases]


def _masks() -> dict[str, torch.Tensor]:
    leak = sliding_window_mask(5, 2)
    leak[0, 3] = True
    drawn = torch.rand(5, 5, generator=torch.Generator().manual_seed(5)) > 0.5
    drawn[2] = False  # a query with nothing to attend to
    drawn[4] = torch.tensor([False, True, False, False, False])  # and one without a choice
    return {"causal": causal_mask(5), "window with a leak": leak, "drawn": drawn}


def _qkv(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    source = torch.Generator().manual_seed(6)
    return tuple(x @ torch.randn(3, width, dtype=x.dtype, generator=source) for width in (2, 2, 7))


def _output(x: torch.Tensor, mask: torch.Tensor, rule: int) -> torch.Tensor:
    q, k, v = _qkv(x)
    if rule == 0:
        return attention(q, k, v, mask)
    scores = q @ k.T / 2**0.5
    if rule == 1:
        return (scores.softmax(-1) * mask) @ v
    return scores.masked_fill(~mask, -1e9).softmax(-1) @ v


def _x() -> torch.Tensor:
    return torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def _attention(name: str, mask: torch.Tensor) -> dict[str, object]:
    q, k, v = _qkv(_x())
    return {
        "name": name,
        "scores": (q @ k.T / 2**0.5).tolist(),
        "v": v.tolist(),
        "mask": mask.tolist(),
        "weights": attention_weights(q, k, mask).tolist(),
        "outputs": [_output(_x(), mask, rule).tolist() for rule in range(3)],
        # Which outputs move when one word's vector moves: by the gradient, an independent witness.
        "depends": [_depends(mask, rule).tolist() for rule in range(3)],
    }


def _depends(mask: torch.Tensor, rule: int) -> torch.Tensor:
    slopes = torch.autograd.functional.jacobian(lambda x: _output(x, mask, rule), _x())
    return slopes.abs().sum(dim=(1, 3)) > 0


def _reach(name: str, mask: torch.Tensor) -> dict[str, object]:
    depends = _depends(mask, 0).double()
    levels = [torch.linalg.matrix_power(depends, layers)[:, 3] > 0 for layers in range(5)]
    return {"name": name, "mask": mask.tolist(), "levels": [level.tolist() for level in levels]}
