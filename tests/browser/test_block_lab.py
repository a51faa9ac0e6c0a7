"""BlockLab in Chromium: parts by click and key, the story, and numbers that are the library's."""

import re

import pytest
from figures import make_lab
from harness import check_axe, check_fits, reading

from transformer_lib.widgets import Goal

PARTS = ("norm 1", "attention", "residual 1", "norm 2", "feed-forward", "residual 2")


def test_first_state_is_the_models_own_answer(open_page):
    lab, model, ids = make_lab()
    page = open_page(lab)
    chances = model(ids)[0].softmax(-1)
    best = ["mary", "susan"][int(chances.argmax())]
    assert reading(page).startswith(f"It says {best}, ")
    shown = float(re.search(r"([\d.]+) %", reading(page))[1])
    assert shown == pytest.approx(100 * chances.max().item(), abs=0.6)
    assert "Of all stories 6 of 6 are right." in reading(page)
    label = page.locator(".afm-block").get_attribute("aria-label")
    assert "all parts are on" in label
    assert "mary: 3 of 3; susan: 3 of 3" in label


def test_a_click_on_a_part_switches_it_off_and_on(open_page):
    page = open_page(make_lab()[0])
    before = reading(page)
    part = page.locator(".afm-block-part").filter(has_text="attention")
    part.click()
    assert reading(page).startswith("Without attention it says ")
    assert not page.get_by_role("checkbox", name="attention").is_checked()
    assert "off: attention" in page.locator(".afm-block").get_attribute("aria-label")
    part.click()
    assert reading(page) == before


def test_every_part_has_a_switch_for_the_keyboard(open_page):
    page = open_page(make_lab()[0])
    for part in PARTS:
        box = page.get_by_role("checkbox", name=part, exact=True)
        box.focus()
        page.keyboard.press("Space")
        assert part in reading(page)
    assert page.locator(".afm-block-part.afm-off").count() == 6
    assert page.locator(".afm-block-stream.afm-off").count() == 2


def test_choices_make_the_story(open_page):
    lab, model, ids = make_lab()
    page = open_page(lab)
    page.get_by_role("combobox", name="who").select_option(label="susan")
    page.get_by_role("combobox", name="they").select_option(label="waited")
    label = page.locator(".afm-block").get_attribute("aria-label")
    assert label.startswith("susan and they waited ?")
    share = model(ids)[5].softmax(-1).max().item()
    assert float(re.search(r"([\d.]+) %", reading(page))[1]) == pytest.approx(100 * share, abs=0.6)


def test_a_goal_is_reached_by_switching_off(open_page):
    goal = Goal("Take out two parts.", when=["off = 2", "attention = 0"])
    page = open_page(make_lab(goals=[goal])[0])
    page.get_by_role("checkbox", name="norm 2").click()
    assert page.locator(".afm-goal.afm-reached").count() == 0
    page.get_by_role("checkbox", name="attention").click()
    assert page.locator(".afm-goal.afm-reached").count() == 1


def test_touch_switches_a_part(open_page):
    page = open_page(make_lab()[0], touch=True, width=360)
    page.locator(".afm-block-part").filter(has_text="feed-forward").tap()
    assert reading(page).startswith("Without feed-forward")


def test_fits_and_is_accessible(open_page):
    page = open_page(make_lab()[0], theme="dark", width=360)
    check_fits(page)
    check_axe(page)
    whole = page.locator(".afm-block").bounding_box()
    for text in page.locator(".afm-block text").all():
        box = text.bounding_box()
        assert box["x"] + box["width"] <= whole["x"] + whole["width"] + 1
