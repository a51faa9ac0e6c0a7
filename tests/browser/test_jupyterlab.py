"""The chapters in JupyterLab itself: run there in Chromium, offline, as a reader does.

Two chapters in `make test`; all the others in `make soak`, hence in the weekly run.
"""

import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import lab
import nbformat
import pytest
from built import ROOT
from harness import next_frame, pass_time
from playwright.sync_api import Page
from programs import PATIENCE, started

from transformer_lib import widgets

CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
ALWAYS = "01-self-attention"
ALSO = "05b-heads-in-depth"  # bertviz, whose libraries the kernel sends
# Widgets are seen in two places at once, and what is done to one view is done to the other.
SHOWN_TWICE = """
from transformer_lib.widgets import MaskPainter
seen = MaskPainter(words, X, X, X)
display(seen)
seen"""
GREY = {"rgb(119, 119, 119)", "#777777"}  # what core/color.js falls back to
NOTEBOOK = "globalThis.jupyterapp?.shell.currentWidget"  # until JupyterLab is there, undefined
# A view is a figure when its host has drawn it; notebooks show what is near the window.
FIGURES = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output figure.afm"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[SimpleNamespace]:
    """A JupyterLab on a copy of the chapters, as `make lab` makes it, with settings of its own."""
    folder = tmp_path_factory.mktemp("jupyterlab")
    chapters = folder / "lab"
    lab.copy(ROOT, chapters)
    python = lab.jupyterlab()
    assert Path(python).exists(), f"there is no {python}: `make test` gets it (or set AFM_LAB)"
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    places += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    settings = {place: str(folder / place.lower()) for place in places}
    settings |= lab.settings(folder / "kernels")
    quiet = folder / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    news = '{"fetchNews": "false", "checkForUpdates": false}'
    (quiet / "notification.jupyterlab-settings").write_text(news, encoding="utf-8")
    options = [f"--ServerApp.root_dir={chapters}", "--ip=127.0.0.1"]
    options += ["--no-browser", "--allow-root", "--IdentityProvider.token="]
    options += ["--LabApp.expose_app_in_browser=True"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | settings | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    log, runtime = folder / "log", folder / "jupyter_runtime_dir"
    with (
        log.open("w") as file,
        started(
            *(python, "-m", "jupyterlab", *options),
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        deadline = time.monotonic() + PATIENCE
        while not (address := address_in(runtime)):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"JupyterLab did not start\n{log.read_text()[-4000:]}")
            time.sleep(0.2)
        yield SimpleNamespace(address=address, folder=chapters)


def address_in(runtime: Path) -> str | None:
    """Where the server answers, which has taken a port that was free; None if it does not yet."""
    for file in runtime.glob("jpserver-*.json"):
        with suppress(OSError, ValueError):  # written this moment, or not listening
            address = json.loads(file.read_text())["url"].rstrip("/")
            if urllib.request.urlopen(f"{address}/api", timeout=60).status == 200:
                return address
    return None


class Notebook:
    """A chapter that is open in JupyterLab."""

    def __init__(self, page: Page, path: Path):
        self.page, self.path = page, path
        self.cells = nbformat.read(path, as_version=4).cells

    def beside(self, name: str) -> "Notebook":
        """Another chapter, in the same JupyterLab: that is quicker than a JupyterLab of its own."""
        opened = (
            f"jupyterapp.commands.execute('docmanager:open', {{ path: 'chapters/{name}.ipynb' }})"
        )
        self.page.evaluate(f"async () => {{ await {opened}; }}")
        other = Notebook(self.page, self.path.with_name(f"{name}.ipynb"))
        self.page.wait_for_function(f"{NOTEBOOK}.context.path.includes('{name}')")
        other.wait_for_kernel()
        return other

    def wait_for_kernel(self) -> None:
        kernel = f"{NOTEBOOK}?.sessionContext?.session?.kernel"
        self.page.wait_for_function(f"{kernel}?.status === 'idle'", timeout=1000 * PATIENCE)

    def run_all(self) -> None:
        # JupyterLab's own promise is over at the first error, even one that is meant.
        self.page.evaluate("""async () => {
          await jupyterapp.commands.execute("notebook:clear-all-cell-outputs");
          jupyterapp.commands.execute("notebook:run-all-cells");
        }""")
        code = "model.type === 'code' && model.sharedModel.getSource().trim()"
        cells = f"[...{NOTEBOOK}.content.widgets].filter(({{ model }}) => {code})"
        done = f"{cells}.every(({{ model }}) => model.executionCount !== null)"
        self.page.wait_for_function(done, timeout=1000 * PATIENCE)
        self.wait_for_kernel()

    def outputs(self) -> list[str]:
        """The outputs of each cell as JSON, as the kernel gave them."""
        return self.page.evaluate(
            f"""() => [...{NOTEBOOK}.content.widgets].map(({{ model }}) =>
              model.type === "code" ? JSON.stringify(model.sharedModel.outputs) : "")"""
        )

    def run(self, code: str) -> str:
        """Run code in a new cell at the end; what it prints."""
        self.page.evaluate(
            f"""async (code) => {{
              const content = {NOTEBOOK}.content;
              content.activeCellIndex = content.widgets.length - 1;
              await jupyterapp.commands.execute("notebook:insert-cell-below");
              content.activeCell.model.sharedModel.setSource(code);
              await jupyterapp.commands.execute("notebook:run-cell");
            }}""",
            code,
        )
        return self.outputs()[-1]

    def show(self, index: int) -> None:
        """Bring a cell into the window."""
        self.page.evaluate(f"(index) => {NOTEBOOK}.content.scrollToItem(index, 'start')", index)
        pass_time(self.page, 150)

    def figures_of(self, index: int):
        self.show(index)
        cell = f".jp-Cell[data-windowed-list-index='{index}']"  # of the chapter in front
        return self.page.locator(f".jp-NotebookPanel:not(.lm-mod-hidden) {cell} figure.afm")

    def check_figures(self) -> int:
        """Every widget of the chapter is drawn, in color; how many there are."""
        count = 0
        for index, output in enumerate(self.outputs()):
            if "application/vnd.jupyter.widget-view+json" not in output:
                continue
            figure = self.figures_of(index).first
            figure.wait_for()
            if figure.locator(".afm-bertviz").count():
                figure.locator("svg[data-named] line").first.wait_for(state="attached")
            check_colors(figure)
            if figure.locator("xpath=self::*[contains(@class, 'afm-predict')]").count():
                self.answer(index, figure)
            count += 1
        return count

    def answer(self, index: int, question) -> None:
        """What would answer a question is hidden until the reader has asked for it."""
        if "reveal" not in self.cells[index + 1].metadata.get("tags", []):
            return
        hidden = f"{NOTEBOOK}.content.widgets[{index + 1}].isHidden"
        self.page.wait_for_function(hidden)
        question.get_by_role("button", name="show me without guessing").click()
        self.page.wait_for_function(f"!{hidden}")


def check_colors(figure) -> None:
    """A grid has more than one color, and nothing has the one for "unknown"."""
    next_frame(figure.page)
    fills = figure.locator("svg [fill]").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('fill'))"
    )
    assert not GREY & set(fills)
    cells = figure.locator(".afm-cell:not([fill^=url])")
    colors = cells.evaluate_all("(all) => all.map((one) => one.getAttribute('fill'))")
    assert len(set(colors)) > 1 or len(colors) < 2, f"a grid in one color: {colors[:1]}"


@pytest.fixture
def open_notebook(server, browser):
    contexts, wrong = [], []

    def open_(name: str) -> Notebook:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.route(
            re.compile(r"^https://"), lambda route: route.abort()
        )  # offline, but for the server
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{server.address}/lab/tree/chapters/{name}.ipynb?reset")
        notebook = Notebook(page, server.folder / "chapters" / f"{name}.ipynb")
        notebook.wait_for_kernel()
        return notebook

    yield open_
    for context in contexts:
        for page in context.pages:
            page.evaluate("globalThis.jupyterapp?.serviceManager.sessions.shutdownAll()")
        context.close()
    assert not wrong, "\n".join(wrong)


def shown(cells: list) -> list[str]:
    """The figures that a chapter shows, as its file has them: a line such as ScalingLab()."""
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    texts = [output.get("text/plain", "") for output in outputs]
    return [text for text in texts if text.split("(")[0] in widgets.__all__]


def check_run(notebook: Notebook) -> None:
    """A chapter after Run All: no error that is not meant, stubs unanswered, solutions right."""
    notebook.run_all()
    for cell, output in zip(notebook.cells, notebook.outputs(), strict=True):
        tags = cell.metadata.get("tags", [])
        if "raises-exception" not in tags:
            assert '"output_type":"error"' not in output, f"{cell.source}\n{output}"
        if "exercise" in tags and "check" in cell.source:
            assert "not attempted yet" in output
        if "solution" in tags and "check" in cell.source:
            assert "Right" in output
    assert notebook.check_figures() == len(shown(notebook.cells))


def check_a_figure_that_is_shown_twice(notebook: Notebook) -> None:
    page, said = notebook.page, notebook.run(SHOWN_TWICE)
    assert said.count("widget-view") == 2, said
    last = len(notebook.outputs()) - 1
    views = notebook.figures_of(last)
    views.nth(1).wait_for()
    for view in views.all():
        check_colors(view)
    # Keys belong to the control that has the focus, not to the notebook around it.
    slider = views.first.get_by_role("slider", name="layers")
    slider.focus()
    before = int(slider.input_value())
    count = f"{NOTEBOOK}.content.widgets.length"
    cells = page.evaluate(count)
    for key in ("ArrowRight", "d", "d"):
        page.keyboard.press(key)
    assert slider.input_value() == str(before + 1)
    assert views.nth(1).get_by_role("slider", name="layers").input_value() == str(before + 1)
    assert slider.evaluate("(node) => node === document.activeElement")
    assert page.evaluate(count) == cells
    assert str(before + 1) in notebook.run("print('layers', seen.layers)")


def test_two_chapters_are_run_and_one_is_answered(open_notebook):
    notebook = open_notebook(ALWAYS)
    check_run(notebook)
    check_a_figure_that_is_shown_twice(notebook)
    page = notebook.page
    # What is written into an exercise is judged.
    at = next(i for i, c in enumerate(notebook.cells) if "exercise" in c.metadata.get("tags", []))
    solution = next(c for c in notebook.cells if "solution" in c.metadata.get("tags", []))
    assert "Right" in notebook.run(solution.source)
    assert "not attempted yet" in notebook.run(notebook.cells[at].source)
    # A word of the glossary opens the glossary, at that word.
    index, cell = next((i, c) for i, c in enumerate(notebook.cells) if "glossary.md#" in c.source)
    notebook.show(index)
    link = page.locator(f".jp-Cell[data-windowed-list-index='{index}'] a[href*='glossary']").first
    term = cell.source.split("glossary.md#")[1].split(")")[0]
    link.click()
    heading = page.locator(f".jp-MarkdownViewer h2:has-text('{term.replace('-', ' ')}')").first
    heading.wait_for()
    page.wait_for_function(
        "(node) => node.getBoundingClientRect().top < innerHeight && node.checkVisibility()",
        arg=heading.element_handle(),
    )
    # Without a network: d3 and jQuery come from the kernel's environment.
    check_run(notebook.beside(ALSO))


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in CHAPTERS if name not in (ALWAYS, ALSO)])
def test_every_other_chapter_runs(open_notebook, name):
    check_run(open_notebook(name))
