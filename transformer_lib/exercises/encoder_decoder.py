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


def _with(weights):
    """Averages by `weights(scores, readable)`, where the scores are right."""

    def wrong(x, memory, W_Q, W_K, W_V, readable):
        scores = (x @ W_Q) @ (memory @ W_K).mT / W_Q.shape[1] ** 0.5
        return weights(scores, readable) @ (memory @ W_V)

    return wrong


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
        "The values still come from x: what is read is the memory.": _left(values=False),
        "The divisor is the root of the number of words: k.shape[0]. It must be √d_k, the width.":
            _left(width=False),
        "Now the memory asks and the target answers: queries come from x.": _roles_swapped,
        "With padding your result is nan: its scores are +inf, or its weights -inf. Its scores "
        "must be -inf, before the softmax.":
            _with(lambda scores, readable:
                  scores.masked_fill(~readable, math.inf).softmax(dim=1)),
        "The padding's weights are -inf. It is its scores that must be, before the softmax.": _with(
            lambda scores, readable: scores.softmax(dim=1).masked_fill(~readable, -math.inf)
        ),
        },
    cases=[
        Case("5 words that read 5", *_sides(5, 5, 2, seed=60)),
        Case("3 words that read 7", *_sides(3, 7, 1, seed=70)),
        Case("4 words that read 6, without padding", *_sides(4, 6, 0, seed=75)),
        Case(
            "values of another width",
            *_sides(3, 5, 1, seed=80)[:4],
            randn(4, 7, seed=85),
            torch.arange(5) < 4,
            edge=True,
        ),
    ],
    about={
        "Your result changes with the padding. Its scores must be -inf before the softmax, and "
        "nothing else may be computed from it: not a divisor, not a mean.": _reads_the_padding,
    },
    axes="target d_v",
    praise="Right: the target asks, the source answers with keys and values, padding is not asked.",
)  # fmt: skip


# --- who may read what ----------------------------------------------------------------------------


def _may_read(source: Tensor, target: Tensor) -> Tensor:
    return (source != 0).unsqueeze(1).expand(-1, target.shape[1], -1)


def _of_another_sentence(allowed: Tensor, source: Tensor, target: Tensor) -> tuple | None:
    """A row that shows another sentence's words, if every row shows some sentence's."""
    whose = (allowed.unsqueeze(2) == (source != 0)).all(dim=3)
    own = (allowed == _may_read(source, target)).all(dim=2)
    if own.all() or not whose.any(dim=2).all():
        return None
    mine, row = (~own).nonzero()[0].tolist()
    return row, mine, int(whose[mine, row].nonzero()[0])


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
        "This is the mask against the future, of the decoder's own attention. Here the source's "
        "padding is hidden, and nothing else.": (
            lambda source, target: torch.ones_like(_may_read(source, target)).tril()
        ),
        "This has one row for all of the target's tokens. It would broadcast, but the shape asked "
        "for has a row for each: expand it to `target.shape[1]` rows.":
            lambda source, target: (source != 0).unsqueeze(1),
        "This says which words are there, once for each sentence. A mask also has an axis for the "
        "rows that read, the target's tokens: put it between the two.":
            lambda source, target: source != 0,
        },
    also={
        "Row {} of sentence {} may read where sentence {} has words. Each sentence has words, and "
        "padding, of its own.": _of_another_sentence,
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
        "The decoder's blocks have a feed-forward layer, too.": _miscount(thinkings=1),
        "These are the encoder's blocks alone. The decoder has as many, with one more attention "
        "and one more norm each.": _miscount(attentions=1, thinkings=1, norms=2),
        "These are the decoder's blocks alone. The encoder has as many, with one attention and two "
        "norms each.": _miscount(attentions=2, thinkings=1, norms=3),
        "You count both stacks alike. The decoder's blocks have one part more: cross-attention, "
        "and the norm after it.": _miscount(attentions=2, norms=4),
        "That is without the biases of the feed-forward layers: d_ff and d_model of them.": (
            _miscount(of_thinking=False)
        ),
        "That is without any bias, and without the norms. Here both count.": (
            _miscount(biases=False, norms=0)
        ),
        "That is without any bias, the norms' included. Here all biases count.": (
            _miscount(biases=False, of_norm=1)
        ),
        "That is without any bias in attention, 63,045,632 for the paper's sizes. Here all biases "
        "count.": _miscount(of_attention=False),
        "That is without the biases of attention and feed-forward layers.": _miscount(biases=False),
        "You count a norm at the end of each stack. `nn.Transformer` has them; the paper has not.":
            _miscount(more=2),
        "The decoder has n_layers blocks, too. You count one.": (
            lambda d_model, d_ff, n_layers, vocabulary:
                _all_parameters(d_model, d_ff, 1, vocabulary)
                + (n_layers - 1) * _encoder_block(d_model, d_ff)
        ),
        },
    about={
        "Your count is the same for any number of layers: is `n_layers` used?": (
            lambda answer: not _more(answer, "n_layers", 1)
        ),
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


check_layers = Exercise(
    asks="`answer(n, width)`: the least number of layers of convolution after which the last of n "
    "words has heard from the first. Each layer reads a word and the `width` − 1 before it.",
    right=_layers,
    wrong={
        "A layer is there or it is not: round the quotient up.": lambda n, width: (
            (n - 1) / (width - 1)
        ),
        "That is with gaps that grow from layer to layer, and not yet rounded up. Here every layer "
        "reads neighbors.": lambda n, width: math.log(n, width),
        "That is a recurrence: one word further with each step.": lambda n, width: n - 1,
        "That is attention. A convolution reaches width − 1 words further with each layer.": (
            lambda n, width: 1
        ),
        "That is with gaps that grow from layer to layer (a dilated convolution). Here every layer "
        "reads neighbors.": _dilated,
        },
    about={
        "You have ({}) / {}, {}{}. {}": _as_formula,
        },
    cases=[Case("8 words, width 4", 8, 4), Case("52 words, width 3", 52, 3),
           Case("31 words, width 3", 31, 3), Case("9 words, width 6", 9, 6),
           Case("1 word, which has heard itself", 1, 3, edge=True)],
    praise="Right: a layer reaches width − 1 words further back.",
)  # fmt: skip
