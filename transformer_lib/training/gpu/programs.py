"""Parts that start programs of their own: the command line, stopped and resumed; two GPUs."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from transformer_lib.training.checkpoints import find_checkpoints, saved_step
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run_log import load_run

TRAINING = ("-m", "transformer_lib.training")


def options_of(recipe: Recipe, text: Path, folder: Path) -> list[str]:
    """Options for ``train`` that make this recipe, on ``text``, out of the preset ``h200``."""
    changes = {"data": str(text), "save_every": max(1, recipe.n_steps // 20)}
    changes |= {"evaluate_every": recipe.n_steps}
    values, preset = recipe.with_changes(**changes).as_json(), PRESETS["h200"].as_json()
    given = {name: value for name, value in values.items() if value != preset[name]}
    options = {"preset": "h200", "folder": folder} | given
    return [
        f"--{name.replace('_', '-')}={json.dumps(value) if isinstance(value, dict) else value}"
        for name, value in options.items()
    ]


@contextmanager
def folder_with(text: str) -> Iterator[tuple[Path, Path]]:
    """An empty folder, and a file of ``text`` in it."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "text.txt"
        file.write_text(text, encoding="utf-8")
        yield Path(name), file


def stopped_and_resumed(device: torch.device, recipe: Recipe, text: str) -> dict[str, Any]:
    """Train, SIGTERM after the first checkpoint, resume to the end, sample: as a reader would."""
    with folder_with(text) as (folder, file):
        run, python = folder / "run", [sys.executable, *TRAINING]
        chosen = f"--device={device}"
        train = [*python, "train", chosen, *options_of(recipe, file, run)]
        with open(folder / "said", "w+", encoding="utf-8") as said:
            program = subprocess.Popen(train, stdout=said, stderr=said)
            try:
                while program.poll() is None and not find_checkpoints(run):
                    time.sleep(0.05)
                program.send_signal(signal.SIGTERM)
                status = program.wait()
            finally:
                program.kill()  # nothing happens if it has ended
                program.wait()
            said.seek(0)
            words = said.read()
        assert status == 128 + signal.SIGTERM, f"{status}: {words[-1000:]}"
        at = saved_step(find_checkpoints(run)[-1])
        outputs = [words]
        for command in (["resume", str(run), chosen], ["sample", str(run), chosen, "--tokens=60"]):
            done = subprocess.run([*python, *command], capture_output=True, text=True)
            assert done.returncode == 0, f"{command[0]}: {done.stderr[-1000:]}"
            outputs.append(done.stdout)
        assert len(outputs[-1]) > 60
        result = load_run(run / "run.json").result
        return {
            "stopped at step": at,
            "of": recipe.n_steps,
            "validation loss": result["validation_loss"],
            "seconds of the steps": result["seconds"],
            "seconds in all": result["wall_seconds"],
        }


def two_processes(device: torch.device, recipe: Recipe, text: str) -> dict[str, Any]:
    """The same run by one process and by two: losses, and seconds of the steps."""
    if device.type == "cuda" and torch.cuda.device_count() < 2:
        return {"left out": "there is one GPU"}
    found: dict[str, Any] = {}
    with folder_with(text) as (folder, file):
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        starts = {"one": [sys.executable], "two": [*launch, "--nproc-per-node=2"]}
        for name, start in starts.items():
            options = options_of(recipe.with_changes(dropout=0.0), file, folder / name)
            command = [*start, *TRAINING, "train", f"--device={device.type}"]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                [*command, *options], capture_output=True, text=True, env=environment
            )
            assert done.returncode == 0, f"{name}: {done.stderr[-1000:]}"
            log = load_run(folder / name / f"{name}.json")
            found[name] = {
                k: log.result[k] for k in ("training_loss", "validation_loss", "seconds")
            }
    apart = abs(found["one"]["validation_loss"] - found["two"]["validation_loss"])
    return found | {"apart": apart}
