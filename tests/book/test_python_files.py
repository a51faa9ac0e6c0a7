"""The files with which a page runs Python: what is in them, and how much they weigh."""

import ast
import gzip
import json
from collections import Counter

import pytest
import python_files

from transformer_lib.widgets import Write
from transformer_lib.widgets.joining import FOLDER

MOST = {"python": 350_000, "editor": 150_000}  # gzipped: of Python, 330 kB and the tensors' 30 kB


@pytest.mark.parametrize("kind", MOST)
def test_a_file_hands_over_what_it_has_and_stays_small(kind):
    name, text = python_files.files()[kind]
    assert name.startswith(f"{kind}-")
    assert f'afm.provide("{name}", ' in text
    assert len(gzip.compress(text.encode(), 9)) < MOST[kind]


def test_the_interpreter_fetches_nothing_and_is_no_module():
    text = python_files.interpreter()
    assert "import.meta" not in text
    assert "\nexport" not in f"\n{text}"
    assert "getWasmBinary(){return globalThis.afmWasm;" in text


def test_another_interpreter_stops_the_build(monkeypatch):
    monkeypatch.setitem(python_files.AS_CLASSIC, "never there", "")
    with pytest.raises(ValueError, match="has no 'never there' any more"):
        python_files.interpreter()


def test_no_two_files_in_micropython_define_the_same_name():
    paths = (FOLDER / "write" / "python").glob("*.py")
    nodes = [node for path in paths for node in ast.parse(path.read_text("utf-8")).body]
    defined = Counter(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef))
    assert [name for name, count in defined.items() if count > 1] == []


def test_missing_packages_are_named(monkeypatch, tmp_path):
    python_files.files.cache_clear()
    monkeypatch.setattr(python_files, "PACKAGE", tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="`make` gets it from npm"):
        python_files.files()


def test_only_figures_that_ask_get_the_names():
    state = {"a": {"state": {"_python": {}}}, "b": {"state": {"other": 1}}}
    files = python_files.named(state)
    assert state["a"]["state"]["_python"] == {
        kind: name for kind, (name, _) in python_files.files().items()
    }
    assert state["b"] == {"state": {"other": 1}}
    assert set(files) == set(state["a"]["state"]["_python"].values())
    assert python_files.named({"b": {"state": {}}}) == {}
    assert json.loads(Write("x")._text)["code"] == "x"
