"""Would installing transformer_lib[book] on Colab replace what Colab has? Ask pip's resolver.

    python tests/colab.py [--python python3.13]

A throw-away environment gets the metadata (no code) of every package in colab.txt, so that pip
takes them for installed. A dry run of `pip install '.[book]'` then says what it would do. Exit 1 if
it would replace anything that is there: torch and numpy above all, since a replaced torch is a
download of gigabytes, and a restart of the reader's session.

Packages that are there count as consistent with each other: their stubs state no requirements. So
the answer holds as long as nothing that is there is replaced, which is what is checked.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def normal(name: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(path: Path) -> dict[str, str]:
    """The `name==version` lines of a file, by normal name; comments and empty lines are skipped."""
    lines = [line.split("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    pins = dict(line.split("==") for line in lines if line)
    return {normal(name): version for name, version in pins.items()}


def write_stubs(site_packages: Path, pins: dict[str, str]) -> None:
    """Make pip believe that these packages are installed: name and version, nothing else."""
    for name, version in pins.items():
        folder = site_packages / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(text)
        (folder / "INSTALLER").write_text("pip\n")
        (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n")


def replaced(report: dict, pins: dict[str, str]) -> list[str]:
    """The installed packages that a dry run would replace."""
    found = []
    for item in report["install"]:
        name, version = normal(item["metadata"]["name"]), item["metadata"]["version"]
        if name in pins:
            found.append(f"{name} {pins[name]} -> {version}")
    return found


def dry_run(python: str, pins: dict[str, str], *requirements: str) -> dict:
    """pip's report of what installing `requirements` beside `pins` would do."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "colab"
        subprocess.run([python, "-m", "venv", "--without-pip", str(venv)], check=True)
        inside = str(venv / "bin" / "python")
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site_packages = subprocess.check_output([inside, "-c", where], text=True).strip()
        write_stubs(Path(site_packages), pins)
        report = Path(folder) / "report.json"
        # This interpreter's pip, asked about the other environment.
        pip = [sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", "--dry-run"]
        subprocess.run([*pip, "--report", str(report), *requirements], check=True)
        return json.loads(report.read_text("utf-8"))


def version_of(python: str) -> str | None:
    """The version of an interpreter; None if there is none (or a shim with nothing behind it)."""
    command = [python, "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


def main() -> None:
    pins = read_pins(HERE / "colab.txt")
    wanted = pins.pop("python")
    parser = argparse.ArgumentParser(description="Dry run of the installation on Colab.")
    parser.add_argument("--python", help=f"interpreter to ask (default: python{wanted}, if found)")
    parser.add_argument("--also", nargs="*", default=[], help="further requirements, to try them")
    options = parser.parse_args()
    python = options.python or f"python{wanted}"
    if not (version := version_of(python)):
        if options.python:
            sys.exit(f"The interpreter {python} was not found.")
        python, version = sys.executable, version_of(sys.executable)
    print(f"Colab has Python {wanted}; asking pip about Python {version}.")
    report = dry_run(python, pins, f"{HERE.parent}[book]", *options.also)
    new = [f"{i['metadata']['name']} {i['metadata']['version']}" for i in report["install"]]
    print(f"Would install: {', '.join(sorted(new, key=str.lower))}.")
    if found := replaced(report, pins):
        sys.exit(f"It would replace what Colab has: {', '.join(found)}.")
    print(f"Nothing of the {len(pins)} packages there would be replaced:")
    print(f"torch stays {pins['torch']}, numpy {pins['numpy']}.")


if __name__ == "__main__":
    main()
