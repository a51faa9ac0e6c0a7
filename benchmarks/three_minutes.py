"""Three minutes on 2 cores: the preset ``cpu``, from three seeds.

    python benchmarks/three_minutes.py            about ten minutes on 2 quiet cores with AMX
    python benchmarks/three_minutes.py --normuon  the same with NorMuon, or with AVX512_BF16
    python benchmarks/three_minutes.py --smears   with NorMuon, and a smear in every layer

Writes transformer_lib/runs/shakespeare-three-minutes.json, with an option
transformer_lib/runs/normuon-three-minutes.json or transformer_lib/runs/smears-three-minutes.json.
Tiny Shakespeare by characters; the loss is exact, over the whole validation split, in windows of
256, of 128 and of 64. Seconds are those of the steps; evaluations do not count. How many
configurations were tried on the validation split before this one is said in ``config``.

With ``--smears``, "cost of a step" is in steps of ``--normuon``, from the processor's time of runs
that take turns.
"""

import argparse
import statistics
import time
from typing import Any

import torch
from torch import nn

from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.gpt import GPT
from transformer_lib.layers import Smear
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.loop import Trainer
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import seed_everything
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SEEDS, WINDOWS, EVERY = (0, 1, 2), (256, 128, 64), 50
NORMUON = {"optimizer": "normuon", "momentum": 0.9, "lr": 0.04, "n_steps": 1600}
SMEARS = NORMUON | {"n_steps": 1450}  # which cost about as much as NORMUON's
ROUNDS = 60
# 14 while the wiring was chosen, 11 for the preset and the ladder, and then those for each option.
CONFIGURATIONS_TRIED = {"shakespeare": 25, "normuon": 25 + 6, "smears": 25 + 6 + 6}
COLUMNS = ("seed", "step", "training_loss", "seconds")


def add_smears(model: GPT) -> None:
    """What a layer of attention, or a feed-forward layer, reads has a smear of its own."""
    for block in model.blocks:
        for name in ("norm_1", "norm_2"):
            smear = Smear(model.config.d_model, reach=1)
            setattr(block, name, nn.Sequential(getattr(block, name), smear))


def make_trainer(recipe: Recipe, corpus: Corpus, smears: bool) -> Trainer:
    seed_everything(recipe.seed)
    model = GPT(recipe.model_config(corpus.tokenizer.size))
    if smears:
        add_smears(model)
    return Trainer(
        model, recipe.make_optimizer(model),
        Batches(corpus.training, recipe.data.batch_size, seed=recipe.seed),
        n_steps=recipe.n_steps, schedule=recipe.factor, precision=recipe.precision,
    )  # fmt: skip


def train(trainer: Trainer, seed: int, columns: dict[str, list]) -> list[float]:
    """The seconds of each step."""
    losses, seconds = [], []
    for step in trainer:
        losses.append(step.loss)
        seconds.append(step.seconds)
        if step.step % EVERY == 0 or step.step == trainer.n_steps:
            row = (seed, step.step, statistics.fmean(losses), sum(seconds))
            for name, value in zip(COLUMNS, row, strict=True):
                columns[name].append(value)
            losses = []
    return seconds


def cost_of_smears(recipe: Recipe, corpus: Corpus) -> float:
    """Of a step, in steps without them."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    trainers = {smears: make_trainer(recipe, corpus, smears) for smears in seconds}
    for _ in range(min(ROUNDS, recipe.n_steps)):
        for smears, trainer in trainers.items():
            start = time.process_time()
            trainer.take_step()
            seconds[smears].append(time.process_time() - start)
    return statistics.median(seconds[True]) / statistics.median(seconds[False])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, told in {"normuon": "the preset with NorMuon", "smears": "and with smears"}.items():
        parser.add_argument(f"--{option}", action="store_true", help=told)
    options = parser.parse_args(arguments)
    name = "smears" if options.smears else "normuon" if options.normuon else "shakespeare"
    changes = {"shakespeare": {}, "normuon": NORMUON, "smears": SMEARS}[name]
    torch.set_num_threads(2)
    text, recipe = tiny_shakespeare(), PRESETS["cpu"].with_changes(**changes)
    corpora = {window: text_corpus(text, recipe.data.block, window) for window in WINDOWS}
    columns: dict[str, list] = {name: [] for name in COLUMNS}
    result: dict[str, Any] = {f"loss in windows of {window}": [] for window in WINDOWS}
    result |= {"seconds": [], "median milliseconds": [], "tokens per second": []}
    for seed in SEEDS:
        chosen = recipe.with_changes(seed=seed)
        trainer = make_trainer(chosen, corpora[WINDOWS[0]], options.smears)
        model, seconds = trainer.model, train(trainer, seed, columns)
        for window, corpus in corpora.items():
            loss = mean_loss(model, corpus.validation, batch_size=64)
            result[f"loss in windows of {window}"].append(loss)
        tokens = recipe.n_steps * recipe.data.batch_size * recipe.data.block
        result["seconds"].append(sum(seconds))
        result["median milliseconds"].append(1000 * statistics.median(seconds))
        result["tokens per second"].append(tokens / sum(seconds))
        print(f"seed {seed}:", {name: round(values[-1], 4) for name, values in result.items()})
    if options.smears:
        result["cost of a step"] = cost_of_smears(recipe, corpora[WINDOWS[0]])
    config = recipe.as_json() | {
        "seeds": list(SEEDS), "parameters": model.n_parameters,
        "configurations tried on the validation split": CONFIGURATIONS_TRIED[name],
    }  # fmt: skip
    log = new_run(f"{name}-three-minutes", config=config, curve=columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
