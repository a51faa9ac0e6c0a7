"""Trained models as small folders: those that come with the library, and those that you export.

A folder holds ``weights.safetensors``, ``run.json`` (the log of the run that made them) and
``manifest.json``: format version, recipe, vocabulary, grammar, the loss to expect, and size and
sha256 of the other two. ``make trained`` makes those in ``transformer_lib/trained``.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from transformer_lib.data.gifts import Grammar
from transformer_lib.gpt import GPT
from transformer_lib.tokenizers import CharacterTokenizer, WordTokenizer
from transformer_lib.training import files
from transformer_lib.training.continuing import load_trained
from transformer_lib.training.corpora import describe_tokenizer, grammar_json, tokenizer_of
from transformer_lib.training.precision import best_device
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.runs import RunLog, load_run

FORMAT, FORMAT_VERSION = "transformer_lib trained model", 1
WEIGHTS, RUN, MANIFEST = "weights.safetensors", "run.json", "manifest.json"
TRAINED_FOLDER = Path(__file__).resolve().parent.parent / "trained"
MOST_BYTES = 2**31


@dataclass(frozen=True, kw_only=True, eq=False)
class Shipped:
    """A trained model and all that is known of it.

    Attributes:
        model: in evaluation mode.
        tokenizer: between its ids and text.
        recipe: how it was trained.
        grammar: of the stories that it was trained on; None if on a text.
        run: the log of its training.
        manifest: as in its file; ``manifest["result"]`` holds the loss to expect.
    """

    model: GPT
    tokenizer: CharacterTokenizer | WordTokenizer
    recipe: Recipe
    grammar: Grammar | None
    run: RunLog
    manifest: Mapping[str, Any]


def export(run_folder: str | os.PathLike, folder: str | os.PathLike) -> Path:
    """Write the model of a finished run into ``folder``, a new one; return its path.

    Raises:
        FileNotFoundError: the run has no checkpoint, or no log (it is not finished).
        FileExistsError: ``folder`` exists.
        CheckpointError: the checkpoint is damaged.
        OSError: the disk is full, or cannot be written to. No half-written folder stays.
    """
    trained = load_trained(run_folder, device=torch.device("cpu"))
    if trained.checkpoint.path == Path(run_folder):
        raise FileNotFoundError(
            f"{run_folder} is a checkpoint, which has no run log. Give the folder of its run."
        )
    logs = sorted(Path(run_folder).glob("*.json"))
    if not logs:
        raise FileNotFoundError(
            f"there is no run log in {run_folder}: the run has not finished. Resume it first."
        )
    run, folder = load_run(logs[-1]), Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists; choose another folder, or delete it first.")
    recipe = trained.recipe
    grammar = Grammar(**recipe.grammar) if recipe.data == "gifts" else None
    contents = {
        WEIGHTS: safetensors.torch.save(dict(trained.model.state_dict())),
        RUN: logs[-1].read_bytes(),
    }
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "recipe": recipe.as_json(),
        "parameters": trained.model.n_parameters,
        "tokenizer": describe_tokenizer(trained.tokenizer),
        "vocabulary_sha256": trained.tokenizer.hash,
        "grammar": None if grammar is None else grammar_json(grammar),
        "grammar_sha256": None if grammar is None else grammar.hash,
        "result": dict(run.result),
        "files": {name: files.signature(content) for name, content in contents.items()},
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    contents[MANIFEST] = text.encode("utf-8")
    files.make_folders(folder.parent)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
        for name, content in contents.items():
            files.write_flushed(temporary / name, content)
        os.rename(temporary, folder)
    finally:
        for leftover in [*temporary.glob("*")]:
            leftover.unlink()
        if temporary.exists():
            temporary.rmdir()
    return folder


def load_shipped(name_or_path: str | os.PathLike, *, device: torch.device | None = None) -> Shipped:
    """A trained model: by its name, from the package; or from a folder that :func:`export` wrote.

    Raises:
        FileNotFoundError: there is no such model; the message names those that there are.
        ValueError: a file is damaged, or of another version; the message names it and the fix.

    >>> shipped = load_shipped("gifts-v1")
    >>> shipped.grammar == Grammar(), shipped.manifest["result"]["accuracy"] > 0.99
    (True, True)
    """
    folder = Path(name_or_path)
    if not (folder / MANIFEST).is_file():
        folder = TRAINED_FOLDER / str(name_or_path)
    if not (folder / MANIFEST).is_file():
        known = ", ".join(sorted(p.parent.name for p in TRAINED_FOLDER.glob(f"*/{MANIFEST}")))
        raise FileNotFoundError(
            f"there is no trained model {str(name_or_path)!r}. The package has: {known or 'none'}. "
            f"Another one is loaded by the path of its folder."
        )
    manifest = _read_manifest(folder)
    contents = {name: _read_file(folder / name, manifest) for name in (WEIGHTS, RUN)}
    run = load_run(folder / RUN)
    try:
        _check_manifest(manifest, run)
        recipe = Recipe.from_json(manifest["recipe"])
        tokenizer, grammar = tokenizer_of(manifest["tokenizer"]), _grammar_of(manifest)
        model = GPT(recipe.model_config(tokenizer.size))
        model.load_state_dict(safetensors.torch.load(contents[WEIGHTS]))
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        cause = f"it has no entry {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{folder / MANIFEST} is damaged ({cause}). {_AGAIN}") from error
    return Shipped(
        model=model.to(device or best_device()).eval(),
        tokenizer=tokenizer,
        recipe=recipe,
        grammar=grammar,
        run=run,
        manifest=manifest,
    )


def _grammar_of(manifest: Mapping[str, Any]) -> Grammar | None:
    return None if manifest["grammar"] is None else Grammar(**manifest["grammar"])


def _check_manifest(manifest: Mapping[str, Any], run: RunLog) -> None:
    """What it says fits its hashes and the log, which is known to be intact."""
    grammar = _grammar_of(manifest)
    expected = {
        "vocabulary_sha256": tokenizer_of(manifest["tokenizer"]).hash,
        "grammar_sha256": None if grammar is None else grammar.hash,
        "result": dict(run.result),
    }
    pairs = [(name, manifest[name], value) for name, value in expected.items()]
    for name, value in manifest["recipe"].items():
        pairs.append((f"recipe[{name!r}]", value, run.config.get(name, value)))
    for name, value, right in pairs:
        if json.dumps(value, sort_keys=True) != json.dumps(right, sort_keys=True):  # NaN is NaN
            raise ValueError(f"its {name} is not that of its other entries and of {RUN}")


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: it is no JSON ({error}). {_AGAIN}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path} is no manifest of a trained model. {_AGAIN}")
    if not isinstance(manifest.get("files"), dict):
        raise ValueError(f"{path} is damaged: it does not say what its files hold. {_AGAIN}")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {manifest.get('format_version')!r}; this library reads "
            f"version {FORMAT_VERSION}. Install the version of transformer_lib that wrote it."
        )
    return manifest


def _read_file(path: Path, manifest: Mapping[str, Any]) -> bytes:
    try:
        content = files.read_regular(path, MOST_BYTES)
    except ValueError as error:
        raise ValueError(f"{path} {error} {_AGAIN}") from error
    if files.signature(content) != manifest["files"].get(path.name):
        raise ValueError(f"{path} is damaged: it is not what its manifest says. {_AGAIN}")
    return content


_AGAIN = "Install transformer_lib again, or export the model again."
