"""How a wrong result relates to the arguments, and to the cases on which it is right.

As in `causes`, nothing is called again: each function gets the cases and says what holds on all.
"""

from collections.abc import Mapping, Sequence

from transformer_lib.exercises.engine.factors import products, sizes
from transformer_lib.exercises.engine.trials import Trial


def of_numbers(trials: Sequence[Trial]) -> str | None:
    """A sentence about results of one number each; None if there is none."""
    if not trials or any(trial.right.numel() != 1 for trial in trials):
        return None
    return _of_input(trials) or _confused(trials)


def _of_input(trials: Sequence[Trial]) -> str | None:
    """One number that is a simple function of one argument, and the wrong one."""
    if len(trials) < 2:
        return None
    got = [float(t.got) for t in trials]
    for name in sizes(trials[0].inputs):
        x = [sizes(t.inputs).get(name, 0) for t in trials]
        if len(set(x)) < 2 or 0 in x:
            continue
        for words, power in ((name, 1), (f"{name} ** 2", 2), (f"{name} ** 0.5", 0.5)):
            ratios = [g / v**power for g, v in zip(got, x, strict=True)]
            if ratios[0] and max(ratios) - min(ratios) <= 1e-3 * abs(ratios[0]):
                return f"Your result is {ratios[0]:.4g} times `{words}`. The right one is not."
        rest = [g - v for g, v in zip(got, x, strict=True)]
        if max(rest) - min(rest) <= 1e-6 * max(map(abs, x)):
            way = "plus" if rest[0] > 0 else "minus"
            return f"Your result is `{name}` {way} {abs(rest[0]):.4g}. The right one is not."
    return None


def _confused(trials: Sequence[Trial]) -> str | None:
    """A few whole numbers, each of which is always taken for the same other one."""
    pairs = [(float(t.right), float(t.got)) for t in trials]
    taken = dict(pairs)
    whole = all(number.is_integer() and abs(number) < 10 for pair in pairs for number in pair)
    if not whole or len(trials) <= len(taken) or any(taken[r] != g for r, g in pairs):
        return None
    told = [f"{g:.0f} where {r:.0f} is right" for r, g in sorted(taken.items())]
    return f"Each time you say {' and '.join(told)}."


def only_where(right: Sequence[Mapping], wrong: Sequence[Mapping]) -> str | None:
    """A sentence if a relation between the arguments holds on all right cases and no wrong one."""
    if not right or not wrong:
        return None
    for name, value in right[0].items():
        if isinstance(value, bool):
            kept = {bool(inputs[name]) for inputs in right}
            if len(kept) == 1 and kept.isdisjoint({bool(inputs[name]) for inputs in wrong}):
                return f"Right where `{name}` is {value}, and wrong where it is {not value}."
    tables = [[products(inputs, 2) | sizes(inputs) for inputs in some] for some in (right, wrong)]
    for one in tables[0][0]:
        for other in tables[0][0]:
            if one < other and all(
                _equal(table, one, other) is holds
                for some, holds in zip(tables, (True, False), strict=True)
                for table in some
            ):
                return (
                    f"Right where `{one}` and `{other}` happen to be equal, and wrong elsewhere: "
                    "is one of them where the other belongs?"
                )
    return None


def _equal(table: Mapping[str, float], one: str, other: str) -> bool:
    return one in table and other in table and table[one] == table[other]
