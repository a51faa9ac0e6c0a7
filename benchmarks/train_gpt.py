"""From a plain GPT-2 to the fast preset: how long until each reaches the loss GPT-2 ends with.

    python benchmarks/train_gpt.py        about twelve minutes on 2 quiet cores

Writes transformer_lib/runs/train-gpt-ladder.json. Tiny Shakespeare by characters; the loss is
exact, over the whole validation split in windows of 64. Each rung adds to the one before it. It
trains for a number of steps that was found beforehand, so that its schedule ends where the peer's
loss is reached; the log says whether it was, for every seed.

All rungs of a seed take turns, a fiftieth of each run at a time, so that what else the machine does
meets all of them. Evaluations do not count. A machine that is shared stands still now and then, for
seconds, and whom that meets is chance: so times are compared as the number of steps times the
median step. What the clock said, stops included, is in the log as well.
"""

import statistics
import time

import torch
from peers import BATCH, BLOCK, Peer, PeerTrainer

from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.training.device import has_amx
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import make_trainer
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SEEDS, PARTS, PEER = (0, 1, 2), 50, "peer"
_START = Recipe.of(
    data="tiny_shakespeare", wiring="gpt2", dropout=0.0, block=BLOCK, batch_size=BATCH, clip=1.0,
    optimizer="adamw", lr=6e-3, betas=(0.9, 0.99), weight_decay=0.1, schedule="linear", warmup=100,
    n_steps=1200, precision="float32",
)  # fmt: skip
_ROTARY = _START.with_changes(
    model={"positions": "rotary"}, lr=4e-3, betas=(0.9, 0.95), n_steps=850
)
_MUON = Recipe.of(
    data="tiny_shakespeare", wiring="fast", model={"smear": 0}, block=BLOCK, batch_size=BATCH,
    n_iterations=3, n_steps=380, precision="float32",
)  # fmt: skip
_SMEAR = _MUON.with_changes(model={}, n_steps=320)
RUNGS = {
    "higher rate, linear": _START,
    "+ rotary positions": _ROTARY,
    "+ Muon, fast wiring": _MUON,
    "+ smear": _SMEAR,
    "+ bfloat16 by AMX": _SMEAR.with_changes(
        batch_size=24, n_iterations=5, n_steps=165, precision="bfloat16"
    ),
}


class Timed:
    """A trainer, and how long its steps took."""

    def __init__(self, trainer):
        self.trainer = trainer
        self.losses: list[float] = []
        self.seconds: list[float] = []

    def go_on(self, until: int) -> None:
        """Train up to this step."""
        while self.trainer.step < until:
            start = time.perf_counter()
            step = self.trainer.take_step()
            self.seconds.append(time.perf_counter() - start)
            self.losses.append(step if isinstance(step, float) else step.loss)


def make(rung: str, seed: int, corpus: Corpus) -> Timed:
    """A fresh run of this rung."""
    if rung == PEER:
        torch.manual_seed(seed)
        batches = Batches(corpus.training, BATCH, seed=seed)
        return Timed(PeerTrainer(Peer(corpus.tokenizer.size), batches))
    recipe = RUNGS[rung].with_changes(seed=seed)
    return Timed(make_trainer(recipe, corpus, ALONE, torch.device("cpu")))


def train(seed: int, rungs: list[str], corpus: Corpus, columns: dict) -> dict[str, Timed]:
    """All rungs, in turns."""
    runs = {rung: make(rung, seed, corpus) for rung in rungs}
    for part in range(1, PARTS + 1):
        for i, run in enumerate(runs.values()):
            first = run.trainer.step
            run.go_on(run.trainer.n_steps * part // PARTS)
            loss = statistics.fmean(run.losses[first:])
            row = (i, seed, run.trainer.step, loss, sum(run.seconds))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return runs


def main() -> None:
    torch.set_num_threads(2)
    corpus = text_corpus(tiny_shakespeare(), BLOCK)
    rungs = [PEER, *RUNGS] if has_amx() else [PEER, *list(RUNGS)[:-1]]
    columns: dict[str, list] = {
        name: [] for name in ("rung", "seed", "step", "training_loss", "seconds")
    }
    names = ("validation_loss", "clock_seconds", "seconds", "milliseconds", "parameters")
    measured: dict[str, dict] = {rung: {name: [] for name in names} for rung in rungs}
    for seed in SEEDS:
        for rung, run in train(seed, rungs, corpus, columns).items():
            model, step = run.trainer.model, statistics.median(run.seconds)
            clock, seconds = sum(run.seconds), step * run.trainer.n_steps
            precision = getattr(run.trainer, "precision", "float32")
            loss = mean_loss(model, corpus.validation, batch_size=256, precision=precision)
            n_parameters = sum(p.numel() for p in model.parameters())
            row = (loss, clock, seconds, 1000 * step, n_parameters)
            for name, value in zip(names, row, strict=True):
                measured[rung][name].append(value)
            print(
                f"seed {seed} {rung:20} loss {loss:.4f} {run.trainer.n_steps:5} steps "
                f"{seconds:6.1f} s at {1000 * step:.1f} ms a step, {clock:.1f} by the clock",
                flush=True,
            )
    save(rungs, columns, measured)


def save(rungs: list[str], columns: dict, measured: dict[str, dict]) -> None:
    """Compare with the peer, and write the log."""
    peer = measured[PEER]
    aim = statistics.fmean(peer["validation_loss"])
    result = {"loss to reach": aim, "rungs": rungs}
    for rung, values in measured.items():
        faster, by_clock = (
            [theirs / ours for theirs, ours in zip(peer[name], values[name], strict=True)]
            for name in ("seconds", "clock_seconds")
        )
        result[rung] = values | {
            "reached": [loss <= aim for loss in values["validation_loss"]],
            "times faster": faster,
            "median times faster": statistics.median(faster),
            "median times faster by the clock": statistics.median(by_clock),
            "median milliseconds": statistics.median(values["milliseconds"]),
        }
        print(
            f"{rung:20} {result[rung]['median times faster']:5.2f} times faster, reached by "
            f"{sum(result[rung]['reached'])} of {len(SEEDS)} seeds"
        )
    config = {
        "seeds": list(SEEDS), "parts": PARTS,
        "peer": "GPT-2 of Hugging Face in nanoGPT's documented configuration for a CPU",
        "rungs": {rung: RUNGS[rung].as_json() for rung in rungs if rung in RUNGS},
    }  # fmt: skip
    log = new_run("train-gpt-ladder", config=config, curve=columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
