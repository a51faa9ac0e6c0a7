"""Run logs: what a run was, on what it ran, and what came out, in one small JSON file.

The book claims a speed or a trained result only where a committed run log says so. Benchmarks
write them (``new_run``, ``save_run``); chapters read them (``load_run``) from the folder
``transformer_lib/runs``, which is part of the package.
"""

import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT = "transformer_lib run log"
FORMAT_VERSION = 1
RUNS_FOLDER = Path(__file__).resolve().parent.parent / "runs"


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
        ValueError: a name that is no file name, a date that is none, columns of unequal length.
        TypeError: a value that JSON cannot hold, or a curve that holds something else than numbers.

    Source of the code's hardware, commit and versions: :mod:`transformer_lib.training.machine`.
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
        check_run(self)


def check_run(log: RunLog) -> None:
    """Everything that the format promises about a log."""
    for field in ("name", "command", "commit", "date"):
        if not isinstance(getattr(log, field), str) or not getattr(log, field):
            raise TypeError(f"{field} is {getattr(log, field)!r}; it must be a text.")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", log.name):
        raise ValueError(
            f"the run's name is {log.name!r}; use lower-case letters, digits and single hyphens."
        )
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", log.date):
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


def save_run(log: RunLog, path: str | os.PathLike) -> Path:
    """Write ``log`` to ``path``, a file or an existing folder; return the file's path.

    The file appears whole or not at all: it is written under a temporary name beside it, flushed to
    the disk, and renamed.

    Raises:
        ValueError: ``path`` is no folder and does not end in ``.json``.
        TypeError: a value that JSON cannot hold, such as a tensor (nothing is written).
        OSError: the folder does not exist or cannot be written to.
    """
    path = Path(path)
    path = path / f"{log.name}.json" if path.is_dir() else path
    if path.suffix != ".json":
        raise ValueError(f"{path} is no folder that exists, nor a file name ending in .json.")
    content = {"format": FORMAT, "format_version": FORMAT_VERSION} | dataclasses.asdict(log)
    try:
        text = json.dumps(_encode(content), indent=1, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise TypeError(
            f"run log {log.name}: {error}. Convert tensors and arrays by .item() or .tolist()."
        ) from error
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(
            temporary, "w", encoding="utf-8", newline="\n", errors="backslashreplace"
        ) as file:  # a file name that is no Unicode becomes \\udc.., as JSON writes it
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def load_run(name_or_path: str | os.PathLike) -> RunLog:
    """Read a run log: by its name, from the package; or by a path that ends in ``.json``.

    Raises:
        FileNotFoundError: there is no such log; the message names those that there are.
        ValueError: the file is damaged, is no run log, or has a format version that this version
            of the library does not know; the message names the file and what to do.
    """
    path = Path(name_or_path)
    if path.suffix != ".json":
        path = RUNS_FOLDER / f"{name_or_path}.json"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in RUNS_FOLDER.glob("*.json"))) or "none yet"
        raise FileNotFoundError(
            f"there is no run log {str(name_or_path)!r}. The package has: {known}. Another file is "
            f"loaded by its path, ending in .json."
        )
    restore = "Restore it from the repository, or make it again by the command in its benchmark."
    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_hook=_decode)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged, it is no readable JSON ({error}). {restore}"
        ) from error
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise ValueError(f"{path} is JSON, but not a run log of transformer_lib. {restore}")
    version = content.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version!r}; this library reads version {FORMAT_VERSION}. "
            f"Install the version of transformer_lib that wrote it, or make the run again."
        )
    try:
        return RunLog(**content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is a damaged run log: {error} {restore}") from error


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _encode(value: Any) -> Any:
    """JSON has no NaN and no infinity, but a run that diverges has: ``{"not_finite": "nan"}``."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"not_finite": str(value)}
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    return value


def _decode(value: dict[str, Any]) -> Any:
    return float(value["not_finite"]) if value.keys() == {"not_finite"} else value
