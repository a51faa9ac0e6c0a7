"""The base of figures about a text: one of a few samples, or what the reader writes."""

from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant, json_bytes
from transformer_lib.widgets.driving import Token
from transformer_lib.widgets.inputs import require_mapping, to_tokens

MOST = 1000  # characters of a text: all is computed anew between two key strokes


class OwnText(Widget):
    """Holds the samples, by name, and the text that is shown, the first sample at first.

    core/owntext.js has the controls. What a figure knows more about its samples goes into `also`.
    """

    _text = traitlets.Bytes().tag(sync=True)
    _limits = constant({"characters": MOST})
    # The text as code points: what a reader writes must not travel in a string trait (base.py), and
    # from JavaScript bytes do not arrive as bytes.
    _letters = traitlets.List(traitlets.Int()).tag(sync=True)
    _keys_of_text: ClassVar = {"sample": Token("samples")}
    _also_reset = ("_letters",)

    def __init__(
        self, samples: Mapping[str, str], *, also: Mapping[str, object] | None = None, **traits: Any
    ) -> None:
        require_mapping(samples, "samples", "{name: text}")
        if not samples:
            raise ValueError("samples is empty: give at least one text by its name")
        names = to_tokens(list(samples), len(samples), "samples", "texts")
        contents = list(samples.values())
        for text in contents:
            _require_text(text)
        super().__init__(
            _text=json_bytes({"samples": names, "contents": contents, **(also or {})}),
            _letters=[ord(character) for character in contents[0]],
            **traits,
        )

    @property
    def text(self) -> str:
        """The text that is shown; set it to show another one."""
        return "".join(map(chr, self._letters))

    @text.setter
    def text(self, text: str) -> None:
        _require_text(text)
        self._letters = [ord(character) for character in text]
        self._begin()

    def _begin(self) -> None:
        """What a figure sets back for a new text."""

    @traitlets.validate("_letters")
    def _check_letters(self, proposal: dict) -> list[int]:
        _require_text("".join(map(chr, proposal["value"])), least=0)  # the reader may empty it
        return proposal["value"]

    def _sizes(self) -> dict[str, object]:
        return {"characters": len(self._letters)}


def _require_text(text: str, least: int = 1) -> None:
    if not isinstance(text, str):
        raise TypeError(f"the text is {text!r}, but must be a str")
    if not least <= len(text) <= MOST:
        raise ValueError(
            f"the text has {len(text)} characters; choose one of {least} to {MOST}: all of its "
            "tokens are found anew while the reader writes"
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(
            f"the text {text[:40]!r} contains half a surrogate pair, which stands for no character"
        )
