"""The one form in which chapters are stored, whoever has edited them and wherever they have run.

Kept: text outputs, tags, hide settings, alternative texts, and a small still picture of each figure
and plot (stills.py). Dropped: other pictures, widget state and views, times, and whatever else an
editor wrote into the metadata. Cells beside the road (tags
`claim`, `hide-input`, `listing`, the second `setup`) are folded in JupyterLab and Colab, under a
line that names them: `# @title ...`, which the page takes as the name, too.
"""

import ast
import base64
import hashlib
import io
import json
import re
import tokenize
from copy import deepcopy

from nbformat import NotebookNode

# `bits`: why a cell speaks of its numbers' last bits (book/elsewhere.py leaves them alone there).
CELL_METADATA = ("tags", "mystnb", "jupyter", "cellView", "bits")
PNG, JPEG, VIEW = "image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json"
LARGEST = 32_000  # bytes of a still
PALETTE = b"\x03"  # where a PNG's header says how its colors are stored
COLOR = re.compile(r"\\color\{[^}]*\}\{")
TITLE = re.compile(r"# @title (.*?)(?: \{display-mode: \"form\"\})?\n+")
CHECKED = "✓ checked"
QUESTION, FIGURE, NUMBERS = "Code of the question", "Code of the figure", "Code of the numbers"

SETUP_UNPUBLISHED = """\
# First: Run > Run All Cells. What follows needs what comes before it.
# (A figure that says "model not found" wants its cell to be run again.)
import importlib.util

if importlib.util.find_spec("transformer_lib") is None:
    raise ModuleNotFoundError(
        "This is a chapter of the book Attention You Can Touch, and the "
        "book's library is not installed here. Where the book's folder is, "
        "run `make lab` in it: that installs all and opens the chapters. "
        "Or run `pip install '.[book]'` there, for your own Jupyter."
    )
"""
SETUP_PUBLISHED = """\
# First: Runtime > Run all. What follows needs what comes before it.
# (A figure that says "model not found" wants its cell to be run again.)
# On Colab this installs the book's library. Where it is installed, nothing happens.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("transformer_lib") is None:
    library = "transformer_lib[book] @ git+{url}@{branch}"
    install = [sys.executable, "-m", "pip", "install", "-q", library]
    subprocess.run(install, check=True)

if not os.path.exists("../book/glossary.md"):
    print("Opened alone? Links that lead nowhere here work on the book's pages:")
    print("{pages}")
"""

# Below the aims of a chapter with figures; the page leaves it out (extensions/cells.py).
STILL = """\
<p class="afm-notebook-only"><em>Here the figures are still pictures until you run all cells (once
more, if one says "model not found"). On {pages} they work at once.</em></p>"""
ANY_STILL = re.compile(r'\s*<p class="afm-notebook-only">.*?</p>', re.DOTALL)
WITH_FIGURES = "from transformer_lib.widgets import"


def pages_address(repository: str) -> str:
    """Where GitHub Pages publishes a repository; "" for one without an address.

    >>> pages_address("https://github.com/Someone/some-book")
    'https://someone.github.io/some-book/'
    >>> pages_address("https://github.com/someone/someone.github.io")
    'https://someone.github.io/'
    """
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository or "")
    if not found:
        return ""
    site = f"{found[1].lower()}.github.io"
    return f"https://{site}/" if found[2].lower() == site else f"https://{site}/{found[2]}/"


def setup_source(config: dict) -> str:
    """The text of every chapter's setup cell, from the repository's address in _config.yml."""
    repository = config.get("repository") or {}
    if not repository.get("url"):
        return SETUP_UNPUBLISHED.rstrip()
    url, branch = repository["url"].rstrip("/"), repository.get("branch") or "main"
    return SETUP_PUBLISHED.format(url=url, branch=branch, pages=pages_address(url)).rstrip()


def still_note(nb: NotebookNode, config: dict) -> str:
    """What the end of a chapter's first cell says of its figures; "" if it has none."""
    if not any(WITH_FIGURES in cell.source for cell in nb.cells if cell.cell_type == "code"):
        return ""
    pages = pages_address((config.get("repository") or {}).get("url"))
    where = f'<a href="{pages}">the book\'s pages</a>' if pages else "the book's pages"
    return "\n\n" + STILL.format(pages=where)


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def is_setup(cell: NotebookNode) -> bool:
    """Whether it is the cell that is written here; the imports below it are tagged `setup`, too."""
    return "setup" in tags(cell) and not TITLE.match(cell.source)


def folded_as(cell: NotebookNode) -> str:
    """Under which name a code cell is folded in a notebook and on the page; "" if it is open.

    A title that an author has given to the code of a figure is kept.
    """
    found = set(tags(cell))
    given = TITLE.match(cell.source)
    code = TITLE.sub("", cell.source, count=1)
    if "claim" in found:
        return CHECKED
    if "setup" in found:
        return "Imports"
    if "listing" in found:
        shown = re.search(r"\bshow\(([\w.]+)", code)
        name = re.sub(r"^[a-z_]+\.(?=[A-Za-z_])", "", shown[1]) if shown else "code"
        return f"The library's {name}"
    if "hide-input" not in found:
        return ""
    if given and given[1] not in (QUESTION, FIGURE, NUMBERS):
        return given[1]
    if re.search(r"^Predict\b", code, re.M):
        return QUESTION
    return NUMBERS if "print(" in code else FIGURE


def fold(cell: NotebookNode) -> None:
    """Fold a code cell in JupyterLab and Colab, or open it, as its tags say."""
    if "solution" in tags(cell):  # folded by its author; its title belongs to it
        return
    name, code = folded_as(cell), TITLE.sub("", cell.source, count=1)
    jupyter = {k: v for k, v in cell.metadata.get("jupyter", {}).items() if k != "source_hidden"}
    cell.metadata.pop("cellView", None)
    cell.source = f'# @title {name} {{display-mode: "form"}}\n{code}' if name else code
    if name:
        jupyter["source_hidden"] = True
        cell.metadata["cellView"] = "form"
    cell.metadata["jupyter"] = jupyter


def fold_answer(cell: NotebookNode) -> None:
    """Fold the outputs of a cell that gives an answer away (`reveal`, `solution`), in JupyterLab.

    A solution's stored "Right" would show below the reader's own answer, before anything has run.
    """
    jupyter = dict(cell.metadata.get("jupyter", {}))
    jupyter.pop("outputs_hidden", None)
    if {"reveal", "solution"} & set(tags(cell)):
        jupyter["outputs_hidden"] = True
    cell.metadata["jupyter"] = NotebookNode(jupyter)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def code_digest(nb: NotebookNode) -> str:
    return digest(*(cell.source for cell in nb.cells if cell.cell_type == "code"))


def computed_digest(nb: NotebookNode) -> str:
    """Of what the code computes: its comments, and the sentences of its questions, may change."""
    return digest(*(unworded(cell.source) for cell in nb.cells if cell.cell_type == "code"))


def unworded(source: str) -> str:
    """`source` without its comments, and without the sentences of its `Predict(...)`, if whole."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a line for the notebook alone, such as %timeit
        return source
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    words = source
    for comment in [token.string for token in tokens if token.type == tokenize.COMMENT]:
        words = words.replace(comment, "", 1)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0] == "Predict":
            inside = list(ast.walk(call))
            pieces = [n for f in inside if isinstance(f, ast.JoinedStr) for n in ast.walk(f)]
            for node in inside:
                if isinstance(node, ast.Constant) and node not in pieces and " " in str(node.value):
                    words = words.replace(ast.get_source_segment(source, node), '""')
    return words


def outputs_digest(nb: NotebookNode) -> str:
    """Of all but the stills, which another machine draws a little otherwise."""
    outputs = deepcopy([cell.outputs for cell in nb.cells if cell.cell_type == "code"])
    for output in (output for cell in outputs for output in cell):
        output.get("data", {}).pop(PNG, None)
    return digest(json.dumps(outputs, sort_keys=True, ensure_ascii=False))


def scoped_colors(text: str) -> str:
    r"""`\color{red}{Q}` as `{\color{red}{Q}}`: VS Code and LaTeX color all the rest of a group."""
    found = COLOR.search(text)
    while found:
        depth, start, end = 1, found.start(), found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if not depth and text[start - 1 : start] + text[end : end + 1] != "{}":
            text = f"{text[:start]}{{{text[start:end]}}}{text[end:]}"
        found = COLOR.search(text, start + 2)
    return text


def is_still(picture: str) -> bool:
    """Whether a PNG in base64 is as small as stills.py makes them: of few colors and few bytes."""
    content = base64.b64decode(picture)
    return content[25:26] == PALETTE and len(content) <= LARGEST


def normal_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Text and stills, streams joined, errors without the paths that a traceback carries."""
    kept: list[NotebookNode] = []
    for output in deepcopy(outputs):
        if output.output_type == "stream":
            if kept and kept[-1].output_type == "stream" and kept[-1].name == output.name:
                kept[-1].text += output.text
                continue
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            still = output.metadata.get("still")
            output.metadata = NotebookNode(still=still) if still else NotebookNode()
            output.data = NotebookNode(
                {
                    kind: data
                    for kind, data in output.data.items()
                    if kind not in (JPEG, VIEW) and (kind != PNG or is_still(data))
                }
            )
            if "execution_count" in output:
                output.execution_count = None
            if not output.data:
                continue
        kept.append(output)
    return kept


def normalize(nb: NotebookNode, config: dict) -> NotebookNode:
    """A copy of `nb` in the one form in which chapters are stored."""
    nb = deepcopy(nb)
    seen: dict[str, int] = {}
    first_setup = next(filter(is_setup, nb.cells), None)
    title = nb.cells[0] if nb.cells and nb.cells[0].cell_type == "markdown" else None
    if title and title.source.startswith("# "):
        title.source = ANY_STILL.sub("", title.source) + still_note(nb, config)
    for cell in nb.cells:
        if cell is first_setup:
            cell.source = setup_source(config)
        elif cell.cell_type == "code":
            fold(cell)
        if cell.cell_type == "markdown":
            cell.source = scoped_colors(cell.source)
        cell.source = cell.source.rstrip()
        if cell.cell_type == "code":
            fold_answer(cell)
        metadata = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        cell.metadata = NotebookNode(metadata)
        # An id made from the text stays the same wherever the cell moves and whoever converts it.
        name = digest(cell.cell_type, cell.source)[:8]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
        if cell.cell_type == "code":
            cell.outputs = normal_outputs(cell.outputs)
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = NotebookNode(
        checksums=nb.metadata.get("checksums", {}),
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    return nb
