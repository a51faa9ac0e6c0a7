"""Files that a reader has, and what is downloaded, from localhost."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from transformer_lib.data.downloads import RemoteFile, sha256


class Handler(BaseHTTPRequestHandler):
    """Sends the first of the server's answers, as long as there is another; then the last."""

    def do_GET(self):
        answers = self.server.answers
        status, body, length = answers.pop(0) if len(answers) > 1 else answers[0]
        self.server.requests += 1
        self.send_response(status)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    """It answers a request with `answers`: a status, a body, and perhaps another length."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers, server.requests = [], 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """An empty cache in `tmp_path`, no folder of the reader's, no proxy; pauses take no time."""
    monkeypatch.delenv("TRANSFORMER_LIB_DATA", raising=False)
    monkeypatch.setattr("transformer_lib.data.downloads.cache_folder", lambda: tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)


@pytest.fixture
def write(tmp_path):
    """write(data): a file of the reader's with these bytes."""

    def write(data):
        (tmp_path / "mine.txt").write_bytes(data)
        return tmp_path / "mine.txt"

    return write


@pytest.fixture
def supply(tmp_path, monkeypatch):
    """supply(name, data): a small file in the reader's folder, and the description that fits it."""

    def supply(name, data):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
        monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path))
        return RemoteFile(name=name, url="http://localhost:1/", size=len(data), sha256=sha256(data))

    return supply
