"""The library's rotation and encoding of one pair, for tests/js/rotary_arrows.test.js."""

import torch

from transformer_lib.positions import apply_rotary, rotary_angles, sinusoidal_encoding

PLACES = [(5, 2, 0), (0, 31, 7), (12, 12, 3)]  # of query and key, and words before the text


def fixtures() -> dict[str, object]:
    """Inputs and results in float64, as nested lists."""
    arrows = torch.tensor([[1.5, 0.5], [-0.75, 2.0]], dtype=torch.float64)
    return {
        "arrows": arrows.tolist(),
        "farthest": 31,
        "cases": [_case(arrows, pair, places) for pair in range(2) for places in PLACES],
    }


def _case(arrows, pair: int, places: tuple[int, int, int]) -> dict[str, object]:
    """The arrows as pair number `pair` of a head of four components, whose base is 50."""
    query, key, before = places
    options = {"base": 50.0, "dtype": torch.float64}
    angles = rotary_angles(80, 4, **options)[:, pair : pair + 1]
    hands = sinusoidal_encoding(80, 4, **options)[:, 2 * pair : 2 * pair + 2]
    turned = [apply_rotary(arrow.expand(80, 2), angles) for arrow in arrows]
    added = [arrow + hands for arrow in arrows]
    return {
        "settings": {
            "query_position": query,
            "key_position": key,
            "before": before,
            "speed": angles[1, 0].item(),
        },
        **{
            name: {
                "query": (q := both[0][query : query + 32])[before].tolist(),
                "key": (k := both[1][key : key + 32])[before].tolist(),
                "scores": (q * k).sum(dim=1).tolist(),
            }
            for name, both in {"turned": turned, "added": added}.items()
        },
    }
