"""Checks for chapter 09, the Transformer of the paper."""

import math

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- inputs and targets ---------------------------------------------------------------------------

check_shifted = Choice(
    asks="Which of the five pairs of inputs and targets trains a decoder? A letter.",
    right="b",
    wrong={
        "a": "Each row reads the word that it is to predict. The loss falls to 0, and what has "
        "been learned is to copy.",
        "c": "This is not shifted: the row of *Mary* is to predict *Mary*, which it reads.",
        "d": "The shift is right. But no row predicts the first word, since none comes before it: "
        "when the decoder is to write, it has never learned to begin.",
        "e": "This is shifted the other way: each row is to predict the word *before* its own, "
        "which it has read already.",
    },
    praise="Right: each row predicts the word after its own, and the begin token the first one.",
)


# --- mend the cross-attention ---------------------------------------------------------------------


def _cross(x, memory, W_Q, W_K, W_V, readable, *, values=True, shown=True, width=True, scale=True):
    """With ``values``, ``shown`` or ``width`` False, one of the three mistakes stays."""
    q, k, v = x @ W_Q, memory @ W_K, (memory if values else x) @ W_V
    scores = q @ k.mT / ((q.shape[1] if width else len(k)) ** 0.5 if scale else 1)
    scores = scores.masked_fill(~readable if shown else readable, -math.inf)
    return scores.softmax(dim=1) @ v


def _left(**mistakes):
    def wrong(*inputs):
        return _cross(*inputs, **mistakes)

    return wrong


def _mended(x, memory, W_Q, W_K, W_V, readable):
    return _cross(x, memory, W_Q, W_K, W_V, readable)


def _roles_swapped(x, memory, W_Q, W_K, W_V, readable):
    weights = (memory @ W_Q) @ (x @ W_K).mT / W_Q.shape[1] ** 0.5
    return weights.softmax(dim=1) @ (x @ W_V)


def _hidden_late(x, memory, W_Q, W_K, W_V, readable):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    return ((q @ k.mT / q.shape[1] ** 0.5).softmax(dim=1) * readable) @ v


def _over_rows(x, memory, W_Q, W_K, W_V, readable):
    scores = (x @ W_Q) @ (memory @ W_K).mT / W_Q.shape[1] ** 0.5
    return scores.masked_fill(~readable, -math.inf).softmax(dim=0) @ (memory @ W_V)


def _sides(target: int, source: int, hidden: int, seed: int) -> tuple[Tensor, ...]:
    """x, a memory, three matrices, and a mask that hides the last of the memory."""
    x, memory = randn(target, 4, seed=seed), randn(source, 4, seed=seed + 1)
    matrices = randn(3, 4, 3, seed=seed + 2)
    return x, memory, *matrices, torch.arange(source) < source - hidden


check_mended_cross = Exercise(
    asks="""`answer(x, memory, W_Q, W_K, W_V, readable)`: cross-attention with one head.

    x [target, d_model] asks, memory [source, d_model] is read; readable [source] is True where
    there is a word and False where there is padding. Returns [target, d_v].
    """,
    right=_mended,
    wrong={
        "All three mistakes are still there. Ask of each line: which sentence does it concern?":
            _left(values=False, shown=False, width=False),
        "The mask is mended. The values are still the decoder's own, and the divisor counts words.":
            _left(values=False, width=False),
        "The divisor is mended. The values are still the decoder's own, and you hide what may be "
        "read.": _left(values=False, shown=False),
        "The values are mended. You still hide what may be read, and the divisor counts words.":
            _left(shown=False, width=False),
        "The values still come from x: what is read is the memory.": _left(values=False),
        "You hide what may be read: in `readable`, True says that there is a word.":
            _left(shown=False),
        "The divisor is the root of the number of words: k.shape[0]. It must be √d_k, the width.":
            _left(width=False),
        "Now the memory asks and the target answers: queries come from x.": _roles_swapped,
        "The softmax runs over the rows that ask, not over the words that answer, and a word that "
        "is hidden has nothing to share out: 0/0.": _over_rows,
        "The scores are no longer divided by √d_k.": _left(scale=False),
        "You hide the padding after the softmax: then a row no longer sums to 1.": _hidden_late,
    },
    cases=[
        Case("5 words that read 5", *_sides(5, 5, 2, seed=60)),
        Case("3 words that read 7", *_sides(3, 7, 1, seed=70)),
    ],
    axes="target d_v",
    praise="Right: the target asks, the source answers with keys and values, padding is not asked.",
)  # fmt: skip


# --- who may read what ----------------------------------------------------------------------------


def _may_read(source: Tensor, target: Tensor) -> Tensor:
    return (source != 0).unsqueeze(1).expand(-1, target.shape[1], -1)


def _also_rows(source: Tensor, target: Tensor) -> Tensor:
    return (target != 0).unsqueeze(2) & (source != 0).unsqueeze(1)


def _rows_of_padding_read_all(source: Tensor, target: Tensor) -> Tensor:
    return (source != 0).unsqueeze(1) | (target == 0).unsqueeze(2)


def _also_causal(source: Tensor, target: Tensor) -> Tensor:
    return _may_read(source, target).tril()


def _rows_alone(source: Tensor, target: Tensor) -> Tensor:
    return (target != 0).unsqueeze(2).expand(-1, -1, source.shape[1])


def _padding_of_target(source: Tensor, target: Tensor) -> Tensor:
    return (target != 0).unsqueeze(1).expand(-1, target.shape[1], -1)


def _ids(*lengths: int, tokens: int, seed: int) -> Tensor:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    ids = torch.randint(3, 20, (len(lengths), tokens), generator=generator)
    return ids * (torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1))


check_may_read = Exercise(
    asks="""`answer(source, target)`: the mask of the cross-attention, True where it may read.

    source [batch, source tokens] and target [batch, target tokens] are ids, padded with 0 on the
    right. Returns booleans [batch, target tokens, source tokens], with which every row, also one
    of padding, has something to read.
    """,
    right=_may_read,
    wrong={
        "You hide the target's padding as well, on the query axis. Then a row of padding has "
        "nothing to read, and its softmax is 0/0.": _also_rows,
        "Padding of the *target* decides, on the query axis. It is the source that is read.":
            _rows_alone,
        "Nothing hides the future here: the whole source is there before the first word is "
        "written. Cross-attention is not causal.": _also_causal,
        "You open the source's padding to the target's rows of padding. They need no exception: "
        "the words of the source are there for them to read, as for every row.":
            _rows_of_padding_read_all,
        "These keys are the target's. What is read here are the words of the source.":
            _padding_of_target,
        "This is the other way around: True must say that a word may be read.": (
            lambda source, target: ~_may_read(source, target)
        ),
        "Nothing is hidden: the padding of the source is read like words.": (
            lambda source, target: torch.ones_like(_may_read(source, target))
        ),
        "This has one row for all of the target's tokens. It would broadcast, but the shape asked "
        "for has a row for each: expand it to `target.shape[1]` rows.":
            lambda source, target: (source != 0).unsqueeze(1),
        "This says which words are there, once for each sentence. A mask also has an axis for the "
        "rows that read, the target's tokens: put it between the two.":
            lambda source, target: source != 0,
        "The axes are swapped: rows are queries, so the target's tokens come before the source's.":
            lambda source, target: _may_read(source, target).mT,
    },
    cases=[
        Case("2 sentences of 5 tokens each", _ids(5, 3, tokens=5, seed=80),
             _ids(5, 4, tokens=5, seed=81)),
        Case("3 sources of 7 tokens, targets of 2", _ids(2, 7, 4, tokens=7, seed=82),
             _ids(1, 2, 2, tokens=2, seed=83)),
    ],
    axes="batch target source",
    praise="Right: the source's padding is hidden, as keys, from every row.",
)  # fmt: skip


# --- count the parameters -------------------------------------------------------------------------


def _counted(
    d_model, d_ff, n_layers, vocabulary,
    *, attentions=3, matrices=4, thinkings=2, halves=2, norms=5, of_norm=2, tables=1,
    biases=True, of_attention=True, of_thinking=True, more=0, of_output=0,
):  # fmt: skip
    attention = matrices * (d_model**2 + (d_model if biases and of_attention else 0))
    thinking = halves * d_model * d_ff
    thinking += (d_ff + (halves - 1) * d_model) if biases and of_thinking else 0
    norm = of_norm * d_model
    layers = n_layers * (attentions * attention + thinkings * thinking + norms * norm)
    return layers + (tables * d_model + of_output) * vocabulary + more * 2 * d_model


def _all_parameters(d_model, d_ff, n_layers, vocabulary):
    return _counted(d_model, d_ff, n_layers, vocabulary)


def _miscount(**changes):
    def wrong(*sizes):
        return _counted(*sizes, **changes)

    return wrong


check_parameters = Exercise(
    asks="`answer(d_model, d_ff, n_layers, vocabulary)`: the parameters of the paper's model, with "
    "all biases and one table for both sides and the output.",
    right=_all_parameters,
    wrong={
        "Each side has a table of its own here. In the paper, one serves for both, and for the "
        "output.": _miscount(tables=2),
        "You count three tables: both sides' and the output's. They are one.": _miscount(tables=3),
        "The table is missing: it holds nearly a third of the paper's model.": _miscount(tables=0),
        "The decoder's blocks have no cross-attention: that is four more matrices a block.": (
            _miscount(attentions=2)
        ),
        "The decoder's blocks have three norms, one after each part.": _miscount(norms=4),
        "The norms are missing: a gain and a bias each.": _miscount(norms=0),
        "Each norm has a bias as well as a gain: 2 · d_model numbers.": _miscount(of_norm=1),
        "A block has one norm for each of its parts: two in the encoder, three in the decoder.": (
            _miscount(norms=2)
        ),
        "The fourth matrix of attention is missing, the one behind its heads.": (
            _miscount(matrices=3)
        ),
        "The decoder's blocks have a feed-forward layer, too.": _miscount(thinkings=1),
        "These are the encoder's blocks alone. The decoder has as many, with one more attention "
        "and one more norm each.": _miscount(attentions=1, thinkings=1, norms=2),
        "These are the decoder's blocks alone. The encoder has as many, with one attention and two "
        "norms each.": _miscount(attentions=2, thinkings=1, norms=3),
        "You count both stacks alike. The decoder's blocks have one part more: cross-attention, "
        "and the norm after it.": _miscount(attentions=2, norms=4),
        "The output has no bias of its own here: its matrix is the table.": _miscount(of_output=1),
        "That is without the biases of the feed-forward layers: d_ff and d_model of them.": (
            _miscount(of_thinking=False)
        ),
        "That is without any bias, and without the norms. Here both count.": (
            _miscount(biases=False, norms=0)
        ),
        "A feed-forward layer has two matrices, and a bias behind each.": _miscount(halves=1),
        "That is without any bias, the norms' included. Here all biases count.": (
            _miscount(biases=False, of_norm=1)
        ),
        "That is without any bias in attention, 63,045,632 for the paper's sizes. Here all biases "
        "count.": _miscount(of_attention=False),
        "That is without the biases of attention and feed-forward layers.": _miscount(biases=False),
        "You count a norm at the end of each stack. `nn.Transformer` has them; the paper has not.":
            _miscount(more=2),
    },
    cases=[Case("a small model", 8, 32, 2, 11), Case("another", 6, 10, 3, 29)],
    praise="Right: three attentions, two feed-forward layers, five norms a layer, and one table.",
)  # fmt: skip


# --- how many layers a convolution needs ----------------------------------------------------------


def _ceil(number: int, by: int) -> int:
    return -(-number // by)


def _dilated(n: int, width: int) -> int:
    layers = 0
    while width**layers < n:
        layers += 1
    return layers


check_layers = Exercise(
    asks="`answer(n, width)`: the least number of layers of convolution after which the last of n "
    "words has heard from the first. Each layer reads a word and the `width` − 1 before it.",
    right=lambda n, width: _ceil(n - 1, width - 1),
    wrong={
        "n / width is the paper's order of growth. A layer reaches width − 1 words further back, "
        "not width: it reads the word itself as well.": lambda n, width: _ceil(n, width),
        "From the last word to the first it is n − 1 steps back, not n.": (
            lambda n, width: _ceil(n, width - 1)
        ),
        "Rounded down, the last layer is missing: the first word is not quite reached.": (
            lambda n, width: (n - 1) // (width - 1)
        ),
        "A layer is there or it is not: round the quotient up.": lambda n, width: (
            (n - 1) / (width - 1)
        ),
        "A layer reaches width − 1 words further back, not width, and it is n − 1 steps back. "
        "And rounded down, the last layer may be missing.": lambda n, width: n // width,
        "It is n − 1 steps from the last word to the first. And rounded down, the last layer may "
        "be missing.": lambda n, width: n // (width - 1),
        "The first layer, too, reaches only width − 1 words further back: no step is free.": (
            lambda n, width: _ceil(n - width, width - 1)
        ),
        "That is with gaps that grow from layer to layer, and not yet rounded up. Here every layer "
        "reads neighbors.": lambda n, width: math.log(n, width),
        "That is a recurrence: one word further with each step.": lambda n, width: n - 1,
        "That is attention. A convolution reaches width − 1 words further with each layer.": (
            lambda n, width: 1
        ),
        "That is with gaps that grow from layer to layer (a dilated convolution). Here every layer "
        "reads neighbors.": _dilated,
        "That is with half of the width on either side. Here all of it reaches back.": (
            lambda n, width: _ceil(2 * (n - 1), width - 1)
        ),
    },
    cases=[Case("8 words, width 4", 8, 4), Case("50 words, width 3", 50, 3),
           Case("33 words, width 5", 33, 5)],
    praise="Right: a layer reaches width − 1 words further back.",
)  # fmt: skip
