"""Chapter 06's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by

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


def by_replacing(word, merges):
    text = " ".join(word)
    for left, right in merges:
        text = text.replace(left + " " + right, left + right)
    return text.split()


def from_its_end(word, merges):
    turned = [(right[::-1], left[::-1]) for left, right in merges]
    return [token[::-1] for token in reversed(in_place(word[::-1], turned))]


def without_the_last(word, merges):
    tokens = list(word)
    for pair in merges:
        joined, i = [], 0
        while i < len(tokens) - 1:
            size = 2 if (tokens[i], tokens[i + 1]) == pair else 1
            joined.append("".join(tokens[i : i + size]))
            i += size
        tokens = joined
    return tokens


def whatever_comes_first(word, merges):
    tokens, i = list(word), 0
    while i < len(tokens) - 1:
        if (tokens[i], tokens[i + 1]) in merges:
            tokens = [*tokens[:i], tokens[i] + tokens[i + 1], *tokens[i + 2 :]]
            i = -1
        i += 1
    return tokens


def joined_two_by_two(word, merges):
    return [word[i : i + 2] for i in range(0, len(word), 2)]


def not_the_last_merge_that_fits(word, merges):
    fits = [
        m
        for n, m in enumerate(merges)
        if in_place(word, merges[: n + 1]) != in_place(word, merges[:n])
    ]
    return in_place(word, fits[:-1])


def one_too_far(word, merges):
    tokens = list(word)
    for left, right in merges:
        for i in range(len(tokens)):
            if (tokens[i], tokens[i + 1]) == (left, right):
                tokens[i : i + 2] = [left + right]
    return tokens


def all_merges_at_each_place(word, merges):
    tokens = list(word)
    for i in range(len(word)):
        for left, right in merges:
            if tokens[i : i + 2] == [left, right]:
                tokens = [*tokens[:i], left + right, *tokens[i + 2 :]]
    return tokens


def pairs_of_letters(word, merges):
    tokens, i = [], 0
    while i < len(word):
        step = 2 if (word[i], word[i + 1 : i + 2]) in merges else 1
        tokens.append(word[i : i + step])
        i += step
    return tokens


def the_first_equal_one_removed(word, merges):
    tokens = list(word)
    for left, right in merges:
        for i in range(len(tokens)):
            if tokens[i : i + 2] == [left, right]:
                tokens[i] += right
                tokens.remove(right)
    return tokens


WRONG[check_encode] = [
    (all_merges_at_each_place, "At each place you try all merges"),
    (pairs_of_letters, "You look for pairs among the letters only"),
    (the_first_equal_one_removed, "letters stand in wrong places"),
    (lambda word, merges: [ord(letter) for letter in word], "token is a text, and yours are num"),
    (without_the_last, "your tokens give '': letters of 'rosemary' are lost."),
    (lambda word, merges: [a + b for a, b in merges if a + b in word], "letters are repeated."),
    (
        lambda word, merges: [in_place(word, merges[:n]) for n in range(len(merges))],
        "ach item of your result is a list",
    ),
    (whatever_comes_first, "You merge the first pair from the left"),
    (joined_two_by_two, "o merge makes the token 'ry'."),
    (not_the_last_merge_that_fits, "`[:-1]` is too much"),
    (lambda word, merges: " ".join(in_place(word, merges)), "our tokens are one text"),
    (one_too_far, "does a loop go one too far, or does the list get shorter"),
    (longest, "You take the longest token"),
    (first_place_only, "at its first place only"),
    (
        lambda word, merges: in_place(word, list(reversed(merges))),
        "`reversed` is one step too many",
    ),
    (lambda word, merges: list(word), "still single characters"),
    (by_replacing, "no merge makes the token 'roses'."),
    (from_its_end, "You go through the word from its end"),
]

# --- which list has been learned?

RIGHT[check_learned_merges] = ["c", "C"]
WRONG[check_learned_merges] = [
    ("a", "needs *ros*, which no merge"),
    ("b", "no *o* is left"),
    ("d", "*o* + *s* occurs 4 times"),
]

# --- repair a decoder


def all_bytes_first(tokens):
    return b"".join(tokens).decode(errors="replace")


def bytewise(tokens):
    return bytes(byte for token in tokens for byte in token).decode("utf8", "replace")


RIGHT[check_decode] = [all_bytes_first, bytewise]


def with_the_next(tokens):
    text, rest = "", list(tokens)
    while rest:
        token = rest.pop(0)
        try:
            text += token.decode()
        except UnicodeDecodeError:
            text += (token + b"".join(rest[:1])).decode(errors="replace")
            del rest[:1]
    return text


def at_once_or_not_at_all(tokens):
    try:
        return b"".join(tokens).decode()
    except UnicodeDecodeError:
        return "".join(t.decode(errors="replace") for t in tokens)


def three_at_a_time(tokens):
    parts = [b"".join(tokens[i : i + 3]) for i in range(0, len(tokens), 3)]
    return "".join(part.decode(errors="replace") for part in parts)


WRONG[check_decode] = [
    (at_once_or_not_at_all, "you go back to single tokens"),
    (
        lambda tokens: "".join(t.decode(errors="surrogateescape") for t in tokens),
        "holds surrogates",
    ),
    (three_at_a_time, "its complement belongs here: `parts = "),
    (with_the_next, "you join two at most"),
    (
        lambda tokens: repr(b"".join(tokens)),
        "the plain letters were 'roses ', and in your text they are \"",
    ),
    (lambda tokens: str(b"".join(tokens), "ascii", "replace"), "You decode as ASCII"),
    (
        lambda tokens: b"".join(tokens).decode("utf8", "backslashreplace"),
        "the plain letters were 'rose ', and in your text they are 'r",
    ),
    (lambda tokens: b"".join(tokens), "still to be decoded"),
    (lambda tokens: "".join(str(t, "utf-8", "replace") for t in tokens), "holds a part of a char"),
    (lambda tokens: "".join(str(t, "utf-8", "ignore") for t in tokens), "gone for good"),
    (lambda tokens: "".join(chr(byte) for t in tokens for byte in t), "You decode as Latin-1"),
    (
        lambda tokens: b" ".join(tokens).decode(errors="replace"),
        "the plain letters were 'roses ', and in your text they are '",
    ),
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


def all_but_the_last(ids, upstream, vocabulary):
    return by_one_hot(ids, upstream * (torch.arange(len(ids)) < len(ids) - 1)[:, None], vocabulary)


def added_by_index(ids, upstream, vocabulary):
    table = torch.zeros(vocabulary, upstream.shape[1])
    table[ids] += upstream
    return table


RIGHT[check_table_gradient] = [by_one_hot, by_autograd]
WRONG[check_table_gradient] = [
    (assigned, "`=` keeps only the last: `+=` adds them all"),
    (lambda *given: by_one_hot(*given) - 1, "d 2 does not occur, so its row must be 0"),
    (all_but_the_last, "with `torch.arange(len(ids)) <= len(ids) - 1` in place of `torch.arang"),
    (
        lambda ids, upstream, n: by_one_hot(torch.arange(len(ids)), upstream, n),
        "id 2 does not occur, so its row must be 0; yours is `upstrea",
    ),
    (
        lambda *given: by_one_hot(*given).mT.flatten().view(given[2], -1),
        "there is a transpose too many",
    ),
    (
        lambda ids, upstream, n: by_one_hot(torch.arange(len(ids)), upstream[ids.argsort()], n),
        "d 2 does not occur, so its row must be 0; yours is `upstream[0]`.",
    ),
    (lambda ids, upstream, n: by_one_hot(ids, F.one_hot(ids, n).float(), n), "our rows have 7"),
    (added_by_index, "here, at `setitem`, your values depart"),
    (lambda ids, upstream, vocabulary: by_one_hot(ids, upstream, max(ids) + 1), "largest id that"),
    (
        lambda ids, upstream, vocabulary: torch.stack(
            [upstream[ids == i].sum(0) for i in sorted(set(ids.tolist()))]
        ),
        "a row for each id that occurs",
    ),
    (
        lambda ids, upstream, vocabulary: torch.zeros(vocabulary, upstream.shape[1]).scatter_add(
            0, ids[:, None], upstream
        ),
        "here, at `scatter_add`, your values depart",
    ),
    (
        lambda ids, upstream, vocabulary: upstream[ids],
        "Index 6 is too large for a tensor with indices 0 to 4",
    ),
    (
        lambda ids, upstream, vocabulary: torch.stack(
            [torch.cat([upstream[ids == i], 0 * upstream])[0] for i in range(vocabulary)]
        ),
        "only its first occurrence",
    ),
    (lambda ids, upstream, vocabulary: upstream * 1, "gradients of the tokens, one row each"),
    (
        lambda ids, upstream, vocabulary: upstream.sum(0, keepdim=True).repeat(vocabulary, 1),
        "id 2 does not occur, so its row must be 0; yours begins with",
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
    judge_by(exercise, RIGHT, WRONG)


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
