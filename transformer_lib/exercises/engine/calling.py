"""Call a reader's answer so that an outcome comes back, whatever it does.

`call_safely` gives back an `Outcome`: a result, an exception, a timeout, an argument written into.
It does not judge right or wrong; `runner` does.
"""

import contextlib
import copy
import dis
import functools
import inspect
import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from transformer_lib.exercises.engine.comparing import plain
from transformer_lib.exercises.engine.guarding import random_kept, settings_kept

# Taken before `guarding` replaces them. Windows and Python in a browser have no timer.
_set_timer = getattr(signal, "setitimer", None)
_set_handler = signal.signal
if _set_timer is not None:
    _PASSING = signal.ITIMER_REAL, signal.SIGALRM, time.monotonic
    _COMPUTING = signal.ITIMER_PROF, signal.SIGPROF, time.process_time


# An alarm that rang while the block is being left would leave the timer on: it would ring on, each
# second, in whatever the program does next.
_LEAVING = contextlib._GeneratorContextManager.__exit__.__code__


class TimeOver(BaseException):
    """Time is up. Not an `Exception`, so that an answer's own `except Exception` lets it pass."""


@dataclass(frozen=True)
class Outcome:
    """One call's `result`, or `error` and `where`; which `inputs` it got and wrote into."""

    result: Any = None
    error: BaseException | None = None
    where: str = ""
    inputs: tuple = ()
    written: tuple[int, ...] = ()


@contextmanager
def time_limit(seconds: float, *, computing: bool = False) -> Iterator[None]:
    """Raise `TimeOver` in the block after `seconds`, and again each second if it is swallowed.

    With `computing`, only the time counts for which this process computes: how busy the machine is
    with other things does not matter, and a block that sleeps is not stopped.

    An import that is under way may go on, up to three times as long again: a module that is left
    half imported would stay broken in the notebook.

    Needs `signal.setitimer` (absent on Windows) and the main thread; elsewhere there is no limit.
    Python runs the alarm between two bytecodes, so one long call into C is waited for, and an
    answer that catches `BaseException` in an endless loop may not be stopped.
    An alarm that somebody else has set is put back, less the time that has passed.
    """
    if not can_be_stopped():
        yield
        return

    caller, granted = sys._getframe(2), 0

    def ring(signum, frame):
        nonlocal granted
        if frame.f_code is _LEAVING:
            return
        if granted < 3 and _imports(frame, caller):
            granted += 1
            _set_timer(timer, seconds, 1.0)
            return
        raise TimeOver

    timer, alarm, clock = _COMPUTING if computing else _PASSING
    before = _set_handler(alarm, ring)
    start = clock()
    others_delay = others_interval = 0.0
    try:
        try:  # it may ring as soon as it is set, on a machine that is busy
            others_delay, others_interval = _set_timer(timer, seconds, 1.0)
            yield
        finally:
            _set_timer(timer, 0)
    finally:  # once more, in case the alarm rings at the very end of the block
        _set_timer(timer, 0)
        _set_handler(alarm, before)
        if others_delay:
            left = max(1e-3, others_delay - (clock() - start))
            _set_timer(timer, left, others_interval)


def _imports(frame: FrameType | None, caller: FrameType) -> bool:
    """Is a module being imported between the caller and this frame?"""
    while frame is not None and frame is not caller:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def can_be_stopped() -> bool:
    """Can `time_limit` end a block here?"""
    return _set_timer is not None and threading.current_thread() is threading.main_thread()


def call_safely(
    call: Callable,
    answer: Any = None,
    inputs: tuple = (),
    *,
    seconds: float,
    code: CodeType | None = None,
    seed: int = 0,
    convert: Callable = plain,
) -> Outcome:
    """Run `call(answer, *copies of inputs)`; the notebook's own state is left alone.

    The result is converted to plain values, under the same limit. Random numbers begin at `seed`.
    An exception is located in `code`, the answer's.
    """
    given = copy.deepcopy(inputs)
    before = [_snapshot(item) for item in given]
    result, error, where = None, None, ""
    with settings_kept(), random_kept(seed):
        try:
            with time_limit(seconds):
                result = convert(call(answer, *given))
        except KeyboardInterrupt:  # the reader's own, at the keyboard
            raise
        except BaseException as caught:  # all else is the answer's: exit() and TimeOver, too
            error, where = caught, _line_of(caught, code)
    pairs = zip(before, given, strict=True)
    written = tuple(n for n, (old, item) in enumerate(pairs) if _written(old, item))
    return Outcome(result, error, where, given, written)


def does_nothing(code: CodeType | None) -> bool:
    """Is this the body of a stub: only `pass`, `...`, a docstring, `return None`?"""
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
        # A reader's `raise`, neither PyTorch's own (who calls an `nn.ModuleList`) nor its "operator
        # not implemented for this device" from C++.
        frame = step.tb_frame
        if frame.f_globals.get("__name__", "").startswith("torch."):
            return False
        return frame.f_code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return isinstance(error, TypeError | AttributeError) and "ellipsis" in message_of(error)


def message_of(error: BaseException, most: int = 300) -> str:
    """The first line of what an exception says, cut, even if it cannot be asked."""
    try:
        text = str(error).strip() or "no message"
    except KeyboardInterrupt:
        raise
    except BaseException:  # `__str__` is the answer's own code
        return "no message"
    line = text.splitlines()[0]
    return line if len(line) <= most else f"{line[:most]} …"


def code_of(answer: Any) -> CodeType | None:
    """The code that an answer runs when it is called, if it is written in Python."""
    while isinstance(answer, functools.partial):
        answer = answer.func
    if isinstance(answer, nn.Module):
        answer = type(answer).forward
    elif not inspect.isroutine(answer):
        answer = type(answer).__call__ if callable(answer) else None
    try:
        code = getattr(inspect.unwrap(answer), "__code__", None) if callable(answer) else None
    except ValueError:  # wrapped in a circle
        return None
    return code if isinstance(code, CodeType) else None


def _line_of(error: BaseException, code: CodeType | None) -> str:
    """The deepest line in the file (or cell) of the answer: what the reader can change."""
    found, step = "", error.__traceback__
    while code is not None and step is not None:
        if step.tb_frame.f_code.co_filename == code.co_filename:
            text = linecache.getline(code.co_filename, step.tb_lineno).strip()
            text = text if len(text) <= 120 else f"{text[:120]} …"
            found = f"line {step.tb_lineno}" + (f", `{text}`" if text else "")
        step = step.tb_next
    return found


def _snapshot(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.detach().clone()
    if isinstance(item, nn.Module):
        return [_snapshot(item.state_dict()), _hooks(item)]
    if isinstance(item, Mapping):
        return {key: _snapshot(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_snapshot(value) for value in item]
    return item


def _hooks(module: nn.Module) -> list[tuple]:
    """What is called along with each part of a module, and its mode: both outlive an answer."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return [(*(len(getattr(m, kind)) for kind in kinds), m.training) for m in module.modules()]


def written_into(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Is one of these copies no more as what it is a copy of?"""
    return any(map(_written, map(_snapshot, before), now))


def _written(old: Any, item: Any) -> bool:
    try:
        return _changed(old, item)
    except Exception:  # so much changed that the two cannot be compared any more
        return True


def _changed(old: Any, item: Any) -> bool:
    if isinstance(item, torch.Tensor):
        if (old.shape, old.dtype, old.device) != (item.shape, item.dtype, item.device):
            return True
        # NaN is compared as equal to NaN: an input may hold one on purpose.
        same = (old == item) | ((old != old) & (item != item))
        return not bool(same.all())
    if isinstance(item, nn.Module):
        return _changed(old[0], item.state_dict()) or old[1] != _hooks(item)
    if isinstance(item, Mapping):
        return old.keys() != item.keys() or any(_changed(old[key], item[key]) for key in old)
    if isinstance(item, list | tuple):
        return len(old) != len(item) or any(map(_changed, old, item))
    return old is not item
