"""The locks agree with the files that they are made from, and with what is installed."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import lock
import pytest
from packaging.markers import Marker
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)(?: ; ([^\\]+))?", re.MULTILINE)
LOCKS = ("book", "torch", "cuda", "lab")


def pins(*names: str) -> list[tuple[str, str, str]]:
    """Name, version and marker of each package in a file, by the name that pip compares."""
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in names)
    return [(re.sub(r"[-_.]+", "-", n).lower(), v, m.strip()) for n, v, m in PIN.findall(text)]


@pytest.mark.parametrize(
    ("wanted", "locks"),
    [
        ("requirements.txt", ("book/lock/book.txt", "book/lock/torch.txt")),
        ("book/lab.txt", ("book/lock/lab.txt",)),
    ],
)
def test_what_is_asked_for_is_locked_at_that_version(wanted, locks):
    asked = pins(wanted)
    assert asked
    different = set(asked) - set(pins(*locks))
    assert not different, f"{wanted} has changed: run `make lock`"


def test_what_is_installed_is_what_is_locked():
    for name, locked, marker in pins("book/lock/book.txt", "book/lock/torch.txt"):
        if not marker or Marker(marker).evaluate():
            assert Version(version(name)).public == locked, f"{name}: run `make`, or `make lock`"


@pytest.mark.parametrize("name", LOCKS)
def test_each_package_has_its_checksums_and_no_place(name):
    text = (lock.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^[^#\s].*[^\\]$", text, re.MULTILINE)  # one without a second line
    lines = text.splitlines()[1:]
    assert {bool(PIN.match(line)) for line in lines if line[0] != " "} == {True}
    sums = [line for line in lines if line[0] == " "]
    assert all(re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in sums)


def test_the_cpu_build_leaves_nothing_of_cuda_in_the_book():
    assert not [name for name, *_ in pins("book/lock/book.txt") if name.startswith(lock.CUDA)]
    assert all(name.startswith(lock.CUDA) for name, *_ in pins("book/lock/cuda.txt"))


def test_make_installs_what_is_locked_by_its_checksums():
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    assert "LOCKED := install --require-hashes --no-deps --only-binary :all:" in lines
    from_locks = [line for line in lines if "-r book/lock/" in line]
    assert len(from_locks) == len(LOCKS)
    assert all("$(LOCKED)" in line for line in from_locks)


def test_npm_is_locked_too():
    asked = json.loads((ROOT / "book" / "package.json").read_text(encoding="utf-8"))
    text = (ROOT / "book" / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    assert packages.pop("")["dependencies"] == asked["dependencies"], "run `make lock`"
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
    assert '"resolved"' not in text


def test_checksums_of_cpu_builds_are_kept_for_the_same_version_only(monkeypatch):
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    [(name, locked, _)] = pins("book/lock/torch.txt")
    entry = "{}=={} \\\n    --hash=sha256:" + "0" * 64
    kept = lock.torch_builds(entry.format(name, locked)).splitlines()
    before = (lock.FOLDER / "torch.txt").read_text(encoding="utf-8").splitlines()
    assert len(kept) == len(before)  # one more checksum, no header
    assert {line.removesuffix(" \\") for line in before[1:]} < {
        line.removesuffix(" \\") for line in kept
    }
    with pytest.raises(SystemExit, match=r"is not for torch==9\.9"):
        lock.torch_builds(entry.format(name, "9.9"))
