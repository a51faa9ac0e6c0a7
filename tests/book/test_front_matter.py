"""README, CONTRIBUTING, licenses and citation say what is so."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from anatomy import is_deeper
from links import road_names
from PIL import Image
from programs import ended

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def linked_chapters(page: str) -> list[str]:
    return re.findall(r"chapters/([\w-]+)\.ipynb\)", text(page))


@pytest.mark.slow
def test_the_citation_is_valid_and_of_this_version():
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema"]
    command += ["vendor.citation-file-format", ROOT / "CITATION.cff"]
    done = ended(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"].split(" AND ")


def test_the_pre_commit_configuration_is_valid(tmp_path):
    command = [Path(sys.executable).parent / "pre-commit", "validate-config"]
    command += [ROOT / ".pre-commit-config.yaml"]
    done = ended(*command, env=os.environ | {"PRE_COMMIT_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    hooks = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    for hook in hooks:
        for file in re.findall(r"\S+\.py\b", hook["entry"]):
            assert (ROOT / file).is_file(), file


def test_the_licenses_are_what_they_are_called():
    assert text("LICENSE").startswith("MIT License\n")
    prose = text("LICENSE-prose")
    assert "Creative Commons Attribution 4.0 International Public License" in prose
    for section in range(1, 9):
        assert f"Section {section} -- " in prose


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_named_exists(name):
    rules = re.findall(r"^([\w -]+):", text("Makefile"), re.MULTILINE)
    targets = {name for rule in rules for name in rule.split()}
    called = set(re.findall(r"(?:^|`)make\s+([a-z-]+)", text(name), re.MULTILINE))
    assert {"book", "test", "check"} <= called
    assert called <= targets


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_named_exists(name):
    paths = re.findall(r"`((?:book|chapters|tests|transformer_lib)/[\w./-]+)`", text(name))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_linked_exists(name):
    targets = re.findall(r"\]\((?!https:)([^)#]+)\)", text(name))
    assert targets
    for target in targets:
        assert (ROOT / target).is_file(), target


def test_the_versions_of_python_that_are_claimed_are_tried():
    first, last = re.search(r"Python (3\.\d+) to (3\.\d+)", text("README.md")).groups()
    assert f"Python {first} to {last}" in text("Makefile")
    assert PROJECT["requires-python"] == f">={first}"
    tried = re.findall(r'"(3\.\d+)"', text(".github/workflows/test.yml"))
    assert {first, last} <= set(tried)
    weekly = re.findall(r'python-version: "(.*)"', text(".github/workflows/weekly.yml"))
    newest, *pinned = weekly
    assert newest == last, "the newest packages on the newest Python"
    assert set(pinned) == {first}, "the pinned ones on the first"
    minor = int(last.split(".")[1])
    assert f"(3, 11) <= sys.version_info < (3, {minor + 1})" in text("Makefile")


@pytest.mark.slow
def test_the_issue_forms_are_valid():
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema"]
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert forms
    done = ended(*command, "vendor.github-issue-forms", *forms)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_picture_moves_is_small_and_described():
    alt, path = re.search(r"!\[([^\]]+)\]\(([^)]+)\)", text("README.md")).groups()
    with Image.open(ROOT / path) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames > 10
    assert (ROOT / path).stat().st_size < 1_000_000
    assert len(alt.split()) >= 10


def test_readme_landing_page_contents_and_folder_name_the_same_chapters():
    contents = road_names(ROOT)
    stored = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
    # A deeper page is named by its chapter, and may be named here.
    assert contents == [name for name in stored if not is_deeper(name)]
    readme = [name for name in linked_chapters("README.md") if not is_deeper(name)]
    assert readme == contents
    # The landing page may name a chapter again in running text.
    named = {name for name in linked_chapters("book/index.md") if not is_deeper(name)}
    assert sorted(named) == contents


def test_the_landing_page_numbers_its_chapters_as_their_files():
    items = re.findall(r"^(\d+)\. \[[^\]]+\]\(\S+chapters/(\d+)-", text("book/index.md"), re.M)
    assert items
    for number, file in items:
        assert int(number) == int(file)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files there are")
def test_no_file_holds_the_address_of_a_package_registry():
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT).decode().split("\0")
    address = re.compile(r"https?://\S*(?:pypi|pythonhosted|npmjs|download\.pytorch)|file:///opt")
    for name in filter(None, listed):
        path = ROOT / name
        if path == Path(__file__) or not path.is_file():
            continue
        # (Pictures and weights are not text, but an address in them would be found, too.)
        assert not address.search(path.read_text("utf-8", errors="replace")), name
