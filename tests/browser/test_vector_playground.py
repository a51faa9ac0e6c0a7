"""VectorPlayground in the browser: dragging, touch, keys, sliders, and the library's numbers."""

import csv
import io
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from harness import HOSTILE, check_axe, check_fits, check_hostile, download, finger, reading

from transformer_lib.attention import attention, attention_weights
from transformer_lib.widgets import VectorPlayground

TOKENS = ["mary", "gave", "roses", "to", "susan"]
VECTORS = [[1.2, 0.3], [-0.4, 1.1], [0.9, 1.0], [-0.2, -0.4], [1.0, -0.6]]


def table(page) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The vectors, weights and outputs of the CSV file, with all their digits."""
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode())))[1:]
    numbers = torch.tensor([[float(x) for x in row[1:]] for row in rows], dtype=torch.float64)
    return numbers[:, :2], numbers[:, 2:-2], numbers[:, -2:]


def check_numbers(page) -> torch.Tensor:
    """What the page computes is what the library computes; the vectors are returned."""
    x, weights, outputs = table(page)
    torch.testing.assert_close(weights, attention_weights(x, x, scale=1.0), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(outputs, attention(x, x, x, scale=1.0), atol=1e-6, rtol=1e-6)
    shown = page.locator(".afm-cell-number").all_text_contents()
    assert [float(text) for text in shown] == pytest.approx(weights.flatten().tolist(), abs=0.0051)
    return x


def handle(page, token: str):
    return page.get_by_role("slider", name=f"vector of {token}")


def tip(page, token: str) -> tuple[float, float]:
    box = handle(page, token).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_first_state(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS, selected=2))
    torch.testing.assert_close(check_numbers(page), torch.tensor(VECTORS, dtype=torch.float64))
    x = torch.tensor(VECTORS, dtype=torch.float64)
    w, y = attention_weights(x, x, scale=1.0)[2], attention(x, x, x, scale=1.0)[2]
    assert reading(page) == (
        f"roses attends most to itself: {w.max():.2f}. The average of all vectors with its weights "
        f"is its output, ({y[0]:.2f}, {y[1]:.2f})."
    )


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (
            [[1, 0], [0, 1], [1, 0]],
            "a attends most, and equally, to itself and c: 0.42 each. The",
        ),
        ([[0, 0], [0, 1], [1, 0]], "a attends to all alike: 0.33 each. The average"),
    ],
)
def test_a_tie_is_called_one(open_page, vectors, said):
    assert reading(open_page(VectorPlayground(["a", "b", "c"], vectors))).startswith(said)


def test_a_cell_shows_its_arrows_and_its_score(open_page):
    """Over a cell: both arrows, and the way along the first; times its length this is the score."""
    page = open_page(VectorPlayground(TOKENS, VECTORS, selected=2))
    before = reading(page)
    page.get_by_role("gridcell", name="gave attends to susan:").hover()
    x = torch.tensor(VECTORS, dtype=torch.float64)
    score, length = float(x[1] @ x[4]), float(x[1].norm())
    said = f"Its score is {score:.2f}: gave is {length:.2f} long, and susan reaches "
    assert said.replace("-", "−") in reading(page)
    assert page.locator(".afm-vp-name.afm-vp-asking").text_content() == "gave"
    assert page.locator(".afm-vp-name.afm-vp-asked").text_content() == "susan"
    along = page.locator(".afm-vp-along").evaluate(
        "(l) => Math.hypot(l.x2.baseVal.value - l.x1.baseVal.value, "
        "l.y2.baseVal.value - l.y1.baseVal.value)"
    )
    pixels = page.locator(".afm-vp").bounding_box()["width"] / 4  # from −2 to 2
    assert along / pixels * length == pytest.approx(abs(score), abs=0.01)
    page.mouse.move(2, 2)
    assert page.locator(".afm-vp-along").count() == 0
    assert reading(page) == before


def test_an_arrow_shows_its_row_and_column(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS, selected=2))
    before = reading(page)
    page.mouse.move(*tip(page, "gave"))
    assert page.locator(".afm-rowheader.afm-on").text_content() == "gave"
    assert page.locator(".afm-columnheader.afm-on").text_content() == "gave"
    assert page.locator(".afm-outline-cell").count() == 0, "a row and a column, not a cell"
    assert reading(page).startswith("The row of gave is what it gives to each word")
    page.mouse.move(2, 2)
    assert page.locator(".afm-rowheader.afm-on").text_content() == "roses"
    assert reading(page) == before


@pytest.mark.parametrize("width", [320, 700])
def test_the_plane_alone_with_a_scale_of_its_own(open_page, width):
    page = open_page(
        VectorPlayground(TOKENS, VECTORS, selected=1, grid=False, reach=3), width=width
    )
    assert page.locator(".afm-cell").count() == 0
    assert page.locator("input[type=range]").count() == 0
    x = torch.tensor(VECTORS, dtype=torch.float64)
    y = attention(x, x, x, scale=1.0)[1]
    assert reading(page) == f"gave becomes ({y[0]:.2f}, {y[1]:.2f})."
    box = page.locator(".afm-vp").bounding_box()
    across = tip(page, "mary")[0] - (box["x"] + box["width"] / 2)
    assert across == pytest.approx(1.2 / 3 * box["width"] / 2, abs=2)
    handle(page, "roses").focus()
    page.keyboard.press("ArrowRight")
    moved, _, outputs = table(page)
    assert moved[2, 0] > 0.9
    now = outputs[1]
    assert reading(page) == f"gave becomes ({now[0]:.2f}, {now[1]:.2f})."
    assert not torch.equal(now, y)
    torch.testing.assert_close(outputs, attention(moved, moved, moved, scale=1.0))
    check_fits(page)
    check_axe(page)


def test_drag_with_the_mouse(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS))
    box = page.locator(".afm-vp").bounding_box()
    page.mouse.move(*tip(page, "susan"))
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"], steps=4)
    page.mouse.up()
    x = check_numbers(page)
    np.testing.assert_allclose(x[4], [1.0, 1.0], atol=0.03)
    assert page.get_by_role("radio", name="susan").is_checked()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    assert torch.equal(check_numbers(page), x), "the arrow was still held after the button went up"
    page.mouse.move(*tip(page, "susan"))
    page.mouse.down()
    page.mouse.move(box["x"] + 5 * box["width"], box["y"] - 300)
    page.mouse.up()
    assert check_numbers(page)[4].tolist() == [2.0, 2.0], "the arrow left the plane"


def test_drag_with_a_finger(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS), width=360, touch=True)
    box = page.locator(".afm-vp").bounding_box()
    x, y = tip(page, "gave")
    scrolled = page.evaluate("scrollY")
    end = (box["x"] + 0.25 * box["width"], box["y"] + 0.75 * box["height"])
    finger(page, (x, y), (x + 5, y + 20), end)
    assert page.evaluate("scrollY") == scrolled, "dragging an arrow scrolled the page"
    np.testing.assert_allclose(check_numbers(page)[1], [-1.0, -1.0], atol=0.04)


def test_arrow_keys_move_the_focused_vector(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS))
    handle(page, "to").focus()
    assert reading(page).startswith("to attends most to")
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    np.testing.assert_allclose(check_numbers(page)[3], [-0.11, -0.2], atol=1e-9)
    assert handle(page, "to").get_attribute("aria-valuetext") == "x −0.11, y −0.20"


def test_length_angle_and_reset(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS))
    page.get_by_role("radio", name="susan").check()
    before = check_numbers(page)
    length = page.get_by_role("slider", name="length of susan")
    length.fill("1.9")
    after = check_numbers(page)
    assert math.hypot(*after[4]) == pytest.approx(1.9)
    torch.testing.assert_close(after[4] / after[4].norm(), before[4] / before[4].norm())
    grown = attention_weights(after, after, scale=1.0)[0, 4]
    assert grown > attention_weights(before, before, scale=1.0)[0, 4], "a long key wins"
    length.fill("0")
    assert check_numbers(page)[4].tolist() == pytest.approx([0, 0])
    length.fill("1")
    torch.testing.assert_close(check_numbers(page)[4], before[4] / before[4].norm())
    page.get_by_role("slider", name="angle of susan").fill("90")
    np.testing.assert_allclose(check_numbers(page)[4], [0, 1], atol=1e-9)
    page.get_by_role("button", name="start again").click()
    assert torch.equal(check_numbers(page), before)


def test_no_slider_moves_an_arrow_out_of_its_plane(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS))
    ground = page.locator(".afm-plane").bounding_box()
    for token in TOKENS:
        page.get_by_role("radio", name=token, exact=True).check()
        page.get_by_role("slider", name=f"length of {token}").press("End")
        for angle in ("35", "-90", "180"):
            page.get_by_role("slider", name=f"angle of {token}").fill(angle)
            x, y = tip(page, token)
            assert ground["x"] - 0.5 <= x <= ground["x"] + ground["width"] + 0.5
            assert ground["y"] - 0.5 <= y <= ground["y"] + ground["height"] + 0.5
    # From a corner, where a drag can leave it, too.
    page.get_by_role("radio", name="mary", exact=True).check()
    page.get_by_role("slider", name="angle of mary").fill("35")
    page.mouse.move(*tip(page, "mary"))
    page.mouse.down()
    page.mouse.move(ground["x"] + ground["width"] + 20, ground["y"] - 20, steps=4)
    page.mouse.up()
    page.get_by_role("slider", name="angle of mary").fill("0")
    assert abs(tip(page, "mary")[0] - ground["x"] - ground["width"]) < 1


def test_a_cell_selects_its_row(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS))
    page.get_by_role("gridcell", name="gave attends to susan").click()
    assert page.get_by_role("radio", name="gave").is_checked()
    selected = page.get_by_role("gridcell", selected=True)
    assert selected.get_attribute("aria-label").startswith("gave attends to susan: ")
    assert reading(page).startswith("gave attends to susan: ")  # the pointer is on it
    page.get_by_role("gridcell", name="to attends to roses").hover()
    assert reading(page).startswith("to attends to roses: ")
    page.mouse.move(2, 2)
    assert reading(page).startswith("gave attends most to")


def test_the_pink_arrow_ends_at_the_output(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS, selected=1))
    x = torch.tensor(VECTORS, dtype=torch.float64)
    y = attention(x, x, x, scale=1.0)[1]
    path = page.locator(".afm-vp-arrow-output path").get_attribute("d")
    tip_x, tip_y = map(float, path[1 : path.index("L")].split())
    size = float(page.locator(".afm-vp").get_attribute("width"))
    reach = 2.0
    assert tip_x == pytest.approx((float(y[0]) + reach) / (2 * reach) * size, abs=1e-3)
    assert tip_y == pytest.approx((reach - float(y[1])) / (2 * reach) * size, abs=1e-3)


def test_files(open_page):
    page = open_page(VectorPlayground(TOKENS, VECTORS))
    svg = ElementTree.fromstring(download(page, "SVG"))
    inner = [node for node in svg if node.tag.endswith("svg")]
    assert len(inner) == 2, "the plane and the map are side by side"
    assert float(inner[1].get("x")) > float(inner[0].get("width"))
    assert download(page, "PNG").startswith(b"\x89PNG")


def test_hostile_tokens_stay_text(open_page):
    vectors = [[math.cos(i), math.sin(i)] for i in range(len(HOSTILE))]
    page = open_page(VectorPlayground(HOSTILE, vectors), width=360)
    for radio in page.get_by_role("radio").all():
        radio.check()
        check_hostile(page)
