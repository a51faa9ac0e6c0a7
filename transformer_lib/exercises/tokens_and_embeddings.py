"""Checks for chapter 06, from text to vectors."""

from itertools import pairwise

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.repairing import Repair
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

Merges = list[tuple[str, str]]

# --- encode by merges -----------------------------------------------------------------------------


def _joined(tokens: list[str], left: str, right: str) -> list[str]:
    """All occurrences of a pair joined, from the left."""
    joined: list[str] = []
    i = 0
    while i < len(tokens):
        size = 2 if tokens[i : i + 2] == [left, right] else 1
        joined.append("".join(tokens[i : i + size]))
        i += size
    return joined


def _encode(word: str, merges: Merges) -> list[str]:
    tokens = list(word)
    for left, right in merges:
        tokens = _joined(tokens, left, right)
    return tokens


def _longest_first(word: str, merges: Merges) -> list[str]:
    known, tokens = {left + right for left, right in merges}, []
    while word:
        size = next((n for n in range(len(word), 1, -1) if word[:n] in known), 1)
        tokens.append(word[:size])
        word = word[size:]
    return tokens


def _first_occurrence(word: str, merges: Merges) -> list[str]:
    tokens = list(word)
    for pair in merges:
        if pair in list(pairwise(tokens)):
            at = list(pairwise(tokens)).index(pair)
            tokens[at : at + 2] = ["".join(pair)]
    return tokens


def _one_merge(word: str, merges: Merges) -> list[str]:
    tokens = list(word)
    for left, right in merges:
        if _joined(tokens, left, right) != tokens:
            return _joined(tokens, left, right)
    return tokens


def _replaced(word: str, merges: Merges) -> list[str]:
    """Merges found in the text, across the borders of tokens."""
    marked = " ".join(word)
    for left, right in merges:
        marked = marked.replace(f"{left} {right}", left + right)
    return marked.split(" ")


def _from_the_right(word: str, merges: Merges) -> list[str]:
    """As _encode, but where a pair overlaps itself, its last occurrence is joined first."""
    tokens = list(word)
    for left, right in merges:
        for i in range(len(tokens) - 2, -1, -1):
            if tokens[i : i + 2] == [left, right]:
                tokens[i : i + 2] = [left + right]
    return tokens


_LEARNED = [("r", "o"), ("s", "e"), ("ro", "se"), ("e", "s"), ("m", "a"), ("ma", "r"), ("mar", "y")]
_CROSSED = [("b", "c"), ("a", "b"), ("ab", "c"), ("c", "a")]

check_encode = Exercise(
    asks="""`answer(word, merges)`: the tokens of a word, as a list of texts.

    `merges` are pairs of texts in the order in which they were learned.
    """,
    right=_encode,
    wrong={
        "You take the longest token that fits, from the left. Merges are done in the order in "
        "which they were learned, whatever is where.": _longest_first,
        "You merge a pair at its first place only; it is merged everywhere in the word.": (
            _first_occurrence
        ),
        "You stop after the first merge that fits: go on to the end of the list.": _one_merge,
        "You go through the merges from the last one to the first; a late merge needs the tokens "
        "that earlier ones have made.": lambda word, merges: _encode(word, merges[::-1]),
        "You go through the word from its end. That is another cut where a pair overlaps itself: "
        "*aaa* is *aa* and *a*, from the left.": _from_the_right,
        "These are still single characters: nothing was merged.": lambda word, merges: list(word),
        "You replace within the text, and so find a pair in the middle of longer tokens: "
        "compare whole tokens.": _replaced,
    },
    cases=[
        Case("'rosemary'", "rosemary", _LEARNED),
        Case("'rosesroses'", "rosesroses", _LEARNED),
        Case("'abcabab'", "abcabab", _CROSSED),
        Case("'xabbc'", "xabbc", [("x", "a"), ("b", "c"), ("a", "b"), ("bc", "a")]),
        Case("'xaab'", "xaabab", [("x", "a"), ("a", "b"), ("ab", "ab")]),
        Case("'baaa'", "baaaca", [("a", "a"), ("c", "a")]),
        Case("'caab'", "caabb", [("c", "a"), ("a", "b"), ("b", "a")]),
        Case("a word of one letter", "a", _LEARNED, edge=True),
    ],
    praise="Right: in the order of learning, everywhere.",
)

# --- which list has been learned? -----------------------------------------------------------------

check_learned_merges = Choice(
    asks="Which list of merges can come out of training? A letter.",
    right="c",
    wrong={
        "a": "Its second merge needs *ros*, which no merge has made by then.",
        "b": "Its third merge joins *r* and *o*, but no *o* is left: each one is a part of *os*.",
        "d": "It begins with *r + o*, which occurs 3 times. *o + s* occurs 4 times, and the most "
        "frequent pair comes first.",
    },
    praise="Right: each merge is the most frequent pair of its moment, and made of what there is.",
)

# --- repair a decoder -----------------------------------------------------------------------------


def _decode(tokens: list[bytes], errors: str = "replace") -> str:
    return b"".join(tokens).decode("utf-8", errors=errors)


check_decode = Repair(
    asks="`answer(tokens)`: the text of a list of tokens, each a bytes.",
    broken=lambda tokens: "".join(token.decode("utf-8", errors="replace") for token in tokens),
    unchanged="What becomes of a token that holds a part of a character?",
    right=_decode,
    wrong={
        "You leave out what cannot be decoded, token by token: the characters are gone for good.": (
            lambda tokens: "".join(token.decode("utf-8", errors="ignore") for token in tokens)
        ),
        "You decode as Latin-1: every byte becomes a character of its own.": lambda tokens: (
            b"".join(tokens).decode("latin-1")
        ),
        "You put blanks between the tokens; the blanks are in the tokens.": lambda tokens: (
            b" ".join(tokens).decode("utf-8", errors="replace")
        ),
        "A model may stop in the middle of a character: such bytes must become U+FFFD, and may not "
        "vanish.": lambda tokens: _decode(tokens, "ignore"),
    },
    cases=[
        Case("'roses é'", [b"ro", b"ses", b" \xc3", b"\xa9"]),
        Case("'ಮ!'", [b"\xe0\xb2", b"\xae", b"!"]),
        Case("a text that breaks off", [b"ro", b"se ", b"\xe0\xb2"]),
    ],
    praise="Right: first all bytes, then the characters.",
)

# --- the gradient of a table ----------------------------------------------------------------------


def _table_gradient(ids: Tensor, upstream: Tensor, vocabulary: int) -> Tensor:
    empty = torch.zeros(vocabulary, upstream.shape[-1], dtype=upstream.dtype)
    return empty.index_add(0, ids, upstream)


def _last_wins(ids: Tensor, upstream: Tensor, vocabulary: int) -> Tensor:
    table = torch.zeros(vocabulary, upstream.shape[-1], dtype=upstream.dtype)
    for i, row in zip(ids.tolist(), upstream, strict=True):
        table[i] = row
    return table


def _first_wins(ids: Tensor, upstream: Tensor, vocabulary: int) -> Tensor:
    return _last_wins(ids.flip(0), upstream.flip(0), vocabulary)


def _mean(ids: Tensor, upstream: Tensor, vocabulary: int) -> Tensor:
    times = torch.bincount(ids, minlength=vocabulary).clamp(min=1)
    return _table_gradient(ids, upstream, vocabulary) / times[:, None]


check_table_gradient = Exercise(
    asks="""`answer(ids, upstream, vocabulary)`: the gradient of an embedding table.

    ids [tokens] are the rows that were looked up, upstream [tokens, d] the gradient of each vector
    that came out. [vocabulary, d].
    """,
    right=_table_gradient,
    wrong={
        "Where a word occurs twice, only its last occurrence counts: assigning overwrites. Add.": (
            _last_wins
        ),
        "Where a word occurs twice, only its first occurrence counts: the gradients of all of its "
        "places add up.": _first_wins,
        "Where a word occurs twice, you take the mean of its gradients: they add up.": _mean,
        "These are the gradients of the tokens, one row each; the table has one for each id.": (
            lambda ids, upstream, vocabulary: upstream
        ),
        "This is one row for the whole table: each gradient belongs to its own id.": (
            lambda ids, upstream, vocabulary: upstream.sum(0).expand(vocabulary, -1)
        ),
        "The two axes are swapped: the table has a row for each id.": (
            lambda ids, upstream, vocabulary: _table_gradient(ids, upstream, vocabulary).mT
        ),
        "This counts how often each id occurs; the gradients are not in it.": (
            lambda ids, upstream, vocabulary: (
                torch.bincount(ids, minlength=vocabulary)[:, None].expand(-1, upstream.shape[-1])
                * torch.ones((), dtype=upstream.dtype)
            )
        ),
    },
    cases=[
        Case("5 different ids", torch.tensor([3, 0, 6, 1, 4]), randn(5, 2, seed=61), 7),
        Case("5 tokens, one of them twice", torch.tensor([3, 0, 3, 6, 1]), randn(5, 3, seed=62), 7),
        Case("7 tokens, 2 ids", torch.tensor([1, 4, 1, 1, 4, 1, 4]), randn(7, 5, seed=63), 11),
    ],
    axes="ids components",
    praise="Right: the sum over all places where the word stood, and zeros for the words that did "
    "not occur.",
)

# --- find the leak --------------------------------------------------------------------------------

check_leak = Choice(
    asks="In which lines does the text that measures decide about the model? Numbers of lines.",
    right={2, 6},
    wrong={
        1: "This only reads the text.",
        2: "The merges are learned from the whole text, its last tenth included.",
        3: "This only says where to cut.",
        4: "The first part is encoded, to train on; nothing is learned from the other one here.",
        5: "To measure by a text, it must be encoded. Nothing is learned from it here.",
        6: "The step to keep is chosen by the very loss that is reported: the luckiest of many.",
    },
    praise="Right: what is learned or chosen must come from the first part. Cut first; and to "
    "choose a step, cut off a third part.",
)
