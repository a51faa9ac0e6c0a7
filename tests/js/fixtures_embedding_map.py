"""Cosines and coordinates of some tables, as the widget sends them."""

import json

import numpy as np
import torch

from transformer_lib.widgets import EmbeddingMap


def fixtures() -> dict:
    cases = []
    for seed, (count, d) in enumerate(((3, 2), (7, 5), (30, 96))):
        rows = torch.randn(count, d, generator=torch.Generator().manual_seed(seed))
        words = [f"word{i}" for i in range(count)]
        widget = EmbeddingMap(rows, words)
        text = json.loads(widget._text)
        places = np.frombuffer(widget._places, dtype="<f4")
        cosines = np.frombuffer(widget._cosines, dtype="<f4")
        cases.append(
            {
                "count": count,
                "width": len(text["shares"]),
                "places": places.tolist(),
                "cosines": cosines.tolist(),
                "nearest": [[words.index(w) for w, _ in widget.nearest(word)] for word in words],
            }
        )
    return {"cases": cases}
