"""Chapter 04's exercises on windows and on what flows where: through layers, from the future."""

from collections.abc import Callable

import torch
from torch import Tensor

from .runner import Case, Exercise, randn

__all__ = ["INVERTED", "IS_CAUSAL", "REACH", "SLIDING_WINDOW"]

INVERTED = (
    "Your mask is inverted: True marks what is hidden, but here, as in "
    "`F.scaled_dot_product_attention`, True = may attend."
)

# --- sliding window -------------------------------------------------------------------------------


def _distance(tokens: int) -> Tensor:
    """How far back each key lies, seen from each query; negative in the future."""
    return torch.arange(tokens).unsqueeze(1) - torch.arange(tokens)


def _window(tokens: int, window: int) -> Tensor:
    back = _distance(tokens)
    return (back >= 0) & (back < window)


SLIDING_WINDOW = Exercise(
    right=_window,
    wrong={
        "Each query sees one key too many: a window of w is the word itself and w - 1 before it.": (
            lambda n, w: _window(n, w + 1)
        ),
        "Each query sees one key too few: the word itself is one of the w.": lambda n, w: _window(
            n, w - 1
        ),
        "The window reaches into the future as well as the past.": lambda n, w: (
            _distance(n).abs() < w
        ),
        "The window lies in the future: it begins at the word and goes forward.": lambda n, w: (
            _window(n, w).T
        ),
        "These are fixed blocks: the window must move along with the query.": lambda n, w: (
            (torch.arange(n).unsqueeze(1) // w == torch.arange(n) // w) & (_distance(n) >= 0)
        ),
        "These are fixed blocks, and each looks into its future, too.": lambda n, w: (
            torch.arange(n).unsqueeze(1) // w == torch.arange(n) // w
        ),
        "The past beyond the window is shown, and the window is hidden.": lambda n, w: (
            _distance(n) >= w
        ),
        "This is the causal mask: the window is not used.": lambda n, w: _distance(n) >= 0,
        INVERTED: lambda n, w: ~_window(n, w),
    },
    cases=[Case("7 words, window 3", 7, 3), Case("11 words, window 2", 11, 2)],
    axes="queries keys",
    praise="Right: w keys for each query, the word itself included, and fewer at the start.",
)

# --- what reaches where ---------------------------------------------------------------------------


def _reach(mask: Tensor, source: int, layers: int) -> Tensor:
    held = torch.arange(len(mask)) == source
    for _ in range(layers):
        held = (mask & held).any(dim=1)
    return held


def _everywhere_so_far(mask: Tensor, source: int, layers: int) -> Tensor:
    return _reach(mask | torch.eye(len(mask), dtype=torch.bool), source, layers)


_LEAKY = torch.ones(7, 7, dtype=torch.bool).tril().triu(-1)  # a window of 2
_LEAKY[0, 4] = True
_SHIFT = torch.ones(4).diag(-1).bool()

REACH = Exercise(
    right=_reach,
    wrong={
        "You follow one layer only, whatever `layers` says.": lambda mask, s, n: _reach(mask, s, 1),
        "You follow one layer too many.": lambda mask, s, n: _reach(mask, s, n + 1),
        "You follow one layer too few.": lambda mask, s, n: _reach(mask, s, n - 1),
        "You go backward, to what the source can look at: start from its column, not its row.": (
            lambda mask, s, n: _reach(mask.T, s, n)
        ),
        "You keep every position that was ever reached; a word that may not look at itself loses "
        "what it had.": _everywhere_so_far,
    },
    cases=[
        Case("a causal mask and 1 layer", torch.ones(5, 5).tril().bool(), 2, 1),
        Case("a window of 2 with a leak, and 3 layers", _LEAKY, 3, 3),
        Case("each word sees only the one before, and 2 layers", _SHIFT, 1, 2),
    ],
    axes="tokens",
    praise="Right: in each layer, a word takes over what the words it may look at hold.",
)

# --- functions that leak, and one that does not ---------------------------------------------------


def _past(x: Tensor) -> Tensor:
    return torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).tril()


def _attend(x: Tensor, mask: Tensor) -> Tensor:
    return (x @ x.T).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ x


def _causal(x: Tensor) -> Tensor:
    return _attend(x, _past(x))


def _unmasked(x: Tensor) -> Tensor:
    return _attend(x, torch.ones_like(_past(x)))


def _one_leak_at_the_start(x: Tensor) -> Tensor:
    mask = _past(x)
    mask[0, 1] = True
    return _attend(x, mask)


def _leak_to_the_last_but_one(x: Tensor) -> Tensor:
    mask = _past(x)
    mask[-2, -1] = True
    return _attend(x, mask)


def _faint(x: Tensor) -> Tensor:
    """The average of all words is added, at a millionth of its size."""
    return _causal(x) + 1e-6 * x.mean(dim=0)


def _step(x: Tensor) -> Tensor:
    """The signs of the last word's components are added: their gradient is zero everywhere."""
    return _causal(x) + torch.sign(x[-1])


def _norm(x: Tensor) -> Tensor:
    """Divided by the norm of all words, which is the same for their negatives."""
    return _causal(x) / x.norm()


# --- tests of causality, right and wrong ----------------------------------------------------------


def _negative(future: Tensor) -> Tensor:
    return -future


_BOTH = (_negative, torch.randn_like)


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


_X = randn(5, 3, seed=11)
_ALWAYS = "Your test answers {} every time"
_NEGATIVES = (
    "You change the future to its negative alone, so that a leak which is the same for both, such "
    "as a norm, goes unseen: try random numbers, too."
)
_PARTLY = {  # sentence: the words to begin the change at, and how to compare
    "You change the last word only, so that a leak among the words before it goes unseen.": (
        lambda x: range(len(x) - 1, len(x)),
        torch.equal,
    ),
    "You look at the first output only, so that a leak to a later word goes unseen.": (
        lambda x: range(1, 2),
        torch.equal,
    ),
    "You allow for rounding, and a faint leak slips through: nothing that a past output is made of "
    "has changed, so ask for bitwise equality.": (lambda x: range(1, len(x)), _near),
}


def _partly(starts: Callable, same: Callable, changes: tuple[Callable, ...]) -> Callable:
    return lambda f, x: _survives(f, x, starts(x), same, changes)


IS_CAUSAL = Exercise(
    right=_is_causal,
    wrong={
        f"{_ALWAYS.format('True')}, whatever f does: is it the future that you change?": (
            lambda f, x: True
        ),
        f"{_ALWAYS.format('False')}, for causal attention, too: compare only the outputs *before* "
        "the first changed word, and change to finite numbers, since 0 times NaN or infinity is "
        "NaN.": lambda f, x: False,
        **{mistake: _partly(*how, _BOTH) for mistake, how in _PARTLY.items()},
        **{
            f"{mistake} And try random numbers, too, not the negative alone.": _partly(
                *how, (_negative,)
            )
            for mistake, how in _PARTLY.items()
        },
        _NEGATIVES: lambda f, x: _survives(f, x, range(1, len(x)), torch.equal, (_negative,)),
        "A leak in steps goes unseen. The gradient is zero on both sides of a step, and a change "
        "that keeps every sign does not cross this one: try negatives, and compare the outputs.": (
            _by_gradient
        ),
    },
    cases=[
        Case("causal attention", _causal, _X),
        Case("attention without a mask", _unmasked, _X),
        Case("a function in which word 0 sees word 1", _one_leak_at_the_start, _X),
        Case(
            "a function in which the last word but one sees the last", _leak_to_the_last_but_one, _X
        ),
        Case("a function with a faint leak", _faint, _X),
        Case("a function that leaks the signs of some numbers", _step, _X),
        Case("a function that divides by the norm of all words", _norm, _X),
    ],
    praise="Right: change the future, any part of it, and the past must stay the same, bit by bit.",
)
