"""Checks for chapter 11, a decoder on its own: losses, wiring, counts, leaks."""

import math

import torch
from torch import Tensor, nn

from transformer_lib.exercises.engine.comparing import close
from transformer_lib.exercises.engine.observing import otherwise
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

# --- Exercise 1: the loss -------------------------------------------------------------------------


def _surprise(logits: Tensor, targets: Tensor) -> Tensor:
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _next_token_loss(logits, ids, real):
    return _surprise(logits[:, :-1], ids[:, 1:])[real[:, 1:]].mean()


def _chances(logits, ids, real):
    """The probability of each real target."""
    return (-_surprise(logits[:, :-1], ids[:, 1:])[real[:, 1:]].double()).exp()


def _another_divisor(result, logits, ids, real):
    total = float(-_chances(logits, ids, real).log().sum())
    count, divisor = int(real[:, 1:].sum()), round(total / float(result)) if result else 0
    # Not more: of many divisors, one fits by chance.
    most = logits.shape[-1] * real.numel()
    fits = 0 < divisor <= most and divisor != count
    fits = fits and close(total / divisor, float(result), (1e-6, 0))
    return (divisor, count) if fits else None


def _over(counts):
    """The mean loss over other targets: counts(real), of real's own shape, says which."""
    return lambda logits, ids, real: _surprise(logits[:, :-1], ids[:, 1:])[
        counts(real)[:, 1:]
    ].mean()


def _of_first_text(real):
    return real & (torch.arange(len(real)) == 0)[:, None]


def _loss_of(shift, counted, surprise, mean, logits, ids, real):
    here, there = shift
    each = surprise(logits[:, here], ids[:, there])
    return mean(each, counted(real)[:, there], real)


def _binary(logits, targets):
    hot = nn.functional.one_hot(targets, logits.shape[-1]).to(logits)
    cross_entropy = nn.functional.binary_cross_entropy_with_logits
    return cross_entropy(logits, hot, reduction="none").sum(-1)


_LOSSES = [
    {
        "": (slice(None, -1), slice(1, None)),
        "nothing is shifted": (slice(None), slice(None)),
        "the first position of all is cut, which is not a shift": (slice(1, None), slice(1, None)),
        "the last position of all is cut, which is not a shift": (slice(-1), slice(-1)),
        "the shift goes the other way": (slice(1, None), slice(None, -1)),
        "the targets are shifted by two": (slice(None, -2), slice(2, None)),
    },
    {
        "": lambda real: real,
        "the padding counts": torch.ones_like,
        "`real` is taken at the position that predicts": lambda real: real.roll(1, 1),
        "only padding counts": lambda real: ~real,
        "the last real token of each text is left out": lambda real: real & real.roll(-1, 1),
    },
    {
        "": _surprise,
        "the softmax is missing": lambda logits, targets: (
            -logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        ),
        "the softmax is taken twice": lambda logits, targets: _surprise(
            logits.softmax(-1), targets
        ),
        "the softmax runs over the tokens of a text": lambda logits, targets: (
            -logits.log_softmax(1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        ),
        "each entry of the vocabulary is a question of its own, yes or no (a binary loss)": _binary,
        "the surprises are in bits": lambda *given: _surprise(*given) / math.log(2),
    },
    {
        "": lambda each, counted, real: each[counted].mean(),
        "each text has a mean of its own, and the mean of these is taken": (
            lambda each, counted, real: ((each * counted).sum(1) / counted.sum(1)).mean()
        ),
        "the sum is taken, not the mean": lambda each, counted, real: each[counted].sum(),
        "what does not count stays in the denominator": lambda each, counted, real: (
            each * counted
        ).mean(),
        "the sum is divided by all real tokens": lambda each, counted, real: (
            each[counted].sum() / real.sum()
        ),
        "the sum is divided by the number of texts": lambda each, counted, real: (
            each[counted].sum() / len(real)
        ),
    },
]


check_next_token_loss = Exercise(
    asks="""`answer(logits, ids, real)`: the mean loss over all real targets, in nats.

    logits [batch, tokens, vocabulary], ids and real [batch, tokens] -> a number.
    """,
    right=_next_token_loss,
    wrong={
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
        "The real tokens of all texts stand in one row before the shift, so that the last of a "
        "text predicts the first of the next. Shift within each text.": lambda logits, ids, real: (
            _surprise(logits[real][:-1], ids[real][1:]).mean()
        ),
        "Only the first text counts: take all of them.": _over(_of_first_text),
        "The padding's logits are set to 0, and its targets count all the same, with ln V each. "
        "Leave these out of the mean.": lambda logits, ids, real: _surprise(
            logits[:, :-1] * real[:, 1:, None], ids[:, 1:]
        ).mean(),
    },
    also={
        "Your result is what comes out if {}.": otherwise(_LOSSES, _loss_of),
        "You divide the sum of all losses by {}: there are {} real targets.": _another_divisor,
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


def _places_last(ids, E, P, blocks, final_norm):
    return _gpt(ids, E, 0 * P, [*blocks, lambda x: x + P[: ids.shape[1]]], final_norm)


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


_STARTS = {
    "": lambda ids, E, P: E[ids] + P[: ids.shape[1]],
    "a token's id picks its row of P": lambda ids, E, P: E[ids] + P[ids],
    "P is left out": lambda ids, E, P: E[ids],
    "every token gets row 0 of P": lambda ids, E, P: E[ids] + P[0],
    "every token gets the same row of P, number ids.shape[1]": lambda ids, E, P: (
        E[ids] + P[ids.shape[1]]
    ),
    "every token gets the last row of P": lambda ids, E, P: E[ids] + P[-1],
    "the last rows of P are taken, not the first": lambda ids, E, P: E[ids] + P[-ids.shape[1] :],
    "all rows of P are added up first": lambda ids, E, P: E[ids] + P.sum(0),
    "P is subtracted": lambda ids, E, P: E[ids] - P[: ids.shape[1]],
    "P is multiplied, not added": lambda ids, E, P: E[ids] * P[: ids.shape[1]],
    "P is added twice": lambda ids, E, P: E[ids] + 2 * P[: ids.shape[1]],
    "E is left out": lambda ids, E, P: P[: ids.shape[1]] + 0 * E[ids],
}
_LOOPS = {
    "": lambda x, blocks: _one_after_another(x, blocks),
    "the first x is added to the blocks' result": lambda x, blocks: (
        x + _one_after_another(x, blocks)
    ),
    "only the last block counts": lambda x, blocks: blocks[-1](x),
    "only the first block counts": lambda x, blocks: blocks[0](x),
    "it is the first block that runs each time": lambda x, blocks: _one_after_another(
        x, [blocks[0]] * len(blocks)
    ),
    "it is the last block that runs each time": lambda x, blocks: _one_after_another(
        x, [blocks[-1]] * len(blocks)
    ),
    "the blocks run in reverse order": lambda x, blocks: _one_after_another(x, blocks[::-1]),
    "the first block is left out": lambda x, blocks: _one_after_another(x, blocks[1:]),
    "the last block is left out": lambda x, blocks: _one_after_another(x, blocks[:-1]),
    "no block counts": lambda x, blocks: x,
    "each block reads the first x, and their results are added up": lambda x, blocks: sum(
        block(x) for block in blocks
    ),
    "the stream is added once more after each block": lambda x, blocks: _one_after_another(
        x, [lambda y, b=block: y + b(y) for block in blocks]
    ),
    "the stream is taken away again after each block": lambda x, blocks: _one_after_another(
        x, [lambda y, b=block: b(y) - y for block in blocks]
    ),
    "blocks run twice": lambda x, blocks: _one_after_another(
        x, [block for block in blocks for _ in range(2)]
    ),
}
_ENDS = {
    "": lambda x, norm, E: norm(x) @ E.T,
    "the final norm is left out": lambda x, norm, E: x @ E.T,
    "another layer norm stands in place of the one that is given": lambda x, norm, E: (
        nn.functional.layer_norm(x, x.shape[-1:]) @ E.T
    ),
    "each vector is divided by its length in place of the norm that is given": (
        lambda x, norm, E: nn.functional.normalize(x, dim=-1) @ E.T
    ),
    "the final norm comes twice": lambda x, norm, E: norm(norm(x)) @ E.T,
    "the norm is taken of the logits": lambda x, norm, E: norm(x @ E.T),
    "the logits are divided by √d_model": lambda x, norm, E: norm(x) @ E.T / E.shape[1] ** 0.5,
    "there is a softmax at the end": lambda x, norm, E: (norm(x) @ E.T).softmax(-1),
    "there is a log_softmax at the end": lambda x, norm, E: (norm(x) @ E.T).log_softmax(-1),
}


def _one_after_another(x, blocks):
    for block in blocks:
        x = block(x)
    return x


def _built(start, loop, end, ids, E, P, blocks, final_norm):
    return end(loop(start(ids, E, P), blocks), final_norm, E)


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
        "Row 0 of P belongs to the first token: you count places from 1.": (
            lambda ids, *rest: _through(ids, *rest, places=torch.arange(ids.shape[1]) + 1)
        ),
        "The rows of P are added after the blocks, which see no places then.": _places_last,
        "The final norm belongs after the last block, not after each of them.": (
            lambda ids, E, P, blocks, final_norm: _through(
                ids, E, P, blocks, nn.Identity(), each=final_norm
            )
        ),
        "The norm comes before the first block. It belongs after the last one.": (
            _norm_at_the_start
        ),
        "The rows of P are added again before each block. Once is enough: the stream carries them "
        "on.": _places_again,
    },
    also={"Your result is what comes out if {}.": otherwise([_STARTS, _LOOPS, _ENDS], _built)},
    cases=[
        Case("one block, and ids that are 0, 1, 2", torch.arange(3)[None], *_model(5, 7, 4, 1, 20)),
        Case("one block", torch.tensor([[4, 0, 2, 4], [1, 3, 3, 0]]), *_model(5, 7, 6, 1, 30)),
        Case("three blocks", torch.tensor([[10, 3, 3, 7, 0]]), *_model(11, 13, 6, 3, 40)),
    ],
    axes="batch tokens vocabulary",
    praise="Right: a row of P for each place, and each block reads what the one before has left.",
)


# --- Exercise 3: count the parameters -------------------------------------------------------------


def size_of_gpt2(vocabulary, context, n_layers, d_model):
    block = 12 * d_model**2 + 13 * d_model
    return (vocabulary + context) * d_model + n_layers * block + 2 * d_model


def _is_float(result, *_):
    return isinstance(result, float) or (isinstance(result, Tensor) and result.is_floating_point())


check_count = Exercise(
    asks="`answer(vocabulary, context, n_layers, d_model)`: the number of parameters of a GPT-2.",
    right=size_of_gpt2,
    wrong={
        "You count one block: multiply by n_layers.": (
            lambda vocabulary, context, n_layers, d_model: size_of_gpt2(
                vocabulary, context, 1, d_model
            )
        ),
    },
    also={
        "A count is a whole number, and yours is a float: use `//`, or multiply first.": _is_float,
    },
    cases=[
        Case("a small GPT", 211, 97, 3, 64),
        Case("another", 101, 17, 5, 6),
    ],
    seconds=30.0,  # a first model on the device "meta" makes PyTorch import much of itself
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
        "ln n is the cost of one whole text: its tokens share it.": lambda lengths: math.log(
            len(lengths)
        ),
        "You divide by the number of texts, not of tokens.": lambda lengths: (
            math.log(len(lengths)) / len(lengths)
        ),
        "You take ln of the number of tokens. The choice is among the texts.": lambda lengths: (
            len(lengths) * math.log(sum(lengths)) / sum(lengths)
        ),
        "A mean of means: a token of a short text weighs more than one of a long text. Divide the "
        "whole cost by the number of all tokens.": lambda lengths: (
            sum(math.log(len(lengths)) / n for n in lengths) / len(lengths)
        ),
        "You divide the number of texts by the number of tokens. What a choice among n costs is "
        "ln n.": lambda lengths: len(lengths) / sum(lengths),
        "You take the logarithm of each length. What must be found out is which text it is: ln n, "
        "n texts, however long.": lambda lengths: sum(map(math.log, lengths)) / sum(lengths),
    },
    cases=[
        Case("8 texts", [43, 51, 47, 40, 55, 49, 44, 50]),
        Case("3 texts, one of them long", [2, 5, 101]),
        Case("1 text", [7]),
        Case("5 texts, some of the same length", [7, 5, 7, 7, 11], edge=True),
    ],
    praise="Right: ln n for each text, shared by all the tokens.",
)


# --- 11b: the loss of a fresh model ---------------------------------------------------------------


def _other_surplus(result, vocabulary, d_model, std):
    """What is added to ln V: a number times powers of d_model and of std."""
    if close(float(result), math.log(vocabulary) + d_model * std**2 / 2):
        return None
    rest = float(result) - math.log(vocabulary)
    for d_power in (0, 0.5, 1, 2, -0.5, -1):
        for std_power in (0, 0.5, 1, 2):
            factor = rest / (d_model**d_power * std**std_power)
            for known in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0):
                surplus = known * d_model**d_power * std**std_power
                if math.isclose(abs(factor), known, rel_tol=1e-5) and surplus > 1e-2:
                    return factor, d_power, std_power
    return None


check_initial_loss = Exercise(
    asks="`answer(vocabulary, d_model, std)`: a fresh, untied model's expected loss, in nats.",
    right=lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std**2 / 2,
    wrong={
        "That is ln V, for equal logits: their spread is missing, or too small to show. Does it "
        "stand inside the logarithm, or is it divided once too often?": (
            lambda vocabulary, d_model, std: math.log(vocabulary)
        ),
        "That is half the variance of a logit, which is added to ln V: the loss of equal logits is "
        "missing.": lambda vocabulary, d_model, std: d_model * std**2 / 2,
        "You multiply ln V by what must be added to it: the logarithm of a product is a sum.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) * d_model * std**2 / 2
        ),
        "That is V times the mean of e to the power of a logit: its logarithm is missing.": (
            lambda vocabulary, d_model, std: vocabulary * math.exp(d_model * std**2 / 2)
        ),
        "The logarithm of the vocabulary is missing: equal logits cost ln V, not V.": (
            lambda vocabulary, d_model, std: vocabulary + d_model * std**2 / 2
        ),
    },
    also={
        "You add {:.4g} · d_model^{:g} · std^{:g} to ln V. Half of a logit's variance belongs "
        "there: d_model products, each with the variance of one weight.": _other_surplus,
    },
    cases=[
        Case("GPT-2 small", 50_257, 768, 0.02),
        Case("a small model that starts a little too large", 997, 61, 0.1),
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


def _across_stories(train, held_out, size):
    return _bigram(train.reshape(1, -1), held_out, size)


def _without_unseen(train, held_out, size):
    surprises = -_rows(_counts(train, size, start=0.0))[held_out[:, :-1], held_out[:, 1:]].log()
    return surprises[surprises.isfinite()].mean()


def _all_occurrences(train, held_out, size):
    """Divided by how often a token occurs, at the end of a story as well."""
    often = size + torch.bincount(train.flatten(), minlength=size)
    return _loss(_counts(train, size) / often[:, None], held_out)


def _add_all(pairs, size):
    counts = torch.zeros(size, size, dtype=torch.float64)
    for one, other in pairs:
        counts.index_put_((one, other), torch.ones((), dtype=torch.float64), accumulate=True)
    return counts


_BIGRAMS = [
    {
        "": lambda train: [(train[:, :-1], train[:, 1:])],
        "only the first pair of each story is counted": lambda train: [(train[:, 0], train[:, 1])],
        "only the last pair of each story is counted": lambda train: [(train[:, -2], train[:, -1])],
        "the first pair of each story is not counted": lambda train: [
            (train[:, 1:-1], train[:, 2:])
        ],
        "the last pair of each story is not counted": lambda train: [
            (train[:, :-2], train[:, 1:-1])
        ],
        "only the first story is counted": lambda train: [(train[0, :-1], train[0, 1:])],
        "only the last story is counted": lambda train: [(train[-1, :-1], train[-1, 1:])],
        "each pair is counted in both directions": lambda train: [
            (train[:, :-1], train[:, 1:]),
            (train[:, 1:], train[:, :-1]),
        ],
        "a pair is a token and the next but one": lambda train: [(train[:, :-2], train[:, 2:])],
        "the last token of a story and the first of the next are a pair": lambda train: [
            (train.flatten()[:-1], train.flatten()[1:])
        ],
        "each pair is counted backwards": lambda train: [(train[:, 1:], train[:, :-1])],
    },
    {
        "": lambda counts: counts + 1,
        "each pair counts once, however often it occurs": lambda counts: counts.clamp(max=1) + 1,
        "only counts of 0 are raised to 1": lambda counts: counts.clamp(min=1),
        "every count starts at 2": lambda counts: counts + 2,
    },
    {
        "": _rows,
        "the sums of the rows divide the columns (`keepdim=True` is missing)": lambda counts: (
            counts / counts.sum(1)
        ),
        "each column is divided by its own sum": lambda counts: counts / counts.sum(0),
        "all is divided by the sum of the whole table": lambda counts: counts / counts.sum(),
        "each row is divided by its largest number": lambda counts: (
            counts / counts.amax(1, keepdim=True)
        ),
        "the softmax is taken of the counts": lambda counts: counts.softmax(1),
    },
    {
        "": _loss,
        "the pair is looked up the wrong way around": lambda table, held_out: _loss(
            table.T, held_out
        ),
        "e is taken to the power of each story's loss": lambda table, held_out: (
            (-table[held_out[:, :-1], held_out[:, 1:]].log().mean(1)).exp().mean()
        ),
        "the result is in bits": lambda table, held_out: _loss(table, held_out) / math.log(2),
        "the probabilities are averaged before the logarithm": lambda table, held_out: (
            -table[held_out[:, :-1], held_out[:, 1:]].mean().log()
        ),
        "the first pair of each story is not measured": lambda table, held_out: _loss(
            table, held_out[:, 1:]
        ),
        "only the first story is measured": lambda table, held_out: _loss(table, held_out[:1]),
    },
]


def _bigram_of(pairs, smoothed, divided, measured, train, held_out, size):
    return measured(divided(smoothed(_add_all(pairs(train), size))), held_out)


def _unigram(train, held_out, size):
    counts = 1 + torch.bincount(train[:, 1:].flatten(), minlength=size).double()
    return -(counts / counts.sum())[held_out[:, 1:]].log().mean()


def _stories(seed: int, rows: int, size: int) -> Tensor:
    """Texts in which some tokens prefer some followers, each beginning with token 0."""
    source = torch.Generator().manual_seed(seed)
    chances = randn(size, size, seed=size).mul(1.5).softmax(-1)
    # By hand, since `multinomial` draws other numbers on other processors.
    up_to = chances.cumsum(-1)[:, :-1]
    columns = [torch.zeros(rows, dtype=torch.int64)]
    for _ in range(6):
        drawn = torch.rand(rows, 1, generator=source)
        columns.append((drawn > up_to[columns[-1]]).sum(-1))
    return torch.stack(columns, dim=1)


check_bigram_loss = Exercise(
    asks="""`answer(train, held_out, size)`: the loss of an add-one bigram on `held_out`, in nats.

    train, held_out [stories, tokens], ids below `size` -> a number.
    """,
    right=_bigram,
    wrong={
        "You count in both sets: what a predictor is judged by must not be in its table.": (
            lambda train, held_out, size: _bigram(torch.cat([train, held_out]), held_out, size)
        ),
        "You flatten both sets. The last token of a story and the first of the next are not a "
        "pair: count and measure within stories.": lambda train, held_out, size: _across_stories(
            train, held_out.reshape(1, -1), size
        ),
        "1 is added to the count of each of the `size` tokens, so that the sum of a row grows by "
        "`size`, not by 1.": lambda train, held_out, size: _loss(
            _counts(train, size) / (_counts(train, size, start=0.0).sum(1, keepdim=True) + 1),
            held_out,
        ),
        "That is the unigram: how often a token occurs, whatever came before it.": _unigram,
        "You divide by how often a token occurs. At the end of a story nothing follows it: divide "
        "each row by its own sum.": _all_occurrences,
        "1 is added to the probabilities: add it to the counts, before you divide.": (
            lambda train, held_out, size: _loss(
                1 + _rows(_counts(train, size, start=0.0)).nan_to_num(), held_out
            )
        ),
        "Pairs that training has never seen are left out. They count: start every count at 1.": (
            _without_unseen
        ),
    },
    also={
        "Your result is what comes out if {}.": otherwise(_BIGRAMS, _bigram_of),
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

    All numbers are multiples of 1/1024, so that their sums are exact, in any order; or whole and
    far from 0, so that rounding and tolerances hide what is faint.
    """

    def __init__(
        self,
        sees: Tensor,
        vocabulary: int,
        quiet: int = 0,
        *,
        whole: bool = False,
        even: bool = False,
    ):
        super().__init__()
        self.register_buffer("sees", sees)
        table = randn(vocabulary, vocabulary, seed=7)
        table = (4 * table).round() + 64 if whole else (1024 * table).round() / 1024
        self.register_buffer("table", table)
        # What a later token tells an earlier position: the first `quiet` tokens tell the same.
        told = table.clone()
        told[:quiet] = table[0]
        if even:  # the same for all words, which a softmax does not see
            told = told[:, :1].expand_as(told).clone()
        self.register_buffer("told", told)

    def forward(self, ids):
        context, vocabulary = len(self.sees), len(self.table)
        if ids.shape[1] > context:
            raise ValueError(f"the model reads {context} tokens: change some of them, add none")
        if ids.min() < 0 or ids.max() >= vocabulary:
            raise ValueError(f"ids run from 0 to {vocabulary - 1}")
        sees = self.sees[: ids.shape[1], : ids.shape[1]]
        return sees.tril() @ self.table[ids] + sees.triu(1) @ self.told[ids]


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
    name: str,
    seed: int,
    *places: tuple[int, int],
    by: float = 1.0,
    token: int | None = None,
    whole: bool = False,
) -> Case:
    """A model in which, besides what is causal, query q sees key k at each place (q, k)."""
    source, sees = torch.Generator().manual_seed(seed), CAUSAL.clone()
    ids = torch.randint(VOCABULARY, (3, TOKENS), generator=source)
    for query, key in places:
        sees[query, key] = by
    if token is not None:  # where the leak comes from
        ids[:, places[0][1]] = token
    return Case(name, _Reader(sees, VOCABULARY, whole=whole), ids, VOCABULARY)


_ALL = [(query, key) for query in range(TOKENS) for key in range(query + 1, TOKENS)]
QUIET = 26


def _case_of_others() -> Case:
    """A model that tells the future's tokens apart only if they are larger than all in its text."""
    source = torch.Generator().manual_seed(110)
    ids = torch.randint(QUIET - 3, QUIET, (3, TOKENS), generator=source)
    model = _Reader(torch.ones(TOKENS, TOKENS), VOCABULARY, QUIET)
    return Case("a model that tells only larger tokens apart", model, ids, VOCABULARY)


def _case_of_even_logits() -> Case:
    """A model that adds one number to all logits of a position, and tells the future by it."""
    ids = torch.randint(VOCABULARY, (3, TOKENS), generator=torch.Generator().manual_seed(112))
    model = _Reader(torch.ones(TOKENS, TOKENS), VOCABULARY, even=True)
    return Case("a model that leaks by the size of its logits", model, ids, VOCABULARY, edge=True)


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
        "You overwrite the future with token 0. Where there is a 0 already, nothing changes: "
        "draw new tokens at random.": _by_cuts(change=lambda ids: 0 * ids),
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
        _case("a model of whole logits that leaks faintly", 111, (3, 4), by=2.0**-16, whole=True),
        _case_of_others(),
        _case_of_even_logits(),
    ],
    praise="Right: whatever comes later, the past stays as it was, to the last bit.",
)
