"""Every page of the book in Chromium: offline, from file://, light and dark, wide and narrow."""

import pytest
from anatomy import LONGEST_LINE
from built import BUILD, READ, weight
from harness import AXE_LOOKS, THIN, axe, check_fits, mount_all, next_frame

MOST_BYTES = {"with widgets": 700_000, "without widgets": 300_000}  # gzipped
CHAPTER = "chapters/01-self-attention.html"
CODE = "div.cell_input pre"
EXAMPLE = "chapters/07-positional-encodings.html"  # of the form
CHECKED = "✓ checked"
# The lines of code in sight that are wider than the page.
CUT = """() => [...document.querySelectorAll("div.cell_input pre")]
  .filter((code) => code.checkVisibility() && code.scrollWidth > code.clientWidth + 1)
  .map((code) => code.textContent.split("\\n").sort((a, b) => b.length - a.length)[0])"""
# The texts of figures that do not grow with the browser's font size (drawings have a size of their
# own), and those that are too small as they are.
FIXED = """() => {
  const texts = [...document.querySelectorAll(".afm *")].filter((node) =>
    [...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim()));
  const size = (node) => parseFloat(getComputedStyle(node).fontSize);
  const before = texts.map(size);
  document.documentElement.style.fontSize = "200%";
  const after = texts.map(size);
  document.documentElement.style.fontSize = "";
  const isFixed = (node, at) =>
    Math.abs(after[at] / before[at] - (node.closest("svg") ? 1 : 2)) > 0.01;
  return texts.filter(isFixed).map((node) => node.outerHTML.slice(0, 80));
}"""
SMALL = """() => [...document.querySelectorAll(".afm *")].filter((node) => {
  if (![...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim())) return false;
  const drawing = node.closest("svg[viewBox]");
  const scale = drawing ? drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width : 1;
  return node.checkVisibility() && scale * parseFloat(getComputedStyle(node).fontSize) < 10;
}).map((node) => node.outerHTML.slice(0, 80))"""
# Firefox warns of it; this makes an error of it in any browser.
NAMELESS = """() => {
  const get = document.getElementById.bind(document);
  document.getElementById = (id) =>
    id ? get(id) : console.error("an element of no name is asked for");
}"""

# Each phrase is pressed where it is being read, in the middle of the window: is something told, and
# are the phrase and what has changed in sight afterwards? In one go, since a click is done when it
# returns. Where a figure stands does not depend on what it is set to: unless `all`, one phrase of a
# paragraph is pressed for each figure.
PRESS_EACH = """async (all) => {
  const seen = (box, inside) => {
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const top = document.elementFromPoint(Math.min(Math.max(x, 1), innerWidth - 2), y);
    return Boolean(top) && inside.contains(top);
  };
  const frame = () => new Promise((again) => requestAnimationFrame(() => setTimeout(again)));
  // A window of another width is laid out in steps: the theme's columns, then the figures in them.
  for (let [still, before] = [0, 0]; still < 10; still += 1) {
    await frame();
    const now = document.documentElement.scrollHeight;
    if (now !== before) [still, before] = [0, now];
  }
  for (const part of document.querySelectorAll(".afm-reveal")) part.hidden = false;
  const [wrong, pressed] = [[], new Map()];
  for (const phrase of document.querySelectorAll("[data-afm-set]")) {
    const target = phrase.dataset.afmSet;
    const [name, paragraph] = [target.split(";")[0], phrase.closest("p, li")];
    if (!all && pressed.get(name) === paragraph) continue;
    pressed.set(name, paragraph);
    const figure = () => afmFigures?.get(/^#set:([^;]+)/.exec(target)?.[1])?.[0].element;
    const told = () => figure()?.querySelector(".afm-unseen");
    for (let at = phrase.closest("details"); at; at = at.parentElement.closest("details"))
      at.open = true;
    if (window.afmFigures && told()) told().textContent = "";
    phrase.scrollIntoView({ block: "center", behavior: "instant" });
    window.dispatchEvent(new Event("scroll")); // now, instead of in the next frame
    phrase.click();
    const end = performance.now() + 60000; // what is mounted or computed first is told later
    while (!(window.afmFigures && told()?.textContent) && performance.now() < end)
      await new Promise((again) => setTimeout(again, 10));
    await frame();
    if (!told()?.textContent) wrong.push(`${target} sets nothing`);
    const isSeen = () => seen(phrase.getClientRects()[0], phrase);
    const isChangeSeen = () => {
      const changed = [...figure().querySelectorAll(".afm-change")].flatMap((one) => {
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const heights = [1, 3, 5, 7].map((at) => top + ((bottom - top) * at) / 8);
        return heights.map((y) => ({ left, right, top: y, bottom: y }));
      });
      return !changed.length || changed.some((part) => seen(part, figure()));
    };
    // As the window gets narrow, drawings do, too, and what slides away is over them for a moment.
    for (let tries = 0; tries < 200 && !(isSeen() && isChangeSeen()); tries += 1)
      await new Promise((again) => setTimeout(again, 50));
    if (!isSeen()) wrong.push(`${target} leaves the reader's sight`);
    if (!isChangeSeen()) wrong.push(`${target} changes what is out of sight`);
  }
  return wrong;
}"""


@pytest.fixture
def open_built(book, browser, watched):
    """Open a page of the book, all its widgets mounted; what it loads is in `page.loaded`."""
    contexts = []

    def open_(name, *, theme="light", width=1280, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(watched(context))
        page = context.new_page()
        page.add_init_script(f"({NAMELESS})()")
        page.loaded = set()
        page.on("request", lambda request: page.loaded.add(request.url.split("?")[0]))
        page.goto((BUILD / name).as_uri())
        page.wait_for_load_state("load")
        mount_all(page)
        return page

    yield open_
    for context in contexts:
        context.close()


def look(page, theme, width):
    """The page in another theme and at another width, laid out."""
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    next_frame(page)
    assert page.evaluate("document.documentElement.dataset.theme") == theme


@pytest.mark.parametrize("name", READ)
def test_page(open_built, name):
    """Narrow and dark, then wide and light, then narrow again with all that was hidden.

    At the end each phrase that sets a figure is pressed: it does, and nobody loses their place.
    What a figure refuses would be a warning, and so fail.
    """
    page = open_built(name, theme="dark", width=360)
    check_fits(page)
    look(page, "light", 1280)
    check_fits(page)
    page.evaluate("document.querySelectorAll('.afm-folded').forEach((part) => (part.open = true))")
    assert page.evaluate(CUT) == [], f"code that is not folded has {LONGEST_LINE} characters"
    # Hidden cells, hints and solutions are part of the page too.
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    check_fits(page)
    assert page.evaluate(FIXED) == []
    names = page.locator(".afm").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    assert len(names) == len(set(names)), "figures of one name"
    page.evaluate(THIN)
    wrong, passed = axe(page)
    assert wrong == []
    assert passed > 20, "axe has checked next to nothing"
    look(page, "dark", 360)
    check_fits(page)
    assert page.evaluate(SMALL) == []
    # The narrow page has a header of its own, the same on all: one of them is looked at in full.
    again = name != CHAPTER
    wrong, passed = axe(page, rules=AXE_LOOKS if again else None)
    assert wrong == []
    assert passed > (1 if again else 20), "axe has checked next to nothing"
    assert page.locator(".afm-failed").count() == 0
    views = page.locator("script[type='application/vnd.jupyter.widget-view+json']").count()
    assert page.locator(".afm-mount .afm").count() == views
    # By now, everything has been loaded: bertviz's libraries, for one.
    kind = "with widgets" if views else "without widgets"
    total = weight(BUILD / name, page.loaded)
    assert 20_000 < total <= MOST_BYTES[kind]
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = false))")
    for width, height in ((1280, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(PRESS_EACH, width == 1280) == [], f"at {width} px"


def test_the_theme_can_be_switched_and_is_kept(open_built, served):
    page = open_built(CHAPTER)
    page.context.set_offline(False)
    page.goto(f"{served(BUILD)}/{CHAPTER}")
    ground = "getComputedStyle(document.body).backgroundColor"
    shown = {page.evaluate("document.documentElement.dataset.theme"): page.evaluate(ground)}
    button = page.get_by_role("button", name="Color mode").first
    for _ in range(3):
        button.click()
        shown[page.evaluate("document.documentElement.dataset.theme")] = page.evaluate(ground)
    assert set(shown) == {"light", "dark"}
    assert shown["light"] == "rgb(255, 255, 255)"
    assert shown["dark"] == "rgb(20, 24, 30)"
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        button.click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("width", [1280, 900])
def test_a_button_that_has_the_focus_shows_it(open_built, width):
    page = open_built(CHAPTER, width=width)
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        focus = page.locator(":focus")
        seen.add(kind := focus.evaluate("(node) => node.tagName"))
        style = focus.evaluate("(node) => getComputedStyle(node).outlineStyle")
        assert kind != "BUTTON" or style == "solid", focus.evaluate("(node) => node.outerHTML")
    assert "BUTTON" in seen


def test_what_figures_share_of_their_style_comes_once_and_first(open_built):
    """Where it came again with another kind, it undid what a figure's own style had said."""
    page = open_built(CHAPTER)
    mount_all(page)
    styles = page.evaluate("[...document.querySelectorAll('style')].map((s) => s.textContent)")
    first = ":is(.afm, .afm-back, .afm-pinned) {"
    shared = [i for i, text in enumerate(styles) if text.startswith(first)]
    own = [i for i, text in enumerate(styles) if text.startswith("/*! afm: ")]
    assert len(shared) == 1
    assert len(own) == 3  # a question, the plane, your part
    assert min(own) > shared[0]


# The words at which a story that grows was shown.
ENDS = """() => {
  const story = document.querySelector(".afm-machine [aria-label='The story']");
  const words = () => [...story.querySelectorAll("bdi")].map((word) => word.textContent);
  window.ends = new Set();
  window.written = (() => { const begun = words().length; return () => words().length - begun; })();
  const look = () => ends.add(words().at(-1));
  const all = { childList: true, characterData: true, subtree: true };
  new MutationObserver(look).observe(story, all);
}"""


def test_where_less_motion_is_asked_for_the_machine_writes_a_sentence_at_a_time(open_built):
    page = open_built("book/index.html")
    page.get_by_text("It says").wait_for()
    page.evaluate(ENDS)
    page.get_by_role("button", name="let it write").click()
    page.wait_for_function("() => written() >= 4")
    assert page.evaluate("[...ends]") == ["."]


def test_paper_is_light(open_built):
    page = open_built(CHAPTER, theme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert len(page.pdf()) > 50_000


def test_on_paper_a_figure_breaks_between_its_parts_and_a_question_does_not(open_built):
    page = open_built(CHAPTER)
    page.emulate_media(media="print")
    breaks = "(one) => getComputedStyle(one).breakInside"
    figure = page.locator(".afm:not(.afm-predict)").first
    assert figure.evaluate(breaks) == "auto"
    assert figure.locator(".afm-picture > *").first.evaluate(breaks) == "avoid"
    assert page.locator(".afm-predict").first.evaluate(breaks) == "avoid"


def test_hidden_cells_open_by_keyboard(open_built):
    page = open_built(CHAPTER)
    for name in ("Setup", "Solution", "Hint"):
        summary = page.locator("summary", has_text=name).first
        inside = summary.locator("xpath=following-sibling::*[1]")
        assert not inside.is_visible()
        summary.focus()
        page.keyboard.press("Enter")
        assert inside.is_visible()
    # Colab's line is not for this page.
    assert "@title" not in page.locator("main").inner_text()


def test_what_a_claim_has_checked_opens_by_keyboard(open_built):
    page = open_built(EXAMPLE)
    summary = page.locator("summary", has_text=CHECKED).first
    code = summary.locator("xpath=following-sibling::*[1]")
    assert not code.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert code.is_visible()
    assert "assert" in code.inner_text()
    assert summary.bounding_box()["height"] >= 24  # WCAG 2.5.8
    # The imports open with the rest of the setup, at one line.
    assert page.locator("summary", has_text="Setup").count() == 1
    page.locator("summary", has_text="Setup").click()
    assert page.locator(".tag_setup").count() == 1
    assert "transformer_lib." in page.locator(".tag_setup div.cell_input").last.inner_text()


FOLDED = {"#prove-it": "Prove it", "#what-goes-wrong-in-practice": "What goes wrong in practice"}


def test_a_folded_section_opens_for_links_and_on_paper(open_built):
    page = open_built(EXAMPLE)
    parts = {anchor: page.locator(f"{anchor} > details") for anchor in FOLDED}
    opened = "(part) => part.open"
    assert [part.evaluate(opened) for part in parts.values()] == [False, False]
    for anchor, title in FOLDED.items():
        link = page.locator(f'.page-toc a[href="{anchor}"], #pst-page-toc-nav a[href="{anchor}"]')
        link.first.click()
        assert parts[anchor].evaluate(opened), title
        heading = page.locator(f"{anchor} > h2")
        assert heading.inner_text().startswith(title)
        assert 0 <= heading.bounding_box()["y"] < 300
        # The same link works again after the reader has closed the section.
        parts[anchor].locator("summary").first.click()
        assert not parts[anchor].evaluate(opened)
        link.first.click()
        assert parts[anchor].evaluate(opened), title
        parts[anchor].locator("summary").first.click()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert [part.evaluate(opened) for part in parts.values()] == [True, True]
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert [part.evaluate(opened) for part in parts.values()] == [False, False]


def test_an_address_with_an_anchor_opens_the_section(open_built):
    anchor = "#what-goes-wrong-in-practice"
    page = open_built(EXAMPLE)
    page.goto(f"{page.url}{anchor}")
    page.reload()
    page.locator(f"{anchor} > details[open]").wait_for()


def test_code_can_be_copied_offline(open_built):
    page = open_built(CHAPTER)
    cell = page.locator("div.cell_input:visible").first
    cell.hover()
    cell.locator("button.copybtn").click()
    page.evaluate("document.body.prepend(document.createElement('textarea'))")
    page.locator("textarea").first.focus()
    page.keyboard.press("Control+V")
    assert page.locator("textarea").first.input_value().strip() == cell.inner_text().strip()


def test_wide_things_scroll_by_keyboard(open_built):
    """What is folded, too, once it is open."""
    page = open_built(CHAPTER, width=360)
    page.evaluate("document.querySelectorAll('main details').forEach((part) => (part.open = true))")
    next_frame(page)
    wide = page.locator(CODE).evaluate_all(
        "(all) => all.filter((one) => one.checkVisibility())"
        ".filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.tabIndex)"
    )
    assert wide, "no code on this page is wider than 360 px"
    assert set(wide) == {0}


def test_search_finds_a_chapter(open_built):
    page = open_built(CHAPTER)
    page.keyboard.press("Control+K")
    field = page.locator("#pst-search-dialog input")
    field.fill("softmax")
    field.press("Enter")
    page.locator("#search-results li a").first.wait_for()
    found = page.locator("#search-results li a").all_inner_texts()
    assert any("·" in title for title in found), found
    page.locator("#search-results li a", has_text="·").first.click()
    page.wait_for_url("**/chapters/*")


def test_the_sidebar_opens_on_a_phone(open_built):
    page = open_built(CHAPTER, width=360)
    link = page.locator(".bd-links a", has_text="·").nth(1)
    assert not link.is_visible()
    page.locator("button.primary-toggle:visible").first.click()
    link.wait_for(state="visible")
    link.click()
    page.wait_for_url("**/chapters/*")
