"""Does a plain GPT find the owner? A ledger of what was tried, what failed included.

    python benchmarks/owner.py                         all attempts, some 90 minutes on a quiet core
    python benchmarks/owner.py smear plain --seeds 0   these, from these seeds; some minutes

Writes transformer_lib/runs/owner.json; of attempts that are not named, it keeps what is there. A
small GPT, from nothing, reads the gift stories of the book's own grammar, in which no fixed
distance finds an answer, and is asked who has what. A reader who names *some* owner, one of those
who have a gift now, is right in the share ``"some owner"``. All but ``smear`` are plain: no word's
embedding holds a share of the words before it. The attempts differ in the model, the optimizer, and
the texts that come first (their stages):

- stories of an easier grammar: fewer gifts, more questions, no optional words;
- a primer: short texts of names in which one part of the task is new at a time. In ``mary roses
  mary . susan pens susan . roses mary .`` each gift is followed by its owner; then there is a
  question mark in between, sometimes; then, one by one, come the other words.

A stage ends before its last step if 97 of 100 of its own answers are right, the last one never.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from transformer_lib.data.batches import Batches
from transformer_lib.data.gifts import PLAIN, Grammar, World
from transformer_lib.data.gifts.lessons import EASIER, PRIMERS, after_marks, lesson
from transformer_lib.data.packing import IGNORED, Packed, pack
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.run_log import RUNS_FOLDER, load_run, new_run, save_run
from transformer_lib.training.schedules import trapezoid

TARGET = Grammar()
SIZES = {"n_layers": 3, "n_heads": 4, "d_model": 32, "context": TARGET.max_words}
BATCH, EVERY, SEEDS = 24, 50, (0, 1, 2)
TRAINED, HELD_OUT, ENOUGH = 12_000, 200, 0.97
LOG, COLUMNS = "owner", ("attempt", "seed", "stage", "step", "loss", "accuracy")

ASKED, MOSTLY = EASIER["asked"], EASIER["mostly"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A text to read.

    Attributes:
        text: the name of a primer, or fields in which the grammar differs from ``TARGET``.
        steps: at most.
        answers: whether only the answers count towards the loss.
    """

    text: str | Mapping[str, Any] = field(default_factory=dict)
    steps: int = 2000
    answers: bool = False


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One thing that was tried.

    Attributes:
        stages: one after the other; the last reads ``TARGET``'s stories.
        model: fields of the configuration that differ from GPT-2's wiring at ``SIZES``.
        optimizer: ``"muon"`` or ``"adamw"``, at the rate ``lr``; ``adamw_lr`` is Muon's other one.
    """

    stages: tuple[Stage, ...] = (Stage(),)
    model: Mapping[str, Any] = field(default_factory=dict)
    optimizer: str = "muon"
    lr: float = 0.02
    adamw_lr: float = 0.01


# The wiring of GPTConfig.fast without its smear.
FAST = {"positions": "rotary", "tied": False, "bias": False, "projections": "zero"}
FAST |= {"embedding_std": 0.3, "activation": "relu_squared"}
EASY = (
    Stage(text={"n_gifts": 2, "n_sentences": 2, **ASKED, **PLAIN}, steps=600, answers=True),
    Stage(text={"n_sentences": 4, **ASKED, **PLAIN}, steps=600, answers=True),
    Stage(text={**MOSTLY, **PLAIN}, steps=800, answers=True),
    Stage(),
)
PRIMED = (
    *(Stage(text=name, steps=600, answers=True) for name in PRIMERS),
    Stage(text=ASKED, steps=400, answers=True),
    Stage(text=MOSTLY, steps=600, answers=True),
    Stage(),
)
ATTEMPTS = {
    "smear": Attempt(model={"smear": 3, "smear_start": 0.5}),
    "plain": Attempt(),
    "adamw": Attempt(optimizer="adamw", lr=0.003),
    "fast wiring": Attempt(model=FAST),
    "mostly questions": Attempt(stages=(Stage(text=MOSTLY), Stage())),
    "easy stories first": Attempt(stages=EASY),
    "easy stories first, fast wiring": Attempt(stages=EASY, model=FAST),
    "primer": Attempt(stages=PRIMED),
    "primer, two layers": Attempt(stages=PRIMED, model={"n_layers": 2}),
    "primer, fast wiring": Attempt(stages=PRIMED, model=FAST),
}


@cache
def tokenizer() -> WordTokenizer:
    """Of all stages: their words are those of the last."""
    return WordTokenizer(TARGET.vocabulary)


def told(
    text: str | Mapping[str, Any], count: int, seed: int
) -> tuple[Packed, Bool[Tensor, "rows tokens"]]:
    """Texts of a stage in blocks, and where their answers are."""
    if isinstance(text, str):
        texts, places = lesson(text, count, seed)
    else:
        texts = Grammar(**text).stories(count, seed=seed)
        places = [after_marks(story) for story in texts]
    ids = [tokenizer().encode(each) for each in texts]
    blocks = pack(ids, max(map(len, ids)))
    return blocks, blocks.mark(places)


def some_owner(stories: list[str]) -> float:
    """The share of right answers of a reader who names one of the owners at random."""
    shares = []
    for story in stories:
        world, sentence = World(), []
        for word in story.split()[1:]:
            sentence.append(word)
            if word == "?":
                shares.append(1 / len(set(world.owners.values())))
            if word == ".":
                world.follow(tuple(sentence))
                sentence = []
    return statistics.mean(shares)


def trainer_of(attempt: Attempt, stage: Stage, model: GPT, seed: int) -> Trainer:
    """Of this stage, with a new optimizer."""
    blocks, asked = told(stage.text, TRAINED, seed=1)
    if stage.answers:
        targets = torch.where(asked, blocks.targets, IGNORED)
        blocks = Packed(blocks.inputs, targets, blocks.spans)
    if attempt.optimizer == "muon":
        optimizer = Muon(model, attempt.lr, adamw_lr=attempt.adamw_lr, n_iterations=3)
    else:
        optimizer = adamw(model, attempt.lr, weight_decay=0.0)
    schedule = partial(trapezoid, warmup=min(20, stage.steps // 2), decay=0.5)
    return Trainer(
        model, optimizer, Batches(blocks, BATCH, seed=seed), n_steps=stage.steps, clip=1.0,
        schedule=schedule, precision="float32",
    )  # fmt: skip


def run(attempt: Attempt, seed: int) -> Iterator[tuple[int, int, float, float]]:
    """Train; every ``EVERY`` steps the stage, its step, and loss and share of right answers on new
    texts of this stage.
    """
    torch.manual_seed(seed)
    model = GPT(GPTConfig(vocabulary=tokenizer().size, **SIZES | attempt.model))
    for number, stage in enumerate(attempt.stages):
        unseen, asked = told(stage.text, HELD_OUT, seed=2)
        trainer = trainer_of(attempt, stage, model, seed)
        for step in trainer:
            if step.step % EVERY == 0 or step.step == stage.steps:
                share = answer_accuracy(model, unseen, asked)
                yield number, step.step, mean_loss(model, unseen), share
                if share >= ENOUGH and number < len(attempt.stages) - 1:
                    break


def kept(names: list[str]) -> tuple[list[list[float]], dict[str, Any]]:
    """What the log holds of other attempts than these: its rows, and what is known of each."""
    path = RUNS_FOLDER / f"{LOG}.json"
    if not path.exists():
        return [], {}
    log = load_run(path)
    known = list(log.config["attempts"])
    others = {name: log.config["attempts"][name] for name in known if name not in names}
    places = {known.index(name): number for number, name in enumerate(others)}
    rows = zip(*(log.curve[column] for column in COLUMNS), strict=True)
    return [[places[a], *rest] for a, *rest in rows if a in places], others


def shorter(attempt: Attempt, steps: int | None) -> Attempt:
    """With at most so many steps a stage."""
    if steps is None:
        return attempt
    stages = (replace(stage, steps=min(steps, stage.steps)) for stage in attempt.stages)
    return replace(attempt, stages=tuple(stages))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attempts", nargs="*", metavar="ATTEMPT", help=", ".join(ATTEMPTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--steps", type=int, help="of a stage, at most (default: its own)")
    options = parser.parse_args(arguments)
    names = options.attempts or list(ATTEMPTS)
    if unknown := [name for name in names if name not in ATTEMPTS]:
        parser.error(f"there is no attempt {unknown[0]!r}; there are {', '.join(ATTEMPTS)}.")
    torch.set_num_threads(1)
    rows, attempts = kept(names)
    for name in names:
        attempt = shorter(ATTEMPTS[name], options.steps)
        for seed in options.seeds:
            for row in run(attempt, seed):
                rows.append([len(attempts), seed, *row])
                stage, step, loss, share = row
                print(f"{name}, seed {seed}, stage {stage}, step {step}:", end=" ")
                print(f"loss {loss:.4f}, answers {share:.1%}", flush=True)
        attempts[name] = asdict(attempt) | {"seeds": list(options.seeds)}
    stories = TARGET.stories(HELD_OUT, seed=2)
    last = {(a, seed): share for a, seed, *_, share in rows}  # of each, the last row
    result = {"floor": TARGET.floor(stories), "some owner": some_owner(stories)} | {
        name: [share for (a, _), share in last.items() if a == number]
        for number, name in enumerate(attempts)
    }
    config = SIZES | {
        "attempts": attempts, "batch": BATCH, "texts": TRAINED, "held-out texts": HELD_OUT,
        "grammar": TARGET.hash, "enough": ENOUGH, "primers": PRIMERS,
    }  # fmt: skip
    curve = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    log = new_run(LOG, config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
