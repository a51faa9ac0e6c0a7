"""Translator in Chromium: it writes what the library writes, in a worker and without one."""

import csv
import io

import pytest
import torch
from figures import EXAMPLES, make_translator
from harness import check_axe, check_fits, download, each_look, pass_time

from transformer_lib.beam import translate
from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.interpret.maps import attention_maps

RIBBONS = "(all) => all.map((one) => Number(one.getAttribute('stroke-width')))"


def words_of(page, label):
    """The words of a row."""
    return page.get_by_role("list", name=label).locator("bdi").all_text_contents()


def translation(page):
    """The whole of it, once it is written; the verdict comes with the last word."""
    page.locator(".afm-verdict").filter(has_text="lowest probability").wait_for()
    return words_of(page, "The translation")


def expected(model, tokenizer, source, **options):
    ids = translate(model, torch.tensor([tokenizer.source.encode(source)]), **options)[0]
    return tokenizer.target.decode(ids).split()


def table(page):
    return list(csv.reader(io.StringIO(download(page, "CSV").decode("utf-8-sig"))))


@pytest.mark.parametrize("width", [1, 3])
def test_it_writes_what_the_library_writes_and_shows_its_attention(open_page, width):
    model, tokenizer, widget = make_translator(width=width, bits=32, more=True)
    page = open_page(widget)
    source = KannadaGrammar().parse(EXAMPLES[0]).source
    words = translation(page)
    assert words == expected(model, tokenizer, source, width=width)
    menus = page.get_by_role("list", name="The sentence in Kannada")
    assert menus.locator("bdi").all_text_contents() == source.split()
    ids = tokenizer.target.encode(" ".join(words))
    inputs = torch.tensor([tokenizer.source.encode(source)]), torch.tensor([[1, *ids]])
    maps = attention_maps(model, *inputs)["decoder.1.cross_attention"][0]
    page.get_by_label("layer").select_option("layer 2")
    page.get_by_label("ribbons of").select_option("head 2")
    rows = [[float(cell) for cell in row[2:]] for row in table(page)[1:]]
    right = maps[1, : len(words)]
    torch.testing.assert_close(torch.tensor(rows), right, atol=1e-4, rtol=1e-4)
    page.get_by_role("list", name="The translation").get_by_role("button").nth(0).click()
    drawn = page.locator(".afm-ribbon-chosen").evaluate_all(RIBBONS)
    assert sorted(drawn) == pytest.approx(
        sorted(26 * w for w in right[0].tolist() if w >= 0.02), abs=0.01
    )


def test_the_next_words_are_the_most_probable(open_page):
    model, tokenizer, widget = make_translator(bits=32)
    page = open_page(widget)
    words = translation(page)
    source = torch.tensor([tokenizer.source.encode(KannadaGrammar().parse(EXAMPLES[0]).source)])
    ids = tokenizer.target.encode(" ".join(words))
    chances = model(source, torch.tensor([[1, *ids]]))[0].softmax(dim=-1)
    pressed = page.get_by_role("list", name="The translation").get_by_role("button")
    pressed.nth(1).click()
    shown = page.locator(".afm-scene-candidate").all_text_contents()[::2]
    names = tokenizer.target.vocabulary
    wanted = ["(the end)" if i == 2 else names[i] for i in chances[1].topk(3).indices.tolist()]
    assert shown == wanted
    assert pressed.nth(1).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="one word more").click()  # begins anew
    assert pressed.count() == 1
    page.get_by_role("button", name="one word more").click()
    assert pressed.count() == 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # on paper, all of it
    assert pressed.count() == len(words)
    stop = page.get_by_role("list", name="The translation").locator("button[tabindex='0']")
    assert stop.count() == 1  # the others by the arrow keys
    stop.focus()
    page.keyboard.press("Home")
    assert pressed.nth(0).get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_a_word_of_another_example_is_shown_when_it_is_there(open_page):
    model, tokenizer, widget = make_translator(bits=32, name="t")
    page = open_page(widget)
    translation(page)
    page.evaluate("afmFigures.get('t')[0].set([['example', '1'], ['word', '0']])")
    source = KannadaGrammar().parse(EXAMPLES[1]).source
    page.locator(".afm-reading").filter(has_text="To write").wait_for()
    assert translation(page) == expected(model, tokenizer, source)
    pressed = page.get_by_role("list", name="The translation").get_by_role("button")
    assert pressed.nth(0).get_attribute("aria-pressed") == "true"


def test_words_are_changed_left_out_added_and_the_ending_follows_the_subject(open_page):
    page = open_page(make_translator(bits=32, more=True)[2])
    translation(page)
    field = page.get_by_label("or write")
    mary = page.get_by_label("mēri, Mary: put another word")
    mary.focus()
    mary.select_option("avanu")
    focused = "document.activeElement.ariaLabel"
    assert page.evaluate(focused) == "avanu, He: put another word"
    assert field.input_value().split() == ["avanu", *EXAMPLES[0].split()[1:3], "koṭṭanu"]
    page.get_by_label("koṭṭanu, he gave: put another word").select_option("koṭṭaḷu")
    verdict = page.locator(".afm-verdict")
    verdict.filter(has_text="never seen such a sentence").wait_for()
    assert "says she; the subject is avanu (He). Take koṭṭanu" in verdict.inner_text()
    page.get_by_label("avanu, He: put another word").select_option("-")
    assert field.input_value().split()[0] == EXAMPLES[0].split()[1]
    page.get_by_label("Add a word").select_option("ninne")
    assert field.input_value().split()[0] == "ninne"
    before = field.input_value().split()
    page.get_by_role("button", name="shuffle the words").click()
    after = field.input_value().split()
    assert after != before
    assert sorted(after) == sorted(before)


def test_a_sentence_can_be_written(open_page):
    model, tokenizer, widget = make_translator(bits=32, more=True)
    page = open_page(widget)
    translation(page)
    field, verdict = page.get_by_label("or write"), page.locator(".afm-verdict")
    field.fill("Hannannu tindalu.")  # without marks, and with a full stop
    field.press("Enter")
    source = KannadaGrammar().parse("haṇṇannu tiṁdaḷu").source
    page.locator(".afm-scene-list bdi").get_by_text(source.split()[0], exact=True).wait_for(
        state="attached"
    )
    assert translation(page) == expected(model, tokenizer, source)
    field.fill("mery hannannu tindalu")
    field.press("Enter")
    assert "I do not know the word mery. Did you mean mēri" in verdict.inner_text()
    field.fill("mēri " * 17)
    field.press("Enter")
    assert "These are 17 words, and the model reads at most 16." in verdict.inner_text()
    example = page.get_by_label("example")
    assert example.input_value() == "0"  # none of them, so that the first can be chosen once more
    example.select_option(index=1)
    assert translation(page) == expected(
        model, tokenizer, KannadaGrammar().parse(EXAMPLES[0]).source
    )
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="shuffle the words").click()
    page.wait_for_function("document.querySelector('.afm-verdict').textContent === ''")
    field.fill("mery")
    field.press("Enter")
    pass_time(page, 1500)  # while it would write three words more
    assert "I do not know the word mery" in verdict.inner_text()


def test_the_verdict_is_the_grammars(open_page):
    page = open_page(make_translator()[2])
    translation(page)
    right = KannadaGrammar().parse(EXAMPLES[0]).target
    assert (
        page.locator(".afm-verdict")
        .inner_text()
        .startswith(f"✗ The right translation is: {right}.")
    )


def test_without_a_worker_the_page_computes_itself(open_page):
    model, tokenizer, widget = make_translator(bits=32)
    block = "<script>window.Worker = class { constructor() { throw new Error('no'); } };</script>"
    page = open_page(widget, before=block)
    source = KannadaGrammar().parse(EXAMPLES[0]).source
    assert translation(page) == expected(model, tokenizer, source)


@each_look
def test_fits_is_accessible_and_exports(open_page, theme, width):
    page = open_page(make_translator(more=width < 1000)[2], theme=theme, width=width)
    words = translation(page)
    check_axe(page)
    check_fits(page)
    last = page.get_by_role("list", name="The translation").get_by_role("button").first
    last.focus()
    page.keyboard.press("Enter")
    assert last.get_attribute("aria-pressed") == "true"
    assert [row[0] for row in table(page)[1:]] == words
