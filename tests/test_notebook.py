"""show(obj): the library's own source, readable everywhere and the same in every run."""

import ast
import textwrap
from pathlib import Path

import pytest
import torch
from IPython.core.formatters import DisplayFormatter

import transformer_lib
from transformer_lib import masks, notebook
from transformer_lib.attention import MultiHeadAttention, attention
from transformer_lib.notebook import Source, _essential, _without_docstrings, left_out, show


@pytest.mark.parametrize(
    ("obj", "module", "indent"),
    [
        (attention, "attention", ""),
        (MultiHeadAttention, "attention", ""),
        (MultiHeadAttention.forward, "attention", "    "),
        (masks, "masks", ""),
    ],
)
def test_the_source_is_the_objects_own(obj, module, indent):
    shown = repr(show(obj, docstring=True))
    file = Path(transformer_lib.__file__).with_name(f"{module}.py")
    assert textwrap.indent(shown, indent) in file.read_text(encoding="utf-8")
    assert obj is masks or obj.__name__ in shown.splitlines()[0]


@pytest.mark.parametrize("obj", [attention, MultiHeadAttention, notebook, masks])
def test_docstrings_checks_and_steps_go_and_nothing_else(obj):
    class Drop(ast.NodeTransformer):
        def visit_Expr(self, node):
            return None if left_out(node) else node

        def visit_FunctionDef(self, node):
            return None if left_out(node) else self.generic_visit(node)

        def generic_visit(self, node):
            super().generic_visit(node)
            kinds = ast.Module | ast.ClassDef | ast.FunctionDef
            if isinstance(node, kinds) and ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Expr(ast.Constant(...))]
            return node

    whole = ast.parse(repr(show(obj, docstring=True)))
    assert ast.unparse(ast.parse(repr(show(obj)))) == ast.unparse(Drop().visit(whole))


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ('def f():\n    """Text."""\n\n    # why\n    return 1',
         "def f():\n    # why\n    return 1"),
        ("class A:\n    '''Two\n    lines.'''", "class A:\n    ..."),
        ('def f():\n    "One."\n    def g():\n        "Two."\n    return g',
         "def f():\n    def g():\n        ...\n    return g"),
        ('"""Module."""\n\nx = "not a docstring"', 'x = "not a docstring"'),
        ('def f(): "Text."; return 1', 'def f(): "Text."; return 1'),
        ('def f():\n    "Text."; return 1', 'def f():\n    "Text."; return 1'),
        ('def f():\n    x = 1\n    "no docstring"', 'def f():\n    x = 1\n    "no docstring"'),
    ],
)  # fmt: skip
def test_docstrings_in_every_place(code, left):
    assert _without_docstrings(code) == left
    ast.parse(left)


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("def f(x):\n    require_x(x)\n    return x", "def f(x):\n    return x"),
        ("def f(x):\n    require_x(\n        x\n    )\n    return x", "def f(x):\n    return x"),
        ("require_x(1); y = 2", "require_x(1); y = 2"),
        ("y = 2; require_x(1)\nz = 3", "y = 2; require_x(1)\nz = 3"),
        ("def f(x):\n    require_x(x); return x", "def f(x):\n    require_x(x); return x"),
        ("def f(x): require_x(x); return x", "def f(x): require_x(x); return x"),
    ],
)
def test_a_check_that_shares_its_line_stays(code, left):
    assert _essential(code) == left
    ast.parse(left)


def test_a_notebook_colors_it_as_code():
    data, _ = DisplayFormatter().format(show(attention))
    assert data["text/plain"] == repr(show(attention))
    assert data["text/markdown"] == f"```python\n{show(attention)!r}\n```"
    assert "0x" not in data["text/plain"]


def test_a_fence_within_the_code_does_not_end_it():
    shown = Source('text = """\n```\nx\n```\n"""')._repr_markdown_()
    assert shown.startswith("````python\n")
    assert shown.endswith("\n````")


@pytest.mark.parametrize("obj", [3, torch.eye(2), torch.matmul, len])
def test_what_has_no_source_is_refused(obj):
    with pytest.raises(TypeError, match="no Python source to show"):
        show(obj)
