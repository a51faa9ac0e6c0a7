"""Changed copies of an answer have no effects beyond themselves, and still name its mistake."""

import functools
import os
import pathlib
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from transformer_lib.exercises.engine import runner
from transformer_lib.exercises.engine.isolating import Apart, Unsafe, apart, effects_refused
from transformer_lib.exercises.engine.mending import Source, copied
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

mixed = Exercise(
    right=lambda x: torch.softmax(x @ x.mT, dim=-1) @ x,
    cases=[Case(f"{n} words", randn(n, 7, seed=n)) for n in (2, 3, 5)],
)
NAMED = "`dim=0` is not the right axis"
LOG = []
WEIGHTS = torch.ones(1)


@pytest.fixture
def copies(monkeypatch):
    """Counts the copies of answers that are made."""
    made = []
    changed = Source.changed

    def counted(source, edit):
        copy = changed(source, edit)
        made.append(copy)
        return copy

    monkeypatch.setattr(Source, "changed", counted)
    return made


def test_an_answer_writes_no_file_but_its_own(tmp_path, copies):
    (tmp_path / "w1.txt").write_text("my notes")

    def answer(x):
        n = len(x) + 1
        with open(tmp_path / f"w{n}.txt", "w", encoding="utf-8") as file:
            file.write("mine")
        return torch.softmax(x @ x.mT, dim=0) @ x

    assert "your values depart from those" in mixed(answer).diagnosis
    assert sorted(os.listdir(tmp_path)) == ["w1.txt", "w3.txt", "w4.txt", "w6.txt"]
    assert (tmp_path / "w1.txt").read_text() == "my notes"
    assert copies == []


def test_an_answer_fills_no_list_but_by_its_own_calls(monkeypatch):
    def entries(changes):
        monkeypatch.setattr(runner, "MOST_CHANGES", changes)
        log, memo, LOG[:] = [], {}, []

        def note(x):
            log.append(len(x))

        def answer(x):
            note(x)
            memo[len(x) + 1] = x
            LOG.append(1)
            return torch.softmax(x @ x.mT, dim=0) @ x

        verdict = mixed(answer)
        return verdict.diagnosis, len(log), sorted(memo), len(LOG)

    assert NAMED not in entries(0)[0]
    assert NAMED in entries(1200)[0]
    _, log, memo, others = entries(1200)
    assert log == others <= entries(0)[1] + 1  # it is looked at once more, itself
    assert memo == [3, 4, 6]


def test_a_value_of_the_reader_is_not_written_into():
    before = WEIGHTS.clone()
    module, counts, names = nn.Linear(7, 7, bias=False), numpy.zeros(3), {"of": [1]}
    module.notes = []
    nn.init.eye_(module.weight)

    class Kept:
        seen = ()

        def __init__(self, x):
            type(self).seen.append(len(x))

    Kept.seen = []

    def answer(x):
        Kept(x)
        module.notes.append(len(x))
        counts[0] += 1
        names["of"].append(2)
        with torch.no_grad():
            WEIGHTS.add_(0 * x.sum())
        return torch.softmax(module(x) @ x.mT, dim=0) @ x

    diagnosis = mixed(answer).diagnosis
    assert NAMED in diagnosis
    few = len(mixed.cases) + 4
    assert len(module.notes) == len(Kept.seen) == counts[0] == len(names["of"]) - 1 < few
    assert WEIGHTS.equal(before)


def test_a_function_of_pytorch_is_as_before_after_a_check():
    softmax, log_softmax = torch.softmax, torch.log_softmax
    own = torch.Tensor.__dict__.get("softmax")

    def answer(x):
        torch.softmax = torch.log_softmax
        torch.Tensor.softmax = torch.Tensor.relu
        nn.Linear = nn.Identity
        return torch.softmax(x @ x.mT, dim=0) @ x

    linear = nn.Linear
    assert mixed(answer).passed is False
    assert (torch.softmax, torch.log_softmax, nn.Linear) == (softmax, log_softmax, linear)
    assert torch.Tensor.__dict__.get("softmax") is own
    assert mixed(lambda x: (x @ x.mT).softmax(-1) @ x).passed


class Wide(nn.Linear):
    def forward(self, x):
        LOG.append(len(x))
        return super().forward(x)


def test_copies_compute_what_the_reader_wrote_and_write_only_into_copies():
    LOG[:] = []
    layer = Wide(3, 3)
    halves = functools.partial(torch.mul, 0.5)

    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def answer(x, scale=LOG):
        import math

        from torch.nn import functional as F

        scale.append(fib(7))
        return halves(F.relu(layer(x))) + math.pi * len(scale)

    x = randn(2, 3, seed=0)
    linear = nn.functional.linear(x, layer.weight, layer.bias)
    # 2, since the layer fills the same list as the answer: `LOG` under two names
    torch.testing.assert_close(copied(answer)(x), linear.relu() / 2 + 2 * torch.pi)
    assert LOG == []


FILE = Path(__file__)
RUN = subprocess.run
WRITE = LOG.append
REFUSED = AttributeError, PermissionError, ImportError, SystemError  # the last one is NumPy's


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: open("w.txt", "w", encoding="utf-8"),  # noqa: SIM115
        lambda x: os.remove("w.txt"),
        lambda x: pathlib.Path("w.txt").unlink(),
        lambda x: FILE.unlink(),
        lambda x: torch.save(x, "w.pt"),
        lambda x: [torch][0].save(x, "w.pt"),
        lambda x: torch.from_file("w.pt", shared=True, size=3),
        lambda x: numpy.save("w.npy", x),
        lambda x: x.numpy().tofile("w.bin"),
        lambda x: exec("import os; os.remove('w.txt')"),
        lambda x: __import__("os").remove("w.txt"),
        lambda x: globals().clear(),
        lambda x: RUN(["true"]),
        lambda x: setattr(torch, "softmax", None),
        lambda x: socket.socket(),
        lambda x: sys.exit(),
        lambda x: threading.Thread(target=print).start(),
        lambda x: WRITE(1),
    ],
)
def test_a_copy_of_this_is_not_made_or_does_nothing(answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.txt").write_text("my notes")
    softmax = torch.softmax
    LOG[:] = []
    copy = copied(answer)
    if copy is not None:
        with effects_refused(), pytest.raises(REFUSED):
            copy(randn(3, seed=0))
    assert os.listdir(tmp_path) == ["w.txt"]
    assert FILE.exists()
    assert torch.softmax is softmax
    assert LOG == []


def test_a_copy_imports_nothing_and_changes_no_module_or_class():
    def imports(x):
        import os

        os.remove("w.txt")

    def replaces(x):
        torch.softmax = torch.relu

    def replaces_in_a_class(x):
        nn.Linear.forward = torch.relu

    def by_another_name(x):
        t = torch
        t.softmax = t.relu

    softmax, forward = torch.softmax, nn.Linear.forward
    for answer in (imports, replaces, replaces_in_a_class):
        assert copied(answer) is None
    with pytest.raises(AttributeError, match="changes no module"):
        copied(by_another_name)(1)
    assert (torch.softmax, nn.Linear.forward) == (softmax, forward)


def test_while_a_copy_runs_this_thread_and_no_other_has_no_effects(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    done = []

    def other():
        path.with_name("other.txt").write_text("mine")
        done.append(1)

    attempts = [
        lambda: path.write_text("x"),
        lambda: path.open("a"),
        lambda: path.unlink(),
        lambda: path.rename(tmp_path / "other"),
        lambda: (tmp_path / "folder").mkdir(),
        lambda: os.open(path, os.O_RDWR),
        lambda: subprocess.run(["true"]),
        lambda: socket.socket(),
    ]
    thread = threading.Thread(target=other)
    with effects_refused():
        for attempt in attempts:
            with pytest.raises(PermissionError, match="a changed copy of an answer has no effects"):
                attempt()
        assert path.read_text() == "mine"
        thread.start()
        thread.join()
    assert done == [1]
    path.write_text("yours")
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "other.txt"]


def test_a_count_is_asked_at_other_sizes_only_apart(tmp_path):
    count = Exercise(
        right=lambda d, n: 2 * d * n + d,
        cases=[Case("d = 12, n = 7", 12, 7), Case("d = 5, n = 3", 5, 3)],
    )
    seen = []

    def answer(d, n):
        seen.append(d)
        return sum(2 * d for _ in range(n)) + 3 * d

    def writes(d, n):
        (tmp_path / f"{d}.txt").write_text("mine")
        return sum(2 * d for _ in range(n)) + 3 * d

    assert count(answer).passed is False
    assert set(seen) == {5, 12}
    assert count(writes).passed is False
    assert sorted(os.listdir(tmp_path)) == ["12.txt", "5.txt"]


def test_what_names_hold_is_copied_once():
    pair = [1]
    names = {"one": pair, "other": [pair]}
    exec("def f(): return one, other", names)
    found, _ = apart(names, {}, names["f"].__code__)
    assert found["other"][0] is found["one"] is not pair
    assert Apart().copy((pair, pair)) == ([1], [1])
    with pytest.raises(Unsafe):
        Apart().copy(sys)
    with pytest.raises(Unsafe):
        Apart().copy(threading.Lock())
