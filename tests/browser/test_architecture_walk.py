"""ArchitectureWalk in Chromium: its numbers are the library's, and every part opens."""

import pytest
import torch
from figures import EXAMPLES, make_walk
from harness import check_axe, check_fits, download, pass_time

from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.encoder_decoder import BEGIN, END
from transformer_lib.interpret.maps import attention_maps

CROSS = "decoder.1.cross_attention"


def numbers(page, label):
    """What the cells of a grid say, in order."""
    grid = page.get_by_role("grid", name=label)
    labels = grid.get_by_role("gridcell").evaluate_all("(all) => all.map((c) => c.ariaLabel)")
    return [float(text.rpartition(": ")[2].replace("−", "-")) for text in labels]


def inputs(model, tokenizer, sentence):
    """The source and what the decoder reads when it has written its translation."""
    source = torch.tensor([tokenizer.source.encode(KannadaGrammar().parse(sentence).source)])
    ids = [BEGIN]
    while len(ids) < model.config.context:
        with torch.no_grad():
            ids.append(model(source, torch.tensor([ids]))[0, -1].argmax().item())
        if ids[-1] == END:
            return source, torch.tensor([ids[:-1]])
    return source, torch.tensor([ids])


def test_its_numbers_are_the_librarys(open_page):
    model, tokenizer, widget = make_walk(part=CROSS)
    page = open_page(widget)
    page.locator(".afm-reading").filter(has_text="may attend to 4 of 4 words").wait_for()
    source, target = inputs(model, tokenizer, EXAMPLES[0])
    weights = attention_maps(model, source, target)[CROSS][0]
    for head in range(2):
        found = numbers(page, f"Weights of head {head + 1}")
        assert found == pytest.approx(weights[head].flatten().tolist(), abs=0.0051)
    given = []
    model.get_submodule(CROSS).register_forward_hook(lambda *_, **__: given.append(_[2]))
    with torch.no_grad():
        memory = model.encode(source)
        model(source, target)
    page.get_by_text("What goes in and out").click()
    shown = numbers(page, "out: what will be added")
    assert shown == pytest.approx(given[-1].flatten().tolist(), abs=0.0051)
    shown = numbers(page, "in: the memory")
    assert shown == pytest.approx(memory.flatten().tolist(), abs=0.0051)
    counted = sum(p.numel() for p in model.get_submodule(CROSS).parameters())
    assert page.get_by_text(f"{counted:,}", exact=True).is_visible()


def test_parts_open_by_mouse_keyboard_and_buttons(open_page):
    _, _, widget = make_walk()
    page = open_page(widget)
    title = page.locator(".afm-walk-title")
    box = page.get_by_role("button", name="Decoder, block 1: masked attention")
    box.click()
    assert title.inner_text() == "Decoder, block 1: masked attention"
    assert "<s> → " in page.locator(".afm-reading").inner_text()
    assert "may attend to 1 of" in page.locator(".afm-reading").inner_text()
    box.press("ArrowDown")
    assert title.inner_text() == "Decoder, block 1: add, norm"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.ariaLabel") == "Decoder, block 1: cross-attention"
    page.get_by_role("button", name="next part").click()
    page.get_by_role("button", name="next part").click()
    assert title.inner_text() == "Decoder, block 1: feed-forward"
    page.get_by_role("button", name="Output").click()
    assert page.locator(".afm-walk-panel .afm-walk-chances li").count() == 5
    assert page.get_by_role("button", name="next part").is_disabled()
    page.get_by_role("combobox", name="sentence").select_option(EXAMPLES[1])
    page.get_by_role("button", name="Encoder, block 1: attention").click()
    assert len(numbers(page, "Weights of head 1")) == 4  # of two words
    page.get_by_text("Its code").click()
    assert "attend(x)" in page.get_by_label("The code of this part").inner_text()


def test_it_writes_a_word_at_each_press(open_page):
    model, tokenizer, widget = make_walk(part=CROSS, written=0)
    page = open_page(widget)
    words = page.locator(".afm-walk-writing .afm-token-chip")
    write = page.get_by_role("button", name="write", exact=True)
    likeliest = page.locator(".afm-walk-writing li", has=page.locator(".afm-walk-bar")).first
    likeliest.wait_for()
    source, ids = inputs(model, tokenizer, EXAMPLES[0])
    with torch.no_grad():
        chances = model(source, ids)[0].softmax(-1)
    vocabulary = tokenizer.target.vocabulary
    for row, chance in enumerate(chances):
        best = vocabulary[chance.argmax()]
        assert words.all_inner_texts() == [vocabulary[i] for i in ids[0, : row + 1]]
        assert likeliest.inner_text().split()[0] == best
        label = f"{vocabulary[ids[0, row]]} → {best}"
        assert page.locator(".afm-reading").inner_text().startswith(label)
        assert len(numbers(page, "Weights of head 1")) == 4 * (row + 1)
        if write.is_enabled():
            write.click()
    assert write.is_disabled()
    page.get_by_role("button", name="begin anew").click()
    assert words.all_inner_texts() == ["<s>"]
    page.get_by_role("button", name="write all").click()
    assert write.is_disabled()
    page.get_by_role("combobox", name="sentence").select_option(EXAMPLES[1])
    assert write.is_disabled()  # what is whole stays whole
    page.get_by_role("button", name="begin anew").click()
    page.get_by_role("combobox", name="sentence").select_option(EXAMPLES[0])
    assert words.all_inner_texts() == ["<s>"]


def test_on_a_phone_a_tap_on_a_part_brings_its_numbers_into_sight(open_page):
    page = open_page(make_walk()[2], touch=True, width=390)
    page.get_by_role("button", name="Decoder, block 1: masked attention").tap()
    page.wait_for_function(
        "document.querySelector('.afm-walk-title').getBoundingClientRect().top < innerHeight - 60"
    )
    page.get_by_role("button", name="part before").tap()
    assert page.locator(".afm-walk-title").inner_text() == "Decoder: embedding"


def test_fits_is_accessible_and_exports(open_page):
    page = open_page(make_walk(part=CROSS)[2], theme="dark", width=360)
    page.locator(".afm-reading").filter(has_text="may attend").wait_for()
    check_axe(page)
    check_fits(page)
    lines = download(page, "CSV").decode("utf-8-sig").splitlines()
    assert lines[1].startswith("in 1,<s>,")
    page.get_by_role("button", name="Output").click()
    check_axe(page)
    check_fits(page)


def test_without_weights_there_is_nothing_to_write(open_page):
    _, _, widget = make_walk()
    widget.set_trait("_packed", b"none")
    page = open_page(widget)
    assert page.get_by_role("button", name="write", exact=True).is_disabled()
    while not page.context.wrong:
        pass_time(page, 10)
    assert "the weights begin with none" in page.context.wrong.pop()
