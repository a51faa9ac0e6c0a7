"""TextCutter in Chromium: GPT-2's vocabulary comes when it is asked for, and cuts as it should."""

import csv
import io
import re
from pathlib import Path

import pytest
from extensions import figures
from harness import HOSTILE, STATE, check_axe, check_fits, download
from playwright.sync_api import expect

from transformer_lib.bpe import train_bpe
from transformer_lib.widgets import Goal, TextCutter

ROSES = "mary gave roses to susan"
KANNADA = "ಮೇರಿ ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು."
SAMPLES = {"roses": ROSES, "Kannada": KANNADA, "emoji": "👩‍🚀🎉"}
OWN = train_bpe("mary gave roses to susan. rosemary gave mary a rose.", 262)
ASK = "Cut it with GPT-2's vocabulary"


@pytest.fixture
def open_lazily(open_page, tmp_path):
    """The page as the book has it, with the vocabulary in a file beside it."""

    def open_(widget, **options):
        page = open_page(widget, **options)
        path = tmp_path / "page0.html"
        held = re.compile(rf'(<script type="{re.escape(STATE)}">)(.*?)(</script>)', re.DOTALL)
        [(before, state, after)] = held.findall(path.read_text("utf-8"))
        lean, files = figures.lean(state)
        [(name, file)] = files.items()
        (tmp_path / name).write_text(file, encoding="ascii")
        html = path.read_text("utf-8").replace(before + state + after, before + lean + after)
        assert len(html) < 0.5 * len(path.read_text("utf-8"))
        path.write_text(html, encoding="utf-8")
        loaded = []
        page.on("request", lambda request: loaded.append(Path(request.url).name))
        page.goto(path.as_uri())
        page.evaluate("window.afm.mountAll()")
        return page, loaded, name

    return open_


def theirs(page):
    return page.locator(".afm-vocabulary").first.locator(".afm-pieces")


def ours(page):
    return page.locator(".afm-vocabulary").last.locator(".afm-pieces")


def ids(pieces):
    return [int(number) for number in pieces.locator(".afm-piece-number").all_text_contents()]


def test_the_vocabulary_is_loaded_when_it_is_asked_for(open_lazily):
    page, loaded, name = open_lazily(TextCutter(SAMPLES, OWN))
    assert ids(ours(page)) == OWN.encode(ROSES)
    assert name not in loaded
    page.get_by_role("button", name=ASK).click()
    named = "6 tokens: mary 6874 · ␣gave 2921 · ␣roses 42152 · ␣to 284 · ␣sus 2341 · an 272"
    expect(theirs(page)).to_have_attribute("aria-label", named)
    assert loaded.count(name) == 1
    page.get_by_label("your own text").fill("Hello world")
    assert ids(theirs(page)) == [15496, 995]
    assert loaded.count(name) == 1
    check_axe(page)


@pytest.mark.parametrize("how", ["type", "sample", "link", "link to the same"])
def test_whoever_changes_the_text_asks_for_it(open_lazily, how):
    page, loaded, name = open_lazily(TextCutter(SAMPLES, OWN, name="cutter"))
    if how == "type":
        page.get_by_label("your own text").fill(KANNADA)
    elif how == "sample":
        page.get_by_role("radio", name="Kannada").check()
    else:
        set_ = "(settings) => window.afmFigures.get('cutter')[0].set(settings)"
        page.evaluate(set_, [["sample", "roses" if "same" in how else "Kannada"]])
    text = ROSES if "same" in how else KANNADA
    expect(theirs(page)).to_be_visible()
    assert name in loaded
    assert ids(ours(page)) == OWN.encode(text)
    assert (len(ids(theirs(page))) > len(text)) == (text == KANNADA)


def test_a_notebook_has_it_in_the_trait(open_page):
    page = open_page(TextCutter(SAMPLES, OWN, label="mine"))
    expect(theirs(page)).to_be_visible()
    titles = page.locator(".afm-part-title")
    expect(titles.first).to_have_text(re.compile(r"^GPT-2 \(50,257 tokens\): 6 here$"))
    expect(titles.last).to_have_text(f"mine (262 tokens): {len(OWN.encode(ROSES))} here")
    assert page.get_by_role("button", name=ASK).count() == 0


def test_where_there_is_none_a_sentence_says_so(open_page):
    cutter = TextCutter(SAMPLES, OWN)
    cutter._vocabulary = b""
    page = open_page(cutter)
    expect(page.get_by_role("status").first).to_contain_text("is not on this computer")
    assert ids(ours(page)) == OWN.encode(ROSES)
    check_axe(page)


def test_goals_wait_for_the_vocabulary(open_lazily):
    goal = Goal("Few.", when=["characters >= 30", "tokens <= 3"])
    page, *_ = open_lazily(TextCutter(SAMPLES, OWN, goals=[goal]))
    assert page.locator(".afm-goal.afm-reached").count() == 0
    page.get_by_label("your own text").fill("-" * 32)
    expect(page.locator(".afm-goal.afm-reached")).to_have_count(1)


def test_what_the_reader_writes_is_only_text(open_page):
    page = open_page(TextCutter({HOSTILE[0]: HOSTILE[0]}, OWN))
    expect(theirs(page)).to_be_visible()
    for text in (*HOSTILE[1:5], HOSTILE[5][:1000], HOSTILE[7], ""):
        page.get_by_label("your own text").fill(text)
        assert page.locator(".afm :is(img, b, script)").count() == 0
        check_fits(page)
    assert "Write a text" in page.locator(".afm-reading").inner_text()


def test_the_table_as_a_file(open_page):
    page = open_page(TextCutter({"hello": "Hello world"}, OWN, label="mine"))
    expect(theirs(page)).to_be_visible()
    rows = list(csv.reader(io.StringIO(download(page, "CSV").decode())))
    assert rows[:3] == [["vocabulary", "token", "id"], ["GPT-2", "Hello", "15496"],
                        ["GPT-2", " world", "995"]]  # fmt: skip
    assert [int(id_) for who, _, id_ in rows if who == "mine"] == OWN.encode("Hello world")


def test_looks(open_page):
    page = open_page(TextCutter(SAMPLES, OWN), theme="dark", width=360)
    expect(theirs(page)).to_be_visible()
    for name in SAMPLES:
        page.get_by_role("radio", name=name).check()
        check_axe(page)
        check_fits(page)
