"""Chapter 12's question: which rule finds the owner, each at the best of a few rates?

    python benchmarks/optimizers.py                       about ten minutes on one quiet core
    python benchmarks/optimizers.py --seeds 1 --rates 2   about three: one seed, two rates each

Writes transformer_lib/runs/optimizers.json, which chapters 12 and 12b read. A small GPT reads
gift stories; gradient descent, momentum, AdamW and Muon train it, with the same trapezoid and
clipping. Each is tried at three rates from the first seed; that with the lowest loss on unseen
stories then trains from the other seeds. Then, at Muon's best rate, Muon with more iterations and
with an exact decomposition; and, at AdamW's, embeddings that begin with GPT-2's spread.
"""

import argparse
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import torch

from transformer_lib.data.batches import Batches
from transformer_lib.data.gifts import PLAIN, Grammar
from transformer_lib.data.packing import pack
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training import optimizers, schedules
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

NAMES = {
    "people": ["mary", "susan", "john", "peter"],
    "gifts": ["roses", "books", "apples", "pens"],
}
# Chapter 12's stories: mostly questions, and *the* is the one word that may be left out.
STORIES = PLAIN | {"n_gifts": 2, "n_sentences": 4, "the": 0.5}
STORIES |= {"give": 0.2, "give_it": 0.1, "ask": 0.7}
GRAMMAR = Grammar(**NAMES, **STORIES)
MODEL = {"n_layers": 2, "n_heads": 4, "d_model": 64, "positions": "rotary", "smear": 3}
MODEL |= {"smear_start": 0.5, "embedding_std": 0.3, "tied": False}
SEEDS, N_STEPS, BATCH, EVERY, UNSEEN = (0, 1, 2), 300, 32, 100, 150
ADAMW_LR = 0.01  # of the parameters that Muon leaves to AdamW
CLIP, WARMUP, DECAY, SMALL = 1.0, 20, 0.7, 0.02

Make = Callable[[GPT, float], torch.optim.Optimizer]


def sgd(model: GPT, lr: float, momentum: float = 0.0) -> torch.optim.Optimizer:
    """PyTorch's, whose momentum is a sum of gradients, about 1 / (1 - momentum) times their mean.

    The rate is that of the mean.
    """
    return torch.optim.SGD(model.parameters(), lr * (1 - momentum), momentum=momentum)


def muon(model: GPT, lr: float, n_iterations: int = 3) -> torch.optim.Optimizer:
    """Muon, with AdamW's rate for the others fixed."""
    return Muon(model, lr, adamw_lr=ADAMW_LR, n_iterations=n_iterations)


def plain_adamw(model: GPT, lr: float) -> torch.optim.Optimizer:
    """AdamW without decay."""
    return adamw(model, lr, weight_decay=0.0)


RULES: dict[str, tuple[Make, tuple[float, ...]]] = {
    "gradient descent": (sgd, (1.0, 0.5, 2.0)),
    "momentum": (partial(sgd, momentum=0.9), (1.0, 2.0, 0.5)),
    "AdamW": (plain_adamw, (0.01, 0.02, 0.005)),
    "Muon": (muon, (0.02, 0.01, 0.04)),
}


def exactly(matrices: torch.Tensor, n_iterations: int, *, dtype=None) -> torch.Tensor:
    """UVᵀ by a decomposition, in place of the iteration."""
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    return u @ vh


class Task:
    """The stories, packed, and what is measured on the unseen ones."""

    def __init__(self) -> None:
        tokenizer = WordTokenizer(GRAMMAR.vocabulary)
        stories, unseen = GRAMMAR.stories(8_000, seed=1), GRAMMAR.stories(UNSEEN, seed=2)
        packed = [
            pack([tokenizer.encode(story) for story in part], GRAMMAR.max_words)
            for part in (stories, unseen)
        ]
        self.vocabulary, (self.training, self.unseen) = tokenizer.size, packed
        places = [[q.position for q in GRAMMAR.questions(story)] for story in unseen]
        self.asked, self.floor = self.unseen.mark(places), GRAMMAR.floor(unseen)

    def run(self, make: Make, lr: float, seed: int, **changes) -> dict[str, list[float]]:
        """Loss and right answers on unseen stories, at each of the marks."""
        torch.manual_seed(seed)
        sizes = {"vocabulary": self.vocabulary, "context": GRAMMAR.max_words}
        model = GPT(GPTConfig(**sizes | MODEL | changes))
        schedule = partial(schedules.trapezoid, warmup=WARMUP, decay=DECAY)
        trainer = Trainer(
            model, make(model, lr), Batches(self.training, BATCH, seed=seed), n_steps=N_STEPS,
            schedule=schedule, clip=CLIP, precision="float32",
        )  # fmt: skip
        found: dict[str, list[float]] = {"loss": [], "answers": []}
        for step in trainer:
            if step.step % EVERY == 0:
                found["loss"].append(mean_loss(model, self.unseen))
                found["answers"].append(answer_accuracy(model, self.unseen, self.asked))
        print(f"rate {lr}, seed {seed}: loss {found['loss'][-1]:.4f}, ", end="")
        print(f"answers {found['answers'][-1]:.1%}", flush=True)
        return found

    def runs(self, make: Make, lr: float, seeds, first=None, **changes) -> dict[str, object]:
        """The same from each seed; ``first`` is the run of the first one, if it is known."""
        each = [] if first is None else [first]
        each += [self.run(make, lr, seed, **changes) for seed in seeds[len(each) :]]
        return {
            "rate": lr,
            "loss": [found["loss"][-1] for found in each],
            "answers": [found["answers"][-1] for found in each],
            "loss by step": [found["loss"] for found in each],
            "answers by step": [found["answers"] for found in each],
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many")
    parser.add_argument("--rates", type=int, default=3, help="how many of each rule")
    options = parser.parse_args()
    seeds = SEEDS[: options.seeds]
    torch.set_num_threads(1)
    task, tried, best = Task(), {}, {}
    for rule, (make, rates) in RULES.items():
        print(rule, flush=True)
        found = {lr: task.run(make, lr, seeds[0]) for lr in rates[: options.rates]}
        tried[rule] = [[lr, each["loss"][-1]] for lr, each in found.items()]
        rate = min(found, key=lambda lr: found[lr]["loss"][-1])
        best[rule] = task.runs(make, rate, seeds, found[rate])
    rate = best["Muon"]["rate"]
    others = {"Muon, 5 iterations": task.runs(partial(muon, n_iterations=5), rate, seeds)}
    with patch.object(optimizers, "orthogonalize", exactly):
        others["Muon, exact"] = task.runs(muon, rate, seeds)
    small = task.runs(plain_adamw, best["AdamW"]["rate"], seeds, embedding_std=SMALL)
    others[f"AdamW, embeddings from {SMALL}"] = small
    config = {
        "grammar": NAMES | STORIES, "model": MODEL, "seeds": list(seeds), "n_steps": N_STEPS,
        "batch_size": BATCH, "adamw_lr": ADAMW_LR, "clip": CLIP, "warmup": WARMUP, "decay": DECAY,
        "loss by rate, first seed": tried,
    }  # fmt: skip
    curve: dict[str, list[float]] = {"step": list(range(EVERY, N_STEPS + 1, EVERY))}
    for rule, found in best.items():
        for seed, losses in zip(seeds, found["loss by step"], strict=True):
            curve[f"{rule}, seed {seed}: loss"] = losses
    result = {"floor": task.floor, "best": best, "others": others}
    log = new_run("optimizers", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
