"""Files from the network: fetched once, proved by their sha256, never half there.

What is verified is written under a temporary name that is then renamed. So the cache holds whole,
right files and nothing else.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from transformer_lib import storage
from transformer_lib.data.transfer import RemoteFile, TransferFailure, download, sha256

DATA_VARIABLE = "TRANSFORMER_LIB_DATA"
ABANDONED = 3600.0  # seconds after which a temporary file has lost its program


class DataFileError(OSError):
    """A data set's file is not to be had: why, and how to supply it by hand."""


def cache_folder() -> Path:
    """Where downloads are kept, by the platform's convention; it need not exist.

    ``$XDG_CACHE_HOME`` on every platform if it is set (to an absolute path: the standard says to
    ignore others); else ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on
    Windows. Below it: ``transformer_lib``.

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
    and the network is not asked. What is in that folder is never changed.

    Args:
        file: what to fetch.
        folder: the cache; None: the folder that ``TRANSFORMER_LIB_DATA`` names, or else
            :func:`cache_folder`.
        attempts: how often to try. Between them: 1, 2, 4 ... seconds, or as the server asks.
        timeout: seconds without a byte after which an attempt is given up.
        deadline: seconds after which it is given up though bytes still trickle in.
        wait: called with the seconds to wait.
        report: called with a line on the progress, and whether the line is to stay.

    Raises:
        DataFileError: the file cannot be had or cannot be stored. The message says why, and how to
            supply it by hand. Nothing half-written is left.

    >>>     >>> proof = sha256(b"roses")
    >>> file = RemoteFile(name="a.txt", url="https://example.org/a", size=5, sha256=proof)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_bytes(b"roses")
    ...     fetch(file, folder=folder)
    b'roses'
    """
    named = os.environ.get(DATA_VARIABLE)
    if folder is None and named:
        return _supplied(file, Path(named).expanduser())
    folder = cache_folder() if folder is None else Path(folder)
    path = folder / file.name
    damage = ""
    try:
        body = path.read_bytes()
        if file.is_right(body):
            return body
        damage = f" (The {path} that is there is damaged: its sha256 is {sha256(body)}.)"
    except FileNotFoundError:
        pass  # the usual case: not downloaded yet
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error}. {_by_hand(file, folder)}") from error
    try:
        body = download(file, attempts, timeout, deadline, wait, report)
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


def _supplied(file: RemoteFile, folder: Path) -> bytes:
    """The content of a file in the folder that the reader has named."""
    path = folder / file.name
    otherwise = f"{_by_hand(file, folder)} Or unset {DATA_VARIABLE}, and it is downloaded."
    try:
        body = path.read_bytes()
    except OSError as error:
        raise DataFileError(
            f"{DATA_VARIABLE} names the folder {folder}, but {path} cannot be read: "
            f"{error.strerror}. {otherwise}"
        ) from error
    if not file.is_right(body):
        raise DataFileError(
            f"{path}, in the folder that {DATA_VARIABLE} names, is another file: {len(body):,} "
            f"bytes with sha256 {sha256(body)}. It was left as it is. {otherwise}"
        )
    return body


def _by_hand(file: RemoteFile, folder: Path) -> str:
    return (
        f"To supply it by hand: get {file.url} ({file.size:,} bytes, sha256 {file.sha256}), save "
        f"it as {folder / file.name}, and run this again. Any other folder will do that the "
        f"environment variable {DATA_VARIABLE} names; the name in it: {file.name}."
    )


def _store(body: bytes, path: Path) -> None:
    """Write ``body`` to ``path``: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f".{path.name}.*.part"):  # of a program that was killed
        with contextlib.suppress(FileNotFoundError):  # another program was faster
            if time.time() - old.stat().st_mtime > ABANDONED:
                old.unlink()
    storage.write_file(path, body)
