"""Execute and normalize the chapters: the stored notebooks hold exactly what running them prints.

    python book/notebooks.py [CHAPTER ...]          run, normalize and save (default: all of them)
    python book/notebooks.py --check [CHAPTER ...]  change nothing; say what is wrong and exit 1

CHAPTER is a name (03-scaling) or a path. A chapter runs top to bottom in an empty folder, unless
neither its code nor the library has changed since it last ran. Kept: text outputs, tags, hide
settings and alternative texts. Dropped: pictures, widget state and views, times, and whatever else
an editor wrote into the metadata. Cells beside the road (tags `claim`, `hide-input`,
`listing`, the second `setup`) are folded in JupyterLab and Colab, under a line that names them:
`# @title ...`, which the page takes as the name, too. Two checksums in the notebook's metadata (of
its code, of its outputs) let `--check` find a notebook that was edited or stripped after it ran,
without running it.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import time
from copy import deepcopy
from pathlib import Path

import nbformat
import yaml
from execution import RUNS, Runs, execute
from extensions.downloads import pages_address
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
FIX = "run `make notebooks` (or `make notebooks PATHS=...` for one)"
CELL_METADATA = ("tags", "mystnb", "jupyter", "cellView")
DROPPED_OUTPUT = re.compile(r"image/(png|jpeg)|application/vnd\.jupyter\.widget-view\+json")
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
COLOR = re.compile(r"\\color\{[^}]*\}\{")
TITLE = re.compile(r"# @title (.*?)(?: \{display-mode: \"form\"\})?\n+")
CHECKED = "✓ checked"
QUESTION, FIGURE, NUMBERS = "Code of the question", "Code of the figure", "Code of the numbers"
DECIMAL = re.compile(r"(?<![\w.])(\d+\.\d++)(?!\.\d)")  # not the parts of a version, 2.13.0

SETUP_UNPUBLISHED = """\
# First: Run > Run All Cells. What follows needs what comes before it.
# (A figure that says "model not found" wants its cell to be run again.)
import importlib.util

if importlib.util.find_spec("transformer_lib") is None:
    raise ModuleNotFoundError(
        "This is a chapter of the book Attention You Can Touch, and the "
        "book's library is not installed here. Where the book's folder is, "
        "run `make lab` in it: that installs all and opens the chapters. "
        "Or run `pip install '.[book]'` there, for your own Jupyter."
    )
"""
SETUP_PUBLISHED = """\
# First: Runtime > Run all. What follows needs what comes before it.
# (A figure that says "model not found" wants its cell to be run again.)
# On Colab this installs the book's library. Where it is installed, nothing happens.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("transformer_lib") is None:
    library = "transformer_lib[book] @ git+{url}@{branch}"
    install = [sys.executable, "-m", "pip", "install", "-q", library]
    subprocess.run(install, check=True)

if not os.path.exists("../book/glossary.md"):
    print("Opened alone? Links that lead nowhere here work on the book's pages:")
    print("{pages}")
"""


def setup_source(config: dict) -> str:
    """The text of every chapter's setup cell, from the repository's address in _config.yml."""
    repository = config.get("repository") or {}
    if not repository.get("url"):
        return SETUP_UNPUBLISHED.rstrip()
    url, branch = repository["url"].rstrip("/"), repository.get("branch") or "main"
    return SETUP_PUBLISHED.format(url=url, branch=branch, pages=pages_address(url)).rstrip()


def load_config() -> dict:
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def folded_as(cell: NotebookNode) -> str:
    """Under which name a code cell is folded in a notebook and on the page; "" if it is open.

    A title that an author has given to the code of a figure is kept.
    """
    found = set(tags(cell))
    given = TITLE.match(cell.source)
    code = TITLE.sub("", cell.source, count=1)
    if "claim" in found:
        return CHECKED
    if "setup" in found:
        return "Imports"
    if "listing" in found:
        shown = re.search(r"\bshow\(([\w.]+)", code)
        name = re.sub(r"^[a-z_]+\.(?=[A-Za-z_])", "", shown[1]) if shown else "code"
        return f"The library's {name}"
    if "hide-input" not in found:
        return ""
    if given and given[1] not in (QUESTION, FIGURE, NUMBERS):
        return given[1]
    if re.search(r"^Predict\b", code, re.M):
        return QUESTION
    return NUMBERS if "print(" in code else FIGURE


def fold(cell: NotebookNode) -> None:
    """Fold a code cell in JupyterLab and Colab, or open it, as its tags say."""
    if "solution" in tags(cell):  # folded by its author; its title belongs to it
        return
    name, code = folded_as(cell), TITLE.sub("", cell.source, count=1)
    jupyter = {k: v for k, v in cell.metadata.get("jupyter", {}).items() if k != "source_hidden"}
    cell.metadata.pop("cellView", None)
    cell.source = f'# @title {name} {{display-mode: "form"}}\n{code}' if name else code
    if name:
        jupyter["source_hidden"] = True
        cell.metadata["cellView"] = "form"
    cell.metadata["jupyter"] = jupyter


def fold_answer(cell: NotebookNode) -> None:
    """Fold the outputs of a cell that gives an answer away (`reveal`, `solution`), in JupyterLab.

    A solution's stored "Right" would show below the reader's own answer, before anything has run.
    """
    jupyter = dict(cell.metadata.get("jupyter", {}))
    jupyter.pop("outputs_hidden", None)
    if {"reveal", "solution"} & set(tags(cell)):
        jupyter["outputs_hidden"] = True
    cell.metadata["jupyter"] = NotebookNode(jupyter)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def code_digest(nb: NotebookNode) -> str:
    return digest(*(cell.source for cell in nb.cells if cell.cell_type == "code"))


def outputs_digest(nb: NotebookNode) -> str:
    outputs = [cell.outputs for cell in nb.cells if cell.cell_type == "code"]
    return digest(json.dumps(outputs, sort_keys=True, ensure_ascii=False))


def scoped_colors(text: str) -> str:
    r"""`\color{red}{Q}` as `{\color{red}{Q}}`: VS Code and LaTeX color all the rest of a group."""
    found = COLOR.search(text)
    while found:
        depth, start, end = 1, found.start(), found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if not depth and text[start - 1 : start] + text[end : end + 1] != "{}":
            text = f"{text[:start]}{{{text[start:end]}}}{text[end:]}"
        found = COLOR.search(text, start + 2)
    return text


def normal_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Text only, streams joined, errors without the paths that a traceback carries."""
    kept: list[NotebookNode] = []
    for output in deepcopy(outputs):
        if output.output_type == "stream":
            if kept and kept[-1].output_type == "stream" and kept[-1].name == output.name:
                kept[-1].text += output.text
                continue
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            output.metadata = NotebookNode()
            output.data = NotebookNode(
                {kind: data for kind, data in output.data.items() if not DROPPED_OUTPUT.match(kind)}
            )
            if "execution_count" in output:
                output.execution_count = None
            if not output.data:
                continue
        kept.append(output)
    return kept


def normalize(nb: NotebookNode, config: dict) -> NotebookNode:
    """A copy of `nb` in the one form in which chapters are stored."""
    nb = deepcopy(nb)
    seen: dict[str, int] = {}
    first_setup = next((cell for cell in nb.cells if "setup" in tags(cell)), None)
    for cell in nb.cells:
        if cell is first_setup:
            cell.source = setup_source(config)
        elif cell.cell_type == "code":
            fold(cell)
        if cell.cell_type == "markdown":
            cell.source = scoped_colors(cell.source)
        cell.source = cell.source.rstrip()
        if cell.cell_type == "code":
            fold_answer(cell)
        metadata = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        cell.metadata = NotebookNode(metadata)
        # An id made from the text stays the same wherever the cell moves and whoever converts it.
        name = digest(cell.cell_type, cell.source)[:8]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
        if cell.cell_type == "code":
            cell.outputs = normal_outputs(cell.outputs)
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = NotebookNode(
        checksums=nb.metadata.get("checksums", {}),
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    return nb


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
        texts = [output.get("text", ""), *output.get("data", {}).values()]
        texts = [text for text in texts if isinstance(text, str)]
        if any("svg" in kind for kind in output.get("data", {})):
            found.append(("stores an SVG, which differs at every run", "draw it as PNG"))
        for address in {hit for text in texts for hit in ADDRESS.findall(text)}:
            found.append((f"prints {address}, new at every run", "give the object a stable repr"))
        if "nbval-ignore-output" in tags(cell):
            continue
        plain = [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
        for number in DECIMAL.findall("\n".join(plain)):
            if len(number.replace(".", "").strip("0")) > 4:
                found.append((f"prints {number}", "print at most 4 significant digits"))
    return found


def problems(path: Path, config: dict) -> list[str]:
    """Everything that keeps the notebook at `path` from being what a fresh run would store."""
    text = path.read_text(encoding="utf-8")
    try:
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

    if not any("setup" in tags(cell) for cell in nb.cells[:2]):
        report(2, "is not the setup cell", "make it a code cell with the tag `setup`")
    count, stripped = 0, []
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type != "code":
            continue
        count += 1
        if number == 2 and "setup" in tags(cell) and cell.source != setup_source(config):
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
    # JupyterLab writes its kernel's name and version when it opens a notebook: that is not an edit.
    normal = normalize(nb, config)
    ours = {key: normal.metadata[key] for key in ("kernelspec", "language_info")}
    as_stored = nbformat.writes(nb) + "\n" == text
    nb.metadata.update(ours)
    if not as_stored or nbformat.writes(nb) != nbformat.writes(normal):
        found.append(f"{path.name}: is not normalized (metadata, ids, outputs, colors). Fix: {FIX}")
    return found


def refresh(path: Path, config: dict, runs: Runs | None = None) -> list[str]:
    """Run and normalize one notebook in place; a failing one stays as it was. Returns problems.

    With `runs`, a run that is kept there is taken for a fresh one, and a fresh one is kept.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    nb = normalize(nbformat.read(path, as_version=4), config)
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
    nb = normalize(nb, config)
    nb.metadata.checksums = {"code": code_digest(nb), "outputs": outputs_digest(nb)}
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


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute and normalize the chapters.")
    parser.add_argument("paths", nargs="*", type=chapter, metavar="CHAPTER", help="default: all")
    parser.add_argument("--check", action="store_true", help="change nothing, report what is wrong")
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
            new = refresh(path, config, runs)
        seconds = "" if arguments.check else f" {time.perf_counter() - start:.1f} s"
        print(f"{path.name}:{seconds} {'not right' if new else 'ok'}", flush=True)
        found += new
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
