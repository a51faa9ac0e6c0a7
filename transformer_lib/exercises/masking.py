"""Checks for chapter 04, masks. Masks are boolean, rows are queries, True = may attend."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

# --- causal ---------------------------------------------------------------------------------------


def _lower(queries: int, keys: int, diagonal: int) -> Tensor:
    return torch.ones(queries, keys, dtype=torch.bool).tril(diagonal)


def _causal(queries: int, keys: int) -> Tensor:
    return _lower(queries, keys, keys - queries)


def _additive(queries: int, keys: int) -> Tensor:
    return torch.zeros(queries, keys).masked_fill(~_causal(queries, keys), -torch.inf)


check_causal_mask = Exercise(
    asks="`answer(queries, keys)`: a boolean mask [queries <= keys, keys]; the last sees all.",
    right=_causal,
    wrong={
        "The mask is aligned to the top left, so the last query misses the newest keys: shift "
        "the diagonal by `keys - queries`.": lambda q, k: _lower(q, k, 0),
        "This mask, of 0 and -inf, is meant to be added to the scores; return a boolean one.": (
            _additive
        ),
    },
    cases=[
        Case("5 queries and 5 keys", 5, 5),
        Case("3 new queries and 7 keys", 3, 7),
        Case("1 new query and 5 keys", 1, 5),
        Case("40 new queries and 300 keys", 40, 300, edge=True),
    ],
    axes="queries keys",
    praise="Right: each query sees the past and itself, wherever the first query stands.",
)

# --- causal and padding ---------------------------------------------------------------------------


def _combined(causal: Tensor, padding: Tensor) -> Tensor:
    return causal & padding.unsqueeze(1)


def _padding(*lengths: int, tokens: int) -> Tensor:
    return torch.arange(tokens) < torch.tensor(lengths).unsqueeze(1)


check_combined_mask = Exercise(
    asks="""`answer(causal, padding)`: both masks in one, boolean, [batch, tokens, tokens].

    causal [tokens, tokens], True = may attend; padding [batch, tokens], True = a real word.
    """,
    right=_combined,
    wrong={
        "You allow a key that is in the past or a real word, but none that is both: that is what "
        "`^` and `!=` do.": lambda causal, padding: causal ^ padding.unsqueeze(1),
        "The axis for the queries is missing: `causal & padding` works only if there are as "
        "many sentences as words, and then gives word i the padding of sentence i.": (
            lambda causal, padding: causal & padding
        ),
        "The future is hidden, but the padding is not.": lambda causal, padding: causal.expand(
            len(padding), -1, -1
        ),
    },
    cases=[
        Case("3 sentences of 5 words", _causal(5, 5), _padding(5, 2, 3, tokens=5)),
        Case("5 sentences of 5 words", _causal(5, 5), _padding(1, 5, 3, 4, 2, tokens=5)),
        Case("7 words padded on the left", _causal(7, 7), _padding(4, tokens=7).flip(1)),
        Case("a window of 3 words", _causal(6, 6).triu(-2), _padding(6, 3, tokens=6)),
    ],
    axes="batch queries keys",
    praise="Right: both masks must agree, and the padding is hidden as a key for every query.",
)

# --- rows with nothing to attend to ---------------------------------------------------------------


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    empty = ~mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)
    return filled.softmax(dim=-1).masked_fill(empty, 0.0)


def _exponentials(scores: Tensor, mask: Tensor, least: float = 0.0) -> Tensor:
    powers = scores.exp() * mask
    total = powers.sum(dim=-1, keepdim=True).clamp(min=least)
    return powers / torch.where(total > 0, total, 1.0)


def _renormalized(scores: Tensor, mask: Tensor, guarded: bool) -> Tensor:
    kept = scores.softmax(dim=-1) * mask
    total = kept.sum(dim=-1, keepdim=True)
    return kept / (torch.where(mask.any(dim=-1, keepdim=True), total, 1.0) if guarded else total)


def _filled(scores: Tensor, mask: Tensor, value: float) -> Tensor:
    return scores.masked_fill(~mask, value).softmax(dim=-1)


def _cut_off(weights: Tensor, scores: Tensor, mask: Tensor) -> bool:
    return scores.requires_grad and not weights.requires_grad


def _gradient_is_nan(weights: Tensor, scores: Tensor, mask: Tensor) -> bool:
    if not scores.requires_grad:
        return False
    goal = (weights * torch.arange(weights.shape[-1])).sum()
    return not torch.autograd.grad(goal, scores)[0].isfinite().all()


_MASK = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(3), device="cpu") > 0.5
_MASK[:, :, 1], _MASK[0, 0] = True, True
_MASK[1, 2] = False
_FOUR_AXES = torch.ones(2, 2, 3, 3, dtype=torch.bool, device="cpu").tril()
_FOUR_AXES[1, :, :, 0] = False  # filler on the left: the first row of the second sentence is empty
# e^-120 is 0 in float32, but e^-80 is not; e^150 is infinite.
_FAR_BELOW, _FAR_ABOVE = torch.where(_MASK, -80.0, 40.0), torch.where(_MASK, 150.0, 0.0)
_BELOW_A_FENCE = torch.where(_MASK, -15_000.0 - 5_000 * (torch.arange(7, device="cpu") % 2), 3.0)

check_empty_rows = Exercise(
    asks="`answer(scores, mask)`, both [..., queries, keys]: weights; empty rows are zero, no NaN.",
    right=_masked_softmax,
    wrong={
        "The empty row is NaN: all of its scores are -inf, and the softmax divides 0 by 0.": (
            lambda scores, mask: _filled(scores, mask, -torch.inf)
        ),
        "You hide after the exponential. That gives NaN in an empty row, and also where the "
        "allowed scores are far below the hidden ones: their exponentials underflow, or the "
        "hidden ones overflow.": (lambda scores, mask: _renormalized(scores, mask, guarded=False)),
        "You hide after the exponential. Where the allowed scores are far below the hidden "
        "ones, their exponentials underflow, or the hidden ones overflow, and the result is "
        "NaN: hide before it.": (lambda scores, mask: _renormalized(scores, mask, guarded=True)),
        "`exp` of a large score is infinite: subtract the row's maximum first, as `softmax` "
        "does.": (_exponentials),
        "`exp` of a large score is infinite, and of one far below 0 it is too small for your sum: "
        "subtract the row's maximum first, as `softmax` does.": (
            lambda scores, mask: _exponentials(scores, mask, least=1e-9)
        ),
        "Hidden scores are set to 0, but e^0 = 1 is a weight like any other: use -inf.": (
            lambda scores, mask: (scores * mask).softmax(dim=-1)
        ),
    },
    cases=[
        Case("3 sentences, one with an empty row", randn(3, 5, 7, seed=7), _MASK),
        Case("allowed scores far below hidden ones", _FAR_BELOW, _MASK),
        Case("allowed scores of -15,000 and -20,000", _BELOW_A_FENCE, _MASK),
        Case("allowed scores of 150", _FAR_ABOVE, _MASK),
        Case("scores that carry a gradient", randn(3, 5, 7, seed=8).requires_grad_(), _MASK),
        Case("one sentence, without a batch", randn(5, 7, seed=12), _MASK[0]),
        Case("a batch of one sentence", randn(1, 5, 7, seed=15), _MASK[:1], edge=True),
        Case("2 sentences of 3 words with 2 heads", randn(2, 2, 3, 3, seed=13), _FOUR_AXES),
    ],
    axes="batch queries keys",
    also={
        "No gradient flows from the weights back to the scores: is there a `detach`?": _cut_off,
        "The weights are right, but their gradient is NaN: a NaN or a division by zero that "
        "you replace afterward is still there in the backward pass: fix the row beforehand.": (
            _gradient_is_nan
        ),
    },
    praise="Right: empty rows are zero, forward and backward, and all others sum to 1.",
)


# --- sliding window -------------------------------------------------------------------------------


def _distance(tokens: int) -> Tensor:
    """How far back each key lies, seen from each query; negative in the future."""
    return torch.arange(tokens).unsqueeze(1) - torch.arange(tokens)


def _window(tokens: int, window: int) -> Tensor:
    back = _distance(tokens)
    return (back >= 0) & (back < window)


check_sliding_window = Exercise(
    asks="`answer(tokens, window)`: a boolean mask [tokens, tokens] of `window` keys per query.",
    right=_window,
    wrong={
        "The window reaches into the future as well as the past.": lambda n, w: (
            _distance(n).abs() < w
        ),
        "These are fixed blocks: the window must move along with the query.": lambda n, w: (
            (torch.arange(n).unsqueeze(1) // w == torch.arange(n) // w) & (_distance(n) >= 0)
        ),
        "These are fixed blocks, and each looks into its future too.": lambda n, w: (
            torch.arange(n).unsqueeze(1) // w == torch.arange(n) // w
        ),
        "The past beyond the window is shown, and the window is hidden.": lambda n, w: (
            _distance(n) >= w
        ),
        "This is the causal mask: the window is not used.": lambda n, w: _distance(n) >= 0,
    },
    cases=[
        Case("7 words, window 3", 7, 3),
        Case("11 words, window 2", 11, 2),
        Case("5 words, window 8", 5, 8),
        Case("70 words, window 33", 70, 33, edge=True),
    ],
    axes="queries keys",
    praise="Right: w keys for each query, the word itself included, and fewer at the start.",
)

# --- what reaches where ---------------------------------------------------------------------------


def _reach(mask: Tensor, source: int, layers: int) -> Tensor:
    held = torch.arange(len(mask)) == source
    for _ in range(layers):
        held = (mask & held).any(dim=1)
    return held


_LEAKY = torch.ones(7, 7, dtype=torch.bool).tril().triu(-1)  # a window of 2
_LEAKY[0, 4] = True
_SHIFT = torch.ones(4).diag(-1).bool()

check_reach = Exercise(
    asks="""`answer(mask, source, layers)`: which words hold something of the word `source`.

    mask [tokens, tokens], boolean -> boolean [tokens], after that many layers.
    """,
    right=_reach,
    wrong={
        "You follow one layer only, whatever `layers` says.": lambda mask, s, n: _reach(mask, s, 1),
    },
    cases=[
        Case("a causal mask and 1 layer", torch.ones(5, 5).tril().bool(), 2, 1),
        Case("a window of 2 with a leak, and 3 layers", _LEAKY, 3, 3),
        Case("each word sees only the one before, and 2 layers", _SHIFT, 1, 2),
    ],
    axes="tokens",
    praise="Right: in each layer, a word takes over whatever is held by the words it may look at.",
)

# --- functions that leak, and one that does not ---------------------------------------------------


def _past(x: Tensor) -> Tensor:
    return torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).tril()


def _attend(x: Tensor, mask: Tensor) -> Tensor:
    return (x @ x.T).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ x


def _causal_attention(x: Tensor) -> Tensor:
    return _attend(x, _past(x))


def _unmasked(x: Tensor) -> Tensor:
    return _attend(x, torch.ones_like(_past(x)))


def _seeing_next(word: int) -> Callable:
    """Causal attention, but for one word that sees the next one."""

    def f(x: Tensor) -> Tensor:
        mask = _past(x)
        mask[word : word + 1, word + 1 : word + 2] = True
        return _attend(x, mask)

    return f


def _faint(x: Tensor) -> Tensor:
    """The average of all words is added, at a millionth of its size."""
    return _causal_attention(x) + 1e-6 * x.mean(dim=0)


def _step(x: Tensor) -> Tensor:
    """The signs of the last word's components are added: their gradient is zero everywhere."""
    return _causal_attention(x) + torch.sign(x[-1])


def _direction(x: Tensor) -> Tensor:
    """The direction of the last word is added, without its sign: blind to -x, to 2x, to -2x."""
    return _causal_attention(x) + (x[-1] / x[-1].norm()).abs()


def _largest(x: Tensor) -> Tensor:
    """A 1 is added where the last word is largest: blind to a number added everywhere."""
    return _causal_attention(x) + (torch.arange(x.shape[1]) == x[-1].argmax())


def _norm(x: Tensor) -> Tensor:
    """Divided by the norm of all words, which is the same for their negatives."""
    return _causal_attention(x) / x.norm()


def _below_zero(x: Tensor) -> Tensor:
    """Sees of later words what is below 0, where nothing is: their zeros tell it nothing."""
    return _causal_attention(x) + torch.relu(-x).sum()


# --- tests of causality, right and wrong ----------------------------------------------------------


_BOTH = (torch.neg, torch.randn_like)


def _survives(
    f: Callable, x: Tensor, starts: range, same: Callable, changes: tuple[Callable, ...]
) -> bool:
    return all(
        same(f(torch.cat([x[:start], change(x[start:])]))[:start], f(x)[:start])
        for start in starts
        for change in changes
    )


def _near(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-5)


def _is_causal(f: Callable, x: Tensor) -> bool:
    return _survives(f, x, range(1, len(x)), torch.equal, _BOTH)


def _by_gradient(f: Callable, x: Tensor) -> bool:
    jacobian = torch.autograd.functional.jacobian(f, x).abs().sum(dim=(1, 3))
    return bool((jacobian.triu(1) == 0).all())


_X, _SEVEN, _THREE = randn(5, 3, seed=11), randn(7, 2, seed=14), randn(3, 5, seed=15)
_WIDE = randn(7, 11, seed=16)
_ALWAYS = "Your test answers {} every time"
_ONE_CHANGE = {  # sentence: all that is done to the future
    "You change the future only to its negative, so a leak that is the same for both, such as "
    "a norm, goes unseen: try random numbers too.": torch.neg,
    "You multiply the future by a number and change nothing else, so a leak of its direction "
    "goes unseen: try random numbers too.": lambda future: -2 * future,
    "You only make the future longer or shorter, so a leak of its signs or of its direction "
    "goes unseen: try negatives and random numbers.": lambda future: 2 * future,
    "You add a number to the future, the same everywhere, so a leak of what is largest goes "
    "unseen: try negatives and random numbers.": lambda future: future + 1,
    "You cut the text off and change no later word, so a leak that is silent in this text goes "
    "unseen: try negatives and random numbers.": lambda future: future[:0],
}
_PARTLY = {  # sentence: the words to begin the change at, and how to compare
    "You change only the last word, so a leak among the words before it goes unseen.": (
        lambda x: range(len(x) - 1, len(x)),
        torch.equal,
    ),
    "You look only at the first output, so a leak to a later word goes unseen.": (
        lambda x: range(1, 2),
        torch.equal,
    ),
    "You allow for rounding, and a faint leak slips through: nothing that a past output is made of "
    "has changed, so ask for bitwise equality.": (lambda x: range(1, len(x)), _near),
}


def _partly(starts: Callable, same: Callable, changes: tuple[Callable, ...]) -> Callable:
    return lambda f, x: _survives(f, x, starts(x), same, changes)


check_is_causal = Exercise(
    asks="""`answer(f, x)`: True if no output of f changes with what comes after it.

    f maps [tokens, dim] to [tokens, dim]; x [tokens, dim].
    """,
    right=_is_causal,
    wrong={
        f"{_ALWAYS.format('True')}, whatever f does: is it the future that you change?": (
            lambda f, x: True
        ),
        f"{_ALWAYS.format('False')}, for causal attention too: compare only the outputs *before* "
        "the first changed word, and change to finite numbers, since 0 times NaN or infinity is "
        "NaN.": lambda f, x: False,
        **{mistake: _partly(*how, _BOTH) for mistake, how in _PARTLY.items()},
        **{
            f"{mistake} And try random numbers too, not only the negative.": _partly(
                *how, (torch.neg,)
            )
            for mistake, how in _PARTLY.items()
        },
        **{
            mistake: _partly(lambda x: range(1, len(x)), torch.equal, (change,))
            for mistake, change in _ONE_CHANGE.items()
        },
        "A leak in steps goes unseen. The gradient is zero on both sides of a step, and a change "
        "that keeps every sign does not cross this one: try negatives, and compare the outputs.": (
            _by_gradient
        ),
    },
    cases=[
        Case("causal attention", _causal_attention, _X),
        Case("attention without a mask", _unmasked, _X),
        Case("a function in which word 0 sees word 1", _seeing_next(0), _X),
        Case("a function in which the last word but one sees the last", _seeing_next(3), _X),
        Case("a function with a faint leak", _faint, _X),
        Case("a function that leaks the signs of some numbers", _step, _X),
        Case("a function that divides by the norm of all words", _norm, _X),
        Case("causal attention of 7 words", _causal_attention, _SEVEN),
        Case("attention of 3 words without a mask", _unmasked, _THREE),
        Case("a function in which word 1 sees word 2", _seeing_next(1), _SEVEN),
        Case("a function that adds a word's direction", _direction, _SEVEN),
        Case("a function that leaks where the last word is largest", _largest, _WIDE),
        Case("a function that adds up what is below 0", _below_zero, _WIDE.abs()),
    ],
    praise="Right: change the future, any part of it, and the past must stay the same, bit by bit.",
)


# --- which mask lets the future through -----------------------------------------------------------

check_which_leaks = Choice(
    asks="Under which masks does *roses* hold something of *susan* after two layers? Letters.",
    right={"a", "c"},
    wrong={
        "a": "*gave* looks at *susan* in the first layer, and *roses* looks at *gave* in the "
        "second.",
        "b": "*to* learns of *susan*, but *roses* may not look at *to* in any layer.",
        "c": "*to* looks at *susan* in the first layer, and *roses* looks at *to* in the second.",
        "d": "*to* learns of *susan* in the first layer, *mary* in the second, and *roses* only in "
        "the third.",
        "e": "This window lets *roses* look back by one word only, so it takes *susan* three "
        "layers, by way of *mary* and *gave*.",
    },
    praise="Right: one layer for each step, and every step must be allowed in its own row.",
)

# --- attention over padded sentences, broken ------------------------------------------------------


def _padded(q: Tensor, k: Tensor, v: Tensor, hide: Callable) -> Tensor:
    return hide(q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5) @ v


def _filled_with(value: float, axis: int, *, where: bool = False) -> Callable:
    def answer(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        hidden = real.unsqueeze(axis) if where else ~real.unsqueeze(axis)
        return _padded(q, k, v, lambda scores: scores.masked_fill(hidden, value).softmax(dim=-1))

    return answer


def _zeroed_after(axis: int, *, again: bool = False) -> Callable:
    def answer(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        def hide(scores: Tensor) -> Tensor:
            kept = scores.softmax(dim=-1) * real.unsqueeze(axis)
            return kept / kept.sum(dim=-1, keepdim=True) if again else kept

        return _padded(q, k, v, hide)

    return answer


def _as_query_too(value: float) -> Callable:
    def answer(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        hidden = ~(real.unsqueeze(1) & real.unsqueeze(2))
        return _padded(q, k, v, lambda scores: scores.masked_fill(hidden, value).softmax(dim=-1))

    return answer


def _filler_is_blank(result: Tensor, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> bool:
    return not real.all() and not result[~real].any()


def _sentences(batch: int, s: int, dims: tuple[int, int], seed: int) -> tuple[Tensor, ...]:
    q, k = randn(2, batch, s, dims[0], seed=seed)
    return q, k, randn(batch, s, dims[1], seed=seed + 1)


_LOUD = _sentences(2, 4, (3, 2), seed=25)
_LOUD[0][:], _LOUD[1][:] = 1.0, 0.0
_LOUD[1][1, 2:] = 100.0  # the filler's scores lie so far above that e^-difference is 0

check_padded_attention = Repair(
    asks="""`answer(q, k, v, real)`: scaled attention that never looks at filler.

    q and k [batch, tokens, d_k], v [batch, tokens, d_v]; real [batch, tokens], True = no filler.
    """,
    broken=_zeroed_after(2),
    unchanged="Give one sentence its filler, then change the filler: its own rows stay zero, and "
    "the rows of the real words change.",
    right=_filled_with(-torch.inf, 1),
    wrong={
        "You hide the filler as a key, as you should, and as a query too, with a large negative "
        "number: the filler gives even weights to all. It asks like any other word, so leave its "
        "rows alone.": _as_query_too(-1e9),
        "The axis is right, and rows sum to 1 again. But where the filler's scores are the "
        "largest by far, nothing is left to divide by: hide before the softmax.": _zeroed_after(
            1, again=True
        ),
        "Hidden scores are 0, and e^0 = 1 is a weight like any other: use -inf.": _filled_with(
            0.0, 1
        ),
    },
    cases=[
        Case(
            "2 sentences, one of them shorter",
            *_sentences(2, 5, (3, 7), seed=21),
            _padding(5, 2, tokens=5),
        ),
        Case(
            "3 sentences with filler on the left",
            *_sentences(3, 7, (5, 2), seed=23),
            _padding(4, 7, 1, tokens=7).flip(1),
        ),
        Case(
            "sentences without filler",
            *_sentences(3, 2, (7, 5), seed=27),
            _padding(2, 2, 2, tokens=2),
        ),
        Case("filler with very large scores", *_LOUD, _padding(4, 2, tokens=4)),
        Case(
            "a batch of one sentence",
            *(randn(1, 5, d, seed=60 + d) for d in (3, 3, 2)),
            _padding(3, tokens=5),
            edge=True,
        ),
    ],
    axes="batch tokens d_v",
    also={
        "The rows of filler are zero: you blank them. Filler asks like any other word, so leave "
        "its rows alone, and hide it only as a key.": _filler_is_blank,
    },
    praise="Right: hidden as a key, before the softmax, so no real word hears of the filler.",
)
