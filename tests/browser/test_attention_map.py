"""AttentionMap in the browser: what it shows, mouse and keyboard, files, hostile tokens, themes."""

import csv
import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from harness import HOSTILE, check_axe, check_fits, check_hostile, download, reading, swipe

from transformer_lib.widgets import AttentionMap

TOKENS = ["mary", "gave", "roses", "to", "susan"]


def weights(*shape: int) -> np.ndarray:
    scores = np.random.default_rng(7).normal(size=shape) * 2
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


def cell(page, query: str, key: str):
    return page.get_by_role("gridcell", name=f"{query} attends to {key}:")


def test_the_sentence_stays_in_sight_in_a_figure_higher_than_the_window(open_page):
    names = [f"token {i}" for i in range(40)]
    low = AttentionMap(weights(2, 2), TOKENS[:2])
    page = open_page(AttentionMap(weights(40, 40), names), low, width=1280, height=500)
    said = page.locator(".afm-reading")
    seen = "(node) => node.getBoundingClientRect().bottom <= innerHeight"
    cell = page.get_by_role("gridcell").nth(5 * 40 + 3)
    cell.scroll_into_view_if_needed()
    assert not said.first.evaluate(seen)
    cell.hover()
    assert said.first.evaluate(seen)
    assert said.first.inner_text().startswith("token 5 attends to token 3:")
    assert page.locator(".afm-tall").count() == 1


def test_first_state_names_the_largest_weight_on_another_token(open_page):
    w = weights(5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    other = np.where(np.eye(5, dtype=bool), 0, w)
    query, key = np.unravel_index(other.argmax(), w.shape)
    assert reading(page) == f"{TOKENS[query]} attends to {TOKENS[key]}: {w[query, key]:.2f}"
    assert page.get_by_role("gridcell", selected=True).count() == 1
    assert page.get_by_role("grid").get_attribute("aria-label") == (
        "Attention weights (rows: queries, columns: keys)"
    )


def test_each_cell_shows_its_number(open_page):
    w = weights(3, 5)
    page = open_page(AttentionMap(w, TOKENS[:3], TOKENS))
    names = [c.get_attribute("aria-label") for c in page.get_by_role("gridcell").all()]
    assert names == [
        f"{q} attends to {k}: {w[i, j]:.2f}"
        for i, q in enumerate(TOKENS[:3])
        for j, k in enumerate(TOKENS)
    ]
    assert page.locator(".afm-cell-number").all_text_contents() == [f"{x:.2f}" for x in w.flat]


def test_mouse_keyboard_and_hover(open_page):
    w = weights(5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    cell(page, "roses", "gave").click()
    assert reading(page) == f"roses attends to gave: {w[2, 1]:.2f}"
    steps = {
        "ArrowRight": (2, 2),
        "ArrowDown": (3, 2),
        "Home": (3, 0),
        "ArrowLeft": (3, 0),
        "End": (3, 4),
        "PageUp": (0, 4),
        "ArrowUp": (0, 4),
        "Control+Home": (0, 0),
        "Control+End": (4, 4),
    }
    for key, (i, j) in steps.items():
        page.keyboard.press(key)
        assert reading(page) == f"{TOKENS[i]} attends to {TOKENS[j]}: {w[i, j]:.2f}", key
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused.startswith(f"{TOKENS[i]} attends to {TOKENS[j]}"), key
    assert page.locator(".afm-cell[tabindex='0']").count() == 1
    cell(page, "mary", "to").hover()
    assert reading(page) == f"mary attends to to: {w[0, 3]:.2f}"
    page.mouse.move(2, 2)
    assert reading(page) == f"susan attends to susan: {w[4, 4]:.2f}"


def test_layers_and_heads(open_page):
    w = weights(2, 3, 5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    cell(page, "roses", "gave").click()
    page.get_by_role("radio", name="head 3").check()
    assert reading(page) == f"roses attends to gave: {w[0, 2, 2, 1]:.2f}"
    page.get_by_role("combobox", name="layer").select_option("layer 2")
    assert reading(page) == f"roses attends to gave: {w[1, 2, 2, 1]:.2f}"
    page.get_by_role("radio", name="head 3").press("ArrowLeft")
    assert reading(page) == f"roses attends to gave: {w[1, 1, 2, 1]:.2f}"
    numbers = page.locator(".afm-cell-number").all_text_contents()
    assert numbers == [f"{x:.2f}" for x in w[1, 1].flat]


def test_many_heads_are_a_list(open_page):
    w = weights(1, 17, 5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    page.get_by_role("combobox", name="head").select_option("head 17")
    cell(page, "to", "to").click()
    assert reading(page) == f"to attends to to: {w[0, 16, 3, 3]:.2f}"


def test_masked_cells_are_hatched_and_say_so(open_page):
    mask = np.tril(np.ones((5, 5), dtype=bool))
    w = weights(5, 5) * mask
    page = open_page(AttentionMap(w, TOKENS, mask=mask))
    hidden = page.get_by_role("gridcell", name="mary attends to gave: masked")
    assert hidden.get_attribute("fill").startswith("url(#")
    hidden.click()
    assert reading(page) == "mary may not attend to gave: the mask hides it"
    assert page.locator(".afm-cell-number").all_text_contents().count("") == 10


def test_true_cells_are_framed_and_say_so(open_page):
    w, truth = weights(2, 5, 5), np.eye(5, dtype=bool)[::-1]
    page = open_page(AttentionMap(w, TOKENS, truth=truth))
    frames = page.locator(".afm-outline-true")
    assert frames.count() == 5
    right, wrong = cell(page, "roses", "roses"), cell(page, "mary", "mary")
    inner, outer = frames.nth(2).bounding_box(), right.bounding_box()
    assert 0 < inner["x"] - outer["x"] < outer["width"] / 2
    assert right.get_attribute("aria-label").endswith(f"{w[0, 2, 2]:.2f}, a true link")
    right.click()
    assert reading(page) == f"roses attends to roses: {w[0, 2, 2]:.2f}, a true link"
    page.get_by_role("radio", name="head 2").check()
    assert frames.count() == 5
    wrong.click()
    assert reading(page) == f"mary attends to mary: {w[1, 0, 0]:.2f}"


def test_two_views_of_one_widget_stay_in_step(open_page):
    widget = AttentionMap(weights(5, 5), TOKENS)
    page = open_page(widget, widget)
    cell(page, "roses", "gave").first.click()
    assert (
        page.get_by_role("gridcell", selected=True).evaluate_all(
            "(cells) => cells.map((c) => c.getAttribute('aria-label').split(':')[0])"
        )
        == ["roses attends to gave"] * 2
    )


def test_files(open_page):
    w = weights(2, 5, 5)
    page = open_page(AttentionMap(w, TOKENS))
    page.get_by_role("radio", name="head 2").check()
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode())))
    assert rows[0] == ["query", *TOKENS]
    assert [row[0] for row in rows[1:]] == TOKENS
    numbers = np.array([[float(x) for x in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(numbers, w[1], atol=1e-6)
    svg = ElementTree.fromstring(download(page, "SVG"))
    texts = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("roses") == 2
    assert f"{w[1, 0, 0]:.2f}" in texts
    png = download(page, "PNG")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(png[16:20], "big") > 500  # pixels wide, at twice the size shown


@pytest.mark.parametrize(
    "no",
    [  # a content security policy may refuse blob: addresses; a picture may be too large
        "URL.createObjectURL = () => 'data:image/png;base64,broken'",
        "HTMLCanvasElement.prototype.toBlob = (callback) => callback(null)",
    ],
)
def test_a_picture_that_cannot_be_drawn_is_reported(open_page, no):
    page = open_page(AttentionMap(weights(5, 5), TOKENS))
    page.evaluate(f"() => {{ {no}; }}")
    page.get_by_role("button", name="PNG", exact=True).click()
    page.locator(".afm-reading", has_text="could not draw the picture as PNG").wait_for()


def test_hostile_tokens_stay_text(open_page):
    n = len(HOSTILE)
    page = open_page(AttentionMap(weights(2, n, n), HOSTILE, title=HOSTILE[0]), width=360)
    check_hostile(page)
    for index in range(n):
        page.get_by_role("gridcell").nth(index * n + index).click()
    check_hostile(page)
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode())))
    assert len(rows) == n + 1
    assert rows[6][0] == HOSTILE[5]
    ElementTree.fromstring(download(page, "SVG"))


def test_axe(open_page):
    causal = np.tril(np.ones((5, 5), dtype=bool))
    page = open_page(
        AttentionMap(weights(2, 4, 5, 5), TOKENS),
        AttentionMap(weights(5, 5) * causal, TOKENS, mask=causal),
        AttentionMap(weights(32, 32), [f"token {i}" for i in range(32)]),
        theme="dark",
        width=360,
    )
    check_axe(page)
    check_fits(page)


def test_follows_the_theme(open_page):
    page = open_page(AttentionMap(weights(2, 5, 5), TOKENS))
    look = """() => [getComputedStyle(document.querySelector('.afm')).backgroundColor,
      document.querySelector('.afm-cell').getAttribute('fill'),
      document.querySelector('.afm-thumbnail').toDataURL()]"""
    light = page.evaluate(look)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function("document.querySelector('.afm').dataset.afmTheme === 'dark'")
    dark = page.evaluate(look)
    assert all(one != other for one, other in zip(light, dark, strict=True))


# --- what is pointed at is marked, by mouse, keyboard and finger

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
    page.get_by_role("radio", name="head 2").focus()
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
    swipe(page, end, (end[0], end[1] - 150))
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
