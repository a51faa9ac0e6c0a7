"""MatrixInTheMiddle in Chromium: by mouse, touch and keyboard, with the library's numbers."""

import pytest
import torch
from harness import HOSTILE, check_hostile, download

from transformer_lib.attention import attention_weights
from transformer_lib.widgets import Goal, MatrixInTheMiddle

WORDS = ["mary", "gave", "roses", "to", "susan"]
FEATURES = ["person", "giving", "thing", "who"]
X = torch.tensor([[1.0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, -1]])
A = torch.tensor([[0.0, 3, 0, 0], [0, 0, 3, 0], [3, 0, 0, 0], [0, 0, 0, 0]])


def middle(**options):
    return MatrixInTheMiddle(
        WORDS, X, A, FEATURES, presets={"identity": torch.eye(4)}, entry=("thing", "who"), **options
    )


def entry(page, asking, answering):
    return page.get_by_role("gridcell", name=f"{asking} asks for {answering}")


def weight(page, query, key):
    cell = page.get_by_role("gridcell", name=f"{query} to {key}: weight")
    return float(cell.get_attribute("aria-label").split()[-1])


def assert_right(page, matrix):
    right = attention_weights(X @ matrix, X, scale=1.0)
    shown = [[weight(page, query, key) for key in WORDS] for query in WORDS]
    assert torch.allclose(torch.tensor(shown), right, atol=0.0051)


def changed(row, column, value):
    matrix = A.clone()
    matrix[row, column] = value
    return matrix


def test_first_state_teaches(open_page):
    page = open_page(middle())
    assert_right(page, A)
    assert page.locator(".afm-touched").count() == 2
    reading = page.locator(".afm-reading").inner_text()
    assert reading == "thing → who is 0. So roses gives mary 0.47; roses gives susan 0.47."


def test_an_entry_is_chosen_by_mouse_and_moved_by_key(open_page):
    page = open_page(middle())
    entry(page, "giving", "thing").click()
    slider = page.get_by_role("slider", name="entry giving → thing")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    value = float(slider.input_value())
    assert value < 3
    assert_right(page, changed(1, 2, value))
    page.get_by_role("button", name="start again").click()
    assert_right(page, A)


def test_entries_and_cells_are_walked_by_arrow_keys(open_page):
    page = open_page(middle())
    entry(page, "thing", "who").focus()
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("slider", name="entry giving → who").count() == 1
    page.get_by_role("gridcell", name="mary to mary").focus()
    page.keyboard.press("ArrowRight")
    assert "(3 from person → giving)" in page.locator(".afm-reading").inner_text()
    marked = page.locator(".afm-touched")
    assert marked.evaluate_all("(nodes) => nodes.map((node) => node.ariaLabel)") == [
        "person asks for giving: 3",
        "who asks for giving: 0",
    ]


def test_touch_chooses_and_presets_and_scores_work(open_page):
    page = open_page(middle(), touch=True, width=360)
    entry(page, "thing", "thing").tap()
    assert "roses gives roses" in page.locator(".afm-reading").inner_text()
    page.get_by_role("radio", name="identity").tap()
    assert_right(page, torch.eye(4))
    page.get_by_role("radio", name="scores").tap()
    cell = page.get_by_role("gridcell", name="mary to mary: score")
    assert cell.get_attribute("aria-label") == "mary to mary: score 2.00"


def test_text_sets_it_and_a_goal_is_reached(open_page):
    goal = Goal("Prefer *mary*.", when=["weight roses mary > weight roses susan", "moved <= 1"])
    links = " ".join(
        f'<a href="#set:middle;{setting}">{setting}</a>'
        for setting in ("matrix=identity", "reset", "asking=thing;answering=who;value=1")
    )
    page = open_page(middle(name="middle", goals=[goal]), before=f"<p>{links}</p>")
    page.get_by_role("link", name="matrix=identity").click()
    assert_right(page, torch.eye(4))
    page.get_by_role("gridcell", name="mary to gave").click()
    page.get_by_role("link", name="reset").click()
    assert page.locator(".afm-reading").inner_text().startswith("thing → who is 0.")
    assert_right(page, A)
    assert page.locator(".afm-reached").count() == 0
    page.get_by_role("link", name="asking=thing").click()
    assert_right(page, changed(2, 3, 1.0))
    assert page.locator(".afm-reached").count() == 1


def test_csv_is_what_is_shown(open_page):
    page = open_page(middle())
    rows = [line.split(",") for line in download(page, "CSV").decode("utf-8").splitlines()]
    at = next(i for i, row in enumerate(rows) if row[0] == "weight")
    shown = torch.tensor([[float(x) for x in row[1:]] for row in rows[at + 1 : at + 6]])
    torch.testing.assert_close(shown, attention_weights(X @ A, X, scale=1.0))


def test_entries_and_cells_show_each_other(open_page):
    """Over an entry, the cells that it reaches; over a cell, the entries that reach it."""
    page = open_page(middle())
    said = page.locator(".afm-reading")
    before = said.inner_text()
    marked = """() => [...document.querySelectorAll(".afm-touched")]
      .map((cell) => cell.getAttribute("aria-label").split(":")[0])"""
    first = page.evaluate(marked)
    entry(page, "person", "giving").hover()
    assert page.evaluate(marked) == ["mary to gave", "susan to gave"]
    assert said.inner_text().startswith("person → giving is 3.")
    page.get_by_role("gridcell", name="mary to gave").hover()
    assert "person asks for giving" in page.evaluate(marked)
    assert said.inner_text().startswith("mary to gave: score 3.00 (3 from person → giving)")
    page.mouse.move(2, 2)
    assert page.evaluate(marked) == first
    assert said.inner_text() == before


@pytest.mark.parametrize("width", [360])
def test_hostile_names_stay_text(open_page, width):
    d = len(HOSTILE)
    matrix = torch.randn(d, d)
    widget = MatrixInTheMiddle(
        HOSTILE, torch.randn(d, d), matrix, HOSTILE, presets={HOSTILE[0]: matrix}, start=HOSTILE[1]
    )
    check_hostile(open_page(widget, width=width))
