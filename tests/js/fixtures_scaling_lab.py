"""Entropies and Jacobians of a few softmaxes, raw and scaled, as PyTorch has them."""

import torch
from torch.autograd.functional import jacobian

from transformer_lib.attention import attention_weights


def fixtures() -> dict:
    source = torch.Generator().manual_seed(0)
    cases = []
    for n, d_k in ((2, 1), (5, 3), (7, 64), (10, 1024)):
        q = torch.randn(1, d_k, generator=source, dtype=torch.float64)
        k = torch.randn(n, d_k, generator=source, dtype=torch.float64)
        case = {"scores": (q @ k.T)[0].tolist(), "d_k": d_k}
        for name, scale in (("raw", 1.0), ("scaled", None)):
            weights = attention_weights(q, k, scale=scale)[0]
            scores = (q @ k.T)[0] * (1.0 if scale else d_k**-0.5)
            case[name] = {
                "weights": weights.tolist(),
                "entropy": torch.special.entr(weights).sum().item(),
                "jacobian": (J := jacobian(lambda s: s.softmax(0), scores)).norm().item(),
                "largest": weights.max().item(),
                "slope": J.diag()[weights.argmax()].item(),
            }
        cases.append(case)
    return {"cases": cases}
