"""The norm's place in a deep stack: gradients by depth before training, and what is learned.

    python benchmarks/depth.py          about twenty minutes on one core
    python benchmarks/depth.py later    the last two points alone, into the log that is there

Writes transformer_lib/runs/depth.json, which chapter 08b reads. The model is a GPT whose blocks are
put together in one of five ways (ARRANGEMENTS); it reads the gift stories of a small grammar.

How large the numbers of a fresh model are is a choice of its own, in two parts (STARTS): the tables
of words and positions, whose rows have a spread of 0.02 as GPT-2's or of 1 as in the paper, which
multiplies its table by √d; and the matrices, drawn with GPT-2's 0.02 (and smaller by √(2 · blocks)
where results are written into the stream) or by Xavier's rule.

- Gradients: for stacks of DEPTHS blocks, from each start, of the loss of one batch of a fresh model
  by all parameters of each block: the norm. Beside it, the size of the stream behind each block:
  the root mean square of its numbers. Nothing is trained.
- Losses: LAYERS blocks are trained for STEPS steps from each of STARTS_OF[arrangement]. The first
  seed tries all RATES; the others are trained at the rate that was best for it.
- "first to last": the first block's gradient over the last one's, for post-norm from MORE_SEEDS.
- "longer": the losses of LONGER_FOR after LONGER times the steps, at the rates found before.
"""

import sys
from functools import partial

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
from transformer_lib.training.optimizers import Muon
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
LAYERS, STEPS, BATCH, RATES = 6, 300, 16, (0.02, 0.01, 0.005, 0.0025)
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
# GPT-2's start for all, and another one where that does not suit: post-norm and the stack without
# a stream as in the paper; where no norm enlarges the tables' numbers, they begin large.
STARTS_OF = {
    "pre-norm": ("all small",),
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


def trained_loss(
    model: GPT, training: Packed, unseen: Packed, rate: float, seed: int, steps: int
) -> float:
    """The loss on unseen stories after training."""
    trainer = Trainer(
        model,
        Muon(model, lr=rate, adamw_lr=rate / 4),
        Batches(training, BATCH, seed=seed),
        n_steps=steps,
        schedule=partial(trapezoid, warmup=10, decay=0.6),
    )
    for _ in trainer:
        pass
    with torch.no_grad():
        return loss_of(model.eval(), unseen.inputs, unseen.targets).item()


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


def main(only: str = "") -> None:
    torch.set_num_threads(1)
    tokenizer = WordTokenizer(GRAMMAR.vocabulary)
    held_out = GRAMMAR.stories(HELD_OUT, seed=2)
    training, unseen = (
        pack([tokenizer.encode(story) for story in stories], GRAMMAR.max_words)
        for stories in (GRAMMAR.stories(TRAINED, seed=1), held_out)
    )

    def loss(arrangement: str, start: str, rate: float, seed: int, steps: int = STEPS) -> float:
        model = make(arrangement, start, LAYERS, seed)
        found = trained_loss(model, training, unseen, rate, seed, steps)
        print(arrangement, start, seed, rate, steps, f"{found:.3f}", flush=True)
        return found

    if only == "later":  # all else stays as it is
        log = load_run(RUNS_FOLDER / "depth.json")
        curve, result = log.curve, dict(log.result)
    else:
        curve, result = measured_gradients(training), {"floor": GRAMMAR.floor(held_out)}
        for arrangement, starts in STARTS_OF.items():
            for start in starts:
                first, *others = SEEDS
                tried = {rate: loss(arrangement, start, rate, first) for rate in RATES}
                best, name = min(tried, key=tried.get), f"{arrangement}, {start}"
                result[f"{name}: rates"] = list(tried.values())
                again = [loss(arrangement, start, best, seed) for seed in others]
                result[name] = [tried[best], *again]
    result |= first_to_last(training)
    for arrangement, start in LONGER_FOR:
        name = f"{arrangement}, {start}"
        tried = result[f"{name}: rates"]
        best = RATES[tried.index(min(tried))]
        result[f"longer: {name}"] = [
            loss(arrangement, start, best, seed, LONGER * STEPS) for seed in SEEDS
        ]
    config = SIZES | {
        "arrangements": list(ARRANGEMENTS), "starts": list(STARTS), "depths": list(DEPTHS),
        "seeds": list(SEEDS), "starts of": {a: list(found) for a, found in STARTS_OF.items()},
        "more seeds": list(MORE_SEEDS), "longer": LONGER,
        "layers": LAYERS, "steps": STEPS, "batch": BATCH, "rates": list(RATES),
        "optimizer": "Muon, AdamW at a quarter of the rate",
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
