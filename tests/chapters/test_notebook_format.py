"""Stored chapters are what running them gives; and book/notebooks.py finds where they are not."""

import base64
import io
import json
import re
from pathlib import Path

import nbformat
import notebooks
import pytest
import stored_form
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

Image.new("RGB", (9, 9)).save(FILE := io.BytesIO(), "PNG")
LARGE = base64.b64encode(FILE.getvalue()).decode()  # all colors: as a run draws it
UNSET = {"repository": {"url": "", "branch": "main"}}
ADDRESS = "https://github.com/someone/some-book"
SET = {"repository": {"url": f"{ADDRESS}/", "branch": "stable"}}


def test_stored_chapter(chapter):
    assert notebooks.problems(chapter, notebooks.load_config()) == []


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """The text of a small notebook, run and normalized."""
    picture = "import matplotlib.pyplot as plt\nplt.subplots(figsize=(1, 1))\nplt.show()"
    cells = [
        new_markdown_cell("# Title  \n", metadata={"collapsed": True}),
        new_code_cell("old", metadata={"tags": ["setup", "hide-cell"], "vscode": {"x": 1}}),
        new_code_cell("import os\nprint('one')\nprint(sorted(os.listdir()))"),
        new_code_cell("1 / 3 > 0"),
        new_code_cell(picture, metadata={"mystnb": {"image": {"alt": "A dot."}}}),
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        new_markdown_cell(r"$\color{#0072B2}{Q_{ij}} + 1$"),
        new_code_cell("assert os", metadata={"tags": ["claim"]}),
    ]
    path = tmp_path_factory.mktemp("book") / "00-small.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"widgets": {"state": {}}}), path)
    assert notebooks.refresh(path, UNSET) == []
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    return path.read_text(encoding="utf-8")


@pytest.fixture
def path(right, tmp_path):
    path = tmp_path / "00-small.ipynb"
    path.write_text(right, encoding="utf-8")
    return path


def change(path, edit):
    """Let `edit` change the notebook's cells, and save it as an editor would."""
    nb = nbformat.read(path, as_version=4)
    edit(nb)
    path.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_a_run_keeps_text_and_stills_and_drops_the_rest(right):
    nb = nbformat.reads(right, as_version=4)
    assert [cell.get("execution_count") for cell in nb.cells] == [None, 1, 2, 3, 4, 5, None, 6]
    assert nb.cells[0].metadata == {}
    assert nb.cells[1].metadata == {"tags": ["setup", "hide-cell"]}
    assert nb.cells[2].outputs == [new_output("stream", name="stdout", text="one\n[]\n")]
    assert nb.cells[3].outputs[0].data == {"text/plain": "True"}
    plot = nb.cells[4].outputs[0].data
    assert plot["text/plain"] == "<Figure size 100x100 with 1 Axes>"
    assert stored_form.is_still(plot["image/png"])
    assert set(plot) == {"text/plain", "image/png"}
    assert nb.cells[4].metadata == {"mystnb": {"image": {"alt": "A dot."}}}
    assert nb.cells[5].outputs[0].traceback == ["ZeroDivisionError: division by zero"]
    assert nb.cells[6].source == r"${\color{#0072B2}{Q_{ij}}} + 1$"
    assert set(nb.metadata) == {"checksums", "kernelspec", "language_info"}


@pytest.mark.slow
def test_a_second_run_changes_nothing(right, path):
    assert notebooks.refresh(path, UNSET) == []
    assert path.read_text(encoding="utf-8") == right


@pytest.mark.slow
def test_a_run_that_is_kept_is_as_good_as_a_fresh_one(right, path, tmp_path, monkeypatch):
    runs = notebooks.Runs(tmp_path / "runs")
    assert notebooks.refresh(path, UNSET, runs) == []
    monkeypatch.setattr(notebooks, "execute", lambda nb: pytest.fail("it has run again"))
    change(path, lambda nb: nb.cells[3].update(outputs=[]))
    assert notebooks.refresh(path, UNSET, runs) == []
    assert path.read_text(encoding="utf-8") == right


def test_a_chapter_is_found_by_its_name_and_by_its_path():
    expected = notebooks.ROOT / "chapters" / "03-scaling.ipynb"
    assert notebooks.chapter("03-scaling") == expected
    assert notebooks.chapter(str(expected)) == expected


def folded(source, *tags, **metadata):
    """(source, metadata) of a cell as the second code cell of a normalized notebook."""
    cell = new_code_cell(source, metadata={"tags": list(tags), **metadata})
    first = new_code_cell("", metadata={"tags": ["setup"]})
    cell = stored_form.normalize(new_notebook(cells=[first, cell]), UNSET).cells[1]
    assert stored_form.normalize(new_notebook(cells=[first, cell]), UNSET).cells[1] == cell
    return cell.source, cell.metadata


@pytest.mark.parametrize(
    ("tag", "code", "name"),
    [
        ("claim", "assert x", "✓ checked"),
        ("setup", "import math", "Imports"),
        ("listing", "show(positions.Learned.forward)", "The library's Learned.forward"),
        ("listing", "show(attention, docstring=True)", "The library's attention"),
        ("hide-input", "Predict.number('How large?', right=x)", "Code of the question"),
        ("hide-input", "plots.bars(x)", "Code of the figure"),
        ("hide-input", "x = load()\nprint(x)", "Code of the numbers"),
    ],
)
def test_what_stands_aside_is_folded_in_notebooks(tag, code, name):
    source, metadata = folded(code, tag)
    assert source == f'# @title {name} {{display-mode: "form"}}\n{code}'
    assert metadata == {"tags": [tag], "cellView": "form", "jupyter": {"source_hidden": True}}
    # Without the tag, the cell is open again.
    assert folded(source, **{k: v for k, v in metadata.items() if k != "tags"}) == (code, {})


def test_a_title_of_an_authors_own_is_kept():
    source = '# @title Code of the loss curve {display-mode: "form"}\nplots.curves(x)'
    assert folded(source, "hide-input")[0] == source
    assert folded(source, "claim")[0].startswith("# @title ✓ checked")
    solution = '# @title Solution {display-mode: "form"}\nx'
    hidden = {"cellView": "form", "jupyter": {"source_hidden": True}}
    tags = {"tags": ["solution", "hide-cell"]}
    both = {"source_hidden": True, "outputs_hidden": True}
    kept = tags | hidden | {"jupyter": both}
    assert folded(solution, *tags["tags"], **hidden) == (solution, kept)


def test_ids_follow_the_text_and_not_the_place():
    cells = [new_code_cell("a"), new_markdown_cell("a"), new_code_cell("a"), new_code_cell("b")]
    first = [c.id for c in stored_form.normalize(new_notebook(cells=cells), UNSET).cells]
    later = [c.id for c in stored_form.normalize(new_notebook(cells=cells[::-1]), UNSET).cells]
    assert len(set(first)) == 4
    assert first[2] == f"{first[0]}-2"
    assert sorted(first) == sorted(later)


def test_the_outputs_of_a_revealing_cell_are_folded():
    cells = [
        new_code_cell("a", metadata={"tags": ["reveal", "hide-input"]}),
        new_code_cell("b", metadata={"jupyter": {"outputs_hidden": True}}),
        new_markdown_cell("c", metadata={"tags": ["reveal"]}),
    ]
    found = [
        c.metadata.get("jupyter")
        for c in stored_form.normalize(new_notebook(cells=cells), UNSET).cells
    ]
    assert found == [{"source_hidden": True, "outputs_hidden": True}, None, None]


def test_where_the_setup_cell_was_deleted_the_imports_stay():
    code = "# @title Imports\nimport torch"
    imports = new_code_cell(code, metadata={"tags": ["setup", "hide-cell"]})
    nb = stored_form.normalize(new_notebook(cells=[new_markdown_cell("# T"), imports]), UNSET)
    assert nb.cells[1].source.endswith("import torch")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda nb: nb.cells[2].update(source="print('two')"), "is stale: its code has changed"),
        (lambda nb: nb.cells[2].update(outputs=[]), "outputs are not those that its run gave"),
        (lambda nb: nb.cells[3].update(execution_count=None), "cell 4: is stripped"),
        (lambda nb: nb.cells.insert(3, nb.cells.pop(2)), "cell 3: is out of order: it ran as [3]"),
        (lambda nb: nb.cells[3].update(execution_count=9), "it ran as [9], not [3]"),
        (lambda nb: nb.cells[5].update(outputs=[]), "tagged raises-exception and raises nothing"),
        (lambda nb: nb.cells[5].update(metadata={}), "stores the error ZeroDivisionError"),
        (lambda nb: nb.cells.pop(1), "cell 2: is not the setup cell"),
        (lambda nb: nb.cells[1].update(source="pass"), "not the one that _config.yml asks for"),
        (lambda nb: nb.cells[0].update(metadata={"collapsed": True}), "is not normalized"),
        (lambda nb: nb.cells[2].update(metadata={"tags": ["reveal"]}), "is not normalized"),
        (lambda nb: nb.cells[0].update(id="other"), "is not normalized"),
        (lambda nb: nb.metadata.update(widgets={"state": {}}), "is not normalized"),
        (lambda nb: nb.cells[6].update(source=r"$\color{#0072B2}{Q}$"), "is not normalized"),
        (lambda nb: nb.metadata.update(checksums={}), "is stale"),
        (lambda nb: nb.cells[7].metadata.pop("cellView"), "is not normalized"),
        (lambda nb: nb.cells[7].update(source="assert os"), "is not normalized"),
        (lambda nb: nb.cells[4].outputs[0].data.pop("image/png"), "a plot of which there is no"),
        (lambda nb: nb.cells[4].outputs[0].data.update({"image/png": LARGE}), "is not normalized"),
        (
            lambda nb: nb.cells[3].outputs[0].metadata.update(still={"words": "a", "all": "b"}),
            "a figure of which there is no still",
        ),
    ],
)
def test_a_wrong_notebook_is_found(path, edit, message):
    change(path, edit)
    found = notebooks.problems(path, UNSET)
    assert any(message in problem for problem in found), found
    assert all(problem.startswith("00-small.ipynb") and "Fix: " in problem for problem in found)


def test_a_notebook_that_jupyter_has_opened_is_still_right(path):
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    language = {"name": "python", "version": "3.13.1", "file_extension": ".py"}
    change(path, lambda nb: nb.metadata.update(kernelspec=kernel, language_info=language))
    assert notebooks.problems(path, UNSET) == []


def test_a_solution_s_verdict_waits_until_it_is_asked_for():
    solution = new_code_cell(
        "1", metadata={"tags": ["solution"], "jupyter": {"source_hidden": True}}
    )
    exercise = new_code_cell("2", metadata={"tags": ["exercise"]})
    nb = stored_form.normalize(new_notebook(cells=[solution, exercise]), UNSET)
    assert nb.cells[0].metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}
    assert "jupyter" not in nb.cells[1].metadata


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (new_output("stream", name="stderr", text="Warning: old\n"), "writes to stderr: ['Warning"),
        (new_output("stream", text="<thing at 0x7f3a91b2c4d0>"), "prints 0x7f3a91b2c4d0"),
        (new_output("stream", text="loss 1.23456"), "prints 1.23456"),
        (new_output("display_data", data={"text/plain": "0.00123457"}), "prints 0.00123457"),
        (new_output("display_data", data={"image/svg+xml": "<svg/>"}), "an SVG, which differs"),
    ],
)
def test_an_output_that_differs_at_every_run_is_found(path, output, message):
    change(path, lambda nb: nb.cells[3].update(outputs=[output]))
    assert any(message in problem for problem in notebooks.problems(path, UNSET))


@pytest.mark.parametrize(
    "text", ["1.234", "0.001234", "12.50", "torch 2.13.0", "63045632", "1e-12"]
)
def test_short_numbers_may_be_printed(path, text):
    change(path, lambda nb: nb.cells[3].update(outputs=[new_output("stream", text=text)]))
    assert not any("prints" in problem for problem in notebooks.problems(path, UNSET))


def test_what_is_no_notebook_is_named(tmp_path):
    path = tmp_path / "00-small.ipynb"
    empty = json.dumps({"nbformat": 4, "nbformat_minor": 5})
    for text in ("", "{", '{"cells": 3}', empty, empty.replace("}", ', "cells": 3}'), "\xff"):
        path.write_text(text, encoding="latin-1")
        assert notebooks.refresh(path, UNSET) == notebooks.problems(path, UNSET)
        assert "00-small.ipynb: is not a valid notebook" in notebooks.problems(path, UNSET)[0]


def test_a_chapter_that_is_not_there_is_named():
    with pytest.raises(SystemExit, match=r"there is no 99-none\.ipynb in "):
        notebooks.chapters(["03-scaling", "99-none"])


@pytest.mark.slow
def test_a_notebook_that_fails_stays_as_it_was(path):
    change(path, lambda nb: nb.cells[3].update(source="undefined_name"))
    before = path.read_bytes()
    found = notebooks.refresh(path, UNSET)
    assert "00-small.ipynb: did not run, and was left as it was" in found[0]
    assert "undefined_name" in found[0]
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_what_is_saved_while_a_notebook_runs_is_not_written_over(path, monkeypatch):
    def execute(nb):
        path.write_text("saved meanwhile")
        return nb

    monkeypatch.setattr(notebooks, "execute", execute)
    assert notebooks.refresh(path, UNSET) == [
        "00-small.ipynb: was saved while it ran, and was left as it is. Run this again."
    ]
    assert path.read_text() == "saved meanwhile"


@pytest.mark.slow
def test_an_interrupted_write_leaves_the_old_notebook(path, right, monkeypatch):
    change(path, lambda nb: nb.cells[3].update(source="2 > 1"))
    before = path.read_bytes()
    write = Path.write_text

    def half(self, text, *args, **kwargs):
        write(self, text[:100], *args, **kwargs)
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="no space left"):
        notebooks.refresh(path, UNSET)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_the_setup_cell_installs_only_from_an_address(path):
    unset, published = stored_form.setup_source(UNSET), stored_form.setup_source(SET)
    assert "http" not in unset
    assert stored_form.setup_source({}) == unset
    assert f'"transformer_lib[book] @ git+{ADDRESS}@stable"' in published
    for source in (unset, published):
        compile(source, "setup", "exec")
        exec(source, {})  # where the library is installed it installs nothing
    nb = stored_form.normalize(nbformat.read(path, as_version=4), SET)
    assert nb.cells[1].source == published
    assert any("asks for" in problem for problem in notebooks.problems(path, SET))


@pytest.mark.parametrize("alone", [True, False])
def test_a_notebook_opened_alone_says_where_its_links_lead(alone, tmp_path, monkeypatch, capsys):
    (tmp_path / "chapters").mkdir()
    if not alone:
        (tmp_path / "book").mkdir()
        (tmp_path / "book" / "glossary.md").touch()
    monkeypatch.chdir(tmp_path / "chapters")
    exec(stored_form.setup_source(SET), {})
    assert ("https://someone.github.io/some-book/" in capsys.readouterr().out) == alone


def test_without_the_library_the_setup_cell_says_what_to_do(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="run `make lab` in it"):
        exec(stored_form.setup_source(UNSET), {})
    called = []
    monkeypatch.setattr("subprocess.run", lambda command, check: called.append((command, check)))
    exec(stored_form.setup_source(SET), {})
    assert called[0][0][1:4] == ["-m", "pip", "install"]
    assert called[0][1] is True


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"\color{red}{a} b", r"{\color{red}{a}} b"),
        (r"{\color{red}{a}}", r"{\color{red}{a}}"),
        (r"{\color{red}{a} b}", r"{{\color{red}{a}} b}"),
        (r"\color{red}{a \color{blue}{b_{i}}}", r"{\color{red}{a {\color{blue}{b_{i}}}}}"),
        (r"\color{red}{never closed", r"\color{red}{never closed"),
    ],
)
def test_colors_end_with_their_argument(before, after):
    assert stored_form.scoped_colors(before) == after
    assert stored_form.scoped_colors(after) == after


def test_the_command_line_checks_and_changes_nothing(path, capsys, monkeypatch):
    change(path, lambda nb: nb.cells[2].update(outputs=[]))
    before = path.read_bytes()
    monkeypatch.setattr("sys.argv", ["notebooks.py", "--check", str(path)])
    monkeypatch.setattr(notebooks, "load_config", lambda: UNSET)
    assert notebooks.main() == 1
    printed = capsys.readouterr()
    assert re.search(r"00-small\.ipynb: not right", printed.out)
    assert "run or edited elsewhere, or stripped" in printed.err
    assert path.read_bytes() == before


def with_figures(*, config, source="# Title\n\nAims."):
    figure = new_code_cell("from transformer_lib.widgets import Predict")
    nb = new_notebook(cells=[new_markdown_cell(source), figure])
    return stored_form.normalize(nb, config)


def test_a_chapter_with_figures_says_that_they_are_still():
    unset, published = (with_figures(config=config) for config in (UNSET, SET))
    for nb in (unset, published):
        assert nb.cells[0].source.startswith("# Title\n\nAims.\n\n<p class=")
        assert nb.cells[0].source.count("still pictures") == 1
    assert '<a href="https://someone.github.io/some-book/">' in published.cells[0].source
    assert "href" not in unset.cells[0].source
    again = with_figures(config=SET, source=unset.cells[0].source)
    assert again.cells[0] == published.cells[0]
    plain = new_notebook(cells=[unset.cells[0], new_code_cell("import torch")])
    assert stored_form.normalize(plain, UNSET).cells[0].source == "# Title\n\nAims."
