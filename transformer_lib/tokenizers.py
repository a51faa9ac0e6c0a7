"""Tokenizers: from text to ids, the row numbers of an embedding table, and back.

Two that need no training: one id for each character, or one for each word. Both refuse what they
do not know instead of replacing it, so what is decoded is what was encoded.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral

from jaxtyping import Integer
from torch import Tensor

Ids = Integer[Tensor, " tokens"] | Iterable[int]
# What a translator's vocabularies begin with: ids 0, 1 and 2. Padding fills rows up, and the others
# say where a sentence begins and ends.
SPECIALS = ("<pad>", "<s>", "</s>")
PADDING, BEGIN, END = range(len(SPECIALS))  # their ids
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # characters of Unicode's category Cc


class _Tokenizer:
    """A table of tokens and the numbers of its rows; both tokenizers have one."""

    def __init__(self, vocabulary: Sequence[str]):
        self._vocabulary = tuple(vocabulary)
        self._ids = {token: i for i, token in enumerate(self._vocabulary)}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All tokens; the id of a token is its index. From it the same tokenizer can be made."""
        return self._vocabulary

    @property
    def size(self) -> int:
        """The number of tokens: the rows of the embedding table."""
        return len(self._vocabulary)

    @property
    def hash(self) -> str:
        """sha256 of the tokenizer's kind and vocabulary: a checkpoint belongs to one hash."""
        content = json.dumps([type(self).__name__, *self._vocabulary])
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def _checked(self, ids: Ids) -> list[int]:
        require_order(ids, "ids")
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        ids = list(ids) if isinstance(ids, Iterable) else ids
        _require_ids(ids, self.size)
        return ids

    def _tokens(self, ids: Ids) -> list[str]:
        return [self._vocabulary[i] for i in self._checked(ids)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class CharacterTokenizer(_Tokenizer):
    """One id for each character (Unicode code point) of ``text``, in sorted order.

    ``text`` is what the model trains on, or any text or list with all of its characters. These may
    be control characters, such as the newline: when you print what a model trained on a stranger's
    text has written, print its ``repr``, which no terminal obeys.

    Raises:
        ValueError: ``text`` is empty, or an item of a list is not one character; in :meth:`encode`,
            an unknown character; in :meth:`decode`, an id out of range.
        TypeError: ``text`` does not consist of text; in :meth:`decode`, ids that are not ints.

    >>> tokenizer = CharacterTokenizer("mary gave roses")
    >>> tokenizer.encode("gary"), tokenizer.size
    ([3, 1, 6, 9], 10)
    >>> tokenizer.decode([3, 1, 6, 9])
    'gary'
    """

    def __init__(self, text: str | Iterable[str]):
        characters = list(text) if isinstance(text, Iterable) else [text]
        _require_characters(characters)
        super().__init__(sorted(set(characters)))

    def encode(self, text: str) -> list[int]:
        """The ids of the characters of ``text``."""
        _require_text(text)
        try:
            return [self._ids[character] for character in text]
        except KeyError:
            position = next(i for i, character in enumerate(text) if character not in self._ids)
        character = text[position]
        raise ValueError(
            f"character {character!r} (U+{ord(character):04X}) at position {position}, in "
            f"{text[max(0, position - 10) : position + 11]!r}, is not among the {self.size} of "
            f"this tokenizer. Replace it, or make the tokenizer from a text that contains it (and "
            f"train a new model: the embedding of this one has no row for it)."
        )

    def decode(self, ids: Ids) -> str:
        """The text of ``ids``, a list or a tensor with one axis."""
        return "".join(self._tokens(ids))


class WordTokenizer(_Tokenizer):
    """One id for each of ``words``, in their order. In a text, spaces separate words.

    A full stop is a word of its own if there is a space before it. :meth:`decode` puts one space
    between words, whatever was there.

    Raises:
        ValueError: no words, an empty one, one with a space or a control character (a terminal
            might obey it), one given twice; in :meth:`encode`, an unknown word; in :meth:`decode`,
            an id out of range.
        TypeError: ``words`` is one text, a set, or contains anything but texts; in :meth:`decode`,
            ids that are not ints.

    >>> tokenizer = WordTokenizer(["gave", "mary", "roses", "susan", "to", "."])
    >>> tokenizer.encode("mary gave roses to susan .")
    [1, 0, 2, 4, 3, 5]
    >>> tokenizer.decode([3, 0, 2, 4, 1, 5])
    'susan gave roses to mary .'
    """

    def __init__(self, words: Iterable[str]):
        require_order(words, "words")
        if not isinstance(words, str):
            words = list(words) if isinstance(words, Iterable) else [words]
        _require_words(words)
        super().__init__(words)

    def encode(self, text: str) -> list[int]:
        """The ids of the words of ``text``."""
        _require_text(text)
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
            f"include it (and train a new model: the embedding of this one has no row for it)."
        )

    def decode(self, ids: Ids) -> str:
        """The text of ``ids``, a list or a tensor with one axis."""
        return " ".join(self._tokens(ids))


class PairTokenizer:
    """Two tokenizers, of the sources and of the targets; or one for both.

    Each vocabulary begins with :data:`SPECIALS`.

    Raises:
        ValueError: a vocabulary begins otherwise.

    >>> german = WordTokenizer([*SPECIALS, "gab", "Rosen"])
    >>> english = WordTokenizer([*SPECIALS, "gave", "roses"])
    >>> tokenizer = PairTokenizer(german, english)
    >>> tokenizer.source.encode("gab Rosen"), tokenizer.target.decode([3, 4]), tokenizer.shared
    ([3, 4], 'gave roses', False)
    """

    def __init__(self, source, target=None):
        self.source, self.target = source, source if target is None else target
        for side in ("source", "target"):
            _require_specials(getattr(self, side), side)

    @property
    def shared(self) -> bool:
        """Whether both sides are one tokenizer, and a model's two tables one."""
        return self.source is self.target

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The target's tokens."""
        return self.target.vocabulary

    @property
    def size(self) -> int:
        """The number of the target's tokens."""
        return self.target.size

    @property
    def hash(self) -> str:
        """sha256 of both: a checkpoint belongs to one hash."""
        content = json.dumps([type(self).__name__, self.source.hash, self.target.hash])
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def __repr__(self) -> str:
        return f"PairTokenizer({self.source!r}, {self.target!r})"


def require_order(items, name: str) -> None:
    """Their order is that of the ids: not of a set, which has another one in each process."""
    if isinstance(items, (set, frozenset)):
        raise TypeError(f"{name} are a set, which has no order of its own; give sorted({name}).")


def _require_text(text: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{_shortened(text)} is of type {type(text).__name__}; give a text.")


def _require_specials(tokenizer, side: str) -> None:
    found = tuple(getattr(tokenizer, "vocabulary", ()))[: len(SPECIALS)]
    if found != SPECIALS:
        raise ValueError(
            f"the {side}'s vocabulary begins with {_shortened(found)}; a translator needs ids 0 to "
            f"{len(SPECIALS) - 1} for {', '.join(SPECIALS)}. Make the tokenizer with them: "
            f"WordTokenizer([*SPECIALS, *words]), train_bpe(texts, vocabulary, SPECIALS)."
        )


def _require_ids(ids, size: int) -> None:
    if not isinstance(ids, list) or not all(map(_is_whole, ids)):
        raise TypeError(
            f"ids are {_shortened(ids)}; give one sequence of ints: a list, or a tensor of "
            f"integers with one axis (of a batch: ids[0])."
        )
    for position, i in enumerate(ids):
        if not 0 <= i < size:
            raise ValueError(
                f"id {i} at position {position} is out of range: this tokenizer has {size} tokens, "
                f"ids 0 to {size - 1}. Was it made by another tokenizer?"
            )


def _is_whole(i) -> bool:
    return type(i) is int or (isinstance(i, Integral) and not isinstance(i, bool))


def _require_characters(characters: list) -> None:
    _require_texts(characters, "text")
    for character in characters:
        if len(character) != 1:
            raise ValueError(
                f"{_shortened(character)} is not one character; give a text, or single characters. "
                f"For whole words there is WordTokenizer."
            )


def _require_words(words: list | str) -> None:
    if isinstance(words, str):
        raise TypeError(
            f"words are one text, {_shortened(words)}; give a list. From a text: "
            f"sorted(set(text.split()))."
        )
    _require_texts(words, "words")
    for i, word in enumerate(words):
        if word.split() != [word]:
            raise ValueError(
                f"word {i} is {_shortened(word)}; words are separated by spaces, so a word must "
                f"neither be empty nor contain one."
            )
        if CONTROL.search(word):
            raise ValueError(
                f"word {i} is {_shortened(word)}; it contains a control character, which a "
                f"terminal might obey when the word is printed. Remove it."
            )
    twice = sorted(word for word, times in Counter(words).items() if times > 1)
    if twice:
        raise ValueError(
            f"{_shortened(twice)} are in words more than once; each word has one id. Leave the "
            f"second out, or use sorted(set(words))."
        )


def _require_texts(items: list, name: str) -> None:
    """Texts, at least one."""
    for item in items:
        if not isinstance(item, str):
            raise TypeError(
                f"{name} contains {_shortened(item)}, of type {type(item).__name__}; give texts."
            )
    if not items:
        raise ValueError(f"{name} is empty: a vocabulary needs at least one token.")


def _shortened(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
