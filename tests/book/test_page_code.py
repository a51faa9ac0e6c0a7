"""The book's Python as the page's gets it: slices in its syntax, and the engine of the checks."""

import ast
from pathlib import Path

import nbformat
import page_code
import pytest

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
    assert choice["written"] == {"a": "A", "b": "B", "c": "C", "d": "D"}
    assert choice["right"] == ["b"]
    assert "b" not in choice["said"]
    assert choice["said"]["d"].startswith("The rows of D add up to 1")
    assert found["check_one_output"].choice is None
    assert found["check_one_output"].name == "one_output"


@pytest.mark.parametrize("path", sorted(CHAPTERS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_exercise_is_read_and_a_letter_that_is_chosen_stands_in_the_text(path):
    tasks = page_code.asked(path)
    cells = nbformat.read(path, 4).cells
    assert len(tasks) == sum("exercise" in c.metadata.get("tags", []) for c in cells)
    for task in tasks:
        assert task.stub.strip()
        assert task.solution
        letters = {*(task.choice["written"].values() if task.choice else ())}
        if all(len(letter) == 1 and letter.isalpha() for letter in letters):
            texts = (n.value for n in ast.walk(ast.parse(task.solution)) if type(n) is ast.Constant)
            assert set("".join(map(str, texts if letters else ()))) <= letters, task.check


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def a(x):\n    ...", "its last line is check_NAME"),
        ("", "its last line is check_NAME"),
        ("def a(x:\n    ...", "it is Python"),
        ("print(check_one_output(a))", "its last line is check_NAME"),
        ("check_none(a)", "no cell imports check_none by its name"),
        (None, "no cell tagged solution"),
    ],
)
def test_an_exercise_that_cannot_be_read_is_named(source, problem, tmp_path):
    nb = nbformat.read(CHAPTERS / "01b-sets-and-batches.ipynb", 4)
    n = next(n for n, c in enumerate(nb.cells) if "exercise" in c.metadata.get("tags", []))
    if source is None:
        del nb.cells[n + 1 :]
    else:
        nb.cells[n].source = source
    nbformat.write(nb, tmp_path / "01b.ipynb")
    with pytest.raises(ValueError, match=rf"01b\.ipynb, cell {n + 1}: .*{problem}"):
        page_code.asked(tmp_path / "01b.ipynb")


def test_a_cell_that_is_not_python_is_named(tmp_path):
    nb = nbformat.read(CHAPTERS / "01b-sets-and-batches.ipynb", 4)
    nb.cells[2].source = "def f(:"
    nbformat.write(nb, tmp_path / "01b.ipynb")
    with pytest.raises(ValueError, match=r"01b\.ipynb, cell 3: invalid syntax"):
        page_code.asked(tmp_path / "01b.ipynb")
