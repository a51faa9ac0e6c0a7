"""The induction circuit that was written by hand: a text, its stream, and what two heads carry."""

from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Setting
from transformer_lib.widgets.inputs import require_parts
from transformer_lib.widgets.joining import bundle, stylesheet
from transformer_lib.widgets.weights import pack_weights

FACTS_OF_THE_STREAM = ("token", "before", "says", "position")


class Circuit(Widget):
    """A machine of two blocks whose every number is known, at work on a text that can be typed.

    A row of letters for the text and one behind each block, with the content of each slot of the
    stream; lines are what the first head of each block carries, as strong as its weights. Beside
    them the two maps, or the scores that the two heads' matrices come to. All of it is computed in
    the reader's browser, with the machine's own weights.

    Args:
        machine: what :func:`~transformer_lib.interpret.handmade.induction_gpt` returns.
        slots: where each fact stands in its stream: ``handmade.slots(vocabulary, context)``.
        letters: a letter for each token of its vocabulary.
        text: shown first, letters with or without blanks.

    The text comes back as `widget.ids`, and can be set.

    Raises ValueError for letters that are not one each, a text of others or of the wrong length,
    or slots that the machine does not have; TypeError for what is not a machine
    or not a text.
    """

    _esm = bundle("circuit")
    _css = stylesheet("circuit")
    _packed = traitlets.Bytes().tag(sync=True)
    _config = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    ids = traitlets.List(traitlets.Int()).tag(sync=True)
    at = Setting(-1, Number(0, "context", "the chosen letter", none="last", none_is=-1))
    fits = Setting(False, Flag("scores beside it, not maps"))
    _facts: ClassVar = {
        "at": "the chosen letter, from 0",
        "length": "of the text",
        "looks": "at which place the second head looks most, from 0",
        "sure": "the chance of what the machine says, at the chosen letter",
    }

    def __init__(
        self,
        machine: Any,
        slots: Mapping[str, slice],
        *,
        letters: str,
        text: str,
        **settings: Any,
    ) -> None:
        require_parts(machine, ("config", "state_dict"), "machine", "induction_gpt()")
        config = machine.config
        if len(letters) != config.vocabulary or len(set(letters)) != len(letters):
            raise ValueError(
                f"letters are {letters!r}; give {config.vocabulary} different ones, one for each "
                f"token of the machine"
            )
        if missing := [fact for fact in FACTS_OF_THE_STREAM if fact not in slots]:
            raise ValueError(f"slots lack {missing[0]!r}; give slots(vocabulary, context)")
        ends = {fact: [slots[fact].start, slots[fact].stop] for fact in FACTS_OF_THE_STREAM}
        if max(map(max, ends.values())) > config.d_model:
            raise ValueError(
                f"slots end at {max(map(max, ends.values()))}, but the stream of this machine is "
                f"{config.d_model} wide; give slots({config.vocabulary}, {config.context})"
            )
        lengths = {fact: end - start for fact, (start, end) in ends.items()}
        wanted = dict.fromkeys(ends, config.vocabulary) | {"position": config.context}
        apart = sorted(ends.values())
        if lengths != wanted or any(a[1] > b[0] for a, b in pairwise(apart)):
            raise ValueError(
                f"slots are {ends}; each must be apart from the others, and as long as this "
                f"machine needs it, {wanted}: give slots({config.vocabulary}, {config.context})"
            )
        if not isinstance(text, str):
            raise TypeError(f"text is {text!r:.60}, but must be a str of these letters: {letters}")
        if strange := sorted(set("".join(text.split())) - set(letters)):
            raise ValueError(
                f"text is {text!r}, which has a {strange[0]!r}; give 2 to {config.context} of "
                f"{', '.join(letters)}"
            )
        self._letters, self._context = letters, config.context
        super().__init__(
            _packed=pack_weights(machine.state_dict(), bits=32), _config=json_bytes(asdict(config)),
            _text=json_bytes({"letters": letters, "slots": ends}),
            **{"ids": [letters.find(letter) for letter in "".join(text.split())]} | settings,
        )  # fmt: skip

    @traitlets.validate("ids")
    def _check_ids(self, proposal: dict) -> list[int]:
        ids = proposal["value"]
        if not 2 <= len(ids) <= self._context or not set(ids) <= set(range(len(self._letters))):
            raise ValueError(
                f"ids is {ids}; give 2 to {self._context} of {', '.join(self._letters)}, as "
                f"numbers from 0"
            )
        return ids

    def _sizes(self) -> dict[str, object]:
        return {"letters": len(self.ids), "context": self._context}
