"""Worlds: what each rule lets one say, and draws with the chances given."""

import math
import random
from collections import Counter

import pytest

from transformer_lib.data.gifts.world import OPTIONAL, RULES, Maybe, World, chooser, pattern

TWO, THREE = ("mary", "susan"), ("mary", "susan", "john")


def test_the_sentences_of_each_rule():
    world = World({"roses": "mary", "pens": "john"}, "roses")
    found = {rule: {" ".join(s) for s in world.sentences(rule, THREE, ())} for rule in RULES}
    it = "kindly gave it to"
    assert found["give_it"] == {f"mary {it} susan today .", f"mary {it} john today ."}
    assert found["ask"] == {"so who has the roses now ? mary .", "so who has the pens now ? john ."}
    assert "john kindly gave the pens to mary today ." in found["give"]
    assert "susan and john kindly swapped all gifts today ." in found["swap"]
    assert {rule: len(sentences) for rule, sentences in found.items()} == {
        "give": 4, "give_it": 2, "ask": 2, "swap": 6,
    }  # fmt: skip
    new = world.sentences("at_first", TWO, ("roses", "cups"))
    expected = [("mary", "has", "the", "cups"), ("susan", "has", "the", "cups")]
    assert [s[:4] for s in new] == expected
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
        ("john kindly gave the pens to susan today .", {"roses": "john", "pens": "susan"}, "pens"),
        ("so who has the roses now ? john .", {"roses": "john", "pens": "susan"}, "roses"),
        ("susan and john swapped all gifts .", {"roses": "susan", "pens": "john"}, "roses"),
        ("susan and mary kindly swapped all gifts .", {"roses": "mary", "pens": "john"}, "roses"),
    ]:
        world.follow(tuple(sentence.split()))
        assert (world.owners, world.latest) == (owners, latest), sentence


def test_the_pattern_of_each_rule():
    """Its words that may be left out are of their own type; without them, a sentence is as short as
    in a grammar that has none of them.
    """
    optional = {
        rule: [word for word in pattern(rule) if isinstance(word, Maybe)]
        for rule in ("at_first", *RULES)
    }
    assert optional == {
        "at_first": ["the"],
        "give": ["kindly", "the", "today"],
        "give_it": ["kindly", "today"],
        "ask": ["so", "the", "now"],
        "swap": ["kindly", "today"],
    }
    shortest = {rule: len(pattern(rule)) - len(optional[rule]) for rule in optional}
    assert shortest == {"at_first": 6, "give": 6, "give_it": 6, "ask": 6, "swap": 7}
    assert set().union(*optional.values()) == set(OPTIONAL)
