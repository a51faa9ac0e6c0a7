"""Many distributions, filtered by the library: random ones, equal logits, extreme settings."""

import itertools

import torch

from transformer_lib.sampling import filter_logits

TEMPERATURES = (0, 0.05, 0.5, 0.8, 1.0, 1.7, 3.0)
TOP_K = (None, 1, 2, 5, 400)
TOP_P = (None, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0)
MIN_P = (0.0, 0.02, 0.1, 0.6, 1.0)


def rows() -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(0)

    def normal(n: int, scale: float) -> torch.Tensor:
        return scale * torch.randn(n, generator=source, dtype=torch.float64)

    return [
        *(normal(n, scale) for n in (1, 2, 13, 61) for scale in (0.1, 2.0, 30.0)),
        normal(331, 3.0),
        torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64).log(),
        torch.zeros(8, dtype=torch.float64),  # all equal
        torch.tensor([1.0, 3.0, 1.0, 3.0, 0.0, 1.0], dtype=torch.float64),  # two and three equal
        torch.tensor([900.0, -900.0, 899.0], dtype=torch.float64),
    ]


def fixtures() -> dict:
    cases = []
    settings = itertools.chain(
        itertools.product(rows(), TEMPERATURES, TOP_K, TOP_P, [None]),
        itertools.product(rows(), TEMPERATURES, [None, 5], [None, 0.9], MIN_P),
    )
    for logits, temperature, top_k, top_p, min_p in settings:
        options = {"top_k": top_k, "top_p": top_p, "min_p": min_p}
        left = filter_logits(logits, temperature=temperature, **options)
        # torch.topk does not say which of equal logits it prefers: there, only the values count.
        tied = top_k is not None and len(logits.unique()) < len(logits)
        cases.append(
            {
                "logits": logits.tolist(),
                "settings": {
                    "temperature": temperature,
                    "topK": top_k,
                    "topP": top_p,
                    "minP": min_p,
                },
                "kept": left.isfinite().tolist(),
                "probabilities": left.softmax(dim=-1).tolist(),
                "tied": tied,
            }
        )
    return {"cases": cases}
