"""Sphinx extension: takes out of the built book what the theme ships and no page uses.

Font Awesome's script and fonts (extension icons.py draws the few icons instead) and the 1,900 rules
that name its glyphs in the theme's style, source maps, translations, other launch buttons' logos;
and of its script, what makes a tab stop of code that scrolls. That asks for a new layout of the
page for every piece of code, whenever anything in the page changes: a quarter of a second on a long
page. book/assets/afm-page.js does the same when the pieces' sizes change.
"""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

# Below _static. A theme that ships one of these no longer has changed: book/test_extensions.py.
UNUSED = (
    "scripts/fontawesome.js",
    "scripts/fontawesome.js.LICENSE.txt",
    "scripts/*.map",
    "styles/*.map",
    "vendor",
    "locales",
    "images/logo_binder.svg",
    "images/logo_deepnote.svg",
    "images/logo_jupyter*.svg",
    "*webpack-macros.html",
)
GLYPH = re.compile(r"(?:\.fa-[\w-]+::?before,?)+\{[^{}]*\}")
FONT = re.compile(r'@font-face\{[^{}]*font-family:"?Font ?Awesome[^{}]*\}')
# The elements that the theme's script asks for their sizes.
ASKED = re.compile(r'\["pre",[^]]*"\.pst-scrollable-table-container"\]\.join\(", "\)')


def lean_script(script: str) -> str:
    """The theme's script, with nothing to ask for its size. Raises ValueError if it has changed."""
    lean, found = ASKED.subn('":not(*)"', script)
    if found != 1:
        raise ValueError(
            f"the theme's script asks {found} lists of elements for their sizes, not 1"
        )
    return lean


def lean_style(css: str) -> str:
    """The theme's style without Font Awesome's glyphs and fonts."""
    return FONT.sub("", GLYPH.sub("", css))


def clean(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    for pattern in UNUSED:
        for path in static.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    style = static / "styles" / "pydata-sphinx-theme.css"
    css = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", style.read_text(encoding="utf-8"))
    style.write_text(lean_style(css), encoding="utf-8")
    for script in (static / "scripts").glob("*.js"):
        text = script.read_text(encoding="utf-8")
        text = re.sub(r"//# sourceMappingURL=\S*", "", text)
        if script.name == "pydata-sphinx-theme.js":
            text = lean_script(text)
        script.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    # Jupyter Book sets these for extensions that _config.yml leaves out: unknown, they would warn.
    app.add_config_value("comments_config", {}, "")
    app.add_config_value("use_jupyterbook_latex", False, "")
    app.connect("build-finished", clean, priority=700)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
