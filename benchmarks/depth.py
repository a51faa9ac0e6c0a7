"""The norm's place in a deep stack: gradients by depth before training, and what is learned.

    python benchmarks/depth.py            about forty minutes on one core
    python benchmarks/depth.py losses     what is trained alone, into the log that is there

Writes transformer_lib/runs/depth.json, which chapter 08b reads. The model is a GPT whose blocks are
put together in one of five ways (ARRANGEMENTS); it reads the gift stories of a small grammar.

How large the numbers of a fresh model are is a choice of its own, in two parts (STARTS): the tables
of words and positions, whose rows have a spread of 0.02 as GPT-2's or of 1 as in the paper, which
multiplies its table by √d; and the matrices, drawn with GPT-2's 0.02 (and smaller by √(2 · blocks)
where results are written into the stream) or by Xavier's rule.

- Gradients: for stacks of DEPTHS blocks, from each start, of the loss of one batch of a fresh model
  by all parameters of each block: the norm. Beside it, the size of the stream behind each block:
  the root mean square of its numbers. Nothing is trained.
- "first to last": the first block's gradient over the last one's, for post-norm from MORE_SEEDS.
- Losses: LAYERS blocks are trained for STEPS steps of Muon from each of STARTS_OF[arrangement], and
  those of WITH_ADAMW of AdamW, too. The first seed tries all RATES; the others are trained at the
  rate that was best for it on stories of their own.
- "longer": the losses of LONGER_FOR after LONGER times the steps, at the rates found before.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from transformer_lib.blocks import PostNorm, PreNorm
from transformer_lib.data.batches import Batches
from transformer_lib.data.gifts import PLAIN, Grammar
from transformer_lib.data.packing import IGNORED, Packed, pack
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.run_log import RUNS_FOLDER, load_run, new_run, save_run
from transformer_lib.training.schedules import trapezoid

GRAMMAR = Grammar(
    people=("mary", "susan", "john", "peter"), gifts=("roses", "books", "apples"),
    n_gifts=1, n_sentences=4, give=0.5, give_it=0.0, ask=0.5, **PLAIN,
)  # fmt: skip
SIZES = {"n_heads": 4, "d_model": 48}
DEPTHS, SEEDS = (6, 12, 24), (0, 1, 2)
# The spread of the tables' rows as they are read, and how matrices are drawn.
STARTS = {
    "all small": (0.02, "GPT-2"),
    "large tables": (1.0, "GPT-2"),
    "all large": (1.0, "Xavier"),
}
LAYERS, STEPS, BATCH = 6, 300, 16
# By these a rate is turned into an optimizer: AdamW goes a quarter as far.
OPTIMIZERS: dict[str, Callable[[GPT, float], torch.optim.Optimizer]] = {
    "Muon": lambda model, rate: Muon(model, lr=rate, adamw_lr=rate / 4),
    "AdamW": lambda model, rate: adamw(model, lr=rate / 4),
}
RATES, WITH_ADAMW = (0.04, 0.02, 0.01, 0.005, 0.0025), ("pre-norm", "post-norm")
TRAINED, HELD_OUT = 6000, 200
MORE_SEEDS, MORE_DEPTHS = tuple(range(16)), (24, 48)
LONGER, LONGER_FOR = 3, (("no norm", "large tables"), ("no residual", "all large"))


class NoNorm(PreNorm):
    """Additions alone."""

    def wire(self, x, attend, think, norm_1, norm_2):
        x = x + attend(x)
        return x + think(x)


class NoResidual(PreNorm):
    """Each part's result replaces the stream in place of being added to it."""

    def wire(self, x, attend, think, norm_1, norm_2):
        return think(norm_2(attend(norm_1(x))))


class NoFeedForward(PreNorm):
    """Attention alone."""

    def wire(self, x, attend, think, norm_1, norm_2):
        return x + attend(norm_1(x))


ARRANGEMENTS = {
    "pre-norm": PreNorm,
    "post-norm": PostNorm,
    "no norm": NoNorm,
    "no residual": NoResidual,
    "no feed-forward": NoFeedForward,
}
# GPT-2's start for all, and a larger one for all but the last: as in the paper, or, where no norm
# keeps the numbers in size, with large tables alone.
STARTS_OF = {
    "pre-norm": ("all small", "all large"),
    "post-norm": ("all small", "all large"),
    "no norm": ("all small", "large tables"),
    "no residual": ("all small", "all large"),
    "no feed-forward": ("all small",),
}


def make(arrangement: str, start: str, n_layers: int, seed: int) -> GPT:
    """A fresh model."""
    torch.manual_seed(seed)
    kind = ARRANGEMENTS[arrangement]
    table, matrices = STARTS[start]
    config = GPTConfig(
        vocabulary=len(GRAMMAR.vocabulary),
        context=GRAMMAR.max_words,
        n_layers=n_layers,
        norm="post" if kind is PostNorm else "pre",
        **SIZES,
    )
    model = GPT(config)
    if table == 1:  # as in the paper: the table is also the output, so it is enlarged where read
        nn.init.normal_(model.embedding.weight, std=config.d_model**-0.5)
        nn.init.normal_(model.embedding.positions.table.weight)
        model.embedding.scale = config.d_model**0.5
    for block in model.blocks:
        block.__class__ = kind  # the same parameters, wired in another way
        if matrices == "Xavier":
            for layer in block.modules():
                if isinstance(layer, nn.Linear):
                    nn.init.xavier_normal_(layer.weight)
    return model


def gradients(
    model: GPT, inputs: Int[Tensor, "batch tokens"], targets: Int[Tensor, "batch tokens"]
) -> list[tuple[float, float]]:
    """For each block: the norm of the loss's gradient by its parameters; the size of the stream."""
    sizes = []
    for block in model.blocks:
        block.register_forward_hook(
            lambda _, __, x: sizes.append(x.detach().square().mean().sqrt().item())
        )
    loss_of(model, inputs, targets).backward()
    norms = []
    for block in model.blocks:
        found = [p.grad.flatten() for p in block.parameters() if p.grad is not None]
        norms.append(torch.cat(found).norm().item())
    return list(zip(norms, sizes, strict=True))


def loss_of(model: GPT, inputs: Tensor, targets: Tensor) -> Tensor:
    """The mean loss of all predictions, in nats."""
    logits = model(inputs).flatten(0, 1)
    return F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED)


def train(
    model: GPT, optimizer: torch.optim.Optimizer, training: Packed, seed: int, steps: int
) -> None:
    trainer = Trainer(
        model,
        optimizer,
        Batches(training, BATCH, seed=seed),
        n_steps=steps,
        schedule=partial(trapezoid, warmup=10, decay=0.6),
    )
    for _ in trainer:
        pass


def first_to_last(training: Packed) -> dict[str, list[float]]:
    """For post-norm, from each start that the chapter speaks of: a ratio for each seed."""
    batch, found = training.rows(torch.arange(BATCH)), {}
    for start in ("large tables", "all large"):
        for depth in MORE_DEPTHS:
            models = (make("post-norm", start, depth, seed) for seed in MORE_SEEDS)
            norms = [gradients(model, *batch) for model in models]
            name = f"first to last: post-norm, {start}, {depth}"
            found[name] = [each[0][0] / each[-1][0] for each in norms]
            print(name, flush=True)
    return found


def stacks(optimizer: str) -> list[tuple[str, str]]:
    """The arrangements, each with a start, that are trained with this optimizer."""
    return [
        (arrangement, start)
        for arrangement, starts in STARTS_OF.items()
        for start in starts
        if optimizer == "Muon" or arrangement in WITH_ADAMW
    ]


def name_of(optimizer: str, arrangement: str, start: str) -> str:
    """In the log: Muon goes without saying."""
    return f"{arrangement}, {start}" + ("" if optimizer == "Muon" else f", {optimizer}")


def main(only: str = "") -> None:
    torch.set_num_threads(1)
    tokenizer = WordTokenizer(GRAMMAR.vocabulary)
    held_out = GRAMMAR.stories(HELD_OUT, seed=2)
    training, unseen, others = (
        pack([tokenizer.encode(story) for story in stories], GRAMMAR.max_words)
        for stories in (
            GRAMMAR.stories(TRAINED, seed=1),
            held_out,
            GRAMMAR.stories(HELD_OUT, seed=3),
        )
    )

    def learn(
        optimizer: str, arrangement: str, start: str, rate: float, seed: int, steps: int = STEPS
    ) -> tuple[float, float]:
        """The losses on the stories for the choice of a rate, and on unseen ones."""
        model = make(arrangement, start, LAYERS, seed)
        train(model, OPTIMIZERS[optimizer](model, rate), training, seed, steps)
        model.eval()
        with torch.no_grad():
            found = [loss_of(model, each.inputs, each.targets).item() for each in (others, unseen)]
        print(optimizer, arrangement, start, seed, rate, steps, f"{found[1]:.3f}", flush=True)
        return found[0], found[1]

    if only == "losses":  # all else stays as it is
        log = load_run(RUNS_FOLDER / "depth.json")
        curve = log.curve
        kept = {name: found for name, found in log.result.items() if name.startswith("first")}
    else:
        curve, kept = measured_gradients(training), first_to_last(training)
    result: dict[str, Any] = {"floor": GRAMMAR.floor(held_out)} | kept
    best_rates = {}
    for optimizer in OPTIMIZERS:
        for arrangement, start in stacks(optimizer):
            tried = {rate: learn(optimizer, arrangement, start, rate, SEEDS[0]) for rate in RATES}
            best = min(tried, key=tried.get)
            name = name_of(optimizer, arrangement, start)
            best_rates[name] = best
            result[f"{name}: rates"] = [loss for _, loss in tried.values()]
            again = [learn(optimizer, arrangement, start, best, seed)[1] for seed in SEEDS[1:]]
            result[name] = [tried[best][1], *again]
    for arrangement, start in LONGER_FOR:
        name = name_of("Muon", arrangement, start)
        run = partial(learn, "Muon", arrangement, start, best_rates[name], steps=LONGER * STEPS)
        result[f"longer: {name}"] = [run(seed=seed)[1] for seed in SEEDS]
    config = SIZES | {
        "arrangements": list(ARRANGEMENTS), "starts": list(STARTS), "depths": list(DEPTHS),
        "seeds": list(SEEDS), "starts of": {a: list(found) for a, found in STARTS_OF.items()},
        "more seeds": list(MORE_SEEDS), "longer": LONGER,
        "layers": LAYERS, "steps": STEPS, "batch": BATCH, "rates": list(RATES),
        "best rates": best_rates, "with AdamW": list(WITH_ADAMW),
        "optimizer": "Muon (AdamW for all but matrices), or AdamW, at a quarter of the rate",
        "schedule": "trapezoid, warmup 10, decay 0.6",
        "training stories": TRAINED, "held-out stories": HELD_OUT, "grammar": GRAMMAR.hash,
    }  # fmt: skip
    log = new_run("depth", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


def seeds_of(arrangement: str, start: str) -> tuple[int, ...]:
    """Where the seed decides what comes out, more of them."""
    return MORE_SEEDS if (arrangement, start) == ("post-norm", "all large") else SEEDS


def measured_gradients(training: Packed) -> dict[str, list]:
    """The columns of the log: a row for each block of each fresh model."""
    columns = ("arrangement", "start", "depth", "seed", "layer", "gradient", "stream")
    curve: dict[str, list] = {name: [] for name in columns}
    batch = training.rows(torch.arange(BATCH))
    for at, arrangement in enumerate(ARRANGEMENTS):
        for start_at, start in enumerate(STARTS):
            for depth in DEPTHS:
                for seed in seeds_of(arrangement, start):
                    model = make(arrangement, start, depth, seed)
                    for layer, found in enumerate(gradients(model, *batch), start=1):
                        row = (at, start_at, depth, seed, layer, *found)
                        for column, value in zip(curve.values(), row, strict=True):
                            column.append(value)
                print(arrangement, start, depth, "gradients", flush=True)
    return curve


if __name__ == "__main__":
    main(*sys.argv[1:])
