"""Checks for chapter 05, many heads: spotting, splitting, mending, counting, designing."""

import torch
from torch import Tensor

from transformer_lib.attention import MultiHeadAttention, merge_heads, split_heads
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import in_one_dtype
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn


def _split(x: Tensor, n_heads: int) -> Tensor:
    """[batch, tokens, width] -> [batch, heads, tokens, d_head]."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _merge(z: Tensor) -> Tensor:
    return z.transpose(1, 2).flatten(2)


# --- which of these cut x into heads? -------------------------------------------------------------

check_right_splits = Choice(
    asks="Which of the five lines cut x [b, s, d] into heads? All letters that belong.",
    right={"b", "c", "e"},
    wrong={
        "a": "the numbers stay in the order in which they lie in memory, so a head gets a few "
        "tokens, all of their numbers, cut in pieces.",
        "d": "head n gets every h-th component, starting with the n-th; a head is a block of "
        "neighbors.",
        "b": "the last axis is cut into blocks, and then the tokens and the heads change places.",
        "c": "each chunk is a block of columns for all tokens, and the blocks are stacked.",
        "e": "here the components come first and are cut into blocks; a second transpose brings "
        "the tokens back.",
    },
    praise="Right: in these three a head is a block of neighboring components of every token.",
)


# --- split the result of one fused projection -----------------------------------------------------


def _split_fused(qkv, n_heads):
    return tuple(_split(part, n_heads) for part in qkv.chunk(3, dim=-1))


check_split_fused = Exercise(
    asks="""`answer(qkv, n_heads)`: queries, keys and values, each with an axis for the heads.

    qkv [batch, tokens, 3 d_model] -> three of [batch, heads, tokens, d_head].
    """,
    right=_split_fused,
    cases=[
        Case("2 heads of width 7", randn(3, 5, 3 * 14, seed=0), 2),
        Case("5 heads of width 3", randn(4, 11, 3 * 15, seed=1), 5),
        Case("a batch of one sentence", randn(1, 5, 3 * 14, seed=50), 2, edge=True),
    ],
    axes=["batch heads tokens d_head"] * 3,
    praise="Right: three pieces, and in each a head is an axis of its own, beside the batch.",
)


# --- multi-head attention, to be mended -----------------------------------------------------------


def _multi_head(
    x, W_Q, W_K, W_V, W_O, n_heads, *, split=_split, merge=_merge, scale=None, softmax_axis=-1
):
    q, k, v = (split(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return merge(scores.softmax(softmax_axis) @ v) @ W_O


def _right_multi_head(x, W_Q, W_K, W_V, W_O, n_heads):
    return _multi_head(x, W_Q, W_K, W_V, W_O, n_heads)


def _merge_untransposed(z):
    batch, n_heads, tokens, d_head = z.shape
    return z.reshape(batch, tokens, n_heads * d_head)


def _weights(width: int, seed: int) -> list[Tensor]:
    return list(randn(4, width, width, seed=seed))


def _broken_multi_head(x, W_Q, W_K, W_V, W_O, n_heads):
    """As the reader gets it: two things are wrong, and with one head neither shows."""
    return _multi_head(
        x, W_Q, W_K, W_V, W_O, n_heads, merge=_merge_untransposed, scale=W_Q.shape[1] ** -0.5
    )


check_multi_head = Repair(
    asks="`answer(x, W_Q, W_K, W_V, W_O, n_heads)`: [batch, tokens, d_model] -> the same shape.",
    broken=_broken_multi_head,
    unchanged="Its author tried one head only. Write the shapes beside each line for two.",
    right=_right_multi_head,
    cases=[
        Case("2 heads of width 3", randn(3, 5, 6, seed=2), *_weights(6, seed=3), 2),
        Case("1 head of width 7", randn(2, 11, 7, seed=40), *_weights(7, seed=41), 1),
        Case("5 heads of width 3", randn(4, 7, 15, seed=4), *_weights(15, seed=5), 5),
        Case("one sentence", randn(1, 5, 6, seed=51), *_weights(6, seed=52), 2, edge=True),
    ],
    axes="batch tokens d_model",
    praise="Right: one product for all heads, one softmax for each.",
)


# --- count the parameters -------------------------------------------------------------------------


def _count(d_model, n_heads, d_head, bias):
    width = n_heads * d_head
    return 4 * d_model * width + (3 * width + d_model if bias else 0)


check_count = Exercise(
    asks="`answer(d_model, n_heads, d_head, bias)`: the number of parameters of the four layers.",
    right=_count,
    wrong={
        "W_O is not counted: it takes the heads' results, n_heads · d_head wide, back to "
        "d_model.": lambda d_model, n_heads, d_head, bias: (
            3 * (d_model + bool(bias)) * n_heads * d_head
        ),
        "The biases are not counted.": lambda d_model, n_heads, d_head, bias: (
            4 * d_model * n_heads * d_head
        ),
        "You count every head as d_model wide. A head is d_head wide, so narrow heads cost "
        "4·d_model² together, however many there are.": lambda d_model, n_heads, d_head, bias: (
            _count(d_model, n_heads, d_model, bias)
        ),
        "You count all heads as narrow: where n_heads · d_head is not d_model, the matrices are "
        "not square.": lambda d_model, n_heads, d_head, bias: _count(d_model, 1, d_model, bias),
        "You count one head: multiply its columns by n_heads.": (
            lambda d_model, n_heads, d_head, bias: _count(d_model, 1, d_head, bias)
        ),
        "The bias of W_O is as wide as the output, d_model, not n_heads · d_head.": (
            lambda d_model, n_heads, d_head, bias: 4 * (d_model + bool(bias)) * n_heads * d_head
        ),
    },
    cases=[
        Case("narrow heads without biases", 12, 3, 4, False),
        Case("narrow heads with biases", 12, 3, 4, True),
        Case("wide heads with biases", 10, 2, 10, True),
        Case("3 heads of width 5 in 10 dimensions, with biases", 10, 3, 5, True),
        Case("heads of width 5", 14, 7, 5, False),
    ],
    praise="Right: four matrices of d_model × (n_heads · d_head), whatever their order.",
)


# --- two heads that find giver and receiver, whichever verb ---------------------------------------

NAMES = ("mary", "susan", "ravi")  # components 0, 1, 2; then 3 asks, 4 turn, 5 early
VERBS = {"gave": 1.0, "got": -1.0}  # component 4 of the verb: does the giver come first?


def gift_sentence(giver: str, receiver: str, verb: str = "gave") -> Tensor:
    """*giver gave roses to receiver*, or *receiver got roses from giver*, as a tensor [5, 6].

    The components are mary, susan, ravi, asks, turn and early. Only the verb asks; its turn is 1
    for *gave* and -1 for *got*. Early runs from 1, the first word, to -1, the last.

    Raises ValueError for a name that is not among mary, susan and ravi, and for another verb.

    >>> gift_sentence("mary", "ravi")[0]
    tensor([1., 0., 0., 0., 0., 1.])
    >>> gift_sentence("mary", "ravi", "got")[0]
    tensor([0., 0., 1., 0., 0., 1.])
    """
    for name in (giver, receiver):
        if name not in NAMES:
            raise ValueError(f"there is no {name!r} here: choose from {', '.join(NAMES)}")
    if verb not in VERBS:
        raise ValueError(f"there is no verb {verb!r} here: choose from {', '.join(VERBS)}")
    x = torch.zeros(5, 6)
    people = (giver, receiver) if verb == "gave" else (receiver, giver)
    for token, name in zip((0, 4), people, strict=True):
        x[token, NAMES.index(name)] = 1.0
    x[1, 3], x[1, 4] = 1.0, VERBS[verb]
    x[:, 5] = torch.linspace(1, -1, 5)
    return x


def _designed():
    W_Q, W_K, W_V = torch.zeros(6, 6), torch.zeros(6, 6), torch.zeros(6, 6)
    W_Q[3, 0] = W_Q[3, 3] = 9.0
    W_Q[4, 1], W_Q[4, 4] = 9.0, -9.0
    W_K[:3, 0] = W_K[:3, 3] = W_K[5, 1] = W_K[5, 4] = 1.0
    W_V[:3, :3] = W_V[:3, 3:] = torch.eye(3)
    return W_Q, W_K, W_V, torch.eye(6)


def _verb_in_four_sentences(answer, one, other):
    """The output of the verb, [4, 6]: *gave* with either giver, then *got* with either giver."""
    *projections, W_O = in_one_dtype(answer)
    x = torch.stack([gift_sentence(*pair, verb) for verb, pair in _sentences(one, other)])
    q, k, v = (split_heads(x @ W, 2) for W in projections)
    weights = (q @ k.mT / 3**0.5).softmax(-1)
    return (merge_heads(weights @ v) @ W_O)[:, 1]


def _sentences(one, other) -> list[tuple[str, tuple[str, str]]]:
    return [(verb, pair) for verb in VERBS for pair in ((one, other), (other, one))]


def _found(first, second, *, turned=False):
    """The result [4, 6] of heads that find the given mixtures (of giver, of receiver).

    `turned`: with *got* they take the one for the other.
    """

    def result(one, other):
        one_hot = dict(zip(NAMES, torch.eye(3), strict=True))
        rows = []
        for verb, pair in _sentences(one, other):
            giver, receiver = (one_hot[name] for name in pair)
            if turned and verb == "got":
                giver, receiver = receiver, giver
            rows.append(torch.cat([g * giver + r * receiver for g, r in (first, second)]))
        return torch.stack(rows)

    return result


def _blind_to_order(result, one, other) -> bool:
    return torch.allclose(result[0], result[1], atol=1e-3)


def _too_soft(result, one, other) -> tuple | None:
    halves = result.unflatten(1, (2, 3))
    pair = [NAMES.index(one), NAMES.index(other)]
    share = halves.amax(-1).amin().item()
    leads = halves.argmax(-1).tolist() == [pair, pair[::-1]] * 2
    return (share,) if leads and 0.2 <= share < 0.9 else None


def _shunned(result, one, other) -> bool:
    return bool(result.unflatten(1, (2, 3)).sum(-1).amin() < 0.1)


def _one_softmax(answer) -> bool:
    W_Q, W_K, *_ = in_one_dtype(answer)
    scores = [W_Q[:, part] @ W_K[:, part].T for part in (slice(3), slice(3, 6))]
    return torch.allclose(*scores, atol=1e-4)


_FORM = Exercise(
    right=_designed,
    call=in_one_dtype,
    unique=False,
    cases=[Case("")],
    axes=["d_model heads"] * 3 + ["heads d_model"],
)
check_giver_and_receiver = Exercise(
    design=True,
    asks="`answer()`: W_Q, W_K, W_V, W_O, each [6, 6], for two heads of width 3 (x @ W).",
    right=_found((1, 0), (0, 1)),
    before=_FORM,
    call=_verb_in_four_sentences,
    wrong={
        "Both heads average giver and receiver: without the place in the keys their scores are "
        "equal.": _found((0.5, 0.5), (0.5, 0.5)),
        "Both heads find the giver: the second one needs the opposite sign for the place.": _found(
            (1, 0), (1, 0)
        ),
        "Both heads find the receiver: the first one needs the opposite sign for the place.": (
            _found((0, 1), (0, 1))
        ),
        "Giver and receiver are swapped.": _found((0, 1), (1, 0)),
        "Right for *gave*, but with *got* the receiver comes first: let the sign of the place come "
        "from the verb's turn, component 4.": _found((1, 0), (0, 1), turned=True),
        "Right for *got*, but with *gave* the giver comes first: let the sign of the place come "
        "from the verb's turn, component 4.": _found((0, 1), (1, 0), turned=True),
        "Both heads find the person who comes first, with either verb: two questions are needed, "
        "and each has to know the verb's turn, component 4.": _found((1, 0), (1, 0), turned=True),
        "Both heads find the person who comes last, with either verb: two questions are needed, "
        "and each has to know the verb's turn, component 4.": _found((0, 1), (0, 1), turned=True),
        "Nothing arrives from the second head: does W_V fill its columns, and do the "
        "last three rows of W_O carry the receiver on?": _found((1, 0), (0, 0)),
        "Nothing arrives from the first head: does W_V fill its columns, and do the "
        "first three rows of W_O carry the giver on?": _found((0, 0), (0, 1)),
        "W_O adds the two heads up, so nobody can tell who is who any more.": _found(
            (1, 1), (0, 0)
        ),
        "W_O writes the sum of both heads into both halves.": _found((1, 1), (1, 1)),
        "The output is zero: do the values, W_V, carry the names?": _found((0, 0), (0, 0)),
    },
    # All six orders: one softmax can be tuned to four of them, and never to all.
    cases=[
        Case("mary and susan", "mary", "susan"),
        Case("ravi and mary", "ravi", "mary"),
        Case("susan and ravi", "susan", "ravi"),
    ],
    about={
        "Your two heads ask the same question: W_Q W_Kᵀ is the same in both, so they are one "
        "softmax, and no single one tells giver from receiver for all three people.": _one_softmax,
    },
    axes="sentences d_model",
    also={
        "The right person leads in both heads, but with a share of only {:.2f}: the scores lie "
        "too close together. Make the query longer.": _too_soft,
        "The output is the same in both orders: no score depends on the place, component 5. Let "
        "W_K pass it on, and let the query weigh it.": _blind_to_order,
        "In some sentence a head gives people next to nothing: other words have higher scores. "
        "Let its query ask for people with either verb.": _shunned,
    },
    tolerance=(0.0, 0.1),
    praise="Right: two questions, two softmaxes, and both people arrive whole.",
)


# --- switch a head off ----------------------------------------------------------------------------


def _slice(attention, head) -> slice:
    return slice(head * attention.d_head, (head + 1) * attention.d_head)


def _heads(attention: MultiHeadAttention, x: Tensor, change=None) -> Tensor:
    """The heads' results, [batch, tokens, heads · d_head], after `change(q, k, v)` in place."""
    q, k, v = attention.project(x)
    if change:
        change(q, k, v)
    return merge_heads((q @ k.mT * attention.d_head**-0.5).softmax(-1) @ v)


def _silenced(attention, x, where) -> Tensor:
    z = _heads(attention, x)
    z[..., where] = 0
    return attention.output(z)


def _with_projections(change):
    """The output after `change(attention, head, q, k, v)` has written into the projections."""

    def wrong(attention, x, head):
        return attention.output(_heads(attention, x, lambda *qkv: change(attention, head, *qkv)))

    return wrong


def _zero(number: int):
    def change(attention, head, *qkv):
        qkv[number][:, head] = 0

    return change


def _query_is_bias(attention, head, q, k, v):
    q[:, head] = attention.query.bias[_slice(attention, head)]


def _value_is_bias(attention, head, q, k, v):
    v[:, head] = attention.value.bias[_slice(attention, head)]


def _after_output(attention, x, head):
    y = attention.output(_heads(attention, x))
    y[..., _slice(attention, head)] = 0
    return y


def _only_this(attention, x, head):
    z, where = _heads(attention, x), _slice(attention, head)
    kept = torch.zeros_like(z)
    kept[..., where] = z[..., where]
    return attention.output(kept)


def _without_mixing(attention, x, head):
    z = _heads(attention, x)
    z[..., _slice(attention, head)] = 0
    return z


def _module(d_model: int, n_heads: int, seed: int) -> MultiHeadAttention:
    with torch.random.fork_rng(devices=[]):  # the layers draw numbers; leave the reader's alone
        module = MultiHeadAttention(d_model, n_heads).requires_grad_(False)
    for n, parameter in enumerate(module.parameters()):
        parameter.copy_(0.7 * randn(*parameter.shape, seed=seed + n))
    return module


check_without_head = Exercise(
    asks="`answer(attention, x, head)`: the output [batch, tokens, d_model] without that head.",
    right=lambda attention, x, head: _silenced(attention, x, _slice(attention, head)),
    wrong={
        "All heads are still there: the output is unchanged.": (
            lambda attention, x, head: attention(x)
        ),
        "A query of zero, or keys of zero, do not switch a head off: all its scores are 0, so it "
        "attends to all keys alike and returns the average of their values.": _with_projections(
            _zero(0)
        ),
        "The head still asks: with W_Q at zero its query is the bias. And even a query of zero "
        "would attend to all keys alike.": _with_projections(_query_is_bias),
        "The value's bias is left: weights that sum to one let it through whole.": (
            _with_projections(_value_is_bias)
        ),
        "You cut after W_O, which has already mixed the heads: no slice of the output belongs "
        "to one head.": _after_output,
        "The slice is wrong: every n_heads-th component is zero, but a head holds d_head "
        "neighbors.": lambda attention, x, head: _silenced(
            attention, x, slice(head, None, attention.n_heads)
        ),
        "The slice is wrong: it has n_heads components, but a head has d_head.": (
            lambda attention, x, head: _silenced(
                attention, x, slice(head * attention.n_heads, (head + 1) * attention.n_heads)
            )
        ),
        "You silence the head before the right one: heads are counted from 0.": (
            lambda attention, x, head: _silenced(attention, x, _slice(attention, head - 1))
        ),
        "You silence the head after the right one: heads are counted from 0.": (
            lambda attention, x, head: _silenced(
                attention, x, _slice(attention, (head + 1) % attention.n_heads)
            )
        ),
        "Only this head is left; all others are silent.": _only_this,
        "The heads are never mixed: put what is left through `attention.output`.": _without_mixing,
    },
    cases=[
        Case("head 1 of 2", _module(6, 2, seed=10), randn(3, 5, 6, seed=6), 1),
        Case("head 2 of 5", _module(15, 5, seed=20), randn(2, 7, 15, seed=7), 2),
        Case("head 0 of 3", _module(6, 3, seed=30), randn(1, 3, 6, seed=8), 0),
    ],
    axes="batch tokens d_model",
    praise="Right: a silent head adds nothing to the sum that W_O makes.",
)
