"""The code cells of chapters 01 to 05 with what the notebook stores, for the page's Python.

Of the imports, those are taken out that the page does not have.
"""

import ast
from pathlib import Path

import nbformat

CHAPTERS = sorted((Path(__file__).parents[3] / "chapters").glob("0[1-5]*.ipynb"))
NOT_THERE = ("transformer_lib", "matplotlib", "importlib", "torch.nn.attention")
NOT_OPEN = {"setup", "hide-input", "hide-cell", "claim", "exercise", "solution", "listing"}
MANY = ("4096)", "20_000", "in range(5)] for")  # cells that draw millions of numbers, or train


def fixtures() -> list[dict[str, object]]:
    return [
        {"name": path.stem, "cells": [_cell(cell) for cell in _code(path)], "taken": _taken(path)}
        for path in CHAPTERS
    ]


def _code(path: Path) -> list:
    cells = nbformat.read(path, 4).cells
    return [cell for cell in cells if cell.cell_type == "code" and "importlib" not in cell.source]


def _cell(cell) -> dict[str, object]:
    tags = set(cell.metadata.get("tags", []))
    wanted = "".join(
        output.get("text") or output.get("data", {}).get("text/plain", "") + "\n"
        for output in cell.outputs
    )
    return {
        "code": _without_imports(cell.source),
        "open": not tags & NOT_OPEN,
        "many": any(sign in cell.source for sign in MANY),
        "wanted": wanted,
    }


def _imports(source: str):
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or node.names[0].name
            if module.startswith(NOT_THERE):
                yield node


def _without_imports(source: str) -> str:
    lines = source.split("\n")
    for node in _imports(source):
        for line in range(node.lineno - 1, node.end_lineno):
            lines[line] = ""
    return "\n".join(lines)


def _taken(path: Path) -> list[str]:
    """The names that the imports would have brought."""
    nodes = [node for cell in _code(path) for node in _imports(cell.source)]
    return [alias.asname or alias.name.split(".")[0] for node in nodes for alias in node.names]
