"""Pairs of sentences to learn translation from: a data set that the field uses, and your own."""

import gzip
import os
from typing import NamedTuple

from transformer_lib.data.downloads import RemoteFile, fetch
from transformer_lib.data.texts import from_file

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


class Pair(NamedTuple):
    """A sentence and its translation.

    >>> source, target = Pair("Rosen", "roses")
    """

    source: str
    target: str


def multi30k(split: str = "train") -> list[Pair]:
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
        _lines(gzip.decompress(fetch(MULTI30K[f"{SPLITS[split]}.{language}"])).decode("utf-8"))
        for language in ("de", "en")
    )
    return [Pair(*sides) for sides in zip(german, english, strict=True)]


def pairs_from_tsv(
    path: str | os.PathLike, *, columns: tuple[int, int] | None = None, encoding: str = "utf-8"
) -> list[Pair]:
    """Your own pairs from one file: one pair a line, with a tab between source and target.

    Blanks around a sentence are removed, empty lines are passed over, and quotation marks are
    ordinary characters.

    Args:
        path: the file.
        columns: which two columns, counted from 0; None: there are exactly two. Tatoeba's pairs
            have a third one with the authors: ``columns=(0, 1)``.
        encoding: as in :func:`~transformer_lib.data.texts.from_file`.

    Raises:
        FileNotFoundError, ValueError: as :func:`~transformer_lib.data.texts.from_file`; also
            ``ValueError`` if a line has too few or too many columns, or nothing in one of them: the
            message names the line.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pairs.tsv")
    ...     _ = path.write_text("Rosen\\troses\\n")
    ...     pairs_from_tsv(path)
    [Pair(source='Rosen', target='roses')]
    """
    _require_columns(columns)
    pairs = []
    for number, line in enumerate(from_file(path, encoding=encoding).split("\n"), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        where = f"line {number} of {os.fspath(path)!r}"
        _require_cells(cells, columns, where)
        pair = Pair(*(cells[column] for column in columns or (0, 1)))
        _require_both(pair, where)
        pairs.append(pair)
    return pairs


def _lines(text: str) -> list[str]:
    """The lines, without the blanks around them. (``splitlines`` also splits at other signs.)"""
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def _require_columns(columns) -> None:
    if columns is None:
        return
    chosen = columns if isinstance(columns, (tuple, list)) else ()
    counts = all(type(column) is int and column >= 0 for column in chosen)
    if not counts or len(chosen) != 2 or len(set(chosen)) != 2:
        raise ValueError(f"columns are {columns}; give two different ones, counted from 0.")


def _require_cells(cells: list[str], columns: tuple[int, int] | None, where: str) -> None:
    number = f"{len(cells)} columns (tabs between them)" if len(cells) > 1 else "no tab"
    found = f"{where} has {number}: {' | '.join(cells)!r:.60}"
    if columns is None and len(cells) != 2:
        raise ValueError(
            f"{found}; a pair has two columns. Put one tab between source and target, or say which "
            f"columns to take: columns=(0, 1)."
        )
    if columns is not None and max(columns) >= len(cells):
        raise ValueError(f"{found}; columns={columns} needs {max(columns) + 1} of them.")


def _require_both(pair: Pair, where: str) -> None:
    if not all(pair):
        side, other = ("target", pair.source) if pair.source else ("source", pair.target)
        raise ValueError(
            f"the {side} in {where} is empty, beside {other[:60]!r}. Fill it in, or delete the "
            f"line."
        )
