"""The manifest of a checkpoint: what it is, for which run, and what its files must hold."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_lib.training import files

FORMAT, FORMAT_VERSION = "transformer_lib checkpoint", 1
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
# A second save of the same step is step-00001000-2: the first is whole until the second is.
NAME = re.compile(r"step-(\d{8,18})(?:-(\d{1,9}))?")
# More than any honest one needs.
MOST_BYTES = {MANIFEST: 2**26, STATE: 2**28, TENSORS: 2**40}
DELETE = "Copy it again from where it came, or delete this folder."


class CheckpointError(ValueError):
    """A checkpoint that is refused.

    Attributes:
        file: which of its files.
        cause, fix: what is wrong with it, and what to do.
        before: the newest checkpoint before it that would be accepted; None if there is none.
    """

    def __init__(self, file: Path, cause: str, fix: str = DELETE, before: Path | None = None):
        offer = "No checkpoint before it can be used instead."
        if before is not None:
            offer = f"The one before it is intact: load_checkpoint({str(before)!r})."
        super().__init__(f"{file} {cause} {fix} {offer}")
        self.file, self.cause, self.fix, self.before = file, cause, fix, before


def read_file(path: Path, most: int) -> bytes:
    """The content of one of the three files, of at most ``most`` bytes.

    Raises:
        CheckpointError: see :func:`~transformer_lib.training.files.read_regular`.
    """
    try:
        return files.read_regular(path, min(most, MOST_BYTES[path.name]))
    except ValueError as error:
        raise CheckpointError(path, str(error)) from error


def signed(manifest: Mapping[str, Any]) -> bytes:
    """The manifest's file: with format, version, and the sha256 of all that it says.

    >>> signed({})[:52]
    b'{"format":"transformer_lib checkpoint","format_versi'
    """
    manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, **manifest}
    own = files.signature(files.canonical_json(manifest))["sha256"]
    return files.canonical_json({**manifest, "sha256": own})


def acceptable(manifest: Mapping[str, Any]) -> bytes:
    """:func:`signed`, of a manifest that :func:`read_manifest` will accept.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot hold it, or it would be refused.
    """
    manifest = json.loads(files.canonical_json(manifest))  # keys become texts, and are sorted so
    if problem := _problem(manifest, ""):
        raise ValueError(problem)
    content = signed(manifest)
    if len(content) > MOST_BYTES[MANIFEST]:
        raise ValueError(
            f"it takes {len(content):,} bytes, and at most {MOST_BYTES[MANIFEST]:,} are read"
        )
    return content


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in the folder ``path``.

    Raises:
        CheckpointError: it is damaged, of another version, or not what this library writes.
    """
    file = path / MANIFEST
    if path.is_symlink():
        raise CheckpointError(path, "is a symbolic link.", "Name the folder itself.")
    content = read_file(file, MOST_BYTES[MANIFEST])
    try:
        manifest = json.loads(content)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError("it is not one of a checkpoint of transformer_lib")
        unsigned = {key: value for key, value in manifest.items() if key != "sha256"}
        if content != signed(unsigned):
            raise ValueError("its content does not have the sha256 that it states")
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(file, f"is no intact manifest ({error}).") from error
    if manifest.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            file,
            f"has format version {manifest.get('format_version')!r}; this library reads version "
            f"{FORMAT_VERSION}.",
            "Install the version of transformer_lib that wrote it.",
        )
    if problem := _problem(manifest, path.name):
        raise CheckpointError(file, f"is no manifest that this library writes: {problem}.")
    return manifest


def _problem(manifest: dict[str, Any], name: str) -> str | None:
    """What is wrong with a manifest that has the right signature: somebody made it."""
    types = {"step": int, "threads": int, "vocabulary": str, "configuration": dict, "files": dict}
    for key, kind in types.items():
        if type(manifest.get(key)) is not kind:
            return f"{key} is {manifest.get(key)!r:.80}"
    if manifest["files"].keys() != {TENSORS, STATE}:
        return f"it names the files {sorted(manifest['files'])!r:.200}"
    for file in manifest["files"].values():
        if not isinstance(file, dict) or type(file.get("size")) is not int or file["size"] < 0:
            return "a file's size is no number of bytes"
    if NAME.fullmatch(name) and int(NAME.fullmatch(name)[1]) != manifest["step"]:
        return f"step is {manifest['step']}, in a folder named {name}"
    return None


def check_purpose(
    file: Path,
    manifest: Mapping[str, Any],
    configuration: Mapping[str, Any] | None,
    vocabulary: str | None,
) -> None:
    """The checkpoint is for this configuration and vocabulary; None stands for any.

    Raises:
        CheckpointError: says what differs.
    """
    if configuration is not None:
        wanted = json.loads(files.canonical_json(dict(configuration)))  # tuples become lists
        saved = manifest["configuration"]
        different = [
            f"{key} is {saved.get(key, 'absent')!r} there and {wanted.get(key, 'absent')!r} here"
            for key in sorted(saved.keys() | wanted.keys())
            if key not in saved or key not in wanted or saved[key] != wanted[key]
        ]
        if different:
            raise CheckpointError(
                file,
                f"is of another configuration: {'; '.join(different[:5])}.",
                "Go on with the configuration that was saved, or save to another folder.",
            )
    if vocabulary is not None and vocabulary != manifest["vocabulary"]:
        raise CheckpointError(
            file,
            f"is of another vocabulary (hash {manifest['vocabulary']:.12}… there, "
            f"{vocabulary:.12}… here), so its ids mean other tokens.",
            "Use the tokenizer of that run, or save to another folder.",
        )
