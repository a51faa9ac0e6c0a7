"""Sphinx extension: phrases in the prose that set a figure.

    The mask holds in [two layers](#set:painter;layers=2;follow=roses), too.

On the page such a link becomes a span that the host (book/assets/afm-host.js) makes a button of;
without JavaScript and in print it is plain text. In a notebook it stays a link, which the figure's
own JavaScript takes (transformer_lib/widgets/core/state.js).

That each link names a figure of its page, with a key and a value that it takes, is for the tests to
say (tests/chapters/links.py).
"""

from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.writers.html5 import HTML5Translator

PREFIX = "#set:"


class setter(nodes.inline):
    """A phrase that sets a figure."""


class SetLinks(SphinxTransform):
    """Takes these links before MyST looks for their targets (its priority is 879)."""

    default_priority = 870

    def apply(self, **options: object) -> None:
        for link in list(self.document.findall(nodes.reference)):
            if str(link.get("refuri", "")).startswith(PREFIX):
                link.replace_self(setter("", "", *link.children, target=link["refuri"]))


def visit_setter(self: HTML5Translator, node: setter) -> None:
    self.body.append(f'<span class="afm-set" data-afm-set="{escape(node["target"])}">')


def depart_setter(self: HTML5Translator, node: setter) -> None:
    self.body.append("</span>")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_node(setter, html=(visit_setter, depart_setter))
    app.add_transform(SetLinks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
