"""Sphinx extension: a page holds each module and each style of its widgets once.

A page's widget state has a model for each figure, and each model the text of all its modules, so
that five questions on a page would be five times the same 50 kB, and six kinds of figures six times
what they share. Here, all models but the first of a kind name the first, `{"same_as": id}`. The
first of a kind lists its modules: a text that stood on the page before is the place where it stood,
`[id, name, index]`. book/assets/afm-host.js looks there.
"""

import json
import re

from docutils import nodes
from sphinx.application import Sphinx

STATE = "application/vnd.jupyter.widget-state+json"
TEXTS = ("_esm", "_css", "_worker")
# Before the line with which widgets/joining.py begins a file: "// core/dom.js".
FILES = re.compile(r"^(?=// [\w/]+\.js$)", re.MULTILINE)


def lean(body: str) -> str:
    """The widget state of a page, as JSON, with each text of TEXTS once.

    >>> text = '{"state": {"a": {"state": {"_esm": "x"}}, "b": {"state": {"_esm": "x"}}}}'
    >>> lean(text)
    '{"state": {"a": {"state": {"_esm": "x"}}, "b": {"state": {"_esm": {"same_as": "a"}}}}}'
    """
    held = json.loads(body)
    first: dict[tuple[str, str], str] = {}
    places: dict[str, list] = {}
    for id_, model in held["state"].items():
        for name in TEXTS:
            text = model["state"].get(name)
            if not isinstance(text, str):
                continue
            if (owner := first.setdefault((name, text), id_)) != id_:
                model["state"][name] = {"same_as": owner}
            elif len(parts := [part for part in FILES.split(text) if part]) > 1:
                here = [[id_, name, i] for i in range(len(parts))]
                found = [places.setdefault(p, at) for p, at in zip(parts, here, strict=True)]
                model["state"][name] = [
                    part if there == at else there
                    for part, at, there in zip(parts, here, found, strict=True)
                ]
    # As myst-nb writes it: `</script>` would end the tag.
    return json.dumps(held).replace("</script>", r"<\/script>")


def shorten(app: Sphinx, document: nodes.document) -> None:
    scripts = getattr(app.env, "nb_metadata", {}).get(app.env.docname, {}).get("js_files", {})
    for _, options in scripts.values():
        if options.get("type") == STATE:
            options["body"] = lean(options["body"])


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("myst_nb")
    app.connect("doctree-read", shorten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
