"""Would an answer be right if the softmax of the right computation were another one?

The right computation is run again, and each softmax that it calls is replaced: by one of scores
that are divided once more, that have lost their signs, that are cosines; by a sigmoid; by nothing.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from transformer_lib.exercises.engine.calling import Outcome
from transformer_lib.exercises.engine.comparing import close
from transformer_lib.exercises.engine.factors import sizes
from transformer_lib.exercises.engine.supposing import first_that_fits, wrong_first

Softmax = Callable[[Tensor, int], Tensor]  # scores and the axis of the keys -> weights

_SOFTMAXES = (torch.softmax, F.softmax, Tensor.softmax, torch.special.softmax)


class _Rewired(TorchFunctionMode):
    """While this is active, `softmax` is called in place of PyTorch's; `calls` counts how often."""

    def __init__(self, softmax: Softmax) -> None:
        super().__init__()
        self.softmax, self.calls = softmax, 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in _SOFTMAXES:
            return func(*args, **kwargs)
        self.calls += 1
        return self.softmax(args[0], kwargs["dim"] if "dim" in kwargs else args[1])


def _cosines(scores: Tensor, axis: int) -> Tensor:
    lengths = scores.diagonal(dim1=-2, dim2=-1).sqrt()
    return (scores / lengths.unsqueeze(-1) / lengths.unsqueeze(-2)).softmax(axis)


def _distances(sign: int) -> Softmax:
    def softmax(scores: Tensor, axis: int) -> Tensor:
        squares = scores.diagonal(dim1=-2, dim2=-1)
        apart = squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * scores
        return (sign * apart.clamp_min(0).sqrt()).softmax(axis)

    return softmax


_OTHERS: dict[str, Softmax] = {
    "the scores had lost their signs (`abs`) before the softmax": lambda s, a: s.abs().softmax(a),
    "the scores were squared before the softmax": lambda s, a: (s**2).softmax(a),
    "the scores had the opposite sign before the softmax": lambda s, a: (-s).softmax(a),
    "negative scores were 0 before the softmax": lambda s, a: s.clamp_min(0).softmax(a),
    "each score were a cosine: are the vectors divided by their lengths?": _cosines,
    "each score were a distance, not a dot product": _distances(1),
    "each score were minus a distance, not a dot product": _distances(-1),
    "the scores of the future were 0 before the softmax (`tril`): here it may be read": (
        lambda s, a: s.tril().softmax(a)
    ),
    "there were a causal mask: here the future may be read": lambda s, a: s.masked_fill(
        ~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -torch.inf
    ).softmax(a),
    "the diagonal were hidden: each word may see itself": lambda s, a: s.masked_fill(
        torch.eye(*s.shape[-2:], dtype=torch.bool), -torch.inf
    ).softmax(a),
    "there were no softmax": lambda s, a: s,
    "a sigmoid stood in place of the softmax": lambda s, a: s.sigmoid(),
    "the weights were powers of e that nobody has divided by their sum": lambda s, a: s.exp(),
    "the weights were logarithms (`log_softmax`)": lambda s, a: s.log_softmax(a),
    "there were two softmaxes, one after the other": lambda s, a: s.softmax(a).softmax(a),
    "the weights were squared": lambda s, a: s.softmax(a) ** 2,
    "only the largest score counted: a hard choice, not a softmax": lambda s, a: (
        s == s.amax(a, keepdim=True)
    ).to(s),
}
_AXES = (-1, -2, -3)


def _multiplied(expression: Callable[[Mapping[str, float]], float]) -> Callable:
    def of(inputs: Mapping[str, Any]) -> Softmax:
        factor = expression(sizes(inputs))
        return lambda scores, axis: (factor * scores).softmax(axis)

    return of


def _softmaxes(inputs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Callable]]:
    """What a softmax may have been: words that fit after "if", and inputs -> that softmax."""
    for words, softmax in _OTHERS.items():
        yield words, lambda _, softmax=softmax: softmax
    for axis in _AXES:
        yield (
            f"the softmax ran over the axis {axis} of the scores",
            lambda _, axis=axis: lambda scores, _: scores.softmax(axis),
        )
    tables = [sizes(one) for one in inputs]
    # Of several names for the same numbers (x.shape[-1], W.shape[0]), the first.
    first = {tuple(table.get(name) for table in tables): name for name in reversed(tables[0])}
    names = list(reversed(first.values()))
    for power, told in ((-1, "{}"), (-0.5, "{} ** 0.5")):
        for way, sign in (("divided", 1), ("multiplied", -1)):
            for name in names:
                yield (
                    f"the scores were {way} by `{told.format(name)}` before the softmax",
                    _multiplied(lambda found, n=name, p=sign * power: found[n] ** p),
                )
    for one in names:
        for other in names:
            if one != other:
                yield (
                    f"the scores were divided by `{one} ** 0.5` in place of `{other} ** 0.5`",
                    _multiplied(lambda found, a=one, b=other: (found[b] / found[a]) ** 0.5),
                )


def rewired(
    right: Callable,
    inputs: Sequence[Mapping[str, Any]],
    outcomes: Sequence[Outcome],
    rights: Sequence[Any],
    tolerance: tuple[float, float] | None,
    deadline: float,
) -> str | None:
    """With which other softmax would the answer be right on every case? A sentence, or None.

    `right` is called with copies of the inputs. Where it raises, the answer must have raised, too.
    """
    order = wrong_first(outcomes, rights, tolerance)
    if not order or not _softmax_in(right, inputs[order[0]]):
        return None

    def agrees(softmax: Callable, n: int) -> bool:
        try:
            with _Rewired(softmax(inputs[n])):
                theirs = right(**copy.deepcopy(dict(inputs[n])))
        except Exception:  # the right computation was not made for such weights
            return outcomes[n].error is not None
        return outcomes[n].error is None and close(outcomes[n].result, theirs, tolerance)

    return first_that_fits(_softmaxes([inputs[n] for n in order]), agrees, order, deadline)


def _softmax_in(right: Callable, inputs: Mapping[str, Any]) -> bool:
    with _Rewired(lambda scores, axis: scores.softmax(axis)) as mode:
        right(**copy.deepcopy(dict(inputs)))
    return mode.calls > 0
