"""Byte-pair encoding, one merge at a time, on the reader's own text."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant, json_bytes
from transformer_lib.widgets.driving import Number, Token
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.inputs import require_mapping, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

MOST = 1000  # characters of a text: all of its merges are learned between two key strokes


class PairMerger(Widget):
    """A text as tokens, the pairs in it by their count, and the merges so far.

    The reader steps through the merges, forward and back, and may write another text. Merges are
    those of :func:`transformer_lib.bpe.train_bpe` on this text alone, until no pair occurs twice.
    The text and the number of merges come back as `widget.text` and `widget.merges`, and can be
    observed and set.

    Args:
        samples: texts to begin with, by name; the first one is shown.
        merges: how many merges are done at first (fewer, where the text has fewer).
        name: what links in the prose call the figure.
        goals: challenges.

    State (what `[text](#set:name;key=value)` sets): `sample` (its name), `merges` (0 to 999),
    `reset`.

    Facts (what goals read): `characters`, `bytes` and `words` of the text; `merges` done, `tokens`
    now, `longest` (bytes of the longest token in the text), `next` (how often the pair occurs that
    is merged next; 0 if every word is one token).

    Raises ValueError for no samples, an empty text, one of more than 1,000 characters or with half
    a surrogate pair, or a negative number of merges; TypeError for what is not text.

    >>> merger = PairMerger({"roses": "rose roses rosemary"}, merges=3)
    >>> merger
    PairMerger(characters=19)
    >>> merger.text, merger.merges
    ('rose roses rosemary', 3)
    """

    _esm = bundle("pair_merger")
    _css = stylesheet("pair_merger")
    _text = traitlets.Bytes().tag(sync=True)
    _limits = constant({"characters": MOST})
    # The text as code points: what a reader writes must not travel in a string trait (base.py), and
    # from JavaScript bytes do not arrive as bytes.
    _letters = traitlets.List(traitlets.Int()).tag(sync=True)
    merges = traitlets.Int().tag(sync=True)
    _keys_of_text: ClassVar = {"sample": Token("samples"), "merges": Number(0, MOST - 1, "merges")}
    _facts = ("characters", "bytes", "words", "merges", "tokens", "longest", "next")
    _also_reset = ("_letters",)

    def __init__(
        self,
        samples: Mapping[str, str],
        *,
        merges: int = 0,
        name: str = "",
        goals: Sequence[Goal] = (),
    ) -> None:
        require_mapping(samples, "samples", "{name: text}")
        if not samples:
            raise ValueError("samples is empty: give at least one text by its name")
        names = to_tokens(list(samples), len(samples), "samples", "texts")
        contents = to_tokens(list(samples.values()), len(samples), "texts", "samples")
        for text in contents:
            _require_text(text)
        super().__init__(
            _text=json_bytes({"samples": names, "contents": contents}),
            _letters=[ord(character) for character in contents[0]],
            merges=merges,
            name=name,
            goals=goals,
        )

    @property
    def text(self) -> str:
        """The text that is shown; set it to show another one, without merges."""
        return "".join(map(chr, self._letters))

    @text.setter
    def text(self, text: str) -> None:
        _require_text(text)
        self._letters = [ord(character) for character in text]
        self.merges = 0

    @traitlets.validate("_letters")
    def _check_letters(self, proposal: dict) -> list[int]:
        _require_text("".join(map(chr, proposal["value"])), least=0)  # the reader may empty it
        return proposal["value"]

    @traitlets.validate("merges")
    def _check_merges(self, proposal: dict) -> int:
        if proposal["value"] < 0:
            raise ValueError(f"merges is {proposal['value']}; it must be at least 0")
        return proposal["value"]

    def _sizes(self) -> dict[str, object]:
        return {"characters": len(self._letters)}


def _require_text(text: str, least: int = 1) -> None:
    if not isinstance(text, str):
        raise TypeError(f"the text is {text!r}, but must be a str")
    if not least <= len(text) <= MOST:
        raise ValueError(
            f"the text has {len(text)} characters; choose one of {least} to {MOST}: all of its "
            "merges are learned while the reader writes"
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(
            f"the text {text[:40]!r} contains half a surrogate pair, which stands for no character"
        )
