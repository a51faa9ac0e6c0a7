"""Checks for chapter 11, A decoder on its own: the loss, the block, the sizes, the first loss."""

import math

import torch
from torch import Tensor, nn

from .language_models import check_bigram_loss, check_initial_loss, check_leaks
from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = [
    "check_bigram_loss",
    "check_block",
    "check_count",
    "check_initial_loss",
    "check_leaks",
    "check_next_token_loss",
]

# --- Exercise 1: the loss -----------------------------------------------------------------------


def _surprise(logits: Tensor, targets: Tensor) -> Tensor:
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _next_token_loss(logits, ids, real):
    return _surprise(logits[:, :-1], ids[:, 1:])[real[:, 1:]].mean()


def _mean_of_rows(logits, ids, real):
    each = _surprise(logits[:, :-1], ids[:, 1:]) * real[:, 1:]
    return (each.sum(1) / real[:, 1:].sum(1)).mean()


def _divided_by_all(logits, ids, real):
    each = _surprise(logits[:, :-1], ids[:, 1:]) * real[:, 1:]
    return each.mean()


NEXT_TOKEN_LOSS = Exercise(
    right=_next_token_loss,
    wrong={
        "No shift: the logits at position t are compared with token t, which the model has just "
        "read. They predict token t + 1.": lambda logits, ids, real: _surprise(logits, ids)[
            real
        ].mean(),
        "You cut the first position of everything. That is no shift: the logits at position t are "
        "still compared with token t. Cut the last of the logits.": (
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
    ],
    praise="Right: one step apart, and one mean over all tokens that exist.",
)


def check_next_token_loss(answer) -> Verdict:
    """`answer(logits, ids, real)`: the mean loss over all real targets, in nats.

    logits [batch, tokens, vocabulary], ids and real [batch, tokens] -> a number.
    """
    return NEXT_TOKEN_LOSS.check(answer)


# --- Exercise 2: the block ----------------------------------------------------------------------


class _Mix(nn.Module):
    """Stands for attention: each token becomes an average of all before it."""

    def forward(self, x):
        before = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
        return (before / before.sum(1, keepdim=True)) @ x


class _Think(nn.Module):
    """Stands for the feed-forward layer."""

    def forward(self, x):
        return torch.tanh(2 * x)


class _Norm(nn.Module):
    """LayerNorm with a gain of its own, so that two of them can be told apart."""

    def __init__(self, gain: float):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return self.gain * nn.functional.layer_norm(x, x.shape[-1:])


def _block(x, norm_1, attention, norm_2, feed_forward):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def _post_norm(x, norm_1, attention, norm_2, feed_forward):
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


def _no_residual(x, norm_1, attention, norm_2, feed_forward):
    return feed_forward(norm_2(attention(norm_1(x))))


def _normalized_stream(x, norm_1, attention, norm_2, feed_forward):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + feed_forward(x)


def _norm_of_result(x, norm_1, attention, norm_2, feed_forward):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))


PARTS = (_Norm(0.5), _Mix(), _Norm(2.0), _Think())
BLOCK = Exercise(
    right=_block,
    wrong={
        "That is post-norm, as in the paper and GPT-1: here the norm reads a copy, and the stream "
        "itself stays as it is.": _post_norm,
        "The residuals are missing: each sub-layer's result is added to the stream, it does not "
        "replace it.": _no_residual,
        "You add to the normalized copy. The stream that goes on is x as it was before the norm.": (
            _normalized_stream
        ),
        "You normalize what a sub-layer gives; pre-norm normalizes what it reads.": _norm_of_result,
        "Both sub-layers read the same x: the feed-forward layer must read the stream after the "
        "attention.": lambda x, norm_1, attention, norm_2, feed_forward: (
            x + attention(norm_1(x)) + feed_forward(norm_2(x))
        ),
        "The norms are exchanged: norm_1 belongs to the attention.": (
            lambda x, norm_1, attention, norm_2, feed_forward: _block(
                x, norm_2, attention, norm_1, feed_forward
            )
        ),
        "The sub-layers are exchanged: tokens exchange what they know first.": (
            lambda x, norm_1, attention, norm_2, feed_forward: _block(
                x, norm_1, feed_forward, norm_2, attention
            )
        ),
        "The norms are missing: each sub-layer reads a normalized copy of the stream.": (
            lambda x, norm_1, attention, norm_2, feed_forward: _block(
                x, nn.Identity(), attention, nn.Identity(), feed_forward
            )
        ),
        "The first residual is missing.": lambda x, norm_1, attention, norm_2, feed_forward: (
            attention(norm_1(x)) + feed_forward(norm_2(attention(norm_1(x))))
        ),
        "The second residual is missing.": lambda x, norm_1, attention, norm_2, feed_forward: (
            feed_forward(norm_2(x + attention(norm_1(x))))
        ),
    },
    cases=[
        Case("2 texts of 3 tokens", 3 * randn(2, 3, 5, seed=2) + 1, *PARTS),
        Case("1 text of 7 tokens", randn(1, 7, 3, seed=3), *PARTS),
    ],
    axes="batch tokens d_model",
    praise="Right: two lines, and in both the stream itself passes through untouched.",
)


def check_block(answer) -> Verdict:
    """`answer(x, norm_1, attention, norm_2, feed_forward)`: the pre-norm block; x's shape."""
    return BLOCK.check(answer)


# --- Exercise 3: count the parameters -----------------------------------------------------------


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


COUNT = Exercise(
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
        "The norms of the block are missing: two, each with a gain and a bias.": _miscount(
            vectors=9
        ),
        "A block has two norms: you count one.": _miscount(vectors=11),
        "A norm has a gain and a bias, d_model of each: you count one of the two.": _miscount(
            vectors=11, final=1
        ),
        "All norms are missing, 4 · d_model in a block and 2 · d_model at the end.": _miscount(
            vectors=9, final=0
        ),
        "Matrices only: biases and norms are missing.": _miscount(vectors=0, final=0),
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


def check_count(answer) -> Verdict:
    """`answer(vocabulary, context, n_layers, d_model)`: how many numbers GPT-2's wiring learns."""
    return COUNT.check(answer)
