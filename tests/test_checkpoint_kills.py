"""Saves that do not end: killed at every stage, power lost at every stage, the disk full.

The disk of a machine that loses its power is modeled at its worst: what was written is on it only
once the file was flushed, and a new name only once its folder was.
"""

import errno
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest
import torch

from transformer_lib.training import files
from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint, save_checkpoint

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")

ABOUT = {"configuration": {"d_model": 3}, "vocabulary": "ab"}


def save(folder, step):
    state = {"x": step, "weight": torch.full((50,), float(step))}
    return save_checkpoint(folder, step, state, **ABOUT)


def step_of(folder):
    """The step of the newest checkpoint, all of which must be as it was saved; 0: there is none."""
    if not find_checkpoints(folder):
        return 0
    loaded = load_checkpoint(folder, **ABOUT)
    assert loaded.state["x"] == loaded.step
    assert loaded.state["weight"].tolist() == [loaded.step] * 50
    return loaded.step


class Disk:
    """Stands between the library and the system's calls in a child process; ends it at one."""

    def __init__(self, last_call, power_lost):
        self.calls, self.last_call, self.power_lost = 0, last_call, power_lost
        self.unflushed, self.new, self.renamed = set(), set(), []
        real = {name: getattr(os, name) for name in ("mkdir", "rename", "fsync", "unlink", "rmdir")}
        self.real = real
        for name in real:
            setattr(os, name, getattr(self, name, None) or self.counted(real[name]))
        files.open = self.open

    def count(self):
        self.calls += 1
        if self.calls == self.last_call:
            if self.power_lost:
                self.lose()
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(self, call):
        def counting(*arguments, **options):
            self.count()
            return call(*arguments, **options)

        return counting

    def lose(self):
        for path in self.unflushed:
            os.truncate(path, 0)
        for old, new in reversed(self.renamed):
            self.real["rename"](new, old)
            self.new = {self.moved(path, new, old) for path in self.new}
        for path in sorted(self.new, reverse=True):
            inside = sorted(path.rglob("*"), reverse=True)  # a folder takes along what is in it
            for each in [*inside, path]:
                self.real["rmdir" if each.is_dir() else "unlink"](each)

    @staticmethod
    def moved(path, old, new):
        return new / path.relative_to(old) if path.is_relative_to(old) else path

    def mkdir(self, path, *arguments, **options):
        self.count()
        self.real["mkdir"](path, *arguments, **options)
        self.new.add(Path(path))

    def rename(self, old, new):
        self.count()
        self.real["rename"](old, new)
        self.unflushed = {self.moved(path, old, new) for path in self.unflushed}
        self.new = {self.moved(path, old, new) for path in self.new} - {Path(new)}
        self.renamed.append((Path(old), Path(new)))

    def fsync(self, handle):
        self.count()
        self.real["fsync"](handle)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        self.unflushed.discard(path)
        self.new = {inner for inner in self.new if inner.parent != path}
        self.renamed = [(old, new) for old, new in self.renamed if new.parent != path]

    def open(self, path, mode, **options):
        file = open(path, mode, **options)  # noqa: SIM115 (the caller closes it)
        if "x" in mode:
            self.new.add(path)
            self.unflushed.add(path)
            self.count()
            write = file.write
            halves = type("Halves", (), {"__getattr__": lambda _, name: getattr(file, name)})()

            def write_halves(content):
                write(content[: len(content) // 2])
                file.flush()
                self.count()
                return write(content[len(content) // 2 :])

            halves.write = write_halves
            halves.__class__.__enter__ = lambda _: halves
            halves.__class__.__exit__ = lambda _, *error: file.__exit__(*error)
            return halves
        return file


def in_a_child(work):
    """Run ``work`` in a fork; its result, a small int; None if it was killed."""
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            os._exit(work())
        except BaseException:
            traceback.print_exc()
            os._exit(255)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) != 255
    return os.WEXITSTATUS(status)


def save_until(folder, step, last_call, power_lost):
    def work():
        disk = Disk(last_call, power_lost)
        save(folder, step)
        if power_lost:  # just now: what was saved must be there
            disk.lose()
        return disk.calls

    return in_a_child(work)


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


def test_kills_at_random_moments(tmp_path):
    draw = random.Random(1)
    save(tmp_path, 1)
    last = 1
    for _ in range(12):
        child = os.fork()
        if not child:
            signal.alarm(30)
            for step in range(last + 1, last + 10_000):
                save(tmp_path, step)
            os._exit(0)
        time.sleep(0.02 + 0.05 * draw.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert step_of(tmp_path) >= last
        last = step_of(tmp_path)
    assert last > 1
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

    monkeypatch.setattr(files, "open", full, raising=False)
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
