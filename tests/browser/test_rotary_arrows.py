"""RotaryArrows in Chromium: by mouse and keyboard, with the library's numbers."""

import math
import re

import pytest
import torch

from transformer_lib.positions import apply_rotary
from transformer_lib.widgets import Goal, RotaryArrows

QUERY, KEY = [1.5, 0.5], [-0.5, 1.25]


def figure(**options):
    options = {"query_position": 5, "key_position": 2, "speed": 0.3} | options
    return RotaryArrows(QUERY, KEY, **options)


def score(query_position, key_position, speed=0.3):
    arrows = torch.tensor([QUERY, KEY]).double()
    angles = speed * torch.tensor([[query_position], [key_position]]).double()
    return float(apply_rotary(arrows, angles).prod(dim=0).sum())


def shown_score(page):
    text = page.locator(".afm-reading").inner_text()
    return float(re.search(r"score (−?\d+\.\d+)", text)[1].replace("−", "-"))


def press(page, slider, *keys):
    page.get_by_role("slider", name=slider, exact=True).focus()
    for key in keys:
        page.keyboard.press(key)


def test_first_state_has_the_librarys_score_and_the_arrows_stand_there(open_page):
    page = open_page(figure())
    assert shown_score(page) == pytest.approx(score(5, 2), abs=0.006)
    lines = page.locator(".afm-ra-full line").evaluate_all(
        "(all) => all.map((l) => ['x1', 'y1', 'x2', 'y2'].map((a) => +l.getAttribute(a)))"
    )
    for (x1, y1, x2, y2), arrow, place in zip(lines, (QUERY, KEY), (5, 2), strict=True):
        expected = math.atan2(arrow[1], arrow[0]) + 0.3 * place
        found = math.atan2(y1 - y2, x2 - x1)
        assert math.remainder(found - expected, 2 * math.pi) == pytest.approx(0, abs=1e-3)


def test_words_before_the_text_turn_both_and_change_no_score(open_page):
    page = open_page(figure())
    before = shown_score(page)
    press(page, "words before the text", *["ArrowRight"] * 7)
    assert shown_score(page) == before
    assert "position 12" in page.locator(".afm-reading").inner_text()
    assert "do not change it" in page.locator(".afm-reading").inner_text()
    page.get_by_role("radio", name="is added").check()
    assert shown_score(page) != before
    assert "It changes with the words" in page.locator(".afm-reading").inner_text()


def test_the_side_counts(open_page):
    page = open_page(figure(query_position=2, key_position=5))
    assert shown_score(page) == pytest.approx(score(2, 5), abs=0.006)
    press(page, "key's position", "ArrowRight")
    assert shown_score(page) == pytest.approx(score(2, 6), abs=0.006)


def test_an_arrow_is_dragged_stays_inside_and_goes_back(open_page):
    page = open_page(figure(goals=[Goal("In line.", when=["angle < 8", "moved = 0"])]))
    first = shown_score(page)
    tip = page.locator(".afm-handle.afm-ra-key .afm-handle-tip")
    box = tip.bounding_box()
    page.mouse.move(box["x"] + 6, box["y"] + 6)
    page.mouse.down()
    page.mouse.move(box["x"] - 400, box["y"] - 400, steps=3)
    page.mouse.up()
    handle = page.get_by_role("slider", name="key, before its position")
    assert handle.get_attribute("aria-valuetext") == "x −2.00, y 2.00"
    assert shown_score(page) != first
    page.get_by_role("button", name="start again").click()
    assert shown_score(page) == first
    # By positions alone: the query is turned until it points where the key does.
    gap = math.atan2(KEY[1], KEY[0]) - math.atan2(QUERY[1], QUERY[0])
    press(page, "query's position", *["ArrowRight"] * (round(gap / 0.3) - 3))
    assert page.locator(".afm-goal.afm-reached").count() == 1
