"""Call a reader's answer so that nothing it does can stop the notebook.

`call_safely` gives back an `Outcome` whatever happens: a result, an exception, time over, an
argument written into. It decides nothing about right or wrong; `runner` does.
"""

import copy
import dis
import functools
import inspect
import linecache
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import nn

__all__ = [
    "Outcome",
    "TimeOver",
    "call_safely",
    "does_nothing",
    "own_random_state",
    "still_open",
    "time_limit",
]


class TimeOver(BaseException):
    """Time is up. Not an `Exception`, so that an answer's own `except Exception` lets it pass."""


@dataclass(frozen=True)
class Outcome:
    """What one call did: `result`, or `error` and `where`; which `inputs` it got and wrote into."""

    result: Any = None
    error: BaseException | None = None
    where: str = ""
    inputs: tuple = ()
    written: tuple[int, ...] = ()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeOver` in the block after `seconds`.

    Needs `signal.setitimer` (absent on Windows) and the main thread; elsewhere there is no limit.
    Python runs the alarm between two bytecodes, so one long call into C is waited for, and an
    answer that swallows `BaseException` in an endless loop cannot be stopped.
    An alarm that somebody else has set is put back, less the time that has passed.
    """
    main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not main:
        yield
        return

    def ring(signum, frame):
        raise TimeOver

    before = signal.signal(signal.SIGALRM, ring)
    start = time.monotonic()
    others_delay, others_interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # of its own, in case the alarm rings at the very end of the block
        signal.signal(signal.SIGALRM, before)
        if others_delay:
            left = max(1e-3, others_delay - (time.monotonic() - start))
            signal.setitimer(signal.ITIMER_REAL, left, others_interval)


@contextmanager
def own_random_state(seed: int) -> Iterator[None]:
    """Seeded random numbers on the CPU in the block; the notebook's go on after it as before."""
    before = torch.get_rng_state()
    # Not torch.manual_seed: without a GPU it keeps a stack trace of every call.
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


def call_safely(
    call: Callable, answer: Any, inputs: tuple, *, seconds: float, seed: int = 0
) -> Outcome:
    """Run `call(answer, *copies of inputs)`; the notebook's own random state is left alone."""
    given = copy.deepcopy(inputs)
    before = [_snapshot(item) for item in given]
    result, error, where = None, None, ""
    with own_random_state(seed):
        try:
            with time_limit(seconds):
                result = call(answer, *given)
        except KeyboardInterrupt:  # the reader's own, at the keyboard
            raise
        except BaseException as caught:  # all else is the answer's: exit() and TimeOver, too
            error, where = caught, _line_of(caught, answer)
    written = tuple(
        n for n, (old, item) in enumerate(zip(before, given, strict=True)) if _changed(old, item)
    )
    return Outcome(result, error, where, given, written)


def does_nothing(answer: Any) -> bool:
    """Is the body of this function a stub: only `pass`, `...`, a docstring, `return None`?"""
    code = _code_of(answer)
    if code is None:
        return True
    idle = {"RESUME", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE", "NOP", "POP_TOP", "CACHE"}
    idle |= {"COPY_FREE_VARS", "MAKE_CELL", "LOAD_COMMON_CONSTANT", "LOAD_SMALL_INT", "NOT_TAKEN"}
    return all(step.opname in idle for step in dis.get_instructions(code))


def still_open(error: BaseException | None) -> bool:
    """Does this error come from a part of a stub that nobody has filled in yet?"""
    if isinstance(error, NotImplementedError) and (step := error.__traceback__):
        while step.tb_next:
            step = step.tb_next
        # A `raise` in Python, not PyTorch's "operator not implemented for this device" from C++.
        return step.tb_frame.f_code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return isinstance(error, TypeError | AttributeError) and "ellipsis" in str(error)


def _code_of(answer: Any) -> CodeType | None:
    while isinstance(answer, functools.partial):
        answer = answer.func
    if isinstance(answer, nn.Module):
        answer = type(answer).forward
    elif isinstance(answer, type) and issubclass(answer, nn.Module):
        answer = answer.forward
    elif not inspect.isroutine(answer):
        answer = type(answer).__call__ if callable(answer) else None
    return getattr(inspect.unwrap(answer), "__code__", None) if callable(answer) else None


def _line_of(error: BaseException, answer: Any) -> str:
    """The deepest line in the file (or cell) of the answer: what the reader can change."""
    code = _code_of(answer)
    found, step = "", error.__traceback__
    while code is not None and step is not None:
        if step.tb_frame.f_code.co_filename == code.co_filename:
            text = linecache.getline(code.co_filename, step.tb_lineno).strip()
            found = f"line {step.tb_lineno}" + (f", `{text}`" if text else "")
        step = step.tb_next
    return found


def _snapshot(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.detach().clone()
    if isinstance(item, nn.Module):
        return _snapshot(item.state_dict())
    if isinstance(item, Mapping):
        return {key: _snapshot(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_snapshot(value) for value in item]
    return item


def _changed(old: Any, item: Any) -> bool:
    if isinstance(item, torch.Tensor):
        if (old.shape, old.dtype, old.device) != (item.shape, item.dtype, item.device):
            return True
        # NaN is compared as equal to NaN: an input may hold one on purpose.
        same = (old == item) | ((old != old) & (item != item))
        return not bool(same.all())
    if isinstance(item, nn.Module):
        item = item.state_dict()
    if isinstance(item, Mapping):
        return old.keys() != item.keys() or any(_changed(old[key], item[key]) for key in old)
    if isinstance(item, list | tuple):
        return len(old) != len(item) or any(map(_changed, old, item))
    return old is not item
