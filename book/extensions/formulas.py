"""Sphinx extension: formulas. KaTeX renders them while the book is built; here is what remains.

- KaTeX's style and fonts (woff2 only) are copied from npm's package beside the pages, and linked by
  the pages that have formulas only. sphinxcontrib-katex links them on every page, from elsewhere.
- A mistake in LaTeX fails the build.
- A comma or a full stop stays on the line of the formula before it: KaTeX makes a formula of inline
  blocks, after which a browser may break the line. So both are in an element that does not break.
- KaTeX's render server is waited for. sphinxcontrib-katex connects as soon as the server's socket
  file is there, which is before the server listens: on a busy machine the connection is refused,
  the build fails, and the server stays behind, holding the terminal's pipe open.
"""

import os
import re
import shutil
import socket
import time
from pathlib import Path
from subprocess import PIPE, Popen

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinxcontrib import katex

from transformer_lib.widgets.bertviz import NPM

PACKAGE = NPM / "katex" / "dist"
STYLES = ("katex/katex.css", "katex-math.css")
CLOSING = re.compile(r"[.,;:!?)\]’”…]+")
SECONDS = 60  # for the server to answer


def style_with_woff2(css: str) -> str:
    """KaTeX's style, asking for the woff2 fonts only, which every browser reads."""
    return re.sub(r",url\([^)]*\.(?:woff|ttf)\) format\(\"\w+\"\)", "", css)


def configure(app: Sphinx) -> None:
    if not PACKAGE.is_dir():
        raise ExtensionError(f"{PACKAGE} is missing: run `make`, which installs npm's packages")
    # Not LaTeX's \color, which colors all that follows, but that of the notebooks: its argument.
    katex.KATEX_DEFAULT_OPTIONS.update(throwOnError=True, colorIsTextColor=True)
    app.config.katex_css_path = STYLES[0]


def keep_off(
    app: Sphinx, page: str, template: str, context: dict, document: nodes.document | None
) -> None:
    if document and any(document.findall(lambda n: isinstance(n, nodes.math | nodes.math_block))):
        return
    context["css_files"] = [
        style
        for style in context["css_files"]
        if str(style.filename).removeprefix("_static/") not in STYLES
    ]


def copy_assets(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "katex"
    shutil.copytree(PACKAGE / "fonts", target / "fonts", dirs_exist_ok=True, ignore=other_formats)
    css = (PACKAGE / "katex.min.css").read_text(encoding="utf-8")
    (target / "katex.css").write_text(style_with_woff2(css), encoding="utf-8")


def other_formats(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".woff2")]


def keep_together(app: Sphinx, document: nodes.document) -> None:
    for formula in list(document.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        after = parent[place + 1] if place + 1 < len(parent) else None
        closing = CLOSING.match(after.astext()) if isinstance(after, nodes.Text) else None
        if closing:
            rest = after.astext()[closing.end() :]
            whole = nodes.inline("", "", formula.deepcopy(), nodes.Text(closing[0]))
            whole["classes"].append("afm-nobreak")
            parent[place : place + 2] = [whole, nodes.Text(rest)] if rest else [whole]


def start_server_process(
    cls: type[katex.KaTeXServer], rundir: Path, timeout: float
) -> tuple[Popen, socket.socket]:
    """The server's process and a connection to it. KaTeXError if it ends or never answers."""
    path = rundir / "katex.sock"
    process = Popen(cls.build_command(socket=path), stdin=PIPE, stdout=PIPE, cwd=rundir)
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
            return process, connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            time.sleep(0.01)
    process.kill()
    process.communicate()
    raise katex.KaTeXError("KaTeX's server has ended, or did not answer: see what it said above")


def setup(app: Sphinx) -> None:
    if os.name == "posix":
        katex.KaTeXServer.start_server_process = classmethod(start_server_process)
    app.connect("builder-inited", configure, priority=100)  # before sphinxcontrib.katex reads it
    app.connect("doctree-read", keep_together)
    app.connect("html-page-context", keep_off)
    app.connect("build-finished", copy_assets)
