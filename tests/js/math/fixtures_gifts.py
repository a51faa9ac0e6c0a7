"""Stories of several grammars, and after each word what may follow, as the library says it."""

from dataclasses import asdict

from transformer_lib.data.gifts import Grammar

GRAMMARS = {
    "the book's": Grammar(),
    "with swaps": Grammar(n_sentences=5, give=0.3, give_it=0.2, ask=0.3, swap=0.2),
    "small": Grammar(people=("ann", "bo"), gifts=("cup",), n_gifts=1, n_sentences=3),
}


def fixtures():
    return [
        {
            "name": name,
            "config": asdict(grammar),
            "stories": [described(grammar, story) for story in grammar.stories(3, seed=4)],
        }
        for name, grammar in GRAMMARS.items()
    ]


def described(grammar, story):
    words = story.split()
    beginnings = (" ".join(words[:end]) for end in range(len(words) + 1))
    questions = {q.position: q.answer for q in grammar.questions(story)}
    return {
        "words": words,
        "next": [grammar.next_words(text) for text in beginnings],
        "answers": questions,
    }
