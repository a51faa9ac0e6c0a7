"""The library's attention and positions, for the tests of math/linear.js and math/positions.js."""

import torch

from transformer_lib.attention import attention, attention_weights
from transformer_lib.masks import causal_mask
from transformer_lib.positions import (
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    rotary_angles,
    shift_matrix,
    sinusoidal_encoding,
)


def fixtures() -> dict[str, object]:
    """Inputs and results in float64, as nested lists."""
    return {
        "softmax": _softmax(),
        "attention": [_attention(name, **case) for name, case in _attention_cases().items()],
        "causal": [[q, k, causal_mask(q, k).tolist()] for q, k in [(5, 5), (3, 7), (7, 3)]],
        "sinusoidal": _sinusoidal(),
        "rotary": _rotary(),
        "alibi_slopes": [alibi_slopes(n).tolist() for n in (1, 2, 3, 5, 8, 11, 12, 16)],
        "alibi_bias": [
            [n, q, k, alibi_bias(n, q, k).tolist()] for n, q, k in [(3, 5, 7), (4, 7, 7)]
        ],
    }


def _normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _softmax() -> list[dict[str, object]]:
    scores = _normal(3, 11, seed=1) * 5
    return [
        {"scores": row.tolist(), "temperature": t, "weights": (row / t).softmax(0).tolist()}
        for row in [*scores, torch.tensor([900.0, -900.0, 899.0], dtype=torch.float64)]
        for t in (0.05, 1.0, 7.0)
    ]


def _attention_cases() -> dict[str, dict[str, object]]:
    sparse = torch.rand(5, 7, generator=torch.Generator().manual_seed(3)) > 0.6
    sparse[2] = False  # a query that may attend to nothing
    return {
        "plain": {},
        "mask with an empty row": {"mask": sparse},
        "nothing allowed at all": {"mask": torch.zeros(5, 7, dtype=torch.bool)},
        "causal": {"causal": True},
        "causal and mask": {"causal": True, "mask": sparse},
        "scale 1": {"scale": 1.0},
        "bias": {"bias": alibi_bias(3, 5, 7)[1].double()},
    }


def _attention(name: str, **case) -> dict[str, object]:
    q, k, v = _normal(5, 3, seed=4), _normal(7, 3, seed=5), _normal(7, 2, seed=6)
    options = {key: x.tolist() if hasattr(x, "tolist") else x for key, x in case.items()}
    return {
        "name": name,
        "q": q.tolist(),
        "k": k.tolist(),
        "v": v.tolist(),
        "options": options,
        "weights": attention_weights(q, k, **case).tolist(),
        "output": attention(q, k, v, **case).tolist(),
    }


def _sinusoidal() -> list[dict[str, object]]:
    cases = [(11, 6, 10_000.0, 0), (3, 8, 100.0, 1000), (2, 2, 10_000.0, 7)]
    return [
        {
            "n": n,
            "width": d,
            "options": {"base": base, "start": start},
            "encoding": sinusoidal_encoding(
                n, d, base=base, start=start, dtype=torch.float64
            ).tolist(),
            "shift": shift_matrix(5.0, d, base=base, dtype=torch.float64).tolist(),
        }
        for n, d, base, start in cases
    ]


def _rotary() -> list[dict[str, object]]:
    cases = []
    for n, d, base, start in [(5, 6, 10_000.0, 0), (7, 4, 100.0, 300)]:
        x = _normal(n, d, seed=n)
        angles = rotary_angles(n, d, base=base, start=start, dtype=torch.float64)
        cases.append(
            {
                "x": x.tolist(),
                "options": {"base": base, "start": start},
                "angles": angles.tolist(),
                "turned": apply_rotary(x, angles).tolist(),
            }
        )
    return cases
