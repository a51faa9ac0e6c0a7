"""tests/support/schedule.py: the order of the tests, and which stay together."""

import random
from pathlib import Path

import execution
import nbformat
import schedule

BOOK = schedule.FIRST
NBVAL = "tests/chapters/test_nbval.py::test_chapter[{}]".format
ORDER = [
    NBVAL("12-training-gpt"),
    NBVAL("06-tokens-and-embeddings"),
    NBVAL("05-multi-head"),
    NBVAL("01-self-attention"),
    "tests/training/test_loop.py::test_a",
    BOOK,
    "tests/browser/test_host.py::test_a",
    "tests/browser/test_pages.py::test_page[chapters/01-self-attention.html-light-1280]",
]


def test_chapters_come_first_then_the_book_and_what_needs_it_last():
    shuffled = random.Random(0).sample(ORDER, len(ORDER))
    assert sorted(shuffled, key=schedule.place) == ORDER


def test_what_trains_stays_in_one_worker_where_there_are_two():
    units = [schedule.unit(nodeid, workers=2) for nodeid in ORDER]
    assert units[0] == units[1]
    assert len(set(units)) == len(units) - 1
    assert len({schedule.unit(nodeid, workers=8) for nodeid in ORDER}) == len(ORDER)


def test_tests_of_a_file_stay_together():
    first, second = (schedule.unit(f"tests/test_gpt.py::test_{n}", 2) for n in "ab")
    assert first == second == "tests/test_gpt.py"


def test_the_tests_that_are_named_are_there(request):
    folder = request.config.rootpath
    file, _, name = schedule.FIRST.partition("::")
    assert f"def {name}(" in (folder / file).read_text("utf-8")
    for path in (schedule.PAGES, schedule.NBVAL):
        assert (folder / path).is_file()


def test_build_and_tests_agree_on_what_trains():
    chapters = sorted(schedule.CHAPTERS.glob("*.ipynb"))
    found = {path.stem for path in chapters if schedule.trains(path.stem)}
    assert found
    notebooks = {path.stem: nbformat.read(path, as_version=4) for path in map(Path, chapters)}
    assert found == {name for name, nb in notebooks.items() if execution.trains(nb)}
