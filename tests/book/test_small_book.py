"""book/build.py on a small book: the settings, templates and extensions of the real one, but two
pages of its own.
"""

import base64
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from extensions import notices
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from programs import ended
from stored_form import STILL

from transformer_lib.widgets.weights import unpack_weights

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/someone/some-book"

PAGE = """\
# Words

No formula here, but *emphasis*, [a chapter](../chapters/03-small.ipynb) and a word.
"""
CELLS = [
    new_markdown_cell("# Small\n\nLet $x_1$, and $x_2$; then\n\n$$\\color{#0072B2}{q} + k$$"),
    new_code_cell("1", metadata={"tags": ["setup", "hide-cell"]}),
    new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
    new_code_cell('# @title Solution {display-mode: "form"}\nanswer = 42\nanswer'),
]
CELLS[3].metadata["tags"] = ["solution", "hide-cell"]
FORM = [
    new_markdown_cell(f"# Formed\n\nAims.\n\n{STILL.format(pages='the pages')}"),
    new_code_cell("first = 1", metadata={"tags": ["setup", "hide-cell"]}),
    new_code_cell("# @title Imports\nsecond = 2", metadata={"tags": ["setup"]}),
    new_markdown_cell("## A section\n\nSee [the proof](#prove-it)."),
    new_code_cell("assert second == 2", metadata={"tags": ["claim"]}),
    new_code_cell("# @title The library's f\n'a listing'", metadata={"tags": ["listing"]}),
    new_code_cell("# @title Code of the curve\n'curve'", metadata={"tags": ["hide-input"]}),
    new_code_cell(
        "# @title Code of the question\nsecret = 'gave'\n'question'",
        metadata={"tags": ["hide-input"]},
    ),
    new_markdown_cell("## Prove it\n\nIndeed.\n\n### By hand\n\nAnd so."),
    new_markdown_cell("## What goes wrong in practice\n\nMuch."),
    new_markdown_cell("## References\n\nSome."),
]
QUESTION = """\
from transformer_lib.widgets import Predict
Predict("Is *6* < `7`?", {"yes": "It **is**.", "no": "No."}, right="yes", then="Ends *here*.")\
"""
REVEAL = {"tags": ["reveal"]}
WEIGHTS = """\
import anywidget, traitlets
from transformer_lib.widgets.weights import pack_weights

class Carrier(anywidget.AnyWidget):
    _esm = "export default { render() {} };"
    _packed = traitlets.Bytes().tag(sync=True)

    def __repr__(self):
        return "Carrier()"

Carrier(_packed=pack_weights({"table": [[2.0, -2.0]]}))\
"""
ASKING = [
    new_code_cell(WEIGHTS),
    new_code_cell(QUESTION, metadata={"tags": ["hide-input"]}),
    new_markdown_cell("The answer.\n\n## Why\n\nBecause.", metadata=REVEAL),
    new_code_cell("6 < 7", metadata=REVEAL),
    new_markdown_cell("In sight again."),
    new_markdown_cell("Set [*it*](#set:scale;reset;d_k=16), [`x`](#set:b;to=1%3B%202)."),
    new_code_cell(QUESTION.replace("yes", "sure"), metadata={"tags": ["hide-input"]}),
    new_code_cell("True", metadata=REVEAL),
]


def small_book(folder, *, url="", page=PAGE, more=()):
    """Build it; the process that has ended. Its pages lie in folder/_build/html."""
    shutil.copytree(ROOT / "book", folder / "book", ignore=shutil.ignore_patterns("*.md", "*.bib"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    config["repository"]["url"] = url
    (folder / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    toc = {"format": "jb-book", "root": "book/words"}
    deeper = [{"file": f"chapters/{name}"} for name in ("03b-more", "03c-most")]
    chapters = [{"file": "chapters/03-small", "sections": deeper}, {"file": "chapters/04-formed"}]
    toc["parts"] = [{"caption": "Part", "chapters": chapters}]
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    (folder / "book" / "words.md").write_text(page, encoding="utf-8")
    (folder / "chapters").mkdir()
    nbformat.write(new_notebook(cells=[*CELLS, *more]), folder / "chapters" / "03-small.ipynb")
    nbformat.write(new_notebook(cells=FORM), folder / "chapters" / "04-formed.ipynb")
    for name in ("03b-more", "03c-most"):
        aside = [new_markdown_cell("# More\n\nMore of [it](03-small.ipynb).")]
        nbformat.write(new_notebook(cells=aside), folder / "chapters" / f"{name}.ipynb")
    environment = os.environ | {"NO_COLOR": "1"}
    return ended(sys.executable, "book/build.py", cwd=folder, env=environment)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The small book as of a repository with an address."""
    folder = tmp_path_factory.mktemp("published")
    done = small_book(folder, url=ADDRESS, more=ASKING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"The book is built: file://{folder}/_build/html/index.html" in done.stdout
    return folder / "_build" / "html"


@pytest.mark.slow
def test_the_colab_button_opens_the_chapter(published):
    text = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    place = "github/someone/some-book/blob/main/chapters/03-small.ipynb"
    assert f'href="https://colab.research.google.com/{place}"' in text
    assert "colab.research" not in (published / "book" / "words.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_downloaded_notebook_links_to_the_published_pages(published):
    text = (published / "_sources" / "chapters" / "03b-more.ipynb").read_text(encoding="utf-8")
    assert "[it](https://someone.github.io/some-book/chapters/03-small.html)" in text
    assert nbformat.validate(nbformat.reads(text, as_version=4)) is None


@pytest.mark.slow
def test_weights_and_letters_lie_beside_the_page(published):
    page = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    [name] = re.findall(r'"_packed": \{"load": "(weights-\w{10}\.js)"\}', page)
    [packed] = re.fullmatch(
        r'afm\.provide\("' + re.escape(name) + r'", "([\w+/=]+)"\);\n',
        (published / "_static" / name).read_text(encoding="ascii"),
    ).groups()
    assert packed not in page
    table = unpack_weights(base64.b64decode(packed))["table"]
    assert table.round(5).tolist() == [[2.0, -2.0]]
    assert (published / "_static" / "kannada.woff2").stat().st_size < 40_000


@pytest.mark.slow
def test_formulas_are_rendered_and_styled_where_they_are(published):
    text = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    assert text.count('<span class="katex">') == 3
    assert re.findall(r"</span>([,;])</span>", text) == [",", ";"]
    # The color ends with its argument, as in the notebooks.
    assert text.count("color:#0072B2") == 1
    assert "katex/katex.css" in text
    assert "katex" not in (published / "book" / "words.html").read_text(encoding="utf-8")
    assert (published / "_static" / "katex" / "fonts" / "KaTeX_Main-Regular.woff2").exists()


@pytest.mark.slow
def test_every_page_leads_to_the_notices(published):
    text = (published / "_static" / "licenses.txt").read_text(encoding="utf-8")
    for name, part in notices.PARTS.items():
        assert (f"\n{name}: " in text) is not part.asked_for
        if part.asked_for:
            continue
        for pattern in part.files:  # what is no longer there needs no line
            assert list(published.glob(pattern)), pattern
    for page in ("chapters/03-small", "book/words"):
        text = (published / f"{page}.html").read_text(encoding="utf-8")
        assert 'href="../_static/licenses.txt"' in text


@pytest.mark.slow
def test_cells_on_the_page(published):
    text = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    assert re.findall(r"<summary>(.*)</summary>", text) == ["Setup", "Solution"]
    assert "@title" not in text
    assert "ZeroDivisionError: division by zero" in text
    assert "Traceback" not in text
    assert "3 · Small" in (published / "book" / "words.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_is_for_readers_of_the_notebook_is_not_on_the_page(published):
    text = (published / "chapters" / "04-formed.html").read_text(encoding="utf-8")
    assert "<p>Aims.</p>" in text
    assert "still pictures" not in text
    assert "still pictures" in (published / "_sources/chapters/04-formed.ipynb").read_text("utf-8")
    asking = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    assert "Question." not in asking  # the figure itself asks


@pytest.mark.slow
def test_what_stands_aside_of_the_road_is_folded(published):
    text = (published / "chapters" / "04-formed.html").read_text(encoding="utf-8")
    assert re.findall(r"<summary>(.*)</summary>", text) == [
        "Setup",
        "✓ checked",
        "The library&#x27;s f",
        "Code of the curve",
        "Show the proof",
        "Show the cases",
    ]
    # Both setup cells open at one line; the code that asks a question is not on the page.
    setup = re.search(r"<details.*?</details>", text, re.S)[0]
    assert re.findall(r"(\w+) <span class=.o.>=", setup) == ["first", "second"]
    assert "secret" not in text
    assert "'question'" in text
    # A section that is folded keeps its heading, its anchor and its place in the list.
    proof = re.search(r'<section id="prove-it">\n<h2>.*?</h2>\n<details class="afm-folded">', text)
    assert proof
    assert text.count('href="#by-hand"') > 1


def arrows(page):
    text = page.read_text(encoding="utf-8")
    return dict(re.findall(r'<a class="(left-prev|right-next)" href="([^"]*)"', text))


@pytest.mark.slow
def test_the_road_passes_deeper_pages_by(published):
    chapters = published / "chapters"
    assert arrows(chapters / "03-small.html") == {
        "left-prev": "../book/words.html",
        "right-next": "04-formed.html",
    }
    assert arrows(chapters / "04-formed.html") == {"left-prev": "03-small.html"}
    for name in ("03b-more", "03c-most"):
        assert arrows(chapters / f"{name}.html") == {"right-next": "03-small.html"}
        text = (chapters / f"{name}.html").read_text(encoding="utf-8")
        line = re.search(r'<p class="afm-chapter">(.*?)</p>', text, re.S)[1]
        assert '<a href="03-small.html">Chapter 3</a>' in line
        assert "Deeper page of" in line
        assert ">Back to the road</p>" in text
        assert text.count('· More <span class="afm-deeper">deeper</span>') == 2  # both, below 3
    assert "afm-deeper" not in (published / "book" / "words.html").read_text(encoding="utf-8")
    assert '<p class="afm-chapter">Chapter 3</p>' in (chapters / "03-small.html").read_text("utf-8")


@pytest.mark.slow
def test_two_questions_share_their_module(published):
    text = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    assert len(re.findall(r"core_dom ?= ?", text)) == 1
    assert text.count('"same_as": ') == 2


@pytest.mark.slow
def test_a_link_that_sets_a_figure_is_plain_text_until_the_host_comes(published):
    text = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    link = '<span class="afm-set" data-afm-set="#set:scale;reset;d_k=16"><em>it</em></span>'
    assert f"Set {link}" in text
    assert 'data-afm-set="#set:b;to=1%3B 2"' in text  # decoded, but for what would end a value
    assert 'href="#set' not in text


@pytest.mark.slow
def test_what_gives_an_answer_away_is_marked(published):
    text = (published / "chapters" / "03-small.html").read_text(encoding="utf-8")
    text = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    parts = re.findall(r'<(\w+) class="(afm-reveal [^"]*)">(.*?)</\1>', text, flags=re.S)
    assert [(tag, classes) for tag, classes, _ in parts] == [
        ("div", "afm-reveal afm-reveal-1"),
        ("h2", "afm-reveal afm-reveal-1"),
        ("div", "afm-reveal afm-reveal-1"),
        ("div", "afm-reveal afm-reveal-2"),
    ]
    assert "The answer." in parts[0][2]
    assert "Because." in parts[2][2]
    assert [n for n in (1, 2) if f"afm-guess afm-guess-{n}" in text] == [1, 2]
    assert text.index("Because.") < text.index("In sight again.")
    # The question and its answer, for those who have no JavaScript.
    (first, second) = re.findall(r"<noscript>(<p>.*?)</noscript>", text, flags=re.S)
    assert first == (
        "<p><strong>Is <em>6</em> &lt; <code>7</code>?</strong></p><ul><li>yes</li><li>no</li></ul>"
        "<p>The answer: <strong>yes</strong>. It <strong>is</strong>. Ends <em>here</em>.</p>"
    )
    assert "<li>sure</li>" in second
    # Only where there is something to reveal.
    assert "afm-reveal.js" in (published / "chapters" / "03-small.html").read_text("utf-8")
    assert "afm-reveal.js" not in (published / "book" / "words.html").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (
            {
                "page": PAGE + "\n[no](nowhere.md)\n\n$\\nocommand$\n",
                "more": [
                    new_code_cell("import warnings; warnings.warn('w')"),
                    new_markdown_cell("Nobody has asked.", metadata=REVEAL),
                ],
            },
            ["target not found", "KaTeX|Undefined control sequence", "stderr", "no Predict comes"],
        ),
        ({"more": [new_code_cell("undefined_name")]}, ["undefined_name"]),
    ],
    ids=["warnings", "cell"],
)
def test_a_mistake_fails_the_build(tmp_path, change, messages):
    done = small_book(tmp_path, **change)
    assert done.returncode != 0
    for message in messages:
        found = re.search(message, done.stdout + done.stderr)
        assert found, done.stdout[-3000:] + done.stderr[-3000:]
    assert "The book is built" not in done.stdout
