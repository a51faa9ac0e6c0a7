"""Files that must be on the disk, and files that may be hostile."""

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> bytes:
    """The one way in which this library writes ``value``: equal values give equal bytes.

    Raises:
        TypeError, ValueError: JSON cannot hold it.

    >>> canonical_json({"b": 1, "a": [2.5, None]})
    b'{"a":[2.5,null],"b":1}\\n'
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return (text + "\n").encode()


def signature(content: bytes) -> dict[str, int | str]:
    """Size and sha256 of a file's content.

    >>> signature(b"")["size"]
    0
    """
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file; return when the disk has it.

    Raises:
        OSError: it exists already, or cannot be written.
    """
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Return when the disk has the names in this folder (Windows knows no such thing)."""
    if os.name == "nt":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folders(path: Path) -> None:
    """Make a folder and those above it, if need be; return when the disk has them."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            flush_folder(folder.parent)


def check_writable(folder: Path) -> None:
    """Make ``folder``, if need be, and see whether files can be written there.

    Raises:
        OSError: they cannot.
    """
    try:
        make_folders(folder)
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"trial")
    except OSError as error:
        raise OSError(
            error.errno,
            f"no checkpoint could be saved there ({error.strerror}), so no step was taken. Make "
            f"it a folder that you may write to, or choose another",
            str(folder),
        ) from error


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most ``most`` bytes.

    Raises:
        ValueError: it is missing, longer, a symbolic link, a folder, a pipe or a device, or cannot
            be read; the message says which, and is to be put behind the file's name.
    """
    if path.is_symlink():
        raise ValueError("is a symbolic link, which could lead anywhere.")
    # A pipe would let the reader wait for ever, hence NONBLOCK; Windows has neither flag.
    names = ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError as error:
        raise ValueError("is missing.") from error
    except OSError as error:
        raise ValueError(f"cannot be opened ({error.strerror}).") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is no regular file.")
        if status.st_size > most:
            raise ValueError(f"has {status.st_size:,} bytes, and at most {most:,} are expected.")
        with open(handle, "rb", closefd=False) as file:
            return file.read(status.st_size)
    except (OSError, MemoryError) as error:
        raise ValueError(f"cannot be read ({error or type(error).__name__}).") from error
    finally:
        os.close(handle)
