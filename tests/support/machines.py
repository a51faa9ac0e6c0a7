"""A small GPT of the gift stories that has learned nothing yet, as the figure Machine takes it."""

from types import SimpleNamespace

import torch

from transformer_lib.data.gifts import Grammar
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.widgets import Machine

SHIPPED = "gifts-v2"
STORIES = [
    "<story> mary has roses at first . susan has books at first . john has cups at first .",
    "<story> mary has roses at first .",
]


def make_trained(seed: int = 0, **changes) -> SimpleNamespace:
    grammar = Grammar()
    tokenizer = WordTokenizer(grammar.vocabulary)
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 16, "context": 40, "smear": 2}
    sizes |= {"projections": "normal"} | changes
    config = GPTConfig.fast(vocabulary=tokenizer.size, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = GPT(config).eval()
        torch.nn.init.normal_(model.head.weight)  # so that it says something
    return SimpleNamespace(model=model, tokenizer=tokenizer, grammar=grammar)


def make_machine(**options) -> tuple[SimpleNamespace, Machine]:
    trained = make_trained()
    stories = options.pop("stories", STORIES)
    return trained, Machine(trained, stories, **options)
