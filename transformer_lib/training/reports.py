"""Reports of a run: in the terminal, to TensorBoard, to Weights & Biases, into a file.

A terminal may obey what it is shown, lack a letter, or have been closed.
"""

import contextlib
import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from transformer_lib.training.distributed import Processes
from transformer_lib.training.loop import Step
from transformer_lib.training.run import COLUMNS, Report, Run, n_parameters


@contextlib.contextmanager
def reporting(processes: Processes, reports: Sequence[str] = ()) -> Iterator[Report]:
    """A function that reports a run's steps to the terminal, and to each of ``reports``.

    Only the first of several processes reports anything.

    Args:
        reports: such as ``"tensorboard=FOLDER"``: a name in :data:`REPORTS`, and where to.

    Raises:
        ValueError: there is no such report, or no place for it.
        ModuleNotFoundError: what it needs is not installed.
    """
    if not processes.is_first:
        yield lambda run, step: None
        return
    with contextlib.ExitStack() as stack:
        each = dict.fromkeys(reports)  # once
        chosen = [stack.enter_context(contextlib.closing(_report(one))) for one in each]
        chosen.append(stack.enter_context(contextlib.closing(Terminal())))

        def report(run: Run, step: Step | None) -> None:
            for one in chosen:
                one(run, step)

        yield report


def _report(asked: str) -> Report:
    name, _, place = asked.partition("=")
    if name not in REPORTS or not place:
        known = ", ".join(f"{name}={where}" for name, (_, where) in REPORTS.items())
        raise ValueError(
            f"the report {asked!r} is not one of {known}: give a name, =, and where it goes."
        )
    return REPORTS[name][0](place)


class Terminal:
    """A progress bar; lines where there is no terminal."""

    def __init__(self) -> None:
        visible = sys.stderr is not None and sys.stderr.isatty()
        self.bar = tqdm(unit="step", disable=not visible, dynamic_ncols=True)

    def __call__(self, run: Run, step: Step | None) -> None:
        try:
            _show(run, step, self.bar)
        except OSError:  # the terminal has closed: the run goes on without a bar
            self.bar.disable = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.bar.close()


class TensorBoard:
    """Events in a folder."""

    def __init__(self, folder: str) -> None:
        with _needed("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self.writer = SummaryWriter(folder)

    def __call__(self, run: Run, step: Step | None) -> None:
        for name, value in _numbers(run, step).items():
            self.writer.add_scalar(name, value, step.step)

    def close(self) -> None:
        self.writer.close()


class WeightsAndBiases:
    """A run of a project."""

    def __init__(self, project: str) -> None:
        with _needed("wandb"):
            import wandb
        self.run = wandb.init(project=project)

    def __call__(self, run: Run, step: Step | None) -> None:
        if step is None:
            self.run.config.update(run.recipe.as_json(), allow_val_change=True)
        else:
            self.run.log(_numbers(run, step), step=step.step)

    def close(self) -> None:
        self.run.finish(exit_code=int(sys.exc_info()[0] is not None))  # 1: it has crashed


class Lines:
    """A line of JSON for each step, at the end of a file: a new one, or one with such lines."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()  # wherever the program goes meanwhile
        with self._writing():
            _require_lines(self.path)
            self.path.open("a").close()  # what cannot be written is known before the first step

    def __call__(self, run: Run, step: Step | None) -> None:
        if step is not None:
            numbers = {n: x if math.isfinite(x) else None for n, x in _numbers(run, step).items()}
            line = json.dumps({"step": step.step, **numbers})
            with self._writing(), self.path.open("a", encoding="utf-8") as file:
                print(line, file=file)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno,
                f"the report cannot be written there ({error.strerror}). Make room there, or name "
                f"a file, in a folder that exists, that you may write to",
                str(self.path),
            ) from error

    def close(self) -> None:
        """It is closed after each line."""


def _require_lines(path: Path) -> None:
    """A file that is there already is a report: what it holds is not somebody's own text. A last
    line that a full disk or a kill has cut is dropped: the run takes that step again.
    """
    if not path.is_file():
        return
    end = 0
    with path.open("r+b") as file:
        for number, line in enumerate(file, start=1):
            try:
                json.loads(line)["loss/training"]
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                if line[:9] == b'{"step": '[: len(line)] and not line.endswith(b"\n"):
                    file.truncate(end)
                    return
                raise ValueError(
                    f"{path} is there already, and is not a report: its line {number} is not one "
                    f"of a report's. Name another file."
                ) from error
            end += len(line)
        if end and not line.endswith(b"\n"):
            file.write(b"\n")


# By name: what makes a report out of where it goes to, and what that is.
REPORTS = {
    "tensorboard": (TensorBoard, "FOLDER"),
    "wandb": (WeightsAndBiases, "PROJECT"),
    "file": (Lines, "FILE"),
}


@contextlib.contextmanager
def _needed(package: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a report needs {package}, and {error.name} is not installed: pip install {package}, "
            f"or leave the report out."
        ) from error


def _numbers(run: Run, step: Step | None) -> dict[str, float]:
    """What is known of a step, by name; nothing before the first."""
    if step is None:
        return {}
    found = {
        "loss/training": step.loss,
        "rate": step.rate,
        "gradient norm": step.gradient_norm,
        "tokens per second": step.tokens_per_second,
    }
    if _was_measured(run, step):
        found["loss/validation"] = run.curve["validation_loss"][-1]
        row = {"accuracy": run.curve["accuracy"][-1], **others(run)}
        found |= {name: value for name, value in row.items() if not math.isnan(value)}
    return found


def others(run: Run) -> dict[str, float]:
    """What the run's task measures besides loss and accuracy, as it was last."""
    return {name: column[-1] for name, column in run.curve.items() if name not in COLUMNS}


def _show(run: Run, step: Step | None, bar: tqdm) -> None:
    if step is None:
        bar.reset(total=run.recipe.n_steps)
        bar.update(run.trainer.step)
        _tell_above(bar, _beginning(run))
        return
    bar.update(1)
    bar.set_postfix(
        {"loss": f"{step.loss:.3f}", "tokens/s": f"{step.tokens_per_second:,.0f}"}, refresh=False
    )
    if _was_measured(run, step):
        row = {name: column[-1] for name, column in run.curve.items()}
        accuracy = "" if row["accuracy"] != row["accuracy"] else f", answers {row['accuracy']:.1%}"
        _tell_above(
            bar,
            f"step {step.step}: training {row['training_loss']:.4f}, validation "
            f"{row['validation_loss']:.4f}{accuracy}{told(others(run))}, {row['seconds']:.0f} s",
        )


def told(measured: dict[str, float]) -> str:
    """Measures, as they follow others in a line."""
    return "".join(f", {name} {value:.4f}" for name, value in measured.items())


def _tell_above(bar: tqdm, text: str) -> None:
    with bar.external_write_mode(file=sys.stderr):
        tell(text)


def _was_measured(run: Run, step: Step) -> bool:
    return run.curve["step"][-1:] == [step.step]


def _beginning(run: Run) -> str:
    trainer = run.trainer
    text = (
        f"{n_parameters(trainer.model):,} parameters on {trainer.device} in {trainer.precision}, "
        f"{trainer.processes.size} process(es), "
    )
    n_gpus = torch.cuda.device_count() if trainer.device.type == "cuda" else 0
    if n_gpus > int(os.environ.get("LOCAL_WORLD_SIZE", "1")):  # torchrun sets it
        text += (
            f"of {n_gpus} GPUs here (torchrun --standalone --nproc-per-node={n_gpus} takes all), "
        )
    ended = trainer.step == run.recipe.n_steps
    text += "no step left" if ended else f"steps {trainer.step + 1} to {run.recipe.n_steps}"
    if run.corpus.floor is not None:
        text += f"; floor {run.corpus.floor:.4f}"
        text += f", {run.corpus.seen} validation stories left out, as they are trained on"
    return text


def say(text: str, end: str = "\n") -> None:
    """Print a result.

    Raises:
        OSError: it cannot be written.
    """
    if sys.stdout is not None:  # None if it was closed before the program began
        print(_for_terminal(text, sys.stdout), end=end, flush=True)


def tell(text: str) -> None:
    """Print a message on stderr. Where nobody can read it, that is not a reason to end a run."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(_for_terminal(text, sys.stderr), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """``text`` without what a terminal would obey, or show in another order: that is spelled out.

    (Texts come from files, tokenizers and servers.)

    >>> printable("\\x1b[2J roses")
    '\\\\x1b[2J roses'
    """
    return "".join(ascii(c)[1:-1] if _is_command(c) else c for c in text)


def _is_command(character: str) -> bool:
    if character in "\n\t\u200c\u200d":  # Kannada, for one, needs the last two
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _for_terminal(text: str, stream) -> str:
    encoding = stream.encoding or "utf-8"
    return printable(text).encode(encoding, "backslashreplace").decode(encoding)
