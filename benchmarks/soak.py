"""Kills, damage, hostile files and full disks, in numbers: what does a training run survive?

    python benchmarks/soak.py        some minutes on 1 core; make soak
    python benchmarks/soak.py --few  a share of it, some seconds

Writes transformer_lib/runs/soak.json (not with --few). A small GPT is trained again and again in
forks of this process, with dropout, accumulated parts, clipping and ends of epochs: killed at
random moments and at every call of a save, with and without losing what was not yet flushed; its
checkpoints damaged, forged, and saved to disks without room. A resumed run must end in the very
bits of the one that was never interrupted. What is not as promised ends the program.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run_log import REPOSITORY, RUNS_FOLDER, new_run, save_run

sys.path.append(str(REPOSITORY / "tests" / "support"))

from survival import LONGEST_LIFE, Soak, expect

RECIPE = Recipe(
    n_layers=2, n_heads=2, d_model=16, dropout=0.1, block=122, batch_size=6, accumulation=2,
    clip=1.0, n_steps=60, n_stories=40, n_validation=8, evaluate_every=15, save_every=5,
    precision="float32",
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


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--few", action="store_true", help="a share of it; write no run log")
    few = arguments.parse_args().few
    torch.set_num_threads(1)
    recipe = RECIPE.with_changes(n_steps=30) if few else RECIPE
    result, seconds = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), recipe)
        campaigns = {
            "kills at random moments": lambda: soak.kills(10 if few else 200),
            "kills within a save": lambda: soak.kills_in_saves(every=5 if few else 1),
            "damaged": lambda: soak.damaged(40 if few else 500),
            "hostile": soak.hostile,
            "full disks": lambda: soak.full_disks(2 if few else 50),
        }
        if not few:
            campaigns["random models"] = properties
        for name, campaign in campaigns.items():
            start = time.perf_counter()
            result[name], seconds[name] = campaign(), round(time.perf_counter() - start, 1)
            print(json.dumps({name: result[name] | {"seconds": seconds[name]}}), flush=True)
    if not few:
        config = {"recipe": recipe.as_json(), "longest_life_seconds": LONGEST_LIFE}
        log = new_run("soak", config=config, curve={}, result=result | {"seconds": seconds})
        print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
