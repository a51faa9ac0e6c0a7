"""Sinusoidal, learned, rotary positions and ALiBi: the loss within and beyond the trained length.

    python benchmarks/positions.py        about 8 minutes on 2 cores

Writes transformer_lib/runs/positions.json, which chapter 07c reads. For each method the same small
GPT learns Python's documentation by characters, in blocks of LENGTH tokens. Three seeds each; a
seed gives every method the same blocks in the same order. The recipe is the same for all, too: the
book's fast one, which was found with rotary positions; nothing was tuned here. (That text needs no
download. Another version of Python has another one, so the log holds its hash.)

The loss is measured on the last tenth of the text. Each of its blocks is predicted behind 0, 1, 2,
... REACH - 1 blocks of context, so that the very same targets come at every multiple of LENGTH:
whatever differs between the positions, it is not the text. A learned table ends at LENGTH; what it
raises beyond is in the log, instead of a loss.
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
from transformer_lib.sampling import evaluating
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

METHODS = ("sinusoidal", "learned", "rotary", "alibi")
LENGTH, REACH, BIN = 64, 8, 16  # trained length; how many times that; tokens a point of the curve
# (No smear: it would tell every method what the token before is.)
SIZES = {"n_layers": 4, "n_heads": 4, "d_model": 128, "smear": 0}
RECIPE = {"lr": 0.03, "adamw_lr": 0.01}
BATCH, STEPS, DECAY, SEEDS = 16, 300, 0.8, 3


def new_model(method: str, seed: int, vocabulary: int) -> GPT:
    """A GPT before training; where its positions allow, it takes REACH times LENGTH tokens."""
    context = LENGTH if method == "learned" else REACH * LENGTH
    torch.manual_seed(seed)
    config = {"vocabulary": vocabulary, "context": context, "positions": method}
    return GPT(GPTConfig.fast(**SIZES | config))


def train(model: GPT, seed: int, ids: Int[Tensor, " tokens"]) -> GPT:
    """The model, trained on blocks of LENGTH tokens."""
    batches = Batches(Windows(ids, LENGTH), BATCH, seed=seed)
    schedule = functools.partial(trapezoid, decay=DECAY)
    options = {"n_steps": STEPS, "schedule": schedule, "precision": "float32"}
    for _ in Trainer(model, Muon(model, **RECIPE), batches, **options):
        pass
    return model


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


def read_text() -> tuple[CharacterTokenizer, Int[Tensor, " train"], Int[Tensor, " held_out"], dict]:
    """The tokenizer, the text to learn and the text to measure on, and what a log says of them."""
    text = python_docs()
    tokenizer = CharacterTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))
    end = len(ids) * 9 // 10
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    said = {"text": "python_docs by characters", "characters": len(text), "sha256": sha256}
    return tokenizer, ids[:end], ids[end:], said


class Curve:
    """The columns of a log, filled model by model."""

    def __init__(self) -> None:
        names = ("method", "seed", "position", "loss")
        self.columns: dict[str, list[float]] = {name: [] for name in names}

    def measure(
        self, model: GPT, number: int, name: str, seed: int, ids: Int[Tensor, " tokens"]
    ) -> None:
        """Add a model's losses, BIN tokens a point; `number` is `name` in the log."""
        binned = loss_by_position(model, ids).unflatten(0, (-1, BIN)).mean(dim=1).tolist()
        for i, loss in enumerate(binned):
            for column, value in zip(
                self.columns.values(), (number, seed, i * BIN, loss), strict=True
            ):
                column.append(value)
        print(f"{name:19} seed {seed}:", *(f"{x:.2f}" for x in binned[:: LENGTH // BIN]))


def recipe() -> dict[str, object]:
    """What all models have in common, for the log."""
    return {
        "seeds": SEEDS, "length": LENGTH, "reach": REACH, "bin": BIN, "steps": STEPS,
        "batch": BATCH, "decay": DECAY, **SIZES, **RECIPE, "wiring": "fast", "optimizer": "Muon",
        "precision": "float32",
    }  # fmt: skip


def main() -> None:
    tokenizer, train_ids, held_out, said = read_text()
    curve = Curve()
    result = {"by_frequency": by_frequency(train_ids, held_out, tokenizer.size)}
    result |= {"targets": len(same_blocks(held_out)) * LENGTH, "parameters": {}}
    for number, method in enumerate(METHODS):
        for seed in range(SEEDS):
            model = train(new_model(method, seed, tokenizer.size), seed, train_ids)
            curve.measure(model, number, method, seed, held_out)
        result["parameters"][method] = model.n_parameters
        if method == "learned":
            result["beyond_the_table"] = beyond_the_table(model)
    config = {"methods": list(METHODS), **recipe(), **said}
    log = new_run("positions", config=config, curve=curve.columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
