'''The base of every widget: a Python class, a JavaScript view, and the modules that widgets share.

A widget is a folder. `softmax_row/widget.py`:

    class SoftmaxRow(Widget):
        """Softmax of a few scores, with a temperature."""
        _esm = bundle("softmax_row")                # view.js and the modules that it imports
        _css = stylesheet("softmax_row")            # style.css; core/widget.css is in _esm
        _text = traitlets.Bytes().tag(sync=True)    # text from outside: Bytes, never a string
        _scores = traitlets.Bytes().tag(sync=True)  # large arrays: float32, little endian
        _limits = constant({"hottest": HOTTEST})    # what JavaScript must know and Python decides
        temperature = traitlets.Float(1.0).tag(sync=True)  # what the reader sets: a plain trait
        _keys_of_text = {"temperature": Number(0.1, HOTTEST, "temperature", whole=False)}
        _facts = ("temperature",)                   # driving.py: what links set and goals read

        def __init__(self, scores, tokens, *, name="", goals=()):
            scores = to_numpy(scores, "scores")     # inputs.py: checks that teach
            tokens = to_tokens(tokens, len(scores), "tokens", "scores")
            text = json_bytes({"tokens": tokens})
            super().__init__(_scores=float_bytes(scores), _text=text, name=name, goals=goals)

        def _sizes(self):                           # repr: SoftmaxRow(tokens=5)
            return {"tokens": len(self._scores) // 4}

`softmax_row/view.js` (nothing may touch the page before `render` is called, so that node can import
the file; computation goes into a `model.js` beside it, which tests run under node):

    import { slider } from "../core/dom.js";
    import { figure } from "../core/figure.js";
    import { grid } from "../core/grid.js";
    import { drive } from "../core/state.js";
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
      drive(fig, model, { facts: () => ({ temperature: model.get("temperature") }) });
      return fig.end;                      // the clean-up
    }

    export default { render };

`core/` holds what at least two widgets use, `math/` what tests hold equal to the library. Only
`get`, `set`, `on`, `off` and `save_changes` of the model are used, because the page's own small
host (book/assets/afm-host.js) has nothing else. All of a widget's interaction happens in
JavaScript: on the page there is no kernel. Observers in Python are extras on top.
'''

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets

from transformer_lib.widgets import driving
from transformer_lib.widgets.goals import Goal


class Widget(anywidget.AnyWidget):
    """The base of all widgets: an anywidget whose repr is stable, so that notebooks compare.

    `name` (letters, digits, hyphens) is what links in the prose call the figure (see driving.py);
    `goals` are challenges, and `reached` says which of them the reader has met.
    """

    _keys_of_text: ClassVar[Mapping[str, driving.Key]] = {}  # what a link may set
    _facts: ClassVar[Sequence[str]] = ()  # what a goal may read, as templates
    _also_reset: ClassVar[Sequence[str]] = ()  # private traits that belong to the first state
    _text = b"{}"  # most widgets have a trait of this name

    name = traitlets.Unicode("").tag(sync=True)
    reached = traitlets.List(traitlets.Bool()).tag(sync=True)
    _driving = traitlets.Bytes(read_only=True).tag(sync=True)

    def __init__(self, *, name: str = "", goals: Sequence[Goal] = (), **traits: Any) -> None:
        if isinstance(goals, Goal) or not all(isinstance(goal, Goal) for goal in goals):
            raise TypeError(f"goals are {goals!r}, but must be a list of Goal(text, when=[...])")
        self._goals = tuple(goals)
        texts = json.loads(traits.get("_text", b"{}"))
        for goal in self._goals:
            for left, _, right in goal.conditions:
                for fact in (left, right) if isinstance(right, str) else (left,):
                    if problem := driving.fact_problem(self._facts, fact, texts):
                        raise ValueError(f"goal {goal.text!r}: {problem}")
        super().__init__(name=name, reached=[False] * len(self._goals), **traits)

    def accepts(self, key: str, value: str = "") -> bool:
        """Whether a link in the prose may set this: `[text](#set:name;key=value)`."""
        return self.refusal(key, value) is None

    def refusal(self, key: str, value: str = "") -> str | None:
        """Why a link may not set this; None if it may."""
        texts, sizes = self._texts(), self._sizes()
        return driving.refusal(self._keys_of_text, key, value, texts=texts, sizes=sizes)

    def _texts(self) -> dict[str, Any]:
        return json.loads(self._text)

    @traitlets.default("_driving")
    def _describe(self) -> bytes:
        # Made when the state is first asked for, at the end of the construction: what the other
        # traits are by then is the first state.
        keys = {name: key.described(self._sizes()) for name, key in self._keys_of_text.items()}
        shared = Widget.class_traits()
        ours = [
            name
            for name, trait in self.traits(sync=True).items()
            if name not in shared and not trait.read_only
        ]
        kept = [name for name in ours if name[0] != "_" or name in self._also_reset]
        goals = [
            {"text": goal.text, "hint": goal.hint, "when": goal.conditions} for goal in self._goals
        ]
        first = {name: getattr(self, name) for name in kept} if keys else {}
        return json_bytes({"keys": keys, "first": first, "goals": goals})

    @traitlets.validate("name")
    def _check_name(self, proposal: dict) -> str:
        if proposal["value"] and not driving.NAME.fullmatch(proposal["value"]):
            raise ValueError(
                f"name is {proposal['value']!r}, but must be letters, digits and hyphens, such as "
                "'two-layers': links in the prose hold it"
            )
        return proposal["value"]

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
