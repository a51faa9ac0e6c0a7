"""In which order the tests run, and which of them stay together in one worker.

What takes longest is running the chapters. The book is built from what these runs gave, so it comes
when they are surely over, while the other workers go on; a build that came earlier would run them
once more. Its pages come last.
"""

import os
from functools import cache
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


@cache
def trains(chapter: str) -> bool:
    """Whether a chapter trains a model at length: the build asks the same function."""
    import execution
    import nbformat

    path = CHAPTERS / f"{chapter}.ipynb"
    return path.exists() and execution.trains(nbformat.read(path, as_version=4))


def place(nodeid: str) -> tuple[int, int]:
    """Tests run in the order of this: what takes long, or waits for the book, is not left over."""
    chapter = executes(nodeid)
    number = -int(chapter.split("-")[0].rstrip("abcdefg")) if chapter else 0
    if chapter:
        return (0 if trains(chapter) else 1), number  # later chapters take longer
    if nodeid == FIRST:
        return 3, 0
    if nodeid.startswith((BOOK, PAGES)):
        return 5, 0
    return (4 if nodeid.startswith("tests/browser/") else 2), 0


def unit(nodeid: str, workers: int) -> str:
    """Tests of one unit run in one worker, one after another: those of a file, with exceptions."""
    chapter = executes(nodeid)
    if min(workers, os.cpu_count() or 1) <= 2 and chapter and trains(chapter):
        return "what trains: never side by side where there are two cores"
    if chapter or nodeid == FIRST or nodeid.startswith(PAGES):
        return nodeid
    return nodeid.split("::")[0]
