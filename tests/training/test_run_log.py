"""Run logs: what is saved comes back, a file is whole or not there, a damaged one is refused."""

import dataclasses
import importlib.metadata
import json
import math
import os
import subprocess
import sys

import pytest
import torch

from transformer_lib.training import run_log
from transformer_lib.training.run_log import RunLog, load_run, new_run, save_run

CURVE = {"step": [0, 100], "loss": [3.25, math.nan]}
RESULT = {"loss": math.inf, "accuracy": 0.1 + 0.2, "ಹೂವು": ["rose", None, True, {"n": -math.inf}]}


def a_log(**changes):
    fields = {
        "name": "a-run-2",
        "command": "python benchmarks/demo.py --seed 3",
        "commit": "0123abc",
        "date": "2026-11-30",
        "hardware": {"cpu": "abacus", "cores": 2},
        "versions": {"torch": "2.13.0"},
        "config": {"seed": 3},
        "curve": CURVE,
        "result": RESULT,
    }
    return RunLog(**(fields | changes))


def same(a, b):
    """Equal, with NaN equal to NaN; numbers of the same type."""
    return repr(dataclasses.asdict(a)) == repr(dataclasses.asdict(b))


def test_what_is_saved_comes_back(tmp_path):
    path = save_run(a_log(), tmp_path / "log.json")
    assert same(load_run(path), a_log())
    assert same(load_run(str(path)), a_log())
    assert [file.name for file in tmp_path.iterdir()] == ["log.json"]  # nothing temporary is left


def test_the_file_is_standard_json(tmp_path):
    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    text = save_run(a_log(), tmp_path).read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=refuse)["curve"]["loss"][1] == {"not_finite": "nan"}
    assert "ಹೂವು" in text


def test_a_folder_gets_a_file_of_the_runs_name(tmp_path):
    assert save_run(a_log(), tmp_path) == tmp_path / "a-run-2.json"


def test_a_folder_that_does_not_exist_is_not_taken_for_a_file_name(tmp_path):
    with pytest.raises(ValueError, match=r"runs is neither a folder that exists nor a file name"):
        save_run(a_log(), tmp_path / "runs")
    with pytest.raises(FileNotFoundError):
        save_run(a_log(), tmp_path / "runs" / "log.json")
    assert not list(tmp_path.iterdir())


def test_the_package_folder_is_searched_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(run_log, "RUNS_FOLDER", tmp_path)
    save_run(a_log(), tmp_path)
    assert same(load_run("a-run-2"), a_log())
    with pytest.raises(FileNotFoundError, match=r"no run log 'other'\. The package has: a-run-2"):
        load_run("other")


def test_every_log_in_the_package_can_be_read():
    for path in run_log.RUNS_FOLDER.glob("*.json"):
        assert load_run(path).name == path.stem


def test_a_log_cannot_be_changed_and_has_no_positional_fields():
    log = a_log()
    with pytest.raises(dataclasses.FrozenInstanceError):
        log.name = "other"
    with pytest.raises(TypeError):
        RunLog("a-run", "command")


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = save_run(a_log(), tmp_path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"run log a-run-2: .* Convert tensors and arrays by .item"):
        save_run(a_log(result={"x": object()}), tmp_path)

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        save_run(a_log(commit="new"), tmp_path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a-run-2.json"]


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {1: "a", "1": "b"}}, "would not be read again: it is damaged: .* '1' twice"),
        ({"config": {"a": {"not_finite": "nan"}}}, "would be read as a number. Give the key"),
        ({"result": {"not_finite": "nan"}}, "would be read as a number. Give the key"),
        ({"command": "x" * 2**24}, "bytes, and at most 16,777,216 are read again"),
    ],
)
def test_what_would_not_be_read_again_is_not_written(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        save_run(a_log(**changes), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is damaged: it is not readable JSON"),
        (lambda text: "", "is damaged: it is not readable JSON"),
        (lambda text: "[" * 100_000, "is damaged: it is not readable JSON"),
        (lambda text: text.replace('"nan"', '"seven"'), "is a damaged run log: .*'seven'"),
        (lambda text: "[1, 2]", "is JSON, but not a transformer_lib run log"),
        (lambda text: '{"loss": 3}', "is JSON, but not a transformer_lib run log"),
        (
            lambda text: text.replace('"format_version": 1', '"format_version": 2'),
            "version 2; this",
        ),
        (lambda text: text.replace('"format_version": 1', '"format_version": "1"'), "version '1'"),
        (lambda text: text.replace('"commit"', '"comit"'), "damaged run log: .*comit"),
        (lambda text: text.replace('"2026-11-30"', '"yesterday"'), "date is 'yesterday'"),
        (lambda text: text.replace("100", '"many"'), "must be a list of Python numbers"),
        (lambda text: text.replace(" 100 ]", " 100, 200 ]"), "equally long"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_a_damaged_or_foreign_file_is_refused_by_name(tmp_path, damage, message):
    path = save_run(a_log(), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert damage(text) != text
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        load_run(path)
    assert str(path) in str(caught.value)
    assert "again" in str(caught.value) or "Install" in str(caught.value)  # the fix


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "log.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"log.json is damaged"):
        load_run(path)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"name": "A Run"}, ValueError, "name is 'A Run'; use lower-case letters"),
        ({"name": "../run"}, ValueError, "name is '../run'"),
        ({"name": "a-run\n"}, ValueError, "use lower-case letters"),
        ({"commit": ""}, TypeError, "commit is ''; it must be a text that is not empty"),
        ({"date": "30.11.2026"}, ValueError, "write it as 2026-11-30"),
        ({"date": "2026-02-30"}, ValueError, "write it as 2026-11-30"),
        ({"config": [1]}, TypeError, r"config is \[1\]; it must map names to values"),
        ({"curve": {"loss": [1, 2], "step": [1]}}, ValueError, "they have {'loss': 2, 'step': 1}"),
        ({"curve": {"loss": ["1"]}}, TypeError, "column 'loss' must be a list of Python numbers"),
    ],
)
def test_a_log_that_makes_no_sense(changes, error, message):
    with pytest.raises(error, match=message):
        a_log(**changes)


def test_a_new_run_knows_where_it_ran(monkeypatch, tmp_path):
    script = run_log.REPOSITORY / "benchmarks" / "demo.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--name", "two words"])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    log = new_run("demo", config={}, curve={}, result={})
    assert log.command == "python benchmarks/demo.py --name 'two words'"
    assert set(log.versions) == {"python", "torch", "numpy", "transformer_lib"}
    assert log.hardware["threads"] == 7
    assert log.hardware["cpu"]
    assert same(load_run(save_run(log, tmp_path)), log)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "elsewhere.py")])
    assert run_log.command_line() == "python elsewhere.py"  # no path of this machine


def test_a_library_that_is_not_installed_has_no_known_version(monkeypatch):
    version = importlib.metadata.version

    def absent(name):
        if name == "transformer_lib":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert run_log.versions()["transformer_lib"] == "unknown"


def test_the_commit_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # no signatures, no hooks

    def git(*arguments):
        settings = ["-c", "user.name=Mary", "-c", "user.email=mary@example.org"]
        command = ["git", "-C", str(tmp_path), *settings, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert run_log.commit(tmp_path) == "unknown"
    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    head = git("rev-parse", "HEAD")
    assert run_log.commit(tmp_path) == head
    (tmp_path / "file").write_text("two")
    assert run_log.commit(tmp_path) == head + "-modified"
    inner = tmp_path / "venv"
    inner.mkdir()
    assert run_log.commit(inner) == "unknown"  # somebody else's repository


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_the_commit_of_a_folder_whose_name_is_not_in_the_locale_s_encoding(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    subprocess.run(["git", "-C", str(folder), "init"], check=True, capture_output=True)
    assert run_log.commit(folder) == "unknown"  # it has none yet


def test_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_log.commit() == "unknown"


def test_the_processors_name(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Abacus: the 2nd\n")
    assert run_log.cpu_name(cpuinfo) == "Abacus: the 2nd"
    assert run_log.cpu_name(tmp_path / "none")
