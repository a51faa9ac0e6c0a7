"""AttentionMap in the browser: what is pointed at is marked, by mouse, keyboard and finger."""

from harness import check_fits, finger
from test_attention_map import TOKENS, cell, reading, weights

from transformer_lib.widgets import AttentionMap

# What is marked: the cross, the words above the map, the labels, and the text at the pointer.
MARKS = """() => {
  const box = (kind) => {
    const node = document.querySelector(`.afm-outline-${kind}`);
    return node && ["x", "y"].map((name) => Math.round(Number(node.getAttribute(name))));
  };
  const cell = document.querySelector(".afm-cell");
  const size = Number(cell.getAttribute("width")) + 1;
  const place = ([x, y]) => [
    Math.round((y - Number(cell.getAttribute("y"))) / size),
    Math.round((x - Number(cell.getAttribute("x"))) / size),
  ];
  const text = (query) => document.querySelector(query)?.textContent;
  const tip = document.querySelector(".afm-tip");
  return {
    cell: place(box("cell")), row: place(box("row"))[0], column: place(box("column"))[1],
    kept: box("kept") && place(box("kept")),
    words: [text(".afm-asking"), text(".afm-asked")],
    labels: [text(".afm-rowheader.afm-on"), text(".afm-columnheader.afm-on")],
    tip: tip.hidden ? null : tip.textContent,
  };
}"""


def check_marks(page, w, query: int, key: int, *, tip: bool, kept=None) -> None:
    """Cell, row, column, words, labels, the label at the pointer and the sentence agree."""
    words = [TOKENS[query], TOKENS[key]]
    assert page.evaluate(MARKS) == {
        "cell": [query, key],
        "row": query,
        "column": key,
        "kept": kept,
        "words": words,
        "labels": words,
        "tip": f"{words[0]} → {words[1]} {w[query, key]:.2f}" if tip else None,
    }
    assert reading(page) == f"{words[0]} attends to {words[1]}: {w[query, key]:.2f}"


def check_tip_inside(page) -> None:
    tip, figure = (page.locator(where).first.bounding_box() for where in (".afm-tip", ".afm"))
    assert tip["x"] >= figure["x"]
    assert tip["x"] + tip["width"] <= figure["x"] + figure["width"]
    assert tip["y"] >= figure["y"]
    assert tip["y"] + tip["height"] <= figure["y"] + figure["height"]


def center(place) -> tuple[float, float]:
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_what_is_pointed_at_is_marked_everywhere(open_page):
    w = weights(5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    cell(page, "roses", "gave").click()
    for query, key in [(0, 3), (0, 0), (4, 4), (4, 0), (2, 2)]:
        cell(page, TOKENS[query], TOKENS[key]).hover()
        check_marks(page, w, query, key, tip=True, kept=[2, 1])
        check_tip_inside(page)
    page.mouse.move(2, 2)
    check_marks(page, w, 2, 1, tip=False)
    assert page.get_by_role("gridcell", selected=True).count() == 1


def test_the_keyboard_marks_as_the_pointer_does(open_page):
    w = weights(5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    cell(page, "roses", "gave").click()
    cell(page, "mary", "to").hover()
    page.keyboard.press("ArrowDown")  # the pointer rests elsewhere
    check_marks(page, w, 3, 1, tip=True)
    page.keyboard.press("Tab")
    check_marks(page, w, 3, 1, tip=False)
    page.keyboard.press("Shift+Tab")
    check_marks(page, w, 3, 1, tip=True)


def test_a_change_of_head_keeps_the_cell_that_is_pointed_at(open_page):
    w = weights(3, 5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    cell(page, "roses", "gave").click()
    page.get_by_role("radio", name="head 1").focus()
    cell(page, "mary", "to").hover()
    page.keyboard.press("ArrowRight")
    check_marks(
        page, w[int(page.locator("input:checked").input_value())], 0, 3, tip=True, kept=[2, 1]
    )


def test_queries_and_keys_that_differ_have_a_line_each(open_page):
    w = weights(2, 5)
    page = open_page(AttentionMap(w, ["los", "rosas"], TOKENS))
    assert page.locator(".afm-words").count() == 2
    cell(page, "rosas", "roses").hover()
    marks = page.evaluate(MARKS)
    assert marks["words"] == ["rosas", "roses"]


def test_a_held_finger_points(open_page):
    """It shows the value above itself, scrolls nothing, and chooses where it lifts."""
    w = weights(5, 5)
    page = open_page(AttentionMap(w, TOKENS), width=390, height=500, touch=True)
    cell(page, "gave", "susan").tap()
    check_marks(page, w, 1, 4, tip=True)  # stays until something else is touched
    start, end = center(cell(page, "mary", "mary")), center(cell(page, "to", "roses"))
    scrolled = page.evaluate("scrollY")
    client = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        points = [{"x": x, "y": y} for x, y in points]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", start)
    page.locator(".afm-outline-kept").wait_for(state="attached")  # it is held now
    check_marks(page, w, 0, 0, tip=True, kept=[1, 4])
    touch("touchMove", end)
    check_marks(page, w, 3, 2, tip=True, kept=[1, 4])
    box = page.locator(".afm-tip").bounding_box()
    assert box["y"] + box["height"] < end[1] - 30, "the value is under the finger"
    check_tip_inside(page)
    touch("touchEnd")
    check_marks(page, w, 3, 2, tip=True)
    assert page.evaluate("scrollY") == scrolled
    finger(page, end, (end[0], end[1] - 150))
    page.wait_for_function(f"scrollY !== {scrolled}")  # one that moves at once scrolls
    check_marks(page, w, 3, 2, tip=True)


def test_small_cells_can_be_made_large(open_page):
    n = 35
    names = [f"token {i}" for i in range(n)]
    page = open_page(
        AttentionMap(weights(5, 5), TOKENS), AttentionMap(weights(n, n), names), width=390
    )
    assert page.get_by_role("checkbox", name="large cells").count() == 1, "large cells need none"
    size = "document.querySelectorAll('.afm')[1].querySelector('.afm-cell').width.baseVal.value"
    assert page.evaluate(size) < 10
    page.get_by_role("checkbox", name="large cells").check()
    assert page.evaluate(size) >= 24
    check_fits(page)
    page.get_by_role("gridcell", selected=True).nth(1).click()
    page.keyboard.press("End")
    last = page.locator(".afm").nth(1).get_by_role("gridcell", selected=True)
    assert last.bounding_box()["x"] < 390
    # The rows' labels stay in sight, also under the keyboard, and are not part of what is exported.
    held = page.locator(".afm-held text")
    assert held.count() == n
    assert held.first.bounding_box()["x"] >= page.locator(".afm").nth(1).bounding_box()["x"]
    assert (
        held.all_inner_texts()
        == page.locator(".afm").nth(1).locator(".afm-rowheader:not(.afm-held *)").all_inner_texts()
    )
    page.get_by_role("button", name="SVG").nth(1).scroll_into_view_if_needed()
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").nth(1).click()
    assert "afm-held" not in saved.value.path().read_text(encoding="utf-8")
    last.focus()
    page.keyboard.press("Home")
    held.first.wait_for(state="detached")  # when it has scrolled back
    check_fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function(f"{size} > 18")
    page.get_by_role("checkbox", name="large cells").wait_for(state="detached")
