"""Checks for chapter 10, Kannada to English."""

import math
import re
import unicodedata
from itertools import islice, product

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_lib.data.kannada import KannadaGrammar, to_latin
from transformer_lib.data.kannada.reading import LEXICON, words_of
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- say it in Kannada ----------------------------------------------------------------------------

WANTED = "The girl did not show the picture to us yesterday"


# Of a word that the grammar does not know: how it is written without marks, what is wrong with it.
HINTS = {
    "citra?a?nn?u": "After the final a of *citra* a v goes between: citra-v-annu.",
    "citravanu": "-annu has two n: citra-v-annu.",
    "citra?gal.*": "It is one picture: -gaḷ- says that there are several.",
    "citr.*ge": "With -ge something is a place or a receiver. What is shown takes -annu.",
    "citr.*": "What is shown takes -annu, and after the final a of *citra* a v goes between.",
    "torisuv?alilla": "The final -u of *tōrisu* is dropped before -alilla.",
    "torisid.*(illa|alla)": "The negative stands on *tōris*, not on the past: it is past itself.",
    "torisalilla.+": "Nothing follows -alilla: it is the same for everybody.",
    "torisu?": "That is the verb without an ending.",
    "toris.*": "A negative in the past is *tōris* with -alilla, for everybody.",
    "illa|alla|alilla": "The negative is an ending of the verb here, not a word.",
    "hudug(i.+|a.*)": "The girl, who shows, is *huḍugi*, without an ending.",
    "na(m|n|v).*": "*To us* is *namage*.",
    "n[ie]n.*": "*Yesterday* is *ninne*.",
}


def _hint(text: str) -> str:
    """What is wrong with the first word that the grammar does not know; "" if no pattern fits."""
    word = next(word for word in words_of(text) if word not in LEXICON)
    parts = unicodedata.normalize("NFD", to_latin(word))
    plain = "".join(c for c in parts if not unicodedata.combining(c))
    fitting = (told for pattern, told in HINTS.items() if re.fullmatch(pattern, plain))
    return "".join(f" {told}" for told in islice(fitting, 1))


def _fault(text: str) -> tuple[str] | None:
    """What the grammar says against a text, or what else it means."""
    try:
        found = KannadaGrammar().parse(text)
    except ValueError as error:
        message = str(error)
        hint = _hint(text) if "is not a word" in message else ""
        return (message[0].upper() + message[1:] + hint,)
    if found.target == WANTED:
        return None
    missing = [word for word in WANTED.split() if word not in found.target.split()]
    told = f" Still missing: {', '.join(missing)}." if missing else ""
    return (f"That is a sentence. It says: {found.target}.{told}",)


check_said_in_kannada = Exercise(
    asks=f"""`answer()`: the Kannada for *{WANTED}*: a text, in script or transliterated.""",
    right=lambda: "ninne huḍugi namage citravannu tōrisalilla",
    cases=[Case("your sentence")],
    also={"{}": _fault},
    unique=False,
    praise="Right: time, subject, receiver, object, verb, and a negative that fits everybody.",
)


# --- the mean over real tokens --------------------------------------------------------------------


def _losses(logits: Tensor, targets: Tensor) -> Tensor:
    return -logits.log_softmax(dim=-1).gather(2, targets.unsqueeze(2)).squeeze(2)


def _mean(logits: Tensor, targets: Tensor) -> Tensor:
    return _losses(logits, targets)[targets != 0].mean()


def padded_ids(*lengths: int, tokens: int, seed: int, vocabulary: int = 20) -> Tensor:
    source = torch.Generator(device="cpu").manual_seed(seed)
    ids = torch.randint(1, vocabulary, (len(lengths), tokens), generator=source)
    return ids * (torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1))


def _counts(answer) -> tuple[Tensor, Tensor] | None:
    """How much each token's loss adds to the result, and the targets, if it is such a sum."""
    targets = torch.tensor([[3, 1, 0, 0, 0], [2, 4, 1, 3, 0]])
    even, other = torch.zeros(2, 5, 7), randn(2, 5, 7, seed=44)

    def result(logits):
        return float(answer(logits.clone(), targets.clone()))

    counts = torch.zeros(2, 5)
    for place in product(range(2), range(5)):
        moved = even.clone()
        moved[*place, targets[place]] = 3.0
        change = _losses(moved, targets)[place] - _losses(even, targets)[place]
        counts[place] = (result(moved) - result(even)) / change
    is_sum = all(
        math.isclose(result(x), (counts * _losses(x, targets)).sum(), rel_tol=1e-3)
        for x in (even, other)
    )
    return (counts, targets) if is_sum else None


def _token(told: Tensor) -> tuple[int, int] | None:
    return tuple(told.nonzero()[0].tolist()) if told.any() else None


def _of_counts(look):
    """`look` at how much each token counts, if an answer is a sum of its tokens' losses."""

    def told(answer):
        found = _counts(answer)
        return found and look(*found)

    return told


def _a_word_does_not(counts: Tensor, targets: Tensor) -> tuple | None:
    place = _token((counts.abs() < 1e-4) & (targets != 0))
    return place and (*place, int(targets[place]))


def _another_divisor(counts: Tensor, targets: Tensor) -> tuple | None:
    real = targets != 0
    divisor, n = 1 / float(counts[real].mean()), int(real.sum())
    return None if math.isclose(divisor, n, rel_tol=1e-3) else (divisor, n)


def _not_alike(counts: Tensor, targets: Tensor) -> tuple | None:
    least, most = (float(f(counts[targets != 0])) for f in (Tensor.min, Tensor.max))
    return (least, most) if most - least > 1e-3 * abs(most) else None


def _sure_of_one() -> Tensor:
    """Logits that give one real token a loss of exactly 0."""
    logits = randn(2, 5, 7, seed=44)
    logits[0, 0, padded_ids(3, 5, tokens=5, vocabulary=7, seed=41)[0, 0]] = 200.0
    return logits


check_real_tokens = Exercise(
    asks="""`answer(logits, targets)`: the mean loss of all tokens that are not padding.

    logits [sentences, tokens, vocabulary] and targets [sentences, tokens], where id 0 is padding,
    give a single number: −ln p of the right word, averaged over the real tokens of the batch.
    """,
    right=_mean,
    wrong={
        "Padding counts as well: the model is taught to write it, and easy tokens dilute the mean.":
            lambda logits, targets: _losses(logits, targets).mean(),
        "These are the losses of the padding. Choose the tokens that are *not* 0.": (
            lambda logits, targets: _losses(logits, targets)[targets == 0].mean()
        ),
        "The loss is of the scores themselves; log_softmax over the vocabulary comes first.":
            lambda logits, targets: (
                -logits.gather(2, targets.unsqueeze(2)).squeeze(2)[targets != 0].mean()
            ),
        "This averages over all words of the vocabulary. Only the right one counts: `gather` it.": (
            lambda logits, targets: -logits.log_softmax(dim=-1)[targets != 0].mean()
        ),
        "This counts how often the model is wrong. A loss also asks how sure it was: −ln p.": (
            lambda logits, targets: (logits.argmax(dim=-1) != targets)[targets != 0].float().mean()
        ),
        "This counts how often the model is right. A loss also asks how sure it was: −ln p.": (
            lambda logits, targets: (logits.argmax(dim=-1) == targets)[targets != 0].float().mean()
        ),
        "The padding's logits are 0, and so even: each of them adds ln(vocabulary) to your sum. "
        "Leave these tokens out of the mean.": lambda logits, targets: (
            _losses(logits * (targets != 0).unsqueeze(2), targets).mean()
        ),
        "This is the loss of the word that the model finds most probable, not of the right one.": (
            lambda logits, targets: -logits.log_softmax(dim=-1).amax(dim=-1)[targets != 0].mean()
        ),
        "A sigmoid looks at one score alone. The probabilities of a token's words must sum to 1, "
        "by a softmax.": lambda logits, targets: (
            -F.logsigmoid(logits).gather(2, targets.unsqueeze(2)).squeeze(2)[targets != 0].mean()
        ),
        "The targets are one place too early: row t of `logits` belongs to row t of `targets`.": (
            lambda logits, targets: _mean(logits[:, 1:], targets[:, :-1])
        ),
        "You leave out the column of id 0 before the softmax. It is a word of the vocabulary like "
        "any other; what is left out is where the *target* is 0.": lambda logits, targets: (
            F.cross_entropy(logits[targets != 0][:, 1:], targets[targets != 0] - 1)
        ),
        "You shift the targets once more. Row t of `logits` belongs to row t of `targets`.": (
            lambda logits, targets: _mean(logits[:, :-1], targets[:, 1:])
        ),
        "You leave out where the model predicts id 0. Padding is where the *target* is 0.": (
            lambda logits, targets: _losses(logits, targets)[logits.argmax(dim=-1) != 0].mean()
        ),
    },
    about={
        "A word does not count: in sentence {}, place {} adds nothing to your result, and its "
        "target is {}.": _of_counts(_a_word_does_not),
        "The words do not count alike: one adds {:.2g} of its loss, another {:.2g}. Divide once, "
        "by the number of all of them.": _of_counts(_not_alike),
        "The sum of the losses is right, and it is divided by the wrong number: in 2 sentences, "
        "filled up to 5 places, by {:.4g}. There are {} real tokens in them.":
            _of_counts(_another_divisor),
    },
    cases=[
        Case("2 sentences of 3 and 5 words", randn(2, 5, 7, seed=40),
             padded_ids(3, 5, tokens=5, vocabulary=7, seed=41)),
        Case("3 sentences of 1, 7 and 4 words", randn(3, 7, 11, seed=42),
             padded_ids(1, 7, 4, tokens=7, vocabulary=11, seed=43)),
        Case("a token of which the model is sure", _sure_of_one(),
             padded_ids(3, 5, tokens=5, vocabulary=7, seed=41), edge=True),
    ],
    praise="Right: every real token counts once, wherever it stands.",
)  # fmt: skip


# --- the least loss of smoothed targets -----------------------------------------------------------


def _smoothed_floor(epsilon: float, size: int) -> float:
    right, other = 1 - epsilon + epsilon / size, epsilon / size
    return -right * math.log(right) - (size - 1) * other * math.log(other)


# The parts of −p ln(p) − n · q ln(q), the right one first.
_RIGHT_SHARE = {
    "1 − epsilon + epsilon / size": lambda epsilon, size: 1 - epsilon + epsilon / size,
    "1 − epsilon": lambda epsilon, size: 1 - epsilon,
}
_OTHERS = {
    "size − 1": lambda epsilon, size: size - 1,
    "size": lambda epsilon, size: size,
    "1": lambda epsilon, size: 1,
    "0": lambda epsilon, size: 0,
}
_OTHER_SHARE = {
    "epsilon / size": lambda epsilon, size: epsilon / size,
    "epsilon / (size − 1)": lambda epsilon, size: epsilon / (size - 1),
    "epsilon": lambda epsilon, size: epsilon,
    "1 / size": lambda epsilon, size: 1 / size,
}
_WHOLE = {"1": lambda epsilon, size: 1, "0": lambda epsilon, size: 0}
_ONE = {"1": lambda epsilon, size: 1}
_PARTS = [_RIGHT_SHARE | _WHOLE, _RIGHT_SHARE, _OTHERS, _OTHER_SHARE | _ONE, _OTHER_SHARE]
_LOOK = [
    "the factor before the first logarithm",
    "the share in the first logarithm",
    "how many other words there are",
    "the factor before the second logarithm",
    "the share in the second logarithm",
]


def _as_sum(answer) -> tuple[str, str] | None:
    """The sum of two logarithms that an answer is, and the first of its parts that is wrong."""
    points = [(0.1, 78), (0.3, 5), (0.2, 11)]
    results = [float(answer(*point)) for point in points]
    values = [
        {name: [part(*point) for point in points] for name, part in parts.items()}
        for parts in _PARTS
    ]
    sums = sorted(product(*values), key=lambda names: _mistakes(names).count(True))
    for names in sums:
        parts = zip(*(of[name] for of, name in zip(values, names, strict=True)), strict=True)
        theirs = (-p * math.log(a) - n * q * math.log(b) for p, a, n, q, b in parts)
        if all(math.isclose(x, y, rel_tol=1e-5) for x, y in zip(results, theirs, strict=True)):
            return _formula(*names), _where(names)
    return None


def _mistakes(names: tuple[str, ...]) -> list[bool]:
    return [name != next(iter(parts)) for name, parts in zip(names, _PARTS, strict=True)]


def _where(names: tuple[str, ...]) -> str:
    wrong = _mistakes(names)
    if names[0] == "0" or names[2] == "0":
        return f"what is missing: {'the right word' if names[0] == '0' else 'the other words'}"
    if wrong[0] and names[0] == names[1]:
        return "the share of the right word"
    if wrong[3] and names[3] == names[4] and not wrong[2]:
        return "the share of each other word"
    return _LOOK[wrong.index(True)]


def _formula(p: str, a: str, n: str, q: str, b: str) -> str:
    p, n, q = (f"({part})" if " " in part else part for part in (p, n, q))
    first = "" if p == "0" else f"−{p} ln({a}) "
    return (first + ("" if n == "0" else f"− {n} · {q} ln({b})")).strip()


check_smoothed_floor = Exercise(
    asks="""`answer(epsilon, size)`: the least loss that any model can have with smoothed targets.

    The target is (1 − epsilon) on the right word, plus epsilon / size on each of all `size` words,
    the right one included. The loss is the cross-entropy, in nats.
    """,
    right=_smoothed_floor,
    wrong={
        "Zero is the floor without smoothing. Now a model that is sure of one word pays for all "
        "the others.": lambda epsilon, size: 0.0,
    },
    about={
        "Your result is that of {}. Look at {}.": _as_sum,
    },
    cases=[
        Case("epsilon 0.1, 78 words", 0.1, 78),
        Case("epsilon 0.3, 5 words", 0.3, 5),
    ],
    praise="Right: the entropy of the target itself. No model gets below it.",
)


# --- read the alignment ---------------------------------------------------------------------------


def _read(weights: Tensor) -> Tensor:
    return weights[:-1].argmax(dim=1)


check_alignment = Exercise(
    asks="""`answer(weights)`: for each English word the Kannada word that it is written from.

    weights [rows, Kannada words] are one head's cross-attention. The decoder has read `<s>` and all
    English words, so there is one row more than English words. Return one index for each of them,
    that of the largest weight.
    """,
    right=_read,
    wrong={
        "You read a word's own row. There it is the input, and the query looks for the next one; "
        "it was predicted one row earlier.": lambda weights: weights[1:].argmax(dim=1),
        "There is one row more than there are words: the last row predicts the end token.": (
            lambda weights: weights.argmax(dim=1)
        ),
        "This asks for each Kannada word which row attends to it most, one index a column. A row's "
        "maximum goes over the columns: dim=1.": lambda weights: weights.argmax(dim=0),
        "These are the largest weights themselves; return where they are.": lambda weights: weights[
            :-1
        ].amax(dim=1),
        "Not every row has a weight above one half. Each English word has a link, to the largest "
        "weight of its row.": lambda weights: (weights[:-1] > 0.5).nonzero()[:, 1],
    },
    cases=[
        Case("6 English and 4 Kannada words", torch.softmax(3 * randn(7, 4, seed=51), dim=1)),
        Case("11 English and 5 Kannada words", torch.softmax(3 * randn(12, 5, seed=53), dim=1)),
    ],
    axes="words",
    praise="Right: read where the word is predicted, and leave out the end.",
)


# --- which score may be reported ------------------------------------------------------------------

check_reported = Choice(
    asks="Which of the five may be called the translator's BLEU? A letter.",
    right="d",
    wrong={
        "a": "With teacher forcing the model reads the true words before each one. It can copy the "
        "structure and never meets its own mistakes.",
        "b": "On characters, nearly every four in a row occur in the reference somewhere. The "
        "number is high and cannot be compared with anybody's.",
        "c": "Brevity penalty and n-grams are counted over the whole corpus. A mean over sentences "
        "is another number (without smoothing, 0 for a sentence without a common 4-gram).",
        "e": "That counts the padding and end tokens as words, and these are nearly always right.",
    },
    praise="Right: its own output as plain text, the whole corpus at once, and a signature that "
    "says how it was counted.",
)
