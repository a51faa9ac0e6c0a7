"""YourPart, the Python side: two looks at one head."""

from dataclasses import replace

import pytest
import torch
from figures import STORIES, make_examined, make_trained

from transformer_lib.interpret.maps import attention_maps
from transformer_lib.interpret.your_part import using
from transformer_lib.training.asking import accuracy, examine, questions
from transformer_lib.widgets import YourPart


def test_what_was_examined_is_the_machines_own():
    trained = make_trained(context=90)
    before, after = make_examined()
    ids = torch.tensor([trained.tokenizer.encode(" ".join(before.words))])
    maps = attention_maps(trained.model, ids)["blocks.1.attention"]
    assert before.weights.equal(maps[0, 0].detach())
    chances = trained.model(ids)[0, -1].softmax(-1)
    assert before.said == trained.tokenizer.vocabulary[chances.argmax()]
    assert before.probability == pytest.approx(chances.max().item())
    asked = questions(trained, 8)
    assert (before.right, before.asked) == (round(8 * accuracy(trained, asked)), 8)
    with using(trained.model, apply_rotary=lambda x, angles: x):
        turned = attention_maps(trained.model, ids)["blocks.1.attention"][0, 0]
    assert after.weights.equal(turned.detach())
    assert not after.weights.allclose(before.weights)
    assert after.head == before.head == "block 2, head 1"
    assert before.parts == ()
    assert after.parts == (("apply_rotary", "not_at_all"),)


def test_of_fewer_heads_the_last_is_looked_at():
    trained = make_trained(context=90)
    with using(trained.model, split_heads=lambda x, n: x[:, None], merge_heads=lambda z: z[:, 0]):
        found = examine(trained, STORIES[1], "block-2-head-2", questions(trained, 2))
    assert found.weights.sum(dim=-1).allclose(torch.ones(len(STORIES[1].split())))


@pytest.mark.parametrize("head", ["block-3-head-1", "block-1-head-3", "block-1", "head"])
def test_a_head_that_is_not_there_is_refused(head):
    with pytest.raises(ValueError, match="block-1-head-1 to block-2-head-2"):
        examine(make_trained(), STORIES[1], head, [])


def test_it_holds_both_and_says_its_size():
    before, after = make_examined()
    widget = YourPart(before, after, part="apply_rotary")
    assert repr(widget) == f"YourPart(words={len(before.words)})"
    assert before.weights.numpy().tobytes() == bytes(widget._before)
    assert after.weights.numpy().tobytes() == bytes(widget._after)


def test_two_that_do_not_belong_together_are_refused():
    before, after = make_examined()
    with pytest.raises(ValueError, match=r"before is of block 2, head 1.*after of block 1, head 1"):
        YourPart(before, replace(after, head="block 1, head 1"))
    with pytest.raises(ValueError, match="same head with the same story"):
        YourPart(before, replace(after, words=after.words[:-1]))
    with pytest.raises(ValueError, match=r"the weights after have the shape \(2, 2\)"):
        YourPart(before, replace(after, weights=torch.eye(2)))
    with pytest.raises(TypeError, match="examine"):
        YourPart(before, "after")
    with pytest.raises(ValueError, match="word is 99"):
        YourPart(before, after, word=99)
