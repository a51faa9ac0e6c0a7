"""Downloads: the cache has verified files only; what fails says how to supply the file by hand."""

import os

import pytest

from transformer_lib.data.downloads import ATTEMPTS, DataFileError, RemoteFile, fetch, sha256

pytestmark = pytest.mark.usefixtures("empty_cache")
CONTENT = bytes(range(256)) * 1031 + b"roses\n"
GOOD = (200, CONTENT, None)


def the_file(server=None):
    url = f"http://127.0.0.1:{server.server_port if server else 1}/a.bin"
    return RemoteFile(name="set/a.bin", url=url, size=len(CONTENT), sha256=sha256(CONTENT))


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_download_is_cached_and_not_repeated(server, tmp_path, capsys):
    server.answers = [GOOD]
    assert fetch(the_file(server)) == fetch(the_file(server)) == CONTENT
    assert server.requests == 1
    assert files_in(tmp_path) == ["set/a.bin"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "100%" in err


@pytest.mark.parametrize(
    "answer", [(503, b"", None), (200, CONTENT[:-9], None), (200, CONTENT[:99], len(CONTENT))]
)
def test_what_goes_wrong_once_is_tried_again(server, answer):
    server.answers = [answer, GOOD]
    assert fetch(the_file(server)) == CONTENT
    assert server.requests == 2


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ((404, b"no such file", None), "did not give it: 404"),
        (
            (200, b"<!DOCTYPE html><title>Log in</title>", None),
            "is another file, perhaps the login",
        ),
        ((200, CONTENT[:-1] + b"!", None), "is another file"),
        ((200, CONTENT[:-1], len(CONTENT)), "a.bin could not be downloaded"),
    ],
)
def test_what_fails_leaves_nothing_and_says_what_to_do(server, tmp_path, answer, cause):
    server.answers = [answer]
    with pytest.raises(DataFileError) as failure:
        fetch(the_file(server))
    assert cause in str(failure.value)
    assert f"save it as {tmp_path / 'set' / 'a.bin'}" in str(failure.value)
    assert the_file().sha256 in str(failure.value)
    assert server.requests == ATTEMPTS
    assert files_in(tmp_path) == []


def test_no_network():
    with pytest.raises(DataFileError, match=r"did not give it: .*To supply it by hand: get http"):
        fetch(the_file())


def test_a_damaged_file_in_the_cache_is_replaced_by_a_whole_one_only(server, tmp_path):
    path = tmp_path / "set" / "a.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:-1])
    server.answers = [(404, b"", None)]
    with pytest.raises(DataFileError):
        fetch(the_file(server))
    assert path.read_bytes() == CONTENT[:-1]
    server.answers = [GOOD]
    assert fetch(the_file(server)) == path.read_bytes() == CONTENT


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    server.answers = [GOOD]
    with pytest.raises(DataFileError, match="cannot be written to or read: "):
        fetch(the_file(server), folder=tmp_path / "file")


def test_the_readers_own_folder(server, tmp_path, monkeypatch):
    server.answers = [GOOD]
    path = tmp_path / "own" / "set" / "a.bin"
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path / "own"))
    with pytest.raises(DataFileError, match=r"there is no file .*Or unset TRANSFORMER_LIB_DATA"):
        fetch(the_file(server))
    path.parent.mkdir(parents=True)
    for wrong, told in [(b"thorns", "it has 6 bytes"), (CONTENT[:-1] + b"!", "it has sha256 ")]:
        path.write_bytes(wrong)
        with pytest.raises(DataFileError, match=f"is another file: {told}"):
            fetch(the_file(server))
        assert path.read_bytes() == wrong
    path.write_bytes(CONTENT)
    assert fetch(the_file(server)) == CONTENT
    assert server.requests == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_in_the_readers_folder_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path))
    (tmp_path / "set").mkdir()
    os.mkfifo(tmp_path / "set" / "a.bin")
    with pytest.raises(DataFileError, match="there is no file"):
        fetch(the_file())
