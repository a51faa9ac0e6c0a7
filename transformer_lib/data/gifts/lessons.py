"""Lessons: texts in which one part of answering *who has it?* is new at a time.

A question takes two steps, *who was named with the roses?* and *which of them was the last?*, and a
model that has neither gains nothing from half of the other. The first lessons are of names alone::

    <story> mary roses mary . susan pens susan . cups ravi cups . pens susan . roses mary . ...

Then a question mark comes between, sometimes; then, one by one, the other words; and in the end
stories in which few gifts are given away, and almost every sentence asks.
"""

import random
from collections.abc import Mapping
from dataclasses import replace

from transformer_lib import checks
from transformer_lib.data.gifts.grammar import Grammar

# A fact and a question about it, told of 3 pairs of names; a word in brackets comes every other
# time. The answers are the X that follow their O.
PRIMERS = {
    "echo": ("X O X .", "O X ."),
    "mark": ("X O X .", "O [?] X ."),
    "words": ("X [has] [the] O [X] .", "[who] [has] [the] O [?] X ."),
    "sentences": ("X has [the] O [at] [first] [X] .", "[so] who has [the] O [now] ? X ."),
    "facts": ("X has [the] O at first .", "[so] who has [the] O [now] ? X ."),
}
# Stories whose rules have other chances.
EASIER = {
    "asked": {"give": 0.0, "give_it": 0.0, "ask": 1.0, "swap": 0.0},
    "mostly": {"give": 0.2, "give_it": 0.05, "ask": 0.75, "swap": 0.0},
}
LESSONS = (*PRIMERS, *EASIER)


def lesson(
    name: str, count: int, seed: int = 0, grammar: Grammar | None = None
) -> tuple[list[str], list[list[int]]]:
    """``count`` texts of the lesson ``name``, and of each the places of its answers, from 0.

    The words are those of ``grammar``, the book's own if None.

    Raises:
        ValueError: there is no such lesson.

    >>> texts, places = lesson("facts", 1, seed=3)
    >>> texts[0].split()[places[0][0] - 1]
    '?'
    """
    checks.require_choice(name, "the lesson", LESSONS)
    grammar = Grammar() if grammar is None else grammar
    if name in PRIMERS:
        drawn = [primer(name, random.Random(f"{seed}:{i}"), grammar) for i in range(count)]
        return [text for text, _ in drawn], [answers for _, answers in drawn]
    stories = replace(grammar, **EASIER[name]).stories(count, seed=seed)
    return stories, [after_marks(story) for story in stories]


def primer(name: str, numbers: random.Random, grammar: Grammar) -> tuple[str, list[int]]:
    """A text of names, and the places of its answers, from 0.

    >>> primer("echo", random.Random(0), Grammar())[1]
    [3, 7, 11, 14, 17, 20]
    """
    names = numbers.sample([*grammar.people, *grammar.gifts], 6)
    pairs = list(zip(names[:3], names[3:], strict=True))
    fact, question = PRIMERS[name]
    told = [(fact, pair) for pair in pairs] + [(question, numbers.choice(pairs)) for _ in pairs]
    words, answers = ["<story>"], []
    for sentence, (x, o) in told:
        named = False
        for word in sentence.split():
            if word.startswith("[") and numbers.random() < 0.5:
                continue
            word = word.strip("[]")
            if word == "X" and named:
                answers.append(len(words))
            named = named or word == "O"
            words.append({"X": x, "O": o}.get(word, word))
    return " ".join(words), answers


def after_marks(story: str) -> list[int]:
    """The places of a story's answers: each follows a question mark.

    >>> after_marks("<story> mary has roses at first . who has roses ? mary .")
    [11]
    """
    return [place + 1 for place, word in enumerate(story.split()) if word == "?"]


def require_lessons(lessons: Mapping[str, int], grammar: Grammar | None = None) -> None:
    """Names of lessons, each with a number of steps; words enough to tell them with."""
    for name, steps in lessons.items():
        checks.require_choice(name, "a lesson", LESSONS)
        checks.require_count(steps, f"the steps of the lesson {name!r}")
    told = {word.strip("[]") for name in PRIMERS.keys() & lessons.keys()
            for sentence in PRIMERS[name] for word in sentence.split()}  # fmt: skip
    if grammar is None or not told:
        return
    names = [*grammar.people, *grammar.gifts]
    if len(names) < 6:
        raise ValueError(
            f"the lessons need 6 names, and the grammar has {len(names)}: {', '.join(names)}. Name "
            f"more people or gifts."
        )
    if lacking := sorted(told - {"X", "O", *grammar.vocabulary}):
        raise ValueError(
            f"the lessons need the words {', '.join(lacking)}, which never come in this grammar. "
            f"Give each a chance above 0, or leave out the lessons that say it."
        )
