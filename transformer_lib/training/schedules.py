"""How the learning rate changes: pure functions of the step.

A step is one change of the parameters; the first is step 1. Each function but the last returns a
factor between 0 and 1, by which the optimizer's rate is multiplied: it grows in a straight line
from 0 (at step 0) to 1 (at step ``warmup``), and what it decays to it reaches at step
``n_steps + 1``. So no step is taken with a rate of 0.
"""

import math

from transformer_lib import checks


def linear(step: int, n_steps: int, *, warmup: int = 0, end: float = 0.0) -> float:
    """Up in ``warmup`` steps, then down to ``end`` in a straight line.

    Raises:
        ValueError: a step before the first or after the last; a warm-up that is negative or takes
            all steps; an ``end`` outside of [0, 1].
        TypeError: ``step``, ``n_steps`` or ``warmup`` is not an int.

    >>> [linear(step, 4) for step in (1, 2, 3, 4)]
    [1.0, 0.75, 0.5, 0.25]
    """
    require_schedule(step, n_steps, warmup, end)
    return _up(step, warmup, lambda: _down(step, max(warmup, 1), n_steps, end))


def cosine(step: int, n_steps: int, *, warmup: int = 0, end: float = 0.1) -> float:
    """Up in ``warmup`` steps, then down to ``end`` along half a wave of the cosine.

    Raises:
        ValueError, TypeError: as :func:`linear`.

    Source: Loshchilov and Hutter 2017 (SGDR), without the restarts; ``end`` = 0.1: Brown et al.
    2020.

    >>> [round(cosine(step, 4, end=0.0), 3) for step in (1, 2, 3, 4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    require_schedule(step, n_steps, warmup, end)

    def wave() -> float:
        left = _down(step, max(warmup, 1), n_steps, 0.0)
        return end + (1 - end) * (1 - math.cos(math.pi * left)) / 2

    return _up(step, warmup, wave)


def trapezoid(
    step: int, n_steps: int, *, warmup: int = 0, decay: float = 0.2, end: float = 0.0
) -> float:
    """Up in ``warmup`` steps, level, then down to ``end`` in a straight line.

    The decay takes the last steps, a share ``decay`` of all of them (rounded to whole steps).

    Raises:
        ValueError, TypeError: as :func:`linear`; ``decay`` outside of [0, 1], or warm-up and decay
            together longer than the run.

    Also called WSD, warmup-stable-decay. Source: Zhai et al. 2022 (Scaling Vision Transformers);
    Hägele et al. 2024.

    >>> [trapezoid(step, 5, decay=0.6) for step in (1, 2, 3, 4, 5)]
    [1.0, 1.0, 0.75, 0.5, 0.25]
    """
    require_schedule(step, n_steps, warmup, end)
    level = require_decay(decay, n_steps, warmup)
    level = max(level, 1)
    return _up(step, warmup, lambda: 1.0 if step <= level else _down(step, level, n_steps, end))


def inverse_square_root(step: int, d_model: int, *, warmup: int = 4000) -> float:
    """d_model^-0.5 · min(step^-0.5, step · warmup^-1.5): the rate itself, not a factor.

    It needs no number of steps; it is largest at step ``warmup``.

    Raises:
        ValueError: ``step``, ``d_model`` or ``warmup`` below 1.
        TypeError: one of them is not an int.

    Source: Vaswani et al. 2017, section 5.3.

    >>> f"{inverse_square_root(4000, 512):.6f}"
    '0.000699'
    """
    for name, value in [("step", step), ("d_model", d_model), ("warmup", warmup)]:
        checks.require_count(value, name)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


SCHEDULES = {
    "linear": linear, "cosine": cosine, "trapezoid": trapezoid,
    "inverse_square_root": inverse_square_root,
}  # fmt: skip


def _up(step: int, warmup: int, after) -> float:
    return step / warmup if step < warmup else after()


def _down(step: int, start: int, n_steps: int, end: float) -> float:
    """1 at step ``start``, ``end`` one step after the last."""
    left = (n_steps + 1 - step) / (n_steps + 1 - start)
    return end + (1 - end) * left


def require_schedule(step: int, n_steps: int, warmup: int, end: float) -> None:
    """A step of a schedule, and what it is made of."""
    checks.require_count(n_steps, "n_steps")
    checks.require_count(step, "step")
    if step > n_steps:
        raise ValueError(
            f"step is {step}, of a schedule for {n_steps} steps. Make n_steps at least {step} (the "
            f"rates of the earlier steps then differ, too), or stop."
        )
    checks.require_whole(warmup, "warmup")
    checks.require_number(end, "end")
    if not 0 <= warmup < n_steps:
        raise ValueError(
            f"warmup is {warmup}, of {n_steps} steps; choose 0 <= warmup < n_steps, so that the "
            f"full rate is used at all."
        )
    if not 0 <= end <= 1:
        raise ValueError(f"end is {end}; it is a share of the full rate: choose 0 <= end <= 1.")


def require_decay(decay: float, n_steps: int, warmup: int, name: str = "decay") -> int:
    """The last step before a decay, which is a share of all and begins after the warm-up. ``name``
    is what a schedule of your own calls it.
    """
    checks.require_number(decay, name)
    if not 0 <= decay <= 1:
        raise ValueError(f"{name} is {decay}; it is a share of all steps: choose 0 <= {name} <= 1.")
    level = n_steps - round(decay * n_steps)
    if level < warmup:
        raise ValueError(
            f"warmup = {warmup} and {name} = {decay} of {n_steps} steps overlap; make the warm-up "
            f"at most {level} steps, or the {name} shorter."
        )
    return level
