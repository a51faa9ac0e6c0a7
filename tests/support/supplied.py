"""Files that a reader has: their own, and those in the folder ``TRANSFORMER_LIB_DATA`` names."""

from transformer_lib.data.downloads import RemoteFile, sha256


def write(folder, data, name="mine.txt"):
    """A file with these bytes."""
    path = folder / name
    path.write_bytes(data)
    return path


def supply(folder, monkeypatch, name, data):
    """A small file in the reader's own folder, and the description that fits it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(folder))
    return RemoteFile(name=name, url="http://localhost:1/", size=len(data), sha256=sha256(data))
