"""Exercises 4 and 5 of chapter 05: right answers pass, each wrong one gets its own diagnosis."""

import copy

import pytest
import torch
from torch import nn

from transformer_lib.exercises.multi_head import (
    check_giver_and_receiver,
    check_without_head,
    gift_sentence,
)

# --- 4: giver and receiver ----------------------------------------------------------------------


def design(*, length=9.0, signs=(1, -1), output=None, values=1.0, place=1.0):
    """Two heads of width 3; `signs`: which way each weighs the place."""

    def answer():
        W_Q, W_K, W_V = torch.zeros(6, 6), torch.zeros(6, 6), torch.zeros(6, 6)
        for head, sign in enumerate(signs):
            at = 3 * head
            W_K[3, at + 1], W_K[5, at] = 1, place
            W_Q[4, at + 1], W_Q[4, at] = length, sign * length
            W_V[[0, 1, 2], [at, at + 1, at + 2]] = values
        return W_Q, W_K, W_V, torch.eye(6) if output is None else output

    return answer


def one_query_two_keys():
    """The sign of the place stands in the keys, and the names come out through W_O."""
    W_Q, W_K, W_V, W_O = torch.zeros(4, 6, 6).unbind(0)
    W_Q[4, 2], W_Q[4, 5] = 20.0, 20.0
    W_K[3, 2] = W_K[3, 5] = 1.0
    W_K[5, 2], W_K[5, 5] = 0.6, -0.6
    mix = torch.tensor([[2.0, 0, 1], [0, 1, 0], [0, 1, 2]])
    W_V[:3, :3] = W_V[:3, 3:] = mix
    W_O[:3, :3] = W_O[3:, 3:] = mix.inverse()
    return [W_Q, W_K, W_V, W_O]


def of_dtype(dtype):
    return lambda: [matrix.to(dtype) for matrix in design()()]


@pytest.mark.parametrize(
    "answer",
    [
        design(),
        one_query_two_keys,
        of_dtype(torch.float64),
        of_dtype(torch.int64),
        design()(),
    ],
)
def test_giver_and_receiver_right(answer):
    assert check_giver_and_receiver(answer).passed


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
    W_Q[4, 2], W_Q[4, 5] = 20.0, 20.0
    W_K[:3, 2], W_K[:3, 5] = torch.tensor([2.0, 1, 0]), torch.tensor([0.0, 2, 1])
    return W_Q, W_K, W_V, W_O


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            design(place=0.0),
            "Both heads average giver and receiver: without the place in the keys their scores "
            "are equal.",
        ),
        (
            design(signs=(1, 1)),
            "Both heads find the giver: the second one needs the opposite sign for the place.",
        ),
        (
            design(signs=(-1, -1)),
            "Both heads find the receiver: the first one needs the opposite sign for the place.",
        ),
        (design(signs=(-1, 1)), "Giver and receiver are exchanged."),
        (
            design(output=keep(1, 0)),
            "W_O drops the second head: its last three rows must carry the receiver on.",
        ),
        (
            design(output=keep(0, 1)),
            "W_O drops the first head: its first three rows must carry the giver on.",
        ),
        (
            design(output=keep(1, 0, onto_first=True)),
            "W_O adds the two heads up, so that nobody can tell any more who is who.",
        ),
        (
            design(output=torch.eye(3).repeat(2, 2)),
            "W_O writes the sum of both heads into both halves.",
        ),
        (design(values=0.0), "The output is zero: do the values, W_V, carry the names?"),
        (
            by_name,
            "On mary and susan: the output is the same in both orders: no score depends on the "
            "place, component 5. Let W_K pass it on, and let the query weigh it.",
        ),
        (
            design(length=2.0),
            "On mary and susan: the right person leads in both heads, but with a share of only "
            "0.70: the scores lie too close together. Make the query longer.",
        ),
        (
            lambda: torch.zeros(6, 6),
            "Your result is a tensor of shape (6, 6); a tuple of 4 is asked for.",
        ),
        (
            lambda: [torch.zeros(6, 3)] * 4,
            "Item 0 of your result has the shape (6, 3); right is (6, 6) = (d_model, heads).",
        ),
    ],
)
def test_giver_and_receiver_wrong(answer, diagnosis):
    verdict = check_giver_and_receiver(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


def test_the_sentences_carry_names_place_and_question():
    x = gift_sentence("susan", "ravi")
    assert x[0].tolist() == [0, 1, 0, 1, 0, 1]
    assert x[4].tolist() == [0, 0, 1, 1, 0, -1]
    assert x[1].tolist() == [0, 0, 0, 0, 1, 0.5]
    with pytest.raises(ValueError, match="there is no 'anna' here"):
        gift_sentence("anna", "ravi")


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


@pytest.mark.parametrize("answer", [without_values, without_columns])
def test_without_head_right(answer):
    assert check_without_head(answer).passed


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


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda attention, x, head: attention(x),
            "All heads are still there: the output is unchanged.",
        ),
        (
            muted(["query"]),
            "A query of zero does not switch a head off: all its scores are 0, so it attends to "
            "all keys alike and returns their average.",
        ),
        (
            muted(["query"], ["weight"]),
            "The head still asks: with W_Q at zero its query is the bias. And even a query of zero "
            "would attend to all keys alike.",
        ),
        (
            muted(["value"], ["weight"]),
            "The value's bias is left: weights that sum to one let it through whole.",
        ),
        (
            muted(["output"]),
            "You cut after W_O, which has mixed the heads already: there is no slice of the output "
            "that belongs to one head.",
        ),
        (
            muted(["value"], of=lambda m, head: slice(head, None, m.n_heads)),
            "The slice is wrong: every n_heads-th component is zero, but a head holds d_head "
            "neighbors.",
        ),
        (
            muted(["value"], of=lambda m, head: slice(head * m.n_heads, (head + 1) * m.n_heads)),
            "The slice is wrong: it has n_heads components, but a head has d_head.",
        ),
        (
            muted(["value"], of=lambda m, head: slice((head - 1) * m.d_head, head * m.d_head)),
            "You silence the head before the one asked for: heads are counted from 0.",
        ),
        (
            concat_and_project(lambda attention, head: 1 - others(attention, head)),
            "Only this head is left; all others are silent.",
        ),
        (
            concat_and_project(others, bias=False),
            "The bias of W_O is lost along with the head.",
        ),
        (
            in_the_module,
            "On head 1 of 2: you write into the argument `attention`, which is the caller's: make "
            "a new one.",
        ),
    ],
)
def test_without_head_wrong(answer, diagnosis):
    verdict = check_without_head(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


def test_keys_of_zero_make_a_head_uniform():
    verdict = check_without_head(muted(["key"]))
    assert verdict.diagnosis.startswith(("Keys of zero", "A query of zero"))
