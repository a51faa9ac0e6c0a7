'''The base of every widget: a Python class, a JavaScript view, and the modules that widgets share.

A widget is a folder. `softmax_row/widget.py`:

    class SoftmaxRow(Widget):
        """Softmax of a few scores, with a temperature."""
        _esm = bundle("softmax_row")                # view.js and the modules that it imports
        _css = stylesheet("softmax_row")            # style.css; core/widget.css is in _esm
        _text = traitlets.Bytes().tag(sync=True)    # text from outside: Bytes, never a string
        _scores = traitlets.Bytes().tag(sync=True)  # large arrays: float32, little endian
        temperature = Setting(1.0, Number(0.1, 3, "of the softmax", whole=False))  # driving.py
        _facts: ClassVar = {"largest": "weight"}    # what goals read beside the settings

        def __init__(self, scores, tokens, **settings):  # the settings, a name, goals
            scores = to_numpy(scores, "scores")     # inputs.py: checks that teach
            tokens = to_tokens(tokens, len(scores), "tokens", "scores")
            text = json_bytes({"tokens": tokens})
            super().__init__(_scores=float_bytes(scores), _text=text, **settings)

        def _sizes(self):                           # repr: SoftmaxRow(tokens=5)
            return {"tokens": len(self._scores) // 4}

`softmax_row/view.js` (nothing may touch the page before `render` is called, so that node can import
the file; computation goes into a `model.js` beside it, which tests run under node):

    import { slider } from "../core/dom.js";
    import { figure } from "../core/figure.js";
    import { grid } from "../core/grid.js";
    import { drive, endsOf } from "../core/state.js";
    import { readFloats, readJson, send } from "../core/wire.js";
    import { softmax } from "../math/linear.js";

    function render({ model, el }) {
      const { tokens } = readJson(model, "_text");
      const scores = readFloats(model, "_scores");
      const fig = figure(el, { name: "Softmax", hint: "Try: lower the temperature." });
      const heat = slider({ label: "temperature", ...endsOf(model, "temperature"), step: 0.1,
        value: model.get("temperature"), onInput: (value) => send(model, "temperature", value) });
      const row = grid({ rows: ["scores"], columns: tokens, label: "Softmax weights",
        rowTitle: "", columnTitle: "" });  // else "queries" and "keys"
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
      drive(fig, model, { facts: () => ({ largest: Math.max(...row.values) }) });
      return fig.end;                      // the clean-up
    }

    export default { render };

`core/` holds what at least two widgets use, `math/` what tests hold equal to the library. Only
`get`, `set`, `on`, `off` and `save_changes` of the model are used, because the page's own small
host (book/assets/afm-host.js) has nothing else. All of a widget's interaction happens in
JavaScript: on the page there is no kernel. Observers in Python are extras on top.
'''

import difflib
import inspect
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

    _settings: ClassVar[Mapping[str, driving.Setting]] = {}  # by trait; those of the class itself
    _keys_of_text: ClassVar[Mapping[str, driving.Key]] = {}  # what a link may set, and its settings
    _facts: ClassVar[Mapping[str, str]] = {}  # what a goal may read: templates, and their meaning
    _also_reset: ClassVar[Sequence[str]] = ()  # private traits that belong to the first state
    _made = False
    _text = b"{}"  # most widgets have a trait of this name
    _read: tuple[bytes, dict[str, Any]] = (_text, {})

    name = traitlets.Unicode("").tag(sync=True)
    reached = traitlets.List(traitlets.Bool()).tag(sync=True)
    _driving = traitlets.Bytes(read_only=True).tag(sync=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own, above = vars(cls), super(cls, cls)
        new = {name: one for name, one in own.items() if isinstance(one, driving.Setting)}
        linked = {one.key_in_links(name): one.key for name, one in new.items() if one.link != ""}
        facts = {name: key.about for name, key in linked.items() if key.is_fact}
        cls._settings = {**above._settings, **new}
        besides = own.get("_keys_of_text", {})
        cls._keys_of_text = {**above._keys_of_text, **linked, **besides}
        cls._facts = {**above._facts, **facts, **own.get("_facts", {})}
        if own.get("__doc__"):  # a figure, and not what anywidget derives of it for each of them
            cls.__signature__ = _signature(cls)
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{_documented(cls)}"

    def __init__(self, *, name: str = "", goals: Sequence[Goal] = (), **traits: Any) -> None:
        if unknown := [trait for trait in traits if not self.has_trait(trait)]:
            known = ", ".join(inspect.signature(type(self)).parameters)
            raise TypeError(f"there is no setting {unknown[0]!r}; there are {known}")
        listed = isinstance(goals, Sequence)
        if not listed or not all(isinstance(goal, Goal) for goal in goals):
            raise TypeError(f"goals are {goals!r}, but must be a list of Goal(text, when=[...])")
        self._goals = tuple(goals)
        texts = json.loads(traits.get("_text", b"{}"))
        for head in ("title", "hint"):
            if isinstance(texts, dict) and not isinstance(texts.get(head, ""), str):
                raise TypeError(f"{head} is {texts[head]!r}, but must be a text")
        for goal in self._goals:
            for left, _, right in goal.conditions:
                for fact in (left, right) if isinstance(right, str) else (left,):
                    if problem := driving.fact_problem(self._facts, fact, texts):
                        raise ValueError(f"goal {goal.text!r}: {problem}")
        super().__init__(name=name, reached=[False] * len(self._goals), **traits)
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._made and name[0] != "_" and not hasattr(self, name):
            close = difflib.get_close_matches(name, self.trait_names(), 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise AttributeError(f"there is no setting {name!r}{hint}")
        super().__setattr__(name, value)

    def _register_validator(self, handler: Any, names: Sequence[str]) -> None:
        """As traitlets does it, so that what a check refuses is not kept: see `SettingError`."""

        def checked(widget: Widget, proposal: dict) -> Any:
            try:
                return handler(widget, proposal)
            except ValueError as error:
                raise driving.SettingError(str(error)) from error

        super()._register_validator(checked, names)

    def accepts(self, key: str, value: str = "") -> bool:
        """Whether a link in the prose may set this: `[text](#set:name;key=value)`."""
        return self.refusal(key, value) is None

    def refusal(self, key: str, value: str = "") -> str | None:
        """Why a link may not set this; None if it may."""
        texts, sizes = self._texts(), self._sizes()
        return driving.refusal(self._keys_of_text, key, value, texts=texts, sizes=sizes)

    def _texts(self) -> dict[str, Any]:
        if self._read[0] is not self._text:
            self._read = self._text, json.loads(self._text)
        return self._read[1]

    @traitlets.default("_driving")
    def _describe(self) -> bytes:
        # Made when the state is first asked for, at the end of the construction: what the other
        # traits are by then is the first state.
        traits = {one.key_in_links(name): name for name, one in self._settings.items()}
        keys = {
            name: key.described(traits.get(name, ""), self._sizes())
            for name, key in self._keys_of_text.items()
        }
        shared = Widget.class_traits()
        ours = [
            name
            for name, trait in self.traits(sync=True).items()
            if name not in shared and not trait.read_only
        ]
        also = (*self._settings, *self._also_reset)
        kept = [name for name in ours if name[0] != "_" or name in also]
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


def _signature(cls: type[Widget]) -> inspect.Signature:
    """The constructor's, with all settings by name in place of `**settings`."""
    given = dict(list(inspect.signature(cls.__init__).parameters.items())[1:])
    more = {name: one.default_value for name, one in cls._settings.items() if name[0] != "_"}
    for name, start in {**more, "name": "", "goals": ()}.items():
        keyword = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=start)
        given.setdefault(name, keyword)
    return inspect.Signature([one for one in given.values() if one.kind is not one.VAR_KEYWORD])


def _documented(cls: type[Widget]) -> str:
    """What the docstring says of a figure's settings, links and facts."""

    def line(name: str, *parts: str) -> str:
        return f"    {name}: {'; '.join(filter(None, parts))}".rstrip(": ")

    of = {one.key_in_links(name): name for name, one in cls._settings.items()}
    settings = [
        line(f"{name} = {one.default_value!r}", one.key.takes(None, {}), one.key.about)
        for name, one in cls._settings.items()
        if name[0] != "_"
    ]
    links = [
        line(key, f"`{of[key]}`" if key in of else known.takes(None, {}), known.about)
        for key, known in cls._keys_of_text.items()
        if of.get(key) != key
    ]
    blocks = {
        "Settings: keywords, which come back, can be observed and set; the first value is here.\n"
        "Links set them, `[text](#set:name;key=value)`, and goals read numbers, and 1 for on.": (
            settings
        ),
        "Links set, `[text](#set:name;key=value)`, beside the settings:": [
            *links,
            line(driving.RESET, "all as at first"),
        ],
        "Goals read, beside the settings:": [
            line(fact, about) for fact, about in cls._facts.items() if fact not in of
        ],
    }
    told = ["\n".join([head, *lines]) for head, lines in blocks.items() if lines]
    return "\n\n".join([*told, "`name` is what links call the figure, `goals` are its challenges."])


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
