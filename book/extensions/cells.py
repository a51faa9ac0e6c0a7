"""Sphinx extension: how a chapter's cells and sections look on the page.

- A cell aside of the road opens at a line that says what it holds: its title (`# @title Imports`,
  which `make notebooks` writes for notebooks; it is left out of the code), or else Setup,
  Solution, Code. MyST-NB's own line is named "Toggle hidden content" while it reads "Show code cell
  source", which fails WCAG 2.5.3.
- The tags `setup`, `claim` and `listing` hide a whole cell. Two setup cells are one on the page.
- The code that asks a question holds the answer, and is not shown.
- An error that is the lesson shows its last line, not the path to it: the files of the machine that
  built the page mean nothing to the reader, and the cell that raised it is right above.
- What a chapter says to readers of the notebook alone, <p class="afm-notebook-only">, is left out.
- Sections that a reader of the road passes by are folded below their headings: `## Prove it` and
  `## What goes wrong in practice` keep heading, anchor and place in "On this page". A link that
  leads there opens them, and so does paper (book/assets/afm-page.js).
"""

import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

LABELS = {
    "tag_setup": "Setup",
    "tag_claim": "✓ checked",
    "tag_listing": "The library's code",
    "tag_solution": "Solution",
    "tag_hide-output": "Output",
}
WHOLE = {"tag_setup", "tag_claim", "tag_listing"}  # hidden from head to foot, whatever other tags
TITLE = re.compile(r"# @title (.*?)(?: \{display-mode: .*\})?\n+")
QUESTION = "Code of the question"
RAISED = re.compile(
    r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)\b.*", re.M
)

NOTEBOOK_ONLY = 'class="afm-notebook-only"'
# The heading of a folded section, and what the line below it says.
FOLDED = {
    "Prove it": "Show the proof",
    "What goes wrong in practice": "Show the cases",
}


class Folded(nodes.General, nodes.Element):
    """All of a section below its heading."""


def label(classes: list[str], title: str = "") -> str:
    """The name of the hidden part of a cell with these classes, and this title of its own."""
    if title and "tag_setup" not in classes:
        return title
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


def visit_folded(self: HTML5Translator, node: Folded) -> None:
    name = escape(node["prompt_show"])
    self.body.append(f'<details class="afm-folded">\n<summary>{name}</summary>\n')


def depart_hidden(self: HTML5Translator, node: nodes.Element) -> None:
    self.body.append("</details>\n")


def replace(block: nodes.literal_block, text: str, language: str) -> None:
    block.children = []
    block += nodes.Text(text)
    block.rawsource = text
    block["language"] = language


def is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def source_of(cell: nodes.container) -> nodes.container | None:
    """The part of a cell that holds its code, if it is there."""
    parts = (part for part in cell if part.get("nb_element") == "cell_code_source")
    return next(parts, None)


def take_title(cell: nodes.container) -> str:
    """Take the line that names a cell out of its code; the name."""
    source = source_of(cell)
    for block in source.findall(nodes.literal_block) if source else ():
        text = block.astext()
        if title := TITLE.match(text):
            replace(block, text[title.end() :], block["language"])
            return title[1]
    return ""


def join_setup(cells: list[nodes.container]) -> None:
    """Put the code of further setup cells into the first, so that one line opens all of it."""
    first, *others = [cell for cell in cells if "tag_setup" in cell["classes"]] or [None]
    for cell in others:
        place = first.index(source_of(first)) + 1
        parts = [part for part in cell if part.get("nb_element") == "cell_code_source"]
        first.children[place:place] = parts
        for part in parts:
            part.parent = first
        cell.parent.remove(cell)


def mend_cells(app: Sphinx, document: nodes.document) -> None:
    cells = list(document.findall(is_cell))
    for cell in cells:
        title = take_title(cell)
        if WHOLE & set(cell["classes"]):
            cell["hide_mode"] = "all"
            cell["prompt_hide"] = ""
        question = title == QUESTION or {"afm-guess", "tag_hide-input"} <= set(cell["classes"])
        if question and (source := source_of(cell)):
            cell.remove(source)
        elif cell.get("hide_mode"):
            cell["prompt_show"] = label(cell["classes"], title)
    join_setup(cells)
    for block in document.findall(nodes.literal_block):
        if "traceback" in block["classes"]:
            replace(block, last_line(block.astext()), "text")


def leave_out(app: Sphinx, document: nodes.document) -> None:
    for block in list(document.findall(nodes.raw)):
        if NOTEBOOK_ONLY in block.astext():
            block.parent.remove(block)


def fold_sections(app: Sphinx, document: nodes.document) -> None:
    if not app.env.docname.startswith("chapters/"):
        return
    for section in list(document.findall(nodes.section)):
        title = section[0].astext() if section and isinstance(section[0], nodes.title) else ""
        if title in FOLDED and len(section) > 1:
            folded = Folded("", *section[1:], prompt_show=FOLDED[title])
            section.children = section.children[:1]
            section += folded


def setup(app: Sphinx) -> None:
    app.setup_extension("myst_nb")
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden, depart_hidden))
    app.add_node(Folded, html=(visit_folded, depart_hidden))
    app.connect("doctree-read", mend_cells)
    app.connect("doctree-read", leave_out)
    app.connect("doctree-read", fold_sections, priority=900)  # after Sphinx has listed all headings
