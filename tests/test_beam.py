"""Beam search: against exhaustive search, with and without an end; and translations by it."""

import itertools

import pytest
import torch
from models import (
    END_ID,
    FEW,
    SMALLEST,
    VOCABULARY_OF_TARGET,
    make_few,
    make_pair,
    padded,
    prompt,
)
from torch.testing import assert_close

from transformer_lib.beam import beam_search, cut, penalty_of, translate
from transformer_lib.encoder_decoder import BEGIN
from transformer_lib.gpt import GPTConfig
from transformer_lib.sampling import generate


def every_continuation(model, ids, n):
    """All texts that go on from one prompt by ``n`` tokens, and their log-probabilities."""
    ends = torch.cartesian_prod(*[torch.arange(FEW)] * n).reshape(-1, n)
    texts = torch.cat((ids.expand(len(ends), -1), ends), dim=1)
    with torch.no_grad():
        steps = model(texts)[:, ids.shape[1] - 1 : -1].log_softmax(dim=-1)
    return texts, steps.gather(2, ends.unsqueeze(2)).squeeze(2).sum(dim=1)


@pytest.mark.parametrize(("n", "width"), [(1, 5), (3, 25), (3, 125), (4, 125), (3, 999)])
def test_full_width_equals_exhaustive_search(n, width):
    model, ids = make_few(), prompt(batch=3)
    found, scores = beam_search(model, ids, n, width=width)
    for row, sequence in enumerate(ids):
        texts, log_probabilities = every_continuation(model, sequence[None], n)
        best = log_probabilities.argsort(descending=True)
        assert found[row, 0].equal(texts[best[0]])
        assert_close(scores[row, 0], log_probabilities[best[0]], rtol=0, atol=1e-12)
        if width >= FEW**n:  # then it finds all of them, in order
            assert found[row].equal(texts[best])
            assert_close(scores[row].exp().sum().item(), 1.0)
    assert found.shape == (3, min(width, FEW**n), 3 + n)


def test_width_one_is_greedy_and_a_narrow_beam_is_scored_rightly():
    model, ids = make_few(GPTConfig.gpt2(**SMALLEST)), prompt(batch=3)
    greedy, _ = beam_search(model, ids, 6, width=1)
    assert greedy[:, 0].equal(generate(model, ids, 6, temperature=0))
    undecided = make_few(GPTConfig.gpt2(**SMALLEST))
    undecided.embedding.weight.data.zero_()  # all logits are equal
    found, _ = beam_search(undecided, ids, 6, width=1)
    assert found[:, 0].equal(generate(undecided, ids, 6, temperature=0))
    assert beam_search(undecided, ids, 6, width=1, end=2)[0][:, 0, :-1].equal(found[:, 0, :-1])
    found, scores = beam_search(model, ids, 6, width=4)
    assert (scores.diff(dim=1) <= 0).all()
    with torch.no_grad():
        steps = model(found.flatten(0, 1))[:, 2:-1].log_softmax(dim=-1)
    taken = steps.gather(2, found.flatten(0, 1)[:, 3:].unsqueeze(2)).sum(dim=(1, 2))
    assert_close(scores.flatten(), taken, rtol=0, atol=1e-12)
    for sequence in found:
        assert len(sequence.unique(dim=0)) == 4


def test_greedy_is_not_always_the_most_probable_text():
    """Some prompt shows it: what beam search is for."""
    model, ids = make_few(), torch.cartesian_prod(*[torch.arange(FEW)] * 3)
    _, greedy = beam_search(model, ids, 4, width=1)
    _, wide = beam_search(model, ids, 4, width=125)
    assert (wide[:, 0] >= greedy[:, 0] - 1e-12).all()
    assert (wide[:, 0] > greedy[:, 0] + 1e-6).any()


def every_ended_text(model, source, n, length_penalty):
    """All targets of at most ``n`` tokens, the end included, judged and sorted."""
    others = [token for token in range(VOCABULARY_OF_TARGET) if token != END_ID]
    found = []
    for length in range(1, n + 1):
        rows = [[*row, END_ID] for row in itertools.product(others, repeat=length - 1)]
        ids = torch.tensor([[BEGIN, *row] for row in rows])
        with torch.no_grad():
            logits = model(source.expand(len(ids), -1), ids[:, :-1])
        taken = logits.log_softmax(dim=-1).gather(2, ids[:, 1:].unsqueeze(2)).sum(dim=(1, 2))
        judged = taken / penalty_of(length, length_penalty)
        found += zip(judged.tolist(), rows, strict=True)
    return sorted(found, reverse=True)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 2.0])
def test_with_an_end_a_beam_as_wide_as_everything_equals_exhaustive_search(length_penalty):
    model, sources = make_pair(), padded([[3, 4, 5], [3, 4, 5, 6, 7]])
    begin, n = torch.full((2, 1), BEGIN), 4
    width = VOCABULARY_OF_TARGET ** (n - 1)
    texts, judged = beam_search(
        model.given(sources), begin, n, width=width, end=END_ID, length_penalty=length_penalty
    )
    for row, source in enumerate(sources):
        expected = every_ended_text(model, source[None], n, length_penalty)
        for place, (score, text) in enumerate(expected[:20]):
            assert_close(judged[row, place].item(), score, rtol=0, atol=1e-10)
            assert cut(texts[row, place, 1:].tolist()) == text[:-1]


def test_a_length_penalty_favors_longer_texts():
    model, sources = make_pair(), padded([[3, 4, 5], [6, 7]])
    begin, lengths = torch.full((2, 1), BEGIN), []
    for length_penalty in (0.0, 3.0):
        texts, _ = beam_search(
            model.given(sources), begin, 6, width=4, end=END_ID, length_penalty=length_penalty
        )
        lengths.append(sum(len(cut(text)) for text in texts[:, 0, 1:].tolist()))
    assert lengths[0] < lengths[1]


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_batch_is_translated_exactly_as_each_alone(width):
    rows, found = [[3, 4, 5], [6], [7, 3, 3, 4, 5, 6], [5, 5]], set()
    for _ in range(3):
        model = make_pair()
        for parameter in model.parameters():
            parameter.data *= 1.5
        model.target_embedding.weight.data[END_ID] *= 0.3  # so that something is said
        alone = [translate(model, torch.tensor([row]), width=width)[0] for row in rows]
        assert translate(model, padded(rows), width=width) == alone
        found |= {tuple(text) for text in alone}
    assert len(found) > 3


def test_a_greedy_translation_is_the_most_probable_token_at_each_step():
    model, source = make_pair(), torch.tensor([[3, 4, 5]])
    ids = [BEGIN]
    with torch.no_grad():
        while ids[-1] != END_ID and len(ids) < 2 * 3 + 10:
            ids.append(model(source, torch.tensor([ids]))[0, -1].argmax().item())
    assert translate(model, source) == [cut(ids[1:])]
    assert translate(model.train(), source, n_tokens=3) == [cut(ids[1:3])]
    assert model.training


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width is 0"),
        ({"n_tokens": 11}, "3 tokens and 11 new ones make 14"),
        ({"end": 5}, "end is 5; .* 0 <= end < 5"),
        ({"end": 4, "length_penalty": -1.0}, "length_penalty is -1.0; it is an exponent"),
        ({"length_penalty": 0.6}, "a length penalty is given without an end token"),
        ({"end": 4, "n_tokens": torch.tensor([2])}, r"n_tokens are \[2\] for 2 prompts"),
        ({"n_tokens": torch.tensor([2, 2])}, r"with an end token, one for each"),
    ],
)
def test_beams_that_make_no_sense(options, message):
    options = {"n_tokens": 2, "width": 2} | options
    with pytest.raises(ValueError, match=message):
        beam_search(make_few(), prompt(), **options)
