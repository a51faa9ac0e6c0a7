"""Run the chapters on an emulated ARM processor, and name the cells that do not come out as stored.

    python book/arm.py                all chapters without a long training run (make arm)
    python book/arm.py 03-scaling     these

It takes hours of one core: what has come out is kept in book/arm.json, for each chapter as it was
then, and only chapters that have changed since are run. Debian or Ubuntu is needed, and the rights
to install packages there. The processor is qemu's; Python, as all else of the system, is Debian's
for arm64, in .venv-arm; the packages are those of book/lock/, but for PyTorch: 2.10.0 is the last
whose wheel for ARM works without CUDA's libraries.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from elsewhere import MOST_EMULATED, Machine, differences, keep, read, run
from execution import trains
from nbclient.exceptions import CellTimeoutError
from notebooks import ROOT, chapters
from stored_form import computed_digest

LOG = ROOT / "book" / "arm.json"
HOME = ROOT / ".venv-arm"
SYSTEM, SITE = HOME / "root", HOME / "site"
UV = Path(sys.prefix) / "lock" / "bin" / "uv"
EMULATOR = "qemu-aarch64-static"
TORCH = "torch==2.10.0"
DEBIAN = ("python3", "libpython3.11-stdlib", "libgomp1", "libstdc++6")
# PyTorch asks the kernel which processor this is; a Cortex-A57, the file says.
PROCESSOR = "sys/devices/system/cpu/cpu{}/regs/identification/midr_el1"


def command(*words: str | Path) -> str:
    """Run a command and return what it prints; SystemExit with all it said if it fails."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def root_rights() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo"]


def system() -> None:
    """Debian for arm64 in SYSTEM, unpacked and not set up: Python needs no more."""
    if not all(map(shutil.which, (EMULATOR, "debootstrap"))):
        if not shutil.which("apt-get"):
            sys.exit("The emulated processor needs Debian's or Ubuntu's packages; this is another.")
        command(*root_rights(), "apt-get", "update")
        install = ("apt-get", "install", "--yes", "--no-install-recommends")
        command(*root_rights(), *install, "qemu-user-static", "debootstrap")
    shutil.rmtree(SYSTEM, ignore_errors=True)
    options = ("--foreign", "--arch=arm64", "--variant=minbase", f"--include={','.join(DEBIAN)}")
    command(*root_rights(), "/usr/sbin/debootstrap", *options, "bookworm", SYSTEM)
    command(*root_rights(), "chown", "-R", str(os.getuid()), SYSTEM)
    for package in sorted(SYSTEM.glob("var/cache/apt/archives/*.deb")):
        command("dpkg", "-x", package, SYSTEM)
    for number in range(os.cpu_count()):
        path = SYSTEM / PROCESSOR.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0x00000000411fd070\n")


def packages() -> None:
    """The book's packages for this system, in SITE."""
    python = command(EMULATOR, "-L", SYSTEM, SYSTEM / "usr/bin/python3.11", "--version").split()[1]
    there = ("--python-platform", "aarch64-manylinux_2_28", "--python-version", python)
    install = (UV, "pip", "install", "--target", SITE, "--no-deps", "--only-binary", ":all:")
    shutil.rmtree(SITE, ignore_errors=True)
    locked = ROOT / "book" / "lock" / "book.txt"
    command(*install, *there, "--require-hashes", "-r", locked)
    command(*install, *there, TORCH)


def kernel() -> None:
    """The kernel `arm`: ipykernel on the emulated processor, which finds the book's library."""
    python = str(SYSTEM / "usr" / "bin" / "python3.11")
    start = [EMULATOR, "-L", str(SYSTEM), python, "-m", "ipykernel_launcher"]
    spec = {
        "argv": [*start, "-f", "{connection_file}"],
        "display_name": "ARM",
        "language": "python",
        "env": {"PYTHONPATH": f"{SITE}{os.pathsep}{ROOT}"},
    }
    folder = HOME / "jupyter" / "kernels" / "arm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
    os.environ["JUPYTER_PATH"] = str(folder.parents[1])


def prepare() -> None:
    """All of it, once; again after a change to the lock or to this file."""
    made, sources = HOME / "made", (Path(__file__), ROOT / "book" / "lock" / "book.txt")
    if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        print(f"Preparing {HOME.name}: some minutes and 2 GB.", flush=True)
        HOME.mkdir(exist_ok=True)
        system()
        packages()
        made.touch()
    kernel()


def waiting(names: list[str]) -> list[Path]:
    """The chapters to run: those named, or those that train little and are not in the log."""
    if names:
        return chapters(names)
    log = json.loads(LOG.read_text("utf-8")) if LOG.exists() else {}
    found = []
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        nb = read(path)
        if not trains(nb) and log.get(path.stem, {}).get("code") != computed_digest(nb):
            found.append(path)
    return found


def look(path: Path) -> bool:
    """Run a chapter, print which cells differ and how, and write it into the log; was it as stored?

    One of which a cell takes too long is not, and is not in the log.
    """
    stored, start = read(path), time.perf_counter()
    try:
        nb = run(stored, Machine("arm", kernel="arm"))
    except CellTimeoutError:
        print(f"{path.stem}: too slow, a cell took more than {MOST_EMULATED} s", flush=True)
        return False
    found = differences(stored, nb)
    facts = {
        "torch": TORCH.removeprefix("torch=="),
        "emulator": command(EMULATOR, "--version").splitlines()[0],
        "minutes": round((time.perf_counter() - start) / 60, 1),
    }
    keep(LOG, stored, path.stem, found, **facts)
    for number, text in found.items():
        print(f"{path.stem}, cell {number}:\n{text[:600]}", flush=True)
    if not found:
        print(f"{path.stem}: as stored", flush=True)
    return not found


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the chapters on an emulated ARM processor.")
    parser.add_argument("names", nargs="*", metavar="CHAPTER", help="default: what has changed")
    arguments = parser.parse_args()
    paths = waiting(arguments.names)
    prepare()
    as_stored = [look(path) for path in paths]
    print(f"{sum(as_stored)} of {len(paths)} chapters as stored")
    return 0 if all(as_stored) else 1


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
