"""Measures, and keeps what was measured: a log that is written after each part, within a time."""

import contextlib
import random
import signal
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from transformer_lib.training.gpu.machine import watched
from transformer_lib.training.run_log import new_run, save_run


class OutOfTime(Exception):
    """The program's time is up."""


class Measurements:
    """What was measured so far, and how much time is left.

    Args:
        device: that is measured.
        folder: where the log goes, as ``gpu.json``; None: nowhere.
        seconds: for the whole program.
        config: what was chosen, for the log.
        command: that makes the log; read from ``sys.argv`` if None.

    Attributes:
        result: what each part returned, or why it did not.
        failed: the names of parts that ended with an error.
    """

    def __init__(
        self,
        device: torch.device,
        folder: Path | None,
        seconds: float,
        config: dict[str, Any],
        command: str | None = None,
    ):
        self.command = command
        self.device, self.folder, self.config = device, folder, config
        self.end = time.perf_counter() + seconds
        self.result: dict[str, Any] = {}
        self.failed: list[str] = []
        self.cases: list[str] = []
        self.curve: dict[str, list[float]] = {"case": [], "round": [], "milliseconds": []}
        self._random = random.Random(0)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.perf_counter()

    def part(self, name: str, needs: float, measure: Callable[[], Any]) -> None:
        """Measure and save; a part that does not fit, or fails, is an entry that says so.

        Args:
            needs: seconds without which it is not begun, a guess.
        """
        start = time.perf_counter()
        if self.left < max(needs, 0.01):
            entry: Any = {
                "left out": f"it needs about {needs:.0f} s, and {self.left:.0f} s are left"
            }
        else:
            with watched(self.device) as read:
                try:
                    with stopped_after(self.left):
                        self.free()  # of the part before: an error that stays is an entry, too
                        entry = measure()
                except Exception as error:
                    self.failed.append(name)
                    entry = {"error": described(error)}
            if isinstance(entry, dict) and read:
                entry["nvidia-smi: least, median, most"] = read
        self.result[name] = entry
        self.result.setdefault("seconds", {})[name] = round(time.perf_counter() - start, 1)
        print(f"{name}: {entry}", flush=True)
        self.save()

    def free(self) -> None:
        """Give back what a part has left on a GPU."""
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def save(self) -> None:
        """Write the log as it is."""
        if self.folder is not None:
            config = self.config | {"cases": self.cases}
            log = new_run(
                "gpu", config=config, curve=self.curve, result=self.result, command=self.command
            )
            save_run(log, self.folder)

    def take_turns(
        self, calls: Mapping[str, Callable[[], Any]], *, rounds: int, warm: int
    ) -> dict[str, dict[str, float]]:
        """Milliseconds of each call: all once a round, each round in another order.

        The first ``warm`` rounds do not count. The device has done all when a clock is read. It
        ends early, with the rounds that it has, when a tenth of the time is left.
        """
        times: dict[str, list[float]] = {name: [] for name in calls}
        first, order, reserve = len(self.cases), list(calls), self.left / 10
        self.cases += order
        for number in range(warm + rounds):
            self._random.shuffle(order)
            for name in order:
                seconds = self.seconds(calls[name])
                if number >= warm:
                    times[name].append(1000 * seconds)
                    row = (first + list(calls).index(name), number - warm, 1000 * seconds)
                    for column, value in zip(self.curve.values(), row, strict=True):
                        column.append(value)
            if self.left < reserve and number > warm:
                break
        return {name: spread(values) for name, values in times.items()}

    def seconds(self, call: Callable[[], Any]) -> float:
        """That one call takes, until the device has done what it was told."""
        wait_for(self.device)
        start = time.perf_counter()
        call()
        wait_for(self.device)
        return time.perf_counter() - start

    @contextlib.contextmanager
    def memory(self, into: dict[str, Any]) -> Iterator[None]:
        """A context of which the largest memory that PyTorch held goes into ``into``."""
        if self.device.type != "cuda":
            yield
            return
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self.device)
        yield
        torch.cuda.synchronize(self.device)
        into["gigabytes at most"] = torch.cuda.max_memory_allocated(self.device) / 2**30


def wait_for(device: torch.device) -> None:
    """Return when the device has done what it was told."""
    if device.type != "cpu":
        of_one = () if device.type == "mps" else (device,)
        getattr(torch, device.type).synchronize(*of_one)


def spread(values: list[float]) -> dict[str, float]:
    """The median, the quartiles, and how many there are.

    >>> spread([3.0, 1.0, 2.0])
    {'median': 2.0, 'quartiles': [1.5, 2.5], 'rounds': 3}
    """
    if len(values) < 2:
        return {"median": values[0], "quartiles": [values[0]] * 2, "rounds": len(values)}
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "quartiles": [low, high], "rounds": len(values)}


@contextlib.contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """A context that is left by :class:`OutOfTime` when it takes longer (not on Windows)."""
    main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not main:
        yield
        return

    def stop(number, frame):
        raise OutOfTime(f"it was stopped after {seconds:.0f} s, when the program's time was up")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def described(error: BaseException) -> str:
    """An error in a line or two, with the line of this library that it came from."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "transformer_lib" in f.filename
    ]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}{where}"
