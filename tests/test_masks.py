"""Masks: against loops that spell out the definition, on prime-sized axes."""

import pytest
import torch

from transformer_lib.masks import causal_mask, combine_masks, padding_mask, sliding_window_mask


def by_definition(queries, keys, allowed):
    """A mask from a rule about positions; the last query is at the last key."""
    rows = [[allowed(row + keys - queries, key) for key in range(keys)] for row in range(queries)]
    return torch.tensor(rows)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 7), (3, 7), (7, 3), (1, 1)])
def test_causal_mask_sees_itself_and_the_past(queries, keys):
    expected = by_definition(queries, keys, lambda query, key: key <= query)
    assert causal_mask(queries, keys).equal(expected)
    assert causal_mask(queries, keys)[-1].all()  # the last query sees every key


def test_causal_mask_is_square_by_default():
    assert causal_mask(5).equal(torch.ones(5, 5).tril().bool())


def test_more_queries_than_keys_leave_the_first_rows_empty():
    assert causal_mask(7, 3).any(dim=1).tolist() == [False] * 4 + [True] * 3


@pytest.mark.parametrize("window", [1, 2, 3, 11])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 7), (3, 7), (7, 3)])
def test_sliding_window_sees_that_many_keys_and_no_more(queries, keys, window):
    mask = sliding_window_mask(queries, window, keys)
    expected = by_definition(queries, keys, lambda query, key: query - window < key <= query)
    assert mask.equal(expected)
    assert mask[-1].sum() == min(window, keys)


def test_a_wide_window_is_the_causal_mask():
    assert sliding_window_mask(5, 5).equal(causal_mask(5))


@pytest.mark.parametrize("lengths", [[3, 0, 5], (3, 0, 5), torch.tensor([3, 0, 5])])
def test_padding_is_hidden_as_a_key(lengths):
    mask = padding_mask(lengths, keys=5)
    assert mask.shape == (3, 1, 5)
    assert mask[:, 0].tolist() == [[True] * n + [False] * (5 - n) for n in (3, 0, 5)]


def test_combining_is_and_with_broadcasting():
    causal, padding = causal_mask(5), padding_mask([2, 5, 3], keys=5)
    combined = combine_masks(None, causal, padding)
    assert combined.shape == (3, 5, 5)
    for b in range(3):
        for i in range(5):
            for j in range(5):
                assert combined[b, i, j] == (causal[i, j] and padding[b, 0, j])


def test_combining_nothing_is_nothing():
    assert combine_masks() is None
    assert combine_masks(None, None) is None


def test_combining_does_not_write_into_the_masks():
    causal, padding = causal_mask(5), padding_mask([2], keys=5)
    before = causal.clone(), padding.clone()
    combine_masks(causal, padding, torch.zeros(5, 5, dtype=torch.bool))
    assert causal.equal(before[0])
    assert padding.equal(before[1])


def test_the_device_is_the_one_asked_for():
    assert causal_mask(3, device="meta").device.type == "meta"
    assert sliding_window_mask(3, 2, device="meta").device.type == "meta"
    assert padding_mask(torch.ones(3, dtype=torch.long, device="meta"), 5).device.type == "meta"


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: causal_mask(0), ValueError, "queries is 0; it must be at least 1"),
        (lambda: causal_mask(3, 0), ValueError, "keys is 0"),
        (lambda: causal_mask(2.0), TypeError, "queries is 2.0, of type float; it must be an int"),
        (lambda: sliding_window_mask(3, 0), ValueError, "window is 0"),
        (lambda: padding_mask([3, 6], 5), ValueError, r"\[3, 6\]; each must lie between 0 and "),
        (lambda: padding_mask([-1], 5), ValueError, r"lengths are \[-1\]"),
        (lambda: padding_mask([1.5], 5), TypeError, "must be integers"),
        (lambda: padding_mask([True], 5), TypeError, "dtype torch.bool; they must be integers"),
        (lambda: padding_mask(torch.ones(2, 3).long(), 5), ValueError, r"\(2, 3\); give one"),
        (
            lambda: combine_masks(causal_mask(5), padding_mask([2, 3], keys=7)),
            ValueError,
            r"masks of shapes \(5, 5\) and \(2, 1, 7\) do not broadcast",
        ),
        (
            lambda: combine_masks(causal_mask(5), torch.ones(5, 5)),
            TypeError,
            "mask has dtype torch.float32; a mask is a boolean tensor, True = may attend",
        ),
        (lambda: combine_masks([[True]]), TypeError, "mask is of type list"),
        (
            lambda: combine_masks(causal_mask(5), causal_mask(5, device="meta")),
            ValueError,
            "one mask is on cpu, another on meta",
        ),
    ],
)
def test_errors_teach(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_lengths_of_few_bits_meet_more_keys_than_they_could_count():
    mask = padding_mask(torch.tensor([3, 100], dtype=torch.int8), 300)
    assert mask.flatten(1).sum(dim=1).tolist() == [3, 100]
    with pytest.raises(ValueError, match="between 0 and keys = 2"):
        padding_mask(torch.tensor([3], dtype=torch.int8), 2)
