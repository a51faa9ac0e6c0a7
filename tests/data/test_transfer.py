"""One file over HTTP: each way in which a server or a network misbehaves, from localhost.

It ends in an error that says why and how to supply the file by hand, and in an empty cache.
"""

import inspect
import socket
import ssl
import time
import urllib.error
import urllib.request

import pytest
from misbehaving import (
    CONTENT,
    GOOD,
    PAGE,
    files_in,
    hangs_up,
    quick_fetch,
    sends,
    serving,
    stalls_at_once,
    stalls_halfway,
    talks_nonsense,
    the_file,
    trickles,
)

from transformer_lib.data import transfer
from transformer_lib.data.downloads import DataFileError, fetch
from transformer_lib.data.transfer import sha256


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def _environment(tmp_path, monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LIB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.parametrize(
    ("answer", "cause", "attempts"),
    [
        (sends(b"no such file", status=404), "the server answered 404 Not Found", 1),
        (sends(b"", status=403), "the server answered 403 Forbidden", 1),
        (sends(b"", status=500), "the server answered 500 Internal Server Error", 4),
        (sends(b"", status=429), "the server answered 429 Too Many Requests", 4),
        (stalls_at_once, "nothing came for 0.4 s, after 0 of 263,942 bytes", 4),
        (stalls_halfway, "nothing came for 0.4 s, after 100,000 of 263,942 bytes", 4),
        (sends(CONTENT[:-1], length=len(CONTENT)), "", 4),
        (sends(CONTENT[:-1]), "only 263,941 of 263,942 bytes came", 4),
        (sends(CONTENT[:9], length=False), "only 9 of 263,942 bytes came", 4),
        (sends(b""), "only 0 of 263,942 bytes came", 4),
        (hangs_up, "no connection, or it broke", 4),
        (talks_nonsense, "no connection, or it broke", 4),
        (sends(CONTENT[:-1] + b"!"), f"its sha256 is {sha256(CONTENT[:-1] + b'!')} and not", 1),
        (sends(CONTENT + b"!"), "more than its 263,942 bytes came", 1),
        (sends(PAGE[:2000]), "an HTML page came in place of the file", 1),
        (sends(PAGE), "an HTML page came in place of the file", 1),
        (sends(b"<p>", Content_Type="text/html"), "an HTML page came in place of the file", 1),
    ],
)  # fmt: skip
def test_what_fails_leaves_nothing_and_says_what_to_do(server, tmp_path, answer, cause, attempts):
    server.answers = [answer]
    timeout = 0.4 if "0.4 s" in cause else 10.0  # a stalling machine is no stalling server
    error, waits, lines = quick_fetch(the_file(server), timeout=timeout)
    assert isinstance(error, DataFileError)
    assert f"set/a.bin could not be downloaded: {cause}" in str(error)
    supplied = tmp_path / "transformer_lib" / "set" / "a.bin"
    for advice in (the_file(server).url, the_file().sha256, "263,942 bytes", str(supplied)):
        assert advice in str(error)
    assert "Nothing was stored" in str(error)
    assert "TRANSFORMER_LIB_DATA names; the name in it: set/a.bin" in str(error)
    assert files_in(tmp_path) == []
    assert server.requests == attempts
    assert waits == [1, 2, 4][: attempts - 1]
    assert sum(stays for _, stays in lines) == attempts  # each attempt has its line

    supplied.parent.mkdir(parents=True, exist_ok=True)  # the advice, followed
    supplied.write_bytes(CONTENT)
    assert quick_fetch(the_file(server)) == (CONTENT, [], [])


def test_a_stream_without_end_is_left(server, tmp_path):
    def never_ends(handler):
        sends(b"", length=False)(handler)
        while not handler.server.ended.is_set():
            handler.wfile.write(CONTENT)

    server.answers = [never_ends]
    error, waits, _ = quick_fetch(the_file(server), deadline=10.0)
    assert "more than its 263,942 bytes came" in str(error)
    assert waits == []
    assert files_in(tmp_path) == []


def test_progress_has_a_line_for_each_percent(server, monkeypatch):
    monkeypatch.setattr(transfer, "PIECE", 100)
    server.answers = [GOOD]
    _, _, lines = quick_fetch(the_file(server))
    percents = [line for line, stays in lines if not stays]
    assert percents == [f"set/a.bin: {percent} % of 263,942 bytes" for percent in range(101)]


def test_a_trickle_is_given_up(server, tmp_path):
    server.answers = [trickles]
    error, waits, _ = quick_fetch(the_file(server), deadline=0.2, attempts=2)
    assert "bytes came in 0.2 s" in str(error)
    assert waits == [1]
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("first", [sends(b"", status=502), stalls_halfway, sends(CONTENT[:9])])
def test_what_passes_is_overcome(server, tmp_path, first):
    server.answers = [first, hangs_up, GOOD]
    content, waits, lines = quick_fetch(the_file(server), timeout=1.0)
    assert content == CONTENT
    assert waits == [1, 2]
    assert lines[-1][0].endswith("sha256 as expected")
    assert files_in(tmp_path) == ["transformer_lib/set/a.bin"]


def test_the_server_may_ask_for_a_pause(server):
    asks = [sends(b"", status=503, Retry_After=pause) for pause in ("7", "9999", "tomorrow")]
    server.answers = [*asks, GOOD]
    content, waits, _ = quick_fetch(the_file(server))
    assert content == CONTENT
    assert waits == [7, 60, 4]


def test_a_redirection_is_followed(server):
    server.answers = [sends(b"", status=302, Location="/b.bin"), GOOD]
    assert quick_fetch(the_file(server))[0] == CONTENT


def test_no_server_and_no_network(tmp_path, monkeypatch):
    error, waits, _ = quick_fetch(the_file())
    assert "no connection, or it broke (ConnectionRefusedError" in str(error)
    assert waits == [1, 2, 4]

    def no_network(*args, **kwargs):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    error, waits, _ = quick_fetch(the_file(url="https://example.org/a.bin"))
    assert "the server's name was not found (no network? " in str(error)
    assert waits == [1, 2, 4]
    assert files_in(tmp_path) == []


def test_a_refused_certificate_is_not_tried_again(monkeypatch):
    def refuse(*args, **kwargs):
        raise urllib.error.URLError(ssl.SSLCertVerificationError(1, "self-signed certificate"))

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    error, waits, _ = quick_fetch(the_file())
    assert "certificate was refused" in str(error)
    assert "self-signed" in str(error)
    assert waits == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../a.bin"}, "must be a path within the cache folder"),
        ({"name": "/a.bin"}, "must be a path within the cache folder"),
        ({"name": r"..\a.bin"}, "must be a path within the cache folder"),
        ({"name": ""}, "must be a path within the cache folder"),
        ({"size": 0}, "give its bytes, at least 1"),
        ({"sha256": "C0" * 32}, "64 hexadecimal digits in lower case"),
        ({"sha256": "c0" * 31}, "64 hexadecimal digits in lower case"),
    ],
)
def test_a_remote_file_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        the_file(**changes)


def test_at_least_one_attempt():
    with pytest.raises(ValueError, match="attempts is 0; it must be at least 1"):
        fetch(the_file(), attempts=0)


def test_waiting_is_real_unless_it_is_replaced():
    assert inspect.signature(fetch).parameters["wait"].default is time.sleep
    assert transfer.LONGEST_PAUSE == 60
