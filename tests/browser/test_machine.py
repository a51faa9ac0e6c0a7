"""Machine in Chromium: it says what the library says, and follows the reader's hands at once."""

import re

import pytest
import torch
from figures import STORIES, make_machine, make_trained
from harness import check_axe, check_fits, download, each_look, pass_time, write_page

from transformer_lib.widgets import Goal, Machine


def settled(page, condition="true"):
    """Wait until the figure has an answer to what it shows now, of which the condition holds."""
    script = (
        "window.afmFigures?.get('m')?.map((figure) => figure.facts())"
        f".some((f) => f['probability .'] > 0 && ({condition}))"
    )
    page.wait_for_function(script)
    return page.evaluate("afmFigures.get('m')[0].facts()")


def chances(trained, text):
    ids = torch.tensor([trained.tokenizer.encode(text)])
    with torch.no_grad():
        return dict(
            zip(
                trained.tokenizer.vocabulary,
                trained.model(ids)[0, -1].softmax(-1).tolist(),
                strict=True,
            )
        )


def same(found, right):
    shown = {word: found[f"probability {word}"] for word in right}
    assert shown == pytest.approx(right, abs=1e-4)


def words(page):
    return page.get_by_role("list", name="The story").locator("bdi").all_text_contents()


def test_a_story_is_written_asked_and_taken_apart(open_page):
    trained, widget = make_machine(view="laboratory", bits=32, name="m")
    page = open_page(widget)
    same(settled(page), chances(trained, STORIES[0]))
    # a word from the list, an own sentence, a word that it does not know
    listed = page.get_by_role("list", name="What may come next")
    listed.get_by_role("button", name="mary ").click()
    text = STORIES[0] + " mary"
    same(settled(page, f"f.words === {len(text.split())}"), chances(trained, text))
    field = page.get_by_label("or write, and press Enter")
    field.fill("Gave roses to susan. mary eats")
    field.press("Enter")
    assert "does not know the word eats" in page.locator(".afm-machine-verdict").inner_text()
    field.fill("gave roses to susan.")
    field.press("Enter")
    text += " gave roses to susan ."
    same(settled(page, f"f.words === {len(text.split())}"), chances(trained, text))
    assert page.locator(".afm-machine-verdict").inner_text() == ""
    # a question
    page.get_by_role("button", name="roses ?").click()
    text += " who has roses ?"
    assert words(page) == text.split()
    found = settled(page, "f.asked === 1")
    settled(page, f"f.words === {len(text.split())}")
    same(found, right := chances(trained, text))
    assert found["moves"] == 1
    assert found["right"] == pytest.approx(right["susan"], abs=1e-4)
    # a head off by a click, and by the keyboard
    page.get_by_role("radio", name="switches it").check()
    page.get_by_role("option", name="block 1, head 2").click()
    width = trained.model.config.d_head
    kept = trained.model.blocks[0].attention.output.weight.detach().clone()
    trained.model.blocks[0].attention.output.weight.data[:, width : 2 * width] = 0
    changed = chances(trained, text)
    off = settled(page, f"f.off === 1 && f['probability mary'] !== {found['probability mary']}")
    same(off, changed)
    assert off["off heads"] == 1
    assert off["whole mary"] == pytest.approx(right["mary"], abs=1e-4)
    head = page.get_by_role("option", name=re.compile("^block 1, head 2,.*, switched off$"))
    head.press("Enter")
    same(settled(page, "f.off === 0 && f['probability mary'] === f['whole mary']"), right)
    trained.model.blocks[0].attention.output.weight.data.copy_(kept)
    # a vector of the other story, in which mary and susan have changed places
    cell = page.get_by_role("gridcell", name="block 2, ?")
    cell.last.click()
    page.get_by_role("button", name="put the other story's vector into yours").click()
    swap = {"mary": "susan", "susan": "mary"}
    other = " ".join(swap.get(word, word) for word in text.split())
    same(settled(page, "f.patched === 1 && f['probability mary'] !== f['whole mary']"),
         chances(trained, other))  # fmt: skip
    page.get_by_role("option", name="block 1, head 2").click()
    settled(page, "f.off === 1")
    said = "With vectors of the other story, without block 1, head 2, it says "
    assert page.locator(".afm-reading").inner_text().startswith(said)


def test_a_word_in_the_middle_leads_another_way_and_the_language_is_known(open_page):
    trained, widget = make_machine(view="story", name="m")
    page = open_page(widget)
    settled(page)
    page.get_by_role("list", name="The story").get_by_role("button").nth(2).click()
    page.locator(".afm-next-title").filter(has_text="after has").wait_for()
    page.get_by_role("list", name="What may come next").get_by_role("button", name="pens ").click()
    assert words(page) == ["<story>", "mary", "has", "pens"]
    field = page.get_by_label("or write, and press Enter")
    field.fill("gave gave")
    field.press("Enter")
    verdict = page.locator(".afm-machine-verdict")
    assert verdict.inner_text().startswith("Outside of its language: gave cannot come there")
    assert settled(page, "f.words === 6")["known"] == 0
    assert trained.model.config.vocabulary == len(trained.tokenizer.vocabulary)


def test_it_writes_until_it_is_stopped_and_never_more_than_it_can_read(open_page):
    page = open_page(make_machine(view="laboratory", name="m", story=1)[1])
    settled(page)
    page.get_by_role("slider", name="temperature").fill("0")
    page.get_by_role("button", name="let it write").click()
    settled(page, "f.words >= 9")
    page.get_by_role("button", name="stop").click()
    written = words(page)
    pass_time(page, 2000)  # longer than it pauses after a sentence
    assert words(page) == written
    assert written[: len(STORIES[1].split())] == STORIES[1].split()
    field = page.get_by_label("or write, and press Enter")
    field.fill(" ".join(["mary"] * (38 - len(written))))
    field.press("Enter")
    settled(page, "f.words === 38")
    page.get_by_role("button", name="let it write").click()
    page.get_by_role("button", name="stop").wait_for(state="detached")
    assert len(words(page)) == 40


def test_no_goal_is_reached_while_it_thinks(open_page):
    impossible = ["off = 1", "probability mary < 0.000000001"]
    goal = Goal("Make *mary* impossible.", when=impossible, hint="No head can do that.")
    page = open_page(make_machine(view="laboratory", name="m", goals=[goal])[1])
    settled(page)
    page.evaluate("afmFigures.get('m')[0].set([['off', 'block-1-head-1']])")
    assert settled(page, "f.off === 1")["probability mary"] > 1e-6
    assert page.get_by_text("Not reached yet:").count() == 1


@pytest.mark.parametrize("no", ["throw new Error('no')", "setTimeout(() => this.onerror())"])
def test_without_a_worker_the_page_computes_itself(open_page, no):
    trained, widget = make_machine(view="story", bits=32, name="m")
    block = f"<script>window.Worker = class {{ constructor() {{ {no}; }} }};</script>"
    same(settled(open_page(widget, before=block)), chances(trained, STORIES[0]))


@each_look
def test_fits_is_accessible_and_exports(open_page, theme, width):
    page = open_page(make_machine(view="laboratory", name="m")[1], theme=theme, width=width)
    settled(page)
    check_axe(page)
    check_fits(page)
    story, figure = page.locator(".afm-machine select").first, page.locator(".afm-machine")
    ends = [box["x"] + box["width"] for box in (story.bounding_box(), figure.bounding_box())]
    assert ends[0] < ends[1], "the list of stories is cut"
    first = page.get_by_role("option", name="token")
    first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    assert page.locator(".afm-details-title").inner_text() == "block 1, norm 1"
    lines = download(page, "CSV").decode("utf-8-sig").splitlines()
    assert len(lines) == len(STORIES[0].split()) + 1
    assert b"<image" in download(page, "SVG")


def test_drawing_panel_and_answer_fit_one_screen(open_page):
    """On the book's page, 688 pixels wide where the window has 1,100 to 1,280."""
    story = STORIES[0] + " mary gave roses to susan . who has roses ?"
    for part in ("block-1-head-1", "block-1-attention", "block-2-feed-forward", "output"):
        _, widget = make_machine(view="drawing", stories=[story], part=part, name="m")
        page = open_page(widget, width=1280)
        settled(page)
        page.add_style_tag(content="body { max-width: 712px !important; }")
        page.wait_for_function(
            """() => {
              const box = (name) => document.querySelector(`.afm-${name}`).getBoundingClientRect();
              const right = box("drawing").right;
              const areBeside = Math.min(box("details").left, box("part-of-next").left) >= right;
              return areBeside && box("machine").height <= 800 - 64;
            }"""
        )
        page.close()


def test_learned_positions_are_a_row_that_is_added(open_page):
    for kind, says, pluses in (("learned", "row 6 of P, added", 5), ("rotary", "told to every", 4)):
        trained = make_trained(positions=kind)
        options = {"view": "drawing", "part": "position", "word": 6}
        page = open_page(Machine(trained, STORIES, **options, name="m"))
        settled(page)
        parts = page.get_by_role("listbox", name="The parts of the machine")
        assert says in parts.get_by_role("option", selected=True).get_attribute("aria-label")
        assert parts.locator(".afm-drawing-plus").count() == pluses
        page.close()


def test_in_forced_colors_bars_and_frames_stay(browser, watched, tmp_path):
    _, widget = make_machine(view="drawing", part="block-1-head-1", name="m")
    path = write_page(tmp_path, widget)
    context = watched(browser.new_context(forced_colors="active"))
    page = context.new_page()
    page.goto(path.as_uri())
    settled(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    for selector in (".afm-next-bar", ".afm-key-bar"):
        script = f"getComputedStyle(document.querySelector('{selector}')).backgroundColor"
        assert page.evaluate(script) != page.evaluate(ground), selector
    script = "getComputedStyle(document.querySelector('.afm-token-share'), '::after')"
    assert page.evaluate(f"{script}.backgroundColor") != page.evaluate(ground)
    frame = "getComputedStyle(document.querySelector('.afm-token-chip[aria-pressed=true]'))"
    assert page.evaluate(f"{frame}.outlineStyle") == "solid"
    context.close()


def test_a_story_is_one_tab_stop_and_arrow_keys_walk_it(open_page):
    _, widget = make_machine(view="drawing", part="block-1-head-1", name="m")
    page = open_page(widget)
    settled(page)
    stops = page.locator(".afm-token-chip[tabindex='0']")
    assert stops.count() == 1
    last = len(words(page)) - 1
    stops.focus()
    page.keyboard.press("ArrowLeft")
    settled(page)
    chosen = page.locator(".afm-token-chip[aria-pressed='true']")
    page.wait_for_function(
        f"document.querySelectorAll('.afm-token-chip')[{last - 1}].ariaPressed === 'true'"
    )
    assert chosen.evaluate("node => node === document.activeElement")
    assert stops.count() == 1
    page.keyboard.press("Home")
    page.wait_for_function("document.querySelector('.afm-token-chip').ariaPressed === 'true'")


def test_without_weights_keys_on_its_parts_do_nothing(open_page):
    _, widget = make_machine(view="laboratory", name="m")
    widget.set_trait("_packed", b"none")
    page = open_page(widget)
    page.locator(".afm-drawing-holder [role=option]").first.click()
    page.keyboard.press("ArrowDown")
