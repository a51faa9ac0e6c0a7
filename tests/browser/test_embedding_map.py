"""EmbeddingMap in Chromium: by mouse, touch and keyboard, with the library's numbers."""

import pytest
import torch
from harness import HOSTILE, check_hostile, download

from transformer_lib.widgets import EmbeddingMap, Goal

WORDS = ["mary", "susan", "ravi", "roses", "books", "pens", "to", "gave"]
TABLE = torch.randn(8, 6, generator=torch.Generator().manual_seed(2))
GROUPS = {"people": WORDS[:3], "gifts": WORDS[3:6]}


def widget(words=WORDS, **options):
    return EmbeddingMap(TABLE, words, **({"groups": GROUPS} | options))


def assert_shown(page, word):
    """List, map and reading say what the library says of this word."""
    near = widget().nearest(word)
    rows = page.locator(".afm-near li").all_inner_texts()
    assert [row.split() for row in rows] == [
        [name, f"{cosine:.2f}".replace("-", "−")] for name, cosine in near[:6]
    ]
    joined = ", ".join(name for name, _ in near[:3])
    label = page.get_by_role("img").get_attribute("aria-label")
    assert label.endswith(f"Chosen: {word}; nearest: {joined}")
    assert page.locator(".afm-map-line").count() == 3
    assert f"{word} is nearest to {near[0][0]}" in page.locator(".afm-reading").inner_text()


def test_a_word_is_chosen_on_the_map_in_the_list_and_in_the_menu(open_page):
    page = open_page(widget())
    assert_shown(page, "mary")
    page.locator(".afm-map-word").nth(4).click()
    assert_shown(page, "books")
    page.locator(".afm-near-word").nth(1).click()
    assert_shown(page, widget().nearest("books")[1][0])
    page.get_by_role("combobox", name="word").select_option("gave")
    assert_shown(page, "gave")


def test_a_finger_and_the_keyboard_choose_a_word(open_page):
    page = open_page(widget(), touch=True, width=360)
    page.locator(".afm-map-word").nth(6).tap()
    assert_shown(page, "to")
    page.get_by_role("img").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert page.locator(".afm-map-word.afm-lit").count() == 1
    between = f"{dict(widget().nearest('to'))['susan']:.2f}".replace("-", "−")
    reading = page.locator(".afm-reading").inner_text()
    assert f"to is compared with susan: their cosine is {between}" in reading
    page.keyboard.press("Enter")
    assert_shown(page, "susan")
    page.locator(".afm-near-word").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator(".afm-near-word").nth(1).evaluate("(one) => one.matches(':focus')")


def test_pointing_in_the_list_marks_the_word_on_the_map(open_page):
    page = open_page(widget())
    first = WORDS.index(widget().nearest("mary")[0][0])
    page.locator(".afm-near-word").first.hover()
    assert "afm-lit" in page.locator(".afm-map-word").nth(first).get_attribute("class")
    page.locator(".afm-reading").hover()
    assert page.locator(".afm-map-word.afm-lit").count() == 0
    page.locator(".afm-near-word").first.focus()
    assert "afm-lit" in page.locator(".afm-map-word").nth(first).get_attribute("class")


def test_the_directions_turn_the_map_and_leave_the_neighbors(open_page):
    page = open_page(widget())
    marks = "[...document.querySelectorAll('.afm-map-word')]"
    where = f"{marks}.map((one) => one.getAttribute('transform'))"
    before = page.evaluate(where)
    page.get_by_role("slider", name="directions").press("ArrowRight")
    assert page.evaluate(where) != before
    assert_shown(page, "mary")
    assert page.get_by_text("direction 3", exact=True).count() == 1


def test_a_goal_is_reached_by_the_closest_pair(open_page):
    near = {word: widget().nearest(word)[0] for word in WORDS}
    best = max(WORDS, key=lambda word: near[word][1])
    goal = Goal("Find them.", when=[f"cosine >= {near[best][1] - 1e-4:.4f}"])
    other = next(word for word in WORDS if near[word][1] < near[best][1] - 1e-3)
    page = open_page(widget(selection=WORDS.index(other), goals=[goal]))
    page.get_by_role("combobox", name="word").select_option(best)
    page.wait_for_selector(".afm-reached")


def test_the_table_can_be_kept(open_page):
    page = open_page(widget())
    text = download(page, "CSV").decode("utf-8-sig")
    head, *lines = text.splitlines()
    names = [f"direction {i + 1}" for i in range(6)]
    assert head == ",".join(["word,kind", *names, "cosine"])
    kinds = ["people"] * 3 + ["gifts"] * 3 + ["", ""]
    assert [line.split(",")[:2] for line in lines] == [
        list(pair) for pair in zip(WORDS, kinds, strict=True)
    ]


def test_hostile_words(open_page):
    page = open_page(EmbeddingMap(TABLE, HOSTILE[:8], groups={HOSTILE[0]: HOSTILE[:2]}))
    check_hostile(page)


def test_two_maps_do_not_disturb_each_other(open_page):
    page = open_page(widget(), widget(selection=3))
    page.locator(".afm").nth(1).locator(".afm-near-word").first.click()
    assert "mary is nearest" in page.locator(".afm-reading").first.inner_text()


def test_a_map_of_two_directions_has_no_slider(open_page):
    page = open_page(EmbeddingMap(TABLE[:, :2], WORDS))
    assert page.get_by_role("slider").count() == 0
    with pytest.raises(ValueError, match="pair is 1, but must be a whole number from 0 to 0"):
        EmbeddingMap(TABLE[:, :2], WORDS).pair = 1
