"""The nodes of Python's own syntax trees, with their places, for the page's parser."""

import ast
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[3]
KINDS = {
    *("FunctionDef", "ClassDef", "arg", "Return", "Assign", "AugAssign", "For", "While", "If"),
    *("Expr", "IfExp", "Lambda", "BoolOp", "BinOp", "UnaryOp", "Compare", "Call", "keyword"),
    *("Attribute", "Subscript", "Slice", "Starred", "Name", "List", "Tuple", "Set", "Dict"),
    *("ListComp", "GeneratorExp", "DictComp"),
}
# What the page's Python does not have, or what its checks do not look into.
NOT_READ = ast.Match | ast.With | ast.Delete | ast.AsyncFunctionDef | ast.TryStar


def fixtures() -> list[dict[str, object]]:
    texts = [
        cell.source
        for path in sorted((ROOT / "chapters").glob("*.ipynb"))
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code"
    ]
    for path in sorted((ROOT / "transformer_lib" / "exercises").rglob("*.py")):
        texts.append(path.read_text(encoding="utf-8"))
    found = [{"text": text, "nodes": _nodes(text)} for text in dict.fromkeys(texts)]
    return [one for one in found if one["nodes"] is not None]


def _nodes(text: str) -> list[str] | None:
    try:
        tree = _Seen().visit(ast.parse(text))
    except SyntaxError:  # a magic line
        return None
    nodes = list(ast.walk(tree))
    if any(isinstance(node, NOT_READ) for node in nodes):
        return None
    return sorted(
        f"{type(n).__name__} {n.lineno}:{n.col_offset}-{n.end_lineno}:{n.end_col_offset}"
        for n in nodes
        if type(n).__name__ in KINDS
    )


class _Seen(ast.NodeTransformer):
    """The tree without what the parser skips: annotations, and what an f-string holds."""

    def visit_JoinedStr(self, node):
        node.values = []
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node):
        node.keywords = []
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(0)
        return self.generic_visit(node)
