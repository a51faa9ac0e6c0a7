"""Checks for chapter 09, the Transformer of the paper."""

import copy
import math

import torch
from torch import Tensor, nn

from transformer_lib.encoder_decoder import (
    BEGIN,
    END,
    PADDING,
    EncoderDecoder,
    EncoderDecoderConfig,
)
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn
from transformer_lib.exercises.translation import padded_ids

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


check_may_read = Exercise(
    asks="""`answer(source, target)`: the mask of the cross-attention, True where it may read.

    source [batch, source tokens] and target [batch, target tokens] are ids, padded with 0 on the
    right. Returns booleans [batch, target tokens, source tokens], with which no row reads padding,
    and every row, even one that is padding, has something to read.
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
        Case("2 sentences of 5 tokens each", padded_ids(5, 3, tokens=5, seed=80),
             padded_ids(5, 4, tokens=5, seed=81)),
        Case("3 sources of 7 tokens, targets of 2", padded_ids(2, 7, 4, tokens=7, seed=82),
             padded_ids(1, 2, 2, tokens=2, seed=83)),
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
        "You count a norm at the end of each stack. `nn.Transformer` has them; the paper does not.":
            _miscount(more=2),
        "The decoder has n_layers blocks, too. You count one.": (
            lambda d_model, d_ff, n_layers, vocabulary:
                _all_parameters(d_model, d_ff, 1, vocabulary)
                + (n_layers - 1) * _encoder_block(d_model, d_ff)
        ),
        },
    cases=[Case("a small model", 8, 32, 2, 11), Case("another", 6, 10, 3, 29)],
    praise="Right: three attentions, two feed-forward layers, five norms a layer, and one table.",
)  # fmt: skip


# --- translate ------------------------------------------------------------------------------------


def _machine(seed: int) -> EncoderDecoder:
    """Nobody has trained it. It is sure of every word, and never writes padding or begin."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = EncoderDecoder(
            EncoderDecoderConfig(
                source_vocabulary=12, target_vocabulary=7, context=12,
                n_layers=2, n_heads=2, d_model=8,
            )
        )  # fmt: skip
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=1.0 if "embedding" in name else 0.5)
    model.requires_grad_(False)
    table = model.target_embedding.weight
    table[END:] -= table[END:].mean(dim=1, keepdim=True)
    table[PADDING], table[BEGIN] = -1.5, -2.0  # the last norm's sum is positive: low scores
    table[BEGIN, ::2] += 0.3
    table[BEGIN, 1::2] -= 0.3
    model.decoder[-1].norm_3.bias.fill_(0.4)
    model.target_embedding.scale = 1.0  # what is written depends on what has been written
    return model.eval()


def _translate(
    machine, source, most,
    *, encode=True, hide=(True, True), causal=True, begin=BEGIN, row=-1, together=False,
    goes_on=False, end=PADDING,
):  # fmt: skip
    readable = (source != PADDING).unsqueeze(1)
    of_encoder, of_decoder = (readable if hidden else None for hidden in hide)
    memory = machine.source_embedding(source)
    for block in machine.encoder if encode else ():
        memory = block(memory, of_encoder)
    written = torch.full((len(source), 1), begin)
    ended = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(most):
        y = machine.target_embedding(written)
        for block in machine.decoder:
            y = block(y, memory, memory_mask=of_decoder, causal=causal)
        word = machine.target_embedding.logits(y)[:, row].argmax(dim=-1)
        ends = (word == END) & ~ended
        if not goes_on:
            ended = ended | (ends.any() if together else ends)
            word = word.masked_fill(ended, PADDING).masked_fill(ends, end)
        written = torch.cat([written, word.unsqueeze(1)], dim=1)
    return written[:, 1:]


def _all_translated(machine, source, most):
    return _translate(machine, source, most)


def _mistranslating(**mistake):
    def wrong(*inputs):
        return _translate(*inputs, **mistake)

    return wrong


def _begun(machine, source, most):
    return torch.cat(
        [torch.full((len(source), 1), BEGIN), _translate(machine, source, most)], dim=1
    )


_SOURCES = [[9, 7, 4, 6, 7], [11, 9, 7, 0, 0], [9, 8, 7, 0, 0], [6, 4, 10, 0, 0]]

check_translate = Exercise(
    asks="""`answer(machine, source, most)`: the most probable translation, word by word.

    machine has `source_embedding`, `encoder` and `decoder` (lists of blocks) and
    `target_embedding`; source [batch, tokens] holds ids, padded with 0 on the right. Returns ids
    [batch, most] without begin (1) and end (2): 0 from the end of each sentence on.
    """,
    right=_all_translated,
    wrong={
        "The result begins with the begin token. It is for the decoder: leave it out of what you "
        "give back.": _begun,
        "The decoder reads the embedding of the source. Let the encoder's blocks read it first.":
            _mistranslating(encode=False),
        "Padding is read, by the encoder's blocks and by the decoder's. Both need the mask.":
            _mistranslating(hide=(False, False)),
        "The encoder's words read the padding: each of its blocks needs the mask, too.":
            _mistranslating(hide=(False, True)),
        "The decoder's words read the padding of the memory: its blocks take `memory_mask`.":
            _mistranslating(hide=(True, False)),
        "The words written so far read words after them. In training none could: `causal=True`.":
            _mistranslating(causal=False),
        "The decoder begins with padding. It has learned to begin with the begin token, 1.":
            _mistranslating(begin=PADDING),
        "You take the next word from the first row at each step. It is the *last* row that has "
        "read all that is written.": _mistranslating(row=0),
        "All sentences end when the first one does. Each has an end of its own, and the others go "
        "on.": _mistranslating(together=True),
        "After the end of a sentence words come again. Write 0 for it from its end on, and let the "
        "others go on.": _mistranslating(goes_on=True),
        "The end token is in your result. Put 0 in its place, too.": _mistranslating(end=END),
        },
    cases=[
        Case("one sentence", _machine(254), torch.tensor(_SOURCES[:1]), 6),
        Case("four sentences", _machine(254), torch.tensor(_SOURCES), 6),
    ],
    axes="batch words",
    praise="Right: one stack reads, the other writes, and whoever has ended waits for the others.",
)  # fmt: skip
