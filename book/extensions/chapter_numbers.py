"""Sphinx extension: a chapter has the number of its file, in sidebar, arrows and search.

`chapters/07-positional-encodings` is chapter 7 whatever comes before it in the table of contents
(Sphinx's own numbering counts entries, and some chapters are not written yet).
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

CHAPTER = re.compile(r"chapters/(\d+)-")


def number(document: str) -> int | None:
    """The number in a chapter's file name; None for another page.

    >>> number("chapters/07-positional-encodings"), number("book/glossary")
    (7, None)
    """
    found = CHAPTER.match(document)
    return int(found[1]) if found else None


def add_number(app: Sphinx, document: nodes.document) -> None:
    page = app.env.docname
    if number(page) is None:
        return
    entry = next(iter(app.env.tocs[page].findall(nodes.reference)))
    for title in (app.env.titles[page], entry):
        title.insert(0, nodes.Text(f"{number(page)} · "))


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", add_number, priority=900)  # after Sphinx has collected the titles
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
