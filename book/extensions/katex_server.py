"""Sphinx extension: start KaTeX's render server without a race.

sphinxcontrib-katex connects as soon as the server's socket file is there, which is before the
server listens: on a busy machine the connection is refused, the build fails, and the server stays
behind, holding the terminal's pipe open, so that whatever reads it waits forever. Here the
connection is tried until it is taken, and a server that cannot be reached is ended.
"""

import os
import socket
import time
from pathlib import Path
from subprocess import PIPE, Popen

from sphinx.application import Sphinx
from sphinxcontrib.katex import KaTeXError, KaTeXServer

SECONDS = 60


def start_server_process(
    cls: type[KaTeXServer], rundir: Path, timeout: float
) -> tuple[Popen, socket.socket]:
    """The server's process and a connection to it. KaTeXError if it ends or never answers."""
    path = rundir / "katex.sock"
    # Its warnings into a file: a pipe that nobody reads fills up, and then the server blocks.
    complaints = rundir / "stderr.txt"
    with complaints.open("wb") as errors:
        process = Popen(
            cls.build_command(socket=path), stdin=PIPE, stdout=PIPE, stderr=errors, cwd=rundir
        )
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
            return process, connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            time.sleep(0.01)
    process.kill()
    process.communicate()
    said = complaints.read_text(encoding="utf-8", errors="replace").strip()
    raise KaTeXError(
        f"KaTeX's server did not answer within {SECONDS} s. It said: {said or 'nothing'}"
    )


def setup(app: Sphinx) -> dict[str, object]:
    if os.name == "posix":
        KaTeXServer.start_server_process = classmethod(start_server_process)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
