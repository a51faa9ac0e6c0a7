"""Chapter 08's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
from diagnoses import exercises, judge_by
from torch import nn

from transformer_lib.exercises import transformer_block
from transformer_lib.exercises.transformer_block import (
    check_conclusion,
    check_mended_block,
    check_products,
    check_right_norms,
    check_shares,
)

RIGHT, WRONG = {}, {}

# --- spot ---------------------------------------------------------------------------------------

RIGHT[check_right_norms] = ["ce", {"c", "e"}, lambda: ["E", "c"]]
WRONG[check_right_norms] = [
    ("ace", "a does not belong: `std` divides"),
    ("bce", "b does not belong: the mean is taken over the tokens"),
    ("cde", "d does not belong: ε is outside"),
    ("e", "c is missing: it is the definition"),
    ("c", "e is missing: it is PyTorch's own"),
    ("f", "'f' is not among the choices"),
]


def test_the_letters_belong_to_the_lines_of_the_chapter():
    x, eps = torch.randn(2, 5, 7, dtype=torch.float64), 0.1
    mean = x.mean(dim=-1, keepdim=True)
    square = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    lines = {
        "a": (x - mean) / (x.std(dim=-1, keepdim=True) ** 2 + eps) ** 0.5,
        "b": (x - x.mean(dim=1, keepdim=True)) / (x.var(dim=1, keepdim=True) + eps) ** 0.5,
        "c": (x - mean) / (square + eps) ** 0.5,
        "d": (x - mean) / (square**0.5 + eps),
        "e": nn.functional.layer_norm(x, (7,), eps=eps),
    }
    right = {letter for letter, y in lines.items() if torch.allclose(y, lines["e"])}
    assert right == check_right_norms.right


# --- mend ---------------------------------------------------------------------------------------


def mended(x, norm_1, attention, norm_2, feed_forward):
    x = attention(norm_1(x)) + x
    thought = feed_forward(norm_2(x))
    return thought + x


def as_given(x, n1, a, n2, f):
    normed = n1(x)
    x = normed + a(normed)
    return x + n2(f(x))


RIGHT[check_mended_block] = [
    mended,
    lambda x, n1, a, n2, f: (y := x + a(n1(x))) + f(n2(y)),
]
WRONG[check_mended_block] = [
    (as_given, "Follow the stream itself"),
    (
        lambda x, n1, a, n2, f: (y := x + a(n1(x))) + n2(f(y)),
        "`n2` and `f` must change places",
    ),
    (lambda x, n1, a, n2, f: (y := n1(x) + a(n1(x))) + f(n2(y)), "`n1` is one step too many"),
    (
        lambda x, n1, a, n2, f: n2((y := n1(a(x) + x)) + f(y)),
        "`norm_1` reads x plus what attention gives; it should read x",
    ),
    (
        lambda x, n1, a, n2, f: f(n2(x)) + a(n1(x)) + x,
        "`norm_2` reads x as it came in; it should read x plus what a",
    ),
    (
        lambda x, n1, a, n2, f: n2(y := n1(x) + a(n1(x))) + f(n2(y)),
        "`norm_2` reads something else; it should read x plus what at",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + n1(a(x))) + n2(f(y)),
        "`norm_1` reads what attention gives; it should read x as it ",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + n1(a(x))) + f(n2(y)),
        "`n1` and `a` must change places",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + a(x)) + f(y),
        "`norm_1` is never called: a block has two norms and two part",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + a(x)) + f(n2(y)),
        "`norm_1` is never called: a block has two norms and two part",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + a(n1(x))) + f(y),
        "`norm_2` is never called: a block has two norms and two part",
    ),
    (
        lambda x, n1, a, n2, f: f(n2(a(n1(x)))),
        "`norm_2` reads what attention gives; it should read x plus w",
    ),
    (
        lambda x, n1, a, n2, f: (y := a(n1(x))) + f(n2(y)),
        "`norm_2` reads what attention gives; it should read x plus w",
    ),
    (lambda x, n1, a, n2, f: f(n2(x + a(n1(x)))), "In the second line the stream itself"),
    (
        lambda x, n1, a, n2, f: mended(x, n2, a, n1, f),
        "`n1` and `n2` are taken for each other, everywhere",
    ),
    (
        lambda x, n1, a, n2, f: mended(x, n2, f, n1, a),
        "`norm_1` reads something else; it should read x as it came i",
    ),
    (lambda x, n1, a, n2, f: mended(x, n1, a, n1, f), "`n1` stands where `n2` belongs"),
    (
        lambda x, n1, a, n2, f: (y := x + n1(a(n1(x)))) + n2(f(n2(y))),
        "In both lines the norm stands before",
    ),
    (lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x)))), "The second line adds to the x from before"),
    (
        lambda x, n1, a, n2, f: x + (y := a(n1(x))) + f(n2(y)),
        "`norm_2` reads what attention gives; it should read x plus w",
    ),
    (lambda x, n1, a, n2, f: x + f(n1(x)), "`attention` is never called"),
    (
        lambda x, n1, a, n2, f: x + f(n2(a(n1(x)))),
        "`norm_2` reads what attention gives; it should read x plus what attention gives.",
    ),
    (
        lambda x, n1, a, n2, f: (y := x * a(n1(x))) + f(n2(y)),
        "`norm_2` reads something else; it should read x plus what attention gives.",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + a(n1(x))) - f(n2(y)),
        "(y := x + a(n1(x))) + f(n2(y))` in its place",
    ),
]

# --- design -------------------------------------------------------------------------------------


def layers(first, second, *, write=(1.0, -1.0), bias=0.0):
    """Two hidden units, each (weight of first, weight of swapped, bias), into component 2."""
    W_1 = torch.tensor([[*first[:2], 0.0], [*second[:2], 0.0]])
    b_1 = torch.tensor([first[2], second[2]])
    W_2 = torch.zeros(3, 2)
    W_2[2] = torch.tensor(write)
    return W_1, b_1, W_2, torch.tensor([0.0, 0.0, bias])


def only_one(case_a, case_b):
    return lambda: layers(case_a, case_b, write=(1.0, 1.0))


ONE, OTHER, BOTH = (1.0, -1.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 1.0, -1.0)
NONE, FIRST, SWAP = (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
EITHER = (1.0, 1.0, 0.0)


def spoils_the_facts():
    W_1, b_1, W_2, b_2 = layers(EITHER, BOTH, write=(1.0, -2.0))
    W_2[0, 0] = 1.0
    return W_1, b_1, W_2, b_2


RIGHT[check_conclusion] = [
    only_one(ONE, OTHER),
    lambda: layers(EITHER, BOTH, write=(1.0, -2.0)),
    lambda: [x.double() for x in layers(EITHER, BOTH, write=(1.0, -2.0))],
]
WRONG[check_conclusion] = [
    (only_one(NONE, NONE), "Nothing is concluded"),
    (lambda: layers(EITHER, BOTH), "That is *or*"),
    (only_one(BOTH, NONE), "That is *and*"),
    (lambda: layers(ONE, OTHER, write=(-1.0, -1.0), bias=1.0), "This says *susan*"),
    (only_one(FIRST, NONE), "You write who had them at first."),
    (only_one(SWAP, NONE), "You write whether they swapped."),
    (only_one(EITHER, NONE), "That is the sum of both facts"),
    (spoils_the_facts, "The facts themselves change"),
    (only_one(ONE, NONE), "You write 1 only where she had them"),
    (only_one(OTHER, NONE), "You write 1 only where she did not"),
    (lambda: layers(EITHER, (1.0, 1.0, -2.0), write=(2.0, 1.0)), "he second unit is 0 in all four"),
    (lambda: layers(EITHER, EITHER, write=(1.0, -2.0)), "he second unit is the first one, or a"),
    (
        lambda: layers(EITHER, BOTH, write=(1.0, -3.0)),
        "here mary had them and they swapped, the units say 2, 1. With W_2 and b_2 that makes -1; "
        "the free place must say 0.",
    ),
    (lambda: [layers(EITHER, BOTH)[i] for i in (0, 2, 1, 3)], "The order is W_1, b_1, W_2, b_2"),
    (lambda: 1.0, "our result is a number; a tuple of 4 is expected."),
]

# --- count --------------------------------------------------------------------------------------

RIGHT[check_products] = [
    lambda d, f, t: 4 * d * d + 2 * d * f + 2 * t * d,
    lambda d_model, d_ff, tokens: 2 * d_model * (2 * d_model + d_ff + tokens),
]
WRONG[check_products] = [
    (lambda d, f, t: 4 * d * d + 2 * d * f, "2 * d * (f + t)` in its place"),
    (
        lambda d, f, t: 4 * d * d + 2 * d * f + t * d,
        "a factor 2 is missing: `(2 * (t * d))` in place of `t * d`",
    ),
    (
        lambda d, f, t: 4 * d * d + d * f + 2 * t * d,
        "a factor 2 is missing: `(2 * (d * f))` in place of `d * f`",
    ),
    (lambda d, f, t: 4 * d * d + 2 * t * d, "2 * (t + f) * d` in its place"),
    (lambda d, f, t: 3 * d * d + 2 * d * f + 2 * t * d, "with `4` in place of `3`"),
    (lambda d, f, t: 2 * d * f + 2 * t * d, "has `4 * d_model ** 2` too little"),
    (lambda d, f, t: 2 * t * d * (2 * d + f + t), "`* t` is too much"),
    (
        lambda d, f, t: 4 * (d * d + d) + 2 * d * f + f + d + 2 * t * d,
        "your result has `d_ff + 5 * d_model` too much.",
    ),
    (lambda d, f, t: 12 * d * d + 2 * t * d, "your function never uses its argument `f`"),
    (lambda d, f, t: 2 * d + f, "your function never uses its argument `t`"),
    (
        lambda d, f, t: max(4 * d * d + 2 * d * f, 2 * t * d),
        "2 * d * (f + t), 2 * t * d)` in its place",
    ),
    (
        lambda d, f, t: 4 * d * d + f * f + 2 * t * d,
        "`d_ff ** 2` too much, and `2 * d_model * d_ff` too little",
    ),
    (lambda d, f, t: 4 * d * d + 2 * d * f + 2 * t * d + 9, "`+ 9` is too much"),
    (
        lambda d, f, t: 2 * d * d + 2 * d * f + 2 * t * d,
        "2 * d * (f + d) + 2 * t * d` in its place",
    ),
    (
        lambda d, f, t: 2 * d * d * (1 + t) + 2 * d * f + 2 * t * d,
        "has `2 * d_model ** 2 * tokens` too much, and `2 * d_model ** 2` too little",
    ),
]

# --- take apart ---------------------------------------------------------------------------------


def by_differences(block, head, x):
    """Scores with more and more of the parts, and what each step changes."""
    middle = x + block.attention(block.norm_1(x))
    end = block(x)
    totals = [head(stream[:, -1]) - head.bias for stream in (x, middle, end)]
    return torch.stack([totals[0], totals[1] - totals[0], totals[2] - totals[1]])


def scores_of(*streams, head, token=-1):
    return torch.stack([stream[:, token] @ head.weight.mT for stream in streams])


def pieces(block, x):
    attended = block.attention(block.norm_1(x))
    return x, attended, block.feed_forward(block.norm_2(x + attended))


def third(norm):
    def answer(block, head, x):
        start, attended, _ = pieces(block, x)
        thought = block.feed_forward(norm(block, start + attended))
        return scores_of(start, attended, thought, head=head)

    return answer


RIGHT[check_shares] = [
    by_differences,
    lambda block, head, x: scores_of(*pieces(block, x), head=head),
]
WRONG[check_shares] = [
    (
        lambda block, head, x: scores_of(x, x + pieces(block, x)[1], block(x), head=head),
        "These are running totals",
    ),
    (
        lambda block, head, x: torch.stack([head(p[:, -1]) for p in pieces(block, x)]),
        "The head's bias is in all three",
    ),
    (
        lambda block, head, x: scores_of(
            *pieces(block, x)[:2], block.feed_forward(block.norm_2(x)), head=head
        ),
        "Only your third share is wrong. It should be what the feed-forward ",
    ),
    (third(lambda block, y: block.norm_1(y)), "`thought` stands where `_` belongs"),
    (
        lambda block, head, x: scores_of(
            x, x + pieces(block, x)[1], pieces(block, x)[2], head=head
        ),
        "`x +` is too much",
    ),
    (
        lambda block, head, x: scores_of(*pieces(block, x)[:2], block(x), head=head),
        "Only your third share is wrong. It should be what the feed-forward ",
    ),
    (
        lambda block, head, x: torch.stack(pieces(block, x))[:, :, -1],
        "These are the parts themselves.",
    ),
    (
        lambda block, head, x: torch.stack([p.sum(1) @ head.weight.T for p in pieces(block, x)]),
        "the sum over all tokens",
    ),
    (
        lambda block, head, x: torch.stack(
            [nn.functional.normalize(p[:, -1]) @ head.weight.T**3 for p in pieces(block, x)]
        ),
        "at [0, 0, 0] you have 0.0083; it should be 0.3311.",
    ),
    (
        lambda block, head, x: torch.stack(
            [p.mean(dim=1) @ head.weight.T for p in pieces(block, x)]
        ),
        "the mean over all tokens",
    ),
    (
        lambda block, head, x: scores_of(
            x, a := block.attention(x), block.feed_forward(x + a), head=head
        ),
        "`norm_1` never reads x.",
    ),
    (
        lambda block, head, x: scores_of(
            x, a := pieces(block, x)[1], block.feed_forward(block.norm_2(a)), head=head
        ),
        "Only your third share is wrong. It should be what the feed-forward ",
    ),
    (
        lambda block, head, x: scores_of(
            x, a := block.attention(x), block.feed_forward(block.norm_2(a + x)), head=head
        ),
        "norm_1` never reads x.",
    ),
    (
        lambda block, head, x: scores_of(block.norm_1(x), *pieces(block, x)[1:], head=head),
        "nly your first share is wrong. It should be x, as it came in, at the last token",
    ),
]


@pytest.mark.parametrize("exercise", exercises(transformer_block))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
