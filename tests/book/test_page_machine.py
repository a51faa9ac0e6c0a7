"""The machine on the page: where a reader puts in a part, and what the page loads for it."""

import re
from pathlib import Path

import nbformat
import page_machine
import pytest

from transformer_lib.training.trained import load_shipped
from transformer_lib.widgets import Machine
from transformer_lib.widgets.weights import unpack_weights

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


def test_every_chapter_with_the_figure_has_a_place():
    with_figure = {
        path.stem
        for path in CHAPTERS.glob("*.ipynb")
        if any("\nYourPart(" in cell.source for cell in nbformat.read(path, 4).cells)
    }
    assert set(page_machine.YOURS) <= with_figure
    assert len(page_machine.YOURS) == 7  # 01 to 06, and 07c


@pytest.mark.parametrize("chapter", page_machine.YOURS)
def test_a_place_begins_with_the_chapters_own_functions(chapter):
    place = page_machine.yours(CHAPTERS / f"{chapter}.ipynb")
    cells = nbformat.read(CHAPTERS / f"{chapter}.ipynb", 4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert "\nYourPart(" in code[place["cell"]].source
    everything = "\n".join(cell.source for cell in code)
    first = place["versions"][0]
    assert first["exercise"] is None
    for version in place["versions"]:
        assert re.search(rf"def {version['name']}\(", version["text"])
        assert version["text"].split("\n\n\n")[0].strip() in everything
        assert version["name"] in version["call"]


def test_a_chapter_without_the_figure_has_none():
    assert page_machine.yours(CHAPTERS / "08-transformer-block.ipynb") is None


def test_a_function_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setitem(page_machine.YOURS, "03-scaling", ["attention_weights=another"])
    with pytest.raises(ValueError, match="03-scaling defines nothing of attention_weights=another"):
        page_machine.yours(CHAPTERS / "03-scaling.ipynb")


def test_the_weights_are_those_of_chapter_00_and_what_they_leave_out():
    machine = load_shipped("gifts-v3")
    parts, (first, rest) = page_machine.machine()
    assert first == Machine(machine, ["<story>"])._packed  # one file for both pages
    rounded, more = unpack_weights(first), unpack_weights(rest)
    for name, exact in machine.model.state_dict().items():
        exact = exact.numpy()
        assert abs(rounded[name] + more[name] - exact).max() < 1e-4 * abs(exact).max()
    assert len(parts["facts"]["prompts"]) == 200
