"""SamplingLab in Chromium: its bars say what the library leaves, by mouse, touch and keys."""

import re

import pytest
import torch
from harness import HOSTILE, check_axe, check_fits, check_hostile, download, each_look

from transformer_lib.sampling import filter_logits
from transformer_lib.widgets import SamplingLab

WORDS = ["roses", "books", "pens", "cups", "\n", " ", "gave"]
LOGITS = torch.tensor(
    [[2.0, 1.6, 1.1, 0.3, -0.4, -1.0, -3.0], [-3.0, -2.0, 0.4, 0.1, 4.0, 0.2, 1.0]]
)
CONTEXTS = ["mary gave ", "the end.\n"]


def lab(**options):
    return SamplingLab(LOGITS, WORDS, CONTEXTS, **options)


def lines(page):
    """{token: (own %, now % or what cuts it, how often drawn)}, as the list says them."""
    found = {}
    items = page.get_by_role("listitem")
    for i in range(items.count()):
        label = items.nth(i).get_attribute("aria-label")
        name, rest = re.fullmatch(r"(.*): the model's own (.*)", label).groups()
        own, now, _, drawn = re.fullmatch(
            r"([<>\d. ]+) %, (?:now |cut by )(.*?)(, drawn (\d+) of \d+)?", rest
        ).groups()
        found[name] = (own, now, int(drawn or 0))
    return found


def assert_right(page, context=0, **settings):
    """The probabilities on the page are those that the library leaves."""
    left = filter_logits(LOGITS[context], **settings).softmax(-1)
    own = LOGITS[context].softmax(-1)
    found = lines(page)
    shown = [word.replace("\n", "↵").replace(" ", "␣") for word in WORDS]
    assert list(found) == [shown[i] for i in own.argsort(descending=True)]
    for i, word in enumerate(shown):
        is_own, now, _ = found[word]
        assert float(is_own.strip("<> ")) == pytest.approx(100 * own[i].item(), abs=0.51)
        if left[i] == 0:
            assert now in ("top-k", "top-p", "min-p", "greedy decoding")
        else:
            assert float(now.strip("<> %")) == pytest.approx(100 * left[i].item(), abs=0.51)
    return found


def test_first_state_teaches(open_page):
    page = open_page(lab())
    found = assert_right(page, temperature=0.8, top_p=0.9)
    assert found["gave"][1] == "top-p"
    said = page.locator(".afm-reading").inner_text()
    assert "3 of 7 tokens remain after “mary gave␣”" in said
    left = filter_logits(LOGITS[0], temperature=0.8, top_p=0.9).softmax(-1)
    entropy = torch.special.entr(left).sum()
    assert f"an entropy of {entropy:.2f} nats" in said
    assert f"a choice among {entropy.exp():.1f} equally likely ones" in said


def test_every_control_by_keyboard(open_page):
    page = open_page(lab(temperature=1.0, top_p=None))
    assert_right(page)
    page.get_by_role("slider", name="top-k").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert assert_right(page, top_k=2)["pens"][1] == "top-k"
    page.get_by_role("slider", name="top-p").focus()
    for _ in range(45):
        page.keyboard.press("ArrowLeft")
    assert assert_right(page, top_k=2, top_p=0.55)["books"][1] == "top-p"
    page.get_by_role("slider", name="temperature").focus()
    page.keyboard.press("Home")
    assert_right(page, temperature=0)
    assert "greedy decoding takes roses, always" in page.locator(".afm-reading").inner_text()
    page.get_by_role("combobox", name="after").select_option(index=1)
    assert_right(page, context=1, temperature=0)
    page.get_by_role("button", name="start again").click()
    assert_right(page)


def test_only_the_sliders_that_are_offered(open_page):
    page = open_page(lab(sliders=["temperature"]))
    assert page.get_by_role("slider").count() == 1
    assert page.get_by_role("slider", name="temperature").is_visible()
    assert "top-p" not in page.locator(".afm-caption").inner_text()
    marks = "".join(page.locator(".afm-sampling text").all_text_contents())
    assert "what is drawn from" in marks
    assert "running total" not in marks
    assert not page.locator(".afm-total").last.is_visible()


def test_min_p_asks_how_a_token_compares_with_the_best(open_page):
    page = open_page(lab(temperature=1.0, top_p=None), touch=True, width=360)
    slider = page.get_by_role("slider", name="min-p")
    slider.focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    found = assert_right(page, min_p=0.3)
    assert [now for _, now, _ in found.values()].count("min-p") == 4
    # Every bar that remains reaches the line.
    longest = page.get_by_role("listitem").first.locator(".afm-now")
    start, width = longest.evaluate("bar => [bar.x, bar.width].map(one => one.baseVal.value)")
    line = page.locator("line.afm-least")
    assert line.evaluate("line => line.x1.baseVal.value") == pytest.approx(
        start + 0.3 * width, abs=0.1
    )
    assert page.get_by_text("0.30 of the largest", exact=True).is_visible()
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert "only one token remains" in page.locator(".afm-reading").inner_text()
    page.get_by_role("slider", name="temperature").fill("0")
    assert not line.is_visible()


def test_draws_are_counted_against_the_probabilities(open_page):
    page = open_page(lab(temperature=1.0, top_k=3, top_p=None))
    page.get_by_role("button", name="draw 1", exact=True).click()
    assert sum(drawn for *_, drawn in lines(page).values()) == 1
    for _ in range(10):
        page.get_by_role("button", name="draw 100").click()
    found = lines(page)
    counts = torch.tensor([float(found[word][2]) for word in WORDS[:3]])
    assert counts.sum() == 1001
    right = filter_logits(LOGITS[0], top_k=3).softmax(-1)[:3]
    torch.testing.assert_close(counts / 1001, right, atol=0.05, rtol=0)
    said = page.locator(".afm-reading").inner_text()
    assert f"of 1001 draws, {counts[0]:.0f} gave roses" in said
    page.get_by_role("slider", name="temperature").fill("2")
    assert sum(drawn for *_, drawn in lines(page).values()) == 0, "counts of another distribution"


def test_draws_repeat_after_a_reset(open_page):
    page = open_page(lab(seed=5))
    page.get_by_role("button", name="draw 100").click()
    first = lines(page)
    page.get_by_role("button", name="draw 100").click()
    assert lines(page) != first
    page.get_by_role("button", name="start again").click()
    page.get_by_role("button", name="draw 100").click()
    assert lines(page) == first


def test_a_large_vocabulary_ends_in_one_line(open_page):
    logits = torch.randn(1, 500, generator=torch.Generator().manual_seed(1))
    words = [f"w{i}" for i in range(500)]
    page = open_page(SamplingLab(logits, words, ["so"], temperature=1.0, top_k=40, top_p=None))
    found = lines(page)
    assert len(found) == 16
    left = filter_logits(logits[0], top_k=40).softmax(-1).sort(descending=True).values
    now = re.fullmatch(r"(.*) % \(25 of them remain\)", found["485 others"][1])[1]
    assert float(now) == pytest.approx(100 * left[15:].sum().item(), abs=0.51)


def test_what_cuts_the_others_is_named(open_page):
    logits = torch.tensor([[9.0, 1.0, *[0.0] * 40]])
    words = [f"w{i}" for i in range(42)]
    options = {"temperature": 1.5, "top_k": 25, "top_p": 0.5}
    page = open_page(SamplingLab(logits, words, ["so"], **options))
    assert page.get_by_role("slider", name="top-k").get_attribute("aria-valuetext") == "25"
    found = page.get_by_role("listitem").last
    assert found.get_attribute("aria-label").endswith("cut by top-p and top-k")
    assert page.get_by_text("top-p, k", exact=True).is_visible()
    page.get_by_role("slider", name="top-p").fill("0.99")
    page.get_by_role("slider", name="min-p").fill("0.1")
    assert found.get_attribute("aria-label").endswith("cut by top-p, top-k and min-p")
    assert page.get_by_text("several", exact=True).is_visible()


def test_almost_certain_is_not_all(open_page):
    page = open_page(SamplingLab(torch.tensor([[9.0, 1.0, 0.0]]), list("abc"), ["so"], top_p=None))
    for heat, text in {"0.5": "> 99.9 %", "1": "> 99.9 %", "1.5": "99.3 %"}.items():
        page.get_by_role("slider", name="temperature").fill(heat)
        assert f"is drawn with probability {text}" in page.locator(".afm-reading").inner_text()
    page.get_by_role("slider", name="temperature").fill("0.05")
    now = [page.get_by_role("listitem").nth(i).get_attribute("aria-label") for i in range(3)]
    assert [re.search(r"now (.*)", label)[1] for label in now] == ["> 99.9 %", *["< 0.1 %"] * 2]


def test_drawing_ends_at_its_limit(open_page):
    full = lab()
    full.draws = [0] * 99_990
    page = open_page(full)
    page.get_by_role("button", name="draw 100").click()
    assert lines(page)["roses"][2] >= 99_990
    assert page.get_by_role("button", name="draw 100").is_disabled()
    assert page.get_by_role("button", name="draw 1", exact=True).is_disabled()
    page.get_by_role("button", name="start again").click()
    assert page.get_by_role("button", name="draw 1", exact=True).is_enabled()


def test_the_list_of_contexts_shows_their_ends_on_a_narrow_page(open_page):
    long = "mary gave roses to susan . john gave books to peter . who has roses ?"
    page = open_page(SamplingLab(LOGITS[:1], WORDS, [long]), width=320)
    choice = page.get_by_role("combobox", name="after")
    text = choice.locator("option").inner_text()
    assert text.startswith("…")
    assert text.endswith("who has roses ?")
    assert len(text) < 34
    page.set_viewport_size({"width": 900, "height": 900})
    page.wait_for_function("document.querySelector('option').text.length > 40")


def test_touch(open_page):
    page = open_page(lab(temperature=1.0, top_p=None), touch=True, width=360)
    box = page.get_by_role("slider", name="temperature").bounding_box()
    page.touchscreen.tap(box["x"] + 4, box["y"] + box["height"] / 2)
    assert_right(page, temperature=0)
    page.get_by_role("button", name="draw 100").tap()
    assert lines(page)["roses"][2] == 100


def test_downloads_are_what_is_shown(open_page):
    page = open_page(lab())
    picture = download(page, "SVG").decode("utf-8")
    assert picture.startswith("<svg")
    assert "roses" in picture
    rows = [row.split(",") for row in download(page, "CSV").decode("utf-8").splitlines()[1:]]
    left = filter_logits(LOGITS[0].double(), temperature=0.8, top_p=0.9).softmax(-1)
    shown = [float(row[5]) for row in rows if row[0] in WORDS]
    order = [WORDS.index(row[0]) for row in rows if row[0] in WORDS]
    assert len(order) >= 5
    assert shown == pytest.approx(left[order].tolist(), abs=1e-6)


@each_look
def test_fits_and_is_accessible_in_both_themes(open_page, theme, width):
    page = open_page(lab(), theme=theme, width=width)
    assert page.locator("figure.afm").get_attribute("data-afm-theme") == theme
    page.get_by_role("button", name="draw 100").click()
    check_fits(page)
    check_axe(page)


def test_hostile_tokens_and_contexts_stay_text(open_page):
    page = open_page(
        SamplingLab(torch.zeros(len(HOSTILE), len(HOSTILE)), HOSTILE, HOSTILE), width=360
    )
    check_hostile(page)
