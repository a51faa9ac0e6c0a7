"""Printing to a terminal, which may obey what it is shown, lack a letter, or have been closed."""

import contextlib
import sys
import unicodedata


def say(text: str, end: str = "\n") -> None:
    """Print a result.

    Raises:
        OSError: it cannot be written.
    """
    if sys.stdout is not None:  # so it is if it was closed before the program began
        print(_for_terminal(text, sys.stdout), end=end, flush=True)


def tell(text: str) -> None:
    """Print a message on stderr. Where nobody can read it, that is not a reason to end a run."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(_for_terminal(text, sys.stderr), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """``text`` without what a terminal would obey, or show in another order: that is spelled out.

    (Texts come from files, tokenizers and servers.)

    >>> printable("\\x1b[2J roses")
    '\\\\x1b[2J roses'
    """
    return "".join(ascii(c)[1:-1] if _is_command(c) else c for c in text)


def _is_command(character: str) -> bool:
    if character in "\n\t\u200c\u200d":  # Kannada, for one, needs the last two
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _for_terminal(text: str, stream) -> str:
    encoding = stream.encoding or "utf-8"
    return printable(text).encode(encoding, "backslashreplace").decode(encoding)
