"""Chapter 05's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import copy

import pytest
import torch
from diagnoses import exercises, judge_by
from torch import nn

from transformer_lib.attention import merge_heads, split_heads
from transformer_lib.exercises import multi_head
from transformer_lib.exercises.multi_head import (
    check_count,
    check_giver_and_receiver,
    check_multi_head,
    check_right_splits,
    check_split_fused,
    check_without_head,
    gift_sentence,
)

RIGHT, WRONG = {}, {}

# --- spot ---------------------------------------------------------------------------------------

RIGHT[check_right_splits] = ["bce", {"b", "c", "e"}, lambda: ["E", "c", "B"]]
WRONG[check_right_splits] = [
    ("abce", "a does not belong: the numbers stay in the order"),
    ("bcde", "d does not belong: head n gets every h-th"),
    ("ce", "b is missing: the last axis is cut"),
    ("be", "c is missing: each chunk is a block"),
    ("bc", "e is missing: here the components come first"),
    ("f", "'f' is not among the choices"),
]


def test_the_letters_belong_to_the_lines_of_the_chapter():
    x, b, s, h, d = torch.randn(2, 5, 12), 2, 5, 3, 12
    lines = {
        "a": x.reshape(b, h, s, d // h),
        "b": x.reshape(b, s, h, d // h).transpose(1, 2),
        "c": torch.stack(x.chunk(h, dim=-1), dim=1),
        "d": x.reshape(b, s, d // h, h).permute(0, 3, 1, 2),
        "e": x.transpose(1, 2).reshape(b, h, d // h, s).transpose(2, 3),
    }
    right = {letter for letter, cut in lines.items() if torch.equal(cut, split_heads(x, h))}
    assert right == check_right_splits.right
    assert {tuple(cut.shape) for cut in lines.values()} == {(b, h, s, d // h)}


# --- 1: split -----------------------------------------------------------------------------------


def split_by_view(qkv, n_heads):
    b, t, width = qkv.shape
    parts = qkv.view(b, t, 3, n_heads, width // (3 * n_heads)).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def split_by_loop(qkv, n_heads):
    d = qkv.shape[-1] // 3
    h = d // n_heads
    starts = [[part * d + n * h for n in range(n_heads)] for part in range(3)]
    return [torch.stack([qkv[:, :, a : a + h] for a in row], dim=1) for row in starts]


RIGHT[check_split_fused] = [split_by_view, split_by_loop]


def no_transpose(qkv, n):
    b, t, w = qkv.shape
    return tuple(p.reshape(b, n, t, w // 3 // n) for p in qkv.split(w // 3, dim=2))


def interleaved(qkv, n):
    parts = qkv.split(qkv.shape[2] // 3, dim=2)
    return tuple(torch.stack([p[..., i::n] for i in range(n)], dim=1) for p in parts)


def heads_then_qkv(qkv, n):
    b, t, w = qkv.shape
    return qkv.view(b, t, n, 3, w // 3 // n).permute(3, 0, 2, 1, 4).unbind(0)


def batch_mixed(qkv, n):
    b, t, w = qkv.shape
    return tuple(p.reshape(t, b, n, -1).permute(1, 2, 0, 3) for p in qkv.split(w // 3, dim=2))


WRONG[check_split_fused] = [
    (no_transpose, "here, at `reshape`, your values depart"),
    (interleaved, "here, at `getitem`, your values depart"),
    (heads_then_qkv, "here, at `view`, your values depart"),
    (batch_mixed, "two axes must change places: `return tuple(p.transpose(0, 1)."),
    (
        lambda qkv, n_heads: [split_by_view(qkv, n_heads)[i] for i in (1, 0, 2)],
        "with `0, 1, 2` in place of `1, 0, 2`",
    ),
    (
        lambda qkv, n_heads: [x.transpose(1, 2) for x in split_by_view(qkv, n_heads)],
        "item 0 of your result has its axes in the order (batch, tokens, heads, d_head); it should",
    ),
]


# --- 2: multi-head attention --------------------------------------------------------------------


def by_loop(x, W_Q, W_K, W_V, W_O, n_heads):
    triples = zip(*((x @ W).chunk(n_heads, -1) for W in (W_Q, W_K, W_V)), strict=True)
    parts = [nn.functional.scaled_dot_product_attention(*triple) for triple in triples]
    return torch.cat(parts, dim=-1) @ W_O


def in_numpy_style(x, W_Q, W_K, W_V, W_O, n_heads, *, scale=None, softmax=-1, merged=None):
    q, k, v = (torch.stack((x @ W).chunk(n_heads, -1), dim=1) for W in (W_Q, W_K, W_V))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / (scale or q.shape[-1] ** 0.5)
    z = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(softmax), v)
    return (merged or merge_heads)(z) @ W_O


RIGHT[check_multi_head] = [by_loop, in_numpy_style]


def raw_split(x, W_Q, W_K, W_V, W_O, n_heads):
    b, t, d = x.shape
    q, k, v = ((x @ W).view(b, n_heads, t, d // n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(nn.functional.scaled_dot_product_attention(q, k, v)) @ W_O


def raw_both(x, W_Q, W_K, W_V, W_O, n_heads):
    b, t, d = x.shape
    q, k, v = ((x @ W).view(b, n_heads, t, d // n_heads) for W in (W_Q, W_K, W_V))
    return nn.functional.scaled_dot_product_attention(q, k, v).reshape(b, t, d) @ W_O


def no_softmax(x, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = (torch.stack((x @ W).chunk(n_heads, -1), dim=1) for W in (W_Q, W_K, W_V))
    return merge_heads(q @ k.mT / q.shape[-1] ** 0.5 @ v) @ W_O


def mean_over_heads(x, W_Q, W_K, W_V, W_O, n_heads):
    q, k, v = (torch.stack((x @ W).chunk(n_heads, -1), dim=1) for W in (W_Q, W_K, W_V))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return merge_heads(torch.stack([weights.mean(1)] * n_heads, 1) @ v) @ W_O


def as_given(x, W_Q, W_K, W_V, W_O, n_heads):
    """The broken code of the exercise."""
    b, t, d = x.shape
    q, k, v = (torch.stack((x @ W).chunk(n_heads, -1), dim=1) for W in (W_Q, W_K, W_V))
    weights = (q @ k.mT / d**0.5).softmax(-1)
    return (weights @ v).reshape(b, t, d) @ W_O


WRONG[check_multi_head] = [
    (as_given, "Its author tried one head only."),
    (
        lambda x, *rest: in_numpy_style(x, *rest, scale=x.shape[-1] ** 0.5),
        "without `scale=x.shape[-1] ** 0.5` it is right",
    ),
    (raw_split, "here, at `view`, your values depart"),
    (no_softmax, "a softmax is missing: `(q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)`"),
    (mean_over_heads, "here, at `mean`, your values depart"),
    (raw_both, "here, at `view`, your values depart"),
    (
        lambda x, Q, K, V, _, h: by_loop(x, Q, K, V, torch.eye(x.shape[-1]), h),
        "all that you compute is right so far",
    ),
    (lambda x, Q, K, V, out, h: by_loop(x, Q, K, V, out.mT, h), "there is a transpose too many"),
    (
        lambda x, Q, K, V, out, h: by_loop(x, Q, K, V, out, 1),
        "here, at `scaled_dot_product_attention`, your",
    ),
]


# --- 3: count -----------------------------------------------------------------------------------


def count_by_building(d, h, w, bias):
    layers = [nn.Linear(d, h * w, bias) for _ in range(3)] + [nn.Linear(h * w, d, bias)]
    return sum(p.numel() for layer in layers for p in layer.parameters())


RIGHT[check_count] = [
    count_by_building,
    lambda d, h, w, b: h * w * (4 * d + 3 * int(b)) + int(b) * d,
]


WRONG[check_count] = [
    (lambda d, h, w, b: 3 * h * w * d + (3 * h * w if b else 0), "W_O is not counted: it takes"),
    (lambda d, h, w, b: 4 * h * w * d, "The biases are not counted."),
    (lambda d, h, w, b: 4 * h * d * d + (3 * h * d + d) * b, "You count every head as d_model"),
    (lambda d, h, w, b: 4 * d * d + 4 * d * b, "You count all heads as narrow:"),
    (lambda d, h, w, b: 4 * d * w + (3 * w + d) * b, "You count one head: multiply"),
    (lambda d, h, w, b: 4 * (d + b) * h * w, "The bias of W_O is as wide"),
    (lambda d, h, w, b: 4 * d * h * w + 3 * h * w + d, "never uses its argument `b`"),
    (
        lambda d, h, w, b: h * (4 * d * w + b * (3 * w + d)),
        "has `d_model * n_heads` too much, and `d_model` too little.",
    ),
]


# --- 4: giver and receiver ----------------------------------------------------------------------


def design(*, length=9.0, signs=(1, -1), output=None, values=1.0, place=1.0, turn=4):
    """Two heads of width 3; `signs`: which way each weighs the place; `turn`: what gives it."""

    def answer():
        W_Q, W_K, W_V = torch.zeros(6, 6), torch.zeros(6, 6), torch.zeros(6, 6)
        for head, sign in enumerate(signs):
            at = 3 * head
            W_K[:3, at + 1], W_K[5, at] = 1, place
            W_Q[3, at + 1], W_Q[turn, at] = length, sign * length
            W_V[[0, 1, 2], [at, at + 1, at + 2]] = values
        return W_Q, W_K, W_V, torch.eye(6) if output is None else output

    return answer


def one_query_two_keys():
    """The sign of the place is in the keys, and the names come out through W_O."""
    W_Q, W_K, W_V, W_O = torch.zeros(4, 6, 6).unbind(0)
    W_Q[3, 2], W_Q[3, 5] = 20.0, 20.0
    W_Q[4, 1], W_Q[4, 4] = 12.0, 12.0
    W_K[:3, 2] = W_K[:3, 5] = 1.0
    W_K[5, 1], W_K[5, 4] = 1.0, -1.0
    mix = torch.tensor([[2.0, 0, 1], [0, 1, 0], [0, 1, 2]])
    W_V[:3, :3] = W_V[:3, 3:] = mix
    W_O[:3, :3] = W_O[3:, 3:] = mix.inverse()
    return [W_Q, W_K, W_V, W_O]


def of_dtype(dtype):
    return lambda: [matrix.to(dtype) for matrix in design()()]


RIGHT[check_giver_and_receiver] = [
    design(),
    one_query_two_keys,
    of_dtype(torch.float64),
    of_dtype(torch.int64),
    design()(),
]


def keep(first, second, onto_first=False):
    """An output matrix that keeps or drops the heads."""
    W_O = torch.zeros(6, 6)
    W_O[:3, :3], W_O[3:, 3:] = first * torch.eye(3), second * torch.eye(3)
    if onto_first:
        W_O[3:, :3], W_O[3:, 3:] = torch.eye(3), 0
    return W_O


def by_name():
    """Head 0 always finds mary, or else susan; head 1 susan, or else ravi: the order is ignored."""
    W_Q, W_K, W_V, W_O = (w.clone() for w in design(place=0.0)())
    W_Q[3, 2], W_Q[3, 5] = 20.0, 20.0
    W_K[:3, 2], W_K[:3, 5] = torch.tensor([2.0, 1, 0]), torch.tensor([0.0, 2, 1])
    return W_Q, W_K, W_V, W_O


def one_softmax():
    """Both heads lean to the giver a little, and W_O tries to make two answers of it."""
    W_Q, W_K, W_V, _ = design(signs=(0.1, 0.1))()
    W_O = torch.zeros(6, 6)
    W_O[:3, :3], W_O[3:, 3:] = 1.5 * torch.eye(3), torch.eye(3)
    W_O[:3, 3:] = -0.25 * torch.eye(3)
    return W_Q, W_K, W_V, W_O


def asks_by_the_verb():
    """The verb's turn asks for people, so that with the other verb it asks for anything else."""
    W_Q, *others = design()()
    W_Q[4, [1, 4]], W_Q[3] = 9.0, 0.0
    return W_Q, *others


WRONG[check_giver_and_receiver] = [
    (one_softmax, "Your two heads ask the same question"),
    (design(turn=3), "Right for *gave*, but with *got*"),
    (design(turn=3, signs=(-1, 1)), "Right for *got*, but with *gave*"),
    (design(turn=3, signs=(1, 1)), "Both heads find the person who comes first"),
    (design(turn=3, signs=(-1, -1)), "Both heads find the person who comes last"),
    (design(place=0.0), "Both heads average giver"),
    (design(signs=(1, 1)), "Both heads find the giver:"),
    (design(signs=(-1, -1)), "Both heads find the receiver:"),
    (design(signs=(-1, 1)), "Giver and receiver are swapped."),
    (design(output=keep(1, 0)), "Nothing arrives from the second head:"),
    (design(output=keep(0, 1)), "Nothing arrives from the first head:"),
    (design(output=keep(1, 0, onto_first=True)), "W_O adds the two heads up,"),
    (design(output=torch.eye(3).repeat(2, 2)), "W_O writes the sum of both"),
    (design(values=0.0), "The output is zero: do the"),
    (asks_by_the_verb, "some sentence a head gives people next to nothing:"),
    (
        by_name,
        "On mary and susan: the output is the same in both orders",
    ),
    (
        design(length=2.0),
        "the right person leads in both heads, but with a share of only 0.70: the scores",
    ),
    (
        lambda: torch.zeros(6, 6),
        "Your result is a tensor of shape (6, 6); a tuple of 4 is expected.",
    ),
    (
        lambda: [torch.zeros(6, 3)] * 4,
        "Item 0 of your result has the shape (6, 3); it should be (6, 6) = (d_model, heads).",
    ),
]


def test_the_sentences_carry_names_places_and_the_verb():
    x = gift_sentence("susan", "ravi")
    assert x[0].tolist() == [0, 1, 0, 0, 0, 1]
    assert x[4].tolist() == [0, 0, 1, 0, 0, -1]
    assert x[1].tolist() == [0, 0, 0, 1, 1, 0.5]
    got = gift_sentence("susan", "ravi", "got")
    assert got[0].tolist() == [0, 0, 1, 0, 0, 1]
    assert got[1].tolist() == [0, 0, 0, 1, -1, 0.5]
    with pytest.raises(ValueError, match="there is no 'anna' here"):
        gift_sentence("anna", "ravi")
    with pytest.raises(ValueError, match="no verb 'took'"):
        gift_sentence("mary", "ravi", "took")


# --- 5: a silent head ---------------------------------------------------------------------------


def without_values(attention, x, head):
    mute = copy.deepcopy(attention)
    rows = slice(head * mute.d_head, (head + 1) * mute.d_head)
    mute.value.weight.data[rows] = 0
    mute.value.bias.data[rows] = 0
    return mute(x)


def without_columns(attention, x, head):
    q, k, v = attention.project(x)
    z = nn.functional.scaled_dot_product_attention(q, k, v)
    W = attention.output.weight.unflatten(1, (attention.n_heads, attention.d_head))
    rest = [h for h in range(attention.n_heads) if h != head]
    return attention.output.bias + sum(z[:, h] @ W[:, h].T for h in rest)


RIGHT[check_without_head] = [without_values, without_columns]


def muted(
    layers,
    parts=("weight", "bias"),
    of=lambda m, head: slice(head * m.d_head, (head + 1) * m.d_head),
):
    """Zeros in the rows of one head in a copy of the module."""

    def answer(attention, x, head):
        mute = copy.deepcopy(attention)
        for layer in layers:
            for part in parts:
                getattr(getattr(mute, layer), part).data[of(mute, head)] = 0
        return mute(x)

    return answer


def in_the_module(attention, x, head):
    attention.value.weight.data[head * attention.d_head : (head + 1) * attention.d_head] = 0
    attention.value.bias.data[head * attention.d_head : (head + 1) * attention.d_head] = 0
    return attention(x)


def concat_and_project(mask, bias=True):
    def answer(attention, x, head):
        z = nn.functional.scaled_dot_product_attention(*attention.project(x)).clone()
        z = z * mask(attention, head)
        z = z.transpose(1, 2).flatten(2) @ attention.output.weight.T
        return z + attention.output.bias if bias else z

    return answer


def others(attention, head):
    return (torch.arange(attention.n_heads) != head).float()[:, None, None]


def next_head(attention, head):
    start = (head + 1) % attention.n_heads * attention.d_head
    return slice(start, start + attention.d_head)


def never_mixed(attention, x, head):
    z = nn.functional.scaled_dot_product_attention(*attention.project(x))
    return merge_heads(z * others(attention, head))


WRONG[check_without_head] = [
    (lambda attention, x, head: attention(x), "All heads are still there:"),
    (muted(["query"]), "A query of zero, or keys of zero"),
    (muted(["query"], ["weight"]), "The head still asks: with"),
    (muted(["value"], ["weight"]), "The value's bias is left:"),
    (muted(["output"]), "You cut after W_O, which"),
    (
        muted(["value"], of=lambda m, head: slice(head, None, m.n_heads)),
        "The slice is wrong: every",
    ),
    (
        muted(["value"], of=lambda m, head: slice(head * m.n_heads, (head + 1) * m.n_heads)),
        "The slice is wrong: it has",
    ),
    (
        muted(["value"], of=lambda m, head: slice((head - 1) * m.d_head, head * m.d_head)),
        "You silence the head before",
    ),
    (
        concat_and_project(lambda attention, head: 1 - others(attention, head)),
        "Only this head is left; all",
    ),
    (
        concat_and_project(others, bias=False),
        "`z + attention.output.bias` belongs here in any case",
    ),
    (
        lambda attention, x, head: attention(x) - without_values(attention, x, head),
        "`attention(x) -` is too much",
    ),
    (
        muted(["value"], of=lambda m, h: next_head(m, h)),
        "You silence the head after the right one",
    ),
    (never_mixed, "The heads are never mixed"),
    (
        in_the_module,
        "On head 1 of 2: you write into the argument `attention`. It",
    ),
]


WRONG[check_without_head] += [(muted(["key"]), "A query of zero, or keys of zero")]


@pytest.mark.parametrize("exercise", exercises(multi_head))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
