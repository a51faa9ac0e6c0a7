"""Checks for chapter 11, a decoder on its own: losses, wiring, counts, leaks."""

import math

import torch
from torch import Tensor, nn

from transformer_lib.exercises.engine.repairing import Repair
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- Exercise 1: the loss -------------------------------------------------------------------------


def _surprise(logits: Tensor, targets: Tensor) -> Tensor:
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _next_token_loss(logits, ids, real):
    return _surprise(logits[:, :-1], ids[:, 1:])[real[:, 1:]].mean()


def _mean_of_rows(logits, ids, real):
    each = _surprise(logits[:, :-1], ids[:, 1:]) * real[:, 1:]
    return (each.sum(1) / real[:, 1:].sum(1)).mean()


def _kept_from_zero(logits, ids, real):
    chances = logits.softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)
    return -(chances + 1e-9).log()[real[:, 1:]].mean()


def _divided_by_all(logits, ids, real):
    each = _surprise(logits[:, :-1], ids[:, 1:]) * real[:, 1:]
    return each.mean()


check_next_token_loss = Exercise(
    asks="""`answer(logits, ids, real)`: the mean loss over all real targets, in nats.

    logits [batch, tokens, vocabulary], ids and real [batch, tokens] -> a number.
    """,
    right=_next_token_loss,
    wrong={
        "No shift: the logits at position t are compared with token t, which the model has just "
        "read. They predict token t + 1.": lambda logits, ids, real: _surprise(logits, ids)[
            real
        ].mean(),
        "You cut the first position of everything. That is not a shift: the logits at "
        "position t are still compared with token t. Cut the last of the logits.": (
            lambda logits, ids, real: _surprise(logits[:, 1:], ids[:, 1:])[real[:, 1:]].mean()
        ),
        "The shift goes the wrong way: you ask position t for token t - 1.": (
            lambda logits, ids, real: _surprise(logits[:, 1:], ids[:, :-1])[real[:, :-1]].mean()
        ),
        "Shifted twice: position t is asked for token t + 2.": lambda logits, ids, real: _surprise(
            logits[:, :-2], ids[:, 2:]
        )[real[:, 2:]].mean(),
        "The padding counts: leave out the targets that are not real before you take the mean.": (
            lambda logits, ids, real: _surprise(logits[:, :-1], ids[:, 1:]).mean()
        ),
        "You take `real` at the inputs. Whether there is something to predict is a matter of the "
        "target: real[:, 1:].": lambda logits, ids, real: _surprise(logits[:, :-1], ids[:, 1:])[
            real[:, :-1]
        ].mean(),
        "The mean of each sequence's mean: a token of a short sequence weighs more than one of a "
        "long one. Take one mean over all real tokens.": _mean_of_rows,
        "The padding is set to zero but still counted in the denominator.": _divided_by_all,
        "You divide by the number of all real tokens. The first of each sequence was never "
        "predicted: real[:, 1:].sum().": lambda logits, ids, real: (
            _surprise(logits[:, :-1], ids[:, 1:])[real[:, 1:]].sum() / real.sum()
        ),
        "The sum over the tokens, not the mean.": lambda logits, ids, real: _surprise(
            logits[:, :-1], ids[:, 1:]
        )[real[:, 1:]].sum(),
        "That is bits: use the natural logarithm.": lambda logits, ids, real: (
            _next_token_loss(logits, ids, real) / math.log(2)
        ),
        "The softmax is taken twice: cross_entropy wants logits, not probabilities.": (
            lambda logits, ids, real: _next_token_loss(logits.softmax(-1), ids, real)
        ),
        "The sign: a loss is minus the logarithm of a probability.": lambda logits, ids, real: (
            -_next_token_loss(logits, ids, real)
        ),
        "The mean of each sequence's mean, and each divided by all its tokens: the first was never "
        "predicted. Take one mean over all real targets.": lambda logits, ids, real: (
            (_surprise(logits[:, :-1], ids[:, 1:]) * real[:, 1:]).sum(1) / real.sum(1)
        ).mean(),
        "You leave out every target that is token 0. Some are part of a text: leave out by place, "
        "with `real`.": lambda logits, ids, real: _surprise(logits[:, :-1], ids[:, 1:])[
            (ids * real)[:, 1:] != 0
        ].mean(),
        "You set the padding to token 0, and the model is then asked for token 0 there. Leave "
        "these places out of the mean.": lambda logits, ids, real: _surprise(
            logits[:, :-1], (ids * real)[:, 1:]
        ).mean(),
        "You take the target's logit for its log-probability: a log_softmax is missing.": (
            lambda logits, ids, real: (
                -logits[:, :-1].gather(-1, ids[:, 1:, None])[..., 0][real[:, 1:]].mean()
            )
        ),
        "The softmax runs over the tokens of the text. It belongs over the vocabulary, the last "
        "axis.": lambda logits, ids, real: (
            -logits.log_softmax(1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0][real[:, 1:]].mean()
        ),
        "That is the share of targets that the model puts first. A loss asks how probable it "
        "thought them.": lambda logits, ids, real: (
            (logits[:, :-1].argmax(-1) == ids[:, 1:])[real[:, 1:]].double().mean()
        ),
        "A small number is added to the probabilities before the logarithm. It hides the largest "
        "surprises: take the logarithm of the softmax in one step, log_softmax.": _kept_from_zero,
    },
    cases=[
        Case(
            "3 sequences, two of them padded",
            2 * randn(3, 7, 11, seed=0),
            torch.arange(21).reshape(3, 7) * 5 % 11,
            torch.arange(7) < torch.tensor([[7], [5], [3]]),
        ),
        Case(
            "2 sequences, one of them short",
            2 * randn(2, 5, 3, seed=1),
            torch.arange(10).reshape(2, 5) * 2 % 3,
            torch.arange(5) < torch.tensor([[5], [3]]),
        ),
        Case(
            "a model that is sure of itself and wrong",
            12 * randn(2, 3, 13, seed=2),
            torch.arange(6).reshape(2, 3) * 2 % 13,
            torch.arange(3) < torch.tensor([[3], [2]]),
        ),
    ],
    praise="Right: one step apart, and one mean over all tokens that exist.",
)


# --- Exercise 2: the model, to be mended ----------------------------------------------------------


class _Block(nn.Module):
    """Stands for a block: each token adds something of the tokens up to it to its own stream."""

    def __init__(self, d_model: int, seed: int):
        super().__init__()
        self.register_buffer("matrix", randn(d_model, d_model, seed=seed))

    def forward(self, x):
        before = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
        heard = (before / before.sum(1, keepdim=True)) @ x
        return x + torch.tanh(heard @ self.matrix)


class _FinalNorm(nn.Module):
    """Layer normalization with a gain that is not 1."""

    def forward(self, x):
        return 0.5 * nn.functional.layer_norm(x, x.shape[-1:])


def _gpt(ids, E, P, blocks, final_norm):
    x = E[ids] + P[: ids.shape[1]]
    for block in blocks:
        x = block(x)
    return final_norm(x) @ E.T


def _through(ids, E, P, blocks, final_norm, *, places=None, again=False, each=lambda x: x):
    """`_gpt` with other rows of P, with the stream added once more, or a step after each block."""
    x = E[ids] + P[torch.arange(ids.shape[1]) if places is None else places]
    for block in blocks:
        x = each(block(x) + x if again else block(x))
    return final_norm(x) @ E.T


def _broken_gpt(ids, E, P, blocks, final_norm):
    x = E[ids] + P[ids]
    for block in blocks:
        y = block(x)
    return final_norm(y) @ E.T


def _only_last_block(ids, E, P, blocks, final_norm):
    return _gpt(ids, E, P, blocks[-1:], final_norm)


def _without_norm(ids, E, P, blocks, final_norm):
    return _gpt(ids, E, P, blocks, nn.Identity())


def _places_again(ids, E, P, blocks, final_norm):
    x = E[ids]
    for block in blocks:
        x = block(x + P[: ids.shape[1]])
    return final_norm(x) @ E.T


def _norm_at_the_start(ids, E, P, blocks, final_norm):
    x = final_norm(E[ids] + P[: ids.shape[1]])
    for block in blocks:
        x = block(x)
    return x @ E.T


def _model(vocabulary: int, context: int, d_model: int, n_blocks: int, seed: int):
    """E, P, blocks and final norm of a small model."""
    tables = randn(vocabulary, d_model, seed=seed), randn(context, d_model, seed=seed + 1)
    return *tables, [_Block(d_model, seed + 2 + n) for n in range(n_blocks)], _FinalNorm()


check_mended_gpt = Repair(
    asks="""`answer(ids, E, P, blocks, final_norm)`: the logits of a GPT, mended.

    ids [batch, tokens], E [vocabulary, d_model], P [context, d_model]; the logits [batch, tokens,
    vocabulary].
    """,
    broken=_broken_gpt,
    unchanged="Say aloud what each block reads, and which row of P the third token gets.",
    right=_gpt,
    wrong={
        "The blocks are mended: each reads what the one before wrote. The rows of P are still "
        "picked by the tokens' ids.": lambda ids, *rest: _through(ids, *rest, places=ids),
        "The positions are mended. But every block still reads the same x, so that only the last "
        "one counts.": _only_last_block,
        "Row 0 of P belongs to the first token: you count places from 1.": (
            lambda ids, *rest: _through(ids, *rest, places=torch.arange(ids.shape[1]) + 1)
        ),
        "You add the same row of P to every token: each place has a row of its own.": (
            lambda ids, *rest: _through(ids, *rest, places=torch.zeros_like(ids))
        ),
        "The stream is added twice: a block returns the stream with its two results already on "
        "it.": lambda *given: _through(*given, again=True),
        "The final norm belongs behind the last block, not behind each of them.": (
            lambda ids, E, P, blocks, final_norm: _through(
                ids, E, P, blocks, nn.Identity(), each=final_norm
            )
        ),
        "The final norm is missing.": _without_norm,
        "The norm comes before the first block. It belongs after the last one.": (
            _norm_at_the_start
        ),
        "These are probabilities. Asked for are logits, before any softmax.": (
            lambda *given: _gpt(*given).softmax(-1)
        ),
        "Only the first block counts: is the `return` inside the loop?": (
            lambda ids, E, P, blocks, final_norm: _gpt(ids, E, P, blocks[:1], final_norm)
        ),
        "The blocks run in reverse order.": lambda ids, E, P, blocks, final_norm: _gpt(
            ids, E, P, blocks[::-1], final_norm
        ),
        "The rows of P are added again before each block. Once is enough: the stream carries them "
        "on.": _places_again,
        "The positions are missing.": lambda ids, E, P, blocks, final_norm: _gpt(
            ids, E, 0 * P, blocks, final_norm
        ),
    },
    cases=[
        Case("one block, and ids that are 0, 1, 2", torch.arange(3)[None], *_model(5, 7, 4, 1, 20)),
        Case("one block", torch.tensor([[4, 0, 2, 4], [1, 3, 3, 0]]), *_model(5, 7, 6, 1, 30)),
        Case("three blocks", torch.tensor([[10, 3, 3, 7, 0]]), *_model(11, 13, 6, 3, 40)),
    ],
    axes="batch tokens vocabulary",
    praise="Right: a row of P for each place, and each block reads what the one before has left.",
)


# --- Exercise 3: count the parameters -------------------------------------------------------------


def _count(
    vocabulary, context, n_layers, d_model, *, squares=12, vectors=13, head=0, final=2, tables=1
):
    block = squares * d_model**2 + vectors * d_model
    table = (vocabulary * (1 + head) + tables * context) * d_model
    return table + n_layers * block + final * d_model


def _miscount(**changes):
    def wrong(vocabulary, context, n_layers, d_model):
        return _count(vocabulary, context, n_layers, d_model, **changes)

    return wrong


check_count = Exercise(
    asks="`answer(vocabulary, context, n_layers, d_model)`: the number of parameters of a GPT-2.",
    right=_miscount(),
    wrong={
        "The output is counted once more. It is tied: the embedding's own table.": _miscount(
            head=1
        ),
        "The table of positions is missing: context × d_model.": _miscount(tables=0),
        "The final norm is missing: a gain and a bias of d_model each.": _miscount(final=0),
        "No biases: each of the six products has one, 9 · d_model together in a block.": _miscount(
            vectors=4
        ),
        "In each block 4 · d_model are missing: either its two norms, each with a gain and a bias, "
        "or the biases of attention's four products.": _miscount(vectors=9),
        "The biases of the feed-forward layer are missing: 4 · d_model for the first product, "
        "d_model for the second.": _miscount(vectors=8),
        "The final norm has a gain and a bias, d_model of each: you count one of the two.": (
            _miscount(final=1)
        ),
        "A block has two norms: you count one.": _miscount(vectors=11),
        "A norm has a gain and a bias, d_model of each: you count one of the two.": _miscount(
            vectors=11, final=1
        ),
        "All norms are missing, 4 · d_model in a block and 2 · d_model at the end.": _miscount(
            vectors=9, final=0
        ),
        "You count only matrices: biases and norms are missing.": _miscount(vectors=0, final=0),
        "The feed-forward layer has two matrices, d_model × 4 d_model and back: you count one.": (
            _miscount(squares=8)
        ),
        "The feed-forward layer's second product is missing: back from 4 · d_model to d_model, "
        "with a bias.": _miscount(squares=8, vectors=12),
        "The feed-forward layer is 4 · d_model wide: you count it as d_model wide.": _miscount(
            squares=6, vectors=10
        ),
        "W_O is missing from the attention.": _miscount(squares=11, vectors=12),
        "You count one block: multiply by n_layers.": (
            lambda vocabulary, context, n_layers, d_model: _count(vocabulary, context, 1, d_model)
        ),
    },
    cases=[
        Case("a small GPT", 21, 43, 2, 64),
        Case("another", 101, 17, 5, 6),
    ],
    praise="Right: and for GPT-2 small it gives 124,439,808.",
)


# --- Exercise 4: learned by heart -----------------------------------------------------------------


def _by_heart(lengths):
    return len(lengths) * math.log(len(lengths)) / sum(lengths)


check_by_heart = Exercise(
    asks="""`answer(lengths)`: the lowest loss of a model that knows n different texts by heart.

    lengths: how many tokens of each text are predicted -> nats a token.
    """,
    right=_by_heart,
    wrong={
        "Not zero. Whoever knows the texts by heart must still find out which of them this is.": (
            lambda lengths: 0.0
        ),
        "That is what one whole text costs: its tokens share it.": lambda lengths: math.log(
            len(lengths)
        ),
        "Each text costs ln n to find out, and you count it once for all of them.": (
            lambda lengths: math.log(len(lengths)) / sum(lengths)
        ),
        "A mean of means: a token of a short text weighs more than one of a long text. Divide the "
        "whole cost by the number of all tokens.": lambda lengths: (
            sum(math.log(len(lengths)) / n for n in lengths) / len(lengths)
        ),
        "You divide by the longest text: the mean runs over the tokens that there are.": (
            lambda lengths: math.log(len(lengths)) / max(lengths)
        ),
        "You divide by the number of texts, not of tokens.": lambda lengths: (
            math.log(len(lengths)) / len(lengths)
        ),
        "You take ln of the number of tokens. The choice is among the texts.": lambda lengths: (
            len(lengths) * math.log(sum(lengths)) / sum(lengths)
        ),
        "That is bits: use the natural logarithm.": lambda lengths: (
            _by_heart(lengths) / math.log(2)
        ),
        "That is the logarithm to base 10: use the natural one.": lambda lengths: (
            _by_heart(lengths) / math.log(10)
        ),
        "You divide by the shortest text: the mean runs over the tokens that there are.": (
            lambda lengths: math.log(len(lengths)) / min(lengths)
        ),
        "The sign: a surprise is not negative.": lambda lengths: -_by_heart(lengths),
    },
    cases=[
        Case("8 texts", [43, 51, 47, 40, 55, 49, 44, 50]),
        Case("3 texts, one of them long", [2, 5, 101]),
        Case("1 text", [7]),
    ],
    praise="Right: ln n for each text, shared by all the tokens.",
)


# --- 11b: the loss of a fresh model ---------------------------------------------------------------

check_initial_loss = Exercise(
    asks="`answer(vocabulary, d_model, std)`: a fresh, untied model's expected loss, in nats.",
    right=lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std**2 / 2,
    wrong={
        "That holds for equal logits only: the spread of the logits is missing.": (
            lambda vocabulary, d_model, std: math.log(vocabulary)
        ),
        "A factor of one half is missing: ln of the mean of eˢ is half the variance of s.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std**2
        ),
        "You use the standard deviation where the variance belongs: square it.": (
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


# --- 11b: the bigram baseline ---------------------------------------------------------------------


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


def _size_of_the_data(train, held_out, size):
    return _bigram(train, held_out, int(max(train.max(), held_out.max())) + 1)


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


check_bigram_loss = Exercise(
    asks="""`answer(train, held_out, size)`: the loss of an add-one bigram on `held_out`, in nats.

    train, held_out [stories, tokens], ids below `size` -> a number.
    """,
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
        "You count on both sets: what a predictor is judged by must not be in its table.": (
            lambda train, held_out, size: _bigram(torch.cat([train, held_out]), held_out, size)
        ),
        "You average probabilities and take the logarithm at the end. A loss is the mean of the "
        "logarithms.": lambda train, held_out, size: (
            -_rows(_counts(train, size))[held_out[:, :-1], held_out[:, 1:]].mean().log()
        ),
        "You measure on the training stories: measure on the held-out ones.": (
            lambda train, held_out, size: _bigram(train, train, size)
        ),
        "The last token of a story and the first of the next are not a pair: count within "
        "stories.": (_across_stories),
        "You flatten both sets. The last token of a story and the first of the next are not a "
        "pair: count and measure within stories.": lambda train, held_out, size: _across_stories(
            train, held_out.reshape(1, -1), size
        ),
        "1 is added to the counts, but the rows are divided by the old sums, so that they sum to "
        "more than 1.": _old_denominator,
        "That is the unigram: how often a token occurs, whatever came before it.": _unigram,
        "The table is as large as the tokens that occur here. The last ones of the vocabulary do "
        "not, and each has a count of 1 all the same: make it `size` wide.": _size_of_the_data,
        "That is bits: use the natural logarithm.": lambda train, held_out, size: (
            _bigram(train, held_out, size) / math.log(2)
        ),
    },
    cases=[
        Case("40 stories of 5 kinds of tokens", _stories(0, 40, 5), _stories(1, 13, 5), 5),
        Case("40 stories of 11 kinds of tokens", _stories(2, 40, 11), _stories(3, 13, 11), 11),
        Case("stories without the last 3 of 10 tokens", _stories(4, 40, 7), _stories(5, 13, 7), 10),
    ],
    praise="Right: counted on one set, smoothed, and measured on another.",
)


# --- Exercise 5: find the leak --------------------------------------------------------------------


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
check_leaks = Exercise(
    asks="""`answer(model, ids, vocabulary)`: True if a later token changes earlier logits.

    model: ids [batch, tokens] -> logits [batch, tokens, vocabulary].
    """,
    right=_by_cuts(change=lambda ids: torch.randint_like(ids, VOCABULARY)),
    wrong={
        "You find a leak in a model that has none: the positions that you changed are compared, "
        "too, or you changed the past. Compare only the positions before the change.": (
            lambda model, ids, vocabulary: True
        ),
        "You never find a leak. Change tokens, and compare the logits before the change: "
        "do the two texts really differ?": lambda model, ids, vocabulary: False,
        "The other way around: it leaks if the past does *not* stay the same.": _by_cuts(
            verdict=lambda found: not any(found)
        ),
        "You change only the last token (or keep only the last result). A leak from another "
        "place stays hidden: change what comes after t for every t.": _by_cuts(cuts=[TOKENS - 1]),
        "You cut at one place only: a leak within one half stays hidden. Try every t.": _by_cuts(
            cuts=[TOKENS // 2]
        ),
        "You compare only the first position (or return in the first round of the loop); the "
        "others may leak too.": _by_cuts(cuts=[1]),
        "You ask for a leak at every cut: one is enough. Return `False` after the loop, not "
        "within it.": _by_cuts(verdict=all),
        "Your cuts begin too late: what position 0 sees of token 1 stays hidden.": _by_cuts(
            cuts=range(2, TOKENS)
        ),
        "Your cuts end too early: what the last token tells the one before stays hidden.": _by_cuts(
            cuts=range(1, TOKENS - 1)
        ),
        "You look only at neighbors: a token may reach further back than to the one before "
        "it. Change all that comes after t, or compare all that comes before.": _by_cuts(
            changed=lambda t: slice(t, t + 1), compared=lambda t: slice(t - 1, t)
        ),
        "You overwrite the future with token 0. Where there is a 0 already, nothing changes: "
        "draw new tokens at random.": _by_cuts(change=lambda ids: 0 * ids),
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
        _case("a model that leaks faintly only", 109, (3, 4), by=2.0**-17),
    ],
    praise="Right: whatever comes later, the past stays as it was, to the last bit.",
)
