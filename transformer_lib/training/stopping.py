"""Being asked to stop: SIGTERM (a machine that is taken back) and Ctrl-C end a run in order."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(Exception):
    """The run was asked to stop, and has been saved."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Stopping:
    """Notes a signal, so that the step in progress can be finished and saved.

    Attributes:
        number: of the signal that came; None so far.
    """

    def __init__(self):
        self.number: int | None = None
        self._at_once = False

    def note(self, number: int, frame=None) -> None:
        """A signal has come: a second Ctrl-C ends the program as usual, without saving."""
        if number == signal.SIGINT and self.number is not None:
            raise KeyboardInterrupt
        self.number = number
        if self._at_once:
            raise Stopped(number)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within it nothing needs to be finished (all is saved): a signal raises at once.

        Raises:
            Stopped: a signal comes, or has come before.
        """
        self._at_once = True
        try:
            if self.number is not None:
                raise Stopped(self.number)
            yield
        finally:
            self._at_once = False


@contextmanager
def watching() -> Iterator[Stopping]:
    """A :class:`Stopping` to which SIGTERM and SIGINT go within, and not after.

    (In a thread, to which Python sends no signals, it never learns of any.)

    >>> with watching() as stopping:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stopping.number == signal.SIGTERM
    True
    """
    stopping = Stopping()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    before = {n: signal.signal(n, stopping.note) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
