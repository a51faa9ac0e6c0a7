"""The run of chapter 12 on Shakespeare: what it writes on its way, and what each part is worth.

    python benchmarks/first_run.py        about seven minutes of one core, in three processes

Writes transformer_lib/runs/first-run.json. Tiny Shakespeare by characters, in nine tenths of which
a model with rotary positions is trained by AdamW as the chapter does it. Then runs of half as many
steps, from three seeds: the same recipe, and the recipe with one part of it taken away, or with one
gradient that is a thousand times too long. Losses are exact, over the whole last tenth. Samples are
drawn at temperature 1, the first that is drawn; how many of their words the training part has is
counted on a longer one.
Gradient descent has a rate of its own, the best of four for seed 0.
"""

import math
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import torch
from shakespeare import baselines, words_of
from torch.nn.utils import clip_grad_norm_

from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import TRAINING_SHARE, Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.losses import cross_entropy
from transformer_lib.training.optimizers import adamw, set_rates
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

BLOCK, BATCH, N_STEPS, SEEDS, PROCESSES = 64, 16, 600, (0, 1, 2), 3
SHORT = 300  # steps of the runs that are compared
SIZES = {"n_layers": 3, "n_heads": 4, "d_model": 96, "positions": "rotary"}
RECIPE = {"lr": 0.004, "weight_decay": 0.1, "warmup": 20, "decay": 0.7, "clip": 1.0}
PROMPT, SHOWN, COUNTED = "ROMEO:\n", 240, 600  # characters: of a sample, and for its words
WRITES_AT = (0, 25, 50, 100, 150, 200, 300, 400, 500, 600)
STRANGE_STEP, STRANGE = 100, 1000.0
DESCENT = (0.3, 1.0, 3.0, 10.0)  # rates of gradient descent to choose from
EVERY = 5
WITHOUT: dict[str, dict[str, Any]] = {
    "all of it": {},
    "no fall of the rate": {"decay": 0.0},
    "no warm-up": {"warmup": 0},
    "no clipping": {"clip": math.inf},
    "one gradient 1,000 times as long": {"strange": STRANGE},
    "the same, no clipping": {"strange": STRANGE, "clip": math.inf},
}


def learn(seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """A run: its mean losses, the unseen loss at its end; with ``texts``, what it writes."""
    torch.set_num_threads(1)
    recipe, text = RECIPE | changes, tiny_shakespeare()
    corpus = text_corpus(text, BLOCK, BLOCK)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(vocabulary=corpus.tokenizer.size, context=BLOCK, **SIZES))
    optimizer = _optimizer(model, recipe)
    schedule = partial(trapezoid, warmup=recipe["warmup"], decay=recipe["decay"])
    batches = Batches(corpus.training, BATCH, seed=seed)
    n_steps = N_STEPS if recipe.get("texts") else SHORT
    found: dict[str, Any] = {"curve": [], "texts": {}, "losses": {}, "known words": {}}
    losses = []
    for step in range(n_steps + 1):
        if step:
            set_rates(optimizer, schedule(step, n_steps))
            losses.append(_step(model, optimizer, next(batches), recipe, step))
        if step and step % EVERY == 0:
            found["curve"].append((step, statistics.fmean(losses)))
            losses = []
        if recipe.get("texts") and step in WRITES_AT:
            longer = write(model, corpus, COUNTED)
            found["texts"][str(step)] = longer[: len(PROMPT) + SHOWN]
            found["losses"][str(step)] = mean_loss(model, corpus.validation, batch_size=64)
            found["known words"][str(step)] = known(longer, text)
    found["loss"] = mean_loss(model, corpus.validation, batch_size=64)
    found["parameters"] = model.n_parameters
    return found


def _optimizer(model: GPT, recipe: dict[str, Any]) -> torch.optim.Optimizer:
    if "descent" in recipe:
        return torch.optim.SGD(model.parameters(), lr=recipe["descent"])
    return adamw(model, lr=recipe["lr"], betas=(0.9, 0.95), weight_decay=recipe["weight_decay"])


def _step(model: GPT, optimizer: torch.optim.Optimizer, batch, recipe, step: int) -> float:
    """One step of the chapter's loop; its loss."""
    inputs, targets = batch
    loss = cross_entropy(model(inputs), targets) / targets.numel()
    (loss * (recipe.get("strange", 1.0) if step == STRANGE_STEP else 1.0)).backward()
    clip_grad_norm_(model.parameters(), recipe["clip"])
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def write(model: GPT, corpus: Corpus, count: int) -> str:
    """The prompt and ``count`` characters, each drawn from the model's own probabilities."""
    model.eval()
    source = torch.Generator().manual_seed(0)
    ids = corpus.tokenizer.encode(PROMPT)
    for _ in range(count):
        chances = model(torch.tensor([ids[-BLOCK:]]))[0, -1].softmax(dim=-1)
        ids.append(chances.multinomial(1, generator=source).item())
    model.train()
    return corpus.tokenizer.decode(ids)


def known(written: str, text: str) -> float:
    """The share of the words of ``written`` that the training part has."""
    has = set(words_of(text[: int(TRAINING_SHARE * len(text))]))
    words = words_of(written)
    return sum(word in has for word in words) / max(1, len(words))


def all_of(run: Callable[..., dict], jobs: list[tuple[int, dict]]) -> list[dict]:
    with ProcessPoolExecutor(PROCESSES) as pool:
        return list(pool.map(run, *zip(*jobs, strict=True)))


def main() -> None:
    tried = all_of(learn, [(SEEDS[0], {"descent": rate}) for rate in DESCENT])
    losses = {rate: one["loss"] for rate, one in zip(DESCENT, tried, strict=True)}
    best = min(losses, key=losses.get)
    print("gradient descent", losses, flush=True)
    ways = WITHOUT | {"gradient descent": {"descent": best}}
    jobs = [(SEEDS[0], {"texts": True})]
    jobs += [(seed, changes) for changes in ways.values() for seed in SEEDS]
    whole, *found = all_of(learn, jobs)
    names = [way for way in ways for _ in SEEDS]
    curve: dict[str, list] = {"way": [], "seed": [], "step": [], "training_loss": []}
    numbers = [-1, *(list(ways).index(way) for way in names)]  # -1: the whole run
    for way, (seed, _), one in zip(numbers, jobs, [whole, *found], strict=True):
        for step, loss in one["curve"]:
            row = (way, seed, step, loss)
            for column, value in zip(curve.values(), row, strict=True):
                column.append(value)
    ends = {
        way: [one["loss"] for name, one in zip(names, found, strict=True) if name == way]
        for way in ways
    }
    for way, values in ends.items():
        print(way, *(f"{loss:.3f}" for loss in values), flush=True)
    text = tiny_shakespeare()
    corpus = text_corpus(text, BLOCK, BLOCK)
    config = SIZES | RECIPE | {
        "data": "tiny_shakespeare", "block": BLOCK, "batch_size": BATCH, "n_steps": N_STEPS,
        "betas": [0.9, 0.95], "seeds": list(SEEDS), "prompt": PROMPT, "samples": "T = 1, seed 0",
        "counted": COUNTED, "short run": SHORT, "strange step": STRANGE_STEP,
        "parameters": whole["parameters"],
    }  # fmt: skip
    result = {
        "ways": list(ways), "loss": ends, "baselines": baselines(text, corpus),
        "texts": whole["texts"], "losses": whole["losses"],
        "known words": whole["known words"],
        "rates of gradient descent": {str(rate): loss for rate, loss in losses.items()},
    }  # fmt: skip
    log = new_run("first-run", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
