"""The widgets' JavaScript under node: equal to the library's numbers, and joined as pages get it.

Each tests/js/fixtures_NAME.py has a function `fixtures()`, whose result the tests in
tests/js/*.test.js read as `fixture("NAME")` (tests/js/support.js).
"""

import importlib.util
import json
from pathlib import Path

import pytest
from nodes import run_node

from transformer_lib.widgets.joining import FOLDER, bundle

SCRIPTS = Path(__file__).parents[1] / "js"
TESTS = sorted(SCRIPTS.rglob("*.test.js"))
WIDGETS = sorted(path.parent.name for path in FOLDER.glob("*/view.js"))


@pytest.fixture(scope="session")
def fixture_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    for path in sorted(SCRIPTS.rglob("fixtures_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        text = json.dumps(module.fixtures(), allow_nan=False)
        name = path.stem.removeprefix("fixtures_")
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def test_there_is_javascript_to_test():
    assert TESTS
    assert "attention_map" in WIDGETS


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_under_node(fixture_folder, path):
    output = run_node("--test", "--test-reporter=tap", path, AFM_FIXTURES=str(fixture_folder))
    assert "\n# pass 0" not in output, "no test ran"


@pytest.mark.parametrize("name", WIDGETS)
def test_joined_module_imports_under_node(tmp_path, name):
    path = tmp_path / f"{name}.mjs"
    path.write_text(bundle(name), encoding="utf-8")
    check = f"""
      const widget = (await import({json.dumps(path.as_uri())})).default;
      console.log(typeof widget.render, Object.keys(widget).sort().join());
    """
    kind, keys = run_node("--input-type=module", "--eval", check).split()
    assert kind == "function"
    assert keys in ("render", "initialize,render")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("*.js")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_each_module_imports_under_node_unjoined(path):
    run_node("--input-type=module", "--eval", f"await import({json.dumps(path.as_uri())});")
