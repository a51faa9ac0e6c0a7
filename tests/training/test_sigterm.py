"""SIGTERM to the training program: it saves, says how to go on, and is gone within five seconds."""

import os
import signal
import subprocess
import sys
import time

import pytest

from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint
from transformer_lib.training.run import Run
from transformer_lib.training.trained import recipe_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")

SMALL = [
    "--d-model=16", "--n-heads=2", "--dropout=0.1", "--block=122", "--batch-size=6",
    "--n-steps=100000", "--n-stories=40", "--precision=float32",
]  # fmt: skip
TRAINING = ["--n-layers=2", "--n-validation=8", "--save-every=3", "--evaluate-every=100000"]
# Saved at step 1, before an evaluation that would take long.
EVALUATION = ["--n-layers=12", "--n-validation=300", "--save-every=100000", "--evaluate-every=1"]


def stopped(folder, options, number, wait):
    """Train until the first checkpoint is there and ``wait`` seconds more: stdout, status, time."""
    command = [sys.executable, "-m", "transformer_lib.training", "train", f"--folder={folder}"]
    program = subprocess.Popen(
        [*command, *SMALL, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not find_checkpoints(folder):
            assert program.poll() is None, program.stdout.read()
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(wait)
        program.send_signal(number)
        start = time.perf_counter()
        output, _ = program.communicate(timeout=60)
        return output, program.returncode, time.perf_counter() - start
    finally:
        program.kill()


@pytest.mark.parametrize(
    ("options", "number", "wait"),
    [(TRAINING, signal.SIGTERM, 0.1), (EVALUATION, signal.SIGTERM, 0.05)],
    ids=["training", "evaluation"],
)
def test_a_signal_saves_and_ends_the_program(tmp_path, options, number, wait):
    folder = tmp_path / "a run"
    output, status, seconds = stopped(folder, options, number, wait)
    assert seconds < 5
    assert status == 128 + number
    assert "stopped by SIGTERM. Go on by: python -m transformer_lib.training resume '" in output
    assert f"resume '{folder}'" in output
    assert "Traceback" not in output
    saved = load_checkpoint(folder)
    if options is EVALUATION:
        assert saved.step == 1
        assert saved.state["run"]["curve"]["step"] == []  # it was within its first evaluation
    run = Run(recipe_of(saved))
    run.load(folder)
    assert next(iter(run.trainer)).step == saved.step + 1


def test_a_signal_before_the_first_save_says_that_nothing_is_there(tmp_path):
    """While the data is made: nothing was lost, and there is nothing to go on from."""
    script = (
        "import os, signal, sys\n"
        "from transformer_lib.training import cli, run\n"
        "run.corpus_of = lambda recipe: os.kill(os.getpid(), signal.SIGTERM)\n"
        f"sys.exit(cli.main(['train', '--folder={tmp_path / 'run'}']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert "stopped by SIGTERM. Nothing was saved yet" in done.stdout
