"""A newcomer's path through the built book, with a mouse and no kernel, and the time it takes.

    newcomer = Newcomer(page, BUILD)
    newcomer.arrive()
    newcomer.follow("12", to="12")                               a link in the text, by its words
    newcomer.first_answer("machine")                             ms until a figure's first answer

What takes long is timed by the page's own clock, in milliseconds: `newcomer.taken`. `longest_task`
is the longest task of the page's thread since the last call; longer ones than 50 ms are recorded.
"""

from pathlib import Path

from playwright.sync_api import ElementHandle, Page

WATCH_LONG_TASKS = """
window.longTasks = [];
const keep = (list) => window.longTasks.push(...list.getEntries().map((e) => e.duration));
new PerformanceObserver(keep).observe({ type: "longtask", buffered: true });
"""
FACTS = "(name) => window.afmFigures.get(name)[0].facts()"
FIGURE = "(name) => window.afmFigures.get(name)[0].element"
# Of a machine: its answer is there. While it thinks, all probabilities are 0.
ANSWERS = "f['probability .'] > 0"
FIRST = """(name) => {
  const f = window.afmFigures?.get(name)?.[0].facts();
  return f && %s && performance.now();
}"""
# From the next click on, until the figure's facts f are so.
TIMED = """([name, text]) => {
  const isSo = eval(`(f) => ${text}`);
  const { facts } = window.afmFigures.get(name)[0];
  const watch = (resolve, reject) => async () => {
    const begun = performance.now();
    let now = facts();
    for (; !isSo(now); now = facts()) {
      if (performance.now() - begun > 120_000) return reject(new Error(`${name}: never ${text}`));
      await new Promise((next) => setTimeout(next));
    }
    resolve([performance.now() - begun, now]);
  };
  window.timed = new Promise((...ends) =>
    addEventListener("click", watch(...ends), { capture: true, once: true }));
}"""


class Newcomer:
    """Somebody who sees the book for the first time, in this page."""

    def __init__(self, page: Page, book: Path) -> None:
        self.page, self.book = page, book
        self.taken: dict[str, float] = {}
        self.found: dict[str, float] = {}
        page.add_init_script(WATCH_LONG_TASKS)

    def arrive(self) -> None:
        """Open the book, as who has its address does."""
        self.page.goto((self.book / "index.html").as_uri())
        self.page.wait_for_url("**/book/index.html")
        self._loaded("landing page")

    def follow(self, link: str, *, to: str) -> None:
        """Click a link in the text, by its words."""
        self.page.locator("article").get_by_role("link", name=link, exact=True).first.click()
        self.page.wait_for_url(f"**/{to}*.html")
        self._loaded(f"page {to}")

    def _loaded(self, what: str) -> None:
        script = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        self.page.wait_for_function(f"{script} > 0")
        self.taken[f"{what} loaded"] = self.page.evaluate(script)

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

    def first_answer(self, name: str) -> float:
        """Wait until a machine has answered; the page's clock then, ms after it was asked for."""
        return self.page.wait_for_function(FIRST % ANSWERS, arg=name).json_value()

    def click(self, button: ElementHandle, name: str, until: str) -> float:
        """Click, and wait until this is so of the figure's facts `f`; ms from the one to the other.

        `newcomer.found` are the facts of that moment.
        """
        self.page.evaluate(TIMED, [name, until])
        button.click()
        taken, self.found = self.page.evaluate("window.timed")
        return taken

    def write_words(self, name: str, count: int) -> list[float]:
        """Write the most probable word, so many times; ms from each click to the next answer."""
        taken = []
        for _ in range(count):
            first = self.figure(name).query_selector("[aria-label='What may come next'] button")
            words = self.facts(name)["words"] + 1
            taken.append(self.click(first, name, f"{ANSWERS} && f.words === {words}"))
        return taken

    def switch_off_until_it_forgets(self, name: str) -> list[float]:
        """The last block's heads, off and on again until one undoes the answer; ms of each."""
        taken = []
        heads = "[role=option][aria-label^='block 3, head']"
        for head in self.figure(name).query_selector_all(heads):
            taken.append(self.click(head, name, f"{ANSWERS} && f.off === 1"))
            if self.facts(name)["right"] < 0.5:
                break
            taken.append(self.click(head, name, f"{ANSWERS} && f.off === 0"))
        return taken

    def train(self, name: str, *, share: float = 0.98) -> float:
        """Press start; ms until this share of the answers is right, or 500 steps are over."""
        start = self.figure(name).query_selector(".afm-start")
        return self.click(start, name, f"f.right >= {share} || f.steps >= 500")

    def longest_task(self) -> float:
        """Of the page's own thread, since the last call, in ms; 0 where all were below 50."""
        return self.page.evaluate("Math.max(0, ...window.longTasks.splice(0))")
