"""Sentences of the Kannada grammar with their translations, and rows of words that are none."""

import random

from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.data.kannada.reading import LEXICON
from transformer_lib.data.kannada.tables import tables


def fixtures():
    grammar, numbers = KannadaGrammar(), random.Random(0)
    sentences = numbers.sample(grammar.all_sentences, 500)
    return {
        "tables": tables(),
        "sentences": [list(sentence) for sentence in sentences],
        "others": list(others(grammar, sentences, numbers)),
    }


def others(grammar, sentences, numbers):
    """Sentences with a word exchanged, left out, doubled or moved, and whether they are sentences
    all the same."""
    known, words = {s.source for s in grammar.all_sentences}, list(LEXICON)
    for sentence in sentences:
        row = sentence.source.split()
        place, change = numbers.randrange(len(row)), numbers.randrange(4)
        if change == 0:
            alike = [w for w in words if LEXICON[w].role == LEXICON[row[place]].role]
            row[place] = numbers.choice(alike)
        elif change == 1:
            del row[place]
        elif change == 2:
            row.insert(numbers.randrange(len(row) + 1), numbers.choice(words))
        else:
            numbers.shuffle(row)
        yield {"words": row, "sentence": " ".join(row) in known}
