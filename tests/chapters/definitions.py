"""Is an object that a chapter defines the library's own? Decided on syntax trees."""

import ast
import importlib.util

from anatomy import code_cells, tags
from nbformat import NotebookNode

from transformer_lib.notebook import left_out

MARK = "library:"


class _Bare(ast.NodeTransformer):
    """Drops docstrings and annotations, which a chapter replaces by prose, and what `show` leaves
    out: lines that only check arguments, and steppers.
    """

    def _without_docstring(self, node):
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        node.body = node.body or [ast.Pass()]
        node.decorator_list = [d for d in node.decorator_list if not left_out(d)]
        return node

    def visit_Expr(self, node):
        return None if left_out(node) else node

    visit_ClassDef = _without_docstring

    def visit_FunctionDef(self, node):
        if left_out(node):
            return None
        node.returns = None
        return self._without_docstring(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:  # a field without a default: its name still counts
            return ast.Expr(node.target)
        return ast.Assign([node.target], node.value)


def bare(node: ast.AST) -> str:
    """A definition in a form that only its meaning enters: text without layout or comments."""
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(node)))


def library_definition(name: str) -> ast.AST:
    """The definition of `transformer_lib.module.object`. LookupError if there is none."""
    module, _, wanted = name.rpartition(".")
    spec = importlib.util.find_spec(module) if module.startswith("transformer_lib") else None
    if spec is None or spec.origin is None:
        raise LookupError(f"there is no module {module!r}")
    with open(spec.origin, encoding="utf-8") as file:
        found = definitions(file.read())
    if wanted not in found:
        raise LookupError(f"{module} defines no {wanted!r}")
    return found[wanted]


def definitions(source: str) -> dict[str, ast.AST]:
    """The functions and classes that a text defines at its top level."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name: node for node in ast.parse(source).body if isinstance(node, kinds)}


def wrong_definitions(nb: NotebookNode) -> list[str]:
    """The differences from the library in the cells tagged `library:...`."""
    found = []
    for number, cell in code_cells(nb):
        names = [tag.removeprefix(MARK) for tag in tags(cell) if tag.startswith(MARK)]
        if not names:
            continue
        mine = definitions(cell.source)
        for name in names:
            try:
                theirs = library_definition(name)
            except LookupError as error:
                found.append(f"cell {number}: {error}")
                continue
            definition = mine.pop(theirs.name, None)
            if definition is None:
                found.append(f"cell {number} is tagged {MARK}{name} and does not define it")
            elif bare(definition) != bare(theirs):
                found.append(f"cell {number}: {theirs.name} differs from {name}")
        if mine:
            found.append(f"cell {number} also defines {sorted(mine)}, which no tag names")
    return found
