"""The parts of a chapter's notebook: its cells, tags, headings, sections, and its road.

The *road* of a chapter is what a newcomer reads in one sitting: all that comes before
`## Exercises`. A cell on it is *open* unless a tag folds it.
"""

import ast
import re

from nbformat import NotebookNode

LONGEST_LINE = 76  # characters of code that fit a page of 1280 px, in an exercise's box as well
FOLDED_TAGS = {"setup", "claim", "listing", "hide-cell", "hide-input", "solution"}
AFTER_THE_ROAD = ["Exercises", "Prove it", "What goes wrong in practice"]
TITLE = re.compile(r"# @title .*\n+")
# Chapters that are two sittings: the second has a letter, as deeper pages have (and as in
# book/extensions/chapter_numbers.py).
SECOND_SITTINGS = ("07c",)


def is_deeper(name: str) -> bool:
    """Whether a notebook is a deeper page: `12b-muon`."""
    return bool(re.match(r"\d+[a-z]-", name)) and name.split("-")[0] not in SECOND_SITTINGS


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def code_cells(nb: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The code cells with their number in the notebook, from 1 as an editor counts them."""
    return [(n, cell) for n, cell in enumerate(nb.cells, start=1) if cell.cell_type == "code"]


def text_of(cell: NotebookNode) -> str:
    """Everything a code cell has printed or shown as plain text."""
    shown = (o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)
    return "\n".join(shown)


def headings(nb: NotebookNode, level: int) -> list[tuple[int, str]]:
    """(number of the cell, heading) in order; lines inside code fences do not count."""
    found = []
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "markdown":
            text = re.sub(r"^(```|~~~).*?^\1", "", cell.source, flags=re.S | re.M)
            pattern = rf"^#{{{level}}} +(.+?) *$"
            found += [(number, line) for line in re.findall(pattern, text, re.M)]
    return found


def last_call(source: str) -> str:
    """The function that the last statement of a cell calls: "check_one_output"; "" if none."""
    body = ast.parse(source).body
    if body and isinstance(body[-1], ast.Expr) and isinstance(body[-1].value, ast.Call):
        return ast.unparse(body[-1].value.func)
    return ""


def section(nb: NotebookNode, name: str) -> list[tuple[int, NotebookNode]]:
    """The numbered cells of one `##` section, its heading's cell included."""
    starts = headings(nb, 2)
    at = next((n for n, text in starts if text == name), None)
    if at is None:
        return []
    end = next((n for n, _ in starts if n > at), len(nb.cells) + 1)
    return [(n, nb.cells[n - 1]) for n in range(at, end)]


def asserts(cell: NotebookNode) -> int:
    """How many `assert` statements a cell holds."""
    if cell.cell_type != "code":
        return 0
    return sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source)))


def compares(cell: NotebookNode) -> bool:
    """Whether a cell calls torch.testing.assert_close, or another `assert_...`."""
    return cell.cell_type == "code" and re.search(r"\bassert_\w+\(", cell.source) is not None


def road(nb: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The numbered cells before `## Exercises`; in the old order, those of no section after it."""
    numbered = list(enumerate(nb.cells, start=1))
    aside = {n for name in AFTER_THE_ROAD for n, _ in section(nb, name)}
    return [(n, cell) for n, cell in numbered if n not in aside]


def is_open(cell: NotebookNode) -> bool:
    """Whether a code cell shows its code on the page before anybody clicks."""
    return cell.cell_type == "code" and not FOLDED_TAGS & set(tags(cell))


def cut_lines(cell: NotebookNode) -> list[str]:
    """The lines of a cell that do not fit the page."""
    lines = TITLE.sub("", cell.source, count=1).splitlines()
    return [line for line in lines if len(line) > LONGEST_LINE]


def shows_question(source: str) -> bool:
    """Whether a cell ends in a `Predict`: made there, or named and shown."""
    body = ast.parse(source).body
    if not body or not isinstance(body[-1], ast.Expr):
        return False
    last, asked = body[-1].value, r"(\w+\.)*Predict(\.number|\.cell)?"
    if isinstance(last, ast.Name):
        named = (node for node in body if isinstance(node, ast.Assign))
        last = next((n.value for n in named if ast.unparse(n.targets[0]) == last.id), last)
    return isinstance(last, ast.Call) and bool(re.fullmatch(asked, ast.unparse(last.func)))


def prose(nb: NotebookNode) -> str:
    """The prose of the road on the page before any click, without marks; formulas are a word."""
    text = "\n\n".join(cell.source for _, cell in road(nb) if cell.cell_type == "markdown")
    text = re.sub(r"<details>.*?</details>", " ", text, flags=re.S)
    text = re.sub(r'<p class="afm-notebook-only">.*?</p>', " ", text, flags=re.S)
    text = re.sub(r"<!--.*?-->|<[a-z/][^>]*>", " ", text, flags=re.S | re.I)
    text = re.sub(r"^(```|~~~).*?^\1", " ", text, flags=re.S | re.M)
    text = re.sub(r"\$\$.+?\$\$|\$[^$]+\$", " formula ", text, flags=re.S)
    text = re.sub(r"!?\[((?:[^\]\[]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text)  # a link is its words
    return re.sub(r"[#*_`|>-]+", " ", text)


def calls(nb: NotebookNode, *names: str) -> int:
    """How often the road's code calls one of these functions or classes."""
    return sum(
        isinstance(node, ast.Call) and ast.unparse(node.func) in names
        for _, cell in road(nb)
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
    )


def counts(nb: NotebookNode) -> dict[str, int]:
    """What AIMS names, on the road of a chapter; and the visible lines that are cut, anywhere."""
    open_cells = [cell for _, cell in road(nb) if is_open(cell)]
    return {
        "words": len(re.findall(r"\w[\w'’-]*", prose(nb))),
        "open cells": len(open_cells),
        "asserts": sum(asserts(cell) for cell in open_cells),
        "questions": calls(nb, "Predict", "Predict.number", "Predict.cell"),
        "challenges": calls(nb, "Goal"),
        "lines cut": sum(len(cut_lines(cell)) for _, cell in code_cells(nb) if is_open(cell)),
    }
