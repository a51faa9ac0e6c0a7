"""Texts to train on: some that need no network, one that the field uses, and the reader's own.

Nothing is downloaded on import. Downloads go through
:func:`transformer_lib.data.downloads.fetch`: verified, cached, or from ``TRANSFORMER_LIB_DATA``.
"""

import codecs
import os
import re
import stat
from pathlib import Path

from transformer_lib.data.downloads import RemoteFile, fetch

TINY_SHAKESPEARE = RemoteFile(
    name="tiny_shakespeare.txt",
    url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    size=1_115_394,
    sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)
# Typographic variants would cost a character tokenizer an entry each and teach it nothing.
TYPOGRAPHIC = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...", "\u00a0": " "}
)
BYTE_ORDER_MARKS = [  # utf-32 first: its mark begins with that of utf-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
OTHER_FILES = {  # by how they begin
    b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"%PDF-": "PDF", b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd",
}  # fmt: skip
MOST_BYTES = 2**28  # of a reader's file: a text is held in memory as a whole, several times over


def python_docs() -> str:
    """Python's own documentation of its language: about 450,000 characters of English prose.

    The topics that ``help("assignment")`` shows, in alphabetical order, each once. Typographic
    quotation marks and dashes become ASCII. Lines under headings, frames of tables, blanks at the
    ends of lines and repeated empty lines are removed. The same version of Python always gives the
    same text; another version has another one.

    Raises:
        RuntimeError: this Python came without its documentation.

    Source: The Python Language Reference, and parts of the Library Reference, as in the standard
    library's ``pydoc_data.topics``.

    >>> python_docs()[:28]
    'The "assert" statement\\n\\nAsse'
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise RuntimeError(
            "this Python has no module pydoc_data.topics: it was installed without its "
            "documentation. Use the Python of python.org or your platform's full package, or "
            "another text: texts.from_file(path)."
        ) from error
    return _clean_docs(topics)


def _clean_docs(topics: dict[str, str]) -> str:
    unique = dict.fromkeys(topics[name].strip() for name in sorted(topics))
    lines = "\n\n".join(unique).translate(TYPOGRAPHIC).split("\n")
    # A line under a heading, or in a table, has at least four signs and no word.
    prose = [line.rstrip() for line in lines if not re.fullmatch(r"\s*[-=*~+|]{4,}\s*", line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip() + "\n"


def tiny_shakespeare() -> str:
    """Speeches from Shakespeare's plays: 1,115,394 characters, 65 of them different.

    Raises:
        DataFileError: the file cannot be had; the message says how to supply it by hand.

    Source: A. Karpathy, char-rnn, ``data/tinyshakespeare``.

    >>> text = tiny_shakespeare()  # doctest: +SKIP
    """
    return fetch(TINY_SHAKESPEARE).decode("ascii")


def coriolanus() -> str:
    """The first three scenes of Shakespeare's *Coriolanus*: 19,759 characters, 58 different.

    They are the beginning of :func:`tiny_shakespeare` and part of this package.

    >>> coriolanus()[:44]
    'First Citizen:\\nBefore we proceed any further'
    """
    return (Path(__file__).parent / "coriolanus.txt").read_text(encoding="ascii")


def from_file(path: str | os.PathLike, *, encoding: str = "utf-8") -> str:
    """The text of your own file, with ``\\n`` at the ends of its lines whatever they were.

    It may begin with a byte order mark, which is not part of the text. At most 256 MiB.

    Raises:
        FileNotFoundError: there is no such file. (Other ``OSError``: it cannot be read.)
        TypeError: ``path`` is not the path of one file.
        ValueError: a folder, a pipe or a device; a file that is too large, or packed; bytes that do
            not fit the encoding (the message names the first one, its place, and the fix); an
            encoding that Python does not know; a text with no visible character.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "roses.txt")
    ...     _ = path.write_bytes("\\ufeffನಮಸ್ಕಾರ, roses\\r\\n".encode())
    ...     from_file(path)
    'ನಮಸ್ಕಾರ, roses\\n'
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path is {path!r:.60}; give the path of one file, a text.")
    if not os.fspath(path):
        raise ValueError("the path is empty (an unset variable?); give the path of a file.")
    path = Path(path)
    text = _decode(_read(path), repr(str(path)), encoding)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not any(c.isprintable() and not c.isspace() for c in text):
        raise ValueError(
            f"{str(path)!r} is empty ({len(text)} characters, none of them visible); there is "
            f"nothing to learn from it. Give a file with text."
        )
    return text


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        address = " (Download it first.)" if path.parts[0] in ("https:", "http:") else ""
        raise FileNotFoundError(
            f"there is no file {str(path)!r}: nothing is at {str(path.absolute())!r}. Give a path "
            f"that begins in the current folder, or an absolute one.{address}"
        ) from error
    _require_readable(path, status)
    with open(path, "rb") as file:
        return file.read(status.st_size)  # no more than was looked at, should it grow meanwhile


def _decode(data: bytes, name: str, encoding: str) -> str:
    """``data``, of the file ``name``, as text."""
    for beginning, kind in OTHER_FILES.items():
        if data.startswith(beginning):
            raise ValueError(f"{name} is a {kind} file. Unpack it, or save its text as UTF-8.")
    try:
        if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
            _require_no_other_mark(data, name)
            encoding = "utf-8"
        text = data.decode(encoding).removeprefix("\ufeff")
    except (LookupError, TypeError) as error:  # also for codecs that do not decode, such as "hex"
        raise ValueError(
            f"encoding is {encoding!r}, which Python does not know as an encoding of text; the "
            f"usual ones are 'utf-8', 'utf-16', 'cp1252' (Western Windows) and 'latin-1'."
        ) from error
    except UnicodeDecodeError as error:
        at = error.start
        fix = "'cp1252' if it comes from Windows, 'latin-1'" if encoding == "utf-8" else "'utf-8'"
        raise ValueError(
            f"{name} is not {encoding}: the byte 0x{data[at]:02x} at offset {at} (line "
            f"{data.count(10, 0, at) + 1}) does not fit ({error.reason}). Save the file as UTF-8, "
            f"or pass the encoding that it has, such as encoding={fix}."
        ) from error
    _require_no_nul(text, name)
    return text


def _require_readable(path: Path, status: os.stat_result) -> None:
    """A regular file that fits into memory. (Reading a pipe or a device might never end.)"""
    if stat.S_ISDIR(status.st_mode):
        raise ValueError(
            f"{str(path)!r} is a folder; give the path of one file. (To train on all texts of a "
            f"folder, make them one: cat folder/*.txt > all.txt.)"
        )
    if not stat.S_ISREG(status.st_mode):
        kind = "a pipe" if stat.S_ISFIFO(status.st_mode) else "a device or a socket"
        raise ValueError(
            f"{str(path)!r} is not a regular file but {kind}. Write what comes from it into a file "
            f"first, and give the path of that."
        )
    if status.st_size > MOST_BYTES:
        raise ValueError(
            f"{str(path)!r} has {status.st_size:,} bytes; at most {MOST_BYTES:,} are read, since "
            f"the whole text is held in memory, several times over. Give a part of it."
        )


def _require_no_other_mark(data: bytes, name: str) -> None:
    for mark, other in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            raise ValueError(
                f"{name} begins with the bytes {mark.hex(' ')}, the mark of {other}; it is not "
                f"UTF-8. Pass encoding={other!r}, or save the file as UTF-8."
            )


def _require_no_nul(text: str, name: str) -> None:
    if "\0" in text:
        raise ValueError(
            f"{name} contains the character NUL (the first is character {text.index(chr(0))}), "
            f"which no text does. It is UTF-16 without a mark (pass encoding='utf-16-le'), or not "
            f"a text file."
        )
