"""On narrow pages and on paper: keys, swipes, another width, files of what is scrolled."""

import csv
import io
import math
import re
import shutil

import numpy as np
import pytest
import torch
from harness import HOST, axe, check_fits, download, finger, next_frame, reading, swipe

from transformer_lib.widgets import AttentionMap, NextWord, TrainingView

N = 48
STEPS = list(range(1, 201))
LOSSES = [0.5 + 2.6 * math.exp(-step / 25) + 0.02 * math.sin(7 * step) for step in STEPS]
RATES = [4.3e-6 + 1e-3 * step / 200 for step in STEPS]
CURVE = {"step": STEPS, "loss": LOSSES, "rate": RATES}
BASELINES = {"log V": 3.0, "unigram": 2.0, "bigram": 1.0, "trigram": 0.95}
TEXT = "<story> mary gave roses to susan . who has roses ? susan ."


def attention():
    weights = np.random.default_rng(3).dirichlet(np.ones(N), size=N)
    return AttentionMap(weights, [f"token {i}" for i in range(N)])


def words(times=3):
    text = TEXT.split() * times
    vocabulary = sorted(set(text))
    shape = (len(text) - 1, len(vocabulary))
    certain = torch.full(shape, 1e-6)
    for at, word in enumerate(text[1:]):
        certain[at, vocabulary.index(word)] = 1
    even = torch.full(shape, 1 / len(vocabulary))
    return NextWord(text, vocabulary, {"sure": certain / certain.sum(-1, True), "even": even})


def view(**options):
    return TrainingView(CURVE, **{"baselines": BASELINES, "floor": 0.48, "smoothing": 1} | options)


STILL = """() => new Promise((done) => {
  let [last, same] = [null, 0];
  const look = () => {
    same = scrollY === last ? same + 1 : 0;
    last = scrollY;
    same > 30 ? done() : requestAnimationFrame(look);
  };
  look();
})"""

FOCUS = """() => {
  const [node, hold] = [document.activeElement, document.activeElement.closest(".afm-scroll")];
  const [box, room] = [node.getBoundingClientRect(), hold?.getBoundingClientRect()];
  return {
    name: node.getAttribute("aria-label") ?? node.tagName,
    above: box.top - 60, below: innerHeight - box.bottom, // 60: the page's header
    left: box.left - (room?.left ?? 0) + 1, right: (room?.right ?? innerWidth) - box.right + 1,
  };
}"""


def assert_in_view(page, name):
    focus = page.evaluate(FOCUS)
    assert re.match(name, focus["name"]), focus
    assert min(focus[side] for side in ("above", "below", "left", "right")) >= 0, focus


def test_what_the_keys_select_stays_in_view(open_page):
    tall = '<div style="height:900px"></div>'
    page = open_page(attention(), words(), width=320, height=400, before=tall)
    page.locator(".afm-cell[tabindex='0']").focus()
    for key, name in {
        "Control+End": "token 47 attends to token 47:",
        "PageUp": "token 0 attends to token 47:",
        "Home": "token 0 attends to token 0:",
        "PageDown": "token 47 attends to token 0:",
        "End": "token 47 attends to token 47:",
        "Control+Home": "token 0 attends to token 0:",
    }.items():
        page.keyboard.press(key)
        assert_in_view(page, name)
    page.locator("[role='option'][tabindex='0']").focus()
    for key, name in {"End": r"\., word 38:", "Home": "mary, word 1:"}.items():
        page.keyboard.press(key)
        assert_in_view(page, name)


def test_the_focus_survives_another_width(open_page):
    page = open_page(attention(), words(), width=900)
    for place in (".afm-cell[tabindex='0']", "[role='option'][tabindex='0']"):
        for width in (400, 900):
            page.locator(place).focus()
            name = page.evaluate(FOCUS)["name"]
            before = page.locator(".afm-grid").get_attribute("width")
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(
                "(was) => document.querySelector('.afm-grid').getAttribute('width') !== was",
                arg=before,
            )
            next_frame(page)
            assert page.evaluate(FOCUS)["name"] == name


def test_a_swipe_scrolls_and_a_tap_selects(open_page):
    page = open_page(view(), width=360, height=900, touch=True)
    page.add_style_tag(content="body { padding-bottom: 900px }")
    box = page.locator(".afm-training").bounding_box()
    first = reading(page)
    x, y = box["x"] + 0.55 * min(box["width"], 300), box["y"] + 120
    assert y < 880
    swipe(page, (x, y), (x, y - 55), (x, y - 110))
    page.wait_for_function("scrollY > 40")
    page.evaluate(STILL)  # a tap would only stop a page that still glides
    assert reading(page) == first, "scrolling has changed the figure"
    # How far the page glides is chance: bring the figure back.
    page.locator(".afm-training").evaluate("(node) => node.scrollIntoView()")
    page.evaluate(STILL)
    moved = page.locator(".afm-training").bounding_box()
    page.touchscreen.tap(x, moved["y"] + 120)
    page.evaluate(STILL)
    assert reading(page) != first
    y = moved["y"] + 100
    finger(page, (x, y), (x + 40, y + 2), (x + 80, y + 4))
    step = int(re.match(r"After step (\d+)", reading(page))[1])
    edge = 200 * (x + 80 - box["x"]) / box["width"]
    assert abs(step - edge) < 25, "a finger along the curve drags"


def test_a_scrolled_grid_is_saved_whole(open_page):
    page = open_page(attention(), width=320)
    left = r'<svg[^>]* class="afm-grid"[^>]* x="([-\d.]+)"'
    unscrolled = re.search(left, download(page, "SVG").decode())[1]
    page.locator(".afm-scroll").evaluate("(node) => (node.scrollLeft = 150)")
    picture = download(page, "SVG").decode()
    assert re.search(left, picture)[1] == unscrolled
    wide = float(page.locator(".afm-grid").get_attribute("width"))
    assert float(re.findall(r' width="(\d+)" height="\d+">', picture)[-1]) >= wide or wide < 320


def test_names_with_a_halo_are_saved_as_they_are_shown(open_page):
    picture = download(open_page(view()), "SVG").decode("utf-8")
    names = re.findall(r'<text class="afm-baseline-name[^>]*style="([^"]*)"', picture)
    assert len(names) == 5
    assert all("paint-order:stroke" in style for style in names)


def test_the_strips_numbers_fit(open_page):
    page = open_page(view(), width=320)
    page.get_by_role("combobox", name="below").select_option(label="rate")
    left = page.locator(".afm-training").bounding_box()["x"]
    for text in ("0.001", "9.3e−6"):
        assert page.get_by_text(text, exact=True).bounding_box()["x"] >= left


def test_on_paper_nothing_is_cut(open_page):
    page = open_page(attention(), view(), words(), width=1200)
    page.emulate_media(media="print")
    # Nothing is laid out anew for paper, and copies are not either.
    page.evaluate(
        """() => {
          const copies = [...document.querySelectorAll(".afm")].map((one) => one.cloneNode(true));
          document.querySelector("main").replaceChildren(...copies);
          document.querySelector("main").style.width = "500px";
        }"""
    )
    wide = page.locator(".afm svg[viewBox]").evaluate_all(
        """(all) => all.map((svg) => {
          const [box, sides] = [svg.getBoundingClientRect(), svg.viewBox.baseVal];
          return [box.right - svg.closest(".afm-part").getBoundingClientRect().right,
            box.height / box.width - sides.height / sides.width];
        })"""
    )
    assert len(wide) == 4
    for beyond, bent in wide:
        assert beyond <= 1
        assert abs(bent) < 0.02


def test_chosen_is_more_than_bold_where_colors_are_forced(open_page):
    page = open_page(words())
    page.emulate_media(forced_colors="active")
    widths = page.locator(".afm-choice").evaluate_all(
        "(all) => all.map((node) => getComputedStyle(node).borderTopWidth)"
    )
    assert widths == ["2px", "1px"]


def test_only_the_reading_speaks_while_the_run_plays(open_page):
    page = open_page(view())
    assert page.locator("output").first.get_attribute("aria-live") == "off"
    assert page.locator(".afm-reading").get_attribute("aria-live") == "polite"


def test_every_row_of_a_grid_has_as_many_cells(open_page):
    page = open_page(attention())
    cells = "(rows) => rows.map((row) => row.querySelectorAll('[role]').length)"
    assert page.locator("[role='row']").evaluate_all(cells) == [N + 1] * (N + 1)
    assert page.get_by_role("grid").get_attribute("aria-colcount") == str(N + 1)
    assert page.locator("[role='row']").first.locator("> *").first.get_attribute("role") == "cell"


@pytest.mark.parametrize("smoothing", [1, 20])
def test_two_runs_are_named_and_smoothed_alike(open_page, smoothing):
    fast = [loss / 2 for loss in LOSSES]
    curve = {"step": STEPS, "GPT-2's loss": LOSSES, "fast recipe's loss": fast}
    page = open_page(TrainingView(curve, smoothing=smoothing), width=360)
    found = re.match(
        r"After step 200 GPT-2's loss is ([\d.]+) nats( \(mean of the last 20\))?\. "
        r"The fast recipe's loss is ([\d.]+)( \(mean of the last 20\))?\.",
        reading(page),
    )
    assert bool(found[2]) == bool(found[4]) == (smoothing == 20)
    mean = sum(LOSSES[-smoothing:]) / smoothing
    assert float(found[1]) == pytest.approx(mean, abs=0.0051)
    assert float(found[3]) == pytest.approx(mean / 2, abs=0.0051)
    assert page.locator(".afm-curve-raw").count() == (2 if smoothing > 1 else 0)
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode())))
    assert float(rows[-1]["smoothed fast recipe's loss"]) == pytest.approx(mean / 2)


def test_a_certain_word_is_not_cut(open_page):
    for width in (320, 360, 1000):
        page = open_page(words(1), width=width)
        text = page.get_by_text("1.00 ◂ came").bounding_box()
        picture = page.locator(".afm-chances").bounding_box()
        assert text["x"] + text["width"] <= picture["x"] + picture["width"]
        check_fits(page)


PICTURE = """<svg xmlns='http://www.w3.org/2000/svg' width='860' height='200'>
<rect width='860' height='200' fill='white'/><text x='20' y='90' font-size='17'>gave</text></svg>"""
# As on the book's pages, borders count.
PICTURES = f"""<style>* {{ box-sizing: border-box; }}</style>
<link rel="stylesheet" href="afm.css"><article class="bd-article">
<div class="cell_output"><img alt="A word, wide" src="data:image/svg+xml,{PICTURE}"></div>
<div class="cell_output"><img alt="A word" src="data:image/svg+xml,{PICTURE.replace("860", "300")}">
</div></article><script src="afm-page.js"></script>"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_fits_the_page_and_is_shown_in_its_own_size(open_page, tmp_path, theme):
    for name in ("afm.css", "afm-page.js", "afm-mark.svg"):
        shutil.copy(HOST.with_name(name), tmp_path / name)
    page = open_page(attention(), before=PICTURES, width=360, theme=theme, touch=True)
    check_fits(page)
    wide, small = page.locator(".cell_output > img").all()
    assert wide.bounding_box()["width"] < 360
    small.click()
    large = page.get_by_role("dialog", name="The picture in its own size")
    assert large.count() == 0  # what can be read where it stands is not made larger
    enlarge = page.get_by_role("button", name="Enlarge the picture")
    assert enlarge.count() == 1
    for open_ in (wide.tap, lambda: enlarge.press("Enter")):
        open_()
        assert large.locator("img").evaluate("(image) => image.width") >= 860
        sizes = (
            "(whole) => [whole.scrollWidth > whole.clientWidth, whole.clientWidth <= innerWidth]"
        )
        assert large.evaluate(sizes) == [True, True]
        close = large.get_by_role("button", name="Close")
        assert close.evaluate("(node) => node === document.activeElement")
        assert axe(page, "dialog")[0] == []
        if open_ == wide.tap:
            close.click()
        else:
            page.keyboard.press("Escape")
        assert large.count() == 0
    assert enlarge.evaluate("(node) => node === document.activeElement")
    page.set_viewport_size({"width": 1280, "height": 900})
    enlarge.wait_for(state="hidden")


@pytest.mark.parametrize("width", [360, 1280])
def test_text_beside_the_drawing_grows_with_the_browsers_font(open_page, width):
    large = "<style>html { font-size: 200%; }</style>"  # as the browser's own setting does
    page = open_page(attention(), view(), words(), width=width, before=large)
    check_fits(page)
    for part, size in {"caption": 28, "reading": 30, "control": 28}.items():
        found = page.locator(f".afm-{part}").first
        assert found.evaluate("(one) => getComputedStyle(one).fontSize") == f"{size}px"
    small = open_page(attention(), before="<style>html { font-size: 10px; }</style>")
    size = small.locator(".afm-caption").evaluate("(one) => getComputedStyle(one).fontSize")
    assert size == "14px"  # as in the classic Notebook, whose root is not the browser's setting
