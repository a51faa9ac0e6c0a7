"""Sphinx extension: exercises are answered on the page, and open cells changed.

A chapter's cells tagged `exercise` get a place where the reader writes the answer (or clicks it,
for a `Choice`), which the page's script fills, and lose the stored verdict: "not attempted yet" is
not for ever. What an exercise needs is in a file beside the page, loaded when the first answer is
checked (book/page_code.py says what). All of it is tried while the book is built: an exercise whose
solution the page's Python does not find right stays a cell to read, with a sentence that says where
it runs.

An open cell that prints on the page what the notebook stores gets a button to change it, and the
figure YourPart a place where a reader puts in another part (book/page_machine.py).
"""

import json
from dataclasses import asdict
from pathlib import Path

import page_code
import page_machine
import python_files as built
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging

logger = logging.getLogger(__name__)
INTRO = "has a cell for your answer"  # a notebook's words about its exercises
ON_THE_PAGE = (
    "Write each answer below and press ",
    nodes.emphasis("", "Check"),
    ": it runs in your browser, and says what is wrong, if something is. Try as often as you like. "
    "Hints and solutions are folded away. What you write stays in this browser.",
)
ELSEWHERE = (
    "The page cannot check this one: it needs more than a browser has. Think it through here, or "
    "answer it in JupyterLab or Colab."
)


def tried(path: Path) -> tuple[list[dict], dict, dict | None]:
    """The exercises of a chapter (what is asked, its program, why the page cannot), its cells, and
    what a part of the reader's own begins with."""
    tasks = [
        {
            **asdict(one),
            "id": f"{path.stem}/{one.check}",
            "lines": one.stub.rstrip("\n").count("\n") + 1,
            "program": {"modules": [*one.program.modules.items()], "context": one.program.code},
        }
        for one in page_code.asked(path)
    ]
    yours = page_machine.yours(path)
    programs = [yours["program"]] if yours else []
    said = built.tried({"exercises": tasks, "programs": programs, **page_code.cells(path)})
    for task, found in zip(tasks, said["exercises"], strict=True):
        task["program"], task["why"] = found["program"], found["why"]
    counts = {n: count for n, count in enumerate(said["cells"]) if count is not None}
    if yours:
        yours["program"] = said["programs"][0]
    cells = {"before": said["before"][: max(counts.values(), default=0)], "counts": counts}
    return tasks, cells, yours


def place_all(app: Sphinx, document: nodes.document) -> None:
    page, path = app.env.docname, Path(app.env.doc2path(app.env.docname))
    cells = [n for n in document.findall(nodes.container) if n.get("nb_element") == "cell_code"]
    if path.suffix != ".ipynb" or not cells:
        return
    try:
        tasks, runs, yours = tried(path)
    except (FileNotFoundError, ValueError) as error:
        raise ExtensionError(f"{page}: {error}") from error
    for number in runs["counts"]:
        text = f'<div class="afm-ask afm-change" data-afm-change="{number}"></div>'
        cells[number] += nodes.raw("", text, format="html")
    if yours:
        place = '<div class="afm-ask afm-yours" data-afm-yours></div>'
        cells[yours.pop("cell")] += nodes.raw("", place, format="html")
    asking = [cell for cell in cells if "tag_exercise" in cell["classes"]]
    for n, (cell, task) in enumerate(zip(asking, tasks, strict=True)):
        for part in [part for part in cell if part.get("nb_element") == "cell_code_output"]:
            cell.remove(part)
        if task["why"] is None:
            cell += nodes.raw("", f'<div class="afm-ask" data-afm-ask="{n}"></div>', format="html")
        else:
            logger.info("%s is not asked on the page: %s", task["id"], task["why"])
            cell += nodes.paragraph("", ELSEWHERE, classes=["afm-ask-elsewhere"])
    say_what_runs(document)
    for section in document.findall(nodes.section):
        if "exercises" in section["ids"] and tasks:
            section.insert(1, progress())
    if tasks or runs["counts"]:
        content = {"exercises": tasks, "cells": runs, "yours": yours}
        app.env.metadata[page]["afm_exercises"] = content


def say_what_runs(document: nodes.document) -> None:
    for paragraph in document.findall(nodes.paragraph):
        if INTRO in paragraph.astext():
            paragraph.children = []
            paragraph += [
                nodes.Text(part) if isinstance(part, str) else part.deepcopy()
                for part in ON_THE_PAGE
            ]


def progress() -> nodes.raw:
    return nodes.raw("", '<p class="afm-progress" hidden></p>', format="html")


def place_progress(app: Sphinx, document: nodes.document) -> None:
    """On the first page of the book, above its list of chapters."""
    if app.env.docname == app.config.root_doc:
        for section in document.findall(nodes.section):
            if "the-chapters" in section["ids"]:
                section.insert(1, progress())


def held(env: BuildEnvironment) -> dict[str, dict]:
    """The exercises and the cells of each page."""
    pages = env.metadata.items()
    return {name: page["afm_exercises"] for name, page in pages if "afm_exercises" in page}


def files_of(page: dict) -> dict[str, tuple[str, str]]:
    """What is loaded when a reader begins, {"asked": (name, text), "cells": ..., "yours": ...}."""
    parts = ("program", "name", "call", "choice")
    asked = {t["id"]: {part: t[part] for part in parts} for t in page["exercises"] if not t["why"]}
    found = {}
    contents = {"asked": {"exercises": asked}, "cells": page["cells"]}
    if page["yours"]:
        (machine, _), weights = page_machine.files()
        contents["yours"] = page["yours"] | {"machine": machine, "weights": [n for n, _ in weights]}
    for kind, content in contents.items():
        found[kind] = built.provided(kind, content)
    return found


def summary(page: dict, total: int) -> str:
    """What a page holds of its exercises, for start.js."""
    files = built.files() | built.files_of_exercises() | files_of(page)
    listed = [
        {"id": task["id"], "lines": task["lines"]}
        | {key: task["choice"][key] for key in ("options", "written", "several") if task["choice"]}
        for task in page["exercises"]
    ]
    content = {
        "files": {k: name for k, (name, _) in files.items()},
        "exercises": listed,
        "total": total,
    }
    text = json.dumps(content).replace("</", r"<\/")
    return f'<script type="application/json" id="afm-asked">{text}</script>'


NOTHING: dict = {"exercises": [], "cells": {"before": [], "counts": {}}, "yours": None}


def add_script(
    app: Sphinx, page: str, template: str, context: dict, document: nodes.document | None
) -> None:
    here = held(app.env).get(page, NOTHING if page == app.config.root_doc else None)
    if document is None or here is None or not held(app.env):
        return
    total = sum(len(each["exercises"]) for each in held(app.env).values())
    context["body"] = context.get("body", "") + summary(here, total)
    app.add_js_file("afm-host.js", defer="defer")
    app.add_js_file("afm-write.js", defer="defer")
    app.add_css_file("afm-write.css")


def write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html" or not held(app.env):
        return
    folder = Path(app.outdir) / "_static"
    folder.mkdir(exist_ok=True)
    found = [file for page in held(app.env).values() for file in files_of(page).values()]
    found += [*built.files().values(), *built.files_of_exercises().values()]
    if any(page["yours"] for page in held(app.env).values()):
        machine, weights = page_machine.files()
        found += [machine, *weights]
    found += [("afm-write.js", built.start()), ("afm-write.css", style())]
    for name, text in found:
        (folder / name).write_text(text, encoding="utf-8")


def style() -> str:
    """The look of the figure Write, and that of exercises."""
    own = Path(__file__).parents[1] / "assets" / "afm-write.css"
    figure = built.FOLDER / "write" / "style.css"
    shared = figure.read_text(encoding="utf-8").replace(".afm ", ".afm-ask ")
    return own.read_text(encoding="utf-8") + shared


def setup(app: Sphinx) -> None:
    app.setup_extension("myst_nb")
    # Before cells.py joins the setup cells: then each cell is the notebook's.
    app.connect("doctree-read", place_all, priority=350)
    app.connect("doctree-read", place_progress)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
