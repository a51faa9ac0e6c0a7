"""Sphinx extension: the licenses of other people's work that the built pages hand out, as one file.

`_static/licenses.txt` is put together from the files that the installed packages bring with them.
Every page links to it (templates/extra-footer.html).
"""

import json
import os
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MODULES = Path(os.environ.get("AFM_NPM") or Path(sys.prefix) / "npm" / "node_modules")
NAME = "licenses.txt"
# Packages of Python, and what the pages have of each.
PYTHON = {
    "bertviz": "the script of the head view",
    "Sphinx": "search, and a part of the style",
    "sphinx-book-theme": "the theme",
    "pydata-sphinx-theme": "the theme, Bootstrap and drawings of Font Awesome (CC BY 4.0)",
    "sphinx-copybutton": "the buttons that copy code, with clipboard.js (MIT, Zeno Rocha)",
    "myst-nb": "the style of cells",
    "accessible-pygments": "the colors of code",
}
EDITOR = (
    *(f"@codemirror/{part}" for part in ("autocomplete", "commands", "lang-python", "language")),
    *(f"@codemirror/{part}" for part in ("state", "view")),
    *(f"@lezer/{part}" for part in ("common", "highlight", "lr", "python")),
    *("@marijn/find-cluster-break", "crelt", "style-mod", "w3c-keyname"),
)
NPM = {
    "katex": "the style and the fonts of formulas",
    "@fontsource/noto-sans-kannada": "the letters of Kannada",
    "d3": "drawing in the head view",
    "jquery": "the head view",
    "@micropython/micropython-webassembly-pyscript": "Python on the page",
    **dict.fromkeys(EDITOR, "the editor of Python on the page"),
}
# Under the MIT License, whose text their packages do not bring: who has the copyright.
MIT = {"@micropython/micropython-webassembly-pyscript": "2013-2025 Damien P. George"}
OURS = Path(__file__).parents[2] / "LICENSE"  # the same text
INTRODUCTION = """\
The book's code is under the MIT License, its words and figures are under CC BY 4.0. Its pages also
contain parts of the works below, which come under their own licenses."""
LICENSE = 13  # a font's name record, by OpenType's specification


LICENSE_FILE = re.compile(r"^(LICEN[SC]E|COPYING|NOTICE)|\.LICENSE\.txt$", re.IGNORECASE)


def python_licenses(package: str) -> list[str]:
    """The texts of a package's license files, those of scripts included."""
    files = [f for f in distribution(package).files or () if LICENSE_FILE.search(f.name)]
    return [f.locate().read_text(encoding="utf-8").strip() for f in files]


def npm_licenses(package: str) -> list[str]:
    """The text of the license of npm's package, and what its fonts say about themselves."""
    folder = MODULES / package
    texts = [path.read_text(encoding="utf-8").strip() for path in sorted(folder.glob("LICENSE*"))]
    about = folder / "package.json"
    if not texts and package in MIT and json.loads(about.read_text("utf-8"))["license"] == "MIT":
        text = OURS.read_text(encoding="utf-8").strip()
        texts.append(re.sub(r"^Copyright.*$", f"Copyright (c) {MIT[package]}", text, flags=re.M))
    for path in sorted(folder.glob("dist/fonts/*.ttf")):
        texts.append(f"{path.stem}: {TTFont(path)['name'].getDebugName(LICENSE)}")
    return texts


def notices() -> str:
    """All of it. Raises ExtensionError if a package brings no license."""
    parts = [INTRODUCTION]
    for packages, licenses in ((PYTHON, python_licenses), (NPM, npm_licenses)):
        for package, what in packages.items():
            texts = licenses(package)
            if not texts:
                raise ExtensionError(f"the package {package} brings no license: has it changed?")
            parts += [f"{'=' * 72}\n{package}: {what}\n{'=' * 72}", *texts]
    return "\n\n".join(parts) + "\n"


def write_notices(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        path = Path(app.outdir) / "_static" / NAME
        path.write_text(notices(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", write_notices)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
