"""The book's Python as the page's gets it: slices in its syntax, and the engine of the checks."""

import ast
import gzip
import json
from pathlib import Path

import nbformat
import page_code
import pytest
import python_files

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


def test_a_slice_holds_what_a_name_needs_and_no_more():
    code = page_code.Code.of(
        "import math\nimport torch\nscale = 3\nunused = 4\ntable = {}\ntable['a'] = scale\n"
        "def helper(x: int) -> int:\n    '''Doc.'''\n    return x * scale\n"
        "def f(unused):\n    return helper(unused) + len(table)\n"
    )
    text = page_code.sliced(code, ["f"]).code
    assert "math" not in text
    assert "unused = 4" not in text
    assert "table['a'] = scale" in text  # it changes what is needed
    names: dict = {}
    exec(text, names)
    assert names["f"](2) == 7


def test_a_slice_follows_the_books_own_imports():
    code = page_code.Code.of("from transformer_lib.masks import causal_mask\nm = causal_mask(3)")
    program = page_code.sliced(code, ["m"])
    assert list(program.modules)[-1] == "transformer_lib.masks"
    assert "transformer_lib.checks" in program.modules  # before those that need it
    assert "Float[" not in "".join(program.modules.values())


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("isinstance(x, int | float)", "isinstance(x, (int, float))"),
        ("x.casefold()", "__text__('casefold', x)"),
        ("x[*a, 0]", "x[__tuple__(*a, 0)]"),
        ("dict.fromkeys(x)", "__fromkeys__(x)"),
        ("x: int = 3", "x = 3"),
        ("def f(a, /, b): pass", "def f(a, b):\n    pass"),
        (
            "class A(Protocol):\n    def f(self): ...",
            "class A:\n\n    def f(self):\n        ...\n    _asked = ('f',)",
        ),
        (
            "class A(NamedTuple):\n    a: int",
            "class A(__NamedTuple__):\n    _fields = ('a',)\n\n"
            "    def __init__(self, a):\n        self.a = a",
        ),
    ],
)
def test_what_micropython_does_not_read_is_written_otherwise(source, written):
    assert ast.unparse(page_code.translated(source)) == written


def test_a_choice_is_evaluated_with_the_sentences_of_its_check():
    found = {one.check: one for one in page_code.asked(CHAPTERS / "01-self-attention.ipynb")}
    choice = found["check_wrong_axis"].choice
    assert choice["options"] == ["a", "b", "c", "d"]
    assert choice["right"] == ["b"]
    assert "b" not in choice["said"]
    assert choice["said"]["d"].startswith("The rows of D add up to 1")
    assert found["check_one_output"].choice is None
    assert found["check_one_output"].name == "one_output"


def test_every_exercise_cell_is_read():
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        cells = nbformat.read(path, 4).cells
        tagged = [c for c in cells if "exercise" in c.metadata.get("tags", [])]
        found = page_code.asked(path)
        assert len(found) == len(tagged), path.name
        assert all(one.stub.strip() and one.solution for one in found), path.name


@pytest.mark.slow
def test_most_exercises_can_be_answered_on_the_page():
    """An exercise can: nothing before it fails, its empty answer is none, its solution is right."""
    counts = {"asked": 0, "choices": 0, "elsewhere": []}
    sizes = []
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        asked = page_code.asked(path)
        tasks = [
            {
                "id": one.check, "name": one.name, "stub": one.stub, "call": one.call,
                "solution": one.solution, "choice": one.choice,
                "program": {"modules": [*one.program.modules.items()], "context": one.program.code},
            }
            for one in asked
        ]  # fmt: skip
        for one, said in zip(
            asked, python_files.tried({"exercises": tasks})["exercises"], strict=True
        ):
            sizes.append(len(gzip.compress(json.dumps(said["program"]).encode())))
            if said["why"] is None:
                counts["choices" if one.choice else "asked"] += 1
            else:
                counts["elsewhere"].append(f"{path.stem}/{one.check}: {said['why']}")
    assert counts["asked"] + counts["choices"] >= 75, counts
    # All sentences of the grammar are more than the page's Python can hold.
    elsewhere = [said.split(":")[0] for said in counts["elsewhere"]]
    assert elsewhere == ["10-translation/check_said_in_kannada"], counts["elsewhere"]
    assert max(sizes) < 60_000


@pytest.mark.slow
def test_open_cells_of_chapters_01_to_05_can_be_changed():
    """They print on the page what the notebook stores, after the cells before them."""
    found = {
        path.stem: python_files.tried(page_code.cells(path))["cells"]
        for path in sorted(CHAPTERS.glob("0[1-5]*.ipynb"))
    }
    count = sum(number is not None for numbers in found.values() for number in numbers)
    assert count >= 40, {name: len(numbers) for name, numbers in found.items()}
