"""Objects that a chapter defines in front of the reader are those that the library runs."""

import pytest
from definitions import MARK, wrong_definitions
from links import CHAPTERS
from nbformat import read
from nbformat.v4 import new_code_cell, new_notebook

RANDN = "transformer_lib.exercises.engine.runner.randn"
OUTCOME = "transformer_lib.exercises.engine.calling.Outcome"
RIGHT = """\
def randn(*shape, seed: "a whole number", dtype=torch.float32):
    'Another docstring, other annotations and a comment do not matter.'
    source = torch.Generator(device="cpu").manual_seed(seed)
    # Neither does the layout.
    return torch.randn(*shape, generator=source,
                       dtype=dtype, device="cpu")

@dataclass(frozen=True)
class Outcome:
    result: object = None
    error: object = None
    where: str = ""
    inputs: tuple = ()
    written: tuple = ()
"""


def _notebook(source, *names):
    metadata = {"tags": [f"{MARK}{name}" for name in names]}
    return new_notebook(cells=[new_code_cell(source, metadata=metadata)])


def test_definitions_are_the_librarys(notebook):
    assert wrong_definitions(notebook) == []


def test_some_chapter_defines_something():
    cells = (cell for path in CHAPTERS for cell in read(path, as_version=4).cells)
    assert any(tag.startswith(MARK) for cell in cells for tag in cell.metadata.get("tags", []))


def test_the_same_definition_passes_whatever_its_layout():
    assert wrong_definitions(_notebook(RIGHT, RANDN, OUTCOME)) == []


@pytest.mark.parametrize(
    ("old", "new", "names", "words"),
    [
        ('device="cpu")\n\n', 'device="cuda")\n\n', [RANDN, OUTCOME], "randn differs from"),
        ("dtype=torch.float32", "dtype=torch.float64", [RANDN, OUTCOME], "randn differs from"),
        ("(frozen=True)", "", [RANDN, OUTCOME], "Outcome differs from"),
        ("    inputs: tuple = ()\n", "", [RANDN, OUTCOME], "Outcome differs from"),
        ("class Outcome", "class Result", [RANDN, OUTCOME], "does not define it"),
        ("", "", [RANDN], "also defines ['Outcome']"),
        ("", "", ["transformer_lib.exercises.engine.runner.ones"], "defines no 'ones'"),
        ("", "", ["transformer_lib.nowhere.randn"], "no module 'transformer_lib.nowhere'"),
        ("", "", ["json.dumps"], "no module 'json'"),
    ],
)
def test_another_definition_is_found(old, new, names, words):
    assert old in RIGHT
    problems = wrong_definitions(_notebook(RIGHT.replace(old, new, 1), *names))
    assert any(words in problem for problem in problems)
