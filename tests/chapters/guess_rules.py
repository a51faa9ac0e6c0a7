"""The rules for questions: until the reader has guessed, nothing in sight gives the answer away.

A rule is a function: notebook in, list of problems out; rules.py lists them. What a program can see
is the right option in other words than its own, or a number of the answer; what an open cell needs
of hidden code; and a claim that says it all. Whether a sentence *hints* at an answer it cannot see.
"""

import ast
import re

from anatomy import asserts, is_open, road, shows_question, tags, text_of
from nbformat import NotebookNode

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)? ?%?")
SHORTEST = 12  # characters of an option that cannot stand in a text by chance


def answers_out_of_sight(nb: NotebookNode) -> list[str]:
    """Nothing in sight in a question's section says its right option, or a number of the answer."""
    found, cells = [], road(nb)
    for at, (number, cell) in enumerate(cells):
        if not _asks(cell):
            continue
        words, numbers = _answer(cell)
        for n, other in _section(cells, at):
            text = _in_sight(other) if other is not cell else ""
            told = {word for word in words if word in _plain(text)} | (numbers & _numbers(text))
            if told:
                found.append(
                    f"cell {n} says {', '.join(sorted(told))}, which is the answer to the question "
                    f"in cell {number}: tag it reveal, or ask something else"
                )
    return found


def open_code_without_hidden_code(nb: NotebookNode) -> list[str]:
    """Open code of a question's `##` section does without what only hidden open code has made."""
    found, cells = [], road(nb)
    for at, (number, cell) in enumerate(cells):
        if not _asks(cell):
            continue
        hidden = set().union(*(_made(c) for c in _hidden(cells, at) if "hide-input" not in tags(c)))
        before = set().union(*(_made(c) for _, c in cells[:at] if "reveal" not in tags(c)))
        for n, other in _section(cells, at, "## "):
            if n < number or not is_open(other) or "reveal" in tags(other):
                continue
            if needed := (hidden - before - _made(other)) & _names(other, ast.Load):
                found.append(
                    f"cell {n} needs {', '.join(sorted(needed))}, made where the guess in cell "
                    f"{number} hides it: make it before the question, or here"
                )
    return found


def claims_hidden_with_their_answer(nb: NotebookNode) -> list[str]:
    """A claim right after what a guess hides is hidden, too: its asserts hold the answer."""
    cells = road(nb)
    return [
        f"cell {n} claims what the guess in cell {number} hides: tag it reveal, too"
        for at, (number, cell) in enumerate(cells)
        if _asks(cell)
        for n, after in cells[at + 1 + len(_hidden(cells, at)) :][:1]
        if "claim" in tags(after) and asserts(after)
    ]


def _asks(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and shows_question(cell.source)


def _hidden(cells: list[tuple[int, NotebookNode]], at: int) -> list[NotebookNode]:
    """The cells that the guess hides."""
    hidden = []
    for _, cell in cells[at + 1 :]:
        if "reveal" not in tags(cell):
            break
        hidden.append(cell)
    return hidden


def _section(
    cells: list[tuple[int, NotebookNode]], at: int, heading: str = "###? "
) -> list[tuple[int, NotebookNode]]:
    """From the heading before the question to the next one."""

    def heads(place: int) -> bool:
        cell = cells[place][1]
        return cell.cell_type == "markdown" and bool(re.search(f"(?m)^{heading}", cell.source))

    first = next((place for place in range(at, -1, -1) if heads(place)), 0)
    last = next((place for place in range(at + 1, len(cells)) if heads(place)), len(cells))
    return cells[first:last]


def _in_sight(cell: NotebookNode) -> str:
    """What a page shows of a cell before any click: of folded code, the texts of its figure."""
    if "reveal" in tags(cell):
        return ""
    if cell.cell_type != "code":
        return re.sub(r"<details>.*?</details>", " ", cell.source, flags=re.DOTALL)
    if {"claim", "setup", "listing"} & set(tags(cell)):
        return ""
    if _asks(cell):
        question, options, _ = _parts(cell)
        return "\n".join([question, *(number for o in options for number in _numbers(o))])
    source = cell.source if is_open(cell) else "\n".join(_texts(ast.parse(cell.source)))
    return f"{source}\n{text_of(cell)}"


def _parts(cell: NotebookNode) -> tuple[str, dict[str, str], dict[str, str]]:
    """A question, its options with their sentences, and its other arguments, as far as written."""
    call = next(
        node
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and re.search(r"\bPredict\b", ast.unparse(node.func))
    )
    options = call.args[1] if len(call.args) > 1 else None
    pairs = zip(options.keys, options.values, strict=True) if isinstance(options, ast.Dict) else ()
    named = {keyword.arg: _text(keyword.value) for keyword in call.keywords}
    question = _text(call.args[0]) if call.args else named.get("question", "")
    return question, {_text(key): _text(value) for key, value in pairs if key}, named


def _answer(cell: NotebookNode) -> tuple[set[str], set[str]]:
    """The right option's words, and the numbers of the answer that the question does not give."""
    question, options, named = _parts(cell)
    right, others = named.get("right", ""), [o for o in options if o != named.get("right")]
    asked = _plain(" ".join([question, *others]))
    words = {_plain(right)} if len(right) >= SHORTEST and _plain(right) not in asked else set()
    told = f"{right} {named.get('then', '')}"
    telling = {number for number in _numbers(told) if len(re.sub(r"\D|^[0.]+", "", number)) > 1}
    return words, {n for n in telling if "." in n or "%" in n or len(n) > 2} - _numbers(asked)


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else " ".join(_texts(node))


def _texts(tree: ast.AST) -> list[str]:
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [value for value in constants if isinstance(value, str)]


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*`_]", "", text.lower()).split())


def _numbers(text: str) -> set[str]:
    return {number.rstrip(", ").replace(" %", "%") for number in NUMBER.findall(text)}


def _names(cell: NotebookNode, kind: type[ast.expr_context]) -> set[str]:
    nodes = ast.walk(ast.parse(cell.source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


def _made(cell: NotebookNode) -> set[str]:
    """The names that a cell makes."""
    if cell.cell_type != "code":
        return set()
    tree = ast.parse(cell.source)
    defined = (n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef))
    imported = (
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )
    taken = (node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))  # by functions
    return {*_names(cell, ast.Store), *defined, *imported, *taken}
