"""A small Transformer that is trained in the reader's browser."""

from collections.abc import Sequence
from typing import ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant
from transformer_lib.widgets.driving import Action, Flag, Number, Option
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.joining import bundle, stylesheet, worker

TASKS = ("repeats", "pairs", "owner", "sort")
RATES = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
USUAL = {"adam": 0.005, "muon": 0.02}  # of these rates, for each optimizer
SEEDS = (1, 2, 3, 4, 5)
WIDTH = 32


class TrainHere(Widget):
    """A model of one or two layers of attention that learns from nothing while the reader watches.

    It has one head in each layer, vectors of 32 numbers and no feed-forward layers; its gradients
    are computed in plain JavaScript, in a worker. A task's texts are drawn anew for every step, and
    the model is asked only for words that can be known for certain, so the loss of a perfect model
    is exactly 0. The tasks: *repeats* (different letters again and again; how many there are is
    drawn), *pairs* (letters, each with a digit; which digit went with this one?), *owner* (things
    are given to people, and given away again; who has this one?) and *sort* (different digits, then
    the same in order).

    Args:
        task: ``"repeats"``, ``"pairs"``, ``"owner"`` or ``"sort"``.
        layers: 1 or 2.
        smear: whether each word's vector gets a learned share of that of the word before.
        optimizer: ``"muon"`` or ``"adam"``.
        rate: the learning rate, one of ``RATES``; None: 0.02 for Muon, 0.005 for Adam. Muon trains
            the tables of embeddings and scores by Adam, at half of it.
        seed: 1 to 5, of the first weights and the texts.
        speed: ``"watch"``, 20 steps a second, or ``"full"``.
        name: what links in the prose call the figure.
        goals: challenges.

    What the reader sets comes back under the same names, with `widget.trained` (how many steps the
    model has made) and `widget.step` (the one looked at; None: the newest).

    State (what `[text](#set:name;key=value)` sets): `task`, `layers`, `smear` (on or off),
    `optimizer`, `rate` (one of the offered), `seed`, `speed` (watch or full), `run` (start
    training), `step` (look at a step made already, or `last`), `reset`.

    Facts (what goals read): `repeats`, `pairs`, `owner`, `sort` (1 for the task that is chosen),
    `layers`, `smear`, `muon` (1 or 0), `rate`, `seed`, `steps` (made so far), `loss` and `right`
    (means of the newest 20 steps; `right` is a share from 0 to 1), `lost` (1: it was worse than
    chance).

    Raises ValueError for a rate or seed that is not offered; traitlets.TraitError for another task,
    optimizer, speed or number of layers.

    >>> TrainHere("pairs", layers=1, smear=True)
    TrainHere(task='pairs', layers=1, smear=True, optimizer='muon', rate=0.02, seed=1)
    """

    _esm = bundle("train_here")
    _css = stylesheet("train_here")
    _worker = traitlets.Unicode(worker("train_here"), read_only=True).tag(sync=True)
    _limits = constant({"rates": RATES, "usual": USUAL, "seeds": SEEDS, "width": WIDTH})
    task = traitlets.Enum(TASKS, "repeats").tag(sync=True)
    layers = traitlets.Int(2, min=1, max=2).tag(sync=True)
    smear = traitlets.Bool(False).tag(sync=True)
    optimizer = traitlets.Enum(tuple(USUAL), "muon").tag(sync=True)
    rate = traitlets.Float(USUAL["muon"]).tag(sync=True)
    seed = traitlets.Int(1).tag(sync=True)
    speed = traitlets.Enum(("watch", "full"), "watch").tag(sync=True)
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    trained = traitlets.Int(0).tag(sync=True)
    _keys_of_text: ClassVar = {
        "task": Option({name: name for name in TASKS}, "task"),
        "layers": Number(1, 2, "layers"),
        "smear": Flag("smear"),
        "optimizer": Option({name: name for name in USUAL}, "optimizer"),
        "rate": Option({f"{rate:g}": rate for rate in RATES}, "rate"),
        "seed": Number(SEEDS[0], SEEDS[-1], "seed"),
        "speed": Option({"watch": "watch", "full": "full"}, "speed"),
        "run": Action(),
        "step": Number(0, none="last"),
    }
    _facts = (*TASKS, "layers", "smear", "muon", "rate", "seed", "steps", "loss", "right", "lost")

    def __init__(
        self,
        task: str = "repeats",
        *,
        layers: int = 2,
        smear: bool = False,
        optimizer: str = "muon",
        rate: float | None = None,
        seed: int = 1,
        speed: str = "watch",
        name: str = "",
        goals: Sequence[Goal] = (),
    ) -> None:
        super().__init__(
            task=task, layers=layers, smear=smear, optimizer=optimizer,
            rate=USUAL.get(optimizer, 0.0) if rate is None else rate,
            seed=seed, speed=speed, name=name, goals=goals,
        )  # fmt: skip

    @traitlets.validate("rate")
    def _check_rate(self, proposal: dict) -> float:
        if proposal["value"] not in RATES:
            offered = ", ".join(f"{rate:g}" for rate in RATES)
            raise ValueError(f"rate is {proposal['value']:g}; choose one of {offered}")
        return proposal["value"]

    @traitlets.validate("seed")
    def _check_seed(self, proposal: dict) -> int:
        if proposal["value"] not in SEEDS:
            raise ValueError(f"seed is {proposal['value']}; choose one of {SEEDS}")
        return proposal["value"]

    def _sizes(self) -> dict[str, object]:
        names = ("task", "layers", "smear", "optimizer", "rate", "seed")
        return {name: repr(getattr(self, name)) for name in names}
