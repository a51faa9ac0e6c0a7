'''What every widget of the book is made of: one Python class, one JavaScript file, one shared core.

A new widget is two files (and a third, NAME.css, if it needs one). `softmax_row.py`:

    class SoftmaxRow(Widget):
        """Softmax of a few scores, with a temperature."""
        _esm = bundle("softmax_row")                # softmax_row.js + the core modules it imports
        _css = stylesheet("softmax_row")            # core/widget.css + softmax_row.css, if any
        _text = traitlets.Bytes().tag(sync=True)    # text from outside: Bytes, never a string
        _scores = traitlets.Bytes().tag(sync=True)  # large arrays: float32, little endian
        temperature = traitlets.Float(1.0).tag(sync=True)  # what the reader sets: a plain trait

        def __init__(self, scores, tokens):
            scores = to_numpy(scores, "scores")     # inputs.py: checks that teach
            tokens = to_tokens(tokens, len(scores), "tokens", "scores")
            super().__init__(_scores=float_bytes(scores), _text=json_bytes({"tokens": tokens}))

        def _sizes(self):                           # repr: SoftmaxRow(tokens=5)
            return {"tokens": len(self._scores) // 4}

`softmax_row.js` (named imports only, each on one line, no renaming; nothing may touch the page
before `render` is called, so that node can import the file):

    import { slider } from "./core/dom.js";
    import { figure } from "./core/figure.js";
    import { grid } from "./core/grid.js";
    import { softmax } from "./core/linear.js";
    import { readFloats, readJson } from "./core/wire.js";

    function render({ model, el }) {
      const { tokens } = readJson(model, "_text");
      const scores = readFloats(model, "_scores");
      const fig = figure(el, { name: "Softmax", hint: "Try: lower the temperature." });
      const heat = slider({ label: "temperature", min: 0.1, max: 4, step: 0.1,
        value: model.get("temperature"),
        onInput: (value) => { model.set("temperature", value); model.save_changes(); } });
      const row = grid({ rows: ["scores"], columns: tokens, label: "Softmax weights" });
      fig.controls.append(heat.element);
      fig.add(row);                        // lays it out to the width, repaints it in another theme
      fig.exports({ name: "softmax", csv: () => [tokens, Array.from(row.values)] });
      function paint() {
        heat.set(model.get("temperature"));
        row.paint([softmax(Array.from(scores), model.get("temperature"))]);
        fig.say("At temperature ", { text: String(model.get("temperature")) }, " ...");
      }
      fig.listen(model, "change:temperature", paint);
      paint();
      return fig.end;                      // the clean-up
    }

    export default { render };

Only `get`, `set`, `on`, `off` and `save_changes` of the model are used, because the page's own
small host (book/assets/afm-host.js) has nothing else. All of a widget's interaction happens in
JavaScript: on the page there is no kernel. Observers in Python are extras on top.
'''

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import anywidget
import numpy as np

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'import \{ ([\w$]+(?:, [\w$]+)*) \} from "(\./(?:[\w-]+/)*[\w-]+\.js)";')
_DECLARATION = re.compile(
    r"(?:export )?(?:async )?(?:const|let|var|class|function\*?)\s+([\w$]+|[\[{])"
)


class Widget(anywidget.AnyWidget):
    """The base of all widgets: an anywidget whose repr is stable, so that notebooks compare."""

    def _sizes(self) -> Mapping[str, object]:
        """What the repr says about the widget: names and sizes, never an address."""
        return {}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self._sizes().items())
        return f"{type(self).__name__}({sizes})"


def json_bytes(value: object) -> bytes:
    """JSON as UTF-8 bytes, for a `Bytes` trait (read in JavaScript by `readJson`).

    Text from outside must not travel in a string trait: pages embed strings in a script tag, where
    `</SCRIPT>` in a token would end the tag. Bytes are embedded in base64. ValueError for NaN.

    >>> json_bytes({"tokens": ["mary"]})
    b'{"tokens":["mary"]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )


def float_bytes(array: object) -> bytes:
    """An array as float32, little endian, row by row, for a `Bytes` trait (read by `readFloats`).

    >>> len(float_bytes([[1.0, 2.0, 3.0]]))
    12
    """
    return np.ascontiguousarray(array, dtype="<f4").tobytes()


@cache
def bundle(name: str, folder: Path = FOLDER) -> str:
    """One ES module out of `NAME.js` and all the modules that it imports, each once, in order.

    The joining is plain: import lines and the word `export` go, the rest stays as written. So each
    import must be one line of named imports without renaming, and a top-level name may be declared
    once in all the modules together. Raises ValueError with the file and line where that fails.
    """
    modules: dict[Path, str] = {}
    names: dict[str, Path] = {}
    _collect((folder / f"{name}.js").resolve(), modules, names, importing=())
    return "\n".join(modules.values())


@cache
def stylesheet(name: str, folder: Path = FOLDER) -> str:
    """The shared style, and `NAME.css` after it where there is one."""
    own = folder / f"{name}.css"
    sheets = [folder / "core" / "widget.css", *([own] if own.exists() else [])]
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def _collect(
    path: Path, modules: dict[Path, str], names: dict[str, Path], importing: tuple[Path, ...]
) -> set[str]:
    """Add `path` to `modules`, after those it imports; return the names that it declares."""
    if path in importing:
        circle = " -> ".join(module.name for module in (*importing, path))
        raise ValueError(f"modules import one another in a circle: {circle}")
    if not path.exists():
        raise ValueError(f"{importing[-1].name if importing else 'bundle'}: there is no {path}")
    if path in modules:
        return {name for name, home in names.items() if home == path}
    body = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        where = f"{path.name}:{number}"
        if line.startswith("import"):
            _import(where, line, path, modules, names, (*importing, path))
            continue
        if line.startswith("export default") and importing:
            raise ValueError(f"{where}: only the widget's own file may have a default export")
        if line.startswith(("export {", "export *")):
            raise ValueError(f"{where}: write `export` before the declaration, not as a list")
        if declared := _DECLARATION.match(line):
            _declare(where, declared[1], path, names)
        body.append(line if line.startswith("export default") else line.removeprefix("export "))
    modules[path] = "\n".join([f"// {path.name}", *body]) + "\n"
    return {name for name, home in names.items() if home == path}


def _import(where, line, path, modules, names, importing) -> None:
    match = _IMPORT.fullmatch(line.rstrip())
    if not match:
        raise ValueError(
            f'{where}: {line!r} is not of the form import {{ a, b }} from "./core/x.js"; '
            "(one line, named, no renaming), which is all that can be joined"
        )
    target = (path.parent / match[2]).resolve()
    missing = set(match[1].split(", ")) - _collect(target, modules, names, importing)
    if missing:
        raise ValueError(f"{where}: {target.name} does not declare {', '.join(sorted(missing))}")


def _declare(where: str, name: str, path: Path, names: dict[str, Path]) -> None:
    if name in "[{":
        raise ValueError(f"{where}: declare one top-level name at a time, not a pattern")
    if name in names:
        raise ValueError(
            f"{where}: the top-level name `{name}` is declared in {names[name].name} already; "
            "joined modules share one scope, so rename one of them"
        )
    names[name] = path
