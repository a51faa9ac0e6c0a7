"""Checks for chapter 11, exercises 4 to 6: the first loss, a baseline by counting, a leak."""

import math

import torch
from torch import Tensor, nn

from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = ["check_bigram_loss", "check_initial_loss", "check_leaks"]

# --- Exercise 4: the loss of a fresh model ------------------------------------------------------

INITIAL_LOSS = Exercise(
    right=lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std**2 / 2,
    wrong={
        "That holds for equal logits only: the spread of the logits is missing.": (
            lambda vocabulary, d_model, std: math.log(vocabulary)
        ),
        "A factor of one half is missing: ln of the mean of eˢ is half the variance of s.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std**2
        ),
        "You take the spread where the variance is asked for: square it.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + d_model**0.5 * std / 2
        ),
        "The variance of one weight is not that of a logit, which sums d_model of them.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + std**2 / 2
        ),
        "d_model is squared: the logit's variance is d_model · std².": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + (d_model * std) ** 2 / 2
        ),
        "The sign: unequal logits make the loss of random guesses larger.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) - d_model * std**2 / 2
        ),
        "That is bits: use the natural logarithm.": lambda vocabulary, d_model, std: (
            math.log2(vocabulary) + d_model * std**2 / 2
        ),
    },
    cases=[
        Case("GPT-2 small", 50_257, 768, 0.02),
        Case("a small model that starts a little too large", 997, 64, 0.1),
    ],
    praise="Right: ln V, and half the variance of a logit on top.",
)


def check_initial_loss(answer) -> Verdict:
    """`answer(vocabulary, d_model, std)`: a fresh, untied model's expected loss, in nats."""
    return INITIAL_LOSS.check(answer)


# --- Exercise 5: the bigram baseline ------------------------------------------------------------


def _counts(train: Tensor, size: int, start: float = 1.0) -> Tensor:
    """How often each token (row) is followed by each (column), plus `start`."""
    pairs = train[:, :-1].flatten() * size + train[:, 1:].flatten()
    return start + torch.bincount(pairs, minlength=size * size).reshape(size, size).double()


def _loss(table: Tensor, held_out: Tensor) -> Tensor:
    return -table[held_out[:, :-1], held_out[:, 1:]].log().mean()


def _rows(counts: Tensor) -> Tensor:
    return counts / counts.sum(1, keepdim=True)


def _bigram(train, held_out, size):
    return _loss(_rows(_counts(train, size)), held_out)


def _unsmoothed(train, held_out, size):
    counts = _counts(train, size, start=0.0)
    return _loss(_rows(counts).nan_to_num(), held_out)


def _not_accumulated(train, held_out, size):
    return _loss(_rows(1 + (_counts(train, size, start=0.0) > 0).double()), held_out)


def _across_stories(train, held_out, size):
    return _bigram(train.reshape(1, -1), held_out, size)


def _old_denominator(train, held_out, size):
    table = _counts(train, size) / _counts(train, size, start=0.0).sum(1, keepdim=True)
    return _loss(table, held_out)


def _unigram(train, held_out, size):
    counts = 1 + torch.bincount(train[:, 1:].flatten(), minlength=size).double()
    return -(counts / counts.sum())[held_out[:, 1:]].log().mean()


def _stories(seed: int, rows: int, size: int) -> Tensor:
    """Texts in which some tokens prefer some followers, each beginning with token 0."""
    source = torch.Generator().manual_seed(seed)
    chances = randn(size, size, seed=size).mul(1.5).softmax(-1)
    columns = [torch.zeros(rows, dtype=torch.int64)]
    for _ in range(6):
        columns.append(chances[columns[-1]].multinomial(1, generator=source).squeeze(1))
    return torch.stack(columns, dim=1)


BIGRAM_LOSS = Exercise(
    right=_bigram,
    wrong={
        "The pairs are not all counted: `counts[a, b] += 1` with index tensors adds 1 once for "
        "each place, however often it occurs. Use a loop, bincount, or index_put_ with "
        "accumulate=True.": _not_accumulated,
        "No smoothing: a pair that training has never seen gets probability 0, and the loss is "
        "infinite. Start every count at 1.": _unsmoothed,
        "The columns sum to 1: that is the token before, given the one after. Divide each row by "
        "its sum.": lambda train, held_out, size: _loss(
            _counts(train, size) / _counts(train, size).sum(0), held_out
        ),
        "You divide by the sum of the whole table: that is the probability of the pair, not of the "
        "next token given this one.": lambda train, held_out, size: _loss(
            _counts(train, size) / _counts(train, size).sum(), held_out
        ),
        "You count on the held-out stories: a predictor must not see what it is tested on.": (
            lambda train, held_out, size: _bigram(held_out, held_out, size)
        ),
        "You measure on the training stories; the held-out ones are asked for.": (
            lambda train, held_out, size: _bigram(train, train, size)
        ),
        "The last token of a story and the first of the next are no pair: count within stories.": (
            _across_stories
        ),
        "You flatten both sets. The last token of a story and the first of the next are no pair: "
        "count and measure within stories.": lambda train, held_out, size: _across_stories(
            train, held_out.reshape(1, -1), size
        ),
        "1 is added to the counts, but the rows are divided by the old sums, so that they sum to "
        "more than 1.": _old_denominator,
        "That is the unigram: how often a token comes, whatever came before it.": _unigram,
        "That is bits: use the natural logarithm.": lambda train, held_out, size: (
            _bigram(train, held_out, size) / math.log(2)
        ),
    },
    cases=[
        Case("40 stories of 5 kinds of tokens", _stories(0, 40, 5), _stories(1, 13, 5), 5),
        Case("40 stories of 11 kinds of tokens", _stories(2, 40, 11), _stories(3, 13, 11), 11),
    ],
    praise="Right: counted on one set, smoothed, and measured on another.",
)


def check_bigram_loss(answer) -> Verdict:
    """`answer(train, held_out, size)`: the loss of an add-one bigram on `held_out`, in nats.

    train, held_out [stories, tokens], ids below `size` -> a number.
    """
    return BIGRAM_LOSS.check(answer)


# --- Exercise 6: find the leak ------------------------------------------------------------------


class _Reader(nn.Module):
    """ids [batch, tokens] -> logits: each position adds up the tokens that a mask lets it see.

    All numbers are multiples of 1/1024, so that their sums are exact, in any order.
    """

    def __init__(self, sees: Tensor, vocabulary: int):
        super().__init__()
        self.register_buffer("sees", sees)
        table = (1024 * randn(vocabulary, vocabulary, seed=7)).round() / 1024
        self.register_buffer("table", table)

    def forward(self, ids):
        return self.sees[: ids.shape[1], : ids.shape[1]] @ self.table[ids]


# So many kinds of tokens that one drawn anew is hardly ever the old one.
TOKENS, VOCABULARY = 7, 101
CAUSAL = torch.ones(TOKENS, TOKENS).tril()


def _by_cuts(
    *,
    cuts=range(1, TOKENS),
    change=lambda ids: ids + 1,
    changed=lambda t: slice(t, None),
    compared=lambda t: slice(t),
    tolerance=0.0,
    verdict=any,
):
    """A test for leaks: at each cut, change what comes from there on, compare what came before."""

    def leaks(model, ids, vocabulary):
        before, found = model(ids), []
        for t in cuts:
            other = ids.clone()
            other[:, changed(t)] = change(ids[:, changed(t)]) % vocabulary
            difference = (model(other) - before)[:, compared(t)].abs().max()
            found.append(bool(difference > tolerance))
        return verdict(found)

    return leaks


def _case(
    name: str, seed: int, *places: tuple[int, int], by: float = 1.0, token: int | None = None
) -> Case:
    """A model in which, besides what is causal, query q sees key k at each place (q, k)."""
    source, sees = torch.Generator().manual_seed(seed), CAUSAL.clone()
    ids = torch.randint(VOCABULARY, (3, TOKENS), generator=source)
    for query, key in places:
        sees[query, key] = by
    if token is not None:  # where the leak comes from
        ids[:, places[0][1]] = token
    return Case(name, _Reader(sees, VOCABULARY), ids, VOCABULARY)


_ALL = [(query, key) for query in range(TOKENS) for key in range(query + 1, TOKENS)]
LEAKS = Exercise(
    right=_by_cuts(),
    wrong={
        "You find a leak in a model that has none: the positions that you changed are compared, "
        "too, or you changed the past. Compare only the positions before the change.": (
            lambda model, ids, vocabulary: True
        ),
        "You never find a leak. Change tokens, and compare the logits before the change: "
        "do the two texts really differ?": lambda model, ids, vocabulary: False,
        "The other way round: it leaks if the past does *not* stay the same.": _by_cuts(
            verdict=lambda found: not any(found)
        ),
        "You change the last token only (or only the last result is kept). A leak from another "
        "place stays hidden: change what comes after t for every t.": _by_cuts(cuts=[TOKENS - 1]),
        "You cut at one place only: a leak within one half stays hidden. Try every t.": _by_cuts(
            cuts=[TOKENS // 2]
        ),
        "You compare the first position only (or return in the first round of the loop); the "
        "others may leak, too.": _by_cuts(cuts=[1]),
        "You ask that it leaks at every cut: one is enough. Return `False` after the loop, not "
        "within it.": _by_cuts(verdict=all),
        "Your cuts begin too late: what position 0 sees of token 1 stays hidden.": _by_cuts(
            cuts=range(2, TOKENS)
        ),
        "Your cuts end too early: what the last token tells the one before stays hidden.": _by_cuts(
            cuts=range(1, TOKENS - 1)
        ),
        "You look at neighbors only: a token may reach further back than to the one before it. "
        "Change all that comes after t, or compare all that comes before.": _by_cuts(
            changed=lambda t: slice(t, t + 1), compared=lambda t: slice(t - 1, t)
        ),
        "You overwrite the future with token 0. Where 0 stands already, nothing changes: add 1 to "
        "each token, modulo the vocabulary.": _by_cuts(change=lambda ids: 0 * ids),
        "A leak may be faint: compare the logits themselves, without a tolerance or with a tiny "
        "one.": _by_cuts(tolerance=0.1),
    },
    cases=[
        _case("a model that is causal", 100),
        _case("a model without a mask", 101, *_ALL),
        _case("a model that sees one ahead", 102, *((t, t + 1) for t in range(TOKENS - 1))),
        _case("a model that leaks early in the text only", 103, (1, 2), token=VOCABULARY - 1),
        _case("a model that leaks late in the text only", 104, (4, 5), token=0),
        _case("a model that leaks in the middle only", 105, (2, 3), token=1),
        _case("a model that leaks at the end only", 106, (5, 6)),
        _case("a model that leaks at the beginning only", 107, (0, 1)),
        _case("a model that leaks from far away only", 108, (1, 5)),
        _case("a model that leaks faintly only", 109, (3, 4), by=2.0**-13),
    ],
    praise="Right: whatever comes later, the past stays as it was, to the last bit.",
)


def check_leaks(answer) -> Verdict:
    """`answer(model, ids, vocabulary)`: True if a later token changes an earlier position's logits.

    model: ids [batch, tokens] -> logits [batch, tokens, vocabulary].
    """
    return LEAKS.check(answer)
