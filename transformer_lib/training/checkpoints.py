"""Checkpoints that survive: whole or not there, checked before they are used, never unpickled.

A checkpoint is a folder ``step-00001000`` with three files:

- ``tensors.safetensors``: all tensors;
- ``state.json``: everything else of the run's state;
- ``manifest.json``: step, configuration, vocabulary, and size and sha256 of the other two. It is
  written in one canonical form and holds its own sha256, so that no byte of it can change unseen.

They are written under a temporary name and flushed to the disk; then the folder is renamed.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from transformer_lib import checks
from transformer_lib.training import files, manifests
from transformer_lib.training.manifests import MANIFEST, NAME, STATE, TENSORS, CheckpointError
from transformer_lib.training.state import pack, unpack

KEPT = 2
MOST_HEADER_BYTES = 2**24  # more than any honest file needs


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What was saved.

    Attributes:
        path: its folder.
        step: how many steps had been taken.
        state: as it was given to :func:`save_checkpoint`, with tensors on the CPU.
        configuration, vocabulary: what it was made for.
        threads: of PyTorch, when it was saved; bit-exact results need the same number.
    """

    path: Path
    step: int
    state: dict[str, Any]
    configuration: dict[str, Any]
    vocabulary: str
    threads: int


def save_checkpoint(
    folder: str | os.PathLike,
    step: int,
    state: Mapping[str, Any],
    *,
    configuration: Mapping[str, Any],
    vocabulary: str,
) -> Path:
    """Write a checkpoint into ``folder`` (made if need be); return its path.

    Whatever kills the program, and whenever, the checkpoints in ``folder`` are whole. The two
    newest intact ones up to this step are kept, and those before them deleted.

    Args:
        folder: of this run, and of no other.
        step: how many steps have been taken.
        state: by name, what ``state_dict()`` and ``random_state()`` return, the position in the
            data and so on; of the types that :func:`~transformer_lib.training.state.pack` knows.
        configuration: what must be equal to go on: sizes, rates; anything that JSON can hold.
        vocabulary: the tokenizer's hash.

    Raises:
        ValueError: ``step`` below 1.
        TypeError: a state, configuration or vocabulary that cannot be stored, or would not be read
            again. Nothing has been written.
        OSError: the disk is full, or the folder cannot be written to. Nothing half-written stays,
            and the checkpoints before are as they were.

    >>> import tempfile
    >>> folder, about = tempfile.mkdtemp(), {"configuration": {"d_model": 3}, "vocabulary": "ab"}
    >>> path = save_checkpoint(folder, 5, {"weight": torch.ones(2), "drawn": 7}, **about)
    >>> load_checkpoint(folder, **about).state
    {'drawn': 7, 'weight': tensor([1., 1.])}
    """
    checks.require_count(step, "step")
    if not isinstance(vocabulary, str):
        raise TypeError(f"vocabulary is {vocabulary!r}; give the tokenizer's hash, a text.")
    tensors, rest = pack(dict(state))
    contents = {TENSORS: safetensors.torch.save(tensors), STATE: files.canonical_json(rest)}
    _check_sizes(contents)
    manifest = {
        "step": step,
        "configuration": dict(configuration),
        "vocabulary": vocabulary,
        "threads": torch.get_num_threads(),
        "files": {name: files.signature(content) for name, content in contents.items()},
    }
    try:
        contents[MANIFEST] = manifests.acceptable(manifest)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"the configuration cannot be stored: {error}. Use finite numbers, texts, lists and "
            f"dictionaries."
        ) from error
    folder = Path(folder)
    try:
        path = _write(folder, step, contents)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the checkpoint of step {step} was not saved ({error.strerror}); those before it are "
            f"as they were. Make room there, or choose another folder",
            str(folder),
        ) from error
    _delete_old(path)
    return path


def load_checkpoint(
    path: str | os.PathLike,
    *,
    configuration: Mapping[str, Any] | None = None,
    vocabulary: str | None = None,
) -> Checkpoint:
    """Read and check a checkpoint: this one, or the newest in this folder of a run.

    Args:
        path: a folder that :func:`save_checkpoint` returned, or the one that it was given.
        configuration, vocabulary: what they must be; None if any will do.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: it is damaged, hostile, or of another configuration or vocabulary; the
            message names the file and the fix, and offers the checkpoint before it.
    """
    path = Path(path)
    if not NAME.fullmatch(path.name) and not (path / MANIFEST).exists():
        found = find_checkpoints(path)
        if not found:
            hint = " (It is a file; a checkpoint is a folder.)" if path.is_file() else ""
            raise FileNotFoundError(
                f"there is no checkpoint in {path}: no folder step-00000000 with a "
                f"{MANIFEST}.{hint} Give the folder that the run saved to."
            )
        path = found[-1]
    try:
        return _read(path, configuration, vocabulary)
    except CheckpointError as error:
        before = _newest_intact(path, configuration, vocabulary)
        raise CheckpointError(error.file, error.cause, error.fix, before) from error


def find_checkpoints(folder: str | os.PathLike) -> list[Path]:
    """The checkpoints in ``folder`` by step, the newest last. They are not checked."""
    folder = Path(folder)
    inside = folder.iterdir() if folder.is_dir() else ()
    found = [p for p in inside if NAME.fullmatch(p.name) and p.is_dir() and not p.is_symlink()]
    return sorted(found, key=_order)


def _order(path: Path) -> tuple[int, int]:
    step, again = NAME.fullmatch(path.name).groups()
    return int(step), int(again or 1)


def _check_sizes(contents: Mapping[str, bytes]) -> None:
    """No file is larger than what is read again."""
    header = int.from_bytes(contents[TENSORS][:8], "little")
    for what, size, most in [
        ("the tensors' names and shapes", header, MOST_HEADER_BYTES),
        ("the state without its tensors", len(contents[STATE]), manifests.MOST_BYTES[STATE]),
    ]:
        if size > most:
            raise TypeError(
                f"{what} take {size:,} bytes, and at most {most:,} are read again. Keep long lists "
                f"as tensors, and many small tensors as one."
            )


def _write(folder: Path, step: int, contents: Mapping[str, bytes]) -> Path:
    files.make_folders(folder)
    for leftover in folder.glob(".step-*.tmp"):  # of a save that was killed
        shutil.rmtree(leftover)
    again = [_order(path)[1] for path in find_checkpoints(folder) if _order(path)[0] == step]
    path = folder / (f"step-{step:08d}" + (f"-{max(again) + 1}" if again else ""))
    temporary = folder / f".{path.name}.tmp"
    try:
        temporary.mkdir()
        for name, content in contents.items():
            files.write_flushed(temporary / name, content)
        files.flush_folder(temporary)
        os.rename(temporary, path)
    finally:
        if temporary.exists():
            shutil.rmtree(temporary)
    files.flush_folder(folder)
    return path


def _delete_old(newest: Path) -> None:
    """Delete what is older than the last two intact ones. (Later steps are not ours to judge.)"""
    intact = 0
    for path in reversed(find_checkpoints(newest.parent)):
        if _order(path) > _order(newest):
            continue
        if intact == KEPT:
            shutil.rmtree(path)
        else:
            intact += path == newest or _is_intact(path)


def _newest_intact(path: Path, configuration=None, vocabulary=None) -> Path | None:
    """The newest acceptable checkpoint before ``path``."""
    if not NAME.fullmatch(path.name):
        return None
    older = [p for p in find_checkpoints(path.parent) if _order(p) < _order(path)]
    accepted = (p for p in reversed(older) if _is_intact(p, configuration, vocabulary))
    return next(accepted, None)


def _is_intact(path: Path, configuration=None, vocabulary=None) -> bool:
    try:
        _read(path, configuration, vocabulary)
    except CheckpointError:
        return False
    return True


def _read(path: Path, configuration, vocabulary) -> Checkpoint:
    manifest = manifests.read_manifest(path)
    manifests.check_purpose(path / MANIFEST, manifest, configuration, vocabulary)
    contents = {}
    for name, expected in manifest["files"].items():
        contents[name] = manifests.read_file(path / name, expected["size"])
        if files.signature(contents[name]) != expected:
            raise CheckpointError(
                path / name, "is damaged: its size or sha256 is not that of the manifest."
            )
    header = int.from_bytes(contents[TENSORS][:8], "little")
    if header > MOST_HEADER_BYTES:
        raise CheckpointError(path / TENSORS, f"claims a header of {header:,} bytes.")
    try:
        tensors = safetensors.torch.load(contents[TENSORS])
    except (safetensors.SafetensorError, ValueError, KeyError, RuntimeError, MemoryError) as error:
        raise CheckpointError(path / TENSORS, f"is no safetensors file ({error}).") from error
    try:
        state = unpack(tensors, json.loads(contents[STATE]))
        state = dict(state.items())
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CheckpointError(path / STATE, f"is no state of a run ({error}).") from error
    described = {key: manifest[key] for key in ("step", "configuration", "vocabulary", "threads")}
    return Checkpoint(path=path, state=state, **described)
