"""DepthView in Chromium: the lines by mouse, touch and keys, and numbers that are the data's."""

import re

from figures import make_view
from harness import check_axe, check_fits, reading

from transformer_lib.widgets import Goal


def test_first_state_says_the_ratio_of_the_ends(open_page):
    page = open_page(make_view())
    assert reading(page) == (
        "The first block's gradient compared with the last one's, of 6: "
        "pre-norm 1 to 1; post-norm 1 to 32."
    )
    label = page.locator(".afm-depth").get_attribute("aria-label")
    assert "post-norm: from 2 to 64" in label


def test_switches_depths_starts_and_quantities(open_page):
    page = open_page(make_view())
    page.get_by_role("checkbox", name="no norm").click()
    assert page.locator(".afm-depth-line").count() == 3
    page.get_by_role("radio", name="12").check()
    assert ", of 12" in reading(page)
    page.get_by_role("combobox", name="show").select_option(label="size of the stream")
    assert "The stream after the first block" in reading(page)
    assert "pre-norm 1 to 12" in reading(page)
    for name in ("pre-norm", "post-norm", "no norm"):
        page.get_by_role("checkbox", name=name).click()
    assert reading(page) == "Nothing is shown: switch a line on."


def test_a_block_is_read_by_keys_and_by_the_mouse(open_page):
    page = open_page(make_view())
    before = reading(page)
    chart = page.locator(".afm-depth")
    chart.focus()
    page.keyboard.press("ArrowRight")
    assert reading(page).startswith("Block 1 of 6, gradient: pre-norm 1; post-norm 2")
    page.keyboard.press("End")
    assert reading(page).startswith("Block 6 of 6")
    page.keyboard.press("Tab")
    assert reading(page) == before
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 80)
    assert reading(page).startswith("Block 1 of 6")


def test_a_goal_is_reached(open_page):
    goal = Goal("One line.", when=["lines = 1", "ratio no_residual < 0.001"])
    page = open_page(make_view(goals=[goal]))
    for name in ("pre-norm", "post-norm", "no residual"):
        page.get_by_role("checkbox", name=name).click()
    assert page.locator(".afm-goal.afm-reached").count() == 1


def test_touch_reads_a_block(open_page):
    page = open_page(make_view(), touch=True, width=360)
    box = page.locator(".afm-depth").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 100)
    assert re.match(r"Block \d of 6", reading(page))


def test_fits_and_is_accessible(open_page):
    page = open_page(
        make_view(shown=["pre", "post", "no_norm", "no_residual"]), theme="dark", width=360
    )
    check_fits(page)
    check_axe(page)
    whole = page.locator(".afm-depth").bounding_box()
    for text in page.locator(".afm-depth text").all():
        box = text.bounding_box()
        assert box["x"] + box["width"] <= whole["x"] + whole["width"] + 1
