"""ScalingLab in Chromium: the slider by mouse, touch and keys, and numbers that fit together."""

import math
import re

import pytest
import torch
from harness import check_axe, check_fits, each_look, repaint_ms

from transformer_lib.widgets import ScalingLab


def sides(page):
    """{raw or scaled: (scores, weights, entropy, gradient)}, as the list says them."""
    found = {}
    lines = page.get_by_role("listitem")
    for i in range(lines.count()):
        label = lines.nth(i).get_attribute("aria-label").replace("−", "-")
        scores = [float(x) for x in re.findall(r"score (-?[\d.]+)", label)]
        weights = [float(x) for x in re.findall(r"weight ([\d.]+)", label)]
        entropy = float(re.search(r"entropy ([-\d.e]+)", label)[1])
        gradient = float(re.search(r"Jacobian ([-\d.e]+)", label)[1])
        found[label.split(":")[0]] = (scores, weights, entropy, gradient)
    return found


def assert_right(page, d_k):
    found = sides(page)
    raw, scaled = found["raw"], found["scaled"]
    assert scaled[0] == pytest.approx([s / math.sqrt(d_k) for s in raw[0]], abs=0.06)
    p = torch.tensor(scaled[0], dtype=torch.float64).softmax(0)
    assert scaled[1] == pytest.approx(p.tolist(), abs=0.02)
    assert scaled[2] == pytest.approx(torch.special.entr(p).sum().item(), abs=0.05)
    J = torch.diag(p) - torch.outer(p, p)
    assert scaled[3] == pytest.approx(J.norm().item(), abs=0.03)
    return found


def test_first_state_teaches(open_page):
    page = open_page(ScalingLab(d_k=64))
    found = assert_right(page, 64)
    assert max(found["raw"][1]) > 0.8 > max(found["scaled"][1])
    assert (
        "At d_k = 64 the largest raw score takes 87.1 %"
        in page.locator(".afm-reading").inner_text()
    )


def test_the_slider_moves_the_width(open_page):
    page = open_page(ScalingLab(d_k=64))
    slider = page.get_by_role("slider", name="d_k")
    slider.focus()
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == "4096"
    found = assert_right(page, 4096)
    assert found["raw"][3] < found["scaled"][3]
    page.keyboard.press("Home")
    found = assert_right(page, 1)
    assert found["raw"] == found["scaled"]


def test_new_vectors_and_the_first_ones(open_page):
    page = open_page(ScalingLab(d_k=16))
    first = sides(page)
    page.get_by_role("button", name="draw new vectors").click()
    assert assert_right(page, 16) != first
    page.get_by_role("button", name="first ones").click()
    assert sides(page) == first


def test_touch_moves_the_slider(open_page):
    page = open_page(ScalingLab(d_k=1), touch=True, width=360)
    box = page.get_by_role("slider", name="d_k").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert_right(page, 4096)


@each_look
def test_fits_and_is_accessible_in_both_themes(open_page, theme, width):
    page = open_page(ScalingLab(), theme=theme, width=width)
    assert page.locator("figure.afm").get_attribute("data-afm-theme") == theme
    check_fits(page)
    check_axe(page)


@pytest.mark.soak
def test_repaint_time_is_reported(open_page, report):
    page = open_page(ScalingLab(n_keys=16))
    move = """(step) => {
      const slider = document.querySelector(".afm-slider input");
      slider.value = String(step % 13);
      slider.dispatchEvent(new Event("input"));
    }"""
    times = repaint_ms(page, move)
    report("ScalingLab: slider to repaint at 16 keys, ms", times)
    assert times["median"] > 0
