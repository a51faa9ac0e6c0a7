"""Chapter 11's small GPT with a part taken out: what each part is for.

    python benchmarks/gpt_ablations.py        about ten minutes on one core

Writes transformer_lib/runs/gpt-ablations.json, which chapter 11 reads. Each variant is trained from
three seeds on the same stories, and measured on stories that it has not seen:

- loss: as it is trained, all predictions of a story in one pass;
- prefix loss: as it is used, each prediction from a text that ends before it. The two are equal
  unless something looks ahead;
- accuracy: of the answers to *who has ...?*, in that one pass;
- stories: the share of the texts it writes itself that the grammar accepts.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.blocks import PostNorm, PreNorm
from transformer_lib.data.batches import Batches
from transformer_lib.data.gifts import PLAIN, Grammar
from transformer_lib.data.packing import IGNORED, Packed, pack
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import generate
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

GRAMMAR = Grammar(
    people=("mary", "susan", "john", "peter"), gifts=("roses", "books", "apples"),
    n_gifts=1, n_sentences=6, give=0.5, give_it=0.0, ask=0.5, **PLAIN,
)  # fmt: skip
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 64}
STEPS, BATCH, EVERY, SEEDS = 400, 32, 10, (0, 1, 2)
TRAINED, HELD_OUT, WRITTEN = 8000, 200, 50


class NoResidual(PreNorm):
    """Each sub-layer's result replaces the stream in place of being added to it."""

    def wire(self, x, attend, think, norm_1, norm_2):
        return think(norm_2(attend(norm_1(x))))


class NoMask(PreNorm):
    """Every token sees every other, those to come included."""

    def forward(self, x, mask=None, *, causal=False, cache=None):
        return super().forward(x, mask=mask, causal=False, cache=cache)


# name: changes of the configuration, the block, whether there are positions
VARIANTS = {
    "GPT": ({}, PreNorm, True),
    "post-norm": ({"norm": "post", "projections": "normal"}, PostNorm, True),
    "no positions": ({}, PreNorm, False),
    "one layer": ({"n_layers": 1}, PreNorm, True),
    "one layer, no positions": ({"n_layers": 1}, PreNorm, False),
    "no residual": ({}, NoResidual, True),
    "six layers": ({"n_layers": 6}, PreNorm, True),
    "six layers, no residual": ({"n_layers": 6}, NoResidual, True),
    "no mask": ({}, NoMask, True),
}


def make(variant: str, tokenizer: WordTokenizer) -> GPT:
    """A fresh model of this variant."""
    changes, kind, positions = VARIANTS[variant]
    sizes = {"vocabulary": tokenizer.size, "context": GRAMMAR.max_words} | SIZES | changes
    model = GPT(GPTConfig(**sizes))
    for block in model.blocks:
        block.__class__ = kind  # the same parameters, wired in another way
    if not positions:
        model.embedding.positions = None
    return model


def loss(model: GPT, blocks: Packed) -> float:
    """The mean loss of all predictions, in one pass."""
    return mean_loss(model(blocks.inputs), blocks)


def prefix_loss(model: GPT, blocks: Packed) -> float:
    """The mean loss of all predictions, each from a text that ends before it."""
    ends = range(1, blocks.inputs.shape[1] + 1)
    logits = [model(blocks.inputs[:, :end])[:, -1] for end in ends]
    return mean_loss(torch.stack(logits, dim=1), blocks)


def mean_loss(logits: Tensor, blocks: Packed) -> float:
    """Over all targets, in nats."""
    flat = logits.flatten(0, 1), blocks.targets.flatten()
    return F.cross_entropy(*flat, ignore_index=IGNORED).item()


def accuracy(model: GPT, blocks: Packed, stories: list[str]) -> float:
    """The share of the questions that get the right answer."""
    asked = blocks.mark([[q.position for q in GRAMMAR.questions(story)] for story in stories])
    return (model(blocks.inputs).argmax(-1) == blocks.targets)[asked].float().mean().item()


def stories_written(model: GPT, tokenizer: WordTokenizer, seed: int) -> float:
    """The share of texts sampled after ``<story>`` that are stories of the grammar."""
    start = torch.zeros(WRITTEN, 1, dtype=torch.int64)
    source = torch.Generator().manual_seed(seed)
    texts = generate(model, start, GRAMMAR.max_words - 1, cache=False, generator=source)
    return sum(is_story(tokenizer.decode(ids)) for ids in texts) / WRITTEN


def is_story(text: str) -> bool:
    """Whether the grammar could have written ``text``."""
    try:
        GRAMMAR.log_probabilities(text)
    except ValueError:
        return False
    return True


def main() -> None:
    torch.set_num_threads(1)
    tokenizer = WordTokenizer(GRAMMAR.vocabulary)
    held_out = GRAMMAR.stories(HELD_OUT, seed=2)
    training, unseen = (
        pack([tokenizer.encode(story) for story in stories], GRAMMAR.max_words)
        for stories in (GRAMMAR.stories(TRAINED, seed=1), held_out)
    )
    curve: dict[str, list] = {name: [] for name in ("variant", "seed", "step", "loss")}
    result: dict[str, list | float] = {"floor": GRAMMAR.floor(held_out)}
    measures = ("loss", "prefix loss", "accuracy", "stories")
    for number, variant in enumerate(VARIANTS):
        result |= {f"{variant}: {measure}": [] for measure in measures}
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = make(variant, tokenizer)
            trainer = Trainer(
                model,
                Muon(model, lr=0.02, adamw_lr=0.005),
                Batches(training, BATCH, seed=seed),
                n_steps=STEPS,
                schedule=partial(trapezoid, warmup=10, decay=0.6),
            )
            for step in trainer:
                if step.step % EVERY == 0:
                    with torch.no_grad():
                        row = (number, seed, step.step, loss(model.eval(), unseen))
                    for column, value in zip(curve.values(), row, strict=True):
                        column.append(value)
            with torch.no_grad():
                values = (
                    row[-1],
                    prefix_loss(model, unseen),
                    accuracy(model, unseen, held_out),
                    stories_written(model, tokenizer, seed),
                )
            for measure, value in zip(measures, values, strict=True):
                result[f"{variant}: {measure}"].append(value)
            shown = ", ".join(f"{m} {v:.4f}" for m, v in zip(measures, values, strict=True))
            print(f"{variant}, seed {seed}: {shown}", flush=True)
    config = SIZES | {
        "variants": list(VARIANTS), "seeds": list(SEEDS), "steps": STEPS, "batch": BATCH,
        "optimizer": "Muon 0.02, AdamW 0.005", "schedule": "trapezoid, warmup 10, decay 0.6",
        "training stories": TRAINED, "held-out stories": HELD_OUT, "grammar": GRAMMAR.hash,
    }  # fmt: skip
    log = new_run("gpt-ablations", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
