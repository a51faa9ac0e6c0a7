"""The step scrubber in Chromium: mouse, touch and keyboard, and the library's own numbers."""

import re

import torch
from harness import (
    HOSTILE,
    check_axe,
    check_fits,
    check_hostile,
    download,
    mount_all,
    pass_time,
    write_page,
)
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
    choose(page, "2", "show head")
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


def matrix(page, name):
    """A matrix of the strip that is not the step's own, by its name; sizes come after it."""
    return page.get_by_role("img", name=re.compile(f"^{re.escape(name)}: "))


def cell_of(page, name, row, column, columns):
    """The middle of a cell of a matrix that is not the step's own."""
    box = matrix(page, name).locator(".afm-box").bounding_box()
    rows = int(matrix(page, name).get_attribute("aria-label").split(": ")[1].split(" by ")[0])
    return (
        box["x"] + (column + 0.5) * box["width"] / columns,
        box["y"] + (row + 0.5) * box["height"] / rows,
    )


def lit(page):
    """The frames around operands, as [color's role, x, y, width, height]."""
    return page.locator(".afm-over .afm-outline-from").evaluate_all(
        """(all) => all.map((one) => {
          const { x, y, width, height } = one.getBoundingClientRect();
          return [/afm-from-(\\w+)/.exec(one.className.baseVal)[1], x, y, width, height];
        })"""
    )


def test_a_number_shows_what_it_was_made_of(open_page):
    page = open_page(widget())
    x, places = sentence()
    q, k, _ = attention().project((x + places)[None])
    choose(page, "QKᵀ", "step")
    page.get_by_role("gridcell", name=re.compile("^scores, head 1, roses, to:")).click()
    (one, two), (three, four) = q[0, 0, 2].tolist(), k[0, 0, 3].tolist()
    text = f"{one:.2f} · {three:.2f} + {two:.2f} · {four:.2f} = {one * three + two * four:.2f}"
    expect(page.locator(".afm-arithmetic")).to_have_text(text.replace("-", "−"))
    expect(page.locator(".afm-code [aria-current=step]")).to_have_text("scores = q @ k.mT")
    assert page.locator(".afm-code li:visible").count() == 1
    expect(page.locator(".afm-reading")).to_contain_text("The score of roses for to in head 1")
    # Row 2 of Q and row 3 of K, each as wide as its matrix.
    for (role, left, top, wide, high), (name, row) in zip(
        lit(page), (("Q, head 1", 2), ("K, head 1", 3)), strict=True
    ):
        assert role == {"Q": "query", "K": "key"}[name[0]]
        box = matrix(page, name).locator(".afm-box").bounding_box()
        assert abs(left - box["x"]) < 4
        assert abs(wide - box["width"]) < 6
        assert abs(top + high / 2 - cell_of(page, name, row, 0, 2)[1]) < 3
    assert page.locator(".afm-under .afm-join").count() == 2


STAY = ["X", "W_Q", "W_K", "W_V", "Q", "K", "V", "scores", "scaled scores", "mask"]
STAY += ["masked scores", "weights", "Z", "W_O"]


def test_matrices_stay_and_the_next_one_stands_beside_them(open_page):
    page = open_page(widget(), width=720)
    shown = 0
    heights = set()
    for step in ("Q", "K", "V", "QKᵀ", "÷√dₖ", "mask", "softmax", "·V", "concat", "·W_O"):
        choose(page, step, "step")
        names = page.locator(".afm-matrix [role=grid], .afm-matrix[role=img]").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('aria-label'))"
        )
        assert len(names) > shown, step
        shown = len(names)
        heights.add(page.locator("figure").bounding_box()["height"])
        # The result is in view, as the last one.
        grid = page.locator("[role=grid]").bounding_box()
        view = page.locator(".afm-strip-scroll").bounding_box()
        assert grid["x"] >= view["x"] - 1, step
        assert grid["x"] + grid["width"] <= view["x"] + view["width"] + 1, step
    assert page.locator(".afm-cut").count() == 2  # where the heads meet in Z, and in W_O
    kinds = {re.split(r"[,:]", name)[0] for name in names}
    assert kinds == {*STAY, "Y"}
    assert len(heights) == 1, "the page jumps from step to step"


def test_any_number_of_any_matrix_can_be_pointed_at_and_chosen(open_page):
    page = open_page(widget())
    choose(page, "QKᵀ", "step")
    page.get_by_role("gridcell", name=re.compile("roses, to:")).click()
    said, arithmetic = page.locator(".afm-reading"), page.locator(".afm-arithmetic")
    before, first = said.inner_text(), lit(page)
    page.get_by_role("gridcell", name=re.compile("mary, mary:")).hover()
    other = lit(page)
    assert len(first) == len(other) == 2
    assert all(a != b for a, b in zip(first, other, strict=True))
    # In K, it is the key's own row and column that light up, and its own line of code.
    page.mouse.move(*cell_of(page, "K, head 1", 4, 1, 2))
    expect(said).to_contain_text("susan can be found in head 1 by component 1 of its key")
    expect(page.locator(".afm-code [aria-current=step]")).to_contain_text("k = split_heads")
    assert arithmetic.inner_text() != before
    assert [role for role, *_ in lit(page)] == ["plain", "key"]
    page.mouse.move(2, 2)
    assert said.inner_text() == before
    assert lit(page) == first
    # A click leads there, also from a small one.
    page.mouse.click(*cell_of(page, "V, head 1", 1, 0, 2))
    expect(page.get_by_role("radio", name="V", exact=True)).to_be_checked()
    expect(page.locator("[role=gridcell][aria-selected=true]")).to_have_attribute(
        "aria-label", re.compile("^V, head 1, gave, 0:")
    )
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"


MOVING = "document.querySelector('.afm-strip').getAnimations({ subtree: true }).length"


def test_a_matrix_grows_out_of_its_operands_but_not_for_who_wants_none(
    open_page, browser, watched, tmp_path
):
    page = open_page(widget())
    page.get_by_role("button", name="next").click()
    assert page.evaluate(MOVING) == 0
    context = watched(browser.new_context(reduced_motion="no-preference"))
    page = context.new_page()
    page.goto(write_page(tmp_path, widget(), name="moving.html").as_uri())
    mount_all(page)
    assert page.evaluate(MOVING) == 0
    animations = context.new_cdp_session(page)
    animations.send("Animation.enable")
    choose(page, "QKᵀ", "step")
    page.wait_for_function(f"{MOVING} === 0")
    animations.send("Animation.setPlaybackRate", {"playbackRate": 0.001})
    choose(page, "÷√dₖ", "step")
    assert page.evaluate(MOVING) > 2
    assert page.locator(".afm-flying > g").count() == 1
    choose(page, "mask", "step")  # before the other has arrived
    assert page.locator(".afm-flying > g").count() == 2
    animations.send("Animation.setPlaybackRate", {"playbackRate": 1})
    page.wait_for_function(f"{MOVING} === 0")
    assert page.locator(".afm-flying > *").count() == 0
    names = page.locator(".afm-matrix[aria-label]").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('aria-label'))"
    )
    assert len(names) == len(set(names))
    context.close()


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
        "aria-label", re.compile("^Z, head 1, roses, 1:")
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
    expect(page.locator(".afm-reading")).to_contain_text("The score of to for mary")


def test_a_held_finger_marks_what_the_mouse_marks(open_page):
    page = open_page(widget(), width=360, touch=True)
    choose(page, "QKᵀ", "step")
    cells = [
        page.get_by_role("gridcell", name=re.compile(name)) for name in ("to, to:", "roses, to:")
    ]
    cells[0].scroll_into_view_if_needed()
    boxes = [cell.bounding_box() for cell in cells]
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    client = page.context.new_cdp_session(page)

    def touch(kind, *points):
        places = [{"x": x, "y": y} for x, y in points]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    touch("touchStart", middles[0])
    pass_time(page, 500)
    touch("touchMove", middles[1])
    expect(page.locator(".afm-reading")).to_contain_text("The score of roses for to in head 1")
    assert page.locator(".afm-tip").is_visible()  # the number, above the finger
    marked = lit(page)
    touch("touchEnd")
    expect(page.locator("[role=gridcell][aria-selected=true]")).to_have_attribute(
        "aria-label", re.compile("roses, to:")
    )
    assert lit(page) == marked


def test_on_paper_the_whole_strip_is_there(open_page):
    page = open_page(widget())
    choose(page, "V", "step")
    page.emulate_media(media="print")
    page.locator(".afm-paper").wait_for(state="visible")
    names = page.locator(".afm-paper [role=img]").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('aria-label').split(/[,:]/)[0])"
    )
    assert set(names) == {*STAY, "Y"}
    assert not page.locator(".afm-strip-scroll").is_visible()
    assert page.locator(".afm-code li:visible").count() == 10
    page.emulate_media(media="screen")
    page.locator(".afm-paper").wait_for(state="detached")
    assert page.locator(".afm-strip-scroll").is_visible()


def test_two_orders_are_told_apart_or_not(open_page):
    page = open_page(widget())
    page.get_by_role("gridcell", name=re.compile("gave, roses:")).click()
    comparison = page.locator(".afm-comparison")
    expect(comparison).to_contain_text("What gave takes home")
    expect(comparison).to_contain_text("two different vectors")
    page.get_by_role("checkbox", name="places in keys").uncheck()
    expect(comparison).to_contain_text("the same vector")


def test_axe_finds_nothing(open_page):
    page = open_page(widget(), theme="dark", width=360)
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
    page.get_by_role("checkbox", name="causal mask").check()
    choose(page, "mask", "step")
    first = download(page, "CSV").decode().splitlines()[1]
    assert [float(n) for n in first.split(",")[2:]] == [-torch.inf] * 4
