"""Chapter 08's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
from diagnoses import exercises, judge
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
    (lambda x, n1, a, n2, f: (y := x + a(n1(x))) + n2(f(y)), "The stream is mended."),
    (lambda x, n1, a, n2, f: (y := n1(x) + a(n1(x))) + f(n2(y)), "The second norm is mended."),
    (lambda x, n1, a, n2, f: n2((y := n1(a(x) + x)) + f(y)), "That is post-norm"),
    (lambda x, n1, a, n2, f: f(n2(x)) + a(n1(x)) + x, "Both parts read the same x"),
    (
        lambda x, n1, a, n2, f: n2(y := n1(x) + a(n1(x))) + f(n2(y)),
        "Now both lines add to a normalized copy",
    ),
    (lambda x, n1, a, n2, f: (y := x + n1(a(x))) + n2(f(y)), "Now both norms stand behind"),
    (lambda x, n1, a, n2, f: (y := x + n1(a(x))) + f(n2(y)), "The first norm stands behind"),
    (lambda x, n1, a, n2, f: (y := x + a(x)) + f(y), "the norms are gone"),
    (lambda x, n1, a, n2, f: (y := x + a(x)) + f(n2(y)), "without the first norm"),
    (lambda x, n1, a, n2, f: (y := x + a(n1(x))) + f(y), "without the second norm"),
    (lambda x, n1, a, n2, f: f(n2(a(n1(x)))), "each part replaces the stream"),
    (lambda x, n1, a, n2, f: (y := a(n1(x))) + f(n2(y)), "In the first line the stream"),
    (lambda x, n1, a, n2, f: f(n2(x + a(n1(x)))), "In the second line the stream itself"),
    (lambda x, n1, a, n2, f: mended(x, n2, a, n1, f), "have changed places"),
    (lambda x, n1, a, n2, f: mended(x, n2, f, n1, a), "Attention comes first"),
    (lambda x, n1, a, n2, f: n2(mended(x, n1, a, n2, f)), "A norm at the end"),
    (
        lambda x, n1, a, n2, f: n2(y := x + a(n1(x))) + f(n2(y)),
        "In the second line the stream that",
    ),
    (lambda x, n1, a, n2, f: mended(x, n1, a, n1, f), "Both lines read through the first norm"),
    (lambda x, n1, a, n2, f: mended(x, n2, a, n2, f), "Both lines read through the second norm"),
    (
        lambda x, n1, a, n2, f: (y := x + n1(a(n1(x)))) + n2(f(n2(y))),
        "In both lines the norm stands before",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + n1(a(n1(x)))) + f(n2(y)),
        "The first norm stands before attention and behind",
    ),
    (
        lambda x, n1, a, n2, f: (y := x + a(n1(x))) + n2(f(n2(y))),
        "The second norm stands before the feed-forward",
    ),
    (lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x)))), "The second line adds to the x from before"),
    (lambda x, n1, a, n2, f: x + (y := a(n1(x))) + f(n2(y)), "it must read the whole stream"),
    (lambda x, n1, a, n2, f: x + f(n1(x)), "`attention` is never called"),
    (
        lambda x, n1, a, n2, f: (y := x + a(n1(x))) + f(n2(n1(y))),
        "`norm_1` is called 2 times, on different numbers",
    ),
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
        "ll parts read what they should.",
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
    (lambda d, f, t: 4 * d * d + 2 * d * f, "You count the matrices alone"),
    (lambda d, f, t: 4 * d * d + 2 * d * f + t * d, "the averages are not"),
    (lambda d, f, t: 4 * d * d + d * f + 2 * t * d, "goes back as well"),
    (lambda d, f, t: 4 * d * d + 2 * t * d, "The feed-forward layer is missing."),
    (lambda d, f, t: 3 * d * d + 2 * d * f + 2 * t * d, "W_O is missing"),
    (lambda d, f, t: 2 * d * f + 2 * t * d, "Attention's matrices are missing"),
    (lambda d, f, t: 4 * d * (2 * d + f + t), "You count additions as well"),
    (lambda d, f, t: 2 * t * d * (2 * d + f + t), "That is for all tokens together"),
    (lambda d, f, t: 4 * d * d + 2 * d * f + 2 * t * t * d, "not tokens²"),
    (lambda d, f, t: 4 * d * d + 2 * d * f + 2 * t, "A score is not one product"),
    (lambda d, f, t: 4 * d * d + 2 * d * f + 2 * t * t, "you count a term for each of them"),
    (lambda d, f, t: 4 * (d * d + d) + 2 * d * f + f + d + 2 * t * d, "They take no products"),
    (lambda d, f, t: t * (4 * d * d + 2 * d * f) + 2 * t * d, "counted for all tokens, the scores"),
    (lambda d, f, t: 12 * d * d + 2 * t * d, "You take d_ff to be 4"),
    (lambda d, f, t: 2 * d + f, "This is the length"),
    (
        lambda d, f, t: (4 * d * d + 2 * d * f + 2 * t * d) / 1e6,
        "ou count 4e-06 times d_model · d_model, which is too few",
    ),
    (lambda d, f, t: max(4 * d * d + 2 * d * f, 2 * t * d), "You take the larger of the two"),
    (lambda d, f, t: 4 * d * d + f * f + 2 * t * d, "our count holds d_ff · d_ff, and nothing"),
    (lambda d, f, t: 4 * d * d + 2 * d * f + 2 * t * d + 9, "our count holds 9, and nothing in"),
    (
        lambda d, f, t: 4 * d * d + 3 * d * f + 2 * t * d,
        "ou count 3 times d_model · d_ff, which is too many",
    ),
    (
        lambda d, f, t: 2 * d * d + 2 * d * f + 2 * t * d,
        "ou count 2 times d_model · d_model, which is too few",
    ),
    (lambda d, f, t: 2 * d * d * (1 + t) + 2 * d * f + 2 * t * d, "The keys and values of the"),
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


def bias_first(head):
    return torch.tensor([1.0, 0, 0])[:, None, None] * head.bias


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
        "reads the stream from before the attention",
    ),
    (third(lambda block, y: block.norm_1(y)), "reads the first norm's copy"),
    (third(lambda block, y: y), "its norm is missing"),
    (
        lambda block, head, x: scores_of(
            x, x + pieces(block, x)[1], pieces(block, x)[2], head=head
        ),
        "The second share is the whole stream",
    ),
    (
        lambda block, head, x: scores_of(*pieces(block, x)[:2], block(x), head=head),
        "The third share is the whole stream",
    ),
    (
        lambda block, head, x: by_differences(block, head, x) + bias_first(head),
        "is in the first share",
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
        "and none of your shares is right",
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
        "The norms are missing",
    ),
    (
        lambda block, head, x: scores_of(
            x, a := pieces(block, x)[1], block.feed_forward(block.norm_2(a)), head=head
        ),
        "reads what attention gives alone",
    ),
    (
        lambda block, head, x: scores_of(*pieces(block, x), head=head) - head.bias,
        "our first share holds -1 times the head's bias",
    ),
    (
        lambda block, head, x: torch.stack(
            [head(p[:, -1]) - head.bias * 2 / 3 for p in pieces(block, x)]
        ),
        "A third of the head's bias",
    ),
    (
        lambda block, head, x: torch.stack(
            [stream[-1] @ head.weight.T for stream in pieces(block, x)]
        ),
        "These are all tokens of the last text",
    ),
    (
        lambda block, head, x: scores_of(
            x, a := block.attention(x), block.feed_forward(block.norm_2(a + x)), head=head
        ),
        "norm_1` never reads x.",
    ),
    (
        lambda block, head, x: scores_of(block.norm_1(x), *pieces(block, x)[1:], head=head),
        "nly your first share is wrong. It is x, as it came in, at the last token",
    ),
    (
        lambda block, head, x: scores_of(*pieces(block, x[:, -1, None]), head=head),
        "Attention sees only the last token",
    ),
    (
        lambda block, head, x: scores_of(*pieces(block, x), head=head, token=0),
        "That is the first token",
    ),
]


@pytest.mark.parametrize("exercise", exercises(transformer_block))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
