"""Run the chapters as other machines would, and name the cells that do not come out as stored.

    python book/elsewhere.py noise        noise in the last place, from the seeds 0, 1 and 2, and 7
                                          more where a model is trained
    python book/elsewhere.py processors   the kernels of older processors; 2 and 4 threads
    python book/elsewhere.py gpu          this machine as it is, with its GPU: into book/gpu.json
    python book/elsewhere.py kernel NAME  another Jupyter kernel: an emulated processor

Names of chapters may follow: 03-scaling.

A cell is named if it prints something else than is stored, if its figure has another word, or if it
fails. Of a cell whose output is not compared (what training gives) only a failure counts; `noise`
keeps the spread of its numbers. What `noise` has found is in book/noise.json, for each chapter as
it was then: `--new` runs the chapters that have changed since, with one seed.
"""

import argparse
import datetime
import json
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import nbformat
import torch
from execution import TIMEOUT, execute
from nbformat import NotebookNode
from noise import SAME_CALL
from notebooks import ROOT, chapters
from stills import wrong
from stored_form import computed_digest, normal_outputs, tags

WRITING = Lock()
LOG, GPU_LOG = ROOT / "book" / "noise.json", ROOT / "book" / "gpu.json"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
NOISE = "import sys; sys.path.append({book!r}); import noise; del noise, sys"
KERNELS = {
    "sse4": ("sse4_2", "default", "SSE4_2", "SSE41"),
    "avx2": ("avx2", "avx2", "AVX2", "AVX2"),
    "avx512": ("avx512f", "avx512", "AVX512", "AVX512_CORE"),
}
THREADS = (2, 4)
MOST_EMULATED = 12 * TIMEOUT  # seconds for a cell on an emulated processor


@dataclass(frozen=True)
class Machine:
    """Another machine: its name, environment and kernel, and what its kernel runs first."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    kernel: str = ""
    startup: str = ""

    @contextmanager
    def running(self) -> Iterator[dict[str, str]]:
        """The environment of its kernels, while they run."""
        with tempfile.TemporaryDirectory() as folder:
            startup = Path(folder, "profile_default", "startup", "first.py")
            startup.parent.mkdir(parents=True)
            startup.write_text(self.startup, encoding="utf-8")
            yield {**self.environment, "IPYTHONDIR": folder}


def noise(seed: int) -> Machine:
    startup = NOISE.format(book=str(ROOT / "book"))
    return Machine(f"noise {seed}", {"NOISE_SEED": str(seed)}, startup=startup)


def processors() -> list[Machine]:
    """The older processors whose kernels this one can run, then more threads."""
    information = Path("/proc/cpuinfo")
    flags = information.read_text("utf-8").split() if information.exists() else []
    found = [
        Machine(
            name,
            {
                "ATEN_CPU_CAPABILITY": aten,
                "MKL_ENABLE_INSTRUCTIONS": mkl,
                "ONEDNN_MAX_CPU_ISA": onednn,
            },
        )
        for name, (flag, aten, mkl, onednn) in KERNELS.items()
        if flag in flags
    ]
    own = [Machine("amx" if "amx_tile" in flags else "as it is")]
    # Threads that wait do not spin: there may be fewer cores than threads.
    waiting = {"OMP_WAIT_POLICY": "passive"}
    return (
        found
        + own
        + [Machine(f"{n} threads", {"OMP_NUM_THREADS": str(n), **waiting}) for n in THREADS]
    )


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def words(cell: NotebookNode) -> str:
    """All that the cell prints and shows, as text."""
    found = []
    for output in normal_outputs(cell.outputs):
        if output.output_type == "stream":
            found.append(output.text)
        elif output.output_type == "error":
            found.append(f"{output.ename}: {output.evalue}")
        else:
            texts = [(k, v) for k, v in output.data.items() if not k.startswith("image/")]
            found += [text for _, text in sorted(texts) if isinstance(text, str)]
    return "\n".join(found)


def fails(cell: NotebookNode) -> bool:
    return any(output.output_type == "error" for output in cell.outputs)


def run(stored: NotebookNode, machine: Machine) -> NotebookNode:
    """A chapter with the outputs of a run on `machine`, all cells, failed or not."""
    nb = deepcopy(stored)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if reason := cell.metadata.get("bits"):
                cell.source = f"{SAME_CALL} {reason}\n{cell.source}"
    limit = MOST_EMULATED if machine.kernel else TIMEOUT
    with machine.running() as environment:
        return execute(nb, limit, kernel=machine.kernel, environment=environment, to_the_end=True)


def differences(stored: NotebookNode, nb: NotebookNode) -> dict[int, str]:
    """What each cell of the run `nb` prints, or its figure says, in place of what is stored: by
    number, from 1.
    """
    numbers = {cell.id: number for number, cell in enumerate(stored.cells, start=1)}
    found = {numbers[cell]: problem for cell, problem in wrong(stored, nb).items()}
    for number, (was, now) in enumerate(zip(stored.cells, nb.cells, strict=True), start=1):
        if was.cell_type != "code" or words(was) == words(now):
            continue
        if "nbval-ignore-output" in tags(was) and not fails(now):
            continue
        lines = unified_diff(words(was).splitlines(), words(now).splitlines(), n=0, lineterm="")
        found[number] = "\n".join(list(lines)[3:])
    return found


def spread(runs: list[NotebookNode]) -> dict[str, list]:
    """By code cell, from 1 (text between them may come and go): the least and the greatest of each
    number that differs from run to run, in lines that have the same words in all of them.
    """
    found = {}
    for number, cells in enumerate(zip(*map(code_cells, runs), strict=True), start=1):
        if "nbval-ignore-output" not in tags(cells[0]):
            continue
        said = [words(cell).splitlines() for cell in cells]
        other, ranges = len({len(lines) for lines in said}) > 1, []
        for lines in zip(*said, strict=False):
            if len({NUMBER.sub("#", line) for line in lines}) > 1:
                other = True
                continue
            columns = zip(*(map(float, NUMBER.findall(line)) for line in lines), strict=True)
            ranges += [[min(column), max(column)] for column in columns if len(set(column)) > 1]
        if found_here := ranges + ["other words from run to run"] * other:
            found[str(number)] = found_here
    return found


def look(
    name: str, stored: NotebookNode, machines: list[Machine], pool: Executor
) -> tuple[set[int], list[NotebookNode]]:
    """Run one chapter on each machine, in `pool`; say which cells differ, and on which."""
    runs = list(pool.map(partial(run, stored), machines))
    found = [differences(stored, nb) for nb in runs]
    differing = set().union(*found)
    for machine, on_this in zip(machines, found, strict=True):
        for number, difference in on_this.items():
            print(f"{name}, cell {number}, {machine.name}:", flush=True)
            print(textwrap.indent(difference[:600], "    "), flush=True)
    if differing and len(found) > 1 and all(each == found[0] for each in found):
        print(f"{name}: alike on all of these, so it is not for the machine's sake", flush=True)
    if not differing:
        print(f"{name}: as stored ({', '.join(m.name for m in machines)})", flush=True)
    return differing, runs


def changed(paths: list[Path]) -> list[Path]:
    """Those of `paths` whose code is not that which book/noise.json speaks of."""
    seen = json.loads(LOG.read_text("utf-8")) if LOG.exists() else {}
    return [p for p in paths if seen.get(p.stem, {}).get("code") != computed_digest(read(p))]


def write(log: Path, name: str, entry: dict[str, Any]) -> None:
    """Put `entry` under `name` into `log`, beside those of chapters that run at the same time."""
    with WRITING:
        entries = json.loads(log.read_text("utf-8")) if log.exists() else {}
        # A line for each chapter.
        entries = sorted({**entries, name: entry}.items())
        lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in entries)
        log.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def note(name: str, nb: NotebookNode, runs: list[NotebookNode]) -> None:
    """Write into book/noise.json that chapter `nb` came out as stored, and what else it gave."""
    numbered = enumerate(code_cells(nb), start=1)
    bits = {str(n): cell.metadata.bits for n, cell in numbered if "bits" in cell.metadata}
    entry = {"code": computed_digest(nb), "seeds": len(runs), "bits": bits, "spread": spread(runs)}
    write(LOG, name, entry)


def keep(log: Path, stored: NotebookNode, name: str, differ: dict[int, str], **facts: Any) -> None:
    """Write into `log` how a chapter came out, as it is now, and `facts` about the machine."""
    entry = {
        "code": computed_digest(stored),
        "date": datetime.date.today().isoformat(),
        **facts,
        "cells": len(code_cells(stored)),
        "differ": {str(number): text for number, text in differ.items()},
    }
    write(log, name, entry)


def gpu() -> str:
    """This machine's GPU, by name; SystemExit if there is none."""
    if not torch.cuda.is_available():
        sys.exit("No GPU of NVIDIA's is here.")
    return torch.cuda.get_device_name()


def beside_a_gpu(path: Path, name: str, pool: Executor) -> set[int]:
    """The numbers of the cells that come out otherwise on this machine, which has a GPU."""
    nb = read(path)
    _, [was] = look(path.stem, nb, [Machine(name)], pool)
    found = differences(nb, was)
    keep(GPU_LOG, nb, path.stem, found, torch=torch.__version__, gpu=name)
    return set(found)


def learns(nb: NotebookNode) -> bool:
    """Whether a chapter trains anything, however small: its claims are about what was learned."""
    steps = ("Trainer(", ".backward()", ".data -=")
    return any(step in cell.source for cell in code_cells(nb) for step in steps)


def noisy(path: Path, seeds: list[int] | None, pool: Executor) -> set[int]:
    """The numbers of the cells that noise changes, under `seeds` or as many as a chapter needs."""
    nb = read(path)
    chosen = seeds or list(range(10 if learns(nb) else 3))
    differing, runs = look(path.stem, nb, [noise(seed) for seed in chosen], pool)
    if seeds is None and not differing:
        note(path.stem, nb, runs)
    return differing


def seeds(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the chapters as other machines would.")
    parser.add_argument("how", choices=["noise", "processors", "gpu", "kernel"])
    parser.add_argument("names", nargs="*", metavar="CHAPTER", help="default: all")
    parser.add_argument("--seeds", type=seeds, help="of the noise: 0,1,2")
    parser.add_argument("--new", action="store_true", help="noise: what has changed, one seed")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    arguments = parser.parse_intermixed_args()
    names = arguments.names
    machines = processors() if arguments.how == "processors" else []
    card = gpu() if arguments.how == "gpu" else ""
    if arguments.how == "kernel":
        name, *names = names or [parser.error("say which kernel")]
        machines = [Machine(name, kernel=name)]
    paths = chapters(names) or sorted((ROOT / "chapters").glob("*.ipynb"))
    if arguments.new:
        paths = changed(paths)

    def one(path: Path) -> int:
        if arguments.how == "noise":
            return len(noisy(path, [0] if arguments.new else arguments.seeds, pool))
        if arguments.how == "gpu":
            return len(beside_a_gpu(path, card, pool))
        return len(look(path.stem, read(path), machines, pool)[0])

    waiting = ThreadPoolExecutor(max(1, len(paths)))  # a chapter waits for all its runs
    with ThreadPoolExecutor(arguments.jobs) as pool, waiting:
        cells = sum(waiting.map(one, paths))
    print(f"{cells} cells of {len(paths)} chapters differ")
    return 1 if cells else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
