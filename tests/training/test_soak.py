"""A share of `make soak`: kills, damage, forged files, full disks, survived in small numbers."""

import json
import pickle
import sys
from pathlib import Path

import pytest
from damage import in_a_child, only_reading
from programs import ended

from transformer_lib.training.run_log import REPOSITORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")


@pytest.mark.soak
def test_a_share_of_the_soak():
    """In a process of its own: one that has trained may not fork, and checked types draw."""
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "soak.py"), "--few"]
    done = ended(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {}
    for line in done.stdout.splitlines():
        counts |= json.loads(line)
    random = counts["kills at random moments"]
    assert random["killed"] == 10
    assert random["ended_bit_identical"] >= 1
    assert 1 <= random["most_steps_lost"] <= random["save_every"]
    saves = counts["kills within a save"]
    assert min(saves["killed"], saves["power_lost"], saves["ended_bit_identical"]) >= 3
    assert counts["damaged"]["detected"] == 40
    assert counts["hostile"]["refused"] >= 20
    assert counts["full disks"]["no_room"] == 3


@pytest.mark.parametrize(
    "work",
    [
        lambda: pickle.loads(b"cos\nsystem\n(S'true'\ntR."),
        lambda: Path("/dev/null").write_text(""),
        lambda: compile("1", "", "eval"),
        lambda: __import__("this"),
    ],
)
def test_the_audit_of_hostile_files_notices_what_runs(work):
    def audited():
        sys.addaudithook(only_reading)
        work()
        return 0

    assert in_a_child(audited) == 3
