"""A GPT and data of a size for tests of the training loop."""

import torch

from transformer_lib.data.packing import pack
from transformer_lib.gpt import GPT, GPTConfig

VOCABULARY = 11


def small_gpt(**changes):
    sizes = {"vocabulary": VOCABULARY, "context": 13, "n_layers": 2, "n_heads": 2, "d_model": 12}
    return GPT(GPTConfig(**sizes | changes))


def stories():
    """Blocks with padding of different lengths, so that no two parts have as many targets."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 13, (40,), generator=generator).tolist()
    return pack(
        [[0, *torch.randint(1, VOCABULARY, (n,), generator=generator).tolist()] for n in lengths],
        length=13,
    )
