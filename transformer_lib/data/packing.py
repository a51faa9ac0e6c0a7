"""Token ids in rows of equal length: whole stories packed into them, or a long text cut up.

A row has ``inputs`` and ``targets``, the same tokens one step later: at each position the model
predicts what comes next. Where there is nothing to predict, the target is ``IGNORED``, which
``F.cross_entropy`` leaves out of its mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Integer
from torch import Tensor

from transformer_lib import checks
from transformer_lib.tokenizers import _shortened

IGNORED = -100
# Tensors with the batch's rows first: what the model is called with, and last the targets.
Batch = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Packed:
    """Rows of equal length, each with whole sequences in it or a piece of a text.

    Attributes:
        inputs: ids, ``[rows, tokens]``.
        targets: the next ids, ``[rows, tokens]``; ``IGNORED`` where there is none.
        spans: where each sequence was packed: its row, its first column and the column after its
            last, ``[sequences, 3]``; for a text in windows, ``[0, 3]``.
    """

    inputs: Int[Tensor, "rows tokens"]
    targets: Int[Tensor, "rows tokens"]
    spans: Int[Tensor, "sequences 3"]

    def __len__(self) -> int:
        return self.inputs.shape[0]

    def rows(self, indices: Int[Tensor, " batch"]) -> Batch:
        """Inputs and targets of these rows."""
        return self.inputs[indices], self.targets[indices]

    def mark(self, positions: Sequence[Sequence[int]]) -> Bool[Tensor, "rows tokens"]:
        """True where the target is a token at one of ``positions``, given for each sequence.

        The position after its last token is that of the separator with which it ends.

        With the positions of answers, ``(logits.argmax(-1) == packed.targets)[marked]`` says which
        of them the model gets right.

        Raises:
            ValueError: not one list for each sequence; position 0 (a sequence's first token
                separates it from the one before, and is not predicted in it), or one beyond the
                separator.
        """
        if len(positions) != len(self.spans):
            raise ValueError(
                f"positions are given for {len(positions)} sequences, and {len(self.spans)} were "
                f"packed; give one list for each."
            )
        marked = torch.zeros_like(self.targets, dtype=torch.bool)
        for (row, start, end), places in zip(self.spans.tolist(), positions, strict=True):
            for place in places:
                if not 0 < place <= end - start:
                    raise ValueError(
                        f"position {place} is marked in a sequence of {end - start} tokens; "
                        f"positions 1 to {end - start} are predicted in it, the last its end."
                    )
                marked[row, start + place - 1] = True
        return marked

    def __repr__(self) -> str:
        rows, tokens = self.inputs.shape
        return f"Packed(rows={rows}, tokens={tokens}, sequences={len(self.spans)})"


def pack(sequences: Sequence[Sequence[int]], length: int) -> Packed:
    """Rows of ``length`` tokens with whole sequences in them, in their order, as many as fit.

    All sequences begin with the same token, the separator. It is also the last target of each
    sequence, so every token is a target once, and always with the beginning of its own sequence in
    view. A model can therefore reach the entropy of the sequences, which it cannot if windows cut
    them. The rest of a row is padded with separators, whose targets are ``IGNORED``.

    Raises:
        ValueError: no sequences, an empty one, one longer than a row, different first tokens.
        TypeError: ``length`` is not an int; sequences that are not ints.

    >>> packed = pack([[7, 1, 2], [7, 3], [7, 4, 5, 6]], length=6)
    >>> packed.inputs
    tensor([[7, 1, 2, 7, 3, 7],
            [7, 4, 5, 6, 7, 7]])
    >>> packed.targets
    tensor([[   1,    2,    7,    3,    7, -100],
            [   4,    5,    6,    7, -100, -100]])
    """
    checks.require_count(length, "length")
    sequences = list(sequences)
    _require_sequences(sequences, length)
    separator = sequences[0][0]
    spans, packed = [], []
    for sequence in sequences:
        if not packed or len(packed[-1]) + len(sequence) > length:
            packed.append([])
        start = len(packed[-1])
        spans.append((len(packed) - 1, start, start + len(sequence)))
        packed[-1].extend(sequence)
    ids = [id_tensor(tokens, f"row {i}") for i, tokens in enumerate(packed)]
    inputs = torch.full((len(packed), length), int(separator))
    targets = torch.full((len(packed), length), IGNORED)
    for i, tokens in enumerate(ids):
        inputs[i, : len(tokens)] = tokens
        targets[i, : len(tokens) - 1] = tokens[1:]
        targets[i, len(tokens) - 1] = inputs[i, 0]
    return Packed(inputs, targets, torch.tensor(spans))


def cover(ids: Integer[Tensor, " tokens"], length: int) -> Packed:
    """A long text cut into windows of ``length`` without a gap, to measure the loss on all of it.

    Every token but the first is a target once; the last window is padded.

    Raises:
        ValueError: fewer than two tokens, or more than one axis.
        TypeError: ``ids`` is not a tensor of integers, or ``length`` is not an int.

    >>> cover(torch.arange(6), length=3).targets
    tensor([[   1,    2,    3],
            [   4,    5, -100]])
    """
    checks.require_count(length, "length")
    _require_ids(ids, 2)
    padding = -(len(ids) - 1) % length
    ids = ids.long()
    inputs = torch.cat([ids[:-1], ids[:1].expand(padding)]).reshape(-1, length)
    targets = torch.cat([ids[1:], ids.new_full((padding,), IGNORED)]).reshape(-1, length)
    return Packed(inputs, targets, torch.empty(0, 3, dtype=torch.int64))


class Windows:
    """A long text as a source of windows: row i begins at token i, so the windows overlap.

    Raises:
        ValueError: a text of ``length`` tokens or fewer, or more than one axis.
        TypeError: ``ids`` is not a tensor of integers, or ``length`` is not an int.

    >>> inputs, targets = Windows(torch.arange(10), length=4).rows(torch.tensor([0, 5]))
    >>> targets
    tensor([[1, 2, 3, 4],
            [6, 7, 8, 9]])
    """

    def __init__(self, ids: Integer[Tensor, " tokens"], length: int):
        checks.require_count(length, "length")
        _require_ids(ids, length + 1)
        self._windows = ids.unfold(0, length + 1, 1)  # a view: nothing is copied

    def __len__(self) -> int:
        return len(self._windows)

    def rows(self, indices: Int[Tensor, " batch"]) -> Batch:
        """Inputs and targets of the windows that begin at ``indices``."""
        windows = self._windows[indices].long()
        return windows[:, :-1], windows[:, 1:]


def id_tensor(ids: Sequence[int], name: str) -> Int[Tensor, " tokens"]:
    """Token ids, in a list or a tensor with one axis, as a tensor.

    Raises:
        TypeError: anything but ints.
    """
    try:
        found = ids.clone() if isinstance(ids, Tensor) else torch.tensor(ids)
    except (TypeError, ValueError, RuntimeError):  # texts, lists in lists, numbers beyond 64 bits
        found = torch.tensor(0.5)
    if found.ndim == 1 and len(ids) == 0:
        return found.long()
    if found.is_floating_point() or found.dtype == torch.bool or found.ndim != 1:
        raise TypeError(
            f"{name} is {_shortened(ids)}; give token ids, a list of ints: tokenizer.encode(text)."
        )
    return found.long()


def _require_sequences(sequences: Sequence[Sequence[int]], length: int) -> None:
    if not sequences:
        raise ValueError("there are no sequences to pack; give at least one.")
    for i, sequence in enumerate(sequences):
        if not hasattr(sequence, "__len__"):
            raise TypeError(f"sequence {i} is {_shortened(sequence)}; give a list of token ids.")
        if not 0 < len(sequence) <= length:
            raise ValueError(
                f"sequence {i} has {len(sequence)} tokens, and a row has {length}: sequences are "
                f"packed whole. "
                + ("Leave it out." if not sequence else f"Choose length={len(sequence)} or more.")
            )
        if sequence[0] != sequences[0][0]:
            raise ValueError(
                f"sequence {i} begins with token {sequence[0]} and sequence 0 with "
                f"{sequences[0][0]}; all must begin with the same token, which separates them."
            )


def _require_ids(ids, least: int) -> None:
    if not isinstance(ids, Tensor) or ids.is_floating_point() or ids.dtype == torch.bool:
        raise TypeError("ids must be a tensor of integers: torch.tensor(tokenizer.encode(text)).")
    if ids.ndim != 1 or len(ids) < least:
        raise ValueError(
            f"ids have shape {tuple(ids.shape)}; a text of at least {least} tokens in one axis is "
            f"needed, one more than a window has inputs. Give more text, or shorter windows."
        )
