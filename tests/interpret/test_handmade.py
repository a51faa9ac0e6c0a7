"""Every tool on a model whose weights were written by hand: what it must say is known."""

import math

import pytest
import torch

from transformer_lib.interpret.handmade import induction_gpt
from transformer_lib.interpret.lens import direct_logits, logit_lens
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.interpret.parts import part_names
from transformer_lib.interpret.patching import logits_without, patched_logits
from transformer_lib.interpret.scores import induction_score, previous_token_score

VOCABULARY, PERIOD, TOKENS = 7, 5, 13
BEFORE, INDUCTION = "blocks.0.attention.0", "blocks.1.attention.0"
IDLE = ["blocks.0.attention.1", "blocks.0.feed_forward", "blocks.1.attention.1"]


@pytest.fixture(scope="module")
def model():
    return induction_gpt(VOCABULARY, TOKENS)


def rounds(n, seed=0):
    """Texts that repeat a round of different tokens, and which token follows each."""
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(VOCABULARY, generator=generator)[:PERIOD] for _ in range(n)]
    texts = torch.stack([order.repeat(4)[: TOKENS + 1] for order in orders])
    return texts[:, :-1], texts[:, 1:]


def right(logits, follows):
    """The share that is right from the second round on."""
    return (logits.argmax(-1) == follows)[:, PERIOD:].float().mean().item()


def test_it_completes_every_pair(model):
    ids, follows = rounds(50)
    logits = model(ids)
    assert right(logits, follows) == 1
    chances = logits.softmax(-1).gather(-1, follows[..., None])[:, PERIOD:]
    assert chances.min() > 0.999


@pytest.mark.parametrize("sizes", [(2, 2), (11, 3), (3, 17)])
def test_it_is_made_in_any_size(sizes):
    model = induction_gpt(*sizes)
    ids = torch.tensor([[1, 0, 1]])[:, : sizes[1]]
    if sizes[1] >= 3:
        assert model(ids)[0, -1].argmax() == 0
    assert model(ids).shape[-1] == sizes[0]


def test_the_scores_of_its_heads(model):
    ids, _ = rounds(5)
    first, second = attention_maps(model, ids).values()
    assert previous_token_score(first)[0] == pytest.approx(1, abs=1e-6)
    assert induction_score(second, ids)[0] == pytest.approx(1, abs=1e-6)
    # The idle heads look at all tokens so far alike: 1 / (t + 1) each.
    even = torch.tensor([1 / (t + 1) for t in range(TOKENS)])
    assert previous_token_score(first)[1] == pytest.approx(even[1:].mean().item(), abs=1e-6)
    copies = torch.tensor([t // PERIOD for t in range(PERIOD, TOKENS)])
    expected = (copies * even[PERIOD:]).mean().item()
    assert induction_score(second, ids)[1] == pytest.approx(expected, abs=1e-6)


def test_the_lens_sees_the_answer_behind_the_second_block_only(model):
    ids, follows = rounds(3)
    embedded, first, second = logit_lens(model, ids)
    for early in (embedded, first):
        surprise = -early.log_softmax(-1)
        torch.testing.assert_close(surprise, torch.full_like(surprise, math.log(VOCABULARY)))
    assert right(second, follows) == 1


def test_all_of_the_answer_is_written_by_the_second_blocks_head(model):
    ids, follows = rounds(3)
    found = direct_logits(model, ids)
    torch.testing.assert_close(found[INDUCTION], model(ids))
    assert all(found[name].abs().max() == 0 for name in found if name != INDUCTION)
    asked = found[INDUCTION].gather(-1, follows[..., None])[:, PERIOD:]
    torch.testing.assert_close(asked, torch.full_like(asked, 20.0))


def test_each_head_of_the_circuit_is_needed_and_nothing_else(model):
    ids, follows = rounds(20)
    torch.testing.assert_close(logits_without(model, ids, IDLE), model(ids))
    assert right(logits_without(model, ids, [BEFORE]), follows) < 0.4
    assert logits_without(model, ids, [INDUCTION]).abs().max() == 0
    assert right(model(ids), follows) == 1  # it is as it was


def test_a_patch_moves_the_answer_where_the_circuit_reads_it(model):
    """a b c d e a b c d e a b: what follows the last b is c, in the other text x."""
    ids = torch.tensor([[0, 1, 2, 3, 4, 0, 1]])
    other = torch.tensor([[0, 1, 5, 3, 4, 0, 1]])

    def answer(part, place):
        return patched_logits(model, ids, other, part, place)[0, -1].argmax()

    assert model(ids)[0, -1].argmax() == 2
    assert answer("embedding", 2) == 5  # the token itself
    assert answer("blocks.0", 2) == 5  # or its stream behind the first block
    assert answer(INDUCTION, 6) == 5  # or what the second head has read, at the end
    assert answer(BEFORE, 2) == 2  # what stood before it is the same in both
    assert answer("blocks.0", 6) == 2
    assert answer("embedding", None) == 5


def test_a_patch_of_what_stood_before_moves_the_answer_too(model):
    """0 1 2 3 1: the last 1 looks for who says that a 1 came before it; patched, it is token 3."""
    ids = torch.tensor([[0, 1, 2, 3, 1]])
    other = torch.tensor([[0, 2, 1, 3, 2]])  # here a 1 is before place 3
    assert model(ids)[0, -1].argmax() == 2
    assert patched_logits(model, ids, other, BEFORE)[0, -1].argmax() == 3


def test_its_parts_are_all_that_it_writes(model):
    assert set(part_names(model)) == {
        "embedding",
        BEFORE,
        INDUCTION,
        *IDLE,
        "blocks.1.feed_forward",
    }
