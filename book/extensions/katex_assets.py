"""Sphinx extension: KaTeX's style and fonts, from npm's package, on the pages that need them.

sphinxcontrib-katex renders the mathematics while the book is built, but links KaTeX's style on
every page and from elsewhere. This extension copies style and fonts (woff2 only) beside the pages
and takes the links off pages without mathematics. It also lets a mistake in LaTeX fail the build.
"""

import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinxcontrib import katex

PACKAGE = Path(sys.prefix) / "npm" / "node_modules" / "katex" / "dist"
STYLES = ("katex/katex.css", "katex-math.css")


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


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("builder-inited", configure, priority=100)  # before sphinxcontrib.katex reads it
    app.connect("html-page-context", keep_off)
    app.connect("build-finished", copy_assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
