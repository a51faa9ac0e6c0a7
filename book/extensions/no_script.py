"""Sphinx extension: where a figure needs JavaScript and there is none, a sentence says so."""

from docutils import nodes
from sphinx.application import Sphinx

VIEW = "application/vnd.jupyter.widget-view+json"
NOTE = (
    '<noscript><p class="afm-noscript">Here is a figure that you can use. It computes in your '
    "browser, with JavaScript, which is off. The text, the formulas and the code do without.</p>"
    "</noscript>"
)


def is_question(node: nodes.Node | None) -> bool:
    """Whether a node is in a cell that asks a question: there, reveal.py says more."""
    return node is not None and ("afm-guess" in node.get("classes", ()) or is_question(node.parent))


def add_notes(app: Sphinx, document: nodes.document) -> None:
    for view in list(document.findall(nodes.raw)):
        if VIEW in view.astext() and not is_question(view.parent):
            place = view.parent.index(view)
            view.parent.insert(place + 1, nodes.raw("", NOTE, format="html"))


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", add_notes, priority=600)  # after reveal.py
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
