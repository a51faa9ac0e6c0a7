"""A disk that loses its power, and children that are killed: for what must survive both.

The disk is modeled at its worst: what was written is on it only once the file was flushed, and a
new name only once its folder was.
"""

import os
import signal
import sys
import traceback
from pathlib import Path

from programs import PATIENCE

from transformer_lib import storage


class Disk:
    """Stands between the library and the system's calls in a child process; ends it at one."""

    def __init__(self, last_call, power_lost):
        self.calls, self.last_call, self.power_lost = 0, last_call, power_lost
        self.unflushed, self.new, self.renamed = set(), set(), []
        real = {name: getattr(os, name) for name in ("mkdir", "rename", "fsync", "unlink", "rmdir")}
        self.real = real
        for name in real:
            setattr(os, name, getattr(self, name, None) or self.counted(real[name]))
        storage.open = self.open

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
        signal.alarm(PATIENCE)
        try:
            os._exit(work())
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(255)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) != 255
    return os.WEXITSTATUS(status)


def write_to_full(name):
    """From now on what this process saves in a file of that name goes to a disk that is full."""

    def full(path, mode, **options):
        if Path(path).name == name and "x" in mode:
            path, mode = "/dev/full", "wb"
        return open(path, mode, **options)

    storage.open = full
