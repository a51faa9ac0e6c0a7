"""Checks for the deeper pages of chapter 12: Muon, memory and speed, and what a run must keep."""

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- 12b: Newton and Schulz -----------------------------------------------------------------------

A, B, C = 3.4445, -4.7750, 2.0315


def _step(x: Tensor) -> Tensor:
    products = x @ x.T
    return A * x + (B * products + C * products @ products) @ x


def _iterated(step=_step, size=torch.linalg.matrix_norm, extra=0):
    def orthogonalize(gradient, n_iterations):
        x = gradient / size(gradient)
        for _ in range(n_iterations + extra):
            x = step(x)
        return x

    return orthogonalize


def _other_side(x):
    """As the right step on a square matrix with X^T X; on others the shapes do not fit."""
    products = x.T @ x
    return A * x + (B * products + C * products @ products) @ x


def _stale(gradient, n_iterations):
    x = gradient / torch.linalg.matrix_norm(gradient)
    products = x @ x.T
    for _ in range(n_iterations):
        x = A * x + (B * products + C * products @ products) @ x
    return x


def _exact(gradient, n_iterations):
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    return u @ vh


check_orthogonalize = Exercise(
    asks="""`answer(gradient, n_iterations)`: Newton and Schulz's iteration.

    gradient [rows, columns] -> the same shape.
    """,
    right=_iterated(),
    wrong={
        "Only the length of the gradient changes: run the iteration.": _iterated(step=lambda x: x),
        "Powers of each number: `**` and `*` work on the numbers, and the singular values need "
        "matrix products, `@`.": _iterated(step=lambda x: A * x + B * x**3 + C * x**5),
        "A² is a matrix product, A @ A: you square each number.": _iterated(
            step=lambda x: A * x + (B * (x @ x.T) + C * (x @ x.T) ** 2) @ x
        ),
        "A is X times Xᵀ: you have Xᵀ X, whose shape fits only a square matrix.": _iterated(
            step=_other_side
        ),
        "The first term is missing: a · X.": _iterated(step=lambda x: _step(x) - A * x),
        "The last term is missing: c · A² · X.": _iterated(
            step=lambda x: A * x + B * (x @ x.T) @ x
        ),
        "The gradient is not divided by its norm: the iteration needs singular values of at most "
        "1.": _iterated(size=lambda gradient: 1.0),
        "You divide by the largest singular value. It would do, but costs a decomposition: "
        "use the Frobenius norm, which is at least as large.": _iterated(
            size=lambda gradient: torch.linalg.matrix_norm(gradient, 2)
        ),
        "You divide by the largest number; the norm is the root of the sum of squares.": _iterated(
            size=lambda gradient: gradient.abs().max()
        ),
        "You divide by the sum of squares: the root is missing.": _iterated(
            size=lambda gradient: gradient.square().sum()
        ),
        "A is computed once, before the loop. X changes in each iteration, and A with it.": _stale,
        "That is the older iteration, 1.5 X − 0.5 X Xᵀ X. Muon's has three numbers and a fifth "
        "power.": _iterated(step=lambda x: 1.5 * x - 0.5 * (x @ x.T) @ x),
        "One iteration too few.": _iterated(extra=-1),
        "One iteration too many.": _iterated(extra=1),
        "That is U Vᵀ exactly, by a decomposition. Use the iteration, which needs only "
        "products.": _exact,
    },
    cases=[
        Case("a 5 × 5 gradient, 3 times", 0.3 * randn(5, 5, seed=0), 3),
        Case("a 3 × 7 gradient, 5 times", 0.3 * randn(3, 7, seed=1), 5),
        Case("a 7 × 3 gradient, 2 times", 0.3 * randn(7, 3, seed=2), 2),
    ],
    axes="rows columns",
    praise="Right: products of matrices alone lift small singular values and keep the directions.",
)


# --- 12c: accumulation ----------------------------------------------------------------------------


def _accumulate(gradients: Tensor, counts: Tensor) -> Tensor:
    return (gradients * counts[:, None]).sum(0) / counts.sum()


check_accumulate = Exercise(
    asks="""`answer(gradients, counts)`: the gradient of the mean loss over all targets.

    gradients [parts, parameters], of each part's mean loss; counts [parts] -> [parameters].
    """,
    right=_accumulate,
    wrong={
        "The mean of means: a target of a part with few targets weighs more than one of a part "
        "with many. Weigh each part by its targets.": lambda gradients, counts: gradients.mean(0),
        "The sum of the parts' gradients: each is a mean already, so the result is about as many "
        "times too large as there are parts.": lambda gradients, counts: gradients.sum(0),
        "Weighted, but never divided: the number of all targets is missing.": (
            lambda gradients, counts: (gradients * counts[:, None]).sum(0)
        ),
        "You divide by the number of parts where the number of all targets belongs.": (
            lambda gradients, counts: (gradients * counts[:, None]).mean(0)
        ),
        "The parts' sums, not their means, would have to be divided by all targets: a mean must "
        "be multiplied by its own count first.": lambda gradients, counts: (
            gradients.sum(0) / counts.sum()
        ),
        "The weights are the wrong way around: a part with many targets counts less.": (
            lambda gradients, counts: (gradients / counts[:, None]).sum(0) / (1 / counts).sum()
        ),
        "Only the last part's gradient: the others are forgotten, as by a zero_grad() inside the "
        "loop.": lambda gradients, counts: gradients[-1],
    },
    cases=[
        Case("3 parts of 5 parameters", randn(3, 5, seed=0), torch.tensor([7.0, 2.0, 11.0])),
        Case("2 parts of 7 parameters", randn(2, 7, seed=1), torch.tensor([1.0, 5.0])),
    ],
    axes="parameters",
    praise="Right: every target counts once, whichever part it came in.",
)


# --- 12c: what training keeps in memory -----------------------------------------------------------


def _bytes(number=4, gradient=4, of_adamw=8, of_muon=4):
    def memory(muon, others):
        return (number + gradient + of_muon) * muon + (number + gradient + of_adamw) * others

    return memory


check_memory = Exercise(
    asks="""`answer(muon, others)`: bytes of parameters, gradients and optimizer in float32.

    muon, others: how many numbers Muon moves, and how many its AdamW moves.
    """,
    right=_bytes(),
    wrong={
        "That is AdamW for all: Muon keeps one running mean, not two.": _bytes(of_muon=8),
        "You give Muon's numbers 16 bytes and the others 12: it is Muon that keeps one running "
        "mean, and AdamW two.": _bytes(of_muon=8, of_adamw=4),
        "That is Muon for all: AdamW keeps two running means.": _bytes(of_adamw=4),
        "Parameters or gradients are missing: each takes 4 bytes a number.": _bytes(gradient=0),
        "That is what the optimizer keeps. Parameters and gradients take memory, too.": _bytes(
            number=0, gradient=0
        ),
        "The optimizer's running means are missing.": _bytes(of_adamw=0, of_muon=0),
        "You count numbers; each takes 4 bytes.": _bytes(1, 1, 2, 1),
        "You count 16 bits for each number. Under autocast, too, parameters, gradients and running "
        "means stay in float32.": _bytes(2, 2, 4, 2),
    },
    cases=[Case("a small GPT", 98_304, 1_408), Case("GPT-2 small", 84_934_656, 39_505_152)],
    praise="Right: 12 bytes for each number of Muon's, and 16 for each of AdamW's.",
)


# --- 12c: how busy is the machine? ----------------------------------------------------------------


def _utilization(products=6.0, scores=12.0, by_layers=True, by_context=True):
    def share(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
        attention = scores * (n_layers if by_layers else 1) * (context if by_context else 1)
        return tokens_per_second * (products * n_parameters + attention * d_model) / peak

    return share


check_utilization = Exercise(
    asks="""`answer(tokens_per_second, n_parameters, n_layers, context, d_model, peak)`: a share.

    peak: floating point operations a second that the machine can do at best.
    """,
    right=_utilization(),
    wrong={
        "That is the forward pass alone: the backward pass costs twice as much again.": (
            _utilization(products=2.0, scores=4.0)
        ),
        "The products with parameters cost 6 operations a parameter: 2 forward, 4 backward. "
        "You count only the forward pass.": _utilization(products=2.0),
        "Attention's own products are counted only for the forward pass: 4, which the "
        "backward pass makes 12.": _utilization(scores=4.0),
        "Attention's products are missing: scores and averages multiply vectors, not parameters.": (
            _utilization(scores=0.0)
        ),
        "You count half of attention's products, those that a causal mask leaves. The convention "
        "counts them all.": _utilization(scores=6.0),
        "A multiplication and an addition are two operations: you count one.": _utilization(
            products=3.0, scores=6.0
        ),
        "Each layer has attention: multiply by n_layers.": _utilization(by_layers=False),
        "A token is compared with all tokens of the context: multiply by it.": _utilization(
            by_context=False
        ),
        "The reciprocal: it is what is done, divided by what could be done.": (
            lambda *given: 1 / _utilization()(*given)
        ),
        "That is in percent: return a share.": lambda *given: 100 * _utilization()(*given),
    },
    cases=[
        Case("a small GPT on a laptop", 13_000.0, 1_900_000, 4, 256, 192, 3e11),
        Case("GPT-2 small on a large GPU", 400_000.0, 85_000_000, 12, 1024, 768, 9.9e14),
    ],
    praise="Right: what the training needs, by what the machine could do.",
)


# --- 12d: what a run must keep --------------------------------------------------------------------

check_state = Choice(
    asks="Which of these must be saved, so that the run goes on bit for bit? Letters.",
    right={"a", "b", "e", "f", "g"},
    wrong={
        "a": "without the parameters there is nothing to go on with.",
        "b": "without its running means, AdamW's next step moves every number by the full rate.",
        "c": "the next step computes the gradient anew, of another batch.",
        "d": "it follows from the number of the step, which is saved.",
        "e": "the schedule needs it, and so does Adam's correction at the start.",
        "f": "without it the run sees the first rows again, and others never.",
        "g": "dropout would draw other zeros.",
        "h": "a curve that is lost is a pity, but no step reads it.",
    },
    praise="Right: what the next step reads and cannot compute.",
)
