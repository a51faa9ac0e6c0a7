"""SoftDictionary in Chromium: by mouse, touch and keyboard, with the library's numbers."""

import re

import pytest
import torch
from harness import HOSTILE, check_hostile, download, finger

from transformer_lib.widgets import SoftDictionary

NAMES = ["pruning roses", "garden party", "wedding"]
KEYS = torch.tensor([[1.8, -0.1], [1.3, 1.2], [0.2, 1.9]])
VALUES = torch.tensor([12.7, 35.0, 95.0])


def dictionary(names=NAMES, **options):
    return SoftDictionary(names, KEYS, VALUES, query=(1.0, 0.9), unit="minutes", **options)


def shown_state(page):
    """The query as its label says it, the weights and the answer as the list says them."""
    label = page.get_by_role("button", name=re.compile("^query at")).get_attribute("aria-label")
    query = [float(number) for number in re.findall(r"-?\d+\.\d+", label)]
    lines = page.get_by_role("listitem")
    labels = [lines.nth(i).get_attribute("aria-label") for i in range(lines.count())]
    weights = [float(re.search(r"weight (\d\.\d\d)", label)[1]) for label in labels[:-1]]
    return query, weights, float(re.search(r"answer: ([\d.]+) minutes", labels[-1])[1])


def assert_right(page, temperature=1.0):
    query, weights, answer = shown_state(page)
    right = torch.softmax(KEYS @ torch.tensor(query) / temperature, dim=0)
    assert weights == pytest.approx(right.tolist(), abs=0.0051)
    assert answer == pytest.approx((right @ VALUES).item(), abs=0.051)
    return query


def test_first_state_teaches(open_page):
    page = open_page(dictionary())
    assert assert_right(page) == [1.0, 0.9]
    assert "The query agrees most with garden party" in page.locator(".afm-reading").inner_text()


def test_scores_are_shown(open_page):
    page = open_page(dictionary())
    lines = page.get_by_role("listitem")
    labels = [lines.nth(i).get_attribute("aria-label") for i in range(3)]
    assert labels[0].endswith("value 12.7")
    scores = [float(re.search(r"score (-?[\d.]+)", label)[1]) for label in labels]
    assert scores == pytest.approx((KEYS @ torch.tensor([1.0, 0.9])).tolist(), abs=0.0051)


@pytest.mark.parametrize("width", [1280, 360])
def test_names_stand_clear_of_each_other_and_of_the_axes(open_page, width):
    keys = torch.tensor([[1.8, 0.3], [1.3, 1.2], [0.2, 1.9]])
    options = {"query": (1.0, 0.9), "axes": ("gardens", "parties")}
    page = open_page(SoftDictionary(NAMES, keys, VALUES, **options), width=width)
    boxes = page.locator(".afm-plane text").evaluate_all(
        """(nodes) => nodes.map((node) => {
          const { left, right, top, bottom } = node.getBoundingClientRect();
          return { text: node.textContent, left, right, top: top + 2, bottom: bottom - 2 };
        })"""
    )
    assert len(boxes) == 6
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (
                one["right"] <= other["left"]
                or other["right"] <= one["left"]
                or one["bottom"] <= other["top"]
                or other["bottom"] <= one["top"]
            )
            assert apart, f"{one['text']} over {other['text']}"


@pytest.mark.parametrize("by", ["list", "arrow", "keyboard"])
def test_a_key_shows_its_score_and_its_share(open_page, by):
    """Its line, its drop and the way along the query: times the query's length, the score."""
    page = open_page(dictionary())
    before = page.locator(".afm-reading").inner_text()
    assert page.locator(".afm-projection").get_attribute("display") == "none"
    if by == "list":
        page.get_by_role("listitem").nth(2).hover()
    elif by == "arrow":
        box = page.locator(".afm-plane").bounding_box()
        pixels = box["width"] / 2 / (1.25 * 1.9)  # the plane reaches that far
        x, y = (float(part) / 2 for part in KEYS[2])
        page.mouse.move(
            box["x"] + box["width"] / 2 + x * pixels, box["y"] + box["height"] / 2 - y * pixels
        )
    else:
        page.locator(".afm-shelf").focus()
        for key in ("ArrowDown", "End", "ArrowUp", "ArrowDown"):
            page.keyboard.press(key)
    query = torch.tensor([1.0, 0.9])
    scores = KEYS @ query
    weight = scores.softmax(0)[2]
    assert page.locator(".afm-lit-line.afm-lit").count() == 1
    assert page.locator(".afm-drop.afm-lit").count() == 1
    assert page.locator(".afm-reading").inner_text() == (
        f"wedding scores {scores[2]:.2f}: it reaches {scores[2] / query.norm():.2f} along the "
        f"query, which is {query.norm():.2f} long. Its weight is {100 * weight:.0f} %, "
        f"so it brings {weight * 95:.1f} of the {scores.softmax(0) @ VALUES:.1f} minutes."
    )
    along = page.locator(".afm-projection").evaluate(
        "(l) => Math.hypot(l.x2.baseVal.value - l.x1.baseVal.value, "
        "l.y2.baseVal.value - l.y1.baseVal.value)"
    )
    pixels = page.locator(".afm-plane").bounding_box()["width"] / 2 / (1.25 * 1.9)
    assert along / pixels * query.norm() == pytest.approx(scores[2].item(), abs=0.02)
    if by == "keyboard":
        page.keyboard.press("Tab")
    else:
        page.mouse.move(2, 2)
    assert page.locator(".afm-reading").inner_text() == before
    assert page.locator(".afm-lit").count() == 0


def test_a_tie_has_no_first(open_page):
    keys = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    page = open_page(SoftDictionary(NAMES, keys, VALUES, query=(1.0, 0.0)))
    said = page.locator(".afm-reading").inner_text()
    assert "most, and equally, with pruning roses and garden party: 47 %" in said


def test_drag_with_the_mouse(open_page):
    page = open_page(dictionary())
    box = page.locator(".afm-movable .afm-mark").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y - 40, steps=4)
    page.mouse.up()
    query = assert_right(page)
    assert query[0] < 0.8
    assert query[1] > 1.0
    page.mouse.move(x, y)
    assert shown_state(page)[0] == query


def test_arrow_keys_move_and_start_again_restores(open_page):
    page = open_page(dictionary())
    point = page.get_by_role("button", name=re.compile("^query at"))
    point.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowDown")
    assert assert_right(page) == pytest.approx([0.9, 0.4])
    page.get_by_role("button", name="start again").click()
    assert assert_right(page) == [1.0, 0.9]


def test_touch_drags_the_query(open_page):
    page = open_page(dictionary(), touch=True, width=360)
    box = page.locator(".afm-movable .afm-mark").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger(page, (x, y), (x - 30, y + 50))
    query = assert_right(page)
    assert query[0] < 0.9
    assert query[1] < 0.6


def test_temperature_hardens(open_page):
    page = open_page(dictionary())
    slider = page.get_by_role("slider", name="temperature")
    slider.focus()
    page.keyboard.press("Home")
    assert_right(page, temperature=0.03)
    assert "answers alone" in page.locator(".afm-reading").inner_text()
    assert page.locator("output").first.inner_text() == "0.030"
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert_right(page, temperature=0.1)
    page.keyboard.press("End")
    assert_right(page, temperature=10.0)
    assert "plain average" in page.locator(".afm-reading").inner_text()


def test_csv_is_what_is_shown(open_page):
    page = open_page(dictionary())
    rows = download(page, "CSV").decode("utf-8").splitlines()
    weights = [float(row.split(",")[4]) for row in rows[1:4]]
    right = torch.softmax((KEYS.double() @ torch.tensor([1.0, 0.9]).double()), dim=0)
    assert weights == pytest.approx(right.tolist(), abs=1e-6)


def test_hostile_names_stay_text(open_page):
    keys = torch.randn(len(HOSTILE), 2)
    values = torch.arange(len(HOSTILE)).float()
    page = open_page(SoftDictionary(HOSTILE, keys, values, unit=HOSTILE[0]), width=360)
    check_hostile(page)
