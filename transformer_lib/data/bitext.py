"""Pairs of sentences as token ids, padded to equal length: what a translator is trained on."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_lib import checks, storage
from transformer_lib.data.corpora import Corpus
from transformer_lib.data.packing import IGNORED, Batch, id_tensor
from transformer_lib.data.pairs import Pair
from transformer_lib.tokenizers import (
    BEGIN,
    END,
    PADDING,
    SPECIALS,
    PairTokenizer,
    _shortened,
)


class Bitext:
    """Pairs as rows: a source, what the decoder reads of the target, and what it is to predict.

    The decoder reads the begin token and the words, and predicts the words and the end token. Rows
    are padded on the right to the longest of those that are asked for; where the target is padded,
    there is nothing to predict.

    Args:
        sources, targets: ids of words, without begin and end, one list of each for a pair.

    Raises:
        ValueError: another number of sources than of targets; none; an empty one; one with the id
            of a special token in it.
        TypeError: ids that are not ints.

    >>> bitext = Bitext([[5, 6, 7], [8]], [[4, 9], [3]])
    >>> source, inputs, targets = bitext.rows(torch.tensor([0, 1]))
    >>> source
    tensor([[5, 6, 7],
            [8, 0, 0]])
    >>> inputs
    tensor([[1, 4, 9],
            [1, 3, 0]])
    >>> targets
    tensor([[   4,    9,    2],
            [   3,    2, -100]])
    """

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]):
        sources, targets = list(sources), list(targets)
        _require_as_many(sources, targets)
        self._sources = _words(sources, "source")
        begin, end = torch.tensor([BEGIN]), torch.tensor([END])
        whole = [torch.cat((begin, ids, end)) for ids in _words(targets, "target")]
        self._inputs, self._targets = [ids[:-1] for ids in whole], [ids[1:] for ids in whole]
        self._numbers = torch.arange(len(sources))

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def lengths(self) -> Int[Tensor, "pairs 2"]:
        """Tokens of each source, and of each target with its begin or end."""
        pairs = zip(self._sources, self._inputs, strict=True)
        return torch.tensor([[len(source), len(target)] for source, target in pairs])

    def rows(self, indices: Int[Tensor, " batch"]) -> Batch:
        """Source, the decoder's input and targets of these pairs."""
        columns = (self._sources, PADDING), (self._inputs, PADDING), (self._targets, IGNORED)
        chosen = self._numbers[indices].tolist()
        return tuple(
            pad_sequence([rows[i] for i in chosen], batch_first=True, padding_value=padding)
            for rows, padding in columns
        )

    def __repr__(self) -> str:
        return f"Bitext(pairs={len(self)})"


class Bundles:
    """Pairs of similar lengths bundled, so that little is padding: row i is a whole batch.

    A bundle has at most ``tokens`` tokens in either of its sides, padding included. So, with
    ``Batches(bundles, 1)``, each epoch brings every pair once, and the bundles in a new order.

    Raises:
        ValueError: ``tokens`` is less than a pair has.

    >>> bitext = Bitext([[5, 6, 7], [8], [9], [9, 9]], [[4, 9], [3], [4, 4], [5]])
    >>> bundles = Bundles(bitext, tokens=6)
    >>> [bundles.rows(torch.tensor([i]))[0].tolist() for i in range(len(bundles))]
    [[[8, 0], [9, 9]], [[9, 0, 0], [5, 6, 7]]]
    """

    def __init__(self, bitext: Bitext, tokens: int):
        checks.require_count(tokens, "tokens")
        self._bitext, lengths = bitext, bitext.lengths
        _require_room(lengths, tokens)
        # Sorted by the longer side, then by both, so that neither is padded much.
        keys = torch.cat((lengths.amax(dim=1, keepdim=True), lengths.flip(1)), dim=1).tolist()
        self._bundles: list[list[int]] = [[]]
        for i in sorted(range(len(keys)), key=keys.__getitem__):
            if (len(self._bundles[-1]) + 1) * keys[i][0] > tokens:
                self._bundles.append([])
            self._bundles[-1].append(i)
        self._numbers = torch.arange(len(self._bundles))

    def __len__(self) -> int:
        return len(self._bundles)

    @property
    def fewest(self) -> int:
        """Pairs of the smallest bundle."""
        return min(map(len, self._bundles))

    def rows(self, indices: Int[Tensor, " batch"]) -> Batch:
        """The pairs of these bundles."""
        chosen = [i for bundle in self._numbers[indices].tolist() for i in self._bundles[bundle]]
        return self._bitext.rows(torch.tensor(chosen))

    def __repr__(self) -> str:
        return f"Bundles(bundles={len(self)}, pairs={len(self._bitext)})"


def encoded(pairs: Sequence[Pair], tokenizer: PairTokenizer) -> Bitext:
    """``pairs`` of texts as ids.

    Raises:
        ValueError: no pairs; unknown words, or a special token within a text; the message names
            the pair.
        TypeError: what is not a pair.
    """
    _require_pairs(pairs)
    sides = []
    for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        rows, encode = [], getattr(tokenizer, side).encode
        for number, text in enumerate(texts, start=1):
            try:
                rows.append(encode(text))
            except ValueError as error:
                raise ValueError(f"the {side} of pair {number}: {error}") from error
        sides.append(rows)
    return Bitext(*sides)


def translation_corpus(
    training: Sequence[Pair],
    validation: Sequence[Pair],
    tokenizer: PairTokenizer,
    *,
    context: int,
    batch_tokens: int | None = None,
) -> Corpus:
    """Pairs to train on, by ``batch_tokens`` in bundles if given, and pairs to measure by.

    Raises:
        ValueError: as :func:`encoded`; a pair that is longer than the context.

    >>> from transformer_lib.tokenizers import WordTokenizer
    >>> tokenizer = PairTokenizer(WordTokenizer([*SPECIALS, "mary", "roses"]))
    >>> pairs = [Pair("mary roses", "roses mary"), Pair("roses", "roses")]
    >>> translation_corpus(pairs, pairs[:1], tokenizer, context=4).training
    Bitext(pairs=2)
    """
    parts = [encoded(pairs, tokenizer) for pairs in (training, validation)]
    for pairs, bitext in zip((training, validation), parts, strict=True):
        _require_fit(pairs, bitext, "block", context)
    if batch_tokens is not None:
        _require_fit(training, parts[0], "batch_tokens", batch_tokens)
    content = "".join(f"{source}\t{target}\n" for source, target in (*training, *validation))
    rows, held = parts
    return Corpus(
        tokenizer=tokenizer,
        training=rows if batch_tokens is None else Bundles(rows, batch_tokens),
        validation=held,
        signature=storage.sha256(content.encode("utf-8")),
        pairs=tuple(validation),
    )


def _require_as_many(sources: list, targets: list) -> None:
    if len(sources) != len(targets) or not sources:
        raise ValueError(
            f"there are {len(sources)} sources and {len(targets)} targets; give at least one pair, "
            f"and each source with its target."
        )


def _words(rows: list, side: str) -> list[Tensor]:
    """The ids of one side as tensors: some in each, and none of a special token."""
    found = [id_tensor(ids, f"the {side} of pair {i}") for i, ids in enumerate(rows, start=1)]
    for number, ids in enumerate(found, start=1):
        if len(ids) == 0:
            raise ValueError(f"the {side} of pair {number} is empty. Leave the pair out.")
    if torch.cat(found).min() < len(SPECIALS):
        number, least = next((i, int(ids.min())) for i, ids in enumerate(found, start=1)
                             if ids.min() < len(SPECIALS))  # fmt: skip
        what = repr(SPECIALS[least]) if least >= 0 else f"the id {least}"
        raise ValueError(
            f"the {side} of pair {number} holds {what}, which is not a word: begin, end and "
            f"padding are added where they belong. Remove it from the text."
        )
    return found


def _require_pairs(pairs: Sequence[Pair]) -> None:
    if len(pairs) == 0:
        raise ValueError("there are no pairs; give at least one, a source with its target.")
    for number, pair in enumerate(pairs, start=1):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"pair {number} is {_shortened(pair)}; give a source and its target, two texts: "
                f'Pair("Rosen", "roses").'
            )


def _require_room(lengths: Int[Tensor, "pairs 2"], tokens: int) -> None:
    longest, pair = lengths.amax(dim=1).max(dim=0)
    if longest > tokens:
        raise ValueError(
            f"pair {int(pair) + 1} has {int(longest)} tokens, and a batch is to have at most "
            f"{tokens}. Choose batch_tokens={int(longest)} or more, or leave that pair out."
        )


def _require_fit(pairs: Sequence[Pair], bitext: Bitext, name: str, most: int) -> None:
    """No pair is longer. It is named by its text: its number in the reader's file is not known."""
    longest, pair = bitext.lengths.amax(dim=1).max(dim=0)
    if longest > most:
        source = pairs[int(pair)][0]
        why = "the model's context" if name == "block" else "a batch"
        raise ValueError(
            f"a pair ({source[:40]!r} …) has {int(longest)} tokens, more than {why} of {most}. "
            f"Choose {name}={int(longest)} or more, or leave that pair out."
        )
