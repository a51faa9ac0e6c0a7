"""PositionLab in Chromium: by mouse, touch and keyboard, with the library's numbers."""

import csv
import io
import re

import pytest
import torch
from harness import check_axe, check_fits, download, each_look, facts_of, finger, reading

from transformer_lib.positions import (
    LearnedPositions,
    alibi_bias,
    apply_rotary,
    rotary_angles,
    sinusoidal_encoding,
)
from transformer_lib.widgets import PositionLab, Predict

METHODS = ["sinusoidal", "rotary", "ALiBi", "learned"]


def choose(page, method):
    page.get_by_role("radio", name=method, exact=True).check()


def press(page, slider, *keys):
    page.get_by_role("slider", name=slider, exact=True).focus()
    for key in keys:
        page.keyboard.press(key)


def shown_product(page):
    """Positions and product in the sentence of reading."""
    found = re.search(
        r"of position (\d+) and position (\d+) is (−?[\d.,]+(?:e−\d+)?)", reading(page)
    )
    assert found, reading(page)
    return int(found[1]), int(found[2]), float(found[3].replace("−", "-").replace(",", ""))


def shown_rows(page):
    """The numbers behind the picture, by the CSV button."""
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode("utf-8"))))
    return torch.tensor([[float(cell) for cell in row[1:]] for row in rows[1:]]).double()


def encoding(n=32, d=32, base=10_000.0):
    return sinusoidal_encoding(n, d, base=base, dtype=torch.float64)


def panel(page, title):
    return page.locator(".afm-pl-panel", has=page.get_by_text(title)).locator("svg")


def test_first_state_teaches_with_the_librarys_numbers(open_page):
    page = open_page(PositionLab(position=4, offset=3))
    PE = encoding()
    assert shown_product(page) == (4, 7, pytest.approx(float(PE[4] @ PE[7]), abs=0.005))
    assert "any two positions 3 apart" in reading(page)
    assert "✓ largest difference at any position" in panel(page, "Shift test").text_content()
    torch.testing.assert_close(shown_rows(page), PE, rtol=0, atol=1e-6)


def test_the_hands_point_where_sine_and_cosine_say(open_page):
    page = open_page(PositionLab(position=5, offset=2, d_model=8))
    hands = panel(page, "clock hand").locator("line[stroke-width='3']")
    PE = encoding(32, 8)
    ends = hands.evaluate_all(
        "(lines) => lines.map((l) => ['x1', 'y1', 'x2', 'y2'].map((a) => +l.getAttribute(a)))"
    )
    assert len(ends) == 2 * 4  # two hands in each of four dials
    for order, (x1, y1, x2, y2) in enumerate(ends):
        row = PE[5 + 2 * (order % 2), order // 2 * 2 :]
        assert (x2 - x1) / 21 == pytest.approx(float(row[0]), abs=1e-6)
        assert (y1 - y2) / 21 == pytest.approx(float(row[1]), abs=1e-6)


def test_keyboard_moves_and_the_product_stays(open_page):
    page = open_page(PositionLab(position=4, offset=3))
    before = shown_product(page)
    press(page, "position p", *["ArrowRight"] * 5)
    assert shown_product(page) == (9, 12, before[2])
    assert "both hands of a dial" in reading(page)
    press(page, "offset k", "ArrowLeft")
    PE = encoding()
    assert shown_product(page) == (9, 11, pytest.approx(float(PE[9] @ PE[11]), abs=0.005))
    press(page, "position p", "End")
    assert shown_product(page)[:2] == (29, 31)


def test_size_base_and_length(open_page):
    page = open_page(PositionLab())
    press(page, "components d", "ArrowLeft")
    press(page, "base", "ArrowLeft", "ArrowLeft")
    press(page, "positions", "ArrowRight")
    torch.testing.assert_close(shown_rows(page), encoding(33, 16, 100.0), rtol=0, atol=1e-6)
    assert "those that were there stay" in reading(page)
    press(page, "pair i", "End")
    assert "components 14 and 15" in reading(page)


def test_a_click_chooses_query_and_key_and_a_drag_follows(open_page):
    page = open_page(PositionLab(), height=1400)
    scores = panel(page, "every position with every position")
    box = scores.locator("image").bounding_box()
    cell = box["width"] / 32
    x, y = box["x"] + 20.5 * cell, box["y"] + 11.5 * cell
    page.mouse.move(x, y)
    page.mouse.down()
    assert shown_product(page)[:2] == (11, 20)
    page.mouse.move(x, y + 4 * cell, steps=4)
    page.mouse.up()
    assert shown_product(page)[:2] == (15, 20)
    page.mouse.move(x, y)
    assert shown_product(page)[:2] == (15, 20)


def test_settings_that_change_together_do_not_move_each_other(open_page):
    page = open_page(PositionLab(offset=10, n_heads=8, head=5, name="here"), height=1400)
    box = panel(page, "every position with every position").locator("image").bounding_box()
    at = 28.5 * box["width"] / 32
    page.mouse.click(box["x"] + at, box["y"] + at)
    assert shown_product(page)[:2] == (28, 28)
    set_ = "(text) => afmFigures.get('here')[0].set(text.split(';').map((one) => one.split('=')))"
    page.evaluate(set_, "position=31;offset=-20")
    assert shown_product(page)[:2] == (31, 11)
    page.evaluate(set_, "n_heads=2;head=1")
    page.evaluate("afmFigures.get('here')[0].set([['reset', '']])")
    assert facts_of(page)["head"] == 5


def test_touch_chooses_a_position_and_a_pair(open_page):
    page = open_page(PositionLab(), touch=True, width=360)
    image = panel(page, "The code of every position").locator("image")
    image.scroll_into_view_if_needed()
    box = image.bounding_box()
    page.touchscreen.tap(box["x"] + 12.5 * box["width"] / 32, box["y"] + 20.5 * box["height"] / 32)
    assert shown_product(page)[0] == 20
    assert page.get_by_role("slider", name="pair i").input_value() == "6"


def test_a_swipe_over_the_pictures_scrolls_and_changes_nothing(open_page):
    page = open_page(PositionLab(), touch=True, width=360, height=600)
    image = panel(page, "The code of every position").locator("image")
    image.scroll_into_view_if_needed()
    before, box = (shown_product(page), page.evaluate("scrollY")), image.bounding_box()
    x, y = box["x"] + 100, box["y"] + box["height"] / 2
    finger(page, *[(x, y - step) for step in range(0, 130, 10)])
    page.wait_for_function(f"scrollY > {before[1] + 50}")
    assert shown_product(page) == before[0]


def test_projections_break_the_sinusoids_and_not_the_rotations(open_page):
    page = open_page(PositionLab())
    page.get_by_role("checkbox", name="through random").check()
    assert "differ by up to" in reading(page)
    assert "✗ differs by up to" in panel(page, "Offset test").text_content()
    choose(page, "rotary")
    assert "any two positions 3 apart" in reading(page)
    assert "✓ level" in panel(page, "Offset test").text_content()


def test_rotary_turns_a_vector_as_the_library_does(open_page):
    page = open_page(PositionLab(method="rotary"))
    x = torch.tensor([0.0, 1.0]).double().repeat(32, 16)
    turned = apply_rotary(x, rotary_angles(32, 32, dtype=torch.float64))
    torch.testing.assert_close(shown_rows(page), turned, rtol=0, atol=1e-6)
    assert shown_product(page)[2] == pytest.approx(float(turned[4] @ turned[7]), abs=0.005)


def test_one_picture_at_a_time_with_what_it_needs(open_page):
    page = open_page(
        PositionLab(view="clocks"), Predict("Which?", {"a": "A.", "b": "B."}, right="a")
    )
    seen = lambda: page.locator(".afm-pl-panel:visible .afm-part-title").all_inner_texts()  # noqa: E731
    [title] = seen()
    assert title.startswith("Each pair of components is a clock hand")
    assert (
        page.locator("input[type=range]:visible").count() == 4
    )  # whatever another figure's sheet says
    page.get_by_role("radio", name="products").check()
    assert [text.split(":")[0] for text in seen()] == ["PE·PEᵀ", "Offset test"]
    choose(page, "ALiBi")
    assert "Try: drag the head" in page.locator(".afm-caption").first.inner_text()
    assert [text.split(":")[0] for text in seen()] == ["What is added to the scores", "Offset test"]
    page.get_by_role("radio", name="all").check()
    assert len(seen()) == 4
    assert "Try: drag the head" in page.locator(".afm-caption").first.inner_text()
    check_fits(page)


@pytest.mark.parametrize(("view", "until"), [("clocks", None), ("code", None), ("products", "PE·")])
def test_on_a_phone_the_sliders_and_what_they_change_are_on_one_screen(open_page, view, until):
    lab = PositionLab(position=4, offset=3, n_positions=48, view=view)
    page = open_page(lab, touch=True, width=360, height=740)
    last = panel(page, until) if until else page.locator(".afm-reading")
    first, last = page.locator(".afm-controls").bounding_box(), last.bounding_box()
    assert last["y"] + last["height"] - first["y"] < 740
    check_fits(page)


def test_a_figure_may_have_few_controls_and_its_own_hint(open_page):
    page = open_page(PositionLab(view="clocks", controls=["position"], hint="Drag the position."))
    assert page.locator(".afm-caption").inner_text() == "Drag the position."
    assert page.get_by_role("slider").count() == 1
    assert page.get_by_role("radio").count() == 0
    press(page, "position p", "ArrowRight")
    assert page.locator(".afm-caption").inner_text() == "Drag the position."


def test_the_bug_is_seen_by_both_tests(open_page):
    page = open_page(PositionLab())
    page.get_by_role("checkbox", name="a common bug").check()
    assert "✗" in panel(page, "Shift test").text_content()
    assert "✗" in panel(page, "Offset test").text_content()
    rows = shown_rows(page).unflatten(1, (16, 2))
    assert (rows.square().sum(-1) - 1).abs().max() > 0.5
    press(page, "position p", "ArrowRight")
    assert "same angle" not in reading(page)
    page.get_by_role("radio", name="clocks").check()
    assert "turns by" not in reading(page)
    assert "one turn in" not in panel(page, "clock hand").text_content()


def test_alibi(open_page):
    page = open_page(PositionLab(method="alibi", n_heads=8, head=1))
    assert shown_product(page) == (4, 7, -0.75)
    torch.testing.assert_close(
        shown_rows(page), alibi_bias(8, 32, 32, dtype=torch.float64)[1], rtol=0, atol=1e-6
    )
    press(page, "head", "Home")
    assert shown_product(page) == (4, 7, -1.5)
    assert page.get_by_role("slider", name="base").count() == 0
    press(page, "heads", "Home")
    assert shown_product(page) == (4, 7, pytest.approx(-3 / 256, abs=1e-4))


def test_a_learned_table_ends(open_page):
    table = LearnedPositions(max_positions=11, d_model=6).table.weight.detach()
    page = open_page(PositionLab(method="learned", table=table, position=2, offset=5))
    product = float(table[2] @ table[7])
    assert shown_product(page)[2] == pytest.approx(product, rel=0.01, abs=1e-4)
    assert "Positions from 11 on have no row" in reading(page)
    press(page, "position p", "End")
    assert shown_product(page)[:2] == (5, 10)
    torch.testing.assert_close(shown_rows(page), table.double(), rtol=0, atol=1e-6)


@each_look
def test_axe_finds_nothing_and_all_fits(open_page, theme, width):
    page = open_page(PositionLab(n_positions=40), theme=theme, width=width)
    for method in METHODS:
        choose(page, method)
        check_fits(page)
        check_axe(page)
    cut = page.locator(".afm svg text").evaluate_all(
        """(texts) => texts.filter((text) => {
          const [box, frame] = [text, text.ownerSVGElement].map((n) => n.getBoundingClientRect());
          return frame.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
        }).map((text) => text.textContent)"""
    )
    assert cut == []


def test_pictures_can_be_kept(open_page):
    page = open_page(PositionLab())
    svg = download(page, "SVG").decode("utf-8")
    assert svg.count("<image") == 5  # the code, the products, and three strips
    assert "Infinity" not in svg
    assert "NaN" not in svg
    assert download(page, "PNG").startswith(b"\x89PNG")


def test_two_labs_do_not_disturb_each_other(open_page):
    page = open_page(PositionLab(position=3), PositionLab(position=8))
    page.get_by_role("slider", name="position p").first.focus()
    page.keyboard.press("ArrowRight")
    first, second = page.locator(".afm-reading").all_inner_texts()
    assert "position 4 " in first
    assert "position 8 " in second
