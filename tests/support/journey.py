"""A newcomer's path through the built book, with a mouse and no kernel.

    newcomer = Newcomer(page, BUILD)
    newcomer.arrive()
    newcomer.follow("12", to="12")                               a link in the text, by its words
    newcomer.first_answer("machine")                             wait until a figure has answered

Each step waits until the page has done what it asks for.
"""

from pathlib import Path

from playwright.sync_api import ElementHandle, Page

FACTS = "(name) => window.afmFigures.get(name)[0].facts()"
FIGURE = "(name) => window.afmFigures.get(name)[0].element"
# Of a machine: its answer is there. While it thinks, all probabilities are 0.
ANSWERS = "f['probability .'] > 0"


class Newcomer:
    """Somebody who sees the book for the first time, in this page."""

    def __init__(self, page: Page, book: Path) -> None:
        self.page, self.book = page, book

    def arrive(self) -> None:
        """Open the book, as who has its address does."""
        self.page.goto((self.book / "index.html").as_uri())
        self.page.wait_for_url("**/book/index.html")
        self._loaded()

    def follow(self, link: str, *, to: str) -> None:
        """Click a link in the text, by its words."""
        self.page.locator("article").get_by_role("link", name=link, exact=True).first.click()
        self.page.wait_for_url(f"**/{to}*.html")
        self._loaded()

    def _loaded(self) -> None:
        script = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        self.page.wait_for_function(f"{script} > 0")

    def scroll_to(self, heading: str) -> None:
        self.page.get_by_role("heading", name=heading).first.scroll_into_view_if_needed()

    def facts(self, name: str) -> dict[str, float]:
        return self.page.evaluate(FACTS, name)

    def figure(self, name: str) -> ElementHandle:
        """The figure's element, in sight."""
        self.page.wait_for_function("(name) => window.afmFigures?.has(name)", arg=name)
        element = self.page.evaluate_handle(FIGURE, name).as_element()
        element.scroll_into_view_if_needed()
        return element

    def until(self, name: str, text: str) -> None:
        """Wait until this is so of the figure's facts `f`."""
        self.page.wait_for_function(f"(name) => ((f) => {text})(({FACTS})(name))", arg=name)

    def first_answer(self, name: str) -> None:
        """Wait until a machine has answered."""
        self.until(name, ANSWERS)

    def write_words(self, name: str, count: int) -> None:
        """Write the most probable word, so many times, each after the answer to the last."""
        for _ in range(count):
            first = self.figure(name).query_selector("[aria-label='What may come next'] button")
            words = self.facts(name)["words"] + 1
            first.click()
            self.until(name, f"{ANSWERS} && f.words === {words}")

    def switch_off_until_it_forgets(self, name: str) -> None:
        """The last block's heads, off and on again until one undoes the answer."""
        heads = "[role=option][aria-label^='block 3, head']"
        for head in self.figure(name).query_selector_all(heads):
            head.click()
            self.until(name, f"{ANSWERS} && f.off === 1")
            if self.facts(name)["right"] < 0.5:
                break
            head.click()
            self.until(name, f"{ANSWERS} && f.off === 0")

    def train(self, name: str, *, share: float = 0.98) -> None:
        """Press start; wait until this share of the answers is right, or 500 steps are over."""
        self.figure(name).query_selector(".afm-start").click()
        self.until(name, f"f.right >= {share} || f.steps >= 500")
