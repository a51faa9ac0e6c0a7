"""Every stored chapter has the anatomy that the book promises (what the rules are: rules.py)."""

import pytest
from links import (
    CHAPTERS,
    ROOT,
    dead_links,
    figures_called_alike,
    road_names,
    toc_problems,
)
from rules import HELD_TO_AIMS, problems

PAGES = sorted((ROOT / "book").glob("*.md")) + CHAPTERS


def test_chapter(notebook, chapter):
    found = problems(notebook, chapter.stem, road_names(ROOT))
    assert not found, "\n".join(found)


def test_the_chapters_held_to_the_aims_exist():
    assert set(HELD_TO_AIMS) <= set(road_names(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(page):
    assert dead_links(page) == []


def test_no_two_figures_of_a_chapter_have_one_name():
    found = {path.stem: figures_called_alike(path) for path in CHAPTERS}
    assert {chapter: names for chapter, names in found.items() if names} == {}


def test_table_of_contents_is_complete():
    assert toc_problems(ROOT) == []
