"""The checks of links and contents, on a small book made for the purpose."""

import pytest
from links import dead_links, figures_called_alike, road_names, toc_problems
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes


@pytest.fixture
def book(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "chapters").mkdir()
    glossary = "# Glossary\n\n## key-value cache (KV cache)\n\nText.\n\n## query\n\nText.\n"
    (tmp_path / "book/glossary.md").write_text(glossary)
    (tmp_path / "book/notation.md").write_text("# Notation\n\n## Sizes & axes\n")
    (tmp_path / "book/references.md").write_text("# References\n\n### vaswani2017\n\nText.\n")
    (tmp_path / "book/index.md").write_text("# Book\n")
    for name in ("01-one", "01b-more", "02-two"):
        cells = [new_markdown_cell(f"# Chapter {name}\n\n## What *is* `x`?")]
        (tmp_path / f"chapters/{name}.ipynb").write_text(writes(new_notebook(cells=cells)))
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nparts:\n- chapters:\n  - file: chapters/01-one\n"
        "    sections:\n    - file: chapters/01b-more\n  - file: chapters/02-two\n"
        "- chapters:\n  - file: book/glossary\n"
    )
    return tmp_path


GOOD = [
    "https://arxiv.org/abs/1706.03762",
    "../book/glossary.md",
    "../book/glossary.md#query",
    "../book/glossary.md#key-value-cache-kv-cache",
    "../book/notation.md#sizes--axes",
    "../book/references.md#vaswani2017",
    "02-two.ipynb",
    "02-two.ipynb#what-is-x",
    "#what-is-x",
]
BAD = {
    "../book/glossary.md#querry": "no anchor `querry`",
    "../book/glossary.md#text": "no anchor",
    "../book/references.md#vaswani2018": "no anchor",
    "../book/nowhere.md": "no such file",
    "03-three.ipynb": "no such file",
    "02-two.ipynb#what-is-y": "no anchor",
    "#nowhere": "no anchor",
    "http://example.org/": "must begin with https://",
    "htps://example.org/": "must begin with https://",
}


def _page(book, *targets):
    path = book / "chapters/01-one.ipynb"
    links = "\n\n".join(f"See [*it* [now]]({target})." for target in targets)
    cells = [new_markdown_cell(f"# One\n\n## What *is* `x`?\n\n{links}")]
    path.write_text(writes(new_notebook(cells=cells)))
    return path


def test_good_links_pass(book):
    assert dead_links(_page(book, *GOOD)) == []


@pytest.mark.parametrize("target", BAD)
def test_a_dead_link_is_found(book, target):
    [problem] = dead_links(_page(book, *GOOD, target))
    assert problem.startswith(target)
    assert BAD[target] in problem


def test_code_is_not_searched_for_links(book):
    path = book / "book/index.md"
    path.write_text("`[x](y.md)`\n\n```python\nf[x](y)\n```\n")
    assert dead_links(path) == []


FIGURES = [
    'MaskPainter(words, q, k, v, name="painter")',
    "%matplotlib inline\nlab = widgets.ScalingLab(\n    name='lab',\n)\nlab",
    "this is not Python",
]
SETS = [
    "#set:painter;layers=2;follow=roses",
    "#set:painter;reset",
    "#set:painter;mask=sliding-window;open=mary,susan",
    "#set:lab;d_k=1024",
]
SETS_NOTHING = {
    "#set:mask;layers=2": "no figure of this page has name='mask'; there are: lab, painter",
    "#set:painter;layer=2": "there is no key 'layer'",
    "#set:painter;layers=7": "layers=7: it takes a whole number from 1 to 6",
    "#set:painter;layers=two": "layers=two: it takes a whole number",
    "#set:painter;keep=yes": "keep=yes: it takes on or off",
    "#set:painter;reset=on": "reset takes no value",
    "#set:painter;mask=round": "it takes one of: causal, padding",
    "#set:lab;d_k=2;seed=-1": "seed=-1: it takes a whole number from 0",
    "#set:lab": "it sets nothing",
    "#set:": "write #set:name;key=value",
}


def _figures(book, *targets, figures=FIGURES):
    path = book / "chapters/01-one.ipynb"
    links = "\n\n".join(f"See [*it* [now]]({target})." for target in targets)
    cells = [new_markdown_cell(f"# One\n\n{links}"), *map(new_code_cell, figures)]
    path.write_text(writes(new_notebook(cells=cells)))
    return path


def test_links_that_set_a_figure_pass(book):
    assert dead_links(_figures(book, *SETS)) == []
    assert figures_called_alike(book / "chapters/01-one.ipynb") == []


@pytest.mark.parametrize("target", SETS_NOTHING)
def test_a_link_that_sets_no_figure_is_found(book, target):
    [problem] = dead_links(_figures(book, *SETS, target))
    assert problem.startswith(target)
    assert SETS_NOTHING[target] in problem


def test_two_figures_of_one_name_are_found(book):
    again = 'VectorPlayground(words, x, name="lab")'
    path = _figures(book, figures=[*FIGURES, again])
    assert figures_called_alike(path) == ["two figures are called 'lab'; rename one"]


def test_a_complete_table_of_contents_passes(book, monkeypatch):
    assert toc_problems(book) == []
    assert road_names(book) == ["01-one", "02-two"]
    monkeypatch.setattr("anatomy.SECOND_SITTINGS", ("01b",))
    toc = book / "_toc.yml"
    nested, flat = "    sections:\n    - file: chapters/01b", "  - file: chapters/01b"
    toc.write_text(toc.read_text().replace(nested, flat))
    assert toc_problems(book) == []
    assert road_names(book) == ["01-one", "01b-more", "02-two"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("chapters/02-two", "book/notation", "chapters/02-two is not in _toc.yml"),
        ("book/glossary", "book/nowhere", "_toc.yml lists book/nowhere, and there is no such file"),
        ("book/glossary", "chapters/01-one", "_toc.yml lists chapters/01-one twice"),
        (
            "  - file: chapters/02-two",
            "    - file: chapters/02-two",
            "_toc.yml lists chapters/02-two under chapters/01-one, which is for deeper pages only",
        ),
        (
            "    sections:\n    - file: chapters/01b-more",
            "  - file: chapters/01b-more",
            "_toc.yml must list chapters/01b-more in the `sections` of its chapter",
        ),
    ],
)
def test_an_incomplete_table_of_contents_is_found(book, old, new, problem):
    toc = book / "_toc.yml"
    toc.write_text(toc.read_text().replace(old, new))
    assert toc_problems(book) == [problem]
