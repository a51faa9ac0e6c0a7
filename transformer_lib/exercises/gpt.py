"""Checks for chapter 11, a decoder on its own: losses, wiring, counts, leaks."""

import math

import torch
from torch import Tensor, nn

from transformer_lib.exercises.engine.building import otherwise
from transformer_lib.exercises.engine.comparing import close
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


def _chances(logits, ids, real):
    """The probability of each real target."""
    return (-_surprise(logits[:, :-1], ids[:, 1:])[real[:, 1:]].double()).exp()


def _kept_from_zero(result, logits, ids, real):
    if close(result, right := _next_token_loss(logits, ids, real)):
        return None
    chances = _chances(logits, ids, real)
    kept = (change(chances, 10.0**-n) for n in range(3, 17) for change in (torch.add, torch.clamp))
    losses = [-x.log().mean() for x in kept]
    return any(close(result, loss) and not close(loss, right) for loss in losses)


def _another_divisor(result, logits, ids, real):
    total = float(-_chances(logits, ids, real).log().sum())
    count, divisor = int(real[:, 1:].sum()), round(total / float(result)) if result else 0
    fits = 0 < divisor != count and close(total / divisor, float(result))
    return (divisor, count) if fits else None


def _over(counts):
    """The mean loss over other targets: counts(real), of real's own shape, says which."""
    return lambda logits, ids, real: _surprise(logits[:, :-1], ids[:, 1:])[
        counts(real)[:, 1:]
    ].mean()


def _of_first_text(real):
    return real & (torch.arange(len(real)) == 0)[:, None]


def _divided_by_all(logits, ids, real):
    each = _surprise(logits[:, :-1], ids[:, 1:]) * real[:, 1:]
    return each.mean()


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
        "it is shifted by two": (slice(None, -2), slice(2, None)),
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
        "You average probabilities and take the logarithm at the end. A loss is the mean of the "
        "logarithms.": lambda *given: -_chances(*given).mean().log(),
        "You average probabilities: a loss is the mean of their negative logarithms.": (
            lambda *given: _chances(*given).mean()
        ),
        "That is the perplexity, e to the power of the loss.": lambda *given: _next_token_loss(
            *given
        ).exp(),
        "All texts are cut to the length of the shortest: the longer ones go on, and `real` says "
        "how far.": _over(lambda real: real & real.all(0)),
        "The real tokens of all texts stand in one row before the shift, so that the last of a "
        "text predicts the first of the next. Shift within each text.": lambda logits, ids, real: (
            _surprise(logits[real][:-1], ids[real][1:]).mean()
        ),
        "Only the first text counts: take all of them.": _over(_of_first_text),
        "The last real token of each text is left out: it is predicted, by the one before it.": (
            _over(lambda real: real & nn.functional.pad(real[:, 1:], (0, 1)))
        ),
        "Token 1 of each text is left out. It is predicted, from token 0: only token 0 is not.": (
            _over(lambda real: real & (torch.arange(real.shape[1]) > 1))
        ),
        "Only the last real token of each text counts: every token but the first is predicted.": (
            _over(lambda real: real & ~nn.functional.pad(real[:, 1:], (0, 1)))
        ),
        "The padding's logits are set to 0, and its targets count all the same, with ln V each. "
        "Leave these out of the mean.": lambda logits, ids, real: _surprise(
            logits[:, :-1] * real[:, 1:, None], ids[:, 1:]
        ).mean(),
        "The padding counts, and the real tokens do not: `real` is taken the wrong way around.": (
            _over(lambda real: ~real)
        ),
    },
    also={
        "The probabilities are kept from 0, by a small number or a clamp, before the logarithm. It "
        "hides the largest surprises: take the logarithm of the softmax in one step, "
        "log_softmax.": _kept_from_zero,
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


def _only_last_block(ids, E, P, blocks, final_norm):
    return _gpt(ids, E, P, blocks[-1:], final_norm)


def _without_norm(ids, E, P, blocks, final_norm):
    return _gpt(ids, E, P, blocks, nn.Identity())


def _sum_of_blocks(ids, E, P, blocks, final_norm):
    x = E[ids] + P[: ids.shape[1]]
    return final_norm(sum(block(x) for block in blocks)) @ E.T


def _larger_embeddings(ids, E, P, blocks, final_norm):
    def larger(x):
        return x + (E.shape[1] ** 0.5 - 1) * E[ids]

    return _gpt(ids, E, P, [larger, *blocks], final_norm)


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
    "the stream is added once more behind each block": lambda x, blocks: _one_after_another(
        x, [lambda y, b=block: y + b(y) for block in blocks]
    ),
    "the stream is taken away again behind each block": lambda x, blocks: _one_after_another(
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
        "`len(ids)` is the number of texts. P gives a row to each token: count ids.shape[1].": (
            lambda ids, *rest: _through(ids, *rest, places=torch.arange(len(ids)))
        ),
        "The rows of P come in reverse order: row 0 belongs to the first token.": (
            lambda ids, *rest: _through(ids, *rest, places=torch.arange(ids.shape[1]).flip(0))
        ),
        "Each block gets the first x, and you add up what they return. The second block reads what "
        "the first has written.": _sum_of_blocks,
        "The rows of P are added behind the blocks, which see no places then.": _places_last,
        "The first block is left out.": lambda ids, E, P, blocks, final_norm: _gpt(
            ids, E, P, blocks[1:], final_norm
        ),
        "The last block is left out.": lambda ids, E, P, blocks, final_norm: _gpt(
            ids, E, P, blocks[:-1], final_norm
        ),
        "The rows of E are multiplied by √d_model, as the first Transformer did. Here they are "
        "added as they are.": _larger_embeddings,
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
        "These are logarithms of probabilities. Asked for are logits, before any softmax.": (
            lambda *given: _gpt(*given).log_softmax(-1)
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


_PARTS = [
    {
        "": lambda v, c, d, n: (v + c) * d,
        "the table of tokens is left out": lambda v, c, d, n: c * d,
        "the table of places is left out": lambda v, c, d, n: v * d,
        "both tables are left out": lambda v, c, d, n: 0,
        "the two tables are multiplied": lambda v, c, d, n: v * c * d,
        "the two tables count once for each block": lambda v, c, d, n: n * (v + c) * d,
        "the tables are not multiplied by d_model": lambda v, c, d, n: v + c,
        "the table of tokens is not multiplied by d_model": lambda v, c, d, n: v + c * d,
        "the table of places is not multiplied by d_model": lambda v, c, d, n: v * d + c,
        "the output is counted once more": lambda v, c, d, n: (2 * v + c) * d,
        "the output is counted once more, with a bias": lambda v, c, d, n: (2 * v + c) * d + v,
    },
    {
        "": lambda d, n: n * (4 * d * d + 4 * d),
        "attention is left out": lambda d, n: 0,
        "attention counts once, not in each block": lambda d, n: 4 * d * d + 4 * d,
        "attention has three products, not four": lambda d, n: n * (3 * d * d + 3 * d),
        "attention has one product, not four": lambda d, n: n * (d * d + d),
    },
    {
        "": lambda d, n: n * (8 * d * d + 5 * d),
        "the feed-forward layer is left out": lambda d, n: 0,
        "the feed-forward layer counts once, not in each block": lambda d, n: 8 * d * d + 5 * d,
        "the feed-forward layer has one product, not two": lambda d, n: n * (4 * d * d + 4 * d),
        "the feed-forward layer has no biases": lambda d, n: n * 8 * d * d,
        "the feed-forward layer is d_model wide, not four times that": lambda d, n: (
            n * (2 * d * d + 2 * d)
        ),
        "the way back of the feed-forward layer is d_model × d_model": lambda d, n: (
            n * (5 * d * d + 5 * d)
        ),
    },
    {
        "": lambda d, n: n * 4 * d,
        "the norms of the blocks, or attention's biases, are left out": lambda d, n: 0,
        "the norms of the blocks count once, not in each": lambda d, n: 4 * d,
        "a block has one norm, not two": lambda d, n: n * 2 * d,
    },
    {
        "": lambda d, n: 2 * d,
        "the final norm is left out": lambda d, n: 0,
        "the final norm counts once for each block": lambda d, n: n * 2 * d,
    },
]


def _sum_of_parts(tables, attention, feed_forward, norms, final, v, c, n, d):
    return tables(v, c, d, n) + sum(part(d, n) for part in (attention, feed_forward, norms, final))


def _of_a_block(result, vocabulary, context, n_layers, d_model):
    """How many times d_model² and d_model a block has, if all else is counted right."""
    off, rest = divmod(
        int(result) - _count(vocabulary, context, n_layers, d_model), n_layers * d_model
    )
    squares, vectors = divmod(off + d_model // 2, d_model)
    vectors -= d_model // 2
    if rest or not off or abs(squares) > 30 or abs(vectors) > 13:
        return None
    return 12 + int(squares), 13 + int(vectors)


def _is_float(result, *_):
    return isinstance(result, float) or (isinstance(result, Tensor) and result.is_floating_point())


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
        "In each block 4 · d_model are missing: its two norms, each with a gain and a bias, or the "
        "biases of attention's four products, or that of the feed-forward layer's first product, "
        "which is 4 · d_model wide.": _miscount(vectors=9),
        "In each block 3 · d_model are missing: the biases of queries, keys and values, or three "
        "quarters of the first bias of the feed-forward layer, which is 4 · d_model wide.": (
            _miscount(vectors=10)
        ),
        "In each block d_model is missing: the bias of attention's output, or of the feed-forward "
        "layer's second product.": _miscount(vectors=12),
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
        "The final norm is counted in each block: it comes once, behind the last.": (
            lambda vocabulary, context, n_layers, d_model: _count(
                vocabulary, context, n_layers, d_model, final=2 * n_layers
            )
        ),
        "The two tables are counted once for each block: there is one of each in the model.": (
            lambda vocabulary, context, n_layers, d_model: _count(
                n_layers * vocabulary, n_layers * context, n_layers, d_model
            )
        ),
        "Everything is multiplied by n_layers: the tables and the final norm come once.": (
            lambda vocabulary, context, n_layers, d_model: (
                n_layers * _count(vocabulary, context, 1, d_model)
            )
        ),
        "The table of tokens is missing: vocabulary × d_model.": (
            lambda vocabulary, context, n_layers, d_model: _count(0, context, n_layers, d_model)
        ),
        "The output has a bias for each token in your count: tied to the table, it has none.": (
            lambda vocabulary, context, n_layers, d_model: (
                vocabulary + _count(vocabulary, context, n_layers, d_model)
            )
        ),
        "Attention has four products, for queries, keys, values and the output: you count one.": (
            _miscount(squares=9, vectors=10)
        ),
    },
    also={
        "A count is a whole number, and yours is a float: use `//`, or multiply first.": _is_float,
        "Your number is what comes out if {}.": otherwise(_PARTS, _sum_of_parts),
        "You count {} · d_model² + {} · d_model in each block. Attention has 4 · d_model² and 4 · "
        "d_model, for its biases; the feed-forward layer 8 · d_model² and 5 · d_model; two norms 4 "
        "· d_model.": _of_a_block,
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


def _as_if_so_many(result, lengths):
    exponent = float(result) * sum(lengths) / len(lengths)
    texts = round(math.exp(exponent)) if 0 < exponent < 20 else 0
    fits = texts > 1 and close(float(result), math.log(texts) * len(lengths) / sum(lengths))
    return (texts, len(lengths)) if fits and texts != len(lengths) else None


def _one_text(result, lengths):
    divisor = math.log(len(lengths)) / float(result) if result else 0.0
    for length in lengths:
        if close(divisor, float(length)):
            return length, f"{sum(lengths) / len(lengths):.4g}"
    return None


def _other_mean(result, lengths):
    right = _by_heart(lengths)
    if not result or not right or close(float(result), right):
        return None
    return (
        f"{math.log(len(lengths)) / float(result):.4g}",
        f"{sum(lengths) / len(lengths):.4g}",
    )


def _by_their_lengths(lengths):
    shares = [length / sum(lengths) for length in lengths]
    return -sum(p * math.log(p) for p in shares) * len(lengths) / sum(lengths)


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
        "You divide the number of texts by the number of tokens. What a choice among n costs is "
        "ln n.": lambda lengths: len(lengths) / sum(lengths),
        "You divide by the number of tokens once for each text and once more for all: once is "
        "enough.": lambda lengths: _by_heart(lengths) * len(lengths) / sum(lengths),
        "You multiply by the number of tokens. They share the cost: divide.": lambda lengths: (
            math.log(len(lengths)) * sum(lengths) / len(lengths)
        ),
        "You take the logarithm of each length. What must be found out is which text it is: ln n, "
        "n texts, however long.": lambda lengths: sum(map(math.log, lengths)) / sum(lengths),
        "That is the perplexity, e to the power of what is asked.": lambda lengths: math.exp(
            _by_heart(lengths)
        ),
        "A text is as probable as it is long in your sum. Each is as probable as the others, and "
        "costs ln n.": _by_their_lengths,
        "That is what all texts cost together: their tokens share it.": lambda lengths: (
            len(lengths) * math.log(len(lengths))
        ),
    },
    also={
        "You let each text cost ln {}, as if there were so many to choose from: there are {}.": (
            _as_if_so_many
        ),
        "You divide by the length of one text, of {} tokens: they have {} in the mean.": _one_text,
        "Your result would be right for texts of {} tokens in the mean: these have {}.": (
            _other_mean
        ),
    },
    cases=[
        Case("8 texts", [43, 51, 47, 40, 55, 49, 44, 50]),
        Case("3 texts, one of them long", [2, 5, 101]),
        Case("1 text", [7]),
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
        "A factor of one half is missing: ln of the mean of eˢ is half the variance of s.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std**2
        ),
        "The root of d_model is too small: a logit sums d_model products, and their variances "
        "add up.": lambda vocabulary, d_model, std: (
            math.log(vocabulary) + d_model**0.5 * std**2 / 2
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
        "You take the logarithm to base 10: use the natural one.": (
            lambda vocabulary, d_model, std: math.log10(vocabulary) + d_model * std**2 / 2
        ),
        "That is half the variance of a logit, what is added to ln V: the loss of equal logits is "
        "missing.": lambda vocabulary, d_model, std: d_model * std**2 / 2,
        "You write 0.02 into the formula: take `std`.": lambda vocabulary, d_model, std: (
            math.log(vocabulary) + d_model * 0.02**2 / 2
        ),
        "`std` must be squared: a logit sums d_model products, and variances add up.": (
            lambda vocabulary, d_model, std: math.log(vocabulary) + d_model * std / 2
        ),
        "You add the mean of e to the power of a logit: its logarithm belongs there, which is half "
        "the variance.": lambda vocabulary, d_model, std: (
            math.log(vocabulary) + math.exp(d_model * std**2 / 2)
        ),
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


def _smallest_one(train, held_out, size):
    return _loss(_rows(_counts(train, size, start=0.0).clamp(min=1)), held_out)


def _each_pair_once(train, held_out, size):
    table, pairs = _rows(_counts(train, size)), _counts(held_out, size, start=0.0) > 0
    return -table[pairs].log().mean()


def _without_unseen(train, held_out, size):
    surprises = -_rows(_counts(train, size, start=0.0))[held_out[:, :-1], held_out[:, 1:]].log()
    return surprises[surprises.isfinite()].mean()


def _all_occurrences(train, held_out, size):
    """Divided by how often a token occurs, at the end of a story as well."""
    often = size + torch.bincount(train.flatten(), minlength=size)
    return _loss(_counts(train, size) / often[:, None], held_out)


def _other_start(result, train, held_out, size):
    for start in (1e-3, 0.01, 0.1, 0.5, 2.0, 1 / size):
        if close(result, _loss(_rows(_counts(train, size, start)), held_out)):
            return (start,)
    return None


def _small_chance(result, train, held_out, size):
    table = _rows(_counts(train, size, start=0.0)).nan_to_num()
    smalls = [10.0**-n for n in range(3, 31)]
    kept = (change(table, small) for small in smalls for change in (torch.add, torch.clamp))
    return any(close(result, _loss(x, held_out)) for x in kept)


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
        "1 is added to the count of each of the `size` tokens, so that the sum of a row grows by "
        "`size`, not by 1.": lambda train, held_out, size: _loss(
            _counts(train, size) / (_counts(train, size, start=0.0).sum(1, keepdim=True) + 1),
            held_out,
        ),
        "That is the unigram: how often a token occurs, whatever came before it.": _unigram,
        "The table is as large as the tokens that occur here. The last ones of the vocabulary do "
        "not, and each has a count of 1 all the same: make it `size` wide.": _size_of_the_data,
        "That is bits: use the natural logarithm.": lambda train, held_out, size: (
            _bigram(train, held_out, size) / math.log(2)
        ),
        "Only counts of 0 are raised to 1. Every count starts at 1: what occurs once counts "
        "2.": _smallest_one,
        "You divide by how often a token occurs. At the end of a story nothing follows it: divide "
        "each row by its own sum.": _all_occurrences,
        "The pair is looked up the wrong way around: the row is the token before, the column the "
        "one after.": lambda train, held_out, size: _loss(_rows(_counts(train, size)).T, held_out),
        "1 is added to the probabilities: add it to the counts, before you divide.": (
            lambda train, held_out, size: _loss(
                1 + _rows(_counts(train, size, start=0.0)).nan_to_num(), held_out
            )
        ),
        "That is the loss of a whole story: divide by the number of its pairs.": (
            lambda train, held_out, size: _bigram(train, held_out, size) * (held_out.shape[1] - 1)
        ),
        "You divide by the number of tokens. The first of a story is not predicted: divide by the "
        "number of pairs.": lambda train, held_out, size: (
            _bigram(train, held_out, size) * (1 - 1 / held_out.shape[1])
        ),
        "That is the sum of all losses: take their mean.": lambda train, held_out, size: (
            _bigram(train, held_out, size) * held_out[:, 1:].numel()
        ),
        "Each pair counts once, however often it occurs in `held_out`: take the mean over all "
        "places.": _each_pair_once,
        "You take a softmax of the counts. Counts become probabilities by a division by their "
        "sum.": lambda train, held_out, size: (
            -_counts(train, size).log_softmax(1)[held_out[:, :-1], held_out[:, 1:]].mean()
        ),
        "Pairs that training has never seen are left out. They count: start every count at 1.": (
            _without_unseen
        ),
        "Every token has the same probability in your table: nothing is counted.": (
            lambda train, held_out, size: math.log(size)
        ),
    },
    also={
        "Your result is what comes out if {}.": otherwise(_BIGRAMS, _bigram_of),
        "Every count starts at {:.3g} in your table: start at 1.": _other_start,
        "A pair that training has never seen gets a tiny probability in your table, and almost the "
        "whole loss is made of these. Start every count at 1, before you divide.": _small_chance,
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

    All numbers are multiples of 1/1024, so that their sums are exact, in any order; or whole, so
    that rounding hides what is faint.
    """

    def __init__(self, sees: Tensor, vocabulary: int, quiet: int = 0, *, whole: bool = False):
        super().__init__()
        self.register_buffer("sees", sees)
        table = randn(vocabulary, vocabulary, seed=7)
        table = (4 * table).round() if whole else (1024 * table).round() / 1024
        self.register_buffer("table", table)
        # What a later token tells an earlier position: the first `quiet` tokens tell the same.
        told = table.clone()
        told[:quiet] = table[0]
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


def _missed_without_mask(result, model, ids, vocabulary):
    return bool(model.sees.all()) and torch.equal(model.told, model.table) and not result


def _missed_faint(result, model, ids, vocabulary):
    return 0 < model.sees.triu(1).max() < 0.01 and not result


def _missed(result, model, ids, vocabulary):
    places = model.sees.triu(1).nonzero().tolist()
    return tuple(places[0]) if places and not result else None


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
        "No token that you put in is larger than those in `ids`, and a model may tell only others "
        "apart: draw from the whole vocabulary.": _by_cuts(change=lambda ids: ids - 1),
    },
    also={
        "You miss that a model without a mask leaks. It adds up the tokens that it sees: do your "
        "two texts hold the same tokens, in another order?": _missed_without_mask,
        "The leak that you miss is faint: compare the logits themselves to the last bit, and round "
        "nothing.": _missed_faint,
        "You miss a leak: position {} sees token {}. A test that changes this token to others, and "
        "looks at the logits of that position, finds it.": _missed,
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
        _case("a model of whole logits that leaks faintly", 111, (3, 4), by=2.0**-19, whole=True),
        _case_of_others(),
    ],
    praise="Right: whatever comes later, the past stays as it was, to the last bit.",
)
