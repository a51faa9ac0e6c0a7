"""Storage: strict JSON, files that are whole or not there, folders that one program holds."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import filelock
import pytest
from damage import Disk, in_a_child
from programs import PATIENCE, started

from transformer_lib import storage
from transformer_lib.storage import InUseError, UnusableFileError, locked, parse_json

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("NaN", "NaN is not a number in JSON"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ("1e999", "1e999 is not a number"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "it names 'c' twice"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 10_000, "digits"),
        ("{", "Expecting"),
        (b"\xff\xfe", "utf-8"),
    ],
)
def test_json_is_strict(content, message):
    with pytest.raises(ValueError, match=message):
        parse_json(content)


@pytest.mark.slow
def test_json_with_a_million_keys_is_read_in_time():
    content = "{" + ",".join(f'"{i}":0' for i in range(10**6)) + ',"0":1}'
    start = time.process_time()
    with pytest.raises(ValueError, match="it names '0' twice"):
        parse_json(content)
    assert time.process_time() - start < 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_only_regular_files_of_bounded_size_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"roses")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert storage.read_regular(tmp_path / "file", 5) == b"roses"
    for name, message in [
        ("file", "has 5 bytes, and at most 4 are expected"),
        ("link", "is a symbolic link"),
        ("folder", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("nowhere", "is missing"),
    ]:
        with pytest.raises(UnusableFileError, match=message):
            storage.read_regular(tmp_path / name, 4)


def test_a_file_that_may_not_be_read_says_whom_to_ask(tmp_path, monkeypatch):
    def denied(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(UnusableFileError, match=r"\(Permission denied\)\. Ask its owner"):
        storage.read_regular(tmp_path / "file", 4)


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_file_is_replaced_by_a_whole_one_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    storage.write_file(path, b"old")
    for name in ("fsync", "replace"):

        def fail(*_):
            raise OSError(errno.EIO, "broken")

        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(OSError, match="broken"):
                storage.write_file(path, b"new")
        assert path.read_bytes() == b"old"
        assert files_in(tmp_path) == ["a.json"]
    storage.write_file(path, b"new")
    assert path.read_bytes() == b"new"


@on_linux
@pytest.mark.parametrize("power_lost", [False, True], ids=["killed", "power lost"])
def test_a_folder_is_deleted_whole_or_not_at_all(tmp_path, power_lost):
    """Killed at every call: what has its name has all its files; the rest is swept up later."""
    contents = {f"{i}": b"roses" * 100 for i in range(4)}
    storage.write_folder(tmp_path / "original", contents)
    ends, calls = [], None
    while calls is None:
        folder = tmp_path / f"{len(ends)}" / "step-1"
        shutil.copytree(tmp_path / "original", folder)

        def work(folder=folder):
            disk = Disk(len(ends) + 1, power_lost)
            storage.remove_folder(folder)
            return disk.calls

        calls = in_a_child(work)
        if folder.exists():
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents
        ends.append(folder.exists())
        storage.sweep(folder.parent, "step-*")
        assert files_in(folder.parent) == (["step-1", *(f"step-1/{n}" for n in contents)]
                                           if folder.exists() else [])  # fmt: skip
    assert len(ends) == calls + 1 >= 6
    assert ends[0]
    assert not ends[-1]


def test_what_lies_beside_a_folder_stays_and_never_goes_what_a_link_leads_to(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("years")
    (tmp_path / ".a.tmp").symlink_to(tmp_path / "mine")
    (tmp_path / ".b.tmp").mkdir()
    (tmp_path / ".b.tmp" / "thesis").write_text("years")
    before = files_in(tmp_path)
    for name in "ab":
        storage.write_folder(tmp_path / name, {"x": b"1"})
    assert files_in(tmp_path) == sorted([*before, "a", "a/x", "b", "b/x"])
    (tmp_path / ".step-1.old").symlink_to(tmp_path / "mine")
    storage.sweep(tmp_path, "step-*")
    assert (tmp_path / "mine" / "thesis").read_text() == "years"
    assert not (tmp_path / ".step-1.old").is_symlink()


def test_of_two_that_write_one_folder_the_first_is_whole_and_the_second_learns_of_it(tmp_path):
    class Slow(dict):
        def items(self):
            storage.write_folder(tmp_path / "a", {"x": b"1", "y": b"2"})  # meanwhile, another
            return super().items()

    with pytest.raises(OSError, match=r"not empty|exists") as raised:
        storage.write_folder(tmp_path / "a", Slow(x=b"3"))
    assert raised.value.errno in (errno.ENOTEMPTY, errno.EEXIST)
    assert files_in(tmp_path) == ["a", "a/x", "a/y"]


HOLD = """
import sys, time
from pathlib import Path
from transformer_lib.storage import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def holder(folder):
    """Another process that holds ``folder`` until its stdin ends."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with started(sys.executable, "-c", HOLD, folder, **pipes) as program:
        assert program.stdout.readline().strip() == b"held"
        yield program


def test_a_folder_is_held_by_one_process_that_the_message_names(tmp_path):
    with holder(tmp_path) as program:
        named = f"process {program.pid} is training there. Wait"
        with pytest.raises(InUseError, match=named), locked(tmp_path):
            pass
        program.communicate(b"\n", timeout=PATIENCE)
    with locked(tmp_path):
        pass
    assert files_in(tmp_path) == [storage.LOCK]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_the_lock_of_a_killed_process_holds_nobody_up(tmp_path):
    with holder(tmp_path) as program:
        program.kill()
    assert files_in(tmp_path) == [storage.LOCK, storage.OWNER]
    with locked(tmp_path):
        assert (tmp_path / storage.OWNER).read_text() == f"{os.getpid()}\n"
    assert files_in(tmp_path) == [storage.LOCK]


def test_a_folder_that_is_deleted_is_held_anew_unless_another_has_it(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with locked(folder) as hold:
        shutil.rmtree(folder)
        hold()
        with pytest.raises(InUseError, match=f"process {os.getpid()} "), locked(folder):
            pass
        shutil.rmtree(folder)
        folder.mkdir()
        with locked(folder):
            with pytest.raises(InUseError, match=f"process {os.getpid()} "):
                hold()
            assert (folder / storage.OWNER).exists()


def test_no_lock_is_written_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("years")
    (tmp_path / storage.OWNER).symlink_to(tmp_path / "mine")
    with locked(tmp_path), pytest.raises(InUseError), locked(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "years"


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch):
    def cannot(self, **options):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("filelock.FileLock.acquire", cannot)
    with pytest.warns(UserWarning, match="cannot be locked .*take care"), locked(tmp_path):
        pass


@pytest.mark.skipif(
    not hasattr(filelock.FileLock, "fallback_to_soft"), reason="it never falls back"
)
def test_where_the_system_has_no_locks_a_file_is_not_taken_for_one(tmp_path, monkeypatch):
    def cannot(file, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", cannot)
    (tmp_path / storage.LOCK).write_text("1\nanother\n")  # left by a process that was killed
    with pytest.warns(UserWarning, match="cannot be locked .*take care"), locked(tmp_path):
        pass


def test_on_macos_the_drive_is_flushed_too(tmp_path, monkeypatch):
    flushed = []
    fake = SimpleNamespace(F_FULLFSYNC=51, fcntl=lambda handle, what: flushed.append(what))
    monkeypatch.setitem(sys.modules, "fcntl", fake)
    monkeypatch.setattr(sys, "platform", "darwin")
    storage.write_flushed(tmp_path / "file", b"content")
    assert flushed == [51]


def test_a_folder_that_cannot_be_flushed_is_no_error_but_a_broken_disk_is(tmp_path, monkeypatch):
    """What is mounted (Google Drive) need not know how to flush a folder."""
    for number, forgiven in {errno.EINVAL: True, errno.ENOTSUP: True, errno.EIO: False}.items():
        error = OSError(number, "")
        monkeypatch.setattr(os, "fsync", lambda handle, error=error: (_ for _ in ()).throw(error))
        if forgiven:
            storage.flush_folder(tmp_path)
        else:
            with pytest.raises(OSError, match=f"Errno {number}"):
                storage.flush_folder(tmp_path)
