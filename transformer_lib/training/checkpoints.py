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
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
ABOUT = ("step", "configuration", "vocabulary", "threads")  # in the manifest
# A second save of the same step is step-00001000-2: the first is whole until the second is.
NAME = re.compile(r"step-(\d{8,})(?:-(\d+))?")
# More than any honest one needs.
MOST_BYTES = {MANIFEST: storage.MOST_JSON_BYTES, STATE: storage.MOST_JSON_BYTES, TENSORS: 2**40}
MOST_HEADER_BYTES = 2**22
NONSENSE = (*storage.NONSENSE, safetensors.SafetensorError)
COPY = "Copy it again from where it came."
Sizes = Callable[[Mapping[str, Any]], tuple[int, int]]


class CheckpointError(ValueError):
    """A checkpoint that is refused.

    Attributes:
        file, cause, fix: which of its files, what is wrong with it, and what to do.
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

    def __post_init__(self):
        checks.require_fields(self)


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
        state: by name, what ``state_dict()`` and ``random_state()`` return, the position in the
            data and so on; of the types that :func:`~transformer_lib.training.state.pack` knows.
        configuration: what must be equal to go on: sizes, rates; anything that JSON can hold.
        vocabulary: the tokenizer's hash.

    Raises:
        TypeError: a state, configuration or vocabulary that cannot be stored, or would not be read
            again. Nothing has been written.
        OSError: nothing half-written stays, and the checkpoints before are as they were.

    >>> import tempfile
    >>> folder, about = tempfile.mkdtemp(), {"configuration": {"d_model": 3}, "vocabulary": "ab"}
    >>> path = save_checkpoint(folder, 5, {"weight": torch.ones(2), "drawn": 7}, **about)
    >>> load_checkpoint(folder, **about).state
    {'drawn': 7, 'weight': tensor([1., 1.])}
    """
    storage.require_named(folder)
    checks.require_count(step, "step")
    if not isinstance(state, Mapping):
        raise TypeError(
            f"the state is of type {type(state).__name__}; give a dictionary of what state_dict() "
            f"returns."
        )
    tensors, rest = pack(dict(state))
    contents = {TENSORS: safetensors.torch.save(tensors), STATE: storage.canonical_json(rest)}
    try:
        configuration = _as_stored(configuration)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"the configuration cannot be stored: {error}. Use finite numbers, texts, lists and "
            f"dictionaries."
        ) from error
    folder = Path(folder)
    saved = Checkpoint(
        path=folder, step=int(step), state={}, configuration=configuration, vocabulary=vocabulary,
        threads=torch.get_num_threads(),
    )  # fmt: skip
    files = {name: storage.signature(content) for name, content in contents.items()}
    contents[MANIFEST] = signed({"files": files, **{name: getattr(saved, name) for name in ABOUT}})
    _require_readable(contents)
    with storage.explained(
        folder,
        f"the checkpoint of step {step} was not saved ({{}}); those before it are as they were. "
        f"Make room there, or choose another folder",
    ):
        storage.make_folders(folder)
        storage.sweep(folder, "step-*")  # left by a program that was killed
        again = [_order(path)[1] for path in find_checkpoints(folder) if saved_step(path) == step]
        path = folder / (f"step-{step:08d}" + (f"-{max(again) + 1}" if again else ""))
        storage.write_folder(path, contents)
    del tensors, contents  # two copies of the state; to read the one before takes two more
    if before := _before(path, _read):
        for old in find_checkpoints(folder):
            if _order(old) < _order(before):
                storage.remove_folder(old)
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
        sizes: of a configuration, the least and the most bytes of its tensors, compared before
            these are read; without, a file is read whole, however long it is.

    Raises:
        FileNotFoundError: there is no checkpoint.
        CheckpointError: it is damaged, hostile, or of another configuration or vocabulary; the
            message names the file and the fix, and offers the checkpoint before it.
    """
    if configuration is not None:
        configuration = _as_stored(configuration)
    return _newest(path, partial(_read, wanted=(configuration, vocabulary), sizes=sizes))


def describe_checkpoint(path: str | os.PathLike, *, sizes: Sizes | None = None) -> Checkpoint:
    """As :func:`load_checkpoint`, without the state: only the manifest is read."""
    return _newest(path, partial(_read, sizes=sizes), with_state=False)


def find_checkpoints(folder: str | os.PathLike) -> list[Path]:
    """The checkpoints in ``folder`` by step, the newest last. They are not checked."""
    folder = Path(folder)
    inside = folder.iterdir() if folder.is_dir() else ()
    found = [p for p in inside if NAME.fullmatch(p.name) and p.is_dir() and not p.is_symlink()]
    return sorted(found, key=_order)


def saved_step(path: Path) -> int:
    """The step that a checkpoint's name says."""
    return _order(path)[0]


def signed(manifest: Mapping[str, Any]) -> bytes:
    """The manifest's file: with format, version, and the sha256 of all that it says."""
    manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, **manifest}
    own = storage.sha256(storage.canonical_json(manifest))
    return storage.canonical_json({**manifest, "sha256": own})


ABSENT = type("Absent", (), {"__repr__": lambda self: "absent"})()


def differences(saved: Any, wanted: Any, name: str = "") -> Iterator[str]:
    """The differences of two configurations, entry by entry.

    >>> list(differences({"lr": 0.1, "seed": 0}, {"lr": 0.2}))
    ['lr is 0.1 there and 0.2 here', 'seed is 0 there and absent here']
    """
    if isinstance(saved, dict) and isinstance(wanted, dict):
        for key in sorted(saved.keys() | wanted.keys()):
            each = saved.get(key, ABSENT), wanted.get(key, ABSENT)
            yield from differences(*each, f"{name}.{key}".strip("."))
    elif saved != wanted:
        yield f"{name} is {reprlib.repr(saved)} there and {reprlib.repr(wanted)} here"


def read_tensors(file: Path, stated: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors in a file of which a manifest has the signature."""
    content = storage.read_stated(file, stated, MOST_BYTES[TENSORS])
    header = int.from_bytes(content[:8], "little")
    if header > MOST_HEADER_BYTES:
        raise ValueError(f"its header is said to have {header:,} bytes")
    return safetensors.torch.load(content)


def require_size(stated: int, least: int, most: int) -> None:
    """The tensors take no more and no less than what the configuration implies."""
    if not least <= stated <= most:
        raise UnusableFileError(
            f"says that the tensors take {stated:,} bytes; a model of its recipe takes {least:,} "
            f"or more, and with an optimizer at most {most:,}."
        )


def _order(path: Path) -> tuple[int, int]:
    step, again = NAME.fullmatch(path.name).groups()
    return int(step), int(again or 1)


def _newest(path: str | os.PathLike, read: Callable[..., Checkpoint], **options) -> Checkpoint:
    """What ``read`` makes of ``path``, if it is a checkpoint, or of the newest in this folder."""
    newest = Path(path)
    named, has_manifest = NAME.fullmatch(newest.name), os.path.lexists(newest / MANIFEST)
    if not (named and has_manifest) and (found := find_checkpoints(newest)):
        newest = found[-1]  # whatever else lies there
    elif not has_manifest and not (named and os.path.lexists(newest)):
        raise FileNotFoundError(
            f"there is no checkpoint in {newest}: no folder step-00000000 with a {MANIFEST}. Give "
            f"the folder that the run saved to."
        )
    try:
        return read(newest, **options)
    except CheckpointError as error:
        if os.path.lexists(newest):
            before = _before(newest, read)
            raise CheckpointError(error.file, error.cause, error.fix, before) from error
    return _newest(path, read, **options)  # a run deletes those that are older


def _before(path: Path, read: Callable[[Path], Checkpoint]) -> Path | None:
    """The newest checkpoint before ``path`` that can be read."""
    if NAME.fullmatch(path.name):
        for older in reversed(find_checkpoints(path.parent)):
            with suppress(CheckpointError):
                if _order(older) < _order(path):
                    return read(older).path
    return None


def _read(path: Path, wanted=(None, None), sizes=None, *, with_state: bool = True) -> Checkpoint:
    if path.is_symlink():
        raise CheckpointError(path, "is a symbolic link.", "Name the folder itself.")
    file = path / MANIFEST
    try:
        content = storage.read_regular(file, MOST_BYTES[MANIFEST])
        manifest = storage.parse_format(content, FORMAT, FORMAT_VERSION)
        if content != signed({key: manifest[key] for key in manifest if key != "sha256"}):
            raise UnusableFileError(
                "is damaged: its content does not have the sha256 that it states."
            )
        saved = Checkpoint(path=path, state={}, **{name: manifest[name] for name in ABOUT})
        if NAME.fullmatch(path.name) and saved_step(path) != saved.step:
            raise UnusableFileError(f"says step {saved.step}, in a folder named {path.name}.")
        files = manifest["files"]
        if files.keys() != {TENSORS, STATE} or min(f["size"] for f in files.values()) < 0:
            raise UnusableFileError(f"names the files {files!r:.200}.")
        _require_purpose(saved, *wanted)
        if sizes is not None:
            require_size(files[TENSORS]["size"], *sizes(saved.configuration))
        if not with_state:
            return saved
        file = path / STATE
        content = storage.read_stated(file, files[STATE], MOST_BYTES[STATE])
        file = path / TENSORS
        tensors = read_tensors(file, files[TENSORS])
        file = path / STATE
        saved.state.update(unpack(tensors, storage.parse_json(content)).items())
    except UnusableFileError as error:
        raise CheckpointError(file, error.cause, error.fix or COPY) from error
    except (MemoryError, *NONSENSE) as error:
        told = storage.in_a_line(error)
        raise CheckpointError(file, f"does not hold what it should ({told}).") from error
    return saved


def _as_stored(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Keys become texts, tuples become lists."""
    return storage.parse_json(storage.canonical_json(dict(configuration)))


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


def _require_purpose(saved: Checkpoint, configuration, vocabulary: str | None) -> None:
    """The checkpoint is for this configuration and vocabulary; None means any."""
    wanted = saved.configuration if configuration is None else configuration
    if different := list(differences(saved.configuration, wanted)):
        raise UnusableFileError(
            f"is of another configuration: {'; '.join(different[:5])}.",
            "Go on with the configuration that was saved, or save to another folder.",
        )
    if vocabulary not in (None, saved.vocabulary):
        raise UnusableFileError(
            f"is of another vocabulary (hash {saved.vocabulary:.12}… there, {vocabulary!s:.12}… "
            f"here), so its ids mean other tokens.",
            "Use the tokenizer of that run, or save to another folder.",
        )
