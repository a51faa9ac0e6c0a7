"""Mistakes that once cost a traceback, a run or a wrong result, refused before the first step."""

import dataclasses
import json
import os
import re
import shutil
import sys
import warnings

import numpy as np
import pytest
import torch
from models import small_gpt, stories
from torch import nn

from transformer_lib import storage
from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import text_corpus
from transformer_lib.training import cli
from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint, save_checkpoint
from transformer_lib.training.cli import main
from transformer_lib.training.distributed import processes
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run, trained_run
from transformer_lib.training.run_log import FORMAT, FORMAT_VERSION, load_run, save_run
from transformer_lib.training.trained import (
    MANIFEST,
    TRAINED_FOLDER,
    export,
    load_shipped,
    load_trained,
)

TINY = [
    *("--n-steps", "3", "--evaluate-every", "3", "--batch-size", "8", "--n-layers", "1"),
    *("--n-heads", "2", "--d-model", "16", "--n-stories", "80", "--n-validation", "10"),
    *("--precision", "float32"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--folder", str(folder), *TINY]) == 0
    return folder


@pytest.fixture
def run_folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


@pytest.mark.parametrize("make", [lambda m: adamw(m, lr=0.1), lambda m: Muon(m, outside=())])
def test_an_optimizer_steps_on_gradients_of_zero_and_on_none(make):
    model = nn.Linear(3, 3)
    before = model.weight.detach().clone()
    optimizer = make(model)
    optimizer.step()
    assert model.weight.equal(before)
    model(torch.zeros(1, 3)).sum().mul(0).backward()
    optimizer.step()
    assert model.weight.isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lr", "inf"], "lr is inf; it must be a finite number above 0"),
        (["--d-model", "65536", "--n-layers", "3"], "d_model = 65536 make a model that needs"),
        (["--report", "file=/nonexistent/a"], "the report cannot be written there"),
    ],
)
def test_what_would_end_late_ends_at_once(tmp_path, options, message, capsys):
    assert main(["train", "--folder", str(tmp_path / "run"), *TINY, *options]) == 1
    assert message in capsys.readouterr().err


def test_a_damaged_run_is_exported_by_a_whole_command(run_folder, tmp_path, capsys):
    assert main(["train", "--folder", str(tmp_path / "two"), *TINY, "--save-every", "1"]) == 0
    before, last = find_checkpoints(tmp_path / "two")
    next(last.glob("*.safetensors")).write_bytes(b"")
    assert main(["export", str(tmp_path / "two"), str(tmp_path / "out")]) == 1
    assert f"export {before} {tmp_path / 'out'}" in capsys.readouterr().err


def test_a_model_is_loaded_by_its_name_and_on_a_device_that_is_here(as_a_reader):
    with pytest.raises(FileNotFoundError, match=r"load_shipped\('gifts-v3'\)"):
        load_trained("gifts-v3")
    with pytest.raises(ValueError, match="device is 'xpu:7', and PyTorch finds"):
        load_shipped("gifts-v3", device=torch.device("xpu:7"))


def test_a_text_of_one_character_is_trained_on(tmp_path):
    (tmp_path / "a.txt").write_text("a" * 200)
    options = ["--data", str(tmp_path / "a.txt"), "--block", "8", *TINY[:-6], *TINY[-2:]]
    assert main(["train", "--folder", str(tmp_path / "run"), *options]) == 0


@pytest.mark.parametrize("clip", [-1.0, 0.0, float("nan"), float("inf")])
def test_clip_is_a_norm(clip, as_a_reader):
    model = small_gpt()
    with pytest.raises(ValueError, match="clip is"):
        Trainer(model, adamw(model, lr=0.1), Batches(stories(), 7), n_steps=1, clip=clip)
    with pytest.raises(ValueError, match="clip is"):
        Recipe.of(clip=clip)


def test_a_run_takes_a_recipe_and_the_name_of_a_device(as_a_reader):
    with pytest.raises(TypeError, match=r"recipe is 'gifts'; give a Recipe"):
        Run("gifts")
    recipe = Recipe.of(n_steps=1, n_layers=1, d_model=16, n_stories=20, n_validation=4)
    with pytest.raises(ValueError, match=r"device is 'xpu:7', and PyTorch finds"):
        Run(recipe, device=torch.device("xpu:7"))
    with pytest.raises(TypeError, match="corpus is 'gifts', of type str"):
        Run(recipe, "gifts")
    assert len({recipe, recipe.with_changes(), recipe.with_changes(seed=5)}) == 2
    assert Run(recipe, device="cpu").trainer.device == torch.device("cpu")


def test_a_folder_without_a_name_is_not_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = Recipe.of(n_steps=1, n_layers=1, d_model=16, n_stories=20, n_validation=4)
    about = {"configuration": {}, "vocabulary": ""}
    for call in (
        lambda: trained_run(recipe, ""),
        lambda: next(Run(recipe).steps("")),
        lambda: save_checkpoint("", 5, {}, **about),
    ):
        with pytest.raises(ValueError, match="name is an empty text"):
            call()
    assert not [*tmp_path.iterdir()]


def test_a_trainer_takes_a_model_and_batches_a_number_of_numpys(tmp_path, as_a_reader):
    model = small_gpt()
    with pytest.raises(TypeError, match=r"model is of type Trained; .* \(give trained.model\)"):
        Trainer(
            load_shipped("gifts-v3"), sgd := adamw(model, lr=0.1), Batches(stories(), 7), n_steps=1
        )
    trainer = Trainer(model, sgd, Batches(stories(), np.int64(7)), n_steps=1)
    state = trainer.state_dict()
    path = save_checkpoint(tmp_path, np.int64(5), state, configuration={}, vocabulary="")
    assert load_checkpoint(path).state["batches"] == state["batches"]
    with pytest.raises(TypeError, match="the state is of type GPT; give a dictionary"):
        save_checkpoint(tmp_path, 6, model, configuration={}, vocabulary="")


def test_the_optimizer_of_another_model_is_refused():
    with pytest.raises(ValueError, match="the optimizer holds no parameter of this GPT"):
        Trainer(small_gpt(), adamw(small_gpt(), lr=0.1), Batches(stories(), 7), n_steps=1)


@pytest.mark.parametrize("betas", [(0.9,), (0.9, 0.95, 0.99)])
def test_there_are_two_betas(betas, as_a_reader):
    for make in (adamw, Muon):
        with pytest.raises(ValueError, match=r"betas is .* give two numbers"):
            make(nn.Sequential(nn.Linear(2, 2)), 0.1, betas=betas)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--clip", "Infinity"], "clip is inf"),
        (["--clip", "-1"], "clip is -1"),
        (["--adamw-lr", "NaN"], "adamw_lr is nan; it must be a finite number above 0"),
        (["--decay", "Infinity"], "decay is inf"),
        (["--grammar", '{"ask": NaN}'], "--grammar cannot be read: NaN is not a number"),
        (["--data", "caf\udce9.txt"], r"data is 'caf\udce9.txt', which is not valid Unicode"),
        (["--seed", "9" * 23], "choose -2**63 <= seed"),
        (["--model", '{"context": 32}', "--window", "96"], "block = 85, window = 96 need 96"),
    ],
)
def test_what_could_not_be_saved_is_refused_at_once(tmp_path, options, message, capsys):
    assert main(["train", "--folder", str(tmp_path / "run"), *TINY, *options]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_is_told_before_the_first_step(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "afile").write_text("")
    monkeypatch.setattr(Trainer, "take_step", lambda self: pytest.fail("a step was taken"))
    for folder in (tmp_path / "afile", tmp_path / "afile" / "run"):
        assert main(["train", "--folder", str(folder), *TINY]) == 1
        assert "no checkpoint could be saved there" in capsys.readouterr().err

    def denied(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr(storage.tempfile, "TemporaryFile", denied)
    assert main(["train", "--folder", str(tmp_path / "run"), *TINY]) == 1
    assert "(Permission denied), so no step was taken" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_a_folder_whose_name_is_no_unicode(tmp_path, capsys):
    folder = tmp_path / "caf\udce9"
    assert main(["train", "--folder", str(folder), *TINY]) == 0
    assert "caf\\udce9" in capsys.readouterr().out
    log = load_run(folder / "caf.json")
    assert log.name == "caf"
    save_run(dataclasses.replace(log, command=f"train --folder {folder}"), folder)
    assert "caf\udce9" in load_run(folder / "caf.json").command


@pytest.mark.slow
def test_stories_without_questions(tmp_path, capsys):
    folder, options = str(tmp_path / "run"), ["--grammar", '{"ask": 0, "give": 0.85}', *TINY]
    assert main(["train", "--folder", folder, *options]) == 0
    assert main(["resume", folder]) == 0
    assert main(["evaluate", folder]) == 0
    out = capsys.readouterr().out
    assert out.count("floor") == 3
    assert "answers" not in out
    assert "accuracy" not in load_run(tmp_path / "run" / "run.json").result


@pytest.mark.slow
def test_a_renamed_checkpoint_is_not_resumed_into_itself(run_folder, tmp_path, capsys, monkeypatch):
    best = shutil.copytree(find_checkpoints(run_folder)[-1], tmp_path / "best")
    before = sorted(best.iterdir())
    assert main(["resume", str(best)]) == 1
    assert "as step-00000003, and resume that one" in capsys.readouterr().err
    assert sorted(best.iterdir()) == before
    assert main(["evaluate", str(best)]) == 0
    assert main(["export", str(best), str(tmp_path / "out")]) == 1
    assert "is a checkpoint, which has no run log" in capsys.readouterr().err
    monkeypatch.chdir(find_checkpoints(run_folder)[-1])
    assert main(["resume", "."]) == 0
    assert not find_checkpoints(".")


@pytest.mark.slow
def test_a_finished_run_keeps_its_log(run_folder):
    log = run_folder / "run.json"
    before = log.read_bytes()
    assert main(["resume", str(run_folder)]) == 0
    assert log.read_bytes() == before
    log.rename(run_folder / "other.json").write_text("{}")
    assert main(["resume", str(run_folder)]) == 0
    assert load_run(log).config == json.loads(before)["config"]


def test_a_run_from_python_is_exported(tmp_path, as_a_reader):
    recipe = Recipe.of(n_steps=1, n_layers=1, d_model=16, n_stories=20, n_validation=4)
    for _ in Run(recipe).steps(tmp_path / "run"):
        pass
    with pytest.raises(FileNotFoundError, match="Resume the run first: trained_run"):
        export(tmp_path / "run", tmp_path / "out")
    trained_run(recipe, tmp_path / "run", resume=tmp_path / "run")
    trained_run(recipe, tmp_path / "run 2", command="python mine.py")
    log = tmp_path / "run 2" / "run-2.json"
    assert load_run(log).command == "python mine.py"
    whole = re.sub(r"\b(\d+)\.0\b", r"\1", log.read_text("utf-8"))  # as JavaScript writes 1.0
    log.write_text(whole, "utf-8")
    for name in ("run", "run 2"):
        assert (
            load_trained(export(tmp_path / name, tmp_path / f"{name} out")).run.result["step"] == 1
        )


def test_a_folder_saved_twice_at_a_step_says_which(run_folder, capsys):
    newest = find_checkpoints(run_folder)[-1]
    assert newest.name.endswith("-2")
    assert main(["train", "--folder", str(run_folder), *TINY]) == 1
    assert "saved at step 3. Go on" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m["tokenizer"]["vocabulary"].reverse(),
        lambda m: m["tokenizer"]["vocabulary"].pop(),
        lambda m: m["recipe"].update(n_heads=4),
        lambda m: m["recipe"].update(n_heads=7),
        lambda m: m["grammar"].update(n_gifts=2),
        lambda m: m["grammar"].update(n_gift=2),
        lambda m: m["result"].update(accuracy=0.5),
        lambda m: m.pop("tokenizer"),
        lambda m: m.pop("recipe"),
        lambda m: m.pop("grammar_sha256"),
        lambda m: m.pop("files"),
        lambda m: m["files"].pop("run.json"),
        lambda m: m.update(recipe=None),
    ],
)
def test_a_damaged_manifest_of_a_shipped_model(tmp_path, damage, as_a_reader):
    copy = shutil.copytree(TRAINED_FOLDER / "gifts-v3", tmp_path / "copy")
    manifest = json.loads((copy / MANIFEST).read_text())
    damage(manifest)
    (copy / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"(manifest|run)\.json is damaged.*Install"):
        load_shipped(copy)


@pytest.mark.parametrize(
    "configuration",
    [{"recipe": "mine"}, {"recipe": Recipe.of(n_stories=40, n_validation=5).as_json()}, {}],
)
def test_the_checkpoint_of_one_s_own_loop(tmp_path, configuration, capsys, as_a_reader):
    save_checkpoint(tmp_path, 1, {"x": 1}, configuration=configuration, vocabulary="c0ffee")
    for command in ("sample", "evaluate", "resume"):
        assert main([command, str(tmp_path)]) == 1
        assert capsys.readouterr().err.startswith("error: ")


def test_ctrl_c_and_too_little_memory_are_told_in_one_line(trained, capsys, monkeypatch):
    def ends_with(error):
        def fails(*arguments, **options):
            raise error

        monkeypatch.setattr(cli, "load_trained", fails)
        return main(["sample", str(trained)]), capsys.readouterr().err

    assert ends_with(KeyboardInterrupt()) == (130, "\ninterrupted\n")
    for error in (
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried\nTrace"),
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
    ):
        status, told = ends_with(error)
        assert (status, told.count("\n")) == (1, 1)
        assert "there is not enough memory" in told
    with pytest.raises(RuntimeError, match="a defect"):
        ends_with(RuntimeError("a defect"))


def test_a_seed_of_a_sample_that_is_too_large(trained, capsys):
    assert main(["sample", str(trained), "--seed", "9" * 23]) == 1
    assert "choose -2**63 <= seed" in capsys.readouterr().err


def test_a_rank_without_its_companions(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    for name in ("LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=r"RANK=0 is set.*but not LOCAL_RANK"), processes():
        pass


def test_another_number_of_threads_is_told(trained):
    device, checkpoint = torch.device("cpu"), load_checkpoint(trained)
    run = Run(Recipe.from_json(checkpoint.configuration["recipe"]), device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.load(trained)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.warns(UserWarning, match=f"OMP_NUM_THREADS={threads} for the same bits"):
            run.load(trained)
    finally:
        torch.set_num_threads(threads)


def test_a_text_whose_validation_is_too_short_says_so():
    with pytest.raises(ValueError, match=r"its last 1 are to measure.*Give a longer text"):
        text_corpus("0123456789", block=2)


def test_a_log_with_a_strange_number_is_damaged(trained, tmp_path):
    log = json.loads((trained / "run.json").read_text())
    assert (log["format"], log["format_version"]) == (FORMAT, FORMAT_VERSION)
    path = save_run(load_run(trained / "run.json"), tmp_path)
    path.write_text(json.dumps(log | {"result": {"not_finite": [1]}}))
    with pytest.raises(ValueError, match=os.path.basename(path)):
        load_run(path)
