"""Sphinx extension: the icons that the built pages use, as one small style.

The theme marks icons with the classes of Font Awesome and draws them with a script that carries all
2,000 of them. This extension looks for the classes in the built pages and in the theme's scripts,
takes the drawings of those icons from that same script, and writes `_static/afm-icons.css`, where
each is a mask that takes the color of the text around it.
"""

import re
from pathlib import Path
from urllib.parse import quote

import pydata_sphinx_theme
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

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


def setup(app: Sphinx) -> dict[str, object]:
    app.add_css_file(STYLE, priority=600)
    app.connect("build-finished", write_style, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
