"""NextWord in Chromium: by mouse, touch and keyboard, with the library's numbers."""

import math
import re

import pytest
import torch
from harness import HOSTILE, check_hostile, download

from transformer_lib.widgets import NextWord

TEXT = "<story> mary gave roses to susan . who has roses ? susan ."
WORDS = TEXT.split()
VOCABULARY = [*sorted(set(WORDS)), "john", "peter"]


def widget(words=WORDS, vocabulary=VOCABULARY, **options):
    source = torch.Generator().manual_seed(1)
    shape = (2, len(words) - 1, len(vocabulary))
    rows = (2 * torch.randn(shape, generator=source)).softmax(-1)
    return NextWord(words, vocabulary, {"bigram": rows[0], "grammar": rows[1]}, **options)


def assert_right(page, shown, position, name):
    """The labels say the library's surprises, the reading its probability and loss."""
    right = shown.surprises[name]
    options = page.get_by_role("option")
    labels = [options.nth(i).get_attribute("aria-label") for i in range(options.count())]
    found = [float(re.search(r"surprise ([\d.]+) nats", label)[1]) for label in labels]
    assert found == pytest.approx(right.tolist(), abs=0.0051)
    reading = page.locator(".afm-reading").inner_text()
    assert f"{name} gave {WORDS[position]} the probability" in reading
    assert float(re.search(r"its loss, is ([\d.]+):", reading)[1]) == pytest.approx(
        shown.losses[name], abs=0.0051
    )
    chosen = page.locator('[role="option"][aria-selected="true"]')
    assert chosen.count() == 1
    assert chosen.get_attribute("aria-label").startswith(f"{WORDS[position]}, word {position}:")
    came = page.get_by_role("listitem", name=re.compile("the word that came"))
    probability = float(torch.exp(-right[position - 1]))
    assert came.get_attribute("aria-label").startswith(f"{WORDS[position]}: ")
    number = float(re.search(r": ([\d.e-]+),", came.get_attribute("aria-label"))[1])
    assert number == pytest.approx(probability, rel=0.06, abs=0.0051)


def test_first_state_teaches(open_page):
    shown = widget(selection=5)
    assert_right(open_page(shown), shown, 5, "bigram")


def test_mouse_and_touch_select_a_word(open_page):
    shown = widget()
    page = open_page(shown)
    page.get_by_role("option", name=re.compile("^roses, word 3")).click()
    assert_right(page, shown, 3, "bigram")
    page = open_page(shown, touch=True, width=360)
    page.get_by_role("option", name=re.compile("^has, word 8")).tap()
    assert_right(page, shown, 8, "bigram")


def test_on_a_phone_the_bars_stay_in_sight_above_the_first_word(open_page):
    page = open_page(widget(words=9 * WORDS), touch=True, width=390, height=844)
    word = page.get_by_role("option").nth(1)
    word.evaluate("(one) => one.scrollIntoView({ block: 'start' })")
    word.tap()
    bars, text = (page.locator(f".afm-{name}").bounding_box() for name in ("chances", "surprises"))
    assert text["y"] + text["height"] > 844, "there is something to stay for"
    assert bars["y"] + bars["height"] <= 844


def test_keyboard_chooses_words_and_predictors(open_page):
    shown = widget(selection=5)
    page = open_page(shown)
    page.locator('[role="option"][tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    assert_right(page, shown, 6, "bigram")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert_right(page, shown, 1, "bigram")
    page.keyboard.press("End")
    assert_right(page, shown, len(WORDS) - 1, "bigram")
    page.get_by_role("radio", name="bigram").focus()
    page.keyboard.press("ArrowRight")
    assert_right(page, shown, len(WORDS) - 1, "grammar")


def test_csv_is_what_is_shown(open_page):
    shown = widget()
    rows = download(open_page(shown), "CSV").decode("utf-8").splitlines()
    head = rows[0].split(",")
    assert head[:4] == ["position", "word", "bigram", "grammar"]
    assert head[4:] == [f"bigram: {word}" for word in VOCABULARY]  # of the list beside the text
    for row in rows[1:-1]:
        word, *shares = row.split(",")[1:2] + row.split(",")[4:]
        assert sum(map(float, shares)) == pytest.approx(1, abs=1e-5)
        surprise = -math.log(float(shares[VOCABULARY.index(word)]))
        assert surprise == pytest.approx(float(row.split(",")[2]), abs=1e-5)
    numbers = [float(row.split(",")[3]) for row in rows[1:]]
    right = [*shown.surprises["grammar"].tolist(), shown.losses["grammar"]]
    assert numbers == pytest.approx(right, abs=1e-6)


def test_hostile_words_stay_text(open_page):
    words = list(dict.fromkeys(HOSTILE))
    check_hostile(open_page(widget(words, words), width=360))
