"""Checks for chapter 06, from text to vectors."""

from itertools import pairwise

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import Other
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

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


def _from_the_right(word: str, merges: Merges) -> list[str]:
    """As _encode, but where a pair overlaps itself, its last occurrence is joined first."""
    tokens = list(word)
    for left, right in merges:
        for i in range(len(tokens) - 2, -1, -1):
            if tokens[i : i + 2] == [left, right]:
                tokens[i : i + 2] = [left + right]
    return tokens


def _leftmost_first(word: str, merges: Merges) -> list[str]:
    """Any pair of the list is joined, the first one from the left, until there is none."""
    tokens = list(word)
    while at := [i for i, pair in enumerate(pairwise(tokens)) if pair in merges]:
        tokens[at[0] : at[0] + 2] = ["".join(tokens[at[0] : at[0] + 2])]
    return tokens


def _place_by_place(word: str, merges: Merges) -> list[str]:
    """At each place all merges are tried in turn, and the place is left for good."""
    tokens, i = list(word), 0
    while i < len(tokens):
        for pair in merges:
            if tuple(tokens[i : i + 2]) == pair:
                tokens[i : i + 2] = ["".join(pair)]
        i += 1
    return tokens


def _of_letters(word: str, merges: Merges) -> list[str]:
    """Pairs are looked for among the letters of the word only."""
    tokens = []
    while word:
        size = 2 if tuple(word[:2]) in merges else 1
        tokens.append(word[:size])
        word = word[size:]
    return tokens


def _texts(result: object) -> list[str] | None:
    """The tokens, if they are such."""
    texts = isinstance(result, list | tuple) and all(isinstance(token, str) for token in result)
    return list(result) if texts else None


def _fewer_letters(result: object, word: str, merges: Merges) -> tuple[str, str] | None:
    tokens = _texts(result)
    fewer = tokens is not None and len("".join(tokens)) < len(word)
    return (repr("".join(tokens)), repr(word)) if fewer else None


def _more_letters(result: object, word: str, merges: Merges) -> tuple[str, str] | None:
    tokens = _texts(result)
    more = tokens is not None and len("".join(tokens)) > len(word)
    return (repr("".join(tokens)), repr(word)) if more else None


def _moved_letters(result: object, word: str, merges: Merges) -> tuple[str, str] | None:
    joined = "".join(_texts(result) or [])
    moved = len(joined) == len(word) and joined != word
    return (repr(joined), repr(word)) if moved else None


def _made_by_none(result: object, word: str, merges: Merges) -> tuple[str] | None:
    known = {left + right for left, right in merges}
    unknown = [token for token in _texts(result) or [] if len(token) > 1 and token not in known]
    return (repr(unknown[0]),) if unknown else None


_LEARNED = [("r", "o"), ("s", "e"), ("ro", "se"), ("e", "s"), ("m", "a"), ("ma", "r"), ("mar", "y")]
_CROSSED = [("b", "c"), ("a", "b"), ("ab", "c"), ("c", "a")]

check_encode = Exercise(
    asks="""`answer(word, merges)`: the tokens of a word, as a list of texts.

    `merges` are pairs of texts in the order in which they were learned.
    """,
    right=_encode,
    wrong={
        "You take the longest token that fits, from the left. Merges are done in the order in "
        "which they were learned, wherever the pairs are.": _longest_first,
        "You merge the first pair from the left that is anywhere in the list. All of one merge is "
        "done before the next one, in the order in which they were learned.": _leftmost_first,
        "At each place you try all merges, and then leave it for good. The loop over the merges "
        "is the outer one: each of them goes through the whole word.": _place_by_place,
        "You look for pairs among the letters only: tokens that a merge has made take part in "
        "those that follow.": _of_letters,
        "You merge a pair at its first place only; it is merged everywhere in the word.": (
            _first_occurrence
        ),
        "You go through the word from its end. That is another cut where a pair overlaps itself: "
        "*aaa* is *aa* and *a*, from the left.": _from_the_right,
        "These are still single characters: nothing was merged.": lambda word, merges: list(word),
    },
    cases=[
        Case("'rosemary'", "rosemary", _LEARNED),
        Case("'rosesroses'", "rosesroses", _LEARNED),
        Case("'abcabab'", "abcabab", _CROSSED),
        Case("'xabbc'", "xabbc", [("x", "a"), ("b", "c"), ("a", "b"), ("bc", "a")]),
        Case("'xaab'", "xaabab", [("x", "a"), ("a", "b"), ("ab", "ab")]),
        Case("'abc'", "abc", [("b", "c"), ("a", "bc"), ("a", "b")]),
        Case("'baaa'", "baaaca", [("a", "a"), ("c", "a")]),
        Case("'caab'", "caabb", [("c", "a"), ("a", "b"), ("b", "a")]),
        Case("a word of one letter", "a", _LEARNED, edge=True),
    ],
    any_form={
        "Put together, your tokens give {}: letters of {} are lost. What does your loop pass on at "
        "the end of the word, and where nothing is merged?": _fewer_letters,
        "Put together, your tokens give {}, and the word is {}: letters are repeated. The tokens "
        "are its parts, and a merged one takes the place of both.": _more_letters,
        "A token is a text, and yours are numbers: return the tokens themselves.": (
            lambda result, word, merges: (
                isinstance(result, list | tuple) and {type(item) for item in result} == {int}
            )
        ),
        "Each item of your result is a list: return the tokens alone, as they are after the last "
        "merge.": lambda result, word, merges: (
            isinstance(result, list) and all(isinstance(item, list) for item in result)
        ),
        "Put together, your tokens give {}, not {}: letters stand in wrong places. After a merge "
        "all places after it have moved, and `remove` takes the first token that is equal.": (
            _moved_letters
        ),
        "No merge makes the token {}.": _made_by_none,
        "Your tokens are one text: return them as a list.": lambda result, word, merges: isinstance(
            result, str
        ),
    },
    praise="Right: in the order of learning, everywhere.",
)

# --- which list has been learned? -----------------------------------------------------------------

check_learned_merges = Choice(
    asks="Which list of merges can come out of training? A letter.",
    right="c",
    wrong={
        "a": "Its second merge needs *ros*, which no merge has made by then.",
        "b": "Its third merge joins *r* and *o*, but no *o* is left: each one is a part of *os*.",
        "d": "It begins with *r* + *o*, which occurs 3 times. *o* + *s* occurs 4 times, and the "
        "most frequent pair comes first.",
    },
    praise="Right: each merge is the most frequent pair of its moment, and made of what there is.",
)

# --- repair a decoder -----------------------------------------------------------------------------


def _decode(tokens: list[bytes], errors: str = "replace") -> str:
    return b"".join(tokens).decode("utf-8", errors=errors)


def _waits_once(tokens: list[bytes]) -> str:
    """A token that cannot be decoded is decoded together with the next one, whatever comes out."""
    text, i = "", 0
    while i < len(tokens):
        size = 2 if "\ufffd" in _decode(tokens[i : i + 1]) else 1
        text += _decode(tokens[i : i + size])
        i += size
    return text


def _else_one_by_one(tokens: list[bytes]) -> str:
    """All at once if that can be decoded, and else token by token."""
    whole = _decode(tokens, "ignore").encode() == b"".join(tokens)
    return _decode(tokens) if whole else "".join(_decode([token]) for token in tokens)


def _other_letters_than(result: str, tokens: list[bytes]) -> tuple[str, str] | None:
    """Are even the bytes of ASCII read as something else?"""
    plain = "".join(chr(byte) for byte in b"".join(tokens) if byte < 128)
    ours = "".join(sign for sign in result if ord(sign) < 128)
    return (repr(plain), repr(ours)) if plain != ours else None


check_decode = Repair(
    asks="`answer(tokens)`: the text of a list of tokens, each a bytes.",
    broken=lambda tokens: "".join(token.decode("utf-8", errors="replace") for token in tokens),
    unchanged="What becomes of a token that holds a part of a character?",
    right=_decode,
    wrong={
        "You leave out what cannot be decoded, token by token: the characters are gone for good.": (
            lambda tokens: "".join(token.decode("utf-8", errors="ignore") for token in tokens)
        ),
        "You decode as Latin-1, or a kin of it: every byte becomes a character of its "
        "own.": lambda tokens: b"".join(tokens).decode("latin-1"),
        "A character may be spread over three tokens, or four; you join two at most.": _waits_once,
        "Where the bytes cannot all be decoded, you go back to single tokens: then one "
        "unfinished character spoils all others. `errors='replace'` spares you the case.": (
            _else_one_by_one
        ),
        "You decode as ASCII, which knows no byte above 127: the bytes are UTF-8.": lambda tokens: (
            b"".join(tokens).decode("ascii", errors="replace")
        ),
        "A model may stop in the middle of a character: such bytes must become U+FFFD, and may not "
        "vanish.": lambda tokens: _decode(tokens, "ignore"),
    },
    cases=[
        Case("'roses é'", [b"ro", b"ses", b" \xc3", b"\xa9"]),
        Case("'ಮ!'", [b"\xe0\xb2", b"\xae", b"!"]),
        Case("a character in three tokens", [b" \xe0", b"\xb2", b"\xae! "]),
        Case("a text that breaks off", [b"ro", b"se ", b"\xe0\xb2"]),
        Case("a split character and one that breaks off", [b"\xc3", b"\xa9 ", b"\xe0\xb2"]),
    ],
    also={
        "Your text holds surrogates, half of a character each: bytes that wait for others must be "
        "kept as bytes.": lambda result, tokens: any("\ud800" <= x <= "\udfff" for x in result),
        "The plain letters were {}, and in your text they are {}: do you do something besides "
        "decoding, or use an encoding other than UTF-8?": _other_letters_than,
    },
    any_form={
        "These are the bytes, joined; they are still to be decoded.": lambda result, tokens: (
            isinstance(result, Other) and result.words == "a bytes"
        ),
    },
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


def _not_zero(result: Tensor, ids: Tensor, upstream: Tensor, vocabulary: int) -> tuple | None:
    """A row of a word that did not occur, and that is not 0, in a result of the right shape."""
    if not isinstance(result, Tensor) or result.shape != (vocabulary, upstream.shape[-1]):
        return None
    absent = [i for i in range(vocabulary) if i not in ids.tolist() and result[i].ne(0).any()]
    if not absent:
        return None
    row = result[absent[0]].to(upstream)
    places = [t for t, given in enumerate(upstream) if torch.allclose(given, row)]
    is_now = f"is `upstream[{places[0]}]`" if places else f"begins with {row[0]:.3g}"
    return absent[0], is_now


def _other_width(result: Tensor, ids: Tensor, upstream: Tensor, vocabulary: int) -> tuple | None:
    width = upstream.shape[-1]
    rows = isinstance(result, Tensor) and result.ndim == 2 and len(result) == vocabulary
    return (result.shape[1], width) if rows and result.shape[1] != width else None


check_table_gradient = Exercise(
    asks="""`answer(ids, upstream, vocabulary)`: the gradient of an embedding table.

    ids [tokens] are the rows that were looked up, upstream [tokens, d] the gradient of each vector
    that came out. [vocabulary, d].
    """,
    right=_table_gradient,
    wrong={
        "Where a word occurs twice, only its first occurrence counts: the gradients of all of its "
        "places add up.": _first_wins,
        "These are the gradients of the tokens, one row each; the table has one for each id.": (
            lambda ids, upstream, vocabulary: upstream
        ),
        "Your table ends with the largest id that occurs. It has a row for each id of the "
        "vocabulary, whether it occurs or not.": lambda ids, upstream, vocabulary: _table_gradient(
            ids, upstream, vocabulary
        )[: ids.max() + 1],
        "Your table has a row for each id that occurs. It has one for each id of the vocabulary: 0 "
        "where the word did not occur.": lambda ids, upstream, vocabulary: _table_gradient(
            ids, upstream, vocabulary
        )[ids.unique()],
    },
    cases=[
        Case("5 different ids", torch.tensor([3, 0, 6, 1, 4]), randn(5, 2, seed=61), 7),
        Case("5 tokens, one of them twice", torch.tensor([3, 0, 3, 6, 1]), randn(5, 3, seed=62), 7),
        Case("7 tokens, 2 ids", torch.tensor([1, 4, 1, 1, 4, 1, 4]), randn(7, 5, seed=63), 11),
    ],
    any_form={
        "Id {} does not occur, so its row must be 0; yours {}.": _not_zero,
        "Your rows have {} numbers each. A row of the table has as many as one of `upstream`: "
        "{}.": _other_width,
    },
    axes="ids components",
    praise="Right: the sum over all places where the word stood, and zeros for the words that did "
    "not occur.",
)

# --- find the leak --------------------------------------------------------------------------------

check_leak = Choice(
    asks="In which lines does the text used for measuring influence the model? Numbers of lines.",
    right={2, 6},
    wrong={
        1: "This only reads the text.",
        2: "The merges are learned from the whole text, its last tenth included.",
        3: "This only says where to cut.",
        4: "The first part is encoded, to train on; nothing is learned from the other one here.",
        5: "To measure by a text, you must encode it. Nothing is learned from it here.",
        6: "The step to keep is chosen by the very loss that is reported: the luckiest of many.",
    },
    praise="Right: what is learned or chosen must come from the first part. Cut first; and to "
    "choose a step, cut off a third part.",
)
