"""Saves that do not end: killed at every stage, power lost at every stage, the disk full."""

import errno
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from damage import Disk, in_a_child
from programs import PATIENCE

from transformer_lib import storage
from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint, save_checkpoint

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")

ABOUT = {"configuration": {"d_model": 3}, "vocabulary": "ab"}


def save(folder, step):
    state = {"x": step, "weight": torch.full((50,), float(step))}
    return save_checkpoint(folder, step, state, **ABOUT)


def step_of(folder):
    """The step of the newest checkpoint; 0: there is none. Each must be as it was saved."""
    step = 0
    for path in find_checkpoints(folder):
        loaded = load_checkpoint(path, **ABOUT)
        assert loaded.state["x"] == loaded.step
        assert loaded.state["weight"].tolist() == [loaded.step] * 50
        step = loaded.step
    return step


def save_until(folder, step, last_call, power_lost):
    def work():
        disk = Disk(last_call, power_lost)
        save(folder, step)
        if power_lost:  # just now: what was saved must be there
            disk.lose()
        return disk.calls

    return in_a_child(work)


@pytest.mark.slow
@pytest.mark.parametrize("power_lost", [False, True], ids=["killed", "power lost"])
@pytest.mark.parametrize(("before", "step"), [((), 1), ((1,), 2), ((1, 2), 3), ((5,), 5)])
def test_a_save_that_ends_at_any_call(tmp_path, before, step, power_lost):
    original = tmp_path / "original"
    for earlier in before:
        save(original, earlier)
    last = max(before, default=0)
    found, calls = [], None
    while calls is None:
        folder = tmp_path / f"{len(found)}"
        if before:
            shutil.copytree(original, folder)
        calls = save_until(folder, step, len(found) + 1, power_lost)
        found.append(step_of(folder))
        if folder.exists():
            assert len(find_checkpoints(folder)) >= min(len(before), 2)
        save(folder, step + 1)  # what was left behind is in nobody's way
        assert step_of(folder) == step + 1
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert len(found) == calls + 1 >= 12
    assert set(found) == {last, step}
    assert found[-1] == step
    assert found == sorted(found)  # once the new one is there, it stays


@pytest.mark.slow
def test_kills_at_random_moments(tmp_path):
    draw = random.Random(1)
    save(tmp_path, 1)
    last = 1
    kills = 0
    while kills < 12 or last == 1:  # on a busy machine a life may be too short for a single save
        child = os.fork()
        if not child:
            signal.alarm(PATIENCE)
            for step in range(last + 1, last + 10_000):
                save(tmp_path, step)
            os._exit(0)
        try:
            time.sleep(0.02 + 0.05 * draw.random())
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        kills += 1
        assert step_of(tmp_path) >= last
        last = step_of(tmp_path)
    save(tmp_path, last + 1)
    assert len(find_checkpoints(tmp_path)) == 2


def is_as_before(folder, error):
    assert step_of(folder) == 1
    assert [path.name for path in folder.iterdir()] == ["step-00000001"]
    assert error.filename == str(folder)
    assert "step 2 was not saved" in str(error)
    assert "those before it are as they were. Make room there" in str(error)


@pytest.mark.parametrize("name", ["tensors.safetensors", "state.json", "manifest.json"])
def test_a_full_disk(tmp_path, monkeypatch, name):
    save(tmp_path, 1)

    def full(path, mode, **options):
        if Path(path).name == name:
            path, mode = "/dev/full", "wb"
        return open(path, mode, **options)

    monkeypatch.setattr(storage, "open", full, raising=False)
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(tmp_path, 2)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    is_as_before(tmp_path, caught.value)
    save(tmp_path, 2)
    assert step_of(tmp_path) == 2


def test_a_limit_to_the_size_of_files(tmp_path):
    import resource

    save(tmp_path, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            save(tmp_path, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    is_as_before(tmp_path, caught.value)


@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir"])
def test_a_call_that_fails(tmp_path, monkeypatch, call):
    save(tmp_path, 1)

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        save(tmp_path, 2)
    monkeypatch.undo()
    is_as_before(tmp_path, caught.value)


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(OSError, match="choose another folder"):
        save(tmp_path / "run", 1)
    assert (tmp_path / "run").read_text() == "a file"
