"""Sphinx extension: exercises are answered on the page.

A chapter's cells tagged `exercise` get a place where the reader writes the answer (or clicks it, for a
`Choice`), which the page's script fills, and lose the stored verdict: "not attempted yet" is not for
ever. What an exercise needs is in a file beside the page, loaded when the first answer is checked
(book/page_code.py says what). All of it is tried while the book is built: an exercise whose solution
the page's Python does not find right stays a cell to read, with a sentence that says where it runs.
"""

import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).parents[1]))
import page_code
import python_files as built

sys.path.pop(0)

logger = logging.getLogger(__name__)
INTRO = "no Python runs"  # a chapter's own words about its exercises on the page
ON_THE_PAGE = (
    "Write each answer below and press ",
    nodes.emphasis("", "Check"),
    ": it runs in your browser, and says what is wrong, if something is. Try as often as you like. "
    "Hints and solutions are folded away. What you write stays in this browser.",
)
ELSEWHERE = (
    "The page cannot check this one: it needs more of PyTorch than a browser has. Think it through here, "
    "or answer it in JupyterLab or Colab."
)


def exercises_of(path: Path) -> list[dict]:
    """The exercises of a chapter, tried: what is asked, its program, and why the page cannot."""
    asked = page_code.asked(path)
    tasks = [
        {**asdict(one), "id": f"{path.stem}/{one.check}", "lines": one.stub.rstrip("\n").count("\n") + 1}
        for one in asked
    ]
    for task in tasks:
        program = task["program"]
        task["program"] = {"modules": [*program["modules"].items()], "context": program["code"]}
    if not tasks:
        return []
    for task, said in zip(tasks, built.tried({"exercises": tasks})["exercises"], strict=True):
        task["program"], task["why"] = said["program"], said["why"]
    return tasks


def place_exercises(app: Sphinx, document: nodes.document) -> None:
    page = app.env.docname
    cells = [
        node
        for node in document.findall(nodes.container)
        if node.get("nb_element") == "cell_code" and "tag_exercise" in node["classes"]
    ]
    if not cells:
        return
    try:
        tasks = exercises_of(Path(app.env.doc2path(page)))
    except (FileNotFoundError, ValueError) as error:
        raise ExtensionError(f"{page}: {error}") from error
    for n, (cell, task) in enumerate(zip(cells, tasks, strict=True)):
        for part in [part for part in cell if part.get("nb_element") == "cell_code_output"]:
            cell.remove(part)
        if task["why"] is None:
            cell += nodes.raw("", f'<div class="afm-ask" data-afm-ask="{n}"></div>', format="html")
        else:
            logger.info("%s is not asked on the page: %s", task["id"], task["why"])
            cell += nodes.paragraph("", ELSEWHERE, classes=["afm-ask-elsewhere"])
    say_what_runs(document)
    for section in document.findall(nodes.section):
        if "exercises" in section["ids"]:
            section.insert(1, progress())
    held(app.env)[page] = tasks


def say_what_runs(document: nodes.document) -> None:
    for paragraph in document.findall(nodes.paragraph):
        if INTRO in paragraph.astext():
            paragraph.children = []
            paragraph += [nodes.Text(part) if isinstance(part, str) else part.deepcopy() for part in ON_THE_PAGE]


def progress() -> nodes.raw:
    return nodes.raw("", '<p class="afm-progress" hidden></p>', format="html")


def place_progress(app: Sphinx, document: nodes.document) -> None:
    """On the first page of the book, below its first paragraph."""
    if app.env.docname == app.config.root_doc:
        for paragraph in document.findall(nodes.paragraph):
            paragraph.parent.insert(paragraph.parent.index(paragraph) + 1, progress())
            return


def held(env: BuildEnvironment) -> dict[str, list[dict]]:
    """The exercises of each page."""
    if not hasattr(env, "afm_exercises"):
        env.afm_exercises = {}
    return env.afm_exercises


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    held(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: list[str], other: BuildEnvironment) -> None:
    held(env).update({name: tasks for name, tasks in held(other).items() if name in pages})


def file_of(tasks: list[dict]) -> tuple[str, str]:
    """The file with what is loaded at the first check: its name, its text."""
    parts = ("program", "name", "call", "choice")
    content = {task["id"]: {part: task[part] for part in parts} for task in tasks if not task["why"]}
    text = json.dumps({"exercises": content}, ensure_ascii=False)
    name = f"asked-{hashlib.sha256(text.encode()).hexdigest()[:10]}.js"
    return name, f'afm.provide("{name}", {text});\n'


def summary(tasks: list[dict], total: int) -> str:
    """What a page holds of its exercises, for start.js."""
    files = {kind: name for kind, (name, _) in (built.files() | built.files_of_exercises()).items()}
    listed = [
        {
            "id": task["id"],
            "lines": task["lines"],
            **(
                {key: task["choice"][key] for key in ("options", "several")}
                if task["choice"]
                else {}
            ),
        }
        for task in tasks
    ]
    content = {"files": files | {"asked": file_of(tasks)[0]}, "exercises": listed, "total": total}
    text = json.dumps(content).replace("</", r"<\/")
    return f'<script type="application/json" id="afm-asked">{text}</script>'


def add_script(
    app: Sphinx, page: str, template: str, context: dict, document: nodes.document | None
) -> None:
    tasks = held(app.env).get(page, [])
    if document is None or not (tasks or page == app.config.root_doc) or not held(app.env):
        return
    total = sum(map(len, held(app.env).values()))
    context["body"] = context.get("body", "") + summary(tasks, total)
    app.add_js_file("afm-host.js", defer="defer")
    app.add_js_file("afm-write.js", defer="defer")
    app.add_css_file("afm-write.css")


def write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html" or not held(app.env):
        return
    folder = Path(app.outdir) / "_static"
    folder.mkdir(exist_ok=True)
    found = [file_of(tasks) for tasks in held(app.env).values()]
    found += [*built.files().values(), *built.files_of_exercises().values()]
    found += [("afm-write.js", built.start()), ("afm-write.css", style())]
    for name, text in found:
        (folder / name).write_text(text, encoding="utf-8")


def style() -> str:
    """The look of the figure Write, and that of exercises."""
    own = Path(__file__).parents[1] / "assets" / "afm-write.css"
    figure = built.FOLDER / "write" / "style.css"
    shared = figure.read_text(encoding="utf-8").replace(".afm ", ".afm-ask ")
    return own.read_text(encoding="utf-8") + shared


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("myst_nb")
    app.connect("doctree-read", place_exercises)
    app.connect("doctree-read", place_progress)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
