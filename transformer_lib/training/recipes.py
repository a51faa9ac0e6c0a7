"""Recipes: all that is chosen for a training run, in four records, as one value for JSON.

``PRESETS`` are recipes for a laptop's processor, for Colab's T4 and for a large GPU (all three:
tiny Shakespeare), for the stories of the ``gifts`` grammar, and for translation.
"""

import copy
import difflib
import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from pathlib import PurePath
from typing import Any

import torch
from torch import nn

from transformer_lib import checks, storage
from transformer_lib.data import texts
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.gifts.lessons import LESSONS, require_lessons
from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.data.pairs import multi30k
from transformer_lib.encoder_decoder import EncoderDecoderConfig
from transformer_lib.gpt import MOST_SMEARED, GPTConfig
from transformer_lib.tokenizers import PairTokenizer
from transformer_lib.training.device import PRECISIONS, choose_precision
from transformer_lib.training.loop import require_clip
from transformer_lib.training.losses import require_label_smoothing
from transformer_lib.training.optimizers import (
    Muon,
    NorMuon,
    adamw,
    require_betas,
    require_positive,
)
from transformer_lib.training.schedules import SCHEDULES

# The constructors of the two families of models, by name.
WIRINGS = {"gpt1": GPTConfig.gpt1, "gpt2": GPTConfig.gpt2, "fast": GPTConfig.fast}
PAIR_WIRINGS = {"paper": EncoderDecoderConfig.paper, "fast": EncoderDecoderConfig.fast}


@dataclass(frozen=True)
class DataSet:
    """Data that a recipe can name.

    Attributes:
        task: the name in ``tasks.TASKS`` of what is done with them.
        grammar: of its sentences, if it has one; else
        read: the text, or the pairs to train on and those to measure by.
    """

    task: str
    grammar: type[Grammar] | type[KannadaGrammar] | None = None
    read: Callable[[], Any] | None = None


DATA = {
    "gifts": DataSet("stories", Grammar),
    "kannada": DataSet("translation", KannadaGrammar),
    "multi30k": DataSet("translation", read=lambda: (multi30k("train"), multi30k("val"))),
    "python_docs": DataSet("text", read=texts.python_docs),
    "tiny_shakespeare": DataSet("text", read=texts.tiny_shakespeare),
}
# Files of one's own, by how their names end: their task. Any other is read as a text, but for those
# that hold records (dialogues, say): how they are read is for a task of their own to say, here.
ENDINGS = {".tsv": "translation"}
RECORDS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")
MUONS = {"muon": Muon, "normuon": NorMuon}
OPTIMIZERS = (*MUONS, "adamw")
# Counts, and the largest that make sense: a recipe may come in a stranger's file, or with a zero
# too many, and beyond these nothing would ever end.
MOST = {
    "n_layers": 1000, "n_heads": 1000, "d_model": 2**16, "block": 2**20, "window": 2**20,
    "batch_size": 2**20, "accumulation": 2**20, "n_steps": 10**9, "n_iterations": 100,
    "evaluate_every": 10**9, "save_every": 10**9, "n_stories": 10**6, "n_validation": 10**5,
    "vocabulary": 2**20, "batch_tokens": 2**24,
}  # fmt: skip
MOST_OF_MODEL = {"context": 2**20, "d_ff": 2**20, "smear": MOST_SMEARED}


def _option(**of: Any) -> Any:
    """A field that belongs to these choices only, with what it is there if nothing is said."""
    return field(default=None, metadata={"of": of})


@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """What is learned from, and how it is cut into batches.

    Attributes:
        name: ``"gifts"``, ``"python_docs"``, ``"tiny_shakespeare"``, or the path of a text file,
            for a GPT; ``"kannada"``, ``"multi30k"`` (German into English), or the path of a file of
            pairs that ends in ``.tsv``, for a translator.
        block: tokens of a row of a batch. Stories are packed whole into it; texts are cut; of
            pairs it is the most that a sentence may have.
        window: tokens of the windows in which the validation text is read; ``block`` if None.
        vocabulary: byte pairs, learned from what is trained on, that a text is cut into in place of
            its characters (None); at least the 256 bytes. Of a translator's pairs, of both
            languages together. (A grammar's sentences are read by words: None.)
        batch_size: rows of a step's batch, of all processes and accumulated parts together.
        batch_tokens: bundle pairs of similar lengths into batches of this many tokens, in place of
            ``batch_size`` rows.
        grammar: fields of the data's grammar that differ from its own
            (:class:`~transformer_lib.data.gifts.Grammar`,
            :class:`~transformer_lib.data.kannada.KannadaGrammar`); ``n_stories``, or sentences,
            are trained on, and ``n_validation`` others measure the result.
        lessons: what the stories of gifts come after, and for how many of the steps each: names of
            :data:`~transformer_lib.data.gifts.lessons.LESSONS`, told in the order that they have
            there. Only their answers are learned. (A run with fewer steps than its lessons ends in
            them.)
        lesson_heads: how many heads of the last block take part in the lessons, all if None: see
            :mod:`~transformer_lib.training.waking`.
    """

    name: str = "gifts"
    block: int = 96
    window: int | None = None
    vocabulary: int | None = None
    batch_size: int = 24
    batch_tokens: int | None = None
    grammar: Mapping[str, Any] = field(default_factory=dict)
    n_stories: int = 20_000
    n_validation: int = 1_000
    lessons: Mapping[str, int] = field(default_factory=dict)
    lesson_heads: int | None = None

    def __post_init__(self):
        _require_fields(self, "data")
        if not self.name:
            raise ValueError("data is an empty text; give a data set's name, or a file's path.")
        if self.name.startswith(("//", "\\\\")):  # Windows would show it the reader's password
            raise ValueError(
                f"data is {self.name!r}, a file on another machine. Copy it to this one."
            )
        if self.name.lower().endswith(RECORDS) and not self.name.lower().endswith(tuple(ENDINGS)):
            raise ValueError(
                f"data is {self.name!r}, whose ending says records. Write what is to be learned "
                f"into a text (.txt), or into pairs (.tsv, a tab between source and target); or "
                f"give the ending a task of its own, in ENDINGS of {__name__}."
            )
        kind = self.grammar_class or Grammar
        _require_names(self.grammar, _names(kind), "grammar", kind.__name__)
        if self.vocabulary and self.grammar_class:
            raise ValueError(
                f"vocabulary = {self.vocabulary} counts byte pairs, and {self.name!r} is read by "
                f"the words of its grammar. Leave it out."
            )
        if self.batch_tokens and self.task != "translation":
            raise ValueError(
                f"batch_tokens = {self.batch_tokens} bundles pairs of sentences, and data is "
                f"{self.name!r}. Leave it out."
            )
        require_lessons(self.lessons)
        _keep_own(self, "grammar")
        # In one order: JSON keeps none, and equal recipes are to train alike.
        steps = {name: self.lessons[name] for name in LESSONS if name in self.lessons}
        object.__setattr__(self, "lessons", steps)
        if self.lessons and self.task != "stories":
            raise ValueError(
                f"lessons are texts about gifts, and data is {self.name!r}. Leave them out."
            )

    @property
    def task(self) -> str:
        """The name in ``tasks.TASKS`` of what is done with them."""
        if self.name in DATA:
            return DATA[self.name].task
        return ENDINGS.get(PurePath(self.name.lower()).suffix, "text")

    @property
    def grammar_class(self) -> type[Grammar] | type[KannadaGrammar] | None:
        """Of their sentences; None of a text."""
        return DATA[self.name].grammar if self.name in DATA else None


@dataclass(frozen=True, kw_only=True)
class ModelRecipe:
    """The model, but for its vocabulary and its context, which follow from the data.

    Attributes:
        wiring: ``"gpt1"``, ``"gpt2"`` or ``"fast"``: the constructor of ``GPTConfig``; of a
            translator ``"paper"`` or ``"fast"``, of ``EncoderDecoderConfig``.
        n_layers, n_heads, d_model, dropout: of all models.
        options: other fields of its configuration, by name.
    """

    wiring: str = "fast"
    n_layers: int = 4
    n_heads: int = 4
    d_model: int = 128
    dropout: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        _require_fields(self, "model")
        for name in _names(ModelRecipe):
            if name in self.options:
                raise ValueError(
                    f"model holds {name}, which is a field of the recipe itself, and is "
                    f"{getattr(self, name)} there. Choose {name} (--{name.replace('_', '-')}) and "
                    f"leave it out of model."
                )
        for name in ("vocabulary", "source_vocabulary", "target_vocabulary", "shared"):
            if name in self.options:
                raise ValueError(f"model holds {name}, which follows from the data. Leave it out.")
        for name, most in MOST_OF_MODEL.items():
            value = self.options.get(name)
            if isinstance(value, int) and value > most:
                raise ValueError(f"model holds {name} = {value:,}; choose at most {most:,}.")
        _keep_own(self, "options")

    @property
    def sizes(self) -> dict[str, Any]:
        """What every configuration takes."""
        sizes = {"n_layers": self.n_layers, "n_heads": self.n_heads, "d_model": self.d_model}
        return sizes | {"dropout": self.dropout}


@dataclass(frozen=True, kw_only=True)
class OptimizerRecipe:
    """What turns gradients into steps.

    Attributes:
        name: ``"muon"``, ``"normuon"`` or ``"adamw"``.
        lr: its rate, before the schedule.
        betas, eps, weight_decay: of all three. Each step decays by the rate times ``weight_decay``.
        adamw_lr, momentum, n_iterations: of the first two only; ``adamw_lr`` is the rate of the
            parameters that they leave to AdamW.
    """

    name: str = "muon"
    lr: float = 0.03
    adamw_lr: float | None = _option(muon=0.01, normuon=0.01)
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float | None = _option(muon=0.95, normuon=0.95)
    n_iterations: int | None = _option(muon=5, normuon=5)

    def __post_init__(self):
        _fill_options(self, "optimizer")
        _require_fields(self, "optimizer")
        rates = {"lr": self.lr, "adamw_lr": self.adamw_lr, "eps": self.eps}
        require_positive({name: rate for name, rate in rates.items() if rate is not None})
        require_betas(self.betas)
        checks.require_choice(self.name, "optimizer", OPTIMIZERS)


@dataclass(frozen=True, kw_only=True)
class ScheduleRecipe:
    """How the rate changes.

    Attributes:
        name: ``"linear"``, ``"cosine"`` or ``"trapezoid"`` (also called WSD), or the paper's
            ``"inverse_square_root"``, which is multiplied by the optimizer's rate (1 in the paper).
        warmup: steps.
        decay: of the trapezoid only: the share of all steps.
    """

    name: str = "trapezoid"
    warmup: int = 0
    decay: float | None = _option(trapezoid=0.8)

    def __post_init__(self):
        _fill_options(self, "schedule")
        _require_fields(self, "schedule")
        checks.require_choice(self.name, "schedule", SCHEDULES)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All choices of a training run.

    Where they are given by name (:meth:`of`, :meth:`with_changes`, the command line, JSON), no
    record is named: ``lr`` is ``optimizer.lr``. ``data``, ``optimizer`` and ``schedule`` are the
    names of these, and ``model`` holds ``model.options``.

    Attributes:
        data, model, optimizer, schedule: a record each.
        n_steps: how many steps.
        accumulation, clip, precision, compiled, deterministic: see
            :class:`~transformer_lib.training.loop.Trainer`.
        label_smoothing: see :func:`~transformer_lib.training.losses.cross_entropy`; it is not part
            of what is measured.
        seed: of the weights, of the order of the data, and of dropout.
        evaluate_every, save_every: steps between evaluations, and between checkpoints.

    Raises:
        ValueError, TypeError: a field that makes no sense; the message says which and why. (Values
            within ``model`` and ``grammar`` are checked when these are made.)

    >>> Recipe.of(n_steps=100, d_model=64).with_changes(seed=3).model.d_model
    64
    """

    data: DataRecipe = field(default_factory=DataRecipe)
    model: ModelRecipe = field(default_factory=ModelRecipe)
    optimizer: OptimizerRecipe = field(default_factory=OptimizerRecipe)
    schedule: ScheduleRecipe = field(default_factory=ScheduleRecipe)
    n_steps: int = 1000
    accumulation: int = 1
    clip: float | None = None
    label_smoothing: float = 0.0
    precision: str | None = None
    compiled: bool = False
    deterministic: bool = False
    seed: int = 0
    evaluate_every: int = 250
    save_every: int = 250

    def __post_init__(self):
        _require_fields(self)
        _require_storable(self.as_json())
        require_seed(self.seed)
        require_clip(self.clip)
        require_label_smoothing(self.label_smoothing)
        checks.require_choice(self.precision, "precision", (*PRECISIONS, None))
        translates = self.data.task == "translation"
        wirings = PAIR_WIRINGS if translates else WIRINGS
        checks.require_choice(self.model.wiring, "wiring", wirings)
        kind = EncoderDecoderConfig if translates else GPTConfig
        _require_names(self.model.options, _names(kind), "model", kind.__name__)
        heads, all_heads = self.data.lesson_heads, self.model.n_heads
        if heads is not None and not (self.data.lessons and 1 <= heads < all_heads):
            raise ValueError(
                f"lesson_heads is {heads}; it is how many of the {all_heads} heads take part in "
                f"the lessons: choose at least 1 and fewer than all, and name lessons."
            )
        self.factor(1, self.n_steps)

    @classmethod
    def of(cls, **choices) -> "Recipe":
        """The recipe with these choices; see :class:`Recipe` for their names.

        >>> Recipe.of(data="python_docs", lr=0.01).optimizer.lr
        0.01
        """
        _require_names(choices, FIELDS, "the recipe", "Recipe")
        given: dict[str | None, dict[str, Any]] = {}
        for name, value in choices.items():
            record, own = FIELDS[name]
            given.setdefault(record, {})[own] = tuple(value) if isinstance(value, list) else value
        records = {name: KINDS[name](**given.get(name, {})) for name in KINDS}
        return cls(**records | given.get(None, {}))

    def with_changes(self, **changes) -> "Recipe":
        """This recipe with other choices.

        With another optimizer or schedule, the options of the one before go; with a
        ``batch_size``, ``batch_tokens``, which would stand in its place.

        >>> Recipe.of(decay=0.5).with_changes(schedule="cosine").schedule.decay is None
        True
        """
        before = self.as_json()
        for choice in ("schedule", "optimizer"):
            if changes.get(choice, before[choice]) != before[choice]:
                changes = dict.fromkeys(options_of(choice, before[choice])) | changes
        if "batch_size" in changes:
            before["batch_tokens"] = None
        return Recipe.of(**before | changes)

    def __hash__(self) -> int:
        return hash((self.n_steps, self.seed))  # dictionaries have no order, and 1 equals 1.0

    def as_json(self) -> dict[str, Any]:
        """All choices by name, for JSON; :meth:`from_json` reads it."""
        values = {
            name: getattr(getattr(self, record) if record else self, own)
            for name, (record, own) in FIELDS.items()
        }
        return {k: list(v) if isinstance(v, tuple) else _copied(v) for k, v in values.items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Recipe":
        """The recipe that :meth:`as_json` wrote as ``content``.

        >>> Recipe.from_json(Recipe.of(seed=3).as_json()) == Recipe.of(seed=3)
        True
        """
        for choice in ("schedule", "optimizer"):  # once, each recipe had the options of all
            own = options_of(choice, str(content.get(choice, KINDS[choice].name)))
            others = _options(choice).keys() - own.keys()
            content = {name: value for name, value in content.items() if name not in others}
        return cls.of(**content)

    def model_config(self, vocabulary: int) -> GPTConfig:
        """The model's configuration, for a vocabulary of this size.

        Raises:
            ValueError, TypeError: sizes that do not fit; a context shorter than a block or window,
                or than the smear reaches.
        """
        block, window = self.data.block, self.data.window
        needed = max(block, window or 0)
        sizes = {"vocabulary": vocabulary, "context": needed} | self.model.sizes
        config = WIRINGS[self.model.wiring](**sizes | self.model.options)
        if config.context < needed:
            raise ValueError(
                f"the model's context is {config.context}, and block = {block}, window = "
                f"{window} need {needed}. Make context at least {needed}, or leave it out."
            )
        if config.smear >= config.context:
            raise ValueError(
                f"smear is {config.smear}, and the context has {config.context} tokens; choose a "
                f"smear below that (1 to 3 in the book's models)."
            )
        return config

    def pair_config(self, tokenizer: PairTokenizer) -> EncoderDecoderConfig:
        """A translator's configuration, for these tokens.

        Raises:
            ValueError, TypeError: sizes that do not fit.
        """
        sizes = {"source_vocabulary": tokenizer.source.size}
        sizes |= {"target_vocabulary": tokenizer.target.size, "shared": tokenizer.shared}
        sizes |= {"context": self.data.block} | self.model.sizes
        return PAIR_WIRINGS[self.model.wiring](**sizes | self.model.options)

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of ``model``'s parameters. Muon computes in what the device is best at."""
        chosen = self.optimizer
        common = {"betas": chosen.betas, "eps": chosen.eps, "weight_decay": chosen.weight_decay}
        if chosen.name == "adamw":
            return adamw(model, chosen.lr, **common)
        device = next(model.parameters()).device
        # float16 is too narrow for the iteration; where there is no bfloat16, emulating it is slow.
        low = (self.precision or choose_precision(device)) == "bfloat16"
        dtype = torch.bfloat16 if low else None
        return MUONS[chosen.name](
            model, chosen.lr, adamw_lr=chosen.adamw_lr, momentum=chosen.momentum,
            n_iterations=chosen.n_iterations, dtype=dtype, **common,
        )  # fmt: skip

    def factor(self, step: int, n_steps: int) -> float:
        """The schedule."""
        function = SCHEDULES[self.schedule.name]
        known = vars(self.schedule) | {"step": step, "n_steps": n_steps}
        known |= {"d_model": self.model.d_model}
        names = signature(function).parameters.keys() & known.keys()
        return function(**{name: known[name] for name in names})


KINDS = {
    "data": DataRecipe, "model": ModelRecipe, "optimizer": OptimizerRecipe,
    "schedule": ScheduleRecipe,
}  # fmt: skip
# The field of a record that is meant where choices are given by name and the record itself is.
CALLED = {"data": "name", "model": "options", "optimizer": "name", "schedule": "name"}


def _names(kind: type) -> list[str]:
    return [each.name for each in fields(kind)]


# Every choice by its name: the record that holds it (None: the recipe itself), and its field there.
FIELDS: dict[str, tuple[str | None, str]] = {
    (record if own == CALLED[record] else own): (record, own)
    for record, kind in KINDS.items()
    for own in _names(kind)
} | {own: (None, own) for own in _names(Recipe) if own not in KINDS}


def options_of(choice: str, name: str) -> Mapping[str, Any]:
    """The options that belong to this schedule or optimizer alone, with their defaults.

    >>> options_of("schedule", "trapezoid")
    {'decay': 0.8}
    """
    options = _options(choice)
    return {each: of[name] for each, of in options.items() if name in of}


def _options(choice: str) -> dict[str, Mapping[str, Any]]:
    """The fields that are options of some schedules or optimizers: of which, and their defaults."""
    own = fields(KINDS[choice])
    return {each.name: each.metadata["of"] for each in own if "of" in each.metadata}


def _copied(value: Any) -> Any:
    """A mapping's own copy, with those of what it holds (lists of tuples, as JSON reads them);
    anything else as it is.
    """
    if isinstance(value, Mapping):
        return {n: list(x) if isinstance(x, tuple) else copy.copy(x) for n, x in value.items()}
    return value


def _keep_own(record: Any, *names: str) -> None:
    """What a caller does with a mapping later does not change the record."""
    for name in names:
        object.__setattr__(record, name, _copied(getattr(record, name)))


def _fill_options(record: OptimizerRecipe | ScheduleRecipe, choice: str) -> None:
    """Options of a choice: as it is if nothing is said, and None for one that has none."""
    for name, of in _options(choice).items():
        if getattr(record, name) is None:
            object.__setattr__(record, name, of.get(str(record.name)))
        elif record.name not in of:
            raise ValueError(
                f"{name} is {getattr(record, name)}, an option of {choice} = "
                f"{' or '.join(map(repr, of))}, and {choice} is {record.name!r}. Leave it out."
            )


def require_seed(seed: int) -> None:
    """A seed that PyTorch's generators take."""
    if not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed is {seed}; choose -2**63 <= seed < 2**63.")


def _require_fields(record: Any, called: str = "") -> None:
    """Each field has its type, and no count is beyond all reason."""
    checks.require_fields(record, {CALLED[called]: called} if called else {})
    for name in MOST.keys() & set(_names(type(record))):
        value, most = getattr(record, name), MOST[name]
        if value is not None:
            checks.require_count(value, name)
            if value > most:
                raise ValueError(f"{name} is {value:,}; choose at most {most:,}.")


def _require_names(given: Mapping[str, Any], known: Collection[str], what: str, of: str) -> None:
    if unknown := [each for each in given if each not in known]:
        near = difflib.get_close_matches(str(unknown[0]), known, 1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"{what} holds {unknown[0]!r:.80}, which {of} does not have. {meant}There are: "
            f"{', '.join(known)}."
        )


def _require_storable(choices: Mapping[str, Any]) -> None:
    """Each can be written into a checkpoint, which is JSON in UTF-8."""
    for name, value in choices.items():
        try:
            storage.canonical_json(dict(value) if isinstance(value, Mapping) else value)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{name} is {value!r}, which is not valid Unicode, and a checkpoint could not "
                f"hold it. Rename the file, or write the text in UTF-8."
            ) from error
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{name} is {reprlib.repr(value)}, which a checkpoint cannot hold ({error}). "
                f"Use finite numbers, texts, lists and dictionaries."
            ) from error


# `t4` and `h200` were chosen by reckoning; an H100 has run both (runs/gpu.json), a T4 neither.
# There `h200` took half as long and ended a little higher: it has read its text twenty times. They
# do not compile, which takes longer than so few steps could save; and each evaluation saves, too.
_SHAKESPEARE = Recipe.of(data="tiny_shakespeare", window=256)
_GIFTS = Recipe.of(
    batch_size=32, lr=0.006, adamw_lr=0.004, n_iterations=3, decay=0.7, precision="float32",
)  # fmt: skip
# A gift and the person who has it lie two or three words apart, so each word begins with a share of
# those before it. With less reach, or from 0, not every run ends within a percent of the floor (see
# runs/smear.json).
_SMEAR = {"smear": 3, "smear_start": 0.5}
_STORIES = _GIFTS.with_changes(
    n_layers=3, n_heads=8, d_model=96, block=85, n_steps=8000, n_stories=60_000, n_validation=2000
)
PRESETS = {
    "cpu": _SHAKESPEARE.with_changes(
        n_heads=3, d_model=192, block=256, batch_size=12, n_steps=1420, weight_decay=0.2
    ),
    "t4": _SHAKESPEARE.with_changes(
        n_layers=6, n_heads=6, d_model=384, block=256, batch_size=64, n_steps=1000, dropout=0.2,
        weight_decay=0.1, precision="float16", clip=1.0, evaluate_every=100,
    ),
    "h200": _SHAKESPEARE.with_changes(
        n_layers=6, n_heads=6, d_model=384, block=256, batch_size=128, n_steps=600, dropout=0.2,
        weight_decay=0.1, precision="bfloat16", evaluate_every=100,
    ),
    "gifts": _STORIES.with_changes(model=_SMEAR),
    # Without a smear, which lets a word learn of others outside of attention: it takes lessons.
    "gifts-taught": _STORIES.with_changes(
        model={"smear": 0}, clip=1.0, lesson_heads=1,
        lessons={
            "echo": 150, "mark": 100, "words": 150, "sentences": 100, "facts": 50, "asked": 50,
            "mostly": 100,
        },
    ),
    "gifts-small": _GIFTS.with_changes(
        model=_SMEAR, n_layers=2, n_heads=4, d_model=64, block=69, n_steps=2000, n_stories=30_000,
        n_validation=2000,
        grammar={
            "people": ["mary", "susan", "john", "peter"],
            "gifts": ["roses", "books", "apples", "pens"],
            "n_gifts": 2, "n_sentences": 6,
        },
    ),
    "kannada": Recipe.of(
        data="kannada", n_layers=1, n_heads=2, d_model=64, block=16, batch_size=64, lr=0.03,
        adamw_lr=0.01, n_steps=400, n_stories=8000, n_validation=500, precision="float32",
    ),
    "multi30k": Recipe.of(
        data="multi30k", n_layers=3, n_heads=4, d_model=256, dropout=0.3, model={"d_ff": 512},
        block=128, vocabulary=6000, batch_tokens=4096, lr=0.02, adamw_lr=0.008, n_steps=1600,
        weight_decay=0.1, label_smoothing=0.1, warmup=100, clip=1.0,
    ),
}  # fmt: skip
