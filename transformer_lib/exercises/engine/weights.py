"""Causes of wrong attention weights: the axis they sum over, hidden cells, how hard they are.

Which axis must sum to 1 is read from the right results. Where an exercise returns averages, its
`averages` says of what, and the weights behind a result are solved for: an answer never shows them.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_lib.exercises.engine.causes import another_order, softmax_missing
from transformer_lib.exercises.engine.factors import named
from transformer_lib.exercises.engine.trials import Trial, axis_name, same


def of_weights(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence about results that must sum to 1 along an axis and are wrong; None otherwise."""
    if not trials or (axis := sums_to_one([trial.right for trial in trials])) is None:
        return None
    ndim = trials[0].right.ndim
    name = axis_name(axes, axis, ndim)
    for other in range(ndim - 1, -1, -1):
        over_other = all(
            t.got.shape[other] > 1 and _sums(t.got, other, or_zero=True) for t in trials
        )
        if other != axis and over_other and not all(_sums(t.got, axis) for t in trials):
            wrong = axis_name(axes, other, ndim)
            return (
                f"Your weights sum to 1 over the axis `{wrong}`; they must over `{name}`: the "
                "softmax runs over the wrong axis."
            )
    rows_sum = all(_sums_where(t, axis) for t in trials)
    if sentence := one_softmax(trials, axes):
        return sentence
    if sentence := _hidden(trials, axis):
        return sentence
    if not rows_sum:
        return _not_one(trials, axis, name)
    if sentence := hard_choice(trials, axes) or _left_out(trials):
        return sentence
    return _hardness(trials, axis, name)


def behind(trials: Sequence[Trial], values: Callable, axes: Sequence[str]) -> str | None:
    """The same for the weights behind averages of `values(*inputs)`, where these can be told."""
    solved = []
    given = [values(*trial.inputs.values()).detach().double() for trial in trials]
    for trial, v in zip(trials, given, strict=True):
        pair = _solve(trial.got, v), _solve(trial.right, v)
        if pair[1] is None:
            continue
        if pair[0] is None:
            return (
                "Your result is not a mixture of what it must average: something else is added, or "
                "the average is taken of something else."
            )
        got, right = (x.unsqueeze(0) if x.ndim == 1 else x for x in pair)
        solved.append(Trial(got, right, trial.inputs))
    names = [*["batch"] * max(0, (solved[0].right.ndim if solved else 2) - 2), "queries", "keys"]
    if not solved:
        return None
    square = all(t.right.shape[-1] == t.right.shape[-2] > 1 for t in solved)
    if square and all(same(t.got, t.right.mT) for t in solved):
        return "The weights behind your result are transposed: rows are queries."
    if sentence := softmax_missing(solved, names):
        return sentence
    if sentence := another_order(solved, names):
        return f"The weights behind your result: {sentence[0].lower()}{sentence[1:]}"
    if not (sentence := of_weights(solved, names)):
        return None
    return sentence.replace("Your weights", "The weights behind your result", 1)


def sums_to_one(rights: Sequence[Tensor]) -> int | None:
    """The last axis along which all of these sum to 1 (or are 0), if they are weights at all."""
    for axis in range(rights[0].ndim - 1, -1, -1):
        if all(r.ndim == rights[0].ndim and r.shape[axis] > 1 for r in rights) and all(
            bool((r >= 0).all() and ((r > 0) & (r < 1)).any()) and _sums(r, axis, or_zero=True)
            for r in rights
        ):
            return axis
    return None


def _one(sums: Tensor) -> bool:
    return bool(((sums - 1).abs() < 1e-3).all())


def _sums(x: Tensor, axis: int, *, or_zero: bool = False) -> bool:
    sums = x.sum(axis)
    full = (sums - 1).abs() < 1e-3
    return bool(full.any() and (full | (x == 0).all(axis) & or_zero).all())


def _sums_where(trial: Trial, axis: int) -> bool:
    """Do the rows that must sum to 1 do so?"""
    full = trial.right.sum(axis) > 0.5
    return _one(trial.got.sum(axis)[full])


def one_softmax(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence if all weights of a matrix sum to 1 together, and not each row."""
    if (axis := sums_to_one([trial.right for trial in trials])) is None:
        return None
    if all(_sums_where(trial, axis) for trial in trials):
        return None
    ndim = trials[0].right.ndim
    name = axis_name(axes, axis, ndim)
    for count in range(2, ndim + 1):
        if all(_one(t.got.flatten(ndim - count).sum(-1)) for t in trials):
            return (
                f"Your weights sum to 1 over {'the whole result' if count == ndim else 'a matrix'},"
                f" not over each row: one softmax for each, over the axis `{name}`."
            )
    return None


def hard_choice(trials: Sequence[Trial], axes: Sequence[str]) -> str | None:
    """A sentence if each row of weights is a single 1, and the right ones are not."""
    if (axis := sums_to_one([trial.right for trial in trials])) is None:
        return None
    rows = [(t.got.amax(axis), t.got.sum(axis)) for t in trials]
    if all(bool((top > 0.999).all() and (total < 1.001).all()) for top, total in rows):
        name = axis_name(axes, axis, trials[0].right.ndim)
        return f"Each row gives one of `{name}` everything: a hard choice, not a softmax."
    return None


def _hidden(trials: Sequence[Trial], axis: int) -> str | None:
    for trial in trials:
        zero = (trial.right == 0) & (trial.got.abs() > 1e-9)
        if not zero.any():
            return None
    trial = trials[0]
    zero = (trial.right == 0) & (trial.got.abs() > 1e-9)
    empty = (trial.right == 0).all(axis, keepdim=True) & zero
    if empty.any() and not (zero & ~empty).any():
        index = empty.nonzero()[0].tolist()
        value = float(trial.got[tuple(index)])
        return f"A row with nothing to attend to must be 0, but yours holds {value:.4g} at {index}."
    index = (zero & ~empty).nonzero()[0].tolist()
    value = float(trial.got[tuple(index)])
    return f"What is hidden has weight: at {index} you have {value:.4g}, where exactly 0 is right."


def _left_out(trials: Sequence[Trial]) -> str | None:
    """Has something no weight that must have some?"""
    missing = [(t.right > 0.01) & (t.got.abs() < 1e-5) for t in trials]
    if not all(bool(x.any()) for x in missing):
        return None
    index = missing[0].nonzero()[0].tolist()
    place = ""
    if all(x.ndim >= 2 and x.shape[-1] == x.shape[-2] for x in missing):
        if not any(bool(x.tril().any()) for x in missing):
            place = ", and always in the future of a query: you need no mask here"
        elif not any(bool((x & ~torch.eye(x.shape[-1], dtype=torch.bool)).any()) for x in missing):
            place = ", and always where a query is its own key"
    return f"What must take part has no weight, first at {index}{place}."


def _not_one(trials: Sequence[Trial], axis: int, name: str) -> str:
    trial = trials[0]
    full = trial.right.sum(axis) > 0.5
    if bool((trial.got < -1e-6).any()):
        index = (trial.got < -1e-6).nonzero()[0].tolist()
        return f"A weight is negative, at {index}: a softmax over `{name}` gives none."
    total = float(trial.got.sum(axis)[full][((trial.got.sum(axis)[full] - 1).abs()).argmax()])
    return f"Your weights must sum to 1 over the axis `{name}`; one row sums to {total:.4g}."


def _hardness(trials: Sequence[Trial], axis: int, name: str) -> str | None:
    if all(same(t.got, (t.right > 0) / (t.right > 0).sum(axis, keepdim=True)) for t in trials):
        return f"Your weights are even over `{name}`: the scores do not reach them."
    pairs = [(trial, _steepness(trial, axis)) for trial in trials if _telling(trial, axis)]
    trials, factors = [trial for trial, _ in pairs], [factor for _, factor in pairs]
    if not factors:
        return None
    if None in factors:
        return _by_row(trials, axis)
    for words, values in (("times", factors), ("divided by", [1 / f for f in factors])):
        if expression := named(values, trials):
            return f"The softmax gets the right scores {words} {expression}."
    if max(factors) - min(factors) < 1e-3 * abs(factors[0]):
        return f"The softmax gets {factors[0]:.4g} times the right scores."
    return (
        f"The softmax gets {factors[0]:.4g} times the right scores here, elsewhere another factor."
    )


def _told(trial: Trial) -> Tensor:
    """Where the scores behind weights can be told from them."""
    return (trial.right > 1e-4) & (trial.got > 1e-4)


def _telling(trial: Trial, axis: int) -> bool:
    return bool((_told(trial).sum(axis) > 1).any())


def _by_row(trials: Sequence[Trial], axis: int) -> str | None:
    """Does each row of scores have a factor of its own?"""
    seen = 0
    for trial in trials:
        pair = (x.movedim(axis, -1).flatten(0, -2) for x in (trial.got, trial.right))
        rows = [Trial(got, right, {}) for got, right in zip(*pair, strict=True)]
        rows = [row for row in rows if int(_told(row).sum()) > 2]  # of two, any factor fits
        if any(_steepness(row, 0) is None for row in rows):
            return None
        seen += len(rows)
    if seen < 2:
        return None
    return (
        "The softmax gets the right scores times a number that differs from row to row: are they "
        "divided by a length?"
    )


def _steepness(trial: Trial, axis: int) -> float | None:
    """c, if the weights are the softmax of c times the right scores, as far as they can be told."""
    told = _told(trial)
    count = told.sum(axis, keepdim=True)
    logs = []
    for x in (trial.got, trial.right):
        log = torch.where(told, x.clamp_min(1e-30).log(), 0.0)
        logs.append(torch.where(told, log - log.sum(axis, keepdim=True) / count.clamp_min(1), 0.0))
    size = float((logs[1] ** 2).sum())
    c = float((logs[0] * logs[1]).sum()) / size if size else 0.0
    return (
        c if abs(c) > 1e-3 and torch.allclose(logs[0], c * logs[1], rtol=1e-2, atol=1e-2) else None
    )


def _solve(y: Tensor, values: Tensor) -> Tensor | None:
    """W with y = W values, if there is exactly one: [..., queries, keys]."""
    keys, width = values.shape[-2:]
    if (
        keys > width
        or y.shape[-1] != width
        or y.shape[:-2] != values.shape[:-2][: max(0, y.ndim - 2)]
    ):
        return None
    try:
        rows = y if y.ndim >= values.ndim else y.unsqueeze(-2)
        found = torch.linalg.lstsq(values.mT, rows.mT).solution.mT
    except RuntimeError:
        return None
    if not torch.allclose(found @ values, rows, rtol=1e-3, atol=1e-4):
        return None
    return found if y.ndim >= values.ndim else found.squeeze(-2)
