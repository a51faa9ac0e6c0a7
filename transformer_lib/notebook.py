"""Helpers for chapters only: `show`, the library's own source as a display."""

import ast
import inspect
import textwrap
from typing import Any

__all__ = ["Source", "show"]
STATEMENTS = (ast.Expr, ast.FunctionDef)


class Source:
    """Python source that a notebook shows highlighted, in the colors of the page around it.

    The display is Markdown, so the page, JupyterLab, VS Code and Colab each color it as they color
    all code, in light and in dark; the text stays plain in a terminal.
    """

    def __init__(self, code: str) -> None:
        self.code = code

    def __repr__(self) -> str:
        return self.code

    def _repr_markdown_(self) -> str:
        fence = "```"
        while fence in self.code:  # a docstring may hold a fence of its own
            fence += "`"
        return f"{fence}python\n{self.code}\n{fence}"


def show(obj: Any, *, docstring: bool = False) -> Source:
    """The library's own source of a function, class, method or module, for the end of a cell.

    Docstrings and whatever is beside the point (:func:`left_out`) are not shown, unless
    `docstring=True`; comments always are.
    TypeError for an object that has no Python source, such as a tensor.

    >>> from transformer_lib.exercises.engine.verdict import Verdict
    >>> show(Verdict.__bool__)
    def __bool__(self) -> bool:
        return self.passed is True
    """
    try:
        code = textwrap.dedent(inspect.getsource(inspect.unwrap(obj) if callable(obj) else obj))
    except (TypeError, OSError) as error:
        raise TypeError(
            f"show() needs a function, class, method or module written in Python; "
            f"{obj!r} has no Python source to show."
        ) from error
    return Source((code if docstring else _without_docstrings(_essential(code))).strip("\n"))


def left_out(node: ast.AST) -> bool:
    """Whether a statement or a decorator is beside the point of the code around it.

    It either only checks arguments, as the library's functions called `require_...` do, or is for
    generation: a `stepper` computes the same numbers as the `forward` above it, one token at a
    time, and `new_cache` makes room for what it keeps.

    >>> left_out(ast.parse("checks.require_count(n, 'n')").body[0])
    True
    """
    if isinstance(node, ast.FunctionDef):
        return node.name in ("stepper", "new_cache")
    node = node.value if isinstance(node, ast.Expr) else node
    called = node.func if isinstance(node, ast.Call) else node
    name = getattr(called, "attr", getattr(called, "id", ""))
    return name.lstrip("_").startswith("require_")


def _essential(code: str) -> str:
    """The same text less what is to be left out; a body must not become empty."""
    lines: list[str | None] = list(code.splitlines())
    for node in ast.walk(ast.parse(code)):
        body = node.body if isinstance(getattr(node, "body", None), list) else []
        ends = [at for part in body for at in {part.lineno, part.end_lineno}]
        alone = [
            part for part in body if ends.count(part.lineno) == ends.count(part.end_lineno) == 1
        ]
        dropped = [part for part in alone if isinstance(part, STATEMENTS) and left_out(part)]
        dropped = dropped if len(dropped) < len(body) else []
        dropped += [part for part in getattr(node, "decorator_list", []) if left_out(part)]
        for part in dropped:
            first, last = part.lineno - 1, part.end_lineno
            if isinstance(part, ast.FunctionDef) and last < len(lines) and not lines[last]:
                last += 1  # with the blank line after it
            lines[first:last] = [None] * (last - first)
    return "\n".join(line for line in lines if line is not None)


def _without_docstrings(code: str) -> str:
    """The same text less its docstrings; unlike with `ast.unparse`, comments and layout stay."""
    lines: list[str | None] = list(code.splitlines())
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, kinds) or ast.get_docstring(node, clean=False) is None:
            continue
        text = node.body[0]
        first, last = text.lineno - 1, text.end_lineno
        # Not where it shares a line with other code: `def f(): "text"; return 1`.
        if lines[first][: text.col_offset].strip() or [n.lineno for n in node.body[1:2]] == [last]:
            continue
        if len(node.body) == 1 and not isinstance(node, ast.Module):
            lines[first] = " " * text.col_offset + "..."  # a body must not become empty
            first += 1
        elif last < len(lines) and not (lines[last] or "").strip():
            last += 1  # the blank line after a docstring goes with it
        lines[first:last] = [None] * (last - first)
    return "\n".join(line for line in lines if line is not None)
