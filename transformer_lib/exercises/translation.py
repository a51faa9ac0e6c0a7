"""Checks for chapter 10, Kannada to English."""

import math

import torch
from torch import Tensor

from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- say it in Kannada ----------------------------------------------------------------------------

WANTED = "The girl did not show the picture to us yesterday"


def _fault(text: str) -> tuple[str] | None:
    """What the grammar says against a text, or what else it means."""
    try:
        found = KannadaGrammar().parse(text)
    except ValueError as error:
        message = str(error)
        return (message[0].upper() + message[1:],)
    return None if found.target == WANTED else (f"That is a sentence. It says: {found.target}.",)


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


def _mean_of_means(logits: Tensor, targets: Tensor) -> Tensor:
    real = targets != 0
    return ((_losses(logits, targets) * real).sum(dim=1) / real.sum(dim=1)).mean()


def _padded(*lengths: int, tokens: int, vocabulary: int, seed: int) -> Tensor:
    source = torch.Generator(device="cpu").manual_seed(seed)
    ids = torch.randint(1, vocabulary, (len(lengths), tokens), generator=source)
    return ids * (torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1))


check_real_tokens = Exercise(
    asks="""`answer(logits, targets)`: the mean loss of all tokens that are not padding.

    logits [sentences, tokens, vocabulary] and targets [sentences, tokens], where id 0 is padding,
    give a single number: −ln p of the right word, averaged over the real tokens of the batch.
    """,
    right=_mean,
    wrong={
        "Padding counts as well: the model is taught to write it, and easy tokens dilute the mean.":
            lambda logits, targets: _losses(logits, targets).mean(),
        "Padding is left out of the sum, and counted in the division.": lambda logits, targets: (
            (_losses(logits, targets) * (targets != 0)).mean()
        ),
        "This is the mean of the sentences' means: a word of a short sentence counts for more.":
            _mean_of_means,
        "This is the sum; divide by the number of real tokens.": lambda logits, targets: (
            _losses(logits, targets)[targets != 0].sum()
        ),
        "This divides by the number of sentences, not of tokens.": lambda logits, targets: (
            _losses(logits, targets)[targets != 0].sum() / len(targets)
        ),
        "The sign is wrong: a loss is the negative logarithm.": lambda logits, targets: (
            -_mean(logits, targets)
        ),
        "These are the losses of the padding. Choose the tokens that are *not* 0.": (
            lambda logits, targets: _losses(logits, targets)[targets == 0].mean()
        ),
        "This averages the probabilities of the right words. A loss averages −ln of them.": (
            lambda logits, targets: -(-_losses(logits, targets)).exp()[targets != 0].mean()
        ),
        "The softmax runs over the tokens of a sentence. It belongs to the vocabulary, dim=-1.": (
            lambda logits, targets: (
                -logits.log_softmax(dim=1).gather(2, targets.unsqueeze(2)).squeeze(2)[targets != 0]
            ).mean()
        ),
        "`reshape` does not swap axes: the scores of one token are torn apart. Use `transpose` or "
        "`mT`, or flatten sentences and tokens into one axis.": lambda logits, targets: (
            _losses(logits.reshape(len(logits), logits.shape[2], -1).mT, targets)[targets != 0]
        ).mean(),
        "The loss is of the scores themselves; log_softmax over the vocabulary comes first.":
            lambda logits, targets: (
                -logits.gather(2, targets.unsqueeze(2)).squeeze(2)[targets != 0].mean()
            ),
    },
    cases=[
        Case("2 sentences of 3 and 5 words", randn(2, 5, 7, seed=40),
             _padded(3, 5, tokens=5, vocabulary=7, seed=41)),
        Case("3 sentences of 1, 7 and 4 words", randn(3, 7, 11, seed=42),
             _padded(1, 7, 4, tokens=7, vocabulary=11, seed=43)),
    ],
    praise="Right: every real token counts once, wherever it stands.",
)  # fmt: skip


# --- the least loss of smoothed targets -----------------------------------------------------------


def _smoothed_floor(epsilon: float, size: int) -> float:
    right, other = 1 - epsilon + epsilon / size, epsilon / size
    return -right * math.log(right) - (size - 1) * other * math.log(other)


def _rest_shared(epsilon: float, size: int) -> float:
    other = epsilon / (size - 1)
    return -(1 - epsilon) * math.log(1 - epsilon) - epsilon * math.log(other)


check_smoothed_floor = Exercise(
    asks="""`answer(epsilon, size)`: the least loss that any model can have with smoothed targets.

    The target is (1 − epsilon) on the right word, plus epsilon / size on each of all `size` words,
    the right one included. The loss is the cross-entropy, in nats.
    """,
    right=_smoothed_floor,
    wrong={
        "Zero is the floor without smoothing. Now a model that is sure of one word pays for all "
        "the others.": lambda epsilon, size: 0.0,
        "The right word has more than 1 − epsilon: it gets its epsilon / size, too.": _rest_shared,
        "This is the part of the right word only; the other words have a share each.": (
            lambda epsilon, size: (
                -(1 - epsilon + epsilon / size) * math.log(1 - epsilon + epsilon / size)
            )
        ),
        "This is −ln of the right word's share. Weigh it by that share, and add the others'.": (
            lambda epsilon, size: -math.log(1 - epsilon + epsilon / size)
        ),
        "The other words are all of the vocabulary but one: size − 1 of them.": (
            lambda epsilon, size: (
                _smoothed_floor(epsilon, size) - epsilon / size * math.log(epsilon / size)
            )
        ),
        "These are the other words' parts only. The right word's is missing: −p ln p of its "
        "share.": lambda epsilon, size: -(size - 1) * epsilon / size * math.log(epsilon / size),
        "The right word's own epsilon / size is a part of its share, not an outcome beside it: add "
        "the two first.": lambda epsilon, size: (
            -(1 - epsilon) * math.log(1 - epsilon) - epsilon * math.log(epsilon / size)
        ),
        "Two outcomes, right and wrong, are not enough: each word is an outcome of its own.": (
            lambda epsilon, size: (
                -(1 - epsilon) * math.log(1 - epsilon) - epsilon * math.log(epsilon)
            )
        ),
        "This is the entropy of a target that is even over all words. The share 1 − epsilon stands "
        "on one.": lambda epsilon, size: math.log(size),
        "This is in bits; the loss is in nats, with the natural logarithm.": (
            lambda epsilon, size: _smoothed_floor(epsilon, size) / math.log(2)
        ),
        "The sign is wrong: an entropy is not negative.": lambda epsilon, size: (
            -_smoothed_floor(epsilon, size)
        ),
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
        "This asks for each Kannada word which row attends to it most: the maximum goes over the "
        "other axis.": lambda weights: weights[:-1].argmax(dim=0),
        "This asks for each Kannada word which row attends to it most, one index a column. A row's "
        "maximum goes over the columns: dim=1.": lambda weights: weights.argmax(dim=0),
        "You leave out the first column. Columns are Kannada words, all of them; `<s>` is a row.": (
            lambda weights: weights[:-1, 1:].argmax(dim=1)
        ),
        "You leave out both ends. The first row, of `<s>`, predicts the first word.": (
            lambda weights: weights[1:-1].argmax(dim=1)
        ),
        "These are the largest weights themselves; return where they are.": lambda weights: weights[
            :-1
        ].amax(dim=1),
        "This is where each query looks least.": lambda weights: weights[:-1].argmin(dim=1),
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
        "is another number (and 0 for a sentence without a common 4-gram).",
        "e": "That counts the padding and end tokens as words, and right they are nearly always.",
    },
    praise="Right: its own output as plain text, the whole corpus at once, and a signature that "
    "says how it was counted.",
)
