"""The command line, ``python -m transformer_lib.training``: train, resume, evaluate, sample."""

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from transformer_lib.training import checkpoints, recipe_checks, shipped
from transformer_lib.training.continuing import continue_text, load_trained, recipe_of
from transformer_lib.training.corpora import corpus_of
from transformer_lib.training.distributed import LostProcessError, processes
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.machine import new_run
from transformer_lib.training.manifests import NAME
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.reports import reporting
from transformer_lib.training.run import Run, trained_run
from transformer_lib.training.runs import load_run, save_run
from transformer_lib.training.stopping import Stopped

SMALLER = "Choose a smaller model, a smaller batch, or more accumulation."
PROGRAM = "python -m transformer_lib.training"
EXAMPLES = f"""examples:
  {PROGRAM} train --preset gifts --folder runs/gifts
  {PROGRAM} train --preset cpu --folder runs/shakespeare      (downloads 1 MB)
  {PROGRAM} train --preset cpu --data my.txt --n-steps 500 --folder runs/mine
  {PROGRAM} resume runs/mine
  {PROGRAM} sample runs/mine --prompt "Once" --tokens 300
  torchrun --nproc-per-node=2 -m transformer_lib.training train --preset h200 --folder runs/two
"""
EXPECTED = (
    ValueError, TypeError, OSError, ImportError, FloatingPointError, LostProcessError, MemoryError,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the program's exit status (0: done)."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    chosen = parser().parse_args(arguments)
    try:
        return chosen.command(chosen, arguments)
    except Stopped as stopped:
        print(f"\n{stopped}. {_how_to_go_on(chosen.folder)}", flush=True)
        return 128 + stopped.number
    except KeyboardInterrupt:
        if chosen.traceback:
            raise
        print("\ninterrupted", file=sys.stderr, flush=True)
        return 128 + signal.SIGINT
    except (*EXPECTED, RuntimeError) as error:
        memory = _is_about_memory(error)
        if chosen.traceback or not (memory or isinstance(error, EXPECTED)):
            raise
        text = str(error) or type(error).__name__
        if memory:
            text = f"there is not enough memory ({text.splitlines()[0]}). {SMALLER}"
        print(f"error: {text}", file=sys.stderr, flush=True)
        return 1


def _is_about_memory(error: Exception) -> bool:
    """(Without memory on a CPU, and beyond what it can address, PyTorch has no type of its own.)"""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    words = ("can't allocate memory", "not enough memory", "size calculation overflowed")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def _printable(path: str | os.PathLike) -> str:
    """A path's name; what is no Unicode in it as ``\\udc...``"""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def _how_to_go_on(folder: str) -> str:
    if not checkpoints.find_checkpoints(folder):
        return "Nothing was saved yet."
    program, size = PROGRAM, os.environ.get("LOCAL_WORLD_SIZE", "1")  # torchrun sets it
    if size != "1":
        program = PROGRAM.replace("python", f"torchrun --nproc-per-node={size}")
    return f"Go on by: {program} resume {_printable(shlex.quote(folder))}"


def parser() -> argparse.ArgumentParser:
    """All commands and their options; those of ``train`` are the fields of a recipe."""
    top = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Train a GPT, go on with it, measure it, and let it write.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--traceback", action="store_true", help="show where an error came from")
    commands = top.add_subparsers(required=True, metavar="command")

    train = commands.add_parser("train", help="train a model from the start")
    train.set_defaults(command=train_command)
    train.add_argument("--folder", required=True, help="where checkpoints and the log go")
    train.add_argument("--preset", choices=PRESETS, default="gifts", help="default: %(default)s")
    train.add_argument(
        "--continue", dest="go_on", action="store_true",
        help="go on from the folder's newest checkpoint, if it has one",
    )  # fmt: skip
    recipe = train.add_argument_group("changes of the preset (see Recipe's documentation)")
    for field in fields(Recipe):
        recipe.add_argument(f"--{field.name.replace('_', '-')}", metavar=field.name.upper())

    resume = commands.add_parser("resume", help="go on from a checkpoint, bit for bit")
    resume.set_defaults(command=resume_command)
    resume.add_argument("folder", help="of the run, or of one checkpoint in it")
    resume.add_argument(
        "--other-devices", action="store_true",
        help="go on with another number of processes or GPUs, so with other random numbers",
    )  # fmt: skip
    for command in (train, resume):
        command.add_argument("--tensorboard", metavar="FOLDER", help="write events for TensorBoard")

    evaluate = commands.add_parser("evaluate", help="the exact loss on the validation data")
    evaluate.set_defaults(command=evaluate_command)
    evaluate.add_argument("folder", help="of the run, or of one checkpoint in it")

    export = commands.add_parser("export", help="write a finished run's model for others to load")
    export.set_defaults(command=export_command)
    export.add_argument("folder", help="of the run")
    export.add_argument("destination", help="a new folder, for load_shipped")

    sample = commands.add_parser("sample", help="let a trained model write")
    sample.set_defaults(command=sample_command)
    sample.add_argument("folder", help="of the run, or of one checkpoint in it")
    sample.add_argument("--prompt", help="how the text begins (default: its first token)")
    sample.add_argument("--tokens", type=int, default=200, help="how many (default: %(default)s)")
    sample.add_argument("--temperature", type=float, default=0.8, help="0 is greedy")
    sample.add_argument("--top-k", type=int)
    sample.add_argument("--top-p", type=float)
    sample.add_argument("--seed", type=int, default=0)
    return top


def changes_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """The recipe's fields that were given. What is JSON is read as JSON: numbers, true, {...}."""
    given = {f.name: getattr(chosen, f.name) for f in fields(Recipe)}
    return {name: _value(name, text) for name, text in given.items() if text is not None}


def _value(name: str, text: str) -> Any:
    if Recipe.__dataclass_fields__[name].type is str:
        return text
    try:
        value = json.loads(text)
        return tuple(value) if isinstance(value, list) else value
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def train_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    recipe = PRESETS[chosen.preset].with_changes(**changes_of(chosen))
    there = checkpoints.find_checkpoints(chosen.folder)
    if there and not chosen.go_on:
        step = int(NAME.fullmatch(there[-1].name)[1])
        raise ValueError(
            f"{chosen.folder} holds a run already, saved at step {step}. Go on with it by: "
            f"{PROGRAM} resume {shlex.quote(chosen.folder)}; or choose another folder."
        )
    return _train(recipe, chosen, arguments, resume=chosen.folder if there else None)


def resume_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    if not Path(chosen.folder).name:  # ".", which may be a checkpoint
        chosen.folder = os.path.abspath(chosen.folder)
    checkpoint = checkpoints.load_checkpoint(chosen.folder)
    recipe, path = recipe_of(checkpoint), checkpoint.path
    if not NAME.fullmatch(path.name):  # it was copied or renamed; a run goes on beside it
        raise ValueError(
            f"{_printable(path)} is a checkpoint, but its folder is not named as a run names it. "
            f"Copy it into a folder of its own as step-{checkpoint.step:08d}, and resume that one."
        )
    return _train(recipe, chosen, arguments, resume=chosen.folder)


def _train(recipe: Recipe, chosen, arguments: Sequence[str], resume: str | None) -> int:
    folder = Path(chosen.folder)
    if resume is not None and NAME.fullmatch(folder.name):
        folder = folder.parent
    chosen.folder = str(folder)
    with processes() as (here, device), reporting(here, chosen.tensorboard) as report:
        run = trained_run(
            recipe, folder, resume=resume, report=report, processes=here, device=device,
            other_devices=getattr(chosen, "other_devices", False),
        )  # fmt: skip
        if here.is_first:
            logs = [path for path in sorted(folder.glob("*.json")) if _is_log(path)]
            if run.trainer.step > run.begun or not logs:  # else the log is of the steps that were
                logs = [save_run(_log_of(run, folder, arguments), folder)]
            print(f"done: {_summary(run)}; run log: {_printable(logs[-1])}", flush=True)
    return 0


def _is_log(path: Path) -> bool:
    try:
        return bool(load_run(path))
    except (ValueError, OSError):
        return False


def _log_of(run: Run, folder: Path, arguments: Sequence[str]):
    model, corpus = run.trainer.model, run.corpus
    answers = corpus.answers is not None
    curve = {name: column for name, column in run.curve.items() if name != "accuracy" or answers}
    result = {name: column[-1] for name, column in curve.items()}
    result |= {"parameters": model.n_parameters, "floor": corpus.floor, "seen": corpus.seen}
    words = "".join(c if c.isalnum() and c.isascii() else "-" for c in folder.name.lower())
    return new_run(
        "-".join(filter(None, words.split("-"))) or "run",
        config=run.recipe.as_json() | {"processes": run.trainer.processes.size},
        curve=curve,
        result=result,
        command=shlex.join([*PROGRAM.split(), *arguments]),
    )


def _summary(run: Run) -> str:
    loss, accuracy = run.curve["validation_loss"][-1], run.curve["accuracy"][-1]
    text = f"loss {loss:.4f} nats a token"
    if run.corpus.floor is not None:
        text += f" (floor {run.corpus.floor:.4f})"
    if run.corpus.answers is not None:
        text += f", {accuracy:.2%} of the answers right"
    return f"{text}, after {run.seconds:.0f} s of training"


def evaluate_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    trained = load_trained(chosen.folder)
    corpus = corpus_of(trained.recipe)
    if corpus.signature != trained.checkpoint.configuration.get("data"):
        raise ValueError(
            f"{trained.recipe.data} is not what it was when the run began: its text has changed. "
            f"Restore it, or train anew."
        )
    loss = mean_loss(trained.model, corpus.validation)
    print(f"step {trained.checkpoint.step}: loss {loss:.4f} nats a token", end="")
    if corpus.floor is not None:
        print(f", floor {corpus.floor:.4f}", end="")
    if corpus.answers is not None:
        right = answer_accuracy(trained.model, corpus.validation, corpus.answers)
        print(f", {right:.2%} of the answers right", end="")
    print(f" ({len(corpus.validation)} blocks of {corpus.validation.inputs.shape[1]} tokens)")
    return 0


def export_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    print(f"written: {_printable(shipped.export(chosen.folder, chosen.destination))}")
    return 0


def sample_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    recipe_checks.require_seed(chosen.seed)
    trained = load_trained(chosen.folder)
    prompt = trained.tokenizer.vocabulary[0] if chosen.prompt is None else chosen.prompt
    generator = torch.Generator(trained.model.embedding.weight.device).manual_seed(chosen.seed)
    options = {"temperature": chosen.temperature, "top_k": chosen.top_k, "top_p": chosen.top_p}
    print(
        continue_text(
            trained.model, trained.tokenizer, prompt, chosen.tokens, generator=generator, **options
        )
    )
    return 0
