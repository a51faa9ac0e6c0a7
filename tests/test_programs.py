"""tests/support/programs.py: nothing that a test starts is left, and no signal is ignored."""

import signal
import subprocess
import sys

import psutil
import pytest
from programs import ended, started

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions and SIGHUP")

# A program that ends, after it has started another one in a session of its own.
PARENT = """
import subprocess, sys
sleeping = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(10_000)"]
child = subprocess.Popen(sleeping, start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""


def test_nothing_is_left_of_a_program():
    with started(sys.executable, "-c", PARENT, stdout=subprocess.PIPE) as program:
        child = psutil.Process(int(program.stdout.readline()))
        assert program.wait() == 0
        assert child.is_running()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_program_does_not_ignore_what_pytest_ignores():
    """What nohup does, and a shell to what runs in the background."""
    asked = "import signal; print([signal.getsignal(n) for n in (1, 2)])"
    before = [signal.signal(number, signal.SIG_IGN) for number in (1, 2)]
    try:
        said = ended(sys.executable, "-c", asked).stdout
        assert [signal.getsignal(number) for number in (1, 2)] == [signal.SIG_IGN] * 2
    finally:
        for number, handler in zip((1, 2), before, strict=True):
            signal.signal(number, handler)
    assert "SIG_DFL" in said
    assert "SIG_IGN" not in said
