"""The reader's copy of the chapters: complete, and nothing of the reader's is ever lost."""

import lab
import pytest


@pytest.fixture
def book(tmp_path):
    for name in ("chapters/01-one.ipynb", "chapters/02-two.ipynb"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text("old")
    for page in lab.PAGES:
        (tmp_path / "source" / "book").mkdir(exist_ok=True)
        (tmp_path / "source" / "book" / page).write_text("page")
    return tmp_path / "source", tmp_path / "copy"


def test_everything_is_copied_once(book):
    source, target = book
    assert len(lab.copy(*book)) == 2 + len(lab.PAGES)
    for path in source.rglob("*.*"):
        assert (target / path.relative_to(source)).read_bytes() == path.read_bytes()
    assert lab.copy(*book) == []


def test_a_chapter_that_has_changed_replaces_an_untouched_copy(book):
    source, target = book
    lab.copy(*book)
    (source / "chapters/01-one.ipynb").write_text("new")
    assert lab.copy(*book) == ["chapters/01-one.ipynb is copied."]
    assert (target / "chapters/01-one.ipynb").read_text() == "new"


def test_a_record_that_was_lost_is_made_anew(book):
    source, target = book
    lab.copy(*book)
    (target / lab.RECORD).unlink()
    assert lab.copy(*book) == []
    (source / "chapters/01-one.ipynb").write_text("new")
    assert lab.copy(*book) == ["chapters/01-one.ipynb is copied."]


def test_what_the_reader_has_written_stays(book):
    source, target = book
    lab.copy(*book)
    own = target / "chapters/01-one.ipynb"
    own.write_text("mine")
    assert lab.copy(*book) == []
    (source / "chapters/01-one.ipynb").write_text("new")
    for _ in range(2):
        [line] = lab.copy(*book)
        assert line.startswith("chapters/01-one.ipynb has changed in the book, and yours too.")
        assert own.read_text() == "mine"
    own.rename(own.with_name("mine.ipynb"))
    assert lab.copy(*book) == ["chapters/01-one.ipynb is copied."]
    assert own.read_text() == "new"
    assert own.with_name("mine.ipynb").read_text() == "mine"


def test_a_file_that_was_there_before_stays(book):
    _, target = book
    (target / "chapters").mkdir(parents=True)
    (target / "chapters/02-two.ipynb").write_text("mine")
    assert "yours too" in "\n".join(lab.copy(*book))
    assert (target / "chapters/02-two.ipynb").read_text() == "mine"


def test_git_ignores_the_copy():
    assert "/lab/" in (lab.ROOT / ".gitignore").read_text("utf-8").splitlines()
