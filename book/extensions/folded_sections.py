"""Sphinx extension: sections that a reader of the road passes by are folded below their headings.

`## Prove it` and `## What goes wrong in practice` keep heading, anchor and place in "On this page".
A link that leads there opens them, and so does paper (book/assets/afm-page.js).
"""

from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

# The heading, and what the line below it says.
FOLDED = {
    "Prove it": "Show the proof",
    "What goes wrong in practice": "Show the cases",
}


class Folded(nodes.General, nodes.Element):
    """All of a section below its heading."""


def visit_folded(self: HTML5Translator, node: Folded) -> None:
    self.body.append(f'<details class="afm-folded">\n<summary>{escape(node["prompt"])}</summary>\n')


def depart_folded(self: HTML5Translator, node: Folded) -> None:
    self.body.append("</details>\n")


def fold_sections(app: Sphinx, document: nodes.document) -> None:
    if not app.env.docname.startswith("chapters/"):
        return
    for section in list(document.findall(nodes.section)):
        title = section[0].astext() if section and isinstance(section[0], nodes.title) else ""
        if title in FOLDED and len(section) > 1:
            folded = Folded("", *section[1:], prompt=FOLDED[title])
            section.children = section.children[:1]
            section += folded


def setup(app: Sphinx) -> dict[str, object]:
    app.add_node(Folded, html=(visit_folded, depart_folded))
    app.connect("doctree-read", fold_sections, priority=900)  # after Sphinx has listed all headings
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
