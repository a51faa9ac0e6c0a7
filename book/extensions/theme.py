"""Sphinx extension: of the theme, the pages get what they use.

- Its icons as one small style. The theme marks icons with the classes of Font Awesome and draws
  them with a script that carries all 2,000 of them. The classes in the built pages and in the
  theme's scripts are looked for, the drawings taken from that same script, and written to
  `_static/afm-icons.css`, where each is a mask that takes the color of the text around it.
- In code, what has the color of the text around it (names, brackets, blanks) is that text, and not
  an element of its own: three of five elements in the listings, a third of a page.
- Taken out: Font Awesome's script and fonts and the 1,900 rules that name its glyphs, source maps,
  translations, other launch buttons' logos; and of the theme's script, what makes a tab stop of
  code that scrolls. That asks for a new layout of the page for every piece of code, whenever
  anything in the page changes: a quarter of a second on a long page. book/assets/afm-page.js does
  the same when the pieces' sizes change.
"""

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import pydata_sphinx_theme
from pygments.formatters import HtmlFormatter
from pygments.token import Token
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.highlighting import PygmentsBridge

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme"
SCRIPT = THEME / "static" / "scripts" / "fontawesome.js"
STYLE = "afm-icons.css"
ICON = re.compile(
    r'(?:"(?P<quoted>[\w-]+)"|(?P<bare>[a-z]\w*)):'
    r'\[(?P<width>\d+),(?P<height>\d+),\[(?P<aliases>[^\]]*)\],"[0-9a-f]+","(?P<path>[^"]+)"\]'
)
# Where each pack's list ends in the script, and the classes that ask for that pack. Solid icons
# need none, so that two classes for another pack outweigh them.
PACKS = {"fa-brands": ("fa-brands", "fab"), "fa-regular": ("fa-regular", "far"), "fa-solid": ("",)}
BASE = """\
.fa-solid, .fa-regular, .fa-brands, .fas, .far, .fab {
  display: inline-block; width: 1em; height: 1em; vertical-align: -0.125em;
  background-color: currentColor;
  -webkit-mask: var(--afm-icon) center / contain no-repeat;
  mask: var(--afm-icon) center / contain no-repeat;
}
:is(.fa-solid, .fa-regular, .fa-brands, .fas, .far, .fab)::before { content: none; }
@media (forced-colors: active) {
  .fa-solid, .fa-regular, .fa-brands, .fas, .far, .fab { background-color: CanvasText; }
}
"""


def drawings(script: str) -> dict[str, dict[str, str]]:
    """Every icon of Font Awesome's script, as SVG text: pack -> name -> drawing."""
    found: dict[str, dict[str, str]] = {}
    start = 0
    for pack in PACKS:
        end = script.find(f'("{pack}",', start)
        if end < 0:
            raise ExtensionError(f"fontawesome.js has no pack {pack}: has the theme changed?")
        icons = found[pack] = {}
        for icon in ICON.finditer(script, start, end):
            box = f"0 0 {icon['width']} {icon['height']}"
            svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">'
            svg += f'<path d="{icon["path"]}"/></svg>'
            aliases = re.findall(r'"([\w-]+)"', icon["aliases"])
            icons |= dict.fromkeys([icon["quoted"] or icon["bare"], *aliases], svg)
        start = end
    return found


def style(used: set[str], script: str) -> str:
    """The style for the icon classes in `used` (`fa-sun`); other classes (`fa-lg`) are ignored."""
    rules = [BASE]
    for pack, icons in drawings(script).items():
        classes = PACKS[pack]
        for name in sorted(name for name in icons if f"fa-{name}" in used):
            selectors = ", ".join(f"{c and '.'}{c}.fa-{name}" for c in classes)
            image = f'url("data:image/svg+xml,{quote(icons[name])}")'
            rules.append(f"{selectors} {{ --afm-icon: {image}; }}\n")
    return "".join(rules)


def write_style(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    texts = [*out.rglob("*.html"), *(out / "_static" / "scripts").glob("*.js")]
    used = {
        name
        for path in texts
        if path.name != SCRIPT.name
        for name in re.findall(r"\bfa-[a-z0-9-]+", path.read_text(encoding="utf-8"))
    }
    css = style(used, SCRIPT.read_text(encoding="utf-8"))
    (out / "_static" / STYLE).write_text(css, encoding="utf-8")


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


# In both styles of _config.yml these have the color of Token.Text.
PLAIN = {Token.Name, Token.Name.Namespace, Token.Punctuation, Token.Text.Whitespace}


class LeanFormatter(HtmlFormatter):
    """Code as HTML, with elements only for what has a color of its own."""

    def format_unencoded(self, tokensource, outfile) -> None:
        lean = ((Token.Text if kind in PLAIN else kind, text) for kind, text in tokensource)
        super().format_unencoded(lean, outfile)


def setup(app: Sphinx) -> None:
    PygmentsBridge.html_formatter = LeanFormatter
    # Jupyter Book sets these for extensions that _config.yml leaves out: unknown, they would warn.
    app.add_config_value("comments_config", {}, "")
    app.add_config_value("use_jupyterbook_latex", False, "")
    app.add_css_file(STYLE, priority=600)
    app.connect("build-finished", write_style, priority=600)
    app.connect("build-finished", clean, priority=700)
