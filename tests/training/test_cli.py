"""The command line: train, resume, evaluate, sample; and what is refused in one line."""

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from no_gpu import fake_cuda

from transformer_lib import storage
from transformer_lib.training.checkpoints import CheckpointError, find_checkpoints, load_checkpoint
from transformer_lib.training.cli import _how_to_go_on, main
from transformer_lib.training.device import require_precision
from transformer_lib.training.loop import Step
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.reports import Lines, _beginning
from transformer_lib.training.run import Run, _progress
from transformer_lib.training.run_log import load_run
from transformer_lib.training.trained import load_trained

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
    assert log.config["device"] == "cpu"
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
        (["--prompt", ""], "the prompt is empty"),
        (["--temperature", "-1"], "temperature is -1"),
        (["--top-p", "1.5"], "top_p is 1.5"),
        (["--min-p", "1.5"], "min_p is 1.5"),
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


def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_offered(
    run_folder, tmp_path, capsys
):
    newest = find_checkpoints(run_folder)[-1]
    tensors = newest / "tensors.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    for named in (run_folder, newest, f"{run_folder}/"):  # the last as Tab completes it
        assert main(["resume", str(named), "--device", "cpu"]) == 1
        error = capsys.readouterr().err
        assert "tensors.safetensors is damaged" in error
        again = f"resume {find_checkpoints(run_folder)[0]} --device cpu\n"
        assert error.endswith(again.replace(str(tmp_path), shlex.quote(str(tmp_path))))


def test_a_text_is_read_by_byte_pairs_from_its_training_to_what_it_writes(tmp_path, capsys):
    text, folder = tmp_path / "mine.txt", str(tmp_path / "run")
    text.write_text("ಮೇರಿ ಗುಲಾಬಿ to be or not to be\n" * 40, encoding="utf-8")
    options = [*TINY[:-6], *TINY[-2:], "--data", str(text), "--block", "16", "--vocabulary", "280"]
    assert main(["train", "--folder", folder, *options]) == 0
    trained = load_trained(folder)
    assert len(trained.tokenizer.merges) == 24
    assert trained.tokenizer.decode(trained.tokenizer.encode("ಮೇರಿ!")) == "ಮೇರಿ!"
    assert main(["evaluate", folder]) == 0
    capsys.readouterr()
    assert main(["sample", folder, "--tokens", "40", "--temperature", "0"]) == 0
    assert capsys.readouterr().out.startswith("\n")
    shutil.rmtree(find_checkpoints(folder)[-1])
    assert main(["resume", folder]) == 0


def test_the_run_s_recipe_is_in_its_checkpoint(trained):
    recipe = load_checkpoint(trained).configuration["recipe"]
    assert json.dumps(recipe)
    assert recipe["precision"] == "float32"


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_what_a_report_needs_is_named(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, name, None)
    options = [f"--folder={tmp_path / 'run'}", f"--report={name}={tmp_path}"]
    assert main(["train", *options, *TINY]) == 1
    assert f"pip install {name}" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["paper=here", "file", "file="])
def test_a_report_that_there_is_not(tmp_path, capsys, as_a_reader, asked):
    assert main(["train", f"--folder={tmp_path / 'run'}", f"--report={asked}", *TINY]) == 1
    error = capsys.readouterr().err
    assert (
        f"the report '{asked}' is not one of tensorboard=FOLDER, wandb=PROJECT, file=FILE" in error
    )


@pytest.mark.usefixtures("as_a_reader")
def test_a_report_stays_where_it_was_begun(tmp_path, monkeypatch):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    report = Lines("steps.jsonl")
    monkeypatch.chdir(elsewhere)
    step = Step(step=1, loss=2.0, rate=0.1, gradient_norm=math.inf, tokens=3, seconds=0.1)
    report(SimpleNamespace(curve={"step": []}), step)
    line = storage.parse_json((tmp_path / "steps.jsonl").read_bytes())
    assert (line["step"], line["gradient norm"]) == (1, None)  # JSON has no infinity
    assert not any(elsewhere.iterdir())


def test_reports_can_be_several(tmp_path, monkeypatch):
    """Weights & Biases is played by an object that notes what it is told."""
    told, first, second = [], tmp_path / "first", tmp_path / "second"
    run = SimpleNamespace(
        config=SimpleNamespace(update=lambda values, **options: told.append(values)),
        log=lambda values, step: told.append((step, values)),
        finish=lambda exit_code: told.append(exit_code),
    )
    wandb = SimpleNamespace(init=lambda project: told.append(project) or run)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    reports = [f"--report=file={first}", "--report=wandb=gifts", f"--report=file={second}"]
    reports += reports[:1]  # twice the same is once
    assert main(["train", f"--folder={tmp_path / 'run'}", *reports, *TINY]) == 0
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    assert first.read_text() == second.read_text()
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert {"loss/validation", "accuracy"} <= lines[-1].keys()
    project, recipe, *steps, end = told
    assert (project, recipe["n_layers"], end) == ("gifts", 1, 0)
    assert [{"step": step, **values} for step, values in steps] == lines
    run.log = lambda values, step: (told.append(step), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["train", f"--folder={tmp_path / 'other'}", *reports, *TINY])
    assert told[-2:] == [1, 1]  # after its first step it ends as a failure


@pytest.mark.parametrize("command", ["train", "resume", "evaluate", "sample"])
def test_the_device_is_chosen_by_name(run_folder, tmp_path, capsys, command, as_a_reader):
    where = [f"--folder={tmp_path / 'new'}", *TINY] if command == "train" else [str(run_folder)]
    assert main([command, *where, "--device=tpu"]) == 1
    assert "device is 'tpu'; choose one of cpu, cuda, mps, xpu" in capsys.readouterr().err
    assert main([command, *where, "--device=cpu"]) == 0


def test_the_device_is_the_best_one_if_none_is_named(trained, monkeypatch, capsys):
    monkeypatch.setattr("transformer_lib.training.device.best_device", lambda: torch.device("meta"))
    assert main(["sample", str(trained), "--device=cpu"]) == 0
    with pytest.raises(RuntimeError):  # it has no numbers
        main(["sample", str(trained)])


def test_gpus_that_are_not_used_are_told(monkeypatch):
    run = Run(PRESETS["gifts"].with_changes(n_stories=20, n_validation=5, n_layers=1))
    assert "GPUs" not in _beginning(run)
    run.trainer.device = torch.device("cuda")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    words = "of 2 GPUs here (torchrun --standalone --nproc-per-node=2 takes all)"
    assert words in _beginning(run)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert "GPUs" not in _beginning(run)


def test_how_to_go_on_is_told_for_as_many_machines(run_folder, monkeypatch):
    folder = str(run_folder)
    assert _how_to_go_on(folder).startswith("To go on: python -m transformer_lib.training resume")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert "on: torchrun --standalone --nproc-per-node=4 -m" in _how_to_go_on(folder)
    monkeypatch.setenv("WORLD_SIZE", "8")
    told = _how_to_go_on(folder)
    assert "on: torchrun --nnodes=2 --nproc-per-node=4 -m" in told
    assert told.endswith("(on each machine, as the run was started)")


def test_a_run_that_began_at_an_earlier_checkpoint_goes_on_from_its_own(run_folder):
    newest = find_checkpoints(run_folder)[-1]
    own = shutil.copytree(newest, run_folder / "step-00000004")
    os.utime(own, (2**31, 2**31))
    assert _how_to_go_on(str(run_folder)).endswith(f"resume {own}")
    os.utime(newest, (2**31, 2**31))
    assert _how_to_go_on(str(run_folder)).endswith(f"resume {run_folder}")


def test_a_run_goes_on_in_another_precision_where_its_own_is_missing(tmp_path, monkeypatch, capsys):
    """Begun in bfloat16, and now on a T4: in float16, with the optimizer's and the loss's scale
    as that needs them.
    """
    folder, options = str(tmp_path / "run"), [*TINY, "--precision", "bfloat16"]
    assert main(["train", "--folder", folder, *options]) == 0
    early = find_checkpoints(folder)[0]
    shutil.rmtree(find_checkpoints(folder)[1])
    assert load_checkpoint(early).state["scaler"] == {}
    with fake_cuda(bfloat16=False), pytest.raises(ValueError, match="no units") as refused:
        require_precision("bfloat16", torch.device("cuda"))
    with monkeypatch.context() as on_a_t4:
        refuse = Mock(side_effect=refused.value)
        on_a_t4.setattr("transformer_lib.training.loop.require_precision", refuse)
        assert main(["resume", folder]) == 1
    assert "(Here: --other-devices, and the run goes on" in capsys.readouterr().err
    monkeypatch.setattr("transformer_lib.training.run.precision_here", lambda p, device: "float16")
    monkeypatch.setattr("transformer_lib.training.cli.precision_here", lambda p, device: "float16")
    saved = Recipe.from_json(load_checkpoint(early).configuration["recipe"])
    other = Run(saved.with_changes(precision="float16"))
    with pytest.raises(CheckpointError, match="of another configuration: precision"):
        other.load(folder)
    other.load(folder, other_devices=True)
    assert other.trainer.optimizer.param_groups[0]["dtype"] is None  # not bfloat16
    assert other.trainer.scaler.get_scale() > 1
    assert main(["evaluate", folder]) == 0
    assert "in float16, as cpu has no units for bfloat16" in capsys.readouterr().out
    assert main(["resume", folder, "--other-devices"]) == 0
    assert load_checkpoint(folder).configuration["recipe"]["precision"] == "float16"


def test_seconds_by_the_clock_are_in_the_log_and_go_on_after_a_resume(run_folder):
    result = load_run(run_folder / "tiny-run.json").result
    assert result["wall_seconds"] > result["seconds"] > 0
    run = Run(Recipe.from_json(load_checkpoint(run_folder).configuration["recipe"]))
    run.load(run_folder)
    assert run.wall > run.seconds
    state = load_checkpoint(run_folder).state
    del state["run"]["wall"]  # as it was before
    curve, seconds, wall, _ = _progress(state, 6)
    assert wall == seconds == run.seconds
    assert curve == run.curve


@pytest.mark.slow
def test_without_triton_it_says_what_to_do(monkeypatch, tmp_path, capsys):
    from torch._inductor.exc import TritonMissing  # a second to import

    def compiles(run, *arguments):
        raise TritonMissing(None)

    monkeypatch.setattr(Run, "_steps", compiles)
    assert main(["train", *TINY, f"--folder={tmp_path / 'run'}"]) == 1
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith("error: the model could not be compiled (Cannot find a working triton")
    assert said.endswith("Or train with --compiled false, which is only slower.")


def test_without_a_compiler_it_says_what_to_do(tmp_path):
    environment = os.environ | {"CXX": "/nonexistent", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "transformer_lib.training", "train", "--device=cpu"]
    command += [*TINY, "--compiled=true", f"--folder={tmp_path / 'run'}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    *_, last = done.stderr.splitlines()
    assert last.startswith("error: the model could not be compiled (")
    assert last.endswith("Or train with --compiled false, which is only slower.")
