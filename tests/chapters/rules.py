"""The rules for chapters, as functions: notebook in, list of problems out.

They run on the stored notebooks (test_structure.py) and, each in both directions, on small
notebooks made in memory (test_rules.py). What running a notebook changes (stale outputs, counts,
metadata) is checked by `book/notebooks.py --check`.
Here are those for a chapter as a whole: its parts, their order, its exercises. Those for single
cells: cell_rules.py. What both call a chapter's road, a section, an open cell: anatomy.py.
"""

import ast
import re

from anatomy import (
    AFTER_THE_ROAD,
    asserts,
    code_cells,
    compares,
    counts,
    headings,
    is_deeper,
    is_open,
    last_call,
    section,
    tags,
    text_of,
)
from cell_rules import (
    asserts_out_of_sight,
    claims_quietly,
    cuts_no_line,
    describes_its_figures,
    has_run,
    hides_nothing_from_nbval,
    keeps_cells_short,
    lists_what_it_says,
    reveals_after_a_question,
    speaks_plain_markdown,
)
from guess_rules import (
    answers_out_of_sight,
    claims_hidden_with_their_answer,
    open_code_without_hidden_code,
)
from nbformat import NotebookNode

# How long a road may be, and what must be on it.
AIMS = {"words": 2_500, "open cells": 30, "asserts": 0, "questions": 3, "challenges": 1}
# Whoever has finished a chapter adds its name.
HELD_TO_AIMS: tuple[str, ...] = (
    "00-the-whole-machine",
    "01-self-attention",
    "02-queries-keys-values",
    "03-scaling",
    "04-masking",
    "05-multi-head",
    "06-tokens-and-embeddings",
    "07-positional-encodings",
    "07c-turn-do-not-add",
    "08-transformer-block",
    "09-encoder-decoder",
    "10-translation",
    "11-gpt",
    "12-training-gpt",
    "13-generating-text",
    "14-inside-a-gpt",
)
# Chapters that a newcomer only visits: nothing to write, no code in sight, nothing to prove.
VISITS = ("00-the-whole-machine",)
RATING = re.compile(r"ifficulty [●○]{3}.*mportance [●○]{3}.*\b\d+ minutes")


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
    """Cell 2 is the hidden setup cell; only the reader's imports, right after it, join it."""
    marked = [n for n, cell in code_cells(nb) if "setup" in tags(cell)]
    if marked not in ([2], [2, 3]):
        return [f"cell 2 must be the setup cell (and cell 3 may be one), found {marked}"]
    found = [] if "hide-cell" in tags(nb.cells[1]) else ["the setup cell needs the tag hide-cell"]
    imports = nb.cells[2] if len(nb.cells) > 2 else nb.cells[1]
    if imports.cell_type == "code" and marked == [2] and _only_imports(imports.source):
        found.append("cell 3 only imports: tag it `setup`")
    if marked == [2, 3] and imports.outputs:
        found.append("cell 3 is a setup cell and shows something, which nobody sees")
    return found


def _only_imports(source: str) -> bool:
    body = ast.parse(source).body
    return bool(body) and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)


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
    """A summary, then the three sections after the road in their order; citations."""
    names = [text for _, text in headings(nb, 2)]
    found = [f"the section `## {name}` is missing" for name in AFTER_THE_ROAD if name not in names]
    if found:
        return found
    start = names.index("Exercises")
    after = [name for name in names[start:] if name != "References"]
    if after != AFTER_THE_ROAD or "References" in names[:-1]:
        return [
            f"the last sections must be {AFTER_THE_ROAD} (and `## References`, if there are any), "
            f"found {names[start:]}"
        ]
    if start < 2:
        found.append("a summary must come before `## Exercises`, as a section of its own")
    if not any("references.md#" in cell.source for cell in nb.cells):
        found.append("the chapter cites nothing: link to references.md#…")
    return found + proves(nb)


def proves(nb: NotebookNode) -> list[str]:
    """Where there is a section `Prove it`, it compares with something."""
    proof = section(nb, "Prove it")
    if proof and not any(asserts(cell) or compares(cell) for _, cell in proof):
        return ["`## Prove it` asserts nothing"]
    return []


def leads_on(nb: NotebookNode, following: str | None) -> list[str]:
    """The summary links the chapter that really follows; `following` is its name."""
    names = [text for _, text in headings(nb, 2)]
    if following is None or "Exercises" not in names or names.index("Exercises") < 1:
        return []
    summary = names[names.index("Exercises") - 1]
    text = "\n".join(cell.source for _, cell in section(nb, summary))
    if f"]({following}.ipynb)" not in text:
        return [f"the summary (`## {summary}`) must link the next chapter: ({following}.ipynb)"]
    return []


def is_a_visit(nb: NotebookNode) -> list[str]:
    """No code is open, and none of the sections that ask for work."""
    found = [f"cell {n} shows its code: fold it" for n, cell in code_cells(nb) if is_open(cell)]
    names = [text for _, text in headings(nb, 2)]
    return found + [f"a visit has no section `## {one}`" for one in AFTER_THE_ROAD if one in names]


def leads_out(nb: NotebookNode, following: str | None) -> list[str]:
    """The last section of a visit links the chapter that follows."""
    *_, (_, last) = headings(nb, 2) or [(0, "")]
    text = "\n".join(cell.source for _, cell in section(nb, last))
    if following is not None and f"]({following}.ipynb)" not in text:
        return [f"the last section must link the next chapter: ({following}.ipynb)"]
    return []


def is_marked_deeper(nb: NotebookNode, chapter: str) -> list[str]:
    """A deeper page has one title and a line that says what it adds, with a link to its chapter."""
    first = nb.cells[0]
    if first.cell_type != "markdown" or not first.source.startswith("# "):
        return ["cell 1 must be Markdown that begins with the title: `# Title`"]
    found = []
    if len(headings(nb, 1)) != 1:
        found.append(f"there must be one title, found {[text for _, text in headings(nb, 1)]}")
    if f"]({chapter}.ipynb" not in first.source:
        found.append(f"cell 1 must link the chapter that it goes deeper than: ({chapter}.ipynb)")
    if "need" not in first.source:
        found.append("cell 1 must say that the road does not need this page")
    if not headings(nb, 2):
        found.append("a deeper page has sections, too")
    if not any("references.md#" in cell.source for cell in nb.cells):
        found.append("the page cites nothing: link to references.md#…")
    return found + proves(nb)


def has_checked_exercises(nb: NotebookNode) -> list[str]:
    """Three to six exercises, each complete."""
    return _exercises(nb, fewest=3)


def may_have_exercises(nb: NotebookNode) -> list[str]:
    """Exercises of a deeper page, if it has any, are complete."""
    return _exercises(nb, fewest=1) if section(nb, "Exercises") else []


def _exercises(nb: NotebookNode, fewest: int) -> list[str]:
    cells = section(nb, "Exercises")
    starts = [n for n, cell in cells if re.search(r"^### Exercise ", cell.source, re.M)]
    if not fewest <= len(starts) <= 6:
        return [
            f"there must be {fewest} to 6 exercises (`### Exercise n · Title`), found {len(starts)}"
        ]
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


def keeps_its_aims(nb: NotebookNode) -> list[str]:
    """The road is short and asks: within AIMS. For the chapters that are HELD_TO_AIMS."""
    found = counts(nb)
    most = ("words", "open cells", "asserts")
    return [
        f"{found[name]} {name} on the road, {'at most' if name in most else 'at least'} {aim}"
        for name, aim in AIMS.items()
        if (found[name] > aim if name in most else found[name] < aim)
    ]


RULES = [
    begins_with_its_aims,
    sets_up_second,
    shows_a_widget_first,
    has_its_sections,
    claims_quietly,
    asserts_out_of_sight,
    lists_what_it_says,
    cuts_no_line,
    has_checked_exercises,
    keeps_cells_short,
    describes_its_figures,
    speaks_plain_markdown,
    hides_nothing_from_nbval,
    reveals_after_a_question,
    answers_out_of_sight,
    open_code_without_hidden_code,
    claims_hidden_with_their_answer,
    has_run,
]
ROAD_ONLY = {
    begins_with_its_aims,
    shows_a_widget_first,
    has_its_sections,
    asserts_out_of_sight,
    has_checked_exercises,
}
NOT_FOR_A_VISIT = {has_its_sections, has_checked_exercises, keeps_cells_short}
OF_A_VISIT = [*(rule for rule in RULES if rule not in NOT_FOR_A_VISIT), is_a_visit]
DEEPER_RULES = [rule for rule in RULES if rule not in ROAD_ONLY] + [may_have_exercises]


def problems(nb: NotebookNode, name: str, road_names: list[str]) -> list[str]:
    """All that is wrong with the notebook called `name`; `road_names` are the chapters in order."""
    if is_deeper(name):
        same = [one for one in road_names if one[:2] == name[:2] and one < name]
        found = is_marked_deeper(nb, same[-1] if same else "a chapter not listed")
        return found + [problem for rule in DEEPER_RULES for problem in rule(nb)]
    at = road_names.index(name)
    following = next(iter(road_names[at + 1 :]), None)
    if name in VISITS:
        found = leads_out(nb, following) + keeps_its_aims(nb)
        return found + [problem for rule in OF_A_VISIT for problem in rule(nb)]
    found = leads_on(nb, following)
    found += keeps_its_aims(nb) if name in HELD_TO_AIMS else []
    return found + [problem for rule in RULES for problem in rule(nb)]
