"""Exercises on the page: a newcomer answers three, one of them first wrong; and bad input."""

import json
import shutil

import pytest
import python_files
from built import BUILD, ROOT
from harness import HOST, arrive, check_fits
from playwright.sync_api import expect

CHAPTER = BUILD / "chapters" / "01-self-attention.html"
SCALING = BUILD / "chapters" / "03-scaling.html"
WRONG = """def one_output(x, i):
    weights = torch.softmax(x @ x.T, dim=0)
    return weights[i] @ x
"""
TEXT = "(pad) => pad.value ?? pad.textContent"
RIGHT = """def one_output(x, i):
    return torch.softmax(x @ x[i], dim=0) @ x
"""


@pytest.fixture
def chapter(book, served, browser, watched):
    context = watched(browser.new_context(viewport={"width": 1280, "height": 800}))
    context.set_offline(False)
    page = context.new_page()
    page.goto(f"{served(book)}/chapters/{CHAPTER.name}")
    arrive(page)
    yield page
    context.close()


def exercise(page, number):
    return page.locator("[data-afm-ask]").nth(number)


def write(place, text):
    place.locator("textarea, .cm-content").first.click()
    place.locator(".cm-content").wait_for()
    place.page.keyboard.press("ControlOrMeta+a")
    place.page.keyboard.insert_text(text)


def paste(place, text):
    """What is long comes from the clipboard: to type a notebook takes a minute."""
    write(place, "")
    place.locator(".cm-content").evaluate(
        """(pad, text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          const options = { clipboardData, bubbles: true, cancelable: true };
          pad.dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        text,
    )


def ask(place):
    place.get_by_role("button", name="Check").click()


def verdict(place):
    """The verdict, or the error."""
    place.locator(
        ".afm-verdict-right, .afm-verdict-wrong, .afm-write-problem:visible, "
        ".afm-verdict-open:has(strong)"
    ).first.wait_for()
    return place.locator(".afm-verdict, .afm-write-problem:visible").first.inner_text()


def check(place):
    ask(place)
    return verdict(place)


def test_a_newcomer_answers_three_exercises_one_of_them_first_wrong(chapter, browser, watched):
    first, second, third = (exercise(chapter, n) for n in range(3))
    exercises = chapter.locator("#exercises").inner_text()
    assert "not attempted yet" not in exercises
    assert "press Check" in exercises  # and not what a notebook says
    assert "last line checks" not in exercises
    assert chapter.locator(".afm-progress").is_hidden()
    write(first, WRONG)
    said = check(first)
    assert "✗" in said
    assert "dim=0 is not the right axis" in said
    assert first.locator(".afm-error-line").text_content().strip().startswith("weights =")
    assert first.get_by_role("button", name="Compare with the solution").is_visible()
    chapter.set_viewport_size({"width": 360, "height": 740})
    check_fits(chapter)
    chapter.set_viewport_size({"width": 1280, "height": 800})
    write(first, RIGHT)
    assert check(first).startswith("✓ Right: y_i is an average")
    second.get_by_text("A", exact=True).click()
    assert "The rows of A add up to 1" in check(second)
    second.get_by_text("B", exact=True).click()
    assert second.locator(".afm-verdict").count() == 0  # what was said was about another answer
    assert check(second).startswith("✓ Right")
    write(third, "def mended(x):\n    return torch.softmax(x @ x.T, dim=-1) @ x\n")
    assert check(third).startswith("✓ Right")
    assert "3 of 5 on this page" in chapter.locator(".afm-progress").inner_text()
    # All of it is there when the reader comes back, and can be forgotten.
    chapter.reload()
    assert exercise(chapter, 0).locator("textarea").input_value() == RIGHT
    assert exercise(chapter, 1).locator("input:checked").input_value() == "b"
    with chapter.expect_download() as saved:
        chapter.locator(".afm-progress").get_by_role("button", name="Save").click()
    chapter.locator(".afm-progress").get_by_role("button", name="Clear").click()
    assert chapter.locator(".afm-progress").is_hidden()
    # Another browser has none of it, until the file is opened there.
    elsewhere = watched(browser.new_context()).new_page()
    elsewhere.context.set_offline(False)
    elsewhere.goto(f"{chapter.url}/../../book/index.html")
    line = elsewhere.locator(".afm-progress")
    with elsewhere.expect_file_chooser() as chooser:
        line.get_by_role("button", name="Open").click()
    # The page loads itself again: what it shows then has been stored.
    with elsewhere.expect_navigation():
        chooser.value.set_files(saved.value.path())
    expect(line).to_contain_text("Answered in this browser: 3 of the book")
    elsewhere.goto(chapter.url)
    assert exercise(elsewhere, 0).locator("textarea").input_value() == RIGHT
    elsewhere.context.close()


HEAD = "def one_output(x, i):\n"
NOTEBOOK = (ROOT / "chapters" / "01-self-attention.ipynb").read_text(encoding="utf-8")
# What needs no page is in tests/js/write.
BAD = {
    "stub": (f"{HEAD}    ...\n", "not attempted yet"),
    "unclosed": ("def one_output(x, i:\n    return x\n", "SyntaxError"),
    "type": (f"type Row = list\n{HEAD}    return x\n", "no type statement"),
    "quotes": (f'{HEAD}    return f"{{x["a"]}}"\n', "write the other kind of quotes"),
    "notebook": (NOTEBOOK, "the file of a whole notebook"),
    "prose": ("# One output\n\nEach word asks all other words.\n", "reads as a sentence"),
    "input": (f"{HEAD}    return input()\n", "no keyboard to read from"),
    "memory": (f"{HEAD}    return [0] * 10**9\n", "MemoryError"),
    "prints": (f"{HEAD}    for n in range(10**6): print(n)\n", "does a loop print too much?"),
}

HURRIED = """() => {
  const line = "const { now } = performance; performance.now = () => 5 * now.call(performance);";
  window.Blob = class extends Blob {
    constructor([...parts], options) {
      super(/javascript/.test(options?.type) ? [`{ ${line} }`, ...parts] : parts, options);
    }
  };
}"""


def test_bad_answers_get_a_sentence_and_the_page_goes_on(chapter):
    # In a page of its own, whose workers have a clock that runs five times as fast.
    beside = chapter.context.new_page()
    beside.add_init_script(f"({HURRIED})()")
    beside.goto(CHAPTER.as_uri())
    endless = exercise(beside, 0)
    write(endless, f"{HEAD}    while True: pass\n")
    ask(endless)
    place = exercise(chapter, 0)
    for name, (text, said) in BAD.items():
        (paste if text == NOTEBOOK else write)(place, text)
        assert said in check(place), name
    assert "an endless loop?" in verdict(endless)
    # Python's worker has ended; the next answer loads it again.
    for one in (place, endless):
        write(one, RIGHT)
        assert "✓" in check(one)


ONE = """<script defer src="afm-host.js"></script><script defer src="start.js"></script>
<script id="afm-asked" type="application/json">%s</script>
<section><div class="cell"><pre>def f(x):\n    ...</pre><div data-afm-ask="f"></div></div></section>
<button>elsewhere</button>"""

SLOW = """() => {
  const { load } = window.afm;
  const may = new Promise((resolve) => { window.go = resolve; });
  window.afm = { ...window.afm, load: (path) => may.then(() => load(path)) };
}"""


def test_a_script_that_comes_late_or_never_takes_nothing_from_the_reader(
    browser, watched, tmp_path
):
    name, script = python_files.files_of_exercises()["page"]
    asked = {"files": {"page": name}, "exercises": {"f": {"id": "f", "lines": 2}}, "total": 1}
    (tmp_path / "start.js").write_text(python_files.start(), "utf-8")
    (tmp_path / "page.html").write_text(ONE % json.dumps(asked), "utf-8")
    shutil.copy(HOST, tmp_path)
    page = watched(browser.new_context()).new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.get_by_role("textbox").fill("x = 1")
    expect(page.get_by_role("alert")).to_contain_text(f"could not load {name}")
    page.context.wrong.clear()
    (tmp_path / name).write_text(script, "utf-8")
    page.evaluate(SLOW)
    page.get_by_role("button", name="Check").click()
    page.evaluate("go()")
    page.locator(".afm-write-problem:visible").wait_for()  # there is no Python here
    assert page.get_by_role("textbox").input_value() == "x = 1"
    page.context.wrong.clear()
    page.reload()
    page.evaluate(SLOW)
    page.get_by_role("textbox").focus()
    elsewhere = page.get_by_role("button", name="elsewhere")
    elsewhere.focus()
    page.evaluate("go()")
    page.get_by_role("button", name="Start over").wait_for()
    assert page.get_by_role("textbox").input_value() == "x = 1"
    expect(elsewhere).to_be_focused()


def test_an_open_cell_is_changed_run_and_put_back(chapter):
    place = chapter.locator(".cell:has(.cell_output) [data-afm-change]").first
    cell = place.locator("xpath=ancestor::*[contains(@class, 'cell ')][1]")
    stored = cell.locator(".cell_output").inner_text()
    place.get_by_role("button", name="Change it").click()
    place.get_by_role("button", name="Run").click()
    place.get_by_text("What your cell prints:").wait_for()
    assert place.locator(".afm-write-out").inner_text().strip() == stored.strip()
    write(place, "print(1 + 1)")
    place.get_by_role("button", name="Run").click()
    expect(place.locator(".afm-write-out")).to_have_text("2\n")
    assert cell.locator(".cell_output").inner_text() == stored
    place.get_by_role("button", name="Back to the stored cell").click()
    assert cell.locator(".cell_input").is_visible()
    assert place.get_by_role("button", name="Run").is_hidden()
    # The change is there when the reader comes back, until it is given up.
    chapter.reload()
    place.get_by_role("button", name="Open your change").click()
    assert place.locator("textarea, .cm-content").first.evaluate(TEXT) == "print(1 + 1)"
    place.get_by_role("button", name="Start over").click()
    assert place.get_by_role("button", name="Start over").is_hidden()
    place.get_by_role("button", name="Back to the stored cell").click()
    expect(place.get_by_role("button", name="Change it")).to_be_visible()


@pytest.fixture
def place(book, browser, watched):
    """Where a reader puts in a part of their own, opened; the question before it is answered."""
    context = watched(browser.new_context(viewport={"width": 1280, "height": 800}))
    page = context.new_page()
    page.goto(SCALING.as_uri())
    page.evaluate("window.afm.mountAll()")
    page.evaluate("document.querySelectorAll('.afm-reveal').forEach((e) => { e.hidden = false; })")
    place = page.locator("[data-afm-yours]")
    place.get_by_role("button", name="Put in a part of your own").click()
    place.get_by_role("button", name="Put it in").wait_for()
    yield place
    context.close()


def put(place, text):
    """What the page says, when the machine has answered."""
    write(place, text)
    place.get_by_role("button", name="Put it in").click()
    told = place.locator(".afm-change-said").get_by_text("questions right")
    told.or_(place.locator(".afm-write-problem:visible")).wait_for(timeout=240_000)
    return place.locator(".afm-change-said, .afm-write-problem:visible").all_inner_texts()


UNDIVIDED = """def mine(q, k):
    return torch.softmax(q @ k.mT, dim=-1)


machine.using(attention_weights=mine)
"""


def test_a_part_of_the_readers_own_is_put_into_the_machine(place):
    figure = place.locator("xpath=ancestor::*[contains(@class, 'cell ')][1]").locator(".afm")
    stored = figure.locator(".afm-your-share").all_inner_texts()
    assert "dim=-1" in place.locator(".cm-content").inner_text()  # the chapter's own to begin with
    broken = put(place, UNDIVIDED.replace("k.mT", "k"))
    assert any("mat1 and mat2 shapes cannot be multiplied (1x12 and 1x12)" in t for t in broken)
    assert place.locator(".afm-error-line").count() == 1
    nothing = put(place, "x = 3\n")
    assert any("machine.using(attention_weights=mine)" in text for text in nothing)
    # As many as the notebook counts with the same function, which the figure has stored.
    said = put(place, UNDIVIDED)
    assert said[0].startswith(f"It answers {stored[1].split()[0]} of 200 questions right.")
    assert figure.locator(".afm-your-share").all_inner_texts() == stored
    put(place, UNDIVIDED.replace("softmax(q @ k.mT,", "softmax(0 * q @ k.mT,"))
    assert figure.locator(".afm-your-share").all_inner_texts() != stored
    assert place.locator(".afm-yours-tries li").count() == 2
    place.get_by_role("button", name="Back to the chapter’s figure").click()
    assert figure.locator(".afm-your-share").all_inner_texts() == stored


def test_the_machine_can_be_stopped(place):
    write(place, UNDIVIDED.replace("    return", "    while True: pass\n    return"))
    place.get_by_role("button", name="Put it in").click()
    place.get_by_text("The machine reads").wait_for(timeout=120_000)
    place.get_by_role("button", name="Stop").click()
    expect(place.locator(".afm-write-problem")).to_contain_text("Stopped: stopped by you")
