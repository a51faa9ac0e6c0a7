"""The trained models that the library ships: whole, and as good as their manifests say."""

import json
import shutil

import pytest
import torch

from transformer_lib.data.corpora import stories_corpus, text_corpus
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.gifts.lessons import after_marks
from transformer_lib.data.packing import pack
from transformer_lib.training.cli import main
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.trained import (
    MANIFEST,
    TRAINED_FOLDER,
    WEIGHTS,
    load_shipped,
    load_trained,
)

FOLDER = TRAINED_FOLDER / "gifts-v3"
RECIPES = {"gifts-v3": PRESETS["gifts-taught"]}


def test_each_model_that_ships_is_tried_here():
    assert {path.parent.name for path in TRAINED_FOLDER.glob(f"*/{MANIFEST}")} == set(RECIPES)


@pytest.fixture(scope="module", params=RECIPES)
def shipped(request):
    return load_shipped(request.param)


def test_it_was_made_by_the_preset_for_this_grammar(shipped):
    preset = RECIPES[shipped.path.name]
    assert shipped.recipe == preset
    assert list(shipped.recipe.data.lessons) == list(preset.data.lessons)
    assert shipped.grammar == Grammar()
    assert shipped.manifest["grammar_sha256"] == Grammar().hash, "a new grammar: a new version"
    assert shipped.manifest["vocabulary_sha256"] == shipped.tokenizer.hash
    assert shipped.tokenizer.vocabulary == Grammar().vocabulary
    assert shipped.manifest["parameters"] == shipped.model.n_parameters
    assert sum(file.stat().st_size for file in shipped.path.iterdir()) < 3_000_000


def test_its_log_says_the_same(shipped):
    run, result = shipped.run, shipped.manifest["result"]
    assert run.config["n_steps"] == run.curve["step"][-1] == shipped.recipe.n_steps
    assert run.result["validation_loss"] == result["validation_loss"]
    assert result["seen"] == 0
    assert result["accuracy"] >= 0.995
    assert result["validation_loss"] <= 1.01 * result["floor"]


@pytest.mark.slow
def test_it_is_as_good_on_stories_that_nobody_has_seen(shipped):
    """600 stories of a seed that neither training nor validation used."""
    stories = shipped.grammar.stories(600, seed=31)
    blocks = pack([shipped.tokenizer.encode(story) for story in stories], shipped.grammar.max_words)
    floor = shipped.grammar.floor(stories)
    loss = mean_loss(shipped.model, blocks)
    marked = blocks.mark([after_marks(story) for story in stories])
    assert floor - 1e-6 <= loss <= 1.01 * floor
    assert answer_accuracy(shipped.model, blocks, marked) >= 0.995


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "copy")


def test_a_folder_of_one_s_own_is_loaded_by_its_path(copy):
    again = load_shipped(copy)
    for name, value in load_shipped(FOLDER.name).model.state_dict().items():
        assert value.equal(again.model.state_dict()[name])
    assert not again.model.training


def test_it_is_loaded_in_float32_whatever_the_default_is():
    torch.set_default_dtype(torch.float64)
    try:
        model = load_shipped(FOLDER.name).model
        assert model(torch.tensor([[1, 2]])).dtype == torch.float32
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("grammar", [Grammar(n_gifts=2), None])
def test_the_grammar_of_a_run_is_that_of_its_corpus(tmp_path, grammar):
    recipe = Recipe.of(n_steps=1, n_layers=1, d_model=16, n_stories=20, n_validation=4)
    text = "to be or not to be " * 20
    corpus = stories_corpus(grammar, 20, 4, 85) if grammar else text_corpus(text, 16)
    run = Run(recipe, corpus)
    run.trainer.take_step()
    run.save(tmp_path)
    assert load_trained(tmp_path).grammar == grammar


def test_what_is_damaged_or_not_there_is_refused(copy, as_a_reader):
    with pytest.raises(
        FileNotFoundError, match=r"no trained model 'gifts-v9'.*: gifts-v3.* by load_trained"
    ):
        load_shipped("gifts-v9")
    content = bytearray((copy / WEIGHTS).read_bytes())
    content[-100] ^= 1
    (copy / WEIGHTS).write_bytes(content)
    with pytest.raises(ValueError, match=r"weights\.safetensors is damaged"):
        load_shipped(copy)
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps(manifest | {"format_version": 9}))
    with pytest.raises(ValueError, match="format version 9; this library reads version 1"):
        load_shipped(copy)
    (copy / MANIFEST).write_text("{")
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        load_shipped(copy)
    (copy / MANIFEST).write_text("[]")
    with pytest.raises(ValueError, match="is JSON, but not a transformer_lib trained model"):
        load_shipped(copy)


def test_a_finished_run_is_exported(tmp_path, capsys):
    run, exported = tmp_path / "run", tmp_path / "out" / "mine"
    options = ["--n-steps", "2", "--n-stories", "40", "--n-validation", "5", "--n-layers", "1"]
    assert main(["export", str(run), str(exported)]) == 1
    assert "no checkpoint" in capsys.readouterr().err
    assert main(["train", "--folder", str(run), *options]) == 0
    assert main(["export", str(run), str(exported)]) == 0
    assert load_shipped(exported).run.result["step"] == 2
    ids = torch.tensor([load_shipped(exported).tokenizer.encode("<story> mary has")])
    assert load_shipped(exported).model(ids).isfinite().all()
    assert main(["export", str(run), str(exported)]) == 1
    assert "exists" in capsys.readouterr().err
