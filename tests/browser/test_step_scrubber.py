"""The step scrubber in Chromium: mouse, touch and keyboard, and the library's own numbers."""

import re

import pytest
import torch
from harness import HOSTILE, check_axe, check_fits, check_hostile, download, repaint_ms
from playwright.sync_api import expect

from transformer_lib.attention import MultiHeadAttention, attention_weights
from transformer_lib.widgets import StepScrubber

WORDS = ["mary", "gave", "roses", "to", "susan"]
SWAPPED = [4, 1, 2, 3, 0]


def attention(n_heads=2):
    torch.manual_seed(0)
    module = MultiHeadAttention(4, 2, bias=False).requires_grad_(False)
    module.n_heads = module.n_kv_heads = n_heads
    module.d_head = 4 // n_heads
    for parameter in module.parameters():
        parameter.mul_(3)
    return module


def sentence():
    source = torch.Generator().manual_seed(1)
    x, places = torch.randn(5, 4, generator=source), torch.zeros(5, 4)
    places[:, 3] = torch.linspace(2, -2, 5)
    return x, places


def widget(**options):
    x, places = sentence()
    return StepScrubber(WORDS, x, attention(), places=places, order=SWAPPED, **options)


def numbers(page):
    cells = page.locator("[role=gridcell]").evaluate_all(
        "(cells) => cells.map((cell) => cell.getAttribute('aria-label'))"
    )
    values = [re.search(r"([−\d.]+)$", cell)[1].replace("−", "-") for cell in cells]
    return torch.tensor([float(value) for value in values])


def choose(page, name, group):
    page.get_by_role("group", name=group).get_by_role("radio", name=name, exact=True).check()


def shown_equals(page, expected):
    torch.testing.assert_close(numbers(page), expected.flatten(), atol=0.0051, rtol=0)


def test_the_numbers_are_the_librarys_for_heads_places_order_and_mask(open_page):
    page = open_page(widget())
    x, places = sentence()

    def weights(x, heads=2, **options):
        q, k, _ = attention(heads).project(x[None])
        return attention_weights(q, k, **options)[0]

    shown_equals(page, weights(x + places)[0])
    choose(page, "1", "show head")
    shown_equals(page, weights(x + places)[1])
    page.get_by_role("checkbox", name="shuffle words").check()
    shown_equals(page, weights(x[SWAPPED] + places)[1])
    page.get_by_role("checkbox", name="places in keys").uncheck()
    shown_equals(page, weights(x[SWAPPED])[1])
    choose(page, "1", "heads")
    shown_equals(page, weights(x[SWAPPED], heads=1)[0])
    choose(page, "·W_O", "step")
    shown_equals(page, attention(1)(x[SWAPPED][None])[0])
    page.get_by_role("checkbox", name="causal mask").check()
    shown_equals(page, attention(1)(x[SWAPPED][None], causal=True)[0])
    choose(page, "softmax", "step")
    assert page.locator("[role=gridcell][aria-label$=masked]").count() == 10


def test_a_number_shows_what_it_was_made_of(open_page):
    page = open_page(widget())
    x, places = sentence()
    q, k, _ = attention().project((x + places)[None])
    choose(page, "QKᵀ", "step")
    page.get_by_role("gridcell", name=re.compile("^scores, head 0, roses, to:")).click()
    (one, two), (three, four) = q[0, 0, 2].tolist(), k[0, 0, 3].tolist()
    text = f"{one:.2f} · {three:.2f} + {two:.2f} · {four:.2f} = {one * three + two * four:.2f}"
    expect(page.locator(".afm-arithmetic")).to_have_text(text.replace("-", "−"))
    expect(page.locator(".afm-code [aria-current=step]")).to_have_text("scores = q @ k.mT")
    assert page.locator(".afm-operand .afm-from[visibility=visible]").count() == 2
    outline = page.locator(".afm-operand .afm-from").first.bounding_box()
    cell = page.get_by_role("gridcell", name=re.compile("roses, to:")).bounding_box()
    assert abs(outline["x"] - cell["x"]) < 4  # the operand above stands in the cell's own column
    expect(page.locator(".afm-reading")).to_contain_text("roses scores to in head 0")


def test_over_a_number_its_row_and_column_are_marked(open_page):
    page = open_page(widget())
    choose(page, "QKᵀ", "step")
    places = """() => [...document.querySelectorAll(".afm-operand .afm-from[visibility=visible]")]
      .map((node) => [node.getAttribute("x"), node.getAttribute("y")].join())"""
    said = page.locator(".afm-reading")
    before, first = said.inner_text(), page.evaluate(places)
    cells = page.locator(".afm-result").get_by_role("gridcell")
    cells.nth(0).hover()
    one = page.evaluate(places)
    cells.last.hover()
    other = page.evaluate(places)
    assert len(one) == len(other) == 2
    assert all(a != b for a, b in zip(one, other, strict=True))
    page.mouse.move(2, 2)
    assert said.inner_text() == before
    assert page.evaluate(places) == first


def test_keyboard_alone_walks_steps_and_numbers(open_page):
    page = open_page(widget())
    page.get_by_role("group", name="step").get_by_role("radio", name="softmax").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".afm-code [aria-current=step]")).to_have_text("z = weights @ v")
    page.locator("[role=gridcell][tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".afm-reading")).to_contain_text("roses receives")
    expect(page.locator("[role=gridcell][aria-selected=true]")).to_have_attribute(
        "aria-label", re.compile("^z, head 0, roses, 1:")
    )
    page.get_by_role("button", name="next").press("Enter")
    expect(page.locator(".afm-code [aria-current=step]")).to_have_text("z = merge_heads(z)")


def test_touch_on_a_narrow_page(open_page):
    page = open_page(widget(), width=360, touch=True)
    check_fits(page)
    for step in ("mask", "·W_O", "Q", "concat", "QKᵀ"):
        page.get_by_role("group", name="step").get_by_role("radio", name=step, exact=True).tap()
        check_fits(page)
    page.get_by_role("gridcell", name=re.compile("to, mary:")).tap()
    expect(page.locator(".afm-reading")).to_contain_text("to scores mary")


def test_two_orders_are_told_apart_or_not(open_page):
    page = open_page(widget())
    page.get_by_role("gridcell", name=re.compile("gave, roses:")).click()
    comparison = page.locator(".afm-comparison")
    expect(comparison).to_contain_text("What gave takes home")
    expect(comparison).to_contain_text("two different vectors")
    page.get_by_role("checkbox", name="places in keys").uncheck()
    expect(comparison).to_contain_text("the same vector")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_page, theme):
    page = open_page(widget(), theme=theme)
    check_axe(page)
    choose(page, "mask", "step")
    page.get_by_role("checkbox", name="causal mask").check()
    check_axe(page)


def test_hostile_tokens_stay_text(open_page):
    x = torch.zeros(len(HOSTILE), 4)
    page = open_page(
        StepScrubber(HOSTILE, x, attention(), features=HOSTILE[:4], output_features=HOSTILE[4:])
    )
    for step in ("Q", "QKᵀ", "·W_O"):
        choose(page, step, "step")
        check_hostile(page)


def test_csv_holds_the_step_shown(open_page):
    page = open_page(widget())
    choose(page, "·W_O", "step")
    lines = download(page, "CSV").decode().splitlines()
    x, places = sentence()
    y = attention()((x + places)[None])[0]
    assert lines[0] == ",0,1,2,3"
    assert lines[2].startswith("gave,")
    torch.testing.assert_close(
        torch.tensor([float(n) for n in lines[2].split(",")[1:]]), y[1], atol=1e-6, rtol=1e-6
    )


@pytest.mark.soak
def test_repaint_time_at_32_tokens(open_page, report):
    module = MultiHeadAttention(32, 4).requires_grad_(False)
    page = open_page(StepScrubber([f"w{i}" for i in range(32)], torch.randn(32, 32), module))
    radios = "[...document.querySelectorAll('fieldset')[{group}].querySelectorAll('input')]"
    for name, group, count in (("step", 0, 10), ("head", 2, 4)):
        action = f"(n) => {radios.format(group=group)}[n % {count}].click()"
        choose(page, "softmax", "step")  # where each head has numbers of its own
        times = repaint_ms(page, action)
        report(f"step scrubber, 32 tokens, another {name}: repaint ms", times)
        assert times["median"] > 0
    down = "new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true })"
    action = f"(n) => document.querySelectorAll('[role=gridcell]')[37 * n].dispatchEvent({down})"
    report("step scrubber, 32 tokens, another number: repaint ms", repaint_ms(page, action))
