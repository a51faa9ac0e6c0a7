"""Sphinx extension: a page's weights are files beside it, loaded when a figure needs them.

A widget's trait `_packed` holds a model's weights, up to a megabyte, which a notebook carries in
its state. Here they become `_static/weights-HASH.js`, a classic script (from file:// a page can
load nothing else), and the trait names it: `{"load": "weights-HASH.js"}`. core/weights.js reads
both. So it is with GPT-2's vocabulary, the trait `_vocabulary`.
"""

import hashlib
import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

STATE = "application/vnd.jupyter.widget-state+json"
FILES = {"_packed": "weights", "_vocabulary": "vocabulary"}  # how the file of each trait begins


def without_weights(body: str) -> tuple[str, dict[str, str]]:
    """The widget state of a page, as JSON, without its weights; these by the name of their file.

    >>> buffer = '{"path": ["_packed"], "encoding": "base64", "data": "QUZNVw=="}'
    >>> text = '{"state": {"a": {"state": {}, "buffers": [%s]}}}' % buffer
    >>> body, files = without_weights(text)
    >>> body
    '{"state": {"a": {"state": {"_packed": {"load": "weights-dc237ab937.js"}}, "buffers": []}}}'
    >>> list(files.values())
    ['QUZNVw==']
    """
    held, files = json.loads(body), {}
    for entry in held["state"].values():
        for buffer in entry.get("buffers", [])[:]:
            [trait, *inside] = buffer["path"]
            if trait not in FILES or inside or not buffer["data"]:
                continue
            digest = hashlib.sha256(buffer["data"].encode("ascii")).hexdigest()
            name = f"{FILES[trait]}-{digest[:10]}.js"
            files[name] = buffer["data"]
            entry["buffers"].remove(buffer)
            entry["state"][trait] = {"load": name}
    # As myst-nb writes it: `</script>` would end the tag.
    return json.dumps(held).replace("</script>", r"<\/script>"), files


def take_out(app: Sphinx, document: nodes.document) -> None:
    name = app.env.docname
    scripts = getattr(app.env, "nb_metadata", {}).get(name, {}).get("js_files", {})
    for _, options in scripts.values():
        if options.get("type") == STATE:
            options["body"], files = without_weights(options["body"])
            if files:
                held(app.env)[name] = held(app.env).get(name, {}) | files


def held(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """The files of each page."""
    if not hasattr(env, "afm_weights"):
        env.afm_weights = {}
    return env.afm_weights


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    held(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    held(env).update({name: files for name, files in held(other).items() if name in docnames})


def write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static"
    for files in held(app.env).values():
        for name, data in files.items():
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(f'afm.provide("{name}", "{data}");\n', encoding="ascii")


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("myst_nb")
    app.connect("doctree-read", take_out)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
