"""Python for the page: two files that the figure Write loads when it is first used.

`python-HASH.js` hands over the text of a worker (MicroPython, the tensors of math/tensor/ and the
Python of write/python/) and MicroPython's WebAssembly, `editor-HASH.js` CodeMirror. Classic
scripts, since from file:// a page can load nothing else. All of it comes from npm's packages, at
the versions of book/package.json, and is put together by esbuild.
"""

import base64
import functools
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from transformer_lib.widgets.joining import FOLDER

NPM = Path(os.environ.get("AFM_NPM") or Path(sys.prefix) / "npm" / "node_modules")
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
        "python": _provided("python", _runtime()),
        "editor": _provided("editor", _bundled(EDITOR, "afmEditor"), "afmEditor"),
    }


def _provided(name: str, content: object, value: str = "") -> tuple[str, str]:
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


def _bundled(path: Path, name: str) -> str:
    options = ["--bundle", "--minify", "--format=iife", f"--global-name={name}", "--charset=utf8"]
    done = subprocess.run(
        [NPM / ".bin" / "esbuild", path, *options, "--target=es2022", "--log-level=warning"],
        env=os.environ | {"NODE_PATH": str(NPM)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(f"esbuild could not bundle {path}:\n{done.stderr}")
    return done.stdout.rstrip()


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
