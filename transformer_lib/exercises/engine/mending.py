"""Name a mistake by mending it: which one small change makes a wrong answer right?

The answer's own source is changed in one place at a time: another axis, the other operator, another
name, a transpose more or less. A change after which **every** case is right is the mistake, at its
very line, and no guess. Changes are data, a range of the text and what to write there; nothing here
knows an exercise. A changed answer is run apart (`isolating`), or not at all.

>>> source = Source.of_text("def answer(x):\\n    return x.sum(dim=0)")
>>> [edit.new for edit in source.edits() if edit.old == "dim=0"]
['dim=-1', 'dim=-2', 'dim=1', 'dim=2', 'dim=-3', '']
"""

import ast
import functools
import linecache
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from types import CodeType, FunctionType
from typing import Any

import torch

from transformer_lib.exercises.engine.isolating import Apart, apart, effects_refused

MOST_AFTER = 150  # changes tried after one that mends: is there another on another line?
# Names that are taken for one another.
_KIN = [
    {"max", "min"},
    {"amax", "amin"},
    {"maximum", "minimum"},
    {"argmax", "argmin"},
    {"clamp_min", "clamp_max"},
    {"sum", "mean", "prod", "cumsum"},
    {"std", "var"},
    {"any", "all"},
    {"sin", "cos"},
    {"tril", "triu"},
    {"log", "log2", "log10", "exp"},
    {"ones", "zeros"},
    {"ones_like", "zeros_like"},
    {"floor", "ceil", "round"},
    {"rand", "randn"},
    {"softmax", "log_softmax"},
    {"repeat", "repeat_interleave"},
    {"unsqueeze", "squeeze"},
    {"stack", "cat"},
    {"items", "keys", "values"},
    {"append", "extend"},
]
_NUMBERS = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "%": "//", "**": "*", "@": "*"}
_OTHERS = {"*": ["+", "@", "**"], "/": ["//"], "+": ["*", "/"], "//": ["%"], "-": ["/"]}
# What else a comparison may be, the likeliest first.
_COMPARED = {
    "<": ["<=", ">=", ">"],
    "<=": ["<", ">", ">="],
    ">": [">=", "<=", "<"],
    ">=": [">", "<", "<="],
    "==": ["!=", "<", ">", "<=", ">="],
    "!=": ["==", "<", ">", "<=", ">="],
}
_SIGNS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.And: "and", ast.Or: "or", ast.In: "in", ast.NotIn: "not in"},
}
_ALONG = {"softmax", "log_softmax", "sum", "mean", "max", "min", "amax", "argmax", "argmin", "any"}
_ALONG |= {"all", "cumsum", "unsqueeze", "squeeze", "select", "flip", "std", "var", "norm", "sort"}
_ALONG |= {"transpose", "unbind", "chunk", "split", "flatten", "permute", "stack", "cat"}
_OVER_AN_AXIS = {"sum", "mean", "max", "min", "amax", "std", "var", "norm", "any"}
_MODULES = {"torch", "F", "math", "np", "nn", "self"}
_AXES = (-1, 0, -2, 1, 2, -3)
_AXIS_NAMES = {"dim", "axis", "dims", "start_dim", "diagonal"}
# What may be missing around a value: the words, and how it is written.
_AROUND = [
    ("a transpose is missing", "{}.mT"),
    ("two axes must change places", "{}.transpose(1, 2)"),
    ("two axes must change places", "{}.transpose(0, 1)"),
    ("a minus is missing", "(-{})"),
    ("a softmax is missing", "{}.softmax(-1)"),
    ("a softmax is missing", "{}.softmax(0)"),
    ("an `exp` is missing", "{}.exp()"),
    ("a logarithm is missing", "{}.log()"),
    ("a square root is missing", "{} ** 0.5"),
    ("a square is missing", "{} ** 2"),
    ("it is upside down", "(1 / {})"),
    ("its complement belongs here", "(1 - {})"),
    ("a factor 2 is missing", "(2 * {})"),
    ("it is twice as large as it should be", "({} / 2)"),
    ("it is one too small", "({} + 1)"),
    ("it is one too large", "({} - 1)"),
    ("it is inverted", "~{}"),
    ("an axis of size 1 is too many", "{}.squeeze(0)"),
    ("a sum is missing", "{}.sum(-1)"),
    ("a sum is missing", "{}.sum(0)"),
    ("a sum is missing", "{}.sum()"),
    ("a mean is missing", "{}.mean(-1)"),
    ("a mean is missing", "{}.mean(0)"),
    ("a mean is missing", "{}.mean()"),
    ("an axis of size 1 is missing", "{}.unsqueeze(-1)"),
    ("an axis of size 1 is missing", "{}.unsqueeze(0)"),
    ("an axis of size 1 is missing", "{}.unsqueeze(1)"),
    ("booleans are asked for", "{}.bool()"),
    ("whole numbers are asked for", "{}.long()"),
    ("it must come in reverse order", "{}.flip(0)"),
    ("the gradient must be cut off", "{}.detach()"),
]


@dataclass(frozen=True)
class Edit:
    """One change of a source: from byte `start` to `end` it says `new`, which was `old`."""

    start: int
    end: int
    old: str
    new: str
    words: str
    far: bool = False  # a step put in, another number: farther from what is written


@dataclass(frozen=True)
class Source:
    """The text of an answer, where it stands in its file, and what it needs to run again."""

    text: str
    first: int = 1  # the line of the file on which it begins
    filename: str = "<answer>"
    name: str = ""
    names: dict | None = None  # the globals it is run with
    cells: dict | None = None  # variables of the function around it
    is_lambda: bool = False

    @classmethod
    def of_text(cls, text: str) -> "Source":
        return cls(text)

    @classmethod
    def of(cls, answer: Any) -> "Source | None":
        """The source of a function or a lambda; None if it is not to be had."""
        if not isinstance(answer, FunctionType):
            return None
        code = answer.__code__
        lines = linecache.getlines(code.co_filename, answer.__globals__)
        node = _find("".join(lines), code)
        if node is None:
            return None
        text = _segment(lines, node)
        cells = dict(zip(code.co_freevars, _held(answer), strict=True))
        cells.pop("__class__", None)
        return cls(
            f"({text})" if isinstance(node, ast.Lambda) else text,
            node.lineno,
            code.co_filename,
            getattr(node, "name", ""),
            answer.__globals__,
            cells,
            isinstance(node, ast.Lambda),
        )

    def changed(self, edit: Edit | None) -> Any:
        """The answer that the changed text defines, apart: on copies of all that it uses.

        Raises what its text or its names raise, and `Unsafe` if it may have effects.
        """
        raw = self.text.encode()
        if edit is not None:
            raw = raw[: edit.start] + edit.new.encode() + raw[edit.end :]
        text = raw.decode()
        head = f"def _outer({', '.join(self.cells or {})}):\n"
        inside = f" return {text}" if self.is_lambda else f"{textwrap.indent(text, ' ')}"
        last = "" if self.is_lambda else f"\n return {self.name}"
        made: dict[str, Any] = {}
        code = compile(head + inside + last, self.filename, "exec")
        names, cells = apart(self.names or {}, self.cells or {}, code)
        exec(code, names, made)
        return made["_outer"](**cells)

    def line(self, edit: Edit) -> int:
        """The line of the file on which a change begins."""
        return self.first + self.text.encode()[: edit.start].count(b"\n")

    def code(self, edit: Edit, text: str = "") -> str:
        """The line on which a change begins, as it is written, here or in another `text`."""
        line = (text or self.text).splitlines()[self.line(edit) - self.first]
        line = re.sub(r"\s+#.*", "", line).strip()
        if self.is_lambda and "\n" not in self.text:
            line = line[1:-1]
        return line

    def written(self, edit: Edit) -> str:
        """The whole text after a change, without the brackets that the change does not need."""
        raw, new = self.text.encode(), edit.new
        start, end = edit.start, edit.end
        while raw[start - 1 : start] == b"(" and raw[end : end + 1] == b")":
            start, end, new = start - 1, end + 1, f"({new})"

        def text(new: str) -> str:
            return (raw[:start] + new.encode() + raw[end:]).decode()

        meant = ast.parse(text(new))
        place = new.find("(")
        while place >= 0:
            close = _closing(new, place)
            fewer = new[:place] + new[place + 1 : close] + new[close + 1 :]
            if close > 0 and _means(text(fewer), meant):
                new = fewer
                place = new.find("(", place)
            else:
                place = new.find("(", place + 1)
        return text(new)

    def edits(self, rules: Sequence[Callable] | None = None) -> Iterator[Edit]:
        """Every change worth trying, the likeliest first, none twice."""
        tree = ast.parse(self.text)
        seen = set()
        for rule in rules or _NEAR + _FAR:
            for edit in rule(_Text(self.text), tree):
                key = (edit.start, edit.end, edit.new)
                if edit.new != edit.old and key not in seen:
                    seen.add(key)
                    yield replace(edit, far=rule in _FAR)


class Mended:
    """An `edit` that makes an answer right, and where."""

    def __init__(self, source: Source, edit: Edit) -> None:
        self.edit, self.line, self.code = edit, source.line(edit), source.code(edit)
        self.words = edit.words
        told = self.words.startswith("without this") or "everywhere" in self.words
        if not told and "\n" not in edit.old + edit.new:
            text = source.written(edit)
            if not _as_told(source.text, self.code, self.words, text):
                cause = re.sub(_PRINTED[0][0], "", re.sub(" after `[^`]*`$", "", self.words))
                line = source.code(edit, text)
                self.words = (
                    f"{cause}: `{line}`"
                    if cause
                    else f"with `{line}` in its place your answer is right"
                )

    def __str__(self) -> str:
        code = self.code if len(self.code) <= 90 else f"{self.code[:90]} …"
        return f"Line {self.line}, `{code}`: {self.words}."


@effects_refused()
def mended(
    answer: Any,
    right: Callable[[Any], bool],
    over: Callable[[], bool],
    *,
    few: bool = False,
    sound: set[int] | tuple = (),
) -> list[Mended]:
    """The changes after which an answer is `right`: the first, and one like it on another line.

    None at all where none is found until `over`. With `few`, what is easily right by chance, a step
    put in somewhere, is not tried. No line is changed that is `sound`: what it makes is right.
    """
    found: list[Mended] = []
    source = Source.of(answer)
    if source is None:
        return found
    for node in _body(ast.parse(source.text)):  # several values: one of them may be the wrong one
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            sound = set(sound) - {source.first - 1 + node.lineno}
    try:
        if right(source.changed(None)):
            return found  # it was something else that made the answer wrong
    except Exception:  # whatever its defaults raise, apart
        return found
    left = MOST_AFTER
    for edit in source.edits(_NEAR if few else _NEAR + _FAR):
        if found and edit.far != found[0].edit.far:
            break
        if source.line(edit) in sound:
            continue
        if over() or left == 0:
            break
        left -= bool(found)
        try:
            changed = source.changed(edit)
        except Exception:
            continue
        if right(changed):
            this = Mended(source, edit)
            if found and this.line != found[0].line:
                return [found[0], this]
            found = found or [this]
    return found


def copied(answer: Any) -> Any:
    """An answer as it is, to be run apart, on what its check does not ask; None if it cannot be."""
    source = Source.of(answer)
    try:
        return source.changed(None) if source else Apart().copy(answer)
    except Exception:
        return None


def line_of(code: CodeType, line: int) -> str:
    """A line of an answer's file, as it is written, without its comment."""
    text = re.sub(r"\s+#.*", "", linecache.getline(code.co_filename, line)).strip()
    return text if len(text) <= 90 else f"{text[:90]} …"


def uses(answer: Any, ruled_out: Sequence[str]) -> tuple[str, int] | None:
    """The first thing in an answer that its exercise rules out, and its line."""
    source = Source.of(_undecorated(answer)) if ruled_out else None
    if source is None:
        return None
    line = source.first
    for node in _body(ast.parse(source.text)):
        line = source.first - 1 + getattr(node, "lineno", line - source.first + 1)
        if "loop" in ruled_out and isinstance(node, ast.For | ast.While | ast.comprehension):
            return "a loop", line
        if "@" in ruled_out and isinstance(node, ast.MatMult):
            return "`@`", line
        name = getattr(node, "attr", getattr(node, "id", ""))
        if name in ruled_out and (hasattr(node, "attr") or _is_torchs(source, name)):
            return f"`{name}`", line
    return None


def _is_torchs(source: Source, name: str) -> bool:
    """Is this name PyTorch's function, and not one of the reader's own?"""
    value = (source.cells or {}).get(name, (source.names or {}).get(name))
    functions = [getattr(part, name, None) for part in (torch, torch.nn.functional)]
    return value is not None and any(value is function for function in functions)


def _held_by(answer: Any) -> Any:
    """What runs when this object is called, as far as that is to be seen; else the object."""
    for name in ("forward", "__call__"):
        method = getattr(type(answer), name, None)
        if isinstance(method, FunctionType):  # the object itself, the reader's own, is not asked
            return method
    held = [getattr(answer, name, None) for name in ("__wrapped__", "__func__", "func")]
    return next((one for one in held if callable(one)), answer)


def _undecorated(answer: Any) -> Any:
    """The function that the reader has written, without what `torch.compile`, say, put around it,
    and without the object that holds it (a module, a `partial`, a bound method).

    Without `functools.wraps`, a decorator's function is one that passes on what it gets.
    """
    seen = set()  # it may be wrapped in a circle
    while id(answer) not in seen:
        seen.add(id(answer))
        if not isinstance(answer, FunctionType):
            answer = _held_by(answer)
            continue
        held = [x for x in _held(answer) if isinstance(x, FunctionType)]
        passing = len(held) == 1 and answer.__code__.co_flags & 0x04  # it takes *args
        answer = getattr(answer, "__wrapped__", held[0] if passing else answer)
    return answer


def where_written(answer: Any, values: Sequence[float]) -> int:
    """The line of an answer where the first of these numbers is written, if all of them are."""
    source = Source.of(answer)
    found = []
    for node in _body(ast.parse(source.text)) if source else ():
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found += [(node.value, node.lineno)] if node.value not in (0, 1) else []
    lines = [[n for x, n in found if math.isclose(x, v, rel_tol=1e-4)] for v in values]
    return source.first - 1 + lines[0][0] if lines and all(lines) else 0


def unused(answer: Any) -> list[str]:
    """The arguments of a function that its code never looks at."""
    source = Source.of(answer)
    if source is None or not isinstance(answer, FunctionType):
        return []
    nodes = list(ast.walk(ast.parse(source.text)))
    used = {n.id for n in nodes if isinstance(n, ast.Name)}
    function = next(n for n in nodes if isinstance(n, ast.FunctionDef | ast.Lambda))
    given = [*(function.args.posonlyargs or []), *function.args.args]
    return [a.arg for a in given if a.arg not in used]


# --- as it is told ------------------------------------------------------------------------------

# What is told of a change, and what a reader would write in place of what.
_PRINTED = [
    (r":? ?(?:with )?`([^`]*)` in place of `([^`]*)`( your answer is right)?$", 2, "{0}"),
    (r"`([^`]*)` is missing after `([^`]*)`$", 2, "{1} {0}"),
    (r"`([^`]*)` stands where `([^`]*)` belongs$", 1, "{1}"),
    (r"^(.*) is written down where `([^`]*)` belongs$", 1, "{1}"),
    (r"`([^`]*)` (is too much)$", 1, ""),
    (r"`([^`]*)` (is one step too many)$", 1, ""),
    (r"^without `([^`]*)` (it is right)$", 1, ""),
    (r"^(.*) is not the right axis of `[^`]*`: (.*) is$", 1, "{1}"),
    (r"keeps only the last(: )`([^`]*)`", 0, ""),
    (r"the sign before `([^`]*)` (is one too many)$", 0, ""),
]


def _as_told(text: str, code: str, words: str, mended: str) -> bool:
    """Would a reader who does what the words say, where they say it, write this?"""
    for pattern, which, form in _PRINTED:
        if found := re.search(pattern, words):
            if which == 0:
                return True
            old, new = found.group(which), form.format(found.group(1), found.group(2))
            places = _places(code, old)
            if len(places) != 1 or text.count(code) != 1:
                return False
            line = code[: places[0]] + new + code[places[0] + len(old) :]
            return _means(text.replace(code, line), ast.parse(mended))
    return False


def _places(code: str, old: str) -> list[int]:
    """Where a text stands in a line, not as a part of a longer name or number."""
    found, at = [], code.find(old)
    while old and at >= 0:
        around = code[at - 1 : at] + old[:1], old[-1:] + code[at + len(old) :][:1]
        if not any(len(pair) > 1 and re.fullmatch(r"\w\w", pair) for pair in around):
            found.append(at)
        at = code.find(old, at + 1)
    return found


def _closing(text: str, place: int) -> int:
    """The place of the bracket that closes the one at a place; 0 if there is none."""
    depth = 0
    for n in range(place, len(text)):
        depth += (text[n] == "(") - (text[n] == ")")
        if depth == 0:
            return n
    return 0


def _means(text: str, tree: ast.AST) -> bool:
    try:
        return _alike(ast.parse(text), tree)
    except SyntaxError:
        return False


def _alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        pairs = zip(ast.iter_fields(one), ast.iter_fields(other), strict=True)
        return all(_alike(a[1], b[1]) for a, b in pairs)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other


# --- finding the text ---------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:  # a cell with a magic line
        return None


def _find(text: str, code: CodeType) -> ast.AST | None:
    tree = _parsed(text) if text else None
    if tree is None:
        return None
    if code.co_name != "<lambda>":
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if code.co_firstlineno in (first, node.lineno):
                    return node
        return None
    spans = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    if not spans:
        return None
    begin, end = min((p[0], p[2]) for p in spans), max((p[1], p[3]) for p in spans)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and (node.lineno, node.col_offset) <= begin
        and end <= (node.end_lineno, node.end_col_offset)
        and node.lineno == code.co_firstlineno
    ]
    return around[-1] if around else None


def _segment(lines: list[str], node: ast.AST) -> str:
    """The text of a node, without the decorators above it and the indent before it."""
    text = "".join(lines[node.lineno - 1 : node.end_lineno]).encode()
    last = len("".join(lines[node.lineno - 1 : node.end_lineno - 1]).encode())
    if isinstance(node, ast.Lambda):
        return text[node.col_offset : last + node.end_col_offset].decode()
    text = text[: last + node.end_col_offset].decode()
    return re.sub(rf"(?m)^[ \t]{{0,{node.col_offset}}}", "", text)  # a comment may begin before it


def _held(function: Any) -> list[Any]:
    """The values of a function's closure."""
    return [_cell(cell) for cell in getattr(function, "__closure__", None) or ()]


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


# --- the rules ----------------------------------------------------------------------------------


class _Text:
    """A text by the positions that `ast` gives: lines, and bytes within a line."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.raw[start:end].decode()

    def edit(self, node: ast.AST, new: str, words: str, old: str = "") -> Edit:
        start, end = self.span(node)
        return Edit(start, end, old or self.of(node), new, words)

    def at(self, place: int, new: str, words: str) -> Edit:
        return Edit(place, place, "", new, words)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 50 else f"{text[:50]} …"


def _instead(old: str, new: str) -> str:
    return f"with `{_short(new)}` in place of `{_short(old)}` your answer is right"


def _int(node: ast.AST) -> int | None:
    """The whole number that is written here, if it is one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _int(node.operand)
        return None if value is None else -value
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if whole else None


def _body(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function, in order, without its annotations and docstrings."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        children = []
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            children += value if isinstance(value, list) else [value]
        for child in reversed(children):
            said = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not said:
                stack.append(child)


def _axis(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """Another axis, or another number with a name: `dim=0`, `softmax(0)`."""
    for node in _body(tree):
        if isinstance(node, ast.keyword) and node.arg and (n := _int(node.value)) is not None:
            axis = node.arg in _AXIS_NAMES
            for other in _AXES if axis else (n - 1, n + 1, -n, 0, 1):
                new = f"{node.arg}={other}"
                words = f"`{text.of(node)}` is not the right axis: " if axis else ""
                yield text.edit(node, new, words + _instead(text.of(node), new))
    for node in _body(tree):  # an axis without its name: `softmax(0)`
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "len" and len(node.args) == 1:
                new = f"{text.of(node.args[0])}.shape[-1]"
                yield text.edit(node, new, _instead(text.of(node), new))
            for arg in node.args if name in _ALONG else ():
                for other in _AXES if _int(arg) is not None else ():
                    start, end = text.span(arg)
                    old = f"{name}(…, {text.of(arg)})"
                    words = f"{text.of(arg)} is not the right axis of `{name}`: {other} is"
                    yield Edit(start, end, old, str(other), words)


def _numbers(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """Another number, the other truth value."""
    inner = set()
    for node in _body(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            inner |= set(map(id, node.comparators))  # equal to another number: easily always so
        n = _int(node)
        if n is None or id(node) in inner:
            continue
        if isinstance(node, ast.UnaryOp):
            inner.add(id(node.operand))
        near = (n - 1, n + 1, *_AXES) if abs(n) < 10 else ()  # a large one is easily tuned
        for other in dict.fromkeys(near):
            yield text.edit(node, str(other), _instead(text.of(node), str(other)))
    for node in _body(tree):
        if isinstance(node, ast.Constant) and type(node.value) is bool:
            new = str(not node.value)
            yield text.edit(node, new, _instead(text.of(node), new))
        if isinstance(node, ast.Constant) and type(node.value) is float:
            large = abs(node.value) > 10
            for new in ("float('-inf')",) if large else ("0.5", "1.0", "2.0"):
                yield text.edit(node, new, _instead(text.of(node), new))


def _compared(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """The other comparison."""
    for node in _body(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sign = _SIGNS.get(type(node.ops[0]))
            pair = text.of(node.left), text.of(node.comparators[0])
            for other in _COMPARED.get(sign, ()):
                new = f"(({pair[0]}) {other} ({pair[1]}))"
                says = f"{pair[0]} {other} {pair[1]}"
                yield text.edit(node, new, _instead(text.of(node), says))


def _flipped(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """A minus where a plus belongs, and the like, before any term is taken away."""
    nodes = list(_body(tree))
    calls = [n for n in nodes if isinstance(n, ast.Call) and text.of(n.func) == "range"]
    bounds = [arg for call in calls for arg in call.args]  # who goes too far is easily right
    for node in nodes:
        signs = isinstance(node, ast.BinOp) and _SIGNS.get(type(node.op), "?") in "+-*/"
        sides = (node.left, node.right) if signs and node not in bounds else ()
        if sides and not any(isinstance(side, ast.Constant) for side in sides):
            yield next(_operators(text, node))


def _operators(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """The other operator, an inverted condition, `=` for `+=`."""
    for node in _body(tree):
        if isinstance(node, ast.BinOp):
            sign = _SIGNS.get(type(node.op), "")
            pair = text.of(node.left), text.of(node.right)
            others = [_NUMBERS[sign], *_OTHERS.get(sign, [])] if sign in _NUMBERS else []
            others += [s for s in ("&", "|", "^", "& ~") if sign in ("&", "|", "^") and s != sign]
            for other in others:
                new = f"(({pair[0]}) {other} ({pair[1]}))"
                says = f"{pair[0]} {other} {pair[1]}"
                yield text.edit(node, new, _instead(text.of(node), says))
            if sign == "/" and pair[1].startswith(f"{pair[0]}.sum("):
                for axis in (-1, 0):
                    new = f"torch.softmax({pair[0]}, {axis})"
                    words = f"`{pair[0]}` is divided by its sum without an exponential: a softmax"
                    yield text.edit(node, new, f"{words} does both")
            if sign in ("*", "/") and isinstance(node.left, ast.BinOp):
                first, inner = node.left, _SIGNS.get(type(node.left.op), "")
                if inner in ("+", "-"):
                    last = f"({text.of(first.right)}) {sign} ({pair[1]})"
                    new = f"({text.of(first.left)} {inner} {last})"
                    words = f"`{sign} {_short(pair[1])}` belongs to the last term only"
                    yield text.edit(node, new, words)
            inner, times = (node.right, pair[0]) if sign == "*" else (None, "")
            if isinstance(inner, ast.BinOp) and (other := _SIGNS.get(type(inner.op))) in ("+", "-"):
                last = text.of(inner.right)
                new = f"({times}) * ({text.of(inner.left)}) {other} ({last})"
                yield text.edit(node, new, f"`{_short(last)}` belongs outside the parentheses")
            if sign in ("-", "/", "@", "**", "//"):
                new = f"(({pair[1]}) {sign} ({pair[0]}))"
                words = f"the two sides of `{sign}` must change places"
                yield text.edit(node, new, words)
        elif isinstance(node, ast.BoolOp):
            sign = _SIGNS[type(node.op)]
            other = {"and": "or", "or": "and"}[sign]
            new = "(" + f" {other} ".join(f"({text.of(v)})" for v in node.values) + ")"
            yield text.edit(node, new, _instead(sign, other))
        elif isinstance(node, ast.AugAssign):
            sign = _SIGNS.get(type(node.op), "")
            pair = text.of(node.target), text.of(node.value)
            for other in (_NUMBERS.get(sign, ""), "", "|", "&"):
                new = f"{pair[0]} {other}= {pair[1]}"
                yield text.edit(node, new, _instead(f"{sign}=", f"{other}="))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Name):
            pair = text.of(node.targets[0]), text.of(node.value)
            for sign in ("+", "*", "|"):
                what = "adds" if sign == "+" else "combines"
                words = f"`=` keeps only the last: `{sign}=` {what} them all"
                yield text.edit(node, f"{pair[0]} {sign}= {pair[1]}", words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.Not):
            if _int(node) is None:
                inner = text.of(node.operand)
                words = f"the sign before `{_short(inner)}` is one too many"
                if not isinstance(node.op, ast.USub):
                    words = f"`{_short(text.of(node))}` is inverted: `{_short(inner)}` is right"
                yield text.edit(node, f"({inner})", words)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            test = node.test
            yield text.edit(test, f"(not ({text.of(test)}))", "this condition is inverted")


def _kin(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """A function that is taken for its kin: max for min, sum for mean, tril for triu."""
    for node in _body(tree):
        if isinstance(node, ast.Attribute):
            name, end = node.attr, text.span(node)[1]
        elif isinstance(node, ast.Name):
            name, end = node.id, text.span(node)[1]
        else:
            continue
        for group in _KIN:
            for other in sorted(group - {name}) if name in group else ():
                start = end - len(name.encode())
                yield Edit(start, end, name, other, _instead(name, other))


def _names(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """One variable where another belongs."""
    stored = {n.id for n in _body(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    known = [n.arg for n in _body(tree) if isinstance(n, ast.arg) and n.arg != "self"]
    known = list(dict.fromkeys([*known, *sorted(stored)]))
    used = [
        n
        for n in _body(tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in known
    ]
    for node in _body(tree):  # a list is never equal to a number: easily always so
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            used = [n for n in used if n is not node.left and n is not node.comparators[0]]
    for node in used:
        for other in known:
            if other != node.id:
                words = f"`{node.id}` stands where `{other}` belongs"
                yield text.edit(node, other, words)
    for node in _body(tree):  # two steps, in the wrong order: `norm(layer(x))`
        if (
            isinstance(node, ast.Call)
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Call)
        ):
            inner, names = node.args[0], (text.of(node.func), text.of(node.args[0].func))
            if names[0] != names[1]:
                rest = text.raw[text.span(inner.func)[1] : text.span(inner)[1]].decode()
                words = f"`{_short(names[0])}` and `{_short(names[1])}` must change places"
                yield text.edit(node, f"{names[1]}({names[0]}{rest})", words)
    for node in _body(tree):  # the two sides of an assignment, or of a call
        if isinstance(node, ast.Call) and len(node.args) > 1:
            pieces = [text.of(arg) for arg in node.args]
            start, end = text.span(node.args[0])[0], text.span(node.args[-1])[1]
            old = text.raw[start:end].decode()
            orders = permutations(pieces) if len(pieces) < 5 else ()
            for order in orders:
                new = ", ".join(order)
                yield Edit(start, end, old, new, _instead(old, new))
        if isinstance(node, ast.Tuple) and 1 < len(node.elts) < 5:
            pieces = [text.of(item) for item in node.elts]
            start, end = text.span(node.elts[0])[0], text.span(node.elts[-1])[1]
            old = text.raw[start:end].decode()
            for order in permutations(pieces):
                new = ", ".join(order)
                yield Edit(start, end, old, new, _instead(old, new))


def _swapped(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """Two arguments, taken for each other throughout."""
    for node in _body(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not tree:
            for one, other in combinations([a for a in node.args.args if a.arg != "self"], 2):
                start, end = text.span(one)[0], text.span(other)[1]
                names = one.arg, other.arg
                between = text.raw[text.span(one)[1] : text.span(other)[0]].decode()
                words = f"`{names[0]}` and `{names[1]}` are taken for each other, everywhere"
                yield Edit(start, end, "", other.arg + between + one.arg, words)


def _dropped(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """A step too many: a method, a function around a value, one side of an operator, a line."""
    for node in _body(tree):
        if isinstance(node, ast.keyword) and node.arg:
            start, end = text.span(node)
            after = re.match(rb"\s*,\s*", text.raw[end:])
            before = re.search(rb",\s*$", text.raw[:start])
            start, end = (
                (start, end + after.end()) if after else (before.start() if before else start, end)
            )
            yield Edit(start, end, text.of(node), "", f"without `{text.of(node)}` it is right")
        if isinstance(node, ast.Call):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else None
            module = isinstance(inner, ast.Name) and inner.id in _MODULES
            if inner is not None and not module:
                step = text.raw[text.span(inner)[1] : text.span(node)[1]].decode().lstrip(") \n")
                words = f"`{_short(step)}` is one step too many"
                yield text.edit(node, f"({text.of(inner)})", words)
            elif node.args:
                words = f"`{_short(text.of(node.func))}` is one step too many"
                yield text.edit(node, f"({text.of(node.args[0])})", words)
            if len(node.args) > 1:
                last = node.args[-1]
                start, end = text.span(node.args[-2])[1], text.span(last)[1]
                words = f"without `{_short(text.of(last))}` it is right"
                yield Edit(start, end, text.of(last), "", words)
        elif isinstance(node, ast.Attribute) and node.attr in ("values", "indices"):
            inner = getattr(getattr(node.value, "func", None), "value", None)  # of a `sort`
            if inner is not None and getattr(inner, "id", "") not in _MODULES:
                step = text.raw[text.span(inner)[1] : text.span(node)[1]].decode().lstrip(") \n")
                words = f"`{_short(step)}` is one step too many"
                yield text.edit(node, f"({text.of(inner)})", words)
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H"):
            words = "there is a transpose too many"
            yield text.edit(node, f"({text.of(node.value)})", words)
        elif isinstance(node, ast.BinOp):
            sign = _SIGNS.get(type(node.op), "?")
            left, right = text.of(node.left), text.of(node.right)
            yield text.edit(node, f"({left})", f"`{sign} {_short(right)}` is too much")
            yield text.edit(node, f"({right})", f"`{_short(left)} {sign}` is too much")
        elif isinstance(node, ast.BoolOp):
            for n in range(len(node.values)):
                rest = [text.of(v) for m, v in enumerate(node.values) if m != n]
                sign = _SIGNS[type(node.op)]
                words = f"the condition `{_short(text.of(node.values[n]))}` is too much"
                yield text.edit(node, "(" + f" {sign} ".join(f"({r})" for r in rest) + ")", words)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            index = text.raw[text.span(node.value)[1] : text.span(node)[1]].decode().lstrip(")")
            words = f"`{_short(index)}` is too much"
            yield text.edit(node, f"({text.of(node.value)})", words)
        elif isinstance(node, ast.IfExp):
            for kept in (node.body, node.orelse):
                words = f"`{_short(text.of(kept))}` belongs here in any case"
                yield text.edit(node, f"({text.of(kept)})", words)
        elif isinstance(node, ast.If):
            if not node.orelse and text.of(node).startswith("if"):  # not for a branch of several
                words = "without this condition your answer is right"
                yield text.edit(node.test, "True", words)
        elif isinstance(node, ast.Expr | ast.AugAssign) or (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Name)
        ):
            yield text.edit(node, "pass", "without this line your answer is right")


def _indices(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """The index of another axis: `[:, None]` for `[None]`, `x[0]` for `x[:, 0]`."""
    for node in _body(tree):
        if not isinstance(node, ast.Subscript):
            continue
        pieces = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        written = [text.of(piece) for piece in pieces]
        if any(not piece for piece in written) or len(written) > 4:
            continue
        orders = {tuple(order) for order in permutations(written)}
        orders |= {(*written[:n], ":", *written[n:]) for n in range(len(written))}
        orders |= {tuple(w for m, w in enumerate(written) if m != n) for n in range(len(written))}
        start, end = text.span(node.slice)
        for order in sorted(orders - {tuple(written), ()}):
            new = ", ".join(order)
            old = text.raw[start:end].decode()
            yield Edit(start, end, old, new, _instead(f"[{old}]", f"[{new}]"))
        for piece, other in zip(pieces, written, strict=True):
            if isinstance(piece, ast.Slice):
                for bound in (piece.lower, piece.upper):
                    if bound is not None and _int(bound) is None:
                        for sign in "+-":
                            new = f"{text.of(bound)} {sign} 1"
                            yield text.edit(bound, new, _instead(other, new))
            elif not isinstance(piece, ast.Constant) and _int(piece) is None:
                last = isinstance(piece, ast.BinOp) and isinstance(piece.op, ast.Sub)
                all_of_them = f": {text.of(piece.left) if last else other}"  # not only this one
                yield text.edit(piece, all_of_them, _instead(other, all_of_them))
                yield text.edit(piece, f"{other} - 1", _instead(other, f"{other} - 1"))
                yield text.edit(piece, f"{other} + 1", _instead(other, f"{other} + 1"))


def _letters(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """Another letter in the equation of an einsum."""
    for node in _body(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if "->" not in node.value:
            continue
        ins, _, out = node.value.replace(" ", "").partition("->")
        letters = sorted(set(ins + out) - {",", "."})
        options = ["".join(order) for order in permutations(out)] if len(out) < 5 else []
        equations = [f"{ins}->{o}" for o in options]
        for whole in (ins, out):
            for n, letter in enumerate(whole):
                for other in letters if letter in letters else ():
                    new = whole[:n] + other + whole[n + 1 :]
                    equations.append(f"{new}->{out}" if whole is ins else f"{ins}->{new}")
        for equation in equations:
            new = f'"{equation}"'
            yield text.edit(node, new, _instead(text.of(node), new))


def _everywhere(text: _Text, tree: ast.AST, rules: Sequence = (_dropped,)) -> Iterator[Edit]:
    """The same step too many, or another change, at every place where it is written."""
    alike: dict[str, list[Edit]] = {}
    for rule in rules:
        for edit in rule(text, tree):
            same = alike.setdefault(f"everywhere, {edit.words}", [])
            if "this" not in edit.words and (not same or same[-1].end <= edit.start):
                same.append(edit)
    quotients = [node for node in _body(tree) if isinstance(node, ast.BinOp)]
    quotients = [node for node in quotients if isinstance(node.op, ast.Div | ast.Sub)]

    def cancel(edits: list[Edit]) -> bool:
        """They stand on both sides of a quotient or difference: a mistake in one may go unseen."""
        sides = [[text.span(side) for side in (node.left, node.right)] for node in quotients]
        return any(
            all(any(start <= e.start and e.end <= end for e in edits) for start, end in both)
            for both in sides
        )

    for words, edits in alike.items():
        if len(edits) > 1 and not cancel(edits):
            new, start, at = b"", edits[0].start, edits[0].start
            for edit in edits:
                new, at = new + text.raw[at : edit.start] + edit.new.encode(), edit.end
            yield Edit(start, at, text.raw[start:at].decode(), new.decode(), words)


def _loops(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """A loop that ends too early, or takes all where every other one counts; a mean for a max."""
    for node in _body(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            continue
        name, arg = text.of(node.func), text.of(node.args[0])
        options = []
        if name == "range":
            options.append(("only every other one counts", f"range(0, {arg}, 2)"))
            if arg.isdigit():
                options.append(("the loop ends too early", f"range({10 * int(arg)})"))
        if name in ("max", "min"):
            options.append(("the mean belongs here", f"sum({arg}) / len({arg})"))
        for words, new in options:
            yield text.edit(node, f"({new})", f"{words}: {_instead(text.of(node), new)}")


def _values(tree: ast.AST) -> Iterator[ast.AST]:
    """The expressions that have a value to change: operands, arguments, what is given back."""
    for node in _body(tree):
        if isinstance(node, ast.Return | ast.Assign | ast.AugAssign) and node.value is not None:
            yield node.value
        elif isinstance(node, ast.Lambda):
            yield node.body
        elif isinstance(node, ast.BinOp):
            yield from (node.left, node.right)
        elif isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call):
            yield from node.args
            if isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if not isinstance(owner, ast.Name) or owner.id not in _MODULES:
                    yield owner
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.iter


def _inverted(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """True where False belongs, throughout."""
    for node in _body(tree):
        value = getattr(node, "body" if isinstance(node, ast.Lambda) else "value", None)
        if isinstance(node, ast.Return | ast.Assign | ast.Lambda) and isinstance(value, ast.Call):
            new = f"~{text.of(value)}"
            yield text.edit(
                value, new, f"it is inverted: `{new}` in place of `{_short(text.of(value))}`"
            )


def _around(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """A step that is missing."""
    for node in _body(tree):
        if isinstance(node, ast.Call) and text.of(node.func).endswith(
            "scaled_dot_product_attention"
        ):
            words = "it divides the scores by the root of the width, but must leave them raw"
            yield text.at(text.span(node)[1] - 1, ", scale=1.0", words)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OVER_AN_AXIS:
            end = text.span(node)[1] - 1
            comma = ", " if node.args or node.keywords else ""
            for new, words in (
                ("keepdim=True", "keep the axis that disappears, by `keepdim=True`"),
                ("dim=-1", "an axis is missing: `dim=-1`"),
                ("dim=0", "an axis is missing: `dim=0`"),
                ("dim=-1, keepdim=True", "it must be taken over each row: `dim=-1, keepdim=True`"),
            ):
                yield text.at(end, comma + new, words)
    targets = list({id(node): node for node in _values(tree)}.values())
    for words, form in _AROUND:
        for node in targets:
            if isinstance(node, ast.Constant | ast.Starred | ast.GeneratorExp):
                continue
            old = text.of(node)
            new = form.format(f"({old})")
            says = form.format(old if re.fullmatch(r"[\w.]+", old) else f"({_short(old)})")
            yield text.edit(node, f"({new})", f"{words}: `{says}` in place of `{_short(old)}`")


def _sized(text: _Text, tree: ast.AST) -> Iterator[Edit]:
    """A size that is missing, or of another axis: a division by the root of a width."""
    arguments = [n.arg for n in _body(tree) if isinstance(n, ast.arg) and n.arg != "self"]
    stored = [
        n.id
        for node in _body(tree)
        if isinstance(node, ast.Assign)
        for n in ast.walk(node.targets[0])
        if isinstance(n, ast.Name)
    ]
    numbers = [f"{a}.shape[-1]" for a in arguments] + list(dict.fromkeys([*arguments, *stored]))
    for node in _body(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
            for other in [*numbers, *(f"len({a})" for a in arguments)]:
                words = f"{node.value} is written down where `{other}` belongs"
                yield text.edit(node, other, words)
        if isinstance(node, ast.BinOp | ast.Call):
            old = text.of(node)
            product = isinstance(getattr(node, "op", None), ast.MatMult)
            steps = ("/ {} ** 0.5",) if product else ("* {}", "/ {}", "/ {} ** 0.5")
            for number in numbers:
                for step in steps:
                    step = step.format(number)
                    words = f"`{step}` is missing after `{_short(old)}`"
                    yield text.edit(node, f"(({old}) {step})", words)
    for node in _body(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in numbers:
            for other in numbers:
                if "." not in other and other != node.id:
                    for sign in ("//", "*", "+", "-"):
                        new = f"({node.id} {sign} {other})"
                        yield text.edit(node, new, _instead(node.id, new[1:-1]))


# What is written, taken for another or too much; and what may be missing, or any other number.
_NEAR = (_axis, _compared, _flipped, _dropped, _operators)
_NEAR += (_kin, _names, _indices, _letters, _numbers, _everywhere, _inverted)
_FAR = (_swapped, functools.partial(_everywhere, rules=(_axis, _kin)), _loops, _sized, _around)
