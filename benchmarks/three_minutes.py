"""Three minutes on 2 cores: the preset ``cpu``, from three seeds.

    python benchmarks/three_minutes.py            about ten minutes on 2 quiet cores with AMX
    python benchmarks/three_minutes.py --normuon  the same with NorMuon, or with AVX512_BF16

Writes transformer_lib/runs/shakespeare-three-minutes.json, with ``--normuon``
transformer_lib/runs/normuon-three-minutes.json. Tiny Shakespeare by characters; the loss is exact,
over the whole validation split, in windows of 256, of 128 and of 64. Seconds are those of the
steps; evaluations do not count. How many configurations were tried on the validation split before
this one is said in ``config``.
"""

import argparse
import statistics

import torch

from transformer_lib.data.corpora import Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import make_trainer
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SEEDS, WINDOWS, EVERY = (0, 1, 2), (256, 128, 64), 50
NORMUON = {"optimizer": "normuon", "momentum": 0.9, "lr": 0.04, "n_steps": 1600}
# 14 while the wiring was chosen, 11 for the preset and the ladder, and then those for NORMUON.
CONFIGURATIONS_TRIED = {"shakespeare": 25, "normuon": 25 + 6}
COLUMNS = ("seed", "step", "training_loss", "seconds")


def train(recipe: Recipe, corpus: Corpus, columns: dict[str, list]):
    """A trained model, and the seconds of each of its steps."""
    trainer = make_trainer(recipe, corpus, ALONE, torch.device("cpu"))
    losses, seconds = [], []
    for step in trainer:
        losses.append(step.loss)
        seconds.append(step.seconds)
        if step.step % EVERY == 0 or step.step == recipe.n_steps:
            row = (recipe.seed, step.step, statistics.fmean(losses), sum(seconds))
            for name, value in zip(COLUMNS, row, strict=True):
                columns[name].append(value)
            losses = []
    return trainer.model, seconds


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--normuon", action="store_true", help="the preset with NorMuon")
    name = "normuon" if parser.parse_args(arguments).normuon else "shakespeare"
    torch.set_num_threads(2)
    text, recipe = tiny_shakespeare(), PRESETS["cpu"]
    recipe = recipe.with_changes(**NORMUON) if name == "normuon" else recipe
    corpora = {window: text_corpus(text, recipe.block, window) for window in WINDOWS}
    columns: dict[str, list] = {name: [] for name in COLUMNS}
    result: dict[str, list] = {f"loss in windows of {window}": [] for window in WINDOWS}
    result |= {"seconds": [], "median milliseconds": [], "tokens per second": []}
    for seed in SEEDS:
        model, seconds = train(recipe.with_changes(seed=seed), corpora[WINDOWS[0]], columns)
        for window, corpus in corpora.items():
            loss = mean_loss(model, corpus.validation, batch_size=64)
            result[f"loss in windows of {window}"].append(loss)
        tokens = recipe.n_steps * recipe.batch_size * recipe.block
        result["seconds"].append(sum(seconds))
        result["median milliseconds"].append(1000 * statistics.median(seconds))
        result["tokens per second"].append(tokens / sum(seconds))
        print(f"seed {seed}:", {name: round(values[-1], 4) for name, values in result.items()})
    config = recipe.as_json() | {
        "seeds": list(SEEDS), "parameters": model.n_parameters,
        "configurations tried on the validation split": CONFIGURATIONS_TRIED[name],
    }  # fmt: skip
    log = new_run(f"{name}-three-minutes", config=config, curve=columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
