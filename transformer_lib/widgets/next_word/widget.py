"""One text and several predictors: the expectation of each at every word, and its surprise."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import traitlets
from torch import Tensor

from transformer_lib.widgets.base import Widget, double_bytes, json_bytes
from transformer_lib.widgets.driving import Setting, Token
from transformer_lib.widgets.inputs import require_mapping, to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet


class NextWord(Widget):
    """A text word by word, with each predictor's distribution of the next word and its surprise.

    The surprise at a word is −ln of the probability that the word had, in nats; their mean is the
    loss. The reader chooses a predictor and a word; both come back as `widget.predictor` (a name)
    and `widget.selection` (the word's position), can be observed and set.

    Args:
        words: the text, T words. The first is given; the others are predicted.
        vocabulary: the V words that can come next.
        predictors: {name: probabilities [T - 1, V]}; row t is of the word at position t + 1.
        selection: the position at which the figure starts, 1 to T - 1; None: the last.
        predictor: the one with which it starts; None: the first.

    Raises ValueError if sizes do not fit, a row is not a distribution, a word is not in the
    vocabulary, or a predictor gives a word that came no probability at all (its surprise would be
    infinite); TypeError if words are not text.

    >>> rows = [[0.5, 0.5], [0.25, 0.75]]
    >>> widget = NextWord(["a", "b", "a"], ["a", "b"], {"mine": rows})
    >>> widget
    NextWord(predictors=1, words=3)
    >>> round(widget.losses["mine"], 4)  # (ln 2 + ln 4) / 2
    1.0397
    """

    _esm = bundle("next_word")
    _css = stylesheet("next_word")
    _probabilities = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    selection = Setting(1, Token("words", "its position, from 1", first=1), link="word")
    _chosen = Setting(0, Token("predictors", "its name"), link="predictor")
    _facts: ClassVar = {
        "position": "of the selected word",
        "probability": "that the chosen predictor gave it",
        "surprise": "of the chosen predictor, at it",
        "loss": "of the chosen predictor",
        "loss {predictors}": "",
    }

    def __init__(
        self,
        words: Sequence[str],
        vocabulary: Sequence[str],
        predictors: Mapping[str, object],
        *,
        selection: int | None = None,
        predictor: str | None = None,
        **settings: Any,
    ) -> None:
        require_mapping(predictors, "predictors", "{name: probabilities}")
        if len(words) < 2 or not predictors:
            raise ValueError(
                f"there are {len(words)} words and {len(predictors)} predictors; give at least two "
                "words and one predictor"
            )
        self._words = to_tokens(words, len(words), "words", "positions")
        vocabulary = to_tokens(vocabulary, len(vocabulary), "vocabulary", "entries")
        self._names = list(predictors)
        targets = _targets(self._words, vocabulary)
        shape = (len(self._words) - 1, len(vocabulary))
        rows = [_distributions(p, f"predictors[{n!r}]", shape) for n, p in predictors.items()]
        for one, p in zip(self._names, rows, strict=True):
            _check_possible(p[np.arange(len(targets)), targets], one, self._words)
        text = {"words": self._words, "vocabulary": vocabulary, "predictors": self._names}
        super().__init__(
            _probabilities=double_bytes(np.stack(rows)),
            _text=json_bytes(text | {"targets": targets}),
            selection=len(targets) if selection is None else selection,
            _chosen=0 if predictor is None else self._number(predictor),
            **settings,
        )
        self._targets = targets

    @property
    def predictor(self) -> str:
        """The name of the predictor that is shown."""
        return self._names[self._chosen]

    @predictor.setter
    def predictor(self, name: str) -> None:
        self._chosen = self._number(name)

    @property
    def surprises(self) -> dict[str, Tensor]:
        """For each predictor −ln P of the words at positions 1 to T - 1, in nats."""
        flat = torch.frombuffer(bytearray(self._probabilities), dtype=torch.float64)
        rows = flat.reshape(len(self._names), len(self._targets), -1)
        came = torch.tensor(self._targets).expand(len(rows), -1).unsqueeze(2)
        return dict(zip(self._names, -rows.gather(2, came).squeeze(2).log(), strict=True))

    @property
    def losses(self) -> dict[str, float]:
        """Each predictor's mean surprise, in nats a word."""
        return {name: float(values.mean()) for name, values in self.surprises.items()}

    def _number(self, name: str) -> int:
        if name not in self._names:
            raise ValueError(f"predictor is {name!r}; there are {', '.join(self._names)}")
        return self._names.index(name)

    def _sizes(self) -> dict[str, object]:
        return {"predictors": len(self._names), "words": len(self._words)}


def _targets(words: list[str], vocabulary: list[str]) -> list[int]:
    """The number, in the vocabulary, of every word but the first."""
    number = {word: i for i, word in enumerate(vocabulary)}
    for position, word in enumerate(words[1:], start=1):
        if word not in number:
            raise ValueError(
                f"words[{position}] is {word!r}, which is not in the vocabulary, so nobody can "
                "predict it; add it there, or write it as it is written there"
            )
    return [number[word] for word in words[1:]]


def _distributions(probabilities: object, name: str, shape: tuple[int, int]) -> np.ndarray:
    rows = to_numpy(probabilities, name)
    if rows.shape != shape:
        raise ValueError(
            f"{name} has shape {rows.shape}; {shape} is right: a row for each word but the first, "
            "a column for each word of the vocabulary"
        )
    wrong = (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1) > 1e-4)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{name}[{row}] sums to {rows[row].sum():.4g}, with a smallest entry of "
            f"{rows[row].min():.4g}; it must be probabilities: take softmax(-1) of the logits, "
            "after float() if they are in half precision, which rounds"
        )
    return rows


def _check_possible(came: np.ndarray, name: str, words: list[str]) -> None:
    if not came.all():
        position = int(np.argmin(came)) + 1
        raise ValueError(
            f"{name!r} gives words[{position}], {words[position]!r}, the probability 0, and it "
            "came: an infinite surprise. Smooth the predictor, so that nothing is impossible"
        )
