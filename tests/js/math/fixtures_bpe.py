"""Merges and tokens by the library, for tests/js/math/bpe.test.js."""

import random

from transformer_lib.bpe import WORDS, BytePairTokenizer, split_words, train_bpe

TEXTS = [
    "mary gave roses to susan. susan gave the roses to rosemary. rosemary gave mary a rose.",
    "ಮೇರಿ ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು. ಸುಸಾನ್ ಮೇರಿಗೆ ಹೂವನ್ನು ಕೊಟ್ಟಳು.",
    "aaaaaaaaaaaaaaaaaaaaa aaa aaaa",
    "if x:\n\n    y = 'é' # “no”  \n\tπ ≈ 3 👩‍👩‍👧‍👦👩‍👩‍👧\u3000、\u00a0!",
    "a",
]


def fixtures() -> dict[str, object]:
    drawn = random.Random(0)
    few = ["".join(drawn.choices("ab Aé~\n", k=200)) for _ in range(10)]
    return {
        "pattern": WORDS,
        "cases": [_case(text) for text in [*TEXTS, *few]],
        "shown": [[list(token), text] for token, text in zip(ODD, _shown(), strict=True)],
    }


def _case(text: str) -> dict[str, object]:
    """All merges until every word is one token, and the tokens of the text half way."""
    longest = BytePairTokenizer([])
    for size in range(257, 10_000):
        try:
            longest = train_bpe(text, size)
        except ValueError:
            break
    merges = longest.merges
    half = BytePairTokenizer(merges[: len(merges) // 2])
    ids = {bytes([byte]): byte for byte in range(256)}
    for left, right in half.merges:
        ids[left + right] = len(ids)
    return {
        "text": text,
        "words": split_words(text),
        "merges": [[list(left), list(right)] for left, right in merges],
        "half_merges": [ids[token] for pair in half.merges for token in pair],
        "half_ids": half.encode(text),
        "half": [half.tokens(word) for word in split_words(text)],
    }


ODD = [
    *(b"roses", b"\xe0\xb2", "ನ".encode() + b"\xe0\xb3", b"\xff\xc3\xa9", b"\xed\xa0\x80"),
    *(b"\xc0\x80", b"\xf0\x9f\x91", b"a\xe0b", b"\xef\xbb\xbf"),
]


def _shown() -> list[str]:
    return [token.decode("utf-8", errors="backslashreplace") for token in ODD]
