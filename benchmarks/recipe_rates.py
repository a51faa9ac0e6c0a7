"""Chapter 12's recipe at five rates, and its falling rate in a longer run.

    python benchmarks/recipe_rates.py        about three minutes of one core

Writes transformer_lib/runs/recipe-rates.json. The run is that of recipe_parts.py, a smaller sister
of the chapter's. First at rates each twice as large as the one before, from one seed, with the
share of steps that were clipped. Then four times as long, with the rate falling and without.
"""

from typing import Any

import torch
from recipe_parts import EVERY, N_STEPS, RECIPE, SIZES, learn

from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

RATES = (0.001, 0.002, 0.004, 0.008, 0.016)
LONG, SEEDS = 4 * N_STEPS, (0, 1)
LONG_WAYS: dict[str, dict[str, Any]] = {"falling": {}, "no fall": {"decay": 0.0}}


def main() -> None:
    torch.set_num_threads(1)
    rates: dict[str, float] = {}
    clipped: dict[str, float] = {}
    for rate in RATES:
        rates[str(rate)], _, clipped[str(rate)] = learn(0, {"lr": rate})
        print(rate, f"{rates[str(rate)]:.3f}, clipped {clipped[str(rate)]:.0%}", flush=True)
    curve: dict[str, list[float]] = {"way": [], "seed": [], "step": [], "training_loss": []}
    ends: dict[str, list[float]] = {way: [] for way in LONG_WAYS}
    for seed in SEEDS:
        for number, (way, changes) in enumerate(LONG_WAYS.items()):
            loss, losses, _ = learn(seed, changes | {"n_steps": LONG})
            ends[way].append(loss)
            print(way, f"seed {seed}, {loss:.3f}", flush=True)
            for i, mean in enumerate(losses, start=1):
                row = (number, seed, i * EVERY, mean)
                for column, value in zip(curve.values(), row, strict=True):
                    column.append(value)
    config = SIZES | RECIPE | {
        "data": "python_docs", "n_steps": N_STEPS, "long": LONG, "seeds": list(SEEDS),
    }  # fmt: skip
    result = {"rates": rates, "clipped": clipped, "ways": list(LONG_WAYS), "long": ends}
    log = new_run("recipe-rates", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
