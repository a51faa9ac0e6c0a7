"""A table of embeddings as a map: two directions at a time, and who is near whom in all of them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Setting, Token
from transformer_lib.widgets.inputs import require_mapping, to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

MOST_WORDS, MOST_PAIRS, MOST_GROUPS = 100, 4, 4


class EmbeddingMap(Widget):
    """Words as points in two of the directions in which their vectors differ most.

    The directions are the principal components of the rows, of which the reader chooses a pair: 1
    and 2, 3 and 4, and so on. The words nearest to a chosen one are those with the largest cosines
    in *all* components, whatever the map says.

    Args:
        vectors: the rows of the table, [words, d], of at least 3 words and 100 at most.
        words: their names.
        groups: kinds of words by name, four at most, each with a mark of its own.

    Raises ValueError if sizes do not fit, a row is zero (it has no direction), all rows are alike,
    or a group names a word that is not there; TypeError if words are not text.

    Source: principal components, Pearson 1901.

    >>> table = [[1.0, 0.0, 0.5], [0.9, 0.1, 0.5], [0.0, 1.0, -0.5], [0.1, 0.9, -0.4]]
    >>> widget = EmbeddingMap(table, ["mary", "susan", "roses", "books"])
    >>> widget
    EmbeddingMap(words=4, d=3, pairs=1)
    >>> [word for word, _ in widget.nearest("mary")][:2]
    ['susan', 'books']
    """

    _esm = bundle("embedding_map")
    _css = stylesheet("embedding_map")
    _places = traitlets.Bytes().tag(sync=True)
    _cosines = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    selection = Setting(0, Token("words", "the position of the chosen word"), link="word")
    pair = Setting(0, Number(0, "pairs", "of directions"))
    _facts: ClassVar = {
        "cosine": "of the chosen word and the one nearest to it",
        "share": "of the squared differences between the words, what the map shows",
    }

    def __init__(
        self,
        vectors: object,
        words: Sequence[str],
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,
    ) -> None:
        rows = to_numpy(vectors, "vectors")
        _require_rows(rows)
        self._words = to_tokens(words, len(rows), "words", "rows of the table")
        groups = {} if groups is None else groups
        kinds = _kinds(groups, self._words)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        _require_lengths(lengths[:, 0], self._words)
        self._all_cosines = (rows / lengths) @ (rows / lengths).T
        places, shares = _principal(rows)
        self._shape = rows.shape
        self._pairs = places.shape[1] // 2
        text = {
            "words": self._words,
            "groups": list(groups),
            "kinds": kinds,
            "shares": shares,
            "d": rows.shape[1],
        }
        super().__init__(
            _places=float_bytes(places),
            _cosines=float_bytes(self._all_cosines),
            _text=json_bytes(text),
            **settings,
        )

    def nearest(self, word: str) -> list[tuple[str, float]]:
        """The other words with their cosines to this one, the largest first.

        Raises ValueError if there is no such word.
        """
        if word not in self._words:
            raise ValueError(f"word is {word!r}; the words are {', '.join(self._words)}")
        chosen = self._words.index(word)
        row = self._all_cosines[chosen]
        order = np.argsort(-row, kind="stable")
        return [(self._words[i], float(row[i])) for i in order if i != chosen]

    def _sizes(self) -> dict[str, int]:
        return {"words": self._shape[0], "d": self._shape[1], "pairs": self._pairs}


def _principal(rows: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Coordinates [words, 2 or more] in the directions of largest spread, and the share of each."""
    left, spread, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    count = 2 * max(1, min(MOST_PAIRS, len(spread) // 2))
    places = (left * spread)[:, :count]
    # The sign of a direction is nobody's choice: let its largest coordinate be positive.
    largest = np.abs(places).argmax(axis=0)
    places = places * np.where(places[largest, np.arange(count)] < 0, -1.0, 1.0)
    return places, (spread**2 / (spread**2).sum())[:count].tolist()


def _kinds(groups: object, words: list[str]) -> list[int]:
    """For each word the number of its group, -1 if it has none."""
    require_mapping(groups, "groups", "{name: words}")
    if len(groups) > MOST_GROUPS:
        raise ValueError(f"there are {len(groups)} groups, but marks for {MOST_GROUPS} only")
    kinds = [-1] * len(words)
    for number, (group, members) in enumerate(groups.items()):
        for word in members:
            if word not in words:
                raise ValueError(f"groups[{group!r}] names {word!r}, which is not among the words")
            kinds[words.index(word)] = number
    return kinds


def _require_rows(rows: np.ndarray) -> None:
    if rows.ndim != 2 or rows.shape[1] < 2 or not 3 <= len(rows) <= MOST_WORDS:
        raise ValueError(
            f"vectors have the shape {rows.shape}, but must be [words, d] with 3 to {MOST_WORDS} "
            "words and at least 2 components: choose some rows of a larger table"
        )
    if np.ptp(rows, axis=0).max() == 0:
        raise ValueError("all rows of vectors are alike, so there is no direction to draw them in")


def _require_lengths(lengths: np.ndarray, words: list[str]) -> None:
    if not lengths.all():
        word = words[int(np.argmin(lengths))]
        raise ValueError(f"the vector of {word!r} is zero: it has no direction, and no cosine")
