"""Files from the network: fetched once, verified by their sha256, and kept in a cache, by pooch."""

import os
from dataclasses import dataclass
from pathlib import Path

from transformer_lib.storage import sha256

DATA_VARIABLE = "TRANSFORMER_LIB_DATA"
ATTEMPTS = 4
SECONDS = 20.0  # without a byte, after which an attempt is given up


class DataFileError(OSError):
    """A data set's file cannot be had: why, and how to supply it by hand."""


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """The address of a file, and how to tell that it is the right one.

    Attributes:
        name: relative path in the cache, with ``/`` between folders.
        url: where it is downloaded from, by https or http.
        size: in bytes.
        sha256: of its bytes, 64 hexadecimal digits.

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


def cache_folder() -> Path:
    """The folder for downloads, by the platform's convention; it need not exist.

    >>> cache_folder().name
    'transformer_lib'
    """
    import pooch

    return Path(pooch.os_cache("transformer_lib"))


def fetch(file: RemoteFile, *, folder: str | os.PathLike | None = None) -> bytes:
    """The content of ``file``, verified: from the cache, or downloaded into it.

    If the environment variable ``TRANSFORMER_LIB_DATA`` names a folder, the file is read from there
    and the network is not used. Nothing in that folder is ever changed.

    Args:
        file: what to fetch.
        folder: the cache; None: the folder that ``TRANSFORMER_LIB_DATA`` names, or else
            :func:`cache_folder`.

    Raises:
        DataFileError: the file cannot be had or cannot be stored. The message says why, and how to
            supply it by hand.

    >>> import tempfile
    >>> proof = sha256(b"roses")
    >>> file = RemoteFile(name="a.txt", url="https://example.org/a", size=5, sha256=proof)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_bytes(b"roses")
    ...     fetch(file, folder=folder)
    b'roses'
    """
    named = os.environ.get(DATA_VARIABLE)
    if folder is None and named:
        return _supplied(file, Path(named).expanduser())
    import pooch
    import requests

    folder = cache_folder() if folder is None else Path(folder)
    cache = pooch.create(
        path=folder,
        base_url="",
        registry={file.name: f"sha256:{file.sha256}"},
        urls={file.name: file.url},
        retry_if_failed=ATTEMPTS - 1,
    )
    download = pooch.HTTPDownloader(progressbar=True, timeout=SECONDS)
    try:
        return Path(cache.fetch(file.name, downloader=download)).read_bytes()
    except requests.RequestException as error:
        why = f"{file.url} did not give it: {error}"
    except ValueError as error:  # its hash is another one
        why = (
            f"what came is another file, perhaps the login page of your network or proxy (open any "
            f"page in a browser first): {error}"
        )
    except OSError as error:
        why = f"{folder} cannot be written to or read: {error}"
    raise DataFileError(f"{file.name} could not be downloaded: {why}. {_by_hand(file, folder)}")


def _supplied(file: RemoteFile, folder: Path) -> bytes:
    """The content of a file in the folder that the reader has named."""
    path = folder / file.name
    otherwise = f"{_by_hand(file, folder)} Or unset {DATA_VARIABLE}, and it is downloaded."
    if not path.is_file():
        raise DataFileError(
            f"{DATA_VARIABLE} names the folder {folder}, but there is no file {path}. {otherwise}"
        )
    size = path.stat().st_size
    body = path.read_bytes() if size == file.size else b""
    if not file.is_right(body):
        found = f"sha256 {sha256(body)}" if body else f"{size:,} bytes"
        raise DataFileError(
            f"{path}, in the folder that {DATA_VARIABLE} names, is another file: it has {found}. "
            f"It was left as it is. {otherwise}"
        )
    return body


def _by_hand(file: RemoteFile, folder: Path) -> str:
    return (
        f"To supply it by hand: get {file.url} ({file.size:,} bytes, sha256 {file.sha256}), save "
        f"it as {folder / file.name}, and run this again. Or save it as {file.name} in any folder, "
        f"and name that folder in the environment variable {DATA_VARIABLE}."
    )
