"""A small GPT of the gift stories that has learned nothing yet, as the figure Machine takes it."""

from types import SimpleNamespace

import torch

from transformer_lib.data.gifts import Grammar
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.your_part import using
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.asking import Examined, examine, questions
from transformer_lib.widgets import Machine

SHIPPED = "gifts-v3"
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


def make_examined(seed: int = 0) -> tuple[Examined, Examined]:
    """A head as it is, and without positions."""
    trained = make_trained(seed, context=90)
    asked = questions(trained, 8)
    story = f"{STORIES[0]} who has roses ?"
    before = examine(trained, story, "block-2-head-1", asked)
    with using(trained.model, apply_rotary=lambda x, angles: x):
        return before, examine(trained, story, "block-2-head-1", asked)
