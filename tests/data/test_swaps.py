"""The stories of swaps: all different, and the answer follows from two facts and from neither."""

from collections import Counter

from transformer_lib.data import swaps


def test_every_story_is_told_once_and_its_answer_follows():
    stories = swaps.stories()
    assert len({story.text for story in stories}) == len(stories) == 96
    for text, first, swapped, owner in stories:
        words = text.split()
        assert len(words) == 11
        assert words[0] == first
        assert (words[5] in swaps.SWAPS) == swapped
        assert words[2] == words[9]
        assert (owner == first) == (not swapped)


def test_neither_fact_alone_says_anything():
    for fact in ("first", "swapped"):
        seen = Counter((getattr(story, fact), story.owner) for story in swaps.stories())
        assert set(seen.values()) == {24}


def test_the_vocabulary_holds_each_word_once():
    words = {word for story in swaps.stories() for word in story.text.split()}
    assert sorted(words) == swaps.vocabulary()
