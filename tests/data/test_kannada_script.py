"""Kannada letters and ISO 15919: both ways without loss, joiners kept, what is foreign named."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_lib.data.kannada import KannadaGrammar, to_latin, to_script
from transformer_lib.data.kannada.script import CONSONANTS, JOINERS, SIGNS, VIRAMA, VOWELS

# Written by hand from the tables of ISO 15919 and the Kannada block of Unicode.
PAIRS = [
    ("ಕನ್ನಡ", "kannaḍa"),
    ("ಸೂಸನ್\u200cಗೆ", "sūsan\u200cge"),  # without the joiner, another spelling
    ("ಸೂಸನ್ಗೆ", "sūsange"),
    ("ತಿಂದನು", "tiṁdanu"),
    ("ಸಂಸ್ಕೃತ", "saṁskr̥ta"),
    ("ದುಃಖ", "duḥkha"),
    ("ಐ ಔ ಕೈ ಕೌ", "ai au kai kau"),
    ("ಅಇ ಕಉ", "a:i ka:u"),
    ("ಕ್ಹ ಖ", "k:ha kha"),
    ("ಶ್ರೀ ಕ್ಷ ಜ್ಞ", "śrī kṣa jña"),
    ("ಹೋ\u200d. ಹೊ!", "hō\u200d. ho!"),
]


@pytest.mark.parametrize(("kannada", "latin"), PAIRS)
def test_pairs_written_by_hand(kannada, latin):
    assert to_latin(kannada) == latin
    assert to_script(latin) == kannada
    assert to_script(latin.upper()) == kannada


def syllables():
    """What Kannada can write: letters that begin a syllable, signs after them, joiners, spaces."""
    consonant = st.sampled_from([*CONSONANTS.values()])
    ending = st.sampled_from([VIRAMA, VIRAMA + JOINERS[0], *(sign for _, sign in VOWELS.values())])
    vowel = st.sampled_from([letter for letter, _ in VOWELS.values()])
    syllable = st.tuples(consonant, ending).map("".join) | vowel
    signed = st.tuples(syllable, st.sampled_from(["", *SIGNS.values()])).map("".join)
    kept = st.sampled_from([" ", ".", *JOINERS])
    return st.lists(signed | kept).map("".join).filter(lambda text: not _strays(text))


def _strays(text):
    return any(
        VIRAMA + sign in text or VIRAMA + JOINERS[0] + sign in text for sign in SIGNS.values()
    )


@given(syllables())
@example("ಕ್ಅ")
def test_every_text_of_kannada_letters_comes_back(text):
    assert to_script(to_latin(text)) == text


def test_the_words_of_the_grammar_are_told_apart_in_both_scripts():
    words = KannadaGrammar().source_words
    assert len({to_latin(word) for word in words}) == len(set(words)) == len(words)
    assert all(to_script(to_latin(word)) == word for word in words)


@pytest.mark.parametrize(
    ("function", "text", "message"),
    [
        (
            to_latin,
            "ಕമ",
            "character 1 .*U\\+0D2E, MALAYALAM LETTER MA.* not a character of Kannada",
        ),
        (to_latin, "ಕ ು", "U\\+0CC1, KANNADA VOWEL SIGN U.*is where it cannot be"),
        (to_latin, "್ಕ", "VIRAMA.*is where it cannot be"),
        (to_latin, "ಕ್ಂ", "ANUSVARA.*is where it cannot be"),
        (to_latin, "kannada", "'k' .*not a character of Kannada"),
        (to_script, "ka q", "character 3 .*'q'.*not a character of the transliteration"),
        (to_script, "tiṃdanu", "U\\+1E43.*comes at the end of 'tiṃ'"),  # ISO's anusvara is ṁ
        (to_script, "kṁ", "'ṁ'.*is where it cannot be"),
        (to_script, ":ka", "':'.*is where it cannot be"),
        (to_script, "ಕ", "KANNADA LETTER KA.*not a character of the transliteration"),
    ],
)
def test_what_is_foreign_is_named(function, text, message):
    with pytest.raises(ValueError, match=message):
        function(text)
