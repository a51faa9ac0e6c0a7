"""Sphinx extension: how a chapter's cells look on the page.

- A hidden cell opens at a line that says what it holds (Setup, Solution, Code). MyST-NB's own line
  is named "Toggle hidden content" while it reads "Show code cell source", which fails WCAG 2.5.3.
- An error that is the lesson shows its last line, not the path to it: the files of the machine that
  built the page mean nothing to the reader, and the cell that raised it is right above.
- The line that names a cell for Colab (`# @title ...`) is left out.
"""

import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

LABELS = {"tag_setup": "Setup", "tag_solution": "Solution", "tag_hide-output": "Output"}
TITLE = re.compile(r"# @title .*\n+")
RAISED = re.compile(
    r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)\b.*", re.M
)


def label(classes: list[str]) -> str:
    """The name of the hidden part of a cell with these classes."""
    return next((LABELS[name] for name in classes if name in LABELS), "Code")


def last_line(traceback: str) -> str:
    """The error itself, with its whole message, out of a traceback.

    >>> last_line("Cell In[1], line 1\\n----> 1 int('a')\\n\\nValueError: not a\\nnumber")
    'ValueError: not a\\nnumber'
    """
    starts = [match.start() for match in RAISED.finditer(traceback)]
    # The first line of a traceback names the error too, before "Traceback (most recent call last)".
    starts = [
        start for start in starts if "Traceback (most" not in traceback[start:].split("\n")[0]
    ]
    return traceback[starts[0] :].rstrip() if starts else traceback


def visit_hidden(self: HTML5Translator, node: HideCodeCellNode) -> None:
    classes = escape(" ".join(["afm-hidden", *node["classes"]]))
    name = escape(node["prompt_show"])
    self.body.append(f'<details class="{classes}">\n<summary>{name}</summary>\n')


def depart_hidden(self: HTML5Translator, node: HideCodeCellNode) -> None:
    self.body.append("</details>\n")


def replace(block: nodes.literal_block, text: str, language: str) -> None:
    block.children = []
    block += nodes.Text(text)
    block.rawsource = text
    block["language"] = language


def mend_cells(app: Sphinx, document: nodes.document) -> None:
    for cell in document.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and cell.get("hide_mode"):
            cell["prompt_show"] = label(cell["classes"])
    for block in document.findall(nodes.literal_block):
        if "traceback" in block["classes"]:
            replace(block, last_line(block.astext()), "text")
        elif TITLE.match(block.astext()):
            replace(block, TITLE.sub("", block.astext(), count=1), block["language"])


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("myst_nb")
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden, depart_hidden))
    app.connect("doctree-read", mend_cells)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
