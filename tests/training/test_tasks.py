"""Tasks: another family of models needs one entry here, and no second loop, run or command line."""

import json
import math
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from damage import forge
from small_runs import differences, end_of
from torch import nn

from transformer_lib.bpe import train_bpe
from transformer_lib.data.corpora import KINDS, Corpus, text_corpus
from transformer_lib.data.gifts import Grammar
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training import tasks
from transformer_lib.training.checkpoints import find_checkpoints
from transformer_lib.training.cli import main
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.losses import cross_entropy
from transformer_lib.training.recipes import DATA, DataRecipe, DataSet, Recipe
from transformer_lib.training.run import Run, trained_run
from transformer_lib.training.tasks import TASKS, Task, corpus_of
from transformer_lib.training.trained import load_trained

RECIPE = Recipe.of(
    data="reversed", d_model=16, n_heads=2, block=8, batch_size=4, n_steps=6, evaluate_every=3,
    save_every=2, optimizer="adamw", lr=0.01, precision="float32", dropout=0.1,
)  # fmt: skip
WORDS = ["mary", "gave", "roses", "to", "susan"]


class Pairs:
    """Rows of two inputs and targets: words, and what is to be written behind what was."""

    def __init__(self, n_rows):
        self.words = torch.arange(n_rows * 4).view(n_rows, 4) ** 2 % len(WORDS)

    def __len__(self):
        return len(self.words)

    def rows(self, indices):
        sources, reverses = self.words[indices], self.words[indices].flip(1)
        return sources, reverses.roll(1, dims=1), reverses


class Reverser(nn.Module):
    """Not a GPT, and not a decoder: two inputs."""

    def __init__(self, vocabulary, width, n_heads, dropout):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.transformer = nn.Transformer(width, n_heads, 1, 1, width, dropout, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, sources, written):
        return self.out(self.transformer(self.table(sources), self.table(written)))


def reversed_words(recipe):
    tokenizer = WordTokenizer(WORDS)
    return Corpus(tokenizer=tokenizer, training=Pairs(20), validation=Pairs(6), signature="words")


def reverser(recipe, tokenizer):
    return Reverser(
        tokenizer.size, recipe.model.d_model, recipe.model.n_heads, recipe.model.dropout
    )


def measures(model, corpus, **options) -> dict[str, float]:
    loss = mean_loss(model, corpus.validation, **options)
    return {"validation_loss": loss, "accuracy": 0.25, "perplexity": math.exp(loss)}


def write(model, tokenizer, prompt, n_tokens, **options):
    ids = torch.tensor([tokenizer.encode(prompt)])
    yield tokenizer.decode(model(ids, ids)[0].argmax(-1)[:n_tokens])


@pytest.fixture
def another_task(monkeypatch):
    """The one entry."""
    smoothed = partial(cross_entropy, label_smoothing=0.1)
    task = Task(
        corpus=reversed_words, model=reverser, loss=smoothed, measures=measures, names=dict,
        write=write,
    )  # fmt: skip
    monkeypatch.setitem(TASKS, "reversal", task)
    monkeypatch.setattr(DataRecipe, "task", property(lambda data: "reversal"))


@pytest.mark.usefixtures("another_task", "as_a_reader")  # beartype draws random numbers
def test_another_model_is_trained_stopped_resumed_measured_exported_and_written_by(
    tmp_path, capsys
):
    whole = trained_run(RECIPE, tmp_path / "whole")
    assert isinstance(whole.trainer.model, Reverser)
    begun = Run(RECIPE)
    for step in begun.steps(tmp_path / "run"):
        if step.step == 4:
            break
    resumed = trained_run(RECIPE, tmp_path / "run", resume=find_checkpoints(tmp_path / "run")[-1])
    assert differences(end_of(resumed), end_of(whole)) == []
    assert resumed.curve["accuracy"] == [0.25, 0.25]
    losses, perplexities = resumed.curve["validation_loss"], resumed.curve["perplexity"]
    assert perplexities == [math.exp(loss) for loss in losses]
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert told.count(f"25.00% of the answers right, perplexity {perplexities[-1]:.4f}") == 2
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "out")]) == 0
    assert isinstance(load_trained(tmp_path / "out").model, Reverser)
    capsys.readouterr()
    for folder in ("run", "out"):
        assert (
            main(["sample", str(tmp_path / folder), "--prompt", "mary gave", "--tokens", "2"]) == 0
        )
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert len(first.split()) == 2


@pytest.mark.usefixtures("another_task")
@pytest.mark.parametrize("name", ["step", "training_loss", "seconds", "rate"])
def test_a_measure_does_not_take_the_name_of_a_column_of_the_run(name, monkeypatch):
    own = replace(TASKS["reversal"], measures=lambda *parts, **options: {name: 1.0})
    monkeypatch.setitem(TASKS, "reversal", own)
    with pytest.raises(ValueError, match=rf"measures name \['{name}'\], which are the run's own"):
        list(Run(RECIPE).steps())


@pytest.mark.usefixtures("another_task")
def test_a_curve_that_could_not_be_read_again_is_not_saved(tmp_path):
    run = Run(RECIPE)
    steps = run.steps(tmp_path / "run")
    assert [next(steps).step for _ in range(3)] == [1, 2, 3]
    run.curve["note"] = ["mine"]
    with pytest.raises(TypeError, match="its curve holds something other than numbers"):
        list(steps)
    assert all(load_trained(path) for path in find_checkpoints(tmp_path / "run"))


def test_a_text_goes_on_by_whole_characters_and_stops_at_its_end():
    text = "mary ನೀಡಿದಳು ✿ roses"
    tokenizer = train_bpe(text, 257, ["<e>"])
    written = iter([*tokenizer.encode(text), 0, 5, 5])
    options = {"vocabulary": tokenizer.size, "n_layers": 1, "n_heads": 2, "d_model": 12}
    model = GPT(GPTConfig(context=99, **options))
    forced = lambda x: torch.eye(tokenizer.size)[[next(written)]].expand(1, x.shape[1], -1)  # noqa: E731
    model.logits = forced
    pieces = list(tasks.continuation(model, tokenizer, "a", 80, end=0, temperature=0))
    assert "".join(pieces) == f"a{text}<e>"
    assert "ನ" in pieces  # as soon as it is whole


def test_recipes_and_their_tasks():
    assert DataRecipe().task == "stories"
    assert DataRecipe(name="python_docs").task == DataRecipe(name="mine.txt").task == "text"
    assert "task" not in Recipe().as_json()  # it follows from the data
    for data in ("kannada", "multi30k", "mine.tsv", "MINE.TSV"):
        assert DataRecipe(name=data).task == "translation"
    assert {DataRecipe().task, DataRecipe(name="x").task, "translation"} == TASKS.keys()


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
    recipe = Recipe.of(
        n_steps=2, n_layers=1, d_model=16, n_stories=20, n_validation=4, save_every=1
    )
    next(Run(recipe).steps(tmp_path / "run"))
    (checkpoint,) = find_checkpoints(tmp_path / "run")
    configuration = json.loads((checkpoint / "manifest.json").read_text())["configuration"]
    del configuration["recipe"]["decay"]
    forge(checkpoint, configuration=configuration)
    assert trained_run(recipe, tmp_path / "run", resume=tmp_path / "run").trainer.step == 2


def test_the_script_that_contributing_shows(tmp_path, capsys, monkeypatch, as_a_reader):
    contributing = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text("utf-8")
    [script] = re.findall(r"```python\n(.*?cli\.main\(\)\n)```", contributing, re.DOTALL)
    for table, name in ((KINDS, "lowercase"), (TASKS, "folder"), (DATA, "mine")):
        monkeypatch.setitem(table, name, None)  # what the script puts there is taken out again
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    Path("texts", "a.txt").write_text("Susan GAVE the roses. " * 20, "utf-8")
    Path("texts", "b.txt").write_text("To Whom? " * 20, "utf-8")
    tiny = "--data mine --n-steps 2 --block 8 --batch-size 2 --n-layers 1 --n-heads 1 --d-model 8"
    for command in (
        f"train --preset cpu --folder run {tiny}",
        "sample run --prompt SUSAN --tokens 3",
    ):
        monkeypatch.setattr(sys, "argv", ["mine.py", *command.split()])
        exec(script, {"__name__": "__main__"})
    written = capsys.readouterr().out.splitlines()[-1]
    assert written.startswith("susan")
    assert len(written) == len("susan") + 3


def test_a_grammar_of_one_s_own_makes_the_stories(monkeypatch):
    class Fairy(Grammar):
        def stories(self, n, *, seed=0):
            return super().stories(n, seed=seed + 1000)

    monkeypatch.setitem(DATA, "fairy", DataSet("stories", Fairy))
    corpus = corpus_of(Recipe.of(data="fairy", n_stories=20, n_validation=5, block=90))
    told = corpus.tokenizer.decode(corpus.training.rows(torch.tensor([0]))[0][0].tolist())
    assert any(told.startswith(story[:60]) for story in Fairy().stories(20))
    assert isinstance(corpus.grammar, Fairy)
