"""Why a text is not a sentence of the Kannada grammar: the first thing that is wrong, in words."""

import difflib
import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

from transformer_lib.data.kannada.meaning import may_receive
from transformer_lib.data.kannada.script import LETTERS, to_latin, to_script
from transformer_lib.data.kannada.words import (
    ENDINGS,
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

ORDER = {"yesterday": 0, "subject": 1, "receiver": 2, "object": 3, "place": 3, "verb": 4}
MOST_CHARACTERS = 1000
STOPS = ".,!?।"  # at a word's end: what a writer puts there from habit


class Word(NamedTuple):
    """What the grammar knows of a form: its role, and what it says."""

    role: str
    latin: str
    person: Person | None = None
    thing: str = ""
    verb: Verb | None = None
    ending: str = ""  # which pronoun a verb's ending says; none for a negative
    past: bool = False


def _lexicon() -> dict[str, Word]:
    words = [Word("yesterday", YESTERDAY)]
    for person in PEOPLE:
        words.append(Word("subject", person.kannada, person=person))
        words.append(Word("receiver", person.dative, person=person))
    words += [Word("object", accusative(noun), thing=thing) for thing, noun in OBJECTS.items()]
    words += [Word("place", dative(noun), thing=thing) for thing, noun in PLACES.items()]
    for verb in VERBS.values():
        for past in (False, True):
            words.append(Word("verb", verb.negative(past), verb=verb, past=past))
            for ending in ENDINGS:
                form = verb.form(ending, past)
                words.append(Word("verb", form, verb=verb, ending=ending, past=past))
    return {to_script(word.latin): word for word in words}


LEXICON = _lexicon()
BY_LATIN = {word.latin: word for word in LEXICON.values()}


def _plain(text: str) -> str:
    """Small letters without marks and joiners, for those who cannot type them (kannada.js)."""
    parts = unicodedata.normalize("NFD", text.lower())
    letters = "".join(c for c in parts if not unicodedata.combining(c) and c not in "\u200c\u200d")
    return re.sub("m(?=[dtkgcj])", "n", letters).replace("sh", "s").replace("ch", "c")


def _by_plain() -> dict[str, str]:
    """Plain letters: the only word of the grammar that is written so."""
    found: dict[str, list[str]] = {}
    for latin in BY_LATIN:
        found.setdefault(_plain(latin), []).append(latin)
    return {plain: words[0] for plain, words in found.items() if len(words) == 1}


BY_PLAIN = _by_plain()


def words_of(text: str) -> list[str]:
    """The words of a text in Kannada script; a text without Kannada letters is transliterated.

    A known word may be written without its marks, where no other word is written so.

    Raises:
        ValueError: characters that are neither; the text is empty or too long.
        TypeError: it is not a text.
    """
    if not isinstance(text, str):
        raise TypeError(f"the text is {text!r}, of type {type(text).__name__}; give a str.")
    if not text.split():
        raise ValueError("the text is empty; give a sentence, such as 'avanu hālannu kuḍidanu'.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(
            f"the text has {len(text):,} characters; give one sentence, at most {MOST_CHARACTERS}."
        )
    text = unicodedata.normalize("NFC", text)
    words = [word.rstrip(STOPS) or word for word in text.split()]
    if not any(character in LETTERS for character in text):
        words = [to_script(BY_PLAIN.get(_plain(word), word)) for word in words]
    to_latin(" ".join(words))  # refuses what is not Kannada
    return words


def explain(words: list[str]) -> str:
    """What is wrong with words in Kannada script that are not a sentence of the grammar."""
    for number, word in enumerate(words, start=1):
        if word not in LEXICON:
            return _unknown(word, number)
    known = [LEXICON[word] for word in words]
    return _roles(known) or _verb_and_object(known) or _agreement(known)


def _roles(words: list[Word]) -> str | None:
    """There is one verb, at the end, one object, at most one of all else, in order."""
    verbs = [word for word in words if word.role == "verb"]
    if words[-1].role != "verb":
        last = f"the last word, {words[-1].latin!r}, is {_a(words[-1])}"
        if verbs:
            return f"there is no verb at the end: {last}. Put {verbs[0].latin!r} last."
        return f"there is no verb at the end: {last}. Add a verb, such as 'koṭṭaḷu' (she gave)."
    for role in ORDER:
        same = [word.latin for word in words if word.role == role]
        if len(same) > 1:
            return (
                f"there is more than one {role}: {' and '.join(same)}. A sentence has at most one; "
                f"leave one out."
            )
    for before, after in pairwise(words):
        if ORDER[before.role] > ORDER[after.role]:
            return (
                f"{after.latin!r}, {_a(after)}, comes after {before.latin!r}, {_a(before)}. The "
                f"order is yesterday, subject, receiver, object (or place), verb."
            )
    return None


def _verb_and_object(words: list[Word]) -> str | None:
    """The verb has an object or place that it can have, and a receiver only where it can."""
    found = {word.role: word for word in words}
    verb = words[-1].verb
    wanted, other = ("place", "object") if verb.goes_somewhere else ("object", "place")
    nouns = [_noun(thing) for thing in verb.objects]
    one_of = f"{', '.join(nouns[:-1])} or {nouns[-1]}"
    if other in found:
        return (
            f"{words[-1].latin!r} ({verb.english}) takes {_named(wanted)}, and "
            f"{found[other].latin!r} ({found[other].thing}) is {_a(found[other])}. Try {one_of}."
        )
    if wanted not in found:
        return f"{words[-1].latin!r} ({verb.english}) needs {_named(wanted)} before it: {one_of}."
    if found[wanted].thing not in verb.objects:
        return (
            f"in this grammar one does not {verb.english} {found[wanted].latin!r} "
            f"({found[wanted].thing}). {words[-1].latin!r} takes {one_of}."
        )
    if "receiver" in found and not verb.receiver:
        to_whom = " or ".join(v.english for v in VERBS.values() if v.receiver)
        return (
            f"{found['receiver'].latin!r} is a receiver, and {words[-1].latin!r} ({verb.english}) "
            f"has none. Leave it out, or take a verb that means {to_whom}."
        )
    return None


def _agreement(words: list[Word]) -> str:
    """Time, ending and receiver agree with the verb and the subject. (Nothing else is left.)"""
    found = {word.role: word for word in words}
    verb = words[-1]
    if "yesterday" in found and not verb.past:
        past = verb.verb.form(verb.ending, True) if verb.ending else verb.verb.negative(True)
        return (
            f"'{YESTERDAY}' means yesterday, but {verb.latin!r} is not past. Take {past!r}, or "
            f"leave '{YESTERDAY}' out."
        )
    if "subject" not in found and not verb.ending:
        return (
            f"there is no subject, and the negative {verb.latin!r} has no ending that tells who. "
            f"Begin with a subject, such as 'avaḷu' (she)."
        )
    subject = found["subject"].person if "subject" in found else PRONOUNS[verb.ending]
    if verb.ending and verb.ending != subject.ending:
        ending = ENDINGS[verb.ending][verb.past]
        return (
            f"the ending -{ending} of {verb.latin!r} says {verb.ending}; the subject is "
            f"{subject.kannada!r} ({subject.english}). Take "
            f"{verb.verb.form(subject.ending, verb.past)!r}, or another subject."
        )
    receiver = found["receiver"].person
    assert not may_receive(subject, receiver), "all else has been checked"
    return (
        f"{receiver.dative!r} (to {receiver.receiver}) is the subject itself, "
        f"{subject.kannada!r} ({subject.english}). Choose somebody else."
    )


def _unknown(word: str, number: int) -> str:
    latin = to_latin(word)
    near = difflib.get_close_matches(latin, BY_LATIN, n=3, cutoff=0.5)
    hint = f"The nearest known words are {', '.join(near)}." if near else "No known word is near."
    nouns = {**OBJECTS, **PLACES}
    for thing, noun in nouns.items():
        if latin == noun:
            hint = f"It is {thing} without its case: write {_noun(thing)!r}."
    return f"word {number}, {word} ({latin}), is not a word of this grammar. {hint}"


def _noun(thing: str) -> str:
    return accusative(OBJECTS[thing]) if thing in OBJECTS else dative(PLACES[thing])


def _a(word: Word) -> str:
    return _named(word.role)


def _named(role: str) -> str:
    return {"object": "an object", "yesterday": "a time"}.get(role, f"a {role}")
