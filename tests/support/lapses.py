"""A figure of a training that never was: random weights at four moments, and made-up curves."""

import torch

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.timeline import Timeline
from transformer_lib.widgets import TimeLapse

READERS = {"uniform": 1.1, "unigram": 1.0, "bigram": 0.9}
CURVE = {"step": [0, 20, 40], "loss": [1.2, 1.0, 0.9], "share": [0.1, 0.2, 0.8]}


def make_timeline(**changes) -> Timeline:
    sizes = {"vocabulary": 3, "context": 16, "n_layers": 2, "n_heads": 1, "d_model": 8}
    config = GPTConfig.fast(**sizes | {"smear": 0, "projections": "normal"} | changes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = {step: GPT(config).state_dict() for step in (0, 10, 20, 40)}
    return Timeline(config, weights)


def make_lapse(**options) -> TimeLapse:
    return TimeLapse(make_timeline(), CURVE, READERS, **{"length": 12} | options)
