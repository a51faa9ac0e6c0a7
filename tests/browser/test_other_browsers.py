"""Every page in Firefox and in WebKit, in place of Safari.

In `make soak`, where Playwright has these browsers (the weekly run gets them by `playwright install
--with-deps firefox webkit`); elsewhere they are skipped. What they are for: in WebKit, a link to a
section missed it, since figures above it grew.
"""

from pathlib import Path

import pytest
from built import BUILD, READ
from harness import check_fits, mount_all, next_frame

CHAPTERS = [page for page in READ if page.startswith("chapters/")]
VIEW = "script[type='application/vnd.jupyter.widget-view+json']"
HEADER = 120  # pixels at the top within which a section may begin that a link has asked for

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=["firefox", "webkit"])
def other(request, playwright):
    kind = getattr(playwright, request.param)
    if not Path(kind.executable_path).exists():
        pytest.skip(f"`playwright install --with-deps {request.param}` gets it")
    browser = kind.launch()
    yield browser
    browser.close()


@pytest.fixture
def open_other(book, other):
    """Open a page; errors of its scripts fail the test at its end."""
    pages, wrong = [], []

    def open_(name, width=1280):
        page = other.new_page(viewport={"width": width, "height": 900})
        pages.append(page)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        address, _, fragment = name.partition("#")
        page.goto((BUILD / address).as_uri() + (f"#{fragment}" if fragment else ""))
        page.wait_for_load_state("load")
        return page

    yield open_
    for page in pages:
        page.close()
    # A notice without effect: a figure was laid out again in the same frame.
    assert not [one for one in wrong if "ResizeObserver loop" not in one]


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", READ)
def test_every_figure_is_there_and_nothing_is_too_wide(open_other, name, width):
    page = open_other(name, width)
    mount_all(page)
    assert page.locator(".afm-mount .afm").count() == page.locator(VIEW).count()
    assert page.locator(".afm-failed").count() == 0
    check_fits(page)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_link_to_a_section_leads_there(open_other, name):
    sections = (
        open_other(name)
        .locator("main section[id]")
        .evaluate_all(
            f"""(all) => all.filter((one) => {{
          const views = [...document.querySelectorAll("{VIEW}")];
          return one.querySelector(":scope > h2")?.checkVisibility() && views.some(
            (view) => view.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
        }}).map((one) => one.id)"""
        )
    )
    for section in sections:
        page = open_other(f"{name}#{section}")
        page.wait_for_function(f"document.querySelectorAll('.afm-mount .afm').length === "
                               f'document.querySelectorAll("{VIEW}").length')  # fmt: skip
        next_frame(page)  # figures settle once they know their width
        heading = page.locator(f"[id='{section}'] > h2").first
        top, below, window = heading.evaluate("""(node) => {
          const { top } = node.getBoundingClientRect();
          const below = document.documentElement.scrollHeight - scrollY - top;
          return [top, below, innerHeight];
        }""")
        # The last sections cannot rise to the top, and only have to be in sight.
        assert 0 <= top <= (HEADER if below > window else window), f"#{section} is at {top:.0f} px"
