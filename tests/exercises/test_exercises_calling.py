"""Time limits: what loops is stopped, and alarms that others have set go on."""

import contextlib
import signal
import sys
import threading
import time

import pytest
import torch
from programs import PATIENCE

from transformer_lib.exercises.engine import runner
from transformer_lib.exercises.engine.calling import TimeOver, time_limit
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

DOUBLE = Exercise(right=lambda x: 2 * x, cases=[Case("3 numbers", randn(3, seed=0))], seconds=0.3)


def _endless(x):
    while True:
        x = x + 1


def _endless_and_deaf(x):
    with contextlib.suppress(Exception):
        while True:
            x = x + 1
    return 2 * x


@pytest.mark.parametrize("answer", [_endless, _endless_and_deaf])
def test_an_endless_loop_is_stopped(answer):
    before = signal.getsignal(signal.SIGALRM)
    assert repr(DOUBLE(answer)) == "✗ Stopped after 0.3 s: an endless loop?"
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_of_somebody_else_is_put_back():
    signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    try:
        with pytest.raises(TimeOver), time_limit(0.05):
            _endless(torch.zeros(1))
        delay, interval = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert 900 < delay < 1000
    assert interval == 7


def test_an_alarm_does_not_keep_its_block_from_being_left():
    """Else the timer is left on, and rings in the program."""

    def leaving(frame, event, _):
        if event == "call" and frame.f_code.co_name == "__exit__":
            signal.getsignal(signal.SIGALRM)(signal.SIGALRM, frame)

    with time_limit(1000):
        sys.setprofile(leaving)
    sys.setprofile(None)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    with pytest.raises(TimeOver), time_limit(1000):
        signal.raise_signal(signal.SIGALRM)


class Slow:
    """A finder of modules that takes its time and finds nothing."""

    def find_spec(self, name, path=None, target=None):
        if name == "a_module_that_is_nowhere":
            time.sleep(0.5)


def test_an_import_is_not_cut_in_two(monkeypatch):
    def importing(x):
        with contextlib.suppress(ModuleNotFoundError):
            import a_module_that_is_nowhere  # noqa: F401
        return 2 * x

    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    assert repr(DOUBLE(importing)).startswith("✓")
    monkeypatch.setattr(Slow, "find_spec", lambda *names, **more: time.sleep(PATIENCE))
    start = time.monotonic()
    with pytest.raises(TimeOver), time_limit(0.05):
        importing(torch.zeros(1))
    assert time.monotonic() - start < PATIENCE


def test_waiting_is_not_computing():
    with time_limit(0.05, computing=True):
        time.sleep(0.1)
    with pytest.raises(TimeOver), time_limit(0.05, computing=True):
        _endless(torch.zeros(1))
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_endless_changes_of_a_loop_are_not_waited_for(monkeypatch):
    """Without its limit the first endless change would take ten minutes."""
    monkeypatch.setattr(runner, "MOST_SECONDS", 600.0)
    monkeypatch.setattr(runner, "MOST_FOR_ONE", 600.0)

    def one_too_many(steps, by):
        found = 1
        while steps > 0:
            steps, found = steps - by, found + 1
        return found

    cases = [Case("7 by 2", 7, 2), Case("9 by 3", 9, 3)]
    exercise = Exercise(right=lambda steps, by: -(-steps // by), cases=cases)
    assert "`found = 1`: with `0` in place of `1`" in repr(exercise(one_too_many))


@pytest.mark.parametrize("platform", ["thread", "no timer"])
def test_without_a_timer_answers_are_checked_all_the_same(monkeypatch, platform):
    if platform == "no timer":
        monkeypatch.delattr(signal, "setitimer")
        assert DOUBLE(lambda x: x + x).passed
    else:
        verdicts = []
        worker = threading.Thread(target=lambda: verdicts.append(DOUBLE(lambda x: x + x)))
        worker.start()
        worker.join()
        assert verdicts[0].passed


def test_where_nothing_can_be_stopped_no_change_is_tried():
    """Else one that loops for ever would keep the verdict back."""
    verdicts = []
    check = Exercise(right=lambda x: 2 * x, cases=DOUBLE.cases)

    def judge():
        verdicts.append(check(lambda x: x + x + x).diagnosis)

    worker = threading.Thread(target=judge)
    worker.start()
    worker.join()
    judge()
    assert ["is too much" in said for said in verdicts] == [False, True]
