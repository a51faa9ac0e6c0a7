'''The base of every widget: a Python class, a JavaScript view, and the modules that widgets share.

A widget is a folder. `softmax_row/widget.py`:

    class SoftmaxRow(Widget):
        """Softmax of a few scores, with a temperature."""
        _esm = bundle("softmax_row")                # view.js and the modules that it imports
        _css = stylesheet("softmax_row")            # core/widget.css, and style.css if there is one
        _text = traitlets.Bytes().tag(sync=True)    # text from outside: Bytes, never a string
        _scores = traitlets.Bytes().tag(sync=True)  # large arrays: float32, little endian
        _limits = constant({"hottest": HOTTEST})    # what JavaScript must know and Python decides
        temperature = traitlets.Float(1.0).tag(sync=True)  # what the reader sets: a plain trait

        def __init__(self, scores, tokens):
            scores = to_numpy(scores, "scores")     # inputs.py: checks that teach
            tokens = to_tokens(tokens, len(scores), "tokens", "scores")
            super().__init__(_scores=float_bytes(scores), _text=json_bytes({"tokens": tokens}))

        def _sizes(self):                           # repr: SoftmaxRow(tokens=5)
            return {"tokens": len(self._scores) // 4}

`softmax_row/view.js` (nothing may touch the page before `render` is called, so that node can import
the file; computation goes into a `model.js` beside it, which tests run under node):

    import { slider } from "../core/dom.js";
    import { figure } from "../core/figure.js";
    import { grid } from "../core/grid.js";
    import { readFloats, readJson } from "../core/wire.js";
    import { softmax } from "../math/linear.js";

    function render({ model, el }) {
      const { tokens } = readJson(model, "_text");
      const scores = readFloats(model, "_scores");
      const fig = figure(el, { name: "Softmax", hint: "Try: lower the temperature." });
      const heat = slider({ label: "temperature", min: 0.1, max: readJson(model, "_limits").hottest,
        step: 0.1, value: model.get("temperature"),
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

`core/` holds what at least two widgets use, `math/` what tests hold equal to the library. Only
`get`, `set`, `on`, `off` and `save_changes` of the model are used, because the page's own small
host (book/assets/afm-host.js) has nothing else. All of a widget's interaction happens in
JavaScript: on the page there is no kernel. Observers in Python are extras on top.
'''

import json
from collections.abc import Mapping

import anywidget
import numpy as np
import traitlets


class Widget(anywidget.AnyWidget):
    """The base of all widgets: an anywidget whose repr is stable, so that notebooks compare."""

    def _sizes(self) -> Mapping[str, object]:
        """Names and sizes for the repr, never an address."""
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


def double_bytes(array: object) -> bytes:
    """An array as float64, for numbers that float32 cannot hold (read by `readDoubles`).

    >>> len(double_bytes([1e-50, 1.0]))
    16
    """
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def constant(value: object) -> traitlets.Bytes:
    """A trait that tells JavaScript what Python has decided, so that each limit is written once.

    >>> constant({"hottest": 3.0}).default_value
    b'{"hottest":3.0}'
    """
    return traitlets.Bytes(json_bytes(value), read_only=True).tag(sync=True)
