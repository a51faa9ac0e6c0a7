"""Rung 3 of the ladder in two parts: what did Muon bring, and what the wiring that came with it?

    python benchmarks/optimizer_rungs.py        about eleven minutes of one core

Writes transformer_lib/runs/optimizer-rungs.json. Tiny Shakespeare by characters, as in
train_gpt.py, whose rungs 2 and 3 these are: AdamW on GPT-2's wiring with rotary positions, and Muon
on the fast wiring. Here each optimizer trains each wiring, for as many steps as rung 3 has; AdamW
trains the fast wiring for as many as rung 2, too. Each pair has its rate chosen from several, by
the loss that is reported (exact, over the whole validation split), from the first seed. Then the
others follow at that rate.
"""

import statistics
import time
from dataclasses import dataclass

import torch
from peers import BLOCK
from train_gpt import RUNGS

from transformer_lib.data.corpora import Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import make_trainer
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SEEDS = (0, 1, 2)
_ADAMW, _MUON = RUNGS["+ rotary positions"], RUNGS["+ Muon, fast wiring"]
SHORT, LONG = _MUON.n_steps, _ADAMW.n_steps
_GPT2 = {"wiring": "gpt2", "model": _ADAMW.model.options}
_FAST = {"wiring": "fast", "model": _MUON.model.options}
_SOONER = {"n_steps": SHORT, "warmup": _ADAMW.schedule.warmup * SHORT // LONG}


@dataclass(frozen=True)
class Way:
    """A recipe, and the rates to choose from."""

    recipe: Recipe
    rates: tuple[float, ...]


WAYS = {
    "AdamW, rung 2's wiring": Way(_ADAMW.with_changes(**_SOONER), (0.004, 0.008)),
    "AdamW, fast wiring": Way(
        _ADAMW.with_changes(**_SOONER, **_FAST), (0.002, 0.004, 0.008, 0.016)
    ),
    "Muon, rung 2's wiring": Way(_MUON.with_changes(**_GPT2), (0.015, 0.03)),
    "Muon, fast wiring": Way(_MUON, (0.03,)),
    "AdamW, fast wiring, longer": Way(_ADAMW.with_changes(**_FAST), (0.004, 0.008)),
}
COLUMNS = ("way", "rate", "seed", "steps", "loss", "milliseconds")


def measure(recipe: Recipe, corpus: Corpus) -> tuple[float, float]:
    """The loss on unseen text in the end, and the median of a step, of the processor's time."""
    trainer = make_trainer(recipe, corpus, ALONE, torch.device("cpu"))
    milliseconds = []
    for _ in range(recipe.n_steps):
        start = time.process_time()
        trainer.take_step()
        milliseconds.append(1000 * (time.process_time() - start))
    loss = mean_loss(trainer.model, corpus.validation, batch_size=256, precision="float32")
    return loss, statistics.median(milliseconds)


def main() -> None:
    torch.set_num_threads(1)
    corpus = text_corpus(tiny_shakespeare(), BLOCK)
    rows: list[tuple[float, ...]] = []
    result = {}

    def run(number: int, name: str, rate: float, seed: int) -> float:
        recipe = WAYS[name].recipe.with_changes(lr=rate, seed=seed)
        loss, milliseconds = measure(recipe, corpus)
        rows.append((number, rate, seed, recipe.n_steps, loss, milliseconds))
        print(name, dict(zip(COLUMNS[1:], rows[-1][1:], strict=True)), flush=True)
        return loss

    for number, (name, way) in enumerate(WAYS.items()):
        tried = {rate: run(number, name, rate, SEEDS[0]) for rate in way.rates}
        best = min(tried, key=tried.__getitem__)
        losses = [tried[best], *(run(number, name, best, seed) for seed in SEEDS[1:])]
        rates = {str(rate): loss for rate, loss in tried.items()}
        steps = way.recipe.n_steps
        result[name] = {"rates": rates, "rate": best, "losses": losses, "steps": steps}
    config = {"seeds": list(SEEDS), "ways": {n: way.recipe.as_json() for n, way in WAYS.items()}}
    curve = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    log = new_run("optimizer-rungs", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
