"""Sphinx extension: what gives an answer away is hidden until the reader has guessed.

The cells tagged `reveal` that follow a `Predict` are in a <div class="afm-reveal afm-reveal-1">
(a heading among them has these classes itself), and the cell that asks has the classes `afm-guess
afm-guess-1`. The script afm-reveal.js, on such pages only, hides the one until the other says that
the answer may be seen. Without JavaScript all of it shows, and the question and its answer with
it: a <noscript> is made of what the widget holds.
"""

import base64
import json
import re
from collections.abc import Iterator
from html import escape

from docutils import nodes
from myst_nb.core.render import MditRenderMixin
from myst_nb.sphinx_ import SphinxNbRenderer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

QUESTION = re.compile(r"\bPredict(?:\.number|\.cell)?\(")
VIEW = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-view\+json">(.*?)</script>', re.S
)
STATE = "application/vnd.jupyter.widget-state+json"
# The markup of core/markup.js, as far as a page without JavaScript needs it.
MARKS = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*(?=[^\s*])(.+?)(?<=[^\s*])\*\*", re.S), r"<strong>\1</strong>"),
    (re.compile(r"\*(?=[^\s*])(.+?)(?<=[^\s*])\*", re.S), r"<em>\1</em>"),
)

logger = logging.getLogger(__name__)


class Reveal(nodes.General, nodes.Element):
    """Blocks that are hidden until the guess of their number is made."""


def visit_reveal(self: HTML5Translator, node: Reveal) -> None:
    self.body.append(f'<div class="{escape(" ".join(node["classes"]))}">\n')


def depart_reveal(self: HTML5Translator, node: Reveal) -> None:
    self.body.append("</div>\n")


def blocks(node: nodes.Element) -> Iterator[nodes.Element]:
    """The content of a document's sections, titles included, in order."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from blocks(child)
        else:
            yield child


def render_markdown(self: SphinxNbRenderer, token: object) -> None:
    """As MyST-NB does it; what comes out of a cell tagged `reveal` is marked."""
    if "reveal" not in token.meta["metadata"].get("tags", []):
        return MditRenderMixin.render_nb_cell_markdown(self, token)
    known = {id(block) for block in blocks(self.document)}
    MditRenderMixin.render_nb_cell_markdown(self, token)
    for block in blocks(self.document):
        if id(block) not in known and isinstance(block, nodes.Element):
            block["afm_reveal"] = True


def is_cell(block: nodes.Node) -> bool:
    return isinstance(block, nodes.container) and block.get("nb_element") == "cell_code"


def is_hidden(block: nodes.Node) -> bool:
    """Whether a block comes of a cell tagged `reveal`."""
    if is_cell(block):
        return "tag_reveal" in block["classes"]
    return isinstance(block, nodes.Element) and "afm_reveal" in block


def asks(block: nodes.Node) -> bool:
    """Whether a block is a cell that shows a question."""
    return is_cell(block) and any(
        QUESTION.search(code.astext())
        for part in block
        if part.get("nb_element") == "cell_code_source"
        for code in part.findall(nodes.literal_block)
    )


def wrap(block: nodes.Element, number: int) -> None:
    """Hide a block; with the one before it, if that is hidden already."""
    classes = ["afm-reveal", f"afm-reveal-{number}"]
    if isinstance(block, nodes.title):
        block["classes"] += classes
        return
    parent, at = block.parent, block.parent.index(block)
    before = parent[at - 1] if at else None
    parent.remove(block)
    if isinstance(before, Reveal) and before["classes"] == classes:
        before += block
    else:
        holder = Reveal(classes=classes)
        holder += block
        parent.insert(at, holder)


def hide(document: nodes.document, state: dict[str, dict]) -> None:
    """Mark the questions of a document, and hide what follows them; `state` is of its widgets."""
    number, open_ = 0, False
    for block in list(blocks(document)):
        if is_hidden(block):
            if open_:
                wrap(block, number)
            else:
                logger.warning("a cell is tagged reveal, and no Predict comes before it")
        elif asks(block):
            number, open_ = number + 1, True
            block["classes"] += ["afm-guess", f"afm-guess-{number}"]
            block += [nodes.raw("", text, format="html") for text in answers(block, state)]
        else:
            open_ = False


def answers(cell: nodes.container, state: dict[str, dict]) -> Iterator[str]:
    """The questions that a cell shows, and their answers, for a page without JavaScript."""
    for raw in cell.findall(nodes.raw):
        for view in VIEW.findall(raw.astext()):
            entry = state.get(json.loads(view)["model_id"], {})
            for buffer in entry.get("buffers", ()):
                if buffer["path"] == ["_text"]:
                    yield without_script(json.loads(base64.b64decode(buffer["data"])))


def without_script(question: dict) -> str:
    """A question and its answer as HTML."""
    kind, right = question["kind"], question["right"]
    listed, sentence = "", ""
    if kind == "options":
        listed = "".join(f"<li>{html(option['text'])}</li>" for option in question["options"])
        answer, sentence = (html(question["options"][right][key]) for key in ("text", "sentence"))
    elif kind == "number":
        answer = escape(f"{right:.4g} {question['unit']}".strip())
    else:
        row, column = right
        answer = escape(f"{question['rows'][row]}, {question['columns'][column]}")
    stop = "" if answer.endswith((".", "!", "?")) else "."
    told = [f"The answer: <strong>{answer}</strong>{stop}", sentence, html(question["then"])]
    return (
        f"<noscript><p><strong>{html(question['question'])}</strong></p>"
        + (f"<ul>{listed}</ul>" if listed else "")
        + f"<p>{' '.join(filter(None, told))}</p></noscript>\n"
    )


def html(text: str) -> str:
    """A text with the markup that `Predict` allows."""
    text = escape(text)
    for mark, replacement in MARKS:
        text = mark.sub(replacement, text)
    return text


def widget_state(app: Sphinx, page: str) -> dict[str, dict]:
    """The models of a page's widgets, by their ids."""
    scripts = app.env.nb_metadata.get(page, {}).get("js_files", {})
    bodies = [options["body"] for _, options in scripts.values() if options.get("type") == STATE]
    return {id_: entry for body in bodies for id_, entry in json.loads(body)["state"].items()}


def hide_answers(app: Sphinx, document: nodes.document) -> None:
    if any(map(asks, blocks(document))) or any(map(is_hidden, blocks(document))):
        hide(document, widget_state(app, app.env.docname))


def add_script(
    app: Sphinx, page: str, template: str, context: dict, document: nodes.document | None
) -> None:
    if document is not None and any(
        "afm-reveal" in node["classes"] for node in document.findall(nodes.Element)
    ):
        app.add_js_file("afm-reveal.js")


def setup(app: Sphinx) -> None:
    app.setup_extension("myst_nb")
    app.add_node(Reveal, html=(visit_reveal, depart_reveal))
    SphinxNbRenderer.render_nb_cell_markdown = render_markdown
    app.connect("doctree-read", hide_answers, priority=400)  # before cells.py takes code away
    app.connect("html-page-context", add_script)
