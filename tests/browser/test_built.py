"""The built book's files, without a browser: complete, linked, described, and self-contained."""

import getpass
import json
import re
from pathlib import Path

import pytest
from built import (
    BUILD,
    DOCUMENTS,
    PAGES,
    READ,
    ROOT,
    TOC,
    dead_links,
    elements,
    poor_images,
    third_parties,
)

pytestmark = pytest.mark.usefixtures("book")
CHAPTERS = [document for document in DOCUMENTS if document.startswith("chapters/")]


def test_the_book_is_built_from_the_sources_that_are_here():
    """Every page of the table of contents, every chapter in it, each from its present text."""
    assert {path.relative_to(BUILD).as_posix() for path in BUILD.rglob("*.html")} == set(PAGES)
    assert {Path(d).name for d in CHAPTERS} == {p.stem for p in (ROOT / "chapters").glob("*.ipynb")}
    for document in DOCUMENTS:
        built = next(BUILD.joinpath("_sources", document).parent.glob(f"{Path(document).name}.*"))
        source = ROOT / document.removesuffix(built.suffix)
        source = source.with_name(source.name + built.suffix)
        assert built.read_bytes() == source.read_bytes(), f"{document}: run `make book` again"


def test_the_front_page_leads_to_the_book():
    refresh = [a["content"] for tag, a in elements(BUILD / "index.html") if "http-equiv" in a]
    assert refresh == [f"0; url={TOC['root']}.html"]
    assert dead_links(BUILD / "index.html") == []


@pytest.mark.parametrize("page", READ)
def test_links_lead_somewhere(page):
    assert dead_links(BUILD / page) == []


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_loaded_from_elsewhere(page):
    assert third_parties(BUILD / page) == []


@pytest.mark.parametrize("page", READ)
def test_every_picture_is_described(page):
    assert poor_images(BUILD / page) == []


@pytest.mark.parametrize("page", READ)
def test_no_path_of_the_building_machine(page):
    text = (BUILD / page).read_text(encoding="utf-8")
    text = re.sub(r"<script[^>]*widget-state.*?</script>", "", text, flags=re.S)
    assert str(ROOT) not in text
    assert f"/home/{getpass.getuser()}" not in text
    assert "/tmp/ipykernel" not in text


# A chapter that is two sittings; and the deeper pages of the second.
SITTINGS, OF_A_SITTING = {"7c"}, {"7d": "7c"}


@pytest.mark.parametrize("document", CHAPTERS)
def test_a_chapter_can_be_downloaded_and_has_its_number(document):
    page = BUILD / f"{document}.html"
    downloads = [a["href"] for tag, a in elements(page) if a.get("href", "").endswith(".ipynb")]
    stored = [path for path in downloads if "_sources" in path]
    assert len(stored) == 1
    assert json.loads((page.parent / stored[0]).read_text(encoding="utf-8"))["cells"]
    number = Path(document).name.split("-")[0].lstrip("0") or "0"
    text = page.read_text(encoding="utf-8")
    if number.isdigit() or number in SITTINGS:
        assert f'<p class="afm-chapter">Chapter {number}</p>' in text
    else:
        chapter = OF_A_SITTING.get(number, number[:-1])
        assert f">Chapter {chapter}</a>, not needed on the road</p>" in text
    assert re.search(rf'class="current reference internal"[^>]*>{number} · ', text)


def test_most_exercises_are_asked_on_the_page_and_open_cells_can_be_changed():
    """The build tries each: its empty answer, its solution, what a cell prints."""
    texts = {Path(d).name: (BUILD / f"{d}.html").read_text(encoding="utf-8") for d in CHAPTERS}
    assert sum(text.count("data-afm-ask=") for text in texts.values()) >= 75
    # All sentences of the grammar are more than the page's Python can hold.
    elsewhere = {name: text.count('class="afm-ask-elsewhere"') for name, text in texts.items()}
    assert {name: n for name, n in elsewhere.items() if n} == {"10-translation": 1}
    first = [text for name, text in texts.items() if name[:2] in ("01", "02", "03", "04", "05")]
    assert sum(text.count("data-afm-change=") for text in first) >= 40


def test_mathematics_is_rendered_and_its_style_is_where_it_is_needed():
    for page in READ:
        text = (BUILD / page).read_text(encoding="utf-8")
        rendered = 'class="katex"' in text
        assert rendered == ("katex/katex.css" in text), page
        assert "katex-error" not in text, page
        assert "mathjax" not in text.lower().replace("mathjax_ignore", ""), page
    assert any('class="katex"' in (BUILD / page).read_text(encoding="utf-8") for page in READ)


def test_the_theme_carries_no_dead_weight():
    static = BUILD / "_static"
    names = {path.name for path in static.rglob("*")}
    assert not names & {"fontawesome.js", "locales", "vendor", "thebelab.js", "require.min.js"}
    assert not [name for name in names if name.endswith((".map", ".ttf", ".woff"))]
    assert "Font Awesome" not in (static / "afm-icons.css").read_text(encoding="utf-8")
    # A page without widgets, and with nothing to answer or to change, does not load their host.
    for page in READ:
        text = (BUILD / page).read_text(encoding="utf-8")
        hosted = "widget-view+json" in text or 'id="afm-asked"' in text
        assert hosted == ("afm-host.js" in text), page


def test_each_check_of_this_file_finds_what_it_looks_for(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="gone.html">a</a><a href="#nowhere">b</a><a href="page.html#here">c</a>'
        '<p id="here"></p><a href="https://example.org/">out</a><img src="_images/f.png" alt="'
        '_images/f.png"><script src="https://cdn.example.org/x.js"></script>'
        '<link href="//example.org/x.css">',
        encoding="utf-8",
    )
    assert [line.split(">")[0] for line in dead_links(page)] == [
        "<a href='gone.html'",
        "<a href='#nowhere'",
        "<img src='_images/f.png'",
        "<link href='//example.org/x.css'",
    ]
    assert third_parties(page) == [
        "<script> https://cdn.example.org/x.js",
        "<link> //example.org/x.css",
    ]
    assert poor_images(page) == ["_images/f.png: '_images/f.png'"]


def test_where_there_is_no_javascript_a_sentence_stands_for_each_figure(book):
    for name in READ:
        page = (BUILD / name).read_text(encoding="utf-8")
        figures = page.count('<script type="application/vnd.jupyter.widget-view+json">')
        assert page.count("<noscript><p") == figures, name
