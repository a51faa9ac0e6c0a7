"""Texts: what is read is what is there, and what cannot be read is refused with the fix."""

import bz2
import hashlib
import lzma
import os
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.data import texts
from transformer_lib.data.downloads import DataFileError

VERSE = "ನಮಸ್ಕಾರ, Rosen für Susan\n"


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


def test_coriolanus_is_the_beginning_of_tiny_shakespeare():
    text = texts.coriolanus()
    assert (len(text), len(set(text))) == (19_759, 58)
    assert text.startswith("First Citizen:\nBefore we proceed any further, hear me speak.\n")
    assert text.endswith("VALERIA:\nWell, then, farewell.\n")
    known = hashlib.sha256(text.encode("ascii")).hexdigest()
    assert known == "8e0b005e46f9ad754c66c1d71ca2bfae923cc97187fe26ae7def7ff879f0fbaf"


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


def test_tiny_shakespeare_is_the_files_text(monkeypatch, supply):
    file = supply(texts.TINY_SHAKESPEARE.name, b"First Citizen:\nSpeak.\n")
    monkeypatch.setattr(texts, "TINY_SHAKESPEARE", file)
    assert texts.tiny_shakespeare() == "First Citizen:\nSpeak.\n"


def test_the_download_is_described():
    assert texts.TINY_SHAKESPEARE.url.startswith("https://")


def test_the_real_description_refuses_another_file(supply):
    file = texts.TINY_SHAKESPEARE
    supply(file.name, b"x" * file.size)
    with pytest.raises(DataFileError, match=rf"another file.*{file.sha256}"):
        texts.tiny_shakespeare()


# --- the reader's own ---


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf_8_with_and_without_a_mark(mark, write):
    path = write(mark + VERSE.encode())
    for encoding in ("utf-8", "UTF8", "utf-8-sig"):
        assert texts.from_file(path, encoding=encoding) == VERSE
    assert texts.from_file(str(path)) == VERSE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1"])
def test_other_encodings_are_read_if_they_are_named(encoding, write):
    path = write("Rosen für Susan\n".encode(encoding))
    assert texts.from_file(path, encoding=encoding) == "Rosen für Susan\n"


@pytest.mark.slow
@given(text=st.text(alphabet=st.characters(exclude_characters="\r\0\ufeff", codec="utf-8")))
def test_what_was_written_is_read(tmp_path_factory, text):
    text += "."
    path = tmp_path_factory.getbasetemp() / "mine.txt"
    path.write_bytes(text.encode())
    assert texts.from_file(path) == text


def test_every_end_of_line_becomes_one(write):
    assert texts.from_file(write(b"a\r\nb\rc\n\r\nd")) == "a\nb\nc\n\nd"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_wrong_encoding_names_the_byte_its_place_and_the_fix(mark, write):
    path = write(mark + "Rosen\nfür Susan".encode("latin-1"))
    at = len(mark) + 7
    with pytest.raises(ValueError, match="is not utf-8") as caught:
        texts.from_file(path)
    assert f"'{path}' is not utf-8: the byte 0xfc at offset {at} (line 2)" in str(caught.value)
    assert path.read_bytes()[at] == 0xFC
    assert "encoding='cp1252' if it comes from Windows, 'latin-1'" in str(caught.value)


def test_a_wrong_encoding_that_was_named(write):
    path = write("für".encode())
    with pytest.raises(
        ValueError, match=r"not ascii: the byte 0xc3 at offset 1 .* encoding='utf-8'"
    ):
        texts.from_file(path, encoding="ascii")
    for unknown in ("klingon", "hex"):
        with pytest.raises(ValueError, match=rf"encoding is '{unknown}'.*the usual ones are"):
            texts.from_file(path, encoding=unknown)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_unicode_is_recognised(encoding, write):
    path = write("Rosen".encode(encoding))
    with pytest.raises(ValueError, match=rf"the mark of {encoding}; .* Pass encoding='{encoding}'"):
        texts.from_file(path)
    with pytest.raises(ValueError, match=r"character NUL \(the first is character 1\).*utf-16-le"):
        texts.from_file(write("Rosen".encode("utf-16-le")))


@pytest.mark.parametrize("data", [b"", b" \r\n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_text(data, write):
    with pytest.raises(ValueError, match=r"mine\.txt' is empty .* Give a file with text"):
        texts.from_file(write(data))


def test_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"nothing is at '{tmp_path / 'mine.txt'}'"):
        texts.from_file("mine.txt")


def test_a_path_through_a_file_and_a_path_of_nothing(tmp_path, write):
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*mine\.txt/below'"):
        texts.from_file(write(b"roses") / "below")
    with pytest.raises(ValueError, match=r"the path is empty .* give the path of a file"):
        texts.from_file("")
    with pytest.raises(ValueError, match=rf"'{tmp_path}' is a folder; give the path of one file"):
        texts.from_file(tmp_path)


def test_a_link_is_followed(tmp_path, write):
    (tmp_path / "link").symlink_to(write(b"roses"))
    assert texts.from_file(tmp_path / "link") == "roses"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"pipe' is not a regular file but a pipe\. Write what"):
        texts.from_file(tmp_path / "pipe")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_a_device_is_refused(device):
    with pytest.raises(ValueError, match=rf"'{device}' is not a regular file but a device"):
        texts.from_file(device)


def test_a_file_that_is_too_large_is_not_read(write):
    path = write(b"roses")
    os.truncate(path, 2**40)  # a hole: it takes no room on the disk
    with pytest.raises(ValueError, match=r"has 1,099,511,627,776 bytes; at most 268,435,456 are"):
        texts.from_file(path)


def test_the_largest_file_is_read(monkeypatch, write):
    monkeypatch.setattr(texts, "MOST_BYTES", 5)
    assert texts.from_file(write(b"roses")) == "roses"
    with pytest.raises(ValueError, match="has 6 bytes; at most 5 are read"):
        texts.from_file(write(b"thorns"))


def test_a_name_with_an_escape_sequence_is_shown_escaped(tmp_path):
    path = tmp_path / "a\x1b[2J"
    with pytest.raises(FileNotFoundError) as missing:
        texts.from_file(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty") as empty:
        texts.from_file(path)
    assert "\x1b" not in str(missing.value) + str(empty.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\u200b\u200b".encode(), "none of them visible"),
        (b"\x1f\x8b\x08roses", "is a gzip file. Unpack it"),
        (b"%PDF-1.4 roses", "is a PDF file"),
        *((bz2.compress(b"roses"), "is a bzip2 file"), (lzma.compress(b"roses"), "is a xz file")),
    ],
)
def test_a_file_without_a_text_is_refused(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        texts.from_file(tmp_path / "a.txt")


def test_a_mark_of_byte_order_is_not_of_the_text_in_any_encoding(tmp_path):
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        (tmp_path / "a.txt").write_bytes("\ufeffroses".encode(encoding))
        assert texts.from_file(tmp_path / "a.txt", encoding=encoding) == "roses"


def test_an_address_is_not_a_path():
    with pytest.raises(FileNotFoundError, match=r"there is no file .* \(Download it first\.\)"):
        texts.from_file("https://example.org/a.txt")


@pytest.mark.parametrize("path", [None, ["a.txt"], b"a.txt"])
def test_a_path_is_a_text(path, as_a_reader):
    with pytest.raises(TypeError, match="give the path of one file"):
        texts.from_file(path)
