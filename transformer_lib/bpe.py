"""Byte-pair encoding: tokens between characters and words, learned from a text.

A text is cut into words, a word into its bytes. Then the most frequent pair of neighbors becomes
one token, everywhere, again and again. Frequent words end as one token, rare ones as a few pieces;
and since every text consists of bytes, no text is unknown.

Source: Sennrich, Haddow and Birch, 2016, section 3.2; on bytes, Radford et al., 2019, section 2.2.
"""

import hashlib
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from transformer_lib.tokenizers import Ids, _shortened, _Tokenizer, require_order

if TYPE_CHECKING:
    import tokenizers

Pair = tuple[bytes, bytes]

# Python, JavaScript and the `tokenizers` library differ about \s and \w. So both are spelled out,
# in a way that all three read alike. What is neither white space nor punctuation belongs to a word:
# letters, vowel signs, digits, U+200C, and whatever nobody foresaw.
SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
PUNCTUATION = r"!-/:-@\[-`{-~¡«»¿‐-‧‰-⁞।॥、-〃〈-】！，．：；？"
WORDS = (
    f" ?[^{SPACE}{PUNCTUATION}]+"  # a word carries the blank before it
    f"| ?[{PUNCTUATION}]+"
    f"|[{SPACE}]+(?= [^{SPACE}])"  # white space, without the blank that the next word carries
    f"|[{SPACE}]+"
)
_WORDS = re.compile(WORDS)

# `tokenizers` writes a byte as a character: as itself if Latin-1 can show it, the others from
# U+0100 on. It numbers bytes in the order of these characters, and prefers low numbers among pairs
# that are equally frequent. So do we.
_SHOWN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = [*_SHOWN, *(byte for byte in range(256) if byte not in _SHOWN)]
_RANK = {byte: rank for rank, byte in enumerate(_BYTES)}
_LETTERS = {b: chr(b if b in _SHOWN else 256 + _RANK[b] - len(_SHOWN)) for b in _BYTES}
MOST_KNOWN = 2**16  # words whose tokens a tokenizer remembers


def split_words(text: str) -> list[str]:
    """The words of ``text``, each with the blank before it; joined, they are the text.

    Runs of punctuation and of white space are words, too. No pair is merged across two words.

    >>> split_words("Mary gave roses.\\n\\nನಮಸ್ಕಾರ!")
    ['Mary', ' gave', ' roses', '.', '\\n\\n', 'ನಮಸ್ಕಾರ', '!']
    """
    return _WORDS.findall(text)


def merge(ids: Sequence[int], pair: tuple[int, int], new: int) -> list[int]:
    """``ids`` with every occurrence of ``pair``, from the left, replaced by ``new``.

    >>> merge([1, 1, 1, 2], (1, 1), 3)
    [3, 1, 2]
    """
    _require_pair(pair)
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def train_bpe(
    texts: str | Iterable[str], vocabulary: int, specials: Iterable[str] = ()
) -> "BytePairTokenizer":
    """A byte-pair tokenizer with ``vocabulary`` tokens, learned from one text or several.

    Among equally frequent pairs the one whose tokens came first is merged, as in the ``tokenizers``
    library; the merges are the same as its own. Time: about that of counting the pairs once, since
    a merge looks only at the words that hold its pair. (Not if the text is one word, without blanks
    or line ends: then each merge reads all of it.)

    Raises:
        ValueError: ``vocabulary`` has no room for the 256 bytes and ``specials``, or more than the
            texts can fill; no text; half a surrogate pair; wrong specials, see
            :class:`BytePairTokenizer`.
        TypeError: anything but texts, or a vocabulary that is not an int.

    >>> train_bpe("mary gave mary's rosemary to gary", vocabulary=259).merges
    ((b'a', b'r'), (b'ar', b'y'), (b'm', b'ary'))
    """
    several = isinstance(texts, Iterable) and not isinstance(texts, (str, bytes))
    texts = list(texts) if several else [texts]
    require_order(specials, "specials")
    specials = specials if isinstance(specials, str) else tuple(specials)
    _require_texts(texts)
    if not any(texts):
        raise ValueError("the texts are empty, so there is nothing to learn from. Give some text.")
    _require_specials(specials, tokens=set())
    _require_vocabulary(vocabulary, specials)
    frequency = Counter(word for text in texts for word in split_words(text))
    words = [[_RANK[byte] for byte in word.encode()] for word in frequency]
    times = list(frequency.values())
    tokens = [bytes([byte]) for byte in _BYTES]
    counts: dict[tuple[int, int], int] = defaultdict(int)
    where: dict[tuple[int, int], set[int]] = defaultdict(set)  # words that hold a pair, or did
    for i, word in enumerate(words):
        for pair in pairwise(word):
            counts[pair] += times[i]
            where[pair].add(i)
    queue = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(queue)
    merges = []
    while len(tokens) + len(specials) < vocabulary:
        _require_pairs(queue, len(tokens) + len(specials), vocabulary)
        count, pair = heapq.heappop(queue)
        if -count != counts[pair]:  # some have been merged into others since it was put there
            if counts[pair]:
                heapq.heappush(queue, (-counts[pair], pair))
            continue
        new = len(tokens)
        merges.append((tokens[pair[0]], tokens[pair[1]]))
        tokens.append(b"".join(merges[-1]))
        fresh = set()
        for i in where.pop(pair):
            merged = merge(words[i], pair, new)
            for old in pairwise(words[i]):
                counts[old] -= times[i]
            for now in pairwise(merged):
                counts[now] += times[i]
                if new in now:
                    where[now].add(i)
                    fresh.add(now)
            words[i] = merged
        for now in fresh:
            heapq.heappush(queue, (-counts[now], now))
    return BytePairTokenizer(merges, specials)


class BytePairTokenizer(_Tokenizer):
    """Tokens: ``specials`` (ids 0, 1, ...), then the 256 bytes, then what each merge gives.

    No text is unknown, and what is decoded is what was encoded. A special is never the result of
    encoding: it is added to ids by its number, and a text that contains "</s>" is only a text.

    Args:
        merges: pairs of tokens, as bytes, in the order in which they are merged.
        specials: names of tokens that stand for no text, such as "</s>".

    Raises:
        ValueError: a merge of what is not yet a token, or into what already is one; a special that
            is empty, given twice, or equal to a token; in :meth:`encode`, half a surrogate pair; in
            :meth:`decode`, an id out of range.
        TypeError: merges that are not pairs of bytes, specials or a text that are not text; in
            :meth:`decode`, ids that are not ints.

    >>> tokenizer = BytePairTokenizer([(b"a", b"r"), (b"ar", b"y")], specials=["</s>"])
    >>> tokenizer.encode("mary"), tokenizer.tokens("mary"), tokenizer.size
    ([110, 258], ['m', 'ary'], 259)
    >>> tokenizer.decode([110, 258, 0])
    'mary</s>'
    """

    def __init__(self, merges: Iterable[Pair], specials: Iterable[str] = ()):
        single = [bytes([byte]) for byte in range(256)]
        require_order(specials, "specials")
        self._merges = tuple(merges)
        _require_merges(self._merges, single)
        self._bytes = [*single, *(left + right for left, right in self._merges)]
        self._specials = specials if isinstance(specials, str) else tuple(specials)
        _require_specials(self._specials, set(self._bytes))
        super().__init__([*self._specials, *map(_shown, self._bytes)])
        first = len(self._specials)
        ids = {token: first + i for i, token in enumerate(self._bytes)}
        # A dict keeps what came first first; so a merge's number is also its rank.
        self._new = {(ids[a], ids[b]): ids[a + b] for a, b in self._merges}
        self._known: dict[str, list[int]] = {}

    @property
    def merges(self) -> tuple[Pair, ...]:
        """Pairs of tokens, in the order in which they are merged."""
        return self._merges

    @property
    def specials(self) -> tuple[str, ...]:
        """Names of the tokens that stand for no text; their ids are 0, 1, ..."""
        return self._specials

    @property
    def vocabulary(self) -> tuple[str, ...]:
        r"""All tokens as they are shown, by id: bytes that are not a character as ``\xe0``."""
        return self._vocabulary

    @property
    def hash(self) -> str:
        """sha256 of the kind, specials and merges: a checkpoint belongs to one hash."""
        merges = [[left.hex(), right.hex()] for left, right in self._merges]
        content = json.dumps([type(self).__name__, self._specials, merges])
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of the tokens of ``text``."""
        _require_texts([text])
        ids: list[int] = []
        for word in split_words(text):
            known = self._known.get(word)
            if known is None:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                known = self._known[word] = self._encode_word(word)
            ids += known
        return ids

    def _encode_word(self, word: str) -> list[int]:
        ids = [len(self._specials) + byte for byte in word.encode()]
        while len(ids) > 1:
            new = min(self._new.get(pair, self.size) for pair in pairwise(ids))
            if new == self.size:
                break
            ids = merge(ids, next(p for p in pairwise(ids) if self._new.get(p) == new), new)
        return ids

    def decode(self, ids: Ids) -> str:
        """The text of ``ids``, a list or a tensor with one axis; a special is shown by its name.

        A model may write bytes that are not valid UTF-8: the text then has U+FFFD in their place.
        """
        first = len(self._specials)
        ids = self._checked(ids)
        parts = (self._bytes[i - first] if i >= first else self._specials[i].encode() for i in ids)
        return b"".join(parts).decode("utf-8", errors="replace")

    def tokens(self, text: str) -> list[str]:
        r"""The tokens of ``text`` as they are shown: part of a character as bytes, ``\xe0\xb2``.

        >>> BytePairTokenizer([(b"e", b"s")]).tokens("roses é")
        ['r', 'o', 's', 'es', ' ', '\\xc3', '\\xa9']
        """
        return [self._vocabulary[i] for i in self.encode(text)]

    def as_fast(self) -> "tokenizers.Tokenizer":
        """The same tokenizer in the ``tokenizers`` library, for its tools and its threads.

        ``as_fast().encode(text).ids`` equals ``encode(text)``; ``encode_batch`` works on many texts
        at a time.

        Raises:
            ImportError: the package ``tokenizers`` is not installed.
        """
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(
                "as_fast() needs the package tokenizers, which is not installed here (transformers "
                "brings it along). Install it, or use encode(), which gives the same ids."
            ) from error
        from tokenizers import decoders, models, pre_tokenizers

        def letters(token: bytes) -> str:
            return "".join(_LETTERS[byte] for byte in token)

        names = [*self._specials, *map(letters, self._bytes)]
        merges = [(letters(left), letters(right)) for left, right in self._merges]
        fast = tokenizers.Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, merges))
        words = pre_tokenizers.Split(tokenizers.Regex(WORDS), "isolated")
        as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        fast.pre_tokenizer = pre_tokenizers.Sequence([words, as_bytes])
        fast.decoder = decoders.ByteLevel()
        return fast


def _shown(token: bytes) -> str:
    return token.decode("utf-8", errors="backslashreplace")


def _require_texts(texts: Sequence) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{_shortened(text)} is of type {type(text).__name__}; give a text.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the text contains half a surrogate pair, U+{ord(text[error.start]):04X}, at "
                f"position {error.start}; it stands for no character and has no bytes. Decode what "
                f'the text came from once more, or replace it: text.encode(errors="replace").'
            ) from error


def _require_vocabulary(vocabulary: int, specials: tuple) -> None:
    if type(vocabulary) is not int:
        raise TypeError(
            f"vocabulary is {_shortened(vocabulary)}, of type {type(vocabulary).__name__}; give "
            f"the number of tokens, an int."
        )
    if vocabulary < 256 + len(specials):
        raise ValueError(
            f"vocabulary is {vocabulary}; the 256 bytes and {len(specials)} specials alone are "
            f"{256 + len(specials)} tokens. Choose at least that many."
        )


def _require_pairs(queue: list, size: int, vocabulary: int) -> None:
    if not queue:
        raise ValueError(
            f"vocabulary is {vocabulary}, and after {size} tokens every word of the texts is one "
            f"token: no pair is left to merge. Choose at most {size}, or give more text."
        )


def _require_pair(pair) -> None:
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise TypeError(f"pair is {_shortened(pair)}; it must be a tuple of two ids.")


def _require_merges(merges: tuple, single: list[bytes]) -> None:
    known = set(single)
    for i, pair in enumerate(merges):
        parts = pair if isinstance(pair, tuple) and len(pair) == 2 else [None]
        if not all(isinstance(part, bytes) for part in parts):
            raise TypeError(f"merge {i} is {_shortened(pair)}; it must be a tuple of two bytes.")
        for part in pair:
            if part not in known:
                raise ValueError(
                    f"merge {i} is {_shortened(pair)}, but {_shortened(part)} is neither a byte "
                    f"nor the result of a merge before. Is one missing, or are they out of order?"
                )
        if pair[0] + pair[1] in known:
            raise ValueError(
                f"merge {i} is {_shortened(pair)}, but {_shortened(pair[0] + pair[1])} is a token "
                f"already, and each has one id. Leave this merge out."
            )
        known.add(pair[0] + pair[1])


def _require_specials(specials: tuple | str, tokens: set[bytes]) -> None:
    if isinstance(specials, str):
        raise TypeError(f"specials are one text, {_shortened(specials)}; give a list of texts.")
    _require_texts(specials)
    for i, special in enumerate(specials):
        if not special or special in specials[:i] or special.encode() in tokens:
            raise ValueError(
                f"special {i} is {_shortened(special)}, which is empty, given twice, or a token of "
                f"ordinary text. Choose another name, such as '</s>'."
            )
