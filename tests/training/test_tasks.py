"""Tasks: another family of models needs one entry here, and no second loop, run or command line."""

import json

import pytest
import torch
from forgeries import forge
from small_runs import differences, end_of
from torch import nn

from transformer_lib.data.corpora import text_corpus
from transformer_lib.training import tasks
from transformer_lib.training.checkpoints import find_checkpoints
from transformer_lib.training.cli import main
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run, trained_run
from transformer_lib.training.tasks import TASKS, Task
from transformer_lib.training.trained import load_trained

RECIPE = Recipe(
    data="bigrams", d_model=8, block=8, batch_size=4, n_steps=6, evaluate_every=3, save_every=2,
    optimizer="adamw", lr=0.01, precision="float32",
)  # fmt: skip


class Bigrams(nn.Module):
    """Not a GPT: the next character from this one alone."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.out(self.table(ids))


def write(model, tokenizer, prompt, n_tokens, **options):
    yield prompt
    ids = torch.tensor(tokenizer.encode(prompt))
    for _ in range(n_tokens):
        ids = torch.cat((ids, model(ids)[-1:].argmax(-1)))
        yield tokenizer.decode(ids[-1:])


def measures(model, corpus, **options) -> dict[str, float]:
    measured = tasks.measures(model, corpus, **options)
    return measured | {"accuracy": 0.25}


@pytest.fixture
def bigrams(monkeypatch):
    """The one entry."""
    task = Task(
        corpus=lambda recipe: text_corpus("roses for mary, " * 20, recipe.block),
        model=lambda recipe, tokenizer: Bigrams(tokenizer.size, recipe.d_model),
        measures=measures,
        names=dict,
        write=write,
    )
    monkeypatch.setitem(TASKS, "bigrams", task)
    monkeypatch.setattr(Recipe, "task", property(lambda recipe: "bigrams"))


def test_another_model_is_trained_stopped_resumed_measured_exported_and_written_by(
    bigrams, tmp_path, capsys
):
    whole = trained_run(RECIPE, tmp_path / "whole")
    assert isinstance(whole.trainer.model, Bigrams)
    begun = Run(RECIPE)
    for step in begun.steps(tmp_path / "run"):
        if step.step == 4:
            break
    resumed = trained_run(RECIPE, tmp_path / "run", resume=find_checkpoints(tmp_path / "run")[-1])
    assert differences(end_of(resumed), end_of(whole)) == []
    assert resumed.curve["accuracy"] == [0.25, 0.25]
    assert main(["resume", str(tmp_path / "run")]) == 0  # writes the log
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.count("25.00% of the answers") == 2
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "out")]) == 0
    assert isinstance(load_trained(tmp_path / "out").model, Bigrams)
    capsys.readouterr()
    for folder in ("run", "out"):
        assert main(["sample", str(tmp_path / folder), "--prompt", "ros", "--tokens", "4"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert len(first) == 7


def test_recipes_and_their_tasks():
    assert Recipe().task == "stories"
    assert Recipe(data="python_docs").task == Recipe(data="mine.txt").task == "text"
    assert "task" not in Recipe().as_json()  # it follows from the data
    assert {Recipe().task, Recipe(data="x").task} == TASKS.keys()


@pytest.mark.parametrize(("vocabulary", "rows"), [(65, 64), (70_000, 1)])
def test_a_large_vocabulary_is_measured_in_small_pieces(vocabulary, rows, monkeypatch):
    corpus = text_corpus("".join(map(chr, range(256, 256 + 3_000))) * 2, block=256)
    object.__setattr__(corpus.tokenizer, "_vocabulary", ("x",) * vocabulary)
    asked = {}
    monkeypatch.setattr(
        tasks, "mean_loss", lambda model, blocks, **options: asked.update(options) or 1.0
    )
    tasks.measures(nn.Identity(), corpus)
    assert asked["batch_size"] == rows


def test_a_field_that_is_younger_than_a_checkpoint_has_the_value_that_it_had(tmp_path):
    """A recipe that was saved before a field was added: the run goes on from it."""
    recipe = Recipe(n_steps=2, n_layers=1, d_model=16, n_stories=20, n_validation=4, save_every=1)
    next(Run(recipe).steps(tmp_path / "run"))
    (checkpoint,) = find_checkpoints(tmp_path / "run")
    configuration = json.loads((checkpoint / "manifest.json").read_text())["configuration"]
    del configuration["recipe"]["decay"]
    forge(checkpoint, configuration=configuration)
    assert trained_run(recipe, tmp_path / "run", resume=tmp_path / "run").trainer.step == 2
