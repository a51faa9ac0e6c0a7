"""Write in the browser: an editor, Python in a worker, and what must not stop the page."""

import re
import shutil
from pathlib import Path

import pytest
from harness import HOST, HOSTILE, check_axe, check_fits, each_look, next_frame, page_html

from transformer_lib.widgets import Goal, Write

CODE = """x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
print(f"{x.mean():.2f}")
x @ x
"""
OUTPUT = "2.50\ntensor([[ 7., 10.],\n        [15., 22.]])\n"
SETUP = "import torch"


def write(code=CODE, **options):
    return Write(code, setup=SETUP, **options)


def run(page):
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Run").and_(page.locator(":enabled")).wait_for()


def output(page):
    shown = page.locator(".afm-write-out")
    return shown.text_content() if shown.is_visible() else ""


def problem(page):
    return page.locator(".afm-write-problem").text_content()


def editor(page):
    """The editor, once it is there."""
    page.locator(".afm-write-pad").hover()
    page.locator(".cm-content").wait_for()
    return page.locator(".cm-content")


def replace_text(page, text):
    editor(page).click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def test_what_is_written_runs_and_prints_as_in_a_notebook(open_page):
    page = open_page(write())
    assert page.locator(".cm-content").count() == 0  # nothing is loaded before it is used
    run(page)
    assert output(page) == OUTPUT
    assert re.fullmatch(r"It ran in .*s\.", page.locator(".afm-reading").inner_text())
    replace_text(page, "x.shape")
    page.keyboard.press("Control+Enter")
    page.get_by_text("torch.Size([2, 2])").wait_for()


def test_an_error_marks_the_readers_own_line(open_page):
    page = open_page(write())
    replace_text(page, "x = torch.ones(2, 3)\n\nx @ x\n")
    run(page)
    sentence = "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
    assert problem(page) == f"line 3\nRuntimeError: {sentence}"
    assert page.locator(".afm-error-line").text_content() == "x @ x"
    assert f"in line 3: {sentence}" in page.locator(".afm-reading").inner_text()
    page.keyboard.press("ControlOrMeta+End")
    editor(page).press("End")
    page.keyboard.type(" ")
    page.locator(".afm-error-line").wait_for(state="detached")


def test_a_loop_without_an_end_is_stopped_and_the_page_goes_on(open_page):
    page = open_page(write("while True:\n    pass\n"))
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Stop").and_(page.locator(":enabled")).wait_for()
    page.get_by_text("Running …").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator(".afm-write-problem strong").wait_for()
    assert problem(page) == "Stopped: stopped by you; all names are gone"
    replace_text(page, "torch.ones(2)")
    run(page)
    assert output(page) == "tensor([1., 1.])\n"


def test_who_starts_over_during_a_run_sees_the_first_text_and_nothing_else(open_page):
    page = open_page(write("while True:\n    pass\n"))
    page.get_by_role("button", name="Run").click()
    page.get_by_text("Running …").wait_for()
    page.get_by_role("button", name="Start over").click()
    next_frame(page)
    assert problem(page) == page.locator(".afm-reading").inner_text() == ""
    assert page.get_by_role("button", name="Run").is_enabled()


def test_a_loop_ends_by_itself_after_its_time(open_page):
    figure = write("print(1)\nprint(2)\nwhile True:\n    pass\n")
    figure.set_trait("_limits", b'{"seconds":1}')
    page = open_page(figure)
    run(page)
    assert output(page) == "1\n2\n"
    assert problem(page) == ("Stopped: stopped after 1 seconds: is there a loop that does not end?")


def test_what_is_written_is_kept_and_can_be_forgotten(open_page, served, tmp_path):
    page = open_page(write(name="kept"))
    page.context.set_offline(False)
    page.goto(f"{served(tmp_path)}/{Path(page.url).name}")
    page.evaluate("() => window.afm.mountAll()")
    replace_text(page, "1 + 1")
    page.reload()
    page.evaluate("() => window.afm.mountAll()")
    assert page.locator(".afm-write-field").input_value() == "1 + 1"
    page.get_by_role("button", name="Start over").click()
    assert page.locator(".afm-write-field").input_value() == CODE
    page.reload()
    page.evaluate("() => window.afm.mountAll()")
    assert page.locator(".afm-write-field").input_value() == CODE


def test_figures_share_names_only_under_one_name(open_page):
    page = open_page(Write("a = 5", name="one"), Write("a", name="one"), Write("a = 5"), Write("a"))
    figures = page.locator("figure.afm")
    for i in range(4):
        figures.nth(i).get_by_role("button", name="Run").click()
        page.wait_for_function(
            "(i) => !document.querySelectorAll('.afm-write-run')[i].disabled", arg=i
        )
    assert figures.nth(1).locator(".afm-write-out").text_content() == "5\n"
    assert "NameError" in figures.nth(3).locator(".afm-write-problem").text_content()


def test_tab_indents_and_escape_lets_it_leave(open_page):
    page = open_page(write())
    replace_text(page, "x")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    assert editor(page).inner_text() == "    x"
    page.keyboard.press("ControlOrMeta+z")
    assert editor(page).inner_text() == "x"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert not page.evaluate("() => document.activeElement.closest('.cm-editor')")


def test_a_goal_is_reached_by_a_run(open_page):
    goals = [Goal("Run it.", when=["ran >= 1"])]
    page = open_page(write(goals=goals))
    run(page)
    page.get_by_text("✓").first.wait_for()


@pytest.fixture
def open_html(browser, watched, tmp_path):
    """Open a page from its text, all figures mounted."""
    contexts = []

    def open_(html):
        shutil.copy(HOST, tmp_path)
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(watched(browser.new_context()))
        page = contexts[-1].new_page()
        page.goto(path.as_uri())
        page.evaluate("() => window.afm.mountAll()")
        return page

    yield open_
    for context in contexts:
        context.close()


def test_it_runs_where_all_connections_are_forbidden(open_html, tmp_path):
    policy = '<meta http-equiv="Content-Security-Policy" content="connect-src \'none\'">'
    html = page_html([write()], folder=tmp_path)
    page = open_html(html.replace("<head>", f"<head>{policy}"))
    run(page)
    assert output(page) == OUTPUT


def test_without_the_pages_files_it_says_so(open_html):
    page = open_html(page_html([write()]))  # as in a notebook
    assert "In a notebook, any cell does the same" in page.locator(".afm-caption").inner_text()
    assert page.get_by_role("button", name="Run").count() == 0


@each_look
def test_fits_and_is_accessible_in_both_themes(open_page, theme, width):
    page = open_page(write("x = 1  # a comment\n" + CODE + "undefined\n"), theme=theme, width=width)
    check_fits(page)
    check_axe(page)
    run(page)
    editor(page)
    check_fits(page)
    check_axe(page)


def test_hostile_text_stays_text(open_page):
    hostile = HOSTILE[0]
    page = open_page(write(f"print({hostile!r})\n{hostile!r}\nraise ValueError({hostile!r})"))
    run(page)
    assert output(page) == f"{hostile}\n"
    assert problem(page) == f"line 3\nValueError: {hostile}"
    assert page.locator(".afm img").count() == 0
