"""Begin a figure: the small one of `widgets/base.py`, which runs, under a name of its own.

    python book/new_figure.py stream-norm

Writes transformer_lib/widgets/stream_norm/, puts the name into `widgets/__init__.py`, and says what
is left to do.
"""

import keyword
import re
import sys
from pathlib import Path
from textwrap import dedent

from transformer_lib import widgets
from transformer_lib.widgets import base

WIDGETS = Path(base.__file__).parent
EXAMPLE = "softmax_row"
IMPORTS = """\
from typing import ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Setting
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet


"""
LEFT = """\
Written: {folder}, and its name in {listing}. What is left:
- what it shows, in widget.py and view.js; what needs no page, in a model.js beside them
- one of it in DRIVEN of tests/widgets/test_widget_driving.py
- tests of what it computes (tests/js) and of what it shows (tests/browser)
- a chapter's cell that ends in {cls}(...); `make notebooks PATHS=03-scaling` takes its still"""


def class_of(name: str) -> str:
    """The class of a figure: `stream_norm` -> `StreamNorm`."""
    return "".join(part.capitalize() for part in name.split("_"))


def files(name: str) -> dict[str, str]:
    """The files of a figure, with their texts: those that `widgets/base.py` shows."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", base.__doc__, re.MULTILINE)
    python, view = (dedent(block).strip() + "\n" for block in blocks if block.strip())
    cls = class_of(name)
    texts = {
        "__init__.py": f"from transformer_lib.widgets.{EXAMPLE}.widget import {class_of(EXAMPLE)}\n"
        f'\n__all__ = ["{class_of(EXAMPLE)}"]\n',
        "widget.py": f'"""What this figure is for."""\n\n{IMPORTS}{python}',
        "view.js": view,
    }
    return {
        file: text.replace(EXAMPLE, name).replace(class_of(EXAMPLE), cls)
        for file, text in texts.items()
    }


def listed(listing: str, name: str) -> str:
    """The text of `widgets/__init__.py` with one more figure, in its place."""
    cls = class_of(name)
    new = {
        "from ": f"from transformer_lib.widgets.{name} import {cls}\n",
        '    "': f'    "{cls}",\n',
    }
    for begin, line in new.items():
        block = re.search(rf"(?:^{begin}.*\n)+", listing, re.MULTILINE)
        lines = sorted([*block[0].splitlines(keepends=True), line])
        listing = listing[: block.start()] + "".join(lines) + listing[block.end() :]
    return listing


def main() -> int:
    name = "".join(sys.argv[1:]).replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        print("Say: make figure NAME=stream-norm", file=sys.stderr)
        return 1
    folder, listing = WIDGETS / name, WIDGETS / "__init__.py"
    if folder.exists() or (WIDGETS / f"{name}.py").exists():
        print(f"{folder} is there already", file=sys.stderr)
        return 1
    if keyword.iskeyword(name) or hasattr(widgets, class_of(name)):
        taken = name if keyword.iskeyword(name) else class_of(name)
        print(
            f"{taken} is a name of Python's or of widgets/__init__.py: choose another",
            file=sys.stderr,
        )
        return 1
    folder.mkdir()
    for file, text in files(name).items():
        (folder / file).write_text(text, encoding="utf-8")
    listing.write_text(listed(listing.read_text("utf-8"), name), encoding="utf-8")
    print(LEFT.format(folder=folder, listing=listing, cls=class_of(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
