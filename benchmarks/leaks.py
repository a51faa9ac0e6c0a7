"""Zeros after the softmax, or −infinity before it: does training find the leak?

    python benchmarks/leaks.py        about 4 minutes on one core

Writes transformer_lib/runs/leaks.json, which chapter 04 reads. One layer of attention, its
positions and a feed-forward layer read random tokens and predict the next one, which nobody can:
guessing costs ln 20. Both ways to hide the future give it a weight of exactly zero, so no value of
a hidden token arrives anywhere. With zeros *after* the softmax a hidden token still counts in the
denominator of the others' weights. Three seeds each, with equal starts and equal texts; nothing
else differs.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.layers import FeedForward
from transformer_lib.masks import causal_mask
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

RULES = ("zeros after the softmax", "minus infinity before it")
TOKENS, LENGTH, WIDTH = 20, 8, 64
SEEDS, STEPS, BATCH, RATE, EVERY = 3, 2000, 128, 0.001, 50
HELD_OUT = 4096  # texts to measure on


class OneLayer(nn.Module):
    """Tokens with learned positions, one head of attention, a feed-forward layer, logits."""

    def __init__(self, rule: str) -> None:
        super().__init__()
        self.rule = rule
        self.words, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.feed_forward, self.head = FeedForward(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocabulary"]:
        """The logits of the next token, after each."""
        x = self.words(ids) + self.places.weight
        scores = self.query(x) @ self.key(x).mT / WIDTH**0.5
        may = causal_mask(LENGTH)
        if self.rule == RULES[0]:
            weights = scores.softmax(dim=-1) * may
        else:
            weights = scores.masked_fill(~may, -torch.inf).softmax(dim=-1)
        return self.head(self.feed_forward(weights @ self.value(x)))


def losses(model: OneLayer, text: Int[Tensor, "batch positions"]) -> Float[Tensor, "batch tokens"]:
    """What each next token costs."""
    return F.cross_entropy(model(text[:, :-1]).mT, text[:, 1:], reduction="none")


def train(rule: str, seed: int) -> tuple[OneLayer, list[float]]:
    """A model, and its mean loss in every EVERY steps."""
    torch.manual_seed(seed)
    model, curve = OneLayer(rule), []
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / STEPS)
    for _ in range(STEPS):
        loss = losses(model, torch.randint(TOKENS, (BATCH, LENGTH + 1))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        curve.append(loss.item())
    return model, torch.tensor(curve).unflatten(0, (-1, EVERY)).mean(dim=1).tolist()


def main() -> None:
    torch.set_num_threads(1)
    curve: dict[str, list[float]] = {name: [] for name in ("rule", "seed", "step", "loss")}
    by_position: dict[str, list[list[float]]] = {rule: [] for rule in RULES}
    for number, rule in enumerate(RULES):
        for seed in range(SEEDS):
            model, found = train(rule, seed)
            for i, loss in enumerate(found):
                row = (number, seed, (i + 1) * EVERY, loss)
                for column, value in zip(curve.values(), row, strict=True):
                    column.append(value)
            torch.manual_seed(1000 + seed)
            text = torch.randint(TOKENS, (HELD_OUT, LENGTH + 1))
            with torch.no_grad():
                by_position[rule].append(losses(model, text).mean(dim=0).tolist())
            print(f"{rule:25} seed {seed}:", *(f"{x:.2f}" for x in by_position[rule][-1]))
    config = {
        "rules": list(RULES), "tokens": TOKENS, "length": LENGTH, "width": WIDTH, "seeds": SEEDS,
        "steps": STEPS, "batch": BATCH, "rate": RATE, "every": EVERY, "held_out": HELD_OUT,
        "optimizer": "Adam", "schedule": "linear to 0",
    }  # fmt: skip
    result = {"guessing": math.log(TOKENS), "new texts, by position": by_position}
    log = new_run("leaks", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
