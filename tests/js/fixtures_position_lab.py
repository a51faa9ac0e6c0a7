"""The library's positions, for tests/js/position_lab.test.js."""

import torch

from transformer_lib.attention import attention_weights
from transformer_lib.positions import (
    alibi_bias,
    apply_rotary,
    rotary_angles,
    shift_matrix,
    sinusoidal_encoding,
)
from transformer_lib.widgets.position_lab.widget import METHODS, VIEWS

SETTINGS = [(7, 10, 10_000.0, 2, 3), (11, 4, 50.0, 6, -5), (5, 32, 1e6, 0, 0)]


def fixtures() -> dict[str, object]:
    """Inputs and results in float64, as nested lists."""
    return {
        "methods": METHODS,
        "views": VIEWS,
        "sinusoidal": [_sinusoidal(*case) for case in SETTINGS],
        "rotary": [_rotary(*case) for case in SETTINGS],
        "alibi": [_alibi(heads, n, head) for heads, n, head in [(8, 7, 2), (5, 11, 4)]],
    }


def _case(n: int, width: int, base: float, position: int, offset: int) -> dict[str, object]:
    return {"n": n, "width": width, "base": base, "position": position, "offset": offset}


def _sinusoidal(n: int, width: int, base: float, position: int, offset: int) -> dict[str, object]:
    rows = sinusoidal_encoding(n, width, base=base, dtype=torch.float64)
    turned = rows[position] @ shift_matrix(offset, width, base=base, dtype=torch.float64)
    return {
        **_case(n, width, base, position, offset),
        "rows": rows.tolist(),
        "scores": (rows @ rows.T).tolist(),
        "turned": turned.tolist(),
    }


def _rotary(n: int, width: int, base: float, position: int, offset: int) -> dict[str, object]:
    """One vector, every pair of it (0, 1), at all positions."""
    angles = rotary_angles(n, width, base=base, dtype=torch.float64)
    rows = apply_rotary(torch.tensor([0.0, 1.0]).double().repeat(n, width // 2), angles)
    return {
        **_case(n, width, base, position, offset),
        "angles": angles.tolist(),
        "rows": rows.tolist(),
        "scores": (rows @ rows.T).tolist(),
    }


def _alibi(heads: int, n: int, head: int) -> dict[str, object]:
    bias = alibi_bias(heads, n, n, dtype=torch.float64)
    zeros = torch.zeros(heads, n, 2, dtype=torch.float64)
    weights = attention_weights(zeros, zeros, causal=True, bias=bias)
    return {
        "heads": heads,
        "n": n,
        "head": head,
        "scores": bias[head].tolist(),
        "weights": weights[head].tolist(),
    }
