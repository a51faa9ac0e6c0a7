"""ScalingLab in Chromium: the slider by mouse, touch and keys, and numbers that fit together."""

import math
import re

import pytest
import torch
from harness import check_axe, check_fits

from transformer_lib.widgets import ScalingLab


def sides(page):
    """{raw or scaled: (scores, weights, largest, slope, [entropy, Jacobian])}, as the list says."""
    found = {}
    lines = page.get_by_role("listitem")
    for i in range(lines.count()):
        label = lines.nth(i).get_attribute("aria-label").replace("−", "-")
        scores = [float(x) for x in re.findall(r"score (-?[\d.]+)", label)]
        below = label.rpartition("; ")[2]
        found[label.split(":")[0]] = (
            scores,
            [float(x) for x in re.findall(r"weight ([\d.]+)(?=;)", label)],
            *[float(x) for x in re.findall(r"(-?\d[\d.]*(?:e-?\d+)?)(?=,|$)", below)],
        )
    return found


def assert_right(page, d_k):
    found = sides(page)
    raw, scaled = found["raw"], found["scaled"]
    assert scaled[0] == pytest.approx([s / math.sqrt(d_k) for s in raw[0]], abs=0.06)
    p = torch.tensor(scaled[0], dtype=torch.float64).softmax(0)
    assert scaled[1] == pytest.approx(p.tolist(), abs=0.02)
    assert scaled[2] == max(scaled[1])
    assert scaled[3] == pytest.approx((p.max() * (1 - p.max())).item(), abs=0.02)
    if len(scaled) > 4:
        assert scaled[4] == pytest.approx(torch.special.entr(p).sum().item(), abs=0.05)
        J = torch.diag(p) - torch.outer(p, p)
        assert scaled[5] == pytest.approx(J.norm().item(), abs=0.03)
    return found


def test_first_state_teaches(open_page):
    page = open_page(ScalingLab(d_k=64))
    found = assert_right(page, 64)
    assert max(found["raw"][1]) > 0.8 > max(found["scaled"][1])
    said = page.locator(".afm-reading").inner_text()
    assert "At dₖ = 64 the largest raw score takes a weight of 0.87 (slope 0.11)." in said
    assert "Divided by √64, it takes 0.33 (slope 0.22)." in said


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_key_shows_both_bars_and_its_places_on_the_curve(open_page, by):
    page = open_page(ScalingLab(d_k=16))
    before = page.locator(".afm-reading").inner_text()
    found = sides(page)
    j = 3
    if by == "mouse":
        page.locator(".afm-scaling-number").filter(
            has_text=re.compile(
                f"^{re.escape(page.locator('.afm-scaling-number').nth(2 * j).text_content())}$"
            )
        ).first.hover()
    else:
        page.locator(".afm-scaling").focus()
        for _ in range(j):
            page.keyboard.press("ArrowDown")
    assert page.locator(".afm-lit-line.afm-lit").count() == 2
    said = page.locator(".afm-reading").inner_text()
    assert said.startswith(f"Key {j + 1}: raw score ")
    width = page.locator(".afm-saturation").bounding_box()["width"]
    for name in ("raw", "scaled"):
        scores = found[name][0]
        gap = abs(scores[j] - max(scores[:j] + scores[j + 1 :]))
        dots = page.locator(f".afm-place-{name}")
        assert dots.count() == 2, "one on the weight, one on the slope"
        x = float(dots.first.get_attribute("cx"))
        assert (x - 30) / (width - 46) * 12 == pytest.approx(min(gap, 12), abs=0.15)
    if by == "keyboard":
        page.keyboard.press("Tab")
    else:
        page.mouse.move(2, 2)
    assert page.locator(".afm-place, .afm-lit").count() == 0
    assert page.locator(".afm-reading").inner_text() == before


def test_every_number_that_the_curve_marks_is_shown(open_page):
    page = open_page(ScalingLab(d_k=64))
    curve = page.locator(".afm-saturation")
    shown = curve.locator("text").all_text_contents()
    assert "typical raw difference: √(2 · 64) = 11.3" in shown
    assert "p > 0.99, slope 1e−5" in shown
    assert "typical scaled difference: √2 = 1.41" in shown
    assert "p 0.80, slope 0.16" in shown
    assert {"0", "0.5", "1"} | {str(tick) for tick in range(0, 13, 2)} <= set(shown)
    page.get_by_role("slider", name="dₖ").focus()
    page.keyboard.press("End")
    assert "√(2 · 4096) = 90.5 (beyond the axis)" in curve.get_attribute("aria-label")
    box, above = curve.bounding_box(), page.locator(".afm-scaling").bounding_box()
    assert box["y"] > above["y"] + above["height"] - 1  # where the text says: below


def test_each_level_shows_more(open_page):
    page = open_page(ScalingLab(d_k=64, show="row"))
    assert len(assert_right(page, 64)["raw"]) == 6
    assert page.locator(".afm-scaling-foot").count() == 8
    page = open_page(ScalingLab(d_k=64, show="weights"))
    assert len(sides(page)["raw"]) == 3
    assert page.locator(".afm-saturation").count() == 0
    assert "slope" not in page.locator("figure.afm").inner_text()


def test_the_slider_moves_the_width(open_page):
    page = open_page(ScalingLab(d_k=64))
    slider = page.get_by_role("slider", name="dₖ")
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
    page.get_by_role("button", name="start again").click()
    assert sides(page) == first


def test_touch_moves_the_slider(open_page):
    page = open_page(ScalingLab(d_k=1), touch=True, width=360)
    box = page.get_by_role("slider", name="dₖ").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert_right(page, 4096)


def test_fits_and_is_accessible(open_page):
    page = open_page(ScalingLab(), theme="dark", width=360)
    assert page.locator("figure.afm").get_attribute("data-afm-theme") == "dark"
    check_fits(page)
    check_axe(page)
    assert len(sides(page)["raw"]) == 4
    whole = page.locator(".afm-scaling").bounding_box()
    for text in page.locator(".afm-scaling-foot").all():  # nothing is cut at the right edge
        box = text.bounding_box()
        assert box["x"] + box["width"] <= whole["x"] + whole["width"]
