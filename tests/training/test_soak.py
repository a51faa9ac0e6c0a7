"""The audit by which `make soak` notices that a hostile file has run something."""

import pickle
import sys
from pathlib import Path

import pytest
from damage import in_a_child, only_reading

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")


@pytest.mark.parametrize(
    "work",
    [
        lambda: pickle.loads(b"cos\nsystem\n(S'true'\ntR."),
        lambda: Path("/dev/null").write_text("", encoding="utf-8"),
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
