"""Sphinx extension: other people's files beside the pages, and the licenses of all their work.

- d3 and jQuery, for bertviz's views, which load them when they come into view; no page does
  otherwise. And the letters of Kannada: few readers' systems lack them, but those that do show
  empty boxes. Of the font only the Kannada part is taken (28 kB), and a browser loads it only for a
  page that has such letters (assets/afm.css). (KaTeX's files: formulas.py; Python's: figures.py.)
- `_static/licenses.txt` is put together from the files that the installed packages bring with them.
  Every page links to it (templates/extra-footer.html). A built file that is neither the book's own
  nor any package's stops the build: whoever adds one says here whose it is.
"""

import re
import shutil
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from transformer_lib.widgets.bertviz import LIBRARIES, NPM

# Where npm has these files, and where the pages have them, below _static.
KANNADA = "@fontsource/noto-sans-kannada/files/noto-sans-kannada-kannada-400-normal.woff2"
BERTVIZ = dict(zip(("jquery.js", "d3.js"), LIBRARIES, strict=True))
COPIED = {KANNADA: "kannada.woff2"} | {
    source: f"bertviz/{name}" for name, source in BERTVIZ.items()
}
NAME = "licenses.txt"
# The files that the book itself makes or brings.
OWN = (
    "*.html",
    "book/*.html",
    "chapters/*.html",
    "_images/*",  # what chapters draw
    "_downloads/*/*.ipynb",
    "_downloads/*/references.bib",
    "_sources/book/*.md",
    "_sources/chapters/*.ipynb",
    "_static/afm*.css",
    "_static/afm*.js",
    "_static/afm-mark.svg",
    "_static/asked-*.js",
    "_static/cells-*.js",
    "_static/checks-*.js",
    "_static/machine-*.js",
    "_static/machine.gif",
    "_static/page-*.js",
    "_static/weights-*.js",
    "_static/yours-*.js",
    f"_static/{NAME}",
)


@dataclass(frozen=True)
class Part:
    """Somebody's work: what the pages have of it, the files that are it, where the license is."""

    what: str
    files: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()  # npm's packages that it is; otherwise it is Python's of that name
    notice: str = ""  # of a work that brings no text for it
    asked_for: bool = False  # in the built book only where a page has a figure that needs it


MIT, CC_BY = "the MIT License", "the Creative Commons Attribution 4.0 International License"
GPT2 = f"""\
Modified MIT License

Software Copyright (c) 2019 OpenAI

We don't claim ownership of the content you create with GPT-2, so it is yours to do with as you
please. We only ask that you use GPT-2 responsibly and clearly indicate your content was created
using GPT-2.

All else as in {MIT}, whose text is above, and:

The above copyright notice and this permission notice need not be included with content created by
the Software."""
PARTS = {
    "bertviz": Part("the scripts of three views, changed to load nothing and to have names"),
    "Sphinx": Part(
        "search, and a part of the style",
        (
            ".buildinfo",
            "objects.inv",
            "searchindex.js",
            "_static/basic.css",
            "_static/doc*.js",
            "_static/*searchtools.js",
            "_static/sphinx_highlight.js",
            "_static/language_data.js",
            *(f"_static/{name}.png" for name in ("file", "minus", "plus")),
        ),
    ),
    "sphinx-book-theme": Part(
        "the theme",
        ("_static/*/sphinx-book-theme.*", "_static/images/logo_colab.png"),
    ),
    "pydata-sphinx-theme": Part(
        "the theme below it", ("_static/*/pydata-sphinx-theme.*", "_static/styles/theme.css")
    ),
    "Bootstrap": Part(
        "in the theme's style and scripts",
        ("_static/scripts/bootstrap.js", "_static/scripts/bootstrap.js.LICENSE.txt"),
        notice=f"Copyright 2011-2024 The Bootstrap Authors\nUnder {MIT}, whose text is above.",
    ),
    "Popper": Part(
        "in Bootstrap's script",
        notice=f"Copyright (c) 2019 Federico Zivolo\nUnder {MIT}, whose text is above.",
    ),
    "Font Awesome Free 6": Part(
        "drawings of icons, and classes of the theme's style (https://fontawesome.com)",
        ("_static/afm-icons.css",),
        notice=f"Copyright 2024 Fonticons, Inc.\nThe drawings are under {CC_BY},\n"
        f"the style is under {MIT}; both texts are above. The drawings are as they were.",
    ),
    "sphinx-copybutton": Part(
        "the buttons that copy code",
        ("_static/copybutton.css", "_static/copybutton.js", "_static/copybutton_funcs.js"),
    ),
    "clipboard.js": Part(
        "in these buttons",
        ("_static/clipboard.min.js",),
        notice=f"Copyright (c) Zeno Rocha\nUnder {MIT}, whose text is above.",
    ),
    "Tabler Icons": Part(
        "the drawings on these buttons",
        ("_static/check-solid.svg", "_static/copy-button.svg"),
        notice=f"Copyright (c) 2020-2022 Paweł Kuna\nUnder {MIT}, whose text is above.",
    ),
    "myst-nb": Part("the style of cells", ("_static/mystnb.*.css",)),
    "Pygments": Part("the colors of code", ("_static/pygments.css",)),
    "accessible-pygments": Part("the choice of these colors"),
    "sphinxcontrib-katex": Part("the width of formulas", ("_static/katex-math.css",)),
    "katex": Part(
        "the style and the fonts of formulas",
        ("_static/katex/katex.css", "_static/katex/fonts/KaTeX_*.woff2"),
        npm=("katex",),
    ),
    "Noto Sans Kannada": Part(
        "the letters of Kannada",
        ("_static/kannada.woff2",),
        npm=("@fontsource/noto-sans-kannada",),
    ),
    # 30 packages in one file, and some of them have somebody else's work in turn.
    "d3": Part("drawing in bertviz's views", ("_static/bertviz/d3.js",), npm=("d3", "d3-*")),
    "jquery": Part("bertviz's views", ("_static/bertviz/jquery.js",), npm=("jquery",)),
    # The license is that of the code of GPT-2, which the files of its vocabulary came with.
    "GPT-2": Part(
        "its vocabulary, written as its merges",
        ("_static/vocabulary-*.js",),
        notice=GPT2,
        asked_for=True,
    ),
    "gpt-tokenizer": Part(
        "the list of GPT-2's tokens, which these are made from",
        ("_static/vocabulary-*.js",),
        npm=("gpt-tokenizer",),
        asked_for=True,
    ),
    "MicroPython": Part(
        "Python in the page",
        ("_static/python-*.js",),
        notice=f"Copyright (c) 2013-2025 Damien P. George\nUnder {MIT}, whose text is above.",
        asked_for=True,
    ),
    "CodeMirror": Part(
        "the editor of Python in the page",
        ("_static/editor-*.js",),
        npm=("@codemirror/*", "@lezer/*", "@marijn/*", "style-mod", "w3c-keyname", "crelt"),
        asked_for=True,
    ),
}
INTRODUCTION = """\
The book's code is under the MIT License, its words and figures are under CC BY 4.0. Its pages also
contain parts of the works below, which come under their own licenses."""
LICENSE = 13  # a font's name record, by OpenType's specification


LICENSE_FILE = re.compile(
    r"^(LICEN[SC]E|COPYING|NOTICE|AUTHORS)|\.LICENSE\.txt$|_view\.js$", re.IGNORECASE
)
HEADER = re.compile(r"/\*\*.*?\*/", re.DOTALL)  # a script's first words: who has changed what


def python_licenses(package: str) -> list[str]:
    """The texts of a package's license files, and what its scripts for the pages begin with."""
    texts = []
    for file in distribution(package).files or ():
        if LICENSE_FILE.search(file.name):
            text = file.locate().read_text(encoding="utf-8")
            texts += HEADER.findall(text)[:1] if file.suffix == ".js" else [text.strip()]
    return texts


def npm_licenses(packages: tuple[str, ...]) -> list[str]:
    """The licenses of npm's packages, each text once, and what their fonts say of themselves."""
    folders = [folder for name in packages for folder in sorted(NPM.glob(name))]
    files = [path for folder in folders for path in sorted(folder.glob("LICENSE*"))]
    texts = [path.read_text(encoding="utf-8").strip() for path in files]
    for path in (path for folder in folders for path in sorted(folder.glob("dist/fonts/*.ttf"))):
        texts.append(f"{path.stem}: {TTFont(path)['name'].getDebugName(LICENSE)}")
    return list(dict.fromkeys(texts))


def shipped(part: Part, out: Path) -> bool:
    return not part.asked_for or any(True for name in part.files for _ in out.glob(name))


def notices(out: Path) -> str:
    """All of it, for the book in `out`. Raises ExtensionError if a package brings no license."""
    parts = [INTRODUCTION, *python_licenses("transformer_lib")]
    for name, part in PARTS.items():
        if not shipped(part, out):
            continue
        if part.notice:
            texts = [part.notice]
        else:
            texts = npm_licenses(part.npm) if part.npm else python_licenses(name)
        if not texts:
            raise ExtensionError(f"the package {name} brings no license: has it changed?")
        parts += [f"{'=' * 72}\n{name}: {part.what}\n{'=' * 72}", *texts]
    return "\n\n".join(parts) + "\n"


def require_known(out: Path) -> None:
    """Raises ExtensionError if a built file is nobody's: see the top of this file."""
    patterns = [*OWN, *(pattern for part in PARTS.values() for pattern in part.files)]
    known = {path for pattern in patterns for path in out.glob(pattern)}
    unknown = [path for path in sorted(out.rglob("*")) if path.is_file() and path not in known]
    if unknown:
        names = ", ".join(path.relative_to(out).as_posix() for path in unknown)
        raise ExtensionError(
            f"whose work is {names}? Say in book/extensions/notices.py: under OWN if it is the "
            "book's, else under PARTS, so that its license is in the built book."
        )


def require_files(app: Sphinx) -> None:
    for source in COPIED:
        if not (NPM / source).is_file():
            raise ExtensionError(f"{NPM / source} is missing: run `make`, which installs it")


def copy_files(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        for source, name in COPIED.items():
            target = Path(app.outdir) / "_static" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(NPM / source, target)


def write_notices(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        out = Path(app.outdir)
        (out / "_static" / NAME).write_text(notices(out), encoding="utf-8")
        require_known(out)


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", require_files)
    app.connect("build-finished", copy_files)
    app.connect("build-finished", write_notices, priority=900)  # after all that write or delete
