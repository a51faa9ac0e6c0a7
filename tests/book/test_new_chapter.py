"""`make chapter`: what it writes runs, keeps every rule, and is in the table of contents."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import nbformat
import new_chapter
import pytest
from links import dead_links, road_names, toc_problems
from programs import ended
from rules import problems

ROOT = Path(__file__).resolve().parents[2]
TITLE = r'One "more"""" of $\sqrt{d}$'
PARTS = ("book", "chapters", "tests/browser", "transformer_lib", "_config.yml", "_toc.yml")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The book in another folder."""
    folder = tmp_path_factory.mktemp("copy")
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, folder)
    return folder


def make_chapter(folder, *arguments):
    command = [sys.executable, "book/new_chapter.py", *arguments]
    return ended(*command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)})


@pytest.mark.slow
def test_a_new_chapter_keeps_every_rule(copy):
    done = make_chapter(copy, "97-one-more", TITLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Left to do" in done.stdout
    path = copy / "chapters" / "97-one-more.ipynb"
    nb = nbformat.read(path, as_version=4)
    assert problems(nb, path.stem, road_names(copy)) == []
    assert nb.cells[0].source.startswith(f"# {TITLE}\n")
    assert dead_links(path) == []
    assert toc_problems(copy) == []
    toc = (copy / "_toc.yml").read_text("utf-8")
    assert "chapters/15-from-here\n      - file: chapters/97-one-more\n" in toc
    done = make_chapter(copy, "97b-circuits", "Circuits by hand")
    assert done.returncode == 0, done.stdout + done.stderr
    aside = copy / "chapters" / "97b-circuits.ipynb"
    assert problems(nbformat.read(aside, as_version=4), aside.stem, road_names(copy)) == []
    assert dead_links(aside) == toc_problems(copy) == []
    done = make_chapter(copy, "97-one-more", "--exercise", "third")
    assert done.returncode == 0, done.stdout + done.stderr
    nb = nbformat.read(path, as_version=4)
    assert problems(nb, path.stem, road_names(copy)) == []
    assert [c.source.splitlines()[-1] for c in nb.cells].count("check_third(third)") == 2


def test_a_chapter_in_between_leads_on():
    nb = new_chapter.skeleton("Blocks", "blocks", "09-encoder-decoder")
    assert any("](09-encoder-decoder.ipynb)" in cell.source for cell in nb.cells)


def test_a_deeper_page_is_listed_below_its_chapter():
    toc = "chapters:\n  - file: chapters/02-b\n  - file: chapters/05-e\n  - file: book/index\n"
    first = new_chapter.listed(toc, "02b-more")
    aside = "  - file: chapters/02-b\n    sections:\n    - file: chapters/02b-more\n"
    assert first == toc.replace("  - file: chapters/02-b\n", aside)
    second = new_chapter.listed(first, "02c-most")
    assert second == first.replace("02b-more\n", "02b-more\n    - file: chapters/02c-most\n")
    third = new_chapter.listed(second, "03-c")
    assert third == second.replace("02c-most\n", "02c-most\n  - file: chapters/03-c\n")
    before = new_chapter.listed(new_chapter.listed(toc, "02c-most"), "02b-more")
    assert before == second


@pytest.mark.parametrize("arguments", [("97b-name", "T"), ("01z-name", "Title")])
def test_a_deeper_page_needs_its_chapter_and_a_free_letter(arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["new_chapter.py", *arguments])
    if arguments[0].startswith("01"):
        monkeypatch.setattr(new_chapter.Path, "glob", lambda self, pattern: [Path("01z-x.ipynb")])
    assert new_chapter.main() == 1
    assert re.search("no chapter 97|01z-x.ipynb is there", capsys.readouterr().err)


@pytest.mark.parametrize("arguments", [(), ("14-name",), ("name", "Title"), ("14-Na/me", "Title")])
def test_what_is_missing_is_said(arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["new_chapter.py", *arguments])
    assert new_chapter.main() == 1
    assert "make chapter NAME=" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("98-2nd-look", "2nd_look.py could not be imported"),
        ("98-import", "import.py could not be imported"),
        ("98-engine", "exercises/engine is there already"),
    ],
)
def test_a_module_of_exercises_can_be_imported(name, problem, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["new_chapter.py", name, "Title"])
    assert new_chapter.main() == 1
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("03-scaling", "class"), "Say: make exercise"),
        (("05b-heads-in-depth", "halve"), "05b-heads-in-depth.ipynb: it has no exercise yet"),
    ],
)
def test_an_exercise_that_cannot_be_written_is_refused(arguments, problem, capsys):
    assert new_chapter.write_exercise(*arguments) == 1
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("name", ["01-self-attention", "12b-muon"])
def test_an_exercise_has_the_next_number(name):
    nb = nbformat.read(ROOT / "chapters" / f"{name}.ipynb", as_version=4)
    new_chapter.with_exercise(nb, "halve")
    heads = [n for n, c in enumerate(nb.cells) if "\n### Exercise " in f"\n{c.source}"]
    assert nb.cells[heads[-1]].source.startswith(f"### Exercise {len(heads)} ")


def test_a_title_reaches_the_program_as_it_was_typed():
    title = r"Why $\sqrt{d}$, `ls` and it's \"so\""
    done = ended(
        "make", "-n", "--no-print-directory", "chapter", "NAME=98-x", f"TITLE={title}", cwd=ROOT
    )
    assert shlex.split(done.stdout.splitlines()[-1])[-1] == title


def test_a_chapter_is_listed_by_its_number():
    toc = "chapters:\n  - file: chapters/02-b\n  - file: chapters/05-e\n  - file: book/index\n"
    for name, before in {"01-a": "chapters:", "03-c": "02-b", "09-i": "05-e"}.items():
        lines = new_chapter.listed(toc, name).splitlines()
        assert lines[lines.index(f"  - file: chapters/{name}") - 1].endswith(before)
        assert len(lines) == 5
