"""A figure that trains, named `here`, on a page: what it knows, and when its run has ended."""

from pathlib import Path

from playwright.sync_api import Page

LEARN = Path(__file__).parents[1] / "js" / "math" / "learn.js"  # the same engine under node


def facts(page: Page) -> dict[str, float]:
    return page.evaluate("window.afmFigures.get('here')[0].facts()")


def wait_for_end(page: Page) -> None:
    """Until the run has paused by itself."""
    page.wait_for_function("document.querySelector('.afm-start').textContent === 'go on'")
