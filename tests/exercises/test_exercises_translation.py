"""Chapter 10's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by

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
    (saying("ninne huḍugi namage citrannu tōrisalilla"), "a v goes between"),
    (saying("ನಿನ್ನೆ ಹುಡುಗಿ ನಮಗೆ ಚಿತ್ರನ್ನು ತೋರಿಸಲಿಲ್ಲ"), "a v goes between"),
    (saying("ninne huḍugi namage citravannu tōrisuvalilla"), "The final -u of *tōrisu* is dropped"),
    (saying("ninne huḍugi namage citravannu tōrisidalilla"), "stands on *tōris*, not on the past"),
    (saying("ninne huḍugi namage citravannu tōrisalillaḷu"), "Nothing follows -alilla"),
    (saying("ninne huḍugi namage citravannu tōrisilla"), "is *tōris* with -alilla"),
    (saying("ninne huḍugi namage citravannu tōrisu"), "the verb without an ending"),
    (saying("ninne huḍugi namage citravannu illa tōrisidaḷu"), "an ending of the verb here"),
    (saying("ninne huḍuga namage citravannu tōrisalilla"), "is *huḍugi*, without an ending"),
    (saying("ninne huḍugi namma citravannu tōrisalilla"), "*To us* is *namage*"),
    (saying("ninne huḍugi namage citravanu tōrisalilla"), "-annu has two n"),
    (saying("ninne huḍugi namage citrakke tōrisalilla"), "What is shown takes -annu, and after"),
    (saying("nenne huḍugi namage citravannu tōrisalilla"), "*Yesterday* is *ninne*"),
    (saying("ninne huḍugi namage citravannu tōrisidaḷalla"), "stands on *tōris*, not"),
    (saying("ninne huḍugi namage citragaḷannu tōrisalilla"), "It is one picture"),
    (saying("ninne huḍugi namage citrage tōrisalilla"), "What is shown takes -annu"),
    (saying("ninne huḍugiyu namage citravannu tōrisalilla"), "The girl, who shows, is"),
    (saying("ninne huḍugi namage citravannu tōrisidaḷu"), "Still missing: did, not, show."),
    (saying("huḍugi namage citravannu tōrisalilla"), "Still missing: yesterday."),
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
    (
        lambda x, y: one_by_one(x, y).mean(),
        "The sum of the losses is right, and it is divided by the wro",
    ),
    (
        lambda x, y: torch.stack(
            [by_pytorch(x[i : i + 1], y[i : i + 1]) for i in range(len(x))]
        ).mean(),
        "The words do not count alike: one adds 0.13 of its loss, ano",
    ),
    (
        lambda x, y: one_by_one(x, y).sum(),
        "The sum of the losses is right, and it is divided by the wro",
    ),
    (
        lambda x, y: one_by_one(x, y).sum() / x.shape[0],
        "The sum of the losses is right, and it is divided by the wro",
    ),
    (lambda x, y: -by_pytorch(x, y), "the sign before `by_pytorch(x, y)` is one too many"),
    (lambda x, y: F.cross_entropy(x[y == 0], y[y == 0]), "the losses of the padding"),
    (lambda x, y: -torch.exp(-one_by_one(x, y))[y > 0].mean(), "`torch.exp` is one step too many"),
    (
        lambda x, y: F.cross_entropy(x.reshape(len(x), -1, x.shape[1]), y, ignore_index=0),
        "a transpose is missing: `lambda x, y: F.cross_entropy(x.mT.reshape",
    ),
    (
        lambda x, y: -x.gather(2, y[..., None])[..., 0][y > 0].mean(),
        "The loss is of the scores themselves",
    ),
    (lambda x, y: (x.logsumexp(-1, keepdim=True) - x)[y > 0].mean(), "over all words of the voc"),
    (lambda x, y: by_pytorch(x[:, :-1], y[:, 1:]), "You shift the targets once more"),
    (
        lambda x, y: F.cross_entropy(x[x.argmax(2) > 0], y[x.argmax(2) > 0]),
        "where the model predicts id 0",
    ),
    (lambda x, y: by_pytorch(x, y * (y != 1)), "in sentence 0, place 1 adds nothing to your"),
    (lambda x, y: by_pytorch(x[:, :3], y[:, :3]), "in sentence 1, place 3 adds nothing to your"),
    (lambda x, y: (one_by_one(x, y) * y).sum() / y.sum(), "one adds 0.071 of its loss"),
    (lambda x, y: (x.max(2).indices[y > 0] != y[y > 0]).double().mean(), "model is wrong"),
    (lambda x, y: (x.max(2).indices[y > 0] == y[y > 0]).double().mean(), "model is right"),
    (lambda x, y: F.cross_entropy((x * (y > 0)[:, :, None]).mT, y), "each of them adds ln(voc"),
    (lambda x, y: F.cross_entropy(x[y > 0], x[y > 0].argmax(1)), "finds most probable"),
    (lambda x, y: F.nll_loss(x.sigmoid().log().mT, y, ignore_index=0), "A sigmoid looks at one"),
    (lambda x, y: by_pytorch(x[:, 1:], y[:, :-1]), "one place too early"),
    (lambda x, y: F.cross_entropy(x[y > 0][:, 1:], y[y > 0] - 1), "leave out the column of id 0"),
    (
        lambda x, y: torch.distributions.Categorical(logits=x[y > 0]).entropy().mean(),
        "here, at `getitem`, your values depart",
    ),
    (lambda x, y: one_by_one(x, y).max(), "here, at `cross_entropy`, your"),
    (
        lambda x, y: one_by_one(x, y)[y > 0].square().mean().sqrt(),
        "a mean is missing: `(one_by_one(x, y)[y > 0]).mean(-1)` in place of `o",
    ),
    (lambda x, y: one_by_one(x, y).sum() / y.shape[1], "by 5. There are 6 real tokens"),
    (lambda x, y: one_by_one(x, y).sum() / (y > 0).sum(1).max(), "by 4. There are 6 real tokens"),
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
    (
        lambda e, n: entropy([1 - e] + [e / (n - 1)] * (n - 1)),
        "Your result is that of −(1 − epsilon) ln(1 − epsilon) − (siz",
    ),
    (lambda e, n: entropy(target(e, n)[:1]), "`[:1]` is too much"),
    (
        lambda e, n: -math.log(target(e, n)[0]),
        "Your result is that of −1 ln(1 − epsilon + epsilon / size). ",
    ),
    (lambda e, n: entropy([*target(e, n), e / n]), "`e` stands where `n` belongs"),
    (
        lambda e, n: entropy([1 - e] + [e / n] * n),
        "Your result is that of −(1 − epsilon) ln(1 − epsilon) − (siz",
    ),
    (
        lambda e, n: entropy([1 - e, e]),
        "Your result is that of −(1 − epsilon) ln(1 − epsilon) − (siz",
    ),
    (
        lambda e, n: entropy([1 / n] * n),
        "Your result is that of − size · (1 / size) ln(1 / size). Loo",
    ),
    (lambda e, n: entropy([1 - e] + [e / n] * (n - 1)), "Look at the share of the right word"),
    (lambda e, n: entropy(target(e, n)[:2]), "Look at how many other words there are"),
    (lambda e, n: entropy(target(e, n)[:1] + [e] * (n - 1)), "at the share of each other word"),
    (lambda e, n: -math.log(1 - e), "Look at what is missing: the other words."),
    (lambda e, n: e * math.log(n), "Your result is that of − (size − 1) · (epsilon / (size − 1))"),
    (lambda e, n: -e * math.log(e), "Look at what is missing: the right word."),
    (
        lambda e, n: entropy(target(e, n)[:1]) - entropy(target(e, n)[1:]),
        "entropy(target(e, n)[:1]) + entropy(target(e, n)[1:])` in its place",
    ),
    (
        lambda e, n: entropy(target(e, n)[1:]) - entropy(target(e, n)[:1]),
        "entropy(target(e, n)[1:]) + entropy(target(e, n)[:1])` in its place",
    ),
    (
        lambda e, n: -sum(math.log(share) for share in target(e, n)),
        "Look at the factor before the first logarithm",
    ),
]

# --- read the alignment

RIGHT[check_alignment] = [
    lambda weights: weights[: len(weights) - 1].max(dim=-1).indices,
    lambda weights: torch.tensor([int(row.argmax()) for row in weights][:-1]),
]
WRONG[check_alignment] = [
    (lambda weights: weights[1:].max(dim=1).indices, "You read a word's own row"),
    (lambda weights: weights.max(dim=1).indices, "one row more than there are words"),
    (
        lambda weights: weights[:-1].max(dim=0).indices,
        "`dim=0` is not the right axis: with `dim=-1` in place of `dim=0`",
    ),
    (lambda weights: weights.max(dim=0).indices, "one index a column"),
    (lambda weights: weights[:-1, 1:].max(dim=1).indices, "with `[:-1]` in place of `[:-1, 1:]`"),
    (
        lambda weights: weights[1:-1].max(dim=1).indices,
        "weights[0:-1].max(dim=1).indices` in its place",
    ),
    (lambda weights: weights[:-1].max(dim=1).values, "the largest weights themselves"),
    (lambda weights: weights[:-1].max(dim=1), "The one at index 1 is the right one"),
    (
        lambda weights: weights[:-1] == weights[:-1].amax(1, keepdim=True),
        "your result has the shape (6, 4); it should be (6,) = (words).",
    ),
    (lambda weights: weights[:-1].argmax(), "lack its `dim`"),
    (lambda weights: weights.max(dim=1), "a tuple; a torch tensor is expected"),
    (lambda weights: weights[:-1].argmax(1).float(), "whole numbers are expected"),
    (lambda weights: torch.argwhere(weights[:-1] > 0.5)[:, 1], "a weight above one half"),
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
    judge_by(exercise, RIGHT, WRONG)
