"""A head of a trained machine with two versions of a part, such as the library's and your own."""

from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Setting
from transformer_lib.widgets.inputs import require_parts, to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

NEEDED = ("head", "words", "weights", "said", "probability", "right", "asked", "parts")


class YourPart(Widget):
    """Where a head looks with one function and with another, and what becomes of the answers.

    The two stories are one, word for word; a click on a word shows where the head looks from it.
    Each is called by the functions that `machine.using` had put in when it was examined, and by the
    library's part where there were none. Under it stand what the machine says next, and how many of
    its questions it answers right. All of it was computed when the cell ran: on the page nothing
    has to be.

    Args:
        before: :func:`~transformer_lib.training.asking.examine` of the machine, mostly as it is.
        after: the same of it with another part, within ``machine.using(...)``.
        part: what the library calls it, such as "attention_weights".

    Raises ValueError where the two are not of one story and one head, or a word is out of range;
    TypeError where they are not what `examine` returns.
    """

    _esm = bundle("your_part")
    _css = stylesheet("your_part")
    _text = traitlets.Bytes().tag(sync=True)
    _before = traitlets.Bytes().tag(sync=True)
    _after = traitlets.Bytes().tag(sync=True)
    word = Setting(-1, Number(0, "words", "which is shown", none="last", none_is=-1))
    _facts: ClassVar = {
        "word": "which is shown",
        "right before": "the share of right answers",
        "right after": "the share of right answers",
    }

    def __init__(
        self,
        before: Any,
        after: Any,
        *,
        part: str = "part",
        **settings: Any,
    ) -> None:
        for which, one in (("before", before), ("after", after)):
            require_parts(one, NEEDED, which, "examine(machine, story, head)")
        words = to_tokens(before.words, len(before.words), "words", "words")
        if list(after.words) != words or after.head != before.head:
            raise ValueError(
                f"before is of {before.head} and {len(words)} words, and after of {after.head} and "
                f"{len(after.words)}; examine the same head with the same story"
            )
        weights = []
        for which, one in (("before", before), ("after", after)):
            found = to_numpy(one.weights, f"the weights {which}")
            if found.shape != (len(words), len(words)):
                raise ValueError(
                    f"the weights {which} have the shape {found.shape} for {len(words)} words; "
                    f"there must be a row and a column for each"
                )
            weights.append(float_bytes(found))
        sides = [
            {"said": one.said, "probability": one.probability, "right": one.right, "of": one.asked}
            | {"parts": [{"name": name, "called": called} for name, called in one.parts]}
            for one in (before, after)
        ]
        self._count = len(words)
        text = {"words": words, "head": before.head, "part": part, "sides": sides}
        super().__init__(
            _text=json_bytes(text), _before=weights[0], _after=weights[1], **settings,
        )  # fmt: skip

    def _sizes(self) -> dict[str, object]:
        return {"words": self._count}
