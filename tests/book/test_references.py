"""The bibliography is well formed, what the pages cite is in it, and links to it resolve."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from extensions import bibliography
from links import slug
from programs import ended
from pybtex.database import parse_string

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "book" / "extensions"
BIB = ROOT / "book" / "references.bib"

GOOD = """@inproceedings{vaswani2017,
  author = {Vaswani, Ashish and Shazeer, Noam}, title = {Attention Is All You Need},
  booktitle = {NeurIPS}, year = {2017}, eprint = {1706.03762},
}"""


def pages() -> dict[str, str]:
    """The Markdown of every page: chapters and what surrounds them."""
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / "book").glob("*.md")}
    for path in (ROOT / "chapters").glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        texts[path.name] = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    return texts


def links(page: str) -> dict[str, set[str]]:
    """The fragments (after #) of links to a page of book/, by the file that links."""
    pattern = re.compile(rf"\]\((?:\.\./book/)?{page}\.md#([^)\s]+)\)")
    return {name: set(pattern.findall(text)) for name, text in pages().items()}


def test_every_entry_is_well_formed():
    entries = bibliography.read_bibliography(BIB)
    assert len(entries) >= 50
    assert all(entry.fields.get("annote", "").endswith((".", "?")) for entry in entries.values())


def test_no_link_and_no_title_stands_twice():
    entries = bibliography.read_bibliography(BIB)
    for field in ("eprint", "doi", "url", "title"):
        values = [e.fields[field].lower() for e in entries.values() if field in e.fields]
        assert len(values) == len(set(values)), field


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("@inproceedings", "@unpublished", "is not one of @article"),
        ("title = {Attention Is All You Need},", "", "the field 'title' is missing"),
        ("booktitle = {NeurIPS},", "", "the field 'booktitle' is missing"),
        ("author = {Vaswani, Ashish and Shazeer, Noam},", "", "the field 'author' is missing"),
        ("year = {2017}", "year = {2018}", "the key does not follow from 'Vaswani' and '2018'"),
        ("eprint = {1706.03762},", "", "none of eprint"),
        ("1706.03762", "1706.037", "is not an arXiv number"),
        ("1706.03762", "1906.03762", "cannot have appeared in 2017"),
        ("1706.03762", "1713.03762", "cannot have appeared in 2017"),
        ("eprint = {1706.03762}", "doi = {W18-2509}", "is not a DOI"),
        ("eprint = {1706.03762}", "url = {http://x.org}", "does not begin with https://"),
    ],
)
def test_a_malformed_entry_is_refused(old, new, problem):
    assert old in GOOD
    entry = parse_string(GOOD.replace(old, new), "bibtex").entries["vaswani2017"]
    with pytest.raises(ValueError, match=re.escape(problem)):
        bibliography.check_entry("vaswani2017", entry)


def test_a_good_entry_passes():
    bibliography.check_entry("vaswani2017", parse_string(GOOD, "bibtex").entries["vaswani2017"])


@pytest.mark.parametrize(
    ("authors", "expected"),
    [
        (r"Vig, Jesse", "Jesse Vig"),
        (r"Jain, Sarthak and Wallace, Byron C.", "Sarthak Jain and Byron C. Wallace"),
        (r"A, B and R{\'e}, Chris and Kaiser, {\L}ukasz", "B A, Chris Ré, and Łukasz Kaiser"),
        (r"Elhage, Nelson and others", "Nelson Elhage, et al."),
    ],
)
def test_names_read_as_people_write_them(authors, expected):
    entry = parse_string(f"@misc{{x, author = {{{authors}}}}}", "bibtex").entries["x"]
    assert bibliography.names(entry.persons["author"]) == expected


def test_every_entry_is_cited():
    cited = set().union(*links("references").values())
    assert sorted(set(bibliography.read_bibliography(BIB)) - cited) == []


def test_a_citation_with_a_year_names_the_entry_s_first_author_and_year():
    """`[Luong et al., 2015](...#luong2015)`; a link in running words may say what it likes."""
    entries = bibliography.read_bibliography(BIB)
    dated = 0
    for name, text in pages().items():
        for words, key in re.findall(r"\[([^\]]+)\]\([^)\s]*references\.md#(\w+)\)", text):
            if years := re.findall(r"\b(?:19|20)\d\d\b", words):
                dated += 1
                author = " ".join(entries[key].persons["author"][0].last_names)
                assert bibliography.plain(author) in words, (name, words, key)
                assert entries[key].fields["year"] in years, (name, words, key)
    assert dated


def test_a_comma_does_not_part_two_citations():
    """It stands before the year already: "Shaw et al., 2018; Raffel et al., 2020", or "and"."""
    link = r"\[[^\]]+, \d{4}\]\([^)\s]*references\.md#\w+\)"
    for name, text in pages().items():
        assert re.findall(rf"{link}, (?:and )?{link}", text) == [], name


def test_the_glossary_names_each_term_once_and_in_order():
    text = (ROOT / "book" / "glossary.md").read_text("utf-8")
    slugs = [slug(term) for term in re.findall(r"^## (.+)$", text, re.MULTILINE)]
    assert slugs == sorted(slugs), "the terms are in alphabetical order"
    assert len(set(slugs)) == len(slugs)


def test_the_pages_that_notebooks_link_to_are_plain_markdown():
    """JupyterLab, VS Code and GitHub show directives and roles as raw text."""
    for page in ("glossary", "notation", "references"):
        text = (ROOT / "book" / f"{page}.md").read_text("utf-8")
        assert not re.findall(r"^(?:```|:::)\{|\{\w+\}`", text, re.MULTILINE), page


def test_the_references_page_is_the_one_that_the_bibliography_makes():
    page = (ROOT / "book" / "references.md").read_text("utf-8")
    made = bibliography.page_markdown(page, bibliography.read_bibliography(BIB))
    assert page == made, "run `make references`"


def test_an_entry_as_plain_markdown():
    text = GOOD.replace("eprint", "annote = {What is [new](here).}, eprint")
    entry = parse_string(text, "bibtex").entries["vaswani2017"]
    assert bibliography.entry_markdown("vaswani2017", entry) == (
        "### vaswani2017\n\nAshish Vaswani and Noam Shazeer (2017). *Attention Is All You Need*. "
        "NeurIPS. [arXiv:1706.03762](https://arxiv.org/abs/1706.03762). What is [new](here).\n"
    )


PAGES = {
    "conf.py": "extensions = ['myst_parser', 'bibliography']\nmyst_heading_anchors = 3\n",
    "index.md": "# Start\n\n```{toctree}\nbook/references\nbook/glossary\n```\n\n"
    "See [Vig](book/references.md#vig2019) and a [key](book/glossary.md#soft-key).\n",
    "book/references.md": "# References\n\n<!-- Made from some.bib by hand. -->\n\n### x\n\nOld.\n",
    "book/glossary.md": "# Glossary\n\n## Soft key\n\nA [key of\nours](#soft-key).\n",
    "book/some.bib": "@misc{vig2019, author={Vig, Jesse}, title={Attention}, year={2019},\n"
    "  howpublished={arXiv preprint}, eprint={1906.05714}, annote={Views.}}\n",
}


def build(folder: Path, **changed: str) -> subprocess.CompletedProcess:
    """A small book, any warning an error."""
    for name, text in (PAGES | changed).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-nWq", "--keep-going", folder, folder / "out"]
    return ended(*command, env={"PYTHONPATH": str(EXTENSIONS)})


@pytest.mark.slow
def test_plain_links_reach_entries_and_terms(tmp_path):
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "out" / "index.html").read_text("utf-8")
    for address in ("book/references.html#vig2019", "book/glossary.html#soft-key"):
        assert f'href="{address}"' in index
    page = (tmp_path / "out" / "book" / "references.html").read_text("utf-8")
    entry = re.search(r'<p class="reference-entry" id="vig2019">(.*?)</p>', page, re.DOTALL)[1]
    plain = re.sub(r"<[^>]+>", "", entry)
    assert plain == (
        "Jesse Vig (2019). Attention. arXiv preprint. arXiv:1906.05714. Views. Cited in Start."
    )
    assert 'href="https://arxiv.org/abs/1906.05714"' in entry
    assert 'href="../index.html"' in entry
    assert "Old." not in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes", "problems"),
    [
        ("index.md", {"#vig2019": "#vig2020", "#soft-key": "#hard-key"}, ["vig2020", "hard-key"]),
        ("book/some.bib", {"eprint={1906.05714}, ": ""}, ["none of eprint"]),
    ],
)
def test_a_broken_link_or_entry_stops_the_build(tmp_path, name, changes, problems):
    text = PAGES[name]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    done = build(tmp_path, **{name: text})
    assert done.returncode != 0
    for problem in problems:
        assert problem in done.stderr
