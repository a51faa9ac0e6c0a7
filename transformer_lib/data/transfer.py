"""One file over HTTP, or a plain reason why not: several attempts, each of which can end.

A body is held in memory until its length and its hash are right. So this is meant for files of some
megabytes, and whoever stores them stores nothing that is not proved.
"""

import dataclasses
import hashlib
import http.client
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import PurePosixPath

PIECE = 1 << 16  # bytes read at a time
LONGEST_PAUSE = 60.0  # seconds, however long the server asks to wait


@dataclasses.dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file that has an address, and the proof that it is the right one.

    Attributes:
        name: relative path in the cache, with ``/`` between folders.
        url: where it is downloaded from.
        size: in bytes.
        sha256: of its bytes, 64 hexadecimal digits.

    Raises:
        ValueError: a name that leads out of the folder, a size below 1, a hash that is none.

    >>> RemoteFile(name="a.txt", url="https://example.org/a", size=5, sha256="c0" * 32).name
    'a.txt'
    """

    name: str
    url: str
    size: int
    sha256: str

    def is_right(self, body: bytes) -> bool:
        """Is ``body`` this file's content?"""
        return len(body) == self.size and sha256(body) == self.sha256

    def __post_init__(self):
        path = PurePosixPath(self.name)
        if (
            not path.name
            or path.is_absolute()
            or ".." in path.parts
            or re.search(r"[\\:]", str(path))
        ):
            raise ValueError(
                f"the name is {self.name!r}; it must be a path within the cache folder, such as "
                f"'texts/a.txt'."
            )
        if self.size < 1:
            raise ValueError(f"the size of {self.name} is {self.size}; give its bytes, at least 1.")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise ValueError(
                f"the sha256 of {self.name} is {self.sha256!r}; it must be 64 hexadecimal digits "
                f"in lower case, as sha256sum prints them."
            )


class TransferFailure(Exception):
    """What went wrong with one attempt; is another of use, and after how long a pause?"""

    def __init__(self, cause: str, *, again: bool, pause: float = 0.0):
        super().__init__(cause)
        self.again = again
        self.pause = pause


def download(
    file: RemoteFile,
    attempts: int,
    timeout: float,
    deadline: float,
    wait: Callable[[float], object],
    report: Callable[[str, bool], object],
) -> bytes:
    """The verified content of ``file``, from its address; the arguments are those of ``fetch``.

    Tried again: errors of the server (5xx, 408, 429), a stall, a broken connection, a short body.
    Not tried again, since it would come out the same: other answers (404), an HTML page in place of
    the file, another file, a certificate that is refused.

    Raises:
        TransferFailure: the last attempt failed; the message says how.
        ValueError: ``attempts`` is below 1.

    >>> nowhere = RemoteFile(name="a", url="http://localhost:1/a", size=5, sha256="c0" * 32)
    >>> download(nowhere, 1, 5.0, 5.0, time.sleep, lambda line, stays: print(line))
    Traceback (most recent call last):
    transformer_lib.data.transfer.TransferFailure: ...
    """
    for attempt in range(1, attempts + 1):
        try:
            body, kind = _body(file, timeout, deadline, report)
            _check(file, body, kind)
            report(f"{file.name}: {file.size:,} bytes, sha256 as expected", True)
            return body
        except TransferFailure as failure:
            note = f"{file.name}: attempt {attempt} of {attempts}: {failure}"
            if not failure.again or attempt == attempts:
                report(note, True)
                raise
            pause = max(2.0 ** (attempt - 1), min(failure.pause, LONGEST_PAUSE))
            report(f"{note}; again in {pause:g} s", True)
            wait(pause)
    raise ValueError(f"attempts is {attempts}; it must be at least 1.")


def _body(file, timeout, deadline, report) -> tuple[bytes, str]:
    """What the server sends, and what kind it says it is. One attempt."""
    request = urllib.request.Request(file.url, headers={"User-Agent": "transformer_lib"})
    end = time.monotonic() + deadline
    body, shown = bytearray(), -1
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            # One byte more than expected is enough to know that it is another file.
            while len(body) <= file.size and (piece := response.read1(PIECE)):
                body += piece
                if time.monotonic() > end:
                    raise TransferFailure(
                        f"only {len(body):,} of {file.size:,} bytes came in {deadline:g} s",
                        again=True,
                    )
                percent = min(100, 100 * len(body) // file.size)
                if percent > shown:
                    report(f"{file.name}: {percent} % of {file.size:,} bytes", False)
                    shown = percent
            return bytes(body), response.headers.get_content_type()
    except urllib.error.HTTPError as error:
        with error:
            pause = error.headers.get("Retry-After", "")
        # Errors of the server pass, and so do "timeout" and "too many requests"; the rest stay.
        raise TransferFailure(
            f"the server answered {error.code} {error.reason}",
            again=error.code >= 500 or error.code in (408, 429),
            pause=float(pause) if pause.isdecimal() else 0.0,
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)  # urllib wraps what befell the connection
        refused = isinstance(reason, ssl.SSLCertVerificationError)
        cause = _cause(reason, timeout)
        raise TransferFailure(
            f"{cause}, after {len(body):,} of {file.size:,} bytes", again=not refused
        ) from error


def _cause(reason: object, timeout: float) -> str:
    """Why a connection failed, in words."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"the server's certificate was refused ({reason}: this Python has no root "
            f"certificates, or something between you and the server reads along)"
        )
    if isinstance(reason, TimeoutError):
        return f"nothing came for {timeout:g} s"
    if isinstance(reason, http.client.IncompleteRead):
        return "the server ended the connection"
    if isinstance(reason, socket.gaierror):
        return f"the server's name was not found (no network? {reason})"
    return f"no connection, or it broke ({reason!r})"


def _check(file: RemoteFile, body: bytes, kind: str) -> None:
    if file.is_right(body):
        return
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:20].lower()
    if kind == "text/html" or start.startswith((b"<!doctype html", b"<html", b"<head")):
        raise TransferFailure(
            "an HTML page came in place of the file (the login page of a network or proxy sends "
            "such; open any page in a browser first)",
            again=False,
        )
    if len(body) < file.size:
        raise TransferFailure(f"only {len(body):,} of {file.size:,} bytes came", again=True)
    if len(body) > file.size:
        raise TransferFailure(
            f"more than its {file.size:,} bytes came: it is another file", again=False
        )
    raise TransferFailure(
        f"its sha256 is {sha256(body)} and not as expected: it is another file, or was changed "
        f"on its way",
        again=False,
    )


def sha256(body: bytes) -> str:
    """The SHA-256 of ``body`` as 64 hexadecimal digits.

    Source: FIPS 180-4.

    >>> sha256(b"roses")[:8]
    '0515aa08'
    """
    return hashlib.sha256(body).hexdigest()
