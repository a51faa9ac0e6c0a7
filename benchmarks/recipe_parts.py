"""The worth of each part of chapter 12's recipe: the same run, with one part taken away.

    python benchmarks/recipe_parts.py        about six minutes of one core

Writes transformer_lib/runs/recipe-parts.json. A smaller sister of the chapter's model reads
Python's manual by characters, by the chapter's recipe, from three seeds. Then the same without one
part, at this rate and at twice the rate (of which recipe_rates.py finds that it ends lower), or
with one gradient that is a thousand times as long. Losses on unseen text are exact, over the last
tenth. Gradient descent, plain and with momentum, has a rate of its own, the best of four for the
first seed.
"""

import math
import statistics
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_

from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import Corpus, text_corpus
from transformer_lib.data.packing import Batch
from transformer_lib.data.texts import python_docs
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.optimizers import adamw, set_rates
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

BLOCK, BATCH, N_STEPS, SEEDS = 64, 16, 300, (0, 1, 2)
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 64, "positions": "rotary"}
RECIPE = {"lr": 0.004, "weight_decay": 0.1, "warmup": 20, "decay": 0.7, "clip": 1.0}
STRANGE = {"step": 100, "times": 1000.0}
DESCENT = (0.1, 0.3, 1.0, 3.0)  # rates of gradient descent to choose from
DESCENTS = {"gradient descent": 0.0, "gradient descent with momentum": 0.9}
EVERY = 5
WAYS: dict[str, dict[str, Any]] = {
    "all of it": {},
    "no fall of the rate": {"decay": 0.0},
    "no warm-up": {"warmup": 0},
    "no clipping": {"clip": math.inf},
    "one gradient 1,000 times as long": {"strange": True},
    "the same, no clipping": {"strange": True, "clip": math.inf},
    "twice the rate": {"lr": 0.008},
    "twice, no fall of the rate": {"lr": 0.008, "decay": 0.0},
    "twice, no warm-up": {"lr": 0.008, "warmup": 0},
    "twice, no clipping": {"lr": 0.008, "clip": math.inf},
}


def learn(seed: int, changes: dict[str, Any]) -> tuple[float, list[float], float]:
    """The loss on unseen text, the training loss (means of a few), the share of clipped steps."""
    model, corpus, curve, clipped = trained(seed, changes)
    return mean_loss(model, corpus.validation, batch_size=64), curve, clipped


def trained(seed: int, changes: dict[str, Any]) -> tuple[GPT, Corpus, list[float], float]:
    """The model and what it was trained on; then as `learn`. ``sizes`` are changes to the model."""
    recipe, corpus = RECIPE | changes, text_corpus(python_docs(), BLOCK, BLOCK)
    torch.manual_seed(seed)
    sizes = SIZES | recipe.get("sizes", {})
    model = GPT(GPTConfig(vocabulary=corpus.tokenizer.size, context=BLOCK, **sizes))
    if "descent" in recipe:
        momentum = recipe["momentum"]
        optimizer = torch.optim.SGD(model.parameters(), lr=recipe["descent"], momentum=momentum)
    else:
        optimizer = adamw(
            model, lr=recipe["lr"], betas=(0.9, 0.95), weight_decay=recipe["weight_decay"]
        )
    schedule = partial(trapezoid, warmup=recipe["warmup"], decay=recipe["decay"])
    batches, losses, curve = Batches(corpus.training, BATCH, seed=seed), [], []
    n_steps, n_clipped = recipe.get("n_steps", N_STEPS), 0
    for step in range(1, n_steps + 1):
        set_rates(optimizer, schedule(step, n_steps))
        strange = recipe.get("strange") and step == STRANGE["step"]
        loss, norm = _step(model, optimizer, next(batches), recipe["clip"], strange)
        losses.append(loss)
        n_clipped += norm > recipe["clip"]
        if step % EVERY == 0:
            curve.append(statistics.fmean(losses[-EVERY:]))
    return model, corpus, curve, n_clipped / n_steps


def _step(
    model: GPT, optimizer: torch.optim.Optimizer, batch: Batch, clip: float, strange: bool
) -> tuple[float, float]:
    """One step of the chapter's loop; its loss, and the norm of its gradient before clipping."""
    inputs, targets = batch
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    (loss * STRANGE["times"] if strange else loss).backward()
    norm = clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item(), norm.item()


def main() -> None:
    torch.set_num_threads(1)
    ways, rates_of = dict(WAYS), {}
    for way, momentum in DESCENTS.items():
        tried = {rate: {"descent": rate, "momentum": momentum} for rate in DESCENT}
        rates = {rate: learn(SEEDS[0], changes)[0] for rate, changes in tried.items()}
        print(way, rates, flush=True)
        ways[way] = tried[min(rates, key=rates.get)]
        rates_of[f"rates of {way}"] = {str(rate): loss for rate, loss in rates.items()}
    curve: dict[str, list[float]] = {"way": [], "seed": [], "step": [], "training_loss": []}
    ends: dict[str, list[float]] = {}
    clipped: dict[str, list[float]] = {}
    for number, (way, changes) in enumerate(ways.items()):
        ends[way], clipped[way] = [], []
        for seed in SEEDS:
            loss, losses, share = learn(seed, changes)
            ends[way].append(loss)
            clipped[way].append(share)
            for i, mean in enumerate(losses, start=1):
                row = (number, seed, i * EVERY, mean)
                for column, value in zip(curve.values(), row, strict=True):
                    column.append(value)
        print(way, *(f"{loss:.3f}" for loss in ends[way]), flush=True)
    config = SIZES | RECIPE | {
        "data": "python_docs", "block": BLOCK, "batch_size": BATCH, "n_steps": N_STEPS,
        "betas": [0.9, 0.95], "seeds": list(SEEDS), "strange": STRANGE,
    }  # fmt: skip
    result = {"ways": list(ways), "loss": ends, "clipped": clipped} | rates_of
    log = new_run("recipe-parts", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
