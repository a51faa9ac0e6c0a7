"""The library's scores and weights of a sentence with a matrix between query and key."""

import torch

from transformer_lib.attention import attention_weights


def fixtures() -> dict:
    source = torch.Generator().manual_seed(0)
    cases = []
    for s, d in ((2, 3), (5, 3), (7, 5)):
        X = torch.randn(s, d, generator=source, dtype=torch.float64)
        A = torch.randn(d, d, generator=source, dtype=torch.float64)
        scores = X @ A @ X.T
        cases.append(
            {
                "vectors": X.tolist(),
                "matrix": A.tolist(),
                "scores": scores.tolist(),
                "weights": attention_weights(X @ A, X, scale=1.0).tolist(),
                "asymmetry": (scores - scores.T).abs().max().item(),
            }
        )
    return {"cases": cases}
