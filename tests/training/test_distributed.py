"""Two processes: one run, bit for bit resumed; the losses of one; what ends it, and how it says so.

All that two processes do is in together.py, under a single torchrun.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from programs import PATIENCE, started

from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint
from transformer_lib.training.cli import main
from transformer_lib.training.distributed import LostProcessError, losing_a_process
from transformer_lib.training.run import Run
from transformer_lib.training.trained import recipe_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="together.py forks"),
]

TOGETHER = Path(__file__).parents[1] / "support" / "together.py"
DIED = [
    ("killed before the backward pass", 0, 4),
    ("killed before the sum of losses", 0, 4),
    ("killed before a save", 0, 6),
    ("killed in an evaluation", 0, 8),
    ("the first killed", 1, 4),
]
STOPPED = [
    ("stopped in a step", 5),
    ("one stopped in a step", 5),
    ("stopped in an evaluation", 8),
]


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """Everything that torchrun's processes did, until SIGTERM came to torchrun."""
    folder = tmp_path_factory.mktemp("together")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", str(TOGETHER), str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    output = folder / "output"
    with (
        output.open("w") as file,
        started(*command, stdout=file, stderr=file, env=environment) as launcher,
    ):
        end = time.monotonic() + PATIENCE
        while len(find_checkpoints(folder / "last")) < 2:
            assert launcher.poll() is None, output.read_text()
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.02)
        launcher.terminate()
        status = launcher.wait(PATIENCE)
    results = [json.loads((folder / f"results-{rank}.json").read_text()) for rank in (0, 1)]
    return {"folder": folder, "results": results, "status": status}


def output_of(launched, name, rank):
    return (launched["folder"] / f"{name}-{rank}.txt").read_text()


def results_of(launched, name):
    both = [results[name] for results in launched["results"]]
    for rank, result in enumerate(both):
        if result["status"] not in (0, -signal.SIGKILL):
            pytest.fail(output_of(launched, name, rank))
    return both


def goes_on(folder, step):
    """The newest checkpoint is of this step, and a run goes on from it."""
    saved = load_checkpoint(folder)
    assert saved.step == step
    assert len(saved.state["random"]) == 2
    run = Run(recipe_of(saved))
    run.load(folder, other_devices=True)
    assert next(run.steps()).step == step + 1


@pytest.mark.slow
def test_a_run_of_two_resumed_after_any_step_ends_in_the_same_bits(launched):
    first, second = (each["returned"] for each in results_of(launched, "resume"))
    for result in (first, second):
        assert result["different"] == {f"{step}": [] for step in range(1, 9)}
        assert result["epochs"] > 2
    assert first["random"] != second["random"]  # each draws its own dropout


@pytest.mark.parametrize("name", ["whole", "parts"])
def test_two_processes_give_the_losses_of_one(launched, name):
    for result in results_of(launched, "losses"):
        found = result["returned"]
        assert len(found[name]) == 6 + 2
        assert found[name] == pytest.approx(found[f"{name}, alone"], rel=0, abs=1e-6)
        assert found[name][0] - found[name][5] > 0.1  # they learn
        assert found[f"{name}, padding"] > 0
        # Beside the gradients: one sum, of the loss and of who was asked to stop.
        assert found[f"{name}, exchanges"] == [1, 1, 1, 1]


def test_nothing_is_exchanged_but_tensors_on_the_groups_device(launched):
    """NCCL serves GPUs only; random states, which live on the CPU, once ended a run there."""
    for result in results_of(launched, "on cuda only"):
        found = result["returned"]
        assert "No backend type associated with device type cpu" in found.pop("refused")
        assert found == {"ranks": [0, 1], "rows": [1, 6], "random": True,
                         "sum": [2.0, 1.0]}  # fmt: skip


@pytest.mark.parametrize(("name", "left", "saved"), DIED)
def test_a_process_that_dies_ends_the_run_with_a_message(launched, name, left, saved):
    results = results_of(launched, name)
    assert results[1 - left]["status"] == -signal.SIGKILL
    assert results[left]["returned"] == 1
    output = output_of(launched, name, left)
    assert "error: another process of this run has ended or cannot be reached any more" in output
    assert "The run can be resumed from its newest checkpoint, with as many processes." in output
    goes_on(launched["folder"] / f"{name}-run", saved)


@pytest.mark.parametrize(("name", "saved"), STOPPED)
def test_sigterm_to_one_or_both_saves_in_both(launched, name, saved):
    for rank, result in enumerate(results_of(launched, name)):
        assert result["returned"] == 128 + signal.SIGTERM
        output = output_of(launched, name, rank)
        assert "stopped by SIGTERM. To go on: torchrun --standalone --nproc-per-node=2 -m" in output
    goes_on(launched["folder"] / f"{name}-run", saved)


def test_sigterm_to_torchrun_saves_before_it_kills(launched):
    assert launched["status"] != 0
    folder = launched["folder"] / "last"
    output = (launched["folder"] / "output").read_text()
    assert f"-m transformer_lib.training resume {folder}" in output
    goes_on(folder, load_checkpoint(folder).step)


def test_another_number_of_processes_is_refused_with_the_fix(launched, capsys):
    for rank, result in enumerate(results_of(launched, "other number")):
        assert result["returned"] == [1, 0]
        output = output_of(launched, "other number", rank)
        assert "the run was saved by 1 processes, and here 2 would go on" in output
        assert "torchrun --nproc-per-node=1" in output
    folder = launched["folder"] / "last"
    assert main(["resume", str(folder)]) == 1
    assert "Start as many (torchrun --nproc-per-node=2), or pass" in capsys.readouterr().err


def test_other_errors_are_not_taken_for_a_lost_process():
    with pytest.raises(RuntimeError, match="shapes") as caught, losing_a_process():
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert not isinstance(caught.value, LostProcessError)
    with pytest.raises(LostProcessError, match="NCCL"), losing_a_process():
        raise torch.distributed.DistBackendError("NCCL error: remote process exited")
