"""TrainText in Chromium: it learns the reader's text, and shows every moment of that."""

import csv
import io
import re

import pytest
from built import ROOT
from harness import check_axe, check_fits, check_hostile, download, facts_of, reading
from playwright.sync_api import expect

from transformer_lib.data.gifts import Grammar
from transformer_lib.widgets import Goal, TrainText

NO_WASM = "<script>delete window.WebAssembly; window.Worker = undefined;</script>"
RHYME = "Mary gave roses to Susan. Susan gave roses to Mary.\n" * 40
# No step more since it was last asked.
STILL = """() => {
  const { steps } = afmFigures.get("here")[0].facts();
  const before = window.stepsBefore;
  window.stepsBefore = steps;
  return steps === before;
}"""


def make(**options):
    stories = "\n".join(Grammar().stories(40, seed=1)).replace("<story> ", "")
    samples = {"a rhyme": RHYME, "stories": stories}
    return TrainText(samples, **{"layers": 1, "name": "here"} | options)


def begun(page):
    page.wait_for_function("window.afmFigures?.get('here')[0].facts().copied > 0")
    return page


def wait_until_said(page, words):
    page.wait_for_function(
        f"document.querySelector('.afm-reading').textContent.includes({words!r})"
    )


def written(page):
    return page.get_by_role("region", name="What the model writes").inner_text()


def train(page, condition):
    page.get_by_role("button", name="start", exact=True).click()
    page.wait_for_function(
        f"(() => {{ const f = afmFigures.get('here')[0].facts(); return {condition}; }})()"
    )
    page.evaluate(  # at once, since it may end by itself
        "() => { const one = document.querySelector('.afm-text-start');"
        "        if (one.textContent === 'pause') one.click(); }"
    )
    page.wait_for_function("document.querySelector('.afm-text-start').textContent === 'go on'")
    page.wait_for_function(STILL, polling=300)  # the worker ends what it has begun


def paste(page, text, times=1):
    """As a reader pastes it: the page hears of it first."""
    page.locator(".afm-text-field").evaluate(
        """(field, [text, times]) => {
          const data = new DataTransfer();
          data.setData("text", text.repeat(times));
          const event = new ClipboardEvent("paste", { clipboardData: data, cancelable: true });
          if (field.dispatchEvent(event)) field.value = text.repeat(times);
        }""",
        [text, times],
    )


def test_it_learns_writes_and_every_moment_can_be_looked_at(open_page):
    goal = Goal("Write mostly words of the text.", when=["words >= 0.9", "steps > 20"])
    page = begun(open_page(make(goals=[goal], temperature=0.5)))
    assert reading(page).startswith("Before its first step every character has the same chance")
    noise = written(page)
    first = facts_of(page)
    assert first["unigram"] > first["bigram"] > 0
    train(page, "f.words > 0.9 && f.steps > 40")
    after = facts_of(page)
    assert after["held out"] < first["bigram"] < first["held out"]
    assert after["lowest"] <= after["held out"]
    page.wait_for_function("afmFigures.get('here')[0].facts().words > 0.9")
    expect(page.locator(".afm-goal.afm-reached")).to_have_count(1)
    assert "gave" in written(page)
    assert page.locator(".afm-text-moment").count() > 5
    # Back to the beginning, by the keyboard, and to the best by its button.
    along = page.get_by_role("slider", name="after step")
    along.focus()
    page.keyboard.press("Home")
    page.wait_for_function("document.querySelector('.afm-text-page').dataset.step === '0'")
    assert written(page) == noise
    assert reading(page).startswith("Before its first step")
    page.get_by_role("button", name="lowest held-out loss").click()
    page.wait_for_function("document.querySelector('.afm-text-page').dataset.step > 20")
    # And by pointing at the curve.
    box = page.locator(".afm-text-plot").bounding_box()
    page.mouse.click(box["x"] + 44, box["y"] + 100)
    page.wait_for_function("document.querySelector('.afm-text-page').dataset.step === '0'")
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode("utf-8-sig"))))
    assert len(rows) == after["steps"]
    assert sum(1 for row in rows if row["held out"]) > 5


def test_it_goes_on_and_starts_over(open_page):
    page = begun(open_page(make()))
    train(page, "f.steps > 8")
    there = facts_of(page)["steps"]
    page.get_by_role("button", name="go on").click()
    page.wait_for_function(f"afmFigures.get('here')[0].facts().steps > {there}")
    page.evaluate(
        """() => {
          window.said = "";
          new MutationObserver(([{ target }]) => (window.said += target.textContent))
            .observe(document.querySelector(".afm-reading"), { childList: true });
        }"""
    )
    page.evaluate(  # while it goes and writes
        """() => {
          const buttons = [...document.querySelectorAll(".afm-button")];
          const press = (label) => buttons.find((one) => one.textContent === label).click();
          document.querySelector(".afm-picture input").value = "Susan";
          press("complete");
          press("start over");
        }"""
    )
    page.wait_for_function("afmFigures.get('here')[0].facts().steps === 0")
    begun(page)
    assert reading(page).startswith("Before its first step")
    assert "could not" not in page.evaluate("said")
    assert page.locator(".afm-reading").get_attribute("aria-live") == "polite"


def test_complete_this_and_temperature(open_page):
    page = begun(open_page(make()))
    train(page, "f['held out'] < 0.6")
    field = page.get_by_role("textbox", name="complete this")
    field.fill("Mary gave ros")
    page.get_by_role("button", name="complete").click()
    page.wait_for_function(
        "document.querySelector('.afm-text-page').textContent.startsWith('Mary gave ros')"
    )
    warm = written(page)
    slider = page.get_by_role("slider", name="temperature")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_function("afmFigures.get('here')[0].facts().temperature === 0")
    page.wait_for_function(
        "document.querySelector('.afm-text-page').textContent.startsWith('Mary gave roses')"
    )
    assert len(warm) > 200
    field.fill("Żółw")
    field.press("Enter")
    page.wait_for_function("/“?Ż/.test(document.querySelector('.afm-picture').textContent)")
    assert "is not among the characters of its text" in page.locator(".afm-picture").inner_text()
    assert written(page).startswith("Mary gave roses")


def test_a_text_of_the_readers_own(open_page):
    page = begun(open_page(make()))
    paste(page, "zebra zorro zigzag\n", 80)
    page.wait_for_function("afmFigures.get('here')[0].facts().own === 1")
    begun(page)
    assert "1,520 characters" in page.locator(".afm-text-folded summary").inner_text()
    assert set(written(page)) <= set("zebra zorro zigzag\n")
    page.get_by_role("combobox", name="text").select_option("1")
    page.wait_for_function("afmFigures.get('here')[0].facts().own === 0")
    begun(page)
    page.get_by_role("button", name="your own text").click()  # it is not forgotten
    page.wait_for_function("afmFigures.get('here')[0].facts().own === 1")
    assert page.locator(".afm-text-field").input_value().startswith("zebra")


@pytest.mark.parametrize(
    ("text", "times", "problem"),
    [
        ("to be or not", 1, "has 12 characters. Below 1,000"),
        ("to be or not ", 400_000, "more than the 200,000 characters"),
    ],
)
def test_what_cannot_be_learned_gets_a_sentence(open_page, text, times, problem):
    page = begun(open_page(make()))
    paste(page, text, times)
    wait_until_said(page, problem)
    paste(page, "a better text, of words.\n", 60)  # and it goes on
    page.wait_for_function(
        "document.querySelector('.afm-reading').textContent.startsWith('Before')"
    )
    assert page.get_by_role("button", name="start", exact=True).is_enabled()


def test_of_a_long_text_the_field_shows_the_beginning(open_page):
    page = begun(open_page(make()))
    paste(page, "to be or not to be\n", 5000)
    page.wait_for_function("afmFigures.get('here')[0].facts().own === 1")
    begun(page)
    assert "95,000 characters" in page.locator(".afm-text-folded summary").inner_text()
    field = page.locator(".afm-text-field")
    assert len(field.input_value()) < 5000
    assert not field.is_editable()
    page.get_by_role("button", name="your own text").click()
    assert field.input_value() == ""
    assert field.is_editable()


def test_an_empty_text_gets_a_sentence(open_page):
    page = begun(open_page(make()))
    page.get_by_role("combobox", name="text").select_option("2")
    page.wait_for_function(
        "document.querySelector('.afm-reading').textContent.includes('no text yet')"
    )
    assert page.get_by_role("button", name="start", exact=True).is_disabled()


def test_a_file_is_read(open_page, tmp_path):
    page = begun(open_page(make()))
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeffರೋಜಾ roses\r\n".encode() * 200)
    page.locator(".afm-text-file input").set_input_files(path)
    page.wait_for_function("afmFigures.get('here')[0].facts().own === 1")
    begun(page)
    assert "2,200 characters, 10 different" in page.locator(".afm-text-folded summary").inner_text()
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * 5_000_000)
    page.locator(".afm-text-file input").set_input_files(large)
    wait_until_said(page, "200,000")


def test_it_shows_text_and_never_markup(open_page):
    samples = {"</SCRIPT><img src=x onerror=alert(1)>": "<!--<script><b>bold</b>\n" * 60}
    page = begun(open_page(TrainText(samples, layers=1, name="here")))
    assert page.locator(".afm img, .afm b, .afm script").count() == 0
    page.get_by_role("textbox", name="complete this").fill("<b>bold</b>")
    page.get_by_role("button", name="complete").click()
    page.wait_for_function(
        "document.querySelector('.afm-text-page').textContent.startsWith('<b>bold')"
    )
    check_hostile(page)


def test_where_the_fast_way_is_forbidden_it_is_slow_and_says_so(open_page):
    """No WebAssembly, and no worker."""
    page = begun(open_page(make(), before=NO_WASM))
    assert "forbids the fast way" in reading(page)
    train(page, "f.steps >= 8")
    assert facts_of(page)["held out"] < 4


def test_the_books_policy_lets_it_compute_the_fast_way(open_page):
    layout = (ROOT / "book" / "templates" / "layout.html").read_text(encoding="utf-8")
    [said_there] = re.findall(r"policy\.content = \[(.*?)\]\.join", layout, re.DOTALL)
    rules = "; ".join(re.findall(r'"([^"]+)"', said_there))
    rules = rules.replace("'self'", "file:")  # a page that is opened from a file has no origin
    meta = f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
    add = f"<script>document.head.insertAdjacentHTML('beforeend', `{meta}`)</script>"
    page = open_page(make(), before=add)  # (what waits by a function would be forbidden)
    expect(page.locator(".afm-reading")).to_contain_text("numbers to learn")
    assert "forbids" not in reading(page)


def test_the_text_sets_it(open_page):
    link = "#set:here;sample=stories;temperature=0.5;seed=3;head=2;run"
    before = f'<p><span class="afm-set" data-afm-set="{link}">train it</span></p>'
    page = begun(open_page(make(), before=before))
    assert set(facts_of(page)) == set(TrainText._facts)
    page.get_by_role("button", name="train it").click()
    page.wait_for_function("afmFigures.get('here')[0].facts().steps > 3")
    assert facts_of(page)["temperature"] == 0.5
    assert page.get_by_role("combobox", name="text").input_value() == "1"
    assert page.get_by_role("radio", name="1.3").is_checked()


def test_fits_and_is_accessible(open_page):
    goals = [Goal("Make the held-out loss **lower** than the bigram's.", when=["loss < bigram"])]
    page = begun(open_page(make(goals=goals, layers=2), theme="dark", width=360))
    check_axe(page)
    check_fits(page)
    train(page, "f.steps > 5")
    check_axe(page)
    check_fits(page)


def test_a_long_text_does_not_hold_up_the_page(open_page):
    """All that the page's own thread does for it takes less of the processor than one task may."""
    page = begun(open_page(make()))
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})
    client.send("Emulation.setCPUThrottlingRate", {"rate": 1})  # a slowed thread's waiting counts

    def spent():
        metrics = client.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    before = spent()
    paste(page, "to be or not to be\n", 10_000)
    done = "(({ own, copied }) => own === 1 && copied > 0)(afmFigures.get('here')[0].facts())"
    page.wait_for_function(done, polling=200)
    assert spent() - before < 0.1
