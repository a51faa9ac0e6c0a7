"""Predict in Chromium: guessing by mouse, keyboard and touch, and what a page hides until then."""

import re
import shutil

import pytest
from built import ROOT
from harness import HOSTILE, check_axe, check_fits, check_hostile, each_look, mount_all, page_html

from transformer_lib.widgets import Predict, SoftDictionary

WORDS = ["mary", "gave", "roses", "to", "susan"]
ASSETS = ROOT / "book" / "assets"
COMMIT, LOOK = "That is my guess", "show me without guessing"


def choice():
    return Predict(
        "Whom does *gave* score highest?",
        {
            "mary": "Nothing in the vectors says **who** gives.",
            "gave": "Its own length counts twice.",
            "a `word` that is not in the sentence, and has a long name": "It is not there.",
        },
        right="gave",
        then="A score grows with *both* lengths.",
    )


def number():
    return Predict.number(
        "How large is the spread?",
        right=64.0,
        within=8,
        unit="nats",
        wrong=[(4000, 5000, "That is the variance.")],
        otherwise="Take the root of 4096.",
    )


def cell():
    return Predict.cell(
        "Which cell is the largest?",
        rows=WORDS,
        columns=WORDS,
        right=("susan", "mary"),
        wrong={("mary", "mary"): "The first is not the largest."},
        otherwise="Look at the arrows.",
    )


def said(figure):
    return re.sub(r"\s+", " ", figure.locator(".afm-reading").inner_text())


def test_nothing_on_the_page_tells_the_answer_before_the_guess(open_page):
    page = open_page(choice(), number(), cell())
    shown = page.locator(".afm-predict, .afm-predict *").evaluate_all(
        """(all) => all.flatMap((one) => [one.textContent, ...[...one.attributes]
          .filter(({ name }) => /^(aria|class|data|title|value|id|name)/.test(name))
          .map(({ value }) => value)]).join("\\n")"""
    )
    for text in ("length", "variance", "arrows", "64", "root", "answer", "Right"):
        assert text not in shown, text
    assert page.locator(".afm-predict em").first.inner_text() == "gave"
    marked = page.locator(".afm-cell").evaluate_all("(all) => all.map((c) => c.outerHTML)")
    assert (
        len({re.sub(r'[xy]="[\d.]+"|aria-label="[^"]*"|tabindex="\S+"', "", m) for m in marked})
        == 1
    )


def test_a_guess_by_mouse_locks_and_is_answered(open_page):
    page = open_page(choice())
    figure = page.locator(".afm-predict")
    figure.get_by_role("button", name=COMMIT).click()
    assert said(figure) == "Choose one of the answers first."
    figure.get_by_text("mary").click()
    figure.get_by_text("a word that").click()
    figure.get_by_text("mary").click()
    figure.get_by_role("button", name=COMMIT).click()
    assert said(figure) == (
        "✗ Not right. Your guess: mary. The answer: gave. Nothing in the vectors says who gives. "
        "A score grows with both lengths."
    )
    assert figure.locator(".afm-reading").get_attribute("aria-live") == "polite"
    notes = figure.locator(".afm-option-note").all_inner_texts()
    assert notes == ["✗ your guess", "✓ the answer", ""]
    assert figure.get_by_role("button", name=LOOK).count() == 0
    # It is locked.
    figure.get_by_text("gave", exact=True).first.click(force=True)
    figure.locator(".afm-commit").click(force=True)
    assert figure.get_by_role("radio", name="mary").is_checked()
    assert figure.get_by_role("radio", name="gave").is_disabled()
    assert "Not right" in said(figure)


def test_a_right_guess_by_keyboard_and_arrow_keys_commit_nothing(open_page):
    page = open_page(choice())
    figure = page.locator(".afm-predict")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert figure.get_by_role("radio", name="gave").is_checked()
    assert said(figure) == ""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert said(figure).startswith("✓ Right. Your guess: gave. Its own length counts twice.")
    # The keyboard is where it was, and goes on from there.
    held = page.evaluate("document.activeElement.textContent")
    assert held == "Your guess stands."
    assert page.evaluate("document.activeElement.getAttribute('aria-disabled')") == "true"


def test_touch_on_a_phone(open_page):
    page = open_page(choice(), cell(), touch=True, width=360)
    figure = page.locator(".afm-predict").first
    figure.get_by_text("gave", exact=True).last.tap()
    figure.get_by_role("button", name=COMMIT).tap()
    assert "✓ Right." in said(figure)
    figure = page.locator(".afm-predict").last
    figure.get_by_role("gridcell", name="susan, mary").tap()
    assert figure.locator(".afm-chosen-cell").inner_text() == "chosen: row susan, column mary"
    figure.get_by_role("button", name=COMMIT).tap()
    assert said(figure) == "✓ Right. Your guess: susan, mary."


def test_a_number_is_typed_and_checked(open_page):
    page = open_page(number(), number())
    first, second = page.locator(".afm-predict").all()
    field = first.get_by_role("textbox", name="How large is the spread? your guess")
    field.press("Enter")
    assert said(first) == "Type a number first."
    field.fill("many")
    field.press("Enter")
    assert "not a number that can be read" in said(first)
    assert field.get_attribute("aria-invalid") == "true"
    field.fill("4096 nats")
    assert field.get_attribute("aria-invalid") is None
    field.press("Enter")
    assert said(first) == (
        "✗ Not right. Your guess: 4,096 nats. The answer: 64 nats. "
        "(Within 8 nats counts as right.) That is the variance."
    )
    field.press("7")
    assert field.input_value() == "4096 nats"
    second.get_by_role("textbox").fill("56")
    second.get_by_role("button", name=COMMIT).click()
    assert said(second).startswith("✓ Right. Your guess: 56 nats. The answer: 64 nats.")


def test_a_cell_is_chosen_by_keyboard(open_page):
    page = open_page(cell(), cell())
    first, second = page.locator(".afm-predict").all()
    first.get_by_role("button", name=COMMIT).click()
    assert said(first) == "Choose a cell of the grid first."
    first.get_by_role("gridcell", name="mary, mary").focus()
    page.keyboard.press("Space")
    assert first.locator(".afm-chosen-cell").inner_text() == "chosen: row mary, column mary"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert said(first) == (
        "✗ Not right. Your guess: mary, mary. The answer: susan, mary. "
        "The first is not the largest."
    )
    names = [
        first.get_by_role("gridcell", name=f"{word}, mary: ").get_attribute("aria-label")
        for word in ("mary", "susan")
    ]
    assert names == ["mary, mary: your guess", "susan, mary: the answer"]
    # Neither keys nor the mouse move what is locked.
    first.get_by_role("gridcell", name="gave, gave").click()
    first.get_by_role("gridcell", name="mary, mary").focus()
    page.keyboard.press("ArrowDown")
    assert first.locator("[aria-selected=true]").get_attribute("aria-label") == names[0]
    page.evaluate(
        "() => { onkeydown = (event) => { window.isPrevented = event.defaultPrevented; }; }"
    )
    page.keyboard.press("Control+F8")  # the browser's own
    assert page.evaluate("isPrevented") is False
    second.get_by_role("gridcell", name="mary, mary").focus()
    page.keyboard.press("ArrowRight")
    second.get_by_role("button", name=COMMIT).press("Space")
    assert said(second).endswith("Look at the arrows.")


def test_who_does_not_want_to_guess_may_look(open_page):
    page = open_page(choice(), number(), cell())
    for figure in page.locator(".afm-predict").all():
        figure.get_by_role("button", name=LOOK).focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "Shown without a guess."
    texts = [said(figure) for figure in page.locator(".afm-predict").all()]
    assert texts == [
        "The answer: gave. Its own length counts twice. A score grows with both lengths.",
        "The answer: 64 nats.",
        "The answer: susan, mary.",
    ]
    assert page.locator("input:checked, [aria-selected=true]").count() == 0


def test_paper_shows_the_answer_and_the_page_forgets_it_again(open_page):
    page = open_page(choice(), cell())
    first, second = page.locator(".afm-predict").all()
    first.get_by_text("mary").click()
    second.get_by_role("gridcell", name="to, to").click()
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert "The answer: gave. Its own length" in said(first)
    assert "The answer: susan, mary." in said(second)
    assert not first.get_by_role("button", name=COMMIT).is_visible()
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert [said(first), said(second)] == ["", ""]
    assert first.locator(".afm-option-note").all_inner_texts() == ["", "", ""]
    assert second.get_by_role("gridcell", name="the answer").count() == 0
    # What was chosen is still chosen, and can be committed to.
    for figure in (first, second):
        figure.get_by_role("button", name=COMMIT).click()
    assert "Your guess: mary. The answer: gave." in said(first)
    assert "Your guess: to, to. The answer: susan, mary." in said(second)


def test_two_views_of_a_question_are_one(open_page):
    widget = choice()
    page = open_page(widget, widget)
    page.get_by_role("radio", name="mary").first.check()
    page.get_by_role("button", name=COMMIT).first.click()
    first, second = (said(figure) for figure in page.locator(".afm-predict").all())
    assert first == second != ""


@each_look
def test_fits_and_is_accessible_before_and_after(open_page, theme, width):
    page = open_page(choice(), choice(), number(), cell(), theme=theme, width=width)
    check_fits(page)
    check_axe(page)
    small = page.locator(".afm-predict :is(button, label, .afm-cell)").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect())"
        ".filter((box) => Math.min(box.width, box.height) < 24).length"
    )
    assert small == 0
    figures = page.locator(".afm-predict").all()
    for figure, label in zip(figures[:2], ("mary", "gave"), strict=True):
        figure.get_by_role("radio", name=label).check()
    figures[2].get_by_role("textbox").fill("1")
    figures[3].get_by_role("gridcell", name="to, to").click()
    for figure in figures:
        figure.get_by_role("button", name=COMMIT).click()
    assert [said(figure)[0] for figure in figures] == ["✗", "✓", "✗", "✗"]
    check_fits(page)
    check_axe(page)
    page.emulate_media(forced_colors="active")
    check_fits(page)


def test_hostile_texts_stay_text(open_page):
    options = {text: text for text in HOSTILE}
    question = Predict(HOSTILE[0], options, right=HOSTILE[2], then=HOSTILE[1])
    grid = Predict.cell(
        HOSTILE[2], rows=HOSTILE, columns=HOSTILE, right=(0, 1), otherwise=HOSTILE[0]
    )
    page = open_page(question, grid, width=360)
    for figure in page.locator(".afm-predict").all():
        figure.get_by_role("button", name=LOOK).click()
    check_hostile(page)


# --- what a page hides (book/extensions/reveal.py, book/assets/afm-reveal.js)

CELL = re.compile(r'<div class="cell_output docutils container">.*?</div>', re.S)


def asking_page(folder, **options):
    """A page as the extension makes it: two questions, and what each of them hides."""
    dictionary = SoftDictionary(["a", "b"], [[2.0, 0.0], [0.0, 2.0]], [10.0, 30.0])
    text = page_html([choice(), dictionary, number()], **options)
    first, hidden, second = CELL.findall(text)
    body = f"""
      <div class="cell docutils container afm-guess afm-guess-1">{first}</div>
      <div class="afm-reveal afm-reveal-1">
        <p id="inside">It is its own <a href="#top">word</a>.</p>
      </div>
      <section id="why"><h2 class="afm-reveal afm-reveal-1"><b>Why</b></h2>
        <div class="afm-reveal afm-reveal-1"><div class="cell">{hidden}</div></div>
        <p>In sight.</p>
        <div class="cell docutils container afm-guess afm-guess-2">{second}</div>
        <div class="afm-reveal afm-reveal-2"><p id="root">The root.</p></div>
      </section>"""
    start, end = text.index("<h1>"), text.index("</main>")
    title = '<h1 id="top">Page</h1>'
    text = f'{text[:start]}{title}<article class="bd-article">{body}</article>{text[end:]}'
    sheets = "".join(f'<link rel="stylesheet" href="{name}.css">' for name in ("afm", "afm-cells"))
    scripts = f'{sheets}<script src="afm-reveal.js"></script>'
    text = text.replace("<script defer", f"{scripts}<script defer")
    for name in ("afm-host.js", "afm-reveal.js", "afm.css", "afm-cells.css", "afm-mark.svg"):
        shutil.copy(ASSETS / name, folder / name)
    (folder / "page.html").write_text(text, encoding="utf-8", errors="surrogatepass")
    return (folder / "page.html").as_uri()


@pytest.fixture
def open_asking(browser, watched, tmp_path):
    contexts = []

    def open_(place="", *, javascript=True, change=None):
        address = asking_page(tmp_path)
        if change:
            file = tmp_path / "page.html"
            file.write_text(change(file.read_text("utf-8")), "utf-8")
        options = {"viewport": {"width": 800, "height": 700}, "reduced_motion": "reduce"}
        context = browser.new_context(java_script_enabled=javascript, **options)
        contexts.append(watched(context))
        page = context.new_page()
        page.goto(address + place)
        if javascript:
            mount_all(page)
        return page

    yield open_
    for context in contexts:
        context.close()


def seen(page):
    """Which of the two answers take room on the page."""
    names = ("#inside", "h2 b", "#root")
    return [
        page.locator(name).evaluate("(one) => one.checkVisibility({contentVisibilityAuto: true})")
        for name in names
    ]


def test_answers_are_hidden_until_their_own_question_is_answered(open_asking):
    page = open_asking()
    assert seen(page) == [False, False, False]
    heights = page.locator(".afm-reveal").evaluate_all(
        "(all) => all.map((one) => one.offsetHeight)"
    )
    assert set(heights) == {0}
    page.get_by_role("radio", name="mary").check()
    button = page.get_by_role("button", name=COMMIT).first
    before = button.bounding_box()
    button.click()
    assert seen(page) == [True, True, False]
    assert page.locator(".afm-predict .afm-commit").first.bounding_box()["y"] == before["y"]
    # The figure that was hidden is there, at its size and in its colors.
    bars = page.locator(".afm-weight-bar").first.bounding_box()
    assert bars["width"] > 5
    page.get_by_role("button", name=LOOK).click()
    assert seen(page) == [True, True, True]


def test_the_tab_key_does_not_enter_what_is_hidden(open_asking):
    page = open_asking()
    reached = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('.afm-reveal') !== null"))
    assert reached == {False}
    page.get_by_role("button", name=LOOK).first.click()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "word"


def test_a_link_into_what_is_hidden_opens_it(open_asking):
    page = open_asking()
    address = page.url
    for place, expected in (
        ("#inside", [True, True, False]),
        ("#why", [True, True, False]),
        ("#root", [False, False, True]),
        ("#top", [False, False, False]),
        ("#%", [False, False, False]),
    ):
        page.goto("about:blank")
        page.goto(address + place)
        assert seen(page) == expected, place
    for place, expected in (("#top", False), ("#%", False), ("#why", True)):
        page.goto("about:blank")
        page.goto(address)
        page.evaluate(
            """(place) => new Promise((done) => {
              addEventListener("hashchange", () => setTimeout(done), { once: true });
              location.hash = place;
            })""",
            place,
        )
        assert seen(page) == [expected, expected, False], place
    top = "document.querySelector(location.hash).getBoundingClientRect().top"
    assert page.evaluate(top) < 700


def test_searching_the_page_opens_what_it_finds(open_asking):
    page = open_asking()
    kinds = page.locator(".afm-reveal").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('hidden'))"
    )
    assert set(kinds) == {"until-found"}
    event = "(one) => one.dispatchEvent(new Event('beforematch', { bubbles: true }))"
    page.locator("h2").evaluate(event)
    assert seen(page) == [True, True, False]


def test_paper_and_a_page_without_javascript_show_everything(open_asking):
    page = open_asking()
    page.emulate_media(media="print")
    assert seen(page) == [True, True, True]
    page.emulate_media(media="screen")
    assert seen(page) == [False, False, False]
    page = open_asking(javascript=False)
    assert page.locator("#inside").is_visible()
    assert page.locator("#root").is_visible()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("afm-host.js", "gone.js"),
        lambda text: re.sub(r'<script type="[^"]*widget-view.*?</script>', "", text, flags=re.S),
        lambda text: text.replace(
            "const question = readJson", "throw new Error('off'); const question = readJson"
        ),
    ],
    ids=["no host", "no figure", "the figure fails"],
)
def test_answers_show_where_nobody_can_guess(open_asking, change):
    page = open_asking(change=change)
    page.wait_for_function("""() => ["#inside", "h2 b", "#root"].every((name) =>
      document.querySelector(name).checkVisibility({ contentVisibilityAuto: true }))""")
    page.context.wrong.clear()
