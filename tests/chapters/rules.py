"""The rules for chapters, as functions: notebook in, list of problems out.

They run on the stored notebooks (test_structure.py) and, each in both directions, on small
notebooks made in memory (test_rules.py). What running a notebook changes (stale outputs, counts,
metadata) is checked by `book/notebooks.py --check`.
"""

import ast
import re
import statistics
from itertools import pairwise

from nbformat import NotebookNode

LONGEST_MEDIAN = 8  # lines of a code cell
KNOWN_TAGS = {
    "setup", "hide-cell", "hide-input", "hide-output", "exercise", "solution",
    "raises-exception", "nbval-ignore-output", "reveal",
}  # fmt: skip
DRAWS = re.compile(r"^(plt\.show|plots\.(?!house$)[a-z]\w*)$")
RATING = re.compile(r"ifficulty [●○]{3}.*mportance [●○]{3}.*\b\d+ minutes")


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


def begins_with_its_aims(nb: NotebookNode) -> list[str]:
    """One title; what the reader will be able to do, as a list; minutes needed."""
    first, found = nb.cells[0], []
    if first.cell_type != "markdown" or not first.source.startswith("# "):
        return ["cell 1 must be Markdown that begins with the title: `# Title`"]
    if not re.search(r"you can\b.*\n(\s*\n)*[-*] ", first.source, re.I):
        found.append(
            "cell 1 must list what the reader can do afterwards (`... you can` and a list)"
        )
    if not re.search(r"\b\d+ minutes", first.source):
        found.append("cell 1 must say how many minutes the chapter needs")
    if len(headings(nb, 1)) != 1:
        found.append(f"there must be one title, found {[text for _, text in headings(nb, 1)]}")
    return found


def sets_up_second(nb: NotebookNode) -> list[str]:
    """Cell 2 is the hidden setup cell, and there is no other."""
    marked = [n for n, cell in code_cells(nb) if "setup" in tags(cell)]
    if marked != [2]:
        return [f"cell 2 must be the one setup cell, found it at {marked}"]
    return [] if "hide-cell" in tags(nb.cells[1]) else ["the setup cell needs the tag hide-cell"]


def shows_a_widget_first(nb: NotebookNode) -> list[str]:
    """A living figure comes before the second section."""
    sections = headings(nb, 2)
    limit = sections[1][0] if len(sections) > 1 else len(nb.cells) + 1
    widgets: set[str] = set()
    for number, cell in code_cells(nb):
        tree = ast.parse(cell.source)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and "transformer_lib.widgets" in (
                node.module or ""
            ):
                widgets |= {alias.asname or alias.name for alias in node.names}
            called = node.value if isinstance(node, ast.Assign) else None
            if isinstance(called, ast.Call) and _last_name(called.func) in widgets:
                widgets |= {ast.unparse(target) for target in node.targets}
        last = tree.body[-1] if tree.body else None
        if number < limit and isinstance(last, ast.Expr):
            shown = last.value.func if isinstance(last.value, ast.Call) else last.value
            if _last_name(shown) in widgets:
                return []
    return ["no widget from transformer_lib.widgets is shown before the second section"]


def _last_name(node: ast.AST) -> str:
    return ast.unparse(node).split(".")[-1]


def has_its_sections(nb: NotebookNode) -> list[str]:
    """Prove it, Exercises, What goes wrong in practice, and a summary, in this order; citations."""
    names = [text for _, text in headings(nb, 2)]
    wanted = ["Prove it", "Exercises", "What goes wrong in practice"]
    missing = [f"the section `## {name}` is missing" for name in wanted if name not in names]
    if missing:
        return missing
    places = [names.index(name) for name in wanted]
    if places != sorted(places):
        return [f"the sections must come in the order {wanted}, found {names}"]
    if names[-1] == wanted[-1]:
        return ["a summary must follow `## What goes wrong in practice`, as a section of its own"]
    cites = any("references.md#" in cell.source for cell in nb.cells)
    found = [] if cites else ["the chapter cites nothing: link to references.md#…"]
    proof = section(nb, "Prove it")
    if not any("assert" in cell.source for _, cell in proof if cell.cell_type == "code"):
        found.append("`## Prove it` asserts nothing")
    return found


def section(nb: NotebookNode, name: str) -> list[tuple[int, NotebookNode]]:
    """The numbered cells of one `##` section, its heading's cell included."""
    starts = headings(nb, 2)
    at = next((n for n, text in starts if text == name), None)
    if at is None:
        return []
    end = next((n for n, _ in starts if n > at), len(nb.cells) + 1)
    return [(n, nb.cells[n - 1]) for n in range(at, end)]


def has_checked_exercises(nb: NotebookNode) -> list[str]:
    """Three to six exercises, each complete."""
    cells = section(nb, "Exercises")
    starts = [n for n, cell in cells if re.search(r"^### Exercise ", cell.source, re.M)]
    if not 3 <= len(starts) <= 6:
        return [f"there must be 3 to 6 exercises (`### Exercise n · Title`), found {len(starts)}"]
    ends = [*starts[1:], cells[-1][0] + 1]
    found = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        part = nb.cells[start - 1 : end - 1]
        found += [f"exercise {index}: {problem}" for problem in _exercise(index, part)]
    return found


def _exercise(index: int, cells: list[NotebookNode]) -> list[str]:
    found = []
    if not re.search(rf"^### Exercise {index} · \S", cells[0].source, re.M):
        found.append(f"its heading must be `### Exercise {index} · Title`")
    if not RATING.search(cells[0].source):
        found.append("no rating (difficulty ●○○, importance ●●○, n minutes)")
    stubs = [cell for cell in cells if "exercise" in tags(cell)]
    solutions = [cell for cell in cells if "solution" in tags(cell)]
    if len(stubs) != 1 or len(solutions) != 1:
        return [*found, "needs one cell tagged `exercise` and one tagged `solution`"]
    stub, solution = stubs[0], solutions[0]
    hints = [c for c in cells if "<details><summary>Hint" in c.source and "</details>" in c.source]
    if not hints:
        found.append("has no hint (<details><summary>Hint</summary> … </details>)")
    for name, cell in (("stub", stub), ("solution", solution)):
        if not last_call(cell.source).startswith("check_"):
            found.append(f"the {name} must end in its check: `check_name(answer)`")
    if last_call(stub.source) != last_call(solution.source):
        found.append("stub and solution end in different checks")
    if text_of(stub).strip() != "○ not attempted yet":
        found.append(f"the stub must give `○ not attempted yet`, it gives {text_of(stub)!r}")
    if not text_of(solution).startswith("✓"):
        found.append(f"the solution does not pass: {text_of(solution)!r}")
    hidden = (
        "hide-cell" in tags(solution)
        and solution.metadata.get("jupyter", {}).get("source_hidden") is True
        and solution.metadata.get("cellView") == "form"
        and solution.source.startswith("# @title Solution")
    )
    if not hidden:
        found.append(
            "the solution must be hidden on the page (tag hide-cell), in JupyterLab "
            "(jupyter.source_hidden) and in Colab (cellView: form, `# @title Solution` first)"
        )
    return found


def keeps_cells_short(nb: NotebookNode) -> list[str]:
    """The median code cell has at most eight lines; the setup cell is written by the build."""
    cells = [cell for _, cell in code_cells(nb) if "setup" not in tags(cell)]
    lines = [sum(bool(line.strip()) for line in cell.source.splitlines()) for cell in cells]
    median = statistics.median(lines) if lines else 0
    return [f"the median code cell has {median} lines"] if median > LONGEST_MEDIAN else []


def describes_its_figures(nb: NotebookNode) -> list[str]:
    """Every figure has an alternative text of its own, in words."""
    found, texts = [], []
    for number, cell in code_cells(nb):
        if not _draws(cell):
            continue
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        texts.append(alt)
        if len(alt.split()) < 5:
            found.append(
                f"cell {number} shows a figure; mystnb.image.alt does not say what: {alt!r}"
            )
    found += [
        f"two figures share the text {a!r}" for a, b in pairwise(sorted(texts)) if a and a == b
    ]
    for number, cell in enumerate(nb.cells, start=1):
        bare = re.search(r"!\[\s*\]\(|<img (?![^>]*alt=\"[^\"]+)", cell.source)
        if cell.cell_type == "markdown" and bare:
            found.append(f"cell {number} has an image without alternative text")
    return found


def _draws(cell: NotebookNode) -> bool:
    if "<Figure size" in text_of(cell):
        return True
    pending, calls = list(ast.parse(cell.source).body), []
    while pending:  # the body of a function draws only where that is called
        node = pending.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            calls += [ast.unparse(node.func)] if isinstance(node, ast.Call) else []
            pending += ast.iter_child_nodes(node)
    return any(DRAWS.match(call) for call in calls)


def speaks_plain_markdown(nb: NotebookNode) -> list[str]:
    """No macro definitions and no MyST syntax: Colab and JupyterLab show these raw."""
    found = []
    macro = re.compile(
        r"\\(re)?newcommand|\\def\b|\\DeclareMathOperator|\\gdef\b|\\let\b|\\require\b"
    )
    myst = re.compile(r"\{[a-z][\w:+.-]*\}`|^(```|:::+|~~~)\{|^\([\w-]+\)=", re.M)
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "markdown":
            text = re.sub(r"(?<![}`])`[^`\n]+`(?!`)", "", cell.source)  # but not the text of a role
            kinds = ((macro, "defines a LaTeX macro"), (myst, "uses MyST syntax"))
            found += [f"cell {number} {words}" for kind, words in kinds if kind.search(text)]
    return found


def hides_nothing_from_nbval(nb: NotebookNode) -> list[str]:
    """No skipped cell; an ignored output is followed by an assert of what matters."""
    found = []
    cells = code_cells(nb)
    for (number, cell), following in zip(cells, [*cells[1:], None], strict=True):
        if "nbval-skip" in tags(cell) or re.search(r"#\s*NBVAL_", cell.source):
            found.append(f"cell {number} is kept from nbval: no nbval-skip, no NBVAL_ comment")
        for tag in tags(cell):
            if tag not in KNOWN_TAGS | {"nbval-skip"} and not tag.startswith("library:"):
                found.append(f"cell {number} has the tag {tag!r}, which means nothing")
        if "nbval-ignore-output" in tags(cell):
            tree = ast.parse(following[1].source) if following else ast.Module([], [])
            if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
                found.append(f"cell {number} has an ignored output and no assert in the cell after")
    return found


def has_run(nb: NotebookNode) -> list[str]:
    """Every cell has run; an error is stored where, and only where, the lesson is an error."""
    found = []
    for number, cell in code_cells(nb):
        raised = any(output.output_type == "error" for output in cell.outputs)
        if cell.execution_count is None:
            found.append(f"cell {number} has not run")
        elif raised and "raises-exception" not in tags(cell):
            found.append(f"cell {number} raised an error")
        elif not raised and "raises-exception" in tags(cell):
            found.append(f"cell {number} is tagged raises-exception and raised nothing")
    return found


def reveals_after_a_question(nb: NotebookNode) -> list[str]:
    """What gives an answer away follows its `Predict` at once, whose code is hidden too."""
    found, before = [], ""
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "code" and shows_question(cell.source):
            before = "question"
            if "hide-input" not in tags(cell):
                found.append(
                    f"cell {number} asks, and its code shows the answer: tag it hide-input"
                )
            if "reveal" in tags(cell):
                found.append(f"cell {number} asks, and is itself hidden by the tag reveal")
        elif "reveal" not in tags(cell):
            before = ""
        elif not before:
            found.append(f"cell {number} is tagged reveal, and no Predict stands right before it")
    return found


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


RULES = [
    begins_with_its_aims,
    sets_up_second,
    shows_a_widget_first,
    has_its_sections,
    has_checked_exercises,
    keeps_cells_short,
    describes_its_figures,
    speaks_plain_markdown,
    hides_nothing_from_nbval,
    reveals_after_a_question,
    has_run,
]
