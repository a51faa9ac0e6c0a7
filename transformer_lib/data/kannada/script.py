"""Kannada letters and their transliteration by ISO 15919, both ways, without loss.

In the script a consonant carries an *a* unless a vowel sign or the virama (no vowel) follows; in
Latin letters every vowel is written. A colon parts what would be read together: ``k:h`` is k and h,
``kh`` one letter. The joiners U+200C and U+200D, spaces and punctuation stand for themselves.

Source: ISO 15919:2001, the tables for Kannada; The Unicode Standard, chapter 12, Kannada.
"""

import re
import unicodedata

VIRAMA = "್"
# Each vowel: the letter that begins a syllable, and the sign after a consonant (a has none).
VOWELS = {
    "a": ("ಅ", ""), "ā": ("ಆ", "ಾ"), "i": ("ಇ", "ಿ"), "ī": ("ಈ", "ೀ"), "u": ("ಉ", "ು"),
    "ū": ("ಊ", "ೂ"), "r̥": ("ಋ", "ೃ"), "e": ("ಎ", "ೆ"), "ē": ("ಏ", "ೇ"), "ai": ("ಐ", "ೈ"),
    "o": ("ಒ", "ೊ"), "ō": ("ಓ", "ೋ"), "au": ("ಔ", "ೌ"),
}  # fmt: skip
CONSONANTS = {
    "k": "ಕ", "kh": "ಖ", "g": "ಗ", "gh": "ಘ", "ṅ": "ಙ",
    "c": "ಚ", "ch": "ಛ", "j": "ಜ", "jh": "ಝ", "ñ": "ಞ",
    "ṭ": "ಟ", "ṭh": "ಠ", "ḍ": "ಡ", "ḍh": "ಢ", "ṇ": "ಣ",
    "t": "ತ", "th": "ಥ", "d": "ದ", "dh": "ಧ", "n": "ನ",
    "p": "ಪ", "ph": "ಫ", "b": "ಬ", "bh": "ಭ", "m": "ಮ",
    "y": "ಯ", "r": "ರ", "l": "ಲ", "v": "ವ", "ś": "ಶ",
    "ṣ": "ಷ", "s": "ಸ", "h": "ಹ", "ḷ": "ಳ", "ṟ": "ಱ", "ḻ": "ೞ",
}  # fmt: skip
SIGNS = {"ṁ": "ಂ", "ḥ": "ಃ"}  # after a vowel
JOINERS = "\u200c\u200d"
SAME = " \t\n.,;!?'\"()-" + JOINERS
COLON = ":"

LETTERS = {k: latin for latin, k in CONSONANTS.items()}
INDEPENDENT = {letter: latin for latin, (letter, _) in VOWELS.items()}
DEPENDENT = {sign: latin for latin, (_, sign) in VOWELS.items() if sign}
AFTER = {k: latin for latin, k in SIGNS.items()}
UNITS = re.compile(  # the longest first: kh before k, ai before a
    "|".join(map(re.escape, sorted([*CONSONANTS, *VOWELS, *SIGNS], key=len, reverse=True)))
)


def to_script(text: str) -> str:
    """Kannada letters for a text in ISO 15919. Capitals are read as small letters.

    Raises:
        ValueError: a character that the transliteration of Kannada does not have; a ``ṁ`` or
            ``ḥ`` without a vowel before it.
        TypeError: ``text`` is not a text.

    >>> to_script("mēri sūsan\\u200cge gulābigaḷannu koṭṭaḷu")
    'ಮೇರಿ ಸೂಸನ್\\u200cಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು'
    """
    text = unicodedata.normalize("NFC", _require_text(text).lower())
    written, bare, i = [], False, 0  # bare: the last letter is a consonant without its vowel
    before = ""
    while i < len(text):
        match = UNITS.match(text, i)
        unit = match.group() if match else text[i]
        if unit in VOWELS:
            written.append(VOWELS[unit][bare])
            bare = False
        else:
            if bare:
                written.append(VIRAMA)
            bare = unit in CONSONANTS
            if bare:
                written.append(CONSONANTS[unit])
            elif unit in SIGNS and before in VOWELS:
                written.append(SIGNS[unit])
            elif unit in SAME:
                written.append(unit)
            elif unit != COLON or before not in {*VOWELS, *CONSONANTS}:
                raise _unknown(text, i, "the transliteration of Kannada (ISO 15919)")
        before = unit
        i += len(unit)
    return "".join(written) + (VIRAMA if bare else "")


def to_latin(text: str) -> str:
    """The transliteration of Kannada letters; ``to_script`` gives the same letters back.

    Raises:
        ValueError: a character that is not a letter or sign of Kannada; a vowel sign or virama
            that does not follow a consonant.
        TypeError: ``text`` is not a text.

    >>> to_latin("ಅವಳು ತೋಟಕ್ಕೆ ಹೋದಳು")
    'avaḷu tōṭakke hōdaḷu'
    """
    text = unicodedata.normalize("NFC", _require_text(text))
    units: list[str] = []
    for i, character in enumerate(text):
        after = text[i + 1] if i + 1 < len(text) else ""
        before = units[-1] if units else ""
        consonant = i > 0 and text[i - 1] in LETTERS
        if character in LETTERS:
            latin = LETTERS[character]
            units.append(COLON + latin if before and before + latin in CONSONANTS else latin)
            if after not in DEPENDENT and after != VIRAMA:
                units.append("a")
        elif character in INDEPENDENT:
            vowel, apart = INDEPENDENT[character], text[max(i - 1, 0)] == VIRAMA
            apart = apart or (before and before + vowel in VOWELS)
            units.append(COLON + vowel if apart else vowel)
        elif character in DEPENDENT and consonant:
            units.append(DEPENDENT[character])
        elif character in AFTER and before.lstrip(COLON) in VOWELS:
            units.append(AFTER[character])
        elif character in SAME:
            units.append(character)
        elif not (character == VIRAMA and consonant):
            raise _unknown(text, i, "Kannada")
    return unicodedata.normalize("NFC", "".join(units))


def _unknown(text: str, position: int, script: str) -> ValueError:
    character = text[position]
    name = unicodedata.name(character, "without a name")
    word = re.findall(r"\S+|\s", text[: position + 1])[-1]
    known = character == VIRAMA or character in {*DEPENDENT, *AFTER, *SIGNS, COLON}
    problem = "is where it cannot be" if known else f"is not a character of {script}"
    return ValueError(
        f"character {position} (from 0), {character!r} (U+{ord(character):04X}, {name}), "
        f"{problem}; it comes at the end of {word!r}. Correct it, or leave it out."
    )


def _require_text(text) -> str:
    if not isinstance(text, str):
        raise TypeError(f"the text is {text!r}, of type {type(text).__name__}; give a str.")
    return text
