"""EmbeddingMap, the Python side: what it accepts, what it computes, what comes back."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer_lib.widgets import EmbeddingMap

WORDS = ["mary", "susan", "roses", "books", "to"]
TABLE = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_neighbors_are_by_cosine_in_all_components():
    widget = EmbeddingMap(TABLE, WORDS)
    for i, word in enumerate(WORDS):
        right = F.cosine_similarity(TABLE[i], TABLE)
        found = widget.nearest(word)
        assert [name for name, _ in found] == [
            WORDS[j] for j in right.argsort(descending=True).tolist() if j != i
        ]
        for name, cosine in found:
            assert cosine == pytest.approx(right[WORDS.index(name)].item())
    with pytest.raises(ValueError, match="word is 'ravi'; the words are mary"):
        widget.nearest("ravi")


def test_the_map_is_of_the_principal_components():
    """As NumPy's eigenvectors of the covariance have them, but for the sign."""
    widget = EmbeddingMap(TABLE, WORDS)
    places = np.frombuffer(widget._places, dtype="<f4").reshape(5, -1)
    centered = (TABLE - TABLE.mean(dim=0)).numpy()
    variances, axes = np.linalg.eigh(centered.T @ centered)
    right = centered @ axes[:, ::-1][:, :4]
    assert places.shape == right.shape
    np.testing.assert_allclose(np.abs(places), np.abs(right), atol=1e-5)
    assert places[np.abs(places).argmax(axis=0), np.arange(4)].min() > 0
    shares = json.loads(widget._text)["shares"]
    np.testing.assert_allclose(shares, variances[::-1][:4] / variances.sum(), rtol=1e-9)


def test_what_the_reader_does_comes_back_and_is_checked():
    widget = EmbeddingMap(TABLE, WORDS, groups={"people": WORDS[:2]}, selection=2)
    assert repr(widget) == "EmbeddingMap(words=5, d=6, pairs=2)"
    widget.set_state({"selection": 4, "pair": 1})
    assert (widget.selection, widget.pair) == (4, 1)
    with pytest.raises(
        ValueError, match=r"selection is 5, but must be one of: mary, .*; or 0 to 4"
    ):
        widget.selection = 5
    with pytest.raises(ValueError, match="pair is 2, but must be a whole number from 0 to 1"):
        widget.pair = 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(2, 3), WORDS[:2]), r"shape \(2, 3\).*3 to 100"),
        ((torch.ones(5, 1), WORDS), r"shape \(5, 1\).*at least 2 components"),
        ((torch.randn(101, 4), ["a"] * 101), r"shape \(101, 4\).*choose some rows"),
        ((torch.ones(5, 3), WORDS), "all rows of vectors are alike"),
        ((TABLE * torch.tensor([[1], [1], [0], [1], [1]]), WORDS), "vector of 'roses' is zero"),
        ((TABLE, WORDS[:3]), "3 words"),
    ],
)
def test_bad_tables_are_refused(as_a_reader, arguments, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingMap(*arguments)


def test_bad_groups_are_refused(as_a_reader):
    with pytest.raises(ValueError, match=r"'people'.*'ravi', which is not among the words"):
        EmbeddingMap(TABLE, WORDS, groups={"people": ["ravi"]})
    with pytest.raises(ValueError, match="5 groups, but marks for 4"):
        EmbeddingMap(TABLE, WORDS, groups={name: [] for name in "abcde"})
