"""The machine, as it describes itself: GPU and driver; clocks, load and memory at work."""

import csv
import io
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

# What nvidia-smi is asked; where it has no answer it says [N/A].
ONCE = (
    "name", "driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem", "memory.total",
    "pstate", "temperature.gpu", "ecc.mode.current", "mig.mode.current",
)  # fmt: skip
WHILE = ("clocks.sm", "utilization.gpu", "power.draw", "temperature.gpu", "memory.used")
EVERY_MS = 500  # what ten minutes of it write fits into a pipe that nobody reads meanwhile


def describe(device: torch.device) -> dict[str, Any]:
    """The device, the software between it and us, and who else uses it."""
    said: dict[str, Any] = {
        "device": str(device),
        "torch": torch.__version__,
        "CUDA of this build": torch.version.cuda,
        "built for": torch.cuda.get_arch_list() if device.type == "cuda" else [],
        "GPUs": torch.cuda.device_count(),
    }
    if device.type != "cuda":
        return said
    properties = torch.cuda.get_device_properties(device)
    said |= {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "gigabytes": round(properties.total_memory / 2**30, 1),
        "multiprocessors": properties.multi_processor_count,
        "cuDNN": torch.backends.cudnn.version(),
    }
    if torch.distributed.is_available() and torch.distributed.is_nccl_available():
        said["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
    return said | {
        "nvidia-smi": asked(device, ONCE),
        "other programs there": others(device),
    }


def asked(device: torch.device, what: tuple[str, ...]) -> dict[str, str]:
    """nvidia-smi's answers; or why there are none."""
    try:
        command = smi(device, f"--query-gpu={','.join(what)}")
        text = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20
        ).stdout
        return dict(zip(what, map(str.strip, next(csv.reader(io.StringIO(text)))), strict=True))
    except (OSError, subprocess.SubprocessError, StopIteration, ValueError) as error:
        return {"not known": f"{type(error).__name__}: {error}"}


def others(device: torch.device) -> list[str]:
    """The programs that compute there, as far as this one may see them."""
    try:
        command = smi(device, "--query-compute-apps=pid,process_name,used_memory")
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return [f"not known: {type(error).__name__}: {error}"]
    return done.stdout.splitlines()


def smi(device: torch.device, *options: str) -> list[str]:
    """A command for nvidia-smi about this device, whatever CUDA_VISIBLE_DEVICES calls it."""
    uuid = torch.cuda.get_device_properties(device).uuid
    return ["nvidia-smi", f"--id=GPU-{uuid}", "--format=csv,noheader,nounits", *options]


@contextmanager
def watched(device: torch.device) -> Iterator[dict[str, Any]]:
    """A context; afterwards the dictionary holds what nvidia-smi read while it lasted."""
    found: dict[str, Any] = {}
    if device.type != "cuda":
        yield found
        return
    try:
        command = smi(device, f"--query-gpu={','.join(WHILE)}", f"--loop-ms={EVERY_MS}")
        reading = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        found["not known"] = f"{type(error).__name__}: {error}"
        yield found
        return
    try:
        yield found
    finally:
        reading.terminate()
        found |= summary(reading.communicate()[0])


def summary(text: str) -> dict[str, Any]:
    """The least, the median and the most of what was read.

    >>> summary("1590, 97, 70, 60, 900\\n1530, 99, 70, 61, 950\\n1500, [N/A], 70, 61, 950\\n")
    {'clocks.sm': [1500.0, 1530.0, 1590.0], 'utilization.gpu': [97.0, 98.0, 99.0], ...
    """
    columns: dict[str, list[float]] = {name: [] for name in WHILE}
    for row in csv.reader(io.StringIO(text)):
        for name, value in zip(WHILE, row, strict=False):
            if value.strip().replace(".", "", 1).isdecimal():
                columns[name].append(float(value))
    return {
        name: [min(values), statistics.median(values), max(values)] if values else []
        for name, values in columns.items()
    }
