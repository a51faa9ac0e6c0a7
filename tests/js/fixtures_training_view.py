"""Means over the last rows as PyTorch computes them, for curves with and without gaps."""

import torch


def fixtures() -> dict:
    source = torch.Generator().manual_seed(0)
    cases = []
    for rows, window in ((1, 10), (7, 2), (61, 10), (211, 50)):
        loss = 2 * torch.rand(rows, generator=source, dtype=torch.float64)
        gaps = torch.rand(rows, generator=source) < 0.2
        means = []
        for row in range(rows):
            width = max(1, min(window, (row + 1) // 4))
            part = torch.where(gaps, torch.nan, loss)[row + 1 - width : row + 1]
            mean = part.nanmean().item()
            means.append(None if mean != mean else mean)
        values = [None if gap else value for value, gap in zip(loss.tolist(), gaps, strict=True)]
        cases.append({"values": values, "window": window, "means": means})
    return {"cases": cases}
