"""MaskPainter on a page: files, hostile words, axe, light and dark."""

from xml.etree import ElementTree

import torch
from harness import HOSTILE, check_axe, check_fits, check_hostile, download

from transformer_lib.masks import causal_mask
from transformer_lib.widgets import MaskPainter

X = torch.tensor([[1.6, 0.2], [0.8, 1.0], [0.2, 1.4], [0.2, 0.2], [1.4, 0.4]])


def painter(**state):
    widget = MaskPainter(["mary", "gave", "roses", "to", "susan"], X, X, X)
    for name, value in state.items():
        setattr(widget, name, value)
    return widget


def preset(page, name):
    return page.get_by_role("radio", name=name, exact=True)


def test_files(open_page):
    page = open_page(painter())
    svg = ElementTree.fromstring(download(page, "SVG"))
    texts = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("roses") == 4  # row, column, output, graph
    assert download(page, "PNG").startswith(b"\x89PNG\r\n\x1a\n")


def test_hostile_words_stay_text(open_page):
    x = torch.randn(len(HOSTILE), 3)
    page = open_page(MaskPainter(HOSTILE, x, x, x), width=360)
    check_hostile(page)
    for index in range(len(HOSTILE)):
        page.locator(".afm-target").nth(index).click()
        page.get_by_role("gridcell").nth(index * len(HOSTILE)).click()  # every row's first key
    preset(page, "padding").check()
    check_hostile(page)
    ElementTree.fromstring(download(page, "SVG"))


def test_axe(open_page):
    empty = causal_mask(5)
    empty[3] = False
    x = torch.randn(32, 4)
    page = open_page(
        painter(mask=empty),
        painter(rule=1, source=4),
        MaskPainter([f"token {i}" for i in range(32)], x, x, x),
        theme="dark",
        width=360,
    )
    preset(page, "sliding window").first.check()
    check_axe(page)
    check_fits(page)


def test_follows_the_theme(open_page):
    page = open_page(painter())
    look = """() => ['.afm-cell', '.afm-outputs .afm-cell', '.afm-dot-holds'].map((part) =>
      getComputedStyle(document.querySelector(part)).fill)
      .concat(getComputedStyle(document.querySelector('.afm')).backgroundColor)"""
    light = page.evaluate(look)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function("document.querySelector('.afm').dataset.afmTheme === 'dark'")
    dark = page.evaluate(look)
    assert light[0] != dark[0]
    assert light[3] != dark[3]
