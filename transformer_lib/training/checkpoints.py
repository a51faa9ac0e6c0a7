"""Checkpoints that survive: whole or not there, checked before they are used, never unpickled.

A checkpoint is a folder ``step-00001000`` with three files:

- ``tensors.safetensors``: all tensors;
- ``state.json``: everything else of the run's state;
- ``manifest.json``: step, configuration, vocabulary, and size and sha256 of the other two. It is
  written in one canonical form and holds its own sha256, so that a damaged byte is noticed there,
  too. (What may come from a stranger, and what that may do: see :mod:`transformer_lib.storage`.)

They are written under a temporary name and flushed to the disk; then the folder is renamed. One
that is deleted is renamed first.
"""

import os
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from transformer_lib import checks, storage
from transformer_lib.storage import UnusableFileError
from transformer_lib.training.state import pack, unpack

FORMAT, FORMAT_VERSION = "transformer_lib checkpoint", 1
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
# A second save of the same step is step-00001000-2: the first is whole until the second is.
NAME = re.compile(r"step-(\d{8,18})(?:-(\d{1,9}))?")
KEPT = 2
# More than any honest one needs.
MOST_BYTES = {MANIFEST: storage.MOST_JSON_BYTES, STATE: storage.MOST_JSON_BYTES, TENSORS: 2**40}
MOST_HEADER_BYTES = 2**22
COPY = "Copy it again from where it came."
Sizes = Callable[[Mapping[str, Any]], tuple[int, int]]


class CheckpointError(ValueError):
    """A checkpoint that is refused.

    Attributes:
        file: which of its files.
        cause, fix: what is wrong with it, and what to do.
        before: the newest checkpoint before it that would be accepted; None if there is none.
    """

    def __init__(self, file: Path, cause: str, fix: str = COPY, before: Path | None = None):
        offer = "No checkpoint before it can be used instead."
        if before is not None:
            offer = f"The one before it is intact: load_checkpoint({str(before)!r})."
        super().__init__(f"{file} {cause} {fix} {offer}")
        self.file, self.cause, self.fix, self.before = file, cause, fix, before


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A saved state and where it came from.

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
        ValueError: ``step`` below 1, or of more than 18 digits.
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
    if step >= 10**18:
        raise ValueError(f"step is {step}; a checkpoint's name has room for 18 digits.")
    if not isinstance(vocabulary, str):
        raise TypeError(f"vocabulary is {vocabulary!r}; give the tokenizer's hash, a text.")
    if not isinstance(state, Mapping):
        raise TypeError(
            f"the state is of type {type(state).__name__}; give a dictionary of what state_dict() "
            f"returns."
        )
    tensors, rest = pack(dict(state))
    contents = {TENSORS: safetensors.torch.save(tensors), STATE: storage.canonical_json(rest)}
    try:
        manifest = {
            "step": int(step),
            # As it is read again: keys become texts, and are then sorted as texts.
            "configuration": storage.parse_json(storage.canonical_json(dict(configuration))),
            "vocabulary": vocabulary,
            "threads": torch.get_num_threads(),
            "files": {name: storage.signature(content) for name, content in contents.items()},
        }
        contents[MANIFEST] = signed(manifest)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"the configuration cannot be stored: {error}. Use finite numbers, texts, lists and "
            f"dictionaries."
        ) from error
    _require_readable(contents)
    folder = Path(folder)
    try:
        path = _write(folder, step, contents)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the checkpoint of step {step} was not saved ({error.strerror or error}); those "
            f"before it are as they were. Make room there, or choose another folder",
            str(folder),
        ) from error
    _delete_old(path)
    return path


def load_checkpoint(
    path: str | os.PathLike,
    *,
    configuration: Mapping[str, Any] | None = None,
    vocabulary: str | None = None,
    sizes: Sizes | None = None,
) -> Checkpoint:
    """Read and check a checkpoint: this one, or the newest in this folder of a run.

    Args:
        path: a folder that :func:`save_checkpoint` returned, or the one that it was given.
        configuration, vocabulary: what they must be; None if any will do.
        sizes: of the checkpoint's configuration, the least and the most bytes that its tensors may
            take. They are compared before anything is read; without, a file is read whole, however
            long it is.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: it is damaged, hostile, or of another configuration or vocabulary; the
            message names the file and the fix, and offers the checkpoint before it.
    """
    return _read_newest(path, configuration, vocabulary, sizes)


def describe_checkpoint(path: str | os.PathLike, *, sizes: Sizes | None = None) -> Checkpoint:
    """The manifest of this checkpoint, or of the newest in this folder, without a state.

    Raises:
        FileNotFoundError, CheckpointError: as :func:`load_checkpoint`.
    """
    return _read_newest(path, None, None, sizes, with_state=False)


def find_checkpoints(folder: str | os.PathLike) -> list[Path]:
    """The checkpoints in ``folder`` by step, the newest last. They are not checked."""
    folder = Path(folder)
    inside = folder.iterdir() if folder.is_dir() else ()
    found = [p for p in inside if NAME.fullmatch(p.name) and p.is_dir() and not p.is_symlink()]
    return sorted(found, key=_order)


def newest_checkpoint(path: str | os.PathLike) -> Path:
    """``path``, if it is a checkpoint, or the newest in this folder of a run. It is not checked.

    Raises:
        FileNotFoundError: there is none.
    """
    path = Path(path)
    has_manifest = os.path.lexists(path / MANIFEST)
    if NAME.fullmatch(path.name) and (has_manifest or path.is_symlink()):
        return path
    if found := find_checkpoints(path):  # whatever else lies there
        return found[-1]
    if has_manifest or (NAME.fullmatch(path.name) and path.exists()):
        return path
    hint = " (It is a file; a checkpoint is a folder.)" if path.is_file() else ""
    raise FileNotFoundError(
        f"there is no checkpoint in {path}: no folder step-00000000 with a {MANIFEST}.{hint} Give "
        f"the folder that the run saved to."
    )


def saved_step(path: Path) -> int:
    """The step that a checkpoint's name says."""
    return _order(path)[0]


def signed(manifest: Mapping[str, Any]) -> bytes:
    """The manifest's file: with format, version, and the sha256 of all that it says.

    >>> signed({})[:52]
    b'{"format":"transformer_lib checkpoint","format_versi'
    """
    manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, **manifest}
    own = storage.sha256(storage.canonical_json(manifest))
    return storage.canonical_json({**manifest, "sha256": own})


def differences(saved: Any, wanted: Any, name: str = "") -> Iterator[str]:
    """The differences of two configurations, entry by entry.

    >>> list(differences({"lr": 0.1, "seed": 0}, {"lr": 0.2, "seed": 0}))
    ['lr is 0.1 there and 0.2 here']
    """
    if isinstance(saved, dict) and isinstance(wanted, dict):
        for key in sorted(saved.keys() | wanted.keys()):
            inner = f"{name}.{key}" if name else key
            if key not in wanted:
                yield f"{inner} is {reprlib.repr(saved[key])} there and absent here"
            elif key not in saved:
                yield f"{inner} is absent there and {reprlib.repr(wanted[key])} here"
            else:
                yield from differences(saved[key], wanted[key], inner)
    elif saved != wanted:
        yield f"{name} is {reprlib.repr(saved)} there and {reprlib.repr(wanted)} here"


def _order(path: Path) -> tuple[int, int]:
    step, again = NAME.fullmatch(path.name).groups()
    return int(step), int(again or 1)


def _write(folder: Path, step: int, contents: Mapping[str, bytes]) -> Path:
    storage.make_folders(folder)
    storage.sweep(folder, "step-*")  # left by a program that was killed
    again = [_order(path)[1] for path in find_checkpoints(folder) if saved_step(path) == step]
    path = folder / (f"step-{step:08d}" + (f"-{max(again) + 1}" if again else ""))
    storage.write_folder(path, contents)
    return path


def _delete_old(newest: Path) -> None:
    """Delete what is older than the last two intact ones. (Leave those of later steps alone.)"""
    intact = 0
    for path in reversed(find_checkpoints(newest.parent)):
        if _order(path) > _order(newest):
            continue
        if intact == KEPT:
            storage.remove_folder(path)
        else:
            intact += path == newest or _is_intact(path)


def _read_newest(path: str | os.PathLike, *about, with_state: bool = True) -> Checkpoint:
    newest = newest_checkpoint(path)
    try:
        with _offering_the_one_before(newest, *about):
            return _read(newest, *about, with_state=with_state)
    except CheckpointError:
        if os.path.lexists(newest):
            raise
    return _read_newest(path, *about, with_state=with_state)  # a run deletes those that are older


@contextmanager
def _offering_the_one_before(path: Path, *about) -> Iterator[None]:
    try:
        yield
    except CheckpointError as error:
        before = _newest_intact(path, *about)
        raise CheckpointError(error.file, error.cause, error.fix, before) from error


def _newest_intact(path: Path, *about) -> Path | None:
    """The newest acceptable checkpoint before ``path``."""
    if not NAME.fullmatch(path.name):
        return None
    older = [p for p in find_checkpoints(path.parent) if _order(p) < _order(path)]
    return next((p for p in reversed(older) if _is_intact(p, *about)), None)


def _is_intact(path: Path, *about) -> bool:
    try:
        _read(path, *about)
    except CheckpointError:
        return False
    return True


@contextmanager
def refusing(file: Path, what: str = "", *kinds: type[Exception]) -> Iterator[None]:
    """What is wrong with ``file``: a file that cannot be used, or that raises one of ``kinds``."""
    try:
        yield
    except UnusableFileError as error:
        raise CheckpointError(file, error.cause, error.fix or COPY) from error
    except kinds as error:
        raise CheckpointError(file, f"is not {what} ({error}).") from error


def _read(
    path: Path, configuration=None, vocabulary=None, sizes=None, *, with_state: bool = True
) -> Checkpoint:
    if path.is_symlink():
        raise CheckpointError(path, "is a symbolic link.", "Name the folder itself.")
    with refusing(path / MANIFEST):
        content = storage.read_regular(path / MANIFEST, MOST_BYTES[MANIFEST])
        manifest = storage.parse_format(content, FORMAT, FORMAT_VERSION)
        if content != signed({key: manifest[key] for key in manifest if key != "sha256"}):
            raise UnusableFileError(
                "is damaged: its content does not have the sha256 that it states."
            )
        _require_manifest(manifest, path.name)
        _require_purpose(manifest, configuration, vocabulary)
        _require_size(manifest, sizes)
    names = ("step", "configuration", "vocabulary", "threads")
    about = {"path": path, **{name: manifest[name] for name in names}}
    if not with_state:
        return Checkpoint(state={}, **about)
    contents = {}
    for name, expected in manifest["files"].items():
        with refusing(path / name):
            most = min(expected["size"], MOST_BYTES[name])
            contents[name] = storage.read_regular(path / name, most)
            if storage.signature(contents[name]) != expected:
                raise UnusableFileError(
                    "is damaged: its size or sha256 is not that of the manifest."
                )
    nonsense = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RuntimeError)
    nonsense += (RecursionError, MemoryError, safetensors.SafetensorError)
    with refusing(path / TENSORS, "a safetensors file", *nonsense):
        header = int.from_bytes(contents[TENSORS][:8], "little")
        if header > MOST_HEADER_BYTES:
            raise UnusableFileError(f"claims a header of {header:,} bytes.")
        tensors = safetensors.torch.load(contents[TENSORS])
    with refusing(path / STATE, "the state of a run", *nonsense):
        state = dict(unpack(tensors, storage.parse_json(contents[STATE])).items())
    return Checkpoint(state=state, **about)


def _require_readable(contents: Mapping[str, bytes]) -> None:
    """No file is larger than what is read again."""
    header = int.from_bytes(contents[TENSORS][:8], "little")
    for name, size, most in [
        ("the tensors' names and shapes", header, MOST_HEADER_BYTES),
        ("the state without its tensors", len(contents[STATE]), MOST_BYTES[STATE]),
        ("the configuration", len(contents[MANIFEST]), MOST_BYTES[MANIFEST]),
    ]:
        if size > most:
            raise TypeError(
                f"{name} would take {size:,} bytes, and at most {most:,} are read again. Keep long "
                f"lists as tensors, and many small tensors as one."
            )


def _require_manifest(manifest: Mapping[str, Any], name: str) -> None:
    """Its entries are of the types, and its files the ones, that are relied on from here on."""
    types = {"step": int, "threads": int, "vocabulary": str, "configuration": dict, "files": dict}
    for key, kind in types.items():
        if type(manifest.get(key)) is not kind:
            raise UnusableFileError(f"has {manifest.get(key)!r:.80} as its {key}.")
    if manifest["files"].keys() != {TENSORS, STATE}:
        raise UnusableFileError(f"names the files {sorted(manifest['files'])!r:.200}.")
    for file in manifest["files"].values():
        if not isinstance(file, dict) or type(file.get("size")) is not int or file["size"] < 0:
            raise UnusableFileError("does not say how many bytes its files have.")
    if NAME.fullmatch(name) and saved_step(Path(name)) != manifest["step"]:
        raise UnusableFileError(f"says step {manifest['step']}, in a folder named {name}.")


def _require_purpose(
    manifest: Mapping[str, Any], configuration: Mapping[str, Any] | None, vocabulary: str | None
) -> None:
    """The checkpoint is for this configuration and vocabulary; None means any."""
    if configuration is not None:
        wanted = storage.parse_json(storage.canonical_json(dict(configuration)))  # lists, no tuples
        if different := list(differences(manifest["configuration"], wanted)):
            raise UnusableFileError(
                f"is of another configuration: {'; '.join(different[:5])}.",
                "Go on with the configuration that was saved, or save to another folder.",
            )
    if vocabulary is not None and vocabulary != manifest["vocabulary"]:
        raise UnusableFileError(
            f"is of another vocabulary (hash {manifest['vocabulary']:.12}… there, "
            f"{vocabulary:.12}… here), so its ids mean other tokens.",
            "Use the tokenizer of that run, or save to another folder.",
        )


def _require_size(manifest: Mapping[str, Any], sizes: Sizes | None) -> None:
    """The tensors take no more and no less than what the configuration implies."""
    if sizes is None:
        return
    stated = manifest["files"][TENSORS]["size"]
    least, most = sizes(manifest["configuration"])
    if not least <= stated <= most:
        raise UnusableFileError(
            f"says that the tensors take {stated:,} bytes; a model of its recipe takes {least:,} "
            f"or more, and with an optimizer at most {most:,}.",
            "If a loop of your own saved it, load it there by load_checkpoint.",
        )
