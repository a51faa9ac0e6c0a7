"""Sphinx extension: every anchor of a page can be reached by a plain Markdown link.

The chapters are read in Colab and JupyterLab too, where MyST roles such as ``{term}`` show as raw
text. So they link with ``[query](../book/glossary.md#query)``. MyST resolves the part after ``#``
among a page's headings only. This extension adds, to what MyST finds there:

- the terms of a glossary: ``#query``, ``#key-value-cache`` (the term in lower case, with hyphens);
- every explicit target: ``(some-name)=`` in Markdown, and what a directive names, such as the
  entries of the references page (``#vaswani2017``).

A link to an anchor that does not exist stays a warning, and so fails the build.
"""

import re
import unicodedata

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

logger = getLogger(__name__)


def slug(text: str) -> str:
    """The anchor of a term: lower case, accents dropped, words joined by hyphens.

    >>> slug("Key-value cache (KV cache)")
    'key-value-cache-kv-cache'
    >>> slug("Naïve")
    'naive'
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def register_anchors(app: Sphinx, document: nodes.document) -> None:
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for term in document.findall(nodes.term):
        if not term["ids"]:  # a definition list, not a glossary
            continue
        name = slug(term.astext())
        if name in slugs:
            logger.warning("anchor #%s is used twice on this page", name, location=term)
        # First of the ids: it becomes the id of the <dt> itself.
        term["ids"].insert(0, name)
        slugs[name] = (term.line, name, term.astext())
    for name, explicit in document.nametypes.items():
        if explicit and document.nameids.get(name):
            slugs.setdefault(name, (None, document.nameids[name], name))


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", register_anchors)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
