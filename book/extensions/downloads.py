"""Sphinx extension: a notebook that is downloaded from a page links to the published pages.

A chapter's links are relative: `../book/glossary.md#query`. Beside the book's other files that is
right; in a notebook opened alone they would lead nowhere. So, if the repository has an address, the
copies that the button hands out get absolute links. (Colab, which opens a notebook from GitHub,
makes them absolute itself.)
"""

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # book/stored_form.py uses what is here, and does not need Sphinx
    from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()(?!#|\w+:)([^\s()#]+)\.(ipynb|md)(#[^\s()]*)?(?=\))")


def pages_address(repository: str) -> str:
    """Where GitHub Pages publishes a repository; "" for one without an address.

    >>> pages_address("https://github.com/Someone/some-book")
    'https://someone.github.io/some-book/'
    >>> pages_address("https://github.com/someone/someone.github.io")
    'https://someone.github.io/'
    """
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository or "")
    if not found:
        return ""
    site = f"{found[1].lower()}.github.io"
    return f"https://{site}/" if found[2].lower() == site else f"https://{site}/{found[2]}/"


def with_absolute_links(text: str, folder: str) -> str:
    """Markdown whose links to chapters and pages lead to those of the published book.

    >>> folder = "https://someone.github.io/some-book/chapters/"
    >>> with_absolute_links("[a query](../book/glossary.md#query), [next](02-b.ipynb)", folder)
    ... # doctest: +NORMALIZE_WHITESPACE
    '[a query](https://someone.github.io/some-book/book/glossary.html#query),
    [next](https://someone.github.io/some-book/chapters/02-b.html)'
    """
    scheme, rest = folder.split("//", 1)

    def absolute(link: re.Match) -> str:
        return f"{scheme}//{posixpath.normpath(rest + link[1])}.html{link[3] or ''}"

    return LINK.sub(absolute, text)


def rewrite(app: "Sphinx", error: Exception | None) -> None:
    pages = pages_address(app.config.html_theme_options.get("repository_url"))
    if error is not None or app.builder.format != "html" or not pages:
        return
    sources = Path(app.outdir) / "_sources"
    for path in sources.rglob("*.ipynb"):
        nb = json.loads(path.read_text(encoding="utf-8"))
        folder = f"{pages}{path.parent.relative_to(sources).as_posix()}/"
        for cell in nb["cells"]:
            if cell["cell_type"] == "markdown":
                source = with_absolute_links("".join(cell["source"]), folder)
                cell["source"] = source.splitlines(keepends=True)
        path.write_text(json.dumps(nb, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, object]:
    app.connect("build-finished", rewrite)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
