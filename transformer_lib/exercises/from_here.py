"""Checks for chapter 15, from here to GPT-2 and on."""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.exercises.engine.runner import Case, Exercise, randn
from transformer_lib.exercises.gpt import size_of_gpt2

# --- a matrix from somebody else's file ----------------------------------------------------------


def _three(weight: Tensor) -> tuple[Tensor, ...]:
    return tuple(weight.T.chunk(3))


def _spread(weight: Tensor) -> tuple[Tensor, ...]:
    """Every third row, as if the three were mixed."""
    return tuple(weight.T[part::3] for part in range(3))


check_three = Exercise(
    asks="`answer(weight)`: GPT-2's `c_attn.weight`, [d, 3 d], as the weights of three "
    "`nn.Linear`, each [d, d], for queries, keys and values, in this order.",
    right=_three,
    wrong={
        "You cut first and do not transpose: `nn.Linear` holds [outputs, inputs], the file "
        "[inputs, outputs].": lambda weight: tuple(weight.chunk(3, dim=1)),
        "Keys come first in your result. The file holds queries, keys, values, in this order.": (
            lambda weight: tuple(_three(weight)[part] for part in (1, 0, 2))
        ),
        "The order is reversed: queries come first.": lambda weight: _three(weight)[::-1],
        "You take every third row. The three lie side by side, one after the other.": _spread,
        "You cut along the inputs: each of the three reads all d inputs, and gives d of the 3 d "
        "outputs.": lambda weight: tuple(weight.T.chunk(3, dim=1)),
    },
    cases=[Case("d = 3", randn(3, 9, seed=0)), Case("d = 5", randn(5, 15, seed=1))],
    axes=["outputs inputs"] * 3,
    praise="Right: transposed, and cut into three along the outputs.",
)

# --- counting ------------------------------------------------------------------------------------


check_count = Exercise(
    asks="`answer(vocabulary, context, n_layers, d_model)`: how many numbers a GPT-2 has.",
    right=size_of_gpt2,
    wrong={
        "The output's matrix is the embedding's table: it counts once.": (
            lambda vocabulary, context, n_layers, d_model: size_of_gpt2(
                2 * vocabulary, context, n_layers, d_model
            )
        ),
        "One block only: there are n_layers of them.": (
            lambda vocabulary, context, n_layers, d_model: size_of_gpt2(
                vocabulary, context, 1, d_model
            )
        ),
    },
    cases=[
        Case("a small one", 7, 5, 3, 2),
        Case("GPT-2, small", 50_257, 1024, 12, 768),
        Case("GPT-2, XL", 50_257, 1024, 48, 1600),
    ],
    praise="Right: tables, blocks, and a norm at the end.",
)

# --- preferences ---------------------------------------------------------------------------------


def _preference(chosen, rejected, chosen_before, rejected_before, beta):
    margin = beta * ((chosen - chosen_before) - (rejected - rejected_before))
    return -F.logsigmoid(margin).mean()


def _logs(seed: int) -> list[Tensor]:
    return [-5 - randn(7, seed=seed + at).abs() * 3 for at in range(4)]


# Log-probabilities of long answers: of a sigmoid that is 0 there is no logarithm.
_FAR_OFF = Case(
    "a long answer that has become improbable",
    torch.tensor([-900.0, -5.0]),
    torch.tensor([-300.0, -7.0]),
    torch.tensor([-200.0, -6.0]),
    torch.tensor([-310.0, -6.0]),
    0.5,
    edge=True,
)

check_preference = Exercise(
    asks="`answer(chosen, rejected, chosen_before, rejected_before, beta)`: the loss of direct "
    "preference optimization, the mean over the pairs; log-probabilities, each [pairs].",
    right=_preference,
    wrong={
        "It learns to prefer what was rejected: turn the difference around.": (
            lambda chosen, rejected, chosen_before, rejected_before, beta: _preference(
                rejected, chosen, rejected_before, chosen_before, beta
            )
        ),
        "You compare the two answers without what they were worth before: so a short answer wins "
        "because it is short.": lambda chosen, rejected, chosen_before, rejected_before, beta: (
            _preference(chosen, rejected, 0 * chosen, 0 * rejected, beta)
        ),
        "The sum over the pairs: take their mean.": (
            lambda chosen, rejected, chosen_before, rejected_before, beta: (
                len(chosen) * _preference(chosen, rejected, chosen_before, rejected_before, beta)
            )
        ),
        "Without β, which says how far the model may go from where it was.": (
            lambda chosen, rejected, chosen_before, rejected_before, beta: _preference(
                chosen, rejected, chosen_before, rejected_before, 1
            )
        ),
        "The sigmoid of the margin itself: a loss is −log of it.": (
            lambda chosen, rejected, chosen_before, rejected_before, beta: torch.sigmoid(
                beta * ((chosen - chosen_before) - (rejected - rejected_before))
            ).mean()
        ),
        "The sign is missing: a loss is −log of the chance, and falls as the chance grows.": (
            lambda chosen, rejected, chosen_before, rejected_before, beta: (
                -_preference(chosen, rejected, chosen_before, rejected_before, beta)
            )
        ),
        "The mean margin with its sign turned: put it through −log σ, or a pair that is already "
        "right would be pushed on without end.": (
            lambda chosen, rejected, chosen_before, rejected_before, beta: (
                -(beta * ((chosen - chosen_before) - (rejected - rejected_before))).mean()
            )
        ),
    },
    cases=[Case("7 pairs", *_logs(0), 0.1), Case("7 others", *_logs(10), 0.5), _FAR_OFF],
    praise="Right: what counts is how much more the chosen answer gained than the rejected one.",
)
