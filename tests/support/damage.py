"""What must be survived: a disk that loses its power, kills, damaged and forged checkpoints.

The disk is modeled at its worst: what was written is on it only once the file was flushed, and a
new name only once its folder was. Of a forged checkpoint every hash is right, and what it says is
hostile.
"""

import json
import os
import signal
import struct
import sys
import traceback
from pathlib import Path

from programs import PATIENCE

from transformer_lib import storage
from transformer_lib.training import checkpoints
from transformer_lib.training.checkpoints import MANIFEST, STATE, TENSORS


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


def forge(path, tensors=None, state=None, **changes):
    """A checkpoint whose hashes are all right: made by somebody who knows the format."""
    contents = {
        TENSORS: (path / TENSORS).read_bytes() if tensors is None else tensors,
        STATE: (path / STATE).read_bytes() if state is None else state,
    }
    manifest = json.loads((path / MANIFEST).read_bytes())
    del manifest["sha256"]
    manifest["files"] = {name: storage.signature(content) for name, content in contents.items()}
    manifest |= changes
    for name, content in contents.items():
        (path / name).write_bytes(content)
    (path / MANIFEST).write_bytes(checkpoints.signed(manifest))


def header(text, body=b""):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(text)) + text + body


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
TRAVERSAL = {"../../model.safetensors": storage.signature(b""), STATE: storage.signature(b"")}
HOSTILE = {
    "a path that leads out": (MANIFEST, {"files": TRAVERSAL}),
    "an absolute path": (MANIFEST, {"files": {"/etc/passwd": {}, STATE: {}}}),
    "a third file": (MANIFEST, {"files": {TENSORS: {}, STATE: {}, "x.py": {}}}),
    "a size below zero": (MANIFEST, {"files": {TENSORS: {"size": -1}, STATE: {"size": -1}}}),
    "a size without end": (STATE, {"files": {TENSORS: {"size": 2**70}, STATE: {"size": 2**70}}}),
    "a step of another": (MANIFEST, {"step": 3}),
    "a step that is a text": (MANIFEST, {"step": "2; import os"}),
    "a later version": (MANIFEST, {"format_version": 2}),
    "a pickle": (TENSORS, {"tensors": b"\x80\x04cos\nsystem\n(S'touch owned'\ntR."}),
    "a zip of pickles": (TENSORS, {"tensors": b"PK\x03\x04" + bytes(64)}),
    "a huge header": (TENSORS, {"tensors": struct.pack("<Q", 2**62) + b"{}"}),
    "a header of spaces": (TENSORS, {"tensors": header(b"{}" + b" " * 2**24)}),
    "a header beyond the end": (TENSORS, {"tensors": struct.pack("<Q", 1000) + b"{}"}),
    "a tensor beyond the end": (TENSORS, {"tensors": header({"x": ONE | {"shape": [2**40]}})}),
    "a tensor without data": (TENSORS, {"tensors": header({"x": ONE})}),
    "a deep header": (TENSORS, {"tensors": header(b"[" * 100_000)}),
    "an empty file": (TENSORS, {"tensors": b""}),
    "a state that is code": (STATE, {"state": b"__import__('os').system('touch owned')"}),
    "a deep state": (STATE, {"state": b"[" * 100_000}),
    "a state that is a list": (STATE, {"state": b"[]"}),
    "a tensor that is not there": (STATE, {"state": b'{"a":{"__tensor__":"../../x"}}'}),
    "keys that are not hashable": (STATE, {"state": b'{"a":{"__items__":[[[],1]]}}'}),
    "objects in an array": (STATE, {"state": b'{"a":{"__array__":["x"],"dtype":"O"}}'}),
    "a number too long": (STATE, {"state": b'{"a":' + b"9" * 10_000 + b"}"}),
}

DAMAGES = (
    "truncated", "flipped", "zeros", "extended", "swapped", "missing", "other configuration",
    "other vocabulary",
)  # fmt: skip


def damaged(kind, content, old, draw):
    """``content`` with one damage; ``old`` is the same file of the checkpoint before."""
    at = draw.randrange(len(content) - 1)
    flipped = content[at] ^ 1 << draw.randrange(8)
    lost = bytes(len(content[at : at + 512]))  # a block that the disk lost
    result = {
        "truncated": content[:at],
        "flipped": content[:at] + bytes([flipped]) + content[at + 1 :],
        "zeros": content[:at] + lost + content[at + 512 :],
        "extended": content + draw.randbytes(1 + draw.randrange(4)),
        "swapped": old,
    }[kind]
    return result if result != content else damaged(kind, content, old, draw)


def only_reading(event, arguments):
    """For sys.addaudithook: whatever but opening a file to read it ends the process, status 3."""
    if event == "open":
        flags = arguments[2] or 0
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            return
    if event not in ("os.listdir", "os.scandir"):
        os.write(2, f"{event} {arguments!r:.200}\n".encode())
        os._exit(3)
