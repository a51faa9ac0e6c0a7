"""Markov chains and their readers, against counting by hand and against each other."""

import math

import pytest
import torch

from transformer_lib.data.markov import READERS, chains, loss_of, read


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_chain_is_the_same_again_and_each_has_a_table_of_its_own():
    ids = chains(5, 4001, generator=generator())
    assert torch.equal(ids, chains(5, 4001, generator=generator()))
    share_of_pairs = [
        [(row[1:][row[:-1] == state] == 0).double().mean().item() for state in range(3)]
        for row in ids
    ]
    spread = torch.tensor(share_of_pairs).std(dim=0)
    assert (spread > 0.05).all()


def test_rows_of_the_tables_are_uniform_among_distributions():
    """Of a Dirichlet(1) with 3 parts, a part is on average 1/3, and has the variance 1/18."""
    ids = chains(3000, 400, generator=generator(1))
    after_0 = ids[:, :-1] == 0
    counts = ((ids[:, 1:] == 1) & after_0).sum(dim=1).double()
    often = after_0.sum(dim=1) > 60
    share = (counts / after_0.sum(dim=1))[often]
    assert abs(share.mean().item() - 1 / 3) < 0.03
    assert abs(share.var().item() - 1 / 18) < 0.015


@pytest.mark.parametrize("reader", READERS)
def test_readers_count_as_by_hand(reader):
    ids = chains(2, 13, 3, generator=generator(2))
    expected = read(ids, 3, reader)
    for row, found in zip(ids.tolist(), expected, strict=True):
        for t in range(len(row) - 1):
            seen = row[: t + 1]
            counts = [1, 1, 1]
            for i, state in enumerate(seen):
                if reader == "unigram" or (reader == "bigram" and i and seen[i - 1] == seen[-1]):
                    counts[state] += 1
            assert found[t].tolist() == pytest.approx([c / sum(counts) for c in counts])


def test_each_reader_is_better_than_the_one_before():
    ids = chains(500, 60, generator=generator(3))
    losses = [loss_of(ids, 3, reader) for reader in READERS]
    assert losses[0] == pytest.approx(math.log(3))
    assert losses[0] > losses[1] + 0.03 > losses[2] + 0.06


def test_nobody_beats_the_bigram_who_does_not_know_the_tables():
    """Other first counts than 1 belong to other ways to draw tables: they lose."""
    ids = chains(2000, 40, generator=generator(4))
    best = loss_of(ids, 3, "bigram")
    counts = read(ids, 3, "bigram")
    for sharpness in (0.8, 1.25):
        other = counts**sharpness
        other = other / other.sum(-1, keepdim=True)
        loss = -other.gather(-1, ids[:, 1:, None]).log().mean().item()
        assert loss > best


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: chains(0, 5), "n is 0"),
        (lambda: chains(1, 5, 1), "n_states is 1; choose 2"),
        (lambda: read(torch.tensor([[0, 3]]), 3, "bigram"), "holds 0 to 3"),
        (lambda: read(torch.tensor([[0]]), 3, "bigram"), "two states at least"),
        (lambda: read(torch.tensor([0, 1]), 3, "bigram"), r"shape \(2,\); give"),
        (lambda: read(torch.empty(0, 5).long(), 3, "bigram"), r"shape \(0, 5\); give"),
        (lambda: read(torch.tensor([[0, 1]]), 3, "trigram"), "reader"),
    ],
)
def test_what_is_refused(call, problem, as_a_reader):
    with pytest.raises(ValueError, match=problem):
        call()
