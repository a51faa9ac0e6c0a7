"""The rules themselves: a small right chapter passes them all, and each breach is found."""

import pytest
import rules
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ALT = {"image": {"alt": "Heat map of four weights; each row sums to one."}}


def _markdown(text):
    return new_markdown_cell(text)


def _code(source, output="", *, tags=(), **metadata):
    """A cell that has run; `output` is its value's text."""
    kept = {**({"tags": list(tags)} if tags else {}), **metadata}
    shown = [new_output("execute_result", {"text/plain": output})] if output else []
    return new_code_cell(source, execution_count=1, outputs=shown, metadata=NotebookNode(kept))


def _exercise(n):
    solution = f"# @title Solution\ndef f{n}():\n    return {n}\n\ncheck_f{n}(f{n})"
    return [
        _markdown(f"### Exercise {n} · Title\n\n*Difficulty ●○○ · importance ●●○ · 5 minutes*"),
        _code(f"f{n} = ...\ncheck_f{n}(f{n})", "○ not attempted yet", tags=["exercise"]),
        _markdown("<details><summary>Hint</summary>\n\nThink.\n\n</details>"),
        _code(
            solution, "✓ Right.", tags=["solution", "hide-cell"],
            jupyter={"source_hidden": True}, cellView="form",
        ),
    ]  # fmt: skip


def _right():
    cells = [
        _markdown("# Title\n\n**After this you can**\n\n- do it.\n\n*About 20 minutes.*"),
        _code("import importlib", tags=["setup", "hide-cell"]),
        _code("from transformer_lib import plots\nfrom transformer_lib.widgets import Map"),
        _markdown("## A question"),
        _code("Map(w)", "Map(queries=2)"),
        _markdown("## Another\n\nSee [Vaswani et al., 2017](../book/references.md#vaswani2017)."),
        _code(
            'Predict("Which?", {"a": "A.", "b": "B."}, right="a")',
            "Predict(options=2)",
            tags=["hide-input"],
        ),
        _markdown("It is *a*."),
        _code("plots.attention_heatmap(w)", mystnb=ALT, tags=["reveal"]),
        _code("print(loss)", "0.1234", tags=["nbval-ignore-output"]),
        _code("assert loss < 1"),
        _markdown("## Prove it"),
        _code("torch.testing.assert_close(mine, theirs)"),
        _markdown("## Exercises\n\nThree of them."),
        *(cell for n in (1, 2, 3) for cell in _exercise(n)),
        _markdown("## What goes wrong in practice"),
        _code("1 / 0", tags=["raises-exception"]),
        _markdown("## What you have"),
    ]
    _tag(cells, "It is", "reveal")
    error = {"ename": "ZeroDivisionError", "evalue": "", "traceback": []}
    cells[-2].outputs = [new_output("error", **error)]
    return new_notebook(cells=cells)


def _tag(cells, start, tag):
    next(cell for cell in cells if cell.source.startswith(start)).metadata.tags = [tag]


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_a_right_chapter_passes(rule):
    assert rule(_right()) == []


def _find(nb, start):
    return next(cell for cell in nb.cells if cell.source.startswith(start))


def _edit(start, old, new):
    def change(nb):
        cell = _find(nb, start)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return change


def _meta(start, **metadata):
    return lambda nb: _find(nb, start).metadata.update(metadata)


def _drop(start):
    return lambda nb: nb.cells.remove(_find(nb, start))


def _add(cell, before="## What you have"):
    return lambda nb: nb.cells.insert(nb.cells.index(_find(nb, before)), cell)


def _move(start, before="## What you have"):
    def change(nb):
        cell = _find(nb, start)
        nb.cells.remove(cell)
        _add(cell, before)(nb)

    return change


def _output(start, text):
    def change(nb):
        _find(nb, start).outputs = [new_output("execute_result", {"text/plain": text})]

    return change


def _clear(start):
    def change(nb):
        _find(nb, start).outputs = []

    return change


def _unrun(start):
    def change(nb):
        _find(nb, start).execution_count = None

    return change


BREACHES = [
    ("begins_with_its_aims", _edit("# Title", "# Title", "Title"), "begins with the title"),
    ("begins_with_its_aims", _edit("# Title", "- do it.", "do it."), "what the reader can do"),
    ("begins_with_its_aims", _edit("# Title", "20 minutes", "a while"), "how many minutes"),
    ("begins_with_its_aims", _edit("## A question", "## A", "# A"), "one title"),
    ("sets_up_second", _meta("import importlib", tags=["hide-cell"]), "found it at []"),
    ("sets_up_second", _meta("import importlib", tags=["setup"]), "needs the tag hide-cell"),
    ("sets_up_second", _add(_code("x = 1", tags=["setup", "hide-cell"])), "the one setup cell"),
    ("shows_a_widget_first", _edit("Map(w)", "Map(w)", "m = Map(w)"), "no widget"),
    ("shows_a_widget_first", _move("Map(w)", "## Prove it"), "no widget"),
    ("shows_a_widget_first", _edit("from", ".widgets", ".plots"), "no widget"),
    ("has_its_sections", _edit("## Prove it", "Prove", "Show"), "`## Prove it` is missing"),
    ("has_its_sections", _edit("## What goes", "in practice", ""), "in practice` is missing"),
    ("has_its_sections", _drop("## What you have"), "a summary must follow"),
    ("has_its_sections", _edit("torch.t", ".assert_close", ""), "asserts nothing"),
    ("has_its_sections", _edit("## Another", "references.md#", "x.md#"), "cites nothing"),
    ("has_its_sections", _move("## Prove it"), "in the order"),
    ("has_checked_exercises", _edit("### Exercise 3", "### Ex", "Ex"), "3 to 6 exercises"),
    ("has_checked_exercises", _edit("### Exercise 2", "2 ·", "4 ·"), "exercise 2: its heading"),
    ("has_checked_exercises", _edit("### Exercise 2", "●●○", "high"), "exercise 2: no rating"),
    ("has_checked_exercises", _edit("### Exercise 2", "5 min", "min"), "exercise 2: no rating"),
    ("has_checked_exercises", _drop("f2 = ..."), "exercise 2: needs one cell"),
    ("has_checked_exercises", _drop("# @title Solution\ndef f3"), "exercise 3: needs one cell"),
    ("has_checked_exercises", _drop("<details>"), "exercise 1: has no hint"),
    ("has_checked_exercises", _edit("f1", "check_f1(f1)", "f1"), "the stub must end in its check"),
    ("has_checked_exercises", _edit("f1", "check_f1", "check_f2"), "end in different checks"),
    ("has_checked_exercises", _output("f1 =", "✗ Wrong."), "the stub must give"),
    ("has_checked_exercises", _output("# @title", "✗ Wrong."), "the solution does not pass"),
    ("has_checked_exercises", _clear("# @title"), "the solution does not pass"),
    ("has_checked_exercises", _meta("# @title", tags=["solution"]), "must be hidden"),
    ("has_checked_exercises", _meta("# @title", jupyter={}), "must be hidden"),
    ("has_checked_exercises", _meta("# @title", cellView="code"), "must be hidden"),
    ("has_checked_exercises", _edit("# @title", "# @title Solution\n", ""), "must be hidden"),
    ("describes_its_figures", _meta("plots.", mystnb={}), "does not say what"),
    ("describes_its_figures", _meta("plots.", mystnb={"image": {"alt": "map"}}), "does not say"),
    ("describes_its_figures", _output("Map(w)", "<Figure size 640x480 with 1 Axes>"), "cell 5"),
    ("describes_its_figures", _add(_code("plots.bars(a, b)", mystnb=ALT)), "share the text"),
    ("describes_its_figures", _add(_code("with house():\n    plt.show()")), "does not say what"),
    ("describes_its_figures", _add(_markdown("![](x.png)")), "image without alternative"),
    ("describes_its_figures", _add(_markdown('<img src="x.png">')), "image without alternative"),
    ("speaks_plain_markdown", _add(_markdown(r"$\newcommand{\q}{Q}$")), "LaTeX macro"),
    ("speaks_plain_markdown", _add(_markdown(r"$\DeclareMathOperator{\s}{s}$")), "LaTeX macro"),
    ("speaks_plain_markdown", _add(_markdown("{cite}`vaswani2017`")), "MyST syntax"),
    ("speaks_plain_markdown", _add(_markdown("```{note}\nText\n```")), "MyST syntax"),
    ("hides_nothing_from_nbval", _meta("Map(w)", tags=["nbval-skip"]), "kept from nbval"),
    ("hides_nothing_from_nbval", _add(_code("# NBVAL_SKIP\nx")), "kept from nbval"),
    ("hides_nothing_from_nbval", _meta("Map(w)", tags=["hide-inputs"]), "means nothing"),
    ("hides_nothing_from_nbval", _edit("assert", "assert loss < 1", "print(loss)"), "no assert"),
    ("hides_nothing_from_nbval", _add(_code("t", tags=["nbval-ignore-output"])), "no assert"),
    ("reveals_after_a_question", _meta("Predict(", tags=[]), "tag it hide-input"),
    ("reveals_after_a_question", _meta("Predict(", tags=["hide-input", "reveal"]), "itself hidden"),
    ("reveals_after_a_question", _meta("It is", tags=[]), "no Predict stands right before"),
    ("reveals_after_a_question", _drop("Predict("), "no Predict stands right before"),
    ("reveals_after_a_question", _meta("Map(w)", tags=["reveal"]), "cell 5 is tagged reveal"),
    ("has_run", _unrun("Map(w)"), "cell 5 has not run"),
    ("has_run", _clear("1 / 0"), "raised nothing"),
    ("has_run", _meta("1 / 0", tags=[]), "raised an error"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "change", "words"), BREACHES)
def test_a_breach_is_found(rule, change, words):
    nb = _right()
    change(nb)
    problems = getattr(rules, rule)(nb)
    assert any(words in problem for problem in problems), problems


def test_long_cells_are_found():
    """The median, so that one long definition among short cells is allowed."""
    nb, long = _right(), "\n".join(f"x{n} = {n}" for n in range(9))
    nb.cells.append(_code(long))
    assert rules.keeps_cells_short(nb) == []
    nb.cells += [_code(long) for _ in range(30)]
    assert "9" in rules.keeps_cells_short(nb)[0]


def test_every_rule_has_a_breach():
    shown = {rule for rule, _, _ in BREACHES} | {"keeps_cells_short"}
    assert shown == {rule.__name__ for rule in rules.RULES}


@pytest.mark.parametrize(
    "cell",
    [
        _code("def draw():\n    plots.bars(a, b)", tags=["library:transformer_lib.plots.bars"]),
        _code("with plots.house():\n    pass"),
        _markdown("![A strip of five words.](x.png)\n\n```python\n# not a title\n```"),
        _code("Map(w)\nplayground = Map(w)\nplayground"),
        _code("q = widgets.Predict.number(a)\nq", tags=["hide-input"]),
        _markdown(r"$\operatorname{softmax}$, $\color{#0072B2}{Q}$ and `{cite}` in code"),
    ],
)
def test_what_is_allowed_is_no_breach(cell):
    nb = _right()
    nb.cells.insert(4, cell)
    assert [problem for rule in rules.RULES for problem in rule(nb)] == []
