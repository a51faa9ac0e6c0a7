"""Does attention look where a word comes from? Its links, scored against the true alignment."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lib import checks

# For each target word the source words that it comes from, as indices from 0.
Alignment = Sequence[Sequence[int]]


def alignment_error_rate(
    weights: Float[Tensor, "batch heads queries keys"], true: Sequence[Alignment]
) -> Float[Tensor, " heads"]:
    """How far the links of each head are from the true ones: 0 all right, 1 all wrong.

    A head links each target word to the one source word that it attends to most, read at the query
    that *predicts* the word: the decoder's input is the begin token and the words, so row t, whose
    input is word t − 1, predicts word t, counted from 0. (One row later the word is the input, and
    the query looks for the next one.) Rows beyond the words, such as that of the end token, are not
    read. A row without any weight has no link.

    With A the links of all sentences together and S the true ones, all of them sure,

        AER = 1 − 2 |A ∩ S| / (|A| + |S|)

    Args:
        weights: a cross-attention's map, as ``attention_maps(model, source, target)`` gives it.
        true: for each sentence of the batch its alignment.

    Raises:
        ValueError: not one alignment for each sentence; more words than rows; links to source
            positions that are not there; no true link at all; weights that are not finite.
        TypeError: weights that are not floats, indices that are not ints.

    Source: Och & Ney, 2003, "A Systematic Comparison of Various Statistical Alignment Models",
    Computational Linguistics 29, section 5, with every link sure (then S = P).

    >>> weights = torch.tensor([[[[0.1, 0.7, 0.2], [0.3, 0.3, 0.4], [0.9, 0.1, 0.0]]]])
    >>> alignment_error_rate(weights, [[(1,), (0,)]])  # the first of two words is right
    tensor([0.5000])
    """
    true = [[list(places) for places in alignment] for alignment in true]
    require_aligned(weights, true)
    n_true = sum(len(set(places)) for alignment in true for places in alignment)
    correct = torch.zeros(weights.shape[1])
    linked = torch.zeros(weights.shape[1])
    for sentence, alignment in zip(weights.cpu(), true, strict=True):
        most, chosen = sentence[:, : len(alignment)].max(dim=2)  # [heads, words]
        sure = torch.zeros(len(alignment), sentence.shape[2], dtype=torch.bool)
        for word, places in enumerate(alignment):
            sure[word, places] = True
        there = most > 0
        linked += there.sum(dim=1)
        correct += (there & sure.gather(1, chosen.T).T).sum(dim=1)
    return 1 - 2 * correct / (linked + n_true)


def require_aligned(weights, true) -> None:
    """Weights of a batch of sentences, and an alignment that fits each of them."""
    checks.require_float_tensor(weights, "weights")
    if weights.dim() != 4:
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}; give one attention's map, "
            f"[batch, heads, queries, keys]."
        )
    checks.require_finite(weights, "weights")
    batch, _, queries, keys = weights.shape
    if len(true) != batch:
        raise ValueError(
            f"there are {len(true)} alignments for a batch of {batch}; give one for each sentence."
        )
    for number, alignment in enumerate(true):
        if len(alignment) > queries:
            raise ValueError(
                f"alignment {number} has {len(alignment)} words, but there are {queries} rows of "
                f"weights. Run the decoder on the begin token and these words."
            )
        for place in (place for places in alignment for place in places):
            if not isinstance(place, int):
                raise TypeError(f"alignment {number} links to {place!r}; positions are ints.")
            if not 0 <= place < keys:
                raise ValueError(
                    f"alignment {number} links to source position {place}, from 0; there are "
                    f"{keys} of them."
                )
    if not any(places for alignment in true for places in alignment):
        raise ValueError("the alignments have no link, so there is nothing to compare with.")
