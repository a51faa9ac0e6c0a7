"""Texts to train on: one that every Python carries, two that the field uses, and the reader's own.

Nothing is downloaded on import. What is downloaded comes through
:func:`transformer_lib.data.downloads.fetch`: verified, cached, or from ``TRANSFORMER_LIB_DATA``.
"""

import codecs
import gzip
import os
import re
from pathlib import Path

from transformer_lib.data.downloads import RemoteFile, fetch

TINY_SHAKESPEARE = RemoteFile(
    name="tiny_shakespeare.txt",
    url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    size=1_115_394,
    sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)
MULTI30K = {
    name: RemoteFile(
        name=f"multi30k/{name}.gz",
        url=f"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/{name}.gz",
        size=size,
        sha256=sha256,
    )
    for name, size, sha256 in [
        ("train.de", 637_044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
        ("train.en", 568_929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
        ("val.de", 24_681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
        ("val.en", 21_650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
        (
            "test_2016_flickr.de",
            22_890,
            "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        ),
        (
            "test_2016_flickr.en",
            21_077,
            "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        ),
    ]
}
SPLITS = {"train": "train", "val": "val", "test": "test_2016_flickr"}
# Signs that look like others cost a character tokenizer an entry each and teach it nothing.
TYPOGRAPHIC = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...", "\u00a0": " "}
)
BYTE_ORDER_MARKS = [  # utf-32 first: its mark begins with that of utf-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]


def python_docs() -> str:
    """Python's own documentation of its language: about 450,000 characters of English prose.

    The topics that ``help("assignment")`` shows, in alphabetical order, each once. Typographic
    quotation marks and dashes become ASCII; rules of lines and the frames of tables, blanks at the
    ends of lines and runs of empty lines go. One version of Python always gives the same text;
    another version has another text.

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
    # Under a heading, or of a table: at least four signs, no words.
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


def multi30k(split: str = "train") -> list[tuple[str, str]]:
    """Captions of photographs as pairs (German, English), one line each.

    Args:
        split: ``"train"`` (29,000 pairs), ``"val"`` (1,014) or ``"test"`` (1,000, of 2016, Flickr).

    Raises:
        ValueError: ``split`` is none of these.
        DataFileError: a file cannot be had; the message says how to supply it by hand.

    Source: Elliott et al., 2016, "Multi30K: Multilingual English-German Image Descriptions";
    task 1, raw.

    >>> pairs = multi30k("val")  # doctest: +SKIP
    """
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}; choose one of {', '.join(map(repr, SPLITS))}.")
    german, english = (
        [
            line.strip()
            for line in gzip.decompress(fetch(MULTI30K[f"{SPLITS[split]}.{language}"]))
            .decode("utf-8")
            .removesuffix("\n")
            .split("\n")
        ]
        for language in ("de", "en")
    )
    return list(zip(german, english, strict=True))


def from_file(path: str | os.PathLike, *, encoding: str = "utf-8") -> str:
    """The text of your own file, with ``\\n`` at the ends of its lines whatever they were.

    UTF-8 may begin with a byte order mark, which is no part of the text.

    Raises:
        FileNotFoundError: there is no such file. (Other ``OSError``: it cannot be read.)
        ValueError: bytes that the encoding does not know (the message names the first one, where
            it is, and the fix), an encoding that Python does not know, a text without a character
            that is not blank.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "roses.txt")
    ...     _ = path.write_bytes("\\ufeffನಮಸ್ಕಾರ, roses\\r\\n".encode())
    ...     from_file(path)
    'ನಮಸ್ಕಾರ, roses\\n'
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"there is no file {str(path)!r}: nothing is at {path.absolute()}. Give a path that "
            f"begins there, or an absolute one."
        )
    text = _decode(path.read_bytes(), path, encoding).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ValueError(
            f"{path} is empty ({len(text)} characters, none of them visible); there is nothing to "
            f"learn from it. Give a file with text."
        )
    return text


def _decode(data: bytes, path: Path, encoding: str) -> str:
    try:
        skipped = 0
        if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
            _refuse_other_marks(data, path)
            encoding = "utf-8"
            skipped = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
        text = data[skipped:].decode(encoding)
    except LookupError as error:  # also for codecs that make no text, such as "hex"
        raise ValueError(
            f"encoding is {encoding!r}, which Python does not know as one of texts; the usual ones "
            f"are 'utf-8', 'utf-16', 'cp1252' (Western Windows) and 'latin-1'."
        ) from error
    except UnicodeDecodeError as error:
        at = error.start + skipped
        fix = "'cp1252' if it comes from Windows, 'latin-1'" if encoding == "utf-8" else "'utf-8'"
        raise ValueError(
            f"{path} is not {encoding}: the byte 0x{data[at]:02x} at offset {at} (line "
            f"{data.count(10, 0, at) + 1}) does not fit ({error.reason}). Save the file as UTF-8, "
            f"or pass the encoding that it has, such as encoding={fix}."
        ) from error
    if "\0" in text:
        raise ValueError(
            f"{path} contains the character NUL (the first is character {text.index(chr(0))}); no "
            f"text does. It is UTF-16 without a mark (pass encoding='utf-16-le'), or no text file."
        )
    return text


def _refuse_other_marks(data: bytes, path: Path) -> None:
    for mark, other in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            raise ValueError(
                f"{path} begins with the bytes {mark.hex(' ')}, the mark of {other}; it is not "
                f"UTF-8. Pass encoding={other!r}, or save the file as UTF-8."
            )


def check_block_fits(text: str, block: int) -> None:
    """``text`` fills at least one block: ``block`` characters and the one to predict after them.

    It counts characters; if a token is more than a character, compare the number of tokens.

    Raises:
        ValueError: the text is shorter than that, or empty.

    >>> check_block_fits("roses", block=4)
    """
    if len(text) < block + 1:
        raise ValueError(
            f"the text has {len(text)} characters and a block needs {block} + 1 (the last "
            f"character's target). Give a longer text, or choose a block of at most "
            f"{max(len(text) - 1, 0)}."
        )


def pairs_from_tsv(
    path: str | os.PathLike, *, columns: tuple[int, int] | None = None, encoding: str = "utf-8"
) -> list[tuple[str, str]]:
    """Your own pairs (source, target): one a line, with a tab between them.

    Blanks around a sentence go, empty lines are passed over, and quotation marks are ordinary
    characters.

    Args:
        path: the file.
        columns: which two columns, counted from 0; None: there are exactly two. Tatoeba's pairs
            have a third one with the authors: ``columns=(0, 1)``.
        encoding: as in :func:`from_file`.

    Raises:
        FileNotFoundError, ValueError: as :func:`from_file`; also ``ValueError`` if a line has
            other columns, or nothing in one of them: the message names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.tsv")
    ...     _ = path.write_text("Rosen\\troses\\nGib!\\tGive!\\n")
    ...     pairs_from_tsv(path)
    [('Rosen', 'roses'), ('Gib!', 'Give!')]
    """
    if columns is not None and (min(columns) < 0 or columns[0] == columns[1]):
        raise ValueError(f"columns are {columns}; give two different ones, counted from 0.")
    pairs = []
    for number, line in enumerate(from_file(path, encoding=encoding).split("\n"), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        where = f"{path}, line {number}: {line[:60]!r} has {len(cells)} columns (tabs between them)"
        if columns is None and len(cells) != 2:
            raise ValueError(
                f"{where}; a pair has two. Put one tab between source and target, or say which "
                f"columns to take: columns=(0, 1)."
            )
        if columns is not None and max(columns) >= len(cells):
            raise ValueError(f"{where}; columns={columns} needs {max(columns) + 1} of them.")
        source, target = (cells[column] for column in columns or (0, 1))
        if not source or not target:
            raise ValueError(
                f"{where}; its {'target' if source else 'source'} is empty. Fill it in, or delete "
                f"the line."
            )
        pairs.append((source, target))
    return pairs
