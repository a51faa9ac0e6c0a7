"""One process and two that train the same GPT on the same batches: how much faster, and how equal?

    python benchmarks/scaling.py        about a minute on 2 cores

Writes transformer_lib/runs/scaling.json. ``torchrun`` starts the processes on this machine's CPU
(gloo), each with one thread. The batch is that of all processes together, so two of them take half
of its rows each: the work of a step is the same, and so must be its loss, up to rounding. One and
two processes take turns, each from the start; the time of a step is the median of all turns' steps
but the first ones.

How large rounding is, is measured as well: one process that adds up its gradient in two parts
differs from one that does not by the order of a sum alone. (The rate is small, because a large one
without warm-up makes steps that overshoot, and these enlarge every difference a hundredfold.)
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import Windows
from transformer_lib.data.texts import python_docs
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.training.distributed import processes
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import adamw
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SIZES = {"context": 64, "n_layers": 4, "n_heads": 4, "d_model": 128}
BATCH, STEPS, WARM_UP, TURNS, RATE = 32, 40, 5, 3, 3e-4


def train(path: Path, n_steps: int, accumulation: int) -> None:
    """One of the processes; the first writes each step's loss and seconds to ``path``."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text = python_docs()
    tokenizer = CharacterTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))
    with processes() as (here, _):
        model = GPT(GPTConfig(vocabulary=tokenizer.size, **SIZES))
        batches = Batches(Windows(ids, SIZES["context"]), BATCH)
        options = {"n_steps": n_steps, "precision": "float32", "processes": here}
        options["accumulation"] = accumulation
        steps = list(Trainer(model, adamw(model, lr=RATE), batches, **options))
        if here.is_first:
            tokens = BATCH * SIZES["context"]
            columns = {
                "loss": [step.loss for step in steps],
                "seconds": [tokens / step.tokens_per_second for step in steps],
                "parameters": model.n_parameters,
                "processes": here.size,
            }
            path.write_text(json.dumps(columns), encoding="utf-8")


def run(n_processes: int, n_steps: int, accumulation: int = 1) -> dict:
    """The output of the first of ``n_processes``, started by torchrun."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "steps.json")
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_processes}"]
        command = [sys.executable, *launch, __file__, str(path)]
        command += [str(n_steps), str(accumulation)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run(command, check=True, env=environment)
        written = json.loads(path.read_text(encoding="utf-8"))
    if written["processes"] != n_processes:
        raise RuntimeError(f"{n_processes} processes were asked for, {written['processes']} came.")
    return written


def difference(losses: list[float], others: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(losses, others, strict=True))


def main() -> None:
    torch.set_num_threads(1)
    curve: dict[str, list[float]] = {
        name: [] for name in ("processes", "turn", "step", "loss", "seconds")
    }
    losses: dict[int, list[float]] = {}
    for turn in range(TURNS):
        for n_processes in (1, 2):
            written = run(n_processes, STEPS)
            losses[n_processes] = written["loss"]
            pairs = zip(written["loss"], written["seconds"], strict=True)
            for step, (loss, seconds) in enumerate(pairs, start=1):
                row = (n_processes, turn, step, loss, seconds)
                for column, value in zip(curve.values(), row, strict=True):
                    column.append(value)
    columns = (curve[name] for name in ("processes", "step", "seconds"))
    rows = [row for row in zip(*columns, strict=True) if row[1] > WARM_UP]
    medians = [statistics.median(s for n, _, s in rows if n == many) for many in (1, 2)]
    result = {
        "seconds_per_step": medians,
        "times_faster": medians[0] / medians[1],
        "largest_difference": difference(losses[1], losses[2]),
        "rounding": difference(losses[1], run(1, STEPS, accumulation=2)["loss"]),
        "parameters": written["parameters"],
    }
    print(result)
    config = {
        **SIZES, "batch": BATCH, "steps": STEPS, "warm_up": WARM_UP, "turns": TURNS, "lr": RATE,
        "optimizer": "AdamW", "precision": "float32", "threads_per_process": 1, "backend": "gloo",
        "text": "python_docs by characters",
    }  # fmt: skip
    log = new_run("scaling", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
