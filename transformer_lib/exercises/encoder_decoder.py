"""Checks for chapter 09, the Transformer of the paper."""

import copy
import math
from itertools import product

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


def _half_hidden(x, memory, W_Q, W_K, W_V, readable):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    return (q @ k.mT / q.shape[1] ** 0.5).masked_fill(~readable, 0).softmax(dim=1) @ v


def _emptied(x, memory, W_Q, W_K, W_V, readable):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V * readable.unsqueeze(1)
    return (q @ k.mT / q.shape[1] ** 0.5).masked_fill(~readable, 0).softmax(dim=1) @ v


def _no_root(x, memory, W_Q, W_K, W_V, readable):
    return _cross(x, memory, W_Q / W_Q.shape[1] ** 0.5, W_K, W_V, readable)


def _with(weights):
    """Averages by `weights(scores, readable)`, where the scores are right."""

    def wrong(x, memory, W_Q, W_K, W_V, readable):
        scores = (x @ W_Q) @ (memory @ W_K).mT / W_Q.shape[1] ** 0.5
        return weights(scores, readable) @ (memory @ W_V)

    return wrong


def _counted_divisor(x, memory, W_Q, W_K, W_V, readable):
    scores = (x @ W_Q) @ (memory @ W_K).mT / readable.sum() ** 0.5
    return scores.masked_fill(~readable, -math.inf).softmax(dim=1) @ (memory @ W_V)


def _divided_late(x, memory, W_Q, W_K, W_V, readable):
    d_k = W_Q.shape[1]
    return _cross(x, memory, W_Q * d_k**0.5, W_K, W_V, readable) / d_k**0.5


def _keys_of_x(x, memory, W_Q, W_K, W_V, readable):
    scores = (x @ W_Q) @ (x @ W_K).mT / W_Q.shape[1] ** 0.5
    return scores.masked_fill(~readable, -math.inf).softmax(dim=1) @ (memory @ W_V)


def _hidden_rows(x, memory, W_Q, W_K, W_V, readable):
    scores = (x @ W_Q) @ (memory @ W_K).mT / W_Q.shape[1] ** 0.5
    hidden = ~readable.unsqueeze(1)
    return scores.masked_fill(hidden, -math.inf).softmax(dim=1) @ (memory @ W_V)


def _causal_too(x, memory, W_Q, W_K, W_V, readable):
    scores = (x @ W_Q) @ (memory @ W_K).mT / W_Q.shape[1] ** 0.5
    hidden = ~readable | torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -math.inf).softmax(dim=1) @ (memory @ W_V)


def _over_rows(x, memory, W_Q, W_K, W_V, readable):
    scores = (x @ W_Q) @ (memory @ W_K).mT / W_Q.shape[1] ** 0.5
    return scores.masked_fill(~readable, -math.inf).softmax(dim=0) @ (memory @ W_V)


def _moved(answer, place) -> bool | None:
    """Does the result change with the memory at this place, on a case with 2 places of padding?"""
    given = _sides(3, 5, 2, seed=90)
    memory = given[1].clone()
    memory[place] = memory[place] * -0.5 + 0.25
    x, _, *rest = copy.deepcopy(given)
    before, after = (torch.as_tensor(answer(*sides)) for sides in (given, (x, memory, *rest)))
    return None if before.shape != (3, 3) else not torch.allclose(before, after, 1e-4, 1e-5)


def _reads_the_padding(answer) -> bool | None:
    return _moved(answer, slice(3, 5))


def _misses_a_part(answer) -> tuple | None:
    missed = [place for place in range(3) if _moved(answer, place) is False]
    return (missed[0],) if missed else None


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
        "The queries come from the memory, too. It is x that asks.": (
            lambda x, memory, *others: _mended(memory, memory, *others)
        ),
        "The scores are no longer divided by √d_k.": _left(scale=False),
        "The keys come from x. What is asked, by its keys, is the memory.": _keys_of_x,
        "The divisor is the root of how many words may be read. It must be √d_k, the width.":
            _counted_divisor,
        "You divide by √d_k after the softmax. The scores must be divided, before it.":
            _divided_late,
        "The scores themselves weigh the values: the softmax is missing.": _with(
            lambda scores, readable: scores.masked_fill(~readable, 0)
        ),
        "All words that may be read get the same weight: the scores do not reach the softmax.":
            _with(lambda scores, readable: (readable / readable.sum()).expand_as(scores)),
        "With padding your result is nan: its scores are +inf, or its weights -inf. Its scores "
        "must be -inf, before the softmax.":
            _with(lambda scores, readable:
                  scores.masked_fill(~readable, math.inf).softmax(dim=1)),
        "The padding's weights are -inf. It is its scores that must be, before the softmax.": _with(
            lambda scores, readable: scores.softmax(dim=1).masked_fill(~readable, -math.inf)
        ),
        "You hide rows of the scores, words that ask. The padding is among the words that are "
        "read: hide columns.": _hidden_rows,
        "You hide the future as well. Here every word reads all of the other sentence's words.":
            _causal_too,
        "The scores are divided by d_k. It must be its root, √d_k.": _no_root,
        "You hide the padding after the softmax: then a row no longer sums to 1.": _hidden_late,
        "The scores of the padding are 0, which hides nothing: exp(0) is 1, a weight like others. "
        "Only a score of -inf has the weight 0.": _half_hidden,
        "The padding's vectors are zeros, and it is read all the same: its score is 0, exp(0) is "
        "1, so it takes a share from the words.": _emptied,
    },
    cases=[
        Case("5 words that read 5", *_sides(5, 5, 2, seed=60)),
        Case("3 words that read 7", *_sides(3, 7, 1, seed=70)),
        Case("4 words that read 6, without padding", *_sides(4, 6, 0, seed=75)),
    ],
    about={
        "Your result changes with the padding. Its scores must be -inf before the softmax, and "
        "nothing else may be computed from it: not a divisor, not a mean.": _reads_the_padding,
    },
    about_last={
        "In a memory of 5, of which 3 may be read, nothing of number {} (counted from 0) arrives "
        "in your result.": _misses_a_part,
    },
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


def _copies_apart(source: Tensor, target: Tensor) -> Tensor:
    copies = (source != 0).repeat(target.shape[1], 1)
    return copies.view(len(source), target.shape[1], source.shape[1])


def _exceptions(allowed: Tensor, source: Tensor, target: Tensor) -> bool:
    wrong = (allowed != _may_read(source, target)).any(dim=2)
    return bool(wrong.any() and not wrong[target != 0].any() and allowed.any(dim=2).all())


def _of_another_sentence(allowed: Tensor, source: Tensor, target: Tensor) -> tuple | None:
    """A row that shows another sentence's words, if every row shows some sentence's."""
    whose = (allowed.unsqueeze(2) == (source != 0)).all(dim=3)
    own = (allowed == _may_read(source, target)).all(dim=2)
    if own.all() or not whose.any(dim=2).all():
        return None
    mine, row = (~own).nonzero()[0].tolist()
    return row, mine, int(whose[mine, row].nonzero()[0])


def _place(told: Tensor) -> tuple | None:
    return tuple(told.nonzero()[0].tolist()) if told.any() else None


def _reads_padding(allowed: Tensor, source: Tensor, target: Tensor) -> tuple | None:
    return _place(allowed & ~_may_read(source, target))


def _misses_a_word(allowed: Tensor, source: Tensor, target: Tensor) -> tuple | None:
    found = _place(~allowed & _may_read(source, target))
    return found and (*found, int(source[found[0], found[2]]))


def _ids(*lengths: int, tokens: int, seed: int) -> Tensor:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    ids = torch.randint(1, 20, (len(lengths), tokens), generator=generator)
    return ids * (torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1))


check_may_read = Exercise(
    asks="""`answer(source, target)`: the mask of the cross-attention, True where it may read.

    source [batch, source tokens] and target [batch, target tokens] are ids, padded with 0 on the
    right. Returns booleans [batch, target tokens, source tokens], with which no row reads padding,
    and every row, also one that is padding, has something to read.
    """,
    right=_may_read,
    wrong={
        "You hide the target's padding as well, on the query axis. Then a row of padding has "
        "nothing to read, and its softmax is 0/0.": _also_rows,
        "Padding of the *target* decides, on the query axis. It is the source that is read.":
            _rows_alone,
        "This is the mask against the future, of the decoder's own attention. Here the source's "
        "padding is hidden, and nothing else.": (
            lambda source, target: torch.ones_like(_may_read(source, target)).tril()
        ),
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
        "The copies are in another order than the sentences: `repeat` puts sentences 0, 1, … one "
        "after another, and then again. Give the copies an axis of their own: `words[:, None]`.":
            _copies_apart,
        "The ids 1 and 2 are hidden as well. Only 0 is padding.": (
            lambda source, target: (source > 2).unsqueeze(1).expand(-1, target.shape[1], -1)
        ),
        "The id 1 is hidden as well. Only 0 is padding.": (
            lambda source, target: (source > 1).unsqueeze(1).expand(-1, target.shape[1], -1)
        ),
    },
    also={
        "Right for the words of the target. Its rows of padding need no exception: the words of "
        "the source are there for them to read, as for every row.": _exceptions,
        "Row {} of sentence {} may read where sentence {} has words. Each sentence has words, and "
        "padding, of its own.": _of_another_sentence,
        "In sentence {}, row {} may read place {} of the source. The id there is 0: padding.":
            _reads_padding,
        "In sentence {}, row {} may not read place {} of the source. The id there is {}: a word.":
            _misses_a_word,
    },
    cases=[
        Case("2 sentences of 5 tokens each", _ids(5, 3, tokens=5, seed=80),
             _ids(5, 4, tokens=5, seed=81)),
        Case("3 sources of 7 tokens, targets of 2", _ids(2, 7, 4, tokens=7, seed=82),
             _ids(1, 2, 2, tokens=2, seed=83)),
        Case("ids from 1 on", torch.tensor([[2, 1, 7, 0], [5, 0, 0, 0]]), torch.tensor([[1], [2]])),
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


def _encoder_block(d_model, d_ff):
    return _counted(d_model, d_ff, 1, 0, attentions=1, thinkings=1, norms=2)


def _count(answer, **changed):
    sizes = {"d_model": 6, "d_ff": 10, "n_layers": 3, "vocabulary": 29} | changed
    return answer(*sizes.values())


def _more(answer, size: str, value: int) -> float:
    return _count(answer, **{size: value + 1}) - _count(answer, **{size: value})


def _bend(answer) -> float:
    return (_more(answer, "d_model", 6) - _more(answer, "d_model", 5)) / 2


def _uneven(answer) -> tuple | None:
    more = [_more(answer, "n_layers", n) for n in (1, 3)]
    return None if math.isclose(*more, rel_tol=1e-9) else tuple(more)


def _told_if_wrong(look):
    """What `look` finds in a count, if it is not what it finds in the right one."""

    def told(answer):
        found = look(answer)
        wrong = not math.isclose(found, look(_all_parameters), abs_tol=1e-6)
        return (found,) if wrong else None

    return told


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
        "In each layer 2 · d_model are missing: the third norm of the decoder's block, or the "
        "second biases of both feed-forward layers.": _miscount(norms=4),
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
        "The encoder has n_layers blocks, too. You count one.": (
            lambda d_model, d_ff, n_layers, vocabulary:
                _all_parameters(d_model, d_ff, n_layers, vocabulary)
                - (n_layers - 1) * _encoder_block(d_model, d_ff)
        ),
        "The decoder has n_layers blocks, too. You count one.": (
            lambda d_model, d_ff, n_layers, vocabulary:
                _all_parameters(d_model, d_ff, 1, vocabulary)
                + (n_layers - 1) * _encoder_block(d_model, d_ff)
        ),
        "That is the table's share. Asked for is the count of all parameters.": (
            lambda d_model, d_ff, n_layers, vocabulary:
                vocabulary * d_model / _all_parameters(d_model, d_ff, n_layers, vocabulary)
        ),
        "That is in millions: give the number itself.": (
            lambda *sizes: _all_parameters(*sizes) / 1e6
        ),
        "That is n_layers in all. There are n_layers in the encoder and as many in the decoder.": (
            lambda d_model, d_ff, n_layers, vocabulary:
                _all_parameters(d_model, d_ff, n_layers / 2, vocabulary)
        ),
    },
    about={
        "Your count is the same for any number of layers: is `n_layers` used?": (
            lambda answer: not _more(answer, "n_layers", 1)
        ),
        "One more layer adds {:g} if there is one, and {:g} if there are three. It adds as much "
        "each time.": _uneven,
        "Look at the table. With d_model 6, one more word adds {:g} to your count. It adds one row "
        "of d_model numbers.": _told_if_wrong(lambda answer: _more(answer, "vocabulary", 29)),
        "Look at what belongs to no layer. With n_layers 0, d_model 6 and 29 words your count is "
        "{:g}. There is the table, and nothing else.":
            _told_if_wrong(lambda answer: _count(answer, n_layers=0)),
        "Look at the feed-forward layers. With d_model 6 and n_layers 3, one more d_ff adds {:g} "
        "to your count. It adds, in each of the 6 layers, a column to one matrix, a row to the "
        "other, and one bias.": _told_if_wrong(lambda answer: _more(answer, "d_ff", 10)),
        "Look at the matrices of attention, d_model² each. With n_layers 3 your count has {:g} of "
        "them. An attention has four, and there are three attentions to a layer of both stacks.":
            _told_if_wrong(_bend),
        "The table and all matrices are right. The biases and norms are not: with d_model 6, d_ff "
        "10 and n_layers 3 your count is {:g}. Each matrix has a bias as long as its output, each "
        "norm a gain and a bias.": _told_if_wrong(_count),
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


def _layers(n: int, width: int) -> int:
    return _ceil(n - 1, width - 1)


# The parts of a formula, the right one first, and what is right in place of another.
_WAYS = {
    f"n {'−' if less > 0 else '+'} {abs(less)}" if less else "n": lambda n, width, a=less: n - a
    for less in (1, 0, 2, -1, 3)
} | {"n − width": lambda n, width: n - width, "n − width + 1": lambda n, width: n - width + 1}
_REACHES = {
    "(width − 1)": lambda n, width: width - 1,
    "width": lambda n, width: width,
    "(width + 1)": lambda n, width: width + 1,
    "(width − 2)": lambda n, width: width - 2,
    "(width // 2)": lambda n, width: width // 2,
    "(width / 2)": lambda n, width: width / 2,
    "2": lambda n, width: 2,
}
_ROUNDED = {"rounded up": math.ceil, "rounded down": math.floor, "rounded": round}
_MORE = {"": 0, ", plus 1": 1, ", minus 1": -1}
_SIZES = [(n, width) for n in range(2, 25) for width in range(3, 8)]
_FORMULA = [
    (_WAYS, "From the last word to the first it is n − 1 steps back."),
    (_REACHES, "A layer reaches width − 1 words further back."),
    (_ROUNDED, "Round up, for the last layer is needed if anything is left."),
    (_MORE, "Nothing has to be added or taken away."),
]


def _as_formula(answer) -> tuple | None:
    """The formula that an answer is, and what is right in place of its wrong parts."""
    results = [answer(*sizes) for sizes in _SIZES]

    def agrees(names: tuple[str, ...]) -> bool:
        way, reach, rounded, more = (
            of[name] for name, (of, _) in zip(names, _FORMULA, strict=True)
        )
        return all(
            result == rounded(way(*sizes) / reach(*sizes)) + more
            for result, sizes in zip(results, _SIZES, strict=True)
        )

    def wrong(names: tuple[str, ...]) -> list[str]:
        pairs = zip(names, _FORMULA, strict=True)
        return [told for name, (of, told) in pairs if name != next(iter(of))]

    formulas = sorted(product(*(of for of, _ in _FORMULA)), key=lambda names: len(wrong(names)))
    found = next(filter(agrees, formulas), None)
    return (*found, " ".join(wrong(found))) if found and wrong(found) else None


def _remainders(answer, sign: int) -> str:
    """Where an answer has too few layers, or too many: by what the division leaves."""
    seen = {True: set(), False: set()}
    for n in range(2, 30):
        for width in range(3, 8):
            off = answer(n, width) - _layers(n, width)
            seen[bool((n - 1) % (width - 1))].add(off * sign > 0)
    if seen[True] == {True} == seen[False]:
        return ", always"
    if seen[True] == {True} and True not in seen[False]:
        return ", wherever (n − 1) / (width − 1) leaves a remainder"
    if seen[False] == {True} and True not in seen[True]:
        return ", wherever (n − 1) / (width − 1) leaves no remainder"
    return ""


def _first_wrong(sign: int):
    """The smallest sentence for which an answer has too few layers (-1) or too many (1)."""

    def told(answer):
        for n in (*range(2, 13), 1):
            for width in range(2, 7):
                off = answer(n, width) - _layers(n, width)
                if off:
                    few = int(answer(n, width)) - (sign > 0)
                    if off * sign < 0 or off != int(off):
                        return None
                    where = _remainders(answer, sign)
                    return where, n, width, few + (sign > 0), few * (width - 1), n - 1
        return None

    return told


check_layers = Exercise(
    asks="`answer(n, width)`: the least number of layers of convolution after which the last of n "
    "words has heard from the first. Each layer reads a word and the `width` − 1 before it.",
    right=_layers,
    wrong={
        "n / width is the paper's order of growth. A layer reaches width − 1 words further back, "
        "not width: it reads the word itself as well.": lambda n, width: _ceil(n, width),
        "From the last word to the first it is n − 1 steps back, not n, and the division is "
        "rounded up. (With `//` and one more, it is one too many where nothing is left.)": (
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
        "A layer reaches width − 1 words further back, not width.": (
            lambda n, width: _ceil(n - 1, width)
        ),
        "Rounded to the nearest number, the last layer is missing where the remainder is small. "
        "Round up.": lambda n, width: round((n - 1) / (width - 1)),
    },
    about={
        "You have ({}) / {}, {}{}. {}": _as_formula,
        "Too few layers{}: with n = {} and width = {} you have {}. They reach {} words back from "
        "the last, and the first is {} back.": _first_wrong(-1),
        "Too many layers{}: with n = {} and width = {} you have {}. One less already reaches {} "
        "words back from the last, and the first is {} back.": _first_wrong(1),
    },
    cases=[Case("8 words, width 4", 8, 4), Case("52 words, width 3", 52, 3),
           Case("31 words, width 3", 31, 3), Case("9 words, width 6", 9, 6),
           Case("1 word, which has heard itself", 1, 3, edge=True)],
    praise="Right: a layer reaches width − 1 words further back.",
)  # fmt: skip
