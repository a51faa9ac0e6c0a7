"""Chapter 06's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge

from transformer_lib.bpe import BytePairTokenizer
from transformer_lib.exercises import tokens_and_embeddings
from transformer_lib.exercises.tokens_and_embeddings import (
    check_decode,
    check_encode,
    check_leak,
    check_learned_merges,
    check_table_gradient,
)

RIGHT, WRONG = {}, {}

# --- encode by merges


def by_the_library(word, merges):
    pairs = [(left.encode(), right.encode()) for left, right in merges]
    return BytePairTokenizer(pairs).tokens(word)


def in_place(word, merges):
    tokens = list(word)
    for left, right in merges:
        i = 0
        while i < len(tokens) - 1:
            if tokens[i] == left and tokens[i + 1] == right:
                tokens[i : i + 2] = [left + right]
            i += 1
    return tokens


RIGHT[check_encode] = [by_the_library, in_place]


def longest(word, merges):
    known, tokens, i = {a + b for a, b in merges}, [], 0
    while i < len(word):
        ends = [j for j in range(len(word), i, -1) if word[i:j] in known or j == i + 1]
        tokens.append(word[i : ends[0]])
        i = ends[0]
    return tokens


def first_place_only(word, merges):
    tokens = list(word)
    for left, right in merges:
        for i in range(len(tokens) - 1):
            if (tokens[i], tokens[i + 1]) == (left, right):
                tokens = [*tokens[:i], left + right, *tokens[i + 2 :]]
                break
    return tokens


def only_once(word, merges):
    for at in range(len(merges)):
        tokens = in_place(word, merges[at : at + 1])
        if len(tokens) < len(word):
            return tokens
    return list(word)


def by_replacing(word, merges):
    text = " ".join(word)
    for left, right in merges:
        text = text.replace(left + " " + right, left + right)
    return text.split()


def from_its_end(word, merges):
    turned = [(right[::-1], left[::-1]) for left, right in merges]
    return [token[::-1] for token in reversed(in_place(word[::-1], turned))]


WRONG[check_encode] = [
    (longest, "You take the longest token"),
    (first_place_only, "at its first place only"),
    (only_once, "You stop after the first merge"),
    (lambda word, merges: in_place(word, list(reversed(merges))), "from the last one to the first"),
    (lambda word, merges: list(word), "still single characters"),
    (by_replacing, "You replace within the text"),
    (from_its_end, "You go through the word from its end"),
]

# --- which list has been learned?

RIGHT[check_learned_merges] = ["c", "C"]
WRONG[check_learned_merges] = [
    ("a", "needs *ros*, which no merge"),
    ("b", "no *o* is left"),
    ("d", "*o + s* occurs 4 times"),
]

# --- repair a decoder


def all_bytes_first(tokens):
    return b"".join(tokens).decode(errors="replace")


def bytewise(tokens):
    return bytes(byte for token in tokens for byte in token).decode("utf8", "replace")


RIGHT[check_decode] = [all_bytes_first, bytewise]
WRONG[check_decode] = [
    (lambda tokens: "".join(str(t, "utf-8", "replace") for t in tokens), "holds a part of a char"),
    (lambda tokens: "".join(str(t, "utf-8", "ignore") for t in tokens), "gone for good"),
    (lambda tokens: "".join(chr(byte) for t in tokens for byte in t), "You decode as Latin-1"),
    (lambda tokens: b" ".join(tokens).decode(errors="replace"), "You put blanks between"),
    (lambda tokens: b"".join(tokens).decode(), "UnicodeDecodeError"),
    (lambda tokens: b"".join(tokens).decode(errors="ignore"), "may not vanish"),
]

# --- the gradient of a table


def by_one_hot(ids, upstream, vocabulary):
    return F.one_hot(ids, vocabulary).to(upstream.dtype).T @ upstream


def by_autograd(ids, upstream, vocabulary):
    table = torch.zeros(vocabulary, upstream.shape[1], requires_grad=True)
    (F.embedding(ids, table) * upstream).sum().backward()
    return table.grad


def assigned(ids, upstream, vocabulary):
    table = torch.zeros(vocabulary, upstream.shape[1])
    for t, i in enumerate(ids):
        table[i] = upstream[t]
    return table


def averaged(ids, upstream, vocabulary):
    hot = F.one_hot(ids, vocabulary).float()
    return (hot / hot.sum(0).clamp(min=1)).T @ upstream


RIGHT[check_table_gradient] = [by_one_hot, by_autograd]
WRONG[check_table_gradient] = [
    (assigned, "assigning overwrites"),
    (averaged, "you take the mean"),
    (
        lambda ids, upstream, vocabulary: torch.stack(
            [torch.cat([upstream[ids == i], 0 * upstream])[0] for i in range(vocabulary)]
        ),
        "only its first occurrence",
    ),
    (lambda ids, upstream, vocabulary: upstream * 1, "gradients of the tokens, one row each"),
    (
        lambda ids, upstream, vocabulary: upstream.sum(0, keepdim=True).repeat(vocabulary, 1),
        "one row for the whole table",
    ),
    (lambda *given: by_one_hot(*given).T, "The two axes are swapped"),
    (
        lambda ids, upstream, vocabulary: by_one_hot(ids, torch.ones_like(upstream), vocabulary),
        "counts how often",
    ),
]

# --- find the leak

RIGHT[check_leak] = [{2, 6}, [6, 2], "2, 6"]
WRONG[check_leak] = [
    ([1, 2, 6], "This only reads"),
    ([6], "The merges are learned from the whole"),
    ([2, 3, 6], "only says where to cut"),
    ([2, 4, 6], "The first part is encoded"),
    ([2, 5, 6], "To measure by a text"),
    ([2], "The step to keep is chosen"),
]


@pytest.mark.parametrize("exercise", exercises(tokens_and_embeddings))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])


def test_the_list_that_can_be_learned_is_the_one_that_training_gives():
    words, merges = ["rose", "roses", "rosy", "nose"], []
    tokens = [list(word) for word in words]
    for _ in range(3):
        pairs = [pair for word in tokens for pair in pairwise(word)]
        best = max(pairs, key=lambda pair: (pairs.count(pair), pair == ("r", "os")))
        merges.append(best)
        tokens = [in_place_of(word, best) for word in tokens]
    assert merges == [("o", "s"), ("r", "os"), ("ros", "e")]


def in_place_of(tokens, pair):
    i, joined = 0, []
    while i < len(tokens):
        size = 2 if tuple(tokens[i : i + 2]) == pair else 1
        joined.append("".join(tokens[i : i + size]))
        i += size
    return joined
