"""Write book/lock/: every package that requirements.txt and book/lab.txt bring, with its checksums.

    make lock

The files hold for Python 3.11 to 3.14, on Linux (x86-64 and ARM) and on Macs with Apple's
processors: at the end, each of these is asked whether it finds a wheel of every package. They name
no place: pip takes a package from where it is configured to, and refuses one with another checksum.

- book.txt: all that requirements.txt brings, but for
- torch.txt: PyTorch. Its CPU builds for Linux are in an index of their own; they are allowed beside
  the registry's builds. Their checksums are asked for where PIP_EXTRA_INDEX_URL is the address of
  that index; elsewhere those that the file has are kept, and a new version of torch is refused.
- cuda.txt: what PyTorch's CUDA build needs and its CPU build does not.
- lab.txt: JupyterLab's environment.
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
    """Write a lock file, if it is another than before: `make` installs again what is newer."""
    path, header = FOLDER / name, f"# Written by `make lock` from {source}. Do not edit."
    text = "\n".join([header, *entries]) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def torch_builds(entry: str) -> str:
    """PyTorch's entry, with the checksums of the CPU builds among those of the registry's."""
    pin, *checksums = entry.splitlines()
    if index := os.environ.get("PIP_EXTRA_INDEX_URL"):
        version = pin.split()[0].removeprefix("torch==")
        [others] = resolve(f"torch=={version}+cpu", "--no-deps", "--index", index)
    else:
        others = (FOLDER / "torch.txt").read_text(encoding="utf-8").split("\n", 1)[1]
        if not others.startswith(pin):
            sys.exit(
                f"book/lock/torch.txt is not for {pin.split()[0]}. Set PIP_EXTRA_INDEX_URL to the "
                "address of PyTorch's CPU builds, as the README says, so that they are found, too."
            )
    lines = {line.removesuffix(" \\") for line in [*checksums, *others.splitlines()[1:]]}
    return " \\\n".join([pin.removesuffix(" \\"), *sorted(lines)])


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
    torch = [torch_builds(entry) for entry in locked if entry.startswith("torch==")]
    cuda = [entry for entry in locked if entry.startswith(CUDA)]
    book = [entry for entry in locked if not entry.startswith((*CUDA, "torch=="))]
    lab = resolve((ROOT / "book" / "lab.txt").read_text(encoding="utf-8"))
    for name, source, entries in (
        ("book.txt", "requirements.txt", book),
        ("torch.txt", "requirements.txt", torch),
        ("cuda.txt", "requirements.txt", cuda),
        ("lab.txt", "book/lab.txt", lab),
    ):
        check(write(name, source, entries))
        print(f"book/lock/{name}: {len(entries)} packages")


if __name__ == "__main__":
    main()
