"""MaskPainter in Chromium: drawn in by mouse, touch and keyboard, with the library's numbers."""

import csv
import io

import pytest
import torch
from harness import download, finger, reading, swipe

from transformer_lib.attention import attention, attention_weights
from transformer_lib.masks import causal_mask, padding_mask, sliding_window_mask
from transformer_lib.widgets import MaskPainter

WORDS = ["mary", "gave", "roses", "to", "susan"]
X = torch.tensor([[1.6, 0.2], [0.8, 1.0], [0.2, 1.4], [0.2, 0.2], [1.4, 0.4]])


def painter(**state):
    widget = MaskPainter(WORDS, X, X, X)
    for name, value in state.items():
        setattr(widget, name, value)
    return widget


def cell(page, query, key):
    return page.get_by_role("gridcell", name=f"{query}, {key}:")


def middle(page, query, key):
    box = cell(page, query, key).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def preset(page, name):
    return page.get_by_role("radio", name=name, exact=True)


def table(page):
    """Mask and weights as the file with the numbers has them."""
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode("utf-8"))))
    n = round((len(rows) - 1) ** 0.5)
    mask = torch.tensor([int(row[2]) for row in rows[1:]]).reshape(n, n).bool()
    weights = torch.tensor([float(row[3]) for row in rows[1:]]).double().reshape(n, n)
    return mask, weights


def check_numbers(page, mask):
    shown, weights = table(page)
    assert torch.equal(shown, mask)
    torch.testing.assert_close(
        weights, attention_weights(X.double(), X.double(), mask), rtol=0, atol=1e-6
    )
    output = attention(X.double(), X.double(), X.double(), mask)
    labels = page.locator(".afm-outputs [role=listitem]").evaluate_all(
        "(rows) => rows.map((row) => row.getAttribute('aria-label'))"
    )
    for word, label, weight, y in zip(WORDS, labels, weights, output, strict=True):
        assert label == f"{word}: row sum {weight.sum():.2f}, output {y[0]:.2f}, {y[1]:.2f}"


def warning(page):
    return page.locator(".afm-warning")


def holding(page):
    """Rows of dots from the input upward: True where something of the followed word is."""
    dots = page.locator(".afm-dot").evaluate_all(
        "(dots) => dots.map((dot) => !dot.classList.contains('afm-dot-free'))"
    )
    return torch.tensor(dots).reshape(-1, len(WORDS))


def test_first_state_is_causal_and_tells_where_roses_is(open_page):
    page = open_page(painter())
    check_numbers(page, causal_mask(5))
    assert preset(page, "causal").is_checked()
    assert reading(page) == (
        "Something of roses can be in roses, to and susan after 1 layer, and in no other word "
        "after 2."
    )
    assert warning(page).is_hidden()


def test_a_click_opens_and_closes_a_cell(open_page):
    page = open_page(painter())
    mask = causal_mask(5)
    cell(page, "gave", "susan").click()
    mask[1, 4] = True
    check_numbers(page, mask)
    assert not preset(page, "causal").is_checked()
    cell(page, "gave", "susan").click()
    check_numbers(page, causal_mask(5))
    assert preset(page, "causal").is_checked()


def test_a_drag_draws_with_one_color_and_skips_no_cell(open_page):
    page = open_page(painter())
    page.mouse.move(*middle(page, "mary", "gave"))
    page.mouse.down()
    page.mouse.move(*middle(page, "mary", "susan"))  # one jump, as a fast hand makes it
    page.mouse.move(*middle(page, "to", "susan"), steps=9)
    page.mouse.up()
    page.mouse.move(*middle(page, "susan", "mary"))  # after the button is up nothing is drawn
    mask = causal_mask(5)
    mask[0, 1:] = True
    mask[:4, 4] = True
    check_numbers(page, mask)


def test_a_finger_that_is_held_draws_and_does_not_scroll(open_page):
    page = open_page(painter(), touch=True, width=360, height=500)
    cell(page, "mary", "mary").scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    path = [middle(page, word, "mary") for word in ("gave", "roses", "to")]
    finger(page, *path, held=600)
    assert page.evaluate("scrollY") == before
    mask = causal_mask(5)
    mask[1:4, 0] = False
    check_numbers(page, mask)


def test_a_swipe_scrolls_and_draws_nothing(open_page):
    page = open_page(painter(), touch=True, width=360, height=500)
    cell(page, "to", "mary").scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    x, y = middle(page, "to", "mary")
    swipe(page, *[(x, y - step) for step in range(0, 130, 10)])
    page.wait_for_function(f"scrollY > {before + 50}")
    check_numbers(page, causal_mask(5))


def test_a_tap_toggles_one_cell(open_page):
    page = open_page(painter(), touch=True, width=360)
    cell(page, "mary", "susan").tap()
    mask = causal_mask(5)
    mask[0, 4] = True
    check_numbers(page, mask)


def test_a_cell_shows_its_lines_and_a_line_its_cell(open_page):
    page = open_page(painter(layers=3), height=1400)
    whole = reading(page)
    cell(page, "susan", "gave").hover()
    assert page.locator(".afm-wire-lit").count() == 3, "one line in each layer"
    assert reading(page).startswith("susan looks at gave: ")
    cell(page, "gave", "susan").hover()
    assert page.locator(".afm-wire-cut").count() == 3
    assert reading(page) == "gave may not look at susan."
    page.mouse.move(2, 2)
    assert page.locator(".afm-wire-lit, .afm-wire-cut").count() == 0
    assert reading(page) == whole
    low, high = (
        page.locator(".afm-dot").nth(at).bounding_box() for at in (0, 5 + 1)
    )  # mary in the input, gave after layer 1
    page.mouse.move(
        0.7 * low["x"] + 0.3 * high["x"] + low["width"] / 2,
        0.7 * low["y"] + 0.3 * high["y"] + low["height"] / 2,
    )
    assert page.locator(".afm-wire-lit").count() == 3
    assert page.locator(".afm-rowheader.afm-on").first.text_content() == "gave"
    assert page.locator(".afm-columnheader.afm-on").first.text_content() == "mary"
    assert page.locator(".afm-outline-cell").count() == 1
    assert reading(page).startswith("gave looks at mary: ")
    page.mouse.move(2, 2)
    assert reading(page) == whole
    assert page.locator(".afm-outline-cell").count() == 0


def test_the_keyboard_sees_where_it_is(open_page):
    page = open_page(painter())
    frame = page.locator(".afm-grid .afm-outline-focus")
    assert not frame.is_visible()
    page.get_by_role("combobox", name="hide by").focus()
    page.keyboard.press("Tab")
    assert frame.is_visible()
    box, first = frame.bounding_box(), cell(page, "mary", "mary").bounding_box()
    assert box["x"] < first["x"] < first["x"] + first["width"] < box["x"] + box["width"]
    page.keyboard.press("ArrowDown")
    assert frame.is_visible()
    assert frame.bounding_box()["y"] > first["y"] + 10


def test_the_keyboard_moves_toggles_and_draws(open_page):
    page = open_page(painter())
    cell(page, "mary", "mary").focus()
    for key in ("ArrowRight", "Space", "Shift+ArrowRight", "Shift+ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    mask = causal_mask(5)
    mask[0, 1] = mask[0, 2] = mask[1, 2] = True
    assert reading(page) == f"gave looks at gave: {attention_weights(X, X, mask)[1, 1]:.2f}."
    page.keyboard.press("Enter")
    mask[1, 1] = False
    check_numbers(page, mask)


@pytest.mark.parametrize(
    ("name", "slider", "keys", "mask"),
    [
        ("padding", "real words", ["ArrowRight"], padding_mask([4], 5)[0].expand(5, 5)),
        ("sliding window", "window", ["ArrowRight"], sliding_window_mask(5, 3)),
        ("bidirectional", None, [], torch.ones(5, 5).bool()),
        ("block", "block size", ["Home", "ArrowRight"], None),
    ],
)
def test_presets_and_their_sizes(open_page, name, slider, keys, mask):
    if mask is None:
        mask = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2), torch.ones(1, 1)).bool()
    page = open_page(painter())
    preset(page, name).check()
    assert page.get_by_role("slider", name="layers").count() == 1
    assert page.get_by_role("slider").count() == (2 if slider else 1)
    for key in keys:
        page.get_by_role("slider", name=slider, exact=True).press(key)
    check_numbers(page, mask)
    assert preset(page, name).is_checked()


def test_and_keeps_hidden_what_is_hidden(open_page):
    page = open_page(painter())
    page.get_by_role("checkbox", name="and:").check()
    preset(page, "padding").check()
    check_numbers(page, causal_mask(5) & padding_mask([3], 5)[0])
    page.get_by_role("slider", name="real words").press("Home")
    page.get_by_role("slider", name="real words").press("ArrowRight")
    check_numbers(page, causal_mask(5) & padding_mask([2], 5)[0])


def test_an_empty_row_is_zero_and_says_so_under_each_rule(open_page):
    mask = causal_mask(5)
    mask[3] = False
    page = open_page(painter(mask=mask))
    check_numbers(page, mask)
    text = "to looks at nothing: all of its weights are set to 0, and so its output is zero."
    assert warning(page).inner_text() == text
    rule = page.get_by_role("combobox", name="hide by")
    assert rule.locator("option:checked").inner_text() == "−∞ on the scores; all hidden: 0"
    rule.select_option("−1e9 on the scores")
    torch.testing.assert_close(table(page)[1][3], torch.full((5,), 0.2).double())
    assert "−1e9 covers it up" in warning(page).inner_text()
    rule.select_option("0 on the weights")
    assert (table(page)[1][3] == 0).all()


def test_zero_after_the_softmax_shows_short_rows_and_the_leak(open_page):
    page = open_page(painter(layers=1))
    page.get_by_role("combobox", name="hide by").select_option("0 on the weights")
    expected = attention_weights(X.double(), X.double()) * causal_mask(5)
    torch.testing.assert_close(table(page)[1], expected, rtol=0, atol=1e-6)
    assert "sum to less than 1" in warning(page).inner_text()
    assert "mary and gave come before it" in reading(page)
    assert holding(page).tolist() == [[False, False, True, False, False], [True] * 5]


def test_the_tracer_follows_a_word_through_layers(open_page):
    mask = sliding_window_mask(5, 2)
    page = open_page(painter(mask=mask))
    page.get_by_role("combobox", name="follow").select_option("mary")
    page.get_by_role("slider", name="layers").press("End")
    steps = [torch.linalg.matrix_power(mask.double(), n)[:, 0] > 0 for n in range(7)]
    assert torch.equal(holding(page), torch.stack(steps))


def test_a_click_in_the_graph_chooses_the_word_to_follow(open_page):
    page = open_page(painter())
    page.locator(".afm-target").nth(4).click()
    assert page.get_by_role("combobox", name="follow").locator("option:checked").inner_text() == (
        "susan"
    )
    cell(page, "gave", "susan").click()
    page.mouse.move(5, 5)
    assert reading(page) == (
        "Something of susan can be in gave and susan after 1 layer, and in gave, roses, to and "
        "susan after 2 layers. gave, roses and to come before it: in a model that writes word by "
        "word, that is a leak."
    )
    assert page.locator(".afm-dot-leak").count() == 1 + 3


def test_smaller_copies_leave_parts_out(open_page):
    page = open_page(*(MaskPainter(WORDS, X, X, X, show=show) for show in ("weights", "layers")))
    weights, layers = (page.locator(".afm").nth(i) for i in range(2))
    for part, at in ((".afm-flow", 0), (".afm-outputs", 1)):
        assert [figure.locator(part).count() for figure in (weights, layers)] == [at, 1 - at]
    assert page.get_by_role("radio").count() == 0
    assert "15 of 25 cells are open." in weights.inner_text()
    layers.get_by_role("gridcell", name="mary, roses:").click()
    assert "that is a leak" in layers.inner_text()


def test_a_copy_to_draw_in_has_no_controls_and_names_its_outputs(open_page):
    v = torch.eye(5, 3)
    page = open_page(
        MaskPainter(
            WORDS, X, X, v, show="mask", components=["who", "deed", "gift"], hint="Close a cell."
        )
    )
    assert page.locator(".afm-caption").inner_text() == "Close a cell."
    assert page.locator(".afm-controls input, .afm-controls select").count() == 0
    assert page.locator(".afm-flow").count() == 0
    texts = page.locator(".afm-outputs text").all_text_contents()
    assert [texts.count(name) for name in ("who", "deed", "gift")] == [1, 1, 1]
    assert page.locator(".afm-outputs .afm-cell-number").count() == 15
    row = page.get_by_role("listitem").first.get_attribute("aria-label")
    assert row == "mary: row sum 1.00, output who 1.00, deed 0.00, gift 0.00"


def test_a_preset_says_what_it_lets_each_word_see(open_page):
    page = open_page(painter())
    about = page.locator(".afm-controls .afm-legend").first
    for name, part in [("block", "its own block"), ("bidirectional", "nothing is hidden")]:
        page.get_by_role("radio", name=name).check()
        assert part in about.inner_text()
    page.get_by_role("gridcell").first.click()
    assert about.inner_text() == "Your own mask."
