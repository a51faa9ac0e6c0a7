"""Chapter 10's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge

from transformer_lib.exercises import translation
from transformer_lib.exercises.translation import (
    check_alignment,
    check_real_tokens,
    check_reported,
    check_said_in_kannada,
    check_smoothed_floor,
)

RIGHT, WRONG = {}, {}

# --- say it in Kannada


def saying(text):
    return lambda: text


RIGHT[check_said_in_kannada] = [
    saying("ninne huḍugi namage citravannu tōrisalilla"),
    saying("  Ninne huḍugi namage  citravannu tōrisalilla "),
    saying("Ninne hudugi namage citravannu torisalilla."),
    saying("ನಿನ್ನೆ ಹುಡುಗಿ ನಮಗೆ ಚಿತ್ರವನ್ನು ತೋರಿಸಲಿಲ್ಲ"),
]
WRONG[check_said_in_kannada] = [
    (saying("huḍugi namage citravannu tōrisalilla"), "did not show the picture to us."),
    (saying("ninne huḍugi namage citravannu tōrisidanu"), "The ending -anu of 'tōrisidanu' says"),
    (saying("huḍugi tōrisalilla citravannu"), "There is no verb at the end"),
    (saying("ninne huḍugi namage citra tōrisalilla"), "It is picture without its case"),
    (saying("yesterday"), "is not a word of this grammar"),
]

# --- the mean over real tokens


def by_pytorch(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)


def by_a_loop(logits, targets):
    total, count = 0.0, 0
    for rows, words in zip(logits, targets, strict=True):
        for row, word in zip(rows, words, strict=True):
            if word != 0:
                total, count = total + row.logsumexp(0) - row[word], count + 1
    return total / count


RIGHT[check_real_tokens] = [by_pytorch, by_a_loop]


def one_by_one(logits, targets):
    return F.cross_entropy(logits.mT, targets, ignore_index=0, reduction="none")


WRONG[check_real_tokens] = [
    (lambda x, y: F.cross_entropy(x.mT, y), "Padding counts as well"),
    (lambda x, y: one_by_one(x, y).mean(), "counted in the division"),
    (
        lambda x, y: torch.stack(
            [by_pytorch(x[i : i + 1], y[i : i + 1]) for i in range(len(x))]
        ).mean(),
        "the mean of the sentences' means",
    ),
    (lambda x, y: one_by_one(x, y).sum(), "This is the sum;"),
    (lambda x, y: one_by_one(x, y).sum() / x.shape[0], "by the number of sentences"),
    (lambda x, y: -by_pytorch(x, y), "The sign is wrong"),
    (lambda x, y: F.cross_entropy(x[y == 0], y[y == 0]), "the losses of the padding"),
    (lambda x, y: -torch.exp(-one_by_one(x, y))[y > 0].mean(), "averages the probabilities"),
    (lambda x, y: F.nll_loss(x.log_softmax(1).mT, y, ignore_index=0), "over the tokens"),
    (
        lambda x, y: F.cross_entropy(x.reshape(len(x), -1, x.shape[1]), y, ignore_index=0),
        "does not swap axes",
    ),
    (
        lambda x, y: -x.gather(2, y[..., None])[..., 0][y > 0].mean(),
        "The loss is of the scores themselves",
    ),
]

# --- the least loss of smoothed targets


def entropy(shares):
    return -sum(share * math.log(share) for share in shares)


def target(epsilon, size):
    return [1 - epsilon + epsilon / size] + [epsilon / size] * (size - 1)


def by_pytorch_smoothed(epsilon, size):
    best = torch.tensor(target(epsilon, size), dtype=torch.float64).log()
    word = torch.tensor([0])
    return F.cross_entropy(best.unsqueeze(0), word, label_smoothing=epsilon).item()


RIGHT[check_smoothed_floor] = [lambda e, n: entropy(target(e, n)), by_pytorch_smoothed]
WRONG[check_smoothed_floor] = [
    (lambda e, n: 0.0, "Zero is the floor without"),
    (lambda e, n: entropy([1 - e] + [e / (n - 1)] * (n - 1)), "more than 1 − epsilon"),
    (lambda e, n: entropy(target(e, n)[:1]), "the part of the right word only"),
    (lambda e, n: -math.log(target(e, n)[0]), "Weigh it by that share"),
    (lambda e, n: entropy([*target(e, n), e / n]), "but one: size − 1"),
    (lambda e, n: entropy(target(e, n)[1:]), "the other words' parts only"),
    (lambda e, n: entropy([1 - e] + [e / n] * n), "not an outcome beside it"),
    (lambda e, n: entropy([1 - e, e]), "Two outcomes"),
    (lambda e, n: entropy([1 / n] * n), "even over all words"),
    (lambda e, n: entropy(target(e, n)) / math.log(2), "This is in bits"),
    (lambda e, n: -entropy(target(e, n)), "The sign is wrong"),
]

# --- read the alignment

RIGHT[check_alignment] = [
    lambda weights: weights[: len(weights) - 1].max(dim=-1).indices,
    lambda weights: torch.tensor([int(row.argmax()) for row in weights][:-1]),
]
WRONG[check_alignment] = [
    (lambda weights: weights[1:].max(dim=1).indices, "You read a word's own row"),
    (lambda weights: weights.max(dim=1).indices, "one row more than there are words"),
    (lambda weights: weights[:-1].max(dim=0).indices, "goes over the other axis"),
    (lambda weights: weights.max(dim=0).indices, "one index a column"),
    (lambda weights: weights[:-1, 1:].max(dim=1).indices, "You leave out the first column"),
    (lambda weights: weights[1:-1].max(dim=1).indices, "You leave out both ends"),
    (lambda weights: weights[:-1].max(dim=1).values, "the largest weights themselves"),
    (lambda weights: weights[:-1].min(dim=1).indices, "looks least"),
]

# --- which score may be reported

RIGHT[check_reported] = ["d", "D", "(d)"]
WRONG[check_reported] = [
    ("a", "With teacher forcing"),
    ("b", "On characters"),
    ("c", "over the whole corpus"),
    ("e", "counts the padding"),
]


@pytest.mark.parametrize("exercise", exercises(translation))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
