"""A small part of Kannada with its English translation, and the true alignment of their words.

    ಮೇರಿ ಸೂಸನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು     mēri sūsan‌ge gulābigaḷannu koṭṭaḷu
    Mary gave the roses to Susan      0 3 2 2 1 1

The sentences have a subject (or leave it to the verb's ending), perhaps a receiver, an object or a
place, and a verb, in that order; *yesterday* may come first. A verb is past or non-past, affirmed
or negated. Each sentence has one translation, so that a translator can be scored exactly.

Some combinations of subject, verb and object are withheld from training, in every tense, with every
receiver, and negated: what a model translates there it has never seen together. (Made for this
book; its forms have their sources in :mod:`transformer_lib.data.kannada.words`.)
"""

import hashlib
import heapq
import math
import random
from dataclasses import dataclass
from functools import cached_property

from transformer_lib import checks
from transformer_lib.data.kannada.meaning import Sentence, all_sentences
from transformer_lib.data.kannada.reading import explain, words_of
from transformer_lib.data.kannada.words import OBJECTS, PEOPLE, PLACES, VERBS


@dataclass(frozen=True)
class KannadaGrammar:
    """The sentences, divided into those to train on and those held out.

    Attributes:
        held_out_every: one in so many combinations of subject, verb and object is held out: those
            whose places in the tables of words sum to a multiple of it. At least 4, so that a verb
            with three objects keeps two of them with each subject; at most 10, the number of
            subjects, so that something is held out for each pair of verb and object.

    Raises:
        ValueError: ``held_out_every`` is out of range; in the methods, see there.
        TypeError: ``held_out_every`` is not an int.

    >>> grammar = KannadaGrammar()
    >>> grammar.parse("avaḷu tōṭakke hōdaḷu").target
    'She went to the garden'
    """

    held_out_every: int = 5

    def __post_init__(self):
        checks.require_whole(self.held_out_every, "held_out_every")
        if not 4 <= self.held_out_every <= len(PEOPLE):
            raise ValueError(
                f"held_out_every is {self.held_out_every}; with a number from 4 to {len(PEOPLE)} "
                f"every pair of words is still seen in training, and some triples are held out."
            )

    @cached_property
    def all_sentences(self) -> tuple[Sentence, ...]:
        """Every sentence of the grammar, once, in a fixed order."""
        return tuple(all_sentences())

    @cached_property
    def triples(self) -> frozenset[tuple[str, str, str]]:
        """Every combination of subject, verb and object (or place) that the grammar can say."""
        return frozenset(meaning.triple for meaning in all_sentences().values())

    @cached_property
    def held_out_triples(self) -> frozenset[tuple[str, str, str]]:
        """The combinations that training never shows."""
        return frozenset(
            (subject, verb, thing)
            for subject, verb, thing in self.triples
            if (SUBJECT[subject] + VERB[verb] + THING[thing]) % self.held_out_every == 0
        )

    @cached_property
    def source_words(self) -> tuple[str, ...]:
        """All Kannada words, sorted: for a WordTokenizer, after its special tokens."""
        return tuple(sorted({word for s in self.all_sentences for word in s.source.split()}))

    @cached_property
    def target_words(self) -> tuple[str, ...]:
        """All English words, sorted."""
        return tuple(sorted({word for s in self.all_sentences for word in s.target.split()}))

    @cached_property
    def hash(self) -> str:
        """sha256 of all sentences, their alignments, and which of them are held out."""
        withheld = self.held_out_triples
        lines = [f"{tuple(s)}\t{m.triple in withheld}\n" for s, m in all_sentences().items()]
        return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()

    def training(self, n: int, *, seed: int = 0) -> list[Sentence]:
        """``n`` different sentences, none with a combination that is held out.

        Drawn without replacement, each verb with the same chance, with and without a receiver
        alike, and all else uniform. The first sentences of a larger ``n`` are the same.

        Raises:
            ValueError: ``n`` is negative, or larger than the number of such sentences.
            TypeError: ``n`` is not an int.
        """
        return self._draw(n, f"training:{seed}", held_out=False)

    def held_out(self, n: int, *, seed: int = 0) -> list[Sentence]:
        """``n`` different sentences whose subject, verb and object never meet in training.

        Drawn as those of :meth:`training` are, with the same errors.
        """
        return self._draw(n, f"held out:{seed}", held_out=True)

    def triple(self, sentence: Sentence) -> tuple[str, str, str]:
        """The sentence's subject, verb and object (or place), in English.

        >>> grammar = KannadaGrammar()
        >>> grammar.triple(grammar.parse("hūvannu koṭṭaḷu"))
        ('She', 'give', 'flower')
        """
        return all_sentences()[sentence].triple

    def parse(self, text: str) -> Sentence:
        """The one translation and alignment of a sentence, in Kannada script or transliterated.

        Raises:
            ValueError: it is not a sentence of this grammar; the message says which word is
                unknown, or what is missing, misplaced or does not agree.
            TypeError: ``text`` is not a text.

        >>> KannadaGrammar().parse("avanu hālannu kuḍiyalilla")[1:]
        ('He did not drink the milk', ((0,), (2,), (2,), (2,), (1,), (1,)))
        """
        words = words_of(text)
        sentence = self._by_source.get(" ".join(words))
        if sentence is None:
            raise ValueError(explain(words))
        return sentence

    @cached_property
    def _by_source(self) -> dict[str, Sentence]:
        return {sentence.source: sentence for sentence in self.all_sentences}

    def _draw(self, n: int, seed: str, *, held_out: bool) -> list[Sentence]:
        """Weighted, without replacement: the n smallest of exponential numbers over the weights.

        Efraimidis & Spirakis, 2006, "Weighted random sampling with a reservoir"; the random numbers
        are those of Python's ``random.random()``, the same in every version of Python.
        """
        checks.require_whole(n, "n")
        withheld = self.held_out_triples
        kinds: dict[tuple[str, bool], list[Sentence]] = {}
        for sentence, meaning in all_sentences().items():
            if (meaning.triple in withheld) == held_out:
                kinds.setdefault((meaning.triple[1], meaning.receiver), []).append(sentence)
        available = sum(map(len, kinds.values()))
        if not 0 <= n <= available:
            kind = "held-out sentences" if held_out else "sentences to train on"
            raise ValueError(f"n is {n}; there are {available:,} {kind}: ask for 0 to {available}.")
        numbers = random.Random(seed)
        order = []
        for (verb, _), sentences in kinds.items():
            share = 0.5 if VERBS[verb].receiver else 1.0
            for sentence in sentences:
                order.append((-math.log(1 - numbers.random()) * len(sentences) / share, sentence))
        return [sentence for _, sentence in heapq.nsmallest(n, order)]


SUBJECT = {person.english: i for i, person in enumerate(PEOPLE)}
VERB = {verb: i for i, verb in enumerate(VERBS)}
THING = {thing: i for i, thing in enumerate([*OBJECTS, *PLACES])}
