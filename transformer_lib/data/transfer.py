"""One request over HTTP that always ends: with a body, or with a plain reason why there is none.

``http.client`` limits the wait for each piece of an answer, not for the answer. A server that sends
a header byte by byte, or "100 Continue" again and again, would hold it forever. Here every wait on
the connection ends when the :class:`Clock` has run out, whatever is being sent.
"""

import http
import http.client
import io
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial

PIECE = 1 << 16  # bytes read at a time


class TransferFailure(Exception):
    """A cause; whether another attempt may help, and after how many seconds at the earliest."""

    def __init__(self, cause: str, *, again: bool, pause: float = 0.0):
        super().__init__(cause)
        self.again = again
        self.pause = pause


class Clock:
    """The time that a download may take, from now on.

    Attributes:
        timeout: seconds to wait for any one byte.
        deadline: seconds for everything together.

    Raises:
        ValueError: one of them is not above 0.
    """

    def __init__(self, timeout: float, deadline: float):
        for seconds, name in ((timeout, "timeout"), (deadline, "deadline")):
            if not seconds > 0:
                raise ValueError(f"{name} is {seconds}; it must be a number of seconds above 0.")
        self.timeout, self.deadline = timeout, deadline
        self._end = time.monotonic() + deadline

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 once it is over."""
        return max(0.0, self._end - time.monotonic())

    def patience(self) -> float:
        """Seconds to wait for the next byte.

        Raises:
            TimeoutError: the deadline is over.
        """
        left = self.left
        if not left:
            raise TimeoutError("the deadline is over")
        return min(self.timeout, left)


def get(url: str, size: int, clock: Clock, progress: Callable[[int], object]) -> tuple[bytes, str]:
    """The body of the server's answer and its content type. Redirections are followed.

    A body longer than ``size`` is not read to its end: one byte more is enough to know that it is
    another file. ``progress`` is called with the number of bytes so far.

    The clock does not limit the look-up of the server's name, which the system does. If the server
    has several addresses, each is given the clock's patience to accept a connection.

    Raises:
        TransferFailure: there is no answer, it is not a file, or it did not come in time.

    >>> get("http://localhost:1/a", 5, Clock(timeout=1, deadline=1), print)
    Traceback (most recent call last):
    transformer_lib.data.transfer.TransferFailure: no connection, or it broke (...
    """
    request = urllib.request.Request(url, headers={"User-Agent": "transformer_lib"})
    body = bytearray()
    # The server's own words could contain sequences that a terminal obeys. So the reader sees them
    # only as a repr, and not in a traceback (hence "from None").
    try:
        response = _opener(clock).open(request, timeout=clock.patience())
    except urllib.error.HTTPError as error:
        error.close()
        raise _refusal(error) from None
    except (OSError, http.client.HTTPException) as error:
        raise _breakdown(error, clock, 0, size) from None
    except ValueError as error:  # from urllib, about an address that the server has sent
        raise TransferFailure(
            f"the server redirects to an address that is not valid ({error!r:.200})", again=False
        ) from None
    with response:
        while len(body) <= size:
            try:
                piece = response.read1(PIECE)
            except (OSError, http.client.HTTPException) as error:
                raise _breakdown(error, clock, len(body), size) from None
            if not piece:
                break
            body += piece
            progress(len(body))
        return bytes(body), response.headers.get_content_type()


def _refusal(error: urllib.error.HTTPError) -> TransferFailure:
    """An answer that is not a file."""
    try:
        phrase = " " + http.HTTPStatus(error.code).phrase  # the server's own could say anything
    except ValueError:
        phrase = ""
    if 300 <= error.code < 400:
        phrase += ", a redirection that leads to no file"
    pause = error.headers.get("Retry-After", "")
    return TransferFailure(
        f"the server answered {error.code}{phrase}",
        # Its own errors pass, and so do "timeout" and "too many requests"; the rest stay.
        again=error.code >= 500 or error.code in (408, 429),
        pause=float(pause) if pause.isdecimal() else 0.0,
    )


def _breakdown(error: Exception, clock: Clock, come: int, size: int) -> TransferFailure:
    """A connection that failed, or took too long."""
    if not clock.left:
        return TransferFailure(
            f"only {come:,} of {size:,} bytes came in {clock.deadline:g} s", again=False
        )
    # urllib wraps what happened to the connection.
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    cause = f"no connection, or it broke ({reason!r:.200})"
    if isinstance(reason, ssl.SSLCertVerificationError):
        cause = (
            f"the server's certificate was refused ({reason!r:.200}: this Python has no root "
            f"certificates, or something between you and the server reads along)"
        )
    elif isinstance(reason, TimeoutError):
        cause = f"nothing came for {clock.timeout:g} s"
    elif isinstance(reason, http.client.IncompleteRead):
        cause = "the server ended the connection"
    elif isinstance(reason, socket.gaierror):
        cause = f"the server's name was not found (no network? {reason})"
    again = not isinstance(reason, ssl.SSLCertVerificationError)
    return TransferFailure(f"{cause}, after {come:,} of {size:,} bytes", again=again)


def _opener(clock: Clock) -> urllib.request.OpenerDirector:
    """Opens http and https only (no file:, no ftp:), on connections that obey ``clock``."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirections(),
        _Connections(clock),
    ):
        opener.add_handler(handler)
    return opener


class _Redirections(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, answer, *details):
        answer.close()  # else its body would be read, and that may never end
        return super().redirect_request(request, answer, *details)


class _Connections(urllib.request.AbstractHTTPHandler):
    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def http_open(self, request):
        return self.do_open(partial(self._connection, http.client.HTTPConnection), request)

    def https_open(self, request):
        return self.do_open(partial(self._connection, http.client.HTTPSConnection), request)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def _connection(self, kind, host, timeout):
        """A connection; each redirection makes a new one, with less time left than ``timeout``."""
        connection = kind(host, timeout=self._clock.patience())
        connection.response_class = partial(_Response, self._clock)
        return connection


class _Response(http.client.HTTPResponse):
    """An answer whose every byte, from the status line on, is read through :class:`_Timed`."""

    def __init__(self, clock, connected, *args, **options):
        super().__init__(connected, *args, **options)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), connected, clock))


class _Timed(io.RawIOBase):
    """The bytes of a socket; each wait for some is as long as the clock's patience."""

    def __init__(self, raw, connected, clock):
        self._raw, self._connected, self._clock = raw, connected, clock

    def readable(self):
        return True

    def readinto(self, buffer):
        self._connected.settimeout(self._clock.patience())
        return self._raw.readinto(buffer)

    def close(self):
        self._raw.close()
        super().close()
