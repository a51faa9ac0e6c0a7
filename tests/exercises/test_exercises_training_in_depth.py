"""The checks of chapter 12's deeper pages: right answers pass, each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
from diagnoses import exercises, judge

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


def normed_at_the_end(gradient, n_iterations):
    x = orthogonalize(gradient, n_iterations)
    return x / x.norm()


def normed_in_the_loop(gradient, n_iterations):
    for _ in range(n_iterations):
        gradient = terms(gradient / gradient.norm())
    return gradient


WRONG[check_orthogonalize] = [
    (lambda gradient, n_iterations: gradient / gradient.norm(), "Only the length of the gradient"),
    (iterated(lambda x: 3.4445 * x - 4.775 * x**3 + 2.0315 * x**5), "Powers of each number"),
    (iterated(squared_elementwise), "A² is a matrix product"),
    (iterated(from_the_other_side), "A is X times Xᵀ"),
    (iterated(lambda x: terms(x, a=0)), "The first term is missing"),
    (iterated(lambda x: terms(x, c=0)), "The last term is missing"),
    (iterated(terms, length=lambda g: 1), "The gradient is not divided"),
    (
        iterated(terms, length=lambda g: torch.linalg.svdvals(g)[0]),
        "You divide by the largest singular value",
    ),
    (iterated(terms, length=lambda g: g.abs().max()), "You divide by the largest number"),
    (computed_once, "A is computed once"),
    (iterated(lambda x: 1.5 * x - 0.5 * x @ x.mT @ x), "That is the older iteration"),
    (iterated(terms, length=lambda g: (g * g).sum()), "You divide by the sum of squares"),
    (iterated(terms, times=lambda n: n - 1), "One iteration too few"),
    (iterated(terms, times=lambda n: n + 1), "One iteration too many"),
    (by_decomposition, "That is U Vᵀ exactly"),
    (iterated(lambda x: terms(x, b=2.0315, c=-4.775)), "b and c are swapped"),
    (iterated(lambda x: terms(x, b=4.775)), "The sign of b is lost"),
    (
        iterated(lambda x: terms(x, c=0) + 2.0315 * (x @ x.mT) @ x),
        "A stands once in the last term",
    ),
    (iterated(lambda x: terms(x, b=0)), "The middle term is missing"),
    (bracket_alone, "The result of the bracket is not multiplied by X"),
    (normed_in_the_loop, "You divide by the norm in each iteration"),
    (lambda gradient, n: orthogonalize(gradient, n // n), "Only one iteration counts"),
    (
        iterated(
            lambda x: 3.4445 * x + (-4.775 * x @ x.mT + 2.0315 * x @ x.mT @ x @ x.mT) * x,
        ),
        "The bracket is multiplied number by number",
    ),
    (
        iterated(terms, length=lambda g: torch.linalg.svdvals(g).sum(), times=lambda n: n + 1),
        "if it is divided by the sum of its singular values, the nuclear norm, and there is one "
        "iteration too many.",
    ),
    (normed_at_the_end, "You divide by the norm once more at the end"),
    (iterated(terms, length=lambda g: g.norm(dim=1, keepdim=True)), "You divide each row by its"),
    (iterated(terms, length=lambda g: g.norm(dim=0)), "You divide each column by its own norm"),
    (iterated(terms, length=lambda g: g.norm().sqrt()), "You divide by the root of the norm"),
    (iterated(terms, length=lambda g: g.norm(1)), "You divide by the sum of absolute values"),
    (
        iterated(lambda x: terms(x, a=3.0), length=lambda g: 1.1 * g.norm()),
        "the directions are right, the lengths are not: the largest singular value of the gradient "
        "becomes",
    ),
    (
        lambda gradient, n: orthogonalize(gradient, n).clamp(-0.3, 0.3),
        "the directions of the gradient are not kept",
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
    (lambda g, n: n @ g / len(n), "You divide by the number of parts"),
    (lambda g, n: sum(g) / sum(n), "The parts' sums, not their means"),
    (lambda g, n: (1 / n) @ g / (1 / n).sum(), "The weights are the wrong way around"),
    (lambda g, n: g[len(n) - 1] * 1, "Only the last part's gradient"),
    (
        lambda g, n: n.softmax(0) @ g,
        "the parts weigh 0.018, 0.000121, 0.982 in your result, together 1. A part's share is its "
        "count's, of the counts 7, 2, 11, and",
    ),
    (lambda g, n: n @ g / n.norm(), "together 1.52. A part's share"),
    (lambda g, n: n @ g / n.sum() + 1, "your result is not a mixture of the parts' gradients"),
]


# --- memory --------------------------------------------------------------------------------------


def by_kind(muon, others):
    return 4 * (3 * muon + 4 * others)


RIGHT[check_memory] = [by_kind, lambda m, o: torch.tensor([12, 16]) @ torch.tensor([m, o])]
WRONG[check_memory] = [
    (lambda m, o: 16 * (m + o), "That is AdamW for all"),
    (lambda m, o: 16 * m + 12 * o, "You give Muon's numbers 16 bytes"),
    (lambda m, o: 12 * (m + o), "That is Muon for all"),
    (lambda m, o: 8 * m + 12 * o, "Parameters or gradients are missing"),
    (lambda m, o: 4 * m + 8 * o, "That is what the optimizer keeps"),
    (lambda m, o: 8 * (m + o), "The optimizer's running means are missing"),
    (lambda m, o: 3 * m + 4 * o, "You count numbers; each takes 4 bytes"),
    (lambda m, o: 6 * m + 8 * o, "You count 16 bits"),
    (lambda m, o: 4 * m + 4 * o, "Those are the parameters alone"),
    (lambda m, o: 8 * m + 16 * o, "Muon keeps one running mean, too"),
    (lambda m, o: 12 * m + 8 * o, "AdamW keeps two running means, of the gradient and"),
    (lambda m, o: by_kind(m, o) / 2**20, "On a small GPT: that is in MiB: return bytes."),
    (lambda m, o: by_kind(m, o) * 8, "On a small GPT: that is in bits: return bytes."),
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
    (lambda *given: in_words(*given) / 3, "That is the forward pass alone"),
    (
        lambda r, n, m, t, d, p: r * (2 * n + 12 * m * t * d) / p,
        "The products with parameters cost 6",
    ),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 4 * m * t * d) / p,
        "Attention's own products are counted only for the forward pass",
    ),
    (lambda r, n, m, t, d, p: 6 * r * n / p, "Attention's products are missing"),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 6 * m * t * d) / p,
        "You count half of attention's products",
    ),
    (lambda *given: in_words(*given) / 2, "A multiplication and an addition"),
    (lambda r, n, m, t, d, p: in_words(r, n, 1, t, d, p), "Each layer has attention"),
    (lambda r, n, m, t, d, p: in_words(r, n, m, 1, d, p), "A token is compared with all"),
    (lambda *given: 1 / in_words(*given), "The reciprocal"),
    (lambda *given: 100 * in_words(*given), "That is in percent"),
    (
        lambda r, n, m, t, d, p: r * (6 * n + 12 * m * t * t * d) / p,
        "You count the attention of a whole text",
    ),
    (lambda r, n, m, t, d, p: r * (6 * n + 12 * m * t * d * d) / p, "d_model is squared"),
    (lambda r, n, m, t, d, p: 6 * r * (n + 12 * m * t * d) / p, "Attention is multiplied by 6"),
    (lambda r, n, m, t, d, p: 6 * (n + 2 * m * t * d) / p, "tokens_per_second is missing"),
    (lambda r, n, m, t, d, p: 6 * (n + 2 * m * t * d) / r / p, "You divide by tokens_per_second"),
    (
        lambda r, n, m, t, d, p: t * in_words(r, n, m, t, d, p),
        "You multiply the tokens of a second",
    ),
    (lambda r, n, m, t, d, p: in_words(r, n * m, m, t, d, p), "The parameters are counted once"),
    (
        lambda r, n, m, t, d, p: 6 * n * r + 12 * m * t * d / p,
        "Only attention's part is divided by `peak`",
    ),
    (lambda r, n, m, t, d, p: in_words(r, n, m, d, d, p), "d_model stands where context belongs"),
    (
        lambda *given: in_words(*given) // 1,
        "On a small GPT on a laptop: your result is 0: `//` cuts",
    ),
    (lambda *given: in_words(*given) / 1e12, "`peak` counts single operations already"),
    (
        lambda r, n, m, t, d, p: r * 6 * n * 12 * m * t * d / p,
        "The two parts are multiplied",
    ),
    (lambda *given: in_words(*given[:-1], 1), "Those are the operations in a second"),
    (lambda r, n, m, t, d, p: in_words(r, 0, m, t, d, p), "The products with parameters are miss"),
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
    judge(exercise, RIGHT[exercise], WRONG[exercise])
