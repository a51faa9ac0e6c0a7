"""Files written whole or not at all, folders that one program uses, files that strangers may send.

Threat model. A run's folder, a checkpoint, an exported model, a run log and a text may come from a
stranger, and may be damaged or malicious. Reading one must not run code, write anything, wait
forever, or take memory or time beyond what its kind and its recipe allow: so files are regular and
of bounded size, JSON is strict, and nothing is ever unpickled. A sha256 beside a file shows damage;
it shows nothing about who wrote the file. A recipe that is typed in comes from the reader, by
mistake at worst.

(No PyTorch here: run logs are read, and data is downloaded, without it.)
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

MOST_JSON_BYTES = 2**24  # more than any honest file needs; a list takes 40 times as much in memory
INSTALL = "Install the version of transformer_lib that wrote it."
# No link is followed, and no pipe waited for. (Windows has neither flag.)
CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# What reading a file that says something else than it should can raise.
NONSENSE = (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError)


class UnusableFileError(ValueError):
    """A file that cannot be used: ``cause`` completes a sentence that starts with its name; ``fix``
    is what to do, None if only the caller can know.
    """

    def __init__(self, cause: str, fix: str | None = None):
        super().__init__(f"{cause} {fix or ''}".strip())
        self.cause, self.fix = cause, fix


class InUseError(OSError):
    """Another program uses this folder."""


def sha256(content: bytes) -> str:
    """64 hexadecimal digits (FIPS 180-4)."""
    return hashlib.sha256(content).hexdigest()


def signature(content: bytes) -> dict[str, int | str]:
    """What a manifest says of a file."""
    return {"size": len(content), "sha256": sha256(content)}


def in_a_line(error: Exception) -> str:
    """An error's message on one line. (PyTorch's take several.)"""
    if isinstance(error, KeyError):
        return f"there is no entry {error}"
    return " ".join(str(error).split())[:500].rstrip(" .")


# --- JSON ---------------------------------------------------------------------------------------


def canonical_json(value: Any) -> bytes:
    """The one way in which this library writes ``value``: equal values give equal bytes.

    >>> canonical_json({"b": 1, "a": [2.5, None]})
    b'{"a":[2.5,null],"b":1}\\n'
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return (text + "\n").encode()


def parse_json(content: bytes | str) -> Any:
    """The value that JSON says, and nothing that only Python's reader accepts.

    Raises:
        ValueError: it is not JSON, not UTF-8, nested too deeply, names a key twice, or holds a
            number that is not finite.

    >>> parse_json('{"a": NaN}')
    Traceback (most recent call last):
    ValueError: NaN is not a number in JSON
    """
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def parse_format(content: bytes, kind: str, version: int) -> dict[str, Any]:
    """A JSON object that says of itself that it is of this kind and version."""
    try:
        value = parse_json(content)
    except ValueError as error:
        raise UnusableFileError(f"is damaged: it is not readable JSON ({error}).") from error
    if not isinstance(value, dict) or value.get("format") != kind:
        raise UnusableFileError(f"is JSON, but not a {kind}.")
    if value.get("format_version") != version:
        found = f"{value.get('format_version')!r:.80}"
        raise UnusableFileError(
            f"has format version {found}; this library reads version {version}.", INSTALL
        )
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"it names {key!r:.80} twice")
        value[key] = item
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is not a number in JSON")
    return value


# --- Reading ------------------------------------------------------------------------------------


def read_regular(path: Path, most: int) -> bytes:
    """The content of a file of at most ``most`` bytes; of no link, folder, pipe or device.

    Raises:
        UnusableFileError: there is none, or it cannot be read.
    """

    if path.is_symlink():
        raise UnusableFileError("is a symbolic link, which could lead anywhere.")
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | CAREFULLY)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnusableFileError("is not a regular file.")
            if status.st_size > most:
                raise UnusableFileError(
                    f"has {status.st_size:,} bytes, and at most {most:,} are expected."
                )
            return file.read(status.st_size)
    except (OSError, MemoryError) as error:
        known = {FileNotFoundError: "is missing.", IsADirectoryError: "is not a regular file."}
        reason = getattr(error, "strerror", None) or type(error).__name__
        fix = "Ask its owner for permission to read it."
        raise UnusableFileError(
            known.get(type(error), f"cannot be read ({reason})."),
            fix if isinstance(error, PermissionError) else None,
        ) from error


def read_stated(path: Path, stated: Mapping[str, Any], most: int = MOST_JSON_BYTES) -> bytes:
    """The content of a file whose :func:`signature` a manifest states."""
    content = read_regular(path, min(stated["size"], most))
    if signature(content) != stated:
        raise UnusableFileError("is damaged: its size or sha256 is not that of the manifest.")
    return content


# --- Writing: whole or not at all ----------------------------------------------------------------


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or replace it: whatever happens, it is the old one or the new one."""
    with _appearing(path, os.replace) as temporary:
        write_flushed(temporary, content)


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a new folder with these files: whatever happens, all of it is there or nothing."""
    with _appearing(path, os.rename) as temporary:
        temporary.mkdir()
        for name, content in contents.items():
            write_flushed(temporary / name, content)
        flush_folder(temporary)


@contextlib.contextmanager
def _appearing(path: Path, rename: Callable[[Path, Path], None]) -> Iterator[Path]:
    """A context that gives a name beside ``path``; what is written there becomes ``path``."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        yield temporary
        rename(temporary, path)
    finally:
        _delete(temporary)
    flush_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Delete a folder: whatever happens, nothing of its name is ever half there.

    It is renamed first. What a kill leaves of the renamed one :func:`sweep` deletes.
    """
    renamed = path.with_name(f".{path.name}.old")
    _delete(renamed)
    os.rename(path, renamed)
    flush_folder(path.parent)  # before what is in it goes: power may fail in between
    _delete(renamed)


def sweep(folder: Path, pattern: str) -> None:
    """Delete what killed programs left of folders whose names match ``pattern``."""
    for leftover in [*folder.glob(f".{pattern}.tmp"), *folder.glob(f".{pattern}.old")]:
        _delete(leftover)


def _delete(path: Path) -> None:
    """A file, a folder with all that is in it, or a link (never what it leads to)."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file; return when it is on the disk."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        _flush(file.fileno())


def flush_folder(path: Path) -> None:
    """Return when the names in this folder are on the disk. (Windows cannot flush a folder, nor
    does every mounted one, as Google Drive.)
    """
    if os.name == "nt":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        _flush(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(folder)


def _flush(handle: int) -> None:
    os.fsync(handle)
    if sys.platform == "darwin":  # it may still be in the drive's memory
        import fcntl

        with contextlib.suppress(OSError):  # not every mounted drive can
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)


def make_folders(path: Path) -> None:
    """Make a folder and those above it, if need be; return when they are on the disk."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            flush_folder(folder.parent)


@contextlib.contextmanager
def explained(folder: Path, text: str) -> Iterator[None]:
    """A context in which an OSError says ``text``, with the system's reason for ``{}``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise OSError(error.errno, text.format(reason), str(folder)) from error


def require_named(folder: str | os.PathLike) -> None:
    """The folder has a name: an empty one would be the current folder."""
    if not os.fspath(folder):
        raise ValueError("the folder's name is an empty text (an unset variable?). Name a folder.")


def require_writable(folder: Path) -> None:
    """Make ``folder``, if need be, and try whether files can be written there."""
    with explained(
        folder,
        "no checkpoint could be saved there ({}), so no step was taken. Make it a folder that you "
        "may write to, or choose another",
    ):
        make_folders(folder)
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"trial")


# --- One program in a folder ---------------------------------------------------------------------

LOCK, OWNER = ".lock", ".lock.owner"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """A context in which no other program can lock ``folder``; it gives a function that makes the
    folder and locks it anew, should it have been deleted meanwhile, and the lock with it.

    The kernel ends the lock with the process; a file that lies there locks nothing.

    Raises:
        InUseError: another program has it; the message names its process.
    """
    from filelock import FileLock, Timeout  # half as long to import as all else here

    # Later versions would take a file that lies there for a lock, where the system has none.
    options = {"fallback_to_soft": False} if hasattr(FileLock, "fallback_to_soft") else {}
    lock, owner = FileLock(folder / LOCK, thread_local=False, **options), folder / OWNER
    held = None  # which file is locked: while it is, no other can have its number

    def hold() -> None:
        nonlocal held
        if held == _number(folder / LOCK):
            return
        held = None
        lock.release()
        make_folders(folder)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            name = "another process"
            with contextlib.suppress(ValueError):
                name = f"process {int(read_regular(owner, 20))}"
            raise InUseError(
                errno.EAGAIN,
                f"{name} is training there. Wait until it has ended, stop it (SIGTERM or Ctrl-C: "
                f"it saves first), or choose another folder",
                str(folder),
            ) from error
        except (OSError, NotImplementedError) as error:
            warnings.warn(
                f"{folder} cannot be locked ({getattr(error, 'strerror', None) or error}): take "
                f"care that no other program trains there.",
                stacklevel=7,
            )
        held = _number(folder / LOCK)
        owner.unlink(missing_ok=True)  # whatever lies there: never written through a link
        with open(owner, "xb") as file:
            file.write(f"{os.getpid()}\n".encode())

    try:
        hold()
        yield hold
    finally:
        if held == _number(folder / LOCK):  # nobody else's
            owner.unlink(missing_ok=True)
        lock.release()


def _number(file: Path) -> int:
    """By which the system knows a file; 0 if there is none."""
    try:
        return file.stat().st_ino
    except OSError:
        return 0
