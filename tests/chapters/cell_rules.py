"""The rules for single cells: what is folded, tagged and run, how figures are described.

A rule is a function: notebook in, list of problems out. rules.py lists them, beside those for a
chapter as a whole.
"""

import ast
import re
import statistics
from itertools import pairwise

from anatomy import (
    FOLDED_TAGS,
    LONGEST_LINE,
    TITLE,
    asserts,
    code_cells,
    compares,
    cut_lines,
    is_open,
    last_call,
    road,
    shows_question,
    tags,
    text_of,
)
from nbformat import NotebookNode

LONGEST_MEDIAN = 8  # lines of a code cell
KNOWN_TAGS = FOLDED_TAGS | {
    "hide-output", "exercise", "raises-exception", "reveal", "nbval-ignore-output",
}  # fmt: skip
DRAWS = re.compile(r"^(plt\.show|plots\.(?!house$)[a-z]\w*)$")


def claims_quietly(nb: NotebookNode) -> list[str]:
    """A cell tagged `claim` checks something, and shows nothing, which would be folded."""
    found = []
    for number, cell in code_cells(nb):
        if "claim" in tags(cell):
            if not (asserts(cell) or compares(cell)):
                found.append(f"cell {number} is tagged claim and asserts nothing")
            if cell.outputs:
                found.append(f"cell {number} is tagged claim and shows something, which is folded")
    return found


def asserts_out_of_sight(nb: NotebookNode) -> list[str]:
    """No `assert` is in open code on the road; a comparison by assert_close may."""
    return [
        f"cell {number} asserts in sight of the reader: move it into a cell tagged `claim`"
        for number, cell in road(nb)
        if is_open(cell) and asserts(cell)
    ]


def lists_what_it_says(nb: NotebookNode) -> list[str]:
    """A cell tagged `listing` shows code of the library: `show(obj)`."""
    return [
        f"cell {number} is tagged listing and does not end in show(...)"
        for number, cell in code_cells(nb)
        if "listing" in tags(cell) and last_call(cell.source) != "show"
    ]


def cuts_no_line(nb: NotebookNode) -> list[str]:
    """No line of open code is longer than the page is wide at 1280 px."""
    return [
        f"cell {number} has a line of {len(line)} characters, more than {LONGEST_LINE}: {line!r}"
        for number, cell in code_cells(nb)
        if is_open(cell)
        for line in cut_lines(cell)
    ]


def keeps_cells_short(nb: NotebookNode) -> list[str]:
    """The median code cell has at most eight lines; the setup cell is written by the build."""
    cells = [cell for _, cell in code_cells(nb) if "setup" not in tags(cell)]
    texts = [TITLE.sub("", cell.source, count=1) for cell in cells]
    lines = [sum(bool(line.strip()) for line in text.splitlines()) for text in texts]
    median = statistics.median(lines) if lines else 0
    return [f"the median code cell has {median} lines"] if median > LONGEST_MEDIAN else []


def describes_its_figures(nb: NotebookNode) -> list[str]:
    """Every figure has an alternative text of its own, in words."""
    found, texts = [], []
    for number, cell in code_cells(nb):
        if not _draws(cell):
            continue
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        texts.append(alt)
        if len(alt.split()) < 5:
            found.append(
                f"cell {number} shows a figure; mystnb.image.alt does not say what: {alt!r}"
            )
    found += [
        f"two figures share the text {a!r}" for a, b in pairwise(sorted(texts)) if a and a == b
    ]
    for number, cell in enumerate(nb.cells, start=1):
        bare = re.search(r"!\[\s*\]\(|<img (?![^>]*alt=\"[^\"]+)", cell.source)
        if cell.cell_type == "markdown" and bare:
            found.append(f"cell {number} has an image without alternative text")
    return found


def _draws(cell: NotebookNode) -> bool:
    if "<Figure size" in text_of(cell):
        return True
    pending, calls = list(ast.parse(cell.source).body), []
    while pending:  # the body of a function draws only where that is called
        node = pending.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            calls += [ast.unparse(node.func)] if isinstance(node, ast.Call) else []
            pending += ast.iter_child_nodes(node)
    return any(DRAWS.match(call) for call in calls)


def speaks_plain_markdown(nb: NotebookNode) -> list[str]:
    """No macro definitions and no MyST syntax: Colab and JupyterLab show these raw."""
    found = []
    macro = re.compile(
        r"\\(re)?newcommand|\\def\b|\\DeclareMathOperator|\\gdef\b|\\let\b|\\require\b"
    )
    myst = re.compile(r"\{[a-z][\w:+.-]*\}`|^(```|:::+|~~~)\{|^\([\w-]+\)=", re.M)
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "markdown":
            text = re.sub(r"(?<![}`])`[^`\n]+`(?!`)", "", cell.source)  # but not the text of a role
            kinds = ((macro, "defines a LaTeX macro"), (myst, "uses MyST syntax"))
            found += [f"cell {number} {words}" for kind, words in kinds if kind.search(text)]
    return found


def hides_nothing_from_nbval(nb: NotebookNode) -> list[str]:
    """No skipped cell; an ignored output is followed by an assert of what matters: in the cell
    after, or in the claim after that.
    """
    found = []
    cells = code_cells(nb)
    for at, (number, cell) in enumerate(cells):
        if "nbval-skip" in tags(cell) or re.search(r"#\s*NBVAL_", cell.source):
            found.append(
                f"cell {number} is kept from nbval: no nbval-skip, no NBVAL_ comment. What takes "
                f"minutes is measured in benchmarks/, and read here by load_run"
            )
        for tag in tags(cell):
            if tag not in KNOWN_TAGS | {"nbval-skip"} and not tag.startswith("library:"):
                found.append(f"cell {number} has the tag {tag!r}, which means nothing")
        if "nbval-ignore-output" in tags(cell):
            after = [one for _, one in cells[at + 1 : at + 3]]
            after = [one for one in after if one is after[0] or "claim" in tags(one)]
            if not any(map(asserts, after)):
                found.append(f"cell {number} has an ignored output and no assert in the cell after")
    return found


def has_run(nb: NotebookNode) -> list[str]:
    """Every cell has run; an error is stored where, and only where, the lesson is an error."""
    found = []
    for number, cell in code_cells(nb):
        raised = any(output.output_type == "error" for output in cell.outputs)
        if cell.execution_count is None:
            found.append(f"cell {number} has not run")
        elif raised and "raises-exception" not in tags(cell):
            found.append(f"cell {number} raised an error")
        elif not raised and "raises-exception" in tags(cell):
            found.append(f"cell {number} is tagged raises-exception and raised nothing")
    return found


def reveals_after_a_question(nb: NotebookNode) -> list[str]:
    """What gives an answer away follows its `Predict` at once, whose code is hidden too."""
    found, before = [], ""
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "code" and shows_question(cell.source):
            before = "question"
            if "hide-input" not in tags(cell):
                found.append(
                    f"cell {number} asks, and its code shows the answer: tag it hide-input"
                )
            if "reveal" in tags(cell):
                found.append(f"cell {number} asks, and is itself hidden by the tag reveal")
        elif "reveal" not in tags(cell):
            before = ""
        elif not before:
            found.append(f"cell {number} is tagged reveal, and no Predict comes right before it")
    return found
