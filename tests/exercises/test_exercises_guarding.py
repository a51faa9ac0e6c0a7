"""Hostile answers: each ends in a verdict, and the notebook is afterward as it was before."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from IPython.core.autocall import ExitAutocall, ZMQExitAutocall

from transformer_lib.exercises.engine.guarding import DEEPEST, MOST_PRINTED, guarded, random_kept
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

double, hasty = (
    Exercise(right=lambda x: 2 * x, cases=[Case("3 numbers", randn(3, seed=0))], seconds=seconds)
    for seconds in (60, 0.3)
)
STOPPED = "✗ Stopped after 0.3 s: an endless loop?"


def then(hostile):
    """A right answer that does something hostile first."""

    def answer(x):
        hostile()
        return 2 * x

    return answer


def spin():
    while True:
        pass


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hostile",
    [
        lambda: os._exit(1),
        lambda: os.abort(),
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        lambda: os.execv(sys.executable, [sys.executable, "-V"]),
        lambda: os.fork(),
        lambda: os.system("true"),
        lambda: os.popen("true"),
        lambda: subprocess.run(["true"]),
        lambda: multiprocessing.Process(target=print).start(),
        lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
        lambda: signal.setitimer(signal.ITIMER_REAL, 0),
        lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN),
        lambda: sys.setrecursionlimit(10**8),
        lambda: input("How long? "),
    ],
)
def test_what_would_end_or_leave_the_notebook_is_refused(hostile):
    verdict = double(then(hostile))
    assert "raises PermissionError (line " in verdict.diagnosis
    assert ": an answer may not " in verdict.diagnosis


def test_exit_in_a_notebook_is_refused():
    asked = []
    shell = SimpleNamespace(ask_exit=lambda: asked.append("exit"))
    for leave in (ExitAutocall(shell), ZMQExitAutocall(shell)):
        assert ": an answer may not end the notebook's process" in double(then(leave)).diagnosis
    assert asked == []
    ExitAutocall(shell)()
    assert asked == ["exit"]


@pytest.mark.slow
def test_outside_of_a_check_nothing_is_refused():
    before = os._exit, os.system, subprocess.Popen.__init__, threading.Thread.start, sys.stdout
    double(then(lambda: os._exit(1)))
    after = os._exit, os.system, subprocess.Popen.__init__, threading.Thread.start, sys.stdout
    assert after == before
    assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0


def test_other_threads_may_do_all_they_like_while_an_answer_runs():
    with guarded():
        found = []
        ours = threading.Thread(target=lambda: found.append(os.system("true")))
        with pytest.raises(PermissionError, match="an answer may not start another process"):
            os.system("true")
        double(lambda x: 2 * x)  # a check within a check
        with pytest.raises(PermissionError):
            os.system("true")
    ours.start()
    ours.join()
    assert found == [0]

    started, done = threading.Event(), threading.Event()

    def other():
        started.wait(5)
        found.append(os.system("true"))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def answer(x):
        started.set()
        assert done.wait(5)
        return 2 * x

    assert double(answer).passed
    thread.join()
    assert found == [0, 0]


def test_two_checks_at_once_leave_everything_as_it_was():
    before, verdicts = os._exit, []
    threads = [
        threading.Thread(target=lambda: verdicts.append(double(then(lambda: time.sleep(0.1)))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert double(then(lambda: os._exit(1))).passed is False
    for thread in threads:
        thread.join()
    assert [verdict.passed for verdict in verdicts] == [True] * 3
    assert os._exit is before


def test_a_recursion_ends_even_if_its_limit_was_raised():
    def answer(x):
        sys.setrecursionlimit(DEEPEST)

        def deeper():
            deeper()

        deeper()

    before = sys.getrecursionlimit()
    assert "raises RecursionError" in double(answer).diagnosis
    assert sys.getrecursionlimit() == before


# --- stopped ------------------------------------------------------------------------------------


class Endless(list):
    def __iter__(self):
        while True:
            yield 1.0


class EndlessMapping(Mapping):
    def __len__(self):
        return 1

    def __iter__(self):
        return iter(int, 1)

    def __getitem__(self, key):
        time.sleep(0.001)
        return 1.0


in_itself = [0.5]
in_itself.append(in_itself)


class Deaf:
    def __del__(self):
        spin()


def swallow():
    while True:
        try:
            time.sleep(0.001)
        except BaseException:
            return spin()


@pytest.mark.slow
def test_an_alarm_that_an_answer_swallows_rings_again():
    assert repr(hasty(then(swallow))) == STOPPED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_alarm_that_rings_where_exceptions_are_lost_rings_again():
    assert repr(hasty(lambda x: [Deaf(), spin()][0])) == STOPPED


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (Endless([1.0, 2.0]), "In item 0: you have 1; it should be 0.5"),
        (EndlessMapping(), STOPPED),
        (in_itself, "Item 1 of your result is a list that contains itself; a number is expected."),
        (type("Raises", (list,), {"__iter__": lambda self: 1 / 0})([0.5, 0.5]), "✓"),
    ],
)
def test_results_without_an_end_are_compared_in_time(result, words):
    pair = Exercise(right=lambda: [0.5, 0.5], cases=[Case("nothing")], seconds=0.3)
    assert words in repr(pair(lambda: result))
    assert repr(Exercise(right=[0.5, 0.5], seconds=0.3)(result)).startswith(("✓", "✗"))


def test_endless_output_is_cut(capsys):
    def answer(x):
        while True:
            print("roses " * 100)

    assert repr(hasty(answer)) == STOPPED
    shown = capsys.readouterr().out
    assert MOST_PRINTED <= len(shown) < MOST_PRINTED + 100
    assert shown.endswith("… (an answer's output is cut here)\n")
    print("after the check", file=sys.stderr)
    assert capsys.readouterr().err == "after the check\n"


def test_a_little_output_is_shown(capsys):
    assert double(then(lambda: print("roses"))).passed
    assert capsys.readouterr().out == "roses\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # SystemExit
@pytest.mark.parametrize("daemon", [False, True])
def test_a_thread_that_goes_on_is_ended_and_named(daemon):
    threads = []

    def start():
        def run():
            while True:
                time.sleep(0.001)

        threads.append(threading.Thread(target=run, daemon=daemon))
        threads[-1].start()

    verdict = double(then(start))
    assert verdict.diagnosis == "Your answer leaves a thread running: wait for it with `join()`."
    threads[0].join(5)
    assert not threads[0].is_alive()


def test_a_thread_of_an_answer_may_do_no_more_than_the_answer():
    refused = []

    def run():
        try:
            os._exit(1)
        except PermissionError as error:
            refused.append(str(error))

    def start():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    assert double(then(start)).passed
    assert refused == ["an answer may not end the notebook's process"]


def test_a_librarys_own_monitor_goes_on():
    class Monitor(threading.Thread):
        def run(self):
            ended.wait(5)

    ended = threading.Event()
    monitor = Monitor(daemon=True)
    assert double(then(monitor.start)).passed
    assert monitor.is_alive()
    ended.set()
    monitor.join()


# --- put back -----------------------------------------------------------------------------------


def settings():
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "gradients": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "anomaly": torch.is_anomaly_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "printed": str(torch.tensor(1 / 3)),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "autocasts": (torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()),
        "hooks": dict(torch.nn.modules.module._global_forward_hooks),
        "errors": np.geterr(),
        "collector": gc.isenabled(),
        "tracer": sys.gettrace(),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "recursion": sys.getrecursionlimit(),
        "stdout": sys.stdout,
    }


def change_everything(folder):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch.set_num_threads(3)
    torch.use_deterministic_algorithms(True)
    torch.autograd.set_detect_anomaly(True)
    torch.set_float32_matmul_precision("medium")
    torch.set_printoptions(precision=2)
    torch.autocast("cpu", torch.float16).__enter__()
    torch.nn.modules.module.register_module_forward_hook(print)
    np.seterr(all="raise")
    gc.disable()
    sys.settrace(lambda *_: None)
    os.chdir(folder)
    os.environ["ROSES"] = "red"
    sys.setrecursionlimit(2_000)
    sys.stdout = None


def test_settings_that_an_answer_changes_are_put_back(tmp_path):
    before = settings()
    two = Exercise(
        right=lambda x: 2 * x, cases=[Case(f"{n} numbers", torch.ones(n)) for n in (3, 5)]
    )
    assert two(then(lambda: change_everything(tmp_path))).passed
    assert settings() == before


@contextmanager
def default_device(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize(
    "outside",
    [torch.autocast("cpu", torch.bfloat16), torch.device("meta"), default_device("meta")],
    ids=lambda outside: type(outside).__name__,
)
def test_what_is_on_around_a_check_changes_no_verdict(outside):
    def right(x):
        return torch.ones(3, 3) @ x @ x.mT

    sums = Exercise(right=right, cases=[Case("3 words", randn(3, 5, seed=0))])
    with outside:
        device = torch.get_default_device()
        assert sums(right).passed
        assert sums(lambda x: right(x) * 1.01).passed is False
        assert torch.get_default_device() == device


@pytest.mark.slow
def test_defaults_from_before_the_import_change_no_verdict():
    code = """
import torch
torch.set_default_device("meta")
torch.set_default_dtype(torch.float64)
from transformer_lib.exercises.gpt import check_bigram_loss, check_leaks
print(check_bigram_loss(check_bigram_loss.right), check_leaks(check_leaks.right))
print(torch.get_default_device(), torch.get_default_dtype())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("✓") == 2
    assert done.stdout.endswith("meta torch.float64\n")


def test_seeds_of_gpus_are_put_back(monkeypatch):
    states = [1]
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: states[-1])
    monkeypatch.setattr(torch.mps, "set_rng_state", states.append)
    monkeypatch.setattr(torch.mps, "manual_seed", states.append)
    before = vars(torch.cuda._lazy_seed_tracker).copy()
    assert double(then(lambda: torch.manual_seed(7))).passed
    assert vars(torch.cuda._lazy_seed_tracker) == before
    assert states[-1] == 1


def test_gradients_flow_in_a_check_though_the_notebook_has_them_off():
    slope = Exercise(
        right=lambda x: torch.autograd.grad((x.requires_grad_() ** 2).sum(), x)[0],
        cases=[Case("3 numbers", randn(3, seed=0))],
    )
    with torch.no_grad():
        assert slope(slope.right).passed
        assert not torch.is_grad_enabled()


def test_an_answer_may_set_another_default_device_than_the_notebook():
    with default_device("meta"):
        assert double(then(lambda: torch.set_default_device("cpu"))).passed
        assert torch.get_default_device().type == "meta"


# NumPy's global random numbers, which answers use as readers do.
numpy_draw, numpy_seed = np.random.mtrand.rand, np.random.mtrand.seed


def draw():
    return random.random(), numpy_draw(), torch.rand(1).item()


def seed(number):
    random.seed(number)
    numpy_seed(number)
    torch.manual_seed(number)


def test_random_numbers_go_on_as_before():
    seed(7)
    expected = [draw(), draw()]
    seed(7)
    found = [draw()]
    with random_kept(0):
        seed(1)
        draw()
    assert [*found, draw()] == expected


def test_an_answers_own_random_numbers_are_the_same_each_time():
    drawn = []
    for _ in range(2):
        double(lambda x: drawn.append(draw()))
    assert drawn[0] == drawn[1]


# --- what an answer says and is ----------------------------------------------------------------


def raising(error):
    def answer(x):
        raise error

    return answer


class Mute(Exception):
    def __str__(self):
        raise SystemExit


def in_a_circle(x):
    return 2 * x


in_a_circle.__wrapped__ = in_a_circle


class Signature:
    @property
    def __signature__(self):
        raise KeyError("no signature")

    def __call__(self, x):
        return 2 * x


class Unclassed:
    @property
    def __class__(self):
        raise OSError("no class")


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        raise ZeroDivisionError("no functions")


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        raise ZeroDivisionError("no gradient")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raising(Mute()), "raises Mute (line "),
        (raising(ValueError("\ud800\x1b]0;roses")), r"\ud800\x1b]0;roses"),
        (raising(ValueError("roses " * 2_000_000)), "roses  …"),
        (raising(type("R" * 10**7, (Exception,), {})()), "RRR …"),
        (in_a_circle, "Right."),
        (Signature(), "raises KeyError: 'no signature'"),
        (lambda x: Unclassed(), "raises OSError"),
        (lambda x: (2 * x).as_subclass(Tensor), "Right."),
        (lambda x: {Unclassed: 1}, "a dict; a torch tensor is expected"),
        (lambda x: "roses" * 10**7, "a string; a torch tensor is expected"),
    ],
)
def test_odd_answers_get_a_short_verdict_that_can_be_shown(answer, words):
    verdict = double(answer)
    assert words in verdict.diagnosis
    assert len(verdict.diagnosis) < 2_000
    assert verdict._repr_html_().encode("utf-8")


def test_an_answer_that_does_not_say_what_it_is():
    assert "raises OSError: no class" in double(Unclassed()).diagnosis


def test_a_wrong_text_is_cut_when_it_is_shown():
    verdict = Exercise(right="roses")("\x07" + "tulips" * 10**6)
    assert verdict.diagnosis.startswith(r"You have '\x07tulips")
    assert len(verdict.diagnosis) < 2_000


def test_keys_of_a_dict_are_not_asked_anything():
    class Key:
        def __repr__(self):
            raise SystemExit

    verdict = Exercise(right={"a": 1})({Key(): 1})
    assert verdict.diagnosis == "Your result has the keys ['(a Key)']; the right ones are ['a']."


def test_a_gradient_that_raises_gets_a_verdict():
    def gradient(result, x):
        return torch.autograd.grad(result.sum(), x)[0].isnan().any()

    leaf = randn(3, seed=0).requires_grad_()
    exercise = Exercise(right=lambda x: 2 * x, cases=[Case("", leaf)], also={"NaN.": gradient})
    assert exercise(lambda x: 2 * x).passed
    assert "raises ZeroDivisionError: no gradient" in exercise(Backward.apply).diagnosis


def test_an_input_that_cannot_be_compared_any_more_counts_as_written_into():
    def answer(x):
        result = 2 * x
        x.__class__ = Tensor
        return result

    assert "You write into the argument" in double(answer).diagnosis
