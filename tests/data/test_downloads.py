"""Downloads: the cache has complete files only, whatever the disk does or the reader puts there.

The failures of servers are in ``test_transfer.py``.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from misbehaving import CONTENT, GOOD, files_in, quick_fetch, sends, the_file

from transformer_lib import storage
from transformer_lib.data import downloads
from transformer_lib.data.downloads import cache_folder, fetch, sha256

pytestmark = pytest.mark.usefixtures("empty_cache")


def test_a_download_is_cached_and_not_repeated(server, tmp_path):
    server.answers = [GOOD]
    content, waits, lines = quick_fetch(the_file(server))
    assert (content, waits) == (CONTENT, [])
    assert files_in(tmp_path) == ["transformer_lib/set/a.bin"]
    assert (cache_folder() / "set" / "a.bin").read_bytes() == CONTENT
    percents = [line for line, stays in lines if not stays]
    assert percents[0].startswith("set/a.bin: ")
    assert percents[-1] == f"set/a.bin: 100 % of {len(CONTENT):,} bytes"
    assert 2 <= len(percents) <= 101
    assert lines[-1] == (f"set/a.bin: {len(CONTENT):,} bytes, sha256 as expected", True)
    assert quick_fetch(the_file(server)) == (CONTENT, [], [])
    assert server.requests == 1


def test_progress_is_shown_on_stderr(server, capsys):
    server.answers = [sends(b"", status=503), GOOD]
    assert fetch(the_file(server), wait=lambda seconds: None) == CONTENT
    out, err = capsys.readouterr()
    assert out == ""
    assert "attempt 1 of 4: the server answered 503 Service Unavailable; again in 1 s" in err
    assert err.endswith(
        "sha256 as expected".ljust(79 - len(f"set/a.bin: {len(CONTENT):,} bytes, ")) + "\n"
    )


def test_an_interruption_leaves_nothing(server, tmp_path):
    server.answers = [GOOD]

    def interrupt(line, stays):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(the_file(server), report=interrupt)
    assert files_in(tmp_path) == []


def test_a_damaged_file_in_the_cache_is_replaced_by_a_whole_one_only(server, tmp_path):
    path = tmp_path / "set" / "a.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:-1])
    server.answers = [sends(b"", status=404), GOOD]
    error, _, _ = quick_fetch(the_file(server), folder=tmp_path)
    assert f"{path} that is there is damaged: it has 263,941 bytes with sha256 " in str(error)
    assert sha256(CONTENT[:-1]) in str(error)
    assert path.read_bytes() == CONTENT[:-1]
    assert quick_fetch(the_file(server), folder=str(tmp_path))[0] == CONTENT
    assert path.read_bytes() == CONTENT
    assert files_in(tmp_path) == ["set/a.bin"]


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from transformer_lib.data import downloads
url, size, proof = sys.argv[1:]
file = downloads.RemoteFile(name="a.bin", url=url, size=int(size), sha256=proof)
try:
    downloads.fetch(file)
except downloads.DataFileError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file-size limit")
def test_a_file_size_limit_leaves_nothing(server, tmp_path):
    server.answers = [GOOD]
    file = the_file(server)
    command = [sys.executable, "-c", FULL, file.url, str(file.size), file.sha256]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "a.bin was downloaded, but" in run.stdout
    assert "File too large" in run.stdout
    assert "Make room for 263,942 bytes" in run.stdout
    assert files_in(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_nothing(server, tmp_path, monkeypatch):
    def on_the_full_disk(path, mode):
        path.symlink_to("/dev/full")
        return open(path, "wb")

    monkeypatch.setattr(storage, "open", on_the_full_disk, raising=False)
    server.answers = [GOOD]
    error, _, _ = quick_fetch(the_file(server))
    assert os.strerror(errno.ENOSPC) in str(error)
    assert "Make room for 263,942 bytes" in str(error)
    assert the_file().sha256 in str(error)
    assert list((tmp_path / "transformer_lib" / "set").iterdir()) == []


KILLED = """
import os, signal, sys
from transformer_lib.data import downloads
def kill(*args):
    os.kill(os.getpid(), signal.SIGKILL)
moment, url, size, proof = sys.argv[1:]
setattr(os, moment, kill)
file = downloads.RemoteFile(name="a.bin", url=url, size=int(size), sha256=proof)
downloads.fetch(file)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_kill_while_storing_leaves_no_file_of_that_name(server, tmp_path, moment):
    server.answers = [GOOD]
    file = the_file(server)
    command = [sys.executable, "-c", KILLED, moment, file.url, str(file.size), file.sha256]
    run = subprocess.run(command, check=False, capture_output=True)
    assert run.returncode == -signal.SIGKILL
    assert not (tmp_path / "transformer_lib" / "a.bin").exists()
    assert quick_fetch(the_file(server, name="a.bin"))[0] == CONTENT


def test_a_rename_that_fails_leaves_nothing(server, tmp_path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(errno.EACCES, "the file is open in another program")

    monkeypatch.setattr(os, "replace", refuse)
    server.answers = [GOOD]
    error, _, _ = quick_fetch(the_file(server))
    assert "could not be written: [Errno 13] the file is open in another program" in str(error)
    assert files_in(tmp_path) == []


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    server.answers = [GOOD]
    error, _, _ = quick_fetch(the_file(server), folder=tmp_path / "file")
    assert "cannot be read" in str(error) or "could not be written" in str(error)
    assert the_file().sha256 in str(error)


def test_what_a_killed_program_left_is_swept_up(server, tmp_path):
    old, young = tmp_path / "set" / ".a.bin.old.part", tmp_path / "set" / ".a.bin.young.part"
    old.parent.mkdir()
    for path in (old, young):
        path.write_bytes(CONTENT[:5])
    os.utime(old, (0, time.time() - downloads.ABANDONED - 60))
    server.answers = [GOOD]
    quick_fetch(the_file(server), folder=tmp_path)
    assert files_in(tmp_path) == ["set/.a.bin.young.part", "set/a.bin"]


def test_the_readers_own_folder(server, tmp_path, monkeypatch):
    server.answers = [GOOD]
    own = tmp_path / "own"
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(own))
    error, _, _ = quick_fetch(the_file(server))
    assert f"TRANSFORMER_LIB_DATA names the folder {own}, but {own / 'set' / 'a.bin'}" in str(error)
    assert "No such file" in str(error)
    (own / "set").mkdir(parents=True)
    (own / "set" / "a.bin").write_bytes(b"thorns")
    error, _, _ = quick_fetch(the_file(server))
    assert f"is another file: it has 6 bytes with sha256 {sha256(b'thorns')}" in str(error)
    assert the_file().sha256 in str(error)
    assert "Or unset TRANSFORMER_LIB_DATA" in str(error)
    assert (own / "set" / "a.bin").read_bytes() == b"thorns"
    (own / "set" / "a.bin").write_bytes(CONTENT)
    assert quick_fetch(the_file(server)) == (CONTENT, [], [])
    assert files_in(tmp_path) == ["own/set/a.bin"]
    assert server.requests == 0


def test_a_larger_file_in_the_readers_folder_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path))
    path = tmp_path / "set" / "a.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    os.truncate(path, 2**40)  # a hole: it takes no room on the disk
    error, _, _ = quick_fetch(the_file())
    assert "is another file: it has more than 263,942 bytes. It was left" in str(error)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
@pytest.mark.parametrize("variable", ["TRANSFORMER_LIB_DATA", "XDG_CACHE_HOME"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path, monkeypatch, variable):
    monkeypatch.setenv(variable, str(tmp_path))
    path = tmp_path / ("set" if variable == "TRANSFORMER_LIB_DATA" else "transformer_lib/set")
    path.mkdir(parents=True)
    os.mkfifo(path / "a.bin")
    error, _, _ = quick_fetch(the_file())
    assert "cannot be read: " in str(error)
    assert "it is not a regular file" in str(error)


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "/home/mary/.cache"),
        ("darwin", {}, "/home/mary/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "/xdg"),
        ("linux", {"XDG_CACHE_HOME": "not/absolute"}, "/home/mary/.cache"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/mary/.cache"),
    ],
)
def test_the_cache_folder_is_the_platforms(monkeypatch, platform, environment, folder):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/mary"} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(folder, "transformer_lib")
