"""The grammar as plain tables, from which a figure in the page checks and translates sentences."""

from typing import Any

from transformer_lib.data.kannada.reading import BY_LATIN, Word
from transformer_lib.data.kannada.script import to_script
from transformer_lib.data.kannada.words import ENDINGS, PEOPLE, PRONOUNS, VERBS


def tables() -> dict[str, Any]:
    """Words, verbs, people and endings, for JSON; read by widgets/math/kannada.js.

    >>> tables()["words"][1]["gloss"], tables()["verbs"]["drink"]["objects"]
    ('I', ('water', 'milk', 'coffee'))
    """
    return {
        "words": [_described(word) for word in BY_LATIN.values()],
        "verbs": {
            name: {
                "s": verb.english_s,
                "past": verb.english_past,
                "objects": verb.objects,
                "receiver": verb.receiver,
                "goes": verb.goes_somewhere,
            }
            for name, verb in VERBS.items()
        },
        "people": {
            person.kannada: {
                "english": person.english,
                "receiver": person.receiver,
                "ending": person.ending,
            }
            for person in PEOPLE
        },
        "pronouns": {ending: person.kannada for ending, person in PRONOUNS.items()},
        "endings": ENDINGS,
    }


def _described(word: Word) -> dict[str, Any]:
    found = {"kannada": to_script(word.latin), "latin": word.latin, "role": word.role}
    found |= {"gloss": _gloss(word)}
    if word.person is not None:
        found["person"] = word.person.kannada
    if word.thing:
        found["thing"] = word.thing
    if word.verb is not None:
        found |= {"verb": word.verb.english, "ending": word.ending, "past": word.past}
    return found


def _gloss(word: Word) -> str:
    """What the word says, in English."""
    if word.role == "verb":
        return _gloss_of_verb(word)
    if word.role == "yesterday":
        return "yesterday"
    if word.role == "subject":
        return word.person.english
    if word.role == "receiver":
        return f"to {word.person.receiver}"
    return f"to the {word.thing}" if word.role == "place" else f"the {word.thing}"


def _gloss_of_verb(word: Word) -> str:
    verb = word.verb
    if not word.ending:
        return f"{'did' if word.past else 'do'} not {verb.english}"
    if word.past:
        return f"{word.ending} {verb.english_past}"
    third = word.ending in ("he", "she")
    return f"{word.ending} {verb.english_s if third else verb.english}"
