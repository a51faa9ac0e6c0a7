"""Causes that no sentence of an exercise foresees: what the engine finds in numbers and by trying.

Each row is a right computation, a wrong answer and words of the sentence that it must get.
"""

import pytest
import torch

from transformer_lib.exercises.engine import naming
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

DROP = torch.nn.Dropout(0.5)
M = torch.arange(1.0, 10.0)  # a variable of the "notebook"

ROWS = [Case("3 words", randn(3, 7, seed=1)), Case("5 words", randn(5, 2, seed=2))]
POSITIVE = [Case("3 words", randn(3, 7, seed=1).exp()), Case("5 words", randn(5, 2, seed=2).exp())]
BATCH = [Case("2", randn(2, 5, 3, seed=1)), Case("3", randn(3, 7, 2, seed=2))]
SQUARES = [Case("3", randn(3, 3, seed=1)), Case("5", randn(5, 5, seed=2))]
PAIRS = [
    Case("3 and 4", randn(3, 7, seed=1), randn(4, 7, seed=2)),
    Case("5 and 2", randn(5, 11, seed=3), randn(2, 11, seed=4)),
]
NUMBERS = [Case("2, 7", 2, 7), Case("3, 5", 3, 5), Case("5, 11", 5, 11)]
WIDTHS = [Case("2", 2), Case("7", 7), Case("11", 11)]
YES_NO = [Case(f"{n}, {bias}", n, bias) for n in (2, 7, 11) for bias in (False, True)]
FLOATS = [Case("2", 2.0), Case("0.3", 0.3)]
MASKS = [Case("5", 5), Case("7", 7)]


def weights(q, k):
    return (q @ k.mT).softmax(-1)


def twice(x):
    return 2 * x + 1


def causal(n):
    return torch.ones(n, n).tril().bool()


def upto(n):
    return torch.arange(n) < 3


def by_hand(x):
    return torch.stack([2 * x[i] + 1 for i in range(3)])


def printed(x):
    print(2 * x + 1)


def first_only(x):
    y = torch.zeros_like(x)
    y[0] = 2 * x[0] + 1
    return y


def squares(x):
    return x**2


def mixed(x):
    return (x @ x.T).softmax(1) @ x


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def leaks(x):
    return (x - x.mean(0)).softmax(-1)


@pytest.mark.parametrize(
    ("cases", "right", "wrong", "words"),
    [
        # moved, left out, added
        (ROWS, twice, lambda x: twice(x).flip(0), "if `x` were reversed along axis 0."),
        (
            SQUARES,
            lambda x: x @ x.exp(),
            lambda x: (x @ x.exp()).T,
            "transposed: `tokens` and `dim`",
        ),
        (
            ROWS,
            lambda x: x.cumsum(0),
            lambda x: x.cumsum(0).flip(0),
            "reverse order along the axis",
        ),
        (ROWS, lambda x: x.cumsum(0), lambda x: x.cumsum(0).roll(1, 0), "one place too late along"),
        (
            ROWS,
            lambda x: x.cumsum(0),
            lambda x: x.cumsum(0).roll(-1, 1),
            "moved back by one place along axis 1",
        ),
        (
            ROWS,
            lambda x: x.cumsum(0),
            lambda x: x.cumsum(0)[torch.tensor([0, 2, 1, 4, 3])[: len(x)]],
            "in another order along the axis `tokens`",
        ),
        (
            BATCH,
            lambda x: (2 * x + 1).mT,
            lambda x: (2 * x + 1).reshape(len(x), x.shape[2], -1),
            "in other places: axes are mixed up",
        ),
        (ROWS, twice, first_only, "all 0 for numbers 1, 2 along the axis `tokens`"),
        (ROWS, lambda x: x.tanh(), lambda x: x.tanh() + x, "the right one plus `x`"),
        (ROWS, lambda x: x.tanh(), lambda x: x, "`x` itself, unchanged"),
        (ROWS, twice, lambda x: 0 * x, "All numbers of your result are 0"),
        (ROWS, twice, lambda x: 0 * x + 4, "are equal, 4 each, whatever"),
        # factors and steps
        (ROWS, lambda x: x.tanh(), lambda x: -x.exp().sub(1 / x.exp()) / 99, "right is"),
        (ROWS, lambda x: x.exp(), lambda x: -x.exp(), "the wrong sign"),
        (ROWS, lambda x: x.exp(), lambda x: x.exp() * 7**0.5, "2.646 times the right one"),
        (
            ROWS,
            lambda x: x.exp(),
            lambda x: x.exp() / x.shape[-1] ** 0.5,
            "is `x.shape[-1] ** -0.5` times the right one",
        ),
        (ROWS, lambda x: x.exp(), lambda x: 2 * x.exp(), "twice the right one"),
        (ROWS, lambda x: x.exp(), lambda x: x.exp() + 1, "too large by 1, everywhere"),
        (ROWS, lambda x: x.exp(), lambda x: x.exp() ** 2, "if `x` were doubled."),
        (ROWS, twice, lambda x: twice(x) ** 2, "the square of the right one"),
        (POSITIVE, twice, lambda x: twice(x).sqrt(), "the square root of the right one"),
        (POSITIVE, twice, lambda x: 1 / twice(x), "1 divided by the right one"),
        (POSITIVE, twice, lambda x: 1 - twice(x), "1 minus the right one"),
        (POSITIVE, twice, lambda x: twice(x).log(), "the logarithm of the right one"),
        (
            POSITIVE,
            lambda x: x.sqrt(),
            lambda x: x.sqrt().exp(),
            "the exponential of the right one",
        ),
        (ROWS, twice, lambda x: twice(x).abs(), "without its signs"),
        (ROWS, twice, lambda x: twice(x).relu(), "a `relu` or `clamp` too many"),
        (ROWS, twice, lambda x: twice(x).round(), "rounded to whole numbers"),
        (ROWS, twice, lambda x: twice(x).cumsum(1), "You add up along the axis `dim`"),
        (ROWS, twice, lambda x: twice(x).softmax(1), "A softmax over the axis `dim` too many"),
        (
            ROWS,
            lambda x: x.exp() / x.exp().norm(dim=1, keepdim=True),
            lambda x: x.exp(),
            "with another factor for each row",
        ),
        (
            SQUARES,
            lambda x: x @ x.T + x.tril(),
            lambda x: x @ x.T,
            "Your result is symmetric",
        ),
        (
            SQUARES,
            lambda x: x @ x.T,
            lambda x: x @ x.T + x.tril(-1),
            "look at two cells that mirror",
        ),
        (
            SQUARES,
            lambda x: x @ x.T + x,
            lambda x: x @ x.T + x + (x * x.T).triu(1),
            "The diagonal is right, and the rest is not",
        ),
        (
            SQUARES,
            lambda x: x @ x.T,
            lambda x: x @ x.T + torch.eye(len(x)) * 7,
            "Only the diagonal",
        ),
        (SQUARES, lambda x: x - x.mean(0), lambda x: x - x.mean(), "must sum to 0; yours sum to"),
        # weights
        (
            PAIRS,
            weights,
            lambda q, k: (q @ k.mT).softmax(0),
            "sum to 1 over the axis `queries`; they",
        ),
        (
            PAIRS,
            weights,
            lambda q, k: (q @ k.mT).exp(),
            "The division by the sum over the axis `keys`",
        ),
        (PAIRS, weights, lambda q, k: q @ k.mT, "The softmax over the axis `keys` is missing"),
        (
            PAIRS,
            weights,
            lambda q, k: (q @ k.mT).sigmoid(),
            "must sum to 1 over the axis `keys`; one",
        ),
        (
            PAIRS,
            weights,
            lambda q, k: (q @ k.mT).flatten().softmax(0).view(len(q), len(k)),
            "over the whole result, not over each row",
        ),
        (
            PAIRS,
            weights,
            lambda q, k: weights(q, k) / 1.2,
            "The division by the sum over the axis `keys`",
        ),
        (PAIRS, weights, lambda q, k: (3 * q @ k.mT).softmax(1), "3 times the right scores"),
        (
            PAIRS,
            weights,
            lambda q, k: (q @ k.mT / len(k)).softmax(1),
            "right scores times `1 / k.shape[0]`",
        ),
        (
            PAIRS,
            weights,
            lambda q, k: (q @ k.mT == (q @ k.mT).amax(1, keepdim=True)).float(),
            "a hard choice, not a softmax",
        ),
        (
            SQUARES,
            lambda x: (x @ x.T).masked_fill(~causal(len(x)), -torch.inf).softmax(1),
            lambda x: (x @ x.T).softmax(1),
            "What is hidden has weight: at [0, 1]",
        ),
        (
            SQUARES,
            lambda x: (x @ x.T).softmax(1),
            lambda x: (x @ x.T).masked_fill(~causal(len(x)), -torch.inf).softmax(1),
            "you need no mask here",
        ),
        # booleans
        (MASKS, causal, lambda n: ~causal(n), "inverted: True and False are swapped"),
        (MASKS, causal, lambda n: causal(n).T, "transposed: rows and columns"),
        (MASKS, causal, lambda n: causal(n) | True, "Everything in your result is True"),
        (MASKS, causal, lambda n: causal(n).flip(1), "columns are in reverse order"),
        (
            MASKS,
            causal,
            lambda n: causal(n) & causal(n).T,
            "is symmetric, and the right one is not",
        ),
        (MASKS, causal, lambda n: torch.ones(n, n).tril(2).bool(), "in the future, if rows are"),
        (MASKS, causal, lambda n: torch.ones(n, n).tril(-1).bool(), "one place too"),
        (MASKS, upto, lambda n: torch.arange(n) < 2, "one place too early along its positions"),
        (MASKS, upto, lambda n: torch.arange(n) % 2 == 0, "first at [4], and False where True"),
        # shapes
        (
            ROWS,
            lambda x: x.sum(0),
            lambda x: x,
            "The sum over axis 0 of your result is still missing",
        ),
        (ROWS, twice, lambda x: twice(x).mean(0), "a mean over the axis `tokens` too many"),
        (ROWS, twice, lambda x: twice(x)[0], "number 0 along the axis `tokens` only"),
        (
            ROWS,
            twice,
            lambda x: twice(x)[:-1],
            "Right, but you stop after 2 along the axis `tokens`",
        ),
        (ROWS, twice, lambda x: twice(x)[1:], "the beginning of the axis `tokens` is missing"),
        (ROWS, twice, lambda x: twice(x)[None], "an axis of size 1 is too many: `squeeze`"),
        (ROWS, lambda x: x[1], lambda x: x, "The right result is one of several along axis 0"),
        (SQUARES, twice, lambda x: twice(x).diagonal(), "the diagonal of the right result only"),
        (MASKS, causal, lambda n: causal(5), "has the shape (5, 5) whatever the input"),
        (MASKS, causal, lambda n: causal(11), "has the shape (11, 11) whatever the input"),
        (ROWS, twice, lambda x: twice(x).mean((0, 1), True), "shape (1, 1); right is (3, 7)"),
        (
            WIDTHS,
            lambda n: torch.arange(n) * 1.0,
            lambda n: torch.arange(1.0, n),
            "what is 0 has been dropped: every place must stay, so the shape is (2,), not (1,)",
        ),
        (ROWS, twice, lambda x: twice(x).round(decimals=2), "rounded to 2 decimals"),
        # arguments
        *(
            (ROWS, lambda x: x.argmax(0), other, "the largest number along axis 0 of your result")
            for other in (lambda x: x, lambda x: x == x.amax(0), lambda x: x.exp() * 100)
        ),
        (ROWS, lambda x: x.argmax(1), lambda x: x, "by `argmax(1)`"),
        (NUMBERS, lambda a, b: a**b, lambda a, b: b**a, "if `a` and `b` were swapped"),
        (NUMBERS, lambda a, b: a**b, lambda a, b: a**a, "if `b` were `a`"),
        (NUMBERS, lambda a, b: a**b, lambda a, b: a ** (b - 1), "if `b` were `b - 1`"),
        (NUMBERS, lambda a, b: 10 * b + a, lambda a, b: 10 * b, "if `a` were 0"),
        (NUMBERS, lambda a, b: 10 * b + a, lambda a, b: 10 * b + 77, "`a` changes nothing in your"),
        (NUMBERS, lambda a, b: 5 + a * b, lambda a, b: 5 + 4 * a * b, "too large by `3 * a * b`"),
        (NUMBERS, lambda a, b: a * b, lambda a, b: 14, "the same in every case, whatever"),
        (FLOATS, lambda t: 3 * t + 1, lambda t: 3 / t + 1, "if `t` were `1 / t`."),
        (PAIRS, lambda q, k: q @ k.T, lambda q, k: (k @ q.T).T * 0 + 1, "are equal, 1 each"),
        (
            PAIRS,
            lambda q, k: q @ k.T,
            lambda q, k: q @ k.T.roll(1, 1),
            "if `k` were moved on by one",
        ),
        (
            ROWS,
            lambda x: x.softmax(-1).cumsum(0),
            lambda x: DROP(x.softmax(-1).cumsum(0)),
            "another one with each call",
        ),
        (ROWS, lambda x: x.softmax(-1), leaks, "changes with `x[-1]`, which it must not see"),
        (
            ROWS,
            leaks,
            lambda x: x.softmax(-1),
            "does not change with `x[-1]`: nothing of it arrives",
        ),
        (
            YES_NO,
            lambda n, bias: 3 * n,
            lambda n, bias: 3 * n + bias * n**3 % 19,
            "`bias` is False, and",
        ),
        (
            [Case("2, 2", 2, 2), Case("3, 3", 3, 3), Case("5, 2", 5, 2), Case("3, 7", 3, 7)],
            lambda a, b: a**2 + 5 * b,
            lambda a, b: a * b + 5 * b,
            "Right where `a` and `b` happen to be equal",
        ),
        (WIDTHS, lambda d: 9 * d, lambda d: d + 9, "Your result is `d` plus 9"),
        (WIDTHS, lambda d: d**3 + 1, lambda d: 4 * d**2, "is 4 times `d ** 2`"),
        (
            [Case(f"{n}", n) for n in range(6)],
            lambda n: n % 3,
            lambda n: (2, 0, 2)[n % 3],
            "Each time you say 2 where 0 is right and 0 where 1 is right",
        ),
        (ROWS, squares, lambda x: squares(x) + torch.arange(x.shape[1]), "off by the same amount"),
        # another softmax: five words in two dimensions, so that no weights can be solved for
        *(
            (ROWS, mixed, another, words)
            for another, words in [
                (lambda x: (x @ x.T / len(x)).softmax(1) @ x, "divided by `x.shape[0]` before"),
                (lambda x: (x @ x.T).abs().softmax(1) @ x, "had lost their signs"),
                (lambda x: (x @ x.T).sigmoid() @ x, "a sigmoid stood in place"),
                (lambda x: (x @ x.T).exp() @ x, "is a division by a sum or a length missing"),
                (lambda x: (x @ x.T).tril().softmax(1) @ x, "scores of the future were 0"),
                (lambda x: torch.cdist(x, x).softmax(1) @ x, "each score were a distance"),
                (lambda x: (unit(x) @ unit(x).T).softmax(1) @ x, "each score were a cosine"),
            ]
        ),
        (
            PAIRS,
            weights,
            lambda q, k: (unit(q) @ k.T).softmax(-1),
            "if `q` were divided by its length",
        ),
        (
            PAIRS,
            weights,
            lambda q, k: (3 * unit(q) @ k.T).softmax(-1),
            "a number that differs from row to row",
        ),
        # the code
        (ROWS, twice, printed, "write `return` in front of your result, not `print`"),
        (
            [Case("3 words", randn(3, 7, seed=1)), Case("2 words", randn(2, 5, seed=2))],
            twice,
            by_hand,
            "Your code holds the number 3, a size of the cases",
        ),
        (
            PAIRS,
            lambda q, k: q @ k.T,
            lambda q, k: q @ k,
            "In A @ B the columns of A must be as many as the rows of B",
        ),
        (
            PAIRS,
            lambda q, k: torch.cat((q, k), 0),
            lambda q, k: torch.cat((q, k), 1),
            "You join along axis 1; all other axes must agree",
        ),
        (ROWS, twice, lambda x: twice(x).argmax(1), "are they places, where values are asked?"),
    ],
)
def test_a_cause_is_named(cases, right, wrong, words, monkeypatch):
    monkeypatch.setattr(naming, "TOO_ODD", ())
    boolean = cases is MASKS
    axes = "queries keys" if boolean or cases is PAIRS else "tokens dim"
    axes = "" if cases is BATCH or right(*cases[0].inputs) is None else axes
    if isinstance(right(*cases[0].inputs), torch.Tensor):
        axes = axes if right(*cases[0].inputs).ndim == 2 else ""
    check = Exercise(right=right, cases=cases, axes=axes)
    verdict = check(wrong)
    assert verdict.passed is False
    assert words.casefold() in verdict.diagnosis.casefold()


def test_a_variable_of_the_notebook_is_named():
    check = Exercise(right=lambda m: 2 * m, cases=[Case("9", randn(9, seed=1))])
    assert "you use `M`, a variable of the notebook" in check(lambda m: 2 * M).diagnosis


def test_weights_behind_an_average_are_looked_at():
    check = Exercise(
        right=lambda x: (x @ x.T).softmax(1) @ x,
        cases=[Case("3 words", randn(3, 7, seed=1)), Case("5 words", 0.3 * randn(5, 11, seed=2))],
        averages=lambda x: x,
    )
    for wrong, words in [
        (lambda x: (x @ x.T).softmax(0) @ x, "are transposed: rows are queries"),
        (lambda x: (x @ x.T + x[:, :1]).softmax(0) @ x, "sum to 1 over the axis `queries`"),
        (lambda x: (x @ x.T).softmax(0).T @ x + 0, "Right"),
        (lambda x: (x @ x.T) @ x, "The softmax over the axis `keys` is missing"),
        (lambda x: (x @ x.T).softmax(1) @ x.flip(0), "reverse order along the axis `keys`"),
        (lambda x: (x @ x.T).softmax(1) @ x + 1, "too large by 1"),
        (lambda x: (x @ x.T).softmax(1) @ x.tanh(), "not a mixture of what it must average"),
        (lambda x: (x @ x.T / len(x)).softmax(1) @ x, "times `1 / x.shape[0]`"),
    ]:
        assert words in check(wrong).diagnosis.replace("the softmax over", "The softmax over")


def test_items_of_a_tuple_are_told_apart():
    check = Exercise(
        right=lambda x: (x.exp(), x.tanh(), 2 * x.sin()), cases=ROWS, axes=["tokens dim"] * 3
    )
    swapped = check(lambda x: (x.tanh(), x.exp(), 2 * x.sin())).diagnosis
    assert swapped.endswith("items 0 and 1 of your result are swapped.")
    assert (
        "item 1 of your result is what item 0 must be"
        in check(lambda x: (x.exp(), x.exp(), 2 * x.sin())).diagnosis
    )
    assert (
        "in item 2: your result is half of"
        in check(lambda x: (x.exp(), x.tanh(), x.sin())).diagnosis
    )


def test_an_estimate_must_be_measured():
    check = Exercise(
        right=lambda d: float(d),
        cases=[Case("50", 50), Case("80", 80)],
        measured=True,
        tolerance=(0.1, 0.5),
    )
    assert check(lambda d: torch.randn(20_000, d).square().sum(1).mean()).passed
    for wrong in (float, lambda d: d * 1.02, lambda d: d + 0.1):
        assert "computed, not measured" in check(wrong).diagnosis
    noisy = check(lambda d: torch.randn(1, d).square().sum() * torch.rand(1).item() * 2)
    assert "draw more of them" in noisy.diagnosis
    half = check(lambda d: torch.randn(20_000, d).square().sum(1).mean() / 2)
    assert "about half the right one" in half.diagnosis


def test_a_value_is_not_given_away():
    assert Exercise(right=12)(24).diagnosis == "24 is too large."
    assert Exercise(right=torch.tensor([1.0, 2, 4]))(torch.tensor([4.0, 2, 1])).diagnosis == (
        "The right numbers, in reverse order along the axis `0`."
    )
