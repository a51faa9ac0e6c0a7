"""Python of the book as the page's Python runs it: what is needed, and no more, in its syntax.

    modules, code = program(Path("chapters/01-self-attention.ipynb"), ...)

The page has MicroPython and the names of `widgets/write/python/`. `Code` takes a module (or the
cells of a notebook) apart into statements; `sliced` gives those that some names need, with those of
the book's own modules that they import; `translated` takes off what MicroPython does not read:
annotations, docstrings, data classes, unions of types.
"""

import ast
import functools
import importlib
import importlib.util
import symtable
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from transformer_lib.exercises.engine.choosing import Choice, _option
from transformer_lib.widgets.joining import FOLDER

BOOK = "transformer_lib"
ENGINE = f"{BOOK}.exercises.engine"  # the page has it whole: python_files.py
# Methods of texts that MicroPython lacks: python/engine.py has them.
OF_TEXTS = {"casefold", "isdecimal", "isprintable", "istitle", "removeprefix", "removesuffix"}
OF_TEXTS |= {
    "is_integer",
    "bit_length",
    "ljust",
    "rjust",
    "zfill",
    "capitalize",
    "title",
    "isidentifier",
    "isalnum",
}
FIRST = "__future__"
TYPES = "require_fields"  # of transformer_lib/checks.py
# What computes the same sooner (transformer_lib/fast/) is left out on the page: of its names the
# library asks for these, all others are steppers, which nobody calls there.
FAST = {
    "cosine_sine": "def cosine_sine(angles, dtype):\n    return angles.cos(), angles.sin()",
    "explicit_is_faster": "def explicit_is_faster(q, k, v):\n    return True",
    "causal_weights": "def causal_weights(q, k, scale=None):\n"
    "    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)\n"
    "    ahead = torch.full(scores.shape[-2:], float('-inf')).triu(1)\n"
    "    return (scores + ahead).softmax(-1)",
    "has_complex_numbers": "def has_complex_numbers(device):\n    return False",
    "decoder": "def decoder(model, *others, **options):\n    return None",
}
# What the page has in another form, or not at all: figures, training, files.
NOT_THERE = tuple(f"{BOOK}.{name}" for name in ("widgets", "plots", "notebook", "training"))


def translated(source: str | ast.Module) -> ast.Module:
    """A module in MicroPython's syntax.

    >>> print(ast.unparse(translated("def f(x: int) -> int:\\n    '''Adds.'''\\n    return x + 1")))
    def f(x):
        return x + 1
    >>> print(ast.unparse(translated("@dataclass\\nclass A:\\n    a: int\\n    b: int = 2")))
    class A:
        _fields = ('a', 'b')
    <BLANKLINE>
        def __init__(self, a, b=2):
            self.a = a
            self.b = b
    """
    tree = ast.parse(source) if isinstance(source, str) else source
    return ast.fix_missing_locations(_Plain().visit(tree))


class _Plain(ast.NodeTransformer):
    def _bare(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        # A function of `...` alone is a stub, and stays one.
        node.body = [p for p in node.body if not _is_text(p) or p.value.value is ...] or [
            ast.Pass()
        ]
        return node

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.generic_visit(node)
        node.body = [
            part
            for part in node.body
            if not _is_text(part) and getattr(part, "module", "") != FIRST
        ]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        node.decorator_list = [
            d for d in node.decorator_list if _name(d) not in ("override", "final")
        ]
        arguments = node.args
        # MicroPython has no / among the parameters.
        arguments.args, arguments.posonlyargs = [*arguments.posonlyargs, *arguments.args], []
        return self._bare(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value else None

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        made = [d for d in node.decorator_list if _name(d) == "dataclass"]
        left_out = [*made, *(d for d in node.decorator_list if _name(d) == "runtime_checkable")]
        node.decorator_list = [d for d in node.decorator_list if d not in left_out]
        node.keywords = []
        if any(_name(base) == "Protocol" for base in node.bases):
            node.bases = []
            asked = tuple(part.name for part in node.body if isinstance(part, ast.FunctionDef))
            node.body += ast.parse(f"_asked = {asked!r}").body  # python/cells.py: is_instance
        is_tuple = any(_name(base) == "NamedTuple" for base in node.bases)
        if is_tuple:
            made, node.bases = [node], [ast.Name("__NamedTuple__", ast.Load())]
        node.bases = [
            base.value if isinstance(base, ast.Subscript) else base for base in node.bases
        ]
        fields = [
            part
            for part in node.body
            if isinstance(part, ast.AnnAssign)
            and isinstance(part.target, ast.Name)
            and "ClassVar" not in ast.unparse(part.annotation)
        ]
        if made:
            own = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            node.body = [part for part in node.body if part not in fields]
            named = any(k.arg == "kw_only" for d in made for k in getattr(d, "keywords", ()))
            known = {part.name for part in own}
            known_of_class = [  # as Wiring.attention, which is a field's default
                ast.Assign([part.target], part.value)
                for part in fields
                if isinstance(part.value, ast.Constant)
            ]
            node.body[:0] = [
                *known_of_class,
                *_initializer(fields, bool(node.bases) and not is_tuple, known, named),
            ]
        return self._bare(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr == "__module__":  # which MicroPython's own classes lack
            words = [node.value, ast.Constant("__module__"), ast.Constant("")]
            return ast.Call(ast.Name("getattr", ast.Load()), words, [])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else ()
        if any(isinstance(part, ast.Starred) for part in parts):
            node.slice = ast.Call(ast.Name("__tuple__", ast.Load()), parts, [])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _name(node.func) in ("isinstance", "issubclass") and len(node.args) == 2:
            node.args[1] = _tuple_of(node.args[1])
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_TEXTS:
            name = ast.Constant(node.func.attr)
            return ast.Call(
                ast.Name("__text__", ast.Load()), [name, node.func.value, *node.args], []
            )
        if _name(node.func) in ("Exercise", "Repair", "Choice"):  # the page says it already
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "asks"]
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "dict.fromkeys":
            return ast.Call(ast.Name("__fromkeys__", ast.Load()), node.args, [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        kinds = {"int", "float", "str", "list", "tuple", "dict", "Tensor", "Exercise", "Choice"}
        are_kinds = all(getattr(side, "id", "") in kinds for side in (node.left, node.right))
        return _tuple_of(node) if isinstance(node.op, ast.BitOr) and are_kinds else node


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _name(node: ast.AST) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", ""))


def _tuple_of(kinds: ast.AST) -> ast.AST:
    """(int, float) for int | float."""

    def parts(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            yield from parts(node.left)
            yield from parts(node.right)
        elif isinstance(node, ast.Tuple):
            yield from node.elts
        else:
            yield node

    found = list(parts(kinds))
    return ast.Tuple(found, ast.Load()) if len(found) > 1 else kinds


def _initializer(
    fields: list[ast.AnnAssign], has_base: bool, own: set[str], named: bool
) -> list[ast.AST]:
    """What `@dataclass` writes. A class with a base class hands on what it does not know."""
    arguments, lines = ["self", *(["*"] if fields and (has_base or named) else [])], []
    for each in fields:
        name = each.target.id
        default = None if each.value is None else ast.unparse(each.value)
        if default and _name(each.value) == "field":
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in each.value.keywords}
            if options.get("init") == "False":
                continue
            made = options.get("default_factory")
            default = "None" if made else options.get("default")
            value = f"{made}() if {name} is None else {name}" if made else name
        else:
            value = name
        arguments.append(name if default is None else f"{name}={default}")
        lines.append(f"self.{name} = {value}")
    if has_base:
        arguments.append("**others")
        lines.append("super().__init__(**others)")
    elif "__post_init__" in own:
        lines.append("self.__post_init__()")
    if "__init__" in own:
        return []
    names = tuple(each.target.id for each in fields)
    text = f"_fields = {names!r}\n" if names and not has_base else ""
    text += f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines or ["pass"])
    return ast.parse(text).body


# ---- taking apart ------------------------------------------------------------------------------


@dataclass
class Unit:
    """A statement: the names that it gives a value, or changes, and those that it needs."""

    node: ast.stmt
    binds: set[str]
    needs: set[str]
    module: str = ""  # that it imports from, for one name of an import
    name: str = ""  # and which
    place: int = 0  # the number of the cell, in a notebook

    @functools.cached_property
    def whole(self) -> str:
        """The module that it imports as a whole: `from transformer_lib import checks`."""
        path = f"{self.module}.{self.name}"
        there = self.name and self.module.split(".")[0] == BOOK and _exists(path)
        return path if there else ""


@dataclass
class Code:
    """The statements of a module, or of a notebook."""

    units: list[Unit] = field(default_factory=list)

    @classmethod
    def of(cls, source: str, place: int = 0, package: str = "") -> "Code":
        tree = translated(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                outer = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                node.module, node.level = f"{outer}.{node.module}" if node.module else outer, 0
        return cls([unit for node in tree.body for unit in _units(node, place)])

    def needed(self, names: Iterable[str], before: int | None = None) -> list[Unit]:
        """The statements that some names need, in order; `before` a place."""
        units = [u for u in self.units if before is None or u.place < before]
        wanted, taken, grows = set(names), set(), True
        while grows:
            grows = False
            for n, unit in enumerate(units):
                if n not in taken and unit.binds & wanted:
                    taken.add(n)
                    wanted |= unit.needs
                    grows = True
        return [units[n] for n in sorted(taken)]


def _units(node: ast.stmt, place: int) -> Iterator[Unit]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            module = node.module if isinstance(node, ast.ImportFrom) else alias.name
            one = (
                ast.ImportFrom(node.module, [alias], node.level)
                if isinstance(node, ast.ImportFrom)
                else ast.Import([alias])
            )
            name = alias.name if isinstance(node, ast.ImportFrom) else ""
            bound = alias.asname or alias.name.split(".")[0]
            yield Unit(ast.fix_missing_locations(one), {bound}, set(), module or "", name, place)
        return
    binds, needs = set(), _free(node)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        binds = {node.name}
    else:
        binds = _stored(node) | _changed(node)
    yield Unit(node, binds, needs, place=place)


def _free(node: ast.stmt) -> set[str]:
    """The names that a statement needs from what is before it."""
    top = symtable.symtable(ast.unparse(node), "code", "exec")
    found, waiting = set(), [top]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                found.add(symbol.get_name())
    return found - {getattr(node, "name", "")}


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are not inside a function or a comprehension of it."""
    yield node
    inner = (
        ast.FunctionDef | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp
    )
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, inner):
            yield from _outside(child)


def _stored(node: ast.stmt) -> set[str]:
    """The names that a statement at the top gives a value."""
    return {
        part.id
        for part in _outside(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _changed(node: ast.stmt) -> set[str]:
    """The names whose objects a statement at the top writes into: x[0] = 1, x.append(1)."""
    found = set()
    for part in ast.walk(node):
        target = None
        if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Store):
            target = part.value
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            called = part.value.func
            target = called.value if isinstance(called, ast.Attribute) else None
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id not in ("torch", "nn", "plt", "F"):
            found.add(target.id)
    return found


@functools.cache
def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is a module without modules
        return False


@functools.cache
def code_of(module: str) -> Code | None:
    """The code of one of the book's modules; None if it is not there."""
    found = importlib.util.find_spec(module)
    if found is None or not found.origin:
        return None
    path = Path(found.origin)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    code = Code.of(path.read_text(encoding="utf-8"), package=package)
    # The types that a class states are taken off, as all annotations: nothing can be held to them.
    stated = f"def {TYPES}(configuration):\n    pass"
    for n, unit in enumerate(code.units):
        if TYPES in unit.binds and isinstance(unit.node, ast.FunctionDef):
            code.units[n] = Code.of(stated).units[0]
    return code


def is_books(unit: Unit) -> bool:
    """Does it import something of the book's own that the page can have?"""
    module = unit.whole or unit.module
    return module.split(".")[0] == BOOK and not module.startswith((ENGINE, *NOT_THERE))


@dataclass
class Program:
    """Code for the page: the book's modules that it needs, {name: source} in order, and its own."""

    modules: dict[str, str]
    code: str


def sliced(code: Code, names: Iterable[str], before: int | None = None) -> Program:
    """What some names of a module or a notebook need, to run on the page."""
    units = code.needed(names, before)
    return Program(_modules(units), text_of(units))


def with_all_of_torch(text: str) -> str:
    """The library asks for more of PyTorch than a reader does: python/engine.py has it."""
    return f"{text}\n".replace("import torch\n", "import full_torch as torch\n")


def _attributes(units: Iterable[Unit], names: set[str]) -> set[str]:
    """What is asked of a module by its name: require_shape, for checks.require_shape(...)."""
    return {
        part.attr
        for unit in units
        for part in ast.walk(unit.node)
        if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") in names
    }


def text_of(units: Iterable[Unit]) -> str:
    return "\n".join(
        f"{next(iter(unit.binds))} = __module__({unit.whole!r})"
        if unit.whole
        else ast.unparse(unit.node)
        for unit in units
    )


def _modules(units: Iterable[Unit]) -> dict[str, str]:
    """The book's modules that these statements import from, sliced, the needed ones first."""
    wanted: dict[str, set[str]] = {}

    def ask(units: list[Unit]) -> None:
        for unit in units:
            if not is_books(unit):
                continue
            module = unit.whole or unit.module
            source = code_of(module)
            names = wanted.setdefault(module, set())
            asked = _attributes(units, unit.binds) if unit.whole else {unit.name} - {""}
            if asked - names and source is not None:
                names |= asked
                ask([] if _is_fast(module) else source.needed(asked))

    ask(units)
    order: dict[str, str] = {}

    def put(module: str) -> None:
        source = code_of(module)
        if module in order or source is None:
            return
        if _is_fast(module):
            parts = [FAST.get(name, _stub(name)) for name in sorted(wanted[module])]
            order[module] = with_all_of_torch("\n".join(["import torch", *parts]))
            return
        needed = source.needed(wanted[module])
        for unit in needed:
            if is_books(unit) and unit.module != module:
                put(unit.whole or unit.module)
        order[module] = with_all_of_torch(text_of(needed))

    for module in list(wanted):
        put(module)
    return order


def _stub(name: str) -> str:
    return f"class {name}:\n    pass" if name[0].isupper() else f"{name} = None"


def _is_fast(module: str) -> bool:
    return module.startswith(f"{BOOK}.fast")


# In the order in which they need one another; python/engine.py is before them.
ENGINE_MODULES = ["comparing", "verdict", "choosing", "observing", "recording"]
ENGINE_MODULES += ["mending", "runner"]


@functools.cache
def engine() -> list:
    """What the page reads to check answers: [python/engine.py, [name, text], ...]."""
    shims = FOLDER / "write" / "python" / "engine.py"
    found: list = [ast.unparse(translated(shims.read_text(encoding="utf-8")))]
    for name in ENGINE_MODULES:
        path = Path(importlib.util.find_spec(f"{ENGINE}.{name}").origin)
        text = ast.unparse(translated(path.read_text(encoding="utf-8")))
        found.append([name, with_all_of_torch(text)])
    return found


# ---- the exercises of a chapter ----------------------------------------------------------------


@dataclass
class Asked:
    """An exercise as the page asks it."""

    check: str  # check_one_output
    name: str  # one_output, of what the reader writes
    stub: str  # the text of the cell at first, without its last line
    call: str  # the last line: check_one_output(one_output)
    solution: str
    program: Program  # what is there before
    choice: dict | None = None  # of a Choice: see `chosen`


def notebook(path: Path) -> Code:
    """All statements of a chapter but the answers to be written; `place` is the cell's number."""
    code = Code()
    for n, cell in enumerate(nbformat.read(path, 4).cells):
        if cell.cell_type == "code" and "exercise" not in cell.metadata.get("tags", []):
            try:
                code.units += Code.of(_python(cell.source), n).units
            except SyntaxError as error:
                raise ValueError(f"{path.name}, cell {n + 1}: {error}") from error
    return code


def _python(source: str) -> str:
    """A cell's text without what only a notebook reads."""
    try:
        ast.parse(source)
    except SyntaxError:
        return "\n".join("" if line[:1] in "%!" else line for line in source.split("\n"))
    return source


def asked(path: Path) -> list[Asked]:
    """The exercises of a chapter: its cells tagged `exercise`, each with its solution."""
    code, cells = notebook(path), nbformat.read(path, 4).cells
    found = []
    for n, cell in enumerate(cells):
        if "exercise" not in cell.metadata.get("tags", []):
            continue
        last = _check_call(cell.source, f"{path.name}, cell {n + 1}", code)
        lines = cell.source.split("\n")
        stub = "\n".join(lines[: last.lineno - 1]).rstrip() + "\n"
        call = ast.unparse(last.value)
        tagged = (c.source for c in cells[n:] if "solution" in c.metadata.get("tags", []))
        if (solution := next(tagged, None)) is None:
            raise ValueError(f"{path.name}, cell {n + 1}: no cell tagged solution comes after it")
        written = "\n".join(ast.unparse(node) for node in ast.parse(_python(solution)).body[:-1])
        own = {name for unit in Code.of(stub).units for name in unit.binds}
        needs = _asked_by(stub) | _asked_by(call) | _asked_by(written)
        given = {
            name
            for unit in code.units
            if _heading_before(cells, n) < unit.place < n
            for name in unit.binds
            if isinstance(unit.node, ast.FunctionDef)
        }
        roots = {"torch", "F", "nn", "math", *(needs - own), *given}
        before = sliced(code, roots, n)
        check = last.value.func.id
        before.code += _names_of(check, code)
        name = last.value.args[0].id
        found.append(Asked(check, name, stub, call, written, before))
        found[-1].choice = chosen(_object(check, code))
    return found


def _check_call(source: str, where: str, code: Code) -> ast.stmt:
    """The last line of an exercise's cell, `check_it(it)`; ValueError where it has none."""
    try:
        last = ast.parse(source).body[-1]
        check, (_,) = last.value.func.id, [one.id for one in last.value.args]
        if any(check in unit.binds for unit in code.units):
            return last
        problem = f"no cell imports {check} by its name"
    except (SyntaxError, IndexError, AttributeError, ValueError):
        problem = "it is tagged exercise, so it is Python, and its last line is check_NAME(answer)"
    raise ValueError(f"{where}: {problem}")


def _asked_by(text: str) -> set[str]:
    """The names that a text needs from what is before it."""
    needs, made = set(), set()
    for unit in Code.of(text).units:
        needs |= unit.needs - made
        made |= unit.binds
    return needs


def _heading_before(cells: list, n: int) -> int:
    headings = (
        m
        for m in range(n, -1, -1)
        if cells[m].source.lstrip().startswith("#") and cells[m].cell_type == "markdown"
    )
    return next(headings, 0)


def _object(check: str, code: Code) -> object:
    """The check itself."""
    unit = next(u for u in code.units if check in u.binds)
    return getattr(importlib.import_module(unit.module), unit.name)


def _names_of(check: str, code: Code) -> str:
    """What the arguments of a right computation are called, which MicroPython forgets."""
    exercise, words, text = _object(check, code), check, ""
    todo = [(exercise, words)]
    while todo:
        exercise, words = todo.pop()
        if getattr(exercise, "cases", None):
            text += f"\n__named__({words}.right, {exercise._names()!r})"
        for name in ("before", "after"):
            if getattr(exercise, name, None):
                todo.append((getattr(exercise, name), f"{words}.{name}"))
    return text


def chosen(check: object) -> dict | None:
    """What a `Choice` says to each option, evaluated, so that it can be clicked without Python.

    {"several", "options": [...], "written": {option: as the exercise writes it}, "right": [...],
     "said": {option: sentence}, "missing", "praise"}
    """
    if not isinstance(check, Choice):
        return None
    several = isinstance(check.right, Set)
    each = [*(check.right if several else [check.right]), *check.wrong, *check.options]
    written = {_option(option): str(option) for option in each}
    options = sorted(written, key=lambda o: (len(o), o))
    said = {option: check([option] if several else option) for option in options}
    missing = {o: check(sorted(check._right - {o})) for o in check._right} if several else {}
    return {
        "several": several,
        "options": options,
        "written": written,
        "right": sorted(check._right),
        "said": {o: v.diagnosis for o, v in said.items() if not v.passed},
        "missing": {o: v.diagnosis for o, v in missing.items()},
        "praise": check.praise,
    }


# ---- the cells of a chapter --------------------------------------------------------------------

FOLDED = {"setup", "hide-input", "hide-cell", "claim", "exercise", "solution", "listing"}
ELSEWHERE = (BOOK, "matplotlib", "bertviz", "importlib")  # imports that are taken out of a cell


def cells(path: Path) -> dict[str, list]:
    """What a chapter's cells need to run on the page, and what the notebook stores of them.

    {"imports": [{"modules", "context"}], one for each name of the book's that a cell imports,
     "cells": [{"code", "open", "wanted"}], one for each code cell; no code for exercises}
    """
    imports, found = [], []
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type != "code":
            continue
        tags = set(cell.metadata.get("tags", []))
        code = "" if tags & {"exercise", "solution"} else _python(cell.source)
        for unit in Code.of(code).units if code else ():
            if is_books(unit) and ".exercises" not in unit.module:
                modules = [*_modules([unit]).items()]
                imports.append({"modules": modules, "context": text_of([unit])})
        wanted = "".join(
            output.get("text") or output.get("data", {}).get("text/plain", "") + "\n"
            for output in cell.outputs
        )
        code = _without_imports(code)
        is_open = bool(code.strip()) and not tags & FOLDED
        found.append({"code": code, "open": is_open, "wanted": wanted})
    return {"imports": imports, "cells": found}


def _without_imports(source: str) -> str:
    """A cell's text, blank where it imports what the page has otherwise, or not at all."""
    lines = source.split("\n")
    for node in ast.parse(source).body if source else ():
        module = getattr(node, "module", None) or (
            node.names[0].name if isinstance(node, ast.Import) else ""
        )
        if module.split(".")[0] in ELSEWHERE and isinstance(node, ast.Import | ast.ImportFrom):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)
