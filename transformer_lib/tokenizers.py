"""Tokenizers: from text to ids, the row numbers of an embedding table, and back.

Two that need no training: one id for each character, or one for each word. Both refuse what they
do not know instead of replacing it, so that what is decoded is what was encoded.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence

from jaxtyping import Integer
from torch import Tensor

Ids = Integer[Tensor, " tokens"] | Iterable[int]


class _Tokenizer:
    """What both share: a table of tokens and the numbers of its rows."""

    def __init__(self, vocabulary: Sequence[str]):
        self._vocabulary = tuple(vocabulary)
        self._ids = {token: i for i, token in enumerate(self._vocabulary)}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All tokens; the id of a token is its index. Makes the same tokenizer again."""
        return self._vocabulary

    @property
    def size(self) -> int:
        """How many tokens there are: the rows of the embedding table."""
        return len(self._vocabulary)

    @property
    def hash(self) -> str:
        """sha256 of the kind of tokenizer and its vocabulary: a checkpoint belongs to one hash."""
        content = json.dumps([type(self).__name__, *self._vocabulary])
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def _tokens(self, ids: Ids) -> list[str]:
        ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        if not isinstance(ids, list) or any(type(i) is not int for i in ids):
            raise TypeError(
                f"ids are {_shortened(ids)}; give one sequence of ints: a list, or a tensor of "
                f"integers with one axis (of a batch: ids[0])."
            )
        for position, i in enumerate(ids):
            if not 0 <= i < self.size:
                raise ValueError(
                    f"id {i} at position {position} is out of range: this tokenizer has {self.size}"
                    f" tokens, ids 0 to {self.size - 1}. Was it made by another tokenizer?"
                )
        return [self._vocabulary[i] for i in ids]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class CharacterTokenizer(_Tokenizer):
    """One id for each character (Unicode code point) of ``text``, in sorted order.

    ``text`` is what the model trains on, or any text or list that holds each character once.

    Raises:
        ValueError: there is no character in ``text``, or an item of a list is not one character;
            in :meth:`encode`, an unknown character; in :meth:`decode`, an id out of range.
        TypeError: ``text`` is not made of text; in :meth:`decode`, ids that are not ints.

    >>> tokenizer = CharacterTokenizer("mary gave roses")
    >>> tokenizer.encode("gary"), tokenizer.size
    ([3, 1, 6, 9], 10)
    >>> tokenizer.decode([3, 1, 6, 9])
    'gary'
    """

    def __init__(self, text: str | Iterable[str]):
        characters = _texts(text, "text")
        for character in characters:
            if len(character) != 1:
                raise ValueError(
                    f"{character!r} is not one character; give a text, or single characters. For "
                    f"whole words there is WordTokenizer."
                )
        super().__init__(sorted(set(characters)))

    def encode(self, text: str) -> list[int]:
        """The ids of the characters of ``text``."""
        try:
            return [self._ids[character] for character in text]
        except KeyError:
            position = next(i for i, character in enumerate(text) if character not in self._ids)
        character = text[position]
        raise ValueError(
            f"character {character!r} (U+{ord(character):04X}) at position {position}, in "
            f"{text[max(0, position - 10) : position + 11]!r}, is not among the {self.size} of "
            f"this tokenizer. Replace it, or make the tokenizer from a text that holds it (and "
            f"train a new model: its embedding has no row for it)."
        )

    def decode(self, ids: Ids) -> str:
        """The text of ``ids``, a list or a tensor with one axis."""
        return "".join(self._tokens(ids))


class WordTokenizer(_Tokenizer):
    """One id for each of ``words``, in their order; words are what stands between spaces.

    A full stop is a word of its own if a space stands before it. :meth:`decode` puts one space
    between words, whatever stood there.

    Raises:
        ValueError: no words, an empty one, one that holds a space, one given twice; in
            :meth:`encode`, an unknown word; in :meth:`decode`, an id out of range.
        TypeError: ``words`` is one text or holds something else than texts; in :meth:`decode`, ids
            that are not ints.

    >>> tokenizer = WordTokenizer(["gave", "mary", "roses", "susan", "to", "."])
    >>> tokenizer.encode("mary gave roses to susan .")
    [1, 0, 2, 4, 3, 5]
    >>> tokenizer.decode([3, 0, 2, 4, 1, 5])
    'susan gave roses to mary .'
    """

    def __init__(self, words: Iterable[str]):
        if isinstance(words, str):
            raise TypeError(
                f"words are one text, {_shortened(words)}; give a list. From a text: "
                f"sorted(set(text.split()))."
            )
        words = _texts(words, "words")
        for i, word in enumerate(words):
            if word.split() != [word]:
                raise ValueError(
                    f"word {i} is {word!r}; a word is what stands between spaces, it can neither "
                    f"be empty nor hold one."
                )
        twice = sorted(word for word, times in Counter(words).items() if times > 1)
        if twice:
            raise ValueError(
                f"{', '.join(map(repr, twice))} stands twice in words; each word has one id. Leave "
                f"the second out, or use sorted(set(words))."
            )
        super().__init__(words)

    def encode(self, text: str) -> list[int]:
        """The ids of the words of ``text``."""
        words = text.split()
        try:
            return [self._ids[word] for word in words]
        except KeyError:
            position = next(i for i, word in enumerate(words) if word not in self._ids)
        word, hint = words[position], "Check its spelling (small letters, capitals)"
        if any(part in self._ids for part in (word[:-1], word[1:])):
            hint = "Put a space between it and its punctuation"
        raise ValueError(
            f"word {word!r} at position {position} (of {len(words)} words, from 0) is not among "
            f"the {self.size} of this tokenizer. {hint}, or make the tokenizer from words that "
            f"hold it (and train a new model: its embedding has no row for it)."
        )

    def decode(self, ids: Ids) -> str:
        """The text of ``ids``, a list or a tensor with one axis."""
        return " ".join(self._tokens(ids))


def _texts(items: Iterable[str], name: str) -> list[str]:
    """``items`` as a list of texts that is not empty."""
    items = list(items)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{name} holds {item!r}, of type {type(item).__name__}; give texts.")
    if not items:
        raise ValueError(f"{name} is empty: a vocabulary needs at least one token.")
    return items


def _shortened(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
