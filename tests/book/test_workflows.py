"""The workflows are valid, safe by zizmor's strictest rules, and call commands that exist."""

import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from programs import ended

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TOOLS = Path(sys.executable).parent


def steps(path: Path) -> list[dict]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_the_three_workflows_are_there():
    assert [path.name for path in WORKFLOWS] == ["publish.yml", "test.yml", "weekly.yml"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema", ["vendor.github-workflows", "custom.github-workflows-require-timeout"]
)
def test_workflows_follow_the_schema(schema):
    done = ended(TOOLS / "check-jsonschema", "--builtin-schema", schema, *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing():
    """Unpinned actions, wide permissions, kept credentials, code injection through templates."""
    command = [TOOLS / "zizmor", "--offline", "--persona", "pedantic", "--no-progress"]
    done = ended(*command, *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No findings" in done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_pinned_and_says_its_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_every_make_target_that_a_workflow_calls_exists():
    rules = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = {name for rule in rules for name in rule.split()}
    commands = [step.get("run", "") for path in WORKFLOWS for step in steps(path)]
    called = {name for command in commands for name in re.findall(r"\bmake ([\w-]+)", command)}
    assert {"test", "book", "test-oldest", "test-newest", "colab-check"} <= called <= targets


@pytest.mark.parametrize(
    ("open_issue", "expected"), [("", "issue create"), ("7", "issue comment 7")]
)
def test_a_failed_week_opens_one_issue(tmp_path, open_issue, expected):
    """The script itself, run with a `gh` that notes how it is called and answers the search."""
    gh = tmp_path / "gh"
    answer = f'if [ "$2" = list ]; then echo "{open_issue}"; fi'
    gh.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\n{answer}\n')
    gh.chmod(0o755)
    script = steps(ROOT / ".github" / "workflows" / "weekly.yml")[-1]["run"]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "TITLE": "It fails", "BODY": "See the log"}
    done = ended("bash", "-eo", "pipefail", "-c", script, env=env)
    assert done.returncode == 0, done.stderr
    search, report = (tmp_path / "calls").read_text().splitlines()
    assert search.startswith("issue list --state open")
    assert report.startswith(expected)
    assert report.endswith("--body See the log")
