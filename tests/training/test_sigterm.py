"""Signals to the training program: it saves, says how to go on, and is gone.

And two programs in one folder: the second is refused.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from programs import PATIENCE, started

from transformer_lib.storage import OWNER, InUseError, locked
from transformer_lib.training import run as library_run
from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint
from transformer_lib.training.cli import main
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import STOPPING_SIGNALS, Run, Stopped, trained_run, watching
from transformer_lib.training.tasks import corpus_of
from transformer_lib.training.trained import recipe_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")

SMALL = [
    "--d-model=16", "--n-heads=2", "--dropout=0.1", "--block=122", "--batch-size=6",
    "--n-steps=100000", "--n-stories=40", "--precision=float32",
]  # fmt: skip
TRAINING = ["--n-layers=2", "--n-validation=8", "--save-every=3", "--evaluate-every=100000"]
# Saved at step 1, before an evaluation that would take seconds.
EVALUATION = ["--n-layers=12", "--n-validation=1000", "--save-every=100000", "--evaluate-every=1"]


@contextlib.contextmanager
def training(folder, options, **others):
    """A program that trains and has saved its first checkpoint."""
    command = [sys.executable, "-m", "transformer_lib.training", "train", f"--folder={folder}"]
    command += ["--device=cpu"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with started(*command, *SMALL, *options, env=environment, **(pipes | others)) as program:
        until = time.monotonic() + PATIENCE
        while not find_checkpoints(folder):
            assert program.poll() is None, program.stdout and program.stdout.read()
            assert time.monotonic() < until
            time.sleep(0.01)
        yield program


@pytest.mark.slow
@pytest.mark.parametrize("options", [TRAINING, EVALUATION], ids=["training", "evaluation"])
def test_a_signal_saves_and_ends_the_program(tmp_path, options):
    folder = tmp_path / "a run"
    with training(folder, options) as program:
        computed = psutil.Process(program.pid).cpu_times
        enough = computed().user + 0.1  # seconds: in the midst of a step, or of the evaluation
        while computed().user < enough:
            time.sleep(0.01)
        program.send_signal(signal.SIGTERM)
        output, _ = program.communicate(timeout=PATIENCE)
    assert program.returncode == 128 + signal.SIGTERM
    assert "stopped by SIGTERM. To go on: python -m transformer_lib.training resume '" in output
    assert f"resume '{folder}'" in output
    assert "Traceback" not in output
    saved = load_checkpoint(folder)
    if options is EVALUATION:
        assert saved.step == 1
        assert saved.state["run"]["curve"]["step"] == []  # it was within its first evaluation
    run = Run(recipe_of(saved))
    run.load(folder)
    assert next(iter(run.trainer)).step == saved.step + 1


@pytest.mark.slow
def test_two_programs_in_one_folder(tmp_path, capsys):
    """The second is refused, whatever it wants to do there, until the first has ended."""
    folder = tmp_path / "run"
    with training(folder, TRAINING) as program:
        for command in (
            ["train", "--continue", f"--folder={folder}", *SMALL, *TRAINING],
            ["resume", str(folder)],
        ):
            assert main(command) == 1
            error = capsys.readouterr().err
            assert f"process {program.pid} is training there. Wait until it has ended" in error
            assert str(folder) in error
        assert main(["sample", str(folder), "--tokens=3"]) == 0  # who only reads, may
        assert program.poll() is None
    assert (folder / OWNER).exists()  # it was killed
    saved = load_checkpoint(folder)
    with pytest.raises(Stopped, match="SIGUSR1"):
        trained_run(recipe_of(saved), folder, resume=folder, report=lambda run, step: stop(step))
    assert load_checkpoint(folder).step > saved.step
    assert not (folder / OWNER).exists()


def stop(step):
    if step is not None:
        signal.raise_signal(signal.SIGUSR1)


@pytest.mark.slow
def test_a_terminal_that_closes_saves_and_ends_the_program(tmp_path):
    """SIGHUP, and nothing can be written any more."""
    folder = tmp_path / "run"
    reading, writing = os.pipe()
    with training(folder, TRAINING, stdout=writing, stderr=writing) as program:
        os.close(writing)
        os.close(reading)
        before = load_checkpoint(folder).step
        program.send_signal(signal.SIGHUP)
        assert program.wait(PATIENCE) == 128 + signal.SIGHUP
    assert load_checkpoint(folder).step >= before


@contextlib.contextmanager
def handled(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_every_asking_signal_is_noted_and_an_ignored_one_stays_ignored():
    for name in STOPPING_SIGNALS:
        number = getattr(signal, name)
        # Not as these tests were started: a shell has SIGINT ignored in the background.
        with handled(number, signal.default_int_handler), watching() as stopping:
            signal.raise_signal(number)
            assert stopping.number == number
    with handled(signal.SIGHUP, signal.SIG_IGN):  # what nohup does
        with watching() as stopping:
            signal.raise_signal(signal.SIGHUP)
            assert stopping.number is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_run_that_was_begun_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    """Another program has trained and ended while this one made its data."""
    recipe = Recipe.of(n_steps=2, n_layers=1, d_model=16, n_stories=20, n_validation=4)

    def corpus_while_another_trains(recipe):
        for _ in Run(recipe, corpus_of(recipe)).steps(tmp_path / "run"):
            pass
        return corpus_of(recipe)

    monkeypatch.setattr(library_run, "corpus_of", corpus_while_another_trains)
    with pytest.raises(ValueError, match="holds a run already, saved at step 2"):
        trained_run(recipe, tmp_path / "run")


def test_the_checkpoints_of_another_run_are_not_deleted(tmp_path):
    recipe = Recipe.of(
        n_steps=3, n_layers=1, d_model=16, n_stories=20, n_validation=4, save_every=1
    )
    for _ in Run(recipe).steps(tmp_path):
        pass
    before, other = find_checkpoints(tmp_path), Run(recipe.with_changes(seed=2))
    other.trainer.take_step()
    for saves in (other.save, lambda folder: next(other.steps(folder))):
        with pytest.raises(ValueError, match="holds a run already, saved at step 3"):
            saves(tmp_path)
    assert find_checkpoints(tmp_path) == before


def test_steps_hold_their_folder_until_they_end_or_are_closed(tmp_path):
    recipe = Recipe.of(
        n_steps=2, n_layers=1, d_model=16, n_stories=20, n_validation=4, save_every=1
    )
    folder, run = tmp_path / "run", Run(recipe)
    steps = run.steps(folder)
    next(steps)
    with pytest.raises(InUseError, match=f"process {os.getpid()} is training there"):
        next(Run(recipe).steps(folder))
    with pytest.raises(InUseError):
        trained_run(recipe, folder, resume=folder)
    steps.close()
    before = find_checkpoints(folder)
    with pytest.raises(ValueError, match=r"saved at step 1\. Go on .* run\.load"):
        next(Run(recipe).steps(folder))
    assert find_checkpoints(folder) == before
    for _ in run.steps(folder):
        with pytest.raises(InUseError):
            trained_run(recipe, folder, resume=folder)
    assert trained_run(recipe, folder, resume=folder).trainer.step == 2
    with locked(folder):
        assert list(run.steps(folder)) == []  # nothing is left to be written


def test_a_signal_before_the_first_save_says_that_nothing_is_there(tmp_path, monkeypatch, capsys):
    """While the data is made: nothing was lost, and there is nothing to go on from."""

    def killed(recipe):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(library_run, "corpus_of", killed)
    assert main(["train", f"--folder={tmp_path / 'run'}"]) == 128 + signal.SIGTERM
    assert "stopped by SIGTERM. Nothing was saved yet" in capsys.readouterr().out
