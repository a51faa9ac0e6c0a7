"""The alignment error rate: cases counted by hand, and arguments that do not fit."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lib.interpret.alignment import alignment_error_rate


def looking(*heads, keys):
    """Weights of one sentence: for each head the key that each row attends to most."""
    weights = torch.rand(len(heads), len(heads[0]), keys) * 0.5
    for head, places in enumerate(heads):
        for row, place in enumerate(places):
            weights[head, row, place] = 0.9
    return weights / weights.sum(dim=-1, keepdim=True)


def test_each_head_is_scored_by_itself():
    """mēri sūsan-ge gulābigaḷ-annu koṭṭaḷu: Mary gave the roses to Susan, links 0 3 2 2 1 1.

    Row t predicts word t; row 6 would predict the end and is not read, wherever it looks.
    """
    true = [[(0,), (3,), (2,), (2,), (1,), (1,)]]
    right, two_wrong, late = (
        [0, 3, 2, 2, 1, 1, 2],
        [0, 3, 2, 0, 1, 2, 1],
        [3, 0, 3, 2, 2, 1, 1],  # right if it were read one row later
    )
    weights = looking(right, two_wrong, late, keys=5).unsqueeze(0)
    assert_close(alignment_error_rate(weights, true), torch.tensor([0.0, 2 / 6, 4 / 6]))
    assert_close(alignment_error_rate(weights[:, :, 1:], true), torch.tensor([4 / 6, 5 / 6, 0.0]))


def test_a_word_of_two_words_and_a_word_of_none():
    """|A| = 3, |S| = 3, one in common where a word has links to 0 and 2 and another has none."""
    weights = looking([2, 1, 0], keys=3).unsqueeze(0)
    rate = alignment_error_rate(weights, [[(0, 2), (), (1,)]])
    assert_close(rate, torch.tensor([1 - 2 * 1 / (3 + 3)]))


def test_links_of_all_sentences_are_counted_together():
    """1 of 1 and 1 of 4: 2 of 5 right, not the mean of the two; rows of padding are not read."""
    short, long = looking([0, 1, 1, 1], keys=7), looking([6, 5, 4, 3], keys=7)
    rate = alignment_error_rate(torch.stack([short, long]), [[(0,)], [(6,), (6,), (6,), (6,)]])
    assert_close(rate, torch.tensor([1 - 2 / 5]))


def test_a_row_without_weight_has_no_link():
    weights = looking([0, 1], keys=3).unsqueeze(0)
    weights[:, :, 1] = 0
    assert_close(alignment_error_rate(weights, [[(0,), (0,)]]), torch.tensor([1 - 2 * 1 / (1 + 2)]))


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("weights", "true", "error", "message"),
    [
        (torch.ones(1, 1, 2, 3), [], ValueError, "0 alignments for a batch of 1"),
        (torch.ones(1, 2, 3), [[(0,)]], ValueError, r"\(1, 2, 3\); give one attention's map"),
        (torch.ones(1, 1, 2, 3), [[(0,)] * 3], ValueError, "has 3 words, but there are 2 rows"),
        (torch.ones(1, 1, 2, 3), [[(3,)]], ValueError, "source position 3, .* there are 3"),
        (torch.ones(1, 1, 2, 3), [[(-1,)]], ValueError, "source position -1"),
        (torch.ones(1, 1, 2, 3), [[(0.0,)]], TypeError, "links to 0.0; positions are ints"),
        (torch.ones(1, 1, 2, 3), [[(), ()]], ValueError, "have no link"),
        (torch.full((1, 1, 2, 3), torch.nan), [[(0,)]], ValueError, "weights"),
        (torch.ones(1, 1, 2, 3, dtype=torch.long), [[(0,)]], TypeError, "weights"),
    ],
)
def test_what_does_not_fit(weights, true, error, message):
    with pytest.raises(error, match=message):
        alignment_error_rate(weights, true)


@pytest.mark.usefixtures("as_a_reader")
def test_links_that_can_be_read_once():
    weights = looking([1, 0], keys=3).unsqueeze(0)
    assert alignment_error_rate(weights, [iter([iter([1]), iter([2])])]).tolist() == [0.5]
