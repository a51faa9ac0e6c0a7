"""Heads that sleep through the lessons learn nothing there, and everything behind them."""

from functools import partial

import pytest
import torch
from models import small_gpt

from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.tasks import corpus_of
from transformer_lib.training.waking import put_to_sleep, wake

SMALL = {"n_layers": 2, "n_heads": 4, "d_model": 16, "batch_size": 4, "precision": "float32"}
SMALL |= {"n_stories": 40, "n_validation": 5, "model": {"smear": 0}, "evaluate_every": 100}
RECIPE = Recipe.of(
    **SMALL, n_steps=8, save_every=1, lessons={"mostly": 2, "echo": 3}, lesson_heads=1
)


def test_heads_are_counted_from_the_first():
    for function in (put_to_sleep, partial(wake, seed=0)):
        with pytest.raises(ValueError, match="awake is -1"):
            function(small_gpt(), awake=-1)


@pytest.mark.parametrize(
    "options",
    [{"n_kv_heads": 1}, {"attention": "latent", "attention_options": {"d_latent": 4}}],
)
def test_heads_that_share_their_values_cannot_sleep(options):
    with pytest.raises(ValueError, match=r"values of their own .* Leave lesson_heads out"):
        put_to_sleep(small_gpt(**options), awake=1)


@pytest.mark.parametrize("optimizer", ["muon", "normuon", "adamw"])
def test_they_sleep_until_the_lessons_are_over(optimizer):
    run = Run(RECIPE.with_changes(optimizer=optimizer, lr=0.01))
    attention, width = run.trainer.model.blocks[-1].attention, 4
    values = attention.value.weight.detach()[width:]
    outputs = attention.output.weight.detach()[:, width:]
    awake = attention.value.weight.detach()[:width].clone()
    for step in run.steps():
        asleep = step.step < 5
        assert values.eq(0).all() == asleep, step.step
        assert outputs.eq(0).all() == (step.step <= 5), step.step
    assert not attention.value.weight[:width].equal(awake)
    others = run.trainer.model.blocks[0].attention
    assert others.output.weight.ne(0).all()


def test_a_run_is_resumed_before_at_and_behind_the_end_of_its_lessons(tmp_path):
    corpus = corpus_of(RECIPE)

    def end(run):
        return torch.cat([p.detach().flatten() for p in run.trainer.model.parameters()])

    whole = Run(RECIPE, corpus)
    for _ in whole.steps():
        pass
    for stop in (2, 4, 5, 6):
        folder = tmp_path / str(stop)
        for step in Run(RECIPE, corpus).steps(folder):
            if step.step == stop:
                break
        again = Run(RECIPE, corpus)
        again.load(folder)
        assert again.begun == stop
        for _ in again.steps(folder):
            pass
        assert end(again).equal(end(whole)), stop


def test_a_run_shorter_than_its_lessons_ends_in_them():
    recipe = RECIPE.with_changes(n_steps=4)
    assert [steps for _, steps in corpus_of(recipe).lessons] == [3, 1]
    run = Run(recipe)
    assert [step.step for step in run.steps()] == [1, 2, 3, 4]
