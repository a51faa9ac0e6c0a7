"""Byte-pair encoding, one merge at a time, on the reader's own text."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import traitlets

from transformer_lib.widgets.driving import Number
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.joining import bundle, stylesheet
from transformer_lib.widgets.own_text import MOST, OwnText


class PairMerger(OwnText):
    """A text as tokens, the pairs in it by their count, and the merges so far.

    The reader steps through the merges, forward and back, and may write another text. Merges are
    those of :func:`transformer_lib.bpe.train_bpe` on this text alone, until no pair occurs twice.
    The text and the number of merges come back as `widget.text` and `widget.merges`, and can be
    observed and set; another text begins without merges.

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
    merges = traitlets.Int().tag(sync=True)
    _keys_of_text: ClassVar = {
        **OwnText._keys_of_text,
        "merges": Number(0, MOST - 1, "merges"),
    }
    _facts = ("characters", "bytes", "words", "merges", "tokens", "longest", "next")

    def __init__(
        self,
        samples: Mapping[str, str],
        *,
        merges: int = 0,
        name: str = "",
        goals: Sequence[Goal] = (),
    ) -> None:
        super().__init__(samples, merges=merges, name=name, goals=goals)

    def _begin(self) -> None:
        self.merges = 0

    @traitlets.validate("merges")
    def _check_merges(self, proposal: dict) -> int:
        if proposal["value"] < 0:
            raise ValueError(f"merges is {proposal['value']}; it must be at least 0")
        return proposal["value"]
