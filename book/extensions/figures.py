"""Sphinx extension: what a page holds of its figures, and what lies beside it.

MyST-NB writes the state of a page's widgets into the page. Here that state is made small:

- **Each module and each style stands once.** Each model brings the text of all its modules, so that
  five questions on a page would be five times the same 50 kB, and six kinds of figures six times
  what they share. All models but the first of a kind name the first, `{"same_as": id}`. The first
  lists its modules: a text that stood on the page before is the place where it stood,
  `[id, name, index]`. book/assets/afm-host.js looks there. What is left is minified, but for
  comments that begin with `!`: core/figure.js looks for one.
- **Weights are files**, loaded when a figure needs them. The trait `_packed` holds a model's
  weights, up to a megabyte. They become `_static/weights-HASH.js`, a classic script (from file:// a
  page can load nothing else), and the trait names it: `{"load": "weights-HASH.js"}`.
  core/weights.js reads both. So it is with GPT-2's vocabulary, the trait `_vocabulary`.
- **A plot has 256 colors**, which nobody can tell from the thousands that it is drawn in, and a
  third of the bytes.
- **Python and an editor are files, too** (book/python_files.py), on pages with the figure Write.

Where a figure needs JavaScript and there is none, a sentence says so.
"""

import hashlib
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import python_files
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from stills import in_few_colors

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
FILES = {"_packed": "weights", "_vocabulary": "vocabulary"}  # how the file of each trait begins
TEXTS = {"_esm": "js", "_css": "css", "_worker": "js"}
# Before the line with which widgets/joining.py begins a file: "// core/dom.js".
MODULES = re.compile(r"^(?=// [\w/]+\.js$)", re.MULTILINE)
NOTE = (
    '<noscript><p class="afm-noscript">Here is a figure that you can use. It computes in your '
    "browser, with JavaScript, which is off. The text, the formulas and the code do without.</p>"
    "</noscript>"
)


def each_text_once(models: dict[str, dict]) -> None:
    """Leave each text of TEXTS in the state of one model only.

    >>> models = {"a": {"state": {"_esm": "x"}}, "b": {"state": {"_esm": "x"}}}
    >>> each_text_once(models)
    >>> models
    {'a': {'state': {'_esm': 'x'}}, 'b': {'state': {'_esm': {'same_as': 'a'}}}}
    """
    first: dict[tuple[str, str], str] = {}
    places: dict[str, list] = {}
    for id_, model in models.items():
        for name in TEXTS:
            text = model["state"].get(name)
            if not isinstance(text, str):
                continue
            if (owner := first.setdefault((name, text), id_)) != id_:
                model["state"][name] = {"same_as": owner}
            elif len(parts := [part for part in MODULES.split(text) if part]) > 1:
                here = [[id_, name, i] for i in range(len(parts))]
                found = [places.setdefault(p, at) for p, at in zip(parts, here, strict=True)]
                model["state"][name] = [
                    part if there == at else there
                    for part, at, there in zip(parts, here, found, strict=True)
                ]


def write_short(models: dict[str, dict]) -> None:
    """Minify each program and each style sheet.

    >>> models = {"a": {"state": {"_esm": "const two = 1 + 1;\\n"}}}
    >>> write_short(models)
    >>> models
    {'a': {'state': {'_esm': 'const two=2;\\n'}}}
    """
    places = []
    for model in models.values():
        for name, language in TEXTS.items():
            match model["state"].get(name):
                case str():
                    places.append((model["state"], name, language))
                case list(parts):
                    places += [
                        (parts, i, language)
                        for i, part in enumerate(parts)
                        if isinstance(part, str)
                    ]
    if not places:
        return
    with TemporaryDirectory() as folder:
        files = [Path(folder, f"{i}.{language}") for i, (*_, language) in enumerate(places)]
        for file, (holder, key, _) in zip(files, places, strict=True):
            file.write_text(holder[key], encoding="utf-8")
        python_files.esbuild(*files, f"--outdir={folder}", "--allow-overwrite")
        for file, (holder, key, _) in zip(files, places, strict=True):
            holder[key] = file.read_text(encoding="utf-8")


def take_out_weights(models: dict[str, dict]) -> dict[str, str]:
    """Take weights and vocabularies out of the models; the files that hold them, by name.

    >>> buffer = {"path": ["_packed"], "encoding": "base64", "data": "QUZNVw=="}
    >>> models = {"a": {"state": {}, "buffers": [buffer]}}
    >>> take_out_weights(models)
    {'weights-dc237ab937.js': 'afm.provide("weights-dc237ab937.js", "QUZNVw==");\\n'}
    >>> models
    {'a': {'state': {'_packed': {'load': 'weights-dc237ab937.js'}}, 'buffers': []}}
    """
    files = {}
    for model in models.values():
        for buffer in model.get("buffers", [])[:]:
            [trait, *inside] = buffer["path"]
            if trait not in FILES or inside or not buffer["data"]:
                continue
            digest = hashlib.sha256(buffer["data"].encode("ascii")).hexdigest()
            name = f"{FILES[trait]}-{digest[:10]}.js"
            files[name] = f'afm.provide("{name}", "{buffer["data"]}");\n'
            model["buffers"].remove(buffer)
            model["state"][trait] = {"load": name}
    return files


def lean(body: str) -> tuple[str, dict[str, str]]:
    """The widget state of a page, as JSON, made small; and the files that it names."""
    held = json.loads(body)
    files = python_files.named(held["state"]) | take_out_weights(held["state"])
    each_text_once(held["state"])
    write_short(held["state"])
    # As myst-nb writes it: `</script>` would end the tag.
    return json.dumps(held).replace("</script>", r"<\/script>"), files


def scripts_of_state(app: Sphinx) -> list[dict[str, str]]:
    """The scripts of the page at hand that hold its widgets' state, as MyST-NB keeps them."""
    scripts = getattr(app.env, "nb_metadata", {}).get(app.env.docname, {}).get("js_files", {})
    return [options for _, options in scripts.values() if options.get("type") == STATE]


def shorten(app: Sphinx, document: nodes.document) -> None:
    for script in scripts_of_state(app):
        try:
            script["body"], files = lean(script["body"])
        except (FileNotFoundError, ValueError) as error:
            raise ExtensionError(str(error)) from error
        app.env.metadata[app.env.docname].setdefault("afm_figures", {}).update(files)


def write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for page in app.env.metadata.values():
        for name, text in page.get("afm_figures", {}).items():
            (Path(app.outdir) / "_static" / name).write_text(text, encoding="utf-8")


def save_colors(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / app.builder.imagedir).glob("*.png"):
        with Image.open(path) as picture:
            if picture.mode == "P" or picture.convert("RGBA").getextrema()[3][0] < 255:
                continue
            in_few_colors(picture.convert("RGB"), 256).save(path, optimize=True)


def in_question(node: nodes.Node | None) -> bool:
    """Whether a node is in a cell that asks a question: there, reveal.py says more."""
    return node is not None and ("afm-guess" in node.get("classes", ()) or in_question(node.parent))


def add_notes(app: Sphinx, document: nodes.document) -> None:
    for view in list(document.findall(nodes.raw)):
        if VIEW in view.astext() and not in_question(view.parent):
            place = view.parent.index(view)
            view.parent.insert(place + 1, nodes.raw("", NOTE, format="html"))


def setup(app: Sphinx) -> None:
    app.setup_extension("myst_nb")
    app.connect("doctree-read", shorten)
    app.connect("doctree-read", add_notes, priority=600)  # after reveal.py
    app.connect("build-finished", write)
    app.connect("build-finished", save_colors)
