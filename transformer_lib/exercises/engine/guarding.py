"""Keep a notebook alive and unchanged while it runs a reader's answer.

An answer goes wrong by mistake, not by malice, so this is a guard rail and not a sandbox:

- refused with `PermissionError`: ending the process, starting another, switching off the alarm of
  the time limit, waiting for the keyboard, and a recursion limit above `DEEPEST`;
- cut: what is printed beyond `MOST_PRINTED` characters;
- ended: threads that still run when the check is over;
- put back: random states, PyTorch's global settings and functions, NumPy's errors, the garbage
  collector, a debugger's tracer, the working directory, the environment.

It costs a few milliseconds for each check, and needs no process, signal or thread. Other
threads of the program notice nothing: each replacement looks at who calls it.

One thing cannot be stopped from within a process: a single call into C that takes for ever, such
as `sum(range(10**11))`. It keeps Python's lock, so no alarm and no thread gets a turn, and the
reader has to restart the kernel. To run each answer in a process of its own would help, but it
would cost seconds for each check and could not return gradients.
"""

import functools
import gc
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy
import torch
from torch._tensor_str import PRINT_OPTS
from torch.nn.modules import module as nn_module

DEEPEST = 5_000
MOST_PRINTED = 20_000

_END = "end the notebook's process"
_START = "start another process"
_ALARM = "change the alarm that limits its time"
_WAIT = "wait for somebody to type: it gets its input as arguments"
_REFUSED = [  # module, class, names, and what they would do
    ("os", "", "_exit abort kill killpg execv execve", _END),
    ("signal", "", "raise_signal pthread_kill", _END),
    ("IPython.core.autocall", "ExitAutocall", "__call__", _END),  # exit() in a notebook
    ("IPython.core.autocall", "ZMQExitAutocall", "__call__", _END),
    ("os", "", "fork forkpty posix_spawn posix_spawnp system", _START),
    ("subprocess", "Popen", "__init__", _START),
    ("multiprocessing.process", "BaseProcess", "start", _START),
    ("signal", "", "setitimer alarm signal pthread_sigmask", _ALARM),
    ("builtins", "", "input", _WAIT),  # a notebook then refuses every cell until it is answered
]

_lock = threading.Lock()
_guards: dict[int, "Guard"] = {}  # by the thread that runs an answer
_replaced: list[tuple[Any, str, Any]] = []  # owner, name, original


class Guard:
    """One check's record of its answer: how much it printed, which threads it started."""

    def __init__(self) -> None:
        self.printed = 0
        self.started: list[threading.Thread] = []
        self.left_running = False


@contextmanager
def guarded() -> Iterator[Guard]:
    """Guard this thread in the block. Ends the threads that the answer has left behind."""
    me = threading.get_ident()
    if me in _guards:  # an answer that calls a check itself
        yield _guards[me]
        return
    guard = Guard()
    with _lock:
        if not _guards:
            _install()
        _guards[me] = guard
    before = _functions()
    try:
        with outside():
            yield guard
    finally:
        guard.left_running = _end(guard.started)
        _restore_functions(before)
        with _lock:
            del _guards[me]
            if not _guards:
                _uninstall()


@contextmanager
def outside() -> Iterator[None]:
    """Outside of the notebook's autocast, `no_grad`, and defaults: on the CPU, in float32."""
    with settings_kept():
        torch.set_default_dtype(torch.float32)
        if torch.get_default_device() != _CPU:
            torch.set_default_device(None)
        within = torch.get_default_device() != _CPU  # a `with torch.device(...)`
        here = _CPU if within else nullcontext()
        with torch.autocast("cpu", enabled=False), torch.enable_grad(), here:
            yield


@contextmanager
def settings_kept() -> Iterator[None]:
    """Put back what an answer changes for the whole program in the block."""
    before = [(restore, read, _read(read)) for read, restore in _SETTINGS]
    try:
        yield
    finally:
        for restore, read, old in before:
            if old is not None and _read(read) != old:
                with suppress(OSError):  # a working directory that was deleted meanwhile
                    restore(old)


@contextmanager
def own_torch() -> Iterator[None]:
    """PyTorch's own functions in the block, even if an answer, or a cell, has replaced some."""
    replaced = [
        (owner, name, now)
        for owner, names in _TORCHS.items()
        for name, own in names.items()
        if (now := vars(owner).get(name, _GONE)) is not own
    ]
    for owner, name, _ in replaced:
        setattr(owner, name, _TORCHS[owner][name])
    try:
        yield
    finally:
        for owner, name, now in replaced:
            delattr(owner, name) if now is _GONE else setattr(owner, name, now)


@contextmanager
def torch_random_kept(seed: int) -> Iterator[None]:
    """Seeded random numbers of PyTorch, on the CPU, in the block."""
    before = torch.get_rng_state()
    # Not torch.manual_seed: without a GPU it keeps a stack trace of every call.
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


@contextmanager
def random_kept(seed: int) -> Iterator[None]:
    """Seeded random numbers in the block; the notebook's go on after it as before."""
    numpys = numpy.random.get_bit_generator()
    pythons_state, numpys_state = random.getstate(), numpys.state
    queued = vars(torch.cuda._lazy_seed_tracker).copy()  # a seed for GPUs that have not begun
    macs_state = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    gpus_states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    random.seed(seed)
    numpys.state = type(numpys)(seed).state
    try:
        with torch_random_kept(seed):
            yield
    finally:
        random.setstate(pythons_state)
        numpys.state = numpys_state
        vars(torch.cuda._lazy_seed_tracker).update(queued)
        if macs_state is not None:
            torch.mps.set_rng_state(macs_state)
        if gpus_states is not None:
            torch.cuda.set_rng_state_all(gpus_states)


_GONE = object()
_OWNERS = (torch, torch.nn, torch.nn.functional, torch.Tensor, torch.nn.Module)


def _functions() -> dict[Any, dict[str, Any]]:
    return {
        owner: {name: value for name, value in vars(owner).items() if callable(value)}
        for owner in _OWNERS
    }


def _restore_functions(before: dict[Any, dict[str, Any]]) -> None:
    for owner, own in before.items():
        for name, value in own.items():
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
    for name in _functions()[torch.Tensor].keys() - before[torch.Tensor].keys():
        if hasattr(torch.Tensor.__base__, name):  # a method from C, hidden by this one
            delattr(torch.Tensor, name)


# What the right computations call, as it was before any answer ran.
_TORCHS = _functions()


def _restore_environment(before: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


def _restore_device(before: torch.device) -> None:
    # The CPU is what holds when no device is set, and setting it would slow every call down.
    torch.set_default_device(None if before == _CPU else before)


def _autocasts() -> tuple[int, list[tuple]]:
    torch.autocast_increment_nesting()
    depth = torch.autocast_decrement_nesting()
    kinds = ("cpu", "cuda")
    return depth, [(k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in kinds]


def _restore_autocasts(before: tuple[int, list[tuple]]) -> None:
    torch.autocast_increment_nesting()
    while torch.autocast_decrement_nesting() > before[0]:  # of one left, nobody clears the cache
        torch.clear_autocast_cache()
    for kind, enabled, dtype in before[1]:
        torch.set_autocast_enabled(kind, enabled)
        torch.set_autocast_dtype(kind, dtype)


def _hooks_of_all() -> dict[str, dict]:
    """The hooks of all modules at once."""
    found = {name: hooks for name, hooks in vars(nn_module).items() if name.startswith("_global_")}
    return {name: dict(hooks) for name, hooks in found.items() if isinstance(hooks, dict)}


def _restore_hooks_of_all(before: dict[str, dict]) -> None:
    for name, hooks in before.items():
        vars(nn_module)[name].clear()
        vars(nn_module)[name].update(hooks)


_CPU = torch.device("cpu")

# Originals, taken before anything here is replaced.
_SETTINGS = [
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, _restore_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (_autocasts, _restore_autocasts),
    (_hooks_of_all, _restore_hooks_of_all),
    (lambda: dict(vars(PRINT_OPTS)), vars(PRINT_OPTS).update),
    (numpy.geterr, lambda before: numpy.seterr(**before)),
    (gc.isenabled, lambda before: gc.enable() if before else gc.disable()),
    (lambda: (sys.gettrace(),), lambda before: sys.settrace(*before)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (os.getcwd, os.chdir),
    (lambda: dict(os.environ), _restore_environment),
]


def _read(read: Callable) -> Any:
    try:
        return read()
    except OSError:  # the working directory may have been deleted
        return None


def _install() -> None:
    for module, kind, names, what in _REFUSED:
        owner = sys.modules.get(module)
        owner = getattr(owner, kind, None) if kind else owner
        for name in names.split():
            if hasattr(owner, name):  # Windows has no fork, a browser no processes
                _replace(owner, name, _refusing(what, getattr(owner, name)))
    _replace(sys, "setrecursionlimit", _shallow(sys.setrecursionlimit))
    _replace(threading.Thread, "start", _noted(threading.Thread.start))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is not None:
            _replace(sys, name, _Bounded(getattr(sys, name)))


def _uninstall() -> None:
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)


def _replace(owner: Any, name: str, replacement: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, replacement)


def _guard() -> Guard | None:
    """The guard of the calling thread: an answer's own, or one that an answer has started."""
    if guard := _guards.get(threading.get_ident()):
        return guard
    thread = threading.current_thread()
    return next((guard for guard in list(_guards.values()) if thread in guard.started), None)


@functools.cache
def _refusing(what: str, original: Callable) -> Callable:
    @functools.wraps(original)
    def refused(*args: Any, **kwargs: Any) -> Any:
        if _guard():
            raise PermissionError(f"an answer may not {what}")
        return original(*args, **kwargs)

    return refused


@functools.cache
def _shallow(original: Callable) -> Callable:
    @functools.wraps(original)
    def setrecursionlimit(limit: int, /) -> None:
        if _guard() and isinstance(limit, int) and limit > DEEPEST:
            raise PermissionError(f"an answer may not set a recursion limit above {DEEPEST:,}")
        original(limit)

    return setrecursionlimit


@functools.cache
def _noted(original: Callable) -> Callable:
    @functools.wraps(original)
    def start(thread: threading.Thread) -> None:
        # A daemon of a class of its own, such as tqdm's monitor, belongs to a library.
        a_librarys = thread.daemon and type(thread) is not threading.Thread
        if (guard := _guard()) and not a_librarys:
            guard.started.append(thread)
        original(thread)

    return start


def _end(threads: list[threading.Thread]) -> bool:
    """End the threads that still run. Were there any?"""
    for thread in threads:  # those that are about to end by themselves
        if thread.ident is not None:
            thread.join(0.1)
    running = [thread for thread in threads if thread.is_alive()]
    if running:
        try:
            import ctypes
        except ImportError:
            return True
        for thread in running:
            ident, error = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
        for thread in running:
            thread.join(0.1)
    return bool(running)


class _Bounded:
    """`sys.stdout` or `sys.stderr`: passes on what an answer prints, but not without end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        guard = _guard()
        if guard is None:
            return self._stream.write(text)
        left = MOST_PRINTED - guard.printed
        guard.printed += len(text)
        if left > 0:
            self._stream.write(text[:left])
            if len(text) > left:
                self._stream.write("\n… (an answer's output is cut here)\n")
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)
