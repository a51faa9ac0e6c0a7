"""What a run ran on: commit, hardware, versions, command. No name of a user, host or folder."""

import datetime
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transformer_lib.training.runs import RunLog

REPOSITORY = Path(__file__).resolve().parent.parent.parent


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
        ValueError, TypeError: as :class:`~transformer_lib.training.runs.RunLog`.

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
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def hardware() -> dict[str, Any]:
    """Processor, cores, threads that torch uses, and the GPU (None if there is none)."""
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
    installed = {name: importlib.metadata.version(name) for name in ("numpy", "transformer_lib")}
    return {"python": platform.python_version(), "torch": torch.__version__} | installed
