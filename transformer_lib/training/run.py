"""A recipe at work in a folder: trained, measured, saved, resumed.

A run's folder holds its last two checkpoints and, in the end, its run log. What happens to the
process in between (a signal, a full disk, no power) costs at most the steps since the last save.
"""

import os
import random
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer_lib import checks, storage
from transformer_lib.data.batches import Batches, Lessons, Source
from transformer_lib.data.bitext import Bundles
from transformer_lib.data.corpora import Corpus, describe_tokenizer, grammar_json
from transformer_lib.training import checkpoints
from transformer_lib.training.checkpoints import NAME, CheckpointError, find_checkpoints, saved_step
from transformer_lib.training.device import precision_here
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.loop import Step, Trainer
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run_log import RunLog, logs_in, new_run, save_run
from transformer_lib.training.tasks import TASKS, corpus_of, model_of
from transformer_lib.training.trained import (
    CPU,
    find_log,
    recipe_of,
    require_device,
    require_not_exported,
    require_same_run,
    sizes_of,
)
from transformer_lib.training.waking import put_to_sleep, wake

# Of each curve; what else a task measures has columns of its own.
COLUMNS = ("step", "training_loss", "validation_loss", "accuracy", "seconds")
# What a task does not measure: a run has it of itself.
OWN_COLUMNS = {"step", "training_loss", "seconds", "rate"}
# Sent by a machine that is taken back, by Ctrl-C, by a terminal that closes, by Slurm.
STOPPING_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1")
Report = Callable[["Run", Step | None], None]


class Stopped(Exception):
    """The run was asked to stop, and has been saved."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Stopping:
    """Notes a signal, so that the step in progress can be finished and saved.

    Attributes:
        number: of the signal that came; None so far.
    """

    def __init__(self):
        self.number: int | None = None
        self._at_once = False

    def note(self, number: int, frame=None) -> None:
        """A signal has come: a second Ctrl-C ends the program as usual, without saving."""
        if number == signal.SIGINT and self.number is not None:
            raise KeyboardInterrupt
        self.number = number
        if self._at_once:
            raise Stopped(number)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A context in which nothing is left to finish (all is saved): a signal raises at once.

        Raises:
            Stopped: a signal comes, or has come before.
        """
        self._at_once = True
        try:
            if self.number is not None:
                raise Stopped(self.number)
            yield
        finally:
            self._at_once = False


@contextmanager
def watching() -> Iterator[Stopping]:
    """A context in which the signals that ask for an end are noted by a :class:`Stopping`.

    One that is ignored (``nohup``) stays ignored. (In a thread, to which Python sends no signals,
    it never learns of any.)

    >>> with watching() as stopping:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stopping.number == signal.SIGTERM
    True
    """
    stopping = Stopping()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    numbers = [getattr(signal, name) for name in STOPPING_SIGNALS if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stopping.note) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Run:
    """A training run.

    Dropout draws from PyTorch's own random numbers, which begin anew when a run is made: what draws
    from them before its first step (another run, say) gives it other ones.

    Args:
        recipe: what is chosen.
        corpus: the data, :func:`~transformer_lib.training.tasks.corpus_of` the recipe if None.
        processes: of :func:`~transformer_lib.training.distributed.processes`.
        device: where the model is.

    Attributes:
        trainer: model, optimizer, batches.
        curve: what was measured at each evaluation, in columns.
        configuration: all that a checkpoint must agree in, for JSON.
        begun: the step that it was resumed at; 0 if it was not.
        seconds: that its steps took; ``wall``, with what lies between them: saving, measuring.

    Raises:
        ValueError, TypeError: the recipe makes no model, no optimizer or no data; or the device is
            not here.

    >>> run = Run(Recipe.of(n_steps=2, n_layers=1, d_model=16, n_stories=50, n_validation=5))
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
        device: torch.device = CPU,
    ):
        if not isinstance(recipe, Recipe):
            raise TypeError(f"recipe is {recipe!r:.60}; give a Recipe, such as PRESETS['gifts'].")
        require_device(torch.device(device))
        if corpus is not None:
            checks.require_kind(corpus, "corpus", Corpus)
        self.corpus = corpus_of(recipe) if corpus is None else corpus
        self.trainer = make_trainer(recipe, self.corpus, processes, torch.device(device))
        # What suited the device stays the run's: elsewhere it goes on as it began.
        self.recipe = recipe = recipe.with_changes(precision=self.trainer.precision)
        self.curve: dict[str, list[float]] = {name: [] for name in COLUMNS}
        self.begun = 0
        self.taught = sum(recipe.data.lessons.values())  # the last step of the lessons
        self.seconds, self.wall = 0.0, 0.0
        self._recent: list[float] = [0.0, 0]  # sum and number of losses since the last row
        self.configuration: dict[str, Any] = {
            "recipe": recipe.as_json(),
            "data": self.corpus.signature,
            "tokenizer": describe_tokenizer(self.corpus.tokenizer),
            "grammar": self.corpus.grammar and grammar_json(self.corpus.grammar),
        }

    def steps(
        self, folder: str | os.PathLike | None = None, stopping: Stopping | None = None
    ) -> Iterator[Step]:
        """Train to the end; yield each step after what belongs to it (saving, measuring) is done.

        Without a folder nothing is saved. From the first step to the last, or until the iterator is
        closed, no other program can train in the folder.

        Raises:
            InUseError: another program, or another run of this one, trains there.
            ValueError: ``folder`` holds another run, or a run, and this one has taken no step.
            Stopped: ``stopping`` noted a signal; the last step has been saved.
            FloatingPointError, LostProcessError, OSError: see ``Trainer``, ``Processes``,
                ``save_checkpoint``. The checkpoints in the folder are as they were. (Whether the
                folder can be written to is tried before the first step.)
        """
        trainer = self.trainer
        folder = None if folder is None else absolute(folder)
        ended = trainer.step == self.recipe.n_steps and trainer.step in self.curve["step"]
        with holding(None if ended else folder, trainer.processes) as hold:
            yield from self._steps(folder, Stopping() if stopping is None else stopping, hold)

    def _steps(
        self, folder: str | os.PathLike | None, stopping: Stopping, hold: Callable[[], None]
    ) -> Iterator[Step]:
        """:meth:`steps` in a folder that is held."""
        recipe, trainer = self.recipe, self.trainer
        if folder is not None and trainer.processes.is_first:
            require_own_folder(self, folder)
        trainer.asked = lambda: stopping.number is not None
        start = time.perf_counter() - self.wall
        if self._measures(trainer.step) and trainer.step not in self.curve["step"]:
            self._measure(folder, stopping, hold)  # it was saved before that
        for step in trainer:
            self.seconds += step.seconds
            self._recent = [self._recent[0] + step.loss, self._recent[1] + 1]
            self.wall = time.perf_counter() - start
            if recipe.data.lesson_heads and step.step == self.taught:
                wake(trainer.model, recipe.data.lesson_heads, recipe.seed)
            # One process alone need not wait for the next step, which would tell all of them.
            asked = step.asked or (trainer.processes.size == 1 and stopping.number is not None)
            measures = self._measures(step.step)
            if folder is not None and (asked or measures or step.step % recipe.save_every == 0):
                hold()
                self.save(folder)
            if asked:
                raise Stopped(stopping.number or signal.SIGTERM)
            if measures:
                self._measure(folder, stopping, hold)
            self.wall = time.perf_counter() - start
            yield step

    def _measure(
        self, folder: str | os.PathLike | None, stopping: Stopping, hold: Callable[[], None]
    ) -> None:
        self.measure(stopping)
        if folder is not None and self.trainer.step == self.recipe.n_steps:
            hold()
            self.save(folder)  # with the last row of the curve

    def _measures(self, step: int) -> bool:
        every, last = self.recipe.evaluate_every, self.recipe.n_steps
        return step > 0 and (step % every == 0 or step == last)

    def measure(self, stopping: Stopping | None = None) -> dict[str, float]:
        """Add a row to the curve: what the task measures, such as the exact loss on the validation
        data and the share of answers. A column that begins later, or ends, has NaN elsewhere.
        """
        trainer = self.trainer
        options = {"precision": trainer.precision, "processes": trainer.processes}
        with (stopping or Stopping()).at_once():
            measured = TASKS[self.recipe.data.task].measures(trainer.model, self.corpus, **options)
        total, count = self._recent
        mean = total / count if count else float("nan")
        measured = {name: float(value) for name, value in measured.items()}
        if taken := OWN_COLUMNS & set(measured):
            raise ValueError(
                f"the task's measures name {sorted(taken)}, which are the run's own columns. Give "
                f"yours other names."
            )
        row = {"step": trainer.step, "training_loss": mean, **measured, "seconds": self.seconds}
        for name in row:
            self.curve.setdefault(name, [float("nan")] * len(self.curve["step"]))
        for name, column in self.curve.items():
            column.append(row.get(name, float("nan")))
        self._recent = [0.0, 0]
        return row

    def save(self, folder: str | os.PathLike) -> Path | None:
        """A checkpoint of the run as it is; the first process writes it and returns its path.

        Raises:
            ValueError: ``folder`` holds another run, whose checkpoints would be deleted.
        """
        state = self.trainer.state_dict()
        state["run"] = {"curve": self.curve, "seconds": self.seconds, "recent": self._recent}
        state["run"]["wall"] = self.wall
        _progress(state, self.trainer.step)  # or it would not be read again
        if not self.trainer.processes.is_first:
            return None
        require_own_folder(self, folder)
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
        With ``other_devices`` the precision may be another one, too; a scaled loss finds its scale
        anew.

        Raises:
            FileNotFoundError, CheckpointError: see ``load_checkpoint``; or it is of another recipe
                or other data.
            ValueError: another number of processes, see ``Trainer.load_state_dict``.
        """
        saved = checkpoints.load_checkpoint(path, sizes=sizes_of)
        recipe, precision = self.recipe, recipe_of(saved).precision
        if other_devices:
            recipe = recipe.with_changes(precision=precision)
        require_same_run(saved, recipe, self.corpus)
        try:
            curve, seconds, wall, recent = _progress(saved.state, saved.step)
            saved.state["model"] = TASKS[self.recipe.data.task].names(saved.state["model"])
            if recipe != self.recipe:
                _in_other_precision(saved.state, self.trainer)
            self.trainer.load_state_dict(saved.state, other_devices=other_devices)
        except torch.OutOfMemoryError:
            raise
        except (KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise CheckpointError(
                saved.path,
                f"does not hold the state of a run ({type(error).__name__}: {error!s:.500}).",
                "If a loop of your own saved it, load it there by load_checkpoint.",
            ) from error
        self.curve, self.seconds, self.wall, self._recent = curve, seconds, wall, recent
        self.begun, threads = saved.step, torch.get_num_threads()
        alike = saved.threads == threads or self.trainer.device.type != "cpu"
        if not alike and self.trainer.processes.is_first:
            warnings.warn(
                f"the run was saved with {saved.threads} threads of PyTorch, and here there are "
                f"{threads}: it goes on, but not bit for bit, as sums are rounded differently. Set "
                f"OMP_NUM_THREADS={saved.threads} for the same bits.",
                stacklevel=2,
            )


def _in_other_precision(state: dict[str, Any], trainer: Trainer) -> None:
    """Put what belongs to the trainer's own precision into a state that was saved in another."""
    state["scaler"] = trainer.scaler.state_dict()
    groups = zip(state["optimizer"]["param_groups"], trainer.optimizer.param_groups, strict=True)
    for group, own in groups:
        if "dtype" in own:  # that Muon computes in
            group["dtype"] = own["dtype"]


def _progress(state: dict[str, Any], step: int) -> tuple[dict, float, float, list]:
    """Curve, seconds, seconds by the clock on the wall, and recent losses that a run has saved.

    Raises:
        KeyError, TypeError: they are not there, or are something else.
    """
    run = state["run"]
    curve, seconds, recent = run["curve"], run["seconds"], run["recent"]
    wall = run.get("wall", seconds)  # younger than the first checkpoints
    if state["step"] != step:
        raise TypeError(f"its step is {state['step']!r:.80}, and that of its manifest is {step}")
    numbers = [*curve.values(), recent, [seconds, wall]]
    if not set(COLUMNS) <= set(curve) or len({*map(len, curve.values())}) != 1 or len(recent) != 2:
        raise TypeError("its curve lacks a column, or has columns of unequal length")
    if not all(isinstance(number, int | float) for column in numbers for number in column):
        raise TypeError("its curve holds something other than numbers")
    return curve, seconds, wall, recent


def make_trainer(
    recipe: Recipe, corpus: Corpus, processes: Processes, device: torch.device
) -> Trainer:
    """The model, its optimizer and its data, made from ``recipe.seed``."""
    require_memory(recipe, corpus, device)
    require_bundles(corpus.training, processes.size * recipe.accumulation)
    seed_everything(recipe.seed)
    model = model_of(recipe, corpus.tokenizer).to(device)
    if recipe.data.lesson_heads:
        put_to_sleep(model, recipe.data.lesson_heads)
    optimizer = recipe.make_optimizer(model)
    loss = TASKS[recipe.data.task].loss
    if recipe.label_smoothing:
        loss = partial(loss, label_smoothing=recipe.label_smoothing)
    data = recipe.data
    rows = 1 if data.batch_tokens else data.batch_size  # of bundles, each a whole batch
    batches = Batches(corpus.training, rows, seed=recipe.seed)
    if corpus.lessons:
        first = [(Batches(each, rows, seed=recipe.seed), steps) for each, steps in corpus.lessons]
        batches = Lessons(first, then=batches)
    seed_everything(recipe.seed + 1 + processes.rank)  # dropout: other numbers in each process
    return Trainer(
        model,
        optimizer,
        batches,
        n_steps=recipe.n_steps,
        loss=loss,
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
    device: torch.device = CPU,
    other_devices: bool = False,
    command: str | None = None,
) -> Run:
    """Train by ``recipe`` to the end, saving into ``folder``; ``resume`` from a checkpoint.

    The run log says that ``command`` does it again; that which started this program if None.

    A signal (:data:`STOPPING_SIGNALS`) saves after the step in progress and raises
    :class:`Stopped`. No other program can train in ``folder`` meanwhile; the processes that
    ``torchrun`` starts are one run, and the first of them holds the folder.

    With ``other_devices`` a run goes on in another precision where ``device`` lacks its own.

    Raises:
        InUseError: another program trains there.
        ValueError: ``folder`` holds a run, and ``resume`` is None.
    """
    report = report or (lambda run, step: None)
    if folder is not None:
        folder = absolute(folder)
        require_run_folder(folder, resume is not None)
    if other_devices and recipe.precision is not None:
        recipe = recipe.with_changes(precision=precision_here(recipe.precision, device))
    with watching() as stopping, ExitStack() as held:
        with stopping.at_once():
            run = Run(recipe, processes=processes, device=device)
            hold = held.enter_context(holding(folder, processes))
            if folder is not None and processes.is_first:
                require_run_folder(folder, resume is not None)  # another program may have trained
                storage.sweep(Path(folder), "step-*")
            if resume is not None:
                run.load(resume, other_devices=other_devices)
        report(run, None)
        for step in run._steps(folder, stopping, hold):
            report(run, step)
        done = folder is not None and processes.is_first
        if done and find_log(folder, run.recipe, run.curve) is None:  # a finished run has one
            save_run(_log_of(run, Path(folder), command), folder)
    return run


def absolute(folder: str | os.PathLike) -> Path:
    """The folder, also if the program goes elsewhere meanwhile."""
    storage.require_named(folder)
    return Path(folder).absolute()


@contextmanager
def holding(folder: str | os.PathLike | None, processes: Processes) -> Iterator[Callable[[], None]]:
    """A context in which no other program can train in ``folder``; the first process holds it, by
    :func:`~transformer_lib.storage.locked`.

    Raises:
        InUseError: another program trains there.
        OSError: nothing can be written there.
    """
    if folder is None or not processes.is_first:
        yield lambda: None
        return
    storage.require_writable(Path(folder))
    with storage.locked(Path(folder)) as hold:
        yield hold


def _log_of(run: Run, folder: Path, command: str | None) -> RunLog:
    corpus = run.corpus
    measured = {name for name, column in run.curve.items() if column[-1] == column[-1]}  # not NaN
    curve = {n: c for n, c in run.curve.items() if n != "accuracy" or n in measured}
    result = {name: column[-1] for name, column in curve.items()}
    result |= {
        "parameters": n_parameters(run.trainer.model),
        "wall_seconds": run.wall,
        "floor": corpus.floor,
        "seen": corpus.seen,
    }
    return new_run(
        _log_name(folder),
        config=run.recipe.as_json()
        | {"processes": run.trainer.processes.size, "device": str(run.trainer.device)},
        curve=curve,
        result=result,
        command=command,
    )


def _log_name(folder: Path) -> str:
    """The folder's own, and more where a file of that name is somebody else's."""
    words = "".join(c if c.isalnum() and c.isascii() else "-" for c in folder.name.lower())
    name = "-".join(filter(None, words.split("-"))) or "run"
    while os.path.lexists(path := folder / f"{name}.json") and path not in logs_in(folder):
        name += "-run"
    return name


def n_parameters(model: nn.Module) -> int:
    """How many numbers any model learns; a shared one counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def require_bundles(source: Source, parts: int) -> None:
    """Each bundle, a whole batch, has a pair for each part in which it is computed.

    Raises:
        ValueError: one does not, and the run could not go on when it comes.
    """
    if isinstance(source, Bundles) and source.fewest < parts:
        raise ValueError(
            f"batch_tokens makes a batch of {source.fewest} pairs, for processes × accumulation = "
            f"{parts} parts, and each needs one. Choose a larger batch_tokens, or fewer parts."
        )


def require_memory(recipe: Recipe, corpus: Corpus, device: torch.device) -> None:
    """Weights, gradients and what an optimizer keeps, one number for each at the least, fit into
    the memory of ``device``, where PyTorch or the system says how much it has.

    Raises:
        ValueError: they do not.
    """
    with torch.device("meta"):
        needed = 3 * sum(p.nbytes for p in model_of(recipe, corpus.tokenizer).parameters())
    there = memory_of(device)
    if needed > there:
        raise ValueError(
            f"n_layers = {recipe.model.n_layers} and d_model = {recipe.model.d_model} make a model "
            f"that needs {needed / 2**30:,.0f} GiB to be trained, and {device} has "
            f"{there / 2**30:,.0f} GiB. Choose smaller ones."
        )


def memory_of(device: torch.device) -> float:
    """Bytes; infinity where nobody says."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if device.type == "cpu" and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def require_run_folder(
    folder: str | os.PathLike, resumed: bool, how: str = "Resume that one"
) -> None:
    """A run can be saved there, and holds no other run, unless that is resumed (``how`` to)."""
    storage.require_named(folder)
    name = os.fspath(folder)
    if NAME.fullmatch(Path(name).name):
        raise ValueError(
            f"{name} has the name of a checkpoint, and would be taken for one. Choose another name "
            f"for the run's folder."
        )
    require_not_exported(folder)
    there = [] if resumed else find_checkpoints(folder)
    if there:
        raise ValueError(
            f"{name} holds a run already, saved at step {saved_step(there[-1])}. {how}, or "
            f"choose another folder."
        )


def require_own_folder(run: Run, folder: str | os.PathLike) -> None:
    """A run that has begun may save there: no checkpoint is of another run. (This one may have gone
    on in another precision, and from an older version's recipe.)
    """
    own = run.trainer.step > 0
    for path in find_checkpoints(folder):
        try:
            saved = checkpoints.describe_checkpoint(path)
        except (CheckpointError, FileNotFoundError):
            continue  # it is damaged, or has just been deleted
        try:
            recipe = run.recipe.with_changes(precision=recipe_of(saved).precision)
            require_same_run(saved, recipe, run.corpus)
        except checkpoints.NONSENSE:
            own = False
    require_run_folder(folder, own, "Go on with that one by run.load")
