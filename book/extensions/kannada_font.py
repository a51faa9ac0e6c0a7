"""Sphinx extension: the letters of Kannada, from npm's package, beside the pages.

Few readers' systems lack them, but those that do show empty boxes. Of the font only the Kannada
part is taken (28 kB), and a browser loads it only for a page that has such letters
(assets/afm.css).
"""

import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PACKAGE = Path(sys.prefix) / "npm" / "node_modules" / "@fontsource" / "noto-sans-kannada"
FONT = PACKAGE / "files" / "noto-sans-kannada-kannada-400-normal.woff2"


def check(app: Sphinx) -> None:
    if not FONT.is_file():
        raise ExtensionError(f"{FONT} is missing: run `make`, which installs npm's packages")


def copy(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        target = Path(app.outdir) / "_static" / "kannada.woff2"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(FONT, target)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("builder-inited", check)
    app.connect("build-finished", copy)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
