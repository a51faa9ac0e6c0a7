"""Sphinx extension: d3 and jQuery beside the pages, for bertviz's views.

`HeadView`, `ModelView` and `NeuronView` load them when they come into view; no page does otherwise.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from transformer_lib.widgets.bertviz import LIBRARIES, MODULES

SCRIPTS = dict(zip(("jquery.js", "d3.js"), LIBRARIES, strict=True))


def copy_scripts(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "bertviz"
    target.mkdir(parents=True, exist_ok=True)
    for name, source in SCRIPTS.items():
        if not (MODULES / source).exists():
            raise ExtensionError(f"{MODULES / source} is missing: run `make`, which installs it")
        shutil.copy(MODULES / source, target / name)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", copy_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
