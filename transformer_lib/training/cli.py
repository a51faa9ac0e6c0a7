"""The command line, ``python -m transformer_lib.training``: train, resume, evaluate, sample,
translate.
"""

import argparse
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from transformer_lib import storage
from transformer_lib.training.checkpoints import (
    NAME,
    CheckpointError,
    describe_checkpoint,
    find_checkpoints,
)
from transformer_lib.training.device import choose_device, precision_here
from transformer_lib.training.distributed import LostProcessError, processes
from transformer_lib.training.recipes import (
    DATA,
    FIELDS,
    KINDS,
    PRESETS,
    DataRecipe,
    Recipe,
    require_seed,
)
from transformer_lib.training.reports import REPORTS, reporting, say, tell, told
from transformer_lib.training.run import COLUMNS, Run, Stopped, require_run_folder, trained_run
from transformer_lib.training.tasks import TASKS, corpus_of
from transformer_lib.training.trained import (
    TRAINED_FOLDER,
    export,
    find_log,
    load_trained,
    recipe_of,
    require_not_exported,
    require_same_data,
    sizes_of,
)

PLAIN = (
    "It needs a C++ compiler and Python's headers, on a GPU Triton as well. Or train with "
    "--compiled false, which is only slower."
)
SMALLER = "Choose a smaller model, a smaller batch, or more accumulation."
PROGRAM = "python -m transformer_lib.training"
EXAMPLES = f"""examples:
  {PROGRAM} train --preset gifts --folder runs/gifts
  {PROGRAM} train --preset cpu --folder runs/shakespeare      (downloads 1 MB)
  {PROGRAM} train --preset cpu --data my.txt --n-steps 500 --folder runs/mine
  {PROGRAM} resume runs/mine
  {PROGRAM} sample runs/mine --prompt "Once" --tokens 300
  {PROGRAM} train --preset kannada --folder runs/kannada
  {PROGRAM} train --preset multi30k --data my.tsv --vocabulary 2000 --folder runs/pairs
  {PROGRAM} translate runs/kannada "mēri sūsan‌ge gulābigaḷannu koṭṭaḷu"
  torchrun --standalone --nproc-per-node=2 -m transformer_lib.training \\
    train --preset h200 --batch-size 512 --folder runs/two    (the batch of all processes together)
"""
EXPECTED = (
    ValueError, TypeError, OSError, ImportError, FloatingPointError, LostProcessError, MemoryError,
)  # fmt: skip
# What a message tells a program to do, and what there is in its place on the command line.
HERE = {
    "encoding=": "(Here: save the file as UTF-8.)",
    "Choose length=": "(Here: --block.)",
    "columns=(": "(Here: keep two columns, as by cut -f1,2 FILE > TWO.tsv.)",
    "load_shipped(": f"(Here: name its folder in {TRAINED_FOLDER}.)",
    "betas is": "(Here: as in --betas '[0.9, 0.95]'.)",
}
ELSEWHERE = (
    "(The run was given this path as seen from the folder in which it was started: go on from that "
    "folder, or put the file there.)"
)
PRECISION_HERE = "(Here: --other-devices, and the run goes on in what this device has.)"
OF_GRAMMARS = ("grammar", "n_stories", "n_validation")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the program's exit status (0: done)."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    chosen = parser().parse_args(arguments)
    named = chosen.folder
    try:
        for folder in (chosen.folder, getattr(chosen, "destination", None)):
            if folder is not None:
                storage.require_named(folder)
        return chosen.command(chosen, arguments)
    except Stopped as stopped:
        with contextlib.suppress(OSError):  # the terminal may have closed: that was the signal
            say(f"\n{stopped}. {_how_to_go_on(chosen.folder)}")
        return 128 + stopped.number
    except KeyboardInterrupt:
        if chosen.traceback:
            raise
        tell("\ninterrupted")
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return 128 + getattr(signal, "SIGPIPE", 13)  # as any program whose reader has left
    except (*EXPECTED, RuntimeError) as error:
        known = isinstance(error, EXPECTED) or _is_about_memory(error) or _is_of_compiler(error)
        if chosen.traceback or not known:
            raise
        tell(f"error: {_in_words(error, chosen, named, arguments)}")
        return 1


def _in_words(
    error: Exception, chosen: argparse.Namespace, named: str, arguments: Sequence[str]
) -> str:
    text = str(error) or type(error).__name__
    if _is_about_memory(error):
        return f"there is not enough memory ({text.splitlines()[0]}). {SMALLER}"
    if _is_of_compiler(error):
        return f"the model could not be compiled ({text.splitlines()[0]}). {PLAIN}"
    if isinstance(error, CheckpointError):
        text = f"{error.file} {error.cause} {error.fix}"
        if error.before is not None:
            again = [str(error.before) if _path(x) == named else x for x in arguments]
            again = ["resume", str(error.before)] if chosen.name == "train" else again
            text += f" The checkpoint before it is intact: {PROGRAM} {shlex.join(again)}"
    hints = [hint for words, hint in HERE.items() if words in text]
    if text.startswith("precision is") and chosen.name == "resume":
        hints.append(PRECISION_HERE)
    if isinstance(error, FileNotFoundError) and chosen.name in ("resume", "evaluate"):
        hints += [ELSEWHERE] if "there is no file" in text else []
    return " ".join([text, *hints])


def _is_of_compiler(error: Exception) -> bool:
    """Whether torch.compile found no compiler, no Triton, or nothing that they could do.

    (Of the last, only this is a base of all: PyTorch's errors of Triton are not its backend's.)
    """
    dynamo = sys.modules.get("torch._dynamo.exc")  # it was not imported if nothing was compiled
    return dynamo is not None and isinstance(error, dynamo.ShortenTraceback)


def _is_about_memory(error: Exception) -> bool:
    """Whether memory ran out. (On a CPU, only the text of PyTorch's RuntimeError says so.)"""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    words = ("can't allocate memory", "not enough memory", "size calculation overflowed")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def _how_to_go_on(folder: str) -> str:
    newest_last = find_checkpoints(folder)
    if not newest_last:
        return "Nothing was saved yet."
    saved = max(reversed(newest_last), key=lambda path: path.stat().st_mtime)
    folder = folder if saved == newest_last[-1] else str(saved)  # the run began at an earlier one
    program = PROGRAM
    here, size = (int(os.environ.get(f"{name}WORLD_SIZE", "1")) for name in ("LOCAL_", ""))
    if size > 1:  # torchrun set it
        nodes = f" --nnodes={size // here}" if size > here else " --standalone"
        program = PROGRAM.replace("python", f"torchrun{nodes} --nproc-per-node={here}")
    text = f"To go on: {program} resume {shlex.quote(folder)}"
    return text if size == here else f"{text} (on each machine, as the run was started)"


def parser() -> argparse.ArgumentParser:
    """All commands and their options; those of ``train`` are the fields of a recipe."""
    top = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Train a GPT or a translator, go on with it, measure it, and let it write.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--traceback", action="store_true", help="show where an error came from")
    anything = "of the run, of one checkpoint in it, or of an exported model"
    commands = top.add_subparsers(required=True, metavar="command", dest="name")

    train = commands.add_parser("train", help="train a model from the start")
    train.set_defaults(command=train_command)
    train.add_argument(
        "--folder", type=_path, required=True, help="where checkpoints and the log go"
    )
    train.add_argument("--preset", choices=PRESETS, default="gifts", help="default: %(default)s")
    train.add_argument(
        "--continue", dest="go_on", action="store_true",
        help="go on from the folder's newest checkpoint, if it has one",
    )  # fmt: skip
    groups = {
        record: train.add_argument_group(
            f"changes to the preset: {record or 'the run'} (see {kind.__name__}'s documentation)"
        )
        for record, kind in [*KINDS.items(), (None, Recipe)]
    }
    for name, (record, _) in FIELDS.items():
        groups[record].add_argument(f"--{name.replace('_', '-')}", metavar=name.upper())

    resume = commands.add_parser(
        "resume", help="go on from a checkpoint as if nothing had happened"
    )
    resume.set_defaults(command=resume_command)
    resume.add_argument("folder", type=_path, help="of the run, or of one checkpoint in it")
    resume.add_argument(
        "--other-devices", action="store_true",
        help="go on with another number of processes or GPUs, so with other random numbers; and in "
        "another precision where a GPU lacks that of the run",
    )  # fmt: skip
    for command in (train, resume):
        places = " or ".join(f"{name}={where}" for name, (_, where) in REPORTS.items())
        command.add_argument(
            "--report", action="append", default=[], metavar="NAME=WHERE",
            help=f"report each step to {places}, too; may be repeated",
        )  # fmt: skip

    evaluate = commands.add_parser("evaluate", help="the exact loss on the validation data")
    evaluate.set_defaults(command=evaluate_command)
    evaluate.add_argument("folder", type=_path, help=anything)

    export = commands.add_parser("export", help="write a finished run's model for others to load")
    export.set_defaults(command=export_command)
    export.add_argument("folder", type=_path, help="of the run")
    export.add_argument("destination", type=_path, help="a new folder, for load_shipped")

    sample = commands.add_parser("sample", help="let a trained model write")
    sample.set_defaults(command=sample_command)
    sample.add_argument("folder", type=_path, help=anything)
    sample.add_argument("--prompt", help="how the text begins (default: its first token)")
    sample.add_argument("--tokens", type=int, default=200, help="how many (default: %(default)s)")
    sample.add_argument("--temperature", type=float, default=0.8, help="0 is greedy")
    sample.add_argument("--top-k", type=int)
    sample.add_argument("--top-p", type=float)
    sample.add_argument("--min-p", type=float)
    sample.add_argument("--seed", type=int, default=0)

    translate = commands.add_parser("translate", help="let a trained model translate")
    translate.set_defaults(command=translate_command)
    translate.add_argument("folder", type=_path, help=anything)
    translate.add_argument("text", nargs="+", help="one text or several")
    translate.add_argument(
        "--width", type=int, default=1, help="of the beam search (default: %(default)s, greedy)"
    )
    translate.add_argument("--length-penalty", type=float, default=0.6, help="default: %(default)s")
    for command in (train, resume, evaluate, sample, translate):
        command.add_argument(
            "--device", metavar="cpu|cuda|cuda:1|mps|xpu",
            help="where to compute (default: a GPU if there is one)",
        )  # fmt: skip
    for command in commands.choices.values():  # before the command or after it
        command.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS,
                             help=argparse.SUPPRESS)  # fmt: skip
    return top


def _path(text: str) -> str:
    """A folder's name as all programs understand it: without ~, or a dash in front."""
    text = os.path.expanduser(text)
    return f"./{text}" if text.startswith("-") else text


def changes_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """The recipe's fields that were given. What is JSON is read as JSON: numbers, true, {...}."""
    given = {name: getattr(chosen, name) for name in FIELDS}
    given["data"] = given["data"] and os.path.expanduser(given["data"])
    return {name: _value(name, text) for name, text in given.items() if text is not None}


def _value(name: str, text: str) -> Any:
    record, own = FIELDS[name]
    if KINDS.get(record, Recipe).__annotations__[own] is str:
        return text
    try:
        value = storage.parse_json(text)
        return tuple(value) if isinstance(value, list) else value
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "["):
            raise ValueError(
                f"--{name.replace('_', '-')} cannot be read: {error}. Write it as JSON, such as "
                f"'{{\"smear\": 3}}' or '[0.9, 0.95]'."
            ) from error
    for number in (int, float):  # .5, 1_000, nan
        with contextlib.suppress(ValueError):
            return number(text)
    return {"True": True, "False": False, "None": None}.get(text, text)


def train_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    recipe = recipe_from(chosen.preset, changes_of(chosen))
    how = f"Go on with it by `{PROGRAM} resume {shlex.quote(chosen.folder)}`"
    require_run_folder(chosen.folder, resumed=chosen.go_on, how=how)
    there = find_checkpoints(chosen.folder)
    return _train(recipe, chosen, arguments, resume=chosen.folder if there else None)


def _fits(preset: Recipe, task: str) -> bool:
    """Whether the preset, unchanged, can be trained on the first data set of ``task``, if any."""
    try:
        preset.with_changes(data=next((n for n in DATA if DATA[n].task == task), preset.data.name))
    except ValueError:
        return False
    return True


def recipe_from(name: str, changes: dict[str, Any]) -> Recipe:
    """A preset with changes; those of its model and its grammar are joined to its own.

    Raises:
        ValueError, TypeError: see :class:`Recipe`; or what is given is of a grammar, and the data
            have none.

    >>> recipe_from("gifts", {"model": {"d_ff": 256}}).model.options
    {'smear': 3, 'smear_start': 0.5, 'd_ff': 256}
    """
    preset = PRESETS[name]
    own = {"model": preset.model.options, "grammar": preset.data.grammar}
    joined = {key: {**own[key], **changes[key]} for key in own.keys() & changes.keys()
              if isinstance(changes[key], dict)}  # fmt: skip
    try:
        recipe = preset.with_changes(**changes | joined)
    except ValueError as error:
        task = DataRecipe(name=changes.get("data", preset.data.name)).task
        if preset.data.task != task and not _fits(preset, task):
            fitting = ", ".join(each for each in PRESETS if PRESETS[each].data.task == task)
            raise ValueError(
                f"the preset {name!r} is not for such data. Choose one that is: --preset "
                f"{fitting}. ({error})"
            ) from error
        raise
    strange = [each for each in OF_GRAMMARS if each in changes and not recipe.data.grammar_class]
    if strange:
        raise ValueError(
            f"{strange[0]} belongs to data of a grammar, and data is {recipe.data.name!r}, which "
            f"is read as it is. Leave it out."
        )
    return recipe


def resume_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    if not Path(chosen.folder).name:  # ".", which may be a checkpoint
        chosen.folder = os.path.abspath(chosen.folder)
    require_not_exported(chosen.folder)
    checkpoint = describe_checkpoint(chosen.folder, sizes=sizes_of)  # before a model is made
    recipe, path = recipe_of(checkpoint), checkpoint.path
    if not NAME.fullmatch(path.name):  # it was copied or renamed; a run goes on beside it
        raise ValueError(
            f"{path} is a checkpoint, but its folder is not named as a run names it. Copy it into "
            f"a folder of its own as step-{checkpoint.step:08d}, and resume that one."
        )
    chosen.folder = str(path.parent)
    return _train(recipe, chosen, arguments, resume=str(path))


def _train(recipe: Recipe, chosen, arguments: Sequence[str], resume: str | None) -> int:
    folder = Path(chosen.folder)
    with (
        processes(device=chosen.device) as (here, device),
        reporting(here, chosen.report) as report,
    ):
        run = trained_run(
            recipe, folder, resume=resume, report=report, processes=here, device=device,
            other_devices=getattr(chosen, "other_devices", False),
            command=shlex.join([*PROGRAM.split(), *arguments]),
        )  # fmt: skip
        if here.is_first:
            say(f"done: {_summary(run)}; run log: {find_log(folder, run.recipe, run.curve)}")
    return 0


def _summary(run: Run) -> str:
    measured = {name: column[-1] for name, column in run.curve.items()}
    measured = _measured(measured, run.corpus.floor, TASKS[run.recipe.data.task].answers)
    return f"{measured}, after {run.seconds:.0f} s of training, {run.wall:.0f} s in all"


def _measured(measured: dict[str, float], floor: float | None, answers: str) -> str:
    text = f"loss {measured['validation_loss']:.4f} nats a token"
    if floor is not None:
        text += f" (floor {floor:.4f})"
    if measured["accuracy"] == measured["accuracy"]:
        text += f", {measured['accuracy']:.2%} {answers}"
    return text + told({name: measured[name] for name in measured if name not in COLUMNS})


def evaluate_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    device = choose_device(chosen.device)
    trained = load_trained(chosen.folder, device=device)
    recipe, corpus = trained.recipe, corpus_of(trained.recipe)
    require_same_data(recipe, corpus, trained.data)
    if corpus.tokenizer.hash != trained.tokenizer.hash:
        raise ValueError(f"{recipe.data.name} has other tokens than the data of this model had.")
    precision = precision_here(recipe.precision or "float32", device)
    measured = TASKS[recipe.data.task].measures(trained.model, corpus, precision=precision)
    rows = f"{len(corpus.validation):,} rows"
    text = _measured(measured, corpus.floor, TASKS[recipe.data.task].answers)
    where = f", in {precision}, as {device} has no units for {recipe.precision}"
    say(f"step {trained.step}: {text} ({rows}{'' if precision == recipe.precision else where})")
    return 0


def export_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    say(f"written: {export(chosen.folder, chosen.destination)}")
    return 0


def sample_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    require_seed(chosen.seed)
    trained = load_trained(chosen.folder, device=choose_device(chosen.device))
    write = TASKS[trained.recipe.data.task].write
    if write is None:
        raise ValueError(
            f"{chosen.folder} is a translator, which does not go on with a text. Ask it with: "
            f"{PROGRAM} translate {shlex.quote(chosen.folder)} TEXT"
        )
    # Of byte pairs the first is the byte 0, which no text begins with.
    first = "\n" if hasattr(trained.tokenizer, "merges") else trained.tokenizer.vocabulary[0]
    prompt = first if chosen.prompt is None else chosen.prompt
    device = next(trained.model.parameters()).device
    options = {name: getattr(chosen, name) for name in ("temperature", "top_k", "top_p", "min_p")}
    options["generator"] = torch.Generator(device).manual_seed(chosen.seed)
    for piece in write(trained.model, trained.tokenizer, prompt, chosen.tokens, **options):
        say(piece, end="")
    say("")
    return 0


def translate_command(chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    trained = load_trained(chosen.folder, device=choose_device(chosen.device))
    translate = TASKS[trained.recipe.data.task].translate
    if translate is None:
        raise ValueError(
            f"{chosen.folder} is not a translator; it goes on with a text. Ask it with: {PROGRAM} "
            f"sample {shlex.quote(chosen.folder)} --prompt TEXT"
        )
    texts = chosen.text
    if trained.grammar is not None:  # in its script or transliterated
        texts = [trained.grammar.parse(text).source for text in texts]
    options = {"width": chosen.width, "length_penalty": chosen.length_penalty}
    for text in translate(trained.model, trained.tokenizer, texts, **options):
        say(text)
    return 0
