"""The Sphinx extensions of book/extensions, each alone, and book/build.py on a small book.

The small book has the settings, templates and extensions of the real one, but its own two pages.
"""

import base64
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from docutils import nodes
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rules import is_deeper
from sphinx.errors import ConfigError, ExtensionError
from sphinxcontrib.katex import KaTeXError, KaTeXServer

from transformer_lib.widgets.weights import unpack_weights

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/someone/some-book"


def load(name):
    path = ROOT / "book" / "extensions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bertviz_assets = load("bertviz_assets")
cells = load("cells")
chapter_numbers = load("chapter_numbers")
colab = load("colab")
icons = load("icons")
katex_assets = load("katex_assets")
katex_server = load("katex_server")
lean_state = load("lean_state")
lean_theme = load("lean_theme")
math_punctuation = load("math_punctuation")
notices = load("notices")
page_weights = load("page_weights")
reveal = load("reveal")


# --- each alone


def test_icons_are_those_of_the_installed_theme():
    found = icons.drawings(icons.SCRIPT.read_text(encoding="utf-8"))
    assert {"sun", "bars", "magnifying-glass", "download"} <= set(found["fa-solid"])
    assert found["fa-solid"]["search"] == found["fa-solid"]["magnifying-glass"]  # an alias
    assert found["fa-solid"]["sun"] != found["fa-regular"]["sun"]
    assert "github" in found["fa-brands"]
    assert re.fullmatch(r'<svg [^<>]*><path d="[^"<>]+"/></svg>', found["fa-solid"]["sun"])


def test_only_the_icons_in_use_are_written():
    script = icons.SCRIPT.read_text(encoding="utf-8")
    css = icons.style({"fa-sun", "fa-lg", "fa-solid"}, script)
    named = re.findall(r"^(.*) \{ --afm-icon:", css, flags=re.M)
    assert named == [".fa-regular.fa-sun, .far.fa-sun", ".fa-sun"]
    assert len(css) < 4000


def test_another_icon_script_stops_the_build():
    with pytest.raises(ExtensionError, match="has no pack fa-brands"):
        icons.drawings('sun:[512,512,[],"f185","M1 1"]')


def test_the_theme_still_ships_what_is_taken_out_of_it():
    static = icons.THEME / "static"
    style = (static / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    lean = lean_theme.lean_style(style)
    assert len(style) - len(lean) > 80_000
    assert ".fa-sun:before" in style
    assert ".fa-sun:before" not in lean
    assert "fa-solid-900" not in lean
    # All the rest is as it was.
    assert lean.count("{") == style.count("{") - len(lean_theme.GLYPH.findall(style)) - 3
    for pattern in ("scripts/fontawesome.js", "scripts/*.map", "vendor", "*webpack-macros.html"):
        assert pattern in lean_theme.UNUSED
        assert list(static.glob(pattern)), pattern


def test_katex_keeps_one_format_of_its_fonts_and_has_one_version():
    css = (katex_assets.PACKAGE / "katex.min.css").read_text(encoding="utf-8")
    ours = katex_assets.style_with_woff2(css)
    assert ours.count("url(") == ours.count(".woff2") == css.count(".woff2") > 10
    assert ours.count("@font-face") == css.count("@font-face")
    package = (katex_assets.PACKAGE.parent / "package.json").read_text(encoding="utf-8")
    assert yaml.safe_load(package)["version"] == katex_assets.katex.katex_version


def server_class(script):
    """A KaTeX server whose program is this Python script, told where its socket goes."""

    class Server(KaTeXServer):
        @classmethod
        def build_command(cls, socket=None, port=None):
            return [sys.executable, "-c", script, str(socket)]

    return Server


@pytest.mark.skipif(os.name != "posix", reason="sockets with a path are not on Windows")
def test_a_katex_server_that_listens_late_is_waited_for(tmp_path):
    late = """
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
time.sleep(0.5)  # the socket is there and refuses connections
server.listen()
server.accept()
time.sleep(60)
"""
    process, connection = katex_server.start_server_process(server_class(late), tmp_path, 5)
    connection.close()
    process.kill()
    process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="sockets with a path are not on Windows")
def test_a_katex_server_that_ends_is_an_error_with_its_words(tmp_path):
    broken = "raise SystemExit('no such module')"
    with pytest.raises(KaTeXError, match="It said: no such module"):
        katex_server.start_server_process(server_class(broken), tmp_path, 5)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (["cell", "tag_setup", "tag_hide-cell"], "Setup"),
        (["cell", "tag_solution", "tag_hide-cell"], "Solution"),
        (["cell", "tag_hide-output"], "Output"),
        (["cell", "tag_hide-input"], "Code"),
        (["cell", "tag_claim"], "✓ checked"),
        (["cell", "tag_listing"], "The library's code"),
    ],
)
def test_hidden_cells_say_what_they_hold(classes, expected):
    assert cells.label(classes) == expected


def test_the_title_of_a_cell_is_its_name():
    assert cells.label(["cell", "tag_hide-input"], "Code of the figure") == "Code of the figure"
    assert cells.label(["cell", "tag_setup"], "Imports") == "Setup"
    assert cells.TITLE.match('# @title One of two {display-mode: "form"}\nx')[1] == "One of two"
    assert cells.TITLE.match("# @title Solution\nx")[1] == "Solution"


def test_a_traceback_is_cut_to_the_error():
    frames = (
        "-----\nValueError               Traceback (most recent call last)\nCell In[3], line 1\n"
        "----> 1 attention(q)\n\nFile /home/x/attention.py:7, in attention(q)\n      5 def"
    )
    message = "ValueError: q has 3 columns:\n  give 4"
    assert cells.last_line(f"{frames}\n\n{message}\n") == message
    # Without a line that it knows nothing is lost.
    assert cells.last_line("Oops") == "Oops"


def test_chapters_are_numbered_by_their_files():
    assert chapter_numbers.number("chapters/07-positional-encodings") == "7"
    assert chapter_numbers.number("chapters/12b-muon") == "12b"
    assert chapter_numbers.number("chapters/00-machine") == "0"
    assert chapter_numbers.number("book/07-pages") is None


def test_a_deeper_page_belongs_to_its_chapter():
    pages = ["book/index", "chapters/01-one", "chapters/12-train", "chapters/12b-muon"]
    assert [chapter_numbers.is_deeper(page) for page in pages] == [False, False, False, True]
    assert chapter_numbers.chapter_of("chapters/12b-muon", pages) == "chapters/12-train"
    assert chapter_numbers.chapter_of("chapters/11b-more", pages) is None
    assert chapter_numbers.chapter_of("book/index", pages) is None


def test_a_second_sitting_is_on_the_road_and_has_deeper_pages_of_its_own():
    names = ["07-one", "07b-clocks", "07c-turn", "07d-turning", "12c-hardware"]
    pages = [f"chapters/{name}" for name in names]
    assert [chapter_numbers.is_deeper(page) for page in pages] == [False, True, False, True, True]
    assert [is_deeper(name) for name in names] == [False, True, False, True, True]
    assert chapter_numbers.chapter_of("chapters/07b-clocks", pages) == "chapters/07-one"
    assert chapter_numbers.chapter_of("chapters/07d-turning", pages) == "chapters/07c-turn"


def test_punctuation_is_kept_with_its_formula():
    def paragraph(*parts):
        document = nodes.document("", None)
        document += nodes.paragraph("", "", *parts)
        math_punctuation.keep_together(None, document)
        return document

    document = paragraph(nodes.math("", "x_i"), nodes.Text(", and "), nodes.math("", "y"))
    assert document.astext() == "x_i, and y"
    kept = list(document.findall(nodes.inline))
    assert [node.astext() for node in kept] == ["x_i,"]
    assert [type(child) for child in kept[0]] == [nodes.math, nodes.Text]
    document = paragraph(nodes.math("", "x"), nodes.Text(" is left. "), nodes.math("", "z"))
    assert not list(document.findall(nodes.inline))
    document = paragraph(nodes.math("", "a"), nodes.Text(")."), nodes.emphasis("", "b"))
    assert document.astext() == "a).b"


class Config:
    def __init__(self, url):
        self.html_theme_options = {"repository_url": url}


def test_the_colab_button_needs_an_address():
    for url in (None, ""):
        colab.add_button(None, config := Config(url))
        assert config.html_theme_options["launch_buttons"] == {}
    colab.add_button(None, config := Config(f"{ADDRESS}/"))
    assert config.html_theme_options["repository_url"] == ADDRESS
    assert config.html_theme_options["launch_buttons"]["colab_url"].startswith("https://colab.")
    with pytest.raises(ConfigError, match=r"write https://github\.com/OWNER/NAME"):
        colab.add_button(None, Config("https://example.org/book"))


def test_bertvizs_libraries_are_there_and_whole():
    for source in bertviz_assets.SCRIPTS.values():
        text = (bertviz_assets.MODULES / source).read_text(encoding="utf-8")
        assert len(text) > 50_000
        assert "sourceMappingURL" not in text[-200:]


def test_the_notices_hold_the_license_of_every_part():
    text = notices.notices()
    for words in (
        "Apache License",  # bertviz
        "Khan Academy",  # KaTeX, and its fonts:
        "Reserved Font Name KaTeX_Main",
        "SIL Open Font License",
        "Font Awesome Free",
        "Icons: CC BY 4.0",
        "Bootstrap v",
        "Mike Bostock",  # d3
        "OpenJS Foundation",  # jQuery
        "the Sphinx team",
        "Chris Holdgraf",  # the theme
    ):
        assert words in text, words


def test_a_part_without_a_license_stops_the_build(monkeypatch):
    monkeypatch.setattr(notices, "python_licenses", lambda package: [])
    with pytest.raises(ExtensionError, match="bertviz brings no license"):
        notices.notices()


def test_weights_become_files_of_their_own():
    sides = {"path": ["_text"], "encoding": "base64", "data": "e30="}
    buffers = [{"path": ["_packed"], "encoding": "base64", "data": "QUZNVw=="}, sides]
    models = {id_: {"state": {"_esm": "</script>"}, "buffers": [*buffers]} for id_ in "ab"}
    models["c"] = {"state": {"value": 3}}
    text, files = page_weights.without_weights(json.dumps({"state": models}))
    assert "</script>" not in text
    assert list(files.values()) == ["QUZNVw=="]  # once for two figures
    held = json.loads(text)["state"]
    assert held["a"]["buffers"] == held["b"]["buffers"] == [sides]
    assert (
        held["a"]["state"]["_packed"]
        == held["b"]["state"]["_packed"]
        == {"load": next(iter(files))}
    )
    assert held["c"] == models["c"]


def test_each_kind_of_widget_is_written_once():
    models = {
        id_: {"state": {"_esm": esm, "_css": css, "_text": "t"}}
        for id_, esm, css in (("a", "x", "y"), ("b", "</script>", "y"), ("c", "x", "y"))
    }
    models["d"] = {"state": {"value": 3}}  # a widget of somebody else
    text = lean_state.lean(json.dumps({"state": models}))
    assert "</script>" not in text
    found = {id_: model["state"] for id_, model in json.loads(text)["state"].items()}
    assert found == {
        "a": {"_esm": "x", "_css": "y", "_text": "t"},
        "b": {"_esm": "</script>", "_css": {"same_as": "a"}, "_text": "t"},
        "c": {"_esm": {"same_as": "a"}, "_css": {"same_as": "a"}, "_text": "t"},
        "d": {"value": 3},
    }


# --- a small book

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
    new_markdown_cell("# Formed"),
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
    return subprocess.run(
        [sys.executable, "book/build.py"],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


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
    assert (published / "_static" / "licenses.txt").stat().st_size > 10_000
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
    assert all(f'<span class="n">{name}</span>' in setup for name in ("first", "second"))
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
    assert text.count("core_dom = ") == 1
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


def test_questions_of_every_kind_are_answered_without_javascript():
    number = {"kind": "number", "question": "How many?", "right": 41.99999, "unit": "%", "then": ""}
    assert "The answer: <strong>42 %</strong>." in reveal.without_script(number)
    words = {"rows": ["a", "<b>"], "columns": ["c"], "right": [1, 0]}
    cell = {"kind": "cell", "question": "Which?", "then": "So.", **words}
    assert "<strong>&lt;b&gt;, c</strong>. So.</p>" in reveal.without_script(cell)


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
            ["target not found", "KaTeX|Undefined control sequence", "stderr", "no Predict stands"],
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
