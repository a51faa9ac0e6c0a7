"""Helpers for chapters only: `show`, the library's own source as a display."""

import ast
import inspect
import textwrap
from typing import Any

__all__ = ["Source", "show"]


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
        return f"```python\n{self.code}\n```"


def show(obj: Any, *, docstring: bool = False) -> Source:
    """The library's own source of a function, class, method or module, for the end of a cell.

    With `docstring=True` the docstrings are shown too; comments always are.
    TypeError for an object that has no Python source, such as a tensor.

    >>> from transformer_lib.exercises.verdict import Verdict
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
    return Source((code if docstring else _without_docstrings(code)).strip("\n"))


def _without_docstrings(code: str) -> str:
    """The same text less its docstrings; unlike `ast.unparse`, comments and layout stay."""
    lines = code.splitlines()
    for node in ast.walk(ast.parse(code)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if not isinstance(node, kinds) or ast.get_docstring(node, clean=False) is None:
            continue
        text = node.body[0]
        if len(node.body) == 1 and not isinstance(node, ast.Module):
            lines[text.lineno - 1] = " " * text.col_offset + "..."
            first = text.lineno
        else:
            first = text.lineno - 1
            # The blank line after a docstring goes with it.
            after = text.end_lineno
            if after < len(lines) and not lines[after].strip():
                lines[after] = None
        lines[first : text.end_lineno] = [None] * (text.end_lineno - first)
    return "\n".join(line for line in lines if line is not None)
