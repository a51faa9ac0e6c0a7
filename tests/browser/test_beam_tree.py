"""BeamTree in Chromium: by mouse, touch and keyboard, with the library's numbers."""

import math
import re

import pytest
import torch
from harness import HOSTILE, check_hostile, download
from models import FEW, make_few

from transformer_lib.beam import beam_search
from transformer_lib.sampling import next_logits
from transformer_lib.widgets import BeamTree, Goal

WORDS, PROMPT, END, N_TOKENS = ["mary", "gave", ".", "roses", "it"], [3, 1, 4], 2, 6


def made(words=WORDS, **options):
    """A model, and the figure of its beam search."""
    torch.manual_seed(5)
    model = make_few()
    assert len(words) == FEW
    score = lambda texts: next_logits(model, texts)  # noqa: E731
    return model, BeamTree(score, PROMPT, words, end=END, n_tokens=N_TOKENS, **options)


def assert_right(page, model, width, penalty=0.0):
    """The table holds the library's texts, in its order, and what they are judged by."""
    options = {"width": width, "end": END, "length_penalty": penalty}
    texts, scores = beam_search(model, torch.tensor([PROMPT]), N_TOKENS, **options)
    right = []
    for text, score in zip(texts[0, :, len(PROMPT) :].tolist(), scores[0].tolist(), strict=True):
        length = text.index(END) + 1 if END in text else len(text)
        ids = text[: length - 1]
        log = score * ((5 + length) / 6) ** penalty
        right.append((" ".join(WORDS[i] for i in [*ids, END]), log, score))
    rows = page.locator("tbody tr").all()
    rows = [row.locator("td").all_inner_texts() for row in rows]
    found = [row for row in rows if row[0]]
    assert [row[1].removesuffix(" (greedy)") for row in found] == [text for text, _, _ in right]
    numbers = [[float(cell.replace("−", "-")) for cell in row[2:]] for row in found]
    for row, (_, log, score) in zip(numbers, right, strict=True):
        assert row[: len(row) - bool(penalty)] == pytest.approx(
            [log, score][: 1 + bool(penalty)], abs=0.0051
        )
    if not penalty:
        last = page.locator('[role="treeitem"].afm-beam-way').last
        assert last.get_attribute("aria-label").split(", ")[2:4] == ["kept", "and ended"]
        reading = page.locator(".afm-reading").inner_text()
        told = float(re.search(r"with the probability ([\d.]+) %", reading)[1])
        assert told == pytest.approx(100 * math.exp(right[0][1]), abs=0.51)


def test_first_state_is_the_whole_search_and_the_sliders_change_it(open_page):
    model, shown = made()
    page = open_page(shown)
    assert_right(page, model, 1)
    for width in (2, 5):
        page.get_by_role("slider", name="width").fill(str(width))
        assert_right(page, model, width)
    page.get_by_role("slider", name="length penalty").fill("1.5")
    assert_right(page, model, 5, 1.5)


def test_the_search_starts_again_and_goes_step_by_step(open_page):
    page = open_page(made(width=3)[1])
    nodes = page.locator('[role="treeitem"]:not(.afm-beam-later)')
    everything = nodes.count()
    page.get_by_role("button", name="start again").click()
    assert nodes.count() == 0
    assert "Nothing is written yet." in page.locator(".afm-reading").inner_text()
    assert page.locator("tbody td:first-child").all_inner_texts() == [""]  # greedy's text alone
    page.get_by_role("button", name="next step").click()
    kept = page.locator(".afm-beam-node.afm-beam-kept:not(.afm-beam-later)")
    assert kept.count() == 3
    assert "of 5 candidates" in page.locator(".afm-reading").inner_text()
    while page.get_by_role("button", name="next step").count():
        page.get_by_role("button", name="next step").click()
    assert nodes.count() == everything


def test_the_keyboard_walks_through_the_tree_and_steps_on(open_page):
    page = open_page(made(width=3, step=1)[1])
    focused = "document.activeElement.getAttribute('aria-label')"
    page.locator('[role="treeitem"][tabindex="0"]').focus()
    first = page.evaluate(focused)
    assert ", step 1, " in first
    page.keyboard.press("ArrowRight")  # there is no further column yet, so there is one now
    assert ", step 2, " in page.evaluate(focused)
    assert page.locator(".afm-beam-node.afm-beam-way").count() == 2
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == first
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == first
    assert "together" in page.locator(".afm-reading").inner_text()


def test_mouse_and_finger_mark_a_way(open_page):
    _, shown = made(width=3)
    page = open_page(shown)
    node = page.locator(".afm-beam-node.afm-beam-cut").first
    reading = page.locator(".afm-reading")
    before = reading.inner_text()
    node.hover()
    assert "It is cut." in reading.inner_text()
    page.mouse.move(2, 2)
    assert reading.inner_text() == before
    page = open_page(shown, touch=True, width=360)
    page.locator(".afm-beam-node.afm-beam-ended").last.tap()
    assert "It has ended." in page.locator(".afm-reading").inner_text()
    page.get_by_role("slider", name="width").fill("2")  # another search: its result is told
    assert " writes" in page.locator(".afm-reading").inner_text()


# After each word, what may follow: greedy begins with *the*, and *a dog* is the best text.
WORLD = {
    "": {"the": 0.6, "a": 0.4},
    "the": {"cat": 0.28, "sun": 0.26, "man": 0.24, "dog": 0.22},
    "a": {"dog": 0.97, "cat": 0.03},
    **{noun: {".": 1.0} for noun in ("cat", "sun", "man", "dog")},
    ".": {".": 1.0},
}


def test_a_goal_is_reached_where_the_beam_finds_what_greedy_misses(open_page):
    words = list(WORLD)
    chances = [[WORLD[word].get(then, 1e-9) for then in words] for word in words]
    table = torch.tensor(chances, dtype=torch.float64).log()
    goal = Goal("Beat greedy.", when=["probability > greedy", "width <= 2"])
    shown = BeamTree(
        lambda texts: table[[ids[-1] for ids in texts]],
        [0],
        words,
        end=words.index("."),
        n_tokens=4,
        name="world",
        goals=[goal],
    )
    page = open_page(shown)
    assert "the cat ." in page.locator(".afm-reading").inner_text()
    page.get_by_role("slider", name="width").fill("2")
    page.wait_for_selector(".afm-reached")
    assert "a dog ." in page.locator(".afm-reading").inner_text()
    facts = page.evaluate("afmFigures.get('world')[0].facts()")
    assert facts["probability"] == pytest.approx(0.4 * 0.97, abs=1e-6)
    assert facts["greedy"] == facts["narrower"] == pytest.approx(0.6 * 0.28, abs=1e-6)
    assert (facts["words"], facts["rank"], facts["sentences"]) == (3, 1, 2)


def test_csv_is_what_is_shown(open_page):
    page = open_page(made(width=2, step=2)[1])
    rows = download(page, "CSV").decode("utf-8").splitlines()
    assert rows[0] == "step,beginning,token,ln P of token,ln P,what becomes of it"
    nodes = page.locator('[role="treeitem"]:not(.afm-beam-later)')
    assert len(rows) - 1 == nodes.count()
    assert {row.split(",")[0] for row in rows[1:]} == {"1", "2"}


def test_hostile_words_stay_text(open_page):
    words = list(dict.fromkeys(HOSTILE))
    check_hostile(open_page(made((words * 5)[:FEW], width=3)[1], width=360))
