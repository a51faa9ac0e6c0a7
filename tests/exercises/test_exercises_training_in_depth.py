"""The checks of chapter 12's deeper pages: right answers pass, each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
from diagnoses import exercises, judge_by

from transformer_lib.exercises import training_in_depth
from transformer_lib.exercises.training_in_depth import (
    check_accumulate,
    check_memory,
    check_orthogonalize,
    check_state,
    check_utilization,
)
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.optimizers import Muon, orthogonalize

RIGHT, WRONG = {}, {}

# --- Newton and Schulz -----------------------------------------------------------------------


def on_singular_values(gradient, n_iterations):
    """The same on the singular values alone."""
    u, s, vh = torch.linalg.svd(gradient / gradient.norm(), full_matrices=False)
    for _ in range(n_iterations):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    return u @ torch.diag(s) @ vh


RIGHT[check_orthogonalize] = [orthogonalize, on_singular_values]


def terms(x, a=3.4445, b=-4.775, c=2.0315):
    return a * x + b * x @ x.mT @ x + c * x @ x.mT @ x @ x.mT @ x


def iterated(step, length=torch.Tensor.norm, times=lambda n: n):
    def answer(gradient, n_iterations):
        x = gradient / length(gradient)
        for _ in range(times(n_iterations)):
            x = step(x)
        return x

    return answer


def squared_elementwise(x):
    products = x @ x.mT
    return 3.4445 * x + (-4.775 * products + 2.0315 * products * products) @ x


def from_the_other_side(x):
    products = x.mT @ x
    return 3.4445 * x + (-4.775 * products + 2.0315 * products @ products) @ x


def by_decomposition(gradient, n_iterations):
    u, _, v = torch.svd(gradient)
    return u @ v.mT


def computed_once(gradient, n_iterations):
    x = gradient / gradient.norm()
    square = x @ x.mT
    for _ in range(n_iterations):
        x = 3.4445 * x - 4.775 * square @ x + 2.0315 * square @ square @ x
    return x


def bracket_alone(gradient, n_iterations):
    x = gradient / gradient.norm()
    for _ in range(n_iterations):
        square = x @ x.mT
        x = 3.4445 * x - 4.775 * square + 2.0315 * square @ square
    return x


def normed_in_the_loop(gradient, n_iterations):
    for _ in range(n_iterations):
        gradient = terms(gradient / gradient.norm())
    return gradient


WRONG[check_orthogonalize] = [
    (
        lambda gradient, n_iterations: gradient / gradient.norm(),
        "the directions are right, the lengths are not: the largest s",
    ),
    (iterated(lambda x: 3.4445 * x - 4.775 * x**3 + 2.0315 * x**5), "Powers of each number"),
    (iterated(squared_elementwise), "your result is what comes out if A² squares each number."),
    (iterated(from_the_other_side), "your result is what comes out if A is Xᵀ X."),
    (iterated(lambda x: terms(x, a=0)), "your result is what comes out if a · X is left out."),
    (
        iterated(lambda x: terms(x, c=0)),
        "the directions are right, the lengths are not: the largest s",
    ),
    (
        iterated(terms, length=lambda g: 1),
        "your result is what comes out if the gradient is not divided",
    ),
    (
        iterated(terms, length=lambda g: torch.linalg.svdvals(g)[0]),
        "your result is what comes out if it is divided by its larges",
    ),
    (
        iterated(terms, length=lambda g: g.abs().max()),
        "your result is what comes out if it is divided by its larges",
    ),
    (computed_once, "the directions are right, the lengths are not: the largest s"),
    (
        iterated(lambda x: 1.5 * x - 0.5 * x @ x.mT @ x),
        "the directions are right, the lengths are not: the largest s",
    ),
    (
        iterated(terms, length=lambda g: (g * g).sum()),
        "a square root is missing: `(length(gradient)) ** 0.5` in place of `len",
    ),
    (iterated(terms, times=lambda n: n - 1), "`times` is one step too many"),
    (by_decomposition, "the directions are right, the lengths are not: the largest s"),
    (iterated(lambda x: terms(x, b=2.0315, c=-4.775)), "b and c are swapped"),
    (
        iterated(lambda x: terms(x, b=4.775)),
        "your result is what comes out if b has lost its sign.",
    ),
    (
        iterated(lambda x: terms(x, c=0) + 2.0315 * (x @ x.mT) @ x),
        "your result is what comes out if A stands in place of A².",
    ),
    (
        iterated(lambda x: terms(x, b=0)),
        "the directions are right, the lengths are not: the largest s",
    ),
    (bracket_alone, "here, at `sub`, your values depart"),
    (normed_in_the_loop, "the directions are right, the lengths are not: the largest s"),
    (lambda gradient, n: orthogonalize(gradient, n // n), "`// n` is too much"),
    (
        iterated(
            lambda x: 3.4445 * x + (-4.775 * x @ x.mT + 2.0315 * x @ x.mT @ x @ x.mT) * x,
        ),
        "your result is what comes out if the bracket is multiplied n",
    ),
    (
        iterated(terms, length=lambda g: torch.linalg.svdvals(g).sum(), times=lambda n: n + 1),
        "if it is divided by the sum of its singular values, the nuclear norm, and there is one "
        "iteration too many.",
    ),
    (iterated(terms, length=lambda g: g.norm(dim=1, keepdim=True)), "You divide each row by its"),
    (iterated(terms, length=lambda g: g.norm(dim=0)), "You divide each column by its own norm"),
    (
        iterated(terms, length=lambda g: g.norm().sqrt()),
        "a square is missing: `(length(gradient)) ** 2` in place of `length(gra",
    ),
    (
        iterated(terms, length=lambda g: g.norm(1)),
        "the directions are right, the lengths are not: the largest s",
    ),
    (
        iterated(lambda x: terms(x, a=3.0), length=lambda g: 1.1 * g.norm()),
        "the directions are right, the lengths are not: the largest singular value of the gradient "
        "becomes",
    ),
]


# --- accumulation ----------------------------------------------------------------------------


def by_weights(gradients, counts):
    return (counts / counts.sum()) @ gradients


def by_loop(gradients, counts):
    total = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        total = total + gradient * (count / counts.sum())
    return total


RIGHT[check_accumulate] = [by_weights, by_loop]


def test_accumulate_right_is_the_gradient_of_the_whole_batch():
    weight, data = torch.randn(5, requires_grad=True), torch.randn(9, 5)
    parts = data.split([2, 7])
    gradients = [torch.autograd.grad((part @ weight).pow(2).mean(), weight)[0] for part in parts]
    whole = torch.autograd.grad((data @ weight).pow(2).mean(), weight)[0]
    torch.testing.assert_close(by_weights(torch.stack(gradients), torch.tensor([2.0, 7.0])), whole)


WRONG[check_accumulate] = [
    (lambda g, n: sum(g) / len(g), "The mean of means"),
    (lambda g, n: sum(g), "The sum of the parts' gradients"),
    (lambda g, n: n @ g, "Weighted, but never divided"),
    (lambda g, n: n @ g / len(n), "it is 3 times the right one"),
    (lambda g, n: sum(g) / sum(n), "The parts' sums, not their means"),
    (lambda g, n: (1 / n) @ g / (1 / n).sum(), "The weights are the wrong way around"),
    (lambda g, n: g[len(n) - 1] * 1, "Only the last part's gradient"),
    (
        lambda g, n: n.softmax(0) @ g,
        "a logarithm is missing: `lambda g, n: n.log().softmax(0) @ g`",
    ),
    (lambda g, n: n @ g / n.norm(), "a sum is missing: `lambda g, n: n @ g / n.sum(-1).norm()`"),
    (lambda g, n: n @ g / n.sum() + 1, "`+ 1` is too much"),
]


# --- memory --------------------------------------------------------------------------------------


def by_kind(muon, others):
    return 4 * (3 * muon + 4 * others)


RIGHT[check_memory] = [by_kind, lambda m, o: torch.tensor([12, 16]) @ torch.tensor([m, o])]
WRONG[check_memory] = [
    (lambda m, o: 16 * (m + o), "you give 16 bytes to each number that Muon moves, and 16 to "),
    (lambda m, o: 16 * m + 12 * o, "`m` and `o` are taken for each other, everywhere"),
    (lambda m, o: 12 * (m + o), "you give 12 bytes to each number that Muon moves, and 12 to "),
    (lambda m, o: 8 * m + 12 * o, "you give 8 bytes to each number that Muon moves, and 12 to e"),
    (lambda m, o: 4 * m + 8 * o, "you give 4 bytes to each number that Muon moves, and 8 to ea"),
    (lambda m, o: 8 * (m + o), "you give 8 bytes to each number that Muon moves, and 8 to ea"),
    (lambda m, o: 3 * m + 4 * o, "you give 3 bytes to each number that Muon moves, and 4 to ea"),
    (
        lambda m, o: 6 * m + 8 * o,
        "a factor 2 is missing: `(2 * (6 * m + 8 * o))` in place of `6 * m + 8 ",
    ),
    (lambda m, o: 4 * m + 4 * o, "you give 4 bytes to each number that Muon moves, and 4 to ea"),
    (lambda m, o: 8 * m + 16 * o, "you give 8 bytes to each number that Muon moves, and 16 to e"),
    (lambda m, o: 12 * m + 8 * o, "a factor 2 is missing: `(2 * (8 * o))` in place of `8 * o`"),
    (lambda m, o: by_kind(m, o) / 2**20, "`/ 2**20` is too much"),
    (lambda m, o: 14 * m + 18 * o, "you give 14 bytes to each number that Muon moves, and 18 to"),
]


def test_memory_is_what_the_tensors_take():
    model = GPT(GPTConfig.fast(vocabulary=11, context=8, n_layers=1, n_heads=2, d_model=12))
    optimizer = Muon(model, 0.01)
    model(torch.arange(8)[None]).sum().backward()
    optimizer.step()
    groups = optimizer.param_groups
    numbers = {
        method: sum(p.numel() for g in groups if g["method"] == method for p in g["params"])
        for method in ("muon", "adamw")
    }
    kept = [t for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t)]
    kept = [t for t in kept if t.ndim > 0]
    tensors = [*model.parameters(), *(p.grad for p in model.parameters()), *kept]
    in_all = sum(t.numel() * t.element_size() for t in tensors)
    assert by_kind(numbers["muon"], numbers["adamw"]) == in_all


# --- utilization -----------------------------------------------------------------------------


def in_words(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
    forward = 2 * n_parameters + n_layers * 2 * (2 * context * d_model)
    return 3 * forward * tokens_per_second / peak


def in_one_line(rate, n, layers, t, d, peak):
    return rate / peak * 6 * (n + 2 * layers * t * d)


RIGHT[check_utilization] = [in_words, in_one_line]


WRONG[check_utilization] = [
    (lambda *given: in_words(*given) / 3, "`/ 3` is too much"),
    (
        lambda r, n, m, t, d, p: r * (2 * n + 12 * m * t * d) / p,
        "for each token you count 2 operations a parameter and 12 for",
    ),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 4 * m * t * d) / p,
        "for each token you count 6 operations a parameter and 4 for ",
    ),
    (
        lambda r, n, m, t, d, p: 6 * r * n / p,
        "for each token you count 6 operations a parameter and 0 for ",
    ),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 6 * m * t * d) / p,
        "for each token you count 6 operations a parameter and 6 for ",
    ),
    (
        lambda r, n, m, t, d, p: in_words(r, n, 1, t, d, p),
        "in_words(r, n, 1, t * m, d, p)` in its place",
    ),
    (
        lambda r, n, m, t, d, p: in_words(r, n, m, 1, d, p),
        "in_words(r, n, m * t, 1, d, p)` in its place",
    ),
    (
        lambda r, n, m, t, d, p: 6 * r * (n + 12 * m * t * d) / p,
        "you have 1.133; it should be 0.6005",
    ),
    (
        lambda r, n, m, t, d, p: 6 * (n + 2 * m * t * d) / p,
        "`* r` is missing after `6 * (n + 2 * m * t * d) / p`",
    ),
    (
        lambda r, n, m, t, d, p: 6 * n * r + 12 * m * t * d / p,
        "Only attention's part is divided by `peak`",
    ),
    (
        lambda r, n, m, t, d, p: r * 6 * n * 12 * m * t * d / p,
        "The two parts are multiplied",
    ),
    (lambda *given: in_words(*given[:-1], 1), "Those are the operations in a second"),
    (
        lambda r, n, m, t, d, p: in_words(r, 0, m, t, d, p),
        "for each token you count 0 operations a parameter and 12 for",
    ),
    (
        lambda r, n, m, t, d, p: r * (8 * n + 16 * m * t * d) / p,
        "On a small GPT on a laptop: for each token you count 8 operations a parameter and 16 for",
    ),
]


# --- what a run must keep ------------------------------------------------------------------------

RIGHT[check_state] = ["abefg", "a, b, e, f, g", {"a", "b", "e", "f", "g"}]
WRONG[check_state] = [
    ("befg", "a is missing: without the parameters"),
    ("aefg", "b is missing: without its running means"),
    ("abfg", "e is missing: the schedule needs it"),
    ("abeg", "f is missing: without it the run sees the first rows"),
    ("abef", "g is missing: dropout would draw other zeros"),
    ("abcefg", "c does not belong: the next step computes the gradient anew"),
    ("abdefg", "d does not belong: it follows from the number"),
    ("abefgh", "h does not belong: a curve that is lost"),
]


@pytest.mark.parametrize("exercise", exercises(training_in_depth))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
