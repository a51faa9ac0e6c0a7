"""Recipes: JSON and back, what is refused, and that every preset makes a model and an optimizer."""

import json

import pytest
import torch

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.optimizers import Muon
from transformer_lib.training.recipes import PRESETS, Recipe


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json_and_makes_a_model(name):
    recipe = PRESETS[name]
    again = Recipe.from_json(json.loads(json.dumps(recipe.as_json(), sort_keys=True)))
    assert again == recipe
    assert list(again.data.lessons) == list(recipe.data.lessons)  # they are told in this order
    config = recipe.model_config(vocabulary=65)
    assert config.context >= max(recipe.data.block, recipe.data.window or 0)
    with torch.device("meta"):
        model = GPT(config)
    assert isinstance(recipe.make_optimizer(model), Muon)
    factors = [recipe.factor(step, recipe.n_steps) for step in (1, recipe.n_steps)]
    assert 0 < factors[1] < factors[0] <= 1


def test_the_optimizer_is_the_one_that_is_asked_for():
    model = GPT(Recipe().model_config(11))
    optimizer = Recipe.of(optimizer="adamw", lr=0.002, betas=(0.8, 0.9)).make_optimizer(model)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert (optimizer.param_groups[0]["lr"], optimizer.defaults["betas"]) == (0.002, (0.8, 0.9))
    dtypes = {"float32": None, "bfloat16": torch.bfloat16, "float16": None}
    for precision, dtype in dtypes.items():
        optimizer = Recipe.of(precision=precision).make_optimizer(model)
        assert optimizer.param_groups[0]["dtype"] is dtype


def test_what_a_caller_does_to_a_mapping_changes_no_record():
    own = PRESETS["gifts"].with_changes(n_steps=5)
    own.model.options["smear"] = 9
    own.as_json()["grammar"]["ask"] = 0.5
    assert (PRESETS["gifts"].model.options["smear"], own.data.grammar) == (3, {})
    options, people = {"window": 4}, ["mary", "susan", "john", "peter"]
    recipe = Recipe.of(grammar={"people": people}, model={"attention_options": options})
    config = GPTConfig(
        vocabulary=5, context=8, n_layers=1, n_heads=2, d_model=12, positions="rotary",
        attention="window", attention_options=options,
    )  # fmt: skip
    options["window"] = 0
    people.clear()
    assert config.attention_options == recipe.model.options["attention_options"] == {"window": 4}
    assert len(recipe.data.grammar["people"]) == 4
    tuples = Recipe.of(grammar={"people": ("mary", "susan", "john", "peter")})
    assert tuples.as_json() == recipe.with_changes(model={}).as_json()  # as JSON gives it back


def test_options_belong_to_their_choice():
    recipe = PRESETS["gifts"]
    assert (recipe.schedule.decay, recipe.optimizer.n_iterations) == (0.7, 3)
    other = recipe.with_changes(schedule="cosine", optimizer="normuon", momentum=0.9)
    assert other.schedule.decay is None
    assert (other.optimizer.momentum, other.optimizer.n_iterations) == (0.9, 5)
    old = other.as_json() | {"decay": 0.8}  # as recipes were once stored
    assert Recipe.from_json(old) == other
    assert recipe.with_changes(schedule="trapezoid") == recipe


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"optimizer": "sgd"},
            ValueError,
            "optimizer is 'sgd'; choose one of 'muon', 'normuon', 'adamw'",
        ),
        ({"schedule": "step"}, ValueError, "schedule is 'step'; choose one of"),
        ({"wiring": "gpt5"}, ValueError, "wiring is 'gpt5'; choose one of"),
        ({"n_steps": 0}, ValueError, "n_steps"),
        ({"n_steps": 1.5}, TypeError, "n_steps is 1.5, of type float; it must be an int"),
        ({"window": "64"}, TypeError, "window is '64', of type str; it must be an int or None"),
        ({"lr": float("inf")}, ValueError, "lr is inf; it must be a finite number above 0"),
        ({"lr": True}, TypeError, "lr is True, of type bool; it must be a number"),
        ({"betas": (0.9,)}, TypeError, r"betas is \(0.9,\), of type tuple; it must be 2 numbers"),
        ({"model": {1: 2}}, TypeError, "model is .* names with values"),
        ({"warmup": 1000}, ValueError, "warmup"),
        ({"schedule": "cosine", "decay": 0.5}, ValueError, "option of schedule = 'trapezoid', and"),
        (
            {"optimizer": "adamw", "n_iterations": 3},
            ValueError,
            "n_iterations is 3, an option of optimizer = 'muon' or 'normuon', and optimizer is",
        ),
        ({"batch_size": -1}, ValueError, "batch_size"),
        ({"lessons": {"ekko": 3}}, ValueError, "a lesson is 'ekko'; choose one of 'echo'"),
        ({"lessons": {"echo": 0}}, ValueError, "steps of the lesson 'echo' is 0"),
        ({"lessons": {"echo": 3}, "data": "python_docs"}, ValueError, "lessons are texts about"),
        ({"data": "talk.jsonl"}, ValueError, "ending says records"),
        ({"precision": "fp16"}, ValueError, "precision is 'fp16'; choose one of 'float32', 'tf32'"),
        ({"betas": (0.9, 1.5)}, ValueError, r"betas\[1\] is 1.5; it is a share"),
        ({"lesson_heads": 1}, ValueError, "lesson_heads is 1; .* and name lessons"),
        ({"lesson_heads": 4, "lessons": {"echo": 3}}, ValueError, "of the 4 heads"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, error, message, as_a_reader):
    with pytest.raises(error, match=message):
        Recipe.of(**changes)
