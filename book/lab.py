"""Open the chapters in JupyterLab, as a copy of your own to write in.

    python book/lab.py              copy what is new into lab/, then open it
    python book/lab.py --no-open    only copy

What you write is kept: a chapter is copied if it is not there, or if the copy is still as it was
copied and the book's chapter has changed since. If both have changed, yours stays, and a line says
how to get the new one. git ignores the folder.
"""

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from build import add_kernel

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "lab"
RECORD = ".copied.json"  # in the folder: the checksum of each file as it was copied
# The pages that chapters link to, beside the chapters as in the book.
PAGES = ("glossary.md", "notation.md", "references.md", "references.bib")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy(source: Path, target: Path) -> list[str]:
    """Copy chapters and pages from the book in `source`; the lines that tell the reader."""
    record = target / RECORD
    recorded = json.loads(record.read_text("utf-8")) if record.exists() else {}
    known = dict(recorded)
    said = []
    files = [*sorted(source.glob("chapters/*.ipynb")), *(source / "book" / name for name in PAGES)]
    for path in files:
        name = path.relative_to(source).as_posix()
        own, new, before = target / name, digest(path), known.get(name)
        theirs = digest(own) if own.exists() else None
        if theirs == new:
            known[name] = new  # also if the record was lost, or its writing interrupted
            continue
        if theirs and new != before != theirs:
            fix = "rename yours and run this again to have both"
            said.append(f"{name} has changed in the book, and yours too. Yours is kept: {fix}.")
            continue
        if not theirs or new != before:
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(path.read_bytes())
            known[name] = new
            said.append(f"{name} is copied.")
    if known != recorded:
        record.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return said


def jupyterlab() -> str:
    """The Python that has JupyterLab; AFM_LAB names another one than `make lab` installs."""
    folder = Path(sys.prefix) / "lab" / ("Scripts" if os.name == "nt" else "bin")
    return os.environ.get("AFM_LAB") or str(folder / "python")


def settings(folder: Path) -> dict[str, str]:
    """The environment in which JupyterLab, which has its own, runs this Python and its widgets."""
    add_kernel(folder)
    return {"JUPYTER_PATH": os.pathsep.join([str(folder), str(Path(sys.prefix, "share/jupyter"))])}


def main() -> int:
    parser = argparse.ArgumentParser(description="Open your copy of the chapters in JupyterLab.")
    parser.add_argument("--no-open", action="store_true", help="only copy")
    arguments = parser.parse_args()
    print(*copy(ROOT, FOLDER), sep="\n")
    print(f"Your copy of the chapters is in {FOLDER}.", flush=True)
    if arguments.no_open:
        return 0
    lab = [jupyterlab(), "-m", "jupyterlab", f"--ServerApp.root_dir={FOLDER}"]
    lab += ["--LabApp.default_url=/lab/tree/chapters"]
    # So that a question can hide the cells that answer it (widgets/predict/notebook.js).
    lab += ["--LabApp.expose_app_in_browser=True"]
    environment = os.environ | settings(ROOT / "_build" / "jupyter")
    with subprocess.Popen(lab, env=environment) as server:
        while True:
            # The usual way to end JupyterLab, which hears it, too, asks, and ends its kernels.
            with contextlib.suppress(KeyboardInterrupt):
                return server.wait()


if __name__ == "__main__":
    sys.exit(main())
