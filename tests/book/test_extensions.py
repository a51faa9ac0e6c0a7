"""The Sphinx extensions of book/extensions, each alone."""

import doctest
import json
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import stored_form
import yaml
from anatomy import is_deeper
from docutils import nodes
from extensions import (
    bibliography,
    cells,
    chapter_numbers,
    figures,
    formulas,
    links,
    notices,
    reveal,
    theme,
)
from programs import PATIENCE
from sphinx.errors import ConfigError, ExtensionError
from sphinxcontrib.katex import KaTeXError, KaTeXServer
from stored_form import pages_address

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/someone/some-book"


@pytest.mark.parametrize(
    "module", [bibliography, cells, chapter_numbers, figures, links, stored_form]
)
def test_the_examples_hold(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed


def test_icons_are_those_of_the_installed_theme():
    found = theme.drawings(theme.SCRIPT.read_text(encoding="utf-8"))
    assert {"sun", "bars", "magnifying-glass", "download"} <= set(found["fa-solid"])
    assert found["fa-solid"]["search"] == found["fa-solid"]["magnifying-glass"]  # an alias
    assert found["fa-solid"]["sun"] != found["fa-regular"]["sun"]
    assert "github" in found["fa-brands"]
    assert re.fullmatch(r'<svg [^<>]*><path d="[^"<>]+"/></svg>', found["fa-solid"]["sun"])


def test_only_the_icons_in_use_are_written():
    script = theme.SCRIPT.read_text(encoding="utf-8")
    css = theme.style({"fa-sun", "fa-lg", "fa-solid"}, script)
    named = re.findall(r"^(.*) \{ --afm-icon:", css, flags=re.M)
    assert named == [".fa-regular.fa-sun, .far.fa-sun", ".fa-sun"]
    assert len(css) < 4000


def test_another_icon_script_stops_the_build():
    with pytest.raises(ExtensionError, match="has no pack fa-brands"):
        theme.drawings('sun:[512,512,[],"f185","M1 1"]')


def test_the_theme_still_ships_what_is_taken_out_of_it():
    static = theme.THEME / "static"
    style = (static / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    lean = theme.lean_style(style)
    assert len(style) - len(lean) > 80_000
    assert ".fa-sun:before" in style
    assert ".fa-sun:before" not in lean
    assert "fa-solid-900" not in lean
    # All the rest is as it was.
    assert lean.count("{") == style.count("{") - len(theme.GLYPH.findall(style)) - 3
    for pattern in ("scripts/fontawesome.js", "scripts/*.map", "vendor", "*webpack-macros.html"):
        assert pattern in theme.UNUSED
        assert list(static.glob(pattern)), pattern
    script = (static / "scripts" / "pydata-sphinx-theme.js").read_text(encoding="utf-8")
    lean = theme.lean_script(script)
    assert '":not(*)").forEach(' in lean
    with pytest.raises(ValueError, match="asks 0 lists of elements"):
        theme.lean_script(lean)


def test_katex_keeps_one_format_of_its_fonts_and_has_one_version():
    css = (formulas.PACKAGE / "katex.min.css").read_text(encoding="utf-8")
    ours = formulas.style_with_woff2(css)
    assert ours.count("url(") == ours.count(".woff2") == css.count(".woff2") > 10
    assert ours.count("@font-face") == css.count("@font-face")
    package = (formulas.PACKAGE.parent / "package.json").read_text(encoding="utf-8")
    assert yaml.safe_load(package)["version"] == formulas.katex.katex_version


def server_class(script):
    """A KaTeX server whose program is this Python script, told where its socket goes."""

    class Server(KaTeXServer):
        @classmethod
        def build_command(cls, socket=None, port=None):
            return [sys.executable, "-c", script, str(socket)]

    return Server


@pytest.mark.skipif(os.name != "posix", reason="sockets with a path are not on Windows")
def test_a_katex_server_that_listens_late_is_waited_for():
    late = """
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
time.sleep(0.5)  # the socket is there and refuses connections
server.listen()
server.accept()
time.sleep(60)
"""
    with TemporaryDirectory() as folder:  # a socket's path may have about a hundred bytes
        process, connection = formulas.start_server_process(
            server_class(late), Path(folder), PATIENCE
        )
        connection.close()
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="sockets with a path are not on Windows")
def test_a_katex_server_that_ends_is_an_error_and_its_words_are_seen(tmp_path, capfd):
    broken = "raise SystemExit('no such module')"
    with pytest.raises(KaTeXError, match="has ended"):
        formulas.start_server_process(server_class(broken), tmp_path, PATIENCE)
    assert "no such module" in capfd.readouterr().err


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
        formulas.keep_together(None, document)
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


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../book/glossary.md#key)", "[a](https://o.github.io/n/book/glossary.html#key)"),
        ("[a](02-b.ipynb), [c](03-c.ipynb#d)", "[a](https://o.github.io/n/chapters/02-b.html), "
         "[c](https://o.github.io/n/chapters/03-c.html#d)"),
        ("[two](#set:painter;layers=2) [below](#below)", None),
        ("[paper](https://arxiv.org/abs/1.md)", None),
        ("![picture](a.png)", None),
    ],
)  # fmt: skip
def test_links_of_a_download_become_absolute_and_others_stay(link, expected):
    folder = pages_address("https://github.com/o/n.git") + "chapters/"
    assert links.with_absolute_links(link, folder) == (expected or link)


def test_no_pages_without_an_address():
    assert [pages_address(url) for url in (None, "", "https://example.org/x")] == [""] * 3


def test_the_colab_button_needs_an_address():
    for url in (None, ""):
        links.add_button(None, config := Config(url))
        assert config.html_theme_options["launch_buttons"] == {}
    links.add_button(None, config := Config(f"{ADDRESS}/"))
    assert config.html_theme_options["repository_url"] == ADDRESS
    assert config.html_theme_options["launch_buttons"]["colab_url"].startswith("https://colab.")
    with pytest.raises(ConfigError, match=r"write https://github\.com/OWNER/NAME"):
        links.add_button(None, Config("https://example.org/book"))


def test_bertvizs_libraries_are_there_and_whole():
    for source in notices.BERTVIZ.values():
        text = (notices.NPM / source).read_text(encoding="utf-8")
        assert len(text) > 50_000
        assert "sourceMappingURL" not in text[-200:]


def test_the_notices_hold_the_license_of_every_part(tmp_path):
    text = notices.notices(tmp_path)
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
        "Federico Zivolo",  # Popper, in Bootstrap
        "Zeno Rocha",  # clipboard.js, in copybutton
        "Paweł Kuna",  # Tabler's icons, there
        "Jesse Vig   Significant refactor",  # what bertviz has changed of tensor2tensor's script
        "Charles Karney",  # in d3, whose modules have licenses of their own
        "respective authors (see AUTHORS file)",  # Pygments
    ):
        assert words in text, words
    # The texts that a line such as "under the MIT License, whose text is above" means.
    first = text[: text.index("bertviz: ")]
    assert "Permission is hereby granted" in first
    assert "Creative Commons Attribution 4.0 International Public License" in first


@pytest.mark.parametrize("path", ["_static/other.js", "_static/katex/fonts/Other.woff2", "a/b.css"])
def test_a_file_that_is_nobodys_stops_the_build(tmp_path, path):
    for known in ("index.html", "_static/afm.css", "_static/katex/fonts/KaTeX_Main-Bold.woff2"):
        (tmp_path / known).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / known).touch()
    notices.require_known(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    with pytest.raises(ExtensionError, match=f"whose work is {path}"):
        notices.require_known(tmp_path)


def test_a_part_that_pages_ask_for_is_told_of_where_it_is(tmp_path):
    without = notices.notices(tmp_path)
    (tmp_path / "_static").mkdir()
    for file, words in (
        ("python", ["Damien P. George"]),
        ("vocabulary", ["Software Copyright (c) 2019 OpenAI", "Bazyli Brzoska"]),
    ):
        assert not any(each in without for each in words)
        (tmp_path / "_static" / f"{file}-0123456789.js").touch()
        now = notices.notices(tmp_path)
        assert all(each in now for each in words)
    notices.require_known(tmp_path)


def test_a_part_without_a_license_stops_the_build(tmp_path, monkeypatch):
    monkeypatch.setattr(notices, "python_licenses", lambda package: [])
    with pytest.raises(ExtensionError, match="bertviz brings no license"):
        notices.notices(tmp_path)


def test_weights_become_files_of_their_own():
    sides = {"path": ["_text"], "encoding": "base64", "data": "e30="}
    buffers = [{"path": ["_packed"], "encoding": "base64", "data": "QUZNVw=="}, sides]
    models = {id_: {"state": {"_esm": "'</script>'"}, "buffers": [*buffers]} for id_ in "ab"}
    models["c"] = {"state": {"value": 3}}
    text, files = figures.lean(json.dumps({"state": models}))
    assert "</script>" not in text
    [(name, file)] = files.items()  # one for two figures
    assert file == f'afm.provide("{name}", "QUZNVw==");\n'
    held = json.loads(text)["state"]
    assert held["a"]["buffers"] == held["b"]["buffers"] == [sides]
    assert held["a"]["state"]["_packed"] == held["b"]["state"]["_packed"] == {"load": name}
    assert held["c"] == models["c"]


def test_a_vocabulary_becomes_a_file_too_if_there_is_one():
    whole, none = ({"path": ["_vocabulary"], "data": data} for data in ("AAEA", ""))
    models = {"a": {"state": {}, "buffers": [whole]}, "b": {"state": {}, "buffers": [none]}}
    text, files = figures.lean(json.dumps({"state": models}))
    [(name, file)] = files.items()
    assert name.startswith("vocabulary-")
    assert '"AAEA"' in file
    held = json.loads(text)["state"]
    assert held["a"] == {"state": {"_vocabulary": {"load": name}}, "buffers": []}
    assert held["b"] == models["b"]


def test_each_kind_of_widget_is_written_once():
    models = {
        id_: {"state": {"_esm": esm, "_css": css, "_text": "t"}}
        for id_, esm, css in (
            ("a", "x;\n", "y{color:red}\n"),
            ("b", "say('</script>');\n", "y{color:red}\n"),
            ("c", "x;\n", "y{color:red}\n"),
        )
    }
    models["d"] = {"state": {"value": 3}}  # a widget of somebody else
    text, files = figures.lean(json.dumps({"state": models}))
    assert files == {}
    assert "</script>" not in text
    found = {id_: model["state"] for id_, model in json.loads(text)["state"].items()}
    assert found == {
        "a": {"_esm": "x;\n", "_css": "y{color:red}\n", "_text": "t"},
        "b": {"_esm": 'say("<\\/script>");\n', "_css": {"same_as": "a"}, "_text": "t"},
        "c": {"_esm": {"same_as": "a"}, "_css": {"same_as": "a"}, "_text": "t"},
        "d": {"value": 3},
    }


def test_what_kinds_of_widgets_share_is_written_once():
    dom, plane = "// core/dom.js\nconst core_dom = (long) => long;\n", "// core/plane.js\nlet p;\n"
    texts = {
        "a": {"_esm": f"{dom}// a/view.js\na", "_css": ".a { top: 0 }"},
        "b": {"_esm": f"{plane}{dom}// b/view.js\nb", "_worker": f"{plane}// b/worker.js\nw"},
        "c": {"_esm": f"{plane}{dom}// b/view.js\nb", "_css": ".a { top: 0 }"},
    }
    models = {id_: {"state": state} for id_, state in texts.items()}
    body, _ = figures.lean(json.dumps({"state": models}))
    assert body.count("const core_dom") == body.count("let p;") == body.count(".a{top:0}") == 1
    found = {id_: model["state"] for id_, model in json.loads(body)["state"].items()}
    assert found["a"]["_esm"] == ["const core_dom=o=>o;\n", "a;\n"]
    assert found["b"]["_esm"] == ["let p;\n", ["a", "_esm", 0], "b;\n"]
    assert found["b"]["_worker"] == [["b", "_esm", 0], "w;\n"]
    assert found["c"]["_esm"] == {"same_as": "b"}
    assert found["c"]["_css"] == {"same_as": "a"}


def test_questions_of_every_kind_are_answered_without_javascript():
    number = {"kind": "number", "question": "How many?", "right": 41.99999, "unit": "%", "then": ""}
    assert "The answer: <strong>42 %</strong>." in reveal.without_script(number)
    words = {"rows": ["a", "<b>"], "columns": ["c"], "right": [1, 0]}
    cell = {"kind": "cell", "question": "Which?", "then": "So.", **words}
    assert "<strong>&lt;b&gt;, c</strong>. So.</p>" in reveal.without_script(cell)
    options = [{"text": "In the table.", "sentence": "One row for one word."}]
    whole = {"kind": "options", "question": "Where?", "then": "", "options": options, "right": 0}
    assert "<strong>In the table.</strong> One row" in reveal.without_script(whole)


def test_a_page_that_asks_for_python_gets_its_files():
    body, files = figures.lean(json.dumps({"state": {"a": {"state": {"_python": {}}}}}))
    names = json.loads(body)["state"]["a"]["state"]["_python"]
    assert set(names.values()) == set(files)
    assert len(files) > 1
