"""A run as a person sees it: lines and a progress bar in the terminal, and TensorBoard.

A terminal may obey what it is shown, lack a letter, or have been closed.
"""

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator

import torch
from torch import nn
from tqdm import tqdm

from transformer_lib.training.distributed import Processes
from transformer_lib.training.loop import Step
from transformer_lib.training.run import Report, Run


@contextlib.contextmanager
def reporting(processes: Processes, tensorboard: str | os.PathLike | None) -> Iterator[Report]:
    """A function that shows a run's steps: a progress bar (lines without a terminal), TensorBoard.

    Only the first of several processes shows anything.

    Raises:
        ModuleNotFoundError: ``tensorboard`` names a folder, and TensorBoard is not installed.
    """
    if not processes.is_first:
        yield lambda run, step: None
        return
    writer = None if tensorboard is None else _writer(tensorboard)
    visible = sys.stderr is not None and sys.stderr.isatty()
    bar = tqdm(unit="step", disable=not visible, dynamic_ncols=True)

    def report(run: Run, step: Step | None) -> None:
        try:
            _show(run, step, bar)
        except OSError:  # the terminal has closed: the run goes on without a bar
            bar.disable = True
        if writer is not None and step is not None:
            _write_events(run, step, writer)

    try:
        yield report
    finally:
        with contextlib.suppress(OSError):
            bar.close()
        if writer is not None:
            writer.close()


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
            f"{row['validation_loss']:.4f}{accuracy}, {row['seconds']:.0f} s",
        )


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


def _write_events(run: Run, step: Step, writer) -> None:
    scalars = {
        "loss/training": step.loss,
        "rate": step.rate,
        "gradient norm": step.gradient_norm,
        "tokens per second": step.tokens_per_second,
    }
    if _was_measured(run, step):
        scalars["loss/validation"] = run.curve["validation_loss"][-1]
    for name, value in scalars.items():
        writer.add_scalar(name, value, step.step)


def _writer(folder: str | os.PathLike):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"TensorBoard is asked for, and {error.name} is not installed: pip install "
            f"tensorboard, or leave --tensorboard out."
        ) from error
    return SummaryWriter(os.fspath(folder))


def n_parameters(model: nn.Module) -> int:
    """How many numbers any model learns; a shared one counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def say(text: str, end: str = "\n") -> None:
    """Print a result.

    Raises:
        OSError: it cannot be written.
    """
    if sys.stdout is not None:  # so it is if it was closed before the program began
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
