"""The reader's own text as GPT-2's tokens, and as those of a tokenizer of the book."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.joining import bundle, stylesheet
from transformer_lib.widgets.own_text import OwnText
from transformer_lib.widgets.text_cutter.vocabulary import gpt2_merges

MOST_MERGES = 2**16 - 256  # ids travel as 16 bits


class TextCutter(OwnText):
    """A text, cut by GPT-2's vocabulary and by a tokenizer of the book, each piece with its id.

    On a page GPT-2's vocabulary is loaded when the reader first asks for it, chooses a text or
    writes one (book/extensions/figures.py). In a notebook it is there if `make` has installed
    the npm packages of book/package.json; elsewhere the figure says where it is. The text comes
    back as `widget.text` and can be set.

    Args:
        samples: texts to begin with, by name; the first one is shown.
        tokenizer: a BytePairTokenizer of the book, which stands beside GPT-2's.
        label: what the figure calls it.

    Raises ValueError for no samples, an empty text, one of more than 1,000 characters or with half
    a surrogate pair, special tokens, or more than 65,280 merges; TypeError for what is not text, or
    not a byte-pair tokenizer.

    >>> from transformer_lib.bpe import train_bpe
    >>> TextCutter({"roses": "rose roses"}, train_bpe("rose roses", 260))
    TextCutter(characters=10)
    """

    _esm = bundle("text_cutter")
    _css = stylesheet("text_cutter")
    _merges = traitlets.Bytes().tag(sync=True)
    _vocabulary = traitlets.Bytes().tag(sync=True)
    _ready = traitlets.Bool(False).tag(sync=True)  # GPT-2's vocabulary is there
    _facts: ClassVar = {
        "characters": "of the text",
        "bytes": "of the text",
        "own": "how many tokens it is to the book's tokenizer",
        "tokens": "to GPT-2; none until its vocabulary is there",
    }

    def __init__(
        self,
        samples: Mapping[str, str],
        tokenizer: object,
        *,
        label: str = "the book's own",
        **settings: Any,
    ) -> None:
        if not isinstance(label, str):
            raise TypeError(f"label is {label!r}, but must be a str")
        super().__init__(
            samples,
            also={"label": label},
            _merges=_as_ids(tokenizer),
            _vocabulary=gpt2_merges(),
            **settings,
        )


def _as_ids(tokenizer: object) -> bytes:
    """The merges as pairs of ids (uint16, little endian), of which the first 256 are the bytes."""
    if not hasattr(tokenizer, "merges"):
        raise TypeError(
            f"tokenizer is of type {type(tokenizer).__name__}, but must be a byte-pair tokenizer, "
            "as train_bpe returns it"
        )
    if tokenizer.specials:
        raise ValueError(
            f"the tokenizer has {len(tokenizer.specials)} special tokens, which no text contains; "
            "give one without: BytePairTokenizer(tokenizer.merges)"
        )
    if len(tokenizer.merges) > MOST_MERGES:
        raise ValueError(
            f"the tokenizer has {len(tokenizer.merges):,} merges; at most {MOST_MERGES:,} are shown"
        )
    id_of = {bytes([byte]): byte for byte in range(256)}
    for left, right in tokenizer.merges:
        id_of[left + right] = len(id_of)
    ids = [id_of[token] for token in chain.from_iterable(tokenizer.merges)]
    return np.array(ids, dtype="<u2").tobytes()
