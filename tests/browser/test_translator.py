"""Translator in Chromium: it writes what the library writes, in a worker and without one."""

import pytest
import torch
from harness import check_axe, check_fits, download, each_look
from translators import EXAMPLES, make_translator

from transformer_lib.beam import translate
from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.interpret.maps import attention_maps


def chips(page, label):
    """The first line of each word in a row."""
    row = page.get_by_role("list", name=label)
    return row.locator("bdi").all_text_contents()


def translation(page):
    page.locator(".afm-reading").filter(has_text="was written").wait_for()
    return chips(page, "The translation")


def expected(model, tokenizer, source, **options):
    ids = translate(model, torch.tensor([tokenizer.source.encode(source)]), **options)[0]
    return tokenizer.target.decode(ids).split()


@pytest.mark.parametrize("width", [1, 3])
def test_it_writes_what_the_library_writes_and_shows_its_attention(open_page, width):
    model, tokenizer, widget = make_translator(width=width, bits=32)
    page = open_page(widget)
    source = KannadaGrammar().parse(EXAMPLES[0]).source
    words = translation(page)
    assert words == expected(model, tokenizer, source, width=width)
    assert chips(page, "The sentence in Kannada") == source.split()
    ids = tokenizer.target.encode(" ".join(words))
    inputs = torch.tensor([tokenizer.source.encode(source)]), torch.tensor([[1, *ids]])
    maps = attention_maps(model, *inputs)["decoder.1.cross_attention"][0]
    page.get_by_label("layer").select_option("layer 1")
    page.get_by_label("attention of").select_option("head 1")
    labels = page.get_by_role("gridcell").evaluate_all("(all) => all.map((c) => c.ariaLabel)")
    shown = [float(label.rpartition(": ")[2]) for label in labels]
    assert shown == pytest.approx(maps[1, : len(words)].flatten().tolist(), abs=0.0051)


def test_words_are_chosen_and_written_and_the_ending_follows_the_subject(open_page):
    model, tokenizer, widget = make_translator(bits=32)
    page = open_page(widget)
    translation(page)
    page.get_by_label("subject").select_option("avanu · He")
    field = page.get_by_label("or write")
    assert field.input_value().split()[-1] == "koṭṭanu"
    page.get_by_label("ending").select_option("she")
    verdict = page.locator(".afm-verdict")
    verdict.filter(has_text="never seen such a sentence").wait_for()
    assert "says she; the subject is avanu (He). Take koṭṭanu" in verdict.inner_text()
    field.fill("Hannannu tindalu.")  # without marks, and with a full stop
    field.press("Enter")
    source = KannadaGrammar().parse("haṇṇannu tiṁdaḷu").source
    page.wait_for_function(
        f"document.querySelector('.afm-chips bdi').textContent === '{source.split()[0]}'"
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


def test_the_verdict_is_the_grammars(open_page):
    page = open_page(make_translator()[2])
    translation(page)
    right = KannadaGrammar().parse(EXAMPLES[0]).target
    assert page.locator(".afm-verdict").inner_text() == f"✗ Right would be: {right}."


def test_without_a_worker_the_page_computes_itself(open_page):
    model, tokenizer, widget = make_translator(bits=32)
    block = "<script>window.Worker = class { constructor() { throw new Error('no'); } };</script>"
    page = open_page(widget, before=block)
    source = KannadaGrammar().parse(EXAMPLES[0]).source
    assert translation(page) == expected(model, tokenizer, source)


@each_look
def test_fits_is_accessible_and_exports(open_page, theme, width):
    page = open_page(make_translator()[2], theme=theme, width=width)
    words = translation(page)
    check_axe(page)
    check_fits(page)
    last = page.get_by_role("list", name="The translation").get_by_role("button").first
    last.focus()
    page.keyboard.press("Enter")
    assert last.get_attribute("aria-pressed") == "true"
    lines = download(page, "CSV").decode("utf-8-sig").splitlines()
    assert len(lines) == len(words) + 1
