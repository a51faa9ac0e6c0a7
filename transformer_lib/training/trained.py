"""Trained models: from a run's checkpoint, or from a small folder that was exported from one.

An exported folder holds ``weights.safetensors``, ``run.json`` (the log of the run that made them)
and ``manifest.json``: format version, recipe, vocabulary, grammar, the loss to expect, and size and
sha256 of the other two. ``make trained`` makes those in ``transformer_lib/trained``.

The file of a stranger says how large a model it holds. Before a number of it is allocated, the
model is built without memory, on the meta device, and compared with the file.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from transformer_lib import storage
from transformer_lib.data import corpora
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.interpret.your_part import using
from transformer_lib.layers import shapes_only
from transformer_lib.storage import UnusableFileError, in_a_line
from transformer_lib.training import checkpoints
from transformer_lib.training.checkpoints import NONSENSE, Checkpoint, CheckpointError, differences
from transformer_lib.training.device import choose_device
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run_log import RunLog, decode, encode, load_run, logs_in, parse_run
from transformer_lib.training.tasks import TASKS, model_of

FORMAT, FORMAT_VERSION = "transformer_lib trained model", 1
WEIGHTS, RUN, MANIFEST = "weights.safetensors", "run.json", "manifest.json"
TRAINED_FOLDER = Path(__file__).resolve().parent.parent / "trained"
AGAIN = "Install transformer_lib again, or export the model again."
# Weights, up to three numbers more for each (what optimizers keep), and what is not the model's.
MOST_TIMES, MOST_BESIDE = 4, 2**24
CPU = torch.device("cpu")
Grammars = Grammar | KannadaGrammar


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A model that was trained, and what is known of it.

    Attributes:
        path: the folder that it came from.
        model: in evaluation mode.
        tokenizer: between its ids and text.
        recipe: how it was trained.
        step: after how many steps this is.
        data: the signature of the data that it was trained on; None if it was not kept.
        grammar: of the stories or sentences that it was trained on; None if on a text.
        run: the log of its training; None of a checkpoint.
        manifest: as in the file of an exported model; ``manifest["result"]`` holds the loss to
            expect. Empty of a checkpoint.
    """

    path: Path
    model: nn.Module
    tokenizer: corpora.Tokenizer
    recipe: Recipe
    step: int
    data: str | None
    grammar: Grammars | None
    run: RunLog | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)

    def using(
        self, *, at: str | None = None, **parts: Callable[..., Any]
    ) -> AbstractContextManager[nn.Module]:
        """See :func:`transformer_lib.interpret.your_part.using`."""
        return using(self.model, at=at, **parts)


def load_trained(path: str | os.PathLike, *, device: torch.device = CPU) -> Trained:
    """The model of a checkpoint, of a run's folder (its newest), or of an exported folder.

    Its data is not needed. It is put on the CPU unless another ``device`` is named.

    Raises:
        FileNotFoundError, CheckpointError: see ``load_checkpoint``; or the checkpoint is of another
            loop, without the tokenizer and the model of a run.
        ValueError: as :func:`load_shipped`.
    """
    require_device(device)
    if is_exported(path):
        return load_shipped(path, device=device)
    if not Path(path).exists() and (TRAINED_FOLDER / path / MANIFEST).is_file():
        raise FileNotFoundError(
            f"there is no folder {str(path)!r} here. The trained model of this name comes with the "
            f"package: load_shipped({str(path)!r})."
        )
    trained = _of_checkpoint(checkpoints.load_checkpoint(path, sizes=sizes_of))
    trained.model.to(device)
    return trained


def load_shipped(name_or_path: str | os.PathLike, *, device: torch.device = CPU) -> Trained:
    """A trained model: by its name, from the package; or from a folder that :func:`export` wrote.

    It is put on the CPU unless another ``device`` is named.

    Raises:
        FileNotFoundError: there is no such model; the message names those that there are.
        ValueError: a file is damaged, or of another version; the message names it and the fix. Or
            the device is not here.

    >>> shipped = load_shipped("gifts-v3")
    >>> shipped.grammar == Grammar(), shipped.manifest["result"]["accuracy"] > 0.99
    (True, True)
    """
    require_device(device)
    folder = Path(name_or_path)
    if not (folder / MANIFEST).is_file():
        folder = TRAINED_FOLDER / str(name_or_path)
    if not (folder / MANIFEST).is_file():
        there = f" (the folder has no {MANIFEST})" if Path(name_or_path).is_dir() else ""
        known = ", ".join(sorted(p.parent.name for p in TRAINED_FOLDER.glob(f"*/{MANIFEST}")))
        raise FileNotFoundError(
            f"there is no trained model {str(name_or_path)!r}{there}. The package has: "
            f"{known or 'none'}. Another one is loaded by the path of its folder, that of a run "
            f"by load_trained."
        )
    file = folder / MANIFEST
    try:
        content = storage.read_regular(file, storage.MOST_JSON_BYTES)
        manifest = storage.parse_format(content, FORMAT, FORMAT_VERSION)
        files = manifest["files"]
        file = folder / RUN
        run = parse_run(storage.read_stated(file, files[RUN]))
        file = folder / MANIFEST
        implied = _implied(manifest, run)
        for different in differences({name: manifest[name] for name in implied}, implied):
            raise ValueError(f"{different}, by {RUN} and its other entries")
        checkpoints.require_size(files[WEIGHTS]["size"], *sizes_of(manifest))
        file = folder / WEIGHTS
        weights = checkpoints.read_tensors(file, files[WEIGHTS])
        step = manifest["recipe"]["n_steps"]
        trained = _made(folder, step, manifest, weights, run=run, manifest=decode(manifest))
    except UnusableFileError as error:
        raise ValueError(f"{file} {error.cause} {error.fix or AGAIN}") from error
    except NONSENSE as error:
        raise ValueError(f"{file} is damaged ({in_a_line(error)}). {AGAIN}") from error
    trained.model.to(device)
    return trained


def export(run_folder: str | os.PathLike, folder: str | os.PathLike) -> Path:
    """Write the model of a finished run into ``folder``, a new one; return its path.

    Raises:
        FileNotFoundError: the run has no checkpoint, or no log.
        FileExistsError: ``folder`` exists.
        ValueError: the run has not finished, or is an exported model itself.
        CheckpointError: the checkpoint is damaged.
        OSError: the disk is full, or cannot be written to. No half-written folder stays.
    """
    folder = Path(folder)
    if os.path.lexists(folder):
        raise FileExistsError(f"{folder} exists; choose another folder, or delete it first.")
    require_not_exported(run_folder)
    saved = checkpoints.load_checkpoint(run_folder, sizes=sizes_of)
    if saved.path == Path(run_folder):
        raise FileNotFoundError(
            f"{run_folder} is a checkpoint, which has no run log. Give the folder of its run."
        )
    trained = _of_checkpoint(saved)
    recipe = trained.recipe
    if trained.step < recipe.n_steps:
        raise ValueError(
            f"the run in {run_folder} has not finished: it was saved at step {trained.step} of "
            f"{recipe.n_steps}. Resume it first."
        )
    log = find_log(run_folder, recipe, saved.state["run"]["curve"])
    if log is None:
        raise FileNotFoundError(
            f"there is no run log in {run_folder} that belongs to its newest checkpoint, "
            f"{saved.path.name}. Resume the run first: trained_run and the command line write one."
        )
    contents = {
        WEIGHTS: safetensors.torch.save(dict(trained.model.state_dict())),
        RUN: log.read_bytes(),
    }
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "recipe": recipe.as_json(),
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "data": trained.data,
        "tokenizer": corpora.describe_tokenizer(trained.tokenizer),
        "grammar": trained.grammar and corpora.grammar_json(trained.grammar),
        "files": {name: storage.signature(content) for name, content in contents.items()},
    }
    manifest |= _implied(manifest, load_run(log))
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    contents[MANIFEST] = text.encode("utf-8")
    with storage.explained(
        folder,
        "the model was not written there ({}). Choose a new folder, in one that you may write to",
    ):
        storage.make_folders(folder.parent)
        storage.write_folder(folder, contents)
    return folder


def is_exported(path: str | os.PathLike) -> bool:
    """Whether ``path`` is a folder that :func:`export` wrote, damaged or not."""
    try:
        content = storage.read_regular(Path(path) / MANIFEST, storage.MOST_JSON_BYTES)
        return storage.parse_json(content)["format"] == FORMAT
    except (ValueError, TypeError, KeyError):
        return all((Path(path) / name).is_file() for name in (MANIFEST, WEIGHTS))


def require_not_exported(path: str | os.PathLike) -> None:
    """``path`` is not an exported model: a run there could not be found again."""
    if is_exported(path):
        raise ValueError(
            f"{path} is an exported model: it can be sampled and evaluated, but a run trains, goes "
            f"on and is exported in its own folder."
        )


def recipe_of(checkpoint: Checkpoint) -> Recipe:
    """Of a checkpoint in which :func:`sizes_of` found one."""
    return Recipe.from_json(checkpoint.configuration["recipe"])


def sizes_of(configuration: Mapping[str, Any]) -> tuple[int, int]:
    """The least and the most bytes of the tensors in a checkpoint of a run so configured.

    Raises:
        UnusableFileError: it is not the configuration of a run.
    """
    own = (
        "If it has a part, a tokenizer or data of your own, import that first and load it in "
        "Python, by load_trained, or give this command to a script of yours that imports it and "
        "calls cli.main()"
    )
    what, fix = "hold the recipe", f"{storage.INSTALL} {own}."
    try:
        recipe = Recipe.from_json(configuration["recipe"])
        what, fix = "describe the model", f"{own}; else copy it again."
        with shapes_only():
            sketch = model_of(recipe, corpora.tokenizer_of(configuration["tokenizer"]))
    except NONSENSE as error:
        raise UnusableFileError(f"does not {what} of a run ({in_a_line(error)}).", fix) from error
    least = sum(parameter.nbytes for parameter in sketch.parameters())
    return least, MOST_TIMES * least + MOST_BESIDE


def find_log(
    folder: str | os.PathLike, recipe: Recipe, curve: Mapping[str, list[float]]
) -> Path | None:
    """The log in ``folder`` of the run that went by ``recipe`` and measured ``curve``."""
    wanted = recipe.as_json()
    for path, log in logs_in(folder).items():
        measured = {name: curve.get(name) for name in log.curve}
        alike = all(log.config.get(name) == value for name, value in wanted.items())
        if alike and "step" in measured and encode(measured) == encode(log.curve):  # NaN is NaN
            return path
    return None


def require_same_run(saved: Checkpoint, recipe: Recipe, corpus: corpora.Corpus) -> None:
    """The checkpoint is of ``recipe`` on ``corpus``, so that the run can go on from it."""
    file = saved.path / checkpoints.MANIFEST
    # Both as recipes: fields that are younger than the checkpoint have the values that they had.
    if different := "; ".join(differences(recipe_of(saved).as_json(), recipe.as_json())):
        fix = "Go on with the recipe that was saved (resume), or save to another folder."
        raise CheckpointError(file, f"is of another configuration: {different}.", fix)
    try:
        require_same_data(recipe, corpus, saved.configuration.get("data"))
    except ValueError as error:
        raise CheckpointError(file, f"is of other data: {error}", "") from error
    if saved.vocabulary != corpus.tokenizer.hash:
        raise CheckpointError(file, "is of another vocabulary, so its ids mean other tokens.")


def require_same_data(recipe: Recipe, corpus: corpora.Corpus, signature: str | None) -> None:
    """``corpus`` is what a run with this signature of its data was trained on."""
    if signature is not None and corpus.signature != signature:
        raise ValueError(
            f"{recipe.data.name} is not what it was when the run began: its text has changed. "
            f"Restore it, or train anew."
        )


def require_device(device: torch.device) -> None:
    """It is here, or knows shapes only."""
    if torch.device(device).type != "meta":
        choose_device(device)


def _of_checkpoint(saved: Checkpoint) -> Trained:
    try:
        return _made(saved.path, saved.step, saved.configuration, saved.state["model"])
    except NONSENSE as error:
        raise CheckpointError(
            saved.path,
            f"does not hold the model of a run ({in_a_line(error)}).",
            "If a loop of your own saved it, load it there by load_checkpoint.",
        ) from error


def _made(path: Path, step: int, about: Mapping[str, Any], weights: Any, **of_export) -> Trained:
    """The model with these weights, for which :func:`sizes_of` its description has room.

    ``about`` is a checkpoint's configuration, or the manifest of an exported model.
    """
    recipe, tokenizer, grammar = _parts(about)
    weights = TASKS[recipe.data.task].names(dict(weights))
    model = model_of(recipe, tokenizer)
    dtypes = {parameter.dtype for parameter in model.parameters()}
    for name, weight in weights.items():
        if weight.dtype not in dtypes:
            raise ValueError(f"{name} has dtype {weight.dtype}, and the model does not")
        if not weight.isfinite().all():
            raise ValueError(f"{name} holds numbers that are NaN or infinite")
    model.load_state_dict(weights)
    return Trained(
        path=path, model=model.eval(), tokenizer=tokenizer, recipe=recipe, step=step,
        data=about.get("data"), grammar=grammar, **of_export,
    )  # fmt: skip


def _parts(about: Mapping[str, Any]) -> tuple[Recipe, corpora.Tokenizer, Grammars | None]:
    recipe = Recipe.from_json(about["recipe"])
    kind, told = recipe.data.grammar_class, about.get("grammar", recipe.data.grammar)
    grammar = None if kind is None or told is None else kind(**told)
    return recipe, corpora.tokenizer_of(about["tokenizer"]), grammar


def _implied(manifest: Mapping[str, Any], run: RunLog) -> dict[str, Any]:
    """What the manifest of an exported model says once more, by its other entries and the log."""
    _, tokenizer, grammar = _parts(manifest)
    return {
        "recipe": {name: run.config.get(name) for name in manifest["recipe"]},
        "vocabulary_sha256": tokenizer.hash,
        "grammar_sha256": grammar and grammar.hash,
        "result": encode(run.result),
    }
