"""Schedules: hand arithmetic, and what holds at every step of any of them."""

import math
from dataclasses import fields
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.training.recipes import ScheduleRecipe
from transformer_lib.training.schedules import (
    SCHEDULES,
    cosine,
    inverse_square_root,
    linear,
    require_decay,
    trapezoid,
)

FACTORS = [each for each in SCHEDULES.values() if each is not inverse_square_root]


def test_by_hand():
    assert [linear(s, 6, warmup=2, end=0.5) for s in range(1, 7)] == pytest.approx(
        [0.5, 1.0, 0.9, 0.8, 0.7, 0.6]
    )
    assert [trapezoid(s, 8, warmup=2, decay=0.25, end=0.4) for s in range(1, 9)] == pytest.approx(
        [0.5, 1, 1, 1, 1, 1, 0.8, 0.6]
    )
    # Four steps after the warm-up: quarters of half a wave, from 1 to 0.2.
    waves = [0.6 + 0.4 * math.cos(math.pi * quarter / 4) for quarter in range(4)]
    assert [cosine(s, 6, warmup=3, end=0.2) for s in range(3, 7)] == pytest.approx(waves)


def test_the_papers_schedule():
    """Vaswani et al. 2017, section 5.3, at the base model's d_model and warm-up."""
    assert inverse_square_root(1, 512) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert inverse_square_root(4000, 512) == pytest.approx((512 * 4000) ** -0.5)
    assert inverse_square_root(16000, 512) == pytest.approx(inverse_square_root(4000, 512) / 2)
    peak = max(range(1, 200), key=lambda step: inverse_square_root(step, 64, warmup=37))
    assert peak == 37


@pytest.mark.slow
@pytest.mark.parametrize("schedule", FACTORS)
@given(data=st.data())
def test_up_and_then_down(schedule, data):
    n_steps = data.draw(st.integers(1, 50))
    end = data.draw(st.floats(0, 1))
    warmup = data.draw(st.integers(0, n_steps - 1))
    options = {"warmup": warmup, "end": end}
    if "decay" in signature(schedule).parameters:
        options["decay"] = data.draw(st.floats(0, 1 - (warmup + 1) / n_steps))
    factors = [schedule(step, n_steps, **options) for step in range(1, n_steps + 1)]
    peak = max(warmup, 1)
    assert factors[peak - 1] == 1
    assert factors[:peak] == sorted(factors[:peak])
    after = factors[peak - 1 :]
    assert all(a >= b - 1e-12 for a, b in pairwise(after))
    assert all(0 < factor <= 1 for factor in factors)
    assert factors[-1] >= end - 1e-12


@pytest.mark.parametrize("schedule", [linear, trapezoid])
def test_the_last_step_still_counts(schedule):
    assert schedule(10, 10) > 0.05
    with pytest.raises(ValueError, match=r"step is 11, of a schedule for 10 steps\. Make n_steps"):
        schedule(11, 10)


def test_every_option_of_a_schedule_is_a_choice_of_its_recipe_and_reaches_it():
    taken = {name for each in SCHEDULES.values() for name in signature(each).parameters}
    known = {"step", "n_steps", "d_model", "end"}
    assert taken - known == {each.name for each in fields(ScheduleRecipe)} - {"name"}


def test_a_decay_of_all_steps_is_linear():
    both = [(trapezoid(s, 7, decay=1.0), linear(s, 7)) for s in range(1, 8)]
    assert all(a == b for a, b in both)
    assert {trapezoid(s, 7, decay=0.0) for s in range(1, 8)} == {1.0}


@pytest.mark.parametrize("schedule", FACTORS)
@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((0, 5), {}, ValueError, "step is 0; it must be at least 1"),
        ((1.5, 5), {}, TypeError, "step is 1.5"),
        ((1, 0), {}, ValueError, "n_steps is 0"),
        ((1, 5), {"warmup": 5}, ValueError, "warmup is 5, of 5 steps; choose 0 <= warmup"),
        ((1, 5), {"warmup": -1}, ValueError, "warmup is -1"),
        ((1, 5), {"warmup": 0.1}, TypeError, "warmup is 0.1, of type float; it must be an int"),
        ((1, 5), {"end": 1.5}, ValueError, r"end is 1.5; it is a share of the full rate"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_what_makes_no_schedule(schedule, arguments, options, error, message):
    with pytest.raises(error, match=message):
        schedule(*arguments, **options)


@pytest.mark.usefixtures("as_a_reader")
def test_a_decay_that_does_not_fit():
    with pytest.raises(ValueError, match=r"decay is 80; it is a share of all steps"):
        trapezoid(1, 100, decay=80)
    with pytest.raises(ValueError, match=r"overlap; make the warm-up at most 20 steps"):
        trapezoid(1, 100, warmup=30, decay=0.8)
    with pytest.raises(TypeError, match="decay is 'x'"):
        trapezoid(1, 100, decay="x")
    with pytest.raises(ValueError, match="cooldown is 2; it is a share"):
        require_decay(2, 100, 0, name="cooldown")
    assert trapezoid(1, 5, warmup=np.int64(2)) == 0.5
    with pytest.raises(ValueError, match="warmup is 0; it must be at least 1"):
        inverse_square_root(1, 512, warmup=0)
