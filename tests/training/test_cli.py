"""The command line: train, resume, evaluate, sample; and what is refused in one line."""

import json
import re
import shutil

import pytest

from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint
from transformer_lib.training.cli import main
from transformer_lib.training.run_log import load_run

TINY = [
    *("--n-steps", "6", "--evaluate-every", "3", "--save-every", "2", "--batch-size", "8"),
    *("--n-layers", "1", "--n-heads", "2", "--d-model", "16", "--dropout", "0.1"),
    *("--n-stories", "80", "--n-validation", "10", "--precision", "float32"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "Tiny run"
    assert main(["train", "--preset", "gifts", "--folder", str(folder), *TINY]) == 0
    return folder


@pytest.fixture
def run_folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def test_a_run_leaves_two_checkpoints_and_its_log(trained):
    checkpoints = find_checkpoints(trained)
    assert [load_checkpoint(path).step for path in checkpoints] == [6, 6]
    log = load_run(trained / "tiny-run.json")
    assert log.curve["step"] == [3, 6]
    assert log.command.startswith("python -m transformer_lib.training train --preset gifts")
    assert log.config["n_steps"] == 6
    assert log.result["validation_loss"] == log.curve["validation_loss"][-1]
    assert log.result["floor"] > 0
    assert 0 <= log.result["accuracy"] <= 1


def test_progress_is_told_in_lines_where_there_is_no_terminal(tmp_path, capsys):
    assert main(["train", "--folder", str(tmp_path / "a"), *TINY]) == 0
    out, err = capsys.readouterr()
    assert re.match(r"done: loss \d\.\d{4} nats a token \(floor 0\.\d{4}\), \d+\.\d+% of", out)
    assert "parameters on cpu in float32, 1 process(es), steps 1 to 6" in err
    assert re.search(r"step 3: training \d\.\d+, validation \d\.\d+, answers \d+\.\d%", err)


@pytest.mark.slow
def test_resuming_gives_the_same_end(trained, tmp_path, capsys):
    options = ["--folder", str(tmp_path / "b"), *TINY]
    assert main(["train", *options]) == 0
    early = tmp_path / "early"
    early.mkdir()
    # a run that ended after step 2: what a kill would have left
    from transformer_lib.training import checkpoints
    from transformer_lib.training.recipes import PRESETS, Recipe
    from transformer_lib.training.run import Run

    end = load_checkpoint(tmp_path / "b")
    run = Run(Recipe.from_json(end.configuration["recipe"]))
    for step in run.steps(early):
        if step.step == 3:
            break
    assert PRESETS["gifts"].n_steps != 6
    assert [checkpoints.load_checkpoint(p).step for p in find_checkpoints(early)] == [2, 3]
    assert main(["resume", str(early / "step-00000002")]) == 0
    resumed = load_checkpoint(early)
    assert resumed.step == 6
    for name, value in end.state["model"].items():
        assert value.equal(resumed.state["model"][name])
    assert (
        resumed.state["run"]["curve"]["validation_loss"]
        == (end.state["run"]["curve"]["validation_loss"])
    )


def test_a_finished_run_is_resumed_without_a_step(run_folder, capsys):
    before = find_checkpoints(run_folder)
    assert main(["resume", str(run_folder)]) == 0
    assert find_checkpoints(run_folder) == before


def test_a_folder_with_a_run_is_not_trained_over(run_folder, capsys):
    assert main(["train", "--folder", str(run_folder), *TINY]) == 1
    assert "holds a run already, saved at step 6" in capsys.readouterr().err
    assert main(["train", "--continue", "--folder", str(run_folder), *TINY]) == 0
    assert main(["train", "--continue", "--folder", str(run_folder), *TINY, "--seed", "5"]) == 1
    assert "configuration" in capsys.readouterr().err


def test_evaluate_says_what_the_run_measured(trained, capsys):
    assert main(["evaluate", str(trained)]) == 0
    loss = load_run(trained / "tiny-run.json").result["validation_loss"]
    assert f"step 6: loss {loss:.4f} nats a token (floor" in capsys.readouterr().out


def test_sample_writes(trained, capsys):
    command = ["sample", str(trained), "--tokens", "100", "--temperature", "0"]
    assert main([*command, "--prompt", "<story> mary has"]) == 0
    words = capsys.readouterr().out.split()
    assert words[:3] == ["<story>", "mary", "has"]
    assert len(words) == 103
    assert main([*command, "--seed", "1", "--temperature", "1"]) == 0
    assert capsys.readouterr().out.startswith("<story>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prompt", "mary eats"], "'eats'"),
        (["--prompt", ""], "empty prompt"),
        (["--temperature", "-1"], "temperature is -1"),
        (["--top-p", "1.5"], "top_p is 1.5"),
        (["--top-k", "0"], "top_k"),
        (["--tokens", "0"], "n_tokens"),
    ],
)
def test_bad_wishes_for_a_sample(trained, options, message, capsys, as_a_reader):
    assert main(["sample", str(trained), *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lr", "fast"], "lr is 'fast', of type str; it must be a number"),
        (["--data", "nowhere.txt"], "nowhere.txt"),
        (["--d-model", "10", "--n-heads", "3"], "n_heads"),
        (["--model", '{"smears": 1}'], "smears"),
        (["--grammar", '{"n_gifts": 99}'], "n_gifts"),
        (["--block", "20"], "block=85"),
    ],
)
def test_bad_wishes_for_a_run_leave_no_folder(tmp_path, options, message, capsys, as_a_reader):
    assert main(["train", "--folder", str(tmp_path / "run"), *TINY, *options]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_offered(run_folder, capsys):
    newest = find_checkpoints(run_folder)[-1]
    tensors = newest / "tensors.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    assert main(["resume", str(run_folder)]) == 1
    error = capsys.readouterr().err
    assert "tensors.safetensors is damaged" in error
    assert str(find_checkpoints(run_folder)[0]) in error


def test_data_that_has_changed_is_refused(tmp_path, capsys):
    text = tmp_path / "mine.txt"
    text.write_text("to be or not to be " * 40)
    folder = str(tmp_path / "run")
    options = ["--data", str(text), "--block", "16"]
    assert main(["train", "--folder", folder, *TINY, *options]) == 0
    assert main(["sample", folder, "--prompt", "to be", "--tokens", "40"]) == 0
    assert len(capsys.readouterr().out.splitlines()[-1]) == 45
    text.write_text("to be or not to be " * 41)
    assert main(["evaluate", folder]) == 1
    assert "its text has changed" in capsys.readouterr().err
    assert main(["resume", folder]) == 1
    assert "data" in capsys.readouterr().err


def test_the_run_s_recipe_is_in_its_checkpoint(trained):
    recipe = load_checkpoint(trained).configuration["recipe"]
    assert json.dumps(recipe)
    assert recipe["precision"] == "float32"


def test_without_tensorboard_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    options = ["--folder", str(tmp_path / "run"), "--tensorboard", str(tmp_path / "events")]
    assert main(["train", *options, *TINY]) == 1
    assert "pip install tensorboard" in capsys.readouterr().err
