"""The book over http, under its Content-Security-Policy: it works, and nothing else may load."""

import pytest
from built import READ
from harness import mount_all
from programs import PATIENCE

# With formulas, bertviz, and figures of every kind of export.
SEEN = [page for page in READ if page.startswith(("chapters/04-", "chapters/05", "chapters/12-"))]


@pytest.fixture
def open_served(book, served, browser):
    """Open a page of the served book; errors of any kind, broken rules too, are in `page.wrong`."""
    contexts = []

    def open_(name):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.wrong = []
        page.on("console", lambda m: m.type == "error" and page.wrong.append(m.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("requestfailed", lambda request: page.wrong.append(request.url[:200]))
        page.goto(f"{served(book)}/{name}")
        mount_all(page)
        return page

    yield open_
    for context in contexts:
        context.close()


def test_there_are_pages_to_see():
    assert len(SEEN) == 4


@pytest.mark.parametrize("name", SEEN)
def test_every_figure_works_under_the_policy(open_served, name):
    page = open_served(name)
    views = page.locator("script[type='application/vnd.jupyter.widget-view+json']").count()
    assert page.locator(".afm-mount .afm").count() == views > 0
    for kind in ("SVG", "PNG", "CSV"):
        button = page.get_by_role("button", name=kind, exact=True).first
        if button.count():
            with page.expect_download() as download:
                button.click()
            assert download.value.path().stat().st_size > 100
    assert page.wrong == []


LOADS = {
    "script-src": """(url) => new Promise((done) => {
      const script = Object.assign(document.createElement("script"), { src: url, onerror: done });
      document.head.append(script);
    })""",
    "img-src": """(url) => new Promise((done) => {
      Object.assign(new Image(), { src: url, onerror: done });
    })""",
    "connect-src": "(url) => fetch(url).catch(() => {})",
}


def test_nothing_is_loaded_from_elsewhere_whatever_asks_for_it(open_served):
    page = open_served("book/notation.html")
    for rule, load in LOADS.items():
        page.evaluate(load, "https://example.org/x")
        assert any("Content Security Policy" in said and rule in said for said in page.wrong), rule


def test_the_search_works_under_the_policy(open_served):
    page = open_served("search.html?q=softmax")
    page.locator("#search-results li a").first.wait_for()
    assert page.wrong == []
