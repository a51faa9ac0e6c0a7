"""The Kannada grammar: its forms, one translation a sentence, and a division that hides triples."""

from itertools import combinations

import pytest

from transformer_lib.data.kannada import KannadaGrammar, to_latin
from transformer_lib.data.kannada.words import OBJECTS, PEOPLE, PLACES, VERBS, accusative, dative

GRAMMAR = KannadaGrammar()
SEEN = GRAMMAR.training(4000)
HIDDEN = GRAMMAR.held_out(2000)


def test_the_forms_are_those_of_the_grammar_books():
    """Spelled out by hand in Kannada script; the tables have only roots and rules."""
    dative_then_accusative = """ನನಗೆ ನಮಗೆ ಅವನಿಗೆ ಅವಳಿಗೆ ಅವರಿಗೆ ಮೇರಿಗೆ ಸೂಸನ್‌ಗೆ ರವಿಗೆ ಹುಡುಗನಿಗೆ ಹುಡುಗಿಗೆ
        ಮನೆಗೆ ಶಾಲೆಗೆ ತೋಟಕ್ಕೆ ಅಂಗಡಿಗೆ ಹಣ್ಣನ್ನು ಅನ್ನವನ್ನು ಮೊಟ್ಟೆಯನ್ನು ರೊಟ್ಟಿಯನ್ನು ನೀರನ್ನು ಹಾಲನ್ನು
        ಕಾಫಿಯನ್ನು ಪುಸ್ತಕವನ್ನು ಪತ್ರವನ್ನು ಕಥೆಯನ್ನು ಪಾಠವನ್ನು ಚಿತ್ರವನ್ನು ಚೆಂಡನ್ನು ಹಣವನ್ನು ಹೂವನ್ನು
        ಗುಲಾಬಿಗಳನ್ನು"""
    nouns = [accusative(noun) for noun in OBJECTS.values()]
    made = [person.dative for person in PEOPLE] + [dative(noun) for noun in PLACES.values()] + nouns
    assert made == [to_latin(form) for form in dative_then_accusative.split()]
    give = "ಕೊಡುತ್ತೇನೆ ಕೊಡುತ್ತೇವೆ ಕೊಡುತ್ತಾನೆ ಕೊಡುತ್ತಾಳೆ ಕೊಡುತ್ತಾರೆ ಕೊಟ್ಟೆನು ಕೊಟ್ಟೆವು ಕೊಟ್ಟನು ಕೊಟ್ಟಳು ಕೊಟ್ಟರು"
    assert VERBS["give"].forms[:10] == tuple(to_latin(give).split())
    past = "ತಿಂದನು ಕುಡಿದನು ಓದಿದನು ಬರೆದನು ನೋಡಿದನು ಕೊಟ್ಟನು ತಂದನು ಕಳುಹಿಸಿದನು ತೋರಿಸಿದನು ಹೋದನು ಬಂದನು"
    assert [verb.form("he", past=True) for verb in VERBS.values()] == to_latin(past).split()


@pytest.mark.parametrize(
    ("source", "target", "alignment"),
    [
        ("ಮೇರಿ ಸೂಸನ್\u200cಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು", "Mary gave the roses to Susan", "0 3 2 2 1 1"),
        ("ಹೂವನ್ನು ಕೊಟ್ಟಳು", "She gave the flower", "1 1 0 0"),
        ("ನಿನ್ನೆ ಹುಡುಗನು ಹಾಲನ್ನು ಕುಡಿಯಲಿಲ್ಲ", "The boy did not drink the milk yesterday",
         "1 1 3 3 3 2 2 0"),
        ("ಅವಳು ತೋಟಕ್ಕೆ ಹೋದಳು", "She went to the garden", "0 2 1 1 1"),
        ("ಅವರು ನನಗೆ ಪಾಠವನ್ನು ತೋರಿಸುತ್ತಾರೆ", "They show the lesson to me", "0 3 2 2 1 1"),
        ("ರವಿ ಕಾಫಿಯನ್ನು ಕುಡಿಯುವುದಿಲ್ಲ", "Ravi does not drink the coffee", "0 2 2 2 1 1"),
    ],
)  # fmt: skip
def test_sentences_by_hand(source, target, alignment):
    sentence = GRAMMAR.parse(source)
    assert sentence == GRAMMAR.parse(to_latin(source))
    assert (sentence.source, sentence.target) == (source, target)
    assert " ".join(str(i) for (i,) in sentence.alignment) == alignment


def test_every_sentence_has_one_translation_and_a_whole_alignment():
    sentences = GRAMMAR.all_sentences
    assert len({sentence.source for sentence in sentences}) == len(sentences) == 33_876
    for source, target, alignment in sentences:
        assert len(alignment) == len(target.split())
        assert {i for places in alignment for i in places} == set(range(len(source.split())))
    assert (len(GRAMMAR.source_words), len(GRAMMAR.target_words)) == (173, 75)


@pytest.mark.parametrize("every", range(4, 11))
def test_no_combination_is_shared_and_every_part_of_it_is_seen(every):
    grammar = KannadaGrammar(every)
    hidden = grammar.held_out_triples
    seen = grammar.triples - hidden
    assert 0.5 / every < len(hidden) / len(grammar.triples) < 1.5 / every
    for i, j in combinations(range(3), 2):
        assert {(t[i], t[j]) for t in hidden} <= {(t[i], t[j]) for t in seen}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_drawn_keeps_the_division(seed):
    seen, hidden = GRAMMAR.training(4000, seed=seed), GRAMMAR.held_out(2000, seed=seed)
    assert (len(set(seen)), len(set(hidden))) == (4000, 2000)
    triples = {GRAMMAR.triple(sentence) for sentence in seen}
    assert not triples & {GRAMMAR.triple(sentence) for sentence in hidden}
    for text in ("source", "target"):
        words = {word for s in seen for word in getattr(s, text).split()}
        assert words == set(getattr(GRAMMAR, f"{text}_words"))  # so every form of every verb, too
    for i, j in combinations(range(3), 2):
        assert {(t[i], t[j]) for t in triples} == {(t[i], t[j]) for t in GRAMMAR.triples}


def test_the_same_seed_gives_the_same_sentences_anywhere():
    assert GRAMMAR.training(100, seed=3) == KannadaGrammar().training(5000, seed=3)[:100]
    assert GRAMMAR.training(100, seed=3) != GRAMMAR.training(100, seed=4)
    assert to_latin(SEEN[0].source) == "nānu kāphiyannu kuḍiyalilla"
    assert to_latin(HIDDEN[0].source) == "huḍugi patravannu bareyuvudilla"
    assert GRAMMAR.hash == "bbe6f5eaf07252e41d9c1b76f828eaf73cdd76d82e9033bfbba423bfe61cbaf8"
    assert KannadaGrammar(6).hash != GRAMMAR.hash


def test_a_draw_gives_each_verb_its_share():
    """Where it can: a verb without receivers has few sentences, and none comes twice."""
    verbs = [GRAMMAR.triple(sentence)[1] for sentence in GRAMMAR.training(800)]
    assert all(40 <= verbs.count(verb) <= 110 for verb in VERBS)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (-1, ValueError, "n is -1; there are 6,777 held-out sentences"),
        (6778, ValueError, "n is 6778; there are 6,777"),
        (2.0, TypeError, "n is 2.0, of type float"),
        (True, TypeError, "n is True, of type bool"),
    ],
)
def test_impossible_draws(n, error, message):
    with pytest.raises(error, match=message):
        GRAMMAR.held_out(n)


def test_a_grammar_that_hides_too_much_or_nothing_is_refused():
    for every in (3, 11, 0, -5):
        with pytest.raises(ValueError, match=f"held_out_every is {every}; .* from 4 to 10"):
            KannadaGrammar(every)
