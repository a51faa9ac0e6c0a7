"""What a run tells while it trains: a progress bar (lines without a terminal), TensorBoard."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from transformer_lib.training.distributed import Processes
from transformer_lib.training.loop import Step
from transformer_lib.training.run import Report, Run


@contextmanager
def reporting(processes: Processes, tensorboard: str | os.PathLike | None) -> Iterator[Report]:
    """A function that shows a run's steps; only the first of several processes shows anything.

    Raises:
        ModuleNotFoundError: ``tensorboard`` names a folder, and TensorBoard is not installed.
    """
    if not processes.is_first:
        yield lambda run, step: None
        return
    writer = None if tensorboard is None else _writer(tensorboard)
    bar = tqdm(unit="step", disable=not sys.stderr.isatty(), dynamic_ncols=True)
    try:
        yield lambda run, step: _show(run, step, bar, writer)
    finally:
        bar.close()
        if writer is not None:
            writer.close()


def _show(run: Run, step: Step | None, bar: tqdm, writer) -> None:
    if step is None:
        bar.reset(total=run.recipe.n_steps)
        bar.update(run.trainer.step)
        bar.write(_beginning(run), file=sys.stderr)
        return
    bar.update(1)
    bar.set_postfix(
        {"loss": f"{step.loss:.3f}", "tokens/s": f"{step.tokens_per_second:,.0f}"}, refresh=False
    )
    measured = run.curve["step"] and run.curve["step"][-1] == step.step
    if measured:
        row = {name: column[-1] for name, column in run.curve.items()}
        accuracy = "" if row["accuracy"] != row["accuracy"] else f", answers {row['accuracy']:.1%}"
        bar.write(
            f"step {step.step}: training {row['training_loss']:.4f}, validation "
            f"{row['validation_loss']:.4f}{accuracy}, {row['seconds']:.0f} s",
            file=sys.stderr,
        )
    if writer is not None:
        scalars = {
            "loss/training": step.loss,
            "rate": step.rate,
            "gradient norm": step.gradient_norm,
            "tokens per second": step.tokens_per_second,
        }
        if measured:
            scalars["loss/validation"] = run.curve["validation_loss"][-1]
        for name, value in scalars.items():
            writer.add_scalar(name, value, step.step)


def _beginning(run: Run) -> str:
    trainer = run.trainer
    text = (
        f"{trainer.model.n_parameters:,} parameters on {trainer.device} in {trainer.precision}, "
        f"{trainer.processes.size} process(es), steps {trainer.step + 1} to {run.recipe.n_steps}"
    )
    if run.corpus.floor is not None:
        text += f"; floor {run.corpus.floor:.4f}"
        text += f", {run.corpus.seen} stories of the validation left out as trained on"
    return text


def _writer(folder: str | os.PathLike):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"TensorBoard is asked for, and {error.name} is not installed: pip install "
            f"tensorboard, or leave --tensorboard out."
        ) from error
    return SummaryWriter(os.fspath(folder))
