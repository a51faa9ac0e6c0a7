"""Byte-pair encoding, one merge at a time, on the reader's own text."""

from typing import ClassVar

from transformer_lib.widgets.driving import Number, Setting
from transformer_lib.widgets.joining import bundle, stylesheet
from transformer_lib.widgets.own_text import MOST, OwnText


class PairMerger(OwnText):
    """A text as tokens, the pairs in it by their count, and the merges so far.

    The reader steps through the merges, forward and back, and may write another text. Merges are
    those of :func:`transformer_lib.bpe.train_bpe` on this text alone, until no pair occurs twice.
    The text comes back as `widget.text`, and can be set; another one begins without merges.

    Args:
        samples: texts to begin with, by name; the first one is shown.

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
    merges = Setting(0, Number(0, MOST - 1, "done; fewer, where the text has fewer"))
    _facts: ClassVar = {
        "characters": "of the text",
        "bytes": "of the text",
        "words": "of the text",
        "tokens": "now",
        "longest": "bytes of the longest token in the text",
        "next": "how often the pair occurs that is merged next; 0 if every word is one token",
    }

    def _begin(self) -> None:
        self.merges = 0
