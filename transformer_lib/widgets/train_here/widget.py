"""A small Transformer that is trained in the reader's browser."""

from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant
from transformer_lib.widgets.driving import Action, Flag, Number, Option, Setting
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
        rate: the learning rate, one of ``RATES``; None: 0.02 for Muon, 0.005 for Adam. Muon trains
            the tables of embeddings and scores by Adam, at half of it.

    What comes back is also `widget.trained` (how many steps the model has made) and `widget.step`
    (the one looked at; None: the newest).

    Raises ValueError for a setting that is not offered.

    >>> TrainHere("pairs", layers=1, smear=True)
    TrainHere(task='pairs', layers=1, smear=True, optimizer='muon', rate=0.02, seed=1)
    """

    _esm = bundle("train_here")
    _css = stylesheet("train_here")
    _worker = traitlets.Unicode(worker("train_here"), read_only=True).tag(sync=True)
    _limits = constant({"rates": RATES, "usual": USUAL, "seeds": SEEDS, "width": WIDTH})
    task = Setting(TASKS[0], Option(TASKS))
    layers = Setting(2, Number(1, 2))
    smear = Setting(False, Flag("each word's vector gets a learned share of the one before"))
    optimizer = Setting("muon", Option(list(USUAL)))
    rate = Setting(USUAL["muon"], Option({f"{rate:g}": rate for rate in RATES}))
    seed = Setting(1, Number(SEEDS[0], SEEDS[-1], "of the first weights and the texts"))
    speed = Setting("watch", Option(["watch", "full"], "20 steps a second, or as many as can be"))
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    trained = traitlets.Int(0).tag(sync=True)
    _keys_of_text: ClassVar = {
        "run": Action("start training"),
        "step": Number(0, None, "look at a step made already", none="last"),
    }
    _facts: ClassVar = {
        **dict.fromkeys(TASKS, "1 for the task that is chosen"),
        "muon": "1: it is the optimizer",
        "steps": "made so far",
        "loss": "mean of the newest 20 steps",
        "right": "mean of the newest 20 steps, a share from 0 to 1",
        "lost": "1: it was worse than chance",
    }

    def __init__(
        self,
        task: str = TASKS[0],
        *,
        optimizer: str = "muon",
        rate: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            task=task,
            optimizer=optimizer,
            rate=USUAL.get(optimizer, USUAL["muon"]) if rate is None else rate,
            **settings,
        )

    def _sizes(self) -> dict[str, object]:
        names = ("task", "layers", "smear", "optimizer", "rate", "seed")
        return {name: repr(getattr(self, name)) for name in names}
