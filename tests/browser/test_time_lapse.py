"""TimeLapse in Chromium: the model of each moment, equal to the library's."""

import pytest
import torch
from figures import make_lapse, make_timeline

from transformer_lib.data.markov import read

FACTS = "window.afmFigures?.get('time')?.[0].facts()"
SEEN = f"""() => {{
  window.seen = new Set();
  const look = () => {{ seen.add({FACTS}.step); requestAnimationFrame(look); }};
  look();
}}"""


def opened(open_page, widget, **options):
    page = open_page(widget, **options)
    page.wait_for_function(f"!Number.isNaN({FACTS}?.['off bigram'] ?? NaN)")
    return page


@pytest.mark.parametrize("step", [0, 20])
def test_the_model_of_a_moment_expects_what_the_library_expects(open_page, step):
    ids = [0, 1, 2, 0, 1, 1, 0]
    widget = make_lapse(bits=32, step=step, name="time")
    widget.ids = ids
    page = opened(open_page, widget)
    with torch.no_grad():
        logits = make_timeline().at(step)(torch.tensor([ids]))
    expected = logits[0, -1].double().softmax(dim=-1)
    cells = page.get_by_role("grid", name="What each reader expects next").get_by_role("gridcell")
    said = [cells.nth(9 + i).get_attribute("aria-label") for i in range(3)]
    assert [float(text.split(": ")[1]) for text in said] == pytest.approx(expected, abs=0.006)
    reader = read(torch.tensor([[*ids, 0]]), 3, "bigram")[0, -1]
    off = page.evaluate(FACTS)["off bigram"]
    assert off == pytest.approx((reader - expected).abs().sum().item() / 2, abs=1e-4)


def test_time_is_moved_by_the_slider_the_curve_and_by_itself(open_page):
    page = opened(open_page, make_lapse(name="time"))
    slider = page.get_by_role("slider", name="after step")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FACTS)["step"] == 10
    assert slider.get_attribute("aria-valuetext") == "10"
    box = page.locator(".afm-lapse").bounding_box()
    page.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 60)
    assert page.evaluate(FACTS)["step"] == 40
    page.evaluate(SEEN)
    page.get_by_role("button", name="let time run").click()
    page.wait_for_function(f"{FACTS}.step === 40 && seen.has(10)")
    assert page.get_by_role("button", name="let time run").is_visible()


def test_another_chain_and_one_of_the_readers_own(open_page):
    page = opened(open_page, make_lapse(name="time"))
    field = page.get_by_role("textbox")
    first = field.input_value()
    assert len(first) == 12
    page.get_by_role("button", name="another chain").click()
    assert field.input_value() != first
    field.fill("abcx")
    field.press("Enter")
    assert (
        page.locator(".afm-reading").inner_text() == "“x” is not one of the letters; write a, b, c."
    )
    field.fill("abcab")
    field.press("Enter")
    assert "At letter 5" in page.locator(".afm-reading").inner_text()
    field.fill("cab")
    page.evaluate("afmFigures.get('time')[0].set([['step', '10']])")
    assert field.input_value() == "cab"
    field.fill("abcab")
    page.get_by_role("radio", name="2: b").click()
    assert "At letter 2" in page.locator(".afm-reading").inner_text()
    page.keyboard.press("ArrowRight")
    assert "At letter 3" in page.locator(".afm-reading").inner_text()
