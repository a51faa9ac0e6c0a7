"""One file over HTTP: each way in which a server or a network misbehaves, from localhost.

Each ends with an error that says why, and how to supply the file by hand, and with an empty cache.
"""

import inspect
import socket
import ssl
import time
import traceback

import pytest
from misbehaving import (
    CONTENT,
    GOOD,
    PAGE,
    drips,
    files_in,
    hangs_up,
    quick_fetch,
    sends,
    sends_on,
    stalls_at_once,
    stalls_halfway,
    talks_nonsense,
    the_file,
)

from transformer_lib.data import downloads, transfer
from transformer_lib.data.downloads import DataFileError, fetch, sha256

pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "cause", "attempts"),
    [
        (sends(b"no such file", status=404), "the server answered 404 Not Found", 1),
        (sends(b"", status=403), "the server answered 403 Forbidden", 1),
        (sends(b"", status=500), "the server answered 500 Internal Server Error", 4),
        (sends(b"", status=429), "the server answered 429 Too Many Requests", 4),
        (sends(b"", status=499), "the server answered 499.", 1),
        (sends(b"", status=304), "the server answered 304 Not Modified, a redirection that", 1),
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
    # Else a slow machine would look like a slow server.
    timeout = 0.4 if "0.4 s" in cause else 100.0
    error, waits, lines = quick_fetch(the_file(server), timeout=timeout)
    assert isinstance(error, DataFileError)
    assert f"set/a.bin could not be downloaded: {cause}" in str(error)
    supplied = tmp_path / "transformer_lib" / "set" / "a.bin"
    for advice in (the_file(server).url, the_file().sha256, "263,942 bytes", str(supplied)):
        assert advice in str(error)
    assert "Nothing was stored" in str(error)
    assert "save it as set/a.bin in any folder, and name that folder in" in str(error)
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


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
WITHOUT_END = {
    "status": drips(b"HTTP/1.1 200 O", b"K"),
    "header": drips(OK + b"X: ", b"x"),
    "body": drips(OK + b"Content-Length: 263942\r\n\r\n", b"x"),
    "size of a chunk": drips(CHUNKED, b"0"),
    "extension of a chunk": drips(CHUNKED + b"5;", b"x"),
    "trailers": drips(CHUNKED + b"0\r\n", b"X: y\r\n", pause=0),
    "continue, slowly": drips(b"", CONTINUE),
    "continue, at full speed": drips(b"", CONTINUE, pause=0),
    "redirections": sends_on,
}


@pytest.mark.slow
@pytest.mark.parametrize("answer", WITHOUT_END.values(), ids=WITHOUT_END)
def test_one_deadline_for_all_that_may_have_no_end(server, tmp_path, answer):
    server.answers = [answer]
    began = time.monotonic()
    error, waits, _ = quick_fetch(the_file(server), timeout=200.0, deadline=0.5, attempts=3)
    assert time.monotonic() - began < 100  # (half a second, on a machine with nothing else to do)
    assert "of 263,942 bytes came in 0.5 s" in str(error)
    assert waits == []
    assert files_in(tmp_path) == []


@pytest.mark.slow
def test_the_deadline_holds_for_a_proxy_that_is_asked_for_a_tunnel(server, monkeypatch):
    server.answers = [drips(b"HTTP/1.1 200 O", b"K")]
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.server_port}")
    error, _, _ = quick_fetch(the_file(url="https://example.org/a.bin"), deadline=1.0)
    assert "only 0 of 263,942 bytes came in 1 s" in str(error)
    assert server.requests == 1


def test_pauses_count_as_well(server):
    server.answers = [sends(b"", status=503, Retry_After="30")]
    error, waits, _ = quick_fetch(the_file(server), deadline=20.0)
    assert "the server answered 503 Service Unavailable" in str(error)
    assert waits == []


def test_the_body_of_a_redirection_is_not_read(server):
    there = b"HTTP/1.1 302 Found\r\nLocation: /b.bin\r\n\r\n"
    server.answers = [drips(there, CONTENT, pause=0), GOOD]
    assert quick_fetch(the_file(server), deadline=10.0)[0] == CONTENT


@pytest.mark.parametrize(
    ("location", "cause"),
    [
        ("http://[::1", "the server redirects to an address that is not valid (ValueError("),
        ("http://bücher/", "the server redirects to an address that is not valid (UnicodeEncode"),
        ("file:///etc/passwd", "the server answered 302 Found, a redirection that leads to no"),
        ("ftp://localhost:1/a", "no connection, or it broke ('unknown url type: ftp')"),
        ("/a.bin", "the server answered 302 Found, a redirection that leads to no file"),
    ],
)
def test_redirections_that_lead_nowhere(server, location, cause):
    server.answers = [sends(b"", status=302, Location=location)]
    error, _, _ = quick_fetch(the_file(server), attempts=1)
    assert f"set/a.bin could not be downloaded: {cause}" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: handler.wfile.write(b"HTTP/1.1 404 \x1b]0;own\x07\r\n\r\n"),
        lambda handler: handler.wfile.write(b"\x1b[2J" * 1000 + b"\r\n\r\n"),
        sends(b"", status=302, Location="http://[\x1b[2J"),
    ],
)
def test_no_escape_sequence_of_a_server_reaches_the_terminal(server, answer):
    server.answers = [answer]
    error, _, lines = quick_fetch(the_file(server), attempts=1)
    told = "".join([*traceback.format_exception(error), *(line for line, _ in lines)])
    assert "could not be downloaded" in told
    assert not {"\x1b", "\x07"} & set(told)
    assert len(str(error)) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("first", [sends(b"", status=502), stalls_halfway, sends(CONTENT[:9])])
def test_what_passes_is_overcome(server, tmp_path, first):
    server.answers = [first, hangs_up, GOOD]
    content, waits, lines = quick_fetch(the_file(server), timeout=2.0)
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


def test_a_refused_certificate_is_not_tried_again(server, monkeypatch):
    def refuse(*args, **kwargs):
        raise ssl.SSLCertVerificationError(1, "self-signed certificate")

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", refuse)
    url = f"https://127.0.0.1:{server.server_port}/a.bin"
    error, waits, _ = quick_fetch(the_file(url=url))
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
        ({"url": "file:///etc/passwd"}, "must be an address such as 'https://example.org/a.txt'"),
        ({"url": "https:///a.bin"}, "must be an address such as"),
        ({"url": "https://[::1/a.bin"}, "must be an address such as"),
        ({"url": "a.bin"}, "the url of set/a.bin is 'a.bin'; it must be an address"),
        ({"size": 0}, "give its bytes, at least 1"),
        ({"sha256": "C0" * 32}, "64 hexadecimal digits in lower case"),
        ({"sha256": "c0" * 31}, "64 hexadecimal digits in lower case"),
    ],
)
def test_a_remote_file_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        the_file(**changes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts is 0; it must be at least 1"),
        ({"timeout": 0.0}, "timeout is 0.0; it must be a number of seconds above 0"),
        ({"deadline": -1.0}, "deadline is -1.0; it must be a number of seconds above 0"),
        ({"deadline": float("nan")}, "deadline is nan; it must be a number of seconds above 0"),
    ],
)
def test_attempts_and_times_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        fetch(the_file(), **options)


def test_waiting_is_real_unless_it_is_replaced():
    assert inspect.signature(fetch).parameters["wait"].default is time.sleep
    assert downloads.LONGEST_PAUSE == 60
