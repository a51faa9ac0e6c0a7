"""Kills, damage, hostile files and full disks, in numbers: what does a training run survive?

    python benchmarks/soak.py        some minutes on 1 core; make soak

Writes transformer_lib/runs/soak.json. A small GPT is trained again and again in forks of this
process, with dropout, accumulated parts, clipping and ends of epochs: killed at random moments and
at every call of a save, with and without losing what was not yet flushed; its checkpoints damaged,
forged, and saved to disks without room. A resumed run must end in the very bits of the one that was
never interrupted. And a model that Inductor has compiled must have the losses of one that it has
not. What is not as promised ends the program.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import distributed as dist
from torch import nn

from transformer_lib.data.gifts import PLAIN
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import REPOSITORY, RUNS_FOLDER, new_run, save_run

sys.path.append(str(REPOSITORY / "tests" / "support"))

from survival import LONGEST_LIFE, Soak, expect

RECIPE = Recipe.of(
    n_layers=2, n_heads=2, d_model=16, dropout=0.1, block=122, batch_size=6, accumulation=2,
    clip=1.0, n_steps=60, n_stories=40, n_validation=8, evaluate_every=15, save_every=5,
    precision="float32", grammar=PLAIN,
)  # fmt: skip
PROPERTIES = ["-q", "--hypothesis-profile=soak", "-k", "any_model", "tests/test_gpt_steps.py"]


def properties() -> dict[str, int]:
    """The campaign of random models, in a process of its own: how many cases, in how many tests."""
    command = [sys.executable, "-m", "pytest", *PROPERTIES, "--hypothesis-show-statistics"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    expect(done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:])
    passing = [int(n) for n in re.findall(r"- (\d+) passing\D*, 0 failing", done.stdout)]
    expect(min(passing, default=0) >= 1000, f"{passing} cases: fewer than 1,000")
    return {"properties": len(passing), "cases": sum(passing)}


class Joined(Processes):
    """One process that goes through what several do."""

    def join(self, model: nn.Module) -> nn.Module:
        return nn.parallel.DistributedDataParallel(model)

    def joining(self, model: nn.Module, *, last: bool) -> AbstractContextManager:
        return nullcontext() if last else model.no_sync()


def compiled(recipe: Recipe) -> dict[str, float]:
    """Some steps of a model that Inductor has compiled, alone and joined, beside those of a plain
    one.
    """
    from torch._dynamo.utils import counters

    graphs, furthest = [], []
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    for wiring in ("gpt2", "fast"):
        one = recipe.with_changes(wiring=wiring, dropout=0.0, n_layers=1, n_steps=6)
        plain = [step.loss for step in Run(one).steps()]
        for processes in (ALONE, Joined()):
            torch._dynamo.reset()
            counters.clear()
            run = Run(one.with_changes(compiled=True), processes=processes)
            found = [step.loss for step in run.steps()]
            furthest.append(max(abs(x - y) for x, y in zip(found, plain, strict=True)))
            graphs.append(counters["stats"]["unique_graphs"])
    dist.destroy_process_group()
    expect(min(graphs) > 0, f"{graphs} graphs: something was not compiled")
    expect(max(furthest) < 1e-5, f"compiled losses are off by {furthest}")
    return {"graphs": sum(graphs), "largest_difference": max(furthest)}


def main() -> None:
    torch.set_num_threads(1)
    result, seconds = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), RECIPE)
        campaigns = {
            "kills at random moments": lambda: soak.kills(200),
            "kills within a save": soak.kills_in_saves,
            "damaged": lambda: soak.damaged(500),
            "hostile": soak.hostile,
            "full disks": lambda: soak.full_disks(50),
            "random models": properties,
            "compiled": lambda: compiled(RECIPE),  # the last: its threads stay
        }
        for name, campaign in campaigns.items():
            start = time.perf_counter()
            result[name], seconds[name] = campaign(), round(time.perf_counter() - start, 1)
            print(json.dumps({name: result[name] | {"seconds": seconds[name]}}), flush=True)
    config = {"recipe": RECIPE.as_json(), "longest_life_seconds": LONGEST_LIFE}
    log = new_run("soak", config=config, curve={}, result=result | {"seconds": seconds})
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
