"""Texts: what is read is what is there, and what cannot be read is refused with the fix."""

import gzip
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.data import texts
from transformer_lib.data.downloads import DataFileError, RemoteFile, sha256

VERSE = "ನಮಸ್ಕಾರ, Rosen für Susan\n"


def write(folder, data):
    path = folder / "mine.txt"
    path.write_bytes(data)
    return path


# --- Python's documentation ---


def test_python_docs_is_english_prose_and_always_the_same():
    text = texts.python_docs()
    assert texts.python_docs() == text
    assert 400_000 < len(text) < 800_000  # 3.11: 448 thousand; later versions have more
    assert text.count(" the ") > 3_000
    assert not set(text) & set("‘’“”–—…\r\t\u00a0")
    assert len(set(text)) < 120
    assert not re.search(r"[ ]\n|\n\n\n", text)
    assert not re.search(r"^[*=~-]{4,}$", text, re.MULTILINE)
    assert text.endswith(".\n")
    assert text[0] != "\n"


def test_the_cleaning_by_hand():
    topics = {
        "b": "Rules\n*****\n\n\n\n“It’s”  \n+---+----+\n| a | -- |\n|===|====|\n\n  -x\n",
        "a": "\nFirst — 1–2…\n",
        "c": "First — 1–2…",
    }
    assert texts._clean_docs(topics) == (
        'First -- 1-2...\n\nRules\n\n"It\'s"\n| a | -- |\n\n  -x\n'
    )
    assert texts._clean_docs(dict(reversed(topics.items()))) == texts._clean_docs(topics)


def test_a_python_without_its_documentation(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(RuntimeError, match=r"no module pydoc_data\.topics.*from_file"):
        texts.python_docs()


# --- what is downloaded ---


def supply(folder, monkeypatch, name, data):
    """A small file in the reader's own folder, and the description that fits it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(folder))
    return RemoteFile(name=name, url="http://localhost:1/", size=len(data), sha256=sha256(data))


def test_tiny_shakespeare_is_the_files_text(tmp_path, monkeypatch):
    file = supply(tmp_path, monkeypatch, texts.TINY_SHAKESPEARE.name, b"First Citizen:\nSpeak.\n")
    monkeypatch.setattr(texts, "TINY_SHAKESPEARE", file)
    assert texts.tiny_shakespeare() == "First Citizen:\nSpeak.\n"


@pytest.mark.parametrize(
    ("split", "stem"), [("train", "train"), ("val", "val"), ("test", "test_2016_flickr")]
)
def test_multi30k_gives_pairs_german_first(tmp_path, monkeypatch, split, stem):
    # A separator of lines for str.splitlines, but not in these files: the sides must stay aligned.
    sides = {"de": "Eine Frau \nZwei\u2028Männer\n", "en": "A woman\nTwo men\n"}
    files = {
        f"{stem}.{side}": supply(
            tmp_path, monkeypatch, f"multi30k/{stem}.{side}.gz", gzip.compress(text.encode())
        )
        for side, text in sides.items()
    }
    monkeypatch.setattr(texts, "MULTI30K", files)
    pairs = [("Eine Frau", "A woman"), ("Zwei\u2028Männer", "Two men")]
    assert texts.multi30k(split) == pairs
    if split == "train":
        assert texts.multi30k() == pairs


def test_multi30k_has_three_splits():
    with pytest.raises(ValueError, match="split is 'dev'; choose one of 'train', 'val', 'test'"):
        texts.multi30k("dev")


def test_every_download_is_described():
    files = [texts.TINY_SHAKESPEARE, *texts.MULTI30K.values()]
    assert len({file.name for file in files}) == len({file.sha256 for file in files}) == 7
    for file in files:
        assert file.url.startswith("https://")
    names = {f"{stem}.{side}" for stem in texts.SPLITS.values() for side in ("de", "en")}
    assert names == texts.MULTI30K.keys()
    for name, file in texts.MULTI30K.items():
        assert file.name == f"multi30k/{name}.gz"
        assert file.url.endswith(f"/{name}.gz")


@pytest.mark.parametrize("load", [texts.tiny_shakespeare, texts.multi30k])
def test_the_real_description_refuses_another_file(tmp_path, monkeypatch, load):
    file = texts.TINY_SHAKESPEARE if load is texts.tiny_shakespeare else texts.MULTI30K["train.de"]
    supply(tmp_path, monkeypatch, file.name, b"x" * file.size)
    with pytest.raises(DataFileError, match=rf"another file.*{file.sha256}"):
        load()


# --- the reader's own ---


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf_8_with_and_without_a_mark(tmp_path, mark):
    path = write(tmp_path, mark + VERSE.encode())
    for encoding in ("utf-8", "UTF8", "utf-8-sig"):
        assert texts.from_file(path, encoding=encoding) == VERSE
    assert texts.from_file(str(path)) == VERSE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1"])
def test_other_encodings_are_read_if_they_are_named(tmp_path, encoding):
    path = write(tmp_path, "Rosen für Susan\n".encode(encoding))
    assert texts.from_file(path, encoding=encoding) == "Rosen für Susan\n"


@given(text=st.text(alphabet=st.characters(exclude_characters="\r\0\ufeff", codec="utf-8")))
def test_what_was_written_is_read(tmp_path_factory, text):
    text += "."
    assert texts.from_file(write(tmp_path_factory.getbasetemp(), text.encode())) == text


def test_every_end_of_line_becomes_one(tmp_path):
    assert texts.from_file(write(tmp_path, b"a\r\nb\rc\n\r\nd")) == "a\nb\nc\n\nd"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_wrong_encoding_names_the_byte_its_place_and_the_fix(tmp_path, mark):
    path = write(tmp_path, mark + "Rosen\nfür Susan".encode("latin-1"))
    at = len(mark) + 7
    with pytest.raises(ValueError, match="is not utf-8") as caught:
        texts.from_file(path)
    assert f"{path} is not utf-8: the byte 0xfc at offset {at} (line 2)" in str(caught.value)
    assert path.read_bytes()[at] == 0xFC
    assert "encoding='cp1252' if it comes from Windows, 'latin-1'" in str(caught.value)


def test_a_wrong_encoding_that_was_named(tmp_path):
    path = write(tmp_path, "für".encode())
    with pytest.raises(
        ValueError, match=r"not ascii: the byte 0xc3 at offset 1 .* encoding='utf-8'"
    ):
        texts.from_file(path, encoding="ascii")
    for unknown in ("klingon", "hex"):
        with pytest.raises(ValueError, match=rf"encoding is '{unknown}'.*the usual ones are"):
            texts.from_file(path, encoding=unknown)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_unicode_is_recognised(tmp_path, encoding):
    path = write(tmp_path, "Rosen".encode(encoding))
    with pytest.raises(ValueError, match=rf"the mark of {encoding}; .* Pass encoding='{encoding}'"):
        texts.from_file(path)
    with pytest.raises(ValueError, match=r"character NUL \(the first is character 1\).*utf-16-le"):
        texts.from_file(write(tmp_path, "Rosen".encode("utf-16-le")))


@pytest.mark.parametrize("data", [b"", b" \r\n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_text(tmp_path, data):
    with pytest.raises(ValueError, match=r"mine\.txt is empty .* Give a file with text"):
        texts.from_file(write(tmp_path, data))


def test_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"nothing is at {tmp_path / 'mine.txt'}"):
        texts.from_file("mine.txt")


def test_a_text_shorter_than_a_block():
    texts.check_block_fits("roses", block=4)
    with pytest.raises(ValueError, match=r"has 5 characters and a block needs 5 \+ 1 .* at most 4"):
        texts.check_block_fits("roses", block=5)
    with pytest.raises(ValueError, match="has 0 characters"):
        texts.check_block_fits("", block=1)


def test_pairs(tmp_path):
    path = write(tmp_path, '\ufeffRosen\t roses \r\n\n"Gib!\tGive!"'.encode())
    assert texts.pairs_from_tsv(path) == [("Rosen", "roses"), ('"Gib!', 'Give!"')]
    path = write(tmp_path, b"roses\tRosen\tby Mary\nGo.\tGeh.\tby Susan\n")
    assert texts.pairs_from_tsv(path, columns=(0, 1)) == [("roses", "Rosen"), ("Go.", "Geh.")]
    assert texts.pairs_from_tsv(path, columns=(2, 0)) == [("by Mary", "roses"), ("by Susan", "Go.")]
    path = write(tmp_path, "für\tfor\n".encode("cp1252"))
    assert texts.pairs_from_tsv(path, encoding="cp1252") == [("für", "for")]


@pytest.mark.parametrize(
    ("data", "columns", "message"),
    [
        (b"a\tb\n\nRosen roses\n", None, r"line 3: 'Rosen roses' has 1 columns .* Put one tab"),
        (b"a\tb\tc\n", None, r"line 1: .* has 3 columns .*columns=\(0, 1\)"),
        (b"a\tb\n", (0, 2), r"has 2 columns .*columns=\(0, 2\) needs 3 of them"),
        (b"a\tb\na\t \n", None, "line 2: .*its target is empty"),
        (b"\tb\n", None, "line 1: .*its source is empty"),
        (b"a\tb\n", (0, 0), r"columns are \(0, 0\); give two different ones"),
        (b"a\tb\n", (-1, 0), r"columns are \(-1, 0\)"),
        (b"\n", None, "is empty"),
        (b"f\xfcr\tfor\n", None, "byte 0xfc at offset 1"),
    ],
)
def test_lines_that_are_no_pairs(tmp_path, data, columns, message):
    with pytest.raises(ValueError, match=message):
        texts.pairs_from_tsv(write(tmp_path, data), columns=columns)
