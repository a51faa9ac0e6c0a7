"""Sphinx extension: a page holds the module and the style of its widgets once for each kind.

A page's widget state has a model for each figure, and each model the text of its whole module, so
that five questions on a page would be five times the same 50 kB. Here, all models but the first
name the first instead, `{"same_as": id}`, and book/assets/afm-host.js looks there.
"""

import json

from docutils import nodes
from sphinx.application import Sphinx

STATE = "application/vnd.jupyter.widget-state+json"
TEXTS = ("_esm", "_css", "_worker")


def lean(body: str) -> str:
    """The widget state of a page, as JSON, with each text of TEXTS once.

    >>> text = '{"state": {"a": {"state": {"_esm": "x"}}, "b": {"state": {"_esm": "x"}}}}'
    >>> lean(text)
    '{"state": {"a": {"state": {"_esm": "x"}}, "b": {"state": {"_esm": {"same_as": "a"}}}}}'
    """
    held = json.loads(body)
    first: dict[tuple[str, str], str] = {}
    for id_, model in held["state"].items():
        for name in TEXTS:
            text = model["state"].get(name)
            if isinstance(text, str) and (owner := first.setdefault((name, text), id_)) != id_:
                model["state"][name] = {"same_as": owner}
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
