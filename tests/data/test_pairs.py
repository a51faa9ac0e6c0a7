"""Pairs of sentences: both sides stay aligned, and a line that does not fit is named."""

import gzip

import pytest

from transformer_lib.data import pairs
from transformer_lib.data.downloads import DataFileError


@pytest.mark.parametrize(
    ("split", "stem"), [("train", "train"), ("val", "val"), ("test", "test_2016_flickr")]
)
def test_multi30k_gives_pairs_german_first(monkeypatch, split, stem, supply):
    # A separator of lines for str.splitlines, but not in these files: the sides must stay aligned.
    sides = {"de": "Eine Frau \nZwei\u2028Männer\n", "en": "A woman\nTwo men\n"}
    files = {
        f"{stem}.{side}": supply(f"multi30k/{stem}.{side}.gz", gzip.compress(text.encode()))
        for side, text in sides.items()
    }
    monkeypatch.setattr(pairs, "MULTI30K", files)
    expected = [("Eine Frau", "A woman"), ("Zwei\u2028Männer", "Two men")]
    assert pairs.multi30k(split) == expected
    if split == "train":
        assert pairs.multi30k() == expected


def test_multi30k_has_three_splits():
    with pytest.raises(ValueError, match="split is 'dev'; choose one of 'train', 'val', 'test'"):
        pairs.multi30k("dev")


def test_every_download_is_described():
    files = pairs.MULTI30K.values()
    assert len({file.name for file in files}) == len({file.sha256 for file in files}) == 6
    names = {f"{stem}.{side}" for stem in pairs.SPLITS.values() for side in ("de", "en")}
    assert names == pairs.MULTI30K.keys()
    for name, file in pairs.MULTI30K.items():
        assert file.name == f"multi30k/{name}.gz"
        assert file.url.startswith("https://")
        assert file.url.endswith(f"/{name}.gz")


def test_the_real_description_refuses_another_file(supply):
    file = pairs.MULTI30K["train.de"]
    supply(file.name, b"x" * file.size)
    with pytest.raises(DataFileError, match=rf"another file.*{file.sha256}"):
        pairs.multi30k()


# --- the reader's own ---


def test_pairs_in_columns(write):
    path = write('\ufeffRosen\t roses \r\n\n"Gib!\tGive!"'.encode())
    read = pairs.pairs_from_tsv(path)
    assert read == [("Rosen", "roses"), ('"Gib!', 'Give!"')]
    assert (read[0].source, read[0].target) == ("Rosen", "roses")
    path = write(b"roses\tRosen\tby Mary\nGo.\tGeh.\tby Susan\n")
    assert pairs.pairs_from_tsv(path, columns=(0, 1)) == [("roses", "Rosen"), ("Go.", "Geh.")]
    assert pairs.pairs_from_tsv(path, columns=(2, 0)) == [("by Mary", "roses"), ("by Susan", "Go.")]
    path = write("für\tfor\n".encode("cp1252"))
    assert pairs.pairs_from_tsv(path, encoding="cp1252") == [("für", "for")]


@pytest.mark.parametrize(
    ("data", "columns", "message"),
    [
        (
            b"a\tb\n\nRosen roses\n",
            None,
            r"line 3 of '.*mine\.txt' has no tab: 'Rosen roses'; a pair has two .* Put one tab",
        ),
        (b"a\tb\tc\n", None, r"line 1 of .* has 3 columns .*columns=\(0, 1\)"),
        (b"a\tb\n", (0, 2), r"has 2 columns .*columns=\(0, 2\) needs 3 of them"),
        (b"a\tb\na\t \n", None, r"the target in line 2 of .* is empty, beside 'a'\. Fill it in"),
        (b"\tb\n", None, "the source in line 1 of .* is empty, beside 'b'"),
        (b"a\tb\n", (0, 0), r"columns are \(0, 0\); give two different ones"),
        (b"a\tb\n", (-1, 0), r"columns are \(-1, 0\)"),
        (b"a\tb\n", (0, 1, 2), r"columns are \(0, 1, 2\); give two"),
        (b"\n", None, "is empty"),
        (b"f\xfcr\tfor\n", None, "byte 0xfc at offset 1"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_lines_that_are_not_pairs(data, columns, message, write):
    with pytest.raises(ValueError, match=message):
        pairs.pairs_from_tsv(write(data), columns=columns)


@pytest.mark.parametrize("columns", [1, ("a", "b"), (0.0, 1.0)])
def test_columns_are_two_counts(columns, tmp_path, as_a_reader):
    with pytest.raises(ValueError, match=r"columns are .*; give two different ones"):
        pairs.pairs_from_tsv(tmp_path / "a.tsv", columns=columns)
