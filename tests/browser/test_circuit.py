"""Circuit in Chromium: what is drawn is what the library computes."""

import pytest
import torch

from transformer_lib.interpret.handmade import SHARP, induction_gpt, slots
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.widgets import Circuit

LETTERS = "abcde"
FACTS = "window.afmFigures?.get('c')?.[0].facts()"


def opened(open_page, text="c a d b e c a", **options):
    widget = Circuit(induction_gpt(5, 12), slots(5, 12), letters=LETTERS, text=text, name="c")
    page = open_page(widget, **options)
    page.wait_for_function(f"{FACTS}?.sure > 0")
    return page


def cells(page, which):
    found = page.get_by_role("grid", name=which).get_by_role("gridcell")
    return [float(text.split(": ")[1]) for text in found.evaluate_all(
        "all => all.map((one) => one.ariaLabel).filter((one) => /: [0-9]/.test(one))"
    )]  # fmt: skip


def column(page, at):
    """The texts of one letter's slots, row after row of the drawing."""
    return page.locator(".afm-flow-column").nth(at).locator("text").all_text_contents()


def test_the_maps_and_the_stream_are_the_librarys(open_page):
    page = opened(open_page)
    ids = torch.tensor([[LETTERS.index(one) for one in "cadbeca"]])
    machine = induction_gpt(5, 12)
    for name, maps in zip(
        ("The first head", "The second head"), attention_maps(machine, ids).values(), strict=True
    ):
        seen = [row[: t + 1] for t, row in enumerate(maps[0, 0].tolist())]
        assert cells(page, name) == pytest.approx([w for row in seen for w in row], abs=0.006)
    # Of the last letter: its token in three rows, what came before in two, what it says in one.
    assert column(page, 6) == ["a", "a", "c", "a", "c", "d"]
    facts = page.evaluate(FACTS)
    assert (facts["at"], facts["length"], facts["looks"]) == (6, 7, 2)
    assert facts["sure"] == pytest.approx(machine(ids)[0, -1].softmax(-1).max().item(), abs=1e-5)


def test_a_letter_is_chosen_by_mouse_and_by_keyboard(open_page):
    page = opened(open_page)
    page.locator(".afm-flow-column").nth(5).click()
    assert (
        "At place 2 the first head has noted: c came before."
        in page.locator(".afm-reading").inner_text()
    )
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(FACTS)["at"] == 4
    assert "no single place fits" in page.locator(".afm-reading").inner_text()
    page.keyboard.press("Home")
    assert "Nothing came before the first letter" in page.locator(".afm-reading").inner_text()
    page.get_by_role("grid", name="The second head").get_by_role("gridcell").first.focus()
    for at in range(1, 5):
        page.keyboard.press("ArrowDown")
        assert page.evaluate(FACTS)["at"] == at
    page.locator(".afm-flow-column").first.click()
    assert page.locator(".afm-map [aria-selected=true]").count() == 0


def test_a_text_of_the_readers_own(open_page):
    page = opened(open_page)
    field = page.get_by_role("textbox")
    field.fill("a b a c a")
    field.press("Enter")
    facts = page.evaluate(FACTS)
    assert (facts["length"], facts["at"]) == (5, 4)
    assert 0.4 < facts["sure"] < 0.6
    field.fill("a x")
    field.press("Enter")
    assert "“x” is not one of the letters" in page.locator(".afm-reading").inner_text()


def test_what_fits_what_is_in_the_matrices(open_page):
    page = opened(open_page)
    page.get_by_role("radio", name="what fits what").check()
    scores = torch.tensor(cells(page, "The second head")).view(5, 5)
    assert scores.equal(SHARP * torch.eye(5))
    scores = torch.tensor(cells(page, "The first head")).view(7, 7)
    assert scores.equal(SHARP * torch.diag(torch.ones(6), -1))
