"""The library's answers to a few queries of a soft dictionary."""

import torch

from transformer_lib.attention import attention, attention_weights


def fixtures() -> dict:
    source = torch.Generator().manual_seed(0)
    cases = []
    for n, temperature in ((2, 1.0), (5, 0.03), (7, 0.4), (11, 10.0)):
        keys = torch.randn(n, 2, generator=source, dtype=torch.float64)
        values = 50 * torch.randn(n, generator=source, dtype=torch.float64)
        query = torch.randn(1, 2, generator=source, dtype=torch.float64)
        cases.append(
            {
                "keys": keys.tolist(),
                "values": values.tolist(),
                "query": query[0].tolist(),
                "temperature": temperature,
                "weights": attention_weights(query, keys, scale=1 / temperature)[0].tolist(),
                "answer": attention(query, keys, values[:, None], scale=1 / temperature).item(),
            }
        )
    return {"cases": cases}
