"""The program that measures a GPU, on the CPU: its parts in small, and what ends it early."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from no_gpu import fake_cuda
from programs import PATIENCE

from transformer_lib.training.gpu import machine, programs, right, speed
from transformer_lib.training.gpu.__main__ import main, presets, text_of
from transformer_lib.training.gpu.timing import Measurements, wait_for
from transformer_lib.training.recipes import PRESETS
from transformer_lib.training.run_log import load_run

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
TEXT = "Mary gave roses to Susan. Now Susan has the roses.\n" * 40


def measurements(folder=None, seconds=60.0):
    return Measurements(CPU, folder, seconds, {})


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.usefixtures("as_a_reader")  # checked signatures cannot be compiled
def test_all_parts_run_in_small_on_a_cpu(monkeypatch, tmp_path, capsys):
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: compile(model, backend="eager"))
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    options = ["--few", "--device=cpu", f"--data={text}", f"--folder={tmp_path}"]
    assert main(options) == 0, capsys.readouterr()
    log = load_run(tmp_path / "gpu.json")
    found, config = log.result, log.config
    assert config["precisions"] == ["float32", "bfloat16"]
    assert config["data"] == str(text)
    largest = found["every wiring"]["largest distance of the loss from float32's"]
    assert largest["float32"] == 0 < largest["bfloat16"] < 0.1
    for name in ("GPT-2 small", "GPT-2 small, compiled"):
        assert found[name]["compiled"] == name.endswith("compiled")
        assert found[name]["rows"] == 12
        assert not any("nanoGPT" in key for key in found[name])  # this was not GPT-2's size
    assert set(found["steps"]["milliseconds a step"]) >= {"float32", "bfloat16"}
    (losses,) = (value for name, value in found.items() if name.startswith("losses of"))
    assert losses["curve"]["seed 0"]["step"] == [6, 12]
    assert losses["validation loss"] == losses["curve"]["seed 0"]["validation loss"][-1:]
    assert 0 < sum(losses["seconds of the steps"]) < sum(losses["seconds"])
    assert found["same bits"]["deterministic, resumed"]
    assert 0 < found["stopped and resumed"]["stopped at step"] < 120
    assert found["two processes"]["apart"] < 1e-3
    assert found["optimizers"]["milliseconds"]["Muon"]["share of the optimizer"] > 0
    assert found["kernels of attention"]["fast, float32"]
    for entry in found["translator"].values():
        assert entry["loss"][1] < entry["loss"][0]
    assert log.command.startswith("python -m transformer_lib.training.gpu --few --device=cpu")
    assert len(found["seconds"]) == len(found) - 1
    assert max(log.curve["case"]) < len(config["cases"])
    assert min(log.curve["milliseconds"]) > 0


def test_a_failed_part_is_an_entry_and_the_next_one_runs(tmp_path, capsys):
    m, saved = measurements(tmp_path), []

    def fails():
        raise RuntimeError("CUDA error: no kernel image\nis available")

    m.part("first", 0, fails)
    saved.append(load_run(tmp_path / "gpu.json").result)
    m.part("second", 0, lambda: {"x": 1})
    saved.append(load_run(tmp_path / "gpu.json").result)
    assert saved[0]["first"]["error"].startswith("RuntimeError: CUDA error: no kernel image is av")
    assert saved[1] | saved[0] | {"seconds": saved[1]["seconds"]} == saved[1]
    assert saved[1]["second"] == {"x": 1}
    assert m.failed == ["first"]


def test_an_error_that_stays_on_the_gpu_is_in_the_log(monkeypatch, tmp_path, capsys):
    """What a part has left is given back within the next one: after some errors, nothing can be."""
    m = measurements(tmp_path)
    m.part("first", 0, lambda: {"x": 1})

    def refuses():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(m, "free", refuses)
    m.part("second", 0, lambda: {"x": 2})
    result = load_run(tmp_path / "gpu.json").result
    assert result["first"] == {"x": 1}
    assert "illegal memory access" in result["second"]["error"]


def test_what_does_not_fit_into_the_time_says_so(tmp_path, capsys):
    m = measurements(tmp_path, seconds=0.3)
    m.part("large", 60, lambda: 1 / 0)
    m.end = time.perf_counter() + 0.3
    m.part("endless", 0, lambda: time.sleep(30))
    m.part("late", 0.1, lambda: 1 / 0)
    result = load_run(tmp_path / "gpu.json").result
    assert result["large"] == {"left out": "it needs about 60 s, and 0 s are left"}
    assert result["endless"]["error"].startswith("OutOfTime: it was stopped after 0 s")
    assert result["late"]["left out"].startswith("it needs about 0 s")
    assert result["seconds"]["endless"] < 5


def test_turns_are_taken_in_another_order_each_round(monkeypatch):
    m, done = measurements(), []
    monkeypatch.setattr("transformer_lib.training.gpu.timing.wait_for", lambda _: done.append("|"))
    calls = {name: (lambda name=name: done.append(name)) for name in "abc"}
    found = m.take_turns(calls, rounds=20, warm=1)
    rounds = ["".join(done).replace("|", "")[i : i + 3] for i in range(0, 63, 3)]
    assert {"".join(sorted(each)) for each in rounds} == {"abc"}
    assert len(set(rounds)) > 3
    assert done[:6] == ["|", done[1], "|", "|", done[4], "|"]  # before and after each
    assert [found[name]["rounds"] for name in "abc"] == [20, 20, 20]
    assert m.curve["case"].count(0) == 20
    assert m.cases == ["a", "b", "c"]


def test_a_precision_that_is_not_used_is_found(monkeypatch):
    monkeypatch.setattr(
        right, "in_precision", lambda device, precision: torch.autocast("cpu", enabled=False)
    )
    with pytest.raises(AssertionError, match="bfloat16 was not used"):
        right.every_wiring(CPU, ["float32", "bfloat16"], ["fast"])


def test_tf32_is_on_where_it_is_measured(monkeypatch):
    asked = []

    def recorded(device, *, tf32=False):
        asked.append(tf32)
        return nullcontext()

    for part in (right, speed):
        monkeypatch.setattr(part, "chosen_kernels", recorded)
    with pytest.raises(AssertionError, match="tf32 was not used"):  # as here it cannot be
        right.every_wiring(CPU, ["float32", "tf32"], ["fast"])
    speed.products(measurements(), ["float32", "tf32"], 8)
    assert asked == [False, False, True, False, True]


def test_a_t4_is_measured_by_its_own_preset_and_says_what_is_left_out():
    with fake_cuda(bfloat16=False):
        found, left_out = right.precisions_of(CUDA)
    assert found == ["float32", "float16"]
    assert set(left_out) == {"tf32", "bfloat16"}
    assert "has no units" in left_out["tf32"]
    assert list(presets("float16", found, few=False).items()) == [("t4", PRESETS["t4"])]
    with fake_cuda():
        found, left_out = right.precisions_of(CUDA)
    assert (len(found), left_out) == (4, {})
    assert list(presets("bfloat16", found, few=False)) == ["h200", "t4"]
    assert presets("float32", ["float32"], few=False)["t4"].precision == "float32"


def test_a_small_try_takes_only_precisions_that_are_there(monkeypatch, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    chosen = []
    program = "transformer_lib.training.gpu.__main__"
    monkeypatch.setattr(f"{program}.choose_device", lambda name: CUDA)
    monkeypatch.setattr(f"{program}.questions", lambda *options: chosen.append(options[4]) or [])
    for options in ({"bfloat16": False}, {}):
        with fake_cuda(**options):
            assert main(["--few", f"--data={tmp_path / 'text.txt'}"], tmp_path) == 0
    assert chosen == [["float32", "float16"], ["float32", "bfloat16"]]


def test_the_gpu_that_is_measured_is_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr("torch.cuda.synchronize", lambda device=None: waited.append(device))
    wait_for(torch.device("cuda", 1))
    assert waited == [torch.device("cuda", 1)]


@pytest.mark.parametrize(
    ("name", "known"),
    [("NVIDIA L4", True), ("NVIDIA L40S", False), ("NVIDIA A100-SXM4-40GB", True),
     ("NVIDIA RTX A1000", False), ("NVIDIA H100 80GB HBM3", True), ("Tesla T4", True)],
)  # fmt: skip
@pytest.mark.usefixtures("as_a_reader")
def test_a_data_sheet_is_that_of_this_gpu(monkeypatch, name, known):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: name)
    monkeypatch.setattr(speed, "operations", lambda config, model: 1)
    model = SimpleNamespace(config=None)
    trainer = SimpleNamespace(model=model, precision="float16")
    found = speed.utilization(SimpleNamespace(device=CUDA, result={}), trainer, 1, 1.0)
    assert ("share of the data sheet's" in found) == known


def test_a_build_without_nccl_is_described(monkeypatch):
    properties = SimpleNamespace(
        name="GPU", major=7, minor=5, total_memory=2**34, multi_processor_count=40, uuid="12-34"
    )
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: properties)
    monkeypatch.setattr("torch.distributed.is_nccl_available", lambda: False)
    found = machine.describe(CUDA)
    assert found["capability"] == "7.5"
    assert "NCCL" not in found


def test_without_a_network_it_reads_what_python_has(monkeypatch):
    def no_network():
        raise OSError("no network")

    monkeypatch.setattr("transformer_lib.training.gpu.__main__.tiny_shakespeare", no_network)
    text, source = text_of(None)
    assert len(text) > 100_000
    assert source.startswith("python_docs, as tiny Shakespeare was not to be had: no network")


SMI = """#!/bin/sh
case "$*" in
  *loop-ms*) while true; do echo "1590, 97, 70.5, 60, 900"; touch "$0 read"; sleep 0.05; done ;;
  *compute-apps*) echo "77, python, 300" ;;
  *) echo "Tesla T4, 580.1, 70.00, 1590, 5001, 15360, P0, 40, [N/A], [N/A]" ;;
esac
"""


def test_nvidia_smi_is_asked_and_watched(monkeypatch, tmp_path):
    class Properties:
        uuid = "12-34"

    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: Properties)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert "FileNotFoundError" in machine.asked(CUDA, machine.ONCE)["not known"]
    with machine.watched(CUDA) as read:
        pass
    assert "FileNotFoundError" in read["not known"]
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert machine.asked(CUDA, machine.ONCE)["driver_version"] == "580.1"
    assert machine.others(CUDA) == ["77, python, 300"]
    with machine.watched(CUDA) as read:
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "nvidia-smi read").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
    assert read["clocks.sm"] == [1590.0, 1590.0, 1590.0]
    assert machine.smi(CUDA)[1] == "--id=GPU-12-34"


def test_a_program_is_given_the_recipe_that_is_meant(tmp_path):
    recipe = PRESETS["t4"].with_changes(n_steps=40, model={"smear": 2})
    options = programs.options_of(recipe, tmp_path / "a", tmp_path / "b")
    assert {"--preset=h200", "--precision=float16", "--clip=1.0", "--n-steps=40"} < set(options)
    assert {'--model={"smear": 2}', "--save-every=2", "--evaluate-every=40"} < set(options)
    assert not any(option.startswith("--lr") for option in options)
