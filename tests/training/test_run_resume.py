"""A run that is interrupted after any of its steps ends in the bits of one that was not."""

import os
from pathlib import Path

import pytest
import torch
from small_runs import RECIPE, differences, end_of, resumed, trained

from transformer_lib.training.checkpoints import find_checkpoints
from transformer_lib.training.run import Run
from transformer_lib.training.tasks import corpus_of

pytestmark = pytest.mark.slow

FLOAT16 = RECIPE.with_changes(precision="float16", n_steps=5, optimizer="adamw", lr=0.01)


@pytest.mark.usefixtures("as_a_reader")  # beartype draws from Python's generator at each call
@pytest.mark.parametrize("recipe", [RECIPE, FLOAT16], ids=["float32", "float16"])
def test_a_run_resumed_after_any_step_ends_in_the_same_bits(tmp_path, recipe):
    corpus = corpus_of(recipe)
    run = Run(recipe, corpus)
    run.trainer.scaler.set_growth_interval(2)  # it changes within the run
    losses = trained(run, tmp_path / "whole", keep=tmp_path / "kept")
    end = end_of(run)
    assert run.trainer.batches.epoch > 1.2
    assert [number for number, *_ in losses] == list(range(1, recipe.n_steps + 1))
    for step in range(1, recipe.n_steps + 1):
        torch.rand(step)  # what came before does not matter
        again = resumed(recipe, corpus, tmp_path / "kept" / f"{step}")
        assert again.trainer.step == step
        assert trained(again, tmp_path / f"again-{step}") == losses[step:]
        assert differences(end_of(again), end) == []


def test_a_program_that_goes_elsewhere_saves_where_it_began(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    run = Run(RECIPE)
    for step in run.steps("mine"):
        if step.step == 1:
            os.chdir("other")
    assert [path.name for path in find_checkpoints(tmp_path / "mine")][-1].startswith(
        f"step-{RECIPE.n_steps:08}"
    )
    assert not list((tmp_path / "other").iterdir())


@pytest.mark.usefixtures("as_a_reader")
def test_the_comparison_sees_other_dropout_and_other_batches(tmp_path):
    recipe = RECIPE.with_changes(n_steps=3)
    corpus, ends = corpus_of(recipe), []
    for change in ("none", "nothing", "dropout", "batches"):
        run = Run(recipe, corpus)
        if change == "dropout":
            torch.rand(1)
        elif change == "batches":
            next(run.trainer.batches)
        trained(run, tmp_path / change)
        ends.append(end_of(run))
    assert differences(ends[1], ends[0]) == []
    dropout, batches = (set(differences(end, ends[0])) for end in ends[2:])
    assert {"state.model.embedding.weight", "state.random.0.torch", "curve"} <= dropout
    assert {"state.model.embedding.weight", "state", "curve", "next.0"} <= batches
