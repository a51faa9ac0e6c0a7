"""The versions that pyproject.toml claims, and the files by which they are tried, agree."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from colab import dry_run, normal, read_pins, replaced
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENTS = {
    normal(r.name): r
    for r in map(Requirement, PROJECT["dependencies"] + PROJECT["optional-dependencies"]["book"])
}

# Modules that need node, Sphinx, a browser, or what else only the book's own tests have.
TOOLS = {"built", "docutils", "harness", "playwright", "run_node", "sphinx", "yaml"}


def test_each_floor_claimed_is_a_version_tried():
    """tests/oldest.txt pins the lower bounds of pyproject.toml."""
    floors = {
        name: next(s.version for s in requirement.specifier if s.operator == ">=")
        for name, requirement in REQUIREMENTS.items()
        if requirement.specifier
    }
    pins = read_pins(ROOT / "tests" / "oldest.txt")
    padded = {name: version + ".0" * (2 - version.count(".")) for name, version in floors.items()}
    assert {name: pins[name] for name in floors} == padded


def test_colab_satisfies_what_is_claimed():
    pins = read_pins(ROOT / "tests" / "colab.txt")
    assert pins.pop("python") in Requirement(f"x{PROJECT['requires-python']}").specifier
    there = [name for name in REQUIREMENTS if name in pins]
    assert {"torch", "numpy", "anywidget", "ipywidgets", "matplotlib"} <= set(there)
    for name in there:
        assert pins[name] in REQUIREMENTS[name].specifier, name


def test_nothing_pins_torch_or_numpy_from_above():
    for name in ("torch", "numpy"):
        assert {s.operator for s in REQUIREMENTS[name].specifier} == {">="}


def test_the_tests_of_other_versions_need_no_tool_of_the_book():
    """`make test-oldest` and `test-newest` install neither node nor Sphinx nor a browser."""
    printed = subprocess.run(
        ["make", "--no-print-directory", "-f", "-", "print"],
        cwd=ROOT,
        input="include Makefile\nprint: ; @echo $(BOOK_TESTS)\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    left_out = [ROOT / name for name in printed]
    assert all(path.exists() for path in left_out)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if not any(path.is_relative_to(one) for one in left_out):
            lines = re.findall(r"^ *(?:from|import) .*", path.read_text("utf-8"), re.MULTILINE)
            assert not TOOLS & set(re.findall(r"\w+", " ".join(lines))), path.name


def test_a_replaced_package_is_found_whatever_its_name_is_spelled():
    item = {"metadata": {"name": "Huggingface_Hub", "version": "2.0"}}
    pins = {"huggingface-hub": "1.4.1"}
    assert replaced({"install": [item]}, pins) == ["huggingface-hub 1.4.1 -> 2.0"]
    assert replaced({"install": [item]}, {"numpy": "2.1.0"}) == []


@pytest.mark.slow
def test_pip_takes_the_stubs_for_installed_packages():
    """Without an index: what the stubs satisfy needs nothing, and what they do not fails."""
    pins = {"torch": "2.11.0", "numpy": "2.1.0"}
    report = dry_run(sys.executable, pins, "--no-index", "torch>=2.10", "numpy>=1.26")
    assert report["install"] == []
    with pytest.raises(subprocess.CalledProcessError):
        dry_run(sys.executable, pins, "--no-index", "--find-links=", "numpy<2")
