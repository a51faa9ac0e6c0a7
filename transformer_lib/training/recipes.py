"""Recipes: everything that is chosen for a training run, in one value that JSON can hold.

``PRESETS`` are recipes for a laptop's processor, for Colab's T4 and for a large GPU (all three:
tiny Shakespeare), and for the stories of the ``gifts`` grammar.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from transformer_lib import checks
from transformer_lib.gpt import GPTConfig
from transformer_lib.training import recipe_checks, schedules
from transformer_lib.training.device import choose_precision
from transformer_lib.training.loop import require_clip
from transformer_lib.training.optimizers import Muon, adamw

WIRINGS = {"gpt1": GPTConfig.gpt1, "gpt2": GPTConfig.gpt2, "fast": GPTConfig.fast}
SCHEDULES = ("linear", "cosine", "trapezoid")
OPTIMIZERS = ("muon", "adamw")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What is chosen for a training run.

    Attributes:
        data: ``"gifts"``, ``"python_docs"``, ``"tiny_shakespeare"``, or the path of a text file.
        wiring: ``"gpt1"``, ``"gpt2"`` or ``"fast"``: the constructor of ``GPTConfig``.
        n_layers, n_heads, d_model, dropout: of the model; ``model`` holds other fields of
            ``GPTConfig``, by name.
        block: tokens of a row of a batch. Stories are packed whole into it; texts are cut.
        window: tokens of the windows in which the validation text is read; ``block`` if None.
        batch_size: rows of a step's batch, of all processes and accumulated parts together.
        accumulation, clip, precision, compiled, deterministic: see
            :class:`~transformer_lib.training.loop.Trainer`.
        n_steps: how many steps.
        optimizer: ``"muon"`` or ``"adamw"``; ``lr`` is its rate, ``adamw_lr`` that of the
            parameters that Muon leaves to AdamW; ``betas``, ``weight_decay`` are of both,
            ``n_iterations`` of Muon.
        schedule: ``"linear"``, ``"cosine"`` or ``"trapezoid"``, with ``warmup`` steps, and for the
            trapezoid the share ``decay`` of all steps.
        seed: of the weights, of the order of the data, and of dropout.
        evaluate_every, save_every: steps between evaluations, and between checkpoints.
        grammar: fields of :class:`~transformer_lib.data.gifts.Grammar` that differ from its own;
            ``n_stories`` are trained on, and ``n_validation`` others measure the result.

    Raises:
        ValueError, TypeError: a field that makes no sense; the message says which and why. (What
            belongs to the model, the optimizer or the grammar is checked when that is made.)

    >>> Recipe(n_steps=100, d_model=64).with_changes(seed=3).seed
    3
    """

    data: str = "gifts"
    wiring: str = "fast"
    n_layers: int = 4
    n_heads: int = 4
    d_model: int = 128
    dropout: float = 0.0
    model: Mapping[str, Any] = field(default_factory=dict)
    block: int = 64
    window: int | None = None
    batch_size: int = 24
    accumulation: int = 1
    clip: float | None = None
    precision: str | None = None
    compiled: bool = False
    deterministic: bool = False
    n_steps: int = 1000
    optimizer: str = "muon"
    lr: float = 0.03
    adamw_lr: float = 0.01
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    n_iterations: int = 5
    schedule: str = "trapezoid"
    warmup: int = 0
    decay: float = 0.8
    seed: int = 0
    evaluate_every: int = 250
    save_every: int = 250
    grammar: Mapping[str, Any] = field(default_factory=dict)
    n_stories: int = 20_000
    n_validation: int = 1_000

    def __post_init__(self):
        recipe_checks.require_types(self)
        recipe_checks.require_storable(self)
        recipe_checks.require_seed(self.seed)
        require_clip(self.clip)
        for name, known in [
            ("wiring", WIRINGS), ("optimizer", OPTIMIZERS), ("schedule", SCHEDULES),
        ]:  # fmt: skip
            checks.require_choice(getattr(self, name), name, known)
        for name in (
            "block", "batch_size", "accumulation", "n_steps", "evaluate_every", "save_every",
            "n_stories", "n_validation",
        ):  # fmt: skip
            checks.require_count(getattr(self, name), name)
        if self.window is not None:
            checks.require_count(self.window, "window")
        self.factor(1, self.n_steps)

    def with_changes(self, **changes) -> "Recipe":
        """This recipe with other values for some fields."""
        return replace(self, **changes)

    def as_json(self) -> dict[str, Any]:
        """For JSON; :meth:`from_json` reads it."""
        return asdict(self) | {"betas": list(self.betas)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Recipe":
        """The recipe of which :meth:`as_json` made ``content``.

        >>> Recipe.from_json(Recipe(seed=3).as_json()) == Recipe(seed=3)
        True
        """
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in content.items()})

    def model_config(self, vocabulary: int) -> GPTConfig:
        """The model's configuration, for so many tokens.

        Raises:
            ValueError, TypeError: sizes that do not fit; a context shorter than a block or window.
        """
        needed = max(self.block, self.window or 0)
        sizes = {"vocabulary": vocabulary, "context": needed}
        sizes |= {"n_layers": self.n_layers, "n_heads": self.n_heads, "d_model": self.d_model}
        config = WIRINGS[self.wiring](**sizes | {"dropout": self.dropout} | self.model)
        if config.context < needed:
            raise ValueError(
                f"the model's context is {config.context}, and block = {self.block}, window = "
                f"{self.window} need {needed}. Make context at least {needed}, or leave it out."
            )
        return config

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of ``model``'s parameters. Muon computes in what the device is best at."""
        common = {"betas": self.betas, "weight_decay": self.weight_decay}
        if self.optimizer == "adamw":
            return adamw(model, self.lr, **common)
        device = next(model.parameters()).device
        # float16 is too narrow for the iteration; where there is no bfloat16, emulating it is slow.
        low = (self.precision or choose_precision(device)) == "bfloat16"
        dtype = torch.bfloat16 if low else None
        return Muon(
            model, self.lr, adamw_lr=self.adamw_lr, n_iterations=self.n_iterations,
            dtype=dtype, **common,
        )  # fmt: skip

    def factor(self, step: int, n_steps: int) -> float:
        """The schedule."""
        options = {"decay": self.decay} if self.schedule == "trapezoid" else {}
        function = partial(getattr(schedules, self.schedule), warmup=self.warmup, **options)
        return function(step, n_steps)


_SHAKESPEARE = Recipe(data="tiny_shakespeare", window=256)
# A gift and the person who has it lie two words apart, so each word begins with a share of those
# before it. With less reach, or from 0, not every run ends within a percent of the floor (see
# runs/smear.json).
_GIFTS = Recipe(
    model={"smear": 3, "smear_start": 0.5}, batch_size=32, lr=0.006, adamw_lr=0.004,
    n_iterations=3, decay=0.7, precision="float32",
)  # fmt: skip
PRESETS = {
    "cpu": _SHAKESPEARE.with_changes(
        n_heads=3, d_model=192, block=256, batch_size=12, n_steps=1420, weight_decay=0.2
    ),
    "t4": _SHAKESPEARE.with_changes(
        n_layers=6, n_heads=6, d_model=384, block=256, batch_size=64, n_steps=1000, dropout=0.2,
        weight_decay=0.1, precision="float16", clip=1.0,
    ),
    "h200": _SHAKESPEARE.with_changes(
        n_layers=6, n_heads=6, d_model=384, block=256, batch_size=128, n_steps=600, dropout=0.2,
        weight_decay=0.1, precision="bfloat16", compiled=True,
    ),
    "gifts": _GIFTS.with_changes(
        n_layers=3, n_heads=8, d_model=96, block=61, n_steps=8000, n_stories=60_000,
        n_validation=2000,
    ),
    "gifts-small": _GIFTS.with_changes(
        n_layers=2, n_heads=4, d_model=64, block=49, n_steps=2000, n_stories=30_000,
        n_validation=2000,
        grammar={
            "people": ["mary", "susan", "john", "peter"],
            "gifts": ["roses", "books", "apples", "pens"],
            "n_gifts": 2, "n_sentences": 6,
        },
    ),
}  # fmt: skip
