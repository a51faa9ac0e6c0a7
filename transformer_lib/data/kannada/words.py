"""The words of the Kannada grammar and how they change, in ISO 15919 transliteration.

Sources, by the rule that a form follows:

    Hodson, An Elementary Grammar of the Kannada, or Canarese Language, 2nd edition, 1864:
        §46 the affixes of the cases · §70 nānu, nanage, nāvu, namage · §110 the regular verb
        (māḍu, past māḍid-) and the personal endings; past -d- in the second conjugation
        · §§115-117 irregular pasts, such as koṭṭenu · §119 tinnu, past tiṁd- · §145 no articles
        · §149 subject, object, verb
    Kannada Kali, lesson 21 (Kanaja, the encyclopedia of the Government of Karnataka): the same
        endings as they are written now (ōdidanu, ōdidaḷu, ōduttāne)
    Kannada Kalike, Grammar, Cases (kannadakalike.org): v and kk after the a of a neuter
    Learn Kannada Easy, Negative Statements (learnkannadaeasy.in): hōguvudilla, kuḍiyuvudilla,
        where Hodson has -uvadilla; Talkpal, Negative Sentences (talkpal.ai): hōgalilla

*Avaru* is *they*, and also a polite *he* or *she*; no sentence of this grammar says which, so it
is always translated by *they*. Nothing here is neuter as a subject.
"""

from typing import NamedTuple

YESTERDAY = "ninne"
ZWNJ = "\u200c"  # keeps the n of sūsan from joining the next letter into a ligature

# The endings that say who acts: non-past, past.
ENDINGS = {
    "I": ("ēne", "enu"),
    "we": ("ēve", "evu"),
    "he": ("āne", "anu"),
    "she": ("āḷe", "aḷu"),
    "they": ("āre", "aru"),
}


class Person(NamedTuple):
    """Somebody who acts or receives: in English as a subject and after *to*; the verb's ending."""

    kannada: str
    english: str
    receiver: str
    ending: str

    @property
    def dative(self) -> str:
        """To this person: *nanage* and *namage* are irregular."""
        return {"nānu": "nanage", "nāvu": "namage"}.get(self.kannada) or dative(self.kannada)


class Verb(NamedTuple):
    """A verb: its root, the stem of its past, and in English: go, goes, went."""

    root: str
    past: str
    english: str
    english_s: str
    english_past: str
    objects: tuple[str, ...]  # in English; the places of *go* and *come*
    receiver: bool = False  # may it say to whom?

    @property
    def goes_somewhere(self) -> bool:
        return self.objects == tuple(PLACES)

    def form(self, ending: str, past: bool) -> str:
        """The form for a subject.

        >>> VERBS["drink"].form("she", past=True), VERBS["drink"].form("I", past=False)
        ('kuḍidaḷu', 'kuḍiyuttēne')
        """
        return self.past + ENDINGS[ending][1] if past else f"{self.root}tt{ENDINGS[ending][0]}"

    def negative(self, past: bool) -> str:
        """The form for *does not* or *did not*, the same for all subjects.

        >>> VERBS["drink"].negative(past=True), VERBS["drink"].negative(past=False)
        ('kuḍiyalilla', 'kuḍiyuvudilla')
        """
        return self.root[:-1] + ("alilla" if past else "uvudilla")

    @property
    def forms(self) -> tuple[str, ...]:
        """All of its forms in this grammar."""
        agreeing = (self.form(ending, past) for past in (False, True) for ending in ENDINGS)
        return (*agreeing, self.negative(past=False), self.negative(past=True))


def accusative(noun: str) -> str:
    """The form of a noun as a direct object: -annu, with y after i and e, v after a; u drops.

    >>> [accusative(noun) for noun in ("nīru", "kāphi", "pustaka")]
    ['nīrannu', 'kāphiyannu', 'pustakavannu']
    """
    if noun.endswith("u"):
        return noun[:-1] + "annu"
    return noun + {"i": "y", "e": "y", "a": "v"}[noun[-1]] + "annu"


def dative(noun: str) -> str:
    """To somebody or something: -ge; -ige for a final u; -kke after the a of a neuter.

    >>> [dative(noun) for noun in ("ravi", "avanu", "tōṭa")]
    ['ravige', 'avanige', 'tōṭakke']
    """
    if noun.endswith("u"):
        return noun[:-1] + "ige"
    joint = {"a": "kke", "i": "ge", "e": "ge"}
    return noun + joint.get(noun[-1], ZWNJ + "ge")


PEOPLE = (
    Person("nānu", "I", "me", "I"),
    Person("nāvu", "We", "us", "we"),
    Person("avanu", "He", "him", "he"),
    Person("avaḷu", "She", "her", "she"),
    Person("avaru", "They", "them", "they"),
    Person("mēri", "Mary", "Mary", "she"),
    Person("sūsan", "Susan", "Susan", "she"),
    Person("ravi", "Ravi", "Ravi", "he"),
    Person("huḍuganu", "The boy", "the boy", "he"),
    Person("huḍugi", "The girl", "the girl", "she"),
)
PRONOUNS = {person.ending: person for person in PEOPLE[:5]}  # what an ending alone says

OBJECTS = {
    "fruit": "haṇṇu", "rice": "anna", "egg": "moṭṭe", "flatbread": "roṭṭi", "water": "nīru",
    "milk": "hālu", "coffee": "kāphi", "book": "pustaka", "letter": "patra", "story": "kathe",
    "lesson": "pāṭha", "picture": "citra", "ball": "ceṁḍu", "money": "haṇa", "flower": "hūvu",
    "roses": "gulābigaḷu",
}  # fmt: skip
PLACES = {"house": "mane", "school": "śāle", "garden": "tōṭa", "shop": "aṁgaḍi"}

FOOD = ("fruit", "rice", "egg", "flatbread")
DRINKS = ("water", "milk", "coffee")
TO_READ = ("book", "letter", "story", "lesson")
TO_SHOW = ("book", "letter", "picture", "ball", "money", "flower", "roses")
TO_GIVE = (*FOOD, *DRINKS, *TO_SHOW)
VERBS = {
    verb.english: verb
    for verb in (
        Verb("tinnu", "tiṁd", "eat", "eats", "ate", FOOD),
        Verb("kuḍiyu", "kuḍid", "drink", "drinks", "drank", DRINKS),
        Verb("ōdu", "ōdid", "read", "reads", "read", TO_READ),
        Verb("bareyu", "bared", "write", "writes", "wrote", TO_READ),
        Verb("nōḍu", "nōḍid", "see", "sees", "saw", ("fruit", "egg", *TO_SHOW)),
        Verb("koḍu", "koṭṭ", "give", "gives", "gave", TO_GIVE, receiver=True),
        Verb("taru", "taṁd", "bring", "brings", "brought", TO_GIVE, receiver=True),
        Verb("kaḷuhisu", "kaḷuhisid", "send", "sends", "sent", TO_SHOW, receiver=True),
        Verb("tōrisu", "tōrisid", "show", "shows", "showed", ("lesson", *TO_SHOW), receiver=True),
        Verb("hōgu", "hōd", "go", "goes", "went", tuple(PLACES)),
        Verb("baru", "baṁd", "come", "comes", "came", tuple(PLACES)),
    )
}
