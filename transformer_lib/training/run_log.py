"""Run logs: what a run was, what it ran on, and what came out, in one small JSON file.

The book claims a speed or a trained result only where a committed run log says so. Benchmarks
write them (``new_run``, ``save_run``); chapters read them (``load_run``) from the folder
``transformer_lib/runs``, which is part of the package. Reading one needs no PyTorch.
"""

import dataclasses
import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_lib import storage

FORMAT, FORMAT_VERSION = "transformer_lib run log", 1
RUNS_FOLDER = Path(__file__).resolve().parent.parent / "runs"
REPOSITORY = RUNS_FOLDER.parent.parent
RESTORE = "Restore it from the repository, or make it again by the command in its benchmark."


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunLog:
    """One run.

    Attributes:
        name: lower-case letters, digits and hyphens; also the name of its file.
        command: what to type to do it again, in the repository's root.
        commit: of the code that ran; ``"...-modified"`` if files differed from the commit.
        date: day of the run, ISO 8601 (``"2026-11-30"``).
        hardware: ``{"cpu": ..., "cores": ..., "threads": ..., "gpu": ...}``.
        versions: ``{"python": ..., "torch": ..., ...}``.
        config: what was chosen: sizes, seeds, rates.
        curve: columns of equal length, such as ``{"step": [...], "loss": [...]}``; numbers only.
        result: what came out, one value for each name.

    Raises:
        ValueError: a name that cannot be a file's, a date that is not one, columns of unequal
            length.
        TypeError: a curve that holds anything but numbers, a text or mapping that is not one.
    """

    name: str
    command: str
    commit: str
    date: str
    hardware: Mapping[str, Any]
    versions: Mapping[str, str]
    config: Mapping[str, Any]
    curve: Mapping[str, list[float]]
    result: Mapping[str, Any]

    def __post_init__(self):
        _require_log(self)


def save_run(log: RunLog, path: str | os.PathLike) -> Path:
    """Write ``log`` to ``path``, a file or an existing folder; return the file's path.

    The file appears whole or not at all.

    Raises:
        ValueError: ``path`` is not a folder and does not end in ``.json``; or the file would not be
            read again: it is too long, two keys are the same text, or a mapping's only key is
            ``"not_finite"`` (nothing is written).
        TypeError: a value that JSON cannot hold, such as a tensor (nothing is written).
        OSError: the folder does not exist or cannot be written to.
    """
    path = Path(path)
    path = path / f"{log.name}.json" if path.is_dir() else path
    if path.suffix != ".json":
        raise ValueError(f"{path} is neither a folder that exists nor a file name ending in .json.")
    content = {"format": FORMAT, "format_version": FORMAT_VERSION} | dataclasses.asdict(log)
    try:
        text = json.dumps(encode(content), indent=1, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise TypeError(
            f"run log {log.name}: {error}. Convert tensors and arrays by .item() or .tolist()."
        ) from error
    # The numbers of a list stand on one line.
    text = re.sub(r"(?<=[\[,\d])\n +(?=[-\d\]])", " ", text)
    # A file name that is not Unicode becomes \\udc.., as JSON writes it.
    encoded = (text + "\n").encode("utf-8", "backslashreplace")
    try:
        parse_run(encoded)
    except storage.UnusableFileError as error:
        raise ValueError(f"run log {log.name} would not be read again: it {error.cause}") from error
    if len(encoded) > storage.MOST_JSON_BYTES:
        raise ValueError(
            f"run log {log.name} would have {len(encoded):,} bytes, and at most "
            f"{storage.MOST_JSON_BYTES:,} are read again. Keep fewer rows of its curve."
        )
    storage.write_file(path, encoded)
    return path


def load_run(name_or_path: str | os.PathLike) -> RunLog:
    """Read a run log: by its name, from the package; or by a path that ends in ``.json``.

    Raises:
        FileNotFoundError: there is no such log; the message names those that there are.
        ValueError: the file is damaged, is not a run log, or has a format version that this version
            of the library does not know; the message names the file and what to do.
    """
    path = Path(name_or_path)
    if path.suffix != ".json":
        path = RUNS_FOLDER / f"{name_or_path}.json"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in RUNS_FOLDER.glob("*.json"))) or "none yet"
        raise FileNotFoundError(
            f"there is no run log {str(name_or_path)!r}. The package has: {known}. Another file is "
            f"loaded by its path, ending in .json."
        )
    try:
        return parse_run(storage.read_regular(path, storage.MOST_JSON_BYTES))
    except storage.UnusableFileError as error:
        raise ValueError(f"{path} {error.cause} {error.fix or RESTORE}") from error


def parse_run(content: bytes) -> RunLog:
    """The run log that a file with this content holds.

    Raises:
        UnusableFileError: it does not hold one.
    """
    log = storage.parse_format(content, FORMAT, FORMAT_VERSION)
    del log["format"], log["format_version"]
    try:
        return RunLog(**decode(log))
    except (TypeError, ValueError, RecursionError) as error:
        raise storage.UnusableFileError(f"is a damaged run log: {error}") from error


def logs_in(folder: str | os.PathLike) -> dict[Path, RunLog]:
    """The run logs in a run's folder, by their path. Any other file is left alone."""
    found = {}
    for path in sorted(Path(folder).glob("*.json")):
        try:
            found[path] = load_run(path)
        except ValueError:
            continue  # somebody else's
    return found


def new_run(
    name: str,
    *,
    config: Mapping[str, Any],
    curve: Mapping[str, list[float]],
    result: Mapping[str, Any],
    command: str | None = None,
) -> RunLog:
    """A run log of what has just run here; ``command`` is read from ``sys.argv`` if None.

    Raises:
        ValueError, TypeError: as :class:`RunLog`.

    >>> log = new_run("demo", config={"seed": 0}, curve={}, result={"loss": 1.5}, command="demo")
    >>> log.result["loss"]
    1.5
    """
    return RunLog(
        name=name,
        command=command_line() if command is None else command,
        commit=commit(),
        date=datetime.date.today().isoformat(),
        hardware=hardware(),
        versions=versions(),
        config=config,
        curve=curve,
        result=result,
    )


def command_line() -> str:
    """The command that started this program, its path relative to the repository."""
    script, *arguments = sys.argv
    path = Path(script).resolve()
    script = path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path.name
    return shlex.join(["python", str(script), *arguments])


def commit(folder: Path = REPOSITORY) -> str:
    """The commit that ``folder`` is at, with ``-modified`` if tracked files differ from it.

    ``"unknown"`` where there is no git, or where ``folder`` is not the top of a repository (a
    library that pip installed may lie deep within somebody else's).
    """
    try:
        if Path(_git(folder, "rev-parse", "--show-toplevel")).resolve() != folder.resolve():
            return "unknown"
        head = _git(folder, "rev-parse", "HEAD")
        return head + "-modified" * bool(_git(folder, "status", "--porcelain", "-uno"))
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, check=True, capture_output=True)
    return os.fsdecode(done.stdout).strip()


def hardware() -> dict[str, Any]:
    """Processor, cores, threads that torch uses, and the GPU (None if there is none)."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name: Linux writes it to a file, other systems tell the platform module."""
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Python, torch, numpy and the library itself."""
    import torch

    found = {"python": platform.python_version(), "torch": torch.__version__}
    for name in ("numpy", "transformer_lib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # a checkout that is on the path
            found[name] = "unknown"
    return found


def _require_log(log: RunLog) -> None:
    """Everything that the format promises about a log."""
    for field in ("name", "command", "commit", "date"):
        if not isinstance(getattr(log, field), str) or not getattr(log, field):
            raise TypeError(
                f"{field} is {getattr(log, field)!r}; it must be a text that is not empty."
            )
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", log.name):
        raise ValueError(
            f"the run's name is {log.name!r}; use lower-case letters, digits and single hyphens."
        )
    if not _is_date(log.date):
        raise ValueError(f"the run's date is {log.date!r}; write it as 2026-11-30.")
    for field in ("hardware", "versions", "config", "curve", "result"):
        if not isinstance(getattr(log, field), Mapping):
            raise TypeError(f"{field} is {getattr(log, field)!r}; it must map names to values.")
    lengths = {}
    for column, values in log.curve.items():
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise TypeError(f"the curve's column {column!r} must be a list of Python numbers.")
        lengths[column] = len(values)
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the curve's columns must be equally long; they have {lengths} values.")


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def encode(value: Any) -> Any:
    """JSON has no NaN and no infinity, but a run that diverges has: ``{"not_finite": "nan"}``."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"not_finite": str(value)}
    if isinstance(value, Mapping):
        if value.keys() == {"not_finite"}:
            raise ValueError(f"{value!r:.80} would be read as a number. Give the key another name.")
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(value: Any) -> Any:
    """The inverse of :func:`encode`."""
    if isinstance(value, dict):
        if value.keys() == {"not_finite"}:
            if value["not_finite"] not in ("nan", "inf", "-inf"):
                raise ValueError(f"it holds the number {value['not_finite']!r:.80}.")
            return float(value["not_finite"])
        return {key: decode(item) for key, item in value.items()}
    return [decode(item) for item in value] if isinstance(value, list) else value
