"""Checkpoints that were damaged; and forged: every hash is right, what they say is hostile."""

import json
import os
import struct

from transformer_lib import storage
from transformer_lib.training import checkpoints
from transformer_lib.training.checkpoints import MANIFEST, STATE, TENSORS


def forge(path, tensors=None, state=None, **changes):
    """A checkpoint whose hashes are all right: made by somebody who knows the format."""
    contents = {
        TENSORS: (path / TENSORS).read_bytes() if tensors is None else tensors,
        STATE: (path / STATE).read_bytes() if state is None else state,
    }
    manifest = json.loads((path / MANIFEST).read_bytes())
    del manifest["sha256"]
    manifest["files"] = {name: storage.signature(content) for name, content in contents.items()}
    manifest |= changes
    for name, content in contents.items():
        (path / name).write_bytes(content)
    (path / MANIFEST).write_bytes(checkpoints.signed(manifest))


def header(text, body=b""):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(text)) + text + body


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
TRAVERSAL = {"../../model.safetensors": storage.signature(b""), STATE: storage.signature(b"")}
HOSTILE = {
    "a path that leads out": (MANIFEST, {"files": TRAVERSAL}),
    "an absolute path": (MANIFEST, {"files": {"/etc/passwd": {}, STATE: {}}}),
    "a third file": (MANIFEST, {"files": {TENSORS: {}, STATE: {}, "x.py": {}}}),
    "a size below zero": (MANIFEST, {"files": {TENSORS: {"size": -1}, STATE: {"size": -1}}}),
    "a size without end": (STATE, {"files": {TENSORS: {"size": 2**70}, STATE: {"size": 2**70}}}),
    "a step of another": (MANIFEST, {"step": 3}),
    "a step that is a text": (MANIFEST, {"step": "2; import os"}),
    "a later version": (MANIFEST, {"format_version": 2}),
    "a pickle": (TENSORS, {"tensors": b"\x80\x04cos\nsystem\n(S'touch owned'\ntR."}),
    "a zip of pickles": (TENSORS, {"tensors": b"PK\x03\x04" + bytes(64)}),
    "a huge header": (TENSORS, {"tensors": struct.pack("<Q", 2**62) + b"{}"}),
    "a header of spaces": (TENSORS, {"tensors": header(b"{}" + b" " * 2**24)}),
    "a header beyond the end": (TENSORS, {"tensors": struct.pack("<Q", 1000) + b"{}"}),
    "a tensor beyond the end": (TENSORS, {"tensors": header({"x": ONE | {"shape": [2**40]}})}),
    "a tensor without data": (TENSORS, {"tensors": header({"x": ONE})}),
    "a deep header": (TENSORS, {"tensors": header(b"[" * 100_000)}),
    "an empty file": (TENSORS, {"tensors": b""}),
    "a state that is code": (STATE, {"state": b"__import__('os').system('touch owned')"}),
    "a deep state": (STATE, {"state": b"[" * 100_000}),
    "a state that is a list": (STATE, {"state": b"[]"}),
    "a tensor that is not there": (STATE, {"state": b'{"a":{"__tensor__":"../../x"}}'}),
    "keys that are not hashable": (STATE, {"state": b'{"a":{"__items__":[[[],1]]}}'}),
    "objects in an array": (STATE, {"state": b'{"a":{"__array__":["x"],"dtype":"O"}}'}),
    "a number too long": (STATE, {"state": b'{"a":' + b"9" * 10_000 + b"}"}),
}

DAMAGES = (
    "truncated", "flipped", "zeros", "extended", "swapped", "missing", "other configuration",
    "other vocabulary",
)  # fmt: skip


def damaged(kind, content, old, draw):
    """``content`` with one damage; ``old`` is the same file of the checkpoint before."""
    at = draw.randrange(len(content) - 1)
    flipped = content[at] ^ 1 << draw.randrange(8)
    lost = bytes(len(content[at : at + 512]))  # a block that the disk lost
    result = {
        "truncated": content[:at],
        "flipped": content[:at] + bytes([flipped]) + content[at + 1 :],
        "zeros": content[:at] + lost + content[at + 512 :],
        "extended": content + draw.randbytes(1 + draw.randrange(4)),
        "swapped": old,
    }[kind]
    return result if result != content else damaged(kind, content, old, draw)


def only_reading(event, arguments):
    """For sys.addaudithook: whatever but opening a file to read it ends the process, status 3."""
    if event == "open":
        flags = arguments[2] or 0
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            return
    if event not in ("os.listdir", "os.scandir"):
        os.write(2, f"{event} {arguments!r:.200}\n".encode())
        os._exit(3)
