"""Write book/lock/: every package that requirements.txt and book/lab.txt bring, with its checksums.

    make lock

The files hold for Python 3.11 to 3.14, on Linux (x86-64 and ARM) and on Macs with Apple's
processors: at the end, each of these is asked whether it finds a wheel of every package. They name
no place: pip takes a package from where it is configured to, and refuses one with another checksum.

- book.txt: all that requirements.txt brings, but for
- cuda.txt: what PyTorch's CUDA build needs and its CPU build does not.
- lab.txt: JupyterLab's environment.
- torch-cpu.txt: PyTorch's CPU builds for Linux, which have an index of their own. book.txt allows
  them beside the registry's builds. Their checksums are asked for where PIP_EXTRA_INDEX_URL is the
  address of that index; elsewhere the file must have them already.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "book" / "lock"
UV = [str(Path(sys.executable).with_name("uv")), "pip"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
CUDA = ("nvidia-", "cuda-", "triton")  # how the names begin of what only a CUDA build needs


def uv(*arguments: str | Path, **options) -> str:
    """What uv prints; SystemExit with its own words if it fails. PyTorch's wheels want macOS 14."""
    env = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    command = [*UV, *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, **options)
    return done.stdout if done.returncode == 0 else sys.exit(done.stderr)


def resolve(requirements: str, *options: str) -> list[str]:
    """What requirements bring, a string a package: `name==version ; marker` and the checksums."""
    fixed = ["--universal", "--python-version", PYTHONS[0], "--generate-hashes"]
    plain = ["--no-annotate", "--no-header", "--quiet"]
    printed = uv("compile", *fixed, *plain, *options, "-", input=requirements)
    return re.split(r"\n(?=\w)", printed.strip())


def write(name: str, source: str, entries: list[str]) -> Path:
    path = FOLDER / name
    header = f"# Written by `make lock` from {source}. Do not edit.\n"
    path.write_text(header + "\n".join(entries) + "\n", encoding="utf-8")
    return path


def cpu_builds(version: str) -> list[str]:
    """The checksums of PyTorch's CPU builds, as lines of book.txt."""
    if index := os.environ.get("PIP_EXTRA_INDEX_URL"):
        entry = resolve(f"torch=={version}+cpu", "--no-deps", "--index", index)
        write("torch-cpu.txt", "PyTorch's index of CPU builds", entry)
    _, pin, *checksums = (FOLDER / "torch-cpu.txt").read_text(encoding="utf-8").splitlines()
    if pin != f"torch=={version}+cpu \\":
        sys.exit(
            f"book/lock/torch-cpu.txt is of another version than torch {version}. Set "
            "PIP_EXTRA_INDEX_URL to the address of PyTorch's CPU builds, as the README says."
        )
    return checksums


def allow(entry: str, checksums: list[str]) -> str:
    """A package's entry, with further checksums."""
    pin, *its = entry.splitlines()
    lines = sorted({line.removesuffix(" \\") for line in [*its, *checksums]})
    return " \\\n".join([pin.removesuffix(" \\"), *lines])


def check(path: Path) -> None:
    """Can everything be installed from wheels, on each machine? SystemExit if not."""
    fixed = ["--dry-run", "--only-binary", ":all:", "--no-deps", "--require-hashes", "--target"]
    with tempfile.TemporaryDirectory() as nowhere:
        for python in PYTHONS:
            for platform in PLATFORMS:
                there = ["--python-version", python, "--python-platform", platform]
                uv("install", *fixed, nowhere, *there, "-r", path)


def main() -> None:
    locked = resolve((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    at = next(i for i, entry in enumerate(locked) if entry.startswith("torch=="))
    version = locked[at].split()[0].removeprefix("torch==")
    locked[at] = allow(locked[at], cpu_builds(version))
    cuda = [entry for entry in locked if entry.startswith(CUDA)]
    book = [entry for entry in locked if entry not in cuda]
    lab = resolve((ROOT / "book" / "lab.txt").read_text(encoding="utf-8"))
    for name, source, entries in (
        ("book.txt", "requirements.txt", book),
        ("cuda.txt", "requirements.txt", cuda),
        ("lab.txt", "book/lab.txt", lab),
    ):
        check(write(name, source, entries))
        print(
            f"book/lock/{name}: {len(entries)} packages, on each of "
            f"{len(PYTHONS) * len(PLATFORMS)} machines from wheels."
        )


if __name__ == "__main__":
    main()
