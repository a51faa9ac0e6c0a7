"""The loss of a few distributions, as PyTorch computes it."""

import torch
import torch.nn.functional as F


def fixtures() -> dict:
    source = torch.Generator().manual_seed(0)
    cases = []
    for positions, size in ((1, 2), (5, 7), (13, 3)):
        logits = 2 * torch.randn(positions, size, generator=source, dtype=torch.float64)
        targets = torch.randint(size, (positions,), generator=source)
        cases.append(
            {
                "rows": logits.softmax(-1).tolist(),
                "targets": targets.tolist(),
                "each": F.cross_entropy(logits, targets, reduction="none").tolist(),
                "loss": F.cross_entropy(logits, targets).item(),
            }
        )
    return {"cases": cases}
