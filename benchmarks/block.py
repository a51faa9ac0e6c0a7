"""One block that has to conclude, from twelve seeds: what each of its parts is worth.

    python benchmarks/block.py        about three minutes on one core

Writes transformer_lib/runs/block.json, which chapter 08 reads: for each seed, how many of the 96
stories of `data.swaps` a classifier of one block gets right. It is trained as in the chapter, by
STEPS steps on 72 of the stories.

- "whole": as it was trained, and "off: PARTS" with some of its parts switched off afterward.
- "never: PARTS": trained anew, from the same start, without these parts.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.blocks import PreNorm
from transformer_lib.classifier import Classifier
from transformer_lib.data import swaps
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SIZES = {"tokens": 11, "d_model": 8, "n_heads": 1, "d_ff": 32, "n_classes": 2}
SEEDS, STEPS, LEARNED, RATE = tuple(range(12)), 300, 72, 5e-3
PARTS = {
    "attention": {"attention"},
    "feed-forward": {"feed_forward"},
    "both residuals": {"residual_1", "residual_2"},
    "norm 1": {"norm_1"},
    "norm 2": {"norm_2"},
    "both norms": {"norm_1", "norm_2"},
}
NEVER = ("feed-forward", "both residuals", "both norms")


class Without(PreNorm):
    """A block some of whose parts are off: what is switched off gives nothing; a norm, its input.

    >>> from transformer_lib.attention import MultiHeadAttention
    >>> from transformer_lib.layers import FeedForward, LayerNorm
    >>> block = Without(MultiHeadAttention(6, 2), FeedForward(6), LayerNorm(6), LayerNorm(6))
    >>> block.off = {"attention", "feed_forward"}
    >>> x = torch.randn(1, 3, 6)
    >>> torch.equal(block(x), x)
    True
    """

    off: frozenset[str] | set[str] = frozenset()

    def wire(self, x, attend, think, norm_1, norm_2):
        x = self.add("residual_1", x, "attention", attend, "norm_1", norm_1)
        return self.add("residual_2", x, "feed_forward", think, "norm_2", norm_2)

    def add(self, residual, x, part, compute, norm, normalize):
        given = compute(x if norm in self.off else normalize(x))
        given = torch.zeros_like(x) if part in self.off else given
        return given if residual in self.off else x + given


def make(seed: int, vocabulary: int) -> Classifier:
    """A fresh classifier, whose block has switches."""
    torch.manual_seed(seed)
    model = Classifier(vocabulary=vocabulary, **SIZES)
    [old] = model.blocks
    model.blocks[0] = Without(old.attention, old.feed_forward, old.norm_1, old.norm_2)
    return model


def train(model: Classifier, ids: Tensor, answers: Tensor) -> None:
    """As the chapter does."""
    learned = torch.randperm(len(ids))[:LEARNED]
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        F.cross_entropy(model(ids[learned]), answers[learned]).backward()
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def right(model: Classifier, ids: Tensor, answers: Tensor) -> int:
    """How many stories it gets right."""
    return int((model(ids).argmax(dim=-1) == answers).sum())


def main() -> None:
    torch.set_num_threads(1)
    stories = swaps.stories()
    tokenizer = WordTokenizer(swaps.vocabulary())
    ids = torch.tensor([tokenizer.encode(story.text) for story in stories])
    answers = torch.tensor([swaps.PEOPLE.index(story.owner) for story in stories])
    names = ["whole", *(f"off: {name}" for name in PARTS), *(f"never: {name}" for name in NEVER)]
    result: dict[str, list[int]] = {name: [] for name in names}
    for seed in SEEDS:
        model = make(seed, tokenizer.size)
        train(model, ids, answers)
        result["whole"].append(right(model, ids, answers))
        for name, off in PARTS.items():
            model.blocks[0].off = off
            result[f"off: {name}"].append(right(model, ids, answers))
        for name in NEVER:
            model = make(seed, tokenizer.size)
            model.blocks[0].off = PARTS[name]
            train(model, ids, answers)
            result[f"never: {name}"].append(right(model, ids, answers))
        print(seed, {name: found[-1] for name, found in result.items()}, flush=True)
    config = SIZES | {
        "seeds": list(SEEDS), "steps": STEPS, "learned": LEARNED, "stories": len(stories),
        "optimizer": f"AdamW at {RATE:g}",
    }  # fmt: skip
    log = new_run("block", config=config, curve={}, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
