"""Worlds: what each rule lets one say, and draws with the chances given."""

import math
import random
from collections import Counter

import pytest

from transformer_lib.data.gifts.world import RULES, World, chooser

TWO, THREE = ("mary", "susan"), ("mary", "susan", "john")


def test_the_sentences_of_each_rule():
    world = World({"roses": "mary", "pens": "john"}, "roses")
    found = {rule: {" ".join(s) for s in world.sentences(rule, THREE, ())} for rule in RULES}
    assert found["give_it"] == {"mary gave it to susan .", "mary gave it to john ."}
    assert found["ask"] == {"who has roses ? mary .", "who has pens ? john ."}
    assert "john gave pens to mary ." in found["give"]
    assert "susan and john swapped all gifts ." in found["swap"]
    assert {rule: len(sentences) for rule, sentences in found.items()} == {
        "give": 4, "give_it": 2, "ask": 2, "swap": 6,
    }  # fmt: skip
    new = world.sentences("at_first", TWO, ("roses", "cups"))
    assert [s[:3] for s in new] == [("mary", "has", "cups"), ("susan", "has", "cups")]
    with pytest.raises(ValueError, match="rule is 'steal'; there are at_first, give"):
        world.sentences("steal", THREE, ())


def test_the_chooser_draws_with_the_chances_given():
    choose = chooser(random.Random(2))
    uniform = Counter(choose("abcd") for _ in range(4000))
    weighted = Counter(choose("abcd", [0.5, 0.0, 0.2, 0.3]) for _ in range(4000))
    assert weighted["b"] == 0
    for counts, chances in ((uniform, [0.25] * 4), (weighted, [0.5, 0, 0.2, 0.3])):
        for letter, chance in zip("abcd", chances, strict=True):
            deviation = math.sqrt(4000 * chance * (1 - chance))
            assert abs(counts[letter] - 4000 * chance) <= 3 * deviation


def test_a_draw_beyond_the_last_chance_by_rounding():
    class Last(random.Random):
        def random(self):
            return 1 - 2**-53

    assert chooser(Last())("abc") == "c"
    assert chooser(Last())("abc", [0.1] * 3) == "c"


def test_what_is_said_changes_the_world():
    world = World()
    for sentence, owners, latest in [
        ("mary has roses at first .", {"roses": "mary"}, "roses"),
        ("john has pens at first .", {"roses": "mary", "pens": "john"}, "pens"),
        ("who has roses ? mary .", {"roses": "mary", "pens": "john"}, "roses"),
        ("mary gave it to john .", {"roses": "john", "pens": "john"}, "roses"),
        ("john gave pens to susan .", {"roses": "john", "pens": "susan"}, "pens"),
        ("susan and john swapped all gifts .", {"roses": "susan", "pens": "john"}, "pens"),
        ("susan and mary swapped all gifts .", {"roses": "mary", "pens": "john"}, "pens"),
    ]:
        world.follow(tuple(sentence.split()))
        assert (world.owners, world.latest) == (owners, latest), sentence
