"""The benchmarks of speed and memory run, at sizes that a test can afford."""

import functools
import json
import os
import sys

import pytest
import torch
from programs import BENCHMARKS, load

from transformer_lib.training.run_log import load_run

pytestmark = pytest.mark.slow


def test_generate_runs(tiny, tmp_path, monkeypatch):
    sizes = {"vocabulary": 37, "context": 8, "n_layers": 1, "n_heads": 2, "d_model": 12}
    module = tiny("generate", SIZES=sizes)
    command = [str(BENCHMARKS / "generate.py"), "--rounds", "2", "--tokens", "5"]
    monkeypatch.setattr(sys, "argv", command)
    module.main()
    log = load_run(tmp_path / "generate.json")
    assert log.command == "python benchmarks/generate.py --rounds 2 --tokens 5"
    assert {len(times) for times in log.curve.values()} == {2}
    assert log.config["bytes_read_a_step"] > 4 * 37 * 12


@pytest.mark.soak
def test_scaling_starts_processes_that_agree_with_one_alone(tiny, tmp_path):
    module = tiny("scaling")
    path = tmp_path / "alone.json"
    module.train(path, n_steps=2, accumulation=1)
    alone = json.loads(path.read_text(encoding="utf-8"))
    joined = module.run(2, n_steps=2)
    assert (alone["processes"], joined["processes"]) == (1, 2)
    assert joined["loss"] == pytest.approx(alone["loss"], abs=1e-6)
    assert module.difference(alone["loss"], alone["loss"][::-1]) > 0.01


def test_scaling_compares_turns(tiny, tmp_path):
    written = {
        (1, 1): {"loss": [4.0, 3.0, 2.0], "seconds": [9.0, 2.0, 2.5]},
        (2, 1): {"loss": [4.0, 3.0, 2.5], "seconds": [9.0, 1.0, 1.0]},
        (1, 2): {"loss": [4.0, 3.25, 2.0], "seconds": [9.0, 9.0, 9.0]},
    }
    asked = []

    def run(n_processes, n_steps, accumulation=1):
        asked.append(n_processes)
        return written[n_processes, accumulation] | {"parameters": 7}

    tiny("scaling", run=run, WARM_UP=1, TURNS=2).main()
    log = load_run(tmp_path / "scaling.json")
    assert asked == [1, 2, 1, 2, 1]
    assert log.result["seconds_per_step"] == [2.25, 1.0]
    assert log.result["times_faster"] == 2.25
    assert (log.result["largest_difference"], log.result["rounding"]) == (0.5, 0.25)
    assert log.curve["turn"] == [0] * 6 + [1] * 6


def test_attention_measures_every_point(tiny, tmp_path):
    sizes = {"TOKENS": 32, "LENGTHS": (16, 32), "WIDTH": 8, "TURNS": (2, 3), "SECONDS": 0.0}
    here = {"in_a_fresh_process": lambda function, *arguments: function(*arguments)}
    tiny("attention", **sizes, **here).main()
    log = load_run(tmp_path / "attention.json")
    columns = ("bits", "backward", "tokens", "path")
    rows = list(zip(*(log.curve[name] for name in columns), strict=True))
    paths = {(16, 1): [0, 1, 2]}  # where attention() declines the kernel
    assert rows == [
        (bits, backward, tokens, path)
        for bits in (32, 16)
        for backward in (0, 1)
        for tokens in (16, 32)
        for path in paths.get((bits, backward), [0, 1])
    ]
    assert min(log.curve["seconds"]) > 0
    assert [len(ratios) for ratios in log.result["times_faster"].values()] == [2] * 4


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_compares_paths_that_give_the_same(dtype, backward):
    module = load("attention")
    qkv = module.inputs(module.DTYPES[dtype], 24, backward, 48)
    taught, *others = [module.output(path, *qkv) for path in module.PATHS]
    for other in others:
        torch.testing.assert_close(other, taught, rtol=0.02, atol=0.02)
    assert qkv[0].shape == (2, 1, 24, 64)


def test_attention_counts_turns(tiny):
    module = tiny("attention", TURNS=(2, 9), SECONDS=0.0)
    order = []
    calls = {name: functools.partial(order.append, name) for name in "ab"}
    assert {name: len(times) for name, times in module.seconds(calls).items()} == {"a": 2, "b": 2}
    assert order == list("ababab")  # the first turn warms up


@pytest.mark.soak
def test_attention_reads_the_peak_of_memory_in_fresh_processes(monkeypatch):
    """The weights of 1,024 queries and keys are 4 MiB; the taught path holds two such at a time."""
    monkeypatch.syspath_prepend(
        str(BENCHMARKS)
    )  # the other process must find the module by its name
    module = load("attention")
    monkeypatch.setitem(sys.modules, "attention", module)
    fresh = module.in_a_fresh_process
    taught, fused = (
        fresh(module.mebibytes, path, "float32", 1024, False, 1024) for path in ("taught", "fused")
    )
    assert 8 < taught < 40
    assert fused < taught / 2
    assert fresh(os.getpid) != os.getpid()
    assert fresh(torch.get_num_threads) == torch.get_num_threads()


def test_the_gpu_benchmark_is_the_packages_program(monkeypatch):
    gpu, given = load("gpu"), []
    monkeypatch.setattr(gpu.program, "main", lambda **options: given.append(options) or 0)
    assert gpu.main() == 0
    assert given == [{"folder": gpu.RUNS_FOLDER}]
