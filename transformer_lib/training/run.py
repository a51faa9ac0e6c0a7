"""A recipe at work in a folder: trained, measured, saved, resumed.

A run's folder holds its last two checkpoints and, in the end, its run log. What happens to the
process in between (a signal, a full disk, no power) costs at most the steps since the last save.
"""

import os
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer_lib.data.batches import Batches
from transformer_lib.gpt import GPT, current_names
from transformer_lib.training import checkpoints, files
from transformer_lib.training.corpora import Corpus, corpus_of, describe_tokenizer
from transformer_lib.training.device import best_device
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.loop import Step, Trainer
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.stopping import Stopped, Stopping, watching

COLUMNS = ("step", "training_loss", "validation_loss", "accuracy", "seconds")
Report = Callable[["Run", Step | None], None]


class Run:
    """A training run.

    Args:
        recipe: what is chosen.
        corpus: the data, :func:`~transformer_lib.training.corpora.corpus_of` the recipe if None.
        processes, device: of :func:`~transformer_lib.training.distributed.processes`.

    Attributes:
        trainer: model, optimizer, batches.
        curve: what was measured at each evaluation, in columns.
        configuration: all that a checkpoint must agree in, for JSON.
        begun: the step that it was resumed at; 0 if it was not.

    Raises:
        ValueError, TypeError: the recipe makes no model, no optimizer or no data.

    >>> run = Run(Recipe(n_steps=2, n_layers=1, d_model=16, n_stories=50, n_validation=5))
    >>> for step in run.steps():
    ...     pass
    >>> run.curve["step"]
    [2]
    """

    def __init__(
        self,
        recipe: Recipe,
        corpus: Corpus | None = None,
        *,
        processes: Processes = ALONE,
        device: torch.device | None = None,
    ):
        self.corpus = corpus_of(recipe) if corpus is None else corpus
        self.trainer = make_trainer(recipe, self.corpus, processes, device or best_device())
        # What the device was best at stays the run's: elsewhere it goes on as it began.
        self.recipe = recipe = recipe.with_changes(precision=self.trainer.precision)
        self.curve: dict[str, list[float]] = {name: [] for name in COLUMNS}
        self.begun = 0
        self.seconds, self._recent = 0.0, [0.0, 0]  # sum and number of losses since the last row
        self.configuration: dict[str, Any] = {
            "recipe": recipe.as_json(),
            "data": self.corpus.signature,
            "tokenizer": describe_tokenizer(self.corpus.tokenizer),
        }

    def steps(
        self, folder: str | os.PathLike | None = None, stopping: Stopping | None = None
    ) -> Iterator[Step]:
        """Train to the end; yield each step after what belongs to it (saving, measuring) is done.

        Without a folder nothing is saved.

        Raises:
            Stopped: ``stopping`` noted a signal; the last step has been saved.
            FloatingPointError, LostProcessError, OSError: see ``Trainer``, ``Processes``,
                ``save_checkpoint``. The checkpoints in the folder are as they were. (Whether the
                folder can be written to is tried before the first step.)
        """
        recipe, trainer = self.recipe, self.trainer
        if folder is not None and trainer.step < recipe.n_steps and trainer.processes.is_first:
            files.check_writable(Path(folder))
        stopping = Stopping() if stopping is None else stopping
        if self._measures(trainer.step) and trainer.step not in self.curve["step"]:
            self._measure(folder, stopping)  # it was saved before that
        for step in trainer:
            self.seconds += step.seconds
            self._recent = [self._recent[0] + step.loss, self._recent[1] + 1]
            asked = trainer.processes.any(stopping.number is not None)
            measures = self._measures(step.step)
            if folder is not None and (asked or measures or step.step % recipe.save_every == 0):
                self.save(folder)
            if asked:
                raise Stopped(stopping.number or signal.SIGTERM)
            if measures:
                self._measure(folder, stopping)
            yield step

    def _measure(self, folder: str | os.PathLike | None, stopping: Stopping) -> None:
        self.measure(stopping)
        if folder is not None and self.trainer.step == self.recipe.n_steps:
            self.save(folder)  # with the last row of the curve

    def _measures(self, step: int) -> bool:
        every, last = self.recipe.evaluate_every, self.recipe.n_steps
        return step > 0 and (step % every == 0 or step == last)

    def measure(self, stopping: Stopping | None = None) -> dict[str, float]:
        """Add a row to the curve: the exact loss on the validation data, the share of answers."""
        trainer, corpus = self.trainer, self.corpus
        options = {"precision": trainer.precision, "processes": trainer.processes}
        options["batch_size"] = max(1, 2**14 // corpus.validation.inputs.shape[1])
        with (stopping or Stopping()).at_once():
            loss = mean_loss(trainer.model, corpus.validation, **options)
            accuracy = float("nan")
            if corpus.answers is not None:
                accuracy = answer_accuracy(
                    trainer.model, corpus.validation, corpus.answers, **options
                )
        total, count = self._recent
        mean = total / count if count else float("nan")
        row = dict(zip(COLUMNS, (trainer.step, mean, loss, accuracy, self.seconds), strict=True))
        for name, value in row.items():
            self.curve[name].append(value)
        self._recent = [0.0, 0]
        return row

    def save(self, folder: str | os.PathLike) -> Path | None:
        """A checkpoint of the run as it is; the first process writes it and returns its path."""
        state = self.trainer.state_dict()
        state["run"] = {"curve": self.curve, "seconds": self.seconds, "recent": self._recent}
        if not self.trainer.processes.is_first:
            return None
        return checkpoints.save_checkpoint(
            folder,
            self.trainer.step,
            state,
            configuration=self.configuration,
            vocabulary=self.corpus.tokenizer.hash,
        )

    def load(self, path: str | os.PathLike, *, other_devices: bool = False) -> None:
        """Go on from a checkpoint, of a run's folder the newest.

        It warns if PyTorch used another number of threads then: sums are then rounded otherwise.

        Raises:
            FileNotFoundError, CheckpointError: see ``load_checkpoint``.
            ValueError: another number of processes, see ``Trainer.load_state_dict``.
        """
        saved = checkpoints.load_checkpoint(
            path, configuration=self.configuration, vocabulary=self.corpus.tokenizer.hash
        )
        saved.state["model"] = current_names(saved.state["model"])
        self.trainer.load_state_dict(saved.state, other_devices=other_devices)
        self.begun, threads = saved.step, torch.get_num_threads()
        alike = saved.threads == threads or self.trainer.device.type != "cpu"
        if not alike and self.trainer.processes.is_first:
            warnings.warn(
                f"the run was saved with {saved.threads} threads of PyTorch, and here are "
                f"{threads}: it goes on, but not bit for bit, as sums are rounded otherwise. Set "
                f"OMP_NUM_THREADS={saved.threads} for the same bits.",
                stacklevel=2,
            )
        run = saved.state["run"]
        self.curve, self.seconds, self._recent = run["curve"], run["seconds"], run["recent"]


def make_trainer(
    recipe: Recipe, corpus: Corpus, processes: Processes, device: torch.device
) -> Trainer:
    """The model, its optimizer and its data, made from ``recipe.seed``."""
    seed_everything(recipe.seed)
    model = GPT(recipe.model_config(corpus.tokenizer.size)).to(device)
    optimizer = recipe.make_optimizer(model)
    seed_everything(recipe.seed + 1 + processes.rank)  # dropout: other numbers in each process
    return Trainer(
        model,
        optimizer,
        Batches(corpus.training, recipe.batch_size, seed=recipe.seed),
        n_steps=recipe.n_steps,
        schedule=recipe.factor,
        accumulation=recipe.accumulation,
        clip=recipe.clip,
        precision=recipe.precision,
        processes=processes,
        compiled=recipe.compiled,
        deterministic=recipe.deterministic,
    )


def seed_everything(seed: int) -> None:
    """Python's, NumPy's and PyTorch's generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (others may draw from it)
    torch.manual_seed(seed)


def trained_run(
    recipe: Recipe,
    folder: str | os.PathLike | None = None,
    *,
    resume: str | os.PathLike | None = None,
    report: Report | None = None,
    processes: Processes = ALONE,
    device: torch.device | None = None,
    other_devices: bool = False,
) -> Run:
    """Train by ``recipe`` to the end, saving into ``folder``; ``resume`` from a checkpoint.

    SIGTERM and Ctrl-C save after the step in progress and raise :class:`Stopped`.
    """
    report = report or (lambda run, step: None)
    with watching() as stopping:
        with stopping.at_once():
            run = Run(recipe, processes=processes, device=device)
            if resume is not None:
                run.load(resume, other_devices=other_devices)
        report(run, None)
        for step in run.steps(folder, stopping):
            report(run, step)
    return run
