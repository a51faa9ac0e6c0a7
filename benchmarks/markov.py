"""A small GPT learns to read Markov chains, and is kept at many moments: chapter 14.

    python benchmarks/markov.py        about two minutes on one quiet core

Writes transformer_lib/runs/markov.json, and transformer_lib/trained/markov.safetensors with the
first seed of "two layers" after KEPT steps. Each model reads chains that it has never seen, so the
loss of a step is one of new data; what is logged is measured on the same TEST chains each time.

    previous   share of a head's attention on the state before, in each layer
    match      share on the states that followed an earlier occurrence of the present one

What does the second head read while the first still looks at all states nearly alike? At the first
moment kept at which it has gone half of its way, its share is measured again with other weights in
the first head's place: the flat ones of a head that looks at everything alike, and its own without
the state before.
"""

from collections.abc import Container

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from transformer_lib.data.markov import READERS, chains, loss_of
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import linear
from transformer_lib.training.timeline import save_timeline
from transformer_lib.training.trained import TRAINED_FOLDER

STATES, LENGTH, TEST = 3, 48, 256
WIRINGS = {
    "two layers": {"n_layers": 2, "smear": 0},
    "one layer": {"n_layers": 1, "smear": 0},
    "one layer, with a smear": {"n_layers": 1, "smear": 1},
}
SIZES = {"n_heads": 1, "d_model": 16}
STEPS, BATCH, LR, SEEDS, EVERY = 600, 64, 0.003, 3, 10
KEPT = [*range(0, 300, 10), *range(300, 601, 50)]
SKIPPED = 8  # of each chain, before the shares of attention are measured: little can be known there
COLUMNS = ("wiring", "seed", "step", "loss", "previous_0", "previous_1", "match_0", "match_1")


def expected_loss(model: GPT, ids: Int[Tensor, "n length"]) -> Tensor:
    logits = model(ids)[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def shares(model: GPT, ids: Int[Tensor, "n length"]) -> list[tuple[float, float]]:
    """For each layer: the attention on the state before, and on what followed the present one."""
    same = ids[:, :, None] == ids[:, None, :]
    follows = F.pad(same[:, :, :-1], (1, 0)).tril()  # column j: state j − 1 is the present one
    found = []
    for weights in attention_maps(model, ids).values():
        head = weights[:, 0]
        before = head.diagonal(offset=-1, dim1=1, dim2=2)[:, SKIPPED:].mean()
        match = (head * follows).sum(dim=-1)[:, SKIPPED:].mean()
        found.append((before.item(), match.item()))
    return found


def with_first_weights(model: GPT, ids: Int[Tensor, "n length"], weights: Tensor) -> float:
    """The second head's share of what followed, with these weights in the first head's place."""
    attention = model.blocks[0].attention

    def hook(module, inputs, written):
        return module.output(weights @ module.value(inputs[0]))

    handle = attention.register_forward_hook(hook)
    try:
        return shares(model, ids)[1][1]
    finally:
        handle.remove()


@torch.no_grad()
def trace(model: GPT, ids: Int[Tensor, "n length"]) -> dict[str, float]:
    """What the second head finds, by what the first one looks at."""
    own = next(iter(attention_maps(model, ids).values()))[:, 0]
    flat = torch.ones_like(own).tril()
    without = own.clone()
    without.diagonal(offset=-1, dim1=1, dim2=2).zero_()
    looks = {"its own": own, "flat": flat, "without the one before": without}
    return {
        name: with_first_weights(model, ids, weights / weights.sum(dim=-1, keepdim=True))
        for name, weights in looks.items()
    }


def halfway(rows: list[tuple], kept: Container[int]) -> int:
    """The first step that was kept at which the second head has gone half of its way."""
    found = {row[1]: row[-1] for row in rows}
    half = (found[0] + found[STEPS]) / 2
    return next(step for step, share in found.items() if step in kept and share >= half)


def trained(wiring: str, seed: int, test: Int[Tensor, "n length"]):
    """Rows of COLUMNS (without the wiring), and the weights after KEPT steps."""
    torch.manual_seed(seed)
    config = GPTConfig.fast(vocabulary=STATES, context=LENGTH, **SIZES, **WIRINGS[wiring])
    model, generator = GPT(config), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0)
    rows, kept = [], {}
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                loss = expected_loss(model, test).item()
            looks = [*shares(model, test), (float("nan"), float("nan"))][:2]
            (previous_0, match_0), (previous_1, match_1) = looks
            rows.append((seed, step, loss, previous_0, previous_1, match_0, match_1))
        if step in KEPT:
            kept[step] = {name: w.detach().clone() for name, w in model.state_dict().items()}
        if step == STEPS:
            break
        for group in optimizer.param_groups:
            group["lr"] = LR * linear(step + 1, STEPS)
        loss = expected_loss(model, chains(BATCH, LENGTH, STATES, generator=generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return config, rows, kept


def main() -> None:
    torch.set_num_threads(1)
    test = chains(TEST, LENGTH, STATES, generator=torch.Generator().manual_seed(2**20))
    curve: dict[str, list] = {column: [] for column in COLUMNS}
    traces = []
    for number, wiring in enumerate(WIRINGS):
        for seed in range(SEEDS):
            config, rows, kept = trained(wiring, seed, test)
            for row in rows:
                for column, value in zip(COLUMNS, (number, *row), strict=True):
                    curve[column].append(value)
            print(f"{wiring}, seed {seed}: {rows[-1][2]:.4f}", flush=True)
            if wiring == "two layers":
                model = GPT(config).eval()
                model.load_state_dict(kept[halfway(rows, kept)])
                traces.append(trace(model, test))
            if (number, seed) == (0, 0):
                save_timeline(TRAINED_FOLDER / "markov.safetensors", config, kept)
    result = {reader: loss_of(test, STATES, reader) for reader in READERS} | {"trace": traces}
    sizes = {"states": STATES, "length": LENGTH, "chains": TEST, **SIZES, "steps": STEPS}
    sizes |= {"batch": BATCH, "lr": LR, "kept": KEPT, "wirings": list(WIRINGS)}
    log = new_run("markov", config=sizes, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
