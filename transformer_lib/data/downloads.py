"""Files from the network: fetched once, verified by their sha256, and kept in a cache.

A file is held in memory until it is verified, so this is meant for files of some megabytes. It is
then written under a temporary name and renamed, so the cache holds complete, correct files and
nothing else. ``transfer`` makes the requests.
"""

import contextlib
import dataclasses
import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from transformer_lib import storage
from transformer_lib.data.transfer import Clock, TransferFailure, get
from transformer_lib.storage import sha256

DATA_VARIABLE = "TRANSFORMER_LIB_DATA"
ABANDONED = 3600.0  # seconds after which a temporary file has lost its program
LONGEST_PAUSE = 60.0  # seconds between two attempts, however long the server asks to wait


class DataFileError(OSError):
    """A data set's file cannot be had: why, and how to supply it by hand."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """The address of a file, and how to tell that it is the right one.

    Attributes:
        name: relative path in the cache, with ``/`` between folders.
        url: where it is downloaded from, by https or http.
        size: in bytes.
        sha256: of its bytes, 64 hexadecimal digits.

    Raises:
        ValueError: a name that leads out of the folder, an address of another kind, a size below 1,
            or something that is not a sha256.

    >>> RemoteFile(name="a.txt", url="https://example.org/a", size=5, sha256="c0" * 32).name
    'a.txt'
    """

    name: str
    url: str
    size: int
    sha256: str

    def __post_init__(self):
        _require_file(self)

    def is_right(self, body: bytes) -> bool:
        """Is ``body`` this file's content?"""
        return len(body) == self.size and sha256(body) == self.sha256


def cache_folder() -> Path:
    """The folder for downloads, by the platform's convention; it need not exist.

    ``transformer_lib`` in ``$XDG_CACHE_HOME``, on every platform, if that is an absolute path (the
    standard says to ignore others); else in ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS,
    ``%LOCALAPPDATA%`` on Windows.

    Source: XDG Base Directory Specification 0.8, section 3.

    >>> cache_folder().name
    'transformer_lib'
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
        elif sys.platform == "darwin":
            base = os.path.expanduser("~/Library/Caches")
        else:
            base = os.path.expanduser("~/.cache")
    return Path(base) / "transformer_lib"


def show_progress(line: str, stays: bool) -> None:
    """Write ``line`` over the one before it, on stderr; the next is a new one if it ``stays``."""
    print(f"\r{line:<79}", end="\n" if stays else "", file=sys.stderr, flush=True)


def fetch(
    file: RemoteFile,
    *,
    folder: str | os.PathLike | None = None,
    attempts: int = 4,
    timeout: float = 20.0,
    deadline: float = 600.0,
    wait: Callable[[float], object] = time.sleep,
    report: Callable[[str, bool], object] = show_progress,
) -> bytes:
    """The content of ``file``, verified: from the cache, or downloaded into it.

    If the environment variable ``TRANSFORMER_LIB_DATA`` names a folder, the file is read from there
    and the network is not used. Nothing in that folder is ever changed.

    Tried again: errors of the server (5xx, 408, 429), a stall, a broken connection, a short body.
    Not tried again, since the result would be the same: other answers (404), an HTML page in place
    of the file, another file, a certificate that is refused.

    Args:
        file: what to fetch.
        folder: the cache; None: the folder that ``TRANSFORMER_LIB_DATA`` names, or else
            :func:`cache_folder`.
        attempts: how many times to try, with pauses of 1, 2, 4 ... seconds between, or as long as
            the server asks.
        timeout: seconds without a byte after which an attempt is given up.
        deadline: seconds after which the download as a whole, with all attempts and pauses, is
            given up, whatever the server is still sending.
        wait: called with the seconds to wait.
        report: called with a line about the progress, and whether that line is to stay.

    Raises:
        DataFileError: the file cannot be had or cannot be stored. The message says why, and how to
            supply it by hand. Nothing half-written is left.
        ValueError: ``attempts`` is below 1, ``timeout`` or ``deadline`` not above 0.

    >>> import tempfile
    >>> proof = sha256(b"roses")
    >>> file = RemoteFile(name="a.txt", url="https://example.org/a", size=5, sha256=proof)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_bytes(b"roses")
    ...     fetch(file, folder=folder)
    b'roses'
    """
    if attempts < 1:
        raise ValueError(f"attempts is {attempts}; it must be at least 1.")
    clock = Clock(timeout, deadline)
    named = os.environ.get(DATA_VARIABLE)
    if folder is None and named:
        return _supplied(file, Path(named).expanduser())
    folder = cache_folder() if folder is None else Path(folder)
    path = folder / file.name
    damage = ""
    try:
        body = _read(path, file.size)
        if file.is_right(body):
            return body
        damage = f" (The {path} that is there is damaged: it has {_described(body, file.size)}.)"
    except FileNotFoundError:
        pass  # the usual case: not downloaded yet
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error}. {_by_hand(file, folder)}") from error
    try:
        body = _download(file, attempts, clock, wait, report)
    except TransferFailure as failure:
        raise DataFileError(
            f"{file.name} could not be downloaded: {failure}.{damage} Nothing was stored. "
            f"{_by_hand(file, folder)}"
        ) from failure
    try:
        _store(body, path)
    except OSError as error:
        raise DataFileError(
            f"{file.name} was downloaded, but {path} could not be written: {error}. Nothing was "
            f"stored. Make room for {file.size:,} bytes there, or set XDG_CACHE_HOME to a folder "
            f"that can be written to. {_by_hand(file, folder)}"
        ) from error
    return body


def _download(
    file: RemoteFile,
    attempts: int,
    clock: Clock,
    wait: Callable[[float], object],
    report: Callable[[str, bool], object],
) -> bytes:
    """The verified content of ``file``, from its address, or the last attempt's failure."""
    for attempt in range(1, attempts + 1):
        try:
            body, kind = get(file.url, file.size, clock, _Percents(file, report))
            _require_right(file, body, kind)
            break
        except TransferFailure as failure:
            note = f"{file.name}: attempt {attempt} of {attempts}: {failure}"
            pause = max(2.0 ** (attempt - 1), min(failure.pause, LONGEST_PAUSE))
            if not failure.again or attempt == attempts or pause >= clock.left:
                report(note, True)
                raise
            report(f"{note}; again in {pause:g} s", True)
            wait(pause)
    report(f"{file.name}: {file.size:,} bytes, sha256 as expected", True)
    return body


class _Percents:
    """To be called with the number of bytes so far; reports each percent once."""

    def __init__(self, file: RemoteFile, report: Callable[[str, bool], object]):
        self._file, self._report, self._shown = file, report, -1

    def __call__(self, come: int) -> None:
        percent = min(100, 100 * come // self._file.size)
        if percent > self._shown:
            self._report(f"{self._file.name}: {percent} % of {self._file.size:,} bytes", False)
            self._shown = percent


def _supplied(file: RemoteFile, folder: Path) -> bytes:
    """The content of a file in the folder that the reader has named."""
    path = folder / file.name
    otherwise = f"{_by_hand(file, folder)} Or unset {DATA_VARIABLE}, and it is downloaded."
    try:
        body = _read(path, file.size)
    except OSError as error:
        raise DataFileError(
            f"{DATA_VARIABLE} names the folder {folder}, but {path} cannot be read: "
            f"{error.strerror}. {otherwise}"
        ) from error
    if not file.is_right(body):
        raise DataFileError(
            f"{path}, in the folder that {DATA_VARIABLE} names, is another file: it has "
            f"{_described(body, file.size)}. It was left as it is. {otherwise}"
        )
    return body


def _read(path: Path, size: int) -> bytes:
    """The content of the file at ``path``; of a larger one, only ``size`` bytes and one more.

    Only regular files are opened: a pipe would be waited for, and a device might never end.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with open(path, "rb") as file:
        return file.read(size + 1)


def _described(body: bytes, size: int) -> str:
    """The wrong content that :func:`_read` has found, for an error message."""
    if len(body) > size:
        return f"more than {size:,} bytes"
    return f"{len(body):,} bytes with sha256 {sha256(body)}"


def _by_hand(file: RemoteFile, folder: Path) -> str:
    return (
        f"To supply it by hand: get {file.url} ({file.size:,} bytes, sha256 {file.sha256}), save "
        f"it as {folder / file.name}, and run this again. Or save it as {file.name} in any folder, "
        f"and name that folder in the environment variable {DATA_VARIABLE}."
    )


def _store(body: bytes, path: Path) -> None:
    """Write ``body`` to ``path``: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f".{path.name}.*.part"):  # of a program that was killed
        with contextlib.suppress(FileNotFoundError):  # another program was faster
            if time.time() - old.stat().st_mtime > ABANDONED:
                old.unlink()
    storage.write_file(path, body)


def _require_file(file: RemoteFile) -> None:
    """A path within the cache, an address on the network, a size and a hash."""
    path = PurePosixPath(file.name)
    leads_out = path.is_absolute() or ".." in path.parts or re.search(r"[\\:]", file.name)
    if leads_out or not path.name:
        raise ValueError(
            f"the name is {file.name!r}; it must be a path within the cache folder, such as "
            f"'texts/a.txt'."
        )
    try:
        address = urlsplit(file.url)
        is_remote = address.scheme in ("https", "http") and bool(address.hostname)
    except ValueError:  # brackets that do not match
        is_remote = False
    if not is_remote:
        raise ValueError(
            f"the url of {file.name} is {file.url!r}; it must be an address such as "
            f"'https://example.org/a.txt'."
        )
    if file.size < 1:
        raise ValueError(f"the size of {file.name} is {file.size}; give its bytes, at least 1.")
    if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise ValueError(
            f"the sha256 of {file.name} is {file.sha256!r}; it must be 64 hexadecimal digits "
            f"in lower case, as sha256sum prints them."
        )


def _require_right(file: RemoteFile, body: bytes, kind: str) -> None:
    """``body`` is the file, by its hash; ``kind`` is the content type that came with it."""
    if file.is_right(body):
        return
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:20].lower()
    if kind == "text/html" or start.startswith((b"<!doctype html", b"<html", b"<head")):
        raise TransferFailure(
            "an HTML page came in place of the file (perhaps the login page of your network or "
            "proxy; open any page in a browser first)",
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
