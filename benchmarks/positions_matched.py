"""Words and addresses of equal length, and rotary positions stretched: do the results change?

    python benchmarks/positions_matched.py        about 15 minutes on one core

Writes transformer_lib/runs/positions-matched.json, which chapter 07c and its deeper page read. Two
questions about what positions.py has measured, with its models, text and recipe.

Where positions are added, a word and its address start with very different lengths (both are in the
log). "matched" stretches the shorter of the two to the length of the other before training: is it
the lengths that hold a method back?

And can trained rotary models be taken to longer texts without more training? They read a second and
a third time: with a larger base, so that the slowest hand turns REACH times more slowly and the
fastest as before; and squeezed, with all positions divided by REACH.
"""

import torch
from jaxtyping import Float
from positions import (
    LENGTH,
    REACH,
    SEEDS,
    Curve,
    new_model,
    read_text,
    recipe,
    train,
)
from torch import Tensor

from transformer_lib.gpt import GPT
from transformer_lib.positions import RotaryPositions, apply_rotary, rotary_angles
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

METHODS = ("sinusoidal, matched", "learned, matched", "rotary, larger base", "rotary, squeezed")
ADDED = ("sinusoidal", "learned")


@torch.no_grad()
def lengths(model: GPT) -> dict[str, float]:
    """The mean length of a word's vector, and of what is added for its position."""
    words, positions = model.embedding.weight, model.embedding.positions
    added = positions(torch.zeros(LENGTH, words.shape[1]))
    return {"word": words.norm(dim=1).mean().item(), "address": added.norm(dim=1).mean().item()}


@torch.no_grad()
def match(model: GPT) -> GPT:
    """Stretch words or addresses, whichever are shorter, to the mean length of the other."""
    word, address = lengths(model).values()
    if word < address:
        model.embedding.weight.mul_(address / word)
    else:
        model.embedding.positions.table.weight.mul_(word / address)
    return model


class Squeezed(RotaryPositions):
    """Positions divided by REACH: none is beyond those of training. Source: Chen et al. 2023."""

    def rotate(self, x: Float[Tensor, "*batch tokens d_head"], start: int) -> Tensor:
        angles = rotary_angles(x.shape[-2], self.d_head, base=self.base, start=start)
        return apply_rotary(x, angles / REACH)


def stretch(model: GPT, name: str) -> GPT:
    """Let a trained rotary model turn its queries and keys more slowly."""
    d_head = model.config.d_head
    larger = RotaryPositions(d_head, base=10_000.0 * REACH ** (d_head / (d_head - 2)))
    for block in model.blocks:
        block.attention.positions = larger if name == "rotary, larger base" else Squeezed(d_head)
    return model


def main() -> None:
    tokenizer, train_ids, held_out, said = read_text()
    curve = Curve()
    start = {name: lengths(new_model(name, 0, tokenizer.size)) for name in ADDED}
    matched: dict[str, dict[str, float]] = {}
    for seed in range(SEEDS):
        for number, method in enumerate(ADDED):
            model = match(new_model(method, seed, tokenizer.size))
            matched[method] = lengths(model)
            curve.measure(train(model, seed, train_ids), number, METHODS[number], seed, held_out)
        model = train(new_model("rotary", seed, tokenizer.size), seed, train_ids)
        for number in (2, 3):
            curve.measure(stretch(model, METHODS[number]), number, METHODS[number], seed, held_out)
    result = {"lengths": start, "lengths matched": matched}
    config = {"methods": list(METHODS), **recipe(), **said}
    log = new_run("positions-matched", config=config, curve=curve.columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
