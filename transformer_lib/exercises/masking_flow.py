"""Chapter 04's exercises on what flows where: through several layers, and from the future."""

from collections.abc import Callable

import torch
from torch import Tensor

from .runner import Case, Exercise, randn

__all__ = ["IS_CAUSAL", "REACH"]

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
    """The sign of the last word's first component is added: its gradient is zero everywhere."""
    return _causal(x) + torch.sign(x[-1, 0])


# --- tests of causality, right and wrong ----------------------------------------------------------


def _changes(x: Tensor, start: int, stop: int) -> list[Tensor]:
    """The input with words start .. stop - 1 replaced, by their negatives and by noise."""
    changed = [x.clone(), x.clone()]
    changed[0][start:stop] = -x[start:stop]
    changed[1][start:stop] = torch.randn_like(x[start:stop])
    return changed


def _survives(f: Callable, x: Tensor, starts: range, same: Callable) -> bool:
    return all(
        same(f(changed)[:start], f(x)[:start])
        for start in starts
        for changed in _changes(x, start, len(x))
    )


def _near(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-5)


def _is_causal(f: Callable, x: Tensor) -> bool:
    return _survives(f, x, range(1, len(x)), torch.equal)


def _by_gradient(f: Callable, x: Tensor) -> bool:
    jacobian = torch.autograd.functional.jacobian(f, x).abs().sum(dim=(1, 3))
    return bool((jacobian.triu(1) == 0).all())


_X = randn(5, 3, seed=11)
_ALWAYS = "Your test answers {} every time"

IS_CAUSAL = Exercise(
    right=_is_causal,
    wrong={
        f"{_ALWAYS.format('True')}, whatever f does: is it the future that you change?": (
            lambda f, x: True
        ),
        f"{_ALWAYS.format('False')}: compare only the outputs *before* the first changed word, "
        "since the others may change.": lambda f, x: False,
        "You change the last word only, so that a leak among the words before it goes unseen.": (
            lambda f, x: _survives(f, x, range(len(x) - 1, len(x)), torch.equal)
        ),
        "You look at the first output only, so that a leak to a later word goes unseen.": (
            lambda f, x: _survives(f, x, range(1, 2), torch.equal)
        ),
        "You allow for rounding, and a faint leak slips through: nothing that a past output is "
        "made of has changed, so ask for bitwise equality.": lambda f, x: _survives(
            f, x, range(1, len(x)), _near
        ),
        "You look at the gradient, which is zero on both sides of a step: change the future and "
        "compare the outputs.": _by_gradient,
    },
    cases=[
        Case("causal attention", _causal, _X),
        Case("attention without a mask", _unmasked, _X),
        Case("a function in which word 0 sees word 1", _one_leak_at_the_start, _X),
        Case(
            "a function in which the last word but one sees the last", _leak_to_the_last_but_one, _X
        ),
        Case("a function with a faint leak", _faint, _X),
        Case("a function that leaks the sign of a number", _step, _X),
    ],
    praise="Right: change the future, any part of it, and the past must stay the same, bit by bit.",
)
