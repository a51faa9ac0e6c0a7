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
        _code(
            "from transformer_lib import plots\nfrom transformer_lib.widgets import Map",
            tags=["setup"],
        ),
        _markdown("## A question"),
        _code("Map(w)", "Map(queries=2)"),
        _markdown("## Another\n\nSee [Vaswani et al., 2017](../book/references.md#vaswani2017)."),
        _code("plots.attention_heatmap(w)", mystnb=ALT),
        _code("print(loss)", "0.1234", tags=["nbval-ignore-output"]),
        _code("assert loss < 1", tags=["claim"]),
        _code("show(f)", "def f(): ...", tags=["listing"]),
        _markdown("## What you have\n\nNext: [another](14-next.ipynb)."),
        _markdown("## Exercises\n\nThree of them."),
        *(cell for n in (1, 2, 3) for cell in _exercise(n)),
        _markdown("## Prove it"),
        _code("torch.testing.assert_close(mine, theirs)"),
        _markdown("## What goes wrong in practice"),
        _code("1 / 0", tags=["raises-exception"]),
    ]
    error = {"ename": "ZeroDivisionError", "evalue": "", "traceback": []}
    cells[-1].outputs = [new_output("error", **error)]
    return new_notebook(cells=cells)


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


def _no_summary(nb):
    for start in ("## What you have", "## Another"):
        nb.cells.remove(_find(nb, start))


def _two_between(nb):
    for _ in range(2):
        _add(_code("y = loss"), "assert")(nb)


def _edit_import(nb):
    cell = _find(nb, "from")
    cell.source, cell.metadata = "import math", NotebookNode()


ASKS = 'Predict("Which?", {"a": "A.", "b": "B."}, right="a")'
ASKS_MORE = """Predict(
    "Of 3 parts, how many are 1.25 long?",
    {"not one of the three": "None.", "two of *three* parts": "Two."},
    right="two of *three* parts", then="That is 0.667, or 67 %.",
)"""


def _guess(*after, before=()):
    """A question whose guess hides `x = 2`, among other cells."""
    asked = _code(ASKS_MORE, tags=["hide-input"]), _code("x = 2", tags=["reveal"])

    def change(nb):
        nb.cells[4:4] = [*before, *asked, *after]

    return change


BREACHES = [
    ("begins_with_its_aims", _edit("# Title", "# Title", "Title"), "begins with the title"),
    ("begins_with_its_aims", _edit("# Title", "- do it.", "do it."), "what the reader can do"),
    ("sets_up_second", _meta("import importlib", tags=["hide-cell"]), "found [3]"),
    ("shows_a_widget_first", _edit("Map(w)", "Map(w)", "m = Map(w)"), "no widget"),
    ("has_its_sections", _edit("## Prove it", "Prove", "Show"), "`## Prove it` is missing"),
    ("has_its_sections", _edit("## What goes", "in practice", ""), "in practice` is missing"),
    ("has_its_sections", _no_summary, "a summary must come before"),
    ("claims_quietly", _edit("assert", "assert loss < 1", "loss"), "claim and asserts nothing"),
    ("asserts_out_of_sight", _meta("assert", tags=[]), "asserts in sight"),
    ("lists_what_it_says", _edit("show", "show(f)", "print(f)"), "does not end in show"),
    ("cuts_no_line", _add(_code("x = " + 73 * "1")), "a line of 77 characters"),
    ("has_checked_exercises", _edit("### Exercise 3", "### Ex", "Ex"), "3 to 6 exercises"),
    ("has_checked_exercises", _edit("### Exercise 2", "2 ·", "4 ·"), "exercise 2: its heading"),
    ("has_checked_exercises", _edit("### Exercise 2", "●●○", "high"), "exercise 2: no rating"),
    ("has_checked_exercises", _drop("f2 = ..."), "exercise 2: needs one cell"),
    ("describes_its_figures", _meta("plots.", mystnb={}), "does not say what"),
    ("describes_its_figures", _meta("plots.", mystnb={"image": {"alt": "map"}}), "does not say"),
    ("describes_its_figures", _output("Map(w)", "<Figure size 640x480 with 1 Axes>"), "cell 5"),
    ("speaks_plain_markdown", _add(_markdown(r"$\newcommand{\q}{Q}$")), "LaTeX macro"),
    ("speaks_plain_markdown", _add(_markdown("{cite}`vaswani2017`")), "MyST syntax"),
    ("hides_nothing_from_nbval", _meta("Map(w)", tags=["nbval-skip"]), "kept from nbval"),
    ("hides_nothing_from_nbval", _meta("Map(w)", tags=["hide-inputs"]), "means nothing"),
    ("reveals_after_a_question", _add(_code(ASKS)), "tag it hide-input"),
    ("answers_out_of_sight", _guess(_markdown("So, two of three *parts*.")), "two of three parts"),
    ("answers_out_of_sight", _guess(before=[_code("y", "tensor(0.667)")]), "cell 5 says 0.667"),
    ("answers_out_of_sight", _guess(_code("y = 2  # 67%")), "says 67%"),
    ("open_code_without_hidden_code", _guess(_code("print(x)")), "cell 7 needs x, made where"),
    ("claims_hidden_with_their_answer", _guess(_code("assert x", tags=["claim"])), "tag it reveal"),
    ("has_run", _unrun("Map(w)"), "cell 5 has not run"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "change", "words"), BREACHES)
def test_a_breach_is_found(rule, change, words):
    nb = _right()
    change(nb)
    problems = getattr(rules, rule)(nb)
    assert any(words in problem for problem in problems), problems


@pytest.mark.parametrize(
    "change",
    [
        _guess(_code("assert x == 2", tags=["claim", "reveal"])),
        _guess(_markdown("They are 1.25 long, and not one of the three is 67."), _code("y = 0.25")),
        _guess(_markdown("<details><summary>Why?</summary>Two of three parts.</details>")),
        _guess(_markdown("### Next\n\nTwo of three parts, 0.667.")),
        _guess(_code("x + 1"), before=[_code("x = 1")]),
        _guess(_code("x = 3\nx + 1"), _code("[x for x in y]"), _code("def f(x):\n    return x")),
        _guess(_markdown("## B"), _code("print(x)")),
        _guess(_code("Map(x)", tags=["hide-input"])),
    ],
)
def test_what_gives_no_answer_away_is_allowed(change):
    nb = _right()
    change(nb)
    found = (
        rules.answers_out_of_sight,
        rules.open_code_without_hidden_code,
        rules.claims_hidden_with_their_answer,
    )
    assert [problem for rule in found for problem in rule(nb)] == []


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


def test_the_summary_links_the_chapter_that_follows():
    nb = _right()
    assert rules.leads_on(nb, "14-next") == []
    assert rules.leads_on(nb, None) == []
    [problem] = rules.leads_on(nb, "15-other")
    assert "(15-other.ipynb)" in problem
    _move("## What you have", "## Prove it")(nb)  # a link elsewhere does not do
    assert rules.leads_on(nb, "14-next") != []


def _deeper():
    return new_notebook(
        cells=[
            _markdown("# Title\n\nYou need none of this on [the road](07-road.ipynb)."),
            _code("import importlib", tags=["setup", "hide-cell"]),
            _markdown("## A section\n\n[Someone](../book/references.md#someone2020)"),
            _code("assert x"),
        ]
    )


def test_a_right_deeper_page_passes():
    assert rules.problems(_deeper(), "07b-more", ["05-five", "07-road"]) == []
    nb = _deeper()
    nb.cells += [_markdown("## Exercises"), *_exercise(1)]
    assert rules.problems(nb, "07b-more", ["05-five", "07-road"]) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_edit("# Title", "# Title", "Title"), "begins with the title"),
        (_edit("# Title", "07-road", "05-five"), "(07-road.ipynb)"),
        (_edit("# Title", "You need none", "See much"), "does not need"),
        (_edit("## A section", "## A", "# A"), "there must be one title"),
        (_edit("## A section", "## A", "### A"), "has sections"),
        (_edit("## A section", "references.md#", "x.md#"), "cites nothing"),
        (_edit("import", "import importlib", "1 +"), "cell"),
        (_meta("import", tags=[]), "must be the setup cell"),
        (_add(_markdown("## Prove it"), "## A section"), "asserts nothing"),
        (_add(_markdown("## Exercises"), "## A section"), "1 to 6 exercises"),
    ],
)
def test_a_breach_on_a_deeper_page_is_found(change, words):
    nb = _deeper()
    change(nb)
    if "1 +" in nb.cells[1].source:
        nb.cells[1].execution_count, nb.cells[1].source = None, "1"
    found = rules.problems(nb, "07b-more", ["05-five", "07-road"])
    assert any(words in problem for problem in found), found


def _visit():
    """A chapter without code in sight and without exercises."""
    asks = [
        cell
        for _ in range(3)
        for cell in (
            _code("Predict(q)", "Predict()", tags=["hide-input"]),
            _markdown("The answer."),
        )
    ]
    cells = [
        *_right().cells[:4],
        _code("Map(w, goals=[Goal(t)])", "Map(queries=2)", tags=["hide-input"]),
        *asks,
        _markdown("## The map\n\nIt begins with [attention](01-next.ipynb)."),
    ]
    return new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda nb: None, []),
        (lambda nb: nb.cells[4].metadata.pop("tags"), ["cell 5 shows its code: fold it"]),
        (
            lambda nb: nb.cells.append(_markdown("## Prove it")),
            [
                "the last section must link the next chapter: (01-next.ipynb)",
                "a visit has no section `## Prove it`",
            ],
        ),
        (lambda nb: nb.cells.pop(5), ["2 questions on the road, at least 3"]),
    ],
)
def test_a_visit_has_its_own_form(monkeypatch, change, words):
    monkeypatch.setattr(rules, "VISITS", ("00-visit",))
    nb = _visit()
    change(nb)
    assert rules.problems(nb, "00-visit", ["00-visit", "01-next"]) == words


def test_the_aims_bind_whom_they_name(monkeypatch):
    nb, names = _right(), ["07-road", "14-next"]
    assert rules.problems(nb, "07-road", names) == []
    monkeypatch.setattr(rules, "HELD_TO_AIMS", ("07-road",))
    assert rules.problems(nb, "07-road", names) == [
        "0 questions on the road, at least 3",
        "0 challenges on the road, at least 1",
    ]
    nb.cells[3].source += " word" * 2_500
    nb.cells[4:4] = [_code("x") for _ in range(30)]
    found = rules.problems(nb, "07-road", names)
    assert any(problem.endswith("words on the road, at most 2500") for problem in found)
    assert any(problem.endswith("open cells on the road, at most 30") for problem in found)
