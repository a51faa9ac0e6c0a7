"""PairMerger in Chromium: merges on the reader's own text, equal to the library's."""

import csv
import io
import re

import pytest
from harness import HOSTILE, check_axe, check_fits, download

from transformer_lib.bpe import train_bpe
from transformer_lib.widgets import Goal, PairMerger

ROSES = "mary gave roses to susan. susan gave the roses to rosemary. rosemary gave mary a rose."
KANNADA = "ಮೇರಿ ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು. ಸುಸಾನ್ ಮೇರಿಗೆ ಹೂವನ್ನು ಕೊಟ್ಟಳು."
SAMPLES = {"roses": ROSES, "kannada": KANNADA}


def merge(page, times=1):
    for _ in range(times):
        page.get_by_role("button", name="merge", exact=True).click()


def shown_tokens(page):
    """How many tokens the picture says there are, and as many as it names."""
    label = page.locator(".afm-pieces").get_attribute("aria-label")
    return int(re.match(r"\d+", label)[0]), label.partition(": ")[2]


@pytest.mark.parametrize(("name", "text"), [("roses", ROSES), ("kannada", KANNADA)])
def test_each_merge_is_the_library_s(open_page, name, text):
    page = open_page(PairMerger({name: text}))
    assert shown_tokens(page)[0] == len(text.encode())
    for many in range(1, 6):
        first = page.get_by_role("listitem").first.get_attribute("aria-label")
        merge(page)
        tokenizer = train_bpe(text, 256 + many)
        assert shown_tokens(page)[0] == len(tokenizer.encode(text))
        left, right = (part.decode(errors="backslashreplace") for part in tokenizer.merges[-1])
        assert first.replace("␣", " ").startswith(f"{left} and {right}: ")
    assert page.locator(".afm-piece.afm-fresh").count() > 1


def test_step_back_and_to_the_end(open_page):
    page = open_page(PairMerger(SAMPLES, merges=5))
    five = shown_tokens(page)
    merge(page)
    assert shown_tokens(page) != five
    page.get_by_role("button", name="back").click()
    assert shown_tokens(page) == five
    page.get_by_role("slider", name="merges").focus()
    page.keyboard.press("End")
    assert "No pair occurs twice any more." in page.locator(".afm-reading").inner_text()
    assert page.get_by_role("button", name="merge", exact=True).is_disabled()
    assert "␣rosemary" in shown_tokens(page)[1]
    page.keyboard.press("Home")
    assert page.get_by_role("button", name="back").is_disabled()


def test_it_plays(open_page):
    page = open_page(PairMerger({"roses": "rose roses"}))
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # from here the clock goes by run_for alone
    page.get_by_role("button", name="play").click()
    assert page.get_by_role("button", name="pause").count() == 1
    page.clock.run_for(60_000)
    assert "any more" in page.locator(".afm-reading").inner_text()
    assert page.get_by_role("button", name="play").count() == 1


def test_the_reader_s_own_text(open_page):
    goal = Goal("Merge.", when=["bytes >= 64", "merges = 4", "tokens = 4"])
    page = open_page(PairMerger(SAMPLES, merges=3, goals=[goal]))
    page.get_by_label("your own text").fill("a" * 64)
    assert page.get_by_role("radio", name="your own").is_checked()
    assert shown_tokens(page)[0] == 64
    merge(page, 4)
    assert shown_tokens(page)[0] == 4
    assert page.locator(".afm-goal.afm-reached").count() == 1
    field = page.get_by_label("your own text")
    field.fill("beded")
    merge(page)
    field.focus()
    page.keyboard.press("Home")
    page.keyboard.type("em")
    assert field.input_value() == "embeded"
    page.get_by_role("radio", name="kannada").check()
    assert field.input_value() == KANNADA
    page.get_by_label("your own text").fill("")
    assert "Write a text" in page.locator(".afm-reading").inner_text()
    check_axe(page)


def test_a_link_sets_text_and_merges(open_page):
    page = open_page(PairMerger(SAMPLES, name="merger"))
    set_ = "(settings) => window.afmFigures.get('merger')[0].set(settings)"
    page.evaluate(set_, [["sample", "kannada"], ["merges", "9"]])
    assert shown_tokens(page)[0] == len(train_bpe(KANNADA, 265).encode(KANNADA))
    page.evaluate(set_, [["reset", ""]])
    assert shown_tokens(page)[0] == len(ROSES)
    assert page.get_by_role("radio", name="roses").is_checked()


def test_a_pair_that_is_pointed_at_is_marked_in_the_text(open_page):
    page = open_page(PairMerger(SAMPLES, merges=4))
    [before] = page.locator(".afm-pairs").first.locator(".afm-pair-text").all_text_contents()[:1]
    assert page.locator(".afm-partner").all_text_contents()[:2] == before.split(" + ")
    page.locator(".afm-pairs").first.focus()
    page.keyboard.press("ArrowDown")
    second = page.get_by_role("listitem").nth(1).get_attribute("aria-label").split(":")[0]
    marked = page.locator(".afm-partner").all_text_contents()
    assert " and ".join(marked[:2]) == second


def test_what_the_reader_writes_is_only_text(open_page):
    page = open_page(PairMerger({HOSTILE[0]: HOSTILE[0]}, merges=2))
    for text in HOSTILE[1:6]:
        page.get_by_label("your own text").fill(2 * text)
        merge(page)
        assert page.locator(".afm :is(img, b, script)").count() == 0
        check_fits(page)


def test_the_table_as_a_file(open_page):
    page = open_page(PairMerger(SAMPLES, merges=3))
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode())))
    assert rows[0] == ["merge", "left", "right", "token", "count"]
    assert rows[1:] == [
        ["1", "o", "s", "os", "5"], ["2", "r", "os", "ros", "5"], ["3", " ", "ros", " ros", "5"]
    ]  # fmt: skip
