"""One Chromium for all browser tests: offline, and any error or request that leaves fails the test.

    def test_something(open_page):
        page = open_page(AttentionMap(weights, tokens), theme="dark", width=360)
        page.get_by_role("gridcell", name="roses attends to gave").click()

`book` is the folder of the built pages, `browser` the Chromium itself; `watched(context)` adds
the checks to a context that a test has made itself. `served(folder)` is an address on this machine:
what a page has stored is asked for there (once in some sixteen loadings, a page that Chromium 156
opens from a file finds a storage of its own, which is empty). The book's pages forbid `eval` there:
a `wait_for_function` takes a function then, as an expression is evaluated anew at each look.
AFM_SLOWER=3 slows all pages down three times.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from built import BUILD, ROOT
from chromium import CHROMIUM_NAMES
from extensions import notices
from harness import mount_all, write_page
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from programs import ended

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOCAL = ("file:", "data:", "blob:", "about:", "http://localhost:", "http://127.0.0.1:")
ABORTED = "net::ERR_ABORTED"
PATIENCE = 120_000  # milliseconds for whatever is waited for, on a machine that is busy
expect.set_options(timeout=PATIENCE)


@pytest.fixture
def libraries():
    """d3.js and jquery.js: where the build takes them from."""
    return {name: notices.NPM / source for name, source in notices.BERTVIZ.items()}


@pytest.fixture(scope="session")
def book(once, running) -> Path:
    """The folder of the book's pages, built from the present sources by the first that asks.

    AFM_BUILD names a folder in which the book is built already.
    """
    if os.environ.get("AFM_BUILD"):
        return BUILD

    def build(folder: Path) -> None:
        for chapter in sorted((ROOT / "chapters").glob("*.ipynb")):
            with running(chapter):  # nbval may be at it: what its run gives is built
                pass
        jobs = "2" if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 2 else "1"
        log = folder / "log"
        with log.open("w", encoding="utf-8") as file:
            command = [sys.executable, "book/build.py", "--jobs", jobs]
            done = ended(*command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, patience=None)
        if done.returncode:
            pytest.fail(f"the book was not built\n{log.read_text(encoding='utf-8')[-8000:]}")

    once("book", build)
    return BUILD


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """A process may have one only, whichever browsers it drives."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright) -> Iterator[Browser]:
    """A Chromium that is there already, else the one that Playwright has downloaded."""
    found = os.environ.get("AFM_CHROMIUM") or next(
        filter(None, map(shutil.which, CHROMIUM_NAMES)), None
    )
    try:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
    except Error as error:
        pytest.fail(
            f"no Chromium could be started: `playwright install chromium` gets one\n{error}"
        )
    yield chromium
    chromium.close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[[Path], str]]:
    with ExitStack() as servers:

        @cache
        def serve(folder: Path) -> str:
            handler = partial(Quiet, directory=str(folder))
            http = servers.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            servers.callback(http.shutdown)
            threading.Thread(target=http.serve_forever, daemon=True).start()
            return f"http://127.0.0.1:{http.server_port}"

        yield serve


def slow_down(page: Page) -> None:
    """So that what a test reads before it is there, is not there."""
    rate = {"rate": float(os.environ["AFM_SLOWER"])}
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", rate)


@pytest.fixture
def watched() -> Iterator[Callable[[BrowserContext], BrowserContext]]:
    """Collect what goes wrong in a context's pages; if anything did, the test fails at its end."""
    wrong: list[str] = []

    def watch(context: BrowserContext) -> BrowserContext:
        context.set_offline(True)
        context.set_default_timeout(PATIENCE)
        context.on(
            "request", lambda r: r.url.startswith(LOCAL) or wrong.append(f"request: {r.url}")
        )
        # A page that is left, or closed, gives up what it was still loading: that is not a fault.
        context.on(
            "requestfailed",
            lambda r: r.failure != ABORTED and wrong.append(f"failed: {r.url[:200]} {r.failure}"),
        )
        context.on("weberror", lambda e: wrong.append(f"page error: {e.error}"))
        context.on(
            "console",
            lambda m: (
                m.type in ("error", "warning") and wrong.append(f"console {m.type}: {m.text}")
            ),
        )
        if os.environ.get("AFM_SLOWER"):
            context.on("page", slow_down)
        context.wrong = wrong
        return context

    yield watch
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def open_page(browser, watched, tmp_path) -> Iterator[Callable[..., Page]]:
    """Open a page with the given widgets, all mounted; `page.context.wrong` lists the errors."""
    contexts: list[BrowserContext] = []

    def open_(
        *widgets, theme="light", width=1000, height=900, touch=False, before="", **options
    ) -> Page:
        path = write_page(
            tmp_path, *widgets, theme=theme, before=before, name=f"page{len(contexts)}.html"
        )
        context = browser.new_context(
            viewport={"width": width, "height": height},
            has_touch=touch,
            reduced_motion="reduce",
            accept_downloads=True,
            **options,
        )
        contexts.append(watched(context))
        page = context.new_page()
        page.goto(path.as_uri())
        mount_all(page)
        return page

    yield open_
    for context in contexts:
        context.close()
