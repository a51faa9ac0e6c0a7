"""The grammar of the gift stories: it writes them, reads them, and knows their entropy exactly.

    <story> mary has the roses at first . ... mary gave roses to susan today . who has the roses
    now ? susan .

A story is ``<story>``, then ``n_gifts`` sentences about who has what at first, then ``n_sentences``
that each follow one of four rules:

    at_first  X has [the] O at first .
    give      owner [kindly] gave [the] O to Y [today] .    O any gift of the story, Y not its owner
    give_it   owner [kindly] gave it to Y [today] .         it: the gift that was named last
    ask       [so] who has [the] O [now] ? owner .          certain, if you have kept track
    swap      X and Y [kindly] swapped all gifts [today] .

A word in brackets comes with a chance of its own. These words change nothing in the world. They
make sentences longer or shorter, so that an answer is not found by counting words back.

The people, the gifts, the rules and the words in brackets are drawn at random; all other words
follow from them. No text can be written in two ways, so the probability of a story is the product
of the chances of its draws, and no model can predict such stories better, on average, than the
grammar itself: its entropy is the floor under every loss curve. (Made for this book; the idea of a
language with a known entropy is Shannon's, "A Mathematical Theory of Communication", 1948,
section 7.)
"""

import hashlib
import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from transformer_lib import checks
from transformer_lib.data.gifts.world import (
    FRAME,
    OPTIONAL,
    RULES,
    STORY,
    Choose,
    Maybe,
    Sentence,
    World,
    chooser,
    pattern,
    require_names,
)

# A grammar without optional words: Grammar(**PLAIN).
PLAIN = dict.fromkeys(OPTIONAL, 0.0)
# A sentence, the place that has been reached in it, and its chance.
_Begun = tuple[Sentence, int, float]
MOST_SENTENCES = 100  # a grammar may come from a stranger's file, and must be read in bounded time


@dataclass(frozen=True)
class Question:
    """A question within a story.

    Attributes:
        prompt: the story up to and with the question mark.
        position: the index of the answer among the story's words, from 0 (so the model answers
            with its prediction at ``position - 1``).
        answer: the person.
    """

    prompt: str
    position: int
    answer: str


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The grammar of the stories; the same configuration and seed give the same stories anywhere.

    Attributes:
        people, gifts: their names, N and M of them, at most 50 each.
        n_gifts: how many of the gifts, K, a story is about.
        n_sentences: how many sentences, n, follow those about who has what at first; at most 100.
        give, give_it, ask, swap: the chance of each rule, a, b, c and d; together 1.
        the, kindly, today, so, now: the chance of each optional word, wherever it may come. Those
            with a chance of 0 are not in the vocabulary; ``Grammar(**PLAIN)`` has none of them,
            and its sentences have 6 words (7 for a swap).

    Raises:
        ValueError: too many names; a name that is not a single word or is used twice; sizes or
            chances that do not fit; in the methods, a text that is not a story of this grammar.
        TypeError: sizes that are not ints, chances that are not numbers, anything but a list of
            texts for the names.

    >>> names = {"people": ("mary", "susan"), "gifts": ("roses",), "n_gifts": 1}
    >>> grammar = Grammar(**names, n_sentences=2, **PLAIN)
    >>> story = grammar.stories(1, seed=1)[0]
    >>> story
    '<story> susan has roses at first . susan gave it to mary . who has roses ? mary .'
    >>> round(math.exp(grammar.log_likelihood(story)), 4)  # 1/2 · .15 · .5
    0.0375
    >>> Grammar(**names, n_sentences=1).stories(1, seed=1)[0]
    '<story> susan has the roses at first . susan gave it to mary today .'
    """

    people: Sequence[str] = ("mary", "susan", "john", "peter", "ravi")
    gifts: Sequence[str] = (
        "roses", "books", "apples", "pens", "cups", "coins", "shells", "bells",
    )  # fmt: skip
    n_gifts: int = 3
    n_sentences: int = 7
    give: float = 0.35
    give_it: float = 0.15
    ask: float = 0.5
    swap: float = 0.0
    the: float = 0.6
    kindly: float = 0.3
    today: float = 0.4
    so: float = 0.4
    now: float = 0.4

    def __post_init__(self):
        _require_grammar(self)
        for field in ("people", "gifts"):  # JSON has lists; a hash needs tuples
            object.__setattr__(self, field, tuple(getattr(self, field)))
        for name in (*RULES, *OPTIONAL):  # 1 and 1.0 make the same grammar, with the same hash
            object.__setattr__(self, name, float(self._chance(name)))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, ``<story>`` first, whatever the chances of the rules: for a WordTokenizer.

        Of the optional words those that can come.
        """
        optional = [word for word in OPTIONAL if self._chance(word) > 0]
        return (*FRAME, *optional, *self.people, *self.gifts)

    @property
    def hash(self) -> str:
        """sha256 of the configuration: trained weights belong to one grammar."""
        fields = asdict(self).items()
        content = {name: value for name, value in fields if not (name in OPTIONAL and value == 0)}
        content = json.dumps(content, sort_keys=True)
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    @property
    def max_words(self) -> int:
        """The length of the longest story: ``<story>``, and the longest sentences that can be."""
        sentences = [rule for rule in RULES if self._chance(rule) > 0]
        longest = max(len(self._possible(rule)) for rule in sentences)
        return 1 + self.n_gifts * len(self._possible("at_first")) + self.n_sentences * longest

    @property
    def mean_words(self) -> float:
        """The expected length of a story."""
        return 1 + sum(
            count * (self._chance(word) if isinstance(word, Maybe) else 1)
            for rule, count in self._expected().items()
            for word in self._possible(rule)
        )

    @property
    def story_entropy(self) -> float:
        """The entropy of a story, in nats.

        Σ_{i<K} ln(M−i) + K ln N + n [H(a, b, c, d) + (a+b) ln(N−1) + (a+c) ln K + d ln N(N−1)],
        and H(p, 1−p) for each place where an optional word of chance p is expected.
        """
        n_people, k = len(self.people), self.n_gifts
        beginning = sum(math.log(len(self.gifts) - i) for i in range(k)) + k * math.log(n_people)
        sentence = _entropy(map(self._chance, RULES))
        sentence += (self.give + self.ask) * math.log(k)
        if n_people > 1:
            sentence += (self.give + self.give_it + self.swap) * math.log(n_people - 1)
            sentence += self.swap * math.log(n_people)
        optional = sum(
            count * _entropy((self._chance(word), 1 - self._chance(word)))
            for rule, count in self._expected().items()
            for word in self._possible(rule)
            if isinstance(word, Maybe)
        )
        return beginning + self.n_sentences * sentence + optional

    @property
    def entropy(self) -> float:
        """The entropy of the text, in nats a word: the mean loss that no model can beat.

        >>> round(Grammar(**PLAIN).entropy, 4)
        0.4758
        >>> round(Grammar().entropy, 4)
        0.6179
        """
        return self.story_entropy / self.mean_words

    def stories(self, count: int, *, seed: int = 0, start: int = 0) -> list[str]:
        """The stories number ``start`` to ``start + count - 1`` of ``seed``.

        Each has its own random numbers, so that any part of a long series can be made again. They
        are those of Python's ``random.random()``, the same in every version of Python.

        Raises:
            ValueError: ``count`` or ``start`` is negative.
            TypeError: one of them is not an int.
        """
        checks.require_count(count, "count", least=0)
        checks.require_count(start, "start", least=0)
        numbers = range(start, start + count)
        return [self._write(chooser(random.Random(f"{seed}:{number}"))) for number in numbers]

    def next_words(self, beginning: str) -> dict[str, float]:
        """The words that may follow ``beginning`` of a story, with their probabilities.

        After the last sentence it is ``<story>``, the next one.

        >>> Grammar().next_words("<story> mary has the roses")
        {'at': 1.0}
        """
        return self._read(beginning)[1]

    def log_probabilities(self, story: str) -> list[float]:
        """ln P(word | all words before it), in nats, for each word; 0 for ``<story>``, the first.

        Computed from the probabilities of all sentences that are possible there: the sum over those
        that begin with the words so far and this word, divided by the sum over those that begin
        with the words so far.
        """
        log_probabilities, allowed = self._read(story)
        if not log_probabilities or STORY not in allowed:
            raise ValueError(
                f"the text ends after {len(log_probabilities)} words, where no story of this "
                f"grammar ends; it goes on with {' or '.join(sorted(allowed))}."
            )
        return log_probabilities

    def log_likelihood(self, story: str) -> float:
        """ln P(story), in nats."""
        return math.fsum(self.log_probabilities(story))

    def floor(self, stories: Sequence[str]) -> float:
        """The grammar's own loss on these very stories: −ln P, in nats a word.

        On blocks of these stories (:func:`transformer_lib.data.packing.pack`) a model that knows
        the grammar has this mean loss. With many stories it approaches :attr:`entropy`.
        """
        log_probabilities = [value for story in stories for value in self.log_probabilities(story)]
        if not log_probabilities:
            raise ValueError("there are no stories, so they have no floor; give at least one.")
        return -math.fsum(log_probabilities) / len(log_probabilities)

    def questions(self, story: str) -> list[Question]:
        """The questions in ``story``, each with its answer and the answer's position.

        >>> grammar = Grammar(n_gifts=1, n_sentences=1)
        >>> grammar.questions("<story> mary has roses at first . who has roses ? mary .")[0].answer
        'mary'
        """
        self.log_probabilities(story)  # refuses a text that is not a story
        words = story.split()
        return [
            Question(" ".join(words[:i]), i, words[i])
            for i in range(1, len(words))
            if words[i - 1] == "?"
        ]

    def _chance(self, name: str) -> float:
        """The chance of a rule, or of an optional word."""
        return getattr(self, name)

    def _possible(self, rule: str) -> Sentence:
        """The rule's pattern, without the optional words that never come."""
        return tuple(w for w in pattern(rule) if not isinstance(w, Maybe) or self._chance(w) > 0)

    def _expected(self) -> dict[str, float]:
        """How many sentences of each rule a story has, on average."""
        sentences = {rule: self.n_sentences * self._chance(rule) for rule in RULES}
        return {"at_first": self.n_gifts, **sentences}

    def _write(self, choose: Choose) -> str:
        """A story by the rules: choose a rule for each sentence, one of its sentences, and which of
        the optional words to say. Where there is nothing to choose, no random number is drawn.
        """
        world, words = World(), [STORY]
        rules = [rule for rule in RULES if self._chance(rule) > 0]
        chances = [self._chance(rule) for rule in rules]
        for number in range(self.n_gifts + self.n_sentences):
            rule = "at_first" if number < self.n_gifts else choose(rules, chances)
            sentence = choose(world.sentences(rule, self.people, self.gifts))
            world.follow(sentence)
            words += [w for w in sentence if not isinstance(w, Maybe) or self._says(w, choose)]
        return " ".join(words)

    def _says(self, word: str, choose: Choose) -> bool:
        """Whether an optional word is said."""
        chance = self._chance(word)
        return chance == 1 or (chance > 0 and choose((True, False), (chance, 1 - chance)))

    def _sentences(self, world: World, number: int) -> Iterator[tuple[Sentence, float]]:
        """All possible sentences number ``number``, from 0, with their probabilities."""
        rules = {"at_first": 1.0} if number < self.n_gifts else {r: self._chance(r) for r in RULES}
        for rule, chance in rules.items():
            if chance > 0:
                sentences = world.sentences(rule, self.people, self.gifts)
                for sentence in sentences:
                    yield sentence, chance / len(sentences)

    def _ways(self, begun: Iterable[_Begun]) -> list[tuple[str, _Begun]]:
        """How the sentences that have begun may go on: each next word, and what has begun then."""
        ways = []
        for sentence, place, chance in begun:
            while isinstance(sentence[place], Maybe):
                said = self._chance(sentence[place])
                if said > 0:
                    ways.append((sentence[place], (sentence, place + 1, chance * said)))
                place, chance = place + 1, chance * (1 - said)
            if chance > 0:
                ways.append((sentence[place], (sentence, place + 1, chance)))
        return ways

    def _read(self, text: str) -> tuple[list[float], dict[str, float]]:
        """ln P of each word of ``text``, and what may follow (``<story>``: the story is complete).

        ``number`` counts the sentences; ``begun`` holds those that the last words may belong to.
        """
        world, number = World(), -1
        begun: list[_Begun] = [((STORY,), 0, 1.0)]
        log_probabilities: list[float] = []
        words = text.split()
        for position, word in enumerate([*words, None]):
            ways = self._ways(begun)
            allowed: dict[str, float] = {}
            for following, (_, _, chance) in ways:
                allowed[following] = allowed.get(following, 0.0) + chance
            total = math.fsum(allowed.values())
            if word is None:
                return log_probabilities, {str(w): p / total for w, p in allowed.items()}
            if word not in allowed or (position > 0 and word == STORY):
                raise _not_a_story(words, position, list(allowed))
            log_probabilities.append(math.log(allowed[word] / total))
            begun = [after for following, after in ways if following == word]
            if word in (STORY, "."):  # only the last word of a sentence is one of these
                world.follow(begun[0][0])
                number += 1
                ended = number == self.n_gifts + self.n_sentences
                begun = [((STORY,), 0, 1.0)]
                if not ended:
                    begun = [(sentence, 0, p) for sentence, p in self._sentences(world, number)]


def _entropy(chances: Iterable[float]) -> float:
    """H, in nats."""
    return -sum(chance * math.log(chance) for chance in chances if chance > 0)


def _not_a_story(words: list[str], position: int, allowed: list[str]) -> ValueError:
    """The error for a text whose word at ``position`` is not one of those ``allowed`` there."""
    before = " ".join(words[max(0, position - 6) : position])
    wanted = "one of " + ", ".join(sorted(allowed)) if len(allowed) > 1 else repr(allowed[0])
    if position > 0 and allowed == [STORY]:
        wanted = "the end: a story of this grammar is complete here (give one story at a time)"
    return ValueError(
        f"this is not a story of this grammar: word {position} (from 0) is {words[position]!r}"
        f"{f', after {before!r}' if before else ''}, where the grammar allows {wanted}."
    )


def _require_grammar(grammar: Grammar) -> None:
    """Names, sizes and chances fit together."""
    require_names(grammar.people, grammar.gifts)
    for size in ("n_gifts", "n_sentences"):
        checks.require_count(getattr(grammar, size), size)
    if grammar.n_gifts > len(grammar.gifts):
        raise ValueError(
            f"n_gifts is {grammar.n_gifts}, but there are {len(grammar.gifts)} gifts to choose "
            f"from. Name more gifts, or lower n_gifts."
        )
    if grammar.n_sentences > MOST_SENTENCES:
        raise ValueError(
            f"n_sentences is {grammar.n_sentences}; a story has at most {MOST_SENTENCES}."
        )
    chances = {rule: getattr(grammar, rule) for rule in RULES}
    for rule, chance in chances.items():
        checks.require_number(chance, rule)
    if not (all(0 <= chance <= 1 for chance in chances.values()) and _is_one(chances.values())):
        raise ValueError(
            f"the chances of the rules are {chances}; none may be negative, and they must sum to 1."
        )
    for word in OPTIONAL:
        checks.require_number(getattr(grammar, word), word)
        if not 0 <= getattr(grammar, word) <= 1:
            raise ValueError(
                f"{word} is {getattr(grammar, word)}, and it is the chance of a word; choose a "
                f"number from 0 (it never comes) to 1."
            )
    needed = 2 if grammar.give + grammar.give_it + grammar.swap > 0 else 1
    if len(grammar.people) < needed:
        raise ValueError(
            f"there are {len(grammar.people)} people; a story with these rules needs {needed}."
        )


def _is_one(chances: Iterable[float]) -> bool:
    return math.isclose(math.fsum(chances), 1, abs_tol=1e-9)
