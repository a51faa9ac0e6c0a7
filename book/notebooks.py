"""Execute and normalize the chapters: the stored notebooks hold exactly what running them prints.

    python book/notebooks.py [CHAPTER ...]          run, normalize and save (default: all of them)
    python book/notebooks.py --stills [CHAPTER ...] likewise, and take all stills again
    python book/notebooks.py --check [CHAPTER ...]  change nothing; say what is wrong and exit 1

CHAPTER is a name (03-scaling) or a path. A chapter runs top to bottom in an empty folder, unless
neither its code nor the library has changed since it last ran. What is kept of it, and in which
form: stored_form.py; the stills of its figures: stills.py. Checksums in the notebook's metadata
(of its code, of its outputs, of a new palette) let `--check` find a notebook that was edited,
stripped or left behind after it ran, without running it.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

import nbformat
import yaml
from execution import RUNS, Runs, execute
from nbformat import NotebookNode
from palette import FIRST, look
from stills import StillError, attach
from stored_form import (
    PNG,
    code_digest,
    is_setup,
    normalize,
    outputs_digest,
    setup_source,
    tags,
)

ROOT = Path(__file__).resolve().parents[1]
FIX = "run `make notebooks` (or `make notebooks PATHS=...` for one)"
TAKE = f"{FIX} where Chromium is installed"
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
DECIMAL = re.compile(r"(?<![\w.])(\d+\.\d++)(?!\.\d)")  # not the parts of a version, 2.13.0


def load_config() -> dict:
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))


def cell_problems(cell: NotebookNode) -> list[tuple[str, str]]:
    """The problems of one executed code cell: (cause, fix)."""
    found = []
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if "raises-exception" in tags(cell) and not errors:
        found.append(("is tagged raises-exception and raises nothing", "correct cell or tag"))
    if errors and "raises-exception" not in tags(cell):
        found.append((f"stores the error {errors[0].ename}", f"correct the cell, then {FIX}"))
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            first = output.text.strip().splitlines()[:1]
            found.append((f"writes to stderr: {first}", "remove the cause of the warning"))
        data = output.get("data", {})
        texts = [output.get("text", ""), *(data[kind] for kind in data if kind != PNG)]
        texts = [text for text in texts if isinstance(text, str)]
        if PNG not in data:
            if "still" in output.get("metadata", {}):
                found.append(("shows a figure of which there is no still", TAKE))
            if data.get("text/plain", "").startswith("<Figure size "):
                found.append(("shows a plot of which there is no still", FIX))
        if any("svg" in kind for kind in data):
            found.append(("stores an SVG, which differs at every run", "draw it as PNG"))
        for address in {hit for text in texts for hit in ADDRESS.findall(text)}:
            found.append((f"prints {address}, new at every run", "give the object a stable repr"))
        if "nbval-ignore-output" in tags(cell):
            continue
        plain = [output.get("text", ""), data.get("text/plain", "")]
        for number in DECIMAL.findall("\n".join(plain)):
            if len(number.replace(".", "").strip("0")) > 4:
                found.append((f"prints {number}", "print at most 4 significant digits"))
    return found


def problems(path: Path, config: dict) -> list[str]:
    """Everything that keeps the notebook at `path` from being what a fresh run would store."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = json.loads(text)
        if not isinstance(raw, dict) or raw.get("nbformat") != 4:
            raise ValueError("it does not say that it is of nbformat 4")
        nbformat.validate(raw)
        nb = nbformat.reads(text, as_version=4)
    except (ValueError, KeyError, TypeError, nbformat.ValidationError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return [f"{path.name}: is not a valid notebook: {first}. Fix: restore it from git"]
    found = []

    def report(number: int, cause: str, fix: str = FIX) -> None:
        found.append(f"{path.name}, cell {number}: {cause}. Fix: {fix}")

    if not any(map(is_setup, nb.cells[:2])):
        fix = (
            "put a code cell there with the tags `setup` and `hide-cell`, then run `make notebooks`"
        )
        report(2, "is not the setup cell", fix)
    count, stripped = 0, []
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type != "code":
            continue
        count += 1
        if number == 2 and is_setup(cell) and cell.source != setup_source(config):
            report(number, "the setup cell is not the one that _config.yml asks for")
        if cell.execution_count is None:
            stripped.append(number)
        elif cell.execution_count != count:
            report(number, f"is out of order: it ran as [{cell.execution_count}], not [{count}]")
        for cause, fix in cell_problems(cell):
            report(number, cause, fix)
    if stripped:
        also = f" (nor have {len(stripped) - 1} more)" if stripped[1:] else ""
        report(stripped[0], f"is stripped: it has not been run{also}")
    checksums = nb.metadata.get("checksums", {})
    if checksums.get("code") != code_digest(nb):
        found.append(f"{path.name}: is stale: its code has changed since it ran. Fix: {FIX}")
    elif checksums.get("outputs") != outputs_digest(nb):
        cause = "its outputs are not those that its run gave: run or edited elsewhere, or stripped"
        found.append(f"{path.name}: {cause}. Fix: {FIX}")
    if checksums.get("look", FIRST) != look():
        found.append(f"{path.name}: its stills are in other colors than the palette's. Fix: {TAKE}")
    # JupyterLab writes its kernel's name and version when it opens a notebook: that is not an edit.
    normal = normalize(nb, config)
    ours = {key: normal.metadata[key] for key in ("kernelspec", "language_info")}
    as_stored = nbformat.writes(nb) + "\n" == text
    nb.metadata.update(ours)
    if not as_stored or nbformat.writes(nb) != nbformat.writes(normal):
        found.append(f"{path.name}: is not normalized (metadata, ids, outputs, colors). Fix: {FIX}")
    return found


def refresh(
    path: Path, config: dict, runs: Runs | None = None, *, new_stills: bool = False
) -> list[str]:
    """Run and normalize one notebook in place; a failing one stays as it was. Returns problems.

    With `runs`, a run that is kept there is taken for a fresh one, and a fresh one is kept. With
    `new_stills`, or if the palette has changed, no still that is there is kept.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    before = path.read_bytes()
    try:
        stored = normalize(nbformat.read(path, as_version=4), config)
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        return problems(path, config)
    new_stills |= stored.metadata.checksums.get("look", FIRST) != look()
    nb = deepcopy(stored)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    try:
        if runs is None:
            nb = execute(nb)
        elif nb in runs:
            nb = runs.outputs(nb)
        else:
            start = time.perf_counter()
            nb = execute(nb)
            runs.keep(path, nb, time.perf_counter() - start)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return [f"{path.name}: did not run, and was left as it was.\n{error}"]
    try:
        attach(nb, stored, again=new_stills)
    except StillError as error:
        return [f"{path.name}: no still was taken, and it was left as it was.\n{error}"]
    if path.read_bytes() != before:
        return [f"{path.name}: was saved while it ran, and was left as it is. Run this again."]
    nb = normalize(nb, config)
    nb.metadata.checksums = {"code": code_digest(nb), "outputs": outputs_digest(nb)}
    if look() != FIRST:
        nb.metadata.checksums["look"] = look()
    # Written beside it, then renamed: an interruption leaves the old notebook or the new one.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return problems(path, config)


def chapter(name: str) -> Path:
    """The notebook that a path or a chapter's name means."""
    path = Path(name)
    return path if path.suffix == ".ipynb" else ROOT / "chapters" / f"{path.name}.ipynb"


def chapters(names: Iterable[str]) -> list[Path]:
    """The notebooks that some names mean; SystemExit names one that is not there."""
    paths = [chapter(name) for name in names]
    for path in paths:
        if not path.exists():
            sys.exit(f"there is no {path.name} in {path.parent}")
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute and normalize the chapters.")
    parser.add_argument("paths", nargs="*", type=chapter, metavar="CHAPTER", help="default: all")
    parser.add_argument("--check", action="store_true", help="change nothing, report what is wrong")
    parser.add_argument("--stills", action="store_true", help="take all stills again")
    arguments = parser.parse_args()
    config = load_config()
    runs = None if arguments.check else Runs(RUNS)
    found = []
    for path in arguments.paths or sorted((ROOT / "chapters").glob("*.ipynb")):
        start = time.perf_counter()
        if not path.exists():
            new = [f"{path.name}: there is no such file in {path.parent}"]
        elif arguments.check:
            new = problems(path, config)
        else:
            new = refresh(path, config, runs, new_stills=arguments.stills)
        seconds = "" if arguments.check else f" {time.perf_counter() - start:.1f} s"
        print(f"{path.name}:{seconds} {'not right' if new else 'ok'}", flush=True)
        found += new
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
