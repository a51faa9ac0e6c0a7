"""Sphinx extension: what a chapter says to readers of the notebook alone is not on its page.

<p class="afm-notebook-only">Here the figures are still pictures until ...</p>
"""

from docutils import nodes
from sphinx.application import Sphinx

MARK = 'class="afm-notebook-only"'


def leave_out(app: Sphinx, document: nodes.document) -> None:
    for block in list(document.findall(nodes.raw)):
        if MARK in block.astext():
            block.parent.remove(block)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", leave_out)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
