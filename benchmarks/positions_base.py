"""Sinusoids and rotary positions with a base of 10: are slow hands why they break on long texts?

    python benchmarks/positions_base.py        about 4 minutes on one core

Writes transformer_lib/runs/positions-base.json, which chapter 07c and its deeper page read. With
the usual base of 10,000 most hands do not go round within the trained LENGTH, so beyond it they
come to angles that no training has shown. With a base of 10 every hand goes round within it: 61
positions for the slowest of the sinusoids, 54 for the slowest of a rotary head. All else is as in
positions.py: its models, text, recipe, seeds and measure.
"""

import torch
from positions import SEEDS, Curve, new_model, read_text, recipe, train

from transformer_lib.gpt import GPT
from transformer_lib.positions import RotaryPositions, SinusoidalPositions
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

BASE = 10.0
METHODS = ("sinusoidal", "rotary")


def with_base(model: GPT, base: float) -> GPT:
    """Let a model that is not trained yet count with another base than 10,000."""
    if isinstance(model.embedding.positions, SinusoidalPositions):
        model.embedding.positions = SinusoidalPositions(model.config.d_model, base=base)
        return model
    for block in model.blocks:
        block.attention.positions = RotaryPositions(model.config.d_head, base=base)
    return model


def main() -> None:
    torch.set_num_threads(1)
    tokenizer, train_ids, held_out, said = read_text()
    curve = Curve()
    for seed in range(SEEDS):
        for number, method in enumerate(METHODS):
            model = train(with_base(new_model(method, seed, tokenizer.size), BASE), seed, train_ids)
            curve.measure(model, number, method, seed, held_out)
    config = {"methods": list(METHODS), "base": BASE, **recipe(), **said}
    log = new_run("positions-base", config=config, curve=curve.columns, result={})
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
