"""Checks for chapter 13, Generating text: temperature, top-p, a step of beam search."""

import operator

import torch
from torch import Tensor

from .cached_steps import check_cache_bytes, check_cached_step
from .runner import Case, Exercise, randn
from .verdict import Verdict

__all__ = [
    "check_beam_step",
    "check_cache_bytes",
    "check_cached_step",
    "check_nucleus",
    "check_temperature",
]

# --- Exercise 1: temperature, without logits ----------------------------------------------------


def _temperature(probabilities, temperature):
    powers = probabilities ** (1 / temperature)
    return powers / powers.sum()


TEMPERATURE = Exercise(
    right=_temperature,
    wrong={
        "Nothing has changed: dividing all probabilities by one number and normalizing again gives "
        "them back. Temperature divides the logits, their logarithms.": (
            lambda probabilities, temperature: probabilities
        ),
        "You divide the probabilities by the temperature: they sum to something else than 1, and "
        "their ratios stay as they were.": (
            lambda probabilities, temperature: probabilities / temperature
        ),
        "Upside down: your exponent is the temperature, so a high one sharpens. It is 1/T, since "
        "the logits are divided.": (
            lambda probabilities, temperature: _temperature(probabilities, 1 / temperature)
        ),
        "The normalization is missing: the powers do not sum to 1.": (
            lambda probabilities, temperature: probabilities ** (1 / temperature)
        ),
        "You take the softmax of probabilities. It wants logits: the logarithms of the "
        "probabilities are some.": lambda probabilities, temperature: torch.softmax(
            probabilities / temperature, -1
        ),
    },
    cases=[
        Case("5 tokens, cooled", torch.tensor([0.1, 0.4, 0.2, 0.25, 0.05]), 0.5),
        Case("7 tokens, heated", (2 * randn(7, seed=0)).softmax(-1), 2.5),
        Case("a token that is impossible", torch.tensor([0.7, 0.0, 0.3]), 1.5),
    ],
    axes="vocabulary",
    praise="Right: a power of each probability, and then they must sum to 1 again.",
)


def check_temperature(answer) -> Verdict:
    """`answer(probabilities, temperature)`: what temperature makes of them, both [vocabulary]."""
    return TEMPERATURE.check(answer)


# --- Exercise 2: top-p --------------------------------------------------------------------------


def _kept(probabilities: Tensor, keep_sorted: Tensor, order: Tensor) -> Tensor:
    """The distribution of those whose place in ``order`` is True."""
    keep = torch.zeros_like(keep_sorted).scatter(-1, order, keep_sorted)
    left = probabilities * keep
    return left / left.sum()


def _nucleus(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    return _kept(probabilities, ordered.cumsum(-1) - ordered < p, order)


def _cut_at(keeps, at_least=0):
    """Keep a token while `keeps(sum, p)`, where the sum has it already, and the first ones."""

    def nucleus(probabilities, p):
        ordered, order = probabilities.sort(descending=True)
        first = torch.arange(len(ordered)) < at_least
        return _kept(probabilities, keeps(ordered.cumsum(-1), p) | first, order)

    return nucleus


def _one_too_many(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    return _kept(probabilities, ordered.cumsum(-1) - ordered <= p, order)


def _least_probable(probabilities, p):
    ordered, order = probabilities.sort()
    return _kept(probabilities, ordered.cumsum(-1) - ordered < p, order)


def _still_sorted(probabilities, p):
    ordered = probabilities.sort(descending=True).values
    left = ordered * (ordered.cumsum(-1) - ordered < p)
    return left / left.sum()


def _where(probabilities: Tensor, keep: Tensor) -> Tensor:
    left = probabilities * keep
    return left / left.sum()


NUCLEUS = Exercise(
    right=_nucleus,
    wrong={
        "The token with which the sum reaches p is cut. It belongs to the nucleus: cut those "
        "before which the sum is already p.": _cut_at(operator.le, at_least=1),
        "The token with which the sum reaches p is cut, and where the first alone has more than p "
        "nothing is left at all.": _cut_at(operator.le),
        "The token with which the sum reaches p is cut, even where the sum is p exactly. It "
        "belongs to the nucleus: cut those before which the sum is already p.": (
            _cut_at(operator.lt, at_least=1)
        ),
        "The token with which the sum reaches p is cut, even where the sum is p exactly, and where "
        "the first alone has more than p nothing is left at all.": _cut_at(operator.lt),
        "One too many: where the sum is exactly p already, the next token is not needed.": (
            _one_too_many
        ),
        "What is left does not sum to 1: normalize again.": lambda probabilities, p: (
            probabilities * (_nucleus(probabilities, p) > 0)
        ),
        "The result is in the order of the probabilities. Token i must be at place i again: "
        "scatter what you have sorted.": _still_sorted,
        "You begin with the least probable tokens: sort in descending order.": _least_probable,
        "You compare each probability with 1 - p. Top-p is about the sum of the most probable.": (
            lambda probabilities, p: _where(probabilities, probabilities >= 1 - p)
        ),
        "You compare each probability with p times the largest. That is another method, min-p.": (
            lambda probabilities, p: _where(probabilities, probabilities >= p * probabilities.max())
        ),
    },
    cases=[
        Case("5 tokens", torch.tensor([0.05, 0.3, 0.1, 0.4, 0.15]), 0.8),
        Case("a sum that is exactly p", torch.tensor([0.125, 0.5, 0.125, 0.25]), 0.75),
        Case("one token that has it all", torch.tensor([0.1, 0.85, 0.05]), 0.6),
        Case("7 tokens", torch.tensor([0.11, 0.19, 0.07, 0.23, 0.03, 0.31, 0.06]), 0.35),
    ],
    axes="vocabulary",
    praise="Right: the fewest tokens that reach p, the one that crosses it among them.",
)


def check_nucleus(answer) -> Verdict:
    """`answer(probabilities, p)`: what top-p leaves of them, as a distribution; [vocabulary]."""
    return NUCLEUS.check(answer)


# --- Exercise 5: one step of beam search --------------------------------------------------------


def _best(candidates: Tensor, width: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    scores, best = candidates.flatten().topk(width)
    return scores, best // columns, best % columns


def _beam_step(scores, log_probabilities, width):
    candidates = scores[:, None] + log_probabilities
    return _best(candidates, width, log_probabilities.shape[1])


def _own_best(scores, log_probabilities, width):
    best, tokens = log_probabilities.max(1)
    return scores + best, torch.arange(len(scores)), tokens


def _wrong_columns(scores, log_probabilities, width):
    candidates = scores[:, None] + log_probabilities
    return _best(candidates, width, log_probabilities.shape[0])


def _exchanged(scores, log_probabilities, width):
    new, parents, tokens = _beam_step(scores, log_probabilities, width)
    return new, tokens, parents


BEAM_STEP = Exercise(
    right=_beam_step,
    wrong={
        "Each beam keeps its own best token, so no beam ever dies: that is greedy decoding, "
        "several times. All continuations of all beams compete.": _own_best,
        "You forget what the beams have cost so far: add their scores.": (
            lambda scores, log_probabilities, width: _best(
                log_probabilities, width, log_probabilities.shape[1]
            )
        ),
        "You multiply logarithms. Probabilities are multiplied, their logarithms added.": (
            lambda scores, log_probabilities, width: _best(
                scores[:, None] * log_probabilities, width, log_probabilities.shape[1]
            )
        ),
        "You add probabilities to logarithms: leave out the exp.": (
            lambda scores, log_probabilities, width: _best(
                scores[:, None] + log_probabilities.exp(), width, log_probabilities.shape[1]
            )
        ),
        "Flattened, a row has as many entries as there are tokens: divide by the vocabulary, not "
        "by the number of beams.": _wrong_columns,
        "Flattened, a row has as many entries as there are tokens: divide by the vocabulary, not "
        "by `width`.": lambda scores, log_probabilities, width: _best(
            scores[:, None] + log_probabilities, width, width
        ),
        "You keep as many as there were beams: `width` says how many.": (
            lambda scores, log_probabilities, width: _beam_step(
                scores, log_probabilities, len(scores)
            )
        ),
        "Parents and tokens are exchanged: // gives the row, the beam; % the column, the token.": (
            _exchanged
        ),
    },
    cases=[
        Case(
            name,
            -randn(beams, seed=seed).abs(),
            (1.5 * randn(beams, size, seed=seed + 1)).log_softmax(-1),
            width,
        )
        for name, beams, size, width, seed in (
            ("3 beams and 7 tokens", 3, 7, 3, 20),
            ("2 beams and 5 tokens", 2, 5, 2, 30),
            ("5 beams and 11 tokens", 5, 11, 5, 40),
            ("1 beam that becomes 4", 1, 7, 4, 50),
            ("4 beams that become 2", 4, 5, 2, 60),
        )
    ],
    axes=("width", "width", "width"),
    praise="Right: all continuations of all beams compete, and the best survive.",
)


def check_beam_step(answer) -> Verdict:
    """`answer(scores, log_probabilities, width)`: (scores, parents, tokens) of the best `width`.

    scores [beams], log_probabilities [beams, vocabulary] -> each [width], best first.
    """
    return BEAM_STEP.check(answer)
