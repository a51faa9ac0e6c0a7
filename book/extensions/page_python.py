"""Sphinx extension: pages with the figure Write have Python and an editor in files beside them.

See book/python_files.py for what is in them. A page that has no such figure gets nothing.
"""

import json
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).parents[1]))
import python_files as built

sys.path.pop(0)

STATE = "application/vnd.jupyter.widget-state+json"


def name_files(app: Sphinx, document: nodes.document) -> None:
    scripts = getattr(app.env, "nb_metadata", {}).get(app.env.docname, {}).get("js_files", {})
    for _, options in scripts.values():
        if options.get("type") != STATE:
            continue
        held = json.loads(options["body"])
        try:
            found = built.named(held["state"])
        except (FileNotFoundError, ValueError) as error:
            raise ExtensionError(str(error)) from error
        if found:
            # As myst-nb writes it: `</script>` would end the tag.
            options["body"] = json.dumps(held).replace("</script>", r"<\/script>")
            asking(app.env).add(app.env.docname)


def asking(env: BuildEnvironment) -> set[str]:
    """The pages that need the files."""
    if not hasattr(env, "afm_python"):
        env.afm_python = set()
    return env.afm_python


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    asking(env).discard(docname)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    asking(env).update(asking(other).intersection(docnames))


def write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html" or not asking(app.env):
        return
    folder = Path(app.outdir) / "_static"
    folder.mkdir(exist_ok=True)
    for name, text in built.files().values():
        (folder / name).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("myst_nb")
    app.connect("doctree-read", name_files)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
