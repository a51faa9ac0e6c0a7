"""A local server that misbehaves as a test asks, and the file that it should have sent."""

import contextlib
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from transformer_lib.data.downloads import DataFileError, RemoteFile, fetch, sha256

CONTENT = bytes(range(256)) * 1031 + b"roses\n"
PAGE = b"\n<!DOCTYPE html><title>Log in</title>" + b"x" * len(CONTENT)


class Server(ThreadingHTTPServer):
    """Answers request number i with ``answers[i]``, and from then on with the last."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests, self.ended = [], 0, threading.Event()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the client may hang up
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        answer = self.server.answers[min(self.server.requests, len(self.server.answers) - 1)]
        self.server.requests += 1
        answer(self)

    do_CONNECT = do_GET  # as a proxy is asked

    def log_message(self, *args):
        pass


def sends(body, *, status=200, length=None, **headers):
    def answer(handler):
        handler.send_response(status)
        if length is not False:
            handler.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def stalls_at_once(handler):
    handler.server.ended.wait(20)


def stalls_halfway(handler):
    sends(CONTENT[:100_000], length=len(CONTENT))(handler)
    handler.server.ended.wait(20)


def drips(start, drop, pause=0.02):
    """Sends ``start``, then ``drop`` again and again, without end."""

    def answer(handler):
        handler.wfile.write(start)
        while not handler.server.ended.wait(pause):
            handler.wfile.write(drop)

    return answer


def sends_on(handler):
    """Redirects to another address each time, slowly."""
    handler.server.ended.wait(0.2)
    sends(b"", status=302, Location=f"/{handler.server.requests}")(handler)


def hangs_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def talks_nonsense(handler):
    handler.wfile.write(b"\0\0nonsense\r\n\r\n")


GOOD = sends(CONTENT)


@contextlib.contextmanager
def serving():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def the_file(server=None, **changes):
    port = server.server_port if server else 1
    fields = {"name": "set/a.bin", "url": f"http://127.0.0.1:{port}/a.bin"}
    fields |= {"size": len(CONTENT), "sha256": sha256(CONTENT)}
    return RemoteFile(**(fields | changes))


def quick_fetch(file, **options):
    """``fetch`` without real waiting: (content or error, the waits, the lines reported)."""
    waits, lines = [], []
    options = {"timeout": 10.0, "wait": waits.append} | options
    try:
        result = fetch(file, report=lambda line, stays: lines.append((line, stays)), **options)
    except DataFileError as error:
        result = error
    return result, waits, lines


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
