"""Sinusoidal, learned, rotary positions and ALiBi: the loss within and beyond the trained length.

    python benchmarks/positions.py        about 15 minutes on one core

Writes transformer_lib/runs/positions.json, which chapter 07c and its deeper page read. For each
method the same small GPT learns Python's documentation by characters, in blocks of LENGTH tokens.
Three seeds each; a seed gives every method the same blocks in the same order. The recipe is the
same for all, too: the book's fast one, which was found with rotary positions; nothing was tuned
here. (That text needs no download. Another version of Python has another one, so the log holds its
hash.)

The loss is measured on the last tenth of the text. Each of its blocks is predicted behind 0, 1, 2,
... REACH - 1 blocks of context, so that the very same targets stand at every multiple of LENGTH:
whatever differs between the positions, it is not the text. A learned table ends at LENGTH; what it
raises beyond is in the log, instead of a loss.

Where positions are added, a word and its address start with very different lengths (both are in
the log). So both methods that add run a second time, "matched": there the shorter of the two is
stretched to the length of the other before training. And the rotary models read a second and a
third time, stretched without any further training: with a larger base, and with all positions
squeezed into the trained range.
"""

import functools
import hashlib

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import Windows
from transformer_lib.data.texts import python_docs
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.positions import RotaryPositions, apply_rotary, rotary_angles
from transformer_lib.sampling import evaluating
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

METHODS = ("sinusoidal", "learned", "rotary", "alibi")
MATCHED = {"sinusoidal, matched": "sinusoidal", "learned, matched": "learned"}
STRETCHED = ("rotary, larger base", "rotary, squeezed")
LENGTH, REACH, BIN = 64, 8, 16  # trained length; how many times that; tokens a point of the curve
# (No smear: it would tell every method what the token before is.)
SIZES = {"n_layers": 4, "n_heads": 4, "d_model": 128, "smear": 0}
RECIPE = {"lr": 0.03, "adamw_lr": 0.01}
BATCH, STEPS, DECAY, SEEDS = 16, 300, 0.8, 3


def new_model(name: str, seed: int, vocabulary: int) -> GPT:
    """A GPT before training; where its positions allow, it takes REACH times LENGTH tokens."""
    method = MATCHED.get(name, name)
    context = LENGTH if method == "learned" else REACH * LENGTH
    torch.manual_seed(seed)
    config = {"vocabulary": vocabulary, "context": context, "positions": method}
    model = GPT(GPTConfig.fast(**SIZES | config))
    if name in MATCHED:
        match(model)
    return model


def train(model: GPT, seed: int, ids: Int[Tensor, " tokens"]) -> None:
    """Train on blocks of LENGTH tokens."""
    batches = Batches(Windows(ids, LENGTH), BATCH, seed=seed)
    schedule = functools.partial(trapezoid, decay=DECAY)
    options = {"n_steps": STEPS, "schedule": schedule, "precision": "float32"}
    for _ in Trainer(model, Muon(model, **RECIPE), batches, **options):
        pass


@torch.no_grad()
def lengths(model: GPT) -> tuple[float, float]:
    """The mean length of a word's vector, and of what is added for its position (0: nothing)."""
    words, positions = model.embedding.weight, model.embedding.positions
    if positions is None:
        return words.norm(dim=1).mean().item(), 0.0
    added = positions(torch.zeros(LENGTH, words.shape[1]))
    return words.norm(dim=1).mean().item(), added.norm(dim=1).mean().item()


@torch.no_grad()
def match(model: GPT) -> None:
    """Stretch words or addresses, whichever are shorter, to the mean length of the other."""
    word, address = lengths(model)
    if word < address:
        model.embedding.weight.mul_(address / word)
    else:
        model.embedding.positions.table.weight.mul_(word / address)


class Squeezed(RotaryPositions):
    """Positions divided by REACH: none is beyond those of training. Source: Chen et al. 2023."""

    def rotate(self, x: Float[Tensor, "*batch tokens d_head"], start: int) -> Tensor:
        angles = rotary_angles(x.shape[-2], self.d_head, base=self.base, start=start)
        return apply_rotary(x, angles / REACH)


def stretch(model: GPT, name: str) -> None:
    """Let a trained rotary model turn its queries and keys more slowly."""
    d_head = model.config.d_head
    # The slowest hand then turns REACH times more slowly, the fastest as before.
    larger = RotaryPositions(d_head, base=10_000.0 * REACH ** (d_head / (d_head - 2)))
    for block in model.blocks:
        block.attention.positions = larger if name == STRETCHED[0] else Squeezed(d_head)


def same_blocks(ids: Int[Tensor, " tokens"]) -> range:
    """The blocks of a text with REACH - 1 blocks on either side, so that every window fits."""
    return range(REACH - 1, (len(ids) - 1) // LENGTH - REACH + 1)


@torch.no_grad()
def loss_by_position(model: GPT, ids: Int[Tensor, " tokens"]) -> Float[Tensor, " positions"]:
    """The mean loss at each position of the model's context.

    Each of :func:`same_blocks` counts once behind k blocks of context, for every k that fits.
    """
    same, reach = same_blocks(ids), model.config.context // LENGTH
    firsts = torch.arange(same.start - reach + 1, same.stop)  # the first block of each window
    windows, parts = Windows(ids, reach * LENGTH), []
    with evaluating(model):
        for some in firsts.split(max(1, 8192 // (reach * LENGTH))):
            inputs, targets = windows.rows(some * LENGTH)
            parts.append(F.cross_entropy(model(inputs).mT, targets, reduction="none"))
    losses = torch.cat(parts).double().unflatten(1, (reach, LENGTH))  # [windows, block, token]
    behind = (losses[reach - 1 - k :][: len(same), k] for k in range(reach))
    return torch.cat([block.mean(dim=0) for block in behind])


def by_frequency(
    train_ids: Int[Tensor, " tokens"], ids: Int[Tensor, " tokens"], size: int
) -> float:
    """The loss, on the same targets, of knowing nothing but how frequent each character is."""
    counts = torch.bincount(train_ids, minlength=size).double() + 1
    same = same_blocks(ids)
    targets = ids[same.start * LENGTH + 1 : same.stop * LENGTH + 1]
    return -(counts / counts.sum()).log()[targets].mean().item()


def beyond_the_table(model: GPT) -> str:
    """The error that learned positions raise when one token more is asked for."""
    try:
        model.embedding.positions(torch.zeros(1, LENGTH + 1, model.config.d_model))
    except ValueError as error:
        return str(error)
    raise AssertionError("a learned table has given a row that it does not have")


def main() -> None:
    text = python_docs()
    tokenizer = CharacterTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))
    train_ids, held_out = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
    curve: dict[str, list[float]] = {name: [] for name in ("method", "seed", "position", "loss")}
    result = {"by_frequency": by_frequency(train_ids, held_out, tokenizer.size)}
    result |= {"targets": len(same_blocks(held_out)) * LENGTH, "parameters": {}, "lengths": {}}
    names = [*METHODS, *MATCHED, *STRETCHED]

    def measure(model: GPT, name: str, seed: int) -> None:
        binned = loss_by_position(model, held_out).unflatten(0, (-1, BIN)).mean(dim=1).tolist()
        for i, loss in enumerate(binned):
            row = (names.index(name), seed, i * BIN, loss)
            for column, value in zip(curve.values(), row, strict=True):
                column.append(value)
        print(f"{name:20} seed {seed}:", *(f"{x:.2f}" for x in binned[:: LENGTH // BIN]))

    for name in (*METHODS, *MATCHED):
        start, end = [], []
        for seed in range(SEEDS):
            model = new_model(name, seed, tokenizer.size)
            start.append(lengths(model))
            train(model, seed, train_ids)
            end.append(lengths(model))
            measure(model, name, seed)
            if name == "rotary":
                for other in STRETCHED:
                    stretch(model, other)
                    measure(model, other, seed)
        result["parameters"][name] = model.n_parameters
        result["lengths"][name] = {
            f"{what} at the {when}": [pair[part] for pair in pairs]
            for part, what in enumerate(("word", "address"))
            for when, pairs in (("start", start), ("end", end))
        }
        if name == "learned":
            result["beyond_the_table"] = beyond_the_table(model)
    config = {
        "methods": names, "seeds": SEEDS, "length": LENGTH, "reach": REACH, "bin": BIN,
        "steps": STEPS, "batch": BATCH, "decay": DECAY, **SIZES, **RECIPE, "wiring": "fast",
        "optimizer": "Muon", "precision": "float32", "text": "python_docs by characters",
        "characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }  # fmt: skip
    log = new_run("positions", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
