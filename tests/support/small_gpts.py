"""Small GPTs for the tests of sampling and of beams."""

import torch

from transformer_lib.gpt import GPT, GPTConfig

CONTEXT, VOCABULARY = 13, 5
SIZES = {"vocabulary": VOCABULARY, "context": CONTEXT, "n_layers": 2, "n_heads": 3, "d_model": 12}


def make(config=None):
    """A small model with opinions."""
    model = GPT(GPTConfig.fast(**SIZES) if config is None else config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def prompt(batch=2, tokens=3):
    return torch.randint(VOCABULARY, (batch, tokens))
