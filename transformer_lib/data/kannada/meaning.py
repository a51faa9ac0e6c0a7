"""Every sentence of the grammar in both languages: the one place that knows the order of words.

Kannada puts the verb last, and its ending says who acts; English needs a subject, articles, *do*
and *to*. So the two have different words in a different order, and the alignment says which English
word comes from which Kannada words.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from transformer_lib.data.kannada.script import to_script
from transformer_lib.data.kannada.words import (
    OBJECTS,
    PEOPLE,
    PLACES,
    PRONOUNS,
    VERBS,
    YESTERDAY,
    Person,
    Verb,
    accusative,
    dative,
)


class Sentence(NamedTuple):
    """A sentence and its translation, words separated by single spaces.

    Attributes:
        source: in Kannada script.
        target: in English, with a capital and without a full stop.
        alignment: for each English word the indices, from 0, of the Kannada words it comes from.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, ...], ...]


class Meaning(NamedTuple):
    """What a sentence says, in English: subject, verb, object (or place); and whether to whom."""

    triple: tuple[str, str, str]
    receiver: bool


class Part(NamedTuple):
    """A part of a sentence: one Kannada word, and the English words that it becomes."""

    kannada: str
    english: str


def write(
    subject: Part, verb: Part, thing: Part, receiver: Part | None, time: Part | None, *, drop: bool
) -> Sentence:
    """Both sentences and their alignment, from their parts.

    With ``drop``, Kannada leaves the subject out, and the English one comes from the verb.

    >>> parts = Part("nānu", "I"), Part("kuḍidenu", "drank"), Part("nīrannu", "the water")
    >>> write(*parts, None, None, drop=True)[1:]
    ('I drank the water', ((1,), (1,), (0,), (0,)))
    """
    kannada = [part for part in (time, None if drop else subject, receiver, thing, verb) if part]
    words, alignment = [], []
    for part in (subject, verb, thing, receiver, time):
        if part:
            english = part.english.split()
            words += english
            place = kannada.index(verb if drop and part is subject else part)
            alignment += [(place,)] * len(english)
    return Sentence(" ".join(part.kannada for part in kannada), " ".join(words), tuple(alignment))


@cache
def all_sentences() -> dict[Sentence, Meaning]:
    """Everything that can be said, once each, in a fixed order, with what it means."""
    return dict(_sentences())


def _sentences() -> Iterator[tuple[Sentence, Meaning]]:
    """Yesterday only with the past; no subject dropped where the verb does not tell it."""
    yesterday = Part(to_script(YESTERDAY), "yesterday")
    subjects = {person: Part(to_script(person.kannada), person.english) for person in PEOPLE}
    receivers = {p: Part(to_script(p.dative), f"to {p.receiver}") for p in PEOPLE}
    for verb, person in product(VERBS.values(), PEOPLE):
        to_whom = [p for p in PEOPLE if may_receive(person, p)] if verb.receiver else []
        drops = [False, True] if PRONOUNS[person.ending] == person else [False]
        forms = [
            (_verb_part(verb, person.ending, past, negative), time, drop)
            for negative, past in product((False, True), repeat=2)
            for time in ([None, yesterday] if past else [None])
            for drop in ([False] if negative else drops)
        ]
        for thing in verb.objects:
            noun = _noun_part(thing)
            for receiver in [None, *(receivers[p] for p in to_whom)]:
                triple = person.english, verb.english, thing
                meaning = Meaning(triple, receiver is not None)
                for form, time, drop in forms:
                    subject = subjects[person]
                    yield write(subject, form, noun, receiver, time, drop=drop), meaning


def _verb_part(verb: Verb, ending: str, past: bool, negative: bool) -> Part:
    third = ending in ("he", "she")
    if negative:
        do = "did" if past else "does" if third else "do"
        return Part(to_script(verb.negative(past)), f"{do} not {verb.english}")
    present = verb.english_s if third else verb.english
    return Part(to_script(verb.form(ending, past)), verb.english_past if past else present)


def _noun_part(thing: str) -> Part:
    if thing in PLACES:
        return Part(to_script(dative(PLACES[thing])), f"to the {thing}")
    return Part(to_script(accusative(OBJECTS[thing])), f"the {thing}")


def may_receive(subject: Person, receiver: Person) -> bool:
    """Not to oneself (Kannada has another word for that), and not from me to us or from us to me.

    >>> may_receive(PRONOUNS["he"], PRONOUNS["she"]), may_receive(PRONOUNS["I"], PRONOUNS["we"])
    (True, False)
    """
    return receiver != subject and not {subject.ending, receiver.ending} <= {"I", "we"}
