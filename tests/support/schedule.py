"""In which order the tests run, and which of them stay together in one worker.

`make test` needs the book, which takes longer to build than most tests together, and it executes
every chapter a second time. So one worker begins with the book and goes on with the chapters that
train; the others have all the rest, and come to the book's pages at the end.
"""

from pathlib import Path

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
BOOK = "tests/browser/test_built.py"
PAGES = "tests/browser/test_pages.py"
NBVAL = "tests/chapters/test_nbval.py"
FIRST = f"{BOOK}::test_the_book_is_built_from_the_sources_that_are_here"


def executes(nodeid: str) -> str | None:
    """The chapter that a test executes; None if it executes none."""
    start, _, chapter = nodeid.rpartition("[")
    return chapter.rstrip("]") if start.startswith(NBVAL) else None


def trains(chapter: str) -> bool:
    """Whether a chapter trains a model at length, as book/execution.py decides it."""
    path = CHAPTERS / f"{chapter}.ipynb"
    return path.exists() and "Trainer(" in path.read_text(encoding="utf-8")


def place(nodeid: str) -> tuple[int, int]:
    """Tests run in the order of this: what takes long, or waits for the book, is not left over."""
    chapter = executes(nodeid)
    number = -int(chapter.split("-")[0].rstrip("abcdefg")) if chapter else 0
    if nodeid == FIRST:
        return 0, 0
    if chapter:
        return (1 if trains(chapter) else 3), number  # later chapters take longer
    if nodeid.startswith((BOOK, PAGES)):
        return 5, 0
    return (4 if nodeid.startswith("tests/browser/") else 2), 0


def unit(nodeid: str, workers: int) -> str:
    """Tests of one unit run in one worker, one after another: those of a file, with exceptions."""
    chapter = executes(nodeid)
    if workers <= 2 and (nodeid == FIRST or (chapter and trains(chapter))):
        return "the book, and what trains: never side by side where there are two cores"
    if chapter or nodeid == FIRST or nodeid.startswith(PAGES):
        return nodeid
    return nodeid.split("::")[0]
