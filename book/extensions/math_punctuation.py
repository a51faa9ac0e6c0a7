"""Sphinx extension: a comma or a full stop stays on the line of the formula before it.

KaTeX makes a formula of inline blocks, after which a browser may break the line. So formula and
punctuation are wrapped in an element that does not break (class `afm-nobreak`).
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

CLOSING = re.compile(r"[.,;:!?)\]’”…]+")


def keep_together(app: Sphinx, document: nodes.document) -> None:
    for formula in list(document.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        after = parent[place + 1] if place + 1 < len(parent) else None
        closing = CLOSING.match(after.astext()) if isinstance(after, nodes.Text) else None
        if closing:
            rest = after.astext()[closing.end() :]
            whole = nodes.inline("", "", formula.deepcopy(), nodes.Text(closing[0]))
            whole["classes"].append("afm-nobreak")
            parent[place : place + 2] = [whole, nodes.Text(rest)] if rest else [whole]


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", keep_together)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
